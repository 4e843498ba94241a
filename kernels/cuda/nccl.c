/* nccl.c: loads NCCL at run time and fills the table of its functions. nccl.h says which uses of
 * NCCL were tested. */
#include "kernels/cuda/nccl.h"

#include "loader/base/library.h"

static const char *const names[] = {"libnccl.so.2", NULL};

static sgt_nccl table;

static const sgt_symbol symbols[] = {
    {"ncclGetVersion", &table.version},           {"ncclGetErrorString", &table.error_string},
    {"ncclGetLastError", &table.last_error},      {"ncclGetUniqueId", &table.unique_id},
    {"ncclCommInitRank", &table.comm_init_rank},  {"ncclCommDestroy", &table.comm_destroy},
    {"ncclCommAbort", &table.comm_abort},         {"ncclAllReduce", &table.all_reduce},
    {"ncclReduceScatter", &table.reduce_scatter}, {"ncclAllGather", &table.all_gather},
    {"ncclBroadcast", &table.broadcast},          {"ncclGroupStart", &table.group_start},
    {"ncclGroupEnd", &table.group_end},           {NULL, NULL}};
_Static_assert(sizeof symbols / sizeof *symbols == sizeof table / sizeof(void *) + 1,
               "a function a member");

static sgt_library library = {.what = "NCCL (needed for several ranks)",
                              .names = names,
                              .symbols = symbols,
                              .install = "install libnccl2, or name its folder in LD_LIBRARY_PATH",
                              .version = "install NCCL 2.13 or newer",
                              .lock = PTHREAD_MUTEX_INITIALIZER};

const sgt_nccl *sgt_nccl_load(sgt_error *err)
{
    return sgt_library_load(&library, err) < 0 ? NULL : &table;
}
