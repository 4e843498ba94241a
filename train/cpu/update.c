/* update.c: the end of a step: the gradients' norm, the loss scaler, the optimizer's pass.
 *
 * The pass reads and writes some 30 bytes for each parameter and computes next to nothing, while products compute and
 * leave memory idle. So, but for what the next step begins with, it is put off until that step's forward pass, and done
 * beside the products there (sgt_beside), each weight's before its product is reached, the token embedding's before the
 * head. Whoever else looks at parameters or moments settles it first: no bit depends on when it is done. */
#include <math.h>
#include <string.h>

#include "cpu/ranks.h"
#include "cpu_backend.h"

double sgt_cpu_squares(sgt_cpu_backend *c, int all)
{
    double sum = 0;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t i = 0; i < c->piece_count; i++) {
        const sgt_cpu_piece *p = c->pieces + i;
        c->squares[i] = p->squared && !all ? 0 : c->k->sum_squares(c->grads + p->offset, p->count);
    }
    for (size_t i = 0; i < c->piece_count; i++) sum += c->squares[i];
    return sum;
}

/* Products sum theirs in float, where those of finite numbers may be too large. */
static double squared_norm(sgt_cpu_backend *c)
{
    double sum = c->head_squares + c->token_squares + sgt_cpu_squares(c, 0);
    for (size_t i = 0; i < c->model.layers; i++) sum += c->blocks[i].squares;
    return isfinite(sum) ? sum : sgt_cpu_squares(c, 1);
}

/* n floats; copy: where AdamW is to put what products read, or NULL. */
static void optimize(const sgt_cpu_backend *c, float *p, float *m, float *v, const float *g, size_t n, int decay,
                     uint16_t *copy)
{
    if (c->optim.kind == SGT_SGD) c->k->sgd(p, m, g, n, &c->sgd[decay]);
    else c->k->adamw(p, m, v, g, n, &c->adamw[decay], copy);
}

/* A piece; where AdamW does not write the copies for products, in parts that are still in the first-level cache when
 * they are made. */
static void update_piece(void *backend, size_t i)
{
    sgt_cpu_backend *c = backend;
    const sgt_cpu_piece *p = c->pieces + (c->turn + i) % c->piece_count;
    int at_once = c->bf16 && c->optim.kind == SGT_ADAMW;
    size_t most = at_once ? p->count : SGT_UPDATE_FLOATS;
    for (size_t at = p->offset, end = at + p->count, n; at < end; at += n) {
        n = end - at < most ? end - at : most;
        optimize(c, c->params + at, c->m + at, c->v ? c->v + at : NULL, c->grads + at, n, p->decay,
                 at_once ? (uint16_t *)c->weights + at : NULL);
        if (!at_once) sgt_cpu_take_weights(c, at, n);
    }
    if (c->threads == 1) sgt_cpu_ranks_updated(c, i + 1); /* with more those before it may still be at work */
}

void sgt_cpu_settle_to(sgt_cpu_backend *c, const sgt_cpu_block *l, size_t tensor)
{
    sgt_beside_finish(&c->pending, l->shares[tensor], c->threads);
    sgt_cpu_ranks_updated(c, c->pending.next);
    sgt_cpu_ranks_await_tensor(c, l, tensor);
}

void sgt_cpu_settle(sgt_cpu_backend *c)
{
    sgt_beside_finish(&c->pending, SIZE_MAX, c->threads);
    sgt_cpu_ranks_updated(c, c->pending.next);
    sgt_cpu_ranks_await_all(c);
    c->behind = 0;
}

/* One thread alone would do the same later. Ranks on several machines send what is new, at once. Where a test
 * overwrites what is no longer used, gradients would be gone. */
int sgt_cpu_puts_off(const sgt_cpu_backend *c)
{
    return !c->scrub && (c->group ? c->sharing : c->threads > 1);
}

static void begin_update(sgt_cpu_backend *c, uint64_t updates, double lr, double scale)
{
    for (int decay = 0; decay < 2; decay++) {
        c->adamw[decay] = sgt_optim_adamw(&c->optim, updates, lr, scale, decay);
        c->sgd[decay] = sgt_optim_sgd(&c->optim, lr, scale, decay);
    }
    c->pending = (sgt_beside){.share = update_piece, .of = c, .count = c->piece_count, .rank = (unsigned)c->rank};
    if ((c->behind = sgt_cpu_puts_off(c))) sgt_cpu_settle_to(c, c->blocks, SGT_LN1_B);
    else sgt_cpu_settle(c);
}

const float *sgt_cpu_token(const sgt_cpu_backend *c, int32_t id, float *p, float *m, float *v)
{
    size_t at = (size_t)id * c->C;
    if (!c->behind) return c->params + at;
    memcpy(p, c->params + at, c->C * sizeof *p);
    memcpy(m, c->m + at, c->C * sizeof *m);
    if (c->v) memcpy(v, c->v + at, c->C * sizeof *v);
    for (size_t i = 0, n = c->C; i < c->C; i += n, n = c->C - i) { /* a row may be of two ranks */
        const float *g = sgt_cpu_ranks_summed(c, at + i, &n);
        if (n > c->C - i) n = c->C - i;
        optimize(c, p + i, m + i, v + i, g, n, 1, NULL);
    }
    return p;
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

int sgt_cpu_update(sgt_backend *b, uint64_t step, double lr, sgt_error *err)
{
    sgt_cpu_backend *c = (sgt_cpu_backend *)b;
    if (c->fresh) return sgt_fail(err, SGT_EUSAGE, "backend: update without a micro-step");
    double squares;
    int rc = c->group ? sgt_cpu_ranks_reduce(c, &squares, err) : (squares = squared_norm(c), SGT_OK);
    if (rc < 0) return rc;
    /* Gradients hold the sum times `nominal`; they should be the sum over the targets that counted. */
    double correction = c->counted ? 1 / (c->nominal * (double)c->counted) : 0;
    double norm = sqrt(squares) * correction, scale = correction * sgt_optim_clip(&c->optim, norm);
    int overflow = !isfinite(norm); /* such a step never reaches the parameters, in any precision */
    c->last_metrics = (sgt_step_metrics){.loss = c->counted ? c->loss_sum / (double)c->counted : 0,
                                         .grad_norm = norm,
                                         .loss_scale = (double)c->scaler.scale};
    int dropped = overflow || is_spike(c, norm);
    if (!dropped) begin_update(c, step - c->scaler.skipped, lr, scale);
    if (c->group && (rc = sgt_cpu_ranks_gather(c, !dropped, err)) < 0) return rc;
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
