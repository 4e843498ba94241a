/* gemm.h: matrix products through cuBLASLt. Descriptors and algorithms are made once, at set-up,
 * timed per shape and kept in a file by device and shape; a run puts one product on a stream.
 *
 *     sgt_cuda_gemms *g;                                       // the library, its workspace, what was timed before
 *     sgt_cuda_gemms_open(&g, &options, &err);
 *     sgt_cuda_gemm_shape s = {.m = N, .n = 3 * C, .k = C, .lda = C, .ldb = 3 * C, .ldd = 3 * C,
 *                              .type = SGT_BF16, .out = SGT_BF16, .epilogue = SGT_EPILOGUE_BIAS};
 *     sgt_cuda_gemm *p;
 *     sgt_cuda_gemm_plan(&p, g, &s, &err);
 *     sgt_cuda_gemm_run(p, stream, qkv, ln1, w, bias, NULL);
 *
 * Matrices are row-major, in device memory, 16-byte aligned; sums are float32, and so are the parts
 * of one that the library cuts. The products of one sgt_cuda_gemms share a workspace: put them on
 * one stream, or let events order the streams. All calls come from one thread. Not yet run on a
 * GPU; held to double sums on the host, where tests/kernels/host/cublaslt.cpp stands for the
 * library. */
#ifndef SGT_CUDA_GEMM_H
#define SGT_CUDA_GEMM_H

#include "base/error.h"
#include "cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is done to D before it is stored. x is the product (with what D held, where it
 * accumulates). */
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
    size_t lda, ldb, ldd;    /* numbers from row to row as stored; aux has ldd too */
    sgt_cuda_type type, out; /* of A and B; of D */
    int tf32;                /* float32 operands may be rounded to TF32 in the tensor cores */
    /* add to what D holds, or to another matrix (sgt_cuda_gemm_run_onto) */
    int accumulate;
    sgt_cuda_epilogue epilogue;
    /* so many products, 0 is 1; without an epilogue; numbers from one to the next: */
    size_t batch;
    size_t stride_a, stride_b, stride_d;
} sgt_cuda_gemm_shape;

/* Bytes of device memory that a sgt_cuda_gemms holds: as much as Hopper's algorithms ask for;
 * `wide`: and as sums over k take that are cut in parts, of (3072, 768) floats and 27 parts,
 * say. */
static inline size_t sgt_cuda_gemm_workspace(int wide) { return (size_t)(wide ? 256 : 32) << 20; }

typedef struct sgt_cuda_gemms sgt_cuda_gemms;
typedef struct sgt_cuda_gemm sgt_cuda_gemm;

typedef struct sgt_cuda_gemms_options {
    const char *device; /* its name, for the cache's key */
    /* folder where timings are kept, made where it is missing; NULL: time anew */
    const char *cache;
    /* sums cut in a fixed way; the algorithm is the one in `choices`, else the heuristics' first,
     * never one from timing */
    int deterministic;
    /* JSON text as sgt_cuda_gemms_choices gave it, here or elsewhere; of another device or version
     * of the library it says nothing; NULL. Not kept after open. */
    const char *choices;
    int unverified;    /* the results of what timing has found fastest are not looked at */
    sgt_notice notice; /* an algorithm that is left out because its results are wrong */
    int timing;        /* 0: take the heuristics' first */
    /* a larger workspace and four times the candidates; the best of them are timed once more, on
     * end, as a step runs them: alone, a product sees clocks that a busy GPU does not hold */
    int wide;
    /* bytes overwritten before each timed run, so that operands come from memory; 0: 64 MiB */
    size_t flush;
} sgt_cuda_gemms_options;

/* Loads libcublasLt (13, then 12) with dlopen: SGT_EUNSUPPORTED names it where it is missing. Takes
 * the workspace of device memory. Strings in *o are copied. */
int sgt_cuda_gemms_open(sgt_cuda_gemms **out, const sgt_cuda_gemms_options *o, sgt_error *err);
void sgt_cuda_gemms_close(sgt_cuda_gemms *g);                /* its products too */
const char *sgt_cuda_gemms_library(const sgt_cuda_gemms *g); /* "cuBLASLt 13.1.0" */
/* one JSON object of strings, malloc'd; NULL: out of memory */
char *sgt_cuda_gemms_choices(const sgt_cuda_gemms *g);

/* The best algorithm for a shape; equal shapes share one plan, which lives until close.
 * SGT_EUNSUPPORTED where the library has none (an epilogue with these types or alignment): the
 * caller takes another way. SGT_EUSAGE where the shape makes no sense (a size of 0, rows that
 * overlap). Timing waits, and takes as much device memory as the operands do and `flush`, for as
 * long as this call lasts; where that cannot be had the heuristics' first is taken. A cache that
 * cannot be written is no failure. */
int sgt_cuda_gemm_plan(const sgt_cuda_gemm **out, sgt_cuda_gemms *g, const sgt_cuda_gemm_shape *s,
                       sgt_error *err);
/* median of the chosen algorithm, timed now or before; 0: was not */
float sgt_cuda_gemm_ms(const sgt_cuda_gemm *p);

/* Puts the product on a stream; allocates nothing, waits for nothing. bias and aux where the
 * epilogue has them, else ignored. What the library refuses shows in sgt_cuda_check. */
void sgt_cuda_gemm_run(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, const void *a,
                       const void *b, void *bias, void *aux);

/* The same of a product that accumulates, D (m, n) = op(A) op(B) + onto and its epilogue, onto laid
 * out like D. */
void sgt_cuda_gemm_run_onto(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, const void *onto,
                            const void *a, const void *b, void *bias, void *aux);

/* What measures products, as a table: libsgt-cuda.so gives it to sgt-bench
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
