/* large_attention_cases.cpp: attention on arrays of more than 2^32 elements (large.h). */
#include "tests/kernels/host/large.h"

/* ---- attention: 330 sequences; the last one is also computed alone ---- */

struct Attention {
    static constexpr size_t B = 330, TOKEN = 3 * HEADS * D, PLAIN = HEADS * D;
    /* where the last sequence begins */
    static constexpr size_t QKV = (B - 1) * LENGTH * TOKEN, OUT = (B - 1) * LENGTH * PLAIN;
    static constexpr size_t ROWS = (B - 1) * HEADS * LENGTH;
    static_assert(OUT > (size_t)1 << 32, "the last sequence lies beyond what 32 bits count");
};

/* Fill a kernel's input. Only the rows of the last head at both ends of the last sequence are
 * random, others are 0. */
template <class T> static void fill_heads(check *t, T *x, size_t width, size_t parts)
{
    for (size_t row = 0; row < 128; row++)
        for (size_t p = 0; p < parts; p++)
            fill(t, x + (row < 64 ? row : LENGTH - 128 + row) * width + (p * HEADS + HEADS - 1) * D,
                 D);
}

using forward_call = decltype(&sgt_cuda_attention);
using backward_call = decltype(&sgt_cuda_attention_backward);

template <class T>
static void attention(check *t, forward_call forward, backward_call backward, float rate)
{
    typedef Attention A;
    Sparse sparse(t);
    T *qkv = sparse.array<T>(A::B * LENGTH * A::TOKEN),
      *out = sparse.array<T>(A::B * LENGTH * A::PLAIN);
    T *dqkv = sparse.array<T>(A::B * LENGTH * A::TOKEN),
      *dout = sparse.array<T>(A::B * LENGTH * A::PLAIN);
    T *few = sparse.array<T>(LENGTH * A::PLAIN), *dfew = sparse.array<T>(LENGTH * A::TOKEN);
    float *lse = sparse.array<float>(A::B * HEADS * LENGTH),
          *delta = sparse.array<float>(A::B * HEADS * LENGTH);
    float *few_lse = sparse.array<float>(HEADS * LENGTH),
          *few_delta = sparse.array<float>(HEADS * LENGTH);
    int32_t *start = sparse.array<int32_t>(A::B * LENGTH),
            *end = sparse.array<int32_t>(A::B * LENGTH);
    if (!qkv || !out || !dqkv || !dout || !few || !dfew || !lse || !delta || !few_lse ||
        !few_delta || !start || !end)
        return;
    fill_heads(t, qkv + A::QKV, A::TOKEN, 3);
    fill_heads(t, dout + A::OUT, A::PLAIN, 1);
    for (size_t i = 0; i < LENGTH; i++) end[(A::B - 1) * LENGTH + i] = (int32_t)LENGTH;
    sgt_cuda_place places[] = {{11, 5, 0, 1}, {11, 5, A::B - 1, 1}};
    sgt_cuda_place *where = cuda_copy(t, places, 2);
    sgt_cuda_dropout all = {where, 0, 3, SGT_DROP_ATTENTION, rate}, one = all;
    one.place = where + 1;
    sgt_cuda_documents documents = {start, end};
    sgt_cuda_documents alone = {start + (A::B - 1) * LENGTH, end + (A::B - 1) * LENGTH};

    host::OnlyEdges edges(0, 1);
    const sgt_cuda_heads rows = {Type<T>::id, 0, A::B, LENGTH, HEADS, D, 0.125f, &all, &documents},
                         last = {Type<T>::id, 0, 1, LENGTH, HEADS, D, 0.125f, &one, &alone};
    forward(0, &rows, out, lse, qkv);
    forward(0, &last, few, few_lse, qkv + A::QKV);
    same(t, "out", out + A::OUT, (const T *)few, LENGTH * A::PLAIN);
    same(t, "lse", lse + A::ROWS, (const float *)few_lse, HEADS * LENGTH);
    backward(0, &rows, dqkv, delta, dout, out, lse, qkv);
    backward(0, &last, dfew, few_delta, dout + A::OUT, few, few_lse, qkv + A::QKV);
    same(t, "delta", delta + A::ROWS, (const float *)few_delta, HEADS * LENGTH);
    same(t, "dqkv", dqkv + A::QKV, (const T *)dfew, LENGTH * A::TOKEN);
    if (!written(few, LENGTH * A::PLAIN) || !written(dfew, LENGTH * A::TOKEN))
        check_fail(t, "nothing was written");
}

LARGE_CASE(attention)
{
    attention<dev::bf16>(t, sgt_cuda_attention, sgt_cuda_attention_backward, 0);
}

LARGE_CASE(attention_dropout)
{
    attention<dev::bf16>(t, sgt_cuda_attention, sgt_cuda_attention_backward, 0.25f);
}

/* ---- naive attention, which stores the (T, T) scores ---- */

LARGE_CASE(heads)
{
    typedef dev::bf16 T;
    typedef Attention A;
    Sparse sparse(t);
    const size_t n = A::B * LENGTH * A::PLAIN;
    T *qkv = sparse.array<T>(3 * n), *back = sparse.array<T>(3 * n), *part[3];
    bool there = qkv && back;
    for (T *&p : part) there = (p = sparse.array<T>(n)) && there;
    if (!there) return;
    fill(t, qkv + 3 * n - A::TOKEN, A::TOKEN);
    host::OnlyEdges edges(0, 4); /* the blocks that cover all numbers of the last token */
    const sgt_cuda_heads all = {SGT_BF16, 0, A::B, LENGTH, HEADS, D, 1, nullptr, nullptr};
    sgt_cuda_split_heads(0, &all, part[0], part[1], part[2], qkv);
    for (size_t p = 0; p < 3; p++)
        for (size_t h = 0; h < HEADS; h++)
            same(t, "a head", part[p] + (((A::B - 1) * HEADS + h + 1) * LENGTH - 1) * D,
                 (const T *)qkv + 3 * n - A::TOKEN + (p * HEADS + h) * D, D);
    sgt_cuda_join_heads(0, &all, back, part[0], part[1], part[2]);
    same(t, "joined", back + 3 * n - A::TOKEN, (const T *)qkv + 3 * n - A::TOKEN, A::TOKEN);
}

LARGE_CASE(scores)
{
    typedef dev::bf16 T;
    Sparse sparse(t);
    const size_t B = 3, matrix = LENGTH * LENGTH, n = B * HEADS * matrix, one = HEADS * matrix,
                 row = LENGTH;
    T *x = sparse.array<T>(n), *probs = sparse.array<T>(n), *few = sparse.array<T>(one);
    T *few_probs = sparse.array<T>(one);
    if (!x || !probs || !few || !few_probs) return;
    sgt_cuda_place places[] = {{11, 5, 0, 1}, {11, 5, B - 1, 1}};
    sgt_cuda_place *where = cuda_copy(t, places, 2);
    sgt_cuda_dropout all = {where, 0, 3, SGT_DROP_ATTENTION, 0.25f}, last = all;
    last.place = where + 1;
    fill(t, probs + n - 2 * row, 2 * row);
    memcpy(few_probs + one - 2 * row, probs + n - 2 * row, 2 * row * sizeof(T));

    host::OnlyEdges edges(0, 1);
    const sgt_cuda_heads rows = {SGT_BF16, 0, B, LENGTH, HEADS, D, 0.125f, &all, nullptr},
                         only = {SGT_BF16, 0, 1, LENGTH, HEADS, D, 0.125f, &last, nullptr};
    sgt_cuda_causal_softmax(0, &rows, probs);
    sgt_cuda_causal_softmax(0, &only, few_probs);
    same(t, "probabilities", probs + n - 2 * row, (const T *)few_probs + one - 2 * row, 2 * row);
    sgt_cuda_drop_probs(0, &rows, x, probs);
    sgt_cuda_drop_probs(0, &only, few, few_probs);
    same(t, "dropped", x + n - 2 * row, (const T *)few + one - 2 * row, 2 * row);
    sgt_cuda_causal_softmax_backward(0, &rows, x, probs);
    sgt_cuda_causal_softmax_backward(0, &only, few, few_probs);
    same(t, "gradients", x + n - 2 * row, (const T *)few + one - 2 * row, 2 * row);
    if (!written(few + one - row, row)) check_fail(t, "nothing was written");
}
