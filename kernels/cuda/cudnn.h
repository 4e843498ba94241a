/* cudnn.h: our own declarations of the part of cuDNN 9's backend API that sgt uses, so that
 * building does not need cuDNN. The library is loaded at run time. The caller describes a graph of
 * operations on tensors. cuDNN's heuristics suggest engine configurations for the graph, and one of
 * them becomes an execution plan. At each run, a variant pack gives the addresses of the tensors.
 *
 *     const sgt_cudnn *api;
 *     if (sgt_cudnn_load(&api, &err) < 0) return rc;         // one line says why
 *     sgt_cudnn_desc d;
 *     int kind = SGT_CUDNN_BACKEND_TENSOR_DESCRIPTOR;
 *     int rc = sgt_cudnn_check(api, api->BackendCreateDescriptor(kind, &d), "a tensor", &err);
 *
 * The names are cuDNN's, with the prefix SGT_. tests/kernels/toolkit/cudnn.c compares the numbers
 * with those of cuDNN's header cudnn_graph.h. */
#ifndef SGT_CUDNN_H
#define SGT_CUDNN_H

#include "loader/base/error.h"
#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cudnnContext *sgt_cudnn_handle; /* cudnnHandle_t */
typedef void *sgt_cudnn_desc;                  /* cudnnBackendDescriptor_t */

/* oldest supported version; 9.10.0 and 9.10.1 compute attention wrongly */
#define SGT_CUDNN_OLDEST 91002

/* All cuDNN functions that sgt uses. Each line has the type of the result, the function's name
 * without the prefix "cudnn", and the arguments. Status codes and enumerations are declared as
 * int. */
#define SGT_CUDNN_FUNCTIONS(X)                                                               \
    X(size_t, GetVersion, (void))                                                            \
    X(const char *, GetErrorString, (int status))                                            \
    X(void, GetLastErrorString, (char *text, size_t size))                                   \
    X(int, Create, (sgt_cudnn_handle * handle))                                              \
    X(int, Destroy, (sgt_cudnn_handle handle))                                               \
    X(int, SetStream, (sgt_cudnn_handle handle, sgt_cuda_stream stream))                     \
    X(int, BackendCreateDescriptor, (int type, sgt_cudnn_desc *desc))                        \
    X(int, BackendDestroyDescriptor, (sgt_cudnn_desc desc))                                  \
    X(int, BackendSetAttribute,                                                              \
      (sgt_cudnn_desc desc, int name, int type, int64_t count, const void *values))          \
    X(int, BackendGetAttribute,                                                              \
      (sgt_cudnn_desc desc, int name, int type, int64_t room, int64_t *count, void *values)) \
    X(int, BackendFinalize, (sgt_cudnn_desc desc))                                           \
    X(int, BackendExecute, (sgt_cudnn_handle handle, sgt_cudnn_desc plan, sgt_cudnn_desc pack))

#define SGT_CUDNN_NAMES(X)                                  \
    X(STATUS_SUCCESS, 0)                                    \
    X(STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, 4003)   \
    X(STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, 4004) \
    X(DATA_FLOAT, 0)                                        \
    X(DATA_HALF, 2)                                         \
    X(DATA_INT32, 4)                                        \
    X(DATA_BFLOAT16, 9)                                     \
    X(DATA_BOOLEAN, 11)                                     \
    X(REDUCE_TENSOR_ADD, 0)                                 \
    X(REDUCE_TENSOR_MAX, 3)                                 \
    X(TENSOR_REORDERING_F16x16, 2)                          \
    X(POINTWISE_ADD, 0)                                     \
    X(POINTWISE_MUL, 1)                                     \
    X(POINTWISE_DIV, 6)                                     \
    X(POINTWISE_SUB, 9)                                     \
    X(POINTWISE_EXP, 13)                                    \
    X(POINTWISE_LOG, 15)                                    \
    X(POINTWISE_IDENTITY, 21)                               \
    X(POINTWISE_CMP_GE, 303)                                \
    X(POINTWISE_GEN_INDEX, 501)                             \
    X(POINTWISE_BINARY_SELECT, 601)                         \
    X(HEUR_MODE_FALLBACK, 2)                                \
    X(HEUR_MODE_A, 3)                                       \
    X(NUMERICAL_NOTE_NONDETERMINISTIC, 4)                   \
    X(NUMERICAL_NOTE_TYPE_COUNT, 10)                        \
    X(TYPE_HANDLE, 0)                                       \
    X(TYPE_DATA_TYPE, 1)                                    \
    X(TYPE_BOOLEAN, 2)                                      \
    X(TYPE_INT64, 3)                                        \
    X(TYPE_VOID_PTR, 6)                                     \
    X(TYPE_HEUR_MODE, 8)                                    \
    X(TYPE_NUMERICAL_NOTE, 11)                              \
    X(TYPE_POINTWISE_MODE, 14)                              \
    X(TYPE_BACKEND_DESCRIPTOR, 15)                          \
    X(TYPE_REDUCTION_OPERATOR_TYPE, 18)                     \
    X(TYPE_TENSOR_REORDERING_MODE, 20)                      \
    X(BACKEND_POINTWISE_DESCRIPTOR, 0)                      \
    X(BACKEND_ENGINE_DESCRIPTOR, 2)                         \
    X(BACKEND_ENGINECFG_DESCRIPTOR, 3)                      \
    X(BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                     \
    X(BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                 \
    X(BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13)           \
    X(BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                \
    X(BACKEND_VARIANT_PACK_DESCRIPTOR, 16)                  \
    X(BACKEND_TENSOR_DESCRIPTOR, 17)                        \
    X(BACKEND_MATMUL_DESCRIPTOR, 18)                        \
    X(BACKEND_OPERATION_MATMUL_DESCRIPTOR, 19)              \
    X(BACKEND_REDUCTION_DESCRIPTOR, 21)                     \
    X(BACKEND_OPERATION_REDUCTION_DESCRIPTOR, 22)           \
    X(BACKEND_OPERATION_RESHAPE_DESCRIPTOR, 31)             \
    X(ATTR_POINTWISE_MODE, 0)                               \
    X(ATTR_POINTWISE_MATH_PREC, 1)                          \
    X(ATTR_POINTWISE_AXIS, 9)                               \
    X(ATTR_ENGINEHEUR_MODE, 200)                            \
    X(ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                 \
    X(ATTR_ENGINEHEUR_RESULTS, 202)                         \
    X(ATTR_ENGINECFG_ENGINE, 300)                           \
    X(ATTR_EXECUTION_PLAN_HANDLE, 400)                      \
    X(ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)               \
    X(ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)              \
    X(ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750)          \
    X(ATTR_OPERATION_POINTWISE_XDESC, 751)                  \
    X(ATTR_OPERATION_POINTWISE_BDESC, 752)                  \
    X(ATTR_OPERATION_POINTWISE_YDESC, 753)                  \
    X(ATTR_OPERATION_POINTWISE_TDESC, 758)                  \
    X(ATTR_OPERATIONGRAPH_HANDLE, 800)                      \
    X(ATTR_OPERATIONGRAPH_OPS, 801)                         \
    X(ATTR_TENSOR_BYTE_ALIGNMENT, 900)                      \
    X(ATTR_TENSOR_DATA_TYPE, 901)                           \
    X(ATTR_TENSOR_DIMENSIONS, 902)                          \
    X(ATTR_TENSOR_STRIDES, 903)                             \
    X(ATTR_TENSOR_UNIQUE_ID, 906)                           \
    X(ATTR_TENSOR_IS_VIRTUAL, 907)                          \
    X(ATTR_TENSOR_IS_BY_VALUE, 908)                         \
    X(ATTR_TENSOR_REORDERING_MODE, 909)                     \
    X(ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                   \
    X(ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                \
    X(ATTR_VARIANT_PACK_WORKSPACE, 1003)                    \
    X(ATTR_ENGINE_NUMERICAL_NOTE, 1303)                     \
    X(ATTR_MATMUL_COMP_TYPE, 1500)                          \
    X(ATTR_OPERATION_MATMUL_ADESC, 1520)                    \
    X(ATTR_OPERATION_MATMUL_BDESC, 1521)                    \
    X(ATTR_OPERATION_MATMUL_CDESC, 1522)                    \
    X(ATTR_OPERATION_MATMUL_DESC, 1523)                     \
    X(ATTR_REDUCTION_OPERATOR, 1600)                        \
    X(ATTR_REDUCTION_COMP_TYPE, 1601)                       \
    X(ATTR_OPERATION_REDUCTION_XDESC, 1610)                 \
    X(ATTR_OPERATION_REDUCTION_YDESC, 1611)                 \
    X(ATTR_OPERATION_REDUCTION_DESC, 1612)                  \
    X(ATTR_OPERATION_RESHAPE_XDESC, 2200)                   \
    X(ATTR_OPERATION_RESHAPE_YDESC, 2201)

#define SGT_CUDNN_NAME(name, value) SGT_CUDNN_##name = (value),
enum { SGT_CUDNN_NAMES(SGT_CUDNN_NAME) };

#define SGT_CUDNN_MEMBER(result, name, arguments) result(*name) arguments;
typedef struct sgt_cudnn {
    SGT_CUDNN_FUNCTIONS(SGT_CUDNN_MEMBER)
    int version; /* version of the loaded cuDNN, as cudnnGetVersion returns it: 91900 is 9.19.0 */
    char title[24]; /* "cuDNN 9.19.0" */
} sgt_cudnn;

/* Set *out to the table of cuDNN's functions. cuDNN is loaded at the first call and stays loaded.
 * Any thread may call this function. Return SGT_EUNSUPPORTED if the library or one of its functions
 * is missing, or if the library's version is below SGT_CUDNN_OLDEST. */
int sgt_cudnn_load(const sgt_cudnn **out, sgt_error *err);

/* Return SGT_OK if `status` means success. Otherwise return SGT_ENOMEM or SGT_EUNSUPPORTED, with a
 * message in *err that contains `what` and cuDNN's own message. */
int sgt_cudnn_check(const sgt_cudnn *api, int status, const char *what, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
