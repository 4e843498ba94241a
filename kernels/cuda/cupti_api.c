/* cupti_api.c: loads CUPTI from the machine and fills the table of its functions. */
#include "kernels/cuda/cupti_api.h"

#include "loader/base/library.h"

/* Names of the library, newest version first; we use only functions that both versions have. The
 * full paths are a toolkit's folders, which the dynamic linker does not search. */
static const char *const names[] = {"libcupti.so.13",
                                    "libcupti.so.12",
                                    "/usr/local/cuda/lib64/libcupti.so.13",
                                    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
                                    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12",
                                    NULL};

static sgt_cupti_api table;

static const sgt_symbol symbols[] = {{"cuptiGetVersion", &table.version},
                                     {"cuptiGetResultString", &table.result_string},
                                     {"cuptiSubscribe", &table.subscribe},
                                     {"cuptiUnsubscribe", &table.unsubscribe},
                                     {"cuptiEnableCallback", &table.enable_callback},
                                     {"cuptiGetCallbackName", &table.callback_name},
                                     {"cuptiGetGraphNodeId", &table.node_id},
                                     {"cuptiActivityRegisterTimestampCallback", &table.set_clock},
                                     {"cuptiActivityRegisterCallbacks", &table.set_buffers},
                                     {"cuptiActivityEnable", &table.enable},
                                     {"cuptiActivityDisable", &table.disable},
                                     {"cuptiActivityFlushAll", &table.flush},
                                     {"cuptiActivityGetNextRecord", &table.next_record},
                                     {"cuptiActivityGetNumDroppedRecords", &table.dropped},
                                     {"cuptiActivityPushExternalCorrelationId", &table.push},
                                     {"cuptiActivityPopExternalCorrelationId", &table.pop},
                                     {NULL, NULL}};
_Static_assert(sizeof symbols / sizeof *symbols == sizeof table / sizeof(void *) + 1,
               "a function a member");

static sgt_library library = {
    .what = "CUPTI",
    .names = names,
    .symbols = symbols,
    .install = "it comes with CUDA 12.8 or newer; name its folder in LD_LIBRARY_PATH",
    .version = "that of CUDA 12.8 or newer is needed",
    .lock = PTHREAD_MUTEX_INITIALIZER};

const sgt_cupti_api *sgt_cupti_load(sgt_error *err)
{
    return sgt_library_load(&library, err) < 0 ? NULL : &table;
}
