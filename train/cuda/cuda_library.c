/* cuda_library.c: defines `sgt_cuda`, the only symbol that libsgt-cuda.so exports. It also times
 * attention for sgt-bench, with the kernels and the kind of inputs that training uses. */
#include "train/cuda/cuda_library.h"

#include <stdio.h>

#include "loader/base/library.h"
#include "loader/base/version.h"
#include "train/cuda/cuda_backend.h"

/* ---- timing attention ---- */

static void attend(sgt_cuda_backend *c) { sgt_cuda_attend(c, 0, 1); }

static void attend_backward(sgt_cuda_backend *c) { sgt_cuda_attend_backward(c, 0); }

/* Run one step with random tokens, so that queries, keys, values and gradients get realistic
 * values. If they were all 0, the GPU would draw less power, and run at a higher clock rate, than
 * in training. */
static int fill(sgt_backend *b, const sgt_backend_options *o, sgt_init *init, sgt_error *err)
{
    size_t n = (size_t)o->batch * o->seq;
    sgt_step_metrics m;
    int rc = init(b, &o->model, 1, o->threads, err);
    int32_t *ids = rc == SGT_OK ? b->pinned_alloc(b->pinned_ctx, n * sizeof *ids) : NULL;
    if (rc == SGT_OK && !ids) rc = sgt_fail(err, SGT_ENOMEM, "out of memory for the rows");
    for (size_t i = 0; ids && i < n; i++) ids[i] = (int32_t)(i * 2654435761u % o->model.vocab);
    sgt_batch rows = {.inputs = ids, .targets = ids};
    if (rc == SGT_OK) rc = b->micro_step(b, 0, 0, &rows, 1.0 / (double)n, err);
    if (rc == SGT_OK) rc = b->update(b, 0, 0, err);
    if (rc == SGT_OK) rc = b->metrics(b, 0, &m, err);
    if (ids) b->pinned_free(b->pinned_ctx, ids);
    return rc;
}

static int bench_attention(sgt_cuda_attention_times *t, const sgt_backend_options *o,
                           sgt_init *init, sgt_error *err)
{
    sgt_backend *b;
    int rc = sgt_cuda_backend_open(&b, o, err);
    if (rc < 0) return rc;
    sgt_cuda_backend *c = (sgt_cuda_backend *)b;
    *t = (sgt_cuda_attention_times){.peak_flops = b->peak_flops};
    snprintf(t->level, sizeof t->level, "%s", b->level);
    snprintf(t->library, sizeof t->library, "%s", b->library);
    rc = fill(b, o, init, err);
    if (rc == SGT_OK) rc = sgt_cuda_time(c, attend, &t->forward_ms, err);
    if (rc == SGT_OK) rc = sgt_cuda_time(c, attend_backward, &t->backward_ms, err);
    b->close(b);
    return rc;
}

/* ---- the exported table ---- */

static int usable(sgt_cuda_device *d, sgt_error *err) { return sgt_cuda_device_open(d, 0, err); }

extern const sgt_cuda_library sgt_cuda;
const sgt_cuda_library sgt_cuda = {
    .interface = SGT_CUDA_INTERFACE,
    .backend = sizeof(sgt_backend),
    .options = sizeof(sgt_backend_options),
    .version = SGT_VERSION,
    .usable = usable,
    .search = sgt_library_search,
    .open = sgt_cuda_backend_open,
    .estimate = sgt_cuda_backend_estimate,
    .count = sgt_cuda_count,
    .checks = &sgt_cuda_self_check,
    .gemm = {sgt_cuda_gemms_open, sgt_cuda_gemms_close, sgt_cuda_gemms_library, sgt_cuda_gemm_plan,
             sgt_cuda_gemm_ms},
    .cupti = {sgt_cupti_open, sgt_cupti_close, sgt_cupti_begin, sgt_cupti_end},
    .attention = bench_attention};
