/* loader.c: the subcommand `sgt-bench loader`, which compares the speed of the loader's readers
 * (such as mmap and uring) with each other, with memcpy of the same windows, and with other
 * programs. Each of them is measured for a short time, called a slice, and all slices are repeated
 * several times, so that a change in the machine's speed affects all of them alike. Each thread
 * writes all its batches into the same buffer. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "loader/base/memory.h"
#include "loader/handle.h"
#include "tools/bench/bench.h"
#include "tools/cli/options.h"
#include "tools/cli/talk.h"

BENCH_EMBED(sgt_loaders_py, "tests/peers/loaders.py");

enum { DEFAULT_SEQ = 1024 };

static struct {
    const char *readers, *outputs, *split, *peer;
    double seconds;
    uint64_t batch, seq, threads, turns, seed;
    int sampling, cold, raw, seq_given;
} o = {.seq = DEFAULT_SEQ};

static const sgt_option table[] = {
    {.name = "What to measure (a LIST is separated by commas)"},
    {"loader", 0, SGT_OPT_TEXT, &o.readers, "LIST", "readers to measure:", .def = "all",
     .choices = sgt_reader_words},
    {"outputs", 0, SGT_OPT_TEXT, &o.outputs, "LIST",
     "batch formats: u16 and i32-rows are rows of T+1 ids; i32 and i64 are inputs and targets",
     .def = "u16,i32, or i32-rows,i32 for 4-byte ids", .words = "u16|i32|i64|i32-rows"},
    {"batch-size", 0, SGT_OPT_COUNT, &o.batch, "N", "rows per batch", .def = "32", .min = 1,
     .max = 1 << 20},
    {"seq-len", 0, SGT_OPT_COUNT, &o.seq, "N", "tokens per row",
     .def = "1024, or less if the shards are shorter", .min = 1, .max = 1 << 20,
     .given = &o.seq_given},
    {"sampling", 0, SGT_OPT_WORD, &o.sampling, .help = "method of drawing rows", .def = "random",
     .choices = sgt_sampling_words},
    {"cold", 0, SGT_OPT_FLAG, &o.cold, NULL,
     .help = "before each measurement, drop the shards from the page cache, or fail"},
    {"threads", 0, SGT_OPT_COUNT, &o.threads, "N", "number of threads that read shards", .def = "1",
     .min = 1, .max = 1024},
    {"seconds", 0, SGT_OPT_REAL, &o.seconds, "X",
     "time limit in seconds for all measurements together", .def = "3", .min = .001, .max = 86400},
    {"turns", 0, SGT_OPT_COUNT, &o.turns, "N", "repetitions of all measurements; medians are shown",
     .def = "5", .min = 1, .max = BENCH_TURNS},
    {"split", 0, SGT_OPT_CHOICE, &o.split, "train|val", "split of the set to read", .def = "train"},
    {"seed", 0, SGT_OPT_COUNT, &o.seed, "N", "seed for drawing rows", .def = "1"},
    {"raw", 0, SGT_OPT_WORD, &o.raw, "none|16|32",
     "bits per id in shards without a header, such as nanoGPT's", .def = "none"},
    {.name = "Comparison"},
    {"peer", 0, SGT_OPT_TEXT, &o.peer, "PYTHON",
     .help = "also measure numpy and PyTorch with this Python interpreter, alternating with sgt "
             "(requires --sampling random; cannot be used with --cold)"},
    {.name = "Output"},
    BENCH_OUTPUT,
    {0}};

static const sgt_program program = {
    .name = "sgt-bench loader",
    .usage = "sgt-bench loader [OPTION]... OUT/ | SHARD | A:0.7,B:0.3",
    .about = "Measures how fast each reader draws batches from a set or shard, compared with "
             "how fast memcpy copies the same windows.",
    .options = table,
    .examples = "  sgt-bench loader out/\n"
                "  sgt-bench loader out/ --batch-size 64 --seq-len 512 --threads 2\n"
                "  sgt-bench loader out/ --cold --loader mmap,uring --outputs u16 --json\n"
                "  sgt-bench loader out/ --peer python3"};

/* Values of loader_row.maker, which tells what a row of the table measures, besides the values of
 * sgt_reader, which stand for the loader's readers. */
enum {
    MEMCPY = SGT_READERS, /* memcpy of the windows that a reader would copy */
    /* the program fio, which makes the same read requests to the disk as a reader, and discards the
     * bytes */
    FIO,
    PYTHON /* PYTHON + i stands for peers[i] */
};
static int is_reader(int maker) { return maker < SGT_READERS; }
static int is_python(int maker) { return maker >= PYTHON; }

/* value of loader_row.output for fio, which outputs no ids; printed as "-" */
enum { BYTES = SGT_OUTPUTS };
/* names of the output formats, in the order of sgt_output */
static const char *const output_words[] = {"u16", "i32", "i64", "i32-rows", NULL};

/* Data loaders in Python that are measured for comparison, and that tests/peers/loaders.py
 * implements. name: name in the table. peer: name in loaders.py. */
static const struct {
    const char *name, *peer;
    int output;
} peers[] = {
    {"numpy window", "window", SGT_OUTPUT_U16},    {"numpy window", "window", SGT_OUTPUT_I32},
    {"numpy gather", "gather", SGT_OUTPUT_I64},    {"numpy loop", "loop", SGT_OUTPUT_I64},
    {"torch 0 workers", "torch0", SGT_OUTPUT_I64}, {"torch 2 workers", "torch2", SGT_OUTPUT_I64}};
enum { PEERS = sizeof peers / sizeof *peers };

static const char *name_of(int maker)
{
    if (is_reader(maker)) return sgt_reader_name((sgt_reader)maker);
    return is_python(maker) ? peers[maker - PYTHON].name : maker == FIO ? "fio" : "memcpy";
}

/* State of the data set before a row of the table is measured:
 * - COLD: not in the page cache, so that a reader must read from the disk
 * - CACHED: in the page cache, but not mapped into this process, as in the first epoch
 * - MAPPED: in the page cache, with all pages mapped, as in later epochs
 * - WARM: in the page cache; for readers and programs to which mapping does not matter
 *
 * Only the reader mmap is measured in the states CACHED and MAPPED. */
typedef enum set_state { WARM, MAPPED, CACHED, COLD } set_state;
static const char *const state_names[] = {"warm", "mapped", "cached", "cold"};

/* What a row of the table measures. */
typedef struct loader_row {
    int maker, output, threads;
    /* 1 if a plain loop fills the batches, one token at a time; 0 if the loader's fastest
     * implementation fills them */
    int plain;
    set_state pass;
} loader_row;

/* A source from which all threads draw batches. It is either a loader that uses the reader to be
 * measured, or, if `windows` is not NULL, memcpy, which copies windows from a buffer that is as
 * large as the data set, in the order in which a loader draws them. The contents of this buffer are
 * arbitrary, because they do not affect the speed. The buffer consists of huge pages that are
 * already mapped, so memcpy has the highest speed that a loader could reach. */
typedef struct drawer {
    sgt_loader *loader;
    uint64_t epoch;       /* number of windows in an epoch */
    sgt_cursor **cursors; /* array with one cursor per thread */
    char *buffers;        /* one batch buffer of batch_bytes() bytes per thread */
    int output, threads;
    uint64_t next;        /* number of the first batch of the next slice (timed interval) */
    double opened_s;      /* time in seconds that opening the loader took */
    const char **windows; /* array of WINDOWS addresses of windows in `memory` */
    /* buffer from which memcpy copies, as large as the data set's tokens, or smaller if there is
     * too little free memory */
    sgt_arena memory;
} drawer;

static struct {
    /* What each row of the table measures. The first `main_count` rows are measured alternately.
     * The other rows measure mmap while the data set is not in the page cache (COLD). They come
     * last, because they evict the data set from the page cache. */
    loader_row rows[BENCH_ROWS];
    size_t main_count;
    sgt_loader_options options; /* options with which `set` was opened */
    sgt_loader *set; /* loader that is used only to list the shards, not to draw batches */
    sgt_loader_info info;
    /* The data set is opened many times, but notices about it are printed only once: when the
     * reader `speaker` opens it for the first time. After that, `spoke` is nonzero. */
    int speaker, spoke;
    double seconds; /* duration in seconds of a slice (timed interval) */
    int warm_up;    /* 1 during the warm-up, whose results are discarded; otherwise 0 */
    /* sources of batches that stay open between measurements, indexed by loader_row.maker: memcpy,
     * and the readers that are measured in the state WARM or MAPPED */
    drawer drawers[MEMCPY + 1];
    int fits; /* 1 if all shards fit into the page cache, otherwise 0 */
    /* number of rows of tokens that measurements in the state COLD have drawn so far, from the
     * start of the first epoch. The next such measurement continues after these rows, so that no
     * row is read from the disk twice. */
    uint64_t cold_rows;
    bench_script script; /* loaders.py */
    bench_child *python; /* process that runs loaders.py; NULL if it has not been started */
    json_t *versions;    /* versions of numpy, torch and fio, as reported by these programs */
} state;

/* values measured for a row of the table in one slice (timed interval) */
typedef struct loader_slice {
    double batches, seconds, cpu_s, open_s;
} loader_slice;

/* ---- what is read ---- */

/* Open the data set with this reader (an sgt_reader), for rows of o.seq tokens. */
static int open_loader(sgt_loader **l, int reader, sgt_notice notice, sgt_error *err)
{
    sgt_loader_options options = state.options;
    options.sampling = (sgt_sampling)o.sampling;
    options.batch = (uint32_t)o.batch;
    options.seq = (uint32_t)o.seq;
    options.reader = (sgt_reader)reader;
    options.notice = notice;
    return sgt_loader_open(l, &options, err);
}

/* Open a loader that lists the shards. If no shard is long enough for a row of the default length,
 * halve o.seq until one is, because the data set of a new user may be small. */
static int find_shards(sgt_error *err)
{
    state.options = (sgt_loader_options){.size = sizeof state.options,
                                         .data = bench.operands[0],
                                         .split = o.split,
                                         .raw = 16 * o.raw,
                                         .seed = o.seed,
                                         .seq = 1,
                                         .reader = SGT_READER_MMAP};
    uint64_t longest = 0;
    int rc = sgt_loader_open(&state.set, &state.options, err);
    if (rc < 0) return rc;
    state.info = *sgt_loader_get_info(state.set);
    const sgt_set_shard *shards = state.set->set.shards;
    for (uint32_t i = 0; i < state.info.shards; i++)
        if (shards[i].head.tokens > longest) longest = shards[i].head.tokens;
    while (!o.seq_given && o.seq > 1 && o.seq >= longest) o.seq /= 2;
    if (!o.seq_given && o.seq < DEFAULT_SEQ)
        sgt_say(&bench.notice,
                "using --seq-len %" PRIu64 ": no shard has %d tokens, which a row of %d needs",
                o.seq, DEFAULT_SEQ + 1, DEFAULT_SEQ);
    return SGT_OK;
}

static size_t id_bytes(void) { return state.set->set.width; }

/* ---- the rows of the table ---- */

/* The table must have room for all rows: memcpy, each reader with each output, mmap in two more
 * states with each output, the plain loop, and the Python programs (or fio). */
_Static_assert(1 + BYTES * (SGT_READERS + 2) + 1 + PEERS <= BENCH_ROWS, "room for all rows");

static loader_row *add_row(int maker, int output, set_state pass)
{
    loader_row *r = &state.rows[bench.count];
    *r = (loader_row){.maker = maker, .output = output, .pass = pass, .threads = 1};
    if (maker <= MEMCPY) r->threads = (int)o.threads;
    json_t *about = json_pack("{s:s, s:s}", "reader", name_of(maker), "output",
                              output == BYTES ? "-" : output_words[output]);
    if (maker == SGT_READER_MMAP) bench_put_text(about, "pass", state_names[pass]);
    bench_add(about);
    return r;
}

/* Add a row that measures a reader with one output format. Without --cold, also add a second row
 * for two readers: for mmap, a row in the state CACHED, and for preload with the output i32, a row
 * with the plain loop. */
static void add_reader(int reader, int output)
{
    int is_mmap = reader == SGT_READER_MMAP;
    add_row(reader, output, o.cold ? COLD : is_mmap ? MAPPED : WARM);
    if (!o.cold && is_mmap) add_row(reader, output, CACHED);
    if (!o.cold && reader == SGT_READER_PRELOAD && output == SGT_OUTPUT_I32)
        add_row(reader, output, WARM)->plain = 1;
}

/* Add all rows of the table: first memcpy, then each reader with each output, then other programs,
 * and last mmap in the state COLD. With --sampling block, the rows for mmap in the state COLD are
 * omitted, because this sampling reads large groups of blocks ahead, which takes longer than the
 * time for one measurement. */
static int add_rows(sgt_error *err)
{
    uint32_t readers = 0, outputs = 0;
    const int narrow = id_bytes() == 2;
    if (!o.outputs) o.outputs = narrow ? "u16,i32" : "i32-rows,i32";
    int rc = bench_words(&readers, "loader", o.readers, sgt_reader_words, err);
    if (rc == SGT_OK) rc = bench_words(&outputs, "outputs", o.outputs, output_words, err);
    if (rc < 0) return rc;
    add_row(MEMCPY, narrow ? SGT_OUTPUT_U16 : SGT_OUTPUT_I32_ROWS, o.cold ? COLD : WARM);
    for (int output = 0; output < BYTES; output++)
        for (int r = 0; r < SGT_READERS; r++)
            if (bench_has(outputs, output) && bench_has(readers, r)) add_reader(r, output);
    for (int r = 0; r < SGT_READERS; r++)
        if (bench_has(readers, r)) state.speaker = r; /* uring is the last */
    /* With --cold, compare with fio, which measures the speed of the disk. The Python programs are
     * not measured with --cold, because they draw windows from memory. */
    if (o.cold) add_row(FIO, BYTES, COLD);
    for (int i = 0; i < PEERS && o.peer; i++)
        add_row(PYTHON + i, i || narrow ? peers[i].output : SGT_OUTPUT_I32_ROWS, WARM);
    state.main_count = bench.count;
    for (int output = 0; output < BYTES; output++)
        if (!o.cold && o.sampling != SGT_SAMPLING_BLOCK && bench_has(outputs, output) &&
            bench_has(readers, SGT_READER_MMAP))
            add_row(SGT_READER_MMAP, output, COLD);
    return SGT_OK;
}

/* ---- drawing batches ---- */

/* Number of batches that are skipped between two measurements in the state COLD. It is larger than
 * the number of batches that readers prefetch, so that a measurement reads no window that has
 * already been prefetched. */
#define AHEAD 64

static void drawer_close(drawer *d)
{
    for (int t = 0; d->cursors && t < d->threads; t++) sgt_cursor_close(d->cursors[t]);
    sgt_loader_close(d->loader);
    free(d->cursors);
    free(d->buffers);
    free(d->windows);
    sgt_arena_unmap(&d->memory);
    *d = (drawer){0};
}

/* Return the size in bytes of the batch buffer of a thread. All outputs use the size of the largest
 * output, int64 inputs and targets, because a smaller buffer could have the advantage that it fits
 * into a smaller CPU cache. */
static size_t batch_bytes(void)
{
    return (o.batch * (o.seq + 1) * 2 * sizeof(int64_t) + 63) / 64 * 64;
}

static int allocate_buffers(drawer *d, int threads, sgt_error *err)
{
    size_t bytes = batch_bytes() * (size_t)threads;
    d->threads = threads;
    d->buffers = aligned_alloc(64, bytes);
    d->cursors = calloc((size_t)threads, sizeof *d->cursors);
    if (!d->buffers || !d->cursors) return sgt_fail_memory(err, "the batches of all threads");
    memset(d->buffers, 1, bytes);
    return SGT_OK;
}

static const sgt_notice none; /* a notice that discards its text */

static int drawer_open(drawer *d, const loader_row *r, sgt_error *err)
{
    int speaks = r->maker == state.speaker && !state.spoke++;
    double start = sgt_now();
    int rc = open_loader(&d->loader, r->maker, speaks ? bench.notice : none, err);
    d->opened_s = sgt_now() - start;
    if (rc == SGT_OK) rc = allocate_buffers(d, r->threads, err);
    /* Opening the loader has read the headers of the shards into the page cache. Evict these pages
     * again, because mmap would otherwise map them when its first cursor is opened. */
    if (rc == SGT_OK && r->pass == COLD && r->maker != SGT_READER_PRELOAD)
        rc = bench_cache(state.set, 0, err);
    if (rc < 0) return rc;
    d->epoch = sgt_loader_get_info(d->loader)->windows_per_epoch;
    start = sgt_now();
    for (int t = 0; t < r->threads && rc == SGT_OK; t++)
        rc = sgt_cursor_open(&d->cursors[t], d->loader, err);
    d->opened_s += sgt_now() - start;
    return rc;
}

/* minimum size in bytes of the buffer from which memcpy copies, which has room for the longest
 * row */
#define LEAST_BYTES ((uint64_t)4 << 20)
/* Number of windows that memcpy copies before it starts again with the first one. With rows of 1024
 * tokens and ids of 2 bytes, the windows have 512 MiB in all. */
#define WINDOWS ((size_t)1 << 18)

/* Map the buffer from which memcpy copies. It is as large as the data set's tokens, but not larger
 * than a third of the free memory. */
static int map_memory(drawer *d, sgt_error *err)
{
    sgt_memory memory;
    sgt_memory_look(&memory, NULL);
    uint64_t most = memory.available / 3, set = id_bytes() * state.info.tokens,
             bytes = set < most ? set : most;
    return sgt_arena_map(&d->memory, (size_t)(bytes > LEAST_BYTES ? bytes : LEAST_BYTES), 1, err);
}

/* Prepare *d for memcpy, which copies the same windows as a reader draws. A loader is opened for a
 * short time to compute the positions of the windows. Its reader is mmap, because mmap opens
 * fastest and all readers draw the same windows. */
static int open_memcpy(drawer *d, const loader_row *r, sgt_error *err)
{
    sgt_loader *l = NULL;
    int rc = map_memory(d, err);
    if (rc == SGT_OK) rc = allocate_buffers(d, r->threads, err);
    if (rc == SGT_OK && !(d->windows = calloc(WINDOWS, sizeof *d->windows)))
        rc = sgt_fail_memory(err, NULL);
    if (rc == SGT_OK) rc = open_loader(&l, SGT_READER_MMAP, none, err);
    if (rc < 0) return rc;
    /* number of positions in the buffer at which a window of o.seq + 1 ids can begin */
    uint64_t span = d->memory.size / id_bytes() - o.seq;
    for (size_t w = 0; w < WINDOWS; w++) {
        uint32_t shard;
        uint64_t at;
        sgt_loader_window(l, w, &shard, &at);
        at += shard * (state.info.tokens / state.info.shards);
        d->windows[w] = d->memory.base + at % span * id_bytes();
    }
    sgt_loader_close(l);
    return SGT_OK;
}

static int draw_batch(void *ctx, int thread, uint64_t k, sgt_error *err)
{
    const drawer *d = ctx;
    const size_t row = id_bytes() * (o.seq + 1), bytes = batch_bytes();
    char *to = d->buffers + (size_t)thread * bytes;
    if (!d->windows)
        return sgt_loader_read(d->loader, d->cursors[thread], k, 1, (sgt_output)d->output, to,
                               bytes, err);
    for (size_t r = 0; r < o.batch; r++, to += row)
        memcpy(to, d->windows[(k * o.batch + r) % WINDOWS], row);
    return SGT_OK;
}

static double cpu_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* Draw batches for `seconds` seconds, and add the measured values to *sum. most: maximum number of
 * batches per thread; 0 if it is not limited. */
static int draw_slice(drawer *d, const loader_row *r, uint64_t most, double seconds,
                      loader_slice *sum, sgt_error *err)
{
    const bench_slice s = {
        .first = d->next, .most = most, .seconds = seconds, .threads = r->threads};
    double cpu = cpu_seconds(), taken;
    uint64_t units;
    d->output = r->output;
    if (d->loader) sgt_loader_set_rows(d->loader, r->plain ? &sgt_rows_plain : sgt_rows_best());
    int rc = bench_run(&s, draw_batch, d, &units, &taken, err);
    if (rc < 0) return rc;
    d->next += units;
    *sum = (loader_slice){.batches = sum->batches + (double)units,
                          .seconds = sum->seconds + taken,
                          .cpu_s = sum->cpu_s + cpu_seconds() - cpu,
                          .open_s = d->opened_s};
    return SGT_OK;
}

/* ---- reopening the data set ---- */

/* If all shards fit into the page cache, read every page that is not cached yet. */
static int fill_cache(sgt_error *err)
{
    return state.fits ? bench_cache(state.set, 1, err) : SGT_OK;
}

/* Return the number of batches that each thread can draw before the data set must be reopened, or 0
 * if it need not be. It must be reopened because drawing batches changes the state in which the
 * reader is to be measured. In the state CACHED, all pages are mapped after one epoch. In the state
 * COLD, draw only batches for about a tenth of the data set's pages, because too many of the later
 * windows would be in pages that are already cached. */
static uint64_t batches_until_reopened(const drawer *d, const loader_row *r)
{
    uint64_t rows = o.batch * (uint64_t)r->threads;
    const uint64_t per_page = 4096 / id_bytes(), row_pages = (o.seq + 1) / per_page + 2;
    if (r->maker == SGT_READER_PRELOAD) return 0;
    if (r->pass == CACHED) return (d->epoch + rows - 1) / rows;
    uint64_t n = state.info.tokens / per_page / 10 / (row_pages * rows);
    return n ? n : 1;
}

/* Measure a reader with --sampling block, with which the reader prefetches pools (large groups of
 * blocks). Only entire pools are measured, so that the reader reads as much from the disk as the
 * batches use. The first POOLS_BEFORE pools are drawn but not measured, because prefetching must
 * start and the reader's buffers must be faulted in. No page is read twice within an epoch. */
enum { POOLS_BEFORE = 3 };
static int draw_pools(drawer *d, const loader_row *r, double seconds, loader_slice *sum,
                      sgt_error *err)
{
    uint64_t windows = (SGT_BLOCK_TOKENS + o.seq - 1) / o.seq * SGT_POOL_BLOCKS;
    if (windows > d->epoch) windows = d->epoch;
    uint64_t n = windows / (o.batch * (uint64_t)r->threads);
    if (!n) n = 1;
    uint64_t pool = n * (uint64_t)r->threads, most = d->epoch / (pool * o.batch), pools = 0;
    loader_slice before = {0};
    d->next = (d->next + pool - 1) / pool * pool;
    int rc = draw_slice(d, r, POOLS_BEFORE * n, 1e9, &before, err);
    while (rc == SGT_OK && sum->seconds < seconds && (!pools || POOLS_BEFORE + pools < most)) {
        rc = draw_slice(d, r, n, 1e9, sum, err);
        pools++;
    }
    return rc;
}

/* Maximum number of times that one measurement opens the data set, without --cold. Without this
 * limit, a measurement of a small data set would spend most of its time on opening the data set. */
enum { OPENED_MOST = 10 };

/* Measure a reader in the state CACHED or COLD for state.seconds seconds. These states end while
 * the reader is measured: CACHED when the pages are mapped, and COLD when the pages are cached.
 * Therefore, the data set is opened for this measurement, and reopened each time the state has
 * ended. For COLD, it is closed before its pages are evicted, because mapped pages cannot be
 * evicted. (The reader preload reads from the disk only when it is opened.) */
static int reopened_slice(const loader_row *r, loader_slice *sum, sgt_error *err)
{
    int cold = r->pass == COLD, reads = cold && r->maker != SGT_READER_PRELOAD;
    int pools = reads && o.sampling == SGT_SAMPLING_BLOCK, rc = SGT_OK, n = 0;
    double open_s = 0;
    do {
        drawer d = {.next = reads ? (state.cold_rows + o.batch - 1) / o.batch : 0};
        if (cold) rc = bench_cache(state.set, 0, err);
        if (rc == SGT_OK) rc = drawer_open(&d, r, err);
        if (rc == SGT_OK)
            rc = pools ? draw_pools(&d, r, state.seconds, sum, err)
                       : draw_slice(&d, r, batches_until_reopened(&d, r),
                                    state.seconds - sum->seconds, sum, err);
        if (reads) state.cold_rows = (d.next + AHEAD) * o.batch;
        open_s += d.opened_s;
        n++;
        drawer_close(&d);
    } while (rc == SGT_OK && !pools && sum->seconds < 0.9 * state.seconds &&
             (o.cold || n < OPENED_MOST));
    sum->open_s = open_s / n;
    return rc;
}

/* ---- other programs ---- */

static void add_version(const char *name, json_t *version)
{
    if (json_is_string(version)) json_object_set(state.versions, name, version);
}

/* Write a list of the shards for loaders.py to a file in memory, and return the file's descriptor
 * or a negative SGT_E*. For each shard, the list contains the path, the offset of the first token,
 * and the number of tokens, each followed by a NUL. */
static int list_shards(sgt_error *err)
{
    int fd = bench_memory_file("shards", "", 0, err);
    const sgt_set_shard *s = state.set->set.shards, *end = s + state.info.shards;
    for (; s < end && fd >= 0; s++)
        if (dprintf(fd, "%s%c%" PRIu64 "%c%" PRIu64 "%c", s->path, 0, s->head.data, 0,
                    s->head.tokens, 0) < 0) {
            close(fd);
            fd = sgt_fail_memory(err, "the list of shards");
        }
    return fd;
}

/* Start loaders.py and read its first answer, which contains the version of numpy. If the script
 * cannot run with the user's interpreter, return an error that tells the user what to do. */
static int open_python(sgt_error *err)
{
    json_t *answer = NULL;
    sgt_error why;
    int fd = list_shards(err);
    if (fd < 0) return fd;
    state.script = (bench_script){.python = o.peer, .text = sgt_loaders_py, .stays = 1};
    snprintf(state.script.words, sizeof state.script.words, "@/proc/self/fd/%d %zu", fd,
             id_bytes());
    int rc = bench_script_open(&state.python, &state.script, err);
    /* wait for the first answer before closing the file, because the script reads the list of
     * shards before that answer */
    if (rc == SGT_OK) rc = bench_script_ask(state.python, NULL, &answer, &why);
    close(fd);
    json_decref(answer);
    state.script.needs = "seconds";
    if (rc == SGT_OK || !state.python) return rc;
    return sgt_fail(err, rc == SGT_EUNSUPPORTED ? SGT_EIO : rc, "%s%s", why.text,
                    strstr(why.text, "No module named") ? " (pass a Python that has numpy)" : "");
}

/* Measure a data loader in Python: let loaders.py draw batches for state.seconds seconds. */
static int python_slice(const loader_row *r, loader_slice *s, sgt_error *err)
{
    const char *peer = peers[r->maker - PYTHON].peer;
    char line[128];
    json_t *answer;
    int rc = state.python ? SGT_OK : open_python(err);
    if (rc < 0) return rc;
    snprintf(line, sizeof line, "%s %s %" PRIu64 " %" PRIu64 " %.6f\n", peer,
             output_words[r->output], o.batch, o.seq, state.seconds);
    if ((rc = bench_script_ask(state.python, line, &answer, err)) < 0) return rc;
    add_version(*peer == 't' ? "torch" : "numpy", json_object_get(answer, "peer"));
    s->batches = bench_get(answer, "batches");
    s->seconds = bench_get(answer, "seconds");
    json_decref(answer);
    if (s->batches > 0) return SGT_OK;
    return sgt_fail(err, SGT_EUNSUPPORTED, "--peer %s: drew no batch (raise --seconds)", o.peer);
}

/* MOST_FILES: maximum number of files in the list for fio. LIST_BYTES: maximum size in bytes of
 * this list. DEPTH: queue depth with which fio and the reader uring read single rows. LARGE_DEPTH:
 * queue depth with which fio reads blocks, and reads sequentially. */
enum { MOST_FILES = 64, LIST_BYTES = 100000, DEPTH = 128, LARGE_DEPTH = 16 };
/* Minimum duration in seconds of a run of fio. In a shorter run, the time in which fio starts
 * threads and opens files would distort the result. */
#define LEAST_SECONDS 0.5

typedef struct fio_run {
    /* values of two options of fio: the access pattern (`rw`), and the order in which fio chooses
     * files (`files`, for file_service_type) */
    const char *rw, *files;
    uint64_t bytes; /* size of a request in bytes */
    int depth;      /* queue depth */
} fio_run;

/* Return the parameters with which fio makes the same read requests as the reader uring. The size
 * of a row is rounded up to a multiple of 4096 bytes, because direct I/O must be aligned. */
static fio_run plan_fio(void)
{
    if (o.sampling == SGT_SAMPLING_SEQUENTIAL)
        return (fio_run){"read", "sequential", 1 << 20, LARGE_DEPTH};
    if (o.sampling == SGT_SAMPLING_BLOCK)
        return (fio_run){"randread", "random", id_bytes() * SGT_BLOCK_TOKENS, LARGE_DEPTH};
    return (fio_run){"randread", "random", (id_bytes() * (o.seq + 1) + 4095) / 4096 * 4096, DEPTH};
}

/* Return the argument "--filename=A:B:C" for fio, with the paths of the shards, as a string that
 * the caller frees. A colon in a path is escaped with a backslash. If there are more than
 * MOST_FILES shards, only every n-th shard is listed. Return NULL if memory runs out. */
static char *list_files(void)
{
    char *list = malloc(LIST_BYTES), *p = list ? stpcpy(list, "--filename=") : NULL;
    size_t step = (state.info.shards + MOST_FILES - 1) / MOST_FILES;
    for (size_t i = 0; p && i < state.info.shards; i += step) {
        const char *s = sgt_loader_shard_path(state.set, (uint32_t)i);
        if ((size_t)(p - list) + 2 * strlen(s) + 2 > LIST_BYTES) break;
        if (i) *p++ = ':';
        for (; *s; s++) {
            if (*s == ':') *p++ = '\\';
            *p++ = *s;
        }
        *p = 0;
    }
    return list;
}

/* Read the result of fio from its JSON output. The number of batches per second is fio's number of
 * requests per second, divided by the number of requests for a batch. */
static int read_fio(const fio_run *run, const json_t *answer, loader_slice *s, sgt_error *err)
{
    const json_t *job = json_array_get(json_object_get(answer, "jobs"), 0);
    double iops = bench_get(json_object_get(job, "read"), "iops");
    double batch_requests = run->depth == DEPTH
                                ? (double)o.batch
                                : 2.0 * (double)(o.batch * o.seq) / (double)run->bytes;
    int failed = (int)bench_get(job, "error");
    *s = (loader_slice){.batches = iops / batch_requests,
                        .seconds = 1,
                        .cpu_s = (bench_get(job, "usr_cpu") + bench_get(job, "sys_cpu")) / 100};
    add_version("fio", json_object_get(answer, "fio version"));
    if (iops > 0 && !failed) return SGT_OK;
    if (!failed) return sgt_fail(err, SGT_EUNSUPPORTED, "fio read no data");
    return sgt_fail(err, SGT_EUNSUPPORTED, "fio failed: error %d (%s)", failed, strerror(failed));
}

/* Measure fio. It reads the shards of the data set with the access pattern of --sampling: rows or
 * blocks at random positions, or sequential reads (plan_fio). */
static int fio_slice(loader_slice *s, sgt_error *err)
{
    const fio_run run = plan_fio();
    json_t *answer;
    char *list = list_files();
    if (!list) return sgt_fail_memory(err, NULL);
    const char *args[] = {list, NULL};
    bench_script fio = {.python = "fio", .args = args, .needs = "jobs"};
    snprintf(fio.words, sizeof fio.words,
             "--name=sgt --readonly --rw=%s --file_service_type=%s --bs=%" PRIu64
             " --iodepth=%d --runtime=%.0fms --time_based --ioengine=io_uring --registerfiles=1 "
             "--fixedbufs=1 --direct=1 --norandommap --randrepeat=0 --gtod_reduce=1 --thread "
             "--iomem_align=2m --output-format=json",
             run.rw, run.files, run.bytes, run.depth,
             1e3 * (state.seconds > LEAST_SECONDS ? state.seconds : LEAST_SECONDS));
    /* Put fio's buffers in huge pages, which makes fio twice as fast. With small pages, a buffer
     * consists of many memory segments, and the disk limits the number of segments per request. */
    setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 1);
    int rc = bench_script_run(&fio, &answer, err);
    free(list);
    if (rc == SGT_EIO)
        return sgt_fail(err, SGT_EUNSUPPORTED, "fio was not found (apt-get install fio)");
    if (rc < 0) return rc;
    rc = read_fio(&run, answer, s, err);
    json_decref(answer);
    return rc;
}

/* ---- turns ---- */

static int run_slice_of(const loader_row *r, loader_slice *sum, sgt_error *err)
{
    if (r->maker == FIO) return fio_slice(sum, err);
    if (is_python(r->maker)) return python_slice(r, sum, err);
    if (is_reader(r->maker) && r->pass >= CACHED) return reopened_slice(r, sum, err);
    return draw_slice(&state.drawers[r->maker], r, 0, state.seconds, sum, err);
}

/* Handle the error rc that measuring row i has returned. If the user asked for the row, return rc.
 * (The user did not ask for rows in the state COLD without --cold, because these are added
 * automatically.) Otherwise, if rc is SGT_EUNSUPPORTED, skip the row and return 0. If the row
 * belongs to another program, also print a notice, unless the reason is that fio is not installed.
 * Return any other rc unchanged. */
static int leave_out(size_t i, int rc, const sgt_error *err)
{
    const loader_row *r = &state.rows[i];
    int asked_for = is_reader(r->maker) && (o.cold || r->pass != COLD);
    int says = is_python(r->maker) || (r->maker == FIO && !strstr(err->text, "apt-get"));
    if (asked_for) return rc;
    return bench_leave_out(&bench.rows[i], rc, says ? name_of(r->maker) : NULL, err);
}

static int measure_row(size_t i, json_t **figures, sgt_error *err)
{
    const loader_row *r = &state.rows[i];
    loader_slice sum = {0};
    if (state.warm_up && r->pass == COLD) return SGT_OK;
    /* Before the first row, read the shards into the page cache again, because the kernel may have
     * evicted some of their pages when this process or a Python program allocated huge pages. */
    int rc = i || o.cold ? SGT_OK : fill_cache(err);
    if (rc == SGT_OK) rc = run_slice_of(r, &sum, err);
    if (rc < 0) return leave_out(i, rc, err);
    if (state.warm_up) return SGT_OK;
    *figures = json_pack("{s:f, s:f}", "us_per_batch", sum.seconds * 1e6 / sum.batches, "open_ms",
                         sum.open_s * 1e3);
    if (!is_python(r->maker))
        json_object_set_new(*figures, "cpu_share", json_real(sum.cpu_s / sum.seconds));
    return SGT_OK;
}

/* Measure the `count` rows from index `first` on several times, for `seconds` seconds in all. First
 * open the sources of batches that stay open between measurements. The first measurement of each
 * row is a warm-up. */
static int measure_rows(size_t first, size_t count, double seconds, sgt_error *err)
{
    int rc = SGT_OK;
    if (!count) return SGT_OK;
    state.seconds = seconds / ((double)count * ((double)o.turns + 1));
    /* End the Python program, because it has mapped the shards, and mapped pages cannot be evicted
     * from the page cache. */
    if (state.rows[first].pass == COLD) {
        bench_script_close(state.python);
        state.python = NULL;
    }
    if (first == 0) rc = open_memcpy(&state.drawers[MEMCPY], &state.rows[0], err);
    /* Before mmap is opened, read the shards into the page cache again, because the allocation of
     * memcpy's buffer may have evicted some of their pages. */
    if (rc == SGT_OK && state.rows[first].pass != COLD) rc = fill_cache(err);
    for (const loader_row *r = state.rows + first; r < state.rows + first + count && rc == SGT_OK;
         r++)
        if (is_reader(r->maker) && r->pass <= MAPPED && !state.drawers[r->maker].loader)
            rc = drawer_open(&state.drawers[r->maker], r, err);
    state.warm_up = 1;
    if (rc == SGT_OK) rc = bench_take_turns(first, count, 1, measure_row, err);
    state.warm_up = 0;
    if (rc == SGT_OK) rc = bench_take_turns(first, count, (size_t)o.turns, measure_row, err);
    for (int r = 0; r <= MEMCPY; r++) drawer_close(&state.drawers[r]);
    return rc;
}

/* Find out whether the data set fits into the page cache. If it does, read it into the page
 * cache. */
static int prepare_cache(sgt_error *err)
{
    sgt_memory memory;
    sgt_memory_look(&memory, NULL);
    state.fits = id_bytes() * state.info.tokens <= memory.available / 2;
    if (!state.fits)
        sgt_say(&bench.notice, "the set is larger than half of the free memory, so mmap may "
                               "have to read from disk");
    return fill_cache(err);
}

/* Measure all rows. The rows that measure mmap in the state COLD, if there are any, get a sixth of
 * the time. */
static int measure_all(sgt_error *err)
{
    size_t rest = bench.count - state.main_count;
    double extra = rest ? o.seconds / 6 : 0;
    int rc = o.cold ? SGT_OK : prepare_cache(err);
    if (rc == SGT_OK) rc = measure_rows(0, state.main_count, o.seconds - extra, err);
    if (rc == SGT_OK) rc = measure_rows(state.main_count, rest, extra, err);
    /* read the data set into the page cache again, because measuring the COLD rows has evicted
     * it */
    if (rc == SGT_OK && !o.cold) rc = fill_cache(err);
    return rc;
}

/* ---- results ---- */

/* Return the time in microseconds that row i takes per batch, or 0 if the row was not measured. */
static double time_of(size_t i) { return bench_get(bench.rows[i].result, "us_per_batch"); }

/* Return 1 if row i can be marked as the fastest row with its output format, otherwise 0. Rows that
 * were not measured, and rows of memcpy, fio, the plain loop or the state CACHED, are never
 * marked. */
static int competes(size_t i)
{
    const loader_row *r = &state.rows[i];
    return time_of(i) > 0 && r->maker != MEMCPY && r->maker != FIO && !r->plain &&
           r->pass != CACHED;
}

/* Add the speed of row i relative to memcpy, to fio, to preload with the same output, and to the
 * plain loop, to the row's result. Set the member "best" to true if row i is the fastest of at
 * least two rows with the same output for which competes() returns 1, otherwise to false. */
static void compare(size_t i)
{
    const loader_row *r = &state.rows[i];
    json_t *j = bench.rows[i].result;
    double us = time_of(i);
    size_t others_count = 0, better = 0;
    for (size_t k = 0; k < bench.count; k++) {
        const loader_row *s = &state.rows[k];
        double share = time_of(k) / us;
        if (s->maker == FIO) bench_put(j, "fio_fraction", share);
        if (s->maker == MEMCPY && s->threads == r->threads) bench_put(j, "memcpy_fraction", share);
        if (s->output != r->output) continue;
        if (s->maker == SGT_READER_PRELOAD && is_reader(r->maker))
            bench_put(j, s->plain ? "loop_speedup" : "preload_fraction", share);
        if (k == i || !competes(k) || (k < state.main_count) != (i < state.main_count)) continue;
        others_count++;
        better += share < 1;
    }
    json_object_set_new(j, "best", json_boolean(competes(i) && others_count && !better));
}

static void to_json(json_t *top)
{
    json_t *results = json_array(), *other = json_array();
    for (size_t i = 0; i < bench.count; i++) {
        const loader_row *r = &state.rows[i];
        json_t *result = bench.rows[i].result;
        double us = time_of(i);
        if (!(us > 0)) continue;
        /* gb_per_s is computed from the bytes read, not from the bytes written: the seq + 1 ids of
         * each row, with the width that ids have on disk */
        bench_put_all(result,
                      json_pack("{s:i, s:i, s:s, s:b, s:i, s:f, s:f}", "batch", (int)o.batch, "seq",
                                (int)o.seq, "sampling", sgt_sampling_name((sgt_sampling)o.sampling),
                                "cold", r->pass == COLD, "threads", r->threads, "tokens_per_s",
                                (double)(o.batch * o.seq) / us * 1e6, "gb_per_s",
                                1e-3 * (double)(id_bytes() * o.batch * (o.seq + 1)) / us));
        compare(i);
        if (r->maker != MEMCPY && !r->plain)
            json_array_append(is_reader(r->maker) ? results : other, result);
    }
    bench_put_all(top, json_pack("{s:i, s:i, s:i, s:I, s:I, s:f, s:o, s:o, s:o}", "cores",
                                 sgt_cpu_count(), "threads", (int)o.threads, "turns", (int)o.turns,
                                 "tokens", (json_int_t)state.info.tokens, "shards",
                                 (json_int_t)state.info.shards, "memcpy_gb_per_s",
                                 bench_get(bench.rows[0].result, "gb_per_s"), "results", results,
                                 "peers", other, "left_out", bench_results(0, 1)));
    json_object_update(top, state.versions);
}

/* ---- the table ---- */

static void show_head(void)
{
    char tokens[32], bytes[32], shards[32], path[1024], shown[64];
    const char *key, *before = "; compared with ";
    json_t *version;
    printf("%s: %s tokens (%s) in %s\nturns (medians shown): %" PRIu64,
           sgt_printable(path, sizeof path, bench.operands[0]),
           sgt_format_count(tokens, sizeof tokens, state.info.tokens),
           sgt_format_bytes(bytes, sizeof bytes, id_bytes() * state.info.tokens),
           sgt_format_things(shards, sizeof shards, state.info.shards, "shard", "shards"), o.turns);
    json_object_foreach(state.versions, key, version)
    {
        printf("%s%s", before, sgt_printable(shown, sizeof shown, json_string_value(version)));
        before = ", ";
    }
    printf("\n\n%s, %s, sampling %s, batches of %" PRIu64 " x %" PRIu64 " tokens\n",
           o.cold ? "Shards on disk, not in the page cache" : "Shards in the page cache",
           sgt_format_things(tokens, sizeof tokens, o.threads, "thread", "threads"),
           sgt_sampling_name((sgt_sampling)o.sampling), o.batch, o.seq);
}

/* Prepare the result of row i for the printed table: add the members with texts, and remove the
 * members that are only for the JSON output. */
static void make_shown(size_t i)
{
    char name[32];
    const loader_row *r = &state.rows[i];
    json_t *j = bench.rows[i].result;
    /* 1 if the row copies batches from memory, so that the disk does not limit its speed; otherwise
     * 0 */
    int from_memory = r->maker == MEMCPY || r->maker == SGT_READER_PRELOAD;
    const char *limit =
        o.cold && json_object_get(j, "fio_fraction") ? "fio_fraction" : "memcpy_fraction";
    snprintf(name, sizeof name, o.cold || r->pass == WARM ? "%s" : "%s (%s)",
             bench_get_text(j, "reader"), state_names[r->pass]);
    bench_put_text(j, "name", r->plain ? "plain loop" : name);
    if (!o.cold || !from_memory) json_object_set(j, "limit", json_object_get(j, limit));
    if (!is_reader(r->maker)) json_object_del(j, "open_ms");
    if (!o.cold) json_object_del(j, "cpu_share");
}

static void show(json_t *top)
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
    json_t *rows = bench_results(0, 0);
    (void)top;
    for (size_t i = 0; i < bench.count; i++)
        if (time_of(i) > 0) make_shown(i);
    show_head();
    bench_table(rows, columns, "best");
    json_decref(rows);
    printf("\n* fastest with this output. of limit: relative to %s.\n"
           "  GB/s: bytes read, which are the T+1 ids of each row, with every output.\n",
           !o.cold ? "memcpy of the same windows"
           : json_object_get(state.versions, "fio")
               ? "fio, with the same requests"
               : "memcpy (to see the disk's limit: apt-get install fio)");
    if (o.cold) printf("  preload reads all shards when it opens, and nothing after that.\n");
    else
        printf("  preload, x loop: relative to preload, and to the plain loop.\n"
               "  mmap (mapped): all pages are cached and mapped; (cached): not yet mapped; "
               "(cold): on "
               "disk.\n");
}

/* ---- the subcommand ---- */

static int measure(sgt_error *err)
{
    if (bench.operand_count > 1)
        return sgt_fail(err, SGT_EUSAGE, "expected one set, not %zu (A,B mixes two)",
                        bench.operand_count);
    if (o.peer && o.cold)
        return sgt_fail(err, SGT_EUSAGE,
                        "--peer: cannot be combined with --cold, which compares only with fio");
    if (o.peer && o.sampling != SGT_SAMPLING_RANDOM)
        return sgt_fail(err, SGT_EUSAGE,
                        "--peer: needs --sampling random, because the peers support no other");
    if (o.batch * o.seq > 1 << 28)
        return sgt_fail(err, SGT_EUSAGE,
                        "a batch of %" PRIu64 " x %" PRIu64
                        " tokens is too large: at most 268,435,456 can be measured",
                        o.batch, o.seq);
    int rc = find_shards(err);
    if (rc == SGT_OK) rc = add_rows(err);
    state.versions = json_object();
    return rc == SGT_OK ? measure_all(err) : rc;
}

static void release(void)
{
    bench_script_close(state.python);
    sgt_loader_close(state.set);
    json_decref(state.versions);
}

const bench_subcommand bench_loader = {
    .command = {"loader", "how fast each reader draws batches", &program, bench_run_subcommand},
    .measure = measure,
    .json = to_json,
    .show = show,
    .release = release};
