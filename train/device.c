/* device.c: finds and loads libsgt-cuda.so. */
#include "train/device.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "loader/base/library.h"
#include "loader/base/version.h"
#include "kernels/cuda_driver.h"

#define NAME "libsgt-cuda.so"

/* Return the error for a missing libsgt-cuda.so. If the GPU driver does not work either, return the
 * error about the driver, because the user must solve that problem first. */
static int no_library(sgt_error *err)
{
    int version, devices, rc = sgt_cuda_driver_ask(&version, &devices, err);
    if (rc < 0) return rc;
    return sgt_fail(err, SGT_EUNSUPPORTED,
                    "this build has no CUDA backend (make builds it where nvcc is)");
}

static int check(const sgt_cuda_library *lib, const char *path, sgt_error *err)
{
    if (!lib)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "%s: the symbol " SGT_CUDA_LIBRARY_SYMBOL " is missing", path);
    if (lib->interface == SGT_CUDA_INTERFACE && lib->backend == sizeof(sgt_backend) &&
        lib->options == sizeof(sgt_backend_options))
        return SGT_OK;
    return sgt_fail(
        err, SGT_EUNSUPPORTED,
        "%s is from a different build: it is sgt %.16s, interface %u, but this is sgt " SGT_VERSION
        ", interface %d (build both with one make)",
        path, lib->version, lib->interface, SGT_CUDA_INTERFACE);
}

static int load(void **handle, const char *path, sgt_error *err)
{
    char why[384];
    const char absent[] = NAME ": cannot open shared object file";
    if ((*handle = sgt_library_open(path, RTLD_NOW | RTLD_LOCAL, why, sizeof why))) return SGT_OK;
    if (strncmp(why, absent, sizeof absent - 1) == 0) return no_library(err);
    return sgt_fail(err, SGT_EUNSUPPORTED, "%s", why);
}

int sgt_device_open(const sgt_cuda_library **lib, sgt_error *err)
{
    char *path = sgt_own_library(NAME);
    void *handle;
    if (!path) return sgt_fail(err, SGT_ENOMEM, NAME ": out of memory");
    int rc = load(&handle, path, err);
    if (rc == SGT_OK) {
        *lib = dlsym(handle, SGT_CUDA_LIBRARY_SYMBOL);
        /* do not unload the library, even if `check` fails: threads that the library started while
         * it was loaded may still be running */
        rc = check(*lib, path, err);
        if (rc == SGT_OK) (*lib)->search(sgt_library_searched());
    }
    free(path);
    return rc;
}

int sgt_device_cuda(const sgt_cuda_library **lib, sgt_cuda_device *d, sgt_error *err)
{
    int rc = sgt_device_open(lib, err);
    return rc < 0 ? rc : (*lib)->usable(d, err);
}

int sgt_device_choose(const char **device, const sgt_notice *notice, sgt_error *err)
{
    const sgt_cuda_library *lib;
    sgt_cuda_device d;
    sgt_error why;
    if (strcmp(*device, "cpu") == 0) return SGT_OK;
    int rc = sgt_device_cuda(&lib, &d, &why), asked = strcmp(*device, "cuda") == 0;
    if (rc < 0 && asked)
        return sgt_fail(err, rc, "--device cuda: %s (--device cpu works)", why.text);
    *device = rc < 0 ? "cpu" : "cuda";
    if (rc < 0) sgt_say(notice, "device: the CPU (%s)", why.text);
    else if (!asked) sgt_say(notice, "device: CUDA, %s", d.name);
    return SGT_OK;
}

int sgt_device_backend(sgt_backend **out, const char *device, const sgt_backend_options *o,
                       sgt_error *err)
{
    const sgt_cuda_library *lib;
    if (strcmp(device, "cpu") == 0) return sgt_cpu_backend_open(out, o, err);
    int rc = sgt_device_open(&lib, err);
    return rc < 0 ? rc : lib->open(out, o, err);
}
