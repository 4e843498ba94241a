/* large_cases.cpp: kernels over more than 2^32 rows and numbers (large.h). */
#include "tests/kernels/host/large.h"

typedef dev::bf16 bf16;

/* ---- softmax and cross-entropy, fused: 2^32 logits and more ---- */

static const size_t V = 50257, LD = 50304;

template <class T> static void classifier(check *t)
{
    Sparse sparse(t);
    const size_t n = HUGE_COUNT / LD + 3;
    const float scale = 0.25f, *by = cuda_copy(t, &scale, 1);
    const auto logits = sparse.inout<T>(n * LD, 2 * LD);
    const auto loss = sparse.output<float>(n, 2);
    int32_t *targets = sparse.array<int32_t>(n);
    targets[n - 2] = (int32_t)V - 1, targets[n - 1] = 50000;
    at_the_end(2, [&](int alone) {
        sgt_cuda_cross_entropy(0, Type<T>::id, logits[alone], logits[alone], loss[alone],
                               alone ? targets + n - 2 : targets, alone ? 2 : n, V, LD, by);
    });
    sparse.same("loss", loss);
    sparse.same("dlogits", logits);
}

LARGE_CASE(classifier_bf16) { classifier<bf16>(t); }
LARGE_CASE(classifier_f32) { classifier<float>(t); }

/* ---- elementwise kernels: the last FEW of 2^32 + 5 numbers ---- */

/* The last FEW numbers begin at the start of a vector. Two blocks cover them. */
static const size_t COUNT = HUGE_COUNT + 5, FEW = 1000 + 5;

LARGE_CASE(elements)
{
    Sparse sparse(t);
    const auto x = sparse.input<bf16>(COUNT, FEW), y = sparse.input<bf16>(COUNT, FEW);
    const auto floats = sparse.input<float>(COUNT, FEW);
    const Tail<bf16> out[] = {sparse.output<bf16>(COUNT, FEW), sparse.output<bf16>(COUNT, FEW),
                              sparse.output<bf16>(COUNT, FEW), sparse.output<bf16>(COUNT, FEW)};
    at_the_end(2, [&](int alone) {
        const size_t n = alone ? FEW : COUNT;
        sgt_cuda_gelu(0, SGT_BF16, out[0][alone], x[alone], n, SGT_GELU_TANH);
        sgt_cuda_gelu_backward(0, SGT_BF16, out[1][alone], y[alone], x[alone], n, SGT_GELU_ERF);
        sgt_cuda_add(0, SGT_BF16, out[2][alone], x[alone], y[alone], n);
        sgt_cuda_convert(0, SGT_BF16, out[3][alone], floats[alone], n);
    });
    static const char *const names[] = {"gelu", "gelu backward", "sum", "conversion"};
    for (int i = 0; i < 4; i++) sparse.same(names[i], out[i]);
}

/* ---- the update: parameters of four floats and more than 2^32 of them ---- */

static sgt_cuda_control *make_control(check *t)
{
    sgt_cuda_control c = {};
    c.lr = 0.01f, c.grad_scale = 0.5f, c.c1 = 0.1, c.c2 = 0.05;
    return cuda_copy(t, &c, 1);
}

LARGE_CASE(updates)
{
    const sgt_cuda_control *control = make_control(t);
    sgt_adamw adamw = {};
    sgt_sgd sgd = {};
    adamw.beta1 = 0.9f, adamw.beta2 = 0.95f, adamw.eps = 1e-8f, adamw.decay = 0.1f;
    sgd.momentum = 0.9f, sgd.decay = 0.1f;
    for (int is_sgd = 0; is_sgd < 2; is_sgd++) {
        Sparse sparse(t);
        const auto p = sparse.inout<float>(COUNT, FEW), m = sparse.inout<float>(COUNT, FEW),
                   g = sparse.inout<float>(COUNT, FEW);
        const auto v = sparse.output<float>(COUNT, FEW);
        const auto copy = sparse.output<bf16>(COUNT, FEW);
        at_the_end(2, [&](int alone) {
            const size_t n = alone ? FEW : COUNT, decayed = n - 100;
            if (is_sgd)
                sgt_cuda_sgd_update(0, SGT_BF16, copy[alone], p[alone], m[alone], g[alone], n,
                                    decayed, 0, &sgd, control);
            else
                sgt_cuda_adamw(0, SGT_BF16, copy[alone], p[alone], m[alone], v[alone], g[alone], n,
                               decayed, 0, &adamw, control);
        });
        sparse.same("p", p);
        sparse.same("m", m);
        if (!is_sgd) sparse.same("v", v);
        check_near(t, "the last gradient", g[0][COUNT - 1], 0, 0);
        sparse.same("copy", copy);
    }
}

/* The norm's blocks stride over all numbers. The last block adds the last vector, and the first
 * block adds the remainder, which does not fill a vector. */
LARGE_CASE(norm)
{
    Sparse sparse(t);
    const size_t n = HUGE_COUNT + 3;
    float *g = sparse.array<float>(n);
    double *scratch = sparse.array<double>(sgt_cuda_grad_norm_scratch() / sizeof(double));
    sgt_cuda_control *control = make_control(t);
    g[0] = 1, g[n - 4] = 10, g[n - 3] = 100, g[n - 1] = 1000;
    host::OnlyEdges edges(1, 1);
    sgt_cuda_grad_squares(0, control, g, n, scratch);
    check_near(t, "squares", control->squares, 1 + 100 + 10000 + 1000000, 0);
}

/* ---- the last two of many rows of 1600 channels ---- */

/* The number of rows is a multiple of the rows that LayerNorm's blocks process in one pass (264
 * blocks of 4 rows), so that the last block processes the last rows. */
static const size_t WIDE = (HUGE_COUNT / C / 1056 + 1) * 1056;

LARGE_CASE(layernorm)
{
    Sparse sparse(t);
    const auto x = sparse.input<bf16>(WIDE * C, 2 * C), y = sparse.input<bf16>(WIDE * C, 2 * C),
               sum = sparse.output<bf16>(WIDE * C, 2 * C),
               out = sparse.output<bf16>(WIDE * C, 2 * C);
    const auto mean = sparse.output<float>(WIDE, 2), rstd = sparse.output<float>(WIDE, 2);
    const float *w = cuda_random<float>(t, C, 1), *b = cuda_random<float>(t, C, 1);
    const Drops drops(t, C, WIDE - 2, SGT_DROP_PROJ, 0.5f);
    at_the_end(1, [&](int alone) {
        sgt_cuda_residual_layernorm(0, SGT_BF16, sum[alone], out[alone], mean[alone], rstd[alone],
                                    x[alone], y[alone], NULL, w, b, alone ? 2 : WIDE, C, 1e-5f,
                                    &drops.at[alone]);
    });
    sparse.same("sum", sum);
    sparse.same("out", out);
    sparse.same("mean", mean);
    sparse.same("rstd", rstd);
}

LARGE_CASE(layernorm_backward)
{
    Sparse sparse(t);
    const auto dx = sparse.inout<bf16>(WIDE * C, 2 * C), x = sparse.input<bf16>(WIDE * C, 2 * C),
               dout = sparse.input<bf16>(WIDE * C, 2 * C);
    const auto mean = sparse.input<float>(WIDE, 2), rstd = sparse.input<float>(WIDE, 2),
               dw = sparse.output<float>(C, C), db = sparse.output<float>(C, C);
    const float *w = cuda_random<float>(t, C, 1);
    at_the_end(1, [&](int alone) {
        const size_t n = alone ? 2 : WIDE;
        sgt_cuda_layernorm_backward(
            0, SGT_BF16, dx[alone], 0, dw[alone], db[alone], NULL, dout[alone], x[alone],
            mean[alone], rstd[alone], w, n, C,
            sparse.array<char>(sgt_cuda_layernorm_backward_scratch(SGT_BF16, n, C)));
    });
    sparse.same("dx", dx);
    sparse.same("db", db, 32); /* the last block adds these columns */
}

LARGE_CASE(bias)
{
    Sparse sparse(t);
    const auto dout = sparse.input<bf16>(WIDE * C, 2 * C), x = sparse.inout<bf16>(WIDE * C, 2 * C),
               kept = sparse.output<bf16>(WIDE * C, 2 * C);
    const auto db = sparse.output<float>(C, C);
    const bf16 *b = cuda_random<bf16>(t, C, 1);
    const Drops drops(t, C, WIDE - 2, SGT_DROP_PROJ, 0.5f);
    at_the_end(2, [&](int alone) {
        const size_t n = alone ? 2 : WIDE;
        sgt_cuda_bias_backward(0, SGT_BF16, db[alone], dout[alone], n, C,
                               sparse.array<char>(sgt_cuda_bias_backward_scratch(n, C)));
        sgt_cuda_dropout_apply(0, SGT_BF16, kept[alone], x[alone], n * C, &drops.at[alone]);
        sgt_cuda_add_bias(0, SGT_BF16, x[alone], b, n, C);
    });
    sparse.same("db", db, 64); /* columns of the last block, in both of its kernels */
    sparse.same("x + b", x);
    sparse.same("dropout", kept, 1000); /* numbers of the last two blocks */
}

/* ---- embeddings: rows of 8192 places ---- */

static const size_t PLACES = (HUGE_COUNT / C / LENGTH + 1) * LENGTH;

/* The last eight positions in sorted order have the same id. They are in the last three rows and
 * the first five. */
LARGE_CASE(embed_backward)
{
    Sparse sparse(t);
    const size_t n = PLACES, RUN = 8;
    bf16 *dout = sparse.array<bf16>(n * C);
    float *dwte = sparse.array<float>(V * C), *dwpe = sparse.array<float>(LENGTH * C),
          *want = sparse.array<float>(C);
    int32_t *sorted = sparse.array<int32_t>(n), *order = sparse.array<int32_t>(n);
    sparse.fill(dout, 5 * C), sparse.fill(dout + (n - 3) * C, 3 * C);
    for (size_t i = 0; i < n; i++) {
        sorted[i] = (int32_t)(i < n - RUN ? i * 50000 / n : V - 1);
        order[i] = (int32_t)(i < n - RUN ? i + 5 : i < n - 3 ? i - (n - RUN) : i);
    }
    for (size_t c = 0; c < C; c++)
        for (size_t i = n - RUN; i < n; i++)
            want[c] += dev::to_float(dout[(size_t)order[i] * C + c]);
    {
        host::OnlyEdges edges(0, 2);
        sgt_cuda_embed_backward(0, SGT_BF16, dwte, dwpe, sorted, order, dout, n, LENGTH, C,
                                sparse.array<char>(sgt_cuda_embed_backward_scratch(n, C)));
    }
    sparse.same("dwte", Tail<float>{{dwte, want}, V * C, C});
    sparse.same("dwpe",
                Tail<float>{{dwpe, cuda_floats(t, dout + (n - 2) * C, 2 * C)}, LENGTH * C, 2 * C});
}

/* ---- Muon: matrices that are 2^31 numbers apart ---- */

LARGE_CASE(muon)
{
    enum { N = 133, MATRICES = 3 };
    Sparse sparse(t);
    /* from the matrices' starts on, so the last matrix alone has `stride` numbers */
    const sgt_cuda_matrices apart = {N, MATRICES, HUGE_COUNT / 2, HUGE_COUNT / 2 + 8},
                            one = {N, 1, apart.stride, apart.stride_x};
    const size_t n = MATRICES * apart.stride, n_x = MATRICES * apart.stride_x;
    const auto p = sparse.output<float>(n, apart.stride), g = sparse.output<float>(n, apart.stride);
    const auto x = sparse.output<bf16>(n_x, apart.stride_x),
               copy = sparse.output<bf16>(n, apart.stride);
    sgt_cuda_control *control = make_control(t);
    sparse.fill(g[1], N);
    memcpy(g[0] + n - apart.stride, g[1], N * sizeof *g[1]);
    for (int alone = 0; alone < 2; alone++) {
        const sgt_cuda_matrices *l = alone ? &one : &apart;
        sgt_cuda_muon_normalize(0, SGT_BF16, x[alone], g[alone], l,
                                cuda_output<char>(t, sgt_cuda_muon_scratch(l->matrices)));
        sgt_cuda_muon_update(0, SGT_BF16, copy[alone], p[alone], g[alone], x[alone], l, .1f, 1.5f,
                             0, control);
    }
    for (const Tail<bf16> &of : {x, copy})
        sparse.same("x, copy", Tail<bf16>{{of[0] + of.n - of.k, of[1]}, N, N});
    sparse.same("p", Tail<float>{{p[0] + n - apart.stride, p[1]}, N, N});
    check_near(t, "the last gradient", g[0][n - apart.stride + N - 1], 0, 0);
}
