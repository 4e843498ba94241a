/* layout.c: lays out the CPU backend's buffers in its arena, and counts their bytes by kind. */
#include "train/cpu/ranks.h"
#include "train/cpu/cpu_backend.h"

/* Record a kind of memory: all bytes taken since the previous call. */
static void kind(sgt_cpu_backend *c, const char *name)
{
    uint64_t before = 0, used = c->buf.arena.used;
    for (size_t i = 0; i < c->report.kinds; i++) before += c->report.memory[i].bytes;
    c->report.memory[c->report.kinds++] = (sgt_memory_kind){name, used - before};
}

/* Take a buffer, and declare it to live.h as one of the current kind. */
static void *take(sgt_cpu_backend *c, size_t count, size_t size)
{
    size_t before = c->buf.arena.used;
    void *p = sgt_arena_take(&c->buf.arena, count, size);
    if (p)
        sgt_live_buffer_at(&c->report.live, p, c->buf.arena.used - before,
                           (unsigned)c->report.kinds);
    return p;
}
static float *floats(sgt_cpu_backend *c, size_t count) { return take(c, count, sizeof(float)); }
/* Take memory for an operand that only products read. */
static void *operand(sgt_cpu_backend *c, size_t count)
{
    return take(c, count, c->shape.bf16 ? sizeof(uint16_t) : sizeof(float));
}

/* Lay out a block's activations. Those that it recomputes lie in the memory of the first block that
 * recomputes them. Statistics and lse are only a few floats per position, so every block has its
 * own. */
static void lay_out_block(sgt_cpu_backend *c, sgt_cpu_block *l)
{
    const sgt_cpu_shape *s = &c->shape;
    size_t N = s->N, C = s->C;
    const sgt_cpu_block *cheap =
        l->recompute == SGT_RECOMPUTE_NONE || l == c->share_cheap ? NULL : c->share_cheap;
    const sgt_cpu_block *inside =
        l->recompute < SGT_RECOMPUTE_BLOCK || l == c->share_inside ? NULL : c->share_inside;
    l->ln1 = cheap ? cheap->ln1 : operand(c, N * C);
    l->mean1 = floats(c, N);
    l->rstd1 = floats(c, N);
    l->qkv = inside ? inside->qkv : floats(c, N * 3 * C);
    l->att = inside ? inside->att : floats(c, N * C);
    l->lse = floats(c, N * s->H);
    l->mid = inside ? inside->mid : floats(c, N * C);
    l->ln2 = cheap ? cheap->ln2 : operand(c, N * C);
    l->mean2 = floats(c, N);
    l->rstd2 = floats(c, N);
    l->fc = inside ? inside->fc : floats(c, N * 4 * C);
    l->gelu = cheap ? cheap->gelu : operand(c, N * 4 * C);
    l->out = floats(c, N * C);
}

/* Lay out the gradients. Each tensor's gradient is declared to live.h as a buffer of its own,
 * because they come into use one after the other. */
static void lay_out_gradients(sgt_cpu_backend *c, size_t flat)
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
    kind(c, "gradients");
    if (!c->group) return;
    c->buf.received = floats(c, sgt_cpu_ranks_received(s));
    kind(c, "gradients received");
}

static void lay_out_parameters(sgt_cpu_backend *c, size_t flat)
{
    const sgt_cpu_shape *s = &c->shape;
    c->buf.params = floats(c, flat);
    kind(c, "weights");
    c->buf.weights = c->buf.params;
    if (s->rounding) {
        c->buf.weights = take(c, flat, s->bf16 ? sizeof(uint16_t) : sizeof(float));
        kind(c, s->bf16 ? "16-bit copies" : "rounded weights");
    }
    c->buf.m = take(c, flat, sgt_cpu_moment_bytes(s));
    if (s->o.optim.kind != SGT_SGD)
        c->buf.v = take(c, sgt_cpu_second(s, SIZE_MAX), sgt_cpu_moment_bytes(s));
    kind(c, "moments");
}

static void lay_out_head(sgt_cpu_backend *c)
{
    const sgt_cpu_shape *s = &c->shape;
    if (s->own_head) c->head.memory = take(c, sgt_head_memory(&c->head), 1);
    else c->buf.logits = floats(c, s->head_rows * s->ldv);
    c->head.scratch = c->buf.products;
    if (s->bf16 && !s->own_head)
        c->buf.packed_logits = take(c, s->head_rows * s->ldv, sizeof(uint16_t));
    c->buf.loss = floats(c, s->N);
    kind(c, "head");
}

void sgt_cpu_lay_out(sgt_cpu_backend *c)
{
    const sgt_cpu_shape *s = &c->shape;
    size_t N = s->N, C = s->C, flat = sgt_model_floats(&s->o.model);
    c->report.kinds = 0;
    sgt_live_free(&c->report.live);
    lay_out_parameters(c, flat);
    lay_out_gradients(c, flat);
    c->buf.x0 = floats(c, N * C);
    for (size_t i = 0; i < s->o.model.layers; i++) lay_out_block(c, c->blocks + i);
    c->buf.lnf = floats(c, N * C);
    c->buf.meanf = floats(c, N);
    c->buf.rstdf = floats(c, N);
    kind(c, "activations");
    c->buf.dx = floats(c, N * C);
    c->buf.dln = floats(c, N * C);
    c->buf.dwide = floats(c, N * 4 * C);
    c->buf.partial = floats(c, s->tiles * 2 * C);
    if (s->bf16) {
        c->buf.packed = take(c, N * C, sizeof(uint16_t));
        c->buf.packed_dy = take(c, N * 4 * C, sizeof(uint16_t));
    }
    c->buf.grown = take(c, (C + SGT_EMBED_COLUMNS - 1) / SGT_EMBED_COLUMNS, sizeof(double));
    c->buf.squares = take(c, c->update.piece_count, sizeof(double));
    kind(c, "activation gradients");
    c->buf.scratch = floats(c, (size_t)s->o.threads * s->scratch_floats);
    kind(c, "attention");
    c->buf.products = take(c, sgt_gemm_scratch(s->o.threads), 1);
    kind(c, "products");
    if (s->o.optim.kind == SGT_MUON) {
        c->buf.muon = take(c, sgt_cpu_muon_memory(s), 1);
        kind(c, "Muon");
    }
    lay_out_head(c);
    c->buf.ids = take(c, N, sizeof(int32_t));
    c->buf.targets = take(c, N, sizeof(int32_t));
    if (s->o.documents) c->buf.start = take(c, N, sizeof(int32_t));
    kind(c, "data");
    if (c->report.live.count) sgt_cpu_live(c);
    c->base.live = c->report.live.failed ? NULL : sgt_cpu_live_count;
}
