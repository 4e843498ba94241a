/* readers.c: the measurements of sgt-bench loader.
 *
 * Everything is measured in short slices that take turns (round after round, each reader once a round), so that a
 * machine that changes its mind slows them all; the figure of each is the median of its slices. Each thread writes into
 * one buffer. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/bench/loader.h"

/* One reader's loader for one sampling, batch and seq; what the threads of a slice work on. */
typedef struct drawer {
    sgt_loader *loader;
    sgt_loader_info info;
    int output, threads; /* threads: how many cursors and buffers there are */
    sgt_cursor **cursors;
    void **buffers;
    uint64_t next; /* the batch that the next slice begins with */
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
    *d = (drawer){.next = d->next};
}

static int drawer_open(drawer *d, const loader_bench *b, const loader_result *r, sgt_error *err)
{
    sgt_loader_options options = {.reader = (sgt_reader)r->reader,
                                  .sampling = (sgt_sampling)r->sampling,
                                  .seed = b->o->seed,
                                  .batch = r->batch,
                                  .seq = r->seq,
                                  .split = b->o->split,
                                  .raw = b->o->raw,
                                  .notice = b->notice};
    double start = sgt_now();
    int rc = sgt_loader_open(&d->loader, b->path, &options, err);
    if (rc < 0) return rc;
    d->opened_s = sgt_now() - start;
    sgt_loader_get_info(d->loader, &d->info);
    d->cursors = calloc(b->o->threads, sizeof *d->cursors);
    d->buffers = calloc(b->o->threads, sizeof *d->buffers);
    if (!d->cursors || !d->buffers) return sgt_fail(err, SGT_ENOMEM, "out of memory");
    for (; d->threads < (int)b->o->threads; d->threads++) {
        /* i32 inputs and targets are the larger: the same memory serves both outputs, and both find it as hot */
        size_t bytes = ((size_t)r->batch * (r->seq + 1) * 2 * sizeof(int32_t) + 63) / 64 * 64;
        if (!(d->buffers[d->threads] = aligned_alloc(64, bytes)))
            return sgt_fail(err, SGT_ENOMEM, "out of memory for a batch");
        memset(d->buffers[d->threads], 1, bytes);
        if ((rc = sgt_cursor_open(&d->cursors[d->threads], d->loader, err)) < 0) {
            free(d->buffers[d->threads]);
            return rc;
        }
    }
    return SGT_OK;
}

static int draw_batch(void *ctx, int thread, uint64_t k, sgt_error *err)
{
    const drawer *d = ctx;
    if (d->output == SGT_OUTPUT_U16) return sgt_loader_batch(d->loader, d->cursors[thread], k, d->buffers[thread], err);
    int32_t *inputs = d->buffers[thread];
    return sgt_loader_batch_i32(d->loader, d->cursors[thread], k, inputs, inputs + (size_t)d->info.batch * d->info.seq,
                                err);
}

/* ---- measuring ---- */

static int draw_slice(const loader_bench *b, drawer *d, const loader_result *r, uint64_t most, double *us,
                      sgt_error *err)
{
    bench_slice s = {.first = d->next, .most = most, .seconds = b->slice_s, .threads = (int)b->o->threads};
    uint64_t units;
    double took;
    d->output = r->output;
    int rc = bench_run(&s, draw_batch, d, &units, &took, err);
    if (rc < 0) return rc;
    d->next += units;
    *us = took * 1e6 / (double)units;
    return SGT_OK;
}

static int evict_all(const loader_bench *b, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < b->shard_count && rc == SGT_OK; i++) rc = bench_cache_evict(b->shards[i], err);
    return rc;
}

/* Batches until a tenth of the pages has been asked for: past that, ever more windows would meet pages that are there
 * again. */
static uint64_t cold_batches(const loader_bench *b, const loader_result *r)
{
    if (r->reader == SGT_READER_PRELOAD) return 0;
    uint64_t pages = b->tokens / 2048, a_row = ((uint64_t)r->seq + 1) / 2048 + 2;
    uint64_t n = pages / 10 / (a_row * r->batch * b->o->threads);
    return n ? n : 1;
}

/* Opened anew each time, since what a program maps cannot be dropped; and dropped again after opening, which reads
 * headers. */
static int cold_slice(const loader_bench *b, drawer *d, loader_result *r, int round, sgt_error *err)
{
    double until = sgt_now() + b->slice_s, open_s = 0, us = 0, total = 0;
    int rc, n = 0;
    do {
        if ((rc = evict_all(b, err)) == SGT_OK && (rc = drawer_open(d, b, r, err)) == SGT_OK &&
            (r->reader == SGT_READER_PRELOAD || (rc = evict_all(b, err)) == SGT_OK) &&
            (rc = draw_slice(b, d, r, cold_batches(b, r), &us, err)) == SGT_OK) {
            open_s += d->opened_s;
            total += us;
            n++;
        }
        drawer_close(d);
    } while (rc == SGT_OK && sgt_now() < until);
    if (rc < 0) return rc;
    r->us[round] = total / n;
    r->open_ms += open_s * 1e3 / n / LOADER_ROUNDS;
    return SGT_OK;
}

/* Round -1 warms up. */
static int measure_rounds(loader_bench *b, loader_result *first, drawer *drawers, sgt_error *err)
{
    uint64_t copied = 0;
    for (int round = -1; round < LOADER_ROUNDS; round++)
        for (size_t i = 0; i < b->group; i++) {
            loader_result *r = &first[i];
            double us = 0;
            int rc = SGT_OK;
            if (sgt_stopped(b->stop)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
            if (r->reader == SGT_READERS) {
                bench_slice s = {.first = copied, .seconds = b->slice_s, .threads = (int)b->o->threads};
                uint64_t units;
                rc = bench_run(&s, bench_limit_copy, b->limit, &units, &us, err);
                us = us * 1e6 / (double)units;
                copied += units;
            } else if (!b->o->cold) {
                rc = draw_slice(b, &drawers[r->reader], r, 0, &us, err);
            } else if (round >= 0) {
                rc = cold_slice(b, &drawers[r->reader], r, round, err);
                us = r->us[round];
            }
            if (rc < 0) return rc;
            if (round >= 0) r->us[round] = us;
        }
    return SGT_OK;
}

static void conclude(loader_result *first, size_t group)
{
    for (size_t i = 0; i < group; i++) {
        first[i].us_per_batch = bench_median(first[i].us, LOADER_ROUNDS);
        first[i].limit_us = first[0].us_per_batch;
    }
    for (size_t i = 1; i < group; i++) {
        size_t better = 0, others = 0;
        for (size_t j = 1; j < group; j++) {
            if (j == i || first[j].output != first[i].output) continue;
            others++;
            better += first[j].us_per_batch < first[i].us_per_batch;
        }
        first[i].best = others && !better;
    }
}

static int aim(loader_bench *b, const loader_result *r, sgt_error *err)
{
    drawer d = {0};
    loader_result as_mapped = *r;
    as_mapped.reader = SGT_READER_MMAP; /* opens at once; the windows are the same from every reader */
    int rc = drawer_open(&d, b, &as_mapped, err);
    if (rc == SGT_OK) rc = bench_limit_aim(b->limit, d.loader, (int)b->o->threads, err);
    drawer_close(&d);
    return rc;
}

int loader_measure(loader_bench *b, loader_result *first, sgt_error *err)
{
    drawer drawers[SGT_READERS] = {{0}};
    int rc = aim(b, first, err);
    for (size_t i = 1; i < b->group && rc == SGT_OK && !b->o->cold; i++) {
        drawer *d = &drawers[first[i].reader];
        if (!d->loader) rc = drawer_open(d, b, &first[i], err);
        first[i].open_ms = d->opened_s * 1e3;
    }
    if (rc == SGT_OK) rc = measure_rounds(b, first, drawers, err);
    for (int r = 0; r < SGT_READERS; r++) drawer_close(&drawers[r]);
    if (rc == SGT_OK) conclude(first, b->group);
    return rc;
}
