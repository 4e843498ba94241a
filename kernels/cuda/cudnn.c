/* cudnn.c: loads cuDNN, once per process, and checks its version. */
#include "kernels/cuda/cudnn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/library.h"

#define GRAPH "libcudnn_graph.so.9"

static sgt_cudnn table;

static const sgt_symbol symbols[] = {
#define ROW(result, name, arguments) {"cudnn" #name, &table.name},
    SGT_CUDNN_FUNCTIONS(ROW)
#undef ROW
        {NULL, NULL}};

/* Check that libcudnn_graph.so.9, which contains the implementation, can be loaded from the folder
 * of libcudnn.so.9 or from the system's folders. libcudnn.so.9 loads libcudnn_graph.so.9 at the
 * first call, and aborts the process if it cannot. */
static int graph_is_there(void *library, sgt_error *err)
{
    Dl_info at;
    char path[4096], why[384];
    void *any = dlsym(library, "cudnnGetVersion");
    const char *slash = any && dladdr(any, &at) && at.dli_fname ? strrchr(at.dli_fname, '/') : NULL;
    if (slash) {
        int length = (int)(slash - at.dli_fname);
        snprintf(path, sizeof path, "%.*s/" GRAPH, length, at.dli_fname);
        if (sgt_library_open(path, RTLD_NOW | RTLD_LOCAL, why, sizeof why)) return SGT_OK;
    }
    if (sgt_library_open(GRAPH, RTLD_NOW | RTLD_LOCAL, why, sizeof why)) return SGT_OK;
    return sgt_fail(err, SGT_EUNSUPPORTED, "cuDNN: one of its libraries is missing: %s", why);
}

static int ready(void *library, sgt_error *err)
{
    int rc = graph_is_there(library, err);
    if (rc < 0) return rc;
    table.version = (int)table.GetVersion();
    int major = table.version / 10000, minor = table.version / 100 % 100,
        patch = table.version % 100;
    snprintf(table.title, sizeof table.title, "cuDNN %d.%d.%d", major, minor, patch);
    if (table.version < SGT_CUDNN_OLDEST)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "cuDNN: version %s is too old (install 9.10.2 or newer)", table.title + 6);
    return SGT_OK;
}

static const char *const names[] = {"libcudnn.so.9", NULL};
static sgt_library cudnn = {.what = "cuDNN",
                            .names = names,
                            .symbols = symbols,
                            .version = "install cuDNN 9",
                            .ready = ready,
                            .lock = PTHREAD_MUTEX_INITIALIZER};

int sgt_cudnn_load(const sgt_cudnn **out, sgt_error *err)
{
    int rc = sgt_library_load(&cudnn, err);
    if (rc == SGT_OK) *out = &table;
    return rc;
}

int sgt_cudnn_check(const sgt_cudnn *api, int status, const char *what, sgt_error *err)
{
    if (status == SGT_CUDNN_STATUS_SUCCESS) return SGT_OK;
    int memory = status == SGT_CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                 status == SGT_CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    char more[256] = "";
    api->GetLastErrorString(more, sizeof more);
    /* keep only the first line of the message, which is closest to the cause */
    more[strcspn(more, "\n")] = 0;
    return sgt_fail(err, memory ? SGT_ENOMEM : SGT_EUNSUPPORTED, "cuDNN: %s: %s%s%s", what,
                    api->GetErrorString(status), *more ? ": " : "", more);
}
