/* cpu_backend.c: the functions of sgt_backend (backend.h) for a CPU, such as put, get and
 * micro_step. plan.c sets up the backend; forward.c, backward.c and update.c compute a step. */
#include "train/cpu/cpu_backend.h"

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
    for (int i = 0; i < SGT_LINEAR_BLOCK; i++) sgt_muon_free(c->muon[i]);
    sgt_cpu_ranks_close(c);
    sgt_arena_unmap(&c->buf.arena);
    sgt_live_free(&c->report.live);
    free(c->blocks);
    free(c->update.pieces);
    free(c);
}

/* ---- state ---- */

/* A range of elements of one tensor, in a flat array that contains all parameters, all moments or
 * all gradients. */
typedef struct state_part {
    /* flat array that contains the range; bfloat16 if `half` is 1, otherwise float */
    void *flat;
    size_t at;      /* index in `flat` of the first element of the range */
    size_t element; /* index among all parameters of the first element of the range */
    int half;
} state_part;

static int find_state(sgt_cpu_backend *c, sgt_state what, size_t tensor, size_t first, size_t count,
                      state_part *part, sgt_error *err)
{
    sgt_tensor t;
    if (what > SGT_GRADIENTS)
        return sgt_fail(err, SGT_EUSAGE, "backend: unknown state %d", (int)what);
    int rc = sgt_model_part(&c->shape.o.model, tensor, first, count, &t, err);
    if (rc < 0) return rc;
    const sgt_cpu_buffers *b = &c->buf;
    void *const arrays[] = {[SGT_PARAMETERS] = b->params,
                            [SGT_MOMENT1] = b->m,
                            [SGT_MOMENT2] = b->v,
                            [SGT_GRADIENTS] = b->grads};
    int moment = what == SGT_MOMENT1 || what == SGT_MOMENT2;
    *part = (state_part){.flat = arrays[what],
                         .at = what == SGT_MOMENT2 ? sgt_cpu_second(&c->shape, tensor) + first
                                                   : t.offset + first,
                         .element = t.offset + first,
                         .half = moment && c->shape.o.optim.bf16_moments};
    return SGT_OK;
}

static void read_floats(float *to, const state_part *p, size_t n)
{
    if (!p->half) memcpy(to, (const float *)p->flat + p->at, n * sizeof *to);
    for (size_t i = 0; p->half && i < n; i++) {
        uint32_t bits = (uint32_t)((const uint16_t *)p->flat)[p->at + i] << 16;
        memcpy(to + i, &bits, sizeof bits);
    }
}

/* Return 1 if the optimizer does not have the state `what` for this tensor, otherwise 0. SGD has no
 * second moments, and Muon has none for the tensors that it updates. For such a state, `get`
 * returns zeros, and `put` does nothing. */
static int is_nothing(const sgt_cpu_shape *s, sgt_state what, size_t tensor)
{
    return what == SGT_MOMENT2 && (s->o.optim.kind == SGT_SGD || sgt_cpu_by_muon(s, tensor) >= 0);
}

static int put(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
               const float *from, sgt_error *err)
{
    sgt_cpu_backend *c = (sgt_cpu_backend *)b;
    if (is_nothing(&c->shape, what, tensor)) return SGT_OK;
    state_part p = {0};
    int rc = find_state(c, what, tensor, first, count, &p, err);
    if (rc < 0) return rc;
    sgt_cpu_settle(c);
#pragma omp parallel for num_threads(c->shape.o.threads) schedule(static)
    for (size_t i = 0; i < count; i += SGT_PIECE) {
        size_t n = count - i < SGT_PIECE ? count - i : SGT_PIECE;
        if (p.half) c->shape.k->to_bf16((uint16_t *)p.flat + p.at + i, from + i, n);
        else memcpy((float *)p.flat + p.at + i, from + i, n * sizeof *from);
        if (what == SGT_PARAMETERS) sgt_cpu_take_weights(c, p.at + i, n);
    }
    return SGT_OK;
}

static int get(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count, float *to,
               sgt_error *err)
{
    sgt_cpu_backend *c = (sgt_cpu_backend *)b;
    if (is_nothing(&c->shape, what, tensor)) {
        memset(to, 0, count * sizeof *to);
        return SGT_OK;
    }
    state_part p = {0};
    int rc = find_state(c, what, tensor, first, count, &p, err);
    if (rc < 0) return rc;
    sgt_cpu_settle(c);
    read_floats(to, &p, count);
    return sgt_cpu_ranks_get(c, what, p.element, count, to, err);
}

static size_t memory(const sgt_backend *b, sgt_memory_kind kinds[SGT_MEMORY_KINDS])
{
    const sgt_cpu_backend *c = (const sgt_cpu_backend *)b;
    memcpy(kinds, c->report.memory, c->report.kinds * sizeof *kinds);
    return c->report.kinds;
}

/* ---- steps ---- */

static int micro_step(sgt_backend *b, uint64_t step, uint32_t micro, const sgt_batch *rows,
                      double scale, sgt_error *err)
{
    sgt_cpu_backend *c = (sgt_cpu_backend *)b;
    const sgt_cpu_shape *s = &c->shape;
    if (!(scale > 0)) return sgt_fail(err, SGT_EUSAGE, "backend: a gradient scale of %g", scale);
    if (c->group && micro >= s->o.accum)
        return sgt_fail(err, SGT_EUSAGE, "backend: micro-step %u of %u", micro + 1,
                        (unsigned)s->o.accum);
    sgt_cpu_ranks_begin(c, micro);
    c->step.counted += sgt_cpu_load(c, rows);
    c->step.dropping = (float)s->o.dropout;
    c->step.number = step;
    c->step.row = (uint64_t)micro * s->B * s->ranks + s->rank;
    sgt_cpu_forward(c);
    c->step.nominal = scale * (double)c->step.scaler.scale;
    uint64_t from = sgt_trace_begin(c->report.trace);
    c->step.loss_sum += sgt_cpu_head(c, c->step.nominal);
    sgt_trace_end(c->report.trace, from, SGT_TRACE_LOOP, "head", "head and loss");
    sgt_cpu_backward(c);
    c->step.fresh = 0;
    return SGT_OK;
}

static int metrics(sgt_backend *b, uint64_t step, sgt_step_metrics *m, sgt_error *err)
{
    const sgt_cpu_backend *c = (const sgt_cpu_backend *)b;
    if (step != c->step.last)
        return sgt_fail(err, SGT_EUSAGE, "backend: the metrics of step %llu are no longer held",
                        (unsigned long long)step);
    *m = c->step.last_metrics;
    return SGT_OK;
}

static int eval(sgt_backend *b, const sgt_batch *rows, double *loss, uint64_t *targets,
                sgt_error *err)
{
    sgt_cpu_backend *c = (sgt_cpu_backend *)b;
    if (!c->step.fresh)
        return sgt_fail(err, SGT_EUSAGE, "backend: evaluation in the middle of a step");
    *targets = sgt_cpu_load(c, rows);
    c->step.dropping = 0;
    sgt_cpu_forward(c);
    c->step.greedy = rows->greedy;
    *loss = sgt_cpu_head(c, 0);
    c->step.greedy = NULL;
    if (rows->losses) memcpy(rows->losses, c->buf.loss, c->shape.N * sizeof *c->buf.loss);
    return SGT_OK;
}

void sgt_cpu_put_scaler(sgt_backend *b, uint64_t step, const sgt_scaler *s)
{
    sgt_cpu_backend *c = (sgt_cpu_backend *)b;
    (void)step;
    c->step.scaler = *s;
    if (c->shape.o.precision != SGT_PRECISION_FP16) c->step.scaler.scale = 1;
}

int sgt_cpu_get_scaler(sgt_backend *b, sgt_scaler *s, sgt_error *err)
{
    (void)err;
    *s = ((const sgt_cpu_backend *)b)->step.scaler;
    return SGT_OK;
}

const sgt_backend sgt_cpu_calls = {.name = "cpu",
                                   .close = sgt_cpu_close,
                                   .put = put,
                                   .get = get,
                                   .micro_step = micro_step,
                                   .update = sgt_cpu_end_step,
                                   .metrics = metrics,
                                   .eval = eval,
                                   .memory = memory};
