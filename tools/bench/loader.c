/* loader.c: sgt-bench loader: compares every reader with the others, with memcpy of the same
 * windows, and with other programs. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/cpu.h"
#include "loader/shards/shard.h"
#include "loader/words.h"
#include "tools/bench/loader.h"
#include "tools/cli/options.h"
#include "tools/cli/talk.h"

enum { DEFAULT_SEQ = 1024, LIST_MOST = 16 }; /* LIST_MOST: most words of an option's list */

static loader_options o = {.outputs = "u16,i32",
                           .batch = 32,
                           .seq = DEFAULT_SEQ,
                           .sampling = SGT_SAMPLING_RANDOM,
                           .split = "train",
                           .seconds = 3,
                           .threads = 1,
                           .turns = 5,
                           .seed = 1};

static const sgt_option table[] = {
    {.name = "What to measure (a LIST is separated by commas)"},
    {"loader", 0, SGT_OPT_TEXT, &o.readers, "LIST", "readers:", .def = "all",
     .choices = sgt_reader_words},
    {"outputs", 0, SGT_OPT_TEXT, &o.outputs, "LIST",
     "u16 rows of T+1, i32 or i64 inputs and targets", .def = "u16,i32", .words = "u16|i32|i64"},
    {"batch-size", 0, SGT_OPT_COUNT, &o.batch, "N", "rows per batch", .def = "32", .min = 1,
     .max = 1 << 20},
    {"seq-len", 0, SGT_OPT_COUNT, &o.seq, "N", "tokens per row",
     .def = "1024, or less if the shards are shorter", .min = 1, .max = 1 << 20,
     .given = &o.seq_given},
    {"sampling", 0, SGT_OPT_WORD, &o.sampling, .help = "how rows are drawn", .def = "random",
     .choices = sgt_sampling_words},
    {"cold", 0, SGT_OPT_FLAG, &o.cold, NULL,
     .help = "drop the shards from the page cache before each measurement, and check it"},
    {"threads", 0, SGT_OPT_COUNT, &o.threads, "N", "threads that read, each with its own cursor",
     .def = "1", .min = 1, .max = 1024},
    {"seconds", 0, SGT_OPT_REAL, &o.seconds, "X", "time limit in seconds for all measurements",
     .def = "3", .min = .001, .max = 86400},
    {"turns", 0, SGT_OPT_COUNT, &o.turns, "N", "rounds over all measurements; medians are shown",
     .def = "5", .min = 1, .max = LOADER_TURNS},
    {"split", 0, SGT_OPT_CHOICE, &o.split, "train|val", "which shards of a folder", .def = "train"},
    {"seed", 0, SGT_OPT_COUNT, &o.seed, "N", "seed of the sampling", .def = "1"},
    {"raw", 0, SGT_OPT_FLAG, &o.raw, NULL, .help = "shards have no header (nanoGPT's)"},
    {.name = "Comparison"},
    {"peer", 0, SGT_OPT_TEXT, &o.peer, "PYTHON",
     .help = "compare with numpy and PyTorch (if installed), run by this interpreter in "
             "alternating turns (random rows, without --cold)"},
    {.name = "Output"},
    BENCH_OUTPUT(o.output),
    {0}};

static const sgt_program program = {
    .name = "sgt-bench loader",
    .usage = "sgt-bench loader [OPTION]... OUT/ | SHARD | A:0.7,B:0.3",
    .about = "Measures how fast each reader makes batches of a folder of shards, against memcpy of "
             "the same windows.",
    .options = table,
    .examples = "  sgt-bench loader out/\n"
                "  sgt-bench loader out/ --batch-size 64 --seq-len 512 --threads 2\n"
                "  sgt-bench loader out/ --cold --loader mmap,uring --outputs u16 --json\n"
                "  sgt-bench loader out/ --peer python3"};

/* ---- lists ---- */

static const char *const output_words[] = {"u16", "i32", "i64", NULL};

typedef struct lists {
    int readers[LIST_MOST], outputs[LIST_MOST];
    int reader_count, output_count;
} lists;

/* Return the index of `word` among `names`, which NULL ends; an unknown word is wrong usage. */
static int find_word(const char *option, const char *word, const char *const *names)
{
    char all[160] = "", hint[SGT_HINT];
    for (int k = 0; names[k]; k++) {
        if (!strcmp(word, names[k])) return k;
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", k ? ", " : "", names[k]);
    }
    sgt_usage(&program, "--%s %s: no such word (%s)%s", option, word, all,
              sgt_suggest(word, strlen(word), all, "", hint));
}

/* Convert the words of `list`, or all names if it is NULL, to their indices among `names`. Return
 * how many there are; a repeated word counts once. */
static int read_words(int *out, const char *option, const char *list, const char *const *names)
{
    char *pieces[LIST_MOST];
    int count = 0;
    while (!list && names[count]) out[count] = count, count++;
    int n = list ? sgt_split_list(list, pieces, LIST_MOST) : 0;
    if (list && n < 1)
        sgt_usage(&program, "--%s %s: expected one to %d words with commas between them", option,
                  list, LIST_MOST);
    for (int i = 0; i < n; i++) {
        int k = find_word(option, pieces[i], names), seen = 0;
        for (int j = 0; j < count; j++) seen |= out[j] == k;
        if (!seen) out[count++] = k;
        free(pieces[i]);
    }
    return count;
}

/* ---- what is read ---- */

static int add_shard(loader_bench *b, const char *path, sgt_error *err)
{
    sgt_shard_header h;
    /* the loader has already checked the header */
    int fd = sgt_shard_open(&h, path, o.raw ? 1 : -1, err);
    if (fd < 0) return fd;
    close(fd);
    loader_shard *s = &b->shards[b->shard_count];
    *s = (loader_shard){strdup(path), h.data, h.tokens, b->tokens};
    if (!s->path) return sgt_fail_memory(err, NULL);
    b->shard_count++;
    b->tokens += h.tokens;
    if (h.tokens > b->longest) b->longest = h.tokens;
    return SGT_OK;
}

/* List the shards that the loader finds. It leaves out those of less than two tokens, which no row
 * fits into. */
static int find_shards(loader_bench *b, sgt_error *err)
{
    sgt_loader *l;
    sgt_loader_info info;
    sgt_loader_options options = {
        .reader = SGT_READER_MMAP, .batch = 1, .seq = 1, .split = o.split, .raw = o.raw};
    int rc = sgt_loader_open_data(&l, b->path, &options, err);
    if (rc < 0) return rc;
    sgt_loader_get_info(l, &info);
    b->shards = calloc(info.shards, sizeof *b->shards);
    if (!b->shards) rc = sgt_fail_memory(err, NULL);
    for (uint64_t i = 0; i < info.shards && rc == SGT_OK; i++)
        rc = add_shard(b, sgt_loader_shard_path(l, (uint32_t)i), err);
    sgt_loader_close(l);
    return rc;
}

/* Set the shape of a batch. The default row is shortened if no shard is long enough for it, as in a
 * new user's small set. */
static void choose_shape(loader_bench *b)
{
    while (!o.seq_given && o.seq > 1 && o.seq >= b->longest) o.seq /= 2;
    if (!o.seq_given && o.seq < DEFAULT_SEQ)
        sgt_say(&b->notice, "--seq-len %" PRIu64 ", since no shard has the %d tokens per row of %d",
                o.seq, DEFAULT_SEQ + 1, DEFAULT_SEQ);
    b->batch = (uint32_t)o.batch;
    b->seq = (uint32_t)o.seq;
}

/* ---- the rows of the table ---- */

/* memcpy, each output of each reader, of mmap in two more states, the plain loop, and other
 * programs */
_Static_assert(1 + LOADER_OURS * (SGT_READERS + 2) + 1 + LOADER_MAKERS - LOADER_FIO + 1 <=
                   LOADER_ROWS,
               "room for all rows");

static loader_row *add_row(loader_bench *b, int maker, int output, loader_state state)
{
    loader_row *r = &b->rows[b->count++];
    *r = (loader_row){.maker = maker, .output = output, .state = state, .threads = 1};
    if (maker <= LOADER_MEMCPY) r->threads = (int)o.threads;
    return r;
}

/* Add a reader's row. Without --cold, also add mmap of a set that is cached but not mapped yet, and
 * the plain loop that int32 batches are compared with. */
static void add_reader(loader_bench *b, int reader, int output)
{
    int is_mmap = reader == SGT_READER_MMAP;
    add_row(b, reader, output, o.cold ? LOADER_COLD : is_mmap ? LOADER_MAPPED : LOADER_WARM);
    if (!o.cold && is_mmap) add_row(b, reader, output, LOADER_CACHED);
    if (!o.cold && reader == SGT_READER_PRELOAD && output == SGT_OUTPUT_I32)
        add_row(b, reader, output, LOADER_WARM)->plain = 1;
}

/* Add the rows of other programs. The Python peers draw random windows from memory, and fio
 * measures the disk. */
static void add_peers(loader_bench *b)
{
    static const int peers[][2] = {
        {LOADER_WINDOW, SGT_OUTPUT_U16}, {LOADER_WINDOW, SGT_OUTPUT_I32},
        {LOADER_GATHER, SGT_OUTPUT_I64}, {LOADER_LOOP, SGT_OUTPUT_I64},
        {LOADER_TORCH0, SGT_OUTPUT_I64}, {LOADER_TORCH2, SGT_OUTPUT_I64}};
    if (o.cold) add_row(b, LOADER_FIO, LOADER_BYTES, LOADER_COLD);
    else if (o.peer)
        for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
            add_row(b, peers[i][0], peers[i][1], LOADER_WARM);
}

/* Add all rows: memcpy first, then each output of each reader, other programs, and mmap of a set
 * that is not cached. Block sampling reads whole pools ahead, for which only --cold has time. */
static void add_rows(loader_bench *b, const lists *in)
{
    int has_mmap = 0;
    add_row(b, LOADER_MEMCPY, SGT_OUTPUT_U16, o.cold ? LOADER_COLD : LOADER_WARM);
    for (int i = 0; i < in->output_count; i++)
        for (int r = 0; r < in->reader_count; r++) add_reader(b, in->readers[r], in->outputs[i]);
    add_peers(b);
    b->main_count = b->count;
    for (int r = 0; r < in->reader_count; r++) has_mmap |= in->readers[r] == SGT_READER_MMAP;
    if (!has_mmap || o.cold || o.sampling == SGT_SAMPLING_BLOCK) return;
    for (int i = 0; i < in->output_count; i++)
        add_row(b, SGT_READER_MMAP, in->outputs[i], LOADER_COLD);
}

/* ---- results ---- */

const char *loader_maker_name(int maker)
{
    static const char *const others[] = {"memcpy",         "fio",        "numpy window",
                                         "numpy gather",   "numpy loop", "torch 0 workers",
                                         "torch 2 workers"};
    return loader_is_reader(maker) ? sgt_reader_name((sgt_reader)maker)
                                   : others[maker - LOADER_MEMCPY];
}

const char *loader_output_name(int output)
{
    static const char *const names[LOADER_OUTPUTS] = {"u16", "i32", "i64", "-"};
    return names[output];
}

static const char *state_name(const loader_row *r)
{
    static const char *const names[] = {"warm", "mapped", "cached", "cold"};
    return names[r->state];
}

/* Count the 2(T+1) bytes that a row has on disk. */
static double gb_per_s(const loader_bench *b, const loader_row *r)
{
    return 2.0 * b->batch * (b->seq + 1.0) / r->us_per_batch * 1e-3;
}

/* ---- from which batch on preload pays ---- */

/* preload reads and maps everything when it opens, so it opens later than mmap, but all its batches
 * come at one speed. Find the number of batches n for which opening and n batches of a cached set
 * take mmap as long as preload. mmap makes the first epoch's batches at the speed of `cached`, its
 * row, and the others at that of the mapped row. INFINITY: never. */
static double pays_from(const loader_bench *b, const loader_row *cached, double epoch)
{
    const loader_row *preload = NULL, *mapped = NULL;
    for (const loader_row *r = b->rows; r < b->rows + b->count; r++) {
        if (r->output != cached->output || r->plain) continue;
        if (r->maker == SGT_READER_PRELOAD) preload = r;
        if (r->state == LOADER_MAPPED) mapped = r;
    }
    if (!preload || !mapped) return INFINITY;
    double ahead = (preload->open_ms - cached->open_ms) * 1e3;
    double first = cached->us_per_batch - preload->us_per_batch;
    double later = mapped->us_per_batch - preload->us_per_batch;
    if (ahead <= 0) return 0;
    if (ahead <= first * epoch) return ceil(ahead / first);
    return later > 0 ? ceil(epoch + (ahead - first * epoch) / later) : INFINITY;
}

/* Return the number of batches of an epoch. */
static double epoch_batches(const loader_bench *b)
{
    return (double)b->tokens / ((double)b->batch * b->seq);
}

/* Say when preload pays, for the last output. */
static void show_pays_from(const loader_bench *b)
{
    char n[32], all[32];
    const loader_row *cached = NULL;
    for (const loader_row *r = b->rows; r < b->rows + b->count; r++)
        if (r->state == LOADER_CACHED && r->preload_us > 0) cached = r;
    if (!cached) return;
    double epoch = epoch_batches(b), from = pays_from(b, cached, epoch);
    if (from > 1e15) {
        printf(
            "%s: preload does not pay once the set is in the page cache: mmap is as fast here.\n",
            loader_output_name(cached->output));
        return;
    }
    printf("%s: preload pays from batch %s on, if the set is in the page cache.\n",
           loader_output_name(cached->output), sgt_format_count(n, sizeof n, (uint64_t)from));
    printf("  An epoch of this set is %s such batches: ",
           sgt_format_count(all, sizeof all, (uint64_t)ceil(epoch)));
    if (from <= epoch)
        printf("use preload if a run reads %.2g of an epoch or more.\n", from / epoch);
    else printf("use mmap for a run of less than %.3g epochs.\n", from / epoch);
}

/* ---- JSON ---- */

static json_t *result_json(const loader_bench *b, const loader_row *r)
{
    json_t *j = json_pack("{s:s, s:i, s:i, s:s, s:s, s:b, s:i, s:f, s:f, s:f, s:f}", "reader",
                          loader_maker_name(r->maker), "batch", (int)b->batch, "seq", (int)b->seq,
                          "sampling", sgt_sampling_name((sgt_sampling)b->o->sampling), "output",
                          loader_output_name(r->output), "cold", r->state == LOADER_COLD, "threads",
                          r->threads, "us_per_batch", r->us_per_batch, "tokens_per_s",
                          (double)b->batch * b->seq / r->us_per_batch * 1e6, "gb_per_s",
                          gb_per_s(b, r), "open_ms", r->open_ms);
    bench_put(j, "memcpy_fraction", r->memcpy_us / r->us_per_batch);
    if (!loader_is_python(r->maker)) json_object_set_new(j, "cpu_share", json_real(r->cpu_share));
    bench_put(j, "fio_fraction", r->fio_us / r->us_per_batch);
    json_object_set_new(j, "best", json_boolean(r->best));
    if (r->maker == SGT_READER_MMAP) json_object_set_new(j, "pass", json_string(state_name(r)));
    bench_put(j, "preload_fraction", r->preload_us / r->us_per_batch);
    bench_put(j, "loop_speedup", r->loop_us / r->us_per_batch);
    if (r->state != LOADER_CACHED || r->preload_us <= 0) return j;
    double epoch = epoch_batches(b), from = pays_from(b, r, epoch);
    json_object_set_new(j, "epoch_batches", json_real(epoch));
    json_object_set_new(j, "preload_pays_from_batch",
                        isfinite(from) ? json_real(from) : json_null());
    return j;
}

static json_t *to_json(void *bench)
{
    const loader_bench *b = bench;
    json_t *results = json_array(), *peers = json_array(), *out = json_array();
    double limit = 0;
    for (const loader_row *r = b->rows; r < b->rows + b->count; r++) {
        if (r->why[0])
            json_array_append_new(out, json_pack("{s:s, s:s, s:s}", "reader",
                                                 loader_maker_name(r->maker), "output",
                                                 loader_output_name(r->output), "why", r->why));
        else if (r->maker == LOADER_MEMCPY) limit = gb_per_s(b, r);
        else if (!r->plain)
            json_array_append_new(loader_is_reader(r->maker) ? results : peers, result_json(b, r));
    }
    json_t *top = json_pack(
        "{s:s, s:i, s:i, s:i, s:I, s:I, s:f, s:o, s:o, s:o}", "cpu", sgt_cpu_model(), "cores",
        sgt_cpu_count(), "threads", (int)b->o->threads, "turns", (int)b->o->turns, "tokens",
        (json_int_t)b->tokens, "shards", (json_int_t)b->shard_count, "memcpy_gb_per_s", limit,
        "results", results, "peers", peers, "left_out", out);
    if (!top) return NULL;
    if (b->numpy[0]) json_object_set_new(top, "numpy", json_string(b->numpy));
    if (b->torch[0]) json_object_set_new(top, "torch", json_string(b->torch));
    if (b->fio[0]) json_object_set_new(top, "fio", json_string(b->fio));
    return top;
}

/* ---- the table ---- */

static void show_head(const loader_bench *b)
{
    const char *versions[] = {b->numpy, b->torch, b->fio};
    char tokens[32], bytes[32], shards[32], path[48], machine[160], shown[64];
    int n = 0;
    printf("%s: %s tokens (%s) in %s shard%s\n", bench_name(path, sizeof path, b->path),
           sgt_format_count(tokens, sizeof tokens, b->tokens),
           sgt_format_bytes(bytes, sizeof bytes, 2 * b->tokens),
           sgt_format_count(shards, sizeof shards, b->shard_count), b->shard_count == 1 ? "" : "s");
    printf("%s\nmedian of %" PRIu64, bench_machine(machine, sizeof machine), b->o->turns);
    for (int i = 0; i < 3; i++)
        if (versions[i][0])
            printf("%s%s", n++ ? ", " : "; beside ",
                   sgt_printable(shown, sizeof shown, versions[i]));
    printf("\n\n%s, %" PRIu64 " thread%s, %s rows, %" PRIu32 " x %" PRIu32 " tokens\n",
           b->o->cold ? "Dropped from the page cache before each measurement" : "Warm",
           b->o->threads, b->o->threads == 1 ? "" : "s",
           sgt_sampling_name((sgt_sampling)b->o->sampling), b->batch, b->seq);
}

/* Return the row of the table: the result, with the columns that only people read. */
static json_t *shown_row(const loader_bench *b, const loader_row *r)
{
    char name[32];
    json_t *j = result_json(b, r);
    /* memcpy and preload read from memory, so the disk does not limit them */
    int from_memory = r->maker == LOADER_MEMCPY || r->maker == SGT_READER_PRELOAD;
    double limit = b->o->cold && r->fio_us > 0 ? r->fio_us : r->memcpy_us;
    snprintf(name, sizeof name, b->o->cold || r->state == LOADER_WARM ? "%s" : "%s (%s)",
             loader_maker_name(r->maker), state_name(r));
    json_object_set_new(j, "name", json_string(r->plain ? "plain loop" : name));
    if (!b->o->cold || !from_memory) bench_put(j, "limit", limit / r->us_per_batch);
    if (!loader_is_reader(r->maker)) json_object_del(j, "open_ms");
    if (!b->o->cold) json_object_del(j, "cpu_share");
    return j;
}

static void show(void *bench)
{
    static const bench_column columns[] = {
        {"name", "reader", .kind = BENCH_TEXT},
        {"output", "output", .kind = BENCH_TEXT},
        {"us_per_batch", "us/batch", .decimals = 2},
        {"tokens_per_s", "Mtokens/s", .decimals = 1, .scale = 1e-6},
        {"gb_per_s", "GB/s", .decimals = 3},
        {"limit", "of limit", .decimals = 4},
        {"preload_fraction", "preload", .decimals = 2},
        {"loop_speedup", "x loop", .decimals = 1},
        {"cpu_share", "CPU", .decimals = 2},
        {"open_ms", "open ms", .decimals = 1},
        {0}};
    const loader_bench *b = bench;
    json_t *rows = json_array();
    for (const loader_row *r = b->rows; r < b->rows + b->count; r++)
        if (!r->why[0]) json_array_append_new(rows, shown_row(b, r));
    show_head(b);
    bench_table(rows, columns, "best");
    json_decref(rows);
    printf("\n* the fastest with its output. Limit: %s.\n"
           "  GB/s counts the 2(T+1) bytes that a row has on disk, whatever the output is.\n",
           !b->o->cold ? "memcpy of the same windows, from memory"
           : b->fio[0]
               ? "the disk, read by fio at the same depth"
               : "memcpy of the same windows (the disk's limit needs fio: apt-get install fio)");
    if (b->o->cold) printf("  preload reads everything when it opens, and nothing later.\n");
    else
        printf("  preload: speed as a share of preload's. x loop: times as fast as the plain "
               "loop.\n"
               "  mmap (cold): the set is not in the page cache yet; (cached): it is, but not "
               "mapped.\n");
    show_pays_from(b);
}

/* ---- the subcommand ---- */

/* Notices that were printed: a set is opened many times, but each notice is printed once. */
static struct {
    sgt_notice to;
    char *lines[16];
    int count;
} printed;

static void print_once(void *ctx, const char *line)
{
    (void)ctx;
    for (int i = 0; i < printed.count; i++)
        if (!strcmp(printed.lines[i], line)) return;
    sgt_say(&printed.to, "%s", line);
    if (printed.count < 16 && (printed.lines[printed.count] = strdup(line))) printed.count++;
}

static int measure(void *bench, const bench_call *call, sgt_error *err)
{
    loader_bench *b = bench;
    lists in;
    if (!call->count)
        return sgt_fail(err, SGT_EUSAGE,
                        "expected a folder of shards (sgt-tokenize INPUT... OUT/ makes one)");
    if (call->count > 1)
        return sgt_fail(err, SGT_EUSAGE, "one folder at a time, not %zu (A,B mixes two)",
                        call->count);
    printed.to = call->notice;
    b->path = call->operands[0];
    b->o = &o;
    b->stop = call->stop;
    b->notice = (sgt_notice){.say = print_once};
    if (o.peer && o.cold)
        return sgt_fail(err, SGT_EUSAGE,
                        "--peer: not together with --cold, which is compared with fio");
    if (o.peer && o.sampling != SGT_SAMPLING_RANDOM)
        return sgt_fail(err, SGT_EUSAGE,
                        "--peer: needs --sampling random, the only one that the peers have");
    if (o.batch * o.seq > 1 << 28)
        return sgt_fail(err, SGT_EUSAGE,
                        "a batch of %" PRIu64 " x %" PRIu64
                        " tokens is over the 268,435,456 that are measured",
                        o.batch, o.seq);
    in.reader_count = read_words(in.readers, "loader", o.readers, sgt_reader_words);
    in.output_count = read_words(in.outputs, "outputs", o.outputs, output_words);
    int rc = find_shards(b, err);
    if (rc < 0) return rc;
    choose_shape(b);
    add_rows(b, &in);
    return loader_measure(b, err);
}

static void release(void *bench)
{
    loader_bench *b = bench;
    loader_python_close(b);
    for (size_t i = 0; i < b->shard_count; i++) free(b->shards[i].path);
    free(b->shards);
    while (printed.count) free(printed.lines[--printed.count]);
}

static const bench_subcommand loader = {.program = &program,
                                        .output = &o.output,
                                        .size = sizeof(loader_bench),
                                        .operands = 1,
                                        .measure = measure,
                                        .json = to_json,
                                        .show = show,
                                        .release = release};

static int bench_loader(int argc, char **argv) { return bench_subcommand_run(&loader, argc, argv); }

const sgt_command bench_loader_command = {"loader", "how fast each reader makes batches", &program,
                                          bench_loader};
