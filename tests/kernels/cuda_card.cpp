/* cuda_card.cpp: kernels at the sizes of a whole training step, where an index no longer fits in 31
 * bits or a grid has its full width. Only a GPU has the memory and the speed for these cases. The
 * result for a row or a head does not depend on the number of the others, so each must have the
 * same bits as in a small launch. Other cases compare small launches with kernels/ref. */
#include <string.h>

#include "kernels/cuda/nccl.h"
#include "kernels/cuda/runtime.h"
#include "tests/kernels/cuda_types.h"

using dev::bf16;

/* Device memory, pinned memory and a stream. The first error fails the case. */
struct Room {
    check *t;
    sgt_cuda_stream s = nullptr;
    void *device[12] = {}, *pinned[12] = {};
    int devices = 0, pins = 0;
    bool ok = true;

    explicit Room(check *t_) : t(t_)
    {
        sgt_cuda_device d;
        sgt_error err;
        took(sgt_cuda_device_open(&d, 0, &err), err);
        took(sgt_cuda_stream_new(&s, &err), err);
    }
    ~Room()
    {
        for (int i = 0; i < devices; i++) sgt_cuda_free(device[i]);
        for (int i = 0; i < pins; i++) sgt_cuda_host_free(pinned[i]);
        sgt_cuda_stream_free(s);
    }
    void took(int rc, const sgt_error &err)
    {
        if (rc < 0 && ok) check_fail(t, "%s", err.text);
        ok = ok && rc == SGT_OK;
    }
    template <class T> T *there(size_t n)
    {
        sgt_error err;
        void *p = nullptr;
        took(sgt_cuda_malloc(&p, n * sizeof(T), &err), err);
        return static_cast<T *>(ok ? device[devices++] = p : nullptr);
    }
    template <class T> T *here(size_t n)
    {
        sgt_error err;
        void *p = nullptr;
        took(sgt_cuda_host_alloc(&p, n * sizeof(T), &err), err);
        return static_cast<T *>(ok ? pinned[pins++] = p : nullptr);
    }
    template <class T> void copy(T *to, const T *from, size_t n)
    {
        sgt_cuda_copy(s, to, from, n * sizeof(T));
    }
    void finish()
    {
        sgt_error err;
        took(sgt_cuda_finish(s, &err), err);
    }
};

/* Fill x with n numbers, uniform in -1 .. 1. Faster than the harness draws them. */
template <class T> static void draw(check *t, T *x, size_t n)
{
    uint64_t state = check_number(t, UINT64_MAX) | 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[i] = dev::from_float<T>((float)(state >> 40) * 0x1p-23f - 1);
    }
}

/* ---- 2^31 logits and more ---- */

static const size_t BLOCK = 1000, BLOCKS = 43, V = 50257, LD = 50304; /* 2.16e9 logits, 4.3 GB */

/* Repeat a block of rows and targets. Each copy must have the same bits as the first block, which
 * was launched alone. */
CUDA_CASE(card_cross_entropy)
{
    if (!cuda_card(t)) return;
    Room r(t);
    bf16 *logits = r.there<bf16>(BLOCKS * BLOCK * LD);
    bf16 *block = r.here<bf16>(BLOCK * LD), *got = r.here<bf16>(BLOCK * LD);
    float *loss = r.there<float>(BLOCKS * BLOCK), *losses = r.here<float>(BLOCKS * BLOCK),
          *scale = r.there<float>(1);
    int32_t *targets = r.there<int32_t>(BLOCKS * BLOCK), *ids = r.here<int32_t>(BLOCKS * BLOCK);
    float *factor = r.here<float>(BLOCK + 1);
    if (!r.ok) return;
    check_at(t, "%zu rows of %zu", BLOCKS * BLOCK, LD);
    draw(t, block, BLOCK * LD);
    for (size_t i = 0; i < BLOCK; i++) ids[i] = (int32_t)check_number(t, V);
    for (size_t i = BLOCK; i < BLOCKS * BLOCK; i++) ids[i] = ids[i - BLOCK];
    factor[0] = 0x1p-10f;
    r.copy(scale, factor, 1);
    r.copy(targets, ids, BLOCKS * BLOCK);
    r.copy(logits, block, BLOCK * LD);
    sgt_cuda_cross_entropy(r.s, SGT_BF16, logits, logits, loss, targets, BLOCK, V, LD, scale);
    r.copy(got, logits, BLOCK * LD);
    r.copy(factor + 1, loss, BLOCK);
    for (size_t k = 0; k < BLOCKS; k++) r.copy(logits + k * BLOCK * LD, block, BLOCK * LD);
    sgt_cuda_cross_entropy(r.s, SGT_BF16, logits, logits, loss, targets, BLOCKS * BLOCK, V, LD,
                           scale);
    r.copy(losses, loss, BLOCKS * BLOCK);
    r.finish();
    for (size_t k = 0; k < BLOCKS && r.ok; k++) {
        r.copy(block, logits + k * BLOCK * LD, BLOCK * LD);
        r.finish();
        if (memcmp(block, got, BLOCK * LD * sizeof *got) != 0)
            check_fail(t, "block %zu has other gradients", k);
        if (memcmp(losses + k * BLOCK, factor + 1, BLOCK * sizeof *losses) != 0)
            check_fail(t, "block %zu has other losses", k);
    }
}

/* ---- attention of B*H = 768 ---- */

static const size_t B = 64, T = 1024, H = 12, D = 64;

/* Run the forward and the backward pass over `heads` heads of `rows` rows. */
static void attend(Room *r, bf16 *out, float *lse, bf16 *dqkv, float *delta, const bf16 *qkv,
                   const bf16 *dout, size_t rows, size_t heads)
{
    const sgt_cuda_heads a = {SGT_BF16, 0, rows, T, heads, D, 0.125f, nullptr, nullptr};
    sgt_cuda_attention(r->s, &a, out, lse, qkv);
    sgt_cuda_attention_backward(r->s, &a, dqkv, delta, dout, out, lse, qkv);
}

/* Copy head h of row b out of `parts` interleaved arrays (rows, T, parts, H, D) into an array (1,
 * T, parts, 1, D). */
static void cut_head(bf16 *to, const bf16 *from, size_t b, size_t h, size_t parts)
{
    for (size_t i = 0; i < T * parts; i++)
        memcpy(to + i * D, from + ((b * T * parts + i) * H + h) * D, D * sizeof *to);
}

/* Compare the first head, the last one, and some in between with a launch of that head alone. */
CUDA_CASE(card_attention_heads)
{
    if (!cuda_card(t)) return;
    const size_t n = B * T * H * D, one = T * D;
    Room r(t);
    bf16 *qkv = r.there<bf16>(3 * n), *dout = r.there<bf16>(n), *out = r.there<bf16>(n),
         *dqkv = r.there<bf16>(3 * n);
    float *lse = r.there<float>(B * H * T), *delta = r.there<float>(B * H * T);
    bf16 *x = r.here<bf16>(3 * n), *dx = r.here<bf16>(n), *y = r.here<bf16>(n),
         *g = r.here<bf16>(3 * n);
    bf16 *alone = r.here<bf16>(3 * one), *cut = r.here<bf16>(3 * one);
    if (!r.ok) return;
    check_at(t, "B %zu, T %zu, H %zu, D %zu", B, T, H, D);
    draw(t, x, 3 * n);
    draw(t, dx, n);
    r.copy(qkv, x, 3 * n);
    r.copy(dout, dx, n);
    attend(&r, out, lse, dqkv, delta, qkv, dout, B, H);
    r.copy(y, out, n);
    r.copy(g, dqkv, 3 * n);
    r.finish();
    for (size_t k = 0; k < 8 && r.ok; k++) {
        size_t which = k == 0   ? 0
                       : k == 1 ? B * H - 1
                                : check_number(t, B * H),
               b = which / H, h = which % H;
        cut_head(cut, x, b, h, 3);
        r.copy(qkv, cut, 3 * one);
        r.finish();
        cut_head(cut, dx, b, h, 1);
        r.copy(dout, cut, one);
        attend(&r, out, lse, dqkv, delta, qkv, dout, 1, 1);
        r.copy(alone, out, one);
        r.finish();
        cut_head(cut, y, b, h, 1);
        if (memcmp(alone, cut, one * sizeof *cut) != 0)
            check_fail(t, "out: row %zu, head %zu has others", b, h);
        r.copy(alone, dqkv, 3 * one);
        r.finish();
        cut_head(cut, g, b, h, 3);
        if (memcmp(alone, cut, 3 * one * sizeof *cut) != 0)
            check_fail(t, "dqkv: row %zu, head %zu has others", b, h);
    }
}

/* ---- attention's gradients, many times ---- */

struct attention_shape {
    size_t D;
    bool drops;
    size_t longest; /* tokens of a document; 0: one document per row */
};

/* Return how many of the n gradients differ, and report the first three. */
template <class T>
static size_t compare(check *t, int launch, const T *got, const T *first, const attention_shape &a,
                      size_t n)
{
    static const char *const names[] = {"dq", "dk", "dv"};
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++) {
        if (memcmp(&got[i], &first[i], sizeof *got) == 0 || wrong++ >= 3) continue;
        check_fail(t, "launch %d: %s of token %zu, head %zu, column %zu is %g, not %g", launch,
                   names[i / a.D / 2 % 3], i / a.D / 6, i / a.D % 2, i % a.D,
                   (double)dev::to_float(got[i]), (double)dev::to_float(first[i]));
    }
    return wrong;
}

/* Launch Hopper's backward pass many times on equal inputs; a rare race changes some bits. */
template <class T> static void attend_again(check *t, const attention_shape &a)
{
    static const size_t rows = 2, length = 203, heads = 2, tokens = rows * length;
    const size_t n = tokens * heads * a.D;
    Room r(t);
    T *qkv = r.there<T>(3 * n), *dout = r.there<T>(n), *out = r.there<T>(n),
      *dqkv = r.there<T>(3 * n), *x = r.here<T>(3 * n), *first = r.here<T>(3 * n);
    float *lse = r.there<float>(tokens * heads), *delta = r.there<float>(tokens * heads);
    int32_t *bounds = r.there<int32_t>(2 * tokens), *tiles = r.here<int32_t>(2 * tokens);
    sgt_cuda_place *place = r.there<sgt_cuda_place>(1), *seed = r.here<sgt_cuda_place>(1);
    if (!r.ok) return;
    check_at(t, "D %zu%s, documents of %zu", a.D, a.drops ? ", dropout" : "", a.longest);
    for (size_t i = 0, from; i < tokens && a.longest; i++) {
        from = i % length / a.longest * a.longest;
        tiles[i] = (int32_t)from;
        tiles[tokens + i] = (int32_t)(from + a.longest < length ? from + a.longest : length);
    }
    *seed = {77, 5, 11, 1};
    r.copy(bounds, tiles, 2 * tokens);
    r.copy(place, seed, 1);
    draw(t, x, 3 * n);
    r.copy(qkv, x, 3 * n);
    r.finish();
    draw(t, x, n);
    r.copy(dout, x, n);
    const sgt_cuda_dropout drop = {place, 0, 5, 1, 0.3f}, *dropped = a.drops ? &drop : nullptr;
    const sgt_cuda_documents documents = {bounds, bounds + tokens},
                             *seen = a.longest ? &documents : nullptr;
    const sgt_cuda_heads all = {Type<T>::id, 0, rows, length, heads, a.D, 0.1f, dropped, seen};
    sgt_cuda_attention_hopper(r.s, &all, out, lse, qkv);
    for (int launch = 0; launch < 200 && r.ok; launch++) {
        sgt_cuda_zero(r.s, dqkv, 3 * n * sizeof *dqkv);
        sgt_cuda_attention_hopper_backward(r.s, &all, dqkv, delta, dout, out, lse, qkv);
        r.copy(launch ? x : first, dqkv, 3 * n);
        r.finish();
        if (!launch || memcmp(x, first, 3 * n * sizeof *x) == 0) continue;
        check_fail(t, "%zu differ", compare(t, launch, x, first, a, 3 * n));
        return;
    }
}

CUDA_CASE(card_attention_hopper_again)
{
    if (!cuda_card(t) || !cuda_hopper(t)) return;
    for (size_t width : {64, 128})
        for (bool drops : {false, true})
            for (size_t longest : {0, 7, 130}) {
                attend_again<bf16>(t, {width, drops, longest});
                attend_again<dev::f16>(t, {width, drops, longest});
            }
}

/* ---- NCCL with one rank: the calls of a step, launched directly and then in a graph ---- */

static const size_t N = 1000;

static void calls(Room *r, const sgt_nccl *n, sgt_nccl_comm comm, float *x, float *y, float *z,
                  float *in, float *out)
{
    sgt_nccl_stream s = (sgt_nccl_stream)r->s;
    int code = 0;
    r->copy(x, in, N);
    sgt_cuda_zero(r->s, y, N * sizeof *y);
    sgt_cuda_zero(r->s, z, N * sizeof *z);
    code |= n->all_reduce(x, x, N, SGT_NCCL_FLOAT32, SGT_NCCL_SUM, comm, s);
    code |= n->reduce_scatter(x, y, N, SGT_NCCL_FLOAT32, SGT_NCCL_SUM, comm, s);
    code |= n->group_start();
    code |= n->all_gather(y, z, N, SGT_NCCL_FLOAT32, comm, s);
    code |= n->group_end();
    code |= n->broadcast(z, z, N, SGT_NCCL_FLOAT32, 0, comm, s);
    r->copy(out, z, N);
    if (code) check_fail(r->t, "NCCL: %s (%s)", n->error_string(code), n->last_error(nullptr));
}

static void expect(Room *r, const float *in, float *out)
{
    r->finish();
    if (memcmp(in, out, N * sizeof *in) != 0) check_fail(r->t, "other numbers came back");
    memset(out, 0xff, N * sizeof *out);
}

CUDA_CASE(nccl_one_rank)
{
    sgt_error err;
    const sgt_nccl *n = sgt_nccl_load(&err);
    if (!n) {
        check_skip(t, err.text);
        return;
    }
    Room r(t);
    float *x = r.there<float>(N), *y = r.there<float>(N), *z = r.there<float>(N),
          *in = r.here<float>(N);
    float *out = r.here<float>(N);
    sgt_nccl_id id;
    sgt_nccl_comm comm = nullptr;
    sgt_cuda_graph g = nullptr;
    if (!r.ok) return;
    int code = n->unique_id(&id);
    if (!code) code = n->comm_init_rank(&comm, 1, id, 0);
    if (code) {
        check_fail(t, "NCCL: %s (%s)", n->error_string(code), n->last_error(nullptr));
        return;
    }
    for (size_t i = 0; i < N; i++) in[i] = (float)i;
    check_at(t, "launched");
    calls(&r, n, comm, x, y, z, in, out);
    expect(&r, in, out);
    check_at(t, "in a graph");
    r.took(sgt_cuda_capture(r.s, &err), err);
    calls(&r, n, comm, x, y, z, in, out);
    r.took(sgt_cuda_capture_end(r.s, &g, &err), err);
    for (int k = 1; k < 3 && r.ok; k++) {
        for (size_t i = 0; i < N; i++) in[i] = (float)(i * k) + 1;
        sgt_cuda_graph_run(g, r.s);
        expect(&r, in, out);
    }
    /* The graph is freed before the communicator whose calls it contains. */
    sgt_cuda_graph_free(g);
    n->comm_destroy(comm);
}
