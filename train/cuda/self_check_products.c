/* self_check_products.c: checks cuBLASLt's matrix products, with every epilogue that a step may
 * use, against sums in double. The inputs come from sgt_check_fill, so that their float32 sums are
 * exact in any order of addition. Therefore the only errors allowed are one rounding of the result
 * and the rounding errors of the epilogue. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/runtime.h"
#include "train/cuda/self_check.h"

/* MATRIX: number of elements of the largest matrix; BATCH: maximum number of matrix products per
 * call */
enum { M = 128, N = 192, K = 64, MATRIX = M * N, BATCH = 3 };
enum { IN_A, IN_B, IN_OUT, IN_BIAS, IN_AUX, ARRAYS };

/* A form of matrix product that a training step uses: whether operands are transposed, whether an
 * array is added to the product, and how many products a call computes. */
typedef struct form {
    int trans_a, trans_b, accumulate;
    /* index of the array that is added to the product if `accumulate` is set. IN_OUT: add the
     * product to the previous contents of D. */
    int added;
    size_t batch; /* number of matrix products that a call computes; 0 means 1 */
    /* Factors in D = f * product + h * (the added array), which sgt_cuda_gemm_run_mixed computes.
     * If f is 0, there are no factors, and sgt_cuda_gemm_run computes the product. */
    float f, h;
    int same; /* 1: B is A itself */
} form;
static const form forward = {0}, dx = {.trans_b = 1},
                  dw = {.trans_a = 1, .accumulate = 1, .added = IN_OUT};
/* The forms of Muon's matrix products, which are batched over the layers (muon.c). Some of them use
 * the same array as A and B, or also as the array to add. The factors f and h are powers of 2, so
 * that multiplying by them is exact. */
static const form gram = {.trans_b = 1, .batch = BATCH, .same = 1},
                  gram_tall = {.trans_a = 1, .batch = BATCH, .same = 1},
                  square = {.accumulate = 1, .batch = BATCH, .f = 2, .h = -.5f, .same = 1},
                  mixed = {.accumulate = 1, .added = IN_AUX, .batch = BATCH, .f = 2, .h = -.5f};

typedef struct products {
    sgt_cuda_gemms *gemms;
    /* device memory for ARRAYS arrays, each with BATCH matrices of up to MATRIX floats */
    sgt_check_space space;
    /* float32 copies, in host memory, of the device arrays as they were before the matrix product
     * overwrote D */
    float *x;
    const form *form;
    sgt_cuda_gemm_shape s;
    int b;    /* the array that is B */
    size_t z; /* index of the matrix in the batch whose result is being compared */
} products;

/* Return the host copy of a matrix: the one with index p->z among the BATCH matrices of the array
 * with index `array` (IN_A, ...). */
static float *host(const products *p, int array)
{
    return p->x + ((size_t)array * BATCH + p->z) * MATRIX;
}
static size_t at(int array) { return (size_t)array * BATCH * MATRIX * sizeof(float); }
static void *device(const products *p, int array) { return (char *)p->space.device + at(array); }
static void *pinned(const products *p, int array) { return (char *)p->space.pinned + at(array); }

static void products_close(products *p)
{
    sgt_cuda_gemms_close(p->gemms);
    sgt_check_space_close(&p->space);
    free(p->x);
}

static int products_open(products *p, const form *f, sgt_error *err)
{
    sgt_cuda_gemms_options o = {.device = "self-check"};
    *p = (products){.x = malloc(at(ARRAYS)), .form = f, .b = f->same ? IN_A : IN_B};
    if (!p->x) return sgt_fail_memory(err, "self-check");
    int rc = sgt_cuda_gemms_open(&p->gemms, &o, err);
    return rc == SGT_OK ? sgt_check_space_open(&p->space, at(ARRAYS), err) : rc;
}

/* ---- the expected numbers ---- */

static double product(const products *p, size_t i, size_t j)
{
    const sgt_cuda_gemm_shape *s = &p->s;
    const float *a = host(p, IN_A), *b = host(p, p->b);
    double sum = 0;
    for (size_t l = 0; l < s->k; l++)
        sum += (double)a[s->trans_a ? l * s->lda + i : i * s->lda + l] *
               (double)b[s->trans_b ? j * s->ldb + l : l * s->ldb + j];
    return p->form->f ? (double)p->form->f * sum : sum;
}

/* Return the number that the array to be added contributes to element (i, j) of D. If the form has
 * factors, the number includes the factor h. If the product does not accumulate, return 0. */
static double added(const products *p, size_t i, size_t j)
{
    double x = p->s.accumulate ? (double)host(p, p->form->added)[i * p->s.ldd + j] : 0;
    return p->form->f ? (double)p->form->h * x : x;
}

/* Return the expected value of element (i, j) of D. Set *off to the largest error allowed for this
 * element. */
static double wanted(const products *p, const sgt_cuda_gemm_shape *s, size_t i, size_t j,
                     double *off)
{
    *off = 0;
    return sgt_cuda_gemm_expected(s, product(p, i, j), added(p, i, j), host(p, IN_BIAS)[j],
                                  host(p, IN_AUX)[i * s->ldd + j], off);
}

/* ---- one matrix product ---- */

static int is_near(const products *p, int array, size_t i, size_t j, double want, double off,
                   sgt_error *err)
{
    static const char *const names[] = {"", "", "D", "bias", "aux"};
    const sgt_cuda_gemm_shape *s = &p->s;
    double got = sgt_cuda_decode(pinned(p, array), s->out, p->z * MATRIX + i * s->ldd + j);
    if (fabs(got - want) <= off) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT, "%s%s%s%s%s%s in %s: %s (%zu, %zu) is %.6g instead of %.6g",
                    s->trans_a ? "A^T " : "A ", p->form->same ? "A" : "B", s->trans_b ? "^T" : "",
                    s->accumulate ? " added" : "", s->batch ? ", in a batch" : "",
                    s->tf32 ? ", TF32" : "", sgt_check_type(s->out), names[array], i, j, got, want);
}

/* Compare all elements of D with their expected values, and all elements of aux if the epilogue
 * writes aux. */
static int compare(const products *p, sgt_error *err)
{
    int rc = SGT_OK;
    /* the GELU epilogue must store in aux the input of GELU, which is the product plus the bias */
    sgt_cuda_gemm_shape with_bias = p->s;
    with_bias.epilogue = SGT_EPILOGUE_BIAS;
    for (size_t k = 0; k < p->s.m * p->s.n && rc == SGT_OK; k++) {
        size_t i = k / p->s.n, j = k % p->s.n;
        double off, x = wanted(p, &p->s, i, j, &off);
        rc = is_near(p, IN_OUT, i, j, x, off, err);
        if (rc < 0 || p->s.epilogue != SGT_EPILOGUE_GELU) continue;
        x = wanted(p, &with_bias, i, j, &off);
        rc = is_near(p, IN_AUX, i, j, x, off, err);
    }
    return rc;
}

static int run(products *p, sgt_error *err)
{
    const sgt_cuda_gemm *plan;
    const form *f = p->form;
    sgt_check_space *x = &p->space;
    int rc = sgt_cuda_gemm_plan(&plan, p->gemms, &p->s, err);
    if (rc < 0) return rc;
    void *d = device(p, IN_OUT), *a = device(p, IN_A), *b = device(p, p->b);
    const size_t n = (size_t)BATCH * MATRIX;
    p->z = 0;
    for (int i = 0; i < ARRAYS; i++) {
        sgt_check_fill(host(p, i), n, (uint32_t)i + 1);
        sgt_check_encode(pinned(p, i), i < IN_OUT ? p->s.type : p->s.out, host(p, i), n);
    }
    sgt_cuda_copy(x->stream, x->device, x->pinned, at(ARRAYS));
    if (f->f) sgt_cuda_gemm_run_mixed(plan, x->stream, d, f->f, a, b, f->h, device(p, f->added));
    else sgt_cuda_gemm_run(plan, x->stream, d, a, b, device(p, IN_BIAS), device(p, IN_AUX));
    sgt_cuda_copy(x->stream, x->pinned, x->device, at(ARRAYS));
    rc = sgt_cuda_finish(x->stream, err);
    for (; rc == SGT_OK && p->z < (f->batch ? f->batch : 1); p->z++) rc = compare(p, err);
    return rc;
}

/* ---- the paths ---- */

static int in_type(products *p, sgt_cuda_epilogue epilogue, sgt_cuda_type type, int tf32,
                   sgt_error *err)
{
    const form *f = p->form;
    const size_t n = f->same ? M : N, k = f->same && f->accumulate ? M : K;
    p->s = (sgt_cuda_gemm_shape){.m = M,
                                 .n = n,
                                 .k = k,
                                 .trans_a = f->trans_a,
                                 .trans_b = f->trans_b,
                                 .lda = f->trans_a ? M : k,
                                 .ldb = f->trans_b ? k : n,
                                 .ldd = n,
                                 .type = type,
                                 /* weight gradients are float32 */
                                 .out = f->added == IN_OUT ? SGT_F32 : type,
                                 .tf32 = tf32,
                                 .accumulate = f->accumulate,
                                 .epilogue = epilogue,
                                 .batch = f->batch,
                                 .stride_a = MATRIX,
                                 .stride_b = MATRIX,
                                 .stride_d = MATRIX};
    return run(p, err);
}

/* Check a matrix product in every precision that training offers. The library must support bf16,
 * the default; otherwise, return SGT_EUNSUPPORTED. Skip other number formats in which the library
 * does not support the epilogue. */
static int in_all_types(products *p, sgt_cuda_epilogue epilogue, sgt_error *err)
{
    static const struct {
        sgt_cuda_type type;
        int tf32;
    } types[] = {{SGT_BF16, 0}, {SGT_F16, 0}, {SGT_F32, 0}, {SGT_F32, 1}};
    int rc = SGT_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types && rc == SGT_OK; i++) {
        rc = in_type(p, epilogue, types[i].type, types[i].tf32, err);
        if (rc == SGT_EUNSUPPORTED && i > 0 && epilogue != SGT_EPILOGUE_NONE) rc = SGT_OK;
    }
    return rc;
}

static int check(const form *f, sgt_cuda_epilogue epilogue, sgt_error *err)
{
    products p;
    int rc = products_open(&p, f, err);
    if (rc == SGT_OK) rc = in_all_types(&p, epilogue, err);
    products_close(&p);
    return rc;
}

/* The table of checks: the matrix products, and their epilogues, that each path must compute. */
static const struct {
    const char *path;
    const form *form;
    sgt_cuda_epilogue epilogue;
} checked[] = {{SGT_CHECK_PRODUCTS, &forward, SGT_EPILOGUE_NONE},
               {SGT_CHECK_PRODUCTS, &dx, SGT_EPILOGUE_NONE},
               {SGT_CHECK_PRODUCTS, &dw, SGT_EPILOGUE_NONE},
               {SGT_CHECK_BIAS, &forward, SGT_EPILOGUE_BIAS},
               {SGT_CHECK_GELU, &forward, SGT_EPILOGUE_GELU},
               {SGT_CHECK_SLOPE, &dx, SGT_EPILOGUE_DGELU},
               {SGT_CHECK_MUON, &gram, SGT_EPILOGUE_NONE},
               {SGT_CHECK_MUON, &gram_tall, SGT_EPILOGUE_NONE},
               {SGT_CHECK_MUON, &square, SGT_EPILOGUE_NONE},
               {SGT_CHECK_MUON, &mixed, SGT_EPILOGUE_NONE}};

int sgt_check_products(const char *path, int device, sgt_error *err)
{
    int rc = SGT_OK;
    (void)device;
    for (size_t i = 0; i < sizeof checked / sizeof *checked && rc == SGT_OK; i++)
        if (strcmp(checked[i].path, path) == 0)
            rc = check(checked[i].form, checked[i].epilogue, err);
    return rc;
}
