/* backward.c: computes the gradients of all parameters from the gradient of the logits. c->buf.dx
 * is the gradient of the residual stream, to which each residual branch adds its gradient.
 *
 * Gradients are accumulated in float32 over the micro-steps of a step, so they must be 0 before the
 * first micro-step. Normally, the optimizer sets gradients to 0 after reading them. If each step
 * has only one micro-step (plan.written), the optimizer does not. Instead, matrix products
 * overwrite the gradients of matrices, and zero_rest sets the other gradients to 0 before the
 * backward pass. */
#include "train/cuda/cuda_backend.h"
#include "kernels/dropout.h"

/* Arguments for the backward pass of a LayerNorm, which computes dx, the gradient of the residual
 * stream. The preceding residual branch added its output to this stream, so dx is also the gradient
 * of that output, and the column sums of dx are the bias gradient of the branch's last matrix
 * product. `bias`: address of this bias gradient; NULL if no branch precedes the LayerNorm. */
typedef struct norm {
    const void *x;
    const float *mean, *rstd;
    size_t w, b;
    float *bias;
    int first; /* 1: overwrite dx; 0: add to dx */
} norm;

/* Compute the backward pass of a LayerNorm. From dln, the gradient of the LayerNorm's output,
 * compute the gradient of its input x, and add this to dx. Also add the column sums of dx to the
 * bias gradient n->bias of the preceding residual branch. With dropout or --no-fuse, branch_bias
 * computes that bias gradient instead. */
static void layernorm(sgt_cuda_backend *c, const norm *n)
{
    float *dw = c->flat.grads + n->w, *db = c->flat.grads + n->b;
    const float *w = sgt_cuda_vector(c, n->w);
    float *dbias = c->o.no_fuse || c->o.dropout > 0 ? NULL : n->bias;
    /* for the trace: bytes that the kernel moves. It reads dln and x, writes dx and, unless
     * n->first is set, also reads dx. */
    sgt_cupti_work(0, (double)(c->shape.N * c->shape.C * c->shape.width) * (n->first ? 3 : 4));
    sgt_cuda_layernorm_backward(c->queue.compute, c->shape.type, c->buf.dx, n->first, dw, db, dbias,
                                c->buf.dln, n->x, n->mean, n->rstd, w, c->shape.N, c->shape.C,
                                c->buf.scratch);
}

/* Launch a kernel on the stream s that adds the column sums of dy to the gradient of b, where y = x
 * W + b. */
static void bias(sgt_cuda_backend *c, int which, const sgt_cuda_block *l, const void *dy,
                 sgt_cuda_stream s, void *scratch)
{
    const sgt_cuda_layer *layer = sgt_cuda_layers + which;
    size_t width = layer->columns * c->shape.C;
    sgt_cupti_work(0, (double)(c->shape.N * width * c->shape.width));
    sgt_cuda_bias_backward(s, c->shape.type, c->flat.grads + l->at[layer->tensor + 1], dy,
                           c->shape.N, width, scratch);
}

/* Make the compute stream wait for the kernel on the stream `beside` that reads dwide. Call this
 * function before the compute stream overwrites dwide. */
static void rejoin(sgt_cuda_backend *c)
{
    if (c->queue.branches) sgt_cuda_wait(c->queue.compute, c->queue.rejoined);
    c->queue.branches = 0;
}

static void weight_gradient(sgt_cuda_backend *c, int which, const sgt_cuda_block *l, const void *x,
                            const void *dy)
{
    float *dw = c->flat.grads + l->at[sgt_cuda_layers[which].tensor];
    sgt_cuda_product(c, &c->plan.linear[which].dw, dw, x, dy, NULL, NULL);
}

static void bias_beside(sgt_cuda_backend *c, int which, const sgt_cuda_block *l)
{
    bias(c, which, l, c->buf.dwide, c->queue.beside, c->buf.beside_scratch);
    sgt_cuda_record(c->queue.rejoined, c->queue.beside);
    c->queue.branches = 1;
}

/* Compute the gradients of a weight and its bias from dwide. The kernel for the bias gradient runs
 * on the stream `beside`, which becomes a parallel branch in a CUDA graph. dwide must not be
 * overwritten until rejoin has been called.
 *
 * The kernel that is enqueued first gets the GPU's multiprocessors first. Normally this is the
 * short kernel for the bias gradient. With the variant bias-room, it is the matrix product for the
 * weight gradient, which leaves some multiprocessors free. */
static void wide_gradients(sgt_cuda_backend *c, int which, const sgt_cuda_block *l, const void *x)
{
    int weight_first = (c->plan.variants & SGT_VARIANT_BIAS_ROOM) != 0;
    if (c->queue.beside) {
        sgt_cuda_record(c->queue.forked, c->queue.compute);
        sgt_cuda_wait(c->queue.beside, c->queue.forked);
        if (!weight_first) bias_beside(c, which, l);
    } else {
        bias(c, which, l, c->buf.dwide, c->queue.compute, c->buf.scratch);
    }
    weight_gradient(c, which, l, x, c->buf.dwide);
    if (weight_first) bias_beside(c, which, l);
}

/* Compute the bias gradient of the last matrix product of a residual branch, unless the function
 * `layernorm` computes it. */
static void branch_bias(sgt_cuda_backend *c, int which, const sgt_cuda_block *l, const void *dy)
{
    if (c->o.no_fuse || c->o.dropout > 0) bias(c, which, l, dy, c->queue.compute, c->buf.scratch);
}

static void input(sgt_cuda_backend *c, int which, const sgt_cuda_block *l, const void *dy, void *dx)
{
    const void *w = sgt_cuda_weight(c, l->at[sgt_cuda_layers[which].tensor]);
    sgt_cuda_product(c, &c->plan.linear[which].dx, dx, dy, w, NULL, NULL);
}

/* Return the gradient of a residual branch's output. With dropout, this is dx with the branch's
 * dropout mask applied; without dropout, it is dx. */
static const void *branch(sgt_cuda_backend *c, size_t layer, uint32_t site)
{
    sgt_cuda_dropout space;
    const sgt_cuda_dropout *drop = sgt_cuda_drop(c, &space, layer, site, 1);
    if (!drop) return c->buf.dx;
    sgt_cuda_dropout_apply(c->queue.compute, c->shape.type, c->buf.ddrop, c->buf.dx,
                           c->shape.N * c->shape.C, drop);
    return c->buf.ddrop;
}

/* Compute dwide (N, 4C) = (dy W^T) * GELU'(fc), which is the gradient of GELU's input fc. */
static void gelu_slope(sgt_cuda_backend *c, const sgt_cuda_block *l, const void *dy)
{
    const void *w = sgt_cuda_weight(c, l->at[SGT_FCPROJ_W]);
    if (c->plan.dgelu.gemm) {
        sgt_cuda_product(c, &c->plan.dgelu, c->buf.dwide, dy, w, NULL, l->fc);
    } else {
        input(c, SGT_CUDA_FCPROJ, l, dy, c->buf.dwide);
        sgt_cuda_gelu_backward(c->queue.compute, c->shape.type, c->buf.dwide, c->buf.dwide, l->fc,
                               c->shape.N * 4 * c->shape.C, c->model.gelu);
    }
}

static void mlp(sgt_cuda_backend *c, size_t i)
{
    const sgt_cuda_block *l = c->buf.blocks + i;
    const void *dy = branch(c, i, SGT_DROP_FCPROJ);
    weight_gradient(c, SGT_CUDA_FCPROJ, l, l->gelu, dy);
    branch_bias(c, SGT_CUDA_FCPROJ, l, dy);
    gelu_slope(c, l, dy);
    wide_gradients(c, SGT_CUDA_FC, l, l->ln2);
    input(c, SGT_CUDA_FC, l, c->buf.dwide, c->buf.dln);
    layernorm(c, &(norm){l->mid, l->mean2, l->rstd2, l->at[SGT_LN2_W], l->at[SGT_LN2_B],
                         c->flat.grads + l->at[SGT_PROJ_W + 1], 0});
    rejoin(c);
}

static void attention(sgt_cuda_backend *c, size_t i)
{
    const sgt_cuda_block *l = c->buf.blocks + i;
    const void *dy = branch(c, i, SGT_DROP_PROJ);
    weight_gradient(c, SGT_CUDA_PROJ, l, l->att, dy);
    branch_bias(c, SGT_CUDA_PROJ, l, dy);
    input(c, SGT_CUDA_PROJ, l, dy, c->buf.dln);
    sgt_cuda_attend_backward(c, i);
    wide_gradients(c, SGT_CUDA_QKV, l, l->ln1);
    input(c, SGT_CUDA_QKV, l, c->buf.dwide, c->buf.dln);
    layernorm(c,
              &(norm){i ? l[-1].out : c->buf.x0, l->mean1, l->rstd1, l->at[SGT_LN1_W],
                      l->at[SGT_LN1_B], i ? c->flat.grads + l[-1].at[SGT_FCPROJ_W + 1] : NULL, 0});
    rejoin(c);
}

static void embeddings(sgt_cuda_backend *c)
{
    const void *dy = branch(c, 0, SGT_DROP_EMBED);
    sgt_cuda_embed_sort(c->queue.compute, c->buf.sorted, c->buf.order, c->buf.ids, c->shape.V,
                        c->shape.N, c->buf.scratch);
    sgt_cuda_embed_backward(c->queue.compute, c->shape.type, c->flat.grads + c->flat.wte,
                            c->flat.grads + c->flat.wpe, c->buf.sorted, c->buf.order, dy,
                            c->shape.N, c->shape.T, c->shape.C, c->buf.scratch);
}

/* Set to 0 the gradients that kernels add to and that no matrix product overwrites: those of all
 * vectors, of the first T rows of wpe and, if the head has a separate weight, of wte. */
static void zero_rest(sgt_cuda_backend *c)
{
    sgt_cuda_zero(c->queue.compute, c->flat.grads + c->flat.decayed,
                  (c->flat.count - c->flat.decayed) * sizeof *c->flat.grads);
    sgt_cuda_zero(c->queue.compute, c->flat.grads + c->flat.wpe,
                  c->shape.T * c->shape.C * sizeof *c->flat.grads);
    if (c->model.untied)
        sgt_cuda_zero(c->queue.compute, c->flat.grads + c->flat.wte,
                      c->shape.rows_v * c->shape.C * sizeof *c->flat.grads);
}

void sgt_cuda_backward(sgt_cuda_backend *c)
{
    const sgt_cuda_linear *head = &c->plan.linear[SGT_CUDA_HEAD];
    unsigned L = (unsigned)c->shape.L;
    sgt_cupti_push("head backward");
    if (c->plan.written) zero_rest(c);
    sgt_cuda_product(c, &head->dx, c->buf.dln, c->buf.logits, sgt_cuda_weight(c, c->flat.head),
                     NULL, NULL);
    sgt_cuda_product(c, &head->dw, c->flat.grads + c->flat.head, c->buf.logits, c->buf.lnf, NULL,
                     NULL);
    if (c->model.untied) sgt_cuda_ranks_reduce(c, SGT_BUCKET_BLOCKS + c->shape.L);
    const sgt_cuda_block *last = c->buf.blocks + c->shape.L - 1;
    layernorm(c, &(norm){last->out, c->buf.meanf, c->buf.rstdf, c->flat.lnf_w, c->flat.lnf_b,
                         c->flat.grads + last->at[SGT_FCPROJ_W + 1], 1});
    sgt_cuda_part_ends(c, sgt_part_head(L));
    sgt_cupti_pop();
    for (size_t i = c->shape.L; i-- > 0;) {
        sgt_cuda_push_layer("backward", i);
        sgt_cuda_forward_again(c, i);
        mlp(c, i);
        attention(c, i);
        sgt_cuda_ranks_reduce(c, SGT_BUCKET_BLOCKS + i);
        sgt_cuda_part_ends(c, sgt_part_backward(L, (unsigned)i));
        sgt_cupti_pop();
    }
    sgt_cuda_ranks_reduce(c, sgt_cuda_bucket_vectors(c));
    sgt_cupti_push("embeddings backward");
    embeddings(c);
    sgt_cuda_ranks_reduce(c, SGT_BUCKET_EMBEDDINGS);
    sgt_cuda_part_ends(c, sgt_part_embeddings(L));
    sgt_cupti_pop();
}
