/* gemm.h: matrix products through cuBLASLt. Descriptors and algorithms are made once, at set-up.
 * Timings per shape are kept in a file by device and shape. A run puts one product on a stream.
 *
 *     sgt_cuda_gemms *g;                     // the library, its workspace, earlier timings
 *     sgt_cuda_gemms_open(&g, &options, &err);
 *     sgt_cuda_gemm_shape s = {.m = N, .n = 3 * C, .k = C, .lda = C, .ldb = 3 * C, .ldd = 3 * C,
 *                              .type = SGT_BF16, .out = SGT_BF16, .epilogue = SGT_EPILOGUE_BIAS};
 *     sgt_cuda_gemm *p;
 *     sgt_cuda_gemm_plan(&p, g, &s, &err);
 *     sgt_cuda_gemm_run(p, stream, qkv, ln1, w, bias, NULL);
 *
 * Matrices are row-major, in device memory, 16-byte aligned. Sums are float32, and so are the parts
 * of a sum that the library cuts. All products of one sgt_cuda_gemms share a workspace: put them on
 * one stream, or order the streams with events. All calls come from one thread. Not yet run on a
 * GPU; on the host, tests/kernels/host/cublaslt.cpp stands in for the library, and results are
 * compared with double sums. */
#ifndef SGT_CUDA_GEMM_H
#define SGT_CUDA_GEMM_H

#include "loader/base/error.h"
#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is done to D before it is stored. x is the product, plus the old D if it accumulates. */
typedef enum sgt_cuda_epilogue {
    SGT_EPILOGUE_NONE, /* D = x */
    /* D = x + bias                                   bias (n) of `out`'s type, read */
    SGT_EPILOGUE_BIAS,
    SGT_EPILOGUE_BGRAD, /* D = x, bias = column sums of op(B) (k rows)     bias (n) written */
    /* aux = x + bias, D = gelu_tanh(aux)             aux (m, n) like D, written */
    SGT_EPILOGUE_GELU,
    SGT_EPILOGUE_DGELU, /* D = x * gelu_tanh'(aux)                        aux read */
    /* the same, and bias = column sums of D (m rows)   bias (n) written */
    SGT_EPILOGUE_DGELU_BGRAD
} sgt_cuda_epilogue;

/* D (m, n) = op(A) op(B) [+ D], then the epilogue; op(X) is X or its transpose. */
typedef struct sgt_cuda_gemm_shape {
    size_t m, n, k;
    /* A is stored (k, m) when trans_a, B is stored (n, k) when trans_b */
    int trans_a, trans_b;
    size_t lda, ldb, ldd;    /* row strides in numbers, as stored; aux has ldd too */
    sgt_cuda_type type, out; /* type: of A and B; out: of D */
    int tf32;                /* float32 operands may be rounded to TF32 in the tensor cores */
    /* add to the content of D, or to another matrix (sgt_cuda_gemm_run_onto) */
    int accumulate;
    sgt_cuda_epilogue epilogue;
    /* number of products, 0 means 1, without an epilogue; the strides are numbers from one to the
     * next */
    size_t batch;
    size_t stride_a, stride_b, stride_d;
} sgt_cuda_gemm_shape;

/* Return the bytes of device memory that a sgt_cuda_gemms holds: as much as Hopper's algorithms
 * request. With `wide`, also enough for sums over k cut into parts, for example (3072, 768) floats
 * in 27 parts. */
static inline size_t sgt_cuda_gemm_workspace(int wide) { return (size_t)(wide ? 256 : 32) << 20; }

typedef struct sgt_cuda_gemms sgt_cuda_gemms;
typedef struct sgt_cuda_gemm sgt_cuda_gemm;

typedef struct sgt_cuda_gemms_options {
    const char *device; /* its name, for the cache's key */
    /* folder for timings, created if missing; NULL: time anew */
    const char *cache;
    /* cut sums in a fixed way; use the algorithm in `choices`, else the heuristics' first, never
     * one from timing */
    int deterministic;
    /* JSON text from sgt_cuda_gemms_choices, of this or another run; ignored if it is for another
     * device or library version; may be NULL. Not kept after open. */
    const char *choices;
    int unverified;    /* skip checking the results of the algorithm that timing found fastest */
    sgt_notice notice; /* told of each algorithm that is rejected because its results are wrong */
    int timing;        /* 0: take the heuristics' first */
    /* use a larger workspace and four times as many candidates; time the best ones again back to
     * back, as in a step: alone, a product runs at clocks that a busy GPU does not hold */
    int wide;
    /* bytes overwritten before each timed run, so that operands come from memory; 0: 64 MiB */
    size_t flush;
} sgt_cuda_gemms_options;

/* Load libcublasLt (13, then 12) with dlopen and allocate the workspace in device memory. If the
 * library is missing, return SGT_EUNSUPPORTED with its name. Strings in *o are copied. */
int sgt_cuda_gemms_open(sgt_cuda_gemms **out, const sgt_cuda_gemms_options *o, sgt_error *err);
void sgt_cuda_gemms_close(sgt_cuda_gemms *g);                /* frees its products too */
const char *sgt_cuda_gemms_library(const sgt_cuda_gemms *g); /* "cuBLASLt 13.1.0" */
/* Return one JSON object of strings, which the caller frees; NULL: out of memory. */
char *sgt_cuda_gemms_choices(const sgt_cuda_gemms *g);

/* Choose the best algorithm for a shape. Equal shapes share one plan, which lives until close.
 * Returns SGT_EUNSUPPORTED if the library has no algorithm (an epilogue with these types or
 * alignment), so that the caller can fall back; SGT_EUSAGE for an invalid shape (a size of 0,
 * overlapping rows). Timing waits for the device, and during the call takes device memory for the
 * operands and `flush`. If that is not available, the heuristics' first is taken. Failing to write
 * the cache is not an error. */
int sgt_cuda_gemm_plan(const sgt_cuda_gemm **out, sgt_cuda_gemms *g, const sgt_cuda_gemm_shape *s,
                       sgt_error *err);
/* median time of the chosen algorithm, measured now or earlier; 0: not measured */
float sgt_cuda_gemm_ms(const sgt_cuda_gemm *p);

/* Put the product on a stream; allocates nothing, waits for nothing. bias and aux are ignored
 * unless the epilogue uses them. sgt_cuda_check reports what the library refuses. */
void sgt_cuda_gemm_run(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, const void *a,
                       const void *b, void *bias, void *aux);

/* Do the same for a product that accumulates, D (m, n) = op(A) op(B) + onto and its epilogue; onto
 * has D's layout. */
void sgt_cuda_gemm_run_onto(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, const void *onto,
                            const void *a, const void *b, void *bias, void *aux);

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
