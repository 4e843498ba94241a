/* layout.c: assigns the CPU backend's buffers addresses in its arena, counts their bytes by kind,
 * and declares in which parts of a step each buffer is in use (sgt_live). These declarations must
 * agree with what forward.c and backward.c read and write. Tests check this by overwriting unused
 * buffers (sgt_cpu_scrub); in these tests, updates are not deferred. */
#include <limits.h>
#include <string.h>

#include "train/cpu/cpu_backend.h"

/* Record that the buffers added since the previous call are of the kind `name`. */
static void end_kind(sgt_cpu_backend *c, const char *name)
{
    uint64_t before = 0, used = c->buf.arena.used;
    for (size_t i = 0; i < c->report.kinds; i++) before += c->report.memory[i].bytes;
    c->report.memory[c->report.kinds++] = (sgt_memory_kind){name, used - before};
}

/* Allocate a buffer in the arena, and add it to the list of buffers (sgt_live) with the current
 * kind of memory. */
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
/* Allocate a buffer for an operand that only matrix products read. */
static void *add_operand(sgt_cpu_backend *c, size_t count)
{
    return add_buffer(c, count, c->shape.bf16 ? sizeof(uint16_t) : sizeof(float));
}

/* Declare that the buffer at address `at` is in use from part `first` to part `last` of a step.
 * Return `at`. */
static void *during(sgt_cpu_backend *c, void *at, unsigned first, unsigned last)
{
    sgt_live_during(&c->report.live, at, first, last);
    return at;
}
static void *always(sgt_cpu_backend *c, void *at) { return during(c, at, 0, UINT_MAX); }

/* Declare when a buffer of block `l` is in use. Part `first` of a step writes the buffer, and the
 * block's forward and backward pass read it. Return `at`.
 *
 * If the block's sgt_recompute is `from` or higher, its backward pass recomputes the contents
 * before reading them. In that case, the buffer is not in use between the block's forward and
 * backward pass. */
static void *kept(sgt_cpu_backend *c, const sgt_cpu_block *l, void *at, unsigned first,
                  sgt_recompute from)
{
    unsigned forward = sgt_part_forward(l->layer),
             backward = sgt_part_backward(c->shape.o.model.layers, l->layer);
    if (l->recompute < from || l == c->share_last) return during(c, at, first, backward);
    during(c, at, first, forward);
    return during(c, at, backward, backward);
}

/* Allocate the activations of a block. Activations that the block recomputes are stored in the
 * memory of the first block that recomputes them. LayerNorm statistics and lse have their own
 * memory in every block, because they take only a few floats per position. */
static void add_block(sgt_cpu_backend *c, sgt_cpu_block *l)
{
    const sgt_cpu_shape *s = &c->shape;
    const sgt_recompute gelu = SGT_RECOMPUTE_GELU, block = SGT_RECOMPUTE_BLOCK;
    size_t N = s->N, C = s->C;
    unsigned here = sgt_part_forward(l->layer), before = here - 1, L = s->o.model.layers,
             last = l->layer + 1 == L ? l->layer : l->layer + 1;
    const sgt_cpu_block *cheap =
        l->recompute == SGT_RECOMPUTE_NONE || l == c->share_cheap ? NULL : c->share_cheap;
    const sgt_cpu_block *inside =
        l->recompute < SGT_RECOMPUTE_BLOCK || l == c->share_inside ? NULL : c->share_inside;
    l->ln1 = kept(c, l, cheap ? cheap->ln1 : add_operand(c, N * C), before, gelu);
    l->mean1 = kept(c, l, add_floats(c, N), before, gelu);
    l->rstd1 = kept(c, l, add_floats(c, N), before, gelu);
    l->qkv = kept(c, l, inside ? inside->qkv : add_floats(c, N * 3 * C), here, block);
    l->att = kept(c, l, inside ? inside->att : add_floats(c, N * C), here, block);
    l->lse = kept(c, l, add_floats(c, N * s->H), here, block);
    l->mid = kept(c, l, inside ? inside->mid : add_floats(c, N * C), here, block);
    l->ln2 = kept(c, l, cheap ? cheap->ln2 : add_operand(c, N * C), here, gelu);
    l->mean2 = kept(c, l, add_floats(c, N), here, gelu);
    l->rstd2 = kept(c, l, add_floats(c, N), here, gelu);
    l->fc = kept(c, l, inside ? inside->fc : add_floats(c, N * 4 * C), here, block);
    l->gelu = kept(c, l, cheap ? cheap->gelu : add_operand(c, N * 4 * C), here, gelu);
    l->out = during(c, add_floats(c, N * C), here, sgt_part_backward(L, last));
}

/* Allocate the gradients. The gradient of each tensor is declared as a buffer of its own, because
 * gradients come into use at different times and stay in use until the update:
 *   matrices              from the matrix product that writes the gradient: first the head's, then
 *                         those of the layers
 *   vectors, embeddings   from the beginning of the backward pass, which clears the gradients
 *
 * (A deferred update reads gradients in the next forward pass. In tests that overwrite unused
 * buffers, however, updates are not deferred.) */
static void add_gradients(sgt_cpu_backend *c, size_t flat)
{
    const sgt_cpu_shape *s = &c->shape;
    unsigned L = s->o.model.layers;
    c->buf.grads = sgt_arena_take(&c->buf.arena, flat, sizeof(float));
    for (size_t i = 0, n = sgt_model_tensors(&s->o.model); i < n && c->buf.grads; i++) {
        sgt_tensor t, next = {.offset = flat};
        sgt_model_tensor(&s->o.model, i, &t);
        if (i + 1 < n) sgt_model_tensor(&s->o.model, i + 1, &next);
        unsigned block = (unsigned)(i - 2) / SGT_BLOCK_TENSORS, first = sgt_part_backward(L, L - 1);
        if (t.offset == s->head_w) first = sgt_part_head(L);
        else if (i >= 2 && t.dims > 1) first = sgt_part_backward(L, block);
        sgt_live_buffer_at(&c->report.live, c->buf.grads + t.offset,
                           (next.offset - t.offset) * sizeof(float), (unsigned)c->report.kinds);
        during(c, c->buf.grads + t.offset, first, sgt_part_update(L));
    }
    end_kind(c, "gradients");
    if (!c->group) return;
    c->buf.received = always(c, add_floats(c, sgt_cpu_ranks_received(s)));
    end_kind(c, "gradients received");
}

static void add_parameters(sgt_cpu_backend *c, size_t flat)
{
    const sgt_cpu_shape *s = &c->shape;
    c->buf.params = always(c, add_floats(c, flat));
    end_kind(c, "weights");
    c->buf.weights = c->buf.params;
    if (s->rounding) {
        c->buf.weights = always(c, add_operand(c, flat));
        end_kind(c, s->bf16 ? "16-bit copies" : "rounded weights");
    }
    c->buf.m = always(c, add_buffer(c, flat, sgt_cpu_moment_bytes(s)));
    if (s->o.optim.kind != SGT_SGD)
        c->buf.v = always(c, add_buffer(c, sgt_cpu_second(s, SIZE_MAX), sgt_cpu_moment_bytes(s)));
    end_kind(c, "moments");
}

/* Return the scratch memory of matrix products, for a call of `during`, or NULL if matrix products
 * need none. In that case, buf.products is empty and has the same address as the next buffer, so a
 * declaration for this address would apply to the next buffer. */
static void *products(const sgt_cpu_backend *c)
{
    return sgt_gemm_scratch(c->shape.o.threads) ? c->buf.products : NULL;
}

static void add_head(sgt_cpu_backend *c)
{
    const sgt_cpu_shape *s = &c->shape;
    unsigned head = sgt_part_head(s->o.model.layers);
    if (s->own_head)
        c->head.memory = during(c, add_buffer(c, sgt_head_memory(&c->head), 1), head, head);
    else c->buf.logits = during(c, add_floats(c, s->head_rows * s->ldv), head, head);
    c->head.scratch = c->buf.products;
    if (s->bf16 && !s->own_head)
        c->buf.packed_logits = during(c, add_operand(c, s->head_rows * s->ldv), head, head);
    c->buf.loss = during(c, add_floats(c, s->N), head, head);
    during(c, c->buf.packed, head, head);
    during(c, products(c), head, head);
    end_kind(c, "head");
}

/* Declare when the buffers that all layers use are in use in one layer. `forward` and `backward`
 * are the parts of a step that run the layer's forward and backward pass. Some of these buffers are
 * in use in both parts, others only in the backward part. */
static void declare_work(sgt_cpu_backend *c, unsigned forward, unsigned backward)
{
    void *const both[] = {c->buf.dln, c->buf.packed, c->buf.scratch, products(c)};
    void *const only[] = {c->buf.dwide, c->buf.packed_dy, c->buf.partial};
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        during(c, both[i], forward, forward);
        during(c, both[i], backward, backward);
    }
    for (size_t i = 0; i < sizeof only / sizeof *only; i++) during(c, only[i], backward, backward);
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
        /* after the first micro-step, gradients contain sums to which later micro-steps add, so
         * gradients count as in use throughout the step */
        if (!is_gradient(c, buffer)) continue;
        if (!sgt_live_within(&c->report.live, i, part)) within[buffer->kind] += buffer->bytes;
        if (!sgt_live_after(&c->report.live, i, part)) after[buffer->kind] += buffer->bytes;
    }
}

/* Fill unused buffers with bytes 0xff, which are NaN as floats and invalid as token ids. Keep
 * gradients that an earlier micro-step of this step has written. */
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

/* ---- the complete layout ---- */

static void add_backward(sgt_cpu_backend *c)
{
    const sgt_cpu_shape *s = &c->shape;
    size_t N = s->N, C = s->C;
    unsigned L = s->o.model.layers, head = sgt_part_head(L), begins = sgt_part_backward(L, L - 1),
             ends = sgt_part_embeddings(L), update = sgt_part_update(L);
    c->buf.dx = during(c, add_floats(c, N * C), begins, ends);
    c->buf.dln = during(c, add_floats(c, N * C), head, begins);
    /* to apply a deferred update to an embedding, sgt_cpu_token copies the moments of the embedding
     * to dx and dln, so these buffers are also in use in part 0 (embeddings) */
    if (sgt_cpu_defers(c)) {
        during(c, c->buf.dx, 0, 0);
        during(c, c->buf.dln, 0, 0);
    }
    c->buf.dwide = add_floats(c, N * 4 * C);
    c->buf.partial = add_floats(c, s->tiles * 2 * C);
    if (s->bf16) {
        c->buf.packed = add_operand(c, N * C);
        c->buf.packed_dy = add_operand(c, N * 4 * C);
    }
    size_t tasks = (C + SGT_EMBED_COLUMNS - 1) / SGT_EMBED_COLUMNS;
    c->buf.grown = during(c, add_buffer(c, tasks, sizeof(double)), ends, ends);
    if (c->update.piece_count) /* with several ranks, a rank may have no pieces */
        c->buf.squares =
            during(c, add_buffer(c, c->update.piece_count, sizeof(double)), update, update);
    end_kind(c, "activation gradients");
}

void sgt_cpu_lay_out(sgt_cpu_backend *c)
{
    const sgt_cpu_shape *s = &c->shape;
    size_t N = s->N, C = s->C, flat = sgt_model_floats(&s->o.model);
    unsigned L = s->o.model.layers, head = sgt_part_head(L), begins = sgt_part_backward(L, L - 1),
             update = sgt_part_update(L);
    c->report.kinds = 0;
    sgt_live_free(&c->report.live);
    add_parameters(c, flat);
    add_gradients(c, flat);
    c->buf.x0 = during(c, add_floats(c, N * C), 0, sgt_part_backward(L, 0));
    for (size_t i = 0; i < L; i++) add_block(c, c->blocks + i);
    c->buf.lnf = during(c, add_floats(c, N * C), head - 1, head);
    c->buf.meanf = during(c, add_floats(c, N), head - 1, begins);
    c->buf.rstdf = during(c, add_floats(c, N), head - 1, begins);
    end_kind(c, "activations");
    add_backward(c);
    c->buf.scratch = add_floats(c, (size_t)s->o.threads * s->scratch_floats);
    if (s->bf16) during(c, c->buf.scratch, 0, 0); /* rows of the first LayerNorm */
    end_kind(c, "attention");
    c->buf.products = add_buffer(c, sgt_gemm_scratch(s->o.threads), 1);
    end_kind(c, "products");
    if (s->o.optim.kind == SGT_MUON) {
        c->buf.muon = during(c, add_buffer(c, sgt_cpu_muon_memory(s), 1), update, update);
        during(c, products(c), update, update);
        end_kind(c, "Muon");
    }
    add_head(c);
    c->buf.ids = during(c, add_buffer(c, N, sizeof(int32_t)), 0, sgt_part_embeddings(L));
    c->buf.targets = during(c, add_buffer(c, N, sizeof(int32_t)), 0, head);
    if (s->o.documents)
        c->buf.start = during(c, add_buffer(c, N, sizeof(int32_t)), 0, sgt_part_backward(L, 0));
    end_kind(c, "data");
    for (unsigned i = 0; i < L; i++) declare_work(c, sgt_part_forward(i), sgt_part_backward(L, i));
    c->base.live = c->report.live.failed ? NULL : sgt_cpu_live_count;
}
