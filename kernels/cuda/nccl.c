/* nccl.c: the table of NCCL's functions, from the library that the machine has. NCCL is not run here: see nccl.h. */
#include "nccl.h"

#include <dlfcn.h>

#include "base/library.h"

#define LIBRARY "libnccl.so.2"

static int fill(sgt_nccl *t, void *library, sgt_error *err)
{
    const sgt_symbol symbols[] = {{"ncclGetVersion", &t->version},
                                  {"ncclGetErrorString", &t->error_string},
                                  {"ncclGetLastError", &t->last_error},
                                  {"ncclGetUniqueId", &t->unique_id},
                                  {"ncclCommInitRank", &t->comm_init_rank},
                                  {"ncclCommDestroy", &t->comm_destroy},
                                  {"ncclCommAbort", &t->comm_abort},
                                  {"ncclAllReduce", &t->all_reduce},
                                  {"ncclReduceScatter", &t->reduce_scatter},
                                  {"ncclAllGather", &t->all_gather},
                                  {"ncclBroadcast", &t->broadcast},
                                  {"ncclGroupStart", &t->group_start},
                                  {"ncclGroupEnd", &t->group_end}};
    _Static_assert(sizeof symbols / sizeof *symbols == sizeof *t / sizeof(void *), "a function a member");
    const char *missing = sgt_library_look_up(library, symbols, sizeof symbols / sizeof *symbols);
    if (missing) return sgt_fail(err, SGT_EUNSUPPORTED, "NCCL: %s is missing (2.13 or newer is needed)", missing);
    return SGT_OK;
}

/* Stays loaded: the table never changes once it is filled. */
const sgt_nccl *sgt_nccl_load(sgt_error *err)
{
    static sgt_nccl table;
    static int filled;
    const char *name = LIBRARY;
    char why[256];
    if (filled) return &table;
    void *library = sgt_library_open(&name, 1, why, sizeof why);
    if (!library) {
        sgt_fail(err, SGT_EUNSUPPORTED,
                 "NCCL, which several ranks need: " LIBRARY " cannot be loaded: %s (install libnccl2, or name its "
                 "folder in LD_LIBRARY_PATH)",
                 why);
        return NULL;
    }
    if (fill(&table, library, err) < 0) {
        dlclose(library);
        return NULL;
    }
    filled = 1;
    return &table;
}
