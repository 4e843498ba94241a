/* loader.c: sgt-bench loader: compares every reader with the others, with memcpy of the same
 * windows, and with other programs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/memory.h"
#include "loader/shards/shard.h"
#include "tools/bench/loader.h"
#include "tools/cli/options.h"
#include "loader/words.h"

enum { DEFAULT_SEQ = 1024, DEFAULT_TURNS = 5 };

static loader_options o = {.outputs = "u16,i32",
                           .batches = "32",
                           .seqs = "1024",
                           .samplings = "random",
                           .split = "train",
                           .seconds = 3,
                           .threads = 1,
                           .turns = DEFAULT_TURNS,
                           .seed = 1};

static const sgt_option table[] = {
    {.name = "What to measure (a LIST is separated by commas)"},
    {"loader", 0, SGT_OPT_TEXT, &o.readers, "LIST", "readers:", .def = "all",
     .choices = sgt_reader_words},
    {"outputs", 0, SGT_OPT_TEXT, &o.outputs, "LIST",
     "u16 rows of T+1, i32 or i64 inputs and targets", .def = "u16,i32", .words = "u16|i32|i64"},
    {"batch-size", 0, SGT_OPT_TEXT, &o.batches, "LIST", "rows per batch", .def = "32"},
    {"seq-len", 0, SGT_OPT_TEXT, &o.seqs, "LIST", "tokens per row",
     .def = "1024, or less if the shards are shorter", .given = &o.seq_given},
    {"sampling", 0, SGT_OPT_TEXT, &o.samplings, "LIST", "how rows are drawn:", .def = "random",
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
    {"limits", 0, SGT_OPT_TEXT, &o.limits, "LIST",
     "compare each part with its limit, instead of printing the table: numpy, memcpy, memory, "
     "scalar, mmap, "
     "threads, stream, random, ahead, block, fill; all, none",
     .def = "all, after the table, with --peer; else none", .given = &o.limits_given,
     .words = "numpy|memcpy|memory|scalar|mmap|threads|stream|random|ahead|block|fill|all|none"},
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
                "  sgt-bench loader out/ --batch-size 16,32,64 --seq-len 512,1024 --threads 2\n"
                "  sgt-bench loader out/ --cold --loader mmap,uring --outputs u16 --json\n"
                "  sgt-bench loader out/ --limits all --peer python3"};

/* ---- lists ---- */

static int split_option(const char *option, const char *list, char **pieces, int most)
{
    int n = sgt_split_list(list, pieces, most);
    if (n < 1)
        sgt_usage(&program, "--%s %s: expected one to %d pieces with commas between them", option,
                  list, most);
    return n;
}

/* Convert the words of `list` to their indices among the `kinds` names. Return how many there are;
 * a repeated name counts once. */
static int words(int *out, const char *option, const char *list, int kinds,
                 const char *(*name)(int))
{
    char *pieces[LOADER_LIST];
    int n = split_option(option, list, pieces, LOADER_LIST), count = 0;
    for (int i = 0; i < n; i++) {
        int k = 0, seen = 0;
        while (k < kinds && strcmp(pieces[i], name(k))) k++;
        if (k == kinds) {
            char all[160] = "", hint[SGT_HINT];
            for (k = 0; k < kinds; k++)
                snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", k ? ", " : "",
                         name(k));
            sgt_usage(&program, "--%s %s: no such word (%s)%s", option, pieces[i], all,
                      sgt_suggest(pieces[i], strlen(pieces[i]), all, "", hint));
        }
        for (int j = 0; j < count; j++) seen |= out[j] == k;
        if (!seen) out[count++] = k;
        free(pieces[i]);
    }
    return count;
}

static int numbers(uint32_t *out, const char *option, const char *list)
{
    char *pieces[LOADER_LIST];
    int n = split_option(option, list, pieces, LOADER_LIST);
    for (int i = 0; i < n; i++) {
        uint64_t v;
        if (sgt_parse_count(pieces[i], &v) < 0 || v < 1 || v > 1 << 20)
            sgt_usage(&program, "--%s %s: must be a whole number from 1 to 1048576", option,
                      pieces[i]);
        out[i] = (uint32_t)v;
        free(pieces[i]);
    }
    return n;
}

static void read_lines(loader_lists *in)
{
    const char *list = o.limits_given ? o.limits : o.peer ? "all" : "none";
    if (!strcmp(list, "none")) return;
    if (strcmp(list, "all")) {
        in->line_count = words(in->lines, "limits", list, loader_limit_count(), loader_limit_name);
        return;
    }
    while (in->line_count < loader_limit_count()) {
        in->lines[in->line_count] = in->line_count;
        in->line_count++;
    }
}

static void read_lists(loader_lists *in)
{
    read_lines(in);
    while (!o.readers && in->reader_count < SGT_READERS)
        in->readers[in->reader_count] = in->reader_count, in->reader_count++;
    if (o.readers)
        in->reader_count = words(in->readers, "loader", o.readers, SGT_READERS, loader_who_name);
    in->output_count = words(in->outputs, "outputs", o.outputs, LOADER_OURS, loader_output_name);
    in->sampling_count =
        words(in->samplings, "sampling", o.samplings, SGT_SAMPLINGS, loader_sampling_name);
    in->batch_count = numbers(in->batches, "batch-size", o.batches);
    in->seq_count = numbers(in->seqs, "seq-len", o.seqs);
    for (int b = 0; b < in->batch_count; b++)
        for (int s = 0; s < in->seq_count; s++)
            if ((uint64_t)in->batches[b] * in->seqs[s] > 1 << 28)
                sgt_usage(&program,
                          "a batch of %" PRIu32 " x %" PRIu32
                          " tokens is over the 268,435,456 that are measured",
                          in->batches[b], in->seqs[s]);
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
    *s = (loader_shard){strdup(path), h.data, h.tokens, sgt_shard_bytes(&h)};
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

/* Shorten the default row if no shard is long enough for it, as in a new user's small set. */
static void shorten_default(loader_bench *b)
{
    uint32_t seq = DEFAULT_SEQ;
    if (o.seq_given) return;
    while (seq > 1 && seq >= b->longest) seq /= 2;
    if (seq < DEFAULT_SEQ)
        sgt_say(&b->notice, "--seq-len %" PRIu32 ", since no shard has the %d tokens per row of %d",
                seq, DEFAULT_SEQ + 1, DEFAULT_SEQ);
    b->in.seqs[0] = seq;
}

static void see_room(loader_bench *b)
{
    sgt_memory memory;
    sgt_memory_look(&memory, NULL);
    b->may_be_warm = 2 * b->tokens <= memory.available / 2;
    if (!b->may_be_warm)
        sgt_say(&b->notice, "the set is larger than half of the free memory: mmap may meet pages "
                            "that are not there");
}

/* ---- the grid ---- */

/* Add a reader's result. Without --cold, also add mmap of a set that is cached but not mapped yet,
 * and the plain loop that int32 batches are compared with. */
static void add_reader(loader_group *g, loader_result r, int who, int output)
{
    r.who = who;
    r.output = output;
    if (who == SGT_READER_MMAP) r.pass = r.cold ? LOADER_COLD : LOADER_MAPPED;
    loader_add_result(g, r);
    if (r.cold) return;
    if (who == SGT_READER_MMAP) {
        r.pass = LOADER_CACHED;
        loader_add_result(g, r);
    }
    if (who == SGT_READER_PRELOAD && output == SGT_OUTPUT_I32) {
        r.way = LOADER_SCALAR;
        loader_add_result(g, r);
    }
}

/* Add a group that measures mmap of a set that is not cached. It is a group of its own, because it
 * drops the set from the page cache. Block sampling reads whole pools ahead, for which only --cold
 * has time. */
static int lay_out_uncached(loader_bench *b, loader_result base, sgt_error *err)
{
    const loader_lists *in = &b->in;
    loader_group *g;
    int has_mmap = 0;
    for (int r = 0; r < in->reader_count; r++) has_mmap |= in->readers[r] == SGT_READER_MMAP;
    if (!has_mmap || o.cold || base.sampling == SGT_SAMPLING_BLOCK) return SGT_OK;
    int rc = loader_add_group(b, (size_t)in->output_count, &g, err);
    base.who = SGT_READER_MMAP;
    base.pass = LOADER_COLD;
    base.threads = (int)o.threads;
    base.cold = 1;
    for (int i = 0; i < in->output_count && rc == SGT_OK; i++) {
        base.output = in->outputs[i];
        loader_add_result(g, base);
    }
    return rc;
}

/* Add a group of results: memcpy first, then each output of each reader, then other programs. The
 * Python peers draw random windows from memory, and fio measures the disk. */
static int lay_out_group(loader_bench *b, loader_result base, sgt_error *err)
{
    static const int peers[][2] = {
        {LOADER_WINDOW, SGT_OUTPUT_U16}, {LOADER_WINDOW, SGT_OUTPUT_I32},
        {LOADER_GATHER, SGT_OUTPUT_I64}, {LOADER_LOOP, SGT_OUTPUT_I64},
        {LOADER_TORCH0, SGT_OUTPUT_I64}, {LOADER_TORCH2, SGT_OUTPUT_I64}};
    enum { PEERS = sizeof peers / sizeof *peers };
    const loader_lists *in = &b->in;
    loader_group *g;
    int rc = loader_add_group(
        b, 2 + PEERS + 3 * (size_t)in->reader_count * (size_t)in->output_count, &g, err);
    if (rc < 0) return rc;
    base.who = LOADER_MEMCPY;
    base.output = SGT_OUTPUT_U16;
    base.threads = (int)o.threads;
    base.cold = o.cold;
    loader_add_result(g, base);
    for (int i = 0; i < in->output_count; i++)
        for (int r = 0; r < in->reader_count; r++)
            add_reader(g, base, in->readers[r], in->outputs[i]);
    base.threads = 1;
    for (int i = 0; i < PEERS && o.peer && !o.cold && base.sampling == SGT_SAMPLING_RANDOM; i++) {
        base.who = peers[i][0];
        base.output = peers[i][1];
        loader_add_result(g, base);
    }
    base.who = LOADER_FIO;
    base.output = LOADER_BYTES;
    if (o.cold) loader_add_result(g, base);
    return SGT_OK;
}

static int lay_out(loader_bench *b, sgt_error *err)
{
    const loader_lists *in = &b->in;
    int rc = SGT_OK;
    for (int s = 0; s < in->sampling_count; s++)
        for (int k = 0; k < in->batch_count; k++)
            for (int t = 0; t < in->seq_count && rc == SGT_OK; t++) {
                loader_result base = {
                    .sampling = in->samplings[s], .batch = in->batches[k], .seq = in->seqs[t]};
                if ((rc = lay_out_group(b, base, err)) == SGT_OK)
                    rc = lay_out_uncached(b, base, err);
            }
    b->grid_count = b->group_count;
    return rc;
}

/* ---- all of it ---- */

static int prepare(loader_bench *b, sgt_error *err)
{
    int rc = SGT_OK, warm_ones = 0, copies = 0;
    for (size_t i = 0; i < b->group_count; i++) {
        warm_ones |= !b->groups[i].results[0].cold;
        copies |= b->groups[i].results[0].who == LOADER_MEMCPY;
    }
    if (warm_ones) see_room(b);
    if (warm_ones) rc = loader_warm(b, err);
    if (rc < 0 || !copies || (rc = bench_limit_open(&b->limit, 2 * b->tokens, err)) < 0) return rc;
    if (bench_limit_bytes(b->limit) < 2 * b->tokens)
        sgt_say(&b->notice, "memcpy takes its windows from a smaller block, since the set is "
                            "larger than a third of the free memory");
    return SGT_OK;
}

/* Notices that were printed: a set is opened many times, but each notice is printed once. */
static struct {
    sgt_notice to;
    char *lines[16];
    int count;
} heard;

static void say_once(void *ctx, const char *line)
{
    (void)ctx;
    for (int i = 0; i < heard.count; i++)
        if (!strcmp(heard.lines[i], line)) return;
    sgt_say(&heard.to, "%s", line);
    if (heard.count < 16 && (heard.lines[heard.count] = strdup(line))) heard.count++;
}

static int measure(void *bench, const bench_call *call, sgt_error *err)
{
    loader_bench *b = bench;
    if (!call->count)
        return sgt_fail(err, SGT_EUSAGE,
                        "expected a folder of shards (sgt-tokenize INPUT... OUT/ makes one)");
    if (call->count > 1)
        return sgt_fail(err, SGT_EUSAGE, "one folder at a time, not %zu (A,B mixes two)",
                        call->count);
    heard.to = call->notice;
    b->path = call->operands[0];
    b->o = &o;
    b->stop = call->stop;
    b->notice = (sgt_notice){.say = say_once};
    read_lists(&b->in);
    int rc = find_shards(b, err);
    if (rc < 0) return rc;
    shorten_default(b);
    if (!o.limits_given || !b->in.line_count) rc = lay_out(b, err);
    if (rc == SGT_OK) rc = loader_limits_lay_out(b, err);
    if (rc == SGT_OK) rc = prepare(b, err);
    for (size_t i = 0; i < b->group_count && rc == SGT_OK; i++)
        rc = loader_measure(b, &b->groups[i], err);
    if (rc == SGT_OK) loader_limits_conclude(b);
    if (rc == SGT_OK) loader_relate(b);
    /* fill the page cache again, as it was before the measurements */
    if (rc == SGT_OK && !o.cold && b->grid_count) rc = loader_warm(b, err);
    return rc;
}

static void release(void *bench)
{
    loader_bench *b = bench;
    loader_python_close(b);
    bench_limit_close(b->limit);
    for (size_t i = 0; i < b->shard_count; i++) free(b->shards[i].path);
    free(b->shards);
    for (size_t i = 0; i < b->group_count; i++) free(b->groups[i].results);
    free(b->groups);
    while (heard.count) free(heard.lines[--heard.count]);
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
