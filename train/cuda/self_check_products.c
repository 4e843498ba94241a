/* self_check_products.c: products of matrices through cuBLASLt, with each epilogue that a step may take, beside sums in
 * double. Inputs are such (sgt_check_fill) that a sum in float32 is exact in any order, so that what the product is
 * rounded to is known to the bit, and the bounds are those of rounding once and of the epilogue's own arithmetic. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/gemm.h"
#include "cuda/runtime.h"
#include "self_check.h"

enum { M = 128, N = 192, K = 64, MATRIX = M * N }; /* the largest of the three has M*N numbers */
enum { IN_A, IN_B, IN_OUT, IN_BIAS, IN_AUX, ARRAYS };

typedef struct products {
    sgt_cuda_gemms *gemms;
    sgt_cuda_stream stream;
    unsigned char *device, *pinned; /* ARRAYS arrays each, of MATRIX floats or less */
    float *x;                       /* the same on the host: what they hold before the product */
} products;

static float *host(const products *p, int array) { return p->x + (size_t)array * MATRIX; }
static size_t at(int array) { return (size_t)array * MATRIX * sizeof(float); }

static void products_close(products *p)
{
    sgt_cuda_gemms_close(p->gemms);
    sgt_cuda_stream_free(p->stream);
    sgt_cuda_free(p->device);
    sgt_cuda_host_free(p->pinned);
    free(p->x);
}

static int products_open(products *p, sgt_error *err)
{
    void *device, *pinned;
    sgt_cuda_gemms_options o = {.device = "self-check"};
    *p = (products){.x = malloc(at(ARRAYS))};
    int rc = p->x ? sgt_cuda_gemms_open(&p->gemms, &o, err) : sgt_fail(err, SGT_ENOMEM, "self-check: out of memory");
    if (rc < 0 || (rc = sgt_cuda_stream_new(&p->stream, err)) < 0 ||
        (rc = sgt_cuda_malloc(&device, at(ARRAYS), err)) < 0)
        return rc;
    p->device = device;
    if ((rc = sgt_cuda_host_alloc(&pinned, at(ARRAYS), err)) == SGT_OK) p->pinned = pinned;
    return rc;
}

/* ---- what is right ---- */

static double product(const products *p, const sgt_cuda_gemm_shape *s, size_t i, size_t j)
{
    const float *a = host(p, IN_A), *b = host(p, IN_B);
    double sum = s->accumulate ? (double)host(p, IN_OUT)[i * N + j] : 0;
    for (size_t l = 0; l < K; l++)
        sum += (double)(s->trans_a ? a[l * M + i] : a[i * K + l]) * (double)(s->trans_b ? b[j * K + l] : b[l * N + j]);
    return sum;
}

static const double root = 0.79788456080286535588, cube = 0.044715; /* sqrt(2/pi) */

static double slope(double x)
{
    double t = tanh(root * (x + cube * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * cube * x * x);
}

/* D's number, and how far it may be off. The library may take tanh from the card's own approximation, which is off by
 * at most 2^-11 of tanh: GELU by half of that times |x|, its slope for |x| <= 1 by 1.5 times that. */
static double wanted(const products *p, const sgt_cuda_gemm_shape *s, size_t i, size_t j, double *off)
{
    const double approximate = 0x1p-11, u = sgt_check_unit(s->out);
    double x = product(p, s, i, j), bias = (double)host(p, IN_BIAS)[j], aux = (double)host(p, IN_AUX)[i * N + j];
    *off = 0;
    if (s->epilogue == SGT_EPILOGUE_BIAS || s->epilogue == SGT_EPILOGUE_GELU) x += bias;
    if (s->epilogue == SGT_EPILOGUE_GELU) {
        *off = fabs(x) * (approximate + 1.2 * u); /* of x, or of x as aux has it, where the slope is 1.13 at most */
        x = 0.5 * x * (1 + tanh(root * (x + cube * x * x * x)));
    } else if (s->epilogue == SGT_EPILOGUE_DGELU || s->epilogue == SGT_EPILOGUE_DGELU_BGRAD) {
        *off = fabs(x) * 1.5 * approximate;
        x *= slope(aux);
    }
    *off += u * fabs(x);
    return x;
}

/* ---- one product ---- */

static int is_near(const products *p, const sgt_cuda_gemm_shape *s, int array, size_t i, size_t j, double want,
                   double off, sgt_error *err)
{
    static const char *const types[] = {"float32", "bf16", "fp16"}, *const names[] = {"", "", "D", "bias", "aux"};
    sgt_cuda_type type = s->out;
    double got = sgt_check_decode(p->pinned + at(array), type, i * N + j);
    if (fabs(got - want) <= off) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT, "%s%s%s%s in %s: %s (%zu, %zu) is %.6g, not %.6g", s->trans_a ? "A^T " : "A ",
                    s->trans_b ? "B^T" : "B", s->accumulate ? " added" : "", s->tf32 ? ", TF32" : "", types[type],
                    names[array], i, j, got, want);
}

static int compare(const products *p, const sgt_cuda_gemm_shape *s, sgt_error *err)
{
    int rc = SGT_OK, gelu = s->epilogue == SGT_EPILOGUE_GELU, sums = s->epilogue == SGT_EPILOGUE_DGELU_BGRAD;
    for (size_t j = 0; j < N && rc == SGT_OK; j++) {
        double sum = 0, sum_off = 0, off;
        for (size_t i = 0; i < M && rc == SGT_OK; i++) {
            double x = wanted(p, s, i, j, &off);
            rc = is_near(p, s, IN_OUT, i, j, x, off, err);
            sum += x;
            sum_off += off;
            if (rc < 0 || !gelu) continue;
            x = product(p, s, i, j) + (double)host(p, IN_BIAS)[j];
            rc = is_near(p, s, IN_AUX, i, j, x, sgt_check_unit(s->out) * fabs(x), err);
        }
        if (rc == SGT_OK && sums)
            rc = is_near(p, s, IN_BIAS, 0, j, sum, sum_off + sgt_check_unit(s->out) * fabs(sum), err);
    }
    return rc;
}

static int run(products *p, const sgt_cuda_gemm_shape *s, sgt_error *err)
{
    const sgt_cuda_gemm *plan;
    int rc = sgt_cuda_gemm_plan(&plan, p->gemms, s, err);
    if (rc < 0) return rc;
    for (int i = 0; i < ARRAYS; i++) {
        sgt_check_fill(host(p, i), MATRIX, (uint32_t)i + 1);
        sgt_check_encode(p->pinned + at(i), i < IN_OUT ? s->type : s->out, host(p, i), MATRIX);
    }
    sgt_cuda_copy(p->stream, p->device, p->pinned, at(ARRAYS));
    sgt_cuda_gemm_run(plan, p->stream, p->device + at(IN_OUT), p->device + at(IN_A), p->device + at(IN_B),
                      p->device + at(IN_BIAS), p->device + at(IN_AUX));
    sgt_cuda_copy(p->stream, p->pinned, p->device, at(ARRAYS));
    rc = sgt_cuda_finish(p->stream, err);
    return rc == SGT_OK ? compare(p, s, err) : rc;
}

/* ---- the paths ---- */

typedef struct form { /* of a step's products */
    int trans_a, trans_b, accumulate;
} form;
static const form forward = {0, 0, 0}, dx = {0, 1, 0}, dw = {1, 0, 1};

static int in_type(products *p, const form *f, sgt_cuda_epilogue epilogue, sgt_cuda_type type, int tf32, sgt_error *err)
{
    sgt_cuda_gemm_shape s = {.m = M,
                             .n = N,
                             .k = K,
                             .trans_a = f->trans_a,
                             .trans_b = f->trans_b,
                             .lda = f->trans_a ? M : K,
                             .ldb = f->trans_b ? K : N,
                             .ldd = N,
                             .type = type,
                             .out = f->accumulate ? SGT_F32 : type,
                             .tf32 = tf32,
                             .accumulate = f->accumulate,
                             .epilogue = epilogue};
    return run(p, &s, err);
}

/* In every precision of training. An epilogue that the library lacks for some types is tried in the others. */
static int in_all_types(products *p, const form *f, sgt_cuda_epilogue epilogue, sgt_error *err)
{
    static const struct {
        sgt_cuda_type type;
        int tf32;
    } types[] = {{SGT_BF16, 0}, {SGT_F16, 0}, {SGT_F32, 0}, {SGT_F32, 1}};
    int rc = SGT_OK, served = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types && rc == SGT_OK; i++) {
        rc = in_type(p, f, epilogue, types[i].type, types[i].tf32, err);
        served += rc == SGT_OK;
        if (rc == SGT_EUNSUPPORTED && epilogue != SGT_EPILOGUE_NONE) rc = SGT_OK;
    }
    return rc == SGT_OK && !served ? SGT_EUNSUPPORTED : rc;
}

static int check(const form *f, sgt_cuda_epilogue epilogue, sgt_error *err)
{
    products p;
    int rc = products_open(&p, err);
    if (rc == SGT_OK) rc = in_all_types(&p, f, epilogue, err);
    products_close(&p);
    return rc;
}

int sgt_check_products(int device, sgt_error *err)
{
    (void)device;
    int rc = check(&forward, SGT_EPILOGUE_NONE, err);
    if (rc == SGT_OK) rc = check(&dx, SGT_EPILOGUE_NONE, err);
    return rc == SGT_OK ? check(&dw, SGT_EPILOGUE_NONE, err) : rc;
}

int sgt_check_products_bias(int device, sgt_error *err)
{
    (void)device;
    return check(&forward, SGT_EPILOGUE_BIAS, err);
}

int sgt_check_products_gelu(int device, sgt_error *err)
{
    (void)device;
    return check(&forward, SGT_EPILOGUE_GELU, err);
}

int sgt_check_products_slope(int device, sgt_error *err)
{
    (void)device;
    return check(&dx, SGT_EPILOGUE_DGELU, err);
}

int sgt_check_products_slope_bias(int device, sgt_error *err)
{
    (void)device;
    return check(&dx, SGT_EPILOGUE_DGELU_BGRAD, err);
}
