/* step_measure.c: steps over random tokens, timed as a loop runs them: a step is queued before the metrics of the one
 * before are asked for, where the backend allows it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "cuda/cupti.h"
#include "device.h"
#include "metrics.h"
#include "tools/bench/bench.h"
#include "tools/bench/step.h"
#include "tools/cli/talk.h"

enum { BATCHES = 8 }; /* different ones, in turn */

static uint16_t *random_rows(const sgt_backend *b, const sgt_backend_options *o)
{
    size_t n = (size_t)BATCHES * o->batch * (o->seq + 1);
    uint16_t *rows = b->pinned_alloc ? b->pinned_alloc(b->pinned_ctx, n * sizeof *rows) : malloc(n * sizeof *rows);
    for (size_t i = 0; rows && i < n; i++) rows[i] = (uint16_t)(sgt_philox(1, i, 0).x[0] % o->model.vocab);
    return rows;
}

static void free_rows(const sgt_backend *b, uint16_t *rows)
{
    if (b->pinned_alloc && rows) b->pinned_free(b->pinned_ctx, rows);
    else free(rows);
}

static int one_step(sgt_backend *b, const sgt_backend_options *o, const uint16_t *rows, uint64_t s, sgt_error *err)
{
    uint32_t accum = o->accum ? o->accum : 1;
    int rc = SGT_OK;
    for (uint32_t a = 0; a < accum && rc == SGT_OK; a++) {
        sgt_rows batch = {.tokens = rows + (s * accum + a) % BATCHES * o->batch * (o->seq + 1)};
        rc = b->micro_step(b, s, a, &batch, 1.0 / ((double)o->batch * o->seq * accum), err);
    }
    return rc == SGT_OK ? b->update(b, s, 1e-4, err) : rc;
}

/* ms[i]: from the end of step i - 1, seen from the host, to that of step i. */
static int run(sgt_backend *b, const sgt_backend_options *o, const uint16_t *rows, unsigned steps, double *ms,
               double *first_s, double *loss, const sgt_stop *stop, sgt_error *err)
{
    double began = sgt_now(), last = began;
    for (uint64_t s = 0; s < steps + b->lag; s++) {
        sgt_step_metrics m;
        int rc = SGT_OK;
        if (sgt_stopped(stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
        if (s < steps) rc = one_step(b, o, rows, s, err);
        if (rc == SGT_OK && s >= b->lag) {
            rc = b->metrics(b, s - b->lag, &m, err);
            ms[s - b->lag] = (sgt_now() - last) * 1e3;
            last = sgt_now();
            if (s == b->lag) *first_s = last - began;
            *loss = m.loss;
        }
        if (rc < 0) return rc;
    }
    return SGT_OK;
}

/* One more step, its kernels counted from outside. A machine without CUPTI has no such count, which is no failure. */
static int count_kernels(step_result *r, sgt_backend *b, const sgt_backend_options *o, const uint16_t *rows,
                         uint64_t step, sgt_error *err)
{
    const sgt_cuda_library *lib;
    sgt_cupti *p = NULL;
    sgt_cupti_counts counts = {0};
    sgt_step_metrics m;
    int rc = SGT_OK;
    if (strcmp(b->name, "cuda") != 0 || sgt_device_open(&lib, NULL) < 0) return SGT_OK;
    const sgt_cupti_calls *calls = lib->spare[1];
    if (!calls || calls->open(&p, NULL) < 0) return SGT_OK;
    if (calls->begin(p, SGT_CUPTI_COUNT, NULL) == SGT_OK) {
        rc = one_step(b, o, rows, step, err);
        if (rc == SGT_OK) rc = b->metrics(b, step, &m, err); /* which come when all of it is done */
        if (calls->end(p, NULL, NULL, &counts, NULL) == SGT_OK) r->seen_step = (unsigned)counts.kernels;
    }
    calls->close(p);
    return rc;
}

static void describe(step_result *r, const sgt_backend *b, const sgt_backend_options *o)
{
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    size_t n = b->memory(b, kinds);
    uint32_t accum = o->accum ? o->accum : 1;
    snprintf(r->device, sizeof r->device, "%s", b->name);
    snprintf(r->level, sizeof r->level, "%s", b->level);
    snprintf(r->library, sizeof r->library, "%s", b->library);
    for (size_t i = 0; i < n; i++) r->bytes += kinds[i].bytes;
    r->tokens_per_s = (double)o->batch * o->seq * accum / r->ms * 1e3;
    r->flops = r->tokens_per_s * sgt_flops_per_token(&o->model, o->seq);
    r->peak_flops = b->peak_flops;
    r->datasheet_flops = b->datasheet_flops;
    r->launches_forward = b->launches_forward;
    r->launches_step = b->launches_step;
}

int bench_step_measure(step_result *r, const char *device, const sgt_backend_options *o, unsigned warmup,
                       unsigned steps, const sgt_stop *stop, sgt_error *err)
{
    sgt_backend *b = NULL;
    uint16_t *rows = NULL;
    double began = sgt_now(), *ms = calloc(warmup + steps, sizeof *ms);
    *r = (step_result){.steps = steps};
    int rc = ms ? sgt_device_backend(&b, device, o, err) : sgt_fail(err, SGT_ENOMEM, "out of memory");
    if (rc == SGT_OK) rc = sgt_init_parameters(b, &o->model, 1, o->threads, err);
    r->open_s = sgt_now() - began;
    if (rc == SGT_OK && !(rows = random_rows(b, o))) rc = sgt_fail(err, SGT_ENOMEM, "out of memory for the rows");
    if (rc == SGT_OK) rc = run(b, o, rows, warmup + steps, ms, &r->first_s, &r->loss, stop, err);
    if (rc == SGT_OK) {
        r->ms = bench_median(ms + warmup, steps);
        describe(r, b, o);
        rc = count_kernels(r, b, o, rows, warmup + steps, err);
    }
    if (b) {
        free_rows(b, rows);
        b->close(b);
    }
    free(ms);
    return rc;
}
