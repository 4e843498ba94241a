/* cuda_driver.c: loads the CUDA driver's library at run time and calls a few functions of its
 * stable interface. */
#include "kernels/cuda_driver.h"

#include <dlfcn.h>
#include <string.h>

#include "loader/base/library.h"

#define CUDA_ERROR_NO_DEVICE 100
#define OLDEST 80 /* oldest supported compute capability, as 10 * major + minor: 8.0 */

typedef int (*init_fn)(unsigned flags);
typedef int (*number_fn)(int *n);
typedef int (*string_fn)(int error, const char **text);

static int does_not_work(void *library, int code, sgt_error *err)
{
    string_fn describe;
    const char *text = NULL;
    void *f = dlsym(library, "cuGetErrorString");
    memcpy(&describe, &f, sizeof describe);
    if (!f || describe(code, &text) != 0 || !text) text = "unknown error";
    return sgt_fail(err, SGT_EUNSUPPORTED, "the CUDA driver does not work: error %d, %s", code,
                    text);
}

static int ask(void *library, int *version, int *devices, sgt_error *err)
{
    init_fn init;
    number_fn count_devices, get_version;
    void *a = dlsym(library, "cuInit"), *b = dlsym(library, "cuDeviceGetCount");
    void *c = dlsym(library, "cuDriverGetVersion");
    if (!a || !b)
        return sgt_fail(err, SGT_EUNSUPPORTED, "no CUDA driver: libcuda.so.1 lacks %s",
                        a ? "cuDeviceGetCount" : "cuInit");
    /* Copy the pointers with memcpy, because ISO C has no conversion from an object pointer to a
     * function pointer. */
    memcpy(&init, &a, sizeof init);
    memcpy(&count_devices, &b, sizeof count_devices);
    memcpy(&get_version, &c, sizeof get_version);
    *devices = *version = 0;
    int rc = init(0);
    if (rc == 0) rc = count_devices(devices);
    if (rc == CUDA_ERROR_NO_DEVICE || (rc == 0 && *devices == 0))
        return sgt_fail(err, SGT_EUNSUPPORTED, "no CUDA device");
    if (rc != 0) return does_not_work(library, rc, err);
    if (c && get_version(version) != 0) *version = 0;
    return SGT_OK;
}

int sgt_cuda_driver_ask(int *version, int *devices, sgt_error *err)
{
    /* The dynamic linker's error message. It is not shown to the user, because a machine without a
     * CUDA driver is normal. */
    char why[384];
    void *library = sgt_library_open("libcuda.so.1", RTLD_NOW | RTLD_LOCAL, why, sizeof why);
    if (!library)
        return sgt_fail(err, SGT_EUNSUPPORTED, "no CUDA driver: libcuda.so.1 was not found");
    int rc = ask(library, version, devices, err);
    /* On success, keep the library loaded, because the CUDA runtime needs it next, and loading and
     * initializing it again would be slow. */
    if (rc < 0) dlclose(library);
    return rc;
}

int sgt_cuda_driver_serves(int version, int runtime, sgt_error *err)
{
    if (!version || version / 1000 >= runtime / 1000) return SGT_OK;
    return sgt_fail(
        err, SGT_EUNSUPPORTED,
        "the CUDA driver supports CUDA %d.%d, but this build needs %d.0 (install a newer driver)",
        version / 1000, version % 1000 / 10, runtime / 1000);
}

int sgt_cuda_device_serves(const char *name, int major, int minor, sgt_error *err)
{
    if (major * 10 + minor >= OLDEST) return SGT_OK;
    return sgt_fail(err, SGT_EUNSUPPORTED, "%s is sm_%d%d: this build needs sm_%d or newer", name,
                    major, minor, OLDEST);
}
