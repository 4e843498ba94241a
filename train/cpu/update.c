/* update.c: the end of a step: loss scale, gradient clipping and optimizer.
 *
 * The optimizer reads and writes about 30 bytes per parameter but does little arithmetic, whereas
 * matrix products leave most of the memory bandwidth unused. Therefore most of the update is
 * deferred to the next forward pass, where it overlaps with matrix products (sgt_beside). The
 * results are bit-identical to those without deferring, because each parameter is updated before it
 * is read: a weight before its matrix product, and the token embedding before the head. The
 * embedding lookups come earlier, so they update a copy of each row that they read (sgt_cpu_token).
 * All other code that reads parameters or moments first completes the update (sgt_cpu_settle). */
#include <math.h>
#include <string.h>

#include "kernels/moments.h"
#include "train/cpu/cpu_backend.h"

/* Update the n parameters at p, and their moments at m and v, from the gradients at g. If `copy` is
 * not NULL, AdamW also writes the new parameters to `copy` as bfloat16. `element` is the index in
 * buf.params of the first parameter; the random numbers with which bfloat16 moments are rounded
 * depend on this index. */
static void optimize(const sgt_cpu_backend *c, size_t element, float *p, void *m, void *v,
                     const float *g, size_t n, int decay, uint16_t *copy)
{
    const sgt_cpu_shape *s = &c->shape;
    const sgt_cpu_update *u = &c->update;
    const sgt_random r = {.seed = s->o.seed, .draw = u->draw, .first = element};
    if (s->o.optim.kind == SGT_SGD) s->k->sgd(p, m, g, n, &u->sgd[decay]);
    else if (s->o.optim.bf16_moments) s->k->adamw_bf16(p, m, v, g, n, &u->adamw[decay], &r, copy);
    else s->k->adamw(p, m, v, g, n, &u->adamw[decay], copy);
}

/* Do task i of an optimizer pass: update one piece, unless Muon updates it. Also update the copy of
 * its parameters that matrix products read. If the optimizer's kernel cannot write this copy,
 * process SGT_UPDATE_FLOATS parameters at a time, and copy them while they are still in the L1
 * cache. */
static void update_piece(void *backend, size_t i)
{
    sgt_cpu_backend *c = backend;
    const sgt_cpu_buffers *b = &c->buf;
    const sgt_cpu_update *u = &c->update;
    const sgt_cpu_piece *p = u->pieces + (u->turn + i) % u->piece_count;
    int at_once = c->shape.bf16 && c->shape.o.optim.kind != SGT_SGD;
    size_t most = at_once ? p->count : SGT_UPDATE_FLOATS;
    for (size_t at = p->offset, end = p->muon ? at : at + p->count, n; at < end; at += n) {
        n = end - at < most ? end - at : most;
        void *v = b->v ? sgt_cpu_moment(&c->shape, b->v, p->second + (at - p->offset)) : NULL;
        optimize(c, at, b->params + at, sgt_cpu_moment(&c->shape, b->m, at), v, b->grads + at, n,
                 p->decay, at_once ? (uint16_t *)b->weights + at : NULL);
        if (!at_once) sgt_cpu_take_weights(c, at, n);
    }
}

void sgt_cpu_settle_to(sgt_cpu_backend *c, const sgt_cpu_block *l, size_t tensor)
{
    sgt_beside_finish(&c->update.pending, l->shares[tensor], c->shape.o.threads);
}

void sgt_cpu_settle(sgt_cpu_backend *c)
{
    sgt_beside_finish(&c->update.pending, SIZE_MAX, c->shape.o.threads);
    c->update.behind = 0;
}

/* Start an update. `mean`: factor that converts the accumulated gradients to means over the targets
 * of the step. `norm`: norm of the gradients after this conversion. */
static void begin_update(sgt_cpu_backend *c, uint64_t updates, double lr, double mean, double norm)
{
    const sgt_optim *o = &c->shape.o.optim;
    sgt_cpu_update *u = &c->update;
    double scale = mean * sgt_optim_clip(o, norm);
    for (int decay = 0; decay < 2; decay++) {
        u->adamw[decay] = sgt_optim_adamw(o, updates, lr, scale, decay);
        u->sgd[decay] = sgt_optim_sgd(o, lr, scale, decay);
    }
    u->draw = sgt_moments_draw(updates);
    sgt_cpu_muon_update(c, lr, mean);
    u->pending = (sgt_beside){.share = update_piece, .of = c, .count = u->piece_count};
    if ((u->behind = sgt_cpu_defers(c))) sgt_cpu_settle_to(c, c->blocks, SGT_LN1_B);
    else sgt_cpu_settle(c);
}

const float *sgt_cpu_token(const sgt_cpu_backend *c, int32_t id, float *p, float *m, float *v)
{
    const sgt_cpu_buffers *b = &c->buf;
    const sgt_cpu_shape *s = &c->shape;
    size_t C = s->C, at = (size_t)id * C;
    if (!c->update.behind) return b->params + at;
    memcpy(p, b->params + at, C * sizeof *p);
    size_t moments = C * sgt_cpu_moment_bytes(s);
    memcpy(m, sgt_cpu_moment(s, b->m, at), moments);
    /* although some tensors have no moments in v, wte has the same index `at` in v, because wte is
     * the first tensor */
    if (b->v) memcpy(v, sgt_cpu_moment(s, b->v, at), moments);
    optimize(c, at, p, m, v, b->grads + at, C, 1, NULL);
    return p;
}

/* Adjust the loss scale for fp16: halve it after an overflow, and double it after SGT_SCALE_GROWTH
 * steps without one. The loss scale stays between 1 and 2^24. */
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

/* Return 1 if the step is a spike, so that its update must be skipped, otherwise 0. The result is
 * the same on all ranks, because the loss and the norm are totals over all ranks. */
static int is_spike(sgt_cpu_step *s, double deviations, double norm)
{
    if (!(deviations > 0) || !s->counted || !isfinite(s->loss_sum)) return 0;
    return sgt_outliers_take(&s->scaler.outliers, deviations, s->loss_sum / (double)s->counted,
                             norm);
}

int sgt_cpu_end_step(sgt_backend *b, uint64_t step, double lr, sgt_error *err)
{
    sgt_cpu_backend *c = (sgt_cpu_backend *)b;
    sgt_cpu_step *s = &c->step;
    if (s->fresh) return sgt_fail(err, SGT_EUSAGE, "backend: update without a micro-step");
    double squares;
    int rc = c->group ? sgt_cpu_ranks_reduce(c, &squares, err)
                      : (squares = sgt_cpu_squared_norm(c), SGT_OK);
    if (rc < 0) return rc;
    /* factor that converts an accumulated gradient, the sum over all targets times `nominal`, to
     * the mean over the targets */
    double correction = s->counted ? 1 / (s->nominal * (double)s->counted) : 0;
    double norm = sqrt(squares) * correction;
    /* with every precision, and not only with fp16, skip the update if the norm is infinite or
     * NaN */
    int overflow = !isfinite(norm);
    s->last_metrics = (sgt_step_metrics){.loss = s->counted ? s->loss_sum / (double)s->counted : 0,
                                         .grad_norm = norm,
                                         .loss_scale = (double)s->scaler.scale};
    int dropped = overflow || is_spike(s, c->shape.o.skip_spikes, norm);
    if (!dropped) begin_update(c, step - s->scaler.skipped, lr, correction, norm);
    if (c->group && (rc = sgt_cpu_ranks_gather(c, !dropped, err)) < 0) return rc;
    s->scaler.skipped += (uint64_t)dropped;
    adjust_scale(&s->scaler, overflow, c->shape.o.precision == SGT_PRECISION_FP16);
    s->last_metrics.skipped = s->scaler.skipped;
    s->last_metrics.spikes = s->scaler.outliers.spikes;
    s->last = step;
    s->loss_sum = 0;
    s->counted = 0;
    s->fresh = 1;
    sgt_cpu_part_ends(c, sgt_part_update(c->shape.o.model.layers));
    return SGT_OK;
}

/* ---- the norm ---- */

double sgt_cpu_squares(sgt_cpu_backend *c, int all)
{
    const sgt_cpu_update *u = &c->update;
    double sum = 0;
#pragma omp parallel for num_threads(c->shape.o.threads) schedule(static)
    for (size_t i = 0; i < u->piece_count; i++) {
        const sgt_cpu_piece *p = u->pieces + i;
        c->buf.squares[i] =
            p->squared && !all ? 0 : c->shape.k->sum_squares(c->buf.grads + p->offset, p->count);
    }
    for (size_t i = 0; i < u->piece_count; i++) sum += c->buf.squares[i];
    return sum;
}

double sgt_cpu_squared_norm(sgt_cpu_backend *c)
{
    double sum = c->step.head_squares + c->step.token_squares + sgt_cpu_squares(c, 0);
    for (size_t i = 0; i < c->shape.o.model.layers; i++) sum += c->blocks[i].squares;
    return isfinite(sum) ? sum : sgt_cpu_squares(c, 1);
}

/* ---- Muon ---- */

/* Muon updates the four weight matrices of each block (see kernels/muon.h). With several ranks, only
 * the rank that owns a matrix updates it, after the matrix's gradients have been summed over all
 * ranks (see ranks.c). */

int sgt_cpu_by_muon(const sgt_cpu_shape *s, size_t tensor)
{
    static const int linear[SGT_BLOCK_TENSORS] = {[SGT_QKV_W] = SGT_LINEAR_QKV + 1,
                                                  [SGT_PROJ_W] = SGT_LINEAR_PROJ + 1,
                                                  [SGT_FC_W] = SGT_LINEAR_FC + 1,
                                                  [SGT_FCPROJ_W] = SGT_LINEAR_FCPROJ + 1};
    size_t in_blocks = (size_t)s->o.model.layers * SGT_BLOCK_TENSORS;
    if (s->o.optim.kind != SGT_MUON || tensor < 2 || tensor >= 2 + in_blocks) return -1;
    return linear[(tensor - 2) % SGT_BLOCK_TENSORS] - 1;
}

size_t sgt_cpu_second(const sgt_cpu_shape *s, size_t tensor)
{
    size_t tensors = sgt_model_tensors(&s->o.model), flat = sgt_model_floats(&s->o.model),
           without = 0;
    sgt_tensor t, next;
    for (size_t i = 0; i < tensor && i < tensors; i++) {
        if (sgt_cpu_by_muon(s, i) < 0) continue;
        sgt_model_tensor(&s->o.model, i, &t);
        sgt_model_tensor(&s->o.model, i + 1, &next); /* the bias of that matrix */
        without += next.offset - t.offset;
    }
    if (tensor >= tensors) return flat - without;
    sgt_model_tensor(&s->o.model, tensor, &t);
    return t.offset - without;
}

/* Return the size of the weight matrix `linear` (an SGT_LINEAR_*), and the number format in which
 * Muon computes with it. */
static sgt_muon_shape shape_of(const sgt_cpu_shape *s, int linear)
{
    static const size_t rows[] =
        {[SGT_LINEAR_QKV] = 1, [SGT_LINEAR_PROJ] = 1, [SGT_LINEAR_FC] = 1, [SGT_LINEAR_FCPROJ] = 4},
                        columns[] = {[SGT_LINEAR_QKV] = 3,
                                     [SGT_LINEAR_PROJ] = 1,
                                     [SGT_LINEAR_FC] = 4,
                                     [SGT_LINEAR_FCPROJ] = 1};
    return (sgt_muon_shape){.rows = rows[linear] * s->C,
                            .columns = columns[linear] * s->C,
                            .rounding = s->rounding,
                            .format = s->format,
                            .bf16 = s->bf16};
}

size_t sgt_cpu_muon_memory(const sgt_cpu_shape *s)
{
    size_t most = 0;
    for (int i = 0; i < SGT_LINEAR_BLOCK; i++) {
        sgt_muon_shape m = shape_of(s, i);
        size_t bytes = sgt_muon_memory(&m);
        if (bytes > most) most = bytes;
    }
    return most;
}

int sgt_cpu_muon_plan(sgt_cpu_backend *c, sgt_error *err)
{
    int rc = SGT_OK;
    for (int i = 0; i < SGT_LINEAR_BLOCK && c->buf.muon && rc == SGT_OK; i++) {
        sgt_muon_shape m = shape_of(&c->shape, i);
        m.memory = c->buf.muon;
        m.scratch = c->buf.products;
        rc = sgt_muon_plan(&c->muon[i], &m, c->shape.o.threads, err);
    }
    return rc;
}

void sgt_cpu_muon_update(sgt_cpu_backend *c, double lr, double scale)
{
    const sgt_cpu_buffers *b = &c->buf;
    const sgt_cpu_update *u = &c->update;
    const sgt_muon_update o = sgt_optim_muon(&c->shape.o.optim, lr, scale);
    if (!b->muon) return;
    for (size_t i = 0; i < u->piece_count; i++) {
        const sgt_cpu_piece *p = u->pieces + i;
        if (!p->muon || !p->first) continue;
        sgt_muon_run(c->muon[p->linear], b->params + p->offset, (float *)b->m + p->offset,
                     b->grads + p->offset, &o);
    }
#pragma omp parallel for num_threads(c->shape.o.threads) schedule(static)
    for (size_t i = 0; i < u->piece_count; i++)
        if (u->pieces[i].muon) sgt_cpu_take_weights(c, u->pieces[i].offset, u->pieces[i].count);
}
