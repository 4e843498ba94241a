/* cuda_bench.c: times parts of the CUDA backend for sgt-bench, with the same kernels and inputs of
 * the same kind as in training. */
#include "train/cuda/cuda_library.h"

#include <stdio.h>

#include "train/cuda/cuda_backend.h"

static void attend(sgt_cuda_backend *c) { sgt_cuda_attend(c, 0, 1); }

static void attend_backward(sgt_cuda_backend *c) { sgt_cuda_attend_backward(c, 0); }

/* Run one step with random tokens, so that queries, keys, values and gradients have realistic
 * values. If they were zeros, a GPU would draw less power and run at a higher clock rate than in
 * training. */
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

int sgt_cuda_bench_attention(sgt_cuda_attention_times *t, const sgt_backend_options *o,
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
