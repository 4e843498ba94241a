/* loader_measure.c: the measurements of sgt-bench loader.
 *
 * Everything is measured in short slices that alternate: in each turn, every reader and every peer
 * has one. So changes of the machine's speed affect all of them. Each figure is the median of its
 * slices. Each thread writes all of its batches into one buffer. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "loader/base/clock.h"
#include "loader/base/memory.h"
#include "loader/rows/rows.h"
#include "loader/sample/sampler.h"
#include "tools/bench/loader.h"

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Run units of work, one batch each, and add them to *sum. *next, the first unit, moves on. */
static int run_slice(loader_slice *sum, bench_slice s, bench_work *work, void *ctx, uint64_t *next,
                     sgt_error *err)
{
    double cpu = cpu_seconds(), seconds;
    uint64_t units;
    s.first = *next;
    int rc = bench_run(&s, work, ctx, &units, &seconds, err);
    if (rc < 0) return rc;
    *next += units;
    sum->batches += (double)units;
    sum->seconds += seconds;
    sum->cpu_s += cpu_seconds() - cpu;
    return SGT_OK;
}

/* ---- batches by a reader ---- */

/* batches skipped after a cold slice, more than a reader looks ahead: no window is read twice */
#define AHEAD 64

/* The open loader of one reader. The threads of a slice share it. */
typedef struct drawer {
    sgt_loader *loader;
    sgt_loader_info info;
    int output, threads; /* threads: number of cursors and buffers */
    sgt_cursor **cursors;
    void **buffers;
    uint64_t next; /* first batch of the next slice */
    double opened_s;
} drawer;

static void drawer_close(drawer *d)
{
    for (int t = 0; t < d->threads; t++) {
        sgt_cursor_close(d->cursors[t]);
        free(d->buffers[t]);
    }
    free(d->cursors);
    free(d->buffers);
    sgt_loader_close(d->loader);
    *d = (drawer){0};
}

static int add_thread(drawer *d, sgt_error *err)
{
    /* room for int64 inputs and targets, the largest output: so all outputs use the same memory,
     * and caches serve them alike */
    size_t tokens = (size_t)d->info.batch * ((size_t)d->info.seq + 1);
    size_t bytes = (tokens * 2 * sizeof(int64_t) + 63) / 64 * 64;
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

static int drawer_open(drawer *d, const loader_bench *b, const loader_row *r, int reader,
                       sgt_error *err)
{
    sgt_loader_options options = {.reader = (sgt_reader)reader,
                                  .sampling = (sgt_sampling)b->o->sampling,
                                  .seed = b->o->seed,
                                  .batch = b->batch,
                                  .seq = b->seq,
                                  .split = b->o->split,
                                  .raw = b->o->raw,
                                  .notice = b->notice};
    double start = sgt_now();
    int rc = sgt_loader_open_data(&d->loader, b->path, &options, err);
    if (rc < 0) return rc;
    d->opened_s = sgt_now() - start;
    sgt_loader_get_info(d->loader, &d->info);
    d->cursors = calloc((size_t)r->threads, sizeof *d->cursors);
    d->buffers = calloc((size_t)r->threads, sizeof *d->buffers);
    if (!d->cursors || !d->buffers) return sgt_fail_memory(err, NULL);
    /* evict again, because opening reads headers; then the first cursor of mmap maps what is
     * cached */
    if (r->state == LOADER_COLD && reader != SGT_READER_PRELOAD) rc = evict_all(b, err);
    start = sgt_now();
    while (rc == SGT_OK && d->threads < r->threads) rc = add_thread(d, err);
    d->opened_s += sgt_now() - start;
    return rc;
}

static int draw_batch(void *ctx, int thread, uint64_t k, sgt_error *err)
{
    const drawer *d = ctx;
    sgt_cursor *c = d->cursors[thread];
    int64_t *wide = d->buffers[thread];
    int32_t *ids = d->buffers[thread];
    size_t n = (size_t)d->info.batch * d->info.seq;
    if (d->output == SGT_OUTPUT_U16)
        return sgt_loader_batch(d->loader, c, k, d->buffers[thread], err);
    if (d->output == SGT_OUTPUT_I64)
        return sgt_loader_batches_i64(d->loader, c, k, 1, wide, wide + n, err);
    return sgt_loader_batch_i32(d->loader, c, k, ids, ids + n, err);
}

/* Draw batches for `seconds`, or at most `most` per thread if that is not 0. */
static int draw_slice(drawer *d, const loader_row *r, uint64_t most, double seconds,
                      loader_slice *sum, sgt_error *err)
{
    bench_slice s = {.most = most, .seconds = seconds, .threads = r->threads};
    d->output = r->output;
    sgt_loader_set_rows(d->loader, r->plain ? &sgt_rows_scalar : sgt_rows_best());
    sum->open_s = d->opened_s;
    return run_slice(sum, s, draw_batch, d, &d->next, err);
}

/* ---- memcpy of the same windows ---- */

/* least bytes of memory that windows are copied from: room for the longest row */
#define LEAST_BYTES ((uint64_t)4 << 20)
/* windows chosen before the clock starts, then used in turn: 512 MiB at T = 1024 */
#define WINDOWS ((size_t)1 << 18)

/* Copies the windows of a loader's first batches, out of huge pages that are already mapped; it
 * waits for the beginning of each window. Only the windows' addresses matter, so the memory holds
 * no tokens. */
typedef struct copier {
    sgt_arena memory;         /* as large as the set's tokens, or less if memory is short */
    const uint16_t **windows; /* (WINDOWS) */
    uint16_t *rows;           /* (threads, B, T+1) */
    size_t batch, row_tokens; /* B, T+1 */
    uint64_t next;            /* first batch of the next slice */
} copier;

static int copier_map(copier *c, const loader_bench *b, sgt_error *err)
{
    uint64_t bytes = 2 * b->tokens;
    sgt_memory memory;
    sgt_memory_look(&memory, NULL);
    if (bytes > memory.available / 3) {
        bytes = memory.available / 3;
        sgt_say(&b->notice, "memcpy takes its windows from a smaller block, since the set is "
                            "larger than a third of the free memory");
    }
    return sgt_arena_map(&c->memory, (size_t)(bytes > LEAST_BYTES ? bytes : LEAST_BYTES), 1, err);
}

static void copier_close(copier *c)
{
    sgt_arena_unmap(&c->memory);
    free(c->windows);
    free(c->rows);
}

static int copier_open(copier *c, const loader_bench *b, const loader_row *r, sgt_error *err)
{
    drawer d = {0};
    int rc = copier_map(c, b, err);
    if (rc < 0) return rc;
    c->batch = b->batch;
    c->row_tokens = (size_t)b->seq + 1;
    c->windows = calloc(WINDOWS, sizeof *c->windows);
    c->rows = calloc((size_t)r->threads * c->batch, c->row_tokens * sizeof *c->rows);
    if (!c->windows || !c->rows) return sgt_fail_memory(err, "a batch");
    /* mmap opens at once, and every reader draws the same windows */
    rc = drawer_open(&d, b, r, SGT_READER_MMAP, err);
    uint64_t span = c->memory.size / 2 - c->row_tokens + 1; /* possible starts of a row */
    for (size_t w = 0; w < WINDOWS && rc == SGT_OK; w++) {
        uint32_t shard;
        uint64_t at;
        sgt_loader_window(d.loader, w, &shard, &at);
        c->windows[w] =
            (const uint16_t *)(const void *)c->memory.base + (b->shards[shard].first + at) % span;
    }
    drawer_close(&d);
    return rc;
}

static int copy_batch(void *ctx, int thread, uint64_t k, sgt_error *err)
{
    const copier *c = ctx;
    uint16_t *to = c->rows + (size_t)thread * c->batch * c->row_tokens;
    (void)err;
    for (size_t r = 0; r < c->batch; r++, to += c->row_tokens)
        memcpy(to, c->windows[(k * c->batch + r) % WINDOWS], c->row_tokens * sizeof *to);
    return SGT_OK;
}

/* ---- turns ---- */

typedef struct measurer {
    loader_bench *b;
    copier copy;
    drawer drawers[SGT_READERS]; /* open from turn to turn, for rows of a set that stays warm */
    int fits;                    /* 1: there is room in the page cache for all shards */
    /* rows read cold so far, counted from the run's first; none of them is read cold again */
    uint64_t cold_rows;
} measurer;

/* Read the parts of the shards that are not in the page cache, if there is room for all shards. */
static int fill_cache(const measurer *m, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < m->b->shard_count && rc == SGT_OK && m->fits; i++)
        rc = bench_cache_fill(m->b->shards[i].path, err);
    return rc;
}

/* Return the batches per thread after which a reopened set is opened again; 0: only the time ends
 * the slice. A cached set: an epoch, after which all is mapped. A cold one: a tenth of its pages;
 * beyond that, more and more windows would meet cached pages. */
static uint64_t batches_until_reopened(const loader_bench *b, const drawer *d, const loader_row *r)
{
    uint64_t rows = (uint64_t)b->batch * (uint64_t)r->threads;
    uint64_t row_pages = ((uint64_t)b->seq + 1) / 2048 + 2;
    if (r->maker == SGT_READER_PRELOAD) return 0;
    if (r->state == LOADER_CACHED) return (d->info.windows_per_epoch + rows - 1) / rows;
    uint64_t n = b->tokens / 2048 / 10 / (row_pages * rows);
    return n ? n : 1;
}

/* Draw whole pools of blocks until the time is over, after POOLS_BEFORE that do not count. The
 * reader reads whole pools ahead, so it is equally far ahead when the clock starts and when it
 * stops, and its memory was used before. No page is read twice within an epoch. */
enum { POOLS_BEFORE = 3 };
static int draw_pools(drawer *d, const loader_row *r, double seconds, loader_slice *sum,
                      sgt_error *err)
{
    uint64_t seq = d->info.seq, batch = d->info.batch;
    uint64_t block = (SGT_BLOCK_TOKENS + seq - 1) / seq;
    uint64_t windows = block * SGT_POOL_BLOCKS, epoch = d->info.windows_per_epoch;
    if (windows > epoch) windows = epoch;
    uint64_t n = windows / (batch * (uint64_t)r->threads);
    if (!n) n = 1;
    uint64_t pool = n * (uint64_t)r->threads, most = epoch / (pool * batch), pools = 0;
    loader_slice before = {0};
    d->next = (d->next + pool - 1) / pool * pool;
    int rc = draw_slice(d, r, POOLS_BEFORE * n, 1e9, &before, err);
    while (rc == SGT_OK && sum->seconds < seconds && (!pools || POOLS_BEFORE + pools < most)) {
        rc = draw_slice(d, r, n, 1e9, sum, err);
        pools++;
    }
    return rc;
}

/* how often a set is opened in a turn at most, without --cold: opening a small set takes longer
 * than its epoch */
enum { OPENED_MOST = 10 };

/* Measure a slice of a set that is opened anew: a cached one, whose pages are not mapped yet, or an
 * evicted one. A small set is opened again and again. Mapped pages cannot be evicted. preload reads
 * everything when it opens and nothing later. */
static int reopened_slice(measurer *m, const loader_row *r, double seconds, loader_slice *sum,
                          sgt_error *err)
{
    const loader_bench *b = m->b;
    int cold = r->state == LOADER_COLD, reads = cold && r->maker != SGT_READER_PRELOAD;
    int pools = reads && b->o->sampling == SGT_SAMPLING_BLOCK, rc = SGT_OK, n = 0;
    double open_s = 0;
    do {
        drawer d = {.next = reads ? (m->cold_rows + b->batch - 1) / b->batch : 0};
        if (cold) rc = evict_all(b, err);
        if (rc == SGT_OK) rc = drawer_open(&d, b, r, r->maker, err);
        if (rc == SGT_OK)
            rc = pools ? draw_pools(&d, r, seconds, sum, err)
                       : draw_slice(&d, r, batches_until_reopened(b, &d, r), seconds - sum->seconds,
                                    sum, err);
        if (reads) m->cold_rows = (d.next + AHEAD) * b->batch;
        open_s += d.opened_s;
        n++;
        drawer_close(&d);
    } while (rc == SGT_OK && !pools && sum->seconds < 0.9 * seconds &&
             (b->o->cold || n < OPENED_MOST));
    sum->open_s = open_s / n;
    return rc;
}

static int run_turn(measurer *m, loader_row *r, double seconds, loader_slice *sum, sgt_error *err)
{
    if (r->maker == LOADER_MEMCPY) {
        bench_slice s = {.seconds = seconds, .threads = r->threads};
        return run_slice(sum, s, copy_batch, &m->copy, &m->copy.next, err);
    }
    if (r->maker == LOADER_FIO) return loader_fio_turn(m->b, seconds, sum, err);
    if (loader_is_python(r->maker)) return loader_python_turn(m->b, r, seconds, sum, err);
    if (r->state == LOADER_CACHED || r->state == LOADER_COLD)
        return reopened_slice(m, r, seconds, sum, err);
    return draw_slice(&m->drawers[r->maker], r, 0, seconds, sum, err);
}

/* Leave out a row that this machine cannot measure, with a reason. A reader that the user asked for
 * is an error instead, but not mmap of a set that is not cached, which nobody asked for. */
static int leave_out(loader_bench *b, loader_row *r, int rc, const sgt_error *err)
{
    int asked_for = b->o->cold || r->state != LOADER_COLD;
    if (rc != SGT_EUNSUPPORTED || (loader_is_reader(r->maker) && asked_for)) return rc;
    sgt_printable(r->why, sizeof r->why, err->text);
    if (loader_is_python(r->maker))
        sgt_say(&b->notice, "%s is left out: %s", loader_maker_name(r->maker), r->why);
    else if (r->maker == LOADER_FIO && b->fio_runs)
        sgt_say(&b->notice, "fio is left out: %s", r->why);
    return SGT_OK;
}

/* Take all turns of these rows. Turn -1 is a warm-up, in which nothing cold is measured. */
static int run_turns(measurer *m, loader_row *rows, size_t count, double seconds, sgt_error *err)
{
    int turns = (int)m->b->o->turns;
    seconds /= (double)(count * (size_t)(turns + 1));
    for (int turn = -1; turn < turns; turn++) {
        /* allocating huge pages, by this process or a peer, may evict pages from the page cache */
        int rc = rows->state == LOADER_COLD ? SGT_OK : fill_cache(m, err);
        if (rc < 0) return rc;
        for (loader_row *r = rows; r < rows + count; r++) {
            loader_slice sum = {0};
            if (r->why[0] || (turn < 0 && r->state == LOADER_COLD)) continue;
            if (sgt_stopped(m->b->stop)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
            if ((rc = run_turn(m, r, seconds, &sum, err)) < 0) {
                if ((rc = leave_out(m->b, r, rc, err)) < 0) return rc;
            } else if (turn >= 0) {
                r->us[turn] = sum.seconds * 1e6 / sum.batches;
                r->cpu[turn] = sum.cpu_s / sum.seconds;
                r->open_s[turn] = sum.open_s;
            }
        }
    }
    return SGT_OK;
}

/* Open the readers of these rows that stay open, and measure the rows for `seconds` in all. */
static int measure_rows(measurer *m, loader_row *rows, size_t count, double seconds, sgt_error *err)
{
    int rc = SGT_OK;
    if (!count) return SGT_OK;
    if (rows->maker == LOADER_MEMCPY) rc = copier_open(&m->copy, m->b, rows, err);
    if (rows->state == LOADER_COLD) loader_python_close(m->b);
    /* opening the copier may have evicted pages, and mmap maps what is cached when it opens */
    else if (rc == SGT_OK) rc = fill_cache(m, err);
    for (const loader_row *r = rows; r < rows + count && rc == SGT_OK; r++) {
        int stays = r->state == LOADER_WARM || r->state == LOADER_MAPPED;
        if (stays && loader_is_reader(r->maker) && !m->drawers[r->maker].loader)
            rc = drawer_open(&m->drawers[r->maker], m->b, r, r->maker, err);
    }
    if (rc == SGT_OK) rc = run_turns(m, rows, count, seconds, err);
    for (int r = 0; r < SGT_READERS; r++) drawer_close(&m->drawers[r]);
    return rc;
}

/* ---- conclusions ---- */

/* Return whether the row takes part in the comparison for the fastest. */
static int competes(const loader_row *r)
{
    return !r->why[0] && r->maker != LOADER_MEMCPY && r->maker != LOADER_FIO && !r->plain &&
           r->state != LOADER_CACHED;
}

/* Store in *r the times of the other rows that it is compared with. */
static void compare(loader_row *r, const loader_bench *b)
{
    size_t main_row = (size_t)(r - b->rows) < b->main_count, others = 0, better = 0;
    for (size_t i = 0; i < b->count; i++) {
        const loader_row *s = &b->rows[i];
        int same_output = s->output == r->output;
        if (s->why[0]) continue;
        if (s->maker == LOADER_FIO) r->fio_us = s->us_per_batch;
        if (s->maker == LOADER_MEMCPY && s->threads == r->threads) r->memcpy_us = s->us_per_batch;
        if (s->maker == SGT_READER_PRELOAD && same_output && loader_is_reader(r->maker))
            *(s->plain ? &r->loop_us : &r->preload_us) = s->us_per_batch;
        if (s == r || !same_output || !competes(s) || (i < b->main_count) != main_row) continue;
        others++;
        better += s->us_per_batch < r->us_per_batch;
    }
    r->best = competes(r) && others && !better;
}

static void conclude(loader_bench *b)
{
    size_t turns = (size_t)b->o->turns;
    for (loader_row *r = b->rows; r < b->rows + b->count; r++) {
        if (r->why[0]) continue;
        r->us_per_batch = bench_median(r->us, turns);
        r->cpu_share = bench_median(r->cpu, turns);
        r->open_ms = bench_median(r->open_s, turns) * 1e3;
    }
    for (loader_row *r = b->rows; r < b->rows + b->count; r++)
        if (!r->why[0]) compare(r, b);
}

/* Find out whether the set fits into the page cache, and read it into the cache. */
static int prepare_cache(measurer *m, sgt_error *err)
{
    sgt_memory memory;
    sgt_memory_look(&memory, NULL);
    m->fits = 2 * m->b->tokens <= memory.available / 2;
    if (!m->fits)
        sgt_say(&m->b->notice, "the set is larger than half of the free memory: mmap may meet "
                               "pages that are not there");
    return fill_cache(m, err);
}

/* mmap of a set that is not cached gets a sixth of the time. */
int loader_measure(loader_bench *b, sgt_error *err)
{
    measurer m = {.b = b};
    double seconds = b->o->seconds, extra = b->count > b->main_count ? seconds / 6 : 0;
    int rc = b->o->cold ? SGT_OK : prepare_cache(&m, err);
    if (rc == SGT_OK) rc = measure_rows(&m, b->rows, b->main_count, seconds - extra, err);
    if (rc == SGT_OK)
        rc = measure_rows(&m, b->rows + b->main_count, b->count - b->main_count, extra, err);
    if (rc == SGT_OK) conclude(b);
    /* fill the page cache again, as it was before the measurements */
    if (rc == SGT_OK && !b->o->cold) rc = fill_cache(&m, err);
    copier_close(&m.copy);
    return rc;
}
