/* nccl.c: the table of NCCL's functions, from the library that the machine has. NCCL is not run here: see nccl.h. */
#include "nccl.h"

#include <dlfcn.h>
#include <string.h>

#define LIBRARY "libnccl.so.2"

typedef struct symbol {
    const char *name;
    void *to; /* the table's member: a pointer to a function, which POSIX lets a void * hold */
} symbol;

static int fill(sgt_nccl *t, void *library, sgt_error *err)
{
    const symbol symbols[] = {{"ncclGetVersion", &t->version},
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
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = dlsym(library, symbols[i].name);
        if (!found)
            return sgt_fail(err, SGT_EUNSUPPORTED, "NCCL: %s is missing (2.13 or newer is needed)", symbols[i].name);
        memcpy(symbols[i].to, &found, sizeof found);
    }
    return SGT_OK;
}

/* Stays loaded: the table never changes once it is filled. */
const sgt_nccl *sgt_nccl_load(sgt_error *err)
{
    static sgt_nccl table;
    static int filled;
    char why[256];
    if (filled) return &table;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        sgt_fail(err, SGT_EUNSUPPORTED,
                 "NCCL, which several ranks need: " LIBRARY " cannot be loaded: %s (install libnccl2, or name its "
                 "folder in LD_LIBRARY_PATH)",
                 sgt_printable(why, sizeof why, dlerror()));
        return NULL;
    }
    if (fill(&table, library, err) < 0) {
        dlclose(library);
        return NULL;
    }
    filled = 1;
    return &table;
}
