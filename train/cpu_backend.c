/* cpu_backend.c: the CPU behind backend.h: set-up, state in and out, the optimizer's pass. The step itself is in
 * cpu_forward.c and cpu_backward.c. */
#include "cpu_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"

static void close_backend(sgt_backend *b)
{
    sgt_cpu_backend *c = (sgt_cpu_backend *)b;
    if (!c) return;
    for (int i = 0; i < SGT_LINEARS; i++) {
        sgt_gemm_free(c->linear[i].forward);
        sgt_gemm_free(c->linear[i].dx);
        sgt_gemm_free(c->linear[i].dw[0]);
        sgt_gemm_free(c->linear[i].dw[1]);
    }
    sgt_arena_unmap(&c->arena);
    free(c->blocks);
    free(c->pieces);
    free(c);
}

/* ---- state ---- */

static float *state_at(sgt_cpu_backend *c, sgt_state what, size_t tensor, size_t first, size_t count, sgt_error *err)
{
    float *const flat[] = {c->params, c->m, c->v, c->grads};
    sgt_tensor t;
    if (tensor >= sgt_model_tensors(&c->model) || (size_t)what >= sizeof flat / sizeof *flat) {
        sgt_fail(err, SGT_EUSAGE, "backend: no tensor %zu of state %d", tensor, (int)what);
        return NULL;
    }
    sgt_model_tensor(&c->model, tensor, &t);
    if (first > t.count || count > t.count - first) {
        sgt_fail(err, SGT_EUSAGE, "backend: floats %zu to %zu of %s, which has %zu", first, first + count, t.name,
                 t.count);
        return NULL;
    }
    return flat[what] + t.offset + first;
}

static int put(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count, const float *from,
               sgt_error *err)
{
    float *at = state_at((sgt_cpu_backend *)b, what, tensor, first, count, err);
    if (!at) return SGT_EUSAGE;
    memcpy(at, from, count * sizeof *at);
    return SGT_OK;
}

static int get(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count, float *to, sgt_error *err)
{
    const float *at = state_at((sgt_cpu_backend *)b, what, tensor, first, count, err);
    if (!at) return SGT_EUSAGE;
    memcpy(to, at, count * sizeof *at);
    return SGT_OK;
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
    (void)step;
    (void)micro;
    if (!(scale > 0)) return sgt_fail(err, SGT_EUSAGE, "backend: a gradient scale of %g", scale);
    c->counted += sgt_cpu_load(c, rows);
    sgt_cpu_forward(c);
    c->loss_sum += sgt_cpu_head(c, scale);
    sgt_cpu_backward(c);
    c->nominal = scale;
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

static int update(sgt_backend *b, uint64_t step, double lr, sgt_error *err)
{
    sgt_cpu_backend *c = (sgt_cpu_backend *)b;
    if (c->fresh) return sgt_fail(err, SGT_EUSAGE, "backend: update without a micro-step");
    /* Gradients hold the sum times `nominal`; they should be the sum over the targets that counted. */
    double correction = c->counted ? 1 / (c->nominal * (double)c->counted) : 0;
    double norm = sqrt(squared_norm(c)) * correction, scale = correction * sgt_optim_clip(&c->optim, norm);
    sgt_adamw a[2] = {sgt_optim_adamw(&c->optim, step, lr, scale, 0), sgt_optim_adamw(&c->optim, step, lr, scale, 1)};
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t i = 0; i < c->piece_count; i++) {
        const sgt_cpu_piece *p = c->pieces + i;
        size_t at = p->offset;
        c->k->adamw(c->params + at, c->m + at, c->v + at, c->grads + at, p->count, &a[p->decay]);
    }
    c->last = step;
    c->last_metrics = (sgt_step_metrics){
        .loss = c->counted ? c->loss_sum / (double)c->counted : 0, .grad_norm = norm, .loss_scale = 1};
    c->loss_sum = 0;
    c->counted = 0;
    c->fresh = 1;
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
    *targets = sgt_cpu_load(c, rows);
    sgt_cpu_forward(c);
    *loss = sgt_cpu_head(c, 0);
    return SGT_OK;
}

/* ---- set-up ---- */

/* y (n, out) = x (n, in) W (in, out) + b, and its two backward products. */
static int plan_linear(sgt_cpu_linear *g, size_t n, size_t in, size_t out, int threads, sgt_error *err)
{
    int rc;
    sgt_gemm_shape f = {.m = n, .n = out, .k = in, .lda = in, .ldb = out, .ldc = out, .bias = 1};
    sgt_gemm_shape dx = {.m = n, .n = in, .k = out, .trans_b = 1, .lda = out, .ldb = out, .ldc = in};
    sgt_gemm_shape dw = {.m = in, .n = out, .k = n, .trans_a = 1, .lda = in, .ldb = out, .ldc = out};
    if ((rc = sgt_gemm_plan(&g->forward, &f, threads, err)) < 0 ||
        (rc = sgt_gemm_plan(&g->dx, &dx, threads, err)) < 0 || (rc = sgt_gemm_plan(&g->dw[0], &dw, threads, err)) < 0)
        return rc;
    dw.accumulate = 1;
    return sgt_gemm_plan(&g->dw[1], &dw, threads, err);
}

/* logits (n, V) = x (n, C) wte^T (C, V): the head is tied, so its weight lies the other way round. */
static int plan_head(sgt_cpu_linear *g, const sgt_cpu_backend *c, size_t n, sgt_error *err)
{
    int rc;
    size_t V = c->V, C = c->C, ld = c->ldv;
    sgt_gemm_shape f = {.m = n, .n = V, .k = C, .trans_b = 1, .lda = C, .ldb = C, .ldc = ld};
    sgt_gemm_shape dx = {.m = n, .n = C, .k = V, .lda = ld, .ldb = C, .ldc = C};
    sgt_gemm_shape dw = {.m = V, .n = C, .k = n, .trans_a = 1, .lda = ld, .ldb = C, .ldc = C};
    if ((rc = sgt_gemm_plan(&g->forward, &f, c->threads, err)) < 0 ||
        (rc = sgt_gemm_plan(&g->dx, &dx, c->threads, err)) < 0 ||
        (rc = sgt_gemm_plan(&g->dw[0], &dw, c->threads, err)) < 0)
        return rc;
    dw.accumulate = 1;
    return sgt_gemm_plan(&g->dw[1], &dw, c->threads, err);
}

static int plan_products(sgt_cpu_backend *c, sgt_error *err)
{
    int rc;
    size_t C = c->C, N = c->N;
    sgt_cpu_linear *g = c->linear;
    if ((rc = plan_linear(&g[SGT_LINEAR_QKV], N, C, 3 * C, c->threads, err)) < 0 ||
        (rc = plan_linear(&g[SGT_LINEAR_PROJ], N, C, C, c->threads, err)) < 0 ||
        (rc = plan_linear(&g[SGT_LINEAR_FC], N, C, 4 * C, c->threads, err)) < 0 ||
        (rc = plan_linear(&g[SGT_LINEAR_FCPROJ], N, 4 * C, C, c->threads, err)) < 0 ||
        (rc = plan_head(&g[SGT_LINEAR_HEAD], c, c->head_rows, err)) < 0)
        return rc;
    return c->head_last == c->head_rows ? SGT_OK : plan_head(&g[SGT_LINEAR_HEAD_LAST], c, c->head_last, err);
}

/* Tasks of the optimizer: every tensor in pieces, so that each task knows whether it decays. */
static int cut_pieces(sgt_cpu_backend *c, sgt_error *err)
{
    size_t n = 0;
    if (!(c->pieces = calloc(c->piece_count, sizeof *c->pieces)))
        return sgt_fail(err, SGT_ENOMEM, "backend: out of memory");
    for (size_t i = 0; i < sgt_model_tensors(&c->model); i++) {
        sgt_tensor t;
        sgt_model_tensor(&c->model, i, &t);
        for (size_t at = 0; at < t.count; at += SGT_PIECE)
            c->pieces[n++] =
                (sgt_cpu_piece){t.offset + at, t.count - at < SGT_PIECE ? t.count - at : SGT_PIECE, t.dims > 1};
    }
    return SGT_OK;
}

static size_t tensor_offset(const sgt_model *m, size_t index)
{
    sgt_tensor t;
    sgt_model_tensor(m, index, &t);
    return t.offset;
}

static void decide_sizes(sgt_cpu_backend *c, const sgt_backend_options *o)
{
    const sgt_model *m = &c->model;
    size_t tensors = sgt_model_tensors(m);
    c->B = o->batch;
    c->T = o->seq;
    c->N = c->B * c->T;
    c->C = m->channels;
    c->H = m->heads;
    c->D = c->C / c->H;
    c->V = m->vocab;
    c->scale = (float)(1 / sqrt((double)c->D));
    c->ldv = (c->V + 15) / 16 * 16;
    c->tile = (c->N + 63) / 64;
    if (c->tile < 8) c->tile = 8;
    c->tiles = (c->N + c->tile - 1) / c->tile;
    size_t chunks = (c->N + SGT_HEAD_ROWS - 1) / SGT_HEAD_ROWS;
    c->head_rows = (c->N + chunks - 1) / chunks;
    c->head_last = c->N - (c->N - 1) / c->head_rows * c->head_rows;
    c->scratch_floats = (c->k->attention_scratch(c->T, c->D) + 15) / 16 * 16;
    c->wpe = tensor_offset(m, 1);
    c->lnf_w = tensor_offset(m, tensors - 2);
    c->lnf_b = tensor_offset(m, tensors - 1);
    for (size_t i = 0; i < tensors; i++) {
        sgt_tensor t;
        sgt_model_tensor(m, i, &t);
        c->piece_count += (t.count + SGT_PIECE - 1) / SGT_PIECE;
    }
    for (size_t l = 0; l < m->layers; l++)
        for (size_t k = 0; k < SGT_BLOCK_TENSORS; k++)
            c->blocks[l].at[k] = tensor_offset(m, 2 + l * SGT_BLOCK_TENSORS + k);
}

/* Said before anything is taken, or the system would kill us while the pages are touched. Sizes that no machine has are
 * caught in floating point, where they cannot overflow. */
static int measure(sgt_cpu_backend *c, sgt_error *err)
{
    double need = 4.0 * (double)c->N * (double)c->C * 16 * (c->model.layers + 1),
           available = (double)sgt_memory_available();
    if (need < 0x1p60) {
        sgt_cpu_lay_out(c);
        need = (double)c->arena.used;
    }
    if (need <= available) return SGT_OK;
    return sgt_fail(err, SGT_ENOMEM,
                    "the model and its step need %.1f GiB of memory, %.1f GiB are to be had (a smaller "
                    "--batch-size, --seq-len or --model)",
                    need / 0x1p30, available / 0x1p30);
}

static int map_arena(sgt_cpu_backend *c, sgt_error *err)
{
    int rc = sgt_arena_map(&c->arena, c->arena.used, 1, err);
    if (rc < 0) return rc;
    sgt_cpu_lay_out(c);
    return SGT_OK;
}

int sgt_cpu_backend_open(sgt_backend **out, const sgt_backend_options *o, sgt_error *err)
{
    int rc = sgt_model_check(&o->model, "model", err);
    if (rc < 0) return rc;
    if (o->batch < 1 || o->seq < 1 || o->seq > o->model.positions || o->threads < 1)
        return sgt_fail(err, SGT_EUSAGE, "backend: %u rows of %u tokens on %d threads for a model of %u positions",
                        o->batch, o->seq, o->threads, o->model.positions);
    sgt_cpu_backend *c = calloc(1, sizeof *c);
    if (!c) return sgt_fail(err, SGT_ENOMEM, "backend: out of memory");
    c->base = (sgt_backend){.name = "cpu",
                            .close = close_backend,
                            .put = put,
                            .get = get,
                            .micro_step = micro_step,
                            .update = update,
                            .metrics = metrics,
                            .eval = eval,
                            .memory = memory};
    c->model = o->model;
    c->optim = o->optim;
    c->threads = o->threads;
    c->fresh = 1;
    c->k = sgt_kernels_cpu();
    c->blocks = calloc(o->model.layers, sizeof *c->blocks);
    if (!c->blocks) {
        rc = sgt_fail(err, SGT_ENOMEM, "backend: out of memory");
        goto fail;
    }
    decide_sizes(c, o);
    if ((rc = measure(c, err)) < 0 || (rc = cut_pieces(c, err)) < 0 || (rc = plan_products(c, err)) < 0 ||
        (rc = map_arena(c, err)) < 0)
        goto fail;
    c->base.level = c->k->level;
    c->base.library = sgt_gemm_library();
    *out = &c->base;
    return SGT_OK;
fail:
    close_backend(&c->base);
    return rc;
}
