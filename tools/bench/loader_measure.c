/* loader_measure.c: the measurements of sgt-bench loader.
 *
 * Everything is measured in short slices that alternate: in each turn, every reader and every peer
 * has one. So changes of the machine's speed affect all of them. Each figure is the median of its
 * slices. Each thread writes all of its batches into one buffer. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "loader/base/clock.h"
#include "loader/sample/sampler.h"
#include "tools/bench/loader.h"

/* batches skipped after a cold slice, more than a reader looks ahead: no window is read twice */
#define AHEAD 64

/* The open loader of one reader, for one sampling, batch and seq. The threads of a slice share
 * it. */
typedef struct drawer {
    sgt_loader *loader;
    sgt_loader_info info;
    int output, scalar, threads; /* threads: number of cursors and buffers */
    sgt_cursor **cursors;
    void **buffers;
    uint64_t next; /* first batch of the next slice */
    double opened_s, opened_cpu_s;
    int turn; /* turn in which the loader was opened */
} drawer;

typedef struct slice_sum {
    uint64_t units;
    double seconds, cpu_s;
} slice_sum;

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void drawer_close(drawer *d)
{
    for (int t = 0; t < d->threads; t++) {
        sgt_cursor_close(d->cursors[t]);
        free(d->buffers[t]);
    }
    free(d->cursors);
    free(d->buffers);
    sgt_loader_close(d->loader);
    *d = (drawer){.next = d->next};
}

static int add_thread(drawer *d, const loader_result *r, sgt_error *err)
{
    /* room for int64 inputs and targets, the largest output: so all outputs use the same memory,
     * and caches serve them alike */
    size_t bytes = ((size_t)r->batch * (r->seq + 1) * 2 * sizeof(int64_t) + 63) / 64 * 64;
    void *buffer = aligned_alloc(64, bytes);
    if (!buffer) return sgt_fail_memory(err, "a batch");
    memset(buffer, 1, bytes);
    int rc = sgt_cursor_open(&d->cursors[d->threads], d->loader, err);
    if (rc < 0) free(buffer);
    else d->buffers[d->threads++] = buffer;
    return rc;
}

static int evict_all(const loader_bench *b, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < b->shard_count && rc == SGT_OK; i++)
        rc = bench_cache_evict(b->shards[i].path, err);
    return rc;
}

static int drawer_open(drawer *d, const loader_bench *b, const loader_result *r, int threads,
                       sgt_error *err)
{
    sgt_loader_options options = {.reader = (sgt_reader)r->who,
                                  .sampling = (sgt_sampling)r->sampling,
                                  .seed = b->o->seed,
                                  .batch = r->batch,
                                  .seq = r->seq,
                                  .split = b->o->split,
                                  .raw = b->o->raw,
                                  .notice = b->notice};
    double start = sgt_now(), cpu = cpu_seconds();
    int rc = sgt_loader_open_data(&d->loader, b->path, &options, err);
    if (rc < 0) return rc;
    d->opened_s = sgt_now() - start;
    d->opened_cpu_s = cpu_seconds() - cpu;
    sgt_loader_get_info(d->loader, &d->info);
    d->cursors = calloc((size_t)threads, sizeof *d->cursors);
    d->buffers = calloc((size_t)threads, sizeof *d->buffers);
    if (!d->cursors || !d->buffers) return sgt_fail_memory(err, NULL);
    /* evict again, because opening reads headers; then the first cursor of mmap maps what is
     * cached */
    if (r->cold && r->who != SGT_READER_PRELOAD) rc = evict_all(b, err);
    start = sgt_now();
    while (rc == SGT_OK && d->threads < threads) rc = add_thread(d, r, err);
    d->opened_s += sgt_now() - start;
    return rc;
}

static int draw_batch(void *ctx, int thread, uint64_t k, sgt_error *err)
{
    const drawer *d = ctx;
    sgt_cursor *c = d->cursors[thread];
    if (d->output == SGT_OUTPUT_U16)
        return sgt_loader_batch(d->loader, c, k, d->buffers[thread], err);
    if (d->output == SGT_OUTPUT_I64) {
        int64_t *wide = d->buffers[thread];
        return sgt_loader_batches_i64(d->loader, c, k, 1, wide,
                                      wide + (size_t)d->info.batch * d->info.seq, err);
    }
    int32_t *inputs = d->buffers[thread], *targets = inputs + (size_t)d->info.batch * d->info.seq;
    return (d->scalar ? sgt_loader_batch_i32_scalar : sgt_loader_batch_i32)(d->loader, c, k, inputs,
                                                                            targets, err);
}

/* ---- slices of ours ---- */

static int draw_slice(drawer *d, const loader_result *r, uint64_t most, double seconds,
                      slice_sum *sum, sgt_error *err)
{
    bench_slice s = {.first = d->next, .most = most, .seconds = seconds, .threads = r->threads};
    double cpu = cpu_seconds(), took;
    uint64_t units;
    d->output = r->output;
    d->scalar = r->way == LOADER_SCALAR;
    int rc = bench_run(&s, draw_batch, d, &units, &took, err);
    if (rc < 0) return rc;
    d->next += units;
    sum->units += units;
    sum->seconds += took;
    sum->cpu_s += cpu_seconds() - cpu;
    return SGT_OK;
}

static void note(loader_result *r, int turn, const slice_sum *sum, double open_s)
{
    if (turn < 0) return;
    r->us[turn] = sum->seconds * 1e6 / (double)sum->units;
    r->cpu[turn] = sum->cpu_s / sum->seconds;
    r->open_s[turn] = open_s;
}

/* Spin for `us` microseconds: the consumer's work, which keeps its core busy as a training step
 * would. */
static void work_for(double us)
{
    double until = sgt_now() + us * 1e-6;
    while (sgt_now() < until) {
    }
}

/* Take and release batches for `seconds`, and time only the calls that may wait. */
static int consume(sgt_stream *s, double work_us, double seconds, slice_sum *sum, sgt_error *err)
{
    double until = sgt_now() + seconds, from, to;
    do {
        sgt_stream_batch got;
        from = sgt_now();
        int rc = sgt_stream_next(s, &got, err);
        to = sgt_now();
        if (rc < 0) return rc;
        sum->seconds += to - from;
        work_for(work_us);
        from = sgt_now();
        sgt_stream_release(s, &got);
        to = sgt_now();
        sum->seconds += to - from;
        sum->units++;
    } while (to < until);
    return SGT_OK;
}

/* Measure a turn of a stream. The warm-up turn (-1) measures how long a batch takes when the
 * consumer does nothing; in later turns the consumer's work takes twice that. */
static int stream_slice(drawer *d, loader_result *r, int turn, double seconds, sgt_error *err)
{
    sgt_stream *s;
    sgt_stream_options options = {
        .first = d->next, .output = (sgt_output)r->output, .threads = (uint32_t)r->threads};
    slice_sum begin = {0}, sum = {0};
    int rc = sgt_stream_open(&s, d->loader, &options, err);
    if (rc < 0) return rc;
    /* let the stream's ring fill up */
    rc = consume(s, turn < 0 ? 0 : r->work_us, turn < 0 ? seconds : seconds / 10, &begin, err);
    if (turn < 0) r->work_us = 2 * begin.seconds * 1e6 / (double)begin.units;
    if (rc == SGT_OK) rc = consume(s, r->work_us, seconds, &sum, err);
    sgt_stream_close(s);
    d->next += begin.units + sum.units;
    if (rc == SGT_OK) note(r, turn, &sum, d->opened_s);
    return rc;
}

static int warm_turn(drawer *d, loader_result *r, int turn, double seconds, sgt_error *err)
{
    slice_sum sum = {0};
    if (r->way == LOADER_STREAM) return stream_slice(d, r, turn, seconds, err);
    int rc = draw_slice(d, r, 0, seconds, &sum, err);
    if (rc == SGT_OK) note(r, turn, &sum, d->opened_s);
    return rc;
}

/* ---- a cached set that is not mapped yet ---- */

/* how often a set is opened in a turn at most: opening a small set takes longer than its epoch */
enum { OPENED_MOST = 10 };

/* Measure the first epoch after opening, or its beginning. A small set is opened again and
 * again. */
static int cached_slice(const loader_bench *b, loader_result *r, int turn, double seconds,
                        sgt_error *err)
{
    drawer d = {0};
    double open_s = 0;
    slice_sum sum = {0};
    int rc = SGT_OK, n = 0;
    while (rc == SGT_OK && n < OPENED_MOST && sum.seconds < 0.9 * seconds) {
        if ((rc = drawer_open(&d, b, r, r->threads, err)) == SGT_OK) {
            uint64_t rows = (uint64_t)r->batch * (uint64_t)r->threads,
                     epoch = (d.info.windows_per_epoch + rows - 1) / rows;
            rc = draw_slice(&d, r, epoch, seconds - sum.seconds, &sum, err);
        }
        open_s += d.opened_s;
        n++;
        drawer_close(&d);
    }
    if (rc == SGT_OK) note(r, turn, &sum, open_s / n);
    return rc;
}

/* ---- a set that is not cached ---- */

/* Return how many batches per thread read a tenth of the set's pages. Beyond that, more and more
 * windows would meet cached pages. */
static uint64_t cold_batches(const loader_bench *b, const loader_result *r)
{
    uint64_t pages = b->tokens / 2048, a_row = ((uint64_t)r->seq + 1) / 2048 + 2;
    uint64_t n = pages / 10 / (a_row * r->batch * (uint64_t)r->threads);
    return n ? n : 1;
}

/* Return how many batches per thread make up a pool of blocks. The reader reads whole pools
 * ahead. */
static uint64_t pool_batches(const drawer *d, const loader_result *r)
{
    uint64_t block = (SGT_BLOCK_TOKENS + (uint64_t)r->seq - 1) / r->seq,
             windows = block * SGT_POOL_BLOCKS;
    if (windows > d->info.windows_per_epoch) windows = d->info.windows_per_epoch;
    uint64_t n = windows / ((uint64_t)r->batch * (uint64_t)r->threads);
    return n ? n : 1;
}

/* Measure as many whole pools as the time allows, after POOLS_BEFORE that do not count. So the
 * reader is equally far ahead when the clock starts and when it stops, and its memory was used
 * before. No page is read twice within an epoch. */
enum { POOLS_BEFORE = 3 };
static int block_slice(drawer *d, const loader_result *r, double seconds, slice_sum *sum,
                       sgt_error *err)
{
    uint64_t n = pool_batches(d, r), whole = n * (uint64_t)r->threads;
    uint64_t most = d->info.windows_per_epoch / (whole * r->batch), pools = 0;
    slice_sum pace = {0};
    d->next = (d->next + whole - 1) / whole * whole;
    int rc = draw_slice(d, r, (POOLS_BEFORE - 1) * n, 1e9, &pace, err);
    if (rc < 0) return rc;
    pace = (slice_sum){0};
    if ((rc = draw_slice(d, r, n, 1e9, &pace, err)) < 0) return rc;
    pools = (uint64_t)(seconds / pace.seconds + 0.5);
    if (pools + POOLS_BEFORE > most) pools = most > POOLS_BEFORE ? most - POOLS_BEFORE : 1;
    return draw_slice(d, r, pools ? n * pools : n, 1e9, sum, err);
}

/* Measure a slice from an evicted set. The loader is opened anew each time, because mapped pages
 * cannot be evicted. */
static int cold_slice(loader_bench *b, drawer *d, loader_result *r, int turn, double seconds,
                      sgt_error *err)
{
    double open_s = 0;
    slice_sum sum = {0};
    int rc, n = 0;
    do {
        drawer_close(d);
        d->next = (b->cold_rows + r->batch - 1) / r->batch;
        if ((rc = evict_all(b, err)) == SGT_OK &&
            (rc = drawer_open(d, b, r, r->threads, err)) == SGT_OK)
            rc = r->sampling == SGT_SAMPLING_BLOCK
                     ? block_slice(d, r, seconds, &sum, err)
                     : draw_slice(d, r, cold_batches(b, r), seconds - sum.seconds, &sum, err);
        b->cold_rows = (d->next + AHEAD) * r->batch;
        open_s += d->opened_s;
        n++;
    } while (rc == SGT_OK && sum.seconds < 0.9 * seconds && r->sampling != SGT_SAMPLING_BLOCK &&
             (b->o->cold || n < OPENED_MOST));
    drawer_close(d);
    if (rc == SGT_OK) note(r, turn, &sum, open_s / n);
    return rc;
}

/* Measure preload from an evicted set. It reads everything when it opens and nothing later, so it
 * is opened once per turn, for all its outputs. */
static int cold_preload(loader_bench *b, drawer *d, loader_result *r, int turn, double seconds,
                        sgt_error *err)
{
    slice_sum sum = {0};
    int rc = SGT_OK;
    if (!d->loader || d->turn != turn) {
        drawer_close(d);
        if ((rc = evict_all(b, err)) == SGT_OK) rc = drawer_open(d, b, r, r->threads, err);
        d->turn = turn;
    }
    if (rc == SGT_OK && r->way == LOADER_FILL) sum = (slice_sum){1, d->opened_s, d->opened_cpu_s};
    else if (rc == SGT_OK) rc = draw_slice(d, r, 0, seconds, &sum, err);
    if (rc == SGT_OK) note(r, turn, &sum, d->opened_s);
    return rc;
}

/* ---- turns ---- */

static int copy_turn(loader_bench *b, loader_result *r, int turn, uint64_t *copied, double seconds,
                     sgt_error *err)
{
    bench_slice s = {.first = *copied, .seconds = seconds, .threads = r->threads};
    slice_sum sum = {0};
    double cpu = cpu_seconds();
    int rc = bench_run(&s, r->who == LOADER_READ ? bench_limit_read : bench_limit_copy, b->limit,
                       &sum.units, &sum.seconds, err);
    sum.cpu_s = cpu_seconds() - cpu;
    *copied += sum.units;
    if (rc == SGT_OK) note(r, turn, &sum, 0);
    return rc;
}

static int take_turn(loader_bench *b, loader_result *r, drawer *drawers, int turn, uint64_t *copied,
                     double seconds, sgt_error *err)
{
    double us, cpu = 0;
    int rc;
    if (r->who == LOADER_MEMCPY || r->who == LOADER_READ)
        return copy_turn(b, r, turn, copied, seconds, err);
    if (loader_is_reader(r->who)) {
        drawer *d = &drawers[r->who];
        if (r->pass == LOADER_CACHED) return cached_slice(b, r, turn, seconds, err);
        if (!r->cold) return warm_turn(d, r, turn, seconds, err);
        return (r->who == SGT_READER_PRELOAD ? cold_preload : cold_slice)(b, d, r, turn, seconds,
                                                                          err);
    }
    rc = r->who == LOADER_FIO ? loader_fio_turn(b, r, seconds, &us, &cpu, err)
                              : loader_python_turn(b, r, seconds, &us, err);
    if (rc == SGT_OK && turn >= 0) {
        r->us[turn] = us;
        r->cpu[turn] = cpu;
    }
    return rc;
}

/* Return whether this is a group of lay_out_uncached: mmap of an uncached set, measured without
 * --cold. */
static int is_extra(const loader_bench *b, const loader_group *g)
{
    return !b->o->cold && !g->lenient && g->results[0].cold;
}

/* Return the seconds for a group. A group of lay_out_uncached takes a sixth of the time of its
 * combination. */
static double share_of_time(const loader_bench *b, const loader_group *g)
{
    size_t combinations = 0, extra = 0;
    if (!b->grid_count || g->lenient) return b->o->seconds;
    for (size_t i = 0; i < b->grid_count; i++) extra += (size_t)is_extra(b, &b->groups[i]);
    combinations = b->grid_count - extra;
    double each = b->o->seconds / (double)combinations;
    if (is_extra(b, g)) return each / 6;
    return extra ? each * 5 / 6 : each;
}

/* Leave out a result that this machine cannot measure, with a reason. A reader that the user asked
 * for is an error instead. */
static int leave_out(loader_bench *b, const loader_group *g, loader_result *r, int rc,
                     const sgt_error *err)
{
    int asked_for = !g->lenient && !is_extra(b, g);
    if (rc != SGT_EUNSUPPORTED || (loader_is_reader(r->who) && asked_for)) return rc;
    sgt_printable(r->why, sizeof r->why, err->text);
    if (loader_is_python(r->who))
        sgt_say(&b->notice, "%s is left out: %s", loader_who_name(r->who), r->why);
    else if (r->who == LOADER_FIO && b->fio_runs)
        sgt_say(&b->notice, "fio is left out: %s", r->why);
    return SGT_OK;
}

/* Take all turns of a group. Turn -1 is a warm-up, in which nothing cold is measured. */
static int take_turns(loader_bench *b, loader_group *g, drawer *drawers, sgt_error *err)
{
    int turns = (int)b->o->turns;
    double seconds = share_of_time(b, g) / (double)(g->count * (size_t)(turns + 1));
    uint64_t copied = 0;
    for (int turn = -1; turn < turns; turn++) {
        /* allocating huge pages, by this process or a peer, may evict pages from the page cache */
        int rc = g->results[0].cold ? SGT_OK : loader_warm(b, err);
        if (rc < 0) return rc;
        for (size_t i = 0; i < g->count; i++) {
            loader_result *r = &g->results[i];
            if (r->why[0] || (turn < 0 && r->cold)) continue;
            if (sgt_stopped(b->stop)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
            rc = take_turn(b, r, drawers, turn, &copied, seconds, err);
            if (rc < 0 && (rc = leave_out(b, g, r, rc, err)) < 0) return rc;
        }
    }
    return SGT_OK;
}

/* ---- conclusions ---- */

static int competes(const loader_result *r)
{
    return !loader_is_limit(r->who) && r->way != LOADER_SCALAR && r->pass != LOADER_CACHED;
}

static void find_best(loader_group *g)
{
    for (size_t i = 0; i < g->count; i++) {
        loader_result *r = &g->results[i];
        size_t better = 0, others = 0;
        if (r->why[0] || !competes(r)) continue;
        for (size_t j = 0; j < g->count; j++) {
            const loader_result *s = &g->results[j];
            if (s->why[0] || !competes(s) || s->output != r->output || i == j) continue;
            others++;
            better += s->us_per_batch < r->us_per_batch;
        }
        r->best = others && !better;
    }
}

static void conclude(loader_group *g, size_t turns)
{
    for (size_t i = 0; i < g->count; i++) {
        loader_result *r = &g->results[i];
        if (r->why[0]) continue;
        r->us_per_batch = bench_median(r->us, turns);
        r->cpu_share = bench_median(r->cpu, turns);
        r->open_ms = bench_median(r->open_s, turns) * 1e3;
    }
    for (size_t i = 0; i < g->count; i++)
        for (size_t j = 0; j < g->count; j++) {
            const loader_result *other = &g->results[j];
            if (other->why[0]) continue;
            if (other->who == LOADER_FIO) g->results[i].fio_us = other->us_per_batch;
            if (other->who == LOADER_MEMCPY && other->threads == g->results[i].threads)
                g->results[i].memcpy_us = other->us_per_batch;
        }
    find_best(g);
}

static int aim(loader_bench *b, const loader_result *r, int threads, sgt_error *err)
{
    drawer d = {0};
    loader_result as_mapped = *r;
    /* mmap opens at once, and every reader draws the same windows */
    as_mapped.who = SGT_READER_MMAP;
    int rc = drawer_open(&d, b, &as_mapped, threads, err);
    if (rc == SGT_OK) rc = bench_limit_aim(b->limit, d.loader, b->o->raw, threads, err);
    drawer_close(&d);
    return rc;
}

int loader_measure(loader_bench *b, loader_group *g, sgt_error *err)
{
    drawer drawers[SGT_READERS] = {{0}};
    int rc = SGT_OK, threads = 1;
    for (size_t i = 0; i < g->count; i++)
        if (g->results[i].threads > threads) threads = g->results[i].threads;
    if (g->results[0].who == LOADER_MEMCPY) rc = aim(b, &g->results[0], threads, err);
    if (g->results[0].cold) loader_python_close(b);
    /* the previous group may have evicted the set, and mmap maps what is cached when it opens */
    else if (rc == SGT_OK) rc = loader_warm(b, err);
    for (size_t i = 0; i < g->count && rc == SGT_OK; i++) {
        const loader_result *r = &g->results[i];
        if (!r->cold && loader_is_reader(r->who) && !drawers[r->who].loader)
            rc = drawer_open(&drawers[r->who], b, r, threads, err);
    }
    if (rc == SGT_OK) rc = take_turns(b, g, drawers, err);
    for (int r = 0; r < SGT_READERS; r++) drawer_close(&drawers[r]);
    if (rc == SGT_OK) conclude(g, (size_t)b->o->turns);
    return rc;
}
