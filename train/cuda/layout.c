/* layout.c: computes sizes, and the layout of the CUDA backend's one allocation, counted by kind of
 * memory. It needs no device: the same code estimates memory before a run. */
#include <stdlib.h>
#include <string.h>

#include "train/cuda/cuda_backend.h"
#include "kernels/dropout.h"

#define ALIGN 256 /* alignment in bytes */
/* most positions of a micro-step; kernels use int for their indices, also slightly past the end */
#define MOST_POSITIONS (1 << 30)
/* multiple that V is padded to: 50,257 becomes 50,304, which gives the head's products whole
 * tiles */
#define VOCAB_MULTIPLE 128

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

/* ---- the flat arrays ---- */

/* Return the bucket of a tensor. The gradients of a bucket become complete at the same point of the
 * backward pass. */
static size_t bucket_of(const sgt_cuda_backend *c, size_t tensor, int vector)
{
    if (vector) return sgt_cuda_bucket_vectors(c);
    return tensor < 2 ? SGT_BUCKET_EMBEDDINGS
                      : SGT_BUCKET_BLOCKS + (tensor - 2) / SGT_BLOCK_TENSORS;
}

/* Compute where each tensor is. Matrices come first, because weight decay applies to the beginning
 * of the arrays; those of a layer are adjacent. Then come the vectors in the same order. Buckets
 * are padded so that every rank's part is aligned. */
static size_t assign_offsets(sgt_cuda_backend *c)
{
    size_t tensors = sgt_model_tensors(&c->model), at = 0, bucket = 0;
    for (int vectors = 0; vectors <= 1; vectors++) {
        for (size_t i = 0; i < tensors; i++) {
            sgt_tensor t;
            sgt_model_tensor(&c->model, i, &t);
            if ((t.dims == 1) != vectors) continue;
            for (; bucket < bucket_of(c, i, vectors); c->flat.bucket_at[++bucket] = at)
                at = round_up(at, c->shape.ranks * ALIGN / sizeof(float));
            int of_vocab = t.dims == 2 && t.dim[0] == c->shape.V && (i == 0 || i == tensors - 1);
            c->flat.tensor_at[i] = at;
            at +=
                round_up(of_vocab ? c->shape.rows_v * c->shape.C : t.count, ALIGN / sizeof(float));
        }
    }
    c->flat.decayed = c->flat.bucket_at[bucket];
    return c->flat.bucket_at[bucket + 1] = round_up(at, c->shape.ranks * ALIGN / sizeof(float));
}

static void find_tensors(sgt_cuda_backend *c)
{
    size_t tensors = sgt_model_tensors(&c->model), last = 2 + c->shape.L * SGT_BLOCK_TENSORS;
    c->flat.wte = c->flat.tensor_at[0];
    c->flat.wpe = c->flat.tensor_at[1];
    for (size_t l = 0; l < c->shape.L; l++)
        for (size_t i = 0; i < SGT_BLOCK_TENSORS; i++)
            c->buf.blocks[l].at[i] = c->flat.tensor_at[2 + l * SGT_BLOCK_TENSORS + i];
    c->flat.lnf_w = c->flat.tensor_at[last];
    c->flat.lnf_b = c->flat.tensor_at[last + 1];
    c->flat.head = c->model.untied ? c->flat.tensor_at[tensors - 1] : c->flat.wte;
}

static int check_options(const sgt_backend_options *o, sgt_error *err)
{
    int rc = sgt_model_check(&o->model, "model", err);
    if (rc < 0) return rc;
    if (o->batch < 1 || o->seq < 1 || o->seq > o->model.positions)
        return sgt_fail(err, SGT_EUSAGE,
                        "backend: %u rows of %u tokens for a model of %u positions", o->batch,
                        o->seq, o->model.positions);
    if ((uint64_t)o->batch * o->seq > MOST_POSITIONS)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "backend: %u rows of %u tokens, CUDA's kernels take at most %d tokens",
                        o->batch, o->seq, MOST_POSITIONS);
    if (o->optim.bf16_moments)
        return sgt_fail(err, SGT_EUNSUPPORTED, "--optimizer-state bf16: needs --device cpu");
    if (o->model.channels > 12672)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "model: %u channels, CUDA's LayerNorm takes at most 12672",
                        o->model.channels);
    return SGT_OK;
}

static void decide_recompute(sgt_cuda_backend *c)
{
    c->buf.share_cheap = c->buf.share_inside = c->buf.share_last = NULL;
    for (sgt_cuda_block *l = c->buf.blocks; l < c->buf.blocks + c->shape.L; l++) {
        l->recompute = sgt_recompute_at(&c->o, (size_t)(l - c->buf.blocks));
        if (l->recompute == SGT_RECOMPUTE_NONE) continue;
        if (!c->buf.share_cheap) c->buf.share_cheap = l;
        if (!c->buf.share_inside && l->recompute == SGT_RECOMPUTE_BLOCK) c->buf.share_inside = l;
        c->buf.share_last = l;
    }
}

int sgt_cuda_decide(sgt_cuda_backend *c, const sgt_backend_options *o, sgt_error *err)
{
    int rc = check_options(o, err);
    if (rc < 0) return rc;
    c->o = *o;
    c->model = o->model;
    c->shape.type = o->precision == SGT_PRECISION_BF16   ? SGT_BF16
                    : o->precision == SGT_PRECISION_FP16 ? SGT_F16
                                                         : SGT_F32;
    c->shape.width = c->shape.type == SGT_F32 ? 4 : 2;
    c->shape.ranks = sgt_ranks_size(o->ranks);
    c->shape.rank = o->ranks ? o->ranks->rank : 0;
    c->shape.B = o->batch;
    c->shape.T = o->seq;
    c->shape.N = c->shape.B * c->shape.T;
    c->shape.C = o->model.channels;
    c->shape.H = o->model.heads;
    c->shape.D = c->shape.C / c->shape.H;
    c->shape.L = o->model.layers;
    c->plan.variants = o->no_fuse ? 0 : o->variants;
    c->plan.written = !o->no_fuse && o->accum <= 1;
    c->plan.norm_rows = !o->no_fuse && sgt_cuda_layernorm_rows_serves(c->shape.type, c->shape.C);
    c->shape.V = o->model.vocab;
    c->shape.rows_v = o->no_pad_vocab ? c->shape.V : round_up(c->shape.V, VOCAB_MULTIPLE);
    /* so that rows are aligned to 16 bytes even without padding */
    c->shape.ldv = o->no_pad_vocab ? round_up(c->shape.V, 16 / c->shape.width) : c->shape.rows_v;
    if (!c->buf.blocks) c->buf.blocks = calloc(c->shape.L, sizeof *c->buf.blocks);
    if (!c->flat.tensor_at)
        c->flat.tensor_at = calloc(sgt_model_tensors(&c->model), sizeof *c->flat.tensor_at);
    if (!c->flat.bucket_at)
        c->flat.bucket_at = calloc(sgt_cuda_buckets(c) + 1, sizeof *c->flat.bucket_at);
    if (!c->buf.blocks || !c->flat.tensor_at || !c->flat.bucket_at)
        return sgt_fail_memory(err, "backend");
    c->flat.count = assign_offsets(c);
    c->flat.own = c->flat.count / c->shape.ranks;
    c->flat.own_decayed = c->flat.decayed / c->shape.ranks;
    if (c->o.optim.kind == SGT_MUON) {
        c->flat.muon_at = c->flat.bucket_at[SGT_BUCKET_BLOCKS] / c->shape.ranks;
        c->flat.muon_end = c->flat.bucket_at[SGT_BUCKET_BLOCKS + c->shape.L] / c->shape.ranks;
    }
    find_tensors(c);
    decide_recompute(c);
    return SGT_OK;
}

/* ---- the arena ---- */

static void *add_buffer(sgt_cuda_backend *c, size_t bytes)
{
    void *p = c->buf.arena ? c->buf.arena + c->buf.used : NULL;
    size_t whole = round_up(bytes, ALIGN);
    c->buf.used += whole;
    if (p) sgt_live_buffer_at(&c->live, p, whole, (unsigned)c->kinds);
    return p;
}

static void *numbers(sgt_cuda_backend *c, size_t count)
{
    return add_buffer(c, count * c->shape.width);
}
static float *floats(sgt_cuda_backend *c, size_t count)
{
    return add_buffer(c, count * sizeof(float));
}

/* End a kind of memory: it is counted as all bytes taken since the previous kind ended. */
static void kind(sgt_cuda_backend *c, const char *name)
{
    uint64_t before = 0;
    for (size_t i = 0; i < c->kinds; i++) before += c->memory[i].bytes;
    if (c->buf.used > before) c->memory[c->kinds++] = (sgt_memory_kind){name, c->buf.used - before};
}

/* Take a buffer for this block. If the block recomputes this activation, use the buffer of block
 * `first` instead, or take it now if this block is `first`. */
#define OWN(field, count, first) \
    (l->field = (first) && (first) != l ? (first)->field : numbers(c, count))
#define OWN_FLOATS(field, count, first) \
    (l->field = (first) && (first) != l ? (first)->field : floats(c, count))

static void add_block(sgt_cuda_backend *c, sgt_cuda_block *l)
{
    size_t N = c->shape.N, C = c->shape.C;
    const sgt_cuda_block *cheap = l->recompute == SGT_RECOMPUTE_NONE ? NULL : c->buf.share_cheap;
    const sgt_cuda_block *inside = l->recompute < SGT_RECOMPUTE_BLOCK ? NULL : c->buf.share_inside;
    OWN(ln1, N * C, cheap);
    OWN_FLOATS(mean1, N, inside);
    OWN_FLOATS(rstd1, N, inside);
    OWN(qkv, N * 3 * C, inside);
    OWN(att, N * C, inside);
    OWN_FLOATS(lse, N * c->shape.H, inside);
    OWN(mid, N * C, inside);
    OWN(ln2, N * C, cheap);
    OWN_FLOATS(mean2, N, inside);
    OWN_FLOATS(rstd2, N, inside);
    OWN(fc, N * 4 * C, inside);
    OWN(gelu, N * 4 * C, cheap);
    l->out = numbers(c, N * C);
    if (c->plan.path == SGT_PATH_NAIVE) OWN(probs, N * c->shape.H * c->shape.T, inside);
}

static void add_naive(sgt_cuda_backend *c)
{
    size_t NC = c->shape.N * c->shape.C;
    sgt_cuda_naive *n = &c->plan.naive;
    n->q = numbers(c, NC);
    n->k = numbers(c, NC);
    n->v = numbers(c, NC);
    n->o = numbers(c, NC);
    n->dq = numbers(c, NC);
    n->dk = numbers(c, NC);
    n->dv = numbers(c, NC);
    n->dscores = numbers(c, c->shape.N * c->shape.H * c->shape.T);
}

static void add_muon(sgt_cuda_backend *c)
{
    sgt_cuda_muon *u = &c->plan.muon;
    size_t C = c->shape.C, L = c->shape.L;
    u->x = numbers(c, L * sgt_cuda_muon_stride(4 * C * C));
    u->y = numbers(c, L * sgt_cuda_muon_stride(4 * C * C));
    u->a = numbers(c, L * sgt_cuda_muon_stride(C * C));
    u->b = numbers(c, L * sgt_cuda_muon_stride(C * C));
    kind(c, "Muon");
}

static void add_parameters(sgt_cuda_backend *c)
{
    int parts = c->shape.ranks > 1;
    c->flat.params = floats(c, c->flat.own);
    if (c->shape.type != SGT_F32) kind(c, "weights");
    c->flat.copy = c->shape.type == SGT_F32 && !parts ? c->flat.params : numbers(c, c->flat.count);
    c->flat.own_copy = c->shape.type == SGT_F32 ? NULL
                       : parts                  ? numbers(c, c->flat.own)
                                                : c->flat.copy;
    if (parts && c->shape.type != SGT_F32)
        c->flat.vectors = floats(c, c->flat.count - c->flat.decayed);
    kind(c, c->shape.type == SGT_F32 ? "weights" : "16-bit copies");
    c->flat.grads = floats(c, c->flat.count);
    c->flat.own_grads = parts ? floats(c, c->flat.own) : c->flat.grads;
    kind(c, "gradients");
    c->flat.m = floats(c, c->flat.own);
    c->flat.v = c->o.optim.kind == SGT_SGD
                    ? NULL
                    : floats(c, c->flat.own - (c->flat.muon_end - c->flat.muon_at));
    kind(c, "moments");
    if (c->o.optim.kind == SGT_MUON) add_muon(c);
}

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

static size_t scratch_bytes(const sgt_cuda_backend *c)
{
    size_t n = sgt_cuda_embed_sort_scratch(c->shape.N);
    n = most(n, sgt_cuda_embed_backward_scratch(c->shape.N, c->shape.C));
    n = most(n, sgt_cuda_layernorm_backward_scratch(c->shape.N, c->shape.C));
    if (c->plan.norm_rows)
        n = most(n, sgt_cuda_layernorm_rows_scratch(c->shape.type, c->shape.N, c->shape.C));
    n = most(n, sgt_cuda_bias_backward_scratch(c->shape.N, 4 * c->shape.C));
    n = most(n, c->o.optim.kind == SGT_MUON ? sgt_cuda_muon_scratch(c->shape.L) : 0);
    return most(n, sgt_cuda_grad_norm_scratch());
}

static void add_data(sgt_cuda_backend *c)
{
    c->buf.ids = add_buffer(c, c->shape.N * sizeof(int32_t));
    c->buf.targets = add_buffer(c, c->shape.N * sizeof(int32_t));
    c->buf.sorted = add_buffer(c, c->shape.N * sizeof(int32_t));
    c->buf.order = add_buffer(c, c->shape.N * sizeof(int32_t));
    if (c->o.documents) {
        c->buf.documents.start = add_buffer(c, c->shape.N * sizeof(int32_t));
        c->buf.documents.end = add_buffer(c, c->shape.N * sizeof(int32_t));
    }
    for (int i = 0; i < SGT_CUDA_SLOTS; i++) {
        c->buf.batch[i] = add_buffer(c, 2 * c->shape.N * sizeof(int32_t));
        if (c->o.documents) c->buf.starts[i] = add_buffer(c, c->shape.N * sizeof(int32_t));
    }
    c->buf.control = add_buffer(c, sizeof *c->buf.control);
    c->buf.eval_control = add_buffer(c, sizeof *c->buf.eval_control);
    c->buf.place = add_buffer(c, sizeof *c->buf.place);
    c->buf.outliers = add_buffer(c, sizeof *c->buf.outliers);
    kind(c, "data");
    /* a separate allocation, for matrix products */
    c->memory[c->kinds++] = (sgt_memory_kind){"workspace", SGT_CUDA_GEMM_WORKSPACE};
}

/* Return the address of cuDNN's workspace. If it fits, it shares the logits' memory: logits exist
 * only between the last attention of the forward pass and the first of the backward pass. */
static void *cudnn_space(sgt_cuda_backend *c)
{
    size_t bytes = c->plan.cudnn ? sgt_cudnn_attention_workspace(c->plan.cudnn) : 0;
    return bytes <= c->shape.N * c->shape.ldv * c->shape.width ? c->buf.logits
                                                               : add_buffer(c, bytes);
}

void sgt_cuda_lay_out(sgt_cuda_backend *c)
{
    size_t N = c->shape.N, C = c->shape.C;
    c->buf.used = c->kinds = 0;
    sgt_live_free(&c->live);
    add_parameters(c);
    c->buf.x0 = numbers(c, N * C);
    for (size_t i = 0; i < c->shape.L; i++) add_block(c, c->buf.blocks + i);
    c->buf.lnf = numbers(c, N * C);
    c->buf.meanf = floats(c, N);
    c->buf.rstdf = floats(c, N);
    kind(c, "activations");
    c->buf.dx = numbers(c, N * C);
    c->buf.dln = numbers(c, N * C);
    c->buf.dwide = numbers(c, N * 4 * C);
    c->buf.ddrop = c->o.dropout > 0 ? numbers(c, N * C) : NULL;
    kind(c, "activation gradients");
    c->buf.delta = floats(c, N * c->shape.H);
    if (c->plan.path == SGT_PATH_NAIVE) add_naive(c);
    kind(c, "attention");
    c->buf.logits = numbers(c, N * c->shape.ldv);
    c->buf.loss = floats(c, N);
    c->buf.row_lse = c->o.no_fuse ? floats(c, N) : NULL;
    c->buf.cudnn_space = cudnn_space(c);
    kind(c, "head");
    c->buf.scratch_bytes = scratch_bytes(c);
    c->buf.scratch = add_buffer(c, c->buf.scratch_bytes);
    if (!c->o.no_fuse)
        c->buf.beside_scratch = add_buffer(c, sgt_cuda_bias_backward_scratch(N, 4 * C));
    kind(c, "scratch");
    add_data(c);
    if (c->live.count) sgt_cuda_live(c);
    c->base.live = c->live.failed ? NULL : sgt_cuda_live_count;
}

/* ---- estimates before a run ---- */

/* Return the path that attention will probably use. Our kernels and cuDNN's have the same
 * estimate. */
static sgt_cuda_path likely_path(const sgt_backend_options *o, size_t D)
{
    if (o->attention == SGT_ATTENTION_NAIVE) return SGT_PATH_NAIVE;
    return sgt_cuda_attention_serves(D) ? SGT_PATH_OWN : SGT_PATH_NAIVE;
}

static int measure(sgt_cuda_backend *c, const sgt_backend_options *o, sgt_error *err)
{
    int rc = sgt_cuda_decide(c, o, err);
    if (rc < 0) return rc;
    c->plan.path = likely_path(o, c->shape.D);
    sgt_cuda_lay_out(c);
    return SGT_OK;
}

static void forget(sgt_cuda_backend *c)
{
    free(c->buf.blocks);
    free(c->flat.tensor_at);
    free(c->flat.bucket_at);
    sgt_live_free(&c->live);
}

int sgt_cuda_backend_estimate(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                              size_t *count, uint64_t *bytes, sgt_error *err)
{
    sgt_cuda_backend c = {0};
    int rc = measure(&c, o, err);
    if (rc == SGT_OK) {
        memcpy(kinds, c.memory, c.kinds * sizeof *kinds);
        *count = c.kinds;
        *bytes = c.buf.used + SGT_CUDA_GEMM_WORKSPACE;
    }
    forget(&c);
    return rc;
}

static int fits(const sgt_backend_options *o, uint32_t rows, uint64_t bytes)
{
    sgt_cuda_backend c = {0};
    sgt_backend_options tried = *o;
    tried.batch = rows;
    int rc = measure(&c, &tried, NULL);
    forget(&c);
    return rc == SGT_OK && c.buf.used + SGT_CUDA_GEMM_WORKSPACE <= bytes;
}

uint32_t sgt_cuda_most_rows(const sgt_backend_options *o, uint64_t bytes)
{
    uint32_t low = 0, high = o->batch; /* rows: `low` fits, `high` does not */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (fits(o, middle, bytes)) low = middle;
        else high = middle;
    }
    return low;
}

const sgt_cuda_dropout *sgt_cuda_drop(const sgt_cuda_backend *c, sgt_cuda_dropout *d, size_t layer,
                                      uint32_t site, int training)
{
    if (!training || !(c->o.dropout > 0)) return NULL;
    *d = (sgt_cuda_dropout){.place = c->buf.place,
                            .row_elements = c->shape.T * c->shape.C, /* not used by attention */
                            .layer = (uint32_t)layer,
                            .site = site,
                            .rate = (float)c->o.dropout};
    return d;
}
