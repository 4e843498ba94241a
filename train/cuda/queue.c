/* queue.c: copies data between host and device, and captures the work of a step as CUDA graphs,
 * which later steps launch. */
#include "train/cuda/cuda_backend.h"

#include <string.h>

int sgt_cuda_stage(sgt_cuda_backend *c, float *device, float *to, const float *from, size_t count,
                   sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t at = 0, n; at < count && rc == SGT_OK; at += n) {
        size_t bytes = (count - at) * sizeof(float);
        if (bytes > c->queue.staging_bytes) bytes = c->queue.staging_bytes;
        n = bytes / sizeof(float);
        bytes = n * sizeof(float);
        if (from) memcpy(c->queue.staging, from + at, bytes);
        if (from) sgt_cuda_copy(c->queue.compute, device + at, c->queue.staging, bytes);
        else sgt_cuda_copy(c->queue.compute, c->queue.staging, device + at, bytes);
        rc = sgt_cuda_finish(c->queue.compute, err);
        if (rc == SGT_OK && to) memcpy(to + at, c->queue.staging, bytes);
    }
    return rc;
}

int sgt_cuda_run(sgt_cuda_backend *c, sgt_cuda_graph *graph, void (*work)(sgt_cuda_backend *),
                 sgt_error *err)
{
    int rc;
    if (*graph) {
        sgt_cuda_graph_run(*graph, c->queue.compute);
        return sgt_cuda_check(err);
    }
    work(c);
    if ((rc = sgt_cuda_check(err)) < 0 || c->o.no_graphs || c->o.sync_kernels) return rc;
    if ((rc = sgt_cuda_capture(c->queue.compute, err)) < 0) return rc;
    work(c);
    return sgt_cuda_capture_end(c->queue.compute, graph, err);
}
