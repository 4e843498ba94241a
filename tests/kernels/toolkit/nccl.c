/* nccl.c: compares kernels/cuda/nccl.h with NCCL's own header, if the toolkit has it. check-nvcc
 * compiles this file and never runs it. Assertions compare constants, and filling the table
 * compares signatures. */
#if __has_include(<nccl.h>)
#include <nccl.h>

#define SGT_NCCL_TYPES
typedef ncclUniqueId sgt_nccl_id;
typedef ncclComm_t sgt_nccl_comm;
typedef cudaStream_t sgt_nccl_stream;
typedef ncclResult_t sgt_nccl_result;
typedef ncclDataType_t sgt_nccl_type;
typedef ncclRedOp_t sgt_nccl_op;
#include "kernels/cuda/nccl.h"

const sgt_nccl signatures;
const sgt_nccl signatures = {.version = ncclGetVersion,
                             .error_string = ncclGetErrorString,
                             .last_error = ncclGetLastError,
                             .unique_id = ncclGetUniqueId,
                             .comm_init_rank = ncclCommInitRank,
                             .comm_destroy = ncclCommDestroy,
                             .comm_abort = ncclCommAbort,
                             .all_reduce = ncclAllReduce,
                             .reduce_scatter = ncclReduceScatter,
                             .all_gather = ncclAllGather,
                             .broadcast = ncclBroadcast,
                             .group_start = ncclGroupStart,
                             .group_end = ncclGroupEnd};

_Static_assert(sizeof(ncclUniqueId) == 128, "an id");
_Static_assert(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclDataType_t) == sizeof(int) &&
                   sizeof(ncclRedOp_t) == sizeof(int),
               "enumerations pass as int");
_Static_assert(ncclSuccess == 0 && (int)ncclSum == SGT_NCCL_SUM, "codes");
_Static_assert((int)ncclFloat16 == SGT_NCCL_FLOAT16 && (int)ncclFloat32 == SGT_NCCL_FLOAT32 &&
                   (int)ncclFloat64 == SGT_NCCL_FLOAT64 && (int)ncclBfloat16 == SGT_NCCL_BFLOAT16,
               "types");
#else
typedef int nothing;
#endif
