/* cuda_cases_gemm.cpp: matrix products through cuBLASLt, compared with the definition in gemm.h, in
 * double. Covers every form in a step of GPT-2, each transposition, epilogue and type, and rows
 * with gaps between them. */
#include <string.h>

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/runtime.h"
#include "tests/kernels/cuda_types.h"
#ifdef DEV_ON_HOST
#include "tests/kernels/host/cublaslt.h"
#endif

/* A matrix product and its precision. The reference's arrays are row-major. The gaps between D's
 * rows are NaN and must keep their bits. */
struct product {
    sgt_cuda_gemm_shape s;
    float f, h; /* factors of the product and of what it is added to */
};

struct operands {
    const float *a, *b, *bias, *aux; /* values on the device, rounded to their types */
    const float *d;                  /* D before the product */
};

static size_t span(size_t rows, size_t ld, size_t columns) { return (rows - 1) * ld + columns; }

static size_t rows_a(const sgt_cuda_gemm_shape &s) { return s.trans_a ? s.k : s.m; }
static size_t columns_a(const sgt_cuda_gemm_shape &s) { return s.trans_a ? s.m : s.k; }
static size_t rows_b(const sgt_cuda_gemm_shape &s) { return s.trans_b ? s.n : s.k; }
static size_t columns_b(const sgt_cuda_gemm_shape &s) { return s.trans_b ? s.k : s.n; }

/* Return element (i, j) of op(A) op(B). Set *off to the error of float sums, in any order, of the k
 * products and the terms that are added to them. */
static double sum_at(const product &p, const operands &o, size_t i, size_t j, double *off)
{
    const sgt_cuda_gemm_shape &s = p.s;
    double sum = 0, terms = 0;
    for (size_t x = 0; x < s.k; x++) {
        double term = (double)p.f * o.a[s.trans_a ? x * s.lda + i : i * s.lda + x] *
                      o.b[s.trans_b ? j * s.ldb + x : x * s.ldb + j];
        sum += term;
        terms += fabs(term);
    }
    if (s.accumulate) terms += fabs((double)p.h * o.d[i * s.ldd + j]);
    if (o.bias) terms += fabs((double)o.bias[j]);
    *off = (double)(s.k + 3) * UNIT * terms;
    return sum;
}

struct results {
    float *d, *aux;
    double *d_bound, *aux_bound;
};

/* Compute D by its definition, and aux, which for GELU is its argument: the product with bias. */
static void reference(const product &p, const operands &o, const results &r)
{
    sgt_cuda_gemm_shape s = p.s, with_bias = s;
    with_bias.epilogue = SGT_EPILOGUE_BIAS;
    for (size_t i = 0; i < s.m; i++)
        for (size_t j = 0; j < s.n; j++) {
            size_t at = i * s.ldd + j;
            double off, sum = sum_at(p, o, i, j, &off), aux_off = off;
            double d = s.accumulate ? (double)p.h * o.d[at] : 0,
                   bias = o.bias ? (double)o.bias[j] : 0,
                   aux = s.epilogue == SGT_EPILOGUE_DGELU ? (double)o.aux[at] : 0;
            r.d[at] = (float)sgt_cuda_gemm_expected(&s, sum, d, bias, aux, &off);
            r.d_bound[at] = off + UNIT * fabs((double)r.d[at]);
            if (s.epilogue != SGT_EPILOGUE_GELU) continue;
            r.aux[at] = (float)sgt_cuda_gemm_expected(&with_bias, sum, d, bias, aux, &aux_off);
            r.aux_bound[at] = aux_off + UNIT * fabs((double)r.aux[at]);
        }
}

/* ---- a product on the device, and its reference ---- */

static bool reads_bias(const sgt_cuda_gemm_shape &s)
{
    return s.epilogue == SGT_EPILOGUE_BIAS || s.epilogue == SGT_EPILOGUE_GELU;
}

/* Draw rows of random numbers, with NaN in the gaps between them and between the batch's
 * matrices. */
template <class T>
static T *matrix(check *t, size_t rows, size_t ld, size_t columns, size_t batch, size_t stride)
{
    T *x = cuda_output<T>(t, (batch - 1) * stride + span(rows, ld, columns)),
      *numbers = cuda_random<T>(t, batch * rows * columns, 1);
    for (size_t i = 0; i < batch * rows; i++)
        for (size_t j = 0; j < columns; j++)
            x[i / rows * stride + i % rows * ld + j] = numbers[i * columns + j];
    return x;
}

template <class Out>
static void compare(check *t, const char *name, const Out *got, float *want, double *bound,
                    size_t n)
{
    float *floats = cuda_floats(t, got, n);
    Out untouched;
    memset(&untouched, 0xff, sizeof untouched);
    for (size_t i = 0; i < n; i++) /* a gap that keeps its bits was not written */
        if (isnan(want[i]) && memcmp(&got[i], &untouched, sizeof untouched) == 0)
            floats[i] = want[i];
    for (size_t i = 0; i < n; i++) bound[i] += Type<Out>::tiny;
    check_close(t, name, floats, want, bound, n);
}

static void run(check *t, const sgt_cuda_gemm *plan, void *d, void *a, void *b,
                void *bias = nullptr, void *aux = nullptr)
{
    sgt_cuda_gemm_run(plan, nullptr, cuda_there(t, d), cuda_there(t, a), cuda_there(t, b),
                      cuda_there(t, bias), cuda_there(t, aux));
}

/* apart: an accumulating product adds to an array other than D, and D holds NaN at first. */
template <class In, class Out>
static void one(check *t, sgt_cuda_gemms *g, const product &p, bool apart = false)
{
    const sgt_cuda_gemm_shape &s = p.s;
    size_t batch = s.batch ? s.batch : 1, size = (batch - 1) * s.stride_d + span(s.m, s.ldd, s.n);
    In *a = matrix<In>(t, rows_a(s), s.lda, columns_a(s), batch, s.stride_a),
       *b = matrix<In>(t, rows_b(s), s.ldb, columns_b(s), batch, s.stride_b);
    Out *d = s.accumulate ? matrix<Out>(t, s.m, s.ldd, s.n, batch, s.stride_d)
                          : cuda_output<Out>(t, size);
    Out *bias = reads_bias(s) ? cuda_random<Out>(t, s.n, 1) : cuda_output<Out>(t, s.n);
    Out *aux = s.epilogue == SGT_EPILOGUE_DGELU ? matrix<Out>(t, s.m, s.ldd, s.n, 1, 0)
                                                : cuda_output<Out>(t, size);
    check_at(t, "%zu of %zu x %zu x %zu, %c%c, rows %zu %zu %zu, epilogue %d%s%s%s", batch, s.m,
             s.n, s.k, s.trans_a ? 't' : 'n', s.trans_b ? 't' : 'n', s.lda, s.ldb, s.ldd,
             (int)s.epilogue, s.accumulate ? ", added" : "", s.tf32 ? ", tf32" : "",
             sizeof(Out) != sizeof(In) ? ", to f32" : "");

    operands o = {
        cuda_floats(t, a, (batch - 1) * s.stride_a + span(rows_a(s), s.lda, columns_a(s))),
        cuda_floats(t, b, (batch - 1) * s.stride_b + span(rows_b(s), s.ldb, columns_b(s))),
        reads_bias(s) ? cuda_floats(t, bias, s.n) : nullptr, cuda_floats(t, aux, size),
        cuda_floats(t, d, size)};
    const results want = {check_output(t, size), check_output(t, size), check_doubles(t, size),
                          check_doubles(t, size)};
    results each = want;
    for (size_t z = 0; z < batch; z++) {
        reference(p, o, each);
        o.a += s.stride_a, o.b += s.stride_b, o.d += s.stride_d;
        each.d += s.stride_d, each.d_bound += s.stride_d;
    }

    const sgt_cuda_gemm *plan;
    sgt_error err;
    if (sgt_cuda_gemm_plan(&plan, g, &s, &err) < 0) {
        check_fail(t, "no plan: %s", err.text);
        return;
    }
    Out *whole = apart ? cuda_output<Out>(t, size) : d, *onto = d;
    if (apart)
        sgt_cuda_gemm_run_mixed(plan, nullptr, cuda_there(t, d = whole), p.f, cuda_there(t, a),
                                cuda_there(t, b), p.h, cuda_there(t, onto));
    else run(t, plan, d, a, b, bias, aux);
    cuda_sync(t);
    if (sgt_cuda_check(&err) < 0) check_fail(t, "%s", err.text);
    compare(t, "D", d, want.d, want.d_bound, size);
    if (s.epilogue == SGT_EPILOGUE_GELU) compare(t, "aux", aux, want.aux, want.aux_bound, size);
}

static sgt_cuda_gemms *open_gemms(check *t, int deterministic)
{
    sgt_cuda_gemms_options o = {};
    sgt_cuda_gemms *g = nullptr;
    sgt_error err;
    o.device = "under test";
    o.deterministic = deterministic;
    if (sgt_cuda_gemms_open(&g, &o, &err) < 0) check_fail(t, "%s", err.text);
    return g;
}

static product make(size_t m, size_t n, size_t k, int trans_a, int trans_b, size_t gap,
                    sgt_cuda_type type, sgt_cuda_type out)
{
    product p = {};
    p.s.m = m, p.s.n = n, p.s.k = k;
    p.s.trans_a = trans_a, p.s.trans_b = trans_b;
    p.s.lda = (trans_a ? m : k) + gap, p.s.ldb = (trans_b ? k : n) + 2 * gap, p.s.ldd = n + gap;
    p.s.type = type, p.s.out = out;
    p.f = p.h = 1;
    return p;
}

/* ---- the cases ---- */

struct form {
    size_t m, n, k;
};

/* A single number; rows and columns that are not multiples of a vector; more than a tile; a long
 * sum. */
static const form forms[] = {{1, 1, 1},    {1, 9, 13},   {13, 7, 5},  {24, 16, 13},
                             {33, 40, 17}, {65, 66, 32}, {8, 24, 515}};

template <class In> static void products(check *t)
{
    sgt_cuda_gemms *g = open_gemms(t, 0);
    for (const form &f : forms)
        for (int kind = 0; kind < 16 && g; kind++) {
            product p = make(f.m, f.n, f.k, kind & 1, kind >> 1 & 1, kind & 4 ? 3 : 0, Type<In>::id,
                             Type<In>::id);
            p.s.accumulate = kind >> 3;
            one<In, In>(t, g, p);
            if (p.s.accumulate) one<In, In>(t, g, p, true);
            if (Type<In>::id == SGT_F32) continue;
            p.s.out = SGT_F32; /* float32, like gradients of parameters */
            one<In, float>(t, g, p);
        }
    sgt_cuda_gemms_close(g);
}

/* Rows of aux begin at multiples of 8 elements. The library refuses other distances
 * (host/cublaslt_cases.cpp). */
template <class In> static void epilogues(check *t)
{
    static const form some[] = {{1, 8, 13}, {13, 16, 5}, {33, 40, 17}, {17, 72, 64}};
    sgt_cuda_gemms *g = open_gemms(t, 0);
    for (const form &f : some)
        for (int e = SGT_EPILOGUE_BIAS; e <= SGT_EPILOGUE_DGELU && g; e++)
            for (int kind = 0; kind < 4; kind++) {
                product p =
                    make(f.m, f.n, f.k, 0, kind & 1, kind & 2 ? 8 : 0, Type<In>::id, Type<In>::id);
                p.s.epilogue = (sgt_cuda_epilogue)e;
                one<In, In>(t, g, p);
            }
    product odd = make(13, 7, 5, 0, 0, 0, Type<In>::id, Type<In>::id);
    odd.s.epilogue = SGT_EPILOGUE_BIAS;
    if (g) one<In, In>(t, g, odd);
    sgt_cuda_gemms_close(g);
}

CUDA_CASES_BY_TYPE(cublaslt, products)
CUDA_CASES_BY_TYPE(cublaslt_epilogue, epilogues)

#ifdef DEV_ON_HOST
/* The bound also holds for a library that rounds products early. */
CUDA_CASE(cublaslt_rounds_first)
{
    host::lt.rounds = ~0;
    products<dev::bf16>(t);
    epilogues<dev::f16>(t);
    host::lt.rounds = 0;
}
#endif

/* 1 + 2^-12 is 1 in TF32 and itself in float32. So the result shows which precision was
 * requested. */
CUDA_CASE(cublaslt_tf32_asked)
{
    sgt_cuda_gemms *g = open_gemms(t, 0);
    for (int tf32 = 0; tf32 < 2 && g; tf32++) {
        const float near_one = 1 + 0x1p-12f, want = tf32 ? 8 : 8 * near_one;
        product p = make(16, 16, 8, 0, 0, 0, SGT_F32, SGT_F32);
        float *a = cuda_output<float>(t, 128), *b = cuda_output<float>(t, 128),
              *d = cuda_output<float>(t, 256);
        float *all = check_output(t, 256);
        const sgt_cuda_gemm *plan;
        sgt_error err;
        p.s.tf32 = tf32;
        for (int i = 0; i < 128; i++) a[i] = near_one, b[i] = 1;
        for (int i = 0; i < 256; i++) all[i] = want;
        check_at(t, "tf32 %d", tf32);
        if (sgt_cuda_gemm_plan(&plan, g, &p.s, &err) < 0) check_fail(t, "no plan: %s", err.text);
        else run(t, plan, d, a, b);
        cuda_sync(t);
        check_equal(t, "D", d, all, 256);
    }
    sgt_cuda_gemms_close(g);
}

/* Three products with gaps between them in all three arrays. The gaps of D must keep their bits. */
static void make_three(sgt_cuda_gemm_shape &s)
{
    s.batch = 3, s.stride_a = span(rows_a(s), s.lda, columns_a(s)) + 4,
    s.stride_b = span(rows_b(s), s.ldb, columns_b(s)) + 9, s.stride_d = span(s.m, s.ldd, s.n) + 2;
}

template <class In> static void batch(check *t)
{
    sgt_cuda_gemms *g = open_gemms(t, 0);
    for (int kind = 0; kind < 4 && g; kind++) {
        product p = make(9, 8, 5, kind & 1, kind >> 1, 1, Type<In>::id, Type<In>::id);
        make_three(p.s);
        one<In, In>(t, g, p);
    }
    sgt_cuda_gemms_close(g);
}

/* D = f A B + h C, as in Muon's update. */
template <class In> static void mixed(check *t)
{
    sgt_cuda_gemms *g = open_gemms(t, 0);
    product p = make(24, 16, 33, 0, 0, 0, Type<In>::id, Type<In>::id);
    make_three(p.s);
    p.s.accumulate = 1;
    p.f = 2.0315f, p.h = -4.775f;
    if (g) one<In, In>(t, g, p, true);
    sgt_cuda_gemms_close(g);
}

CUDA_CASES_BY_TYPE(cublaslt_batch, batch)
CUDA_CASES_BY_TYPE(cublaslt_mixed, mixed)
