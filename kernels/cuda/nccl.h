/* nccl.h: our own declarations of the part of NCCL that we use. NCCL is loaded at run time, so
 * neither building nor running on one GPU needs it. tests/kernels/toolkit/nccl.c compares names and
 * numbers with NCCL's header.
 *
 *     const sgt_nccl *n = sgt_nccl_load(&err);
 *     if (!n) ...;                                       // err says in one line what is missing
 *     if (rank == 0) n->unique_id(&id);                  // sent to the other ranks by other means
 *     n->comm_init_rank(&comm, ranks, id, rank);         // waits for all ranks
 *     n->all_reduce(x, x, count, SGT_NCCL_FLOAT32, SGT_NCCL_SUM, comm, stream);
 *
 * Every rank makes the same calls on a communicator in the same order. We use one stream for each
 * communicator, and a CUDA graph may capture that stream. A call returns 0, or a code for
 * error_string.
 *
 * On an H100, only a single rank has run, in the self-check (train/cuda/self_check_peers.c).
 * Several ranks have run only in tests, with a stand-in for NCCL (tests/kernels/host/nccl.cpp). The
 * code for several ranks follows NCCL's documentation. */
#ifndef SGT_CUDA_NCCL_H
#define SGT_CUDA_NCCL_H

#include <stddef.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A test defines SGT_NCCL_TYPES, and compares the types below with those of NCCL's header. */
#ifndef SGT_NCCL_TYPES
typedef struct sgt_nccl_id {
    char bytes[128];
} sgt_nccl_id;
typedef struct ncclComm *sgt_nccl_comm;
typedef struct CUstream_st *sgt_nccl_stream; /* cudaStream_t */
typedef int sgt_nccl_result, sgt_nccl_type, sgt_nccl_op;
#endif

enum { SGT_NCCL_FLOAT16 = 6, SGT_NCCL_FLOAT32 = 7, SGT_NCCL_FLOAT64 = 8, SGT_NCCL_BFLOAT16 = 9 };
enum { SGT_NCCL_SUM = 0 };

typedef struct sgt_nccl {
    sgt_nccl_result (*version)(int *version); /* 22809 is 2.28.9 */
    const char *(*error_string)(sgt_nccl_result code);
    const char *(*last_error)(sgt_nccl_comm comm);
    sgt_nccl_result (*unique_id)(sgt_nccl_id *id);
    sgt_nccl_result (*comm_init_rank)(sgt_nccl_comm *comm, int ranks, sgt_nccl_id id, int rank);
    sgt_nccl_result (*comm_destroy)(sgt_nccl_comm comm); /* all work on streams must be done */
    /* abandon unfinished operations, and destroy the communicator */
    sgt_nccl_result (*comm_abort)(sgt_nccl_comm comm);

    /* to[i] = sum of from[i] over all ranks, for i < count. `to` may be `from`. */
    sgt_nccl_result (*all_reduce)(const void *from, void *to, size_t count, sgt_nccl_type type,
                                  sgt_nccl_op op, sgt_nccl_comm comm, sgt_nccl_stream s);
    /* to[i] = sum of from[rank*count + i] over the `from` of all ranks, for i < count. `rank` is
     * the calling rank. `from` has ranks*count elements. `to` may be from + rank*count. */
    sgt_nccl_result (*reduce_scatter)(const void *from, void *to, size_t count, sgt_nccl_type type,
                                      sgt_nccl_op op, sgt_nccl_comm comm, sgt_nccl_stream s);
    /* to[r*count + i] = from[i] of rank r, for i < count and each rank r. `to` has ranks*count
     * elements. `from` may be to + rank*count, where `rank` is the calling rank. */
    sgt_nccl_result (*all_gather)(const void *from, void *to, size_t count, sgt_nccl_type type,
                                  sgt_nccl_comm comm, sgt_nccl_stream s);
    /* to[i] = from[i] of rank `root`, for i < count. `to` may be `from`. */
    sgt_nccl_result (*broadcast)(const void *from, void *to, size_t count, sgt_nccl_type type,
                                 int root, sgt_nccl_comm comm, sgt_nccl_stream s);
    /* begin a group: the operations up to group_end are launched together */
    sgt_nccl_result (*group_start)(void);
    sgt_nccl_result (*group_end)(void);
} sgt_nccl;

/* Load NCCL. Return the table of NCCL's functions, which the first call fills. If the library or a
 * function is missing, return NULL, with SGT_EUNSUPPORTED and the missing name in *err. Any thread
 * may call this function. */
const sgt_nccl *sgt_nccl_load(sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
