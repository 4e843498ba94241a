/* live.c: what each buffer of the CPU backend is used for, by parts of a step (live.h). Whoever changes where
 * forward.c and backward.c write and read changes it here: the test of scrub, which puts no update off, finds what was
 * forgotten. */
#include <string.h>

#include "cpu_backend.h"

/* Written in part `first`, read until this layer's forward part is over, and again in its backward part: kept so long,
 * or where it is computed again made anew there. */
static void kept(sgt_cpu_backend *c, const sgt_cpu_block *l, const void *at, unsigned first, sgt_recompute from)
{
    unsigned forward = sgt_part_forward(l->layer), backward = sgt_part_backward(c->model.layers, l->layer);
    if (l->recompute < from || l == c->share_last) {
        sgt_live_during(&c->live, at, first, backward);
        return;
    }
    sgt_live_during(&c->live, at, first, forward);
    sgt_live_during(&c->live, at, backward, backward);
}

static void live_block(sgt_cpu_backend *c, const sgt_cpu_block *l)
{
    unsigned forward = sgt_part_forward(l->layer), last = l->layer + 1 == c->model.layers;
    kept(c, l, l->ln1, forward - 1, SGT_RECOMPUTE_GELU);
    kept(c, l, l->mean1, forward - 1, SGT_RECOMPUTE_GELU);
    kept(c, l, l->rstd1, forward - 1, SGT_RECOMPUTE_GELU);
    kept(c, l, l->qkv, forward, SGT_RECOMPUTE_BLOCK);
    kept(c, l, l->att, forward, SGT_RECOMPUTE_BLOCK);
    kept(c, l, l->lse, forward, SGT_RECOMPUTE_BLOCK);
    kept(c, l, l->mid, forward, SGT_RECOMPUTE_BLOCK);
    kept(c, l, l->ln2, forward, SGT_RECOMPUTE_GELU);
    kept(c, l, l->mean2, forward, SGT_RECOMPUTE_GELU);
    kept(c, l, l->rstd2, forward, SGT_RECOMPUTE_GELU);
    kept(c, l, l->fc, forward, SGT_RECOMPUTE_BLOCK);
    kept(c, l, l->gelu, forward, SGT_RECOMPUTE_GELU);
    sgt_live_during(&c->live, l->out, forward, sgt_part_backward(c->model.layers, last ? l->layer : l->layer + 1));
}

/* Where products have no use for scratch, another buffer begins there. */
static const void *products(const sgt_cpu_backend *c) { return sgt_gemm_scratch(c->threads) ? c->products : NULL; }

/* What a layer works with, forward and backward, and leaves nothing in. */
static void live_work(sgt_cpu_backend *c, unsigned forward, unsigned backward)
{
    const void *const both[] = {c->dln, c->packed, c->scratch, products(c)};
    const void *const only[] = {c->dwide, c->packed_dy, c->partial};
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        sgt_live_during(&c->live, both[i], forward, forward);
        sgt_live_during(&c->live, both[i], backward, backward);
    }
    for (size_t i = 0; i < sizeof only / sizeof *only; i++) sgt_live_during(&c->live, only[i], backward, backward);
}

/* Each tensor's from the product that writes it: the head's, then a layer's matrices. Vectors, embeddings are cleared
 * as the backward pass begins, and added to. The update is where the optimizer could be done with them: what it puts
 * off, when nothing is scrubbed, it reads beside the next step's forward pass. */
static void live_gradients(sgt_cpu_backend *c)
{
    unsigned L = c->model.layers, begins = sgt_part_backward(L, L - 1);
    for (size_t i = 0; i < sgt_model_tensors(&c->model); i++) {
        sgt_tensor t;
        sgt_model_tensor(&c->model, i, &t);
        unsigned block = (unsigned)(i - 2) / SGT_BLOCK_TENSORS, first = begins;
        if (t.offset == c->head_w) first = sgt_part_head(L);
        else if (i >= 2 && t.dims > 1) first = sgt_part_backward(L, block);
        sgt_live_during(&c->live, c->grads + t.offset, first, sgt_part_update(L));
    }
}

void sgt_cpu_live(sgt_cpu_backend *c)
{
    unsigned L = c->model.layers, head = sgt_part_head(L), begins = sgt_part_backward(L, L - 1);
    const void *const always[] = {c->params, c->weights, c->m, c->v};
    const void *const of_head[] = {c->logits, c->packed_logits, c->head.memory, c->loss, c->packed,
                                   products(c)};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) sgt_live_always(&c->live, always[i]);
    live_gradients(c);
    if (c->bf16) sgt_live_during(&c->live, c->scratch, 0, 0); /* for rows of the first LayerNorm */
    if (sgt_cpu_puts_off(c)) { /* for rows of moments, where the token embedding's are still to be new */
        sgt_live_during(&c->live, c->dx, 0, 0);
        sgt_live_during(&c->live, c->dln, 0, 0);
    }
    sgt_live_during(&c->live, c->x0, 0, sgt_part_backward(L, 0));
    for (unsigned i = 0; i < L; i++) {
        live_block(c, c->blocks + i);
        live_work(c, sgt_part_forward(i), sgt_part_backward(L, i));
    }
    sgt_live_during(&c->live, c->lnf, head - 1, head);
    sgt_live_during(&c->live, c->meanf, head - 1, begins);
    sgt_live_during(&c->live, c->rstdf, head - 1, begins);
    for (size_t i = 0; i < sizeof of_head / sizeof *of_head; i++) sgt_live_during(&c->live, of_head[i], head, head);
    sgt_live_during(&c->live, c->dln, head, begins);
    sgt_live_during(&c->live, c->dx, begins, sgt_part_embeddings(L));
    sgt_live_during(&c->live, c->ids, 0, sgt_part_embeddings(L));
    sgt_live_during(&c->live, c->targets, 0, head);
    sgt_live_during(&c->live, c->start, 0, sgt_part_backward(L, 0));
    sgt_live_during(&c->live, c->grown, sgt_part_embeddings(L), sgt_part_embeddings(L));
    sgt_live_during(&c->live, c->squares, sgt_part_update(L), sgt_part_update(L));
}

static int is_gradient(const sgt_cpu_backend *c, const sgt_live_buffer *b)
{
    return strcmp(c->memory[b->kind].name, "gradients") == 0;
}

void sgt_cpu_live_count(const sgt_backend *b, unsigned part, int again, uint64_t within[SGT_LIVE_KINDS],
                        uint64_t after[SGT_LIVE_KINDS])
{
    const sgt_cpu_backend *c = (const sgt_cpu_backend *)b;
    sgt_live_count(&c->live, part, within, after);
    for (uint32_t i = 0; i < c->live.count && again && part < sgt_part_update(c->model.layers); i++) {
        const sgt_live_buffer *buffer = c->live.buffers + i;
        if (!is_gradient(c, buffer)) continue; /* the micro-step before has written them */
        if (!sgt_live_within(&c->live, i, part)) within[buffer->kind] += buffer->bytes;
        if (!sgt_live_after(&c->live, i, part)) after[buffer->kind] += buffer->bytes;
    }
}

/* Bytes that are no number, and no index of anything. Other ranks may still read gradients. */
void sgt_cpu_scrub(sgt_cpu_backend *c, unsigned part)
{
    int keeps = c->ranks > 1 || (!c->fresh && part < sgt_part_update(c->model.layers));
    for (uint32_t i = 0; i < c->live.count; i++) {
        const sgt_live_buffer *b = c->live.buffers + i;
        if (!sgt_live_after(&c->live, i, part) && !(keeps && is_gradient(c, b))) memset(b->at, 0xff, b->bytes);
    }
}
