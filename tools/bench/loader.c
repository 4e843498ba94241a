/* loader.c: sgt-bench loader: compares every reader with the others, with memcpy of the same
 * windows, and with other programs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/shards/shard.h"
#include "tools/bench/loader.h"
#include "tools/cli/options.h"
#include "loader/words.h"

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
             "alternating turns"},
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

/* ---- all of it ---- */

/* Notices that were printed: a set is opened many times, but each notice is printed once. */
static struct {
    sgt_notice to;
    char *lines[16];
    int count;
} printed;

static void say_once(void *ctx, const char *line)
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
    b->notice = (sgt_notice){.say = say_once};
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
                                        .json = loader_json,
                                        .show = loader_show,
                                        .release = release};

static int bench_loader(int argc, char **argv) { return bench_subcommand_run(&loader, argc, argv); }

const sgt_command bench_loader_command = {"loader", "how fast each reader makes batches", &program,
                                          bench_loader};
