/* gemm.h: matrix products through cuBLASLt. Descriptors are made and algorithms are chosen once, at
 * set-up. Timings are kept in a file, by shape, for one device and version of the library. A run
 * puts one product on a stream.
 *
 *     sgt_cuda_gemms *g;                     // the library, its workspace and earlier timings
 *     sgt_cuda_gemms_open(&g, &options, &err);
 *     sgt_cuda_gemm_shape s = {.m = N, .n = 3 * C, .k = C, .lda = C, .ldb = 3 * C, .ldd = 3 * C,
 *                              .type = SGT_BF16, .out = SGT_BF16, .epilogue = SGT_EPILOGUE_BIAS};
 *     sgt_cuda_gemm *p;
 *     sgt_cuda_gemm_plan(&p, g, &s, &err);
 *     sgt_cuda_gemm_run(p, stream, qkv, ln1, w, bias, NULL);
 *
 * Matrices are row-major, in device memory, 16-byte aligned. Sums are float32, and so are the
 * partial sums if the library splits k. All products of one sgt_cuda_gemms share a workspace: put
 * them on one stream, or order the streams with events. All calls come from one thread. On the
 * host, tests/kernels/host/cublaslt.cpp stands in for the library. */
#ifndef SGT_CUDA_GEMM_H
#define SGT_CUDA_GEMM_H

#include "loader/base/error.h"
#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is done before D is stored. x is the product, plus the old D if `accumulate` is set. The
 * library may round the product, and x, to D's type first: cuBLASLt 13.1 does in some algorithms,
 * as seen on an H100. */
typedef enum sgt_cuda_epilogue {
    SGT_EPILOGUE_NONE, /* D = x */
    /* D = x + bias                                   bias (n) of `out`'s type, read */
    SGT_EPILOGUE_BIAS,
    /* aux = x + bias, D = gelu_tanh(aux)             aux (m, n) like D, written */
    SGT_EPILOGUE_GELU,
    SGT_EPILOGUE_DGELU /* D = x * gelu_tanh'(aux)                         aux read */
} sgt_cuda_epilogue;

/* Shape of a product: D (m, n) = op(A) op(B), plus D if `accumulate` is set, then the epilogue.
 * op(X) is X or its transpose. */
typedef struct sgt_cuda_gemm_shape {
    size_t m, n, k;
    /* 1: A is stored (k, m); B is stored (n, k) */
    int trans_a, trans_b;
    size_t lda, ldb, ldd;    /* row strides in numbers, as stored; aux has the stride ldd */
    sgt_cuda_type type, out; /* type: of A and B; out: of D */
    int tf32;                /* 1: tensor cores may round float32 factors to TF32 */
    int accumulate;          /* 1: add to the content of D, or to the matrix that a run is given */
    sgt_cuda_epilogue epilogue;
    /* multiprocessors that the library may use, where other kernels run beside; 0: all */
    int32_t multiprocessors;
    /* number of products, where 0 means 1. Above 1, there is no epilogue, and the strides are the
     * numbers from one product's matrix to the next. */
    size_t batch;
    size_t stride_a, stride_b, stride_d;
} sgt_cuda_gemm_shape;

/* Bytes of workspace that an sgt_cuda_gemms holds: as much as Hopper's algorithms request. */
#define SGT_CUDA_GEMM_WORKSPACE ((size_t)32 << 20)

typedef struct sgt_cuda_gemms sgt_cuda_gemms;
typedef struct sgt_cuda_gemm sgt_cuda_gemm;

typedef struct sgt_cuda_gemms_options {
    const char *device; /* the GPU's name: algorithms hold for it alone; not used after open */
    /* with timing, folder for algorithms, created if missing, valid until close; NULL: time each
     * shape again */
    const char *cache;
    /* 1: split k only in ways that give the same bits each time; use the algorithm in `choices`,
     * else the first that the heuristics offer and whose results are correct, never one from
     * timing */
    int deterministic;
    /* text from sgt_cuda_gemms_choices, of this run or an earlier one; ignored if it is for another
     * device or library version; may be NULL. Not used after open. */
    const char *choices;
    /* 1: do not check the results of algorithms, and do not keep them in `cache` */
    int unverified;
    /* called for each algorithm that is rejected because its results are wrong */
    sgt_notice notice;
    int timing; /* 0: do not time, but take the first algorithm that the heuristics offer */
    /* bytes overwritten before each timed run, so that operands come from memory; 0: 64 MiB */
    size_t flush;
} sgt_cuda_gemms_options;

/* Load libcublasLt (13, then 12) with dlopen and allocate the workspace in device memory. If the
 * library is missing, return SGT_EUNSUPPORTED with its name. */
int sgt_cuda_gemms_open(sgt_cuda_gemms **out, const sgt_cuda_gemms_options *o, sgt_error *err);
void sgt_cuda_gemms_close(sgt_cuda_gemms *g);                /* free g and its products */
const char *sgt_cuda_gemms_library(const sgt_cuda_gemms *g); /* "cuBLASLt 13.1.0" */
/* Return the chosen algorithms as text, which the caller frees; NULL: out of memory. */
char *sgt_cuda_gemms_choices(const sgt_cuda_gemms *g);

/* Choose the best algorithm for a shape. Equal shapes share one plan, which lives until close.
 * Returns SGT_EUNSUPPORTED if the library refuses the shape or has no algorithm, for instance for
 * this epilogue with these types; the caller can then fall back. Timing and checking wait for the
 * device, and allocate device memory for the operands (timing also for `flush`) until it returns.
 * If that fails, the heuristics' first algorithm is taken. Failing to write the cache is not an
 * error. */
int sgt_cuda_gemm_plan(const sgt_cuda_gemm **out, sgt_cuda_gemms *g, const sgt_cuda_gemm_shape *s,
                       sgt_error *err);
/* Return the median time of the chosen algorithm, measured now or earlier; 0: not measured. */
float sgt_cuda_gemm_ms(const sgt_cuda_gemm *p);
double sgt_cuda_gemm_flops(const sgt_cuda_gemm *p); /* return its floating-point operations */

/* Put the product on a stream. This allocates nothing and waits for nothing. bias and aux are
 * ignored unless the epilogue uses them. If the library refuses the product, sgt_cuda_check reports
 * it. */
void sgt_cuda_gemm_run(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, const void *a,
                       const void *b, void *bias, void *aux);

/* Run a product that accumulates and has no epilogue: D (m, n) = f*op(A) op(B) + h*onto. onto has
 * D's layout; neither A nor B may be D. */
void sgt_cuda_gemm_run_mixed(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, float f,
                             const void *a, const void *b, float h, const void *onto);

/* Return, in double, what one number of D should be. x is the product; `onto`, `bias` and `aux` are
 * the numbers that a product of this shape adds or reads, and are ignored if it does not. `*off` is
 * the largest error of x, and becomes that of D. It includes each rounding to D's type that the
 * library may do before the last one (see sgt_cuda_epilogue). The library may use the GPU's
 * approximation of tanh, which has a relative error of at most e = 2^-11. GELU's error is then at
 * most e |x| / 2, and that of its slope at most 1.5 e for |aux| <= 1. GELU's slope is at most 1.13,
 * so D's error from an error of x is less than 1.2 times that. */
double sgt_cuda_gemm_expected(const sgt_cuda_gemm_shape *s, double x, double onto, double bias,
                              double aux, double *off);

/* Return number i of an array of `type` on the host; NAN for an infinite number in fp16. */
double sgt_cuda_decode(const void *x, sgt_cuda_type type, size_t i);
/* Return the largest relative error of rounding to `type`: 2^-8 for bf16, 2^-11 for fp16, 2^-24 for
 * float32. */
double sgt_cuda_unit(sgt_cuda_type type);

/* The functions that measure products, as a table: libsgt-cuda.so gives it to sgt-bench
 * (train/cuda/cuda_library.h). */
typedef struct sgt_cuda_gemm_calls {
    int (*open)(sgt_cuda_gemms **out, const sgt_cuda_gemms_options *o, sgt_error *err);
    void (*close)(sgt_cuda_gemms *g);
    const char *(*library)(const sgt_cuda_gemms *g);
    int (*plan)(const sgt_cuda_gemm **out, sgt_cuda_gemms *g, const sgt_cuda_gemm_shape *s,
                sgt_error *err);
    float (*ms)(const sgt_cuda_gemm *p);
} sgt_cuda_gemm_calls;

#ifdef __cplusplus
}
#endif
#endif
