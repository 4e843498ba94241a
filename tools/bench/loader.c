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
                           .batches = "32",
                           .seqs = "1024",
                           .samplings = "random",
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
                "  sgt-bench loader out/ --peer python3"};

/* ---- lists ---- */

static const char *const output_words[] = {"u16", "i32", "i64", NULL};

typedef struct lists {
    int readers[LIST_MOST], outputs[LIST_MOST], samplings[LIST_MOST];
    uint32_t batches[LIST_MOST], seqs[LIST_MOST];
    int reader_count, output_count, sampling_count, batch_count, seq_count;
} lists;

static int split_option(char **pieces, const char *option, const char *list)
{
    int n = sgt_split_list(list, pieces, LIST_MOST);
    if (n < 1)
        sgt_usage(&program, "--%s %s: expected one to %d pieces with commas between them", option,
                  list, LIST_MOST);
    return n;
}

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
    int n = list ? split_option(pieces, option, list) : 0;
    for (int i = 0; i < n; i++) {
        int k = find_word(option, pieces[i], names), seen = 0;
        for (int j = 0; j < count; j++) seen |= out[j] == k;
        if (!seen) out[count++] = k;
        free(pieces[i]);
    }
    return count;
}

static int read_numbers(uint32_t *out, const char *option, const char *list)
{
    char *pieces[LIST_MOST];
    int n = split_option(pieces, option, list);
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

static void read_lists(lists *in)
{
    in->reader_count = read_words(in->readers, "loader", o.readers, sgt_reader_words);
    in->output_count = read_words(in->outputs, "outputs", o.outputs, output_words);
    in->sampling_count = read_words(in->samplings, "sampling", o.samplings, sgt_sampling_words);
    in->batch_count = read_numbers(in->batches, "batch-size", o.batches);
    in->seq_count = read_numbers(in->seqs, "seq-len", o.seqs);
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

/* Shorten the default row if no shard is long enough for it, as in a new user's small set. */
static void shorten_default(const loader_bench *b, lists *in)
{
    uint32_t seq = DEFAULT_SEQ;
    if (o.seq_given) return;
    while (seq > 1 && seq >= b->longest) seq /= 2;
    if (seq < DEFAULT_SEQ)
        sgt_say(&b->notice, "--seq-len %" PRIu32 ", since no shard has the %d tokens per row of %d",
                seq, DEFAULT_SEQ + 1, DEFAULT_SEQ);
    in->seqs[0] = seq;
}

/* ---- the rows of the table ---- */

/* a group's most rows: memcpy, each output of each reader, of mmap in two more states, the plain
 * loop, and other programs */
_Static_assert(1 + LOADER_OURS * (SGT_READERS + 2) + 1 + LOADER_MAKERS - LOADER_FIO + 1 <=
                   LOADER_ROWS,
               "room for all rows");

static void add_row(loader_group *g, loader_row row, int maker, int output, loader_state state)
{
    row.maker = maker;
    row.output = output;
    row.state = state;
    g->rows[g->count++] = row;
}

/* Add a reader's row. Without --cold, also add mmap of a set that is cached but not mapped yet, and
 * the plain loop that int32 batches are compared with. */
static void add_reader(loader_group *g, loader_row row, int reader, int output)
{
    int is_mmap = reader == SGT_READER_MMAP;
    add_row(g, row, reader, output, o.cold ? LOADER_COLD : is_mmap ? LOADER_MAPPED : LOADER_WARM);
    if (!o.cold && is_mmap) add_row(g, row, reader, output, LOADER_CACHED);
    row.plain = 1;
    if (!o.cold && reader == SGT_READER_PRELOAD && output == SGT_OUTPUT_I32)
        add_row(g, row, reader, output, LOADER_WARM);
}

/* Add the rows of other programs. The Python peers draw random windows from memory, and fio
 * measures the disk. */
static void add_peers(loader_group *g, loader_row row)
{
    static const int peers[][2] = {
        {LOADER_WINDOW, SGT_OUTPUT_U16}, {LOADER_WINDOW, SGT_OUTPUT_I32},
        {LOADER_GATHER, SGT_OUTPUT_I64}, {LOADER_LOOP, SGT_OUTPUT_I64},
        {LOADER_TORCH0, SGT_OUTPUT_I64}, {LOADER_TORCH2, SGT_OUTPUT_I64}};
    row.threads = 1;
    if (o.cold) add_row(g, row, LOADER_FIO, LOADER_BYTES, LOADER_COLD);
    else if (o.peer && row.sampling == SGT_SAMPLING_RANDOM)
        for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
            add_row(g, row, peers[i][0], peers[i][1], LOADER_WARM);
}

/* Add the rows of a group: memcpy first, then each output of each reader, other programs, and mmap
 * of a set that is not cached. Block sampling reads whole pools ahead, for which only --cold has
 * time. */
static void add_rows(loader_group *g, loader_row row, const lists *in)
{
    int has_mmap = 0;
    row.threads = (int)o.threads;
    add_row(g, row, LOADER_MEMCPY, SGT_OUTPUT_U16, o.cold ? LOADER_COLD : LOADER_WARM);
    for (int i = 0; i < in->output_count; i++)
        for (int r = 0; r < in->reader_count; r++)
            add_reader(g, row, in->readers[r], in->outputs[i]);
    add_peers(g, row);
    g->main_count = g->count;
    for (int r = 0; r < in->reader_count; r++) has_mmap |= in->readers[r] == SGT_READER_MMAP;
    if (!has_mmap || o.cold || row.sampling == SGT_SAMPLING_BLOCK) return;
    for (int i = 0; i < in->output_count; i++)
        add_row(g, row, SGT_READER_MMAP, in->outputs[i], LOADER_COLD);
}

static int add_groups(loader_bench *b, const lists *in, sgt_error *err)
{
    size_t most = (size_t)in->sampling_count * (size_t)in->batch_count * (size_t)in->seq_count;
    if (!(b->groups = calloc(most, sizeof *b->groups))) return sgt_fail_memory(err, NULL);
    for (int s = 0; s < in->sampling_count; s++)
        for (int k = 0; k < in->batch_count; k++)
            for (int t = 0; t < in->seq_count; t++)
                add_rows(&b->groups[b->group_count++],
                         (loader_row){.sampling = in->samplings[s],
                                      .batch = in->batches[k],
                                      .seq = in->seqs[t]},
                         in);
    return SGT_OK;
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
    read_lists(&in);
    int rc = find_shards(b, err);
    if (rc < 0) return rc;
    shorten_default(b, &in);
    rc = add_groups(b, &in, err);
    return rc == SGT_OK ? loader_measure(b, err) : rc;
}

static void release(void *bench)
{
    loader_bench *b = bench;
    loader_python_close(b);
    for (size_t i = 0; i < b->shard_count; i++) free(b->shards[i].path);
    free(b->shards);
    free(b->groups);
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
