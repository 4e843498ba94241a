/* device.c: asks the CUDA driver, if there is one, what it drives. No CUDA header: two calls of a stable interface. */
#include "device.h"

#include <dlfcn.h>
#include <string.h>

#define CUDA_ERROR_NO_DEVICE 100

typedef int (*init_fn)(unsigned flags);
typedef int (*count_fn)(int *count);

static int ask(void *library, sgt_error *err)
{
    init_fn init;
    count_fn count_devices;
    void *a = dlsym(library, "cuInit"), *b = dlsym(library, "cuDeviceGetCount");
    if (!a || !b)
        return sgt_fail(err, SGT_EUNSUPPORTED, "no CUDA driver: libcuda.so.1 lacks %s",
                        a ? "cuDeviceGetCount" : "cuInit");
    memcpy(&init, &a, sizeof init); /* ISO C has no conversion from an object pointer to a function pointer */
    memcpy(&count_devices, &b, sizeof count_devices);
    int count = 0, rc = init(0);
    if (rc == 0) rc = count_devices(&count);
    if (rc == CUDA_ERROR_NO_DEVICE || (rc == 0 && count == 0)) return sgt_fail(err, SGT_EUNSUPPORTED, "no CUDA device");
    if (rc != 0) return sgt_fail(err, SGT_EUNSUPPORTED, "no CUDA driver that works: it gave error %d", rc);
    return sgt_fail(err, SGT_EUNSUPPORTED, "this build has no CUDA backend");
}

int sgt_device_cuda(sgt_error *err)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return sgt_fail(err, SGT_EUNSUPPORTED, "no CUDA driver: libcuda.so.1 is not on this machine");
    int rc = ask(library, err);
    dlclose(library);
    return rc;
}
