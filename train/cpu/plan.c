/* plan.c: opens the CPU backend: it checks the options, computes sizes, allocates memory and plans
 * matrix products. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/cpu.h"
#include "loader/base/file.h"
#include "train/cache.h"
#include "train/cpu/cpu_backend.h"
#include "train/log/metrics.h"

/* Plan the matrix products for one weight matrix, which have the shapes
 *   f   for the output
 *   dx  for the gradient of the input
 *   dw  for the gradient of the weight (two plans: one overwrites the gradient, one adds to it) */
static int plan(sgt_cpu_linear *g, const sgt_cpu_backend *c, sgt_gemm_shape f, sgt_gemm_shape dx,
                sgt_gemm_shape dw, sgt_error *err)
{
    int rc;
    f.bf16 = dx.bf16 = dw.bf16 = c->shape.bf16;
    f.scratch = dx.scratch = dw.scratch = c->buf.products;
    /* With several ranks, do not sum squares in these products: the norm must be computed after the
     * gradients have been summed over the ranks. */
    dw.squares = !c->group;
    if ((rc = sgt_gemm_plan(&g->forward, &f, c->shape.o.threads, err)) < 0 ||
        (rc = sgt_gemm_plan(&g->dx, &dx, c->shape.o.threads, err)) < 0 ||
        (rc = sgt_gemm_plan(&g->dw[0], &dw, c->shape.o.threads, err)) < 0)
        return rc;
    dw.accumulate = 1;
    return sgt_gemm_plan(&g->dw[1], &dw, c->shape.o.threads, err);
}

/* Plan y = x W + b, with x (N, in), W (in, out) and y (N, out), and the matrix products of its
 * backward pass. */
static int plan_linear(sgt_cpu_linear *g, const sgt_cpu_backend *c, size_t in, size_t out,
                       sgt_error *err)
{
    size_t n = c->shape.N;
    sgt_gemm_shape f = {.m = n, .n = out, .k = in, .lda = in, .ldb = out, .ldc = out, .bias = 1};
    sgt_gemm_shape dx = {
        .m = n, .n = in, .k = out, .trans_b = 1, .lda = out, .ldb = out, .ldc = in};
    sgt_gemm_shape dw = {
        .m = in, .n = out, .k = n, .trans_a = 1, .lda = in, .ldb = out, .ldc = out};
    return plan(g, c, f, dx, dw, err);
}

/* Plan logits = x W^T for a chunk of n rows, with x (n, C), W (V, C) and logits (n, V), and the
 * matrix products of its backward pass. W is the head's weight: wte if the head is tied to it,
 * otherwise a matrix of the same shape. */
static int plan_head(sgt_cpu_linear *g, const sgt_cpu_backend *c, size_t n, sgt_error *err)
{
    size_t V = c->shape.V, C = c->shape.C, ld = c->shape.ldv;
    sgt_gemm_shape f = {.m = n, .n = V, .k = C, .trans_b = 1, .lda = C, .ldb = C, .ldc = ld};
    sgt_gemm_shape dx = {.m = n, .n = C, .k = V, .lda = ld, .ldb = C, .ldc = C};
    sgt_gemm_shape dw = {.m = V, .n = C, .k = n, .trans_a = 1, .lda = ld, .ldb = C, .ldc = C};
    return plan(g, c, f, dx, dw, err);
}

static int plan_products(sgt_cpu_backend *c, sgt_error *err)
{
    int rc;
    size_t C = c->shape.C;
    sgt_cpu_linear *g = c->linear;
    if ((rc = plan_linear(&g[SGT_LINEAR_QKV], c, C, 3 * C, err)) < 0 ||
        (rc = plan_linear(&g[SGT_LINEAR_PROJ], c, C, C, err)) < 0 ||
        (rc = plan_linear(&g[SGT_LINEAR_FC], c, C, 4 * C, err)) < 0 ||
        (rc = plan_linear(&g[SGT_LINEAR_FCPROJ], c, 4 * C, C, err)) < 0)
        return rc;
    if (c->shape.own_head) return SGT_OK;
    if ((rc = plan_head(&g[SGT_LINEAR_HEAD], c, c->shape.head_rows, err)) < 0) return rc;
    return c->shape.head_last == c->shape.head_rows
               ? SGT_OK
               : plan_head(&g[SGT_LINEAR_HEAD_LAST], c, c->shape.head_last, err);
}

/* Divide each tensor into pieces, each of which one optimizer task updates. A piece belongs to a
 * single tensor, because weight decay applies to some tensors and not to others. */
static int cut_pieces(sgt_cpu_update *u, const sgt_cpu_shape *s, sgt_error *err)
{
    const sgt_model *m = &s->o.model;
    size_t n = 0;
    if (!(u->pieces = calloc(u->piece_count, sizeof *u->pieces)))
        return sgt_fail_memory(err, "backend");
    for (size_t i = 0; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_model_tensor(m, i, &t);
        size_t second = sgt_cpu_second(s, i);
        int linear = sgt_cpu_by_muon(s, i);
        for (size_t at = 0; at < t.count; at += SGT_PIECE)
            u->pieces[n++] =
                (sgt_cpu_piece){.offset = t.offset + at,
                                .count = t.count - at < SGT_PIECE ? t.count - at : SGT_PIECE,
                                .second = second + at,
                                .decay = t.dims > 1,
                                .squared = t.dims > 1 && i != 1,
                                .muon = linear >= 0,
                                .first = at == 0,
                                .linear = linear};
    }
    return SGT_OK;
}

/* Set `turn`, the index of the first piece after those of the token embedding, and `shares` of each
 * block: for each of its tensors, how many pieces an optimizer pass must have updated until the
 * whole tensor is updated. Only the pieces of this rank are counted. A pass begins at `turn`, and
 * updates the pieces of the token embedding last. */
static void count_shares(sgt_cpu_backend *c)
{
    sgt_tensor token;
    sgt_model_tensor(&c->shape.o.model, 0, &token);
    for (size_t i = 0; i < c->update.piece_count; i++)
        c->update.turn += c->update.pieces[i].offset < token.count;
    for (size_t k = 0, n = c->update.turn; k < (size_t)c->shape.o.model.layers * SGT_BLOCK_TENSORS;
         k++) {
        sgt_tensor t;
        sgt_model_tensor(&c->shape.o.model, 2 + k, &t);
        while (n < c->update.piece_count && c->update.pieces[n].offset < t.offset + t.count) n++;
        c->blocks[k / SGT_BLOCK_TENSORS].shares[k % SGT_BLOCK_TENSORS] = n - c->update.turn;
    }
}

static size_t tensor_offset(const sgt_model *m, size_t index)
{
    sgt_tensor t;
    sgt_model_tensor(m, index, &t);
    return t.offset;
}

static void decide_sizes(sgt_cpu_shape *s)
{
    const sgt_model *m = &s->o.model;
    size_t last = 2 + (size_t)SGT_BLOCK_TENSORS * m->layers;
    s->B = s->o.batch;
    s->T = s->o.seq;
    s->N = s->B * s->T;
    s->C = m->channels;
    s->H = m->heads;
    s->D = s->C / s->H;
    s->V = m->vocab;
    s->scale = (float)(1 / sqrt((double)s->D));
    s->ldv = (s->V + 15) / 16 * 16;
    s->tile = (s->N + 63) / 64;
    if (s->tile < 8) s->tile = 8;
    s->tiles = (s->N + s->tile - 1) / s->tile;
    s->scratch_floats = s->k->attention_scratch(s->T, s->D);
    if (s->bf16 && s->scratch_floats < s->C) s->scratch_floats = s->C;
    s->scratch_floats = (s->scratch_floats + 15) / 16 * 16;
    s->wpe = tensor_offset(m, 1);
    s->lnf_w = tensor_offset(m, last);
    s->lnf_b = tensor_offset(m, last + 1);
    s->head_w = m->untied ? tensor_offset(m, last + 2) : 0;
}

/* Decide whether sgt_head_run or planned matrix products compute the head. Divide the N rows into
 * chunks of equal size; only the last chunk may be smaller. */
static void decide_head(sgt_cpu_shape *s, sgt_head *head)
{
    *head = (sgt_head){.V = s->V, .C = s->C, .bf16 = s->bf16, .threads = s->o.threads};
    s->own_head = (s->bf16 || !s->rounding) && sgt_head_possible(head);
    size_t most = !s->own_head ? SGT_HEAD_ROWS : (size_t)SGT_OWN_HEAD_ROWS * (s->bf16 ? 2 : 1);
    size_t chunks = (s->N + most - 1) / most;
    head->n = s->head_rows = (s->N + chunks - 1) / chunks;
    s->head_last = s->N - (s->N - 1) / s->head_rows * s->head_rows;
}

static void find_tensors(sgt_cpu_backend *c)
{
    const sgt_model *m = &c->shape.o.model;
    for (size_t i = 0; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_model_tensor(m, i, &t);
        c->update.piece_count += (t.count + SGT_PIECE - 1) / SGT_PIECE;
    }
    for (uint32_t l = 0; l < m->layers; l++) {
        c->blocks[l].layer = l;
        for (size_t k = 0; k < SGT_BLOCK_TENSORS; k++)
            c->blocks[l].at[k] = tensor_offset(m, 2 + l * SGT_BLOCK_TENSORS + k);
    }
}

static void decide_recompute(sgt_cpu_backend *c, const sgt_backend_options *o)
{
    for (sgt_cpu_block *l = c->blocks; l < c->blocks + o->model.layers; l++) {
        l->recompute = sgt_recompute_at(o, (size_t)(l - c->blocks));
        if (l->recompute == SGT_RECOMPUTE_NONE) continue;
        if (!c->share_cheap) c->share_cheap = l;
        if (!c->share_inside && l->recompute == SGT_RECOMPUTE_BLOCK) c->share_inside = l;
        c->share_last = l;
    }
}

/* Return the number of bytes in the buffers of all ranks on this machine. If the sizes could
 * overflow integers, return a rough estimate that is computed in floating point. */
static double measure(sgt_cpu_backend *c)
{
    double need =
        4.0 * (double)c->shape.N * (double)c->shape.C * 16 * (c->shape.o.model.layers + 1);
    if (need >= 0x1p60) return need;
    sgt_cpu_lay_out(c);
    return (double)c->buf.arena.used * (double)c->shape.ranks_here;
}

/* Return an error if the memory does not suffice. Without this check, the out-of-memory killer
 * would kill the process while it prefaults its memory. */
static int check_memory(sgt_cpu_backend *c, sgt_error *err)
{
    double need = measure(c), available = (double)sgt_memory_available();
    if (need <= available) return SGT_OK;
    return sgt_fail(err, SGT_ENOMEM,
                    "the model and its step%s need %.1f GiB of memory, but only %.1f GiB is free",
                    c->shape.ranks_here > 1 ? ", for all ranks," : "", need / 0x1p30,
                    available / 0x1p30);
}

void sgt_cpu_prefault(char *p, size_t n, int threads)
{
    /* each thread prefaults 512 pages (2 MiB, the size of a huge page) at a time */
#pragma omp parallel for num_threads(threads) schedule(dynamic, 512)
    for (size_t i = 0; i < n; i += 4096) ((volatile char *)p)[i] = 0;
}

static int map_arena(sgt_cpu_backend *c, sgt_error *err)
{
    int rc = sgt_arena_map(&c->buf.arena, c->buf.arena.used, 0, err);
    if (rc < 0) return rc;
    /* so that no step takes page faults */
    sgt_cpu_prefault(c->buf.arena.base, c->buf.arena.size, c->shape.o.threads);
    sgt_cpu_lay_out(c);
    return SGT_OK;
}

/* Set base.level to the name of the kernels in use, because the last bits of the results depend on
 * it. If the CPU rounds operands to the requested precision but multiplies them in float32, report
 * that. */
static void name_level(sgt_cpu_backend *c, const sgt_notice *notice)
{
    int n = snprintf(c->report.level, sizeof c->report.level, "%s%s", c->shape.k->level,
                     c->shape.bf16       ? "/bf16"
                     : c->shape.rounding ? "/rounded"
                                         : "");
    if (c->shape.ranks > 1)
        snprintf(c->report.level + n, sizeof c->report.level - (size_t)n, ", %u ranks",
                 (unsigned)c->shape.ranks);
    c->base.level = c->report.level;
    if (c->shape.rounding && !c->shape.bf16)
        sgt_say(notice,
                "--precision %s: this CPU rounds operands to it and multiplies them in fp32",
                c->shape.format == SGT_FORMAT_FP16 ? "fp16" : "bf16");
}

static int check_options(const sgt_backend_options *o, sgt_error *err)
{
    int rc = sgt_model_check(&o->model, "model", err);
    if (rc < 0) return rc;
    if (o->batch < 1 || o->seq < 1 || o->seq > o->model.positions || o->threads < 1)
        return sgt_fail(
            err, SGT_EUSAGE,
            "backend: invalid shape: %u rows of %u tokens on %d threads, with %u positions",
            o->batch, o->seq, o->threads, o->model.positions);
    if (!(o->dropout >= 0 && (float)o->dropout < 1))
        return sgt_fail(err, SGT_EUSAGE, "--dropout %g: must be at least 0 and below 1",
                        (double)o->dropout);
    if (o->precision == SGT_PRECISION_TF32)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "--precision tf32: no CPU supports it (use fp32, or --device cuda)");
    return SGT_OK;
}

/* Copy the options to `s`, choose the kernels, and decide whether operands are rounded. */
static void choose_kernels(sgt_cpu_shape *s, const sgt_backend_options *o)
{
    s->o = *o;
    s->o.optim.bf16_moments &= o->optim.kind == SGT_ADAMW;
    s->o.accum = o->accum ? o->accum : 1;
    s->rounding = o->precision == SGT_PRECISION_BF16 || o->precision == SGT_PRECISION_FP16;
    s->format = o->precision == SGT_PRECISION_FP16 ? SGT_FORMAT_FP16 : SGT_FORMAT_BF16;
    s->bf16 = o->precision == SGT_PRECISION_BF16 && sgt_gemm_has_bf16();
    s->ranks = s->ranks_here = 1;
    s->k = s->bf16 ? sgt_kernels_bf16() : sgt_kernels_cpu();
    s->attention_rounds = s->k != sgt_kernels_cpu();
}

static void begin_step(sgt_cpu_step *s, const sgt_backend_options *o)
{
    s->fresh = 1;
    s->scaler.scale = 1;
    if (o->precision == SGT_PRECISION_FP16)
        s->scaler.scale = o->loss_scale > 0 ? (float)o->loss_scale : 65536;
}

/* Create a backend and compute all sizes, without allocating buffers. */
static int new_backend(sgt_cpu_backend **out, const sgt_backend_options *o, sgt_error *err)
{
    int rc = check_options(o, err);
    if (rc < 0) return rc;
    sgt_cpu_backend *c = calloc(1, sizeof *c);
    if (c) c->blocks = calloc(o->model.layers, sizeof *c->blocks);
    if (!c || !c->blocks) {
        free(c);
        return sgt_fail_memory(err, "backend");
    }
    c->base = sgt_cpu_calls;
    c->base.put_scaler = sgt_cpu_put_scaler;
    c->base.get_scaler = sgt_cpu_get_scaler;
    c->report.trace = o->trace;
    choose_kernels(&c->shape, o);
    begin_step(&c->step, o);
    decide_sizes(&c->shape);
    decide_head(&c->shape, &c->head);
    find_tensors(c);
    decide_recompute(c, o);
    if ((rc = sgt_cpu_ranks_new(c, o->ranks, err)) < 0) sgt_cpu_close(&c->base);
    else *out = c;
    return rc;
}

int sgt_cpu_backend_estimate(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                             size_t *count, uint64_t *bytes, sgt_error *err)
{
    sgt_cpu_backend *c;
    int rc = new_backend(&c, o, err);
    if (rc < 0) return rc;
    double need = measure(c);
    if (c->report.kinds == 0)
        rc = sgt_fail(err, SGT_ENOMEM,
                      "the model and its step would need more than %.0f GiB of memory (use a "
                      "smaller --model, --batch-size or --seq-len)",
                      need / 0x1p30);
    memcpy(kinds, c->report.memory, c->report.kinds * sizeof *kinds);
    *count = c->report.kinds;
    *bytes = c->buf.arena.used;
    sgt_cpu_close(&c->base);
    return rc;
}

/* Each run measures a slightly different peak speed. So that the MFUs of several runs are
 * comparable, the first measured peak is stored in the cache folder, and later runs use the stored
 * peak. It is replaced by a peak that is more than PEAK_FASTER times as high, because then the
 * stored peak was probably measured while other programs were using the cores. */
#define PEAK_FASTER 1.1

/* Replace base.peak_flops, which was just measured, with the peak stored for this machine. If no
 * peak is stored, or if the measured one is more than PEAK_FASTER times as high, store the measured
 * peak instead. If there is no cache folder, do nothing. */
static void keep_peak(sgt_cpu_backend *c)
{
    const char *folder = c->shape.o.cache;
    char key[400], host[65] = "";
    if (!folder) return;
    gethostname(host, sizeof host - 1);
    snprintf(key, sizeof key, "%s, %s, %s", host, c->report.peak_name, c->shape.k->level);
    json_t *json = sgt_cache_read(folder, "peaks.json");
    double kept = json_number_value(json_object_get(json, key));
    if (kept > 0 && c->base.peak_flops <= PEAK_FASTER * kept) c->base.peak_flops = kept;
    else if (sgt_make_folders(folder, NULL) == SGT_OK)
        (void)sgt_cache_write(folder, "peaks.json", key, json_real(c->base.peak_flops), NULL);
    json_decref(json);
}

/* Set base.peak_flops to the peak speed of matrix products, with which the MFU is computed. The
 * measurement takes 15 ms, or up to 100 ms if other programs use the cores. */
static void find_peak(sgt_cpu_backend *c)
{
    const sgt_cpu_shape *s = &c->shape;
    c->base.peak_flops = sgt_gemm_peak(s->bf16, s->o.threads);
    if (!(c->base.peak_flops > 0)) return;
    snprintf(c->report.peak_name, sizeof c->report.peak_name, "%s, %s, %d thread%s",
             sgt_cpu_model(), s->bf16 ? "bf16" : "fp32", s->o.threads,
             s->o.threads == 1 ? "" : "s");
    c->base.peak_name = c->report.peak_name;
    keep_peak(c);
}

int sgt_cpu_backend_open(sgt_backend **out, const sgt_backend_options *o, sgt_error *err)
{
    sgt_cpu_backend *c;
    int rc = new_backend(&c, o, err);
    if (rc < 0) return rc;
    if ((rc = check_memory(c, err)) < 0 || (rc = cut_pieces(&c->update, &c->shape, err)) < 0 ||
        (rc = sgt_cpu_ranks_open(c, err)) < 0)
        goto fail;
    /* measure the peak before the arena is mapped, so that the memory for the measurement, which is
     * freed again, does not increase the peak memory of the process */
    find_peak(c);
    if ((rc = map_arena(c, err)) < 0 || (rc = plan_products(c, err)) < 0 ||
        (rc = sgt_cpu_muon_plan(c, err)) < 0)
        goto fail;
    count_shares(c);
    name_level(c, &o->notice);
    c->base.library = SGT_GEMM_LIBRARY;
    *out = &c->base;
    return SGT_OK;
fail:
    sgt_cpu_close(&c->base);
    return rc;
}
