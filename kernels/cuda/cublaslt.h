/* cublaslt.h: our own declarations of the part of cuBLASLt that gemm.c uses, as a table of
 * functions. Building therefore needs no CUDA header, and the host tests
 * (tests/kernels/host/cublaslt.cpp) can supply a table of their own.
 *
 *     const sgt_cublaslt *lt = sgt_cublaslt_load(&err); // NULL: err says what is missing
 *     if (lt->create(&handle)) ...;                     // 0: success; see lt->status_name(rc)
 *
 * Matrices are column-major. tests/kernels/check-nvcc.sh compares names, numbers and signatures
 * with the toolkit's cublasLt.h. */
#ifndef SGT_CUBLASLT_H
#define SGT_CUBLASLT_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An algorithm of the library, as opaque bytes. A program may save the bytes to a file, and use
 * them again with the same version of the library. */
struct sgt_lt_algo {
    uint64_t data[8];
};
struct sgt_lt_result {
    struct sgt_lt_algo algo;
    size_t workspace; /* bytes of workspace that the algorithm needs */
    /* status of this result; 0: `algo` can be used; other values: `algo` and `workspace` are not
     * valid */
    int state;
    float waves;
    int reserved[4];
};

/* A test defines SGT_LT_TYPES, includes cublasLt.h, and compares the types below with
 * cublasLt.h's. */
#ifndef SGT_LT_TYPES
typedef struct sgt_lt_context *sgt_lt_handle;
/* description of a matrix product: types, transposes and epilogue */
typedef struct sgt_lt_desc_opaque *sgt_lt_desc;
typedef struct sgt_lt_layout_opaque *sgt_lt_layout; /* a matrix's layout */
typedef struct sgt_lt_preference_opaque *sgt_lt_preference;
typedef struct sgt_lt_algo sgt_lt_algo;
typedef struct sgt_lt_result sgt_lt_result;
typedef int sgt_lt_status, sgt_lt_type, sgt_lt_compute;
typedef int sgt_lt_desc_attribute, sgt_lt_layout_attribute, sgt_lt_preference_attribute;
#endif

enum { /* cublasStatus_t */
       SGT_LT_SUCCESS = 0,
       SGT_LT_NOT_INITIALIZED = 1,
       SGT_LT_ALLOC_FAILED = 3,
       SGT_LT_INVALID_VALUE = 7,
       SGT_LT_NOT_SUPPORTED = 15
};
enum { SGT_LT_R_32F = 0, SGT_LT_R_16F = 2, SGT_LT_R_16BF = 14 };     /* cudaDataType */
enum { SGT_LT_COMPUTE_32F = 68, SGT_LT_COMPUTE_32F_FAST_TF32 = 77 }; /* cublasComputeType_t */
/* cublasOperation_t, an int32_t */
enum { SGT_LT_OP_N = 0, SGT_LT_OP_T = 1 };

enum {                           /* cublasLtMatmulDescAttributes_t */
       SGT_LT_DESC_TRANSA = 3,   /* int32_t */
       SGT_LT_DESC_TRANSB = 4,   /* int32_t */
       SGT_LT_DESC_EPILOGUE = 7, /* uint32_t */
       SGT_LT_DESC_BIAS_POINTER = 8,
       SGT_LT_DESC_AUX_POINTER = 11,
       SGT_LT_DESC_AUX_LD = 12,         /* int64_t */
       SGT_LT_DESC_SM_COUNT_TARGET = 15 /* int32_t */
};

enum { /* cublasLtEpilogue_t, a uint32_t */
       SGT_LT_EPILOGUE_DEFAULT = 1,
       SGT_LT_EPILOGUE_BIAS = 4,
       SGT_LT_EPILOGUE_GELU_AUX_BIAS = 164,
       SGT_LT_EPILOGUE_DGELU = 192
};

enum {                                /* cublasLtMatrixLayoutAttribute_t */
       SGT_LT_LAYOUT_BATCH_COUNT = 5, /* int32_t */
       SGT_LT_LAYOUT_BATCH_STRIDE = 6 /* int64_t, in elements */
};

enum {                                       /* cublasLtMatmulPreferenceAttributes_t */
       SGT_LT_PREFERENCE_MAX_WORKSPACE = 1,  /* uint64_t */
       SGT_LT_PREFERENCE_REDUCTION_MASK = 3, /* uint32_t */
       /* alignment of A's address in bytes; uint32_t; default: 256 */
       SGT_LT_PREFERENCE_ALIGNMENT_A = 5,
       SGT_LT_PREFERENCE_ALIGNMENT_B = 6,
       SGT_LT_PREFERENCE_ALIGNMENT_C = 7,
       SGT_LT_PREFERENCE_ALIGNMENT_D = 8
};

/* cublasLtReductionScheme_t, a uint32_t used as a bit set. The library can split the sum over k
 * among blocks (split-K), so that each block computes partial sums of D's elements. Each bit allows
 * one method of adding up these partial sums. The library uses only methods whose bits the caller
 * sets. */
enum {
    SGT_LT_REDUCTION_NONE = 0,
    /* each block adds its partial sums to D itself, in D's type */
    SGT_LT_REDUCTION_INPLACE = 1,
    /* partial sums are stored as floats in the workspace, and added in a separate step */
    SGT_LT_REDUCTION_COMPUTE_TYPE = 2,
    SGT_LT_REDUCTION_OUTPUT_TYPE = 4 /* partial sums are stored in the workspace in D's type */
};

typedef struct sgt_cublaslt {
    size_t (*version)(void); /* 130100 is 13.1.0 */
    const char *(*status_name)(sgt_lt_status status);
    sgt_lt_status (*create)(sgt_lt_handle *handle);
    sgt_lt_status (*destroy)(sgt_lt_handle handle);
    sgt_lt_status (*desc_create)(sgt_lt_desc *desc, sgt_lt_compute compute, sgt_lt_type scale);
    sgt_lt_status (*desc_destroy)(sgt_lt_desc desc);
    sgt_lt_status (*desc_set)(sgt_lt_desc desc, sgt_lt_desc_attribute attribute, const void *value,
                              size_t size);
    sgt_lt_status (*layout_create)(sgt_lt_layout *layout, sgt_lt_type type, uint64_t rows,
                                   uint64_t columns, int64_t ld);
    sgt_lt_status (*layout_destroy)(sgt_lt_layout layout);
    sgt_lt_status (*layout_set)(sgt_lt_layout layout, sgt_lt_layout_attribute attribute,
                                const void *value, size_t size);
    sgt_lt_status (*preference_create)(sgt_lt_preference *preference);
    sgt_lt_status (*preference_destroy)(sgt_lt_preference preference);
    sgt_lt_status (*preference_set)(sgt_lt_preference preference,
                                    sgt_lt_preference_attribute attribute, const void *value,
                                    size_t size);
    sgt_lt_status (*heuristics)(sgt_lt_handle handle, sgt_lt_desc desc, sgt_lt_layout a,
                                sgt_lt_layout b, sgt_lt_layout c, sgt_lt_layout d,
                                sgt_lt_preference preference, int wanted, sgt_lt_result results[],
                                int *count);
    sgt_lt_status (*algo_check)(sgt_lt_handle handle, sgt_lt_desc desc, sgt_lt_layout a,
                                sgt_lt_layout b, sgt_lt_layout c, sgt_lt_layout d,
                                const sgt_lt_algo *algo, sgt_lt_result *result);
    sgt_lt_status (*matmul)(sgt_lt_handle handle, sgt_lt_desc desc, const void *alpha,
                            const void *a, sgt_lt_layout as, const void *b, sgt_lt_layout bs,
                            const void *beta, const void *c, sgt_lt_layout cs, void *d,
                            sgt_lt_layout ds, const sgt_lt_algo *algo, void *workspace,
                            size_t workspace_size, sgt_cuda_stream stream);
} sgt_cublaslt;

/* Load cuBLASLt. Return the complete table of its functions, which stays valid until the program
 * ends. If the library is missing, return NULL, with SGT_EUNSUPPORTED in *err. Any thread may call
 * this function. */
const sgt_cublaslt *sgt_cublaslt_load(sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
