/* state.c: copies parameters, moments, gradients and the state of the loss scaler to and from the
 * device. */
#include <string.h>

#include "train/cuda/cuda_backend.h"

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

/* Return how many elements precede the tensor in this rank's array m but not in its array v. These
 * elements belong to matrices that Muon updates, which have no second moments. */
static size_t without_second(const sgt_cuda_backend *c, size_t tensor)
{
    size_t end = c->flat.bucket_at[SGT_BUCKET_BLOCKS + c->shape.L];
    return c->flat.tensor_at[tensor] < end ? 0 : c->flat.muon_end - c->flat.muon_at;
}

/* Return the device array that holds the state `what`, and set *at to the index in this array of
 * element `first` of the tensor. If there is no such state or element, return NULL and set *err. */
static float *state_at(sgt_cuda_backend *c, size_t *at, sgt_state what, size_t tensor, size_t first,
                       size_t count, sgt_error *err)
{
    float *const flat[] = {[SGT_PARAMETERS] = c->flat.params,
                           [SGT_MOMENT1] = c->flat.m,
                           [SGT_MOMENT2] = c->flat.v,
                           [SGT_GRADIENTS] = c->flat.own_grads};
    sgt_tensor t;
    if ((size_t)what >= sizeof flat / sizeof *flat || !flat[what]) {
        sgt_fail(err, SGT_EUSAGE, "backend: unknown state %d", (int)what);
        return NULL;
    }
    if (sgt_model_part(&c->model, tensor, first, count, &t, err) < 0) return NULL;
    *at = c->flat.tensor_at[tensor] + first;
    return what == SGT_MOMENT2 ? flat[what] - without_second(c, tensor) : flat[what];
}

/* Return 1 if the optimizer does not have the state `what` for this tensor, otherwise 0. SGD has no
 * second moments, and Muon has none for the tensors that it updates. Reading such a state returns
 * zeros, and writing to it has no effect. */
static int is_nothing(const sgt_cuda_backend *c, sgt_state what, size_t tensor)
{
    return what == SGT_MOMENT2 && (c->o.optim.kind == SGT_SGD || sgt_cuda_by_muon(c, tensor));
}

int sgt_cuda_put(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
                 const float *from, sgt_error *err)
{
    sgt_cuda_backend *c = (sgt_cuda_backend *)b;
    size_t at;
    if (is_nothing(c, what, tensor)) return SGT_OK;
    float *state = state_at(c, &at, what, tensor, first, count, err);
    if (!state) return SGT_EUSAGE;
    if (what == SGT_PARAMETERS) c->flat.stale = 1;
    if (c->group) return sgt_cuda_ranks_put(c, state, at, count, from, err);
    return sgt_cuda_stage(c, state + at, NULL, from, count, err);
}

int sgt_cuda_get(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
                 float *to, sgt_error *err)
{
    sgt_cuda_backend *c = (sgt_cuda_backend *)b;
    size_t at;
    if (is_nothing(c, what, tensor)) {
        memset(to, 0, count * sizeof *to);
        return SGT_OK;
    }
    float *state = state_at(c, &at, what, tensor, first, count, err);
    if (!state) return SGT_EUSAGE;
    if (c->group) return sgt_cuda_ranks_get(c, state, at, count, to, err);
    return sgt_cuda_stage(c, state + at, to, NULL, count, err);
}

int sgt_cuda_read_control(sgt_cuda_backend *c, sgt_cuda_control *control, sgt_error *err)
{
    sgt_cuda_copy(c->queue.compute, c->queue.staging, control, sizeof *control);
    return sgt_cuda_finish(c->queue.compute, err);
}

int sgt_cuda_get_scaler(sgt_backend *b, sgt_scaler *s, sgt_error *err)
{
    sgt_cuda_backend *c = (sgt_cuda_backend *)b;
    sgt_cuda_control seen;
    int rc = sgt_cuda_read_control(c, c->buf.control, err);
    if (rc < 0) return rc;
    memcpy(&seen, c->queue.staging, sizeof seen);
    *s = (sgt_scaler){
        .scale = seen.loss_scale, .good_steps = seen.good_steps, .skipped = seen.skipped};
    sgt_cuda_copy(c->queue.compute, c->queue.staging, c->buf.outliers, sizeof s->outliers);
    if ((rc = sgt_cuda_finish(c->queue.compute, err)) < 0) return rc;
    memcpy(&s->outliers, c->queue.staging, sizeof s->outliers);
    return SGT_OK;
}

int sgt_cuda_start_control(sgt_cuda_backend *c, const sgt_scaler *s, sgt_error *err)
{
    sgt_cuda_control start = {.loss_scale = s->scale,
                              .good_steps = s->good_steps,
                              .skipped = s->skipped,
                              .spikes = s->outliers.spikes,
                              .growth_interval =
                                  c->o.precision == SGT_PRECISION_FP16 ? SGT_SCALE_GROWTH : 0};
    memcpy(c->queue.staging, &start, sizeof start);
    memcpy(c->queue.staging + sizeof start, &s->outliers, sizeof s->outliers);
    sgt_cuda_copy(c->queue.compute, c->buf.control, c->queue.staging, sizeof start);
    sgt_cuda_copy(c->queue.compute, c->buf.outliers, c->queue.staging + sizeof start,
                  sizeof s->outliers);
    /* wait for the copy from the staging buffer, so that the buffer can be reused */
    return sgt_cuda_finish(c->queue.compute, err);
}

void sgt_cuda_put_scaler(sgt_backend *b, uint64_t step, const sgt_scaler *s)
{
    sgt_cuda_backend *c = (sgt_cuda_backend *)b;
    sgt_scaler kept = *s;
    (void)step; /* unused, because the caller also passes the step to each update */
    if (c->o.precision != SGT_PRECISION_FP16) kept.scale = 1, kept.good_steps = 0;
    /* ignore an error, because the next call to the backend will return it again */
    sgt_cuda_start_control(c, &kept, NULL);
}
