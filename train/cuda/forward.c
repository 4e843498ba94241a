/* forward.c: the forward pass, the head with its loss, and what the backward pass computes again. With --no-fuse
 * every operation is a kernel of its own, as a plain framework would run it. */
#include "cuda_backend.h"
#include "dropout.h"

/* y = x W + b. */
static void linear(sgt_cuda_backend *c, int which, const sgt_cuda_block *l, size_t weight, void *y, const void *x,
                   size_t width)
{
    const void *w = sgt_cuda_weight(c, l->at[weight]), *b = sgt_cuda_weight(c, l->at[weight + 1]);
    sgt_cuda_gemm_run(c->linear[which].forward, c->compute, y, x, w, (void *)b, NULL);
    if (c->bias_apart) sgt_cuda_add_bias(c->compute, c->type, y, b, c->N, width);
}

/* sum = x + dropout(y) and its LayerNorm, which the next product reads; sum and y NULL: the LayerNorm of x alone. */
static void residual(sgt_cuda_backend *c, void *sum, void *ln, float *mean, float *rstd, const void *x, void *y,
                     size_t w, size_t b, size_t layer, uint32_t site, int training)
{
    sgt_cuda_dropout space;
    const sgt_cuda_dropout *drop = sgt_cuda_drop(c, &space, layer, site, training);
    const void *weight = sgt_cuda_weight(c, w), *bias = sgt_cuda_weight(c, b);
    if (!c->o.no_fuse) {
        sgt_cuda_residual_layernorm(c->compute, c->type, sum, ln, mean, rstd, x, y, weight, bias, c->N, c->C,
                                    c->model.eps, drop);
        return;
    }
    if (drop) sgt_cuda_dropout_apply(c->compute, c->type, y, y, c->N * c->C, drop);
    sgt_cuda_add(c->compute, c->type, sum, x, y, c->N * c->C);
    sgt_cuda_layernorm(c->compute, c->type, ln, mean, rstd, sum, weight, bias, c->N, c->C, c->model.eps);
}

static void mlp(sgt_cuda_backend *c, const sgt_cuda_block *l)
{
    if (c->fc_gelu) {
        sgt_cuda_gemm_run(c->fc_gelu, c->compute, l->gelu, l->ln2, sgt_cuda_weight(c, l->at[SGT_FC_W]),
                          (void *)sgt_cuda_weight(c, l->at[SGT_FC_B]), l->fc);
        return;
    }
    linear(c, SGT_CUDA_FC, l, SGT_FC_W, l->fc, l->ln2, 4 * c->C);
    sgt_cuda_gelu(c->compute, c->type, l->gelu, l->fc, c->N * 4 * c->C, c->model.gelu);
}

/* From ln1 to gelu: what both passes of recompute share. */
static void inside(sgt_cuda_backend *c, size_t i, const void *x, int training)
{
    sgt_cuda_block *l = c->blocks + i;
    linear(c, SGT_CUDA_QKV, l, SGT_QKV_W, l->qkv, l->ln1, 3 * c->C);
    sgt_cuda_attend(c, i, training);
    linear(c, SGT_CUDA_PROJ, l, SGT_PROJ_W, c->dln, l->att, c->C);
    residual(c, l->mid, l->ln2, l->mean2, l->rstd2, x, c->dln, l->at[SGT_LN2_W], l->at[SGT_LN2_B], i, SGT_DROP_PROJ,
             training);
    mlp(c, l);
}

void sgt_cuda_forward(sgt_cuda_backend *c, int training)
{
    sgt_cuda_dropout space;
    const sgt_cuda_dropout *drop = sgt_cuda_drop(c, &space, 0, SGT_DROP_EMBED, training);
    const sgt_cuda_block *first = c->blocks;
    sgt_cuda_range(c, "embeddings forward");
    sgt_cuda_embed(c->compute, c->type, c->x0, c->ids, sgt_cuda_weight(c, c->wte), sgt_cuda_weight(c, c->wpe), c->N,
                   c->T, c->C, drop);
    sgt_cuda_layernorm(c->compute, c->type, first->ln1, first->mean1, first->rstd1, c->x0,
                       sgt_cuda_weight(c, first->at[SGT_LN1_W]), sgt_cuda_weight(c, first->at[SGT_LN1_B]), c->N, c->C,
                       c->model.eps);
    sgt_cuda_part_ends(c, 0);
    sgt_cuda_range_end(c);
    for (size_t i = 0; i < c->L; i++) {
        sgt_cuda_block *l = c->blocks + i;
        sgt_cuda_range_layer(c, "forward", i);
        inside(c, i, i ? l[-1].out : c->x0, training);
        linear(c, SGT_CUDA_FCPROJ, l, SGT_FCPROJ_W, c->dln, l->gelu, c->C);
        if (i + 1 < c->L)
            residual(c, l->out, l[1].ln1, l[1].mean1, l[1].rstd1, l->mid, c->dln, l[1].at[SGT_LN1_W],
                     l[1].at[SGT_LN1_B], i, SGT_DROP_FCPROJ, training);
        else
            residual(c, l->out, c->lnf, c->meanf, c->rstdf, l->mid, c->dln, c->lnf_w, c->lnf_b, i, SGT_DROP_FCPROJ,
                     training);
        sgt_cuda_part_ends(c, sgt_part_forward((unsigned)i));
        sgt_cuda_range_end(c);
    }
}

/* What blocks share is still there for the last of them. */
void sgt_cuda_forward_again(sgt_cuda_backend *c, size_t layer)
{
    sgt_cuda_block *l = c->blocks + layer;
    if (l->recompute == SGT_RECOMPUTE_NONE || l == c->share_last) return;
    const void *x = layer ? l[-1].out : c->x0;
    sgt_cuda_range_layer(c, "recompute", layer);
    sgt_cuda_layernorm(c->compute, c->type, l->ln1, l->mean1, l->rstd1, x, sgt_cuda_weight(c, l->at[SGT_LN1_W]),
                       sgt_cuda_weight(c, l->at[SGT_LN1_B]), c->N, c->C, c->model.eps);
    if (l->recompute == SGT_RECOMPUTE_BLOCK) {
        inside(c, layer, x, 1);
    } else {
        sgt_cuda_layernorm(c->compute, c->type, l->ln2, l->mean2, l->rstd2, l->mid,
                           sgt_cuda_weight(c, l->at[SGT_LN2_W]), sgt_cuda_weight(c, l->at[SGT_LN2_B]), c->N, c->C,
                           c->model.eps);
        sgt_cuda_gelu(c->compute, c->type, l->gelu, l->fc, c->N * 4 * c->C, c->model.gelu);
    }
    sgt_cuda_range_end(c);
}

/* Loss, then softmax and its gradient, each a pass over the logits. */
static void classify(sgt_cuda_backend *c, const float *scale)
{
    sgt_cuda_logsumexp(c->compute, c->type, c->row_lse, c->logits, c->N, c->V, c->ldv);
    sgt_cuda_target_loss(c->compute, c->type, c->loss, c->row_lse, c->logits, c->targets, c->N, c->ldv);
    if (!scale) return;
    sgt_cuda_softmax(c->compute, c->type, c->logits, c->row_lse, c->N, c->V, c->ldv);
    sgt_cuda_dlogits(c->compute, c->type, c->logits, c->targets, c->N, c->ldv, scale);
}

void sgt_cuda_head(sgt_cuda_backend *c, int training)
{
    sgt_cuda_range(c, "head and loss");
    sgt_cuda_gemm_run(c->linear[SGT_CUDA_HEAD].forward, c->compute, c->logits, c->lnf, sgt_cuda_weight(c, c->head),
                      NULL, NULL);
    const float *scale = training ? &c->control->dlogits_scale : NULL;
    if (c->o.no_fuse) {
        classify(c, scale);
    } else if (c->bulk_loss && scale) {
        sgt_cuda_cross_entropy_bulk(c->compute, c->type, c->logits, c->loss, c->targets, c->N, c->V, c->ldv, scale);
    } else {
        sgt_cuda_cross_entropy(c->compute, c->type, c->logits, c->loss, c->targets, c->N, c->V, c->ldv, scale);
    }
    sgt_cuda_loss_sum(c->compute, training ? c->control : c->eval_control, c->loss, c->targets, c->N);
    sgt_cuda_range_end(c);
}
