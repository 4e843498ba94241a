/* live.c: declares in which parts of a step (live.h) each buffer of the CPU backend is in use. It
 * must agree with what forward.c and backward.c write and read. Tests check that by overwriting
 * unused buffers (sgt_cpu_scrub); updates are not deferred then. */
#include <string.h>

#include "train/cpu/cpu_backend.h"

/* Declare a buffer that is written in part `first` and read in this layer's forward and backward
 * parts. If the block is recomputed at level `from` or higher, it is written again in the backward
 * part, so it is not in use between these parts. */
static void kept(sgt_cpu_backend *c, const sgt_cpu_block *l, const void *at, unsigned first,
                 sgt_recompute from)
{
    unsigned forward = sgt_part_forward(l->layer),
             backward = sgt_part_backward(c->shape.o.model.layers, l->layer);
    if (l->recompute < from || l == c->share_last) {
        sgt_live_during(&c->report.live, at, first, backward);
        return;
    }
    sgt_live_during(&c->report.live, at, first, forward);
    sgt_live_during(&c->report.live, at, backward, backward);
}

static void live_block(sgt_cpu_backend *c, const sgt_cpu_block *l)
{
    const sgt_cpu_shape *s = &c->shape;
    unsigned forward = sgt_part_forward(l->layer), last = l->layer + 1 == s->o.model.layers;
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
    sgt_live_during(&c->report.live, l->out, forward,
                    sgt_part_backward(s->o.model.layers, last ? l->layer : l->layer + 1));
}

/* Return the scratch memory of the matrix products. Return NULL if they need none: buf.products is
 * then empty and has the address of another buffer. */
static const void *products(const sgt_cpu_backend *c)
{
    return sgt_gemm_scratch(c->shape.o.threads) ? c->buf.products : NULL;
}

/* Declare the buffers in which a layer leaves nothing for later parts: those of both passes, and
 * those of the backward pass only. */
static void live_work(sgt_cpu_backend *c, unsigned forward, unsigned backward)
{
    const void *const both[] = {c->buf.dln, c->buf.packed, c->buf.scratch, products(c)};
    const void *const only[] = {c->buf.dwide, c->buf.packed_dy, c->buf.partial};
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        sgt_live_during(&c->report.live, both[i], forward, forward);
        sgt_live_during(&c->report.live, both[i], backward, backward);
    }
    for (size_t i = 0; i < sizeof only / sizeof *only; i++)
        sgt_live_during(&c->report.live, only[i], backward, backward);
}

/* Declare the gradients. A matrix's gradient is in use from the product that writes it: first the
 * head's, then the layers'. Gradients of vectors and embeddings are cleared when the backward pass
 * begins. All are in use until the update. A deferred update reads them in the next forward pass,
 * but updates are not deferred while buffers are scrubbed. */
static void live_gradients(sgt_cpu_backend *c)
{
    const sgt_cpu_shape *s = &c->shape;
    unsigned L = s->o.model.layers, begins = sgt_part_backward(L, L - 1);
    for (size_t i = 0; i < sgt_model_tensors(&s->o.model); i++) {
        sgt_tensor t;
        sgt_model_tensor(&s->o.model, i, &t);
        unsigned block = (unsigned)(i - 2) / SGT_BLOCK_TENSORS, first = begins;
        if (t.offset == s->head_w) first = sgt_part_head(L);
        else if (i >= 2 && t.dims > 1) first = sgt_part_backward(L, block);
        sgt_live_during(&c->report.live, c->buf.grads + t.offset, first, sgt_part_update(L));
    }
}

void sgt_cpu_live(sgt_cpu_backend *c)
{
    unsigned L = c->shape.o.model.layers, head = sgt_part_head(L),
             begins = sgt_part_backward(L, L - 1);
    const void *const always[] = {c->buf.params, c->buf.weights, c->buf.m, c->buf.v,
                                  c->buf.received};
    const void *const of_head[] = {c->buf.logits, c->buf.packed_logits, c->head.memory,
                                   c->buf.loss,   c->buf.packed,        products(c)};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        sgt_live_always(&c->report.live, always[i]);
    live_gradients(c);
    if (c->shape.bf16)
        sgt_live_during(&c->report.live, c->buf.scratch, 0, 0); /* rows of the first LayerNorm */
    if (sgt_cpu_defers(c)) { /* sgt_cpu_token copies moments there */
        sgt_live_during(&c->report.live, c->buf.dx, 0, 0);
        sgt_live_during(&c->report.live, c->buf.dln, 0, 0);
    }
    sgt_live_during(&c->report.live, c->buf.x0, 0, sgt_part_backward(L, 0));
    for (unsigned i = 0; i < L; i++) {
        live_block(c, c->blocks + i);
        live_work(c, sgt_part_forward(i), sgt_part_backward(L, i));
    }
    sgt_live_during(&c->report.live, c->buf.lnf, head - 1, head);
    sgt_live_during(&c->report.live, c->buf.meanf, head - 1, begins);
    sgt_live_during(&c->report.live, c->buf.rstdf, head - 1, begins);
    for (size_t i = 0; i < sizeof of_head / sizeof *of_head; i++)
        sgt_live_during(&c->report.live, of_head[i], head, head);
    sgt_live_during(&c->report.live, c->buf.dln, head, begins);
    sgt_live_during(&c->report.live, c->buf.dx, begins, sgt_part_embeddings(L));
    sgt_live_during(&c->report.live, c->buf.ids, 0, sgt_part_embeddings(L));
    sgt_live_during(&c->report.live, c->buf.targets, 0, head);
    sgt_live_during(&c->report.live, c->buf.start, 0, sgt_part_backward(L, 0));
    sgt_live_during(&c->report.live, c->buf.grown, sgt_part_embeddings(L), sgt_part_embeddings(L));
    sgt_live_during(&c->report.live, c->buf.squares, sgt_part_update(L), sgt_part_update(L));
    if (!c->buf.muon) return;
    sgt_live_during(&c->report.live, c->buf.muon, sgt_part_update(L), sgt_part_update(L));
    sgt_live_during(&c->report.live, products(c), sgt_part_update(L), sgt_part_update(L));
}

static int is_gradient(const sgt_cpu_backend *c, const sgt_live_buffer *b)
{
    return strcmp(c->report.memory[b->kind].name, "gradients") == 0;
}

void sgt_cpu_live_count(const sgt_backend *b, unsigned part, int again,
                        uint64_t within[SGT_LIVE_KINDS], uint64_t after[SGT_LIVE_KINDS])
{
    const sgt_cpu_backend *c = (const sgt_cpu_backend *)b;
    sgt_live_count(&c->report.live, part, within, after);
    for (uint32_t i = 0;
         i < c->report.live.count && again && part < sgt_part_update(c->shape.o.model.layers);
         i++) {
        const sgt_live_buffer *buffer = c->report.live.buffers + i;
        if (!is_gradient(c, buffer)) continue; /* the previous micro-step has written them */
        if (!sgt_live_within(&c->report.live, i, part)) within[buffer->kind] += buffer->bytes;
        if (!sgt_live_after(&c->report.live, i, part)) after[buffer->kind] += buffer->bytes;
    }
}

/* Overwrite unused buffers with bytes 0xff, which are NaN as floats and no valid id. Gradients are
 * kept if an earlier micro-step of the step has written them. */
void sgt_cpu_scrub(sgt_cpu_backend *c, unsigned part)
{
    const sgt_cpu_shape *s = &c->shape;
    int keeps = !c->step.fresh && part < sgt_part_update(s->o.model.layers);
    for (uint32_t i = 0; i < c->report.live.count; i++) {
        const sgt_live_buffer *b = c->report.live.buffers + i;
        if (!sgt_live_after(&c->report.live, i, part) && !(keeps && is_gradient(c, b)))
            memset(b->at, 0xff, b->bytes);
    }
}
