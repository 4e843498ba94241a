/* large_cases.cpp: kernels over more than 2^32 rows and numbers (large.h). */
#include "tests/kernels/host/large.h"

/* The first two and the last two of n rows. */
struct Rows {
    size_t n;
    size_t at(size_t i) const { return i < 2 ? i : n - 4 + i; }
    enum { COUNT = 4 };
};

template <class T> static void copy_rows(T *to, const T *from, const Rows &rows, size_t width)
{
    for (size_t i = 0; i < Rows::COUNT; i++)
        memcpy(to + i * width, from + rows.at(i) * width, width * sizeof(T));
}

template <class T>
static void same_rows(check *t, const char *name, const T *got, const T *want, const Rows &rows,
                      size_t width)
{
    for (size_t i = 0; i < Rows::COUNT; i++)
        same(t, name, got + rows.at(i) * width, want + i * width, width);
}

/* ---- softmax and cross-entropy, fused and in steps: 2^32 logits and more ---- */

static const size_t V = 50257, LD = 50304;
static const Rows LOGIT_ROWS = {HUGE_COUNT / LD + 3};

template <class T> struct Logits {
    T *all, *few;
    float *loss, *few_loss, *scale;
    int32_t *targets, *few_targets;
};

template <class T> static bool make_logits(Logits<T> &l, check *t, Sparse &sparse)
{
    const int32_t targets[] = {7, (int32_t)V - 1, 0, 50000};
    l.all = sparse.array<T>(LOGIT_ROWS.n * LD);
    l.loss = sparse.array<float>(LOGIT_ROWS.n);
    l.targets = sparse.array<int32_t>(LOGIT_ROWS.n);
    if (!l.all || !l.loss || !l.targets) return false;
    l.few = cuda_output<T>(t, Rows::COUNT * LD);
    l.few_loss = cuda_output<float>(t, Rows::COUNT);
    l.few_targets = cuda_copy(t, targets, Rows::COUNT);
    const float scale = 0.25f;
    l.scale = cuda_copy(t, &scale, 1);
    for (size_t i = 0; i < Rows::COUNT; i++) {
        fill(t, l.all + LOGIT_ROWS.at(i) * LD, V);
        l.targets[LOGIT_ROWS.at(i)] = targets[i];
    }
    copy_rows(l.few, l.all, LOGIT_ROWS, LD);
    return true;
}

template <class T> static void classifier(check *t)
{
    Sparse sparse(t);
    Logits<T> l;
    if (!make_logits(l, t, sparse)) return;
    sgt_cuda_cross_entropy(0, Type<T>::id, l.few, l.few, l.few_loss, l.few_targets, Rows::COUNT, V,
                           LD, l.scale);
    {
        host::OnlyEdges edges(2, 2);
        sgt_cuda_cross_entropy(0, Type<T>::id, l.all, l.all, l.loss, l.targets, LOGIT_ROWS.n, V, LD,
                               l.scale);
    }
    same_rows(t, "loss", l.loss, l.few_loss, LOGIT_ROWS, 1);
    same_rows(t, "dlogits", l.all, l.few, LOGIT_ROWS, LD);
}

LARGE_CASE(classifier_bf16) { classifier<dev::bf16>(t); }
LARGE_CASE(classifier_f32) { classifier<float>(t); }

/* ---- elementwise kernels: the first and the last FEW of 2^32 + 5 numbers ---- */

/* LAST: first of the numbers at the end, at the start of a vector */
static const size_t COUNT = HUGE_COUNT + 5, FEW = 4096 + 5, LAST = COUNT - FEW;
static const size_t SEEN = 1000; /* numbers that the two blocks at either end certainly cover */

template <class T> static T *ends(check *t, Sparse &sparse)
{
    T *x = sparse.array<T>(COUNT);
    if (x) fill(t, x, FEW), fill(t, x + LAST, FEW);
    return x;
}

/* Call f(arrays, count, offset) for all numbers and then for each end alone. */
template <class T>
static void same_ends(check *t, const char *name, const T *all, const T *first, const T *last)
{
    same(t, name, all, first, SEEN);
    same(t, name, all + COUNT - SEEN, last + FEW - SEEN, SEEN);
}

template <class T, class F> static void each(check *t, const char *name, Sparse &sparse, F f)
{
    T *all = sparse.array<T>(COUNT), *first = cuda_output<T>(t, FEW),
      *last = cuda_output<T>(t, FEW);
    if (!all) return;
    f(first, 0, FEW);
    f(last, LAST, FEW);
    host::OnlyEdges edges(2, 2);
    f(all, 0, COUNT);
    same_ends(t, name, all, first, last);
}

LARGE_CASE(elements)
{
    typedef dev::bf16 T;
    Sparse sparse(t);
    T *x = ends<T>(t, sparse), *y = ends<T>(t, sparse);
    float *floats = ends<float>(t, sparse);
    if (!x || !y || !floats) return;
    each<T>(t, "gelu", sparse, [&](T *to, size_t at, size_t n) {
        sgt_cuda_gelu(0, SGT_BF16, to, x + at, n, SGT_GELU_TANH);
    });
    each<T>(t, "gelu backward", sparse, [&](T *to, size_t at, size_t n) {
        sgt_cuda_gelu_backward(0, SGT_BF16, to, y + at, x + at, n, SGT_GELU_ERF);
    });
    each<T>(t, "sum", sparse,
            [&](T *to, size_t at, size_t n) { sgt_cuda_add(0, SGT_BF16, to, x + at, y + at, n); });
    each<T>(t, "conversion", sparse,
            [&](T *to, size_t at, size_t n) { sgt_cuda_convert(0, SGT_BF16, to, floats + at, n); });
}

/* Dropout depends on the element's number. So the two ends draw different factors, each as
 * dropout.h defines. */
LARGE_CASE(dropout)
{
    Sparse sparse(t);
    const size_t n = HUGE_COUNT + 4 * C; /* rows of C numbers, a multiple of the vectors' width */
    float *x = sparse.array<float>(n), *out = sparse.array<float>(n);
    if (!x || !out) return;
    const sgt_cuda_place where = {11, 5, 3, 2};
    sgt_cuda_dropout drop = {cuda_copy(t, &where, 1), C, 2, SGT_DROP_PROJ, 0.5f};
    for (size_t i = 0; i < SEEN; i++) x[i] = x[n - 1 - i] = 1;
    {
        host::OnlyEdges edges(2, 2);
        sgt_cuda_dropout_apply(0, SGT_F32, out, x, n, &drop);
    }
    uint64_t draw = sgt_dropout_draw(where.step, drop.layer, drop.site);
    for (size_t k = 0; k < 2 * SEEN; k++) {
        size_t i = k < SEEN ? k : n - 2 * SEEN + k;
        uint64_t row = where.row + i / C * where.ranks;
        float want = sgt_dropout_factor(where.seed, draw, row * C + i % C, drop.rate);
        if (out[i] != want)
            check_fail(t, "factor of element %zu: %g, not %g", i, (double)out[i], (double)want);
    }
}

/* ---- the update: parameters of four floats and more than 2^32 of them ---- */

struct State {
    float *p, *m, *v, *g;
    dev::bf16 *copy;
};

static bool make_state(State &s, check *t, Sparse &sparse)
{
    s = {ends<float>(t, sparse), ends<float>(t, sparse), sparse.array<float>(COUNT),
         ends<float>(t, sparse), sparse.array<dev::bf16>(COUNT)};
    return s.p && s.m && s.v && s.g && s.copy;
}

static State state_end(check *t, const State &s, size_t at)
{
    return {cuda_copy(t, s.p + at, FEW), cuda_copy(t, s.m + at, FEW), cuda_copy(t, s.v + at, FEW),
            cuda_copy(t, s.g + at, FEW), cuda_output<dev::bf16>(t, FEW)};
}

template <class F> static void update(check *t, F f)
{
    Sparse sparse(t);
    State all;
    if (!make_state(all, t, sparse)) return;
    State first = state_end(t, all, 0), last = state_end(t, all, LAST);
    f(first, FEW, FEW);
    f(last, FEW, FEW - 100); /* the last 100 of them do not decay */
    {
        host::OnlyEdges edges(2, 2);
        f(all, COUNT, COUNT - 100);
    }
    same_ends(t, "p", all.p, first.p, last.p);
    same_ends(t, "m", all.m, first.m, last.m);
    same_ends(t, "v", all.v, first.v, last.v);
    same_ends(t, "g", all.g, first.g, last.g);
    same_ends(t, "copy", all.copy, first.copy, last.copy);
}

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
    adamw.beta1 = 0.9f, adamw.beta2 = 0.95f, adamw.eps = 1e-8f, adamw.decay = 0.1f;
    update(t, [&](const State &s, size_t n, size_t decayed) {
        sgt_cuda_adamw(0, SGT_BF16, s.copy, s.p, s.m, s.v, s.g, n, decayed, 0, &adamw, control);
    });
    sgt_sgd sgd = {};
    sgd.momentum = 0.9f, sgd.decay = 0.1f;
    update(t, [&](const State &s, size_t n, size_t decayed) {
        sgt_cuda_sgd_update(0, SGT_BF16, s.copy, s.p, s.m, s.g, n, decayed, 0, &sgd, control);
    });
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
    if (!g || !scratch) return;
    g[0] = 1, g[n - 4] = 10, g[n - 3] = 100, g[n - 1] = 1000;
    host::OnlyEdges edges(1, 1);
    sgt_cuda_grad_squares(0, control, g, n, scratch);
    check_near(t, "squares", control->squares, 1 + 100 + 10000 + 1000000, 0);
}

/* ---- rows of 1600 channels ---- */

/* The number of rows is a multiple of the rows that LayerNorm's blocks process in one pass (264
 * blocks of 4 rows), so that the last block processes the last rows. */
static const Rows WIDE_ROWS = {(HUGE_COUNT / C / 1056 + 1) * 1056};

LARGE_CASE(layernorm)
{
    typedef dev::bf16 T;
    Sparse sparse(t);
    const size_t n = WIDE_ROWS.n;
    T *x = sparse.array<T>(n * C), *y = sparse.array<T>(n * C), *sum = sparse.array<T>(n * C);
    T *out = sparse.array<T>(n * C);
    float *mean = sparse.array<float>(n), *rstd = sparse.array<float>(n);
    if (!x || !y || !sum || !out || !mean || !rstd) return;
    const float *w = cuda_random<float>(t, C, 1), *b = cuda_random<float>(t, C, 1);
    for (size_t i = 0; i < Rows::COUNT; i++)
        fill(t, x + WIDE_ROWS.at(i) * C, C), fill(t, y + WIDE_ROWS.at(i) * C, C);
    sgt_cuda_place where = {11, 5, 0, 1};
    sgt_cuda_dropout drop = {cuda_copy(t, &where, 1), C, 2, SGT_DROP_PROJ, 0.5f};
    {
        host::OnlyEdges edges(1, 1);
        sgt_cuda_residual_layernorm(0, SGT_BF16, sum, out, mean, rstd, x, y, NULL, w, b, n, C,
                                    1e-5f, &drop);
    }
    /* The two rows at each end, each pair launched as in a step that begins there. */
    for (size_t at : {(size_t)0, n - 2}) {
        T *few_sum = cuda_output<T>(t, 2 * C), *few = cuda_output<T>(t, 2 * C);
        float *few_mean = cuda_output<float>(t, 2), *few_rstd = cuda_output<float>(t, 2);
        where.row = at;
        drop.place = cuda_copy(t, &where, 1);
        sgt_cuda_residual_layernorm(0, SGT_BF16, few_sum, few, few_mean, few_rstd, x + at * C,
                                    y + at * C, NULL, w, b, 2, C, 1e-5f, &drop);
        same(t, "sum", sum + at * C, few_sum, 2 * C);
        same(t, "out", out + at * C, few, 2 * C);
        same(t, "mean", mean + at, few_mean, 2);
        same(t, "rstd", rstd + at, few_rstd, 2);
    }
}

LARGE_CASE(layernorm_backward)
{
    typedef dev::bf16 T;
    Sparse sparse(t);
    /* last: first of the last columns of db, which the last block adds */
    const size_t n = WIDE_ROWS.n, at = n - 2, last = C - 32;
    T *dx = sparse.array<T>(n * C), *dout = sparse.array<T>(n * C), *x = sparse.array<T>(n * C);
    float *mean = sparse.array<float>(n), *rstd = sparse.array<float>(n),
          *db = sparse.array<float>(C);
    float *dw = sparse.array<float>(C);
    void *scratch = sparse.array<char>(sgt_cuda_layernorm_backward_scratch(n, C));
    if (!dx || !dout || !x || !mean || !rstd || !dw || !db || !scratch) return;
    const float *w = cuda_random<float>(t, C, 1);
    fill(t, dx + at * C, 2 * C), fill(t, dout + at * C, 2 * C), fill(t, x + at * C, 2 * C),
        fill(t, mean + at, 2);
    rstd[at] = rstd[at + 1] = 1.5f;
    T *few = cuda_copy(t, dx + at * C, 2 * C);
    float *few_dw = sparse.array<float>(C), *few_db = sparse.array<float>(C);
    void *few_scratch = sparse.array<char>(sgt_cuda_layernorm_backward_scratch(2, C));
    if (!few_dw || !few_db || !few_scratch) return;
    sgt_cuda_layernorm_backward(0, SGT_BF16, few, 0, few_dw, few_db, dout + at * C, x + at * C,
                                mean + at, rstd + at, w, 2, C, few_scratch);
    {
        host::OnlyEdges edges(0, 1);
        sgt_cuda_layernorm_backward(0, SGT_BF16, dx, 0, dw, db, dout, x, mean, rstd, w, n, C,
                                    scratch);
    }
    same(t, "dx", dx + at * C, few, 2 * C);
    same(t, "db", db + last, few_db + last, C - last);
}

LARGE_CASE(bias)
{
    typedef dev::bf16 T;
    Sparse sparse(t);
    /* columns of the last block, in this kernel and in the next */
    const size_t n = WIDE_ROWS.n, at = n - 2, last = 1536;
    T *dout = sparse.array<T>(n * C), *x = sparse.array<T>(n * C);
    float *db = sparse.array<float>(C), *want = check_output(t, C);
    void *scratch = sparse.array<char>(sgt_cuda_bias_backward_scratch(n, C));
    if (!dout || !x || !db || !scratch) return;
    fill(t, dout + at * C, 2 * C);
    fill(t, x + at * C, 2 * C);
    T *few = cuda_copy(t, x + at * C, 2 * C), *b = cuda_random<T>(t, C, 1);
    for (size_t c = 0; c < C; c++)
        want[c] = dev::to_float(dout[at * C + c]) + dev::to_float(dout[(at + 1) * C + c]);
    sgt_cuda_add_bias(0, SGT_BF16, few, b, 2, C);
    {
        host::OnlyEdges edges(0, 2);
        sgt_cuda_bias_backward(0, SGT_BF16, db, dout, n, C, scratch);
        sgt_cuda_add_bias(0, SGT_BF16, x, b, n, C);
    }
    same(t, "db", db + last, (const float *)want + last, C - last);
    same(t, "x + b", x + at * C, few, 2 * C);
}

/* ---- embeddings: rows of 8192 places ---- */

static const size_t PLACES = (HUGE_COUNT / C / LENGTH + 1) * LENGTH;

LARGE_CASE(embed)
{
    typedef dev::bf16 T;
    Sparse sparse(t);
    const size_t n = PLACES, at = n - 2;
    T *out = sparse.array<T>(n * C), *wte = sparse.array<T>(V * C),
      *wpe = sparse.array<T>(LENGTH * C);
    int32_t *ids = sparse.array<int32_t>(n);
    if (!out || !wte || !wpe || !ids) return;
    ids[at] = (int32_t)V - 1, ids[at + 1] = 3;
    fill(t, wte, 4 * C), fill(t, wte + (V - 1) * C, C), fill(t, wpe + (LENGTH - 2) * C, 2 * C);
    sgt_cuda_place where = {11, 5, 0, 1};
    sgt_cuda_dropout drop = {cuda_copy(t, &where, 1), C, 0, SGT_DROP_EMBED, 0.5f};
    {
        host::OnlyEdges edges(0, 2);
        sgt_cuda_embed(0, SGT_BF16, out, ids, wte, wpe, n, LENGTH, C, &drop);
    }
    T *few = cuda_output<T>(t, 2 * C);
    where.row = at;
    drop.place = cuda_copy(t, &where, 1);
    sgt_cuda_embed(0, SGT_BF16, few, ids + at, wte, wpe + (LENGTH - 2) * C, 2, LENGTH, C, &drop);
    same(t, "out", out + at * C, few, 2 * C);
}

/* The last eight positions in sorted order have the same id. They are in the last three rows and
 * the first five. */
LARGE_CASE(embed_backward)
{
    typedef dev::bf16 T;
    Sparse sparse(t);
    const size_t n = PLACES, RUN = 8, id = V - 1;
    T *dout = sparse.array<T>(n * C);
    float *dwte = sparse.array<float>(V * C), *dwpe = sparse.array<float>(LENGTH * C),
          *want = check_output(t, C);
    int32_t *sorted = sparse.array<int32_t>(n), *order = sparse.array<int32_t>(n);
    void *scratch = sparse.array<char>(sgt_cuda_embed_backward_scratch(n, C));
    if (!dout || !dwte || !dwpe || !sorted || !order || !scratch) return;
    fill(t, dout, 5 * C), fill(t, dout + (n - 3) * C, 3 * C);
    for (size_t i = 0; i < n; i++) {
        sorted[i] = i < n - RUN ? (int32_t)(i * 50000 / n) : (int32_t)id;
        order[i] = i < n - RUN ? (int32_t)i + 5 : (int32_t)(i < n - 3 ? i - (n - RUN) : i);
    }
    for (size_t c = 0; c < C; c++) {
        want[c] = 0;
        for (size_t i = n - RUN; i < n; i++)
            want[c] += dev::to_float(dout[(size_t)order[i] * C + c]);
    }
    {
        host::OnlyEdges edges(0, 2);
        sgt_cuda_embed_backward(0, SGT_BF16, dwte, dwpe, sorted, order, dout, n, LENGTH, C,
                                scratch);
    }
    same(t, "dwte", dwte + id * C, (const float *)want, C);
    same(t, "dwpe", dwpe + (LENGTH - 2) * C,
         (const float *)cuda_floats(t, dout + (n - 2) * C, 2 * C), 2 * C);
}

/* ---- Muon: matrices that are 2^31 numbers apart ---- */

LARGE_CASE(muon)
{
    typedef dev::bf16 T;
    enum { N = 133, MATRICES = 3 };
    Sparse sparse(t);
    const sgt_cuda_matrices all[] = {{N, MATRICES, 136, 144},
                                     {N, MATRICES, HUGE_COUNT / 2, HUGE_COUNT / 2 + 8}};
    const float *given = check_random(t, N * MATRICES, 1);
    sgt_cuda_control *control = cuda_output<sgt_cuda_control>(t, 1);
    float *p[2], *g[2];
    T *x[2], *copy[2];
    *control = sgt_cuda_control();
    control->lr = .25f;
    for (int i = 0; i < 2; i++) {
        const sgt_cuda_matrices &l = all[i];
        p[i] = sparse.array<float>(MATRICES * l.stride);
        g[i] = sparse.array<float>(MATRICES * l.stride);
        copy[i] = sparse.array<T>(MATRICES * l.stride);
        x[i] = sparse.array<T>(MATRICES * l.stride_x);
        if (!p[i] || !g[i] || !copy[i] || !x[i]) return;
        for (size_t m = 0; m < MATRICES; m++)
            memcpy(g[i] + m * l.stride, given + m * N, N * sizeof *given);
        sgt_cuda_muon_normalize(0, SGT_BF16, x[i], g[i], &l,
                                cuda_output<char>(t, sgt_cuda_muon_scratch(MATRICES)));
        sgt_cuda_muon_update(0, SGT_BF16, copy[i], p[i], g[i], x[i], &l, .1f, 1.5f, 0, control);
    }
    cuda_sync(t);
    for (size_t m = 0; m < MATRICES; m++) {
        same(t, "x", x[1] + m * all[1].stride_x, x[0] + m * all[0].stride_x, N);
        same(t, "p", p[1] + m * all[1].stride, p[0] + m * all[0].stride, N);
        same(t, "copy", copy[1] + m * all[1].stride, copy[0] + m * all[0].stride, N);
        same(t, "g", g[1] + m * all[1].stride, g[0] + m * all[0].stride, N);
        if (!written(copy[1] + m * all[1].stride, N)) check_fail(t, "matrix %zu is all zeros", m);
    }
}
