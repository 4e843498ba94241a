/* ablation_measure.c: turns techniques into options of the loader and the backend, and measures the
 * steps. */
#include <stdio.h>
#include <string.h>

#include "loader/base/clock.h"
#include "train/device.h"
#include "train/log/metrics.h"
#include "tools/bench/ablation.h"
#include "tools/bench/bench.h"

static int on_cuda(const ablation *a) { return strcmp(a->device, "cuda") == 0; }

/* Return the number of micro-steps per step: from TECHNIQUE_ACCUM on, the smallest divisor above 1
 * of the batch; before it, 1. */
static uint32_t micro_steps(const ablation *a, technique t)
{
    uint32_t n = 2;
    if (t < TECHNIQUE_ACCUM || a->rows[TECHNIQUE_ACCUM].why[0]) return 1;
    while (a->batch % n) n++;
    return n;
}

/* ---- what a row is ---- */

/* Return the backend's options with all techniques up to `t`, including those that have no row of
 * their own. */
static sgt_backend_options backend_options(const ablation *a, technique t)
{
    int cuda = on_cuda(a), half = t >= TECHNIQUE_BF16 && !a->rows[TECHNIQUE_BF16].why[0];
    sgt_backend_options o = {.model = a->model,
                             .optim = {.kind = SGT_ADAMW,
                                       .beta1 = 0.9f,
                                       .beta2 = 0.95f,
                                       .eps = 1e-8f,
                                       .weight_decay = 0.1f,
                                       .grad_clip = 1},
                             .batch = a->batch,
                             .seq = a->seq,
                             .accum = micro_steps(a, t),
                             .recompute = t >= TECHNIQUE_RECOMPUTE ? SGT_RECOMPUTE_BLOCK
                                                                   : SGT_RECOMPUTE_NONE,
                             .threads = a->threads,
                             .precision = half ? SGT_PRECISION_BF16 : SGT_PRECISION_FP32,
                             .cache = a->cache};
    o.model.untied = t < TECHNIQUE_TIED;
    if (!cuda) return o;
    if (t == TECHNIQUE_TF32) o.precision = SGT_PRECISION_TF32;
    o.attention = t < TECHNIQUE_FLASH ? SGT_ATTENTION_NAIVE : SGT_ATTENTION_AUTO;
    o.no_fuse = t < TECHNIQUE_FUSED;
    o.no_graphs = t < TECHNIQUE_GRAPHS;
    o.no_overlap = t < TECHNIQUE_OVERLAP;
    o.no_pad_vocab = t < TECHNIQUE_PADDED;
    o.variants = SGT_VARIANTS_DEFAULT;
    return o;
}

static int open_loader(sgt_loader **l, const ablation *a, technique t, uint32_t batch,
                       sgt_error *err)
{
    sgt_loader_options o = {.batch = batch,
                            .seq = a->seq,
                            .seed = 1,
                            .reader = t < TECHNIQUE_PRELOAD ? SGT_READER_MMAP : SGT_READER_PRELOAD,
                            .scalar = t < TECHNIQUE_SIMD};
    return sgt_loader_open(l, a->data, &o, err);
}

static int open_rows(step_rows **rows, const sgt_loader *l, technique t, sgt_error *err)
{
    return t == TECHNIQUE_TEXT ? bench_rows_text(rows, l, err)
                               : bench_rows_loader(rows, l, t < TECHNIQUE_OVERLAP, err);
}

/* Call `change`, which is bench_cache_evict or bench_cache_fill, for each shard. */
static int each_shard(const sgt_loader *l, int (*change)(const char *, sgt_error *), sgt_error *err)
{
    sgt_loader_info info;
    int rc = SGT_OK;
    sgt_loader_get_info(l, &info);
    for (uint32_t i = 0; i < info.shards && rc == SGT_OK; i++)
        rc = change(sgt_loader_shard_path(l, i), err);
    return rc;
}

/* Open the loader in the state of the page cache that the row is about. TECHNIQUE_COLD empties it,
 * and TECHNIQUE_MMAP fills it again. Mapped pages cannot be evicted, so shards are evicted before
 * they are mapped, and once more after their headers were read. */
static int open_in_state(sgt_loader **l, const ablation *a, technique t, uint32_t batch,
                         sgt_error *err)
{
    int rc = open_loader(l, a, t, batch, err);
    if (rc == SGT_OK && t == TECHNIQUE_MMAP && a->rows[TECHNIQUE_COLD].wanted)
        rc = each_shard(*l, bench_cache_fill, err);
    if (rc < 0 || t != TECHNIQUE_COLD) return rc;
    rc = each_shard(*l, bench_cache_evict, err);
    if (rc < 0) return rc;
    sgt_loader_close(*l);
    *l = NULL;
    rc = open_loader(l, a, t, batch, err);
    return rc == SGT_OK ? each_shard(*l, bench_cache_evict, err) : rc;
}

/* ---- which rows there are ---- */

static int left_out(ablation *a, technique t, int named, const char *why, sgt_error *err)
{
    ablation_row *r = &a->rows[t];
    snprintf(r->why, sizeof r->why, "%.159s", why);
    if (r->wanted && named)
        return sgt_fail(err, SGT_EUNSUPPORTED, "--rows %s: %s", techniques[t].name, why);
    r->wanted = 0;
    return SGT_OK;
}

static int settle_cpu(ablation *a, int named, sgt_error *err)
{
    for (int t = 0; t < TECHNIQUES; t++) {
        int rc = techniques[t].not_on_cpu
                     ? left_out(a, (technique)t, named, techniques[t].not_on_cpu, err)
                     : SGT_OK;
        if (rc < 0) return rc;
    }
    if (sgt_gemm_has_bf16()) return SGT_OK;
    return left_out(a, TECHNIQUE_BF16, named,
                    "here operands are rounded to bf16 and multiplied in fp32", err);
}

/* Give the model the data's vocabulary. Leave out TECHNIQUE_COLD if the shards cannot be evicted,
 * and TECHNIQUE_TEXT if the data is not in GPT-2's vocabulary. */
static int settle_data(ablation *a, int named, sgt_error *err)
{
    sgt_loader *l;
    sgt_loader_info info;
    step_rows *rows = NULL;
    sgt_error why;
    int rc = open_loader(&l, a, TECHNIQUE_MMAP, 1, err);
    if (rc < 0) return rc;
    sgt_loader_get_info(l, &info);
    a->model.vocab = info.vocab;
    if (a->rows[TECHNIQUE_COLD].wanted) rc = each_shard(l, bench_cache_evict, &why);
    if (rc < 0) rc = left_out(a, TECHNIQUE_COLD, named, why.text, err);
    if (rc < 0) return sgt_loader_close(l), rc;
    rc = bench_rows_text(&rows, l, &why);
    bench_rows_free(rows);
    sgt_loader_close(l);
    if (rc == SGT_EUNSUPPORTED) return left_out(a, TECHNIQUE_TEXT, named, why.text, err);
    return rc < 0 ? sgt_fail(err, rc, "%s", why.text) : SGT_OK;
}

/* Return the bytes that technique t would hold with `batch` rows; UINT64_MAX if unknown. Set
 * *available to the bytes of free memory. */
static uint64_t estimate(const ablation *a, technique t, uint32_t batch, uint64_t *available)
{
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    const sgt_cuda_library *lib;
    sgt_cuda_device d;
    size_t count;
    uint64_t bytes;
    sgt_backend_options o = backend_options(a, t);
    o.batch = batch;
    *available = sgt_memory_available();
    if (!on_cuda(a))
        return sgt_cpu_backend_estimate(&o, kinds, &count, &bytes, NULL) < 0 ? UINT64_MAX : bytes;
    if (sgt_device_cuda(&lib, &d, NULL) < 0 || lib->estimate(&o, kinds, &count, &bytes, NULL) < 0)
        return UINT64_MAX;
    *available = d.available;
    return bytes;
}

/* Return whether technique t with `batch` rows fits in memory. A part of 1/32 is left for libraries
 * and other programs. */
static int fits(const ablation *a, technique t, uint32_t batch)
{
    uint64_t available, bytes = estimate(a, t, batch, &available),
                        room = available - available / 32;
    return bytes <= (a->memory_limit && a->memory_limit < room ? a->memory_limit : room);
}

static uint32_t largest_batch(const ablation *a, technique t)
{
    uint32_t low = 0, high = 1; /* low rows fit, high rows do not */
    while (high <= ABLATION_MOST && fits(a, t, high)) low = high, high *= 2;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (fits(a, t, middle)) low = middle;
        else high = middle;
    }
    return low < ABLATION_MOST ? low : ABLATION_MOST;
}

/* Choose `batch` if it is 0: 64, halved until the first wanted row fits, which holds the most
 * memory. */
static int settle_batch(ablation *a, sgt_error *err)
{
    int t = 0;
    while (t < TECHNIQUES && !a->rows[t].wanted) t++;
    if (t == TECHNIQUES) return sgt_fail(err, SGT_EUNSUPPORTED, "no row is left");
    if (a->batch) return SGT_OK;
    for (a->batch = 64; a->batch > 1 && !fits(a, (technique)t, a->batch);) a->batch /= 2;
    if (a->batch < 64)
        sgt_say(&a->notice, "--batch-size %u, which is what the first row has room for", a->batch);
    return SGT_OK;
}

int ablation_settle(ablation *a, int named, sgt_error *err)
{
    int rc = settle_data(a, named, err);
    /* leave the other half of the memory to the user */
    if (!a->memory_limit && !on_cuda(a)) a->memory_limit = sgt_memory_available() / 2;
    if (rc == SGT_OK && !on_cuda(a)) rc = settle_cpu(a, named, err);
    if (rc == SGT_OK) rc = settle_batch(a, err);
    if (rc < 0 || a->batch > 1) return rc;
    return left_out(a, TECHNIQUE_ACCUM, named, "a batch of one row cannot be divided", err);
}

/* ---- measuring ---- */

static int measure_row(const ablation *a, technique t, uint32_t batch, unsigned warmup,
                       unsigned steps, step_result *r, sgt_error *err)
{
    sgt_loader *l = NULL;
    step_rows *rows = NULL;
    sgt_backend_options o = backend_options(a, t);
    o.batch = batch;
    step_run run = {.device = a->device,
                    .backend = &o,
                    .warmup = warmup,
                    .steps = steps,
                    .sync_metrics = t < TECHNIQUE_ASYNC,
                    .stop = a->stop};
    int rc = open_in_state(&l, a, t, batch, err);
    if (rc == SGT_OK) rc = open_rows(&rows, l, t, err);
    run.rows = rows;
    if (rc == SGT_OK) rc = bench_step_measure(r, &run, err);
    bench_rows_free(rows);
    sgt_loader_close(l);
    return rc;
}

enum { LEAST_STEPS = 3 }; /* least number of steps for a median */

/* Reduce a measurement with the largest batch until it takes at most `seconds`, judged by the time
 * that this row took before: first to fewer steps, then to fewer rows. A step has `micro`
 * micro-steps of that many rows. */
static void fit_in_time(const ablation *a, ablation_row *row, uint32_t micro, double seconds,
                        unsigned *warmup, unsigned *steps)
{
    double one = row->r.ms * 1e-3 / a->batch * micro, step = one * row->largest;
    *warmup = a->warmup;
    *steps = a->steps;
    row->in_time = row->largest;
    if (step * (a->warmup + a->steps) <= seconds) return;
    if (*warmup > 1) *warmup = 1;
    double most = seconds / step - *warmup;
    if (*steps > LEAST_STEPS)
        *steps = most < LEAST_STEPS ? LEAST_STEPS : most < *steps ? (unsigned)most : *steps;
    double rows = seconds / one / (*warmup + *steps);
    if (rows >= row->largest) return;
    uint32_t least = a->batch / micro;
    row->in_time = rows < least ? least : (uint32_t)rows;
    if (row->in_time > row->largest) row->in_time = row->largest;
}

static int measure_largest(ablation *a, technique t, double seconds, sgt_error *err)
{
    step_result r;
    sgt_error why;
    unsigned warmup, steps;
    ablation_row *row = &a->rows[t];
    fit_in_time(a, row, micro_steps(a, t), seconds, &warmup, &steps);
    if (row->in_time < row->largest)
        sgt_say(&a->notice, "%s: %u rows instead of %u, which --seconds %g has no time for",
                techniques[t].name, row->in_time, row->largest, a->seconds);
    int rc = measure_row(a, t, row->in_time, warmup, steps, &r, &why);
    if (rc == SGT_OK) {
        row->at_largest = r;
        sgt_say(&a->notice, "%s: %u rows: %.3f ms/step", techniques[t].name, row->in_time, r.ms);
    }
    if (rc == SGT_ENOMEM) sgt_say(&a->notice, "%s: %s", techniques[t].name, why.text);
    return rc == SGT_OK || rc == SGT_ENOMEM ? SGT_OK : sgt_fail(err, rc, "%s", why.text);
}

static int measure_all_largest(ablation *a, sgt_error *err)
{
    int rc = SGT_OK, left = 0;
    double end = sgt_now() + a->seconds;
    for (int t = 0; t < TECHNIQUES; t++) left += a->rows[t].wanted && a->rows[t].largest;
    for (int t = 0; t < TECHNIQUES && rc == SGT_OK; t++) {
        if (!a->rows[t].wanted || !a->rows[t].largest) continue;
        double seconds = (end - sgt_now()) / left--;
        rc = measure_largest(a, (technique)t, seconds > 0 ? seconds : 0, err);
    }
    return rc;
}

/* Measure every wanted row once, so that other load on the machine affects all rows alike. */
static int measure_round(ablation *a, unsigned round, sgt_error *err)
{
    int rc = SGT_OK;
    for (int t = 0; t < TECHNIQUES && rc == SGT_OK; t++) {
        ablation_row *row = &a->rows[t];
        if (!row->wanted) continue;
        step_result r = {0};
        rc = measure_row(a, (technique)t, a->batch / micro_steps(a, (technique)t), a->warmup,
                         a->steps, &r, err);
        if (rc < 0) return rc;
        row->r = r;
        row->ms[round] = r.ms;
        row->wait_ms[round] = r.wait_ms;
        row->rounds = round + 1;
        sgt_say(&a->notice, "%s: %.3f ms/step", techniques[t].name, row->r.ms);
    }
    return rc;
}

static void take_medians(ablation_row *row)
{
    double ms = bench_median(row->ms, row->rounds);
    row->r.tokens_per_s *= row->r.ms / ms;
    row->r.ms = ms;
    row->r.wait_ms = bench_median(row->wait_ms, row->rounds);
}

int ablation_any(const ablation *a)
{
    int any = 0;
    for (int t = 0; t < TECHNIQUES; t++) any |= a->rows[t].wanted && a->rows[t].rounds;
    return any;
}

int ablation_measure(ablation *a, sgt_error *err)
{
    int rc = SGT_OK;
    for (unsigned round = 0; round < a->rounds && rc == SGT_OK; round++)
        rc = measure_round(a, round, err);
    if (rc < 0 && rc != SGT_ESTOPPED) return rc;
    a->interrupted = rc == SGT_ESTOPPED;
    for (int t = 0; t < TECHNIQUES; t++) {
        ablation_row *row = &a->rows[t];
        if (!(row->wanted &= row->rounds > 0)) continue;
        take_medians(row);
        row->largest = row->in_time = largest_batch(a, (technique)t);
    }
    if (rc == SGT_OK && a->at_largest) rc = measure_all_largest(a, err);
    a->interrupted = rc == SGT_ESTOPPED;
    return rc;
}
