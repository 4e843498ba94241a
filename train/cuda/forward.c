/* forward.c: the forward pass, the head (output layer) with the loss, and the recomputation of
 * activations during the backward pass. With --no-fuse, every operation is a separate kernel, as in
 * a framework that does not fuse kernels. */
#include "train/cuda/cuda_backend.h"
#include "kernels/dropout.h"

/* Compute y = x W + b, or only x W if the next LayerNorm's kernel adds b (see
 * sgt_cuda_norm_bias). */
static void linear(sgt_cuda_backend *c, int which, const sgt_cuda_block *l, void *y, const void *x)
{
    const sgt_cuda_layer *layer = sgt_cuda_layers + which;
    const void *w = sgt_cuda_weight(c, l->at[layer->tensor]),
               *b = sgt_cuda_weight(c, l->at[layer->tensor + 1]);
    sgt_cuda_product(c, &c->plan.linear[which].forward, y, x, w, (void *)b, NULL);
    if (c->plan.bias_apart && !sgt_cuda_norm_bias(c, which))
        sgt_cuda_add_bias(c->queue.compute, c->shape.type, y, b, c->shape.N,
                          layer->columns * c->shape.C);
}

static double tensor_bytes(const sgt_cuda_backend *c)
{
    return (double)(c->shape.N * c->shape.C * c->shape.width);
}

/* Store x + dropout(y + bias) in `sum`, and the LayerNorm of this sum in `out`. `bias` may be NULL,
 * which means no bias. If y is NULL, only store the LayerNorm of x in `out`. */
static void layernorm(sgt_cuda_backend *c, void *sum, void *out, float *mean, float *rstd,
                      const void *x, const void *y, const void *bias, size_t w, size_t b,
                      const sgt_cuda_dropout *drop)
{
    sgt_cupti_work(0, tensor_bytes(c) * (y ? 4 : 2));
    sgt_cuda_residual_layernorm(c->queue.compute, c->shape.type, sum, out, mean, rstd, x, y, bias,
                                sgt_cuda_vector(c, w), sgt_cuda_vector(c, b), c->shape.N,
                                c->shape.C, c->model.eps, drop);
}

/* Arguments for adding a residual branch's output to the residual stream: sum = x + dropout(in W +
 * b). Each block does this twice. The same call computes the LayerNorm of `sum`, which the next
 * matrix product needs. */
typedef struct addition {
    int which; /* SGT_CUDA_PROJ or SGT_CUDA_FCPROJ */
    const void *in, *x;
    void *sum, *ln;
    float *mean, *rstd;
    size_t ln_w, ln_b;
    uint32_t site; /* the dropout site */
} addition;

static void residual(sgt_cuda_backend *c, size_t layer, const addition *a, int training)
{
    sgt_cuda_dropout space;
    const sgt_cuda_block *l = c->buf.blocks + layer;
    const sgt_cuda_dropout *drop = sgt_cuda_drop(c, &space, layer, a->site, training);
    const void *bias = sgt_cuda_norm_bias(c, a->which)
                           ? sgt_cuda_weight(c, l->at[sgt_cuda_layers[a->which].tensor + 1])
                           : NULL;
    linear(c, a->which, l, c->buf.dln, a->in);
    if (!c->o.no_fuse) {
        layernorm(c, a->sum, a->ln, a->mean, a->rstd, a->x, c->buf.dln, bias, a->ln_w, a->ln_b,
                  drop);
        return;
    }
    if (drop)
        sgt_cuda_dropout_apply(c->queue.compute, c->shape.type, c->buf.dln, c->buf.dln,
                               c->shape.N * c->shape.C, drop);
    sgt_cuda_add(c->queue.compute, c->shape.type, a->sum, a->x, c->buf.dln,
                 c->shape.N * c->shape.C);
    layernorm(c, NULL, a->ln, a->mean, a->rstd, a->sum, NULL, NULL, a->ln_w, a->ln_b, NULL);
}

static void mlp(sgt_cuda_backend *c, const sgt_cuda_block *l)
{
    if (c->plan.fc_gelu.gemm) {
        sgt_cuda_product(c, &c->plan.fc_gelu, l->gelu, l->ln2, sgt_cuda_weight(c, l->at[SGT_FC_W]),
                         (void *)sgt_cuda_weight(c, l->at[SGT_FC_B]), l->fc);
        return;
    }
    linear(c, SGT_CUDA_FC, l, l->fc, l->ln2);
    sgt_cuda_gelu(c->queue.compute, c->shape.type, l->gelu, l->fc, c->shape.N * 4 * c->shape.C,
                  c->model.gelu);
}

/* Compute the part of a block from qkv to the output of GELU. l->ln1, the output of the first
 * LayerNorm, must have been computed. The forward pass and the recomputation use this function. */
static void inside(sgt_cuda_backend *c, size_t i, const void *x, int training)
{
    sgt_cuda_block *l = c->buf.blocks + i;
    linear(c, SGT_CUDA_QKV, l, l->qkv, l->ln1);
    sgt_cuda_attend(c, i, training);
    residual(c, i,
             &(addition){SGT_CUDA_PROJ, l->att, x, l->mid, l->ln2, l->mean2, l->rstd2,
                         l->at[SGT_LN2_W], l->at[SGT_LN2_B], SGT_DROP_PROJ},
             training);
    mlp(c, l);
}

void sgt_cuda_forward(sgt_cuda_backend *c, int training)
{
    sgt_cuda_dropout space;
    const sgt_cuda_dropout *drop = sgt_cuda_drop(c, &space, 0, SGT_DROP_EMBED, training);
    const sgt_cuda_block *first = c->buf.blocks;
    sgt_cupti_push("embeddings forward");
    sgt_cuda_embed(c->queue.compute, c->shape.type, c->buf.x0, c->buf.ids,
                   sgt_cuda_weight(c, c->flat.wte), sgt_cuda_weight(c, c->flat.wpe), c->shape.N,
                   c->shape.T, c->shape.C, drop);
    layernorm(c, NULL, first->ln1, first->mean1, first->rstd1, c->buf.x0, NULL, NULL,
              first->at[SGT_LN1_W], first->at[SGT_LN1_B], NULL);
    sgt_cuda_part_ends(c, 0);
    sgt_cupti_pop();
    for (size_t i = 0; i < c->shape.L; i++) {
        sgt_cuda_block *l = c->buf.blocks + i;
        sgt_cuda_push_layer("forward", i);
        inside(c, i, i ? l[-1].out : c->buf.x0, training);
        addition a = {SGT_CUDA_FCPROJ, l->gelu,      l->mid,        l->out,        c->buf.lnf,
                      c->buf.meanf,    c->buf.rstdf, c->flat.lnf_w, c->flat.lnf_b, SGT_DROP_FCPROJ};
        if (i + 1 < c->shape.L) {
            a.ln = l[1].ln1;
            a.mean = l[1].mean1;
            a.rstd = l[1].rstd1;
            a.ln_w = l[1].at[SGT_LN1_W];
            a.ln_b = l[1].at[SGT_LN1_B];
        }
        residual(c, i, &a, training);
        sgt_cuda_part_ends(c, sgt_part_forward((unsigned)i));
        sgt_cupti_pop();
    }
}

/* Recompute the activations of a block before its backward pass. Blocks that recompute store their
 * activations in the same memory. When the backward pass begins, this memory still contains the
 * activations of the last such block, share_last, so nothing is recomputed for share_last. */
void sgt_cuda_forward_again(sgt_cuda_backend *c, size_t layer)
{
    sgt_cuda_block *l = c->buf.blocks + layer;
    if (l->recompute == SGT_RECOMPUTE_NONE || l == c->buf.share_last) return;
    const void *x = layer ? l[-1].out : c->buf.x0;
    sgt_cuda_push_layer("recompute", layer);
    layernorm(c, NULL, l->ln1, l->mean1, l->rstd1, x, NULL, NULL, l->at[SGT_LN1_W],
              l->at[SGT_LN1_B], NULL);
    if (l->recompute == SGT_RECOMPUTE_BLOCK) {
        inside(c, layer, x, 1);
    } else {
        layernorm(c, NULL, l->ln2, l->mean2, l->rstd2, l->mid, NULL, NULL, l->at[SGT_LN2_W],
                  l->at[SGT_LN2_B], NULL);
        sgt_cuda_gelu(c->queue.compute, c->shape.type, l->gelu, l->fc, c->shape.N * 4 * c->shape.C,
                      c->model.gelu);
    }
    sgt_cupti_pop();
}

/* Compute the logits and losses of plan.head_rows positions, from position `first` on. If `scale`
 * is not NULL, store the gradient of the logits in buf.logits. In this case, the logits are stored
 * in buf.chunk if there are several chunks of positions; otherwise they are stored in buf.logits,
 * where the gradient overwrites them. */
static void head_chunk(sgt_cuda_backend *c, size_t first, const float *scale)
{
    size_t rows = c->plan.head_rows, width = c->shape.width;
    void *dlogits = (unsigned char *)c->buf.logits + first * c->shape.ldv * width,
         *logits = scale && rows < c->shape.N ? c->buf.chunk : dlogits;
    sgt_cuda_product(c, &c->plan.linear[SGT_CUDA_HEAD].forward, logits,
                     (unsigned char *)c->buf.lnf + first * c->shape.C * width,
                     sgt_cuda_weight(c, c->flat.head), NULL, NULL);
    /* --no-fuse: the first pass computes only the losses, and the second pass the gradient */
    for (int pass = !(c->o.no_fuse && scale); pass <= 1; pass++) {
        const float *by = pass ? scale : NULL;
        sgt_cupti_work(0, (double)(rows * width) * (double)(c->shape.V + (by ? c->shape.ldv : 0)));
        sgt_cuda_cross_entropy(c->queue.compute, c->shape.type, dlogits, logits,
                               c->buf.loss + first, c->buf.targets + first, rows, c->shape.V,
                               c->shape.ldv, by);
    }
}

void sgt_cuda_head(sgt_cuda_backend *c, int training)
{
    size_t N = c->shape.N, rows = c->plan.head_rows;
    const float *scale = training ? &c->buf.control->dlogits_scale : NULL;
    sgt_cupti_push("head and loss");
    /* Call head_chunk for all chunks of positions. If N is not a multiple of the chunk size, the
     * last chunk starts early enough to end with the last position, so that some positions are
     * computed twice. */
    for (size_t done = 0; done < N; done += rows)
        head_chunk(c, done + rows <= N ? done : N - rows, scale);
    sgt_cuda_loss_sum(c->queue.compute, training ? c->buf.control : c->buf.eval_control,
                      c->buf.loss, c->buf.targets, c->shape.N);
    sgt_cupti_pop();
}
