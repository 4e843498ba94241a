/* live.c: declares in which parts of a step (sgt_live) each buffer of the CUDA backend is in use. It
 * must agree with what forward.c and backward.c write and read. Gradients count as always in use,
 * because the update zeroes them and kernels then add to them. The head's part includes its
 * backward products. */
#include <string.h>

#include "train/cuda/cuda_backend.h"

static unsigned layers(const sgt_cuda_backend *c) { return (unsigned)c->shape.L; }

/* Declare a buffer that is written in part `first` and read in this layer's forward and backward
 * parts. It is also in use between these parts, unless the block recomputes it: the recompute level
 * is at least `from`. */
static void kept(sgt_cuda_backend *c, unsigned i, const void *at, unsigned first,
                 sgt_recompute from)
{
    unsigned forward = sgt_part_forward(i), backward = sgt_part_backward(layers(c), i);
    if (c->buf.blocks[i].recompute < from || c->buf.blocks + i == c->buf.share_last) {
        sgt_live_during(&c->live, at, first, backward);
        return;
    }
    sgt_live_during(&c->live, at, first, forward);
    sgt_live_during(&c->live, at, backward, backward);
}

static void live_block(sgt_cuda_backend *c, unsigned i)
{
    const sgt_cuda_block *l = c->buf.blocks + i;
    unsigned forward = sgt_part_forward(i), L = layers(c);
    const void *const before[] = {l->ln1, l->mean1, l->rstd1};
    const void *const cheap[] = {l->ln2, l->mean2, l->rstd2, l->gelu};
    const void *const inside[] = {l->qkv, l->att, l->lse, l->mid, l->fc, l->probs};
    for (size_t k = 0; k < sizeof before / sizeof *before; k++)
        kept(c, i, before[k], forward - 1, SGT_RECOMPUTE_GELU);
    for (size_t k = 0; k < sizeof cheap / sizeof *cheap; k++)
        kept(c, i, cheap[k], forward, SGT_RECOMPUTE_GELU);
    for (size_t k = 0; k < sizeof inside / sizeof *inside; k++)
        kept(c, i, inside[k], forward, SGT_RECOMPUTE_BLOCK);
    sgt_live_during(&c->live, l->out, forward,
                    i + 1 == L ? sgt_part_head(L) : sgt_part_backward(L, i + 1));
}

static void within(sgt_cuda_backend *c, unsigned part, const void *const *at, size_t count)
{
    for (size_t i = 0; i < count; i++) sgt_live_during(&c->live, at[i], part, part);
}
#define WITHIN(c, part, at) within(c, part, at, sizeof(at) / sizeof *(at))

/* Declare the buffers that are used only within a layer's forward or backward part. cuDNN's
 * workspace may share the logits' memory. */
static void live_work(sgt_cuda_backend *c, unsigned i)
{
    const sgt_cuda_naive *n = &c->plan.naive;
    const void *const both[] = {
        c->buf.dln, n->q, n->k, n->v, n->o, n->dscores, c->plan.cudnn ? c->buf.cudnn_space : NULL};
    const void *const backward[] = {
        c->buf.dwide,          c->buf.ddrop, c->buf.delta, c->buf.scratch,
        c->buf.beside_scratch, n->dq,        n->dk,        n->dv};
    WITHIN(c, sgt_part_forward(i), both);
    WITHIN(c, sgt_part_backward(layers(c), i), both);
    WITHIN(c, sgt_part_backward(layers(c), i), backward);
}

void sgt_cuda_live(sgt_cuda_backend *c)
{
    unsigned L = layers(c), head = sgt_part_head(L), embeddings = sgt_part_embeddings(L),
             update = sgt_part_update(L);
    const void *const always[] = {
        c->flat.params,  c->flat.copy,        c->flat.own_copy, c->flat.vectors,
        c->flat.grads,   c->flat.own_grads,   c->flat.m,        c->flat.v,
        c->buf.control,  c->buf.eval_control, c->buf.place,     c->buf.outliers,
        c->buf.batch[0], c->buf.batch[1],     c->buf.starts[0], c->buf.starts[1]};
    const void *const of_head[] = {c->buf.logits, c->buf.loss, c->buf.row_lse, c->buf.dln,
                                   c->buf.scratch};
    const void *const of_embeddings[] = {c->buf.sorted, c->buf.order, c->buf.scratch, c->buf.ddrop};
    const sgt_cuda_muon *u = &c->plan.muon;
    const void *const of_update[] = {c->buf.scratch, u->x, u->y, u->a, u->b};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        sgt_live_always(&c->live, always[i]);
    sgt_live_during(&c->live, c->buf.x0, 0, sgt_part_backward(L, 0));
    for (unsigned i = 0; i < L; i++) {
        live_block(c, i);
        live_work(c, i);
    }
    sgt_live_during(&c->live, c->buf.lnf, head - 1, head);
    sgt_live_during(&c->live, c->buf.meanf, head - 1, head);
    sgt_live_during(&c->live, c->buf.rstdf, head - 1, head);
    sgt_live_during(&c->live, c->buf.dx, head, embeddings);
    sgt_live_during(&c->live, c->buf.ids, 0, embeddings);
    sgt_live_during(&c->live, c->buf.targets, 0, head);
    sgt_live_during(&c->live, c->buf.documents.start, 0, sgt_part_backward(L, 0));
    sgt_live_during(&c->live, c->buf.documents.end, 0, sgt_part_backward(L, 0));
    WITHIN(c, head, of_head);
    WITHIN(c, embeddings, of_embeddings);
    WITHIN(c, update, of_update);
}

/* Count the bytes in use in a part. The workspace of matrix products is a separate allocation, and
 * is always in use. */
void sgt_cuda_live_count(const sgt_backend *b, unsigned part, int again,
                         uint64_t in[SGT_LIVE_KINDS], uint64_t after[SGT_LIVE_KINDS])
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
