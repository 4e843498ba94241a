/* gemm_cuda.c: measures the matrix products on CUDA. libsgt-cuda.so times each product when it
 * plans it. */
#include <stdio.h>

#include "train/device.h"
#include "tools/bench/gemm.h"

#define SIDE 8192 /* size of the square product: 400 MB in 16 bits */

static int find_peak(gemm_bench *b, const sgt_cuda_gemm_calls *calls, sgt_cuda_gemms *g,
                     sgt_error *err)
{
    const sgt_cuda_gemm *p;
    sgt_cuda_gemm_shape s = {.m = SIDE,
                             .n = SIDE,
                             .k = SIDE,
                             .lda = SIDE,
                             .ldb = SIDE,
                             .ldd = SIDE,
                             .type = b->type,
                             .out = b->type,
                             .tf32 = b->tf32};
    int rc = calls->plan(&p, g, &s, err);
    if (rc == SGT_OK && calls->ms(p) > 0) b->peak_flops = gemm_flops(&s) / calls->ms(p) * 1e3;
    return rc;
}

static int time_lines(gemm_bench *b, const sgt_cuda_gemm_calls *calls, sgt_cuda_gemms *g,
                      sgt_error *err)
{
    for (size_t i = 0; i < b->count; i++) {
        gemm_line *l = &b->lines[i];
        const sgt_cuda_gemm *p;
        if (sgt_stopped(b->stop)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
        int rc = calls->plan(&p, g, &l->shape, err);
        if (rc < 0 && rc != SGT_EUNSUPPORTED) return rc;
        l->ms = rc == SGT_OK ? (double)calls->ms(p) : 0;
        if (!(l->ms > 0))
            snprintf(l->why, sizeof l->why, "%s",
                     rc < 0 ? "not in the library" : "no room to time it");
    }
    return SGT_OK;
}

int gemm_on_cuda(gemm_bench *b, sgt_error *err)
{
    const sgt_cuda_library *lib;
    sgt_cuda_device d;
    sgt_cuda_gemms *g;
    int rc = sgt_device_cuda(&lib, &d, err);
    if (rc < 0) return rc;
    const sgt_cuda_gemm_calls *calls = lib->gemm;
    snprintf(b->device, sizeof b->device, "%.127s", d.name);
    const sgt_cuda_gemms_options options = {.device = d.name, .timing = 1};
    if ((rc = calls->open(&g, &options, err)) < 0) return rc;
    snprintf(b->library, sizeof b->library, "%s", calls->library(g));
    if (d.available > (uint64_t)8 << 30) rc = find_peak(b, calls, g, err);
    if (rc == SGT_OK) rc = time_lines(b, calls, g, err);
    calls->close(g);
    return rc;
}
