/* cpu_backend.c: the CPU behind backend.h: state in and out, the optimizer's pass. Set-up is in plan.c, the step
 * itself in forward.c and backward.c. */
#include "cpu_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sgt_cpu_close(sgt_backend *b)
{
    sgt_cpu_backend *c = (sgt_cpu_backend *)b;
    if (!c) return;
    for (int i = 0; i < SGT_LINEARS; i++) {
        sgt_gemm_free(c->linear[i].forward);
        sgt_gemm_free(c->linear[i].dx);
        sgt_gemm_free(c->linear[i].dw[0]);
        sgt_gemm_free(c->linear[i].dw[1]);
    }
    sgt_cpu_ranks_close(c);
    sgt_arena_unmap(&c->arena);
    sgt_live_free(&c->live);
    free(c->blocks);
    free(c->pieces);
    free(c);
}

/* ---- state ---- */

static float *flat_of(const sgt_cpu_backend *c, sgt_state what)
{
    return what == SGT_PARAMETERS ? c->params : what == SGT_MOMENT1 ? c->m : what == SGT_MOMENT2 ? c->v : c->grads;
}

static float *state_at(sgt_cpu_backend *c, sgt_state what, size_t tensor, size_t first, size_t count, sgt_error *err)
{
    sgt_tensor t;
    if (what > SGT_GRADIENTS) {
        sgt_fail(err, SGT_EUSAGE, "backend: no state %d", (int)what);
        return NULL;
    }
    if (sgt_model_part(&c->model, tensor, first, count, &t, err) < 0) return NULL;
    return flat_of(c, what) + t.offset + first;
}

/* SGD has no second moment: it reads as zeros, and what is put there is forgotten. */
static int is_nothing(const sgt_cpu_backend *c, sgt_state what)
{
    return what == SGT_MOMENT2 && c->optim.kind == SGT_SGD;
}

static int put(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count, const float *from,
               sgt_error *err)
{
    sgt_cpu_backend *c = (sgt_cpu_backend *)b;
    if (is_nothing(c, what)) return SGT_OK;
    float *at = state_at(c, what, tensor, first, count, err);
    if (!at) return SGT_EUSAGE;
    if (!sgt_cpu_ranks_puts(c, what)) return SGT_OK;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t i = 0; i < count; i += SGT_PIECE) {
        size_t n = count - i < SGT_PIECE ? count - i : SGT_PIECE;
        memcpy(at + i, from + i, n * sizeof *at);
        if (what == SGT_PARAMETERS) sgt_cpu_take_weights(c, (size_t)(at - c->params) + i, n);
    }
    return SGT_OK;
}

static int get(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count, float *to, sgt_error *err)
{
    sgt_cpu_backend *c = (sgt_cpu_backend *)b;
    if (is_nothing(c, what)) {
        memset(to, 0, count * sizeof *to);
        return SGT_OK;
    }
    const float *at = state_at(c, what, tensor, first, count, err);
    if (!at) return SGT_EUSAGE;
    int rc = sgt_cpu_ranks_settle(c, err);
    if (rc < 0) return rc;
    memcpy(to, at, count * sizeof *at);
    return sgt_cpu_ranks_get(c, what, (size_t)(at - flat_of(c, what)), count, to, err);
}

static size_t memory(const sgt_backend *b, sgt_memory_kind kinds[SGT_MEMORY_KINDS])
{
    const sgt_cpu_backend *c = (const sgt_cpu_backend *)b;
    memcpy(kinds, c->memory, c->kinds * sizeof *kinds);
    return c->kinds;
}

/* ---- steps ---- */

static int micro_step(sgt_backend *b, uint64_t step, uint32_t micro, const sgt_rows *rows, double scale,
                      sgt_error *err)
{
    sgt_cpu_backend *c = (sgt_cpu_backend *)b;
    if (!(scale > 0)) return sgt_fail(err, SGT_EUSAGE, "backend: a gradient scale of %g", scale);
    if (c->group && micro >= c->accum)
        return sgt_fail(err, SGT_EUSAGE, "backend: micro-step %u of %u", micro + 1, (unsigned)c->accum);
    int rc = sgt_cpu_ranks_settle(c, err);
    if (rc < 0) return rc;
    sgt_cpu_ranks_begin(c, micro);
    c->counted += sgt_cpu_load(c, rows);
    c->dropping = c->dropout;
    c->step = step;
    c->row = (uint64_t)micro * c->B * c->ranks + c->rank;
    sgt_cpu_forward(c);
    c->nominal = scale * (double)c->scaler.scale;
    uint64_t from = sgt_trace_begin(c->trace);
    c->loss_sum += sgt_cpu_head(c, c->nominal);
    sgt_trace_end(c->trace, from, SGT_TRACE_LOOP, "head", "head and loss");
    sgt_cpu_backward(c);
    c->fresh = 0;
    return SGT_OK;
}

static double squared_norm(sgt_cpu_backend *c)
{
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t i = 0; i < c->piece_count; i++)
        c->squares[i] = c->k->sum_squares(c->grads + c->pieces[i].offset, c->pieces[i].count);
    double sum = 0;
    for (size_t i = 0; i < c->piece_count; i++) sum += c->squares[i];
    return sum;
}

/* SGD, and AdamW but in bf16: in parts that are still in the first-level cache when their copies are made, if any. */
static void optimize_piece(sgt_cpu_backend *c, const sgt_cpu_piece *p, const sgt_adamw *a, const sgt_sgd *s)
{
    for (size_t at = p->offset, end = at + p->count, n; at < end; at += n) {
        n = end - at < SGT_UPDATE_FLOATS ? end - at : SGT_UPDATE_FLOATS;
        if (c->optim.kind == SGT_SGD) c->k->sgd(c->params + at, c->m + at, c->grads + at, n, s);
        else c->k->adamw(c->params + at, c->m + at, c->v + at, c->grads + at, n, a, NULL);
        sgt_cpu_take_weights(c, at, n);
    }
}

/* The optimizer's pass, for tensors without decay and with it. */
static void optimize(sgt_cpu_backend *c, uint64_t updates, double lr, double scale)
{
    sgt_adamw a[2];
    sgt_sgd s[2];
    for (int decay = 0; decay < 2; decay++) {
        a[decay] = sgt_optim_adamw(&c->optim, updates, lr, scale, decay);
        s[decay] = sgt_optim_sgd(&c->optim, lr, scale, decay);
    }
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t i = 0; i < c->piece_count; i++) {
        const sgt_cpu_piece *p = c->pieces + i;
        size_t at = p->offset;
        if (c->bf16 && c->optim.kind == SGT_ADAMW)
            c->k->adamw(c->params + at, c->m + at, c->v + at, c->grads + at, p->count, &a[p->decay],
                        (uint16_t *)c->weights + at);
        else optimize_piece(c, p, &a[p->decay], &s[p->decay]);
    }
}

/* Between 1 and 2^24: halved at once where a gradient overflowed, doubled after a run of good steps. */
static void adjust_scale(sgt_scaler *s, int overflow, int scaling)
{
    if (!scaling) return;
    if (overflow) {
        s->good_steps = 0;
        s->scale = s->scale > 2 ? s->scale / 2 : 1;
    } else if (++s->good_steps >= SGT_SCALE_GROWTH) {
        s->good_steps = 0;
        s->scale = s->scale < 0x1p23f ? s->scale * 2 : 0x1p24f;
    }
}

/* Every rank has the sums of all, and comes to the same answer. */
static int is_spike(sgt_cpu_backend *c, double norm)
{
    if (!(c->skip_spikes > 0) || !c->counted || !isfinite(c->loss_sum)) return 0;
    return sgt_outliers_take(&c->scaler.outliers, c->skip_spikes, c->loss_sum / (double)c->counted, norm);
}

static int update(sgt_backend *b, uint64_t step, double lr, sgt_error *err)
{
    sgt_cpu_backend *c = (sgt_cpu_backend *)b;
    if (c->fresh) return sgt_fail(err, SGT_EUSAGE, "backend: update without a micro-step");
    double squares;
    int rc = c->group ? sgt_cpu_ranks_total(c, &squares, err) : (squares = squared_norm(c), SGT_OK);
    if (rc < 0) return rc;
    /* Gradients hold the sum times `nominal`; they should be the sum over the targets that counted. */
    double correction = c->counted ? 1 / (c->nominal * (double)c->counted) : 0;
    double norm = sqrt(squares) * correction, scale = correction * sgt_optim_clip(&c->optim, norm);
    int overflow = !isfinite(norm); /* such a step never reaches the parameters, in any precision */
    c->last_metrics = (sgt_step_metrics){.loss = c->counted ? c->loss_sum / (double)c->counted : 0,
                                         .grad_norm = norm,
                                         .loss_scale = (double)c->scaler.scale};
    int dropped = overflow || is_spike(c, norm);
    if (!dropped) optimize(c, step - c->scaler.skipped, lr, scale);
    if (c->group && (rc = sgt_cpu_ranks_share(c, !dropped, err)) < 0) return rc;
    c->scaler.skipped += (uint64_t)dropped;
    adjust_scale(&c->scaler, overflow, c->scaling);
    c->last_metrics.skipped = c->scaler.skipped;
    c->last_metrics.spikes = c->scaler.outliers.spikes;
    c->last = step;
    c->loss_sum = 0;
    c->counted = 0;
    c->fresh = 1;
    sgt_cpu_part_ends(c, sgt_part_update(c->model.layers));
    return SGT_OK;
}

static int metrics(sgt_backend *b, uint64_t step, sgt_step_metrics *m, sgt_error *err)
{
    const sgt_cpu_backend *c = (const sgt_cpu_backend *)b;
    if (step != c->last)
        return sgt_fail(err, SGT_EUSAGE, "backend: metrics of step %llu are gone", (unsigned long long)step);
    *m = c->last_metrics;
    return SGT_OK;
}

static int eval(sgt_backend *b, const sgt_rows *rows, double *loss, uint64_t *targets, sgt_error *err)
{
    sgt_cpu_backend *c = (sgt_cpu_backend *)b;
    if (!c->fresh) return sgt_fail(err, SGT_EUSAGE, "backend: evaluation within a step");
    int rc = sgt_cpu_ranks_settle(c, err);
    if (rc < 0) return rc;
    *targets = sgt_cpu_load(c, rows);
    c->dropping = 0;
    sgt_cpu_forward(c);
    c->greedy = rows->greedy;
    *loss = sgt_cpu_head(c, 0);
    c->greedy = NULL;
    if (rows->losses) memcpy(rows->losses, c->loss, c->N * sizeof *c->loss);
    return SGT_OK;
}

void sgt_cpu_put_scaler(sgt_backend *b, uint64_t step, const sgt_scaler *s)
{
    sgt_cpu_backend *c = (sgt_cpu_backend *)b;
    (void)step;
    c->scaler = *s;
    if (!c->scaling) c->scaler.scale = 1;
}

int sgt_cpu_get_scaler(sgt_backend *b, sgt_scaler *s, sgt_error *err)
{
    (void)err;
    *s = ((const sgt_cpu_backend *)b)->scaler;
    return SGT_OK;
}

const sgt_backend sgt_cpu_calls = {.name = "cpu",
                                   .close = sgt_cpu_close,
                                   .put = put,
                                   .get = get,
                                   .micro_step = micro_step,
                                   .update = update,
                                   .metrics = metrics,
                                   .eval = eval,
                                   .memory = memory};
