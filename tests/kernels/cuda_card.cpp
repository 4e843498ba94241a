/* cuda_card.cpp: cases that only a GPU is fast enough for: Hopper's attention, run hundreds of
 * times. Index arithmetic beyond 2^31 numbers is tested on the host (host/large.h). */
#include <string.h>

#include "kernels/cuda/runtime.h"
#include "tests/kernels/cuda_types.h"

using dev::bf16;

/* Allocates device memory and pinned memory, and has a stream. The first error fails the case. */
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

/* Launch Hopper's backward pass many times on the same inputs. A rare race would change some
 * bits. */
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
