/* layout.c: where everything lies in the CPU backend's one arena, counted by kind. */
#include "cpu/ranks.h"
#include "cpu_backend.h"

/* Ends a kind of memory: what was taken since the last one; of what ranks have in common, a rank's share. */
static void kind(sgt_cpu_backend *c, const char *name)
{
    uint64_t before = 0, used = c->arena.used + c->common.used / c->ranks;
    for (size_t i = 0; i < c->kinds; i++) before += c->memory[i].bytes;
    c->memory[c->kinds++] = (sgt_memory_kind){name, used - before};
}

/* A buffer of the kind that is being laid out; of what ranks have in common, a rank's share of its bytes. */
static void *take_from(sgt_cpu_backend *c, sgt_arena *a, size_t count, size_t size)
{
    size_t before = a->used;
    void *p = sgt_arena_take(a, count, size);
    if (p) sgt_live_buffer_at(&c->live, p, (a->used - before) / (a == &c->common ? c->ranks : 1), (unsigned)c->kinds);
    return p;
}

static void *take(sgt_cpu_backend *c, size_t count, size_t size) { return take_from(c, &c->arena, count, size); }
static float *floats(sgt_cpu_backend *c, size_t count) { return take(c, count, sizeof(float)); }
/* For products alone, as they take it. */
static void *operand(sgt_cpu_backend *c, size_t count)
{
    return take(c, count, c->bf16 ? sizeof(uint16_t) : sizeof(float));
}

/* What is computed again lies in the first such block's memory; of the rest every block has its own. Statistics and lse
 * are a few floats a position, and stay. */
static void lay_out_block(sgt_cpu_backend *c, sgt_cpu_block *l)
{
    size_t N = c->N, C = c->C;
    const sgt_cpu_block *cheap = l->recompute == SGT_RECOMPUTE_NONE || l == c->share_cheap ? NULL : c->share_cheap;
    const sgt_cpu_block *inside = l->recompute < SGT_RECOMPUTE_BLOCK || l == c->share_inside ? NULL : c->share_inside;
    l->ln1 = cheap ? cheap->ln1 : operand(c, N * C);
    l->mean1 = floats(c, N);
    l->rstd1 = floats(c, N);
    l->qkv = inside ? inside->qkv : floats(c, N * 3 * C);
    l->att = inside ? inside->att : floats(c, N * C);
    l->lse = floats(c, N * c->H);
    l->mid = inside ? inside->mid : floats(c, N * C);
    l->ln2 = cheap ? cheap->ln2 : operand(c, N * C);
    l->mean2 = floats(c, N);
    l->rstd2 = floats(c, N);
    l->fc = inside ? inside->fc : floats(c, N * 4 * C);
    l->gelu = cheap ? cheap->gelu : operand(c, N * 4 * C);
    l->out = floats(c, N * C);
}

/* Once for all ranks of one machine. */
static void *common(sgt_cpu_backend *c, size_t count, size_t size)
{
    return take_from(c, c->sharing ? &c->common : &c->arena, count, size);
}

/* A buffer a tensor: they are written one after the other. */
static void lay_out_gradients(sgt_cpu_backend *c, size_t flat)
{
    c->grads = c->sharing ? sgt_cpu_ranks_lay_out_grads(c) : sgt_arena_take(&c->arena, flat, sizeof(float));
    for (size_t i = 0, n = sgt_model_tensors(&c->model); i < n && c->grads; i++) {
        sgt_tensor t, next = {.offset = flat};
        sgt_model_tensor(&c->model, i, &t);
        if (i + 1 < n) sgt_model_tensor(&c->model, i + 1, &next);
        sgt_live_buffer_at(&c->live, c->grads + t.offset, (next.offset - t.offset) * sizeof(float), (unsigned)c->kinds);
    }
    kind(c, "gradients");
}

void sgt_cpu_lay_out(sgt_cpu_backend *c)
{
    size_t N = c->N, C = c->C, flat = sgt_model_floats(&c->model);
    c->kinds = 0;
    sgt_live_free(&c->live);
    sgt_cpu_ranks_lay_out(c);
    c->params = common(c, flat, sizeof(float));
    kind(c, "weights");
    c->weights = c->params;
    if (c->rounding) {
        c->weights = common(c, flat, c->bf16 ? sizeof(uint16_t) : sizeof(float));
        kind(c, c->bf16 ? "16-bit copies" : "rounded weights");
    }
    c->m = common(c, flat, sizeof(float));
    if (c->optim.kind == SGT_ADAMW) c->v = common(c, flat, sizeof(float));
    kind(c, "moments");
    lay_out_gradients(c, flat);
    c->x0 = floats(c, N * C);
    for (size_t i = 0; i < c->model.layers; i++) lay_out_block(c, c->blocks + i);
    c->lnf = floats(c, N * C);
    c->meanf = floats(c, N);
    c->rstdf = floats(c, N);
    kind(c, "activations");
    c->dx = floats(c, N * C);
    c->dln = floats(c, N * C);
    c->dwide = floats(c, N * 4 * C);
    c->partial = floats(c, c->tiles * 2 * C);
    if (c->bf16) {
        c->packed = take(c, N * C, sizeof(uint16_t));
        c->packed_dy = take(c, N * 4 * C, sizeof(uint16_t));
    }
    c->grown = take(c, (C + SGT_EMBED_COLUMNS - 1) / SGT_EMBED_COLUMNS, sizeof(double));
    c->squares = take(c, c->piece_count, sizeof(double));
    kind(c, "activation gradients");
    c->scratch = floats(c, (size_t)c->threads * c->scratch_floats);
    kind(c, "attention");
    c->products = take(c, sgt_gemm_scratch(c->threads), 1);
    kind(c, "products");
    if (c->own_head) c->head.memory = take(c, sgt_head_memory(&c->head), 1);
    else c->logits = floats(c, c->head_rows * c->ldv);
    c->head.scratch = c->products;
    if (c->bf16 && !c->own_head) c->packed_logits = take(c, c->head_rows * c->ldv, sizeof(uint16_t));
    c->loss = floats(c, N);
    kind(c, "head");
    c->ids = take(c, N, sizeof(int32_t));
    c->targets = take(c, N, sizeof(int32_t));
    if (c->documents) c->start = take(c, N, sizeof(int32_t));
    kind(c, "data");
    if (c->live.count) sgt_cpu_live(c);
    c->base.live = c->live.failed ? NULL : sgt_cpu_live_count;
}
