/* device.c: where a benchmark of training runs, decided before anything else is. */
#include <string.h>

#include "device.h"
#include "tools/bench/bench.h"

int bench_device(const char **device, const sgt_notice *notice, sgt_error *err)
{
    const sgt_cuda_library *lib;
    sgt_cuda_device d;
    sgt_error why;
    if (strcmp(*device, "cpu") == 0) return SGT_OK;
    int rc = sgt_device_cuda(&lib, &d, &why), asked = strcmp(*device, "cuda") == 0;
    if (rc < 0 && asked) return sgt_fail(err, rc, "--device cuda: %s (--device cpu works)", why.text);
    *device = rc < 0 ? "cpu" : "cuda";
    if (rc < 0) sgt_say(notice, "device: the CPU (%s)", why.text);
    else if (!asked) sgt_say(notice, "device: CUDA, %s", d.name);
    return SGT_OK;
}
