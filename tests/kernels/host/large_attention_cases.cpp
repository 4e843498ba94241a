/* large_attention_cases.cpp: attention on arrays of more than 2^32 elements (large.h). */
#include "tests/kernels/host/large.h"

/* ---- attention: 330 sequences; the last one is also computed alone ---- */

static constexpr size_t B = 330, PLAIN = LENGTH * HEADS * D, ROWS = LENGTH * HEADS;
static_assert((B - 1) * PLAIN > HUGE_COUNT, "the last sequence lies beyond what 32 bits count");

/* Return a kernel's input of `parts` numbers for each of `out`. Only the rows of the last head at
 * both ends of the last sequence are random, others are 0. */
template <class T> static Tail<T> make_heads(Sparse &sparse, size_t parts)
{
    T *x = sparse.array<T>(parts * B * PLAIN), *last = x + parts * (B - 1) * PLAIN;
    for (size_t row = 0; row < 128; row++)
        for (size_t p = 0; p < parts; p++)
            sparse.fill(
                last + ((row < 64 ? row : LENGTH - 128 + row) * parts + p + 1) * HEADS * D - D, D);
    return {{x, last}, parts * B * PLAIN, parts * PLAIN};
}

static void attention(check *t, float rate)
{
    typedef dev::bf16 T;
    Sparse sparse(t);
    const Tail<T> qkv = make_heads<T>(sparse, 3), dout = make_heads<T>(sparse, 1);
    const auto out = sparse.output<T>(B * PLAIN, PLAIN);
    const auto dqkv = sparse.output<T>(3 * B * PLAIN, 3 * PLAIN);
    const auto lse = sparse.output<float>(B * ROWS, ROWS),
               delta = sparse.output<float>(B * ROWS, ROWS);
    int32_t *start = sparse.array<int32_t>(B * LENGTH), *end = sparse.array<int32_t>(B * LENGTH);
    std::fill(end + (B - 1) * LENGTH, end + B * LENGTH, (int32_t)LENGTH);
    const Drops drops(t, 0, B - 1, SGT_DROP_ATTENTION, rate);
    /* the last row's output, if the forward pass's last block does not compute it */
    sparse.fill(out[0] + out.n - D, D);
    memcpy(out[1] + out.k - D, out[0] + out.n - D, D * sizeof(T));
    at_the_end(1, [&](int alone) {
        const size_t skipped = alone ? (B - 1) * LENGTH : 0;
        const sgt_cuda_documents documents = {start + skipped, end + skipped};
        const sgt_cuda_heads all = {SGT_BF16, 0,      alone ? 1 : B,    LENGTH,    HEADS,
                                    D,        0.125f, &drops.at[alone], &documents};
        sgt_cuda_attention(0, &all, out[alone], lse[alone], qkv[alone]);
        sgt_cuda_attention_backward(0, &all, dqkv[alone], delta[alone], dout[alone], out[alone],
                                    lse[alone], qkv[alone]);
    });
    sparse.same("out", out);
    sparse.same("lse", lse);
    sparse.same("delta", delta);
    sparse.same("dqkv", dqkv);
}

LARGE_CASE(attention) { attention(t, 0); }
LARGE_CASE(attention_dropout) { attention(t, 0.25f); }

/* ---- naive attention, which stores the (T, T) scores ---- */

LARGE_CASE(scores)
{
    typedef dev::bf16 T;
    Sparse sparse(t);
    const size_t rows = 3, one = HEADS * LENGTH * LENGTH, n = rows * one, seen = 2 * LENGTH;
    const auto x = sparse.output<T>(n, one);
    Tail<T> probs = sparse.output<T>(n, one);
    sparse.fill(probs[0] + n - seen, seen);
    memcpy(probs[1] + one - seen, probs[0] + n - seen, seen * sizeof(T));
    const Drops drops(t, 0, rows - 1, SGT_DROP_ATTENTION, 0.25f);
    for (int backward = 0; backward < 2; backward++) {
        at_the_end(1, [&](int alone) {
            const sgt_cuda_heads all = {SGT_BF16, 0,      alone ? 1 : rows, LENGTH, HEADS,
                                        D,        0.125f, &drops.at[alone], nullptr};
            if (backward) sgt_cuda_causal_softmax_backward(0, &all, x[alone], probs[alone]);
            if (backward) return;
            sgt_cuda_causal_softmax(0, &all, probs[alone]);
            sgt_cuda_drop_probs(0, &all, x[alone], probs[alone]);
        });
        sparse.same("probabilities", probs, seen);
        sparse.same(backward ? "gradients" : "dropped", x, seen);
    }
}
