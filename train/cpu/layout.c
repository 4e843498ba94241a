/* layout.c: lays out the CPU backend's buffers in its arena, counts their bytes by kind, and declares
 * in which parts of a step each is in use (sgt_live). That must agree with what forward.c and
 * backward.c write and read. Tests check it by overwriting unused buffers (sgt_cpu_scrub); updates
 * are not deferred then. */
#include <string.h>

#include "train/cpu/cpu_backend.h"

/* Record a kind of memory: all bytes taken since the previous call. */
static void end_kind(sgt_cpu_backend *c, const char *name)
{
    uint64_t before = 0, used = c->buf.arena.used;
    for (size_t i = 0; i < c->report.kinds; i++) before += c->report.memory[i].bytes;
    c->report.memory[c->report.kinds++] = (sgt_memory_kind){name, used - before};
}

/* Take a buffer, and declare it (sgt_live) as one of the current kind. */
static void *add_buffer(sgt_cpu_backend *c, size_t count, size_t size)
{
    size_t before = c->buf.arena.used;
    void *p = sgt_arena_take(&c->buf.arena, count, size);
    if (p)
        sgt_live_buffer_at(&c->report.live, p, c->buf.arena.used - before,
                           (unsigned)c->report.kinds);
    return p;
}
static float *add_floats(sgt_cpu_backend *c, size_t count)
{
    return add_buffer(c, count, sizeof(float));
}
/* Take memory for an operand that only products read. */
static void *add_operand(sgt_cpu_backend *c, size_t count)
{
    return add_buffer(c, count, c->shape.bf16 ? sizeof(uint16_t) : sizeof(float));
}

/* Lay out a block's activations. Those that it recomputes lie in the memory of the first block that
 * recomputes them. Statistics and lse are only a few floats per position, so every block has its
 * own. */
static void add_block(sgt_cpu_backend *c, sgt_cpu_block *l)
{
    const sgt_cpu_shape *s = &c->shape;
    size_t N = s->N, C = s->C;
    const sgt_cpu_block *cheap =
        l->recompute == SGT_RECOMPUTE_NONE || l == c->share_cheap ? NULL : c->share_cheap;
    const sgt_cpu_block *inside =
        l->recompute < SGT_RECOMPUTE_BLOCK || l == c->share_inside ? NULL : c->share_inside;
    l->ln1 = cheap ? cheap->ln1 : add_operand(c, N * C);
    l->mean1 = add_floats(c, N);
    l->rstd1 = add_floats(c, N);
    l->qkv = inside ? inside->qkv : add_floats(c, N * 3 * C);
    l->att = inside ? inside->att : add_floats(c, N * C);
    l->lse = add_floats(c, N * s->H);
    l->mid = inside ? inside->mid : add_floats(c, N * C);
    l->ln2 = cheap ? cheap->ln2 : add_operand(c, N * C);
    l->mean2 = add_floats(c, N);
    l->rstd2 = add_floats(c, N);
    l->fc = inside ? inside->fc : add_floats(c, N * 4 * C);
    l->gelu = cheap ? cheap->gelu : add_operand(c, N * 4 * C);
    l->out = add_floats(c, N * C);
}

/* Lay out the gradients. Each tensor's gradient is declared (sgt_live) as a buffer of its own,
 * because they come into use one after the other. */
static void add_gradients(sgt_cpu_backend *c, size_t flat)
{
    const sgt_cpu_shape *s = &c->shape;
    c->buf.grads = sgt_arena_take(&c->buf.arena, flat, sizeof(float));
    for (size_t i = 0, n = sgt_model_tensors(&s->o.model); i < n && c->buf.grads; i++) {
        sgt_tensor t, next = {.offset = flat};
        sgt_model_tensor(&s->o.model, i, &t);
        if (i + 1 < n) sgt_model_tensor(&s->o.model, i + 1, &next);
        sgt_live_buffer_at(&c->report.live, c->buf.grads + t.offset,
                           (next.offset - t.offset) * sizeof(float), (unsigned)c->report.kinds);
    }
    end_kind(c, "gradients");
    if (!c->group) return;
    c->buf.received = add_floats(c, sgt_cpu_ranks_received(s));
    end_kind(c, "gradients received");
}

static void add_parameters(sgt_cpu_backend *c, size_t flat)
{
    const sgt_cpu_shape *s = &c->shape;
    c->buf.params = add_floats(c, flat);
    end_kind(c, "weights");
    c->buf.weights = c->buf.params;
    if (s->rounding) {
        c->buf.weights = add_buffer(c, flat, s->bf16 ? sizeof(uint16_t) : sizeof(float));
        end_kind(c, s->bf16 ? "16-bit copies" : "rounded weights");
    }
    c->buf.m = add_buffer(c, flat, sgt_cpu_moment_bytes(s));
    if (s->o.optim.kind != SGT_SGD)
        c->buf.v = add_buffer(c, sgt_cpu_second(s, SIZE_MAX), sgt_cpu_moment_bytes(s));
    end_kind(c, "moments");
}

static void add_head(sgt_cpu_backend *c)
{
    const sgt_cpu_shape *s = &c->shape;
    if (s->own_head) c->head.memory = add_buffer(c, sgt_head_memory(&c->head), 1);
    else c->buf.logits = add_floats(c, s->head_rows * s->ldv);
    c->head.scratch = c->buf.products;
    if (s->bf16 && !s->own_head)
        c->buf.packed_logits = add_buffer(c, s->head_rows * s->ldv, sizeof(uint16_t));
    c->buf.loss = add_floats(c, s->N);
    end_kind(c, "head");
}

/* ---- when each buffer is in use ---- */

/* Declare a buffer that is written in part `first` and read in this layer's forward and backward
 * parts. If the block is recomputed at level `from` or higher, it is written again in the backward
 * part, so it is not in use between these parts. */
static void declare_kept(sgt_cpu_backend *c, const sgt_cpu_block *l, const void *at, unsigned first,
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

static void declare_block(sgt_cpu_backend *c, const sgt_cpu_block *l)
{
    const sgt_cpu_shape *s = &c->shape;
    unsigned forward = sgt_part_forward(l->layer), last = l->layer + 1 == s->o.model.layers;
    declare_kept(c, l, l->ln1, forward - 1, SGT_RECOMPUTE_GELU);
    declare_kept(c, l, l->mean1, forward - 1, SGT_RECOMPUTE_GELU);
    declare_kept(c, l, l->rstd1, forward - 1, SGT_RECOMPUTE_GELU);
    declare_kept(c, l, l->qkv, forward, SGT_RECOMPUTE_BLOCK);
    declare_kept(c, l, l->att, forward, SGT_RECOMPUTE_BLOCK);
    declare_kept(c, l, l->lse, forward, SGT_RECOMPUTE_BLOCK);
    declare_kept(c, l, l->mid, forward, SGT_RECOMPUTE_BLOCK);
    declare_kept(c, l, l->ln2, forward, SGT_RECOMPUTE_GELU);
    declare_kept(c, l, l->mean2, forward, SGT_RECOMPUTE_GELU);
    declare_kept(c, l, l->rstd2, forward, SGT_RECOMPUTE_GELU);
    declare_kept(c, l, l->fc, forward, SGT_RECOMPUTE_BLOCK);
    declare_kept(c, l, l->gelu, forward, SGT_RECOMPUTE_GELU);
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
static void declare_work(sgt_cpu_backend *c, unsigned forward, unsigned backward)
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
static void declare_gradients(sgt_cpu_backend *c)
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

static void declare_uses(sgt_cpu_backend *c)
{
    unsigned L = c->shape.o.model.layers, head = sgt_part_head(L),
             begins = sgt_part_backward(L, L - 1);
    const void *const always[] = {c->buf.params, c->buf.weights, c->buf.m, c->buf.v,
                                  c->buf.received};
    const void *const of_head[] = {c->buf.logits, c->buf.packed_logits, c->head.memory,
                                   c->buf.loss,   c->buf.packed,        products(c)};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        sgt_live_always(&c->report.live, always[i]);
    declare_gradients(c);
    if (c->shape.bf16)
        sgt_live_during(&c->report.live, c->buf.scratch, 0, 0); /* rows of the first LayerNorm */
    if (sgt_cpu_defers(c)) { /* sgt_cpu_token copies moments there */
        sgt_live_during(&c->report.live, c->buf.dx, 0, 0);
        sgt_live_during(&c->report.live, c->buf.dln, 0, 0);
    }
    sgt_live_during(&c->report.live, c->buf.x0, 0, sgt_part_backward(L, 0));
    for (unsigned i = 0; i < L; i++) {
        declare_block(c, c->blocks + i);
        declare_work(c, sgt_part_forward(i), sgt_part_backward(L, i));
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

/* ---- all of it ---- */

void sgt_cpu_lay_out(sgt_cpu_backend *c)
{
    const sgt_cpu_shape *s = &c->shape;
    size_t N = s->N, C = s->C, flat = sgt_model_floats(&s->o.model);
    c->report.kinds = 0;
    sgt_live_free(&c->report.live);
    add_parameters(c, flat);
    add_gradients(c, flat);
    c->buf.x0 = add_floats(c, N * C);
    for (size_t i = 0; i < s->o.model.layers; i++) add_block(c, c->blocks + i);
    c->buf.lnf = add_floats(c, N * C);
    c->buf.meanf = add_floats(c, N);
    c->buf.rstdf = add_floats(c, N);
    end_kind(c, "activations");
    c->buf.dx = add_floats(c, N * C);
    c->buf.dln = add_floats(c, N * C);
    c->buf.dwide = add_floats(c, N * 4 * C);
    c->buf.partial = add_floats(c, s->tiles * 2 * C);
    if (s->bf16) {
        c->buf.packed = add_buffer(c, N * C, sizeof(uint16_t));
        c->buf.packed_dy = add_buffer(c, N * 4 * C, sizeof(uint16_t));
    }
    c->buf.grown = add_buffer(c, (C + SGT_EMBED_COLUMNS - 1) / SGT_EMBED_COLUMNS, sizeof(double));
    c->buf.squares = add_buffer(c, c->update.piece_count, sizeof(double));
    end_kind(c, "activation gradients");
    c->buf.scratch = add_floats(c, (size_t)s->o.threads * s->scratch_floats);
    end_kind(c, "attention");
    c->buf.products = add_buffer(c, sgt_gemm_scratch(s->o.threads), 1);
    end_kind(c, "products");
    if (s->o.optim.kind == SGT_MUON) {
        c->buf.muon = add_buffer(c, sgt_cpu_muon_memory(s), 1);
        end_kind(c, "Muon");
    }
    add_head(c);
    c->buf.ids = add_buffer(c, N, sizeof(int32_t));
    c->buf.targets = add_buffer(c, N, sizeof(int32_t));
    if (s->o.documents) c->buf.start = add_buffer(c, N, sizeof(int32_t));
    end_kind(c, "data");
    if (c->report.live.count) declare_uses(c);
    c->base.live = c->report.live.failed ? NULL : sgt_cpu_live_count;
}
