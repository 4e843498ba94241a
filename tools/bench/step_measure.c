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

#define RECORDED 5 /* steps that CUPTI records for --parts */

typedef struct measurement {
    const step_run *run;
    const sgt_backend_options *o;
    sgt_backend *b;
    uint32_t accum;
    double *ms, *wait; /* (warmup + steps + recorded) */
    sgt_trace *trace;
    char path[64];     /* path of the trace file */
    unsigned recorded; /* steps after the measured ones, which CUPTI records */
    const sgt_cupti_calls *calls;
    sgt_cupti *cupti;
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
    m->wait[s] = waited * 1e3;
    uint64_t update = sgt_trace_begin(m->trace);
    if (rc == SGT_OK) rc = m->b->update(m->b, s, 1e-4, err);
    sgt_trace_end(m->trace, update, SGT_TRACE_LOOP, "optimizer", "update");
    sgt_trace_end(m->trace, from, SGT_TRACE_LOOP, "step", "step");
    return rc;
}

/* Run steps from .. to - 1, and set ms[i] to the time from the end of step i - 1 to the end of step
 * i, as the host sees them. */
static int run_steps(measurement *m, uint64_t from, uint64_t to, sgt_error *err)
{
    unsigned lag = m->run->sync_metrics ? 0 : m->b->lag;
    double began = sgt_now(), last = began;
    for (uint64_t s = from; s < to + lag; s++) {
        sgt_step_metrics got;
        int rc = SGT_OK;
        if (sgt_stopped(m->run->stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
        if (s < to) rc = sgt_trace_step(m->trace, s, err);
        if (rc == SGT_OK && s < to) rc = one_step(m, s, err);
        if (rc == SGT_OK && s >= from + lag) {
            rc = m->b->metrics(m->b, s - lag, &got, err);
            m->ms[s - lag] = (sgt_now() - last) * 1e3;
            last = sgt_now();
            if (s == lag) m->r->first_s = last - began;
            if (s - lag < m->run->warmup + m->run->steps) m->r->loss = got.loss;
        }
        if (rc < 0) return rc;
    }
    return SGT_OK;
}

/* ---- the kernels of a step ---- */

/* Run more steps while CUPTI records them, and make the table of their kernels. */
static int record(measurement *m, uint64_t from, sgt_error *err)
{
    sgt_cupti_counts counts = {0};
    step_spans spans = {.r = m->r};
    unsigned steps = m->recorded;
    int rc = m->calls->begin(m->cupti, err);
    if (rc < 0) return rc;
    rc = run_steps(m, from, from + steps, err);
    int ended =
        m->calls->end(m->cupti, bench_step_span, &spans, &counts, rc == SGT_OK ? err : NULL);
    if (rc == SGT_OK) rc = ended;
    int filled = bench_step_kernels(&spans, steps, rc == SGT_OK ? err : NULL);
    if (rc == SGT_OK) rc = filled;
    if (rc == SGT_OK && counts.lost)
        rc = sgt_fail(err, SGT_EIO, "CUPTI lost %llu records", (unsigned long long)counts.lost);
    if (rc == SGT_OK) m->r->seen_step = (unsigned)(counts.kernels / steps);
    return rc;
}

static int open_cupti(measurement *m, sgt_error *err)
{
    const sgt_cuda_library *lib;
    int rc = sgt_device_open(&lib, err);
    if (rc < 0) return rc;
    m->calls = lib->cupti;
    return m->calls->open(&m->cupti, err);
}

/* Record the kernels, or without --parts only count them: then a machine without CUPTI has no such
 * count, and if recording fails, a notice says so, because the measurement is complete by now. */
static int record_kernels(measurement *m, sgt_error *err)
{
    sgt_error why;
    uint64_t from = m->run->warmup + m->run->steps;
    if (m->run->parts) return record(m, from, err);
    if (open_cupti(m, NULL) < 0) return SGT_OK;
    int rc = record(m, from, &why);
    if (rc == SGT_ESTOPPED) return sgt_fail(err, rc, "%s", why.text);
    if (rc < 0) sgt_say(&m->o->notice, "kernels of a step were not counted: %s", why.text);
    return SGT_OK;
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

/* Open what --parts needs: with CUDA, CUPTI, before any graph is captured; on a CPU, a trace file,
 * which is read and removed when the steps have ended. */
static int open_parts(measurement *m, sgt_error *err)
{
    if (!m->run->parts) return SGT_OK;
    if (m->recorded) return open_cupti(m, err);
    snprintf(m->path, sizeof m->path, "/tmp/sgt-bench.%ld.json", (long)getpid());
    sgt_trace_options o = {.steps = m->run->warmup + m->run->steps,
                           .events = m->accum * (4 * (uint64_t)m->o->model.layers + 32) + 256};
    return sgt_trace_open(&m->trace, m->path, &o, err);
}

static int open_all(measurement *m, sgt_error *err)
{
    double began = sgt_now();
    uint64_t micro_steps = (uint64_t)m->accum * (m->run->warmup + m->run->steps + m->recorded);
    int rc = open_parts(m, err);
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
    int cuda = strcmp(run->device, "cuda") == 0;
    measurement m = {.run = run,
                     .o = run->backend,
                     .r = r,
                     .recorded = cuda ? run->parts ? RECORDED : 1 : 0,
                     .accum = run->backend->accum ? run->backend->accum : 1};
    *r = (step_result){.steps = run->steps};
    m.ms = calloc(steps + m.recorded, sizeof *m.ms);
    m.wait = calloc(steps + m.recorded, sizeof *m.wait);
    int rc = m.ms && m.wait ? open_all(&m, err) : sgt_fail_memory(err, NULL);
    if (rc == SGT_OK) rc = run_steps(&m, 0, steps, err);
    if (rc == SGT_OK) rc = sgt_trace_finish(m.trace, err);
    if (rc == SGT_OK) describe(&m);
    if (rc == SGT_OK && m.recorded) rc = record_kernels(&m, err);
    if (m.b) run->rows->close(run->rows);
    if (m.b) m.b->close(m.b);
    if (m.cupti) m.calls->close(m.cupti);
    sgt_trace_close(m.trace);
    if (rc == SGT_OK && m.trace) rc = bench_step_parts(r, m.path, err);
    if (m.trace) unlink(m.path);
    free(m.ms);
    free(m.wait);
    return rc;
}
