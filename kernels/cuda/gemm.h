/* gemm.h: matrix products through cuBLASLt. Descriptors are created and algorithms are chosen once,
 * at set-up. Timings are kept in a file, by shape, for one device and version of the library. A run
 * puts one matrix product on a stream.
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
 * partial sums if the library splits k. All matrix products of one sgt_cuda_gemms share a
 * workspace: put them on one stream, or order the streams with events. All calls come from one
 * thread. On the host, tests/kernels/host/cublaslt.cpp replaces the library. */
#ifndef SGT_CUDA_GEMM_H
#define SGT_CUDA_GEMM_H

#include "loader/base/error.h"
#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The operation that is applied before D is stored. x is the matrix product, plus the old D if
 * `accumulate` is set. The library may first round the matrix product, and x, to D's type: some
 * algorithms of cuBLASLt 13.1 do, as observed on an H100. */
typedef enum sgt_cuda_epilogue {
    SGT_EPILOGUE_NONE, /* D = x */
    /* D = x + bias                                   bias (n) of `out`'s type, read */
    SGT_EPILOGUE_BIAS,
    /* aux = x + bias, D = gelu_tanh(aux)             aux (m, n) like D, written */
    SGT_EPILOGUE_GELU,
    SGT_EPILOGUE_DGELU /* D = x * gelu_tanh'(aux)                         aux read */
} sgt_cuda_epilogue;

/* Shape of a matrix product: D (m, n) = op(A) op(B), plus D if `accumulate` is set, then the
 * epilogue. op(X) is X or its transpose. */
typedef struct sgt_cuda_gemm_shape {
    size_t m, n, k;
    /* trans_a 1: A is stored (k, m), else (m, k). trans_b 1: B is stored (n, k), else (k, n) */
    int trans_a, trans_b;
    size_t lda, ldb, ldd;    /* row strides in numbers, as stored; aux has the stride ldd */
    sgt_cuda_type type, out; /* type: of A and B; out: of D */
    int tf32;                /* 1: tensor cores may round float32 operands to TF32 */
    int accumulate;          /* 1: add to D, or to `onto` of sgt_cuda_gemm_run_mixed */
    sgt_cuda_epilogue epilogue;
    /* number of multiprocessors that the library may use, if other kernels run at the same time; 0:
     * all */
    int32_t multiprocessors;
    /* number of matrix products in a run; 0 means 1. If it is above 1, there is no epilogue, and
     * stride_a, stride_b and stride_d are the numbers from one matrix to the next. */
    size_t batch;
    size_t stride_a, stride_b, stride_d;
} sgt_cuda_gemm_shape;

/* Bytes of workspace that an sgt_cuda_gemms holds: as many as Hopper's algorithms request. */
#define SGT_CUDA_GEMM_WORKSPACE ((size_t)32 << 20)

typedef struct sgt_cuda_gemms sgt_cuda_gemms;
typedef struct sgt_cuda_gemm sgt_cuda_gemm;

typedef struct sgt_cuda_gemms_options {
    const char *device; /* the GPU's name: algorithms are valid only for it; not used after open */
    /* folder for the timed algorithms, created if missing; the string must be valid until close.
     * NULL: time each shape again */
    const char *cache;
    /* 1: split k only in ways that give the same bits each time, and ignore timings. Use the
     * algorithm in `choices`, else the first that the heuristics offer and whose results are
     * correct. */
    int deterministic;
    /* text from sgt_cuda_gemms_choices, of this run or an earlier one; ignored if it is for a
     * different device or library version; may be NULL. Not used after open. */
    const char *choices;
    /* 1: do not check the results of algorithms, and do not write them to `cache` */
    int unverified;
    /* called for each algorithm that is rejected because of wrong results */
    sgt_notice notice;
    int timing; /* 0: do not time, but take the first algorithm that the heuristics offer */
    /* bytes overwritten before each timed run, so that operands are read from memory; 0: 64 MiB */
    size_t flush;
} sgt_cuda_gemms_options;

/* Load libcublasLt (version 13, else 12) with dlopen and allocate the workspace in device memory.
 * If the library is missing, return SGT_EUNSUPPORTED with its name. */
int sgt_cuda_gemms_open(sgt_cuda_gemms **out, const sgt_cuda_gemms_options *o, sgt_error *err);
void sgt_cuda_gemms_close(sgt_cuda_gemms *g);                /* free g and its matrix products */
const char *sgt_cuda_gemms_library(const sgt_cuda_gemms *g); /* "cuBLASLt 13.1.0" */
/* Return the chosen algorithms as text, which the caller frees, or NULL if memory runs out. */
char *sgt_cuda_gemms_choices(const sgt_cuda_gemms *g);

/* Choose the best algorithm for a shape. Equal shapes share one plan, which lives until close.
 * Returns SGT_EUNSUPPORTED if the library refuses the shape or has no algorithm for it, for
 * instance for this epilogue with these types; the caller can then fall back. Timing and checking
 * wait for the device. Until the call returns, they use device memory for the operands, and timing
 * also for `flush`. If timing or checking fails, the heuristics' first algorithm is used. Failing
 * to write the cache is not an error. */
int sgt_cuda_gemm_plan(const sgt_cuda_gemm **out, sgt_cuda_gemms *g, const sgt_cuda_gemm_shape *s,
                       sgt_error *err);
/* Return the median time of the chosen algorithm in milliseconds, measured now or earlier; 0: not
 * measured. */
float sgt_cuda_gemm_ms(const sgt_cuda_gemm *p);
double sgt_cuda_gemm_flops(const sgt_cuda_gemm *p); /* its number of floating-point operations */

/* Put the matrix product on a stream. The call allocates nothing and waits for nothing. bias and
 * aux are ignored unless the epilogue uses them. If the library refuses the matrix product,
 * sgt_cuda_check reports it. */
void sgt_cuda_gemm_run(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, const void *a,
                       const void *b, void *bias, void *aux);

/* Run a matrix product that accumulates and has no epilogue: D (m, n) = f*op(A) op(B) + h*onto.
 * onto has the layout of D; neither A nor B may be D. */
void sgt_cuda_gemm_run_mixed(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, float f,
                             const void *a, const void *b, float h, const void *onto);

/* Return, in double, the expected value of one number of D. x is the matrix product at this number;
 * `onto`, `bias` and `aux` are the numbers that a matrix product of this shape adds or reads, and
 * are ignored if it does not use them. On entry, `*off` is the largest error of x; it is replaced
 * by the largest error of D. It includes each rounding to D's type that the library may do before
 * the last one (see sgt_cuda_epilogue). The library may use the GPU's approximation of tanh, which
 * has a relative error of at most e = 2^-11. GELU's error is then at most e |x| / 2, and that of
 * its slope at most 1.5 e for |aux| <= 1. GELU's slope is at most 1.13, so an error of x causes an
 * error of D of less than 1.2 times as much. */
double sgt_cuda_gemm_expected(const sgt_cuda_gemm_shape *s, double x, double onto, double bias,
                              double aux, double *off);

/* Return number i of an array of `type` in host memory; NAN for an infinite number in fp16. */
double sgt_cuda_decode(const void *x, sgt_cuda_type type, size_t i);
/* Return the largest relative error of rounding to `type`: 2^-8 for bf16, 2^-11 for fp16, 2^-24 for
 * float32. */
double sgt_cuda_unit(sgt_cuda_type type);

/* The functions that measure matrix products, as a table that libsgt-cuda.so gives to sgt-bench
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
