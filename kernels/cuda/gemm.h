/* gemm.h: matrix products with cuBLASLt. Descriptors are created and algorithms are chosen once, by
 * sgt_cuda_gemm_plan. sgt_cuda_gemm_run enqueues one matrix product on a stream.
 *
 *     sgt_cuda_gemms *g;                     // the library and its workspace
 *     sgt_cuda_gemms_open(&g, &options, &err);
 *     sgt_cuda_gemm_shape s = {.m = N, .n = 3 * C, .k = C, .lda = C, .ldb = 3 * C, .ldd = 3 * C,
 *                              .type = SGT_BF16, .out = SGT_BF16, .epilogue = SGT_EPILOGUE_BIAS};
 *     sgt_cuda_gemm *p;
 *     sgt_cuda_gemm_plan(&p, g, &s, &err);
 *     sgt_cuda_gemm_run(p, stream, qkv, ln1, w, bias, NULL);
 *
 * Matrices are row-major, in device memory, 16-byte aligned. Sums are float32, and so are the
 * partial sums if the library splits k. All matrix products of one sgt_cuda_gemms share a
 * workspace, so put them on one stream, or order the streams with events. All calls come from one
 * thread. On the host, tests/kernels/host/cublaslt.cpp replaces the library. */
#ifndef SGT_CUDA_GEMM_H
#define SGT_CUDA_GEMM_H

#include "loader/base/error.h"
#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The operation that turns x into D. x is the matrix product, plus the old D if `accumulate` is
 * set. The library sometimes also rounds intermediate results to D's type: the matrix product
 * before the old D is added, and x before the operation. On an H100, some algorithms of cuBLASLt
 * 13.1 round both. */
typedef enum sgt_cuda_epilogue {
    SGT_EPILOGUE_NONE, /* D = x */
    /* D = x + bias; bias (n) has `out`'s type and is read */
    SGT_EPILOGUE_BIAS,
    /* aux = x + bias, D = gelu_tanh(aux); aux (m, n) has the type and stride of D and is written */
    SGT_EPILOGUE_GELU,
    SGT_EPILOGUE_DGELU /* D = x * gelu_tanh'(aux); aux is read */
} sgt_cuda_epilogue;

/* Shape of a matrix product: D (m, n) = op(A) op(B), plus D if `accumulate` is set, then the
 * epilogue. op(X) is X or its transpose. */
typedef struct sgt_cuda_gemm_shape {
    size_t m, n, k;
    /* trans_a: 1 if A is stored as (k, m), 0 if A is stored as (m, k); trans_b: 1 if B is stored as
     * (n, k), 0 if B is stored as (k, n) */
    int trans_a, trans_b;
    /* row strides of the arrays that hold A, B and D, in elements; aux has the row stride of D */
    size_t lda, ldb, ldd;
    sgt_cuda_type type, out; /* type: of A and B; out: of D */
    /* 1: allow tensor cores to round float32 operands to TF32; 0: do not allow it */
    int tf32;
    /* 1: add to the old D, or to `onto` in sgt_cuda_gemm_run_mixed; 0: overwrite D */
    int accumulate;
    sgt_cuda_epilogue epilogue;
    /* Number of multiprocessors that the library may use; 0: all. The library's heuristics choose
     * algorithms for this number. The remaining multiprocessors stay free for other kernels. */
    int32_t multiprocessors;
    /* number of matrix products that one call computes; 0 means 1. With more than one, the shape
     * must have no epilogue, and stride_a, stride_b and stride_d are the distances in elements from
     * one A, B and D to the next. */
    size_t batch;
    size_t stride_a, stride_b, stride_d;
} sgt_cuda_gemm_shape;

/* Size in bytes of the workspace that all matrix products of an sgt_cuda_gemms share. The library's
 * algorithms for Hopper GPUs ask for this size. */
#define SGT_CUDA_GEMM_WORKSPACE ((size_t)32 << 20)

typedef struct sgt_cuda_gemms sgt_cuda_gemms;
typedef struct sgt_cuda_gemm sgt_cuda_gemm;

typedef struct sgt_cuda_gemms_options {
    /* Name of the GPU, the only GPU for which the chosen algorithms are valid. The string is not
     * used after sgt_cuda_gemms_open returns. */
    const char *device;
    /* 1: results must have the same bits in each run; 0: results can differ in their last bits.
     * With 1, the library splits sums over k only in reproducible ways, and algorithms are not
     * chosen by time, because times differ from run to run. Instead, `choices` gives the algorithm
     * for each shape. A shape that `choices` lacks gets the first algorithm with correct results,
     * in the order of the library's heuristics. */
    int deterministic;
    /* Algorithms to use if `deterministic` is set: text from sgt_cuda_gemms_choices, of this or an
     * earlier run; NULL: none. Text for a different device or library version is ignored. The
     * string must stay valid until the last product is planned. */
    const char *choices;
    int unverified; /* 1: do not check the results of algorithms; 0: check the results */
    /* function that is called for each algorithm that is rejected because its results are wrong,
     * and for each matrix product whose algorithm could not be checked for lack of memory */
    sgt_notice notice;
    /* 1: time the algorithms, and use the fastest; 0: use the first algorithm that the heuristics
     * suggest */
    int timing;
    /* Number of bytes that are overwritten before each timed run, to evict the operands from the
     * GPU's caches; 0: 64 MiB. The operands are then read from memory, as in a training step. */
    size_t flush;
} sgt_cuda_gemms_options;

/* Load cuBLASLt (version 13 or, if there is none, version 12), and allocate the workspace in device
 * memory. If the library is missing, return SGT_EUNSUPPORTED, with the library's name in *err. */
int sgt_cuda_gemms_open(sgt_cuda_gemms **out, const sgt_cuda_gemms_options *o, sgt_error *err);
void sgt_cuda_gemms_close(sgt_cuda_gemms *g);                /* free g and its matrix products */
const char *sgt_cuda_gemms_library(const sgt_cuda_gemms *g); /* "cuBLASLt 13.1.0" */
/* Return the algorithms of all planned products as text, or NULL if memory runs out. The caller
 * frees the text. */
char *sgt_cuda_gemms_choices(const sgt_cuda_gemms *g);

/* Choose an algorithm for a shape and set *out to the plan, which is valid until
 * sgt_cuda_gemms_close. Equal shapes share one plan.
 *
 * The call times and checks algorithms on the device, and waits for it. Until the call returns, it
 * uses device memory for operands and, for timing, `flush` bytes more. If there is not enough
 * memory for this, the call chooses the first algorithm that the heuristics suggest, without
 * checking it, and gives a notice unless `unverified` is set.
 *
 * Return SGT_EUNSUPPORTED if the library rejects the shape or has no algorithm for it, for instance
 * for this epilogue with these types. The caller can then fall back. Return another error if every
 * algorithm fails or gives wrong results. */
int sgt_cuda_gemm_plan(const sgt_cuda_gemm **out, sgt_cuda_gemms *g, const sgt_cuda_gemm_shape *s,
                       sgt_error *err);
/* Return the measured median time in milliseconds of the chosen algorithm, or 0 if the algorithm
 * was not timed. */
float sgt_cuda_gemm_ms(const sgt_cuda_gemm *p);
double sgt_cuda_gemm_flops(const sgt_cuda_gemm *p); /* floating-point operations per run */

/* Enqueue the matrix product on a stream and return. The call allocates nothing and does not wait.
 * bias and aux are ignored unless the epilogue uses them. If the library rejects the matrix
 * product, the next sgt_cuda_check reports the error. */
void sgt_cuda_gemm_run(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, const void *a,
                       const void *b, void *bias, void *aux);

/* Enqueue D (m, n) = f*op(A) op(B) + h*onto. The plan's shape must have `accumulate` set and no
 * epilogue. `onto` has the layout of D. Neither A nor B may be D. */
void sgt_cuda_gemm_run_mixed(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, float f,
                             const void *a, const void *b, float h, const void *onto);

/* To check results, return what one element of D should be, in double. x is the element of the
 * matrix product. `onto`, `bias` and `aux` are the corresponding elements of the other operands;
 * operands that the shape does not use are ignored. On entry, *off is the maximum error of x. On
 * return, *off is the maximum error of the result.
 *
 * The result's error includes the roundings to D's type that the library possibly does before the
 * last one (see sgt_cuda_epilogue). The library possibly uses the GPU's approximation of tanh,
 * which has a relative error of at most e = 2^-11. Then the error of GELU is at most e |x| / 2, and
 * that of its slope is at most 1.5 e for |aux| <= 1. GELU's slope is at most 1.13, so an error of x
 * grows by less than a factor of 1.2. */
double sgt_cuda_gemm_expected(const sgt_cuda_gemm_shape *s, double x, double onto, double bias,
                              double aux, double *off);

/* Return element i of an array of `type` in host memory. Return NAN for an infinite fp16
 * element. */
double sgt_cuda_decode(const void *x, sgt_cuda_type type, size_t i);
/* Return the maximum relative error of rounding to `type`: 2^-8 for bf16, 2^-11 for fp16, 2^-24 for
 * float32. */
double sgt_cuda_unit(sgt_cuda_type type);

#ifdef __cplusplus
}
#endif
#endif
