/* cupti_api.c: the table of CUPTI's functions, from the library that the machine has. Not yet run on a GPU. */
#include "cupti_api.h"

#include <dlfcn.h>

#include "base/library.h"

/* Newest first: what we use is the same in both. The toolkit keeps it where the loader does not look. */
static const char *const libraries[] = {"libcupti.so.13",
                                        "libcupti.so.12",
                                        "/usr/local/cuda/lib64/libcupti.so.13",
                                        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
                                        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12"};

static void *open_library(sgt_error *err)
{
    char first[256];
    void *library = sgt_library_open(libraries, sizeof libraries / sizeof *libraries, first, sizeof first);
    if (library) return library;
    sgt_fail(err, SGT_EUNSUPPORTED,
             "--profile: no CUPTI: neither %s nor %s can be loaded: %s (it comes with the CUDA toolkit; name its "
             "folder in LD_LIBRARY_PATH)",
             libraries[0], libraries[1], first);
    return NULL;
}

static int fill(sgt_cupti_api *t, void *library, sgt_error *err)
{
    const sgt_symbol symbols[] = {{"cuptiGetVersion", &t->version},
                                  {"cuptiGetResultString", &t->result_string},
                                  {"cuptiSubscribe", &t->subscribe},
                                  {"cuptiUnsubscribe", &t->unsubscribe},
                                  {"cuptiEnableCallback", &t->enable_callback},
                                  {"cuptiGetCallbackName", &t->callback_name},
                                  {"cuptiGetGraphNodeId", &t->node_id},
                                  {"cuptiActivityRegisterTimestampCallback", &t->set_clock},
                                  {"cuptiActivityRegisterCallbacks", &t->set_buffers},
                                  {"cuptiActivityEnable", &t->enable},
                                  {"cuptiActivityDisable", &t->disable},
                                  {"cuptiActivityFlushAll", &t->flush},
                                  {"cuptiActivityGetNextRecord", &t->next_record},
                                  {"cuptiActivityGetNumDroppedRecords", &t->dropped},
                                  {"cuptiActivityPushExternalCorrelationId", &t->push},
                                  {"cuptiActivityPopExternalCorrelationId", &t->pop}};
    _Static_assert(sizeof symbols / sizeof *symbols == sizeof *t / sizeof(void *), "a function a member");
    const char *missing = sgt_library_look_up(library, symbols, sizeof symbols / sizeof *symbols);
    if (missing)
        return sgt_fail(err, SGT_EUNSUPPORTED, "--profile: CUPTI lacks %s (that of CUDA 12.8 or newer is needed)",
                        missing);
    return SGT_OK;
}

const sgt_cupti_api *sgt_cupti_load(sgt_error *err)
{
    static sgt_cupti_api table;
    static int filled;
    if (filled) return &table;
    void *library = open_library(err);
    if (!library) return NULL;
    if (fill(&table, library, err) < 0) {
        dlclose(library);
        return NULL;
    }
    filled = 1;
    return &table;
}
