/* muon.c: the optimizer Muon (kernels/muon.h), which updates the four weight matrices of each
 * block. AdamW (update.c) updates all other parameters. A single matrix is too small to occupy a
 * GPU, so each launch and each batched matrix product processes the matrices of one kind (such as
 * qkv) of all layers.
 *
 * With several ranks, each rank stores only the parameters and the momentum that it owns. The ranks
 * all-gather their Nesterov steps, every rank orthogonalizes all matrices, and then each rank
 * updates the parameters that it owns. The code for several ranks has not yet been run on GPUs. */
#include <math.h>

#include "kernels/muon.h"
#include "train/cuda/cuda_backend.h"
#include "train/cuda/self_check.h"

static const sgt_cuda_layer *const kinds = sgt_cuda_layers;

int sgt_cuda_by_muon(const sgt_cuda_backend *c, size_t tensor)
{
    const size_t *bucket = c->flat.bucket_at + SGT_BUCKET_BLOCKS;
    if (c->o.optim.kind != SGT_MUON || tensor >= sgt_model_tensors(&c->model)) return 0;
    size_t at = c->flat.tensor_at[tensor];
    return at >= bucket[0] && at < bucket[c->shape.L];
}

/* ---- set-up ---- */

/* Return the shape of a matrix product that is batched over the layers. lda and ldb: distances in
 * elements between successive rows of the operands. */
static sgt_cuda_gemm_shape product(const sgt_cuda_backend *c, size_t m, size_t n, size_t k,
                                   size_t lda, size_t ldb)
{
    sgt_cuda_gemm_shape s = sgt_cuda_product_shape(c, m, n, k);
    s.lda = lda;
    s.ldb = ldb;
    s.batch = c->shape.L;
    return s;
}

static int plan_kind(sgt_cuda_backend *c, int kind, sgt_error *err)
{
    sgt_cuda_muon *u = &c->plan.muon;
    size_t C = c->shape.C, rows = kinds[kind].rows * C, columns = kinds[kind].columns * C;
    size_t stride = sgt_cuda_muon_stride(rows * columns), square = sgt_cuda_muon_stride(C * C);
    int tall = rows > columns;
    sgt_cuda_gemm_shape gram = product(c, C, C, tall ? rows : columns, columns, columns),
                        next = product(c, rows, columns, C, C, columns);
    gram.trans_a = tall;
    gram.trans_b = !tall;
    gram.stride_a = gram.stride_b = stride;
    gram.stride_d = square;
    next.accumulate = 1;
    next.stride_a = tall ? stride : square;
    next.stride_b = tall ? square : stride;
    next.stride_d = stride;
    int rc = sgt_cuda_gemm_plan(&u->gram[kind], c->plan.gemms, &gram, err);
    return rc < 0 ? rc : sgt_cuda_gemm_plan(&u->product[kind], c->plan.gemms, &next, err);
}

int sgt_cuda_muon_plan(sgt_cuda_backend *c, sgt_error *err)
{
    size_t C = c->shape.C;
    sgt_cuda_gemm_shape square = product(c, C, C, C, C, C);
    if (c->o.optim.kind != SGT_MUON) return SGT_OK;
    /* sgt_cuda_gemm_plan does not check Muon's factors, so the verdict must be "ok" */
    int rc = sgt_check_refuse(sgt_verdict_not_ok(c->o.verdicts, SGT_CHECK_MUON),
                              "--optimizer muon: ", err);
    for (int i = 0; i < SGT_CUDA_HEAD && rc == SGT_OK; i++) rc = plan_kind(c, i, err);
    square.accumulate = 1;
    square.stride_a = square.stride_b = square.stride_d = sgt_cuda_muon_stride(C * C);
    return rc < 0 ? rc : sgt_cuda_gemm_plan(&c->plan.muon.square, c->plan.gemms, &square, err);
}

/* ---- an update ---- */

/* Make the matrices at u->x nearly orthogonal by Newton-Schulz iterations. Return the address of
 * the resulting matrices. */
static void *newton_schulz(const sgt_cuda_backend *c, int kind)
{
    const sgt_cuda_muon *u = &c->plan.muon;
    sgt_cuda_stream s = c->queue.compute;
    const float A = (float)SGT_MUON_A, B = (float)SGT_MUON_B, CC = (float)SGT_MUON_C;
    int tall = kinds[kind].rows > kinds[kind].columns;
    void *x = u->x, *y = u->y;
    for (int i = 0; i < SGT_MUON_STEPS; i++) {
        void *old = x;
        sgt_cuda_gemm_run(u->gram[kind], s, u->a, x, x, NULL, NULL);
        sgt_cuda_gemm_run_mixed(u->square, s, u->b, CC, u->a, u->a, B, u->a);
        sgt_cuda_gemm_run_mixed(u->product[kind], s, y, 1, tall ? x : u->b, tall ? u->b : x, A, x);
        x = y;
        y = old;
    }
    return x;
}

/* Find the range of elements that this rank owns in each layer's matrix of kind `kind`. Return the
 * length of the range, which is the same in every layer, or 0 if the rank owns no elements. Set
 * *from to the range's first index in the matrix, and *own to the index of the same element, for
 * layer 0, in this rank's arrays. */
static size_t own_part(const sgt_cuda_backend *c, int kind, size_t *from, size_t *own)
{
    const size_t *bucket = c->flat.bucket_at + SGT_BUCKET_BLOCKS;
    size_t part = (bucket[1] - bucket[0]) / c->shape.ranks,
           first = bucket[0] + part * c->shape.rank, last = first + part,
           begin = c->buf.blocks->at[kinds[kind].tensor],
           end = begin + kinds[kind].rows * kinds[kind].columns * c->shape.C * c->shape.C,
           at = begin > first ? begin : first;
    if (end > last) end = last;
    *from = at - begin;
    *own = bucket[0] / c->shape.ranks + (at - first);
    return at < end ? end - at : 0;
}

static void step_kind(sgt_cuda_backend *c, int kind)
{
    const size_t *bucket = c->flat.bucket_at + SGT_BUCKET_BLOCKS, width = c->shape.width;
    size_t C = c->shape.C, rows = kinds[kind].rows * C, columns = kinds[kind].columns * C, from, at;
    sgt_cuda_matrices l = {.n = rows * columns,
                           .matrices = c->shape.L,
                           .stride = bucket[1] - bucket[0],
                           .stride_x = sgt_cuda_muon_stride(rows * columns)};
    float reach = (float)(.2 * sqrt((double)(rows > columns ? rows : columns)));
    sgt_cuda_muon_normalize(c->queue.compute, c->shape.type, c->plan.muon.x,
                            c->flat.grads + c->buf.blocks->at[kinds[kind].tensor], &l,
                            c->buf.scratch);
    sgt_cupti_push_label("Muon's products");
    const unsigned char *x = newton_schulz(c, kind);
    sgt_cupti_pop();
    l.n = own_part(c, kind, &from, &at);
    l.stride /= c->shape.ranks;
    void *copy = c->flat.own_copy ? (unsigned char *)c->flat.own_copy + at * width : NULL;
    sgt_cuda_muon_update(c->queue.compute, c->shape.type, copy, c->flat.params + at,
                         c->flat.own_grads + at, x + from * width, &l,
                         (float)c->o.optim.weight_decay, reach, c->plan.written, c->buf.control);
}

void sgt_cuda_muon_step(sgt_cuda_backend *c)
{
    size_t at = c->flat.muon_at, n = c->flat.muon_end - at;
    if (n == 0) return;
    sgt_cupti_push("muon");
    sgt_cuda_muon_momentum(c->queue.compute, c->flat.m + at, c->flat.own_grads + at, n,
                           c->buf.control);
    if (c->group) sgt_cuda_ranks_gather_steps(c);
    for (int i = 0; i < SGT_CUDA_HEAD; i++) step_kind(c, i);
    sgt_cupti_pop();
}
