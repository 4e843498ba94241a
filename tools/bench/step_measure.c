/* step_measure.c: times steps as the training loop runs them: if the backend allows it, a step is
 * queued before the metrics of the previous one are read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "kernels/cuda/cupti.h"
#include "train/device.h"
#include "train/log/metrics.h"
#include "tools/bench/bench.h"
#include "tools/bench/step.h"
#include "train/log/trace.h"

typedef struct measurement {
    const step_run *run;
    const sgt_backend_options *o;
    sgt_backend *b;
    uint32_t accum;
    double *ms, *wait; /* (warmup + steps) */
    sgt_trace *trace;
    char path[64]; /* path of the trace file */
    step_result *r;
} measurement;

static int one_step(measurement *m, uint64_t s, sgt_error *err)
{
    int rc = SGT_OK;
    double waited = 0;
    uint64_t from = sgt_trace_begin(m->trace);
    for (uint32_t a = 0; a < m->accum && rc == SGT_OK; a++) {
        sgt_batch batch = {0};
        double before = sgt_now();
        if ((rc = m->run->rows->next(m->run->rows, &batch.tokens, err)) != SGT_OK) break;
        waited += sgt_now() - before;
        rc = m->b->micro_step(m->b, s, a, &batch,
                              1.0 / ((double)m->o->batch * m->o->seq * m->accum), err);
    }
    if (s < m->run->warmup + m->run->steps) m->wait[s] = waited * 1e3;
    uint64_t update = sgt_trace_begin(m->trace);
    if (rc == SGT_OK) rc = m->b->update(m->b, s, 1e-4, err);
    sgt_trace_end(m->trace, update, SGT_TRACE_LOOP, "optimizer", "update");
    sgt_trace_end(m->trace, from, SGT_TRACE_LOOP, "step", "step");
    return rc;
}

/* Set ms[i] to the time from the end of step i - 1 to the end of step i, as the host sees them. */
static int run_steps(measurement *m, sgt_error *err)
{
    unsigned steps = m->run->warmup + m->run->steps, lag = m->run->sync_metrics ? 0 : m->b->lag;
    double began = sgt_now(), last = began;
    for (uint64_t s = 0; s < steps + lag; s++) {
        sgt_step_metrics got;
        int rc = SGT_OK;
        if (sgt_stopped(m->run->stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
        if (s < steps) rc = sgt_trace_step(m->trace, s, err);
        if (rc == SGT_OK && s < steps) rc = one_step(m, s, err);
        if (rc == SGT_OK && s >= lag) {
            rc = m->b->metrics(m->b, s - lag, &got, err);
            m->ms[s - lag] = (sgt_now() - last) * 1e3;
            last = sgt_now();
            if (s == lag) m->r->first_s = last - began;
            m->r->loss = got.loss;
        }
        if (rc < 0) return rc;
    }
    return sgt_trace_finish(m->trace, err);
}

/* Run one more step and let CUPTI count its kernels. The measurement is complete by then: if CUPTI
 * or the step fails, a notice says so and the count is left out. A machine without CUPTI has no
 * such count. */
static void count_kernels(measurement *m)
{
    sgt_error err;
    const sgt_cuda_library *lib;
    sgt_cupti *p = NULL;
    sgt_cupti_counts counts = {0};
    sgt_step_metrics got;
    uint64_t step = m->run->warmup + m->run->steps;
    int rc;
    if (strcmp(m->b->name, "cuda") != 0 || sgt_device_open(&lib, NULL) < 0) return;
    const sgt_cupti_calls *calls = lib->cupti;
    if (calls->open(&p, NULL) < 0) return;
    if ((rc = calls->begin(p, SGT_CUPTI_COUNT, &err)) == SGT_OK) {
        rc = one_step(m, step, &err);
        /* the metrics arrive when the whole step is done */
        if (rc == SGT_OK) rc = m->b->metrics(m->b, step, &got, &err);
        int ended = calls->end(p, NULL, NULL, &counts, rc == SGT_OK ? &err : NULL);
        if (rc == SGT_OK) rc = ended;
    }
    calls->close(p);
    if (rc == SGT_OK) m->r->seen_step = (unsigned)counts.kernels;
    else sgt_say(&m->o->notice, "kernels of a step were not counted: %s", err.text);
}

static void describe(const measurement *m)
{
    step_result *r = m->r;
    const sgt_backend *b = m->b;
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    size_t n = b->memory(b, kinds);
    snprintf(r->device, sizeof r->device, "%s", b->name);
    snprintf(r->level, sizeof r->level, "%s", b->level);
    snprintf(r->library, sizeof r->library, "%s", b->library);
    for (size_t i = 0; i < n; i++) r->bytes += kinds[i].bytes;
    r->peak_bytes = b->memory_total ? r->bytes : sgt_memory_peak();
    r->total_bytes = b->memory_total ? b->memory_total : sgt_memory_total();
    r->ms = bench_median(m->ms + m->run->warmup, m->run->steps);
    r->wait_ms = bench_median(m->wait + m->run->warmup, m->run->steps);
    r->tokens_per_s = (double)m->o->batch * m->o->seq * m->accum / r->ms * 1e3;
    r->flops = r->tokens_per_s * sgt_flops_per_token(&m->o->model, m->o->seq);
    /* as in training, a step that is faster than the measured peak raises the peak */
    r->peak_flops = b->peak_flops > 0 && r->flops > b->peak_flops ? r->flops : b->peak_flops;
    r->datasheet_flops = b->datasheet_flops;
    r->launches_forward = b->launches_forward;
    r->launches_step = b->launches_step;
}

/* Open the trace with --parts. It is a file, which is read and removed when the steps have
 * ended. */
static int open_trace(measurement *m, sgt_error *err)
{
    snprintf(m->path, sizeof m->path, "/tmp/sgt-bench.%ld.json", (long)getpid());
    sgt_trace_options o = {.steps = m->run->warmup + m->run->steps,
                           .events = m->accum * (4 * (uint64_t)m->o->model.layers + 32) + 256};
    return m->run->parts ? sgt_trace_open(&m->trace, m->path, &o, err) : SGT_OK;
}

static int open_all(measurement *m, sgt_error *err)
{
    double began = sgt_now();
    uint64_t micro_steps =
        (uint64_t)m->accum * (m->run->warmup + m->run->steps + (m->run->count_kernels != 0));
    int rc = open_trace(m, err);
    sgt_backend_options o = *m->o;
    o.trace = m->trace;
    if (rc == SGT_OK) rc = sgt_device_backend(&m->b, m->run->device, &o, err);
    if (rc == SGT_OK) rc = sgt_init_parameters(m->b, &m->o->model, 1, m->o->threads, err);
    m->r->open_s = sgt_now() - began;
    return rc == SGT_OK ? m->run->rows->open(m->run->rows, m->b, micro_steps, err) : rc;
}

int bench_step_measure(step_result *r, const step_run *run, sgt_error *err)
{
    unsigned steps = run->warmup + run->steps;
    measurement m = {.run = run,
                     .o = run->backend,
                     .r = r,
                     .accum = run->backend->accum ? run->backend->accum : 1};
    *r = (step_result){.steps = run->steps};
    m.ms = calloc(steps, sizeof *m.ms);
    m.wait = calloc(steps, sizeof *m.wait);
    int rc = m.ms && m.wait ? open_all(&m, err) : sgt_fail_memory(err, NULL);
    if (rc == SGT_OK) rc = run_steps(&m, err);
    if (rc == SGT_OK) describe(&m);
    if (rc == SGT_OK && run->count_kernels) count_kernels(&m);
    if (m.b) run->rows->close(run->rows);
    if (m.b) m.b->close(m.b);
    sgt_trace_close(m.trace);
    if (rc == SGT_OK && run->parts) rc = bench_step_parts(r, m.path, err);
    if (m.trace) unlink(m.path);
    free(m.ms);
    free(m.wait);
    return rc;
}
