/* cublaslt.c: compares kernels/cuda/cublaslt.h with the toolkit's own header. check-nvcc compiles
 * this file and never runs it. Assertions compare constants and the sizes of types, and filling the
 * table compares signatures. */
#include <cublasLt.h>

#define SGT_LT_TYPES
typedef cublasLtHandle_t sgt_lt_handle;
typedef cublasLtMatmulDesc_t sgt_lt_desc;
typedef cublasLtMatrixLayout_t sgt_lt_layout;
typedef cublasLtMatmulPreference_t sgt_lt_preference;
typedef cublasLtMatmulAlgo_t sgt_lt_algo;
typedef cublasLtMatmulHeuristicResult_t sgt_lt_result;
typedef cublasStatus_t sgt_lt_status;
typedef cudaDataType_t sgt_lt_type;
typedef cublasComputeType_t sgt_lt_compute;
typedef cublasLtMatmulDescAttributes_t sgt_lt_desc_attribute;
typedef cublasLtMatrixLayoutAttribute_t sgt_lt_layout_attribute;
typedef cublasLtMatmulPreferenceAttributes_t sgt_lt_preference_attribute;
#include "kernels/cuda/cublaslt.h"

const sgt_cublaslt signatures;
const sgt_cublaslt signatures = {.version = cublasLtGetVersion,
                                 .status_name = cublasLtGetStatusName,
                                 .create = cublasLtCreate,
                                 .destroy = cublasLtDestroy,
                                 .desc_create = cublasLtMatmulDescCreate,
                                 .desc_destroy = cublasLtMatmulDescDestroy,
                                 .desc_set = cublasLtMatmulDescSetAttribute,
                                 .layout_create = cublasLtMatrixLayoutCreate,
                                 .layout_destroy = cublasLtMatrixLayoutDestroy,
                                 .layout_set = cublasLtMatrixLayoutSetAttribute,
                                 .preference_create = cublasLtMatmulPreferenceCreate,
                                 .preference_destroy = cublasLtMatmulPreferenceDestroy,
                                 .preference_set = cublasLtMatmulPreferenceSetAttribute,
                                 .heuristics = cublasLtMatmulAlgoGetHeuristic,
                                 .algo_check = cublasLtMatmulAlgoCheck,
                                 .matmul = cublasLtMatmul};

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(SGT_LT_SUCCESS, CUBLAS_STATUS_SUCCESS);
SAME(SGT_LT_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(SGT_LT_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED);
SAME(SGT_LT_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE);
SAME(SGT_LT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(SGT_LT_R_32F, CUDA_R_32F);
SAME(SGT_LT_R_16F, CUDA_R_16F);
SAME(SGT_LT_R_16BF, CUDA_R_16BF);
SAME(SGT_LT_COMPUTE_32F, CUBLAS_COMPUTE_32F);
SAME(SGT_LT_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(SGT_LT_OP_N, CUBLAS_OP_N);
SAME(SGT_LT_OP_T, CUBLAS_OP_T);
SAME(SGT_LT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(SGT_LT_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(SGT_LT_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(SGT_LT_DESC_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(SGT_LT_DESC_AUX_POINTER, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
SAME(SGT_LT_DESC_AUX_LD, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
SAME(SGT_LT_DESC_SM_COUNT_TARGET, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET);
SAME(SGT_LT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_DEFAULT);
SAME(SGT_LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(SGT_LT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
SAME(SGT_LT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_DGELU);
SAME(SGT_LT_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(SGT_LT_LAYOUT_BATCH_STRIDE, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(SGT_LT_PREFERENCE_MAX_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(SGT_LT_PREFERENCE_REDUCTION_MASK, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(SGT_LT_PREFERENCE_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(SGT_LT_PREFERENCE_ALIGNMENT_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(SGT_LT_PREFERENCE_ALIGNMENT_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(SGT_LT_PREFERENCE_ALIGNMENT_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(SGT_LT_REDUCTION_NONE, CUBLASLT_REDUCTION_SCHEME_NONE);
SAME(SGT_LT_REDUCTION_INPLACE, CUBLASLT_REDUCTION_SCHEME_INPLACE);
SAME(SGT_LT_REDUCTION_COMPUTE_TYPE, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(SGT_LT_REDUCTION_OUTPUT_TYPE, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);

/* The two structs whose fields both the library and sgt access. */
typedef cublasLtMatmulHeuristicResult_t result;
#define PLACE(ours, theirs)                                                                    \
    _Static_assert(offsetof(struct sgt_lt_result, ours) == offsetof(result, theirs), #theirs); \
    _Static_assert(sizeof((struct sgt_lt_result *)0)->ours == sizeof((result *)0)->theirs, #theirs)
_Static_assert(sizeof(struct sgt_lt_result) == sizeof(cublasLtMatmulHeuristicResult_t),
               "a result's size");
_Static_assert(_Alignof(struct sgt_lt_algo) == _Alignof(cublasLtMatmulAlgo_t),
               "an algorithm's alignment");
PLACE(algo, algo);
PLACE(workspace, workspaceSize);
PLACE(state, state);
PLACE(waves, wavesCount);
PLACE(reserved, reserved);
