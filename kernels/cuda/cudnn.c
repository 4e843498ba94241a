/* cudnn.c: finds cuDNN, once per process. */
#include "cudnn.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/library.h"

#define LIBRARY "libcudnn.so.9"
#define GRAPH "libcudnn_graph.so.9"

static struct {
    pthread_mutex_t lock;
    int loaded;
    sgt_cudnn api;
} once = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int look_up(sgt_cudnn *api, void *library, sgt_error *err)
{
    const sgt_symbol wanted[] = {
#define ROW(result, name, arguments) {"cudnn" #name, &api->name},
        SGT_CUDNN_FUNCTIONS(ROW)
#undef ROW
    };
    const char *missing = sgt_library_look_up(library, wanted, sizeof wanted / sizeof *wanted);
    if (missing) return sgt_fail(err, SGT_EUNSUPPORTED, "cuDNN: no function %s in " LIBRARY " (is it cuDNN 9?)", missing);
    return SGT_OK;
}

/* libcudnn.so.9 loads the library that does the work at the first call, and aborts the process where it cannot. So see
 * first whether it can: it looks beside itself, then where the system looks. */
static int graph_is_there(void *library, sgt_error *err)
{
    Dl_info at;
    char path[4096];
    void *any = dlsym(library, "cudnnGetVersion");
    const char *slash = any && dladdr(any, &at) && at.dli_fname ? strrchr(at.dli_fname, '/') : NULL;
    if (slash) {
        int length = (int)(slash - at.dli_fname);
        snprintf(path, sizeof path, "%.*s/" GRAPH, length, at.dli_fname);
        if (dlopen(path, RTLD_NOW | RTLD_LOCAL)) return SGT_OK;
    }
    if (dlopen(GRAPH, RTLD_NOW | RTLD_LOCAL)) return SGT_OK;
    return sgt_fail(err, SGT_EUNSUPPORTED, "cuDNN: a part of it is missing: %s", dlerror());
}

static int load(sgt_cudnn *api, sgt_error *err)
{
    int rc;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        if (strncmp(why, LIBRARY ":", sizeof LIBRARY) != 0 || strstr(why, "No such file") == NULL)
            return sgt_fail(err, SGT_EUNSUPPORTED, "cuDNN: %s", why);
        return sgt_fail(err, SGT_EUNSUPPORTED, "cuDNN: " LIBRARY " is not on this machine");
    }
    if ((rc = graph_is_there(library, err)) < 0) goto fail;
    if ((rc = look_up(api, library, err)) < 0) goto fail;
    api->version = (int)api->GetVersion();
    int major = api->version / 10000, minor = api->version / 100 % 100, patch = api->version % 100;
    snprintf(api->title, sizeof api->title, "cuDNN %d.%d.%d", major, minor, patch);
    if (api->version < SGT_CUDNN_OLDEST) {
        rc = sgt_fail(err, SGT_EUNSUPPORTED, "cuDNN: version %s is too old (9.10.2 or newer)", api->title + 6);
        goto fail;
    }
    return SGT_OK;
fail:
    dlclose(library);
    return rc;
}

int sgt_cudnn_load(const sgt_cudnn **out, sgt_error *err)
{
    pthread_mutex_lock(&once.lock);
    int rc = once.loaded ? SGT_OK : load(&once.api, err);
    once.loaded = rc == SGT_OK;
    pthread_mutex_unlock(&once.lock);
    if (rc == SGT_OK) *out = &once.api;
    return rc;
}

int sgt_cudnn_check(const sgt_cudnn *api, int status, const char *what, sgt_error *err)
{
    if (status == SGT_CUDNN_STATUS_SUCCESS) return SGT_OK;
    int memory = status == SGT_CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                 status == SGT_CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    char more[256] = "";
    api->GetLastErrorString(more, sizeof more);
    more[strcspn(more, "\n")] = 0; /* the line nearest to the cause comes first */
    return sgt_fail(err, memory ? SGT_ENOMEM : SGT_EUNSUPPORTED, "cuDNN: %s: %s%s%s", what,
                    api->GetErrorString(status), *more ? ": " : "", more);
}
