/* layout.c: computes the sizes of the CUDA backend's buffers, their addresses in the arena (the
 * backend's only allocation), and the number of bytes of each kind of memory. The same code
 * estimates memory before a run, so it needs no device.
 *
 * It also declares during which parts of a step each buffer is in use (see sgt_live). A part is,
 * for example, the forward pass of one layer; the part "head" includes the matrix products of the
 * head's backward pass. These declarations must agree with the reads and writes in forward.c and
 * backward.c. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "train/cuda/cuda_backend.h"
#include "kernels/dropout.h"

#define ALIGN 256 /* alignment in bytes */
/* Maximum number of positions in a micro-step: half of the range of int. Kernels store indexes of
 * positions as int, and may compute indexes somewhat beyond the last position. */
#define MOST_POSITIONS (1 << 30)
/* V is rounded up to a multiple of a tile's width, so that the head's matrix products consist of
 * complete tiles. For example, 50,257 ids are padded to 50,304. */
#define VOCAB_MULTIPLE 128

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

/* ---- the flat arrays ---- */

/* Return the index of the bucket that contains the tensor. A bucket is a group of tensors whose
 * gradients the ranks reduce in one call, as soon as they are complete. `vector`: 1 if the tensor
 * has one dimension, otherwise 0. */
static size_t bucket_of(const sgt_cuda_backend *c, size_t tensor, int vector)
{
    if (vector) return sgt_cuda_bucket_vectors(c);
    return tensor < 2 ? SGT_BUCKET_EMBEDDINGS
                      : SGT_BUCKET_BLOCKS + (tensor - 2) / SGT_BLOCK_TENSORS;
}

/* Compute the offset of each tensor, and return the length of the flat arrays. All matrices come
 * first, so that weight decay applies to one contiguous range; the matrices of a layer are
 * adjacent. The vectors follow in the model's order. Each bucket is padded, so that every rank's
 * share of it is aligned. */
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
                        "backend: invalid shape: %u rows of %u tokens, with %u positions", o->batch,
                        o->seq, o->model.positions);
    if ((uint64_t)o->batch * o->seq > MOST_POSITIONS)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "backend: %u rows of %u tokens: CUDA's kernels take at most %d tokens",
                        o->batch, o->seq, MOST_POSITIONS);
    if (o->optim.bf16_moments)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "--optimizer-state bf16: only the CPU supports it (add --device cpu)");
    if (o->model.channels > 12672)
        return sgt_fail(
            err, SGT_EUNSUPPORTED,
            "model: %u channels: CUDA's LayerNorm takes at most 12672 (use a smaller --model)",
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
    c->shape.V = o->model.vocab;
    c->shape.rows_v = o->no_pad_vocab ? c->shape.V : round_up(c->shape.V, VOCAB_MULTIPLE);
    /* even if V is not padded, the logits of each position must begin at a multiple of 16 bytes */
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

/* Record that all bytes laid out since the previous call of this function are memory of kind
 * `name`. */
static void kind(sgt_cuda_backend *c, const char *name)
{
    uint64_t before = 0;
    for (size_t i = 0; i < c->kinds; i++) before += c->memory[i].bytes;
    if (c->buf.used > before) c->memory[c->kinds++] = (sgt_memory_kind){name, c->buf.used - before};
}

/* Declare that the buffer at address `at` is in use from part `first` to part `last` of a step, and
 * return `at`. */
static void *during(sgt_cuda_backend *c, void *at, unsigned first, unsigned last)
{
    if (c->buf.arena) sgt_live_during(&c->live, at, first, last);
    return at;
}
static void *always(sgt_cuda_backend *c, void *at) { return during(c, at, 0, UINT_MAX); }

/* Declare when a buffer of block l is in use. It is written in part `first` of the step, and read
 * in the forward and backward parts of the block. Return `at`.
 *
 * If l->recompute >= `from`, the block's backward part recomputes the contents before reading them,
 * so that the buffer is not in use between the two parts. */
static void *kept(sgt_cuda_backend *c, const sgt_cuda_block *l, void *at, unsigned first,
                  sgt_recompute from)
{
    unsigned i = (unsigned)(l - c->buf.blocks), forward = sgt_part_forward(i),
             backward = sgt_part_backward((unsigned)c->shape.L, i);
    if (l->recompute < from || l == c->buf.share_last) return during(c, at, first, backward);
    during(c, at, first, forward);
    return during(c, at, backward, backward);
}

/* Assign addresses to the activations of a block. An activation that is recomputed has the same
 * address in all blocks that recompute it. */
static void add_block(sgt_cuda_backend *c, sgt_cuda_block *l)
{
    const sgt_recompute gelu = SGT_RECOMPUTE_GELU, block = SGT_RECOMPUTE_BLOCK;
    size_t N = c->shape.N, C = c->shape.C, H = c->shape.H;
    unsigned i = (unsigned)(l - c->buf.blocks), L = (unsigned)c->shape.L,
             here = sgt_part_forward(i), before = here - 1;
    const sgt_cuda_block *cheap =
        l->recompute == SGT_RECOMPUTE_NONE || l == c->buf.share_cheap ? NULL : c->buf.share_cheap;
    const sgt_cuda_block *inside =
        l->recompute < SGT_RECOMPUTE_BLOCK || l == c->buf.share_inside ? NULL : c->buf.share_inside;
    l->ln1 = kept(c, l, cheap ? cheap->ln1 : numbers(c, N * C), before, gelu);
    l->mean1 = kept(c, l, inside ? inside->mean1 : floats(c, N), before, gelu);
    l->rstd1 = kept(c, l, inside ? inside->rstd1 : floats(c, N), before, gelu);
    l->qkv = kept(c, l, inside ? inside->qkv : numbers(c, N * 3 * C), here, block);
    l->att = kept(c, l, inside ? inside->att : numbers(c, N * C), here, block);
    l->lse = kept(c, l, inside ? inside->lse : floats(c, N * H), here, block);
    l->mid = kept(c, l, inside ? inside->mid : numbers(c, N * C), here, block);
    l->ln2 = kept(c, l, cheap ? cheap->ln2 : numbers(c, N * C), here, gelu);
    l->mean2 = kept(c, l, inside ? inside->mean2 : floats(c, N), here, gelu);
    l->rstd2 = kept(c, l, inside ? inside->rstd2 : floats(c, N), here, gelu);
    l->fc = kept(c, l, inside ? inside->fc : numbers(c, N * 4 * C), here, block);
    l->gelu = kept(c, l, cheap ? cheap->gelu : numbers(c, N * 4 * C), here, gelu);
    l->out = during(c, numbers(c, N * C), here,
                    i + 1 == L ? sgt_part_head(L) : sgt_part_backward(L, i + 1));
    if (c->plan.path == SGT_PATH_NAIVE)
        l->probs = kept(c, l, inside ? inside->probs : numbers(c, N * H * c->shape.T), here, block);
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
    size_t C = c->shape.C, L = c->shape.L, wide = L * sgt_cuda_muon_stride(4 * C * C),
           square = L * sgt_cuda_muon_stride(C * C);
    unsigned update = sgt_part_update((unsigned)L);
    u->x = during(c, numbers(c, wide), update, update);
    u->y = during(c, numbers(c, wide), update, update);
    u->a = during(c, numbers(c, square), update, update);
    u->b = during(c, numbers(c, square), update, update);
    kind(c, "Muon");
}

static void add_parameters(sgt_cuda_backend *c)
{
    int parts = c->shape.ranks > 1;
    c->flat.params = always(c, floats(c, c->flat.own));
    if (c->shape.type != SGT_F32) kind(c, "weights");
    c->flat.copy =
        c->shape.type == SGT_F32 && !parts ? c->flat.params : always(c, numbers(c, c->flat.count));
    c->flat.own_copy = c->shape.type == SGT_F32 ? NULL
                       : parts                  ? always(c, numbers(c, c->flat.own))
                                                : c->flat.copy;
    if (parts && c->shape.type != SGT_F32)
        c->flat.vectors = always(c, floats(c, c->flat.count - c->flat.decayed));
    kind(c, c->shape.type == SGT_F32 ? "weights" : "16-bit copies");
    /* Always in use: unless plan.written is set, the update sets the gradients to 0, and kernels of
     * the next step add to them. */
    c->flat.grads = always(c, floats(c, c->flat.count));
    c->flat.own_grads = parts ? always(c, floats(c, c->flat.own)) : c->flat.grads;
    kind(c, "gradients");
    c->flat.m = always(c, floats(c, c->flat.own));
    c->flat.v = c->o.optim.kind == SGT_SGD
                    ? NULL
                    : always(c, floats(c, c->flat.own - (c->flat.muon_end - c->flat.muon_at)));
    kind(c, "moments");
    if (c->o.optim.kind == SGT_MUON) add_muon(c);
}

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

static size_t scratch_bytes(const sgt_cuda_backend *c)
{
    size_t n = sgt_cuda_embed_sort_scratch(c->shape.N);
    n = most(n, sgt_cuda_embed_backward_scratch(c->shape.N, c->shape.C));
    n = most(n, sgt_cuda_layernorm_backward_scratch(c->shape.type, c->shape.N, c->shape.C));
    n = most(n, sgt_cuda_bias_backward_scratch(c->shape.N, 4 * c->shape.C));
    n = most(n, c->o.optim.kind == SGT_MUON ? sgt_cuda_muon_scratch(c->shape.L) : 0);
    return most(n, sgt_cuda_grad_norm_scratch());
}

static void *ids(sgt_cuda_backend *c, unsigned last)
{
    return during(c, add_buffer(c, c->shape.N * sizeof(int32_t)), 0, last);
}

static void add_data(sgt_cuda_backend *c)
{
    unsigned L = (unsigned)c->shape.L, embeddings = sgt_part_embeddings(L);
    size_t bytes = c->shape.N * sizeof(int32_t);
    c->buf.ids = ids(c, embeddings);
    c->buf.targets = ids(c, sgt_part_head(L));
    c->buf.sorted = during(c, add_buffer(c, bytes), embeddings, embeddings);
    c->buf.order = during(c, add_buffer(c, bytes), embeddings, embeddings);
    if (c->o.documents) {
        c->buf.documents.start = ids(c, sgt_part_backward(L, 0));
        c->buf.documents.end = ids(c, sgt_part_backward(L, 0));
    }
    for (int i = 0; i < SGT_CUDA_SLOTS; i++) {
        c->buf.batch[i] = always(c, add_buffer(c, 2 * bytes));
        if (c->o.documents) c->buf.starts[i] = always(c, add_buffer(c, bytes));
    }
    c->buf.control = always(c, add_buffer(c, sizeof *c->buf.control));
    c->buf.eval_control = always(c, add_buffer(c, sizeof *c->buf.eval_control));
    c->buf.place = always(c, add_buffer(c, sizeof *c->buf.place));
    c->buf.outliers = always(c, add_buffer(c, sizeof *c->buf.outliers));
    kind(c, "data");
    /* list the workspace of matrix products, which is a separate allocation, outside of the
     * arena */
    c->memory[c->kinds++] = (sgt_memory_kind){"workspace", SGT_CUDA_GEMM_WORKSPACE};
}

/* Return the address of cuDNN's workspace. If it fits, it shares the memory of the logits and their
 * gradient: they are in use only from the head's forward pass to the head's backward pass, and no
 * attention is computed in between. */
static void *cudnn_space(sgt_cuda_backend *c)
{
    size_t bytes = c->plan.cudnn ? sgt_cudnn_attention_workspace(c->plan.cudnn) : 0;
    return bytes <= c->shape.N * c->shape.ldv * c->shape.width ? c->buf.logits
                                                               : add_buffer(c, bytes);
}

/* Declare when one layer uses the buffers that all layers share. `forward` and `backward` are the
 * indexes of the layer's forward and backward part of a step. Some of these buffers are used in
 * both parts, the others only in the backward part. cuDNN's workspace is one of the shared buffers,
 * even if it has the same memory as the logits. */
static void declare_work(sgt_cuda_backend *c, unsigned forward, unsigned backward)
{
    const sgt_cuda_naive *n = &c->plan.naive;
    void *const both[] = {
        c->buf.dln, n->q, n->k, n->v, n->o, n->dscores, c->plan.cudnn ? c->buf.cudnn_space : NULL};
    void *const only[] = {c->buf.dwide,          c->buf.ddrop, c->buf.delta, c->buf.scratch,
                          c->buf.beside_scratch, n->dq,        n->dk,        n->dv};
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        during(c, both[i], forward, forward);
        during(c, both[i], backward, backward);
    }
    for (size_t i = 0; i < sizeof only / sizeof *only; i++) during(c, only[i], backward, backward);
}

/* For each kind of memory, set in[kind] to the number of bytes in use during part number `part` of
 * a step, and after[kind] to the number of bytes that are still in use after that part. The
 * workspace of matrix products is not in c->live, because it is always in use. */
static void live_count(const sgt_backend *b, unsigned part, int again, uint64_t in[SGT_LIVE_KINDS],
                       uint64_t after[SGT_LIVE_KINDS])
{
    const sgt_cuda_backend *c = (const sgt_cuda_backend *)b;
    (void)again;
    sgt_live_count(&c->live, part, in, after);
    for (size_t i = 0; i < c->kinds; i++)
        if (strcmp(c->memory[i].name, "workspace") == 0) in[i] = after[i] = c->memory[i].bytes;
}

void sgt_cuda_scrub(sgt_cuda_backend *c, unsigned part)
{
    for (uint32_t i = 0; i < c->live.count; i++) {
        const sgt_live_buffer *b = c->live.buffers + i;
        if (!sgt_live_after(&c->live, i, part)) sgt_cuda_zero(c->queue.compute, b->at, b->bytes);
    }
}

void sgt_cuda_lay_out(sgt_cuda_backend *c)
{
    size_t N = c->shape.N, C = c->shape.C;
    unsigned L = (unsigned)c->shape.L, head = sgt_part_head(L), embeddings = sgt_part_embeddings(L),
             update = sgt_part_update(L);
    c->buf.used = c->kinds = 0;
    sgt_live_free(&c->live);
    add_parameters(c);
    c->buf.x0 = during(c, numbers(c, N * C), 0, sgt_part_backward(L, 0));
    for (size_t i = 0; i < L; i++) add_block(c, c->buf.blocks + i);
    c->buf.lnf = during(c, numbers(c, N * C), head - 1, head);
    c->buf.meanf = during(c, floats(c, N), head - 1, head);
    c->buf.rstdf = during(c, floats(c, N), head - 1, head);
    kind(c, "activations");
    c->buf.dx = during(c, numbers(c, N * C), head, embeddings);
    c->buf.dln = during(c, numbers(c, N * C), head, head);
    c->buf.dwide = numbers(c, N * 4 * C);
    c->buf.ddrop = c->o.dropout > 0 ? during(c, numbers(c, N * C), embeddings, embeddings) : NULL;
    kind(c, "activation gradients");
    c->buf.delta = floats(c, N * c->shape.H);
    if (c->plan.path == SGT_PATH_NAIVE) add_naive(c);
    kind(c, "attention");
    c->buf.logits = during(c, numbers(c, N * c->shape.ldv), head, head);
    c->buf.chunk = c->plan.variants & SGT_VARIANT_HEAD_CHUNKS
                       ? during(c, numbers(c, SGT_CUDA_CHUNK * c->shape.ldv), head, head)
                       : NULL;
    c->buf.loss = during(c, floats(c, N), head, head);
    c->buf.cudnn_space = cudnn_space(c);
    kind(c, "head");
    c->buf.scratch = during(c, add_buffer(c, scratch_bytes(c)), head, head);
    during(c, c->buf.scratch, embeddings, embeddings);
    during(c, c->buf.scratch, update, update);
    if (!c->o.no_fuse)
        c->buf.beside_scratch = add_buffer(c, sgt_cuda_bias_backward_scratch(N, 4 * C));
    kind(c, "scratch");
    add_data(c);
    for (unsigned i = 0; i < L; i++) declare_work(c, sgt_part_forward(i), sgt_part_backward(L, i));
    c->base.live = c->live.failed ? NULL : live_count;
}

/* ---- estimates before a run ---- */

/* Return the attention implementation to assume when memory is estimated without a device. Naive
 * attention needs the most memory. SGT_PATH_OWN also stands for cuDNN's attention, which is assumed
 * to need as much memory as sgt's. */
static sgt_cuda_path likely_path(const sgt_backend_options *o, size_t D)
{
    if (o->attention == SGT_ATTENTION_NAIVE) return SGT_PATH_NAIVE;
    return sgt_cuda_attention_serves(D) ? SGT_PATH_OWN : SGT_PATH_NAIVE;
}

int sgt_cuda_backend_estimate(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                              size_t *count, uint64_t *bytes, sgt_error *err)
{
    sgt_cuda_backend c = {0};
    int rc = sgt_cuda_decide(&c, o, err);
    if (rc == SGT_OK) {
        c.plan.path = likely_path(o, c.shape.D);
        sgt_cuda_lay_out(&c);
        memcpy(kinds, c.memory, c.kinds * sizeof *kinds);
        *count = c.kinds;
        *bytes = c.buf.used + SGT_CUDA_GEMM_WORKSPACE;
    }
    free(c.buf.blocks);
    free(c.flat.tensor_at);
    free(c.flat.bucket_at);
    sgt_live_free(&c.live);
    return rc;
}

static int fits(const sgt_backend_options *o, uint32_t rows, uint64_t bytes)
{
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    size_t count;
    uint64_t need;
    sgt_backend_options tried = *o;
    tried.batch = rows;
    return sgt_cuda_backend_estimate(&tried, kinds, &count, &need, NULL) == SGT_OK && need <= bytes;
}

uint32_t sgt_cuda_most_rows(const sgt_backend_options *o, uint64_t bytes)
{
    /* binary search: a micro-step of `low` rows fits in memory, and a micro-step of `high` rows
     * does not */
    uint32_t low = 0, high = o->batch;
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
