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

/* A product and its precision. The reference's arrays are row-major. The gaps of D are NaN and must
 * keep their bits. */
struct product {
    sgt_cuda_gemm_shape s;
    double unit; /* relative error by which TF32 rounds an operand; 0: none */
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

static const double ROOT = 0.79788456080286535588, CUBE = 0.044715; /* sqrt(2/pi) */

/* Relative error allowed to the library's tanh: on a GPU that of the instruction tanh.approx.f32,
 * 2^-11 by PTX's manual. The host's stand-in is as good as tanhf. */
#ifdef DEV_ON_HOST
static const double tanh_error = 4 * UNIT;
#else
static const double tanh_error = 0x1p-11;
#endif

/* Return y = x (1 + t)/2, with t = tanh u and u = ROOT (x + CUBE x^3), and in *bound its error in
 * float32. There are five roundings in u, whose two terms have the same sign, and three after t:
 *   |du| <= 5 UNIT |u|
 *   |dt| <= tanh_error |t| + (1 - t^2) |du|
 *   |dy| <= |x| |dt|/2 + 3 UNIT |y|
 * For large negative x, t is near -1 and y near 0. The bound is then relative to x, not to y. */
static double gelu(double x, double *bound)
{
    double u = ROOT * (x + CUBE * x * x * x), t = tanh(u), y = 0.5 * x * (1 + t);
    double dt = tanh_error * fabs(t) + (1 - t * t) * 5 * UNIT * fabs(u);
    *bound = 0.5 * fabs(x) * dt + 3 * UNIT * fabs(y);
    return y;
}

/* Return y' = (1 + t)/2 + x (1 - t^2) u'/2, with u' = ROOT (1 + 3 CUBE x^2), and in *bound its
 * error. dt is the error of t, as in gelu. The bound is the sum of:
 *   |1/2 - x t u'| dt + |x u'| dt^2/2, the effect of dt on y' to second order
 *   4 UNIT of the first term, for four roundings
 *   7 UNIT of the second term, for seven roundings
 *   UNIT |x u'| t^2/2, because the rounding of t^2 is relative to t^2 and not to 1 - t^2 */
static double gelu_slope(double x, double *bound)
{
    double u = ROOT * (x + CUBE * x * x * x), t = tanh(u), du = ROOT * (1 + 3 * CUBE * x * x);
    double dt = tanh_error * fabs(t) + (1 - t * t) * 5 * UNIT * fabs(u);
    double first = 0.5 * (1 + t), second = 0.5 * x * (1 - t * t) * du;
    *bound = fabs(0.5 - x * t * du) * dt + 0.5 * fabs(x) * du * dt * dt + 4 * UNIT * first +
             UNIT * (7 * fabs(second) + 0.5 * fabs(x) * du * t * t);
    return first + second;
}

/* Return element (i, j) of op(A) op(B) [+ D], and in *bound the error of float sums in any order: k
 * products, and one or two more terms. The library may round the product, and its sum with D, to D's
 * type, of roundoff `unit`, before it changes them further (gemm.h). */
static double sum_at(const product &p, const operands &o, size_t i, size_t j, double unit,
                     double *bound)
{
    const sgt_cuda_gemm_shape &s = p.s;
    const bool changes = s.epilogue != SGT_EPILOGUE_NONE;
    double sum = 0, terms = 0;
    for (size_t x = 0; x < s.k; x++) {
        double term = (double)o.a[s.trans_a ? x * s.lda + i : i * s.lda + x] *
                      o.b[s.trans_b ? j * s.ldb + x : x * s.ldb + j];
        sum += term;
        terms += fabs(term);
    }
    *bound = 2 * p.unit * terms;
    if (s.accumulate || changes) *bound += unit * fabs(sum);
    if (s.accumulate) sum += o.d[i * s.ldd + j], terms += fabs((double)o.d[i * s.ldd + j]);
    if (s.accumulate && changes) *bound += unit * fabs(sum);
    if (o.bias) terms += fabs((double)o.bias[j]);
    *bound += (double)(s.k + 3) * UNIT * terms;
    return sum;
}

struct results {
    float *d, *aux;
    double *d_bound, *aux_bound;
};

/* Compute element (i, j) of the results, from the sum x with the error x_bound. `unit` is the
 * output type's roundoff. The error of x grows by at most |gelu'| < 1.13; then the library's own
 * errors are added. With GELU, D is computed from the sum or from the aux that was stored. */
static void epilogue_at(const product &p, const operands &o, const results &r, double x,
                        double x_bound, size_t i, size_t j, double unit)
{
    size_t at = i * p.s.ldd + j;
    double out = x, bound = x_bound, own;
    if (p.s.epilogue == SGT_EPILOGUE_BIAS || p.s.epilogue == SGT_EPILOGUE_GELU)
        out += (double)o.bias[j];
    if (p.s.epilogue == SGT_EPILOGUE_GELU) {
        r.aux[at] = (float)out;
        r.aux_bound[at] = x_bound + UNIT * fabs(out);
        bound = 1.13 * (x_bound + unit * fabs(out));
        out = gelu(out, &own);
        bound += own;
    } else if (p.s.epilogue == SGT_EPILOGUE_DGELU) {
        out *= gelu_slope((double)o.aux[at], &own);
        bound = 1.13 * x_bound + own * fabs(x) + UNIT * fabs(out); /* one more product */
    }
    r.d[at] = (float)out;
    r.d_bound[at] = bound + UNIT * fabs(out);
}

static void reference(const product &p, const operands &o, const results &r, double unit)
{
    for (size_t i = 0; i < p.s.m; i++)
        for (size_t j = 0; j < p.s.n; j++) {
            double bound, x = sum_at(p, o, i, j, unit, &bound);
            epilogue_at(p, o, r, x, bound, i, j, unit);
        }
}

/* ---- a product on the device, and its reference ---- */

static bool reads_bias(const sgt_cuda_gemm_shape &s)
{
    return s.epilogue == SGT_EPILOGUE_BIAS || s.epilogue == SGT_EPILOGUE_GELU;
}

/* Draw rows of random numbers, with NaN in the gaps between them. */
template <class T> static T *matrix(check *t, size_t rows, size_t ld, size_t columns)
{
    T *x = cuda_output<T>(t, span(rows, ld, columns)),
      *numbers = cuda_random<T>(t, rows * columns, 1);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) x[i * ld + j] = numbers[i * columns + j];
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
    stored_as<Out>(bound, want, n);
    check_close(t, name, floats, want, bound, n);
}

static void run(check *t, const sgt_cuda_gemm *plan, void *d, void *a, void *b,
                void *bias = nullptr, void *aux = nullptr)
{
    sgt_cuda_gemm_run(plan, nullptr, cuda_there(t, d), cuda_there(t, a), cuda_there(t, b),
                      cuda_there(t, bias), cuda_there(t, aux));
}

/* apart: an accumulating product adds to an array other than D, and D holds NaN. */
template <class In, class Out>
static void one(check *t, sgt_cuda_gemms *g, const product &p, bool apart = false)
{
    const sgt_cuda_gemm_shape &s = p.s;
    size_t size = span(s.m, s.ldd, s.n);
    In *a = matrix<In>(t, rows_a(s), s.lda, columns_a(s)),
       *b = matrix<In>(t, rows_b(s), s.ldb, columns_b(s));
    Out *d = s.accumulate ? matrix<Out>(t, s.m, s.ldd, s.n) : cuda_output<Out>(t, size);
    Out *bias = reads_bias(s) ? cuda_random<Out>(t, s.n, 1) : cuda_output<Out>(t, s.n);
    Out *aux = s.epilogue == SGT_EPILOGUE_DGELU ? matrix<Out>(t, s.m, s.ldd, s.n)
                                                : cuda_output<Out>(t, size);
    check_at(t, "%zu x %zu x %zu, %c%c, rows %zu %zu %zu, epilogue %d%s%s%s", s.m, s.n, s.k,
             s.trans_a ? 't' : 'n', s.trans_b ? 't' : 'n', s.lda, s.ldb, s.ldd, (int)s.epilogue,
             s.accumulate ? ", added" : "", s.tf32 ? ", tf32" : "",
             sizeof(Out) != sizeof(In) ? ", to f32" : "");

    operands o = {cuda_floats(t, a, span(rows_a(s), s.lda, columns_a(s))),
                  cuda_floats(t, b, span(rows_b(s), s.ldb, columns_b(s))),
                  reads_bias(s) ? cuda_floats(t, bias, s.n) : nullptr, cuda_floats(t, aux, size),
                  cuda_floats(t, d, size)};
    results want = {check_output(t, size), check_output(t, size), check_doubles(t, size),
                    check_doubles(t, size)};
    reference(p, o, want, Type<Out>::unit);

    const sgt_cuda_gemm *plan;
    sgt_error err;
    if (sgt_cuda_gemm_plan(&plan, g, &s, &err) < 0) {
        check_fail(t, "no plan: %s", err.text);
        return;
    }
    Out *whole = apart ? cuda_output<Out>(t, size) : d, *onto = d;
    if (apart)
        sgt_cuda_gemm_run_mixed(plan, nullptr, cuda_there(t, d = whole), 1, cuda_there(t, a),
                                cuda_there(t, b), 1, cuda_there(t, onto));
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
    return p;
}

/* ---- the cases ---- */

struct form {
    size_t m, n, k;
};

/* One number; rows and columns that are no multiple of a vector; more than a tile; a long sum. */
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

/* Rows of aux are a multiple of 8 apart. The library refuses others (host/cublaslt_cases.cpp). */
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

/* The products of a step with batch 2, 12 tokens, 24 channels, and 50 ids padded to 56. They are
 * the forward pass with its epilogues, input gradients, weight gradients added in float32, and the
 * tied head. */
template <class In> static void step(check *t)
{
    const size_t N = 24, C = 24, V = 56;
    const sgt_cuda_type type = Type<In>::id;
    const form layers[] = {{N, 3 * C, C}, {N, C, C}, {N, 4 * C, C}, {N, C, 4 * C}};
    sgt_cuda_gemms *g = open_gemms(t, 1);
    for (const form &f : layers) {
        if (!g) return;
        product forward = make(f.m, f.n, f.k, 0, 0, 0, type, type),
                input = make(f.m, f.k, f.n, 0, 1, 0, type, type);
        product weight = make(f.k, f.n, f.m, 1, 0, 0, type, SGT_F32);
        forward.s.epilogue = f.n == 4 * C ? SGT_EPILOGUE_GELU : SGT_EPILOGUE_BIAS;
        input.s.epilogue = f.k == 4 * C ? SGT_EPILOGUE_DGELU : SGT_EPILOGUE_NONE;
        weight.s.accumulate = 1;
        one<In, In>(t, g, forward);
        one<In, In>(t, g, input);
        one<In, float>(t, g, weight);
    }
    product head = make(N, V, C, 0, 1, 0, type, type),
            gradient = make(N, C, V, 0, 0, 0, type, type);
    product table = make(V, C, N, 1, 0, 0, type, SGT_F32);
    table.s.accumulate = 1;
    one<In, In>(t, g, head);
    one<In, In>(t, g, gradient);
    one<In, float>(t, g, table);
    sgt_cuda_gemms_close(g);
}

CUDA_CASES_BY_TYPE(cublaslt, products)
CUDA_CASES_BY_TYPE(cublaslt_epilogue, epilogues)
CUDA_CASES_BY_TYPE(cublaslt_step, step)

#ifdef DEV_ON_HOST
/* The bound also holds for a library that rounds products early. */
CUDA_CASE(cublaslt_rounds_first)
{
    host::lt.rounds = ~0;
    products<dev::bf16>(t);
    epilogues<dev::f16>(t);
    step<dev::bf16>(t);
    host::lt.rounds = 0;
}
#endif

/* TF32 keeps 10 bits after the point. Truncation is off by less than 2^-10, rounding by half of
 * that. */
CUDA_CASE(cublaslt_tf32)
{
    sgt_cuda_gemms *g = open_gemms(t, 0);
    for (const form &f : forms) {
        if (!g) return;
        product p = make(f.m, f.n, f.k, 0, 1, 0, SGT_F32, SGT_F32);
        p.s.tf32 = 1;
        p.unit = 0x1p-10;
        one<float, float>(t, g, p);
    }
    sgt_cuda_gemms_close(g);
}

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
template <class In> static void batch(check *t)
{
    const size_t count = 3;
    sgt_cuda_gemms *g = open_gemms(t, 0);
    for (int kind = 0; kind < 4 && g; kind++) {
        product p = make(9, 8, 5, kind & 1, kind >> 1, 1, Type<In>::id, Type<In>::id);
        sgt_cuda_gemm_shape &s = p.s;
        size_t size_a = span(rows_a(s), s.lda, columns_a(s)),
               size_b = span(rows_b(s), s.ldb, columns_b(s));
        size_t size_d = span(s.m, s.ldd, s.n);
        s.batch = count, s.stride_a = size_a + 4, s.stride_b = size_b + 9, s.stride_d = size_d + 2;
        size_t all_d = (count - 1) * s.stride_d + size_d;
        In *a = cuda_random<In>(t, (count - 1) * s.stride_a + size_a, 1);
        In *b = cuda_random<In>(t, (count - 1) * s.stride_b + size_b, 1),
           *d = cuda_output<In>(t, all_d);
        float *want = check_output(t, all_d);
        double *bound = check_doubles(t, all_d);
        const float *all_a = cuda_floats(t, a, (count - 1) * s.stride_a + size_a);
        const float *all_b = cuda_floats(t, b, (count - 1) * s.stride_b + size_b);
        for (size_t x = 0; x < count; x++) {
            operands o = {all_a + x * s.stride_a, all_b + x * s.stride_b, nullptr, nullptr,
                          nullptr};
            results r = {want + x * s.stride_d, nullptr, bound + x * s.stride_d, nullptr};
            reference(p, o, r, Type<In>::unit);
        }
        const sgt_cuda_gemm *plan;
        sgt_error err;
        check_at(t, "batch of %zu, %d", count, kind);
        if (sgt_cuda_gemm_plan(&plan, g, &s, &err) < 0) check_fail(t, "no plan: %s", err.text);
        else run(t, plan, d, a, b);
        cuda_sync(t);
        compare(t, "D", d, want, bound, all_d);
    }
    sgt_cuda_gemms_close(g);
}

CUDA_CASES_BY_TYPE(cublaslt_batch, batch)
