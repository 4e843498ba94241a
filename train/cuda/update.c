/* update.c: the end of a training step: runs the optimizer, and reads the step's metrics. */
#include "train/cuda/cuda_backend.h"

/* Update n of the parameters that this rank owns, from offset `at` on in its arrays. Weight decay
 * applies to the first `decayed` of them. The kernel reads the learning rate and the step's other
 * factors from buf.control. */
static void update_range(sgt_cuda_backend *c, size_t at, size_t n, size_t decayed)
{
    void *copy = c->flat.own_copy ? (unsigned char *)c->flat.own_copy + at * c->shape.width : NULL;
    float *p = c->flat.params + at, *m = c->flat.m + at, *g = c->flat.own_grads + at;
    const sgt_optim *o = &c->o.optim;
    /* for the trace: number of floats per parameter that the kernel reads or writes. It reads and
     * writes the parameter and its moments, and reads the gradient. Unless plan.written is set, it
     * also writes 0 to the gradient. */
    size_t floats = (o->kind == SGT_SGD ? 5 : 7) + (c->plan.written ? 0 : 1);
    sgt_cupti_work(0, (double)(n * (floats * sizeof *p + (copy ? c->shape.width : 0))));
    if (o->kind == SGT_SGD) {
        sgt_sgd sgd = sgt_optim_sgd(o, 0, 0, 1);
        sgt_cuda_sgd_update(c->queue.compute, c->shape.type, copy, p, m, g, n, decayed,
                            c->plan.written, &sgd, c->buf.control);
    } else {
        sgt_adamw a = sgt_optim_adamw(o, 0, 0, 0, 1);
        sgt_cuda_adamw(c->queue.compute, c->shape.type, copy, p, m, sgt_cuda_second(c, at), g, n,
                       decayed, c->plan.written, &a, c->buf.control);
    }
}

/* Update the parameters with one launch per tensor. --no-fuse uses this function, because an
 * optimizer needs one launch per tensor if its tensors are not in one flat array. */
static void update_tensors(sgt_cuda_backend *c)
{
    for (size_t i = 0; i < sgt_model_tensors(&c->model); i++) {
        sgt_tensor t;
        if (sgt_cuda_by_muon(c, i)) continue;
        sgt_model_tensor(&c->model, i, &t);
        update_range(c, c->flat.tensor_at[i], t.count, t.dims > 1 ? t.count : 0);
    }
}

/* Update the parameters that this rank owns, with one launch. With Muon, the matrices that Muon
 * updates are left out: one launch updates the parameters stored before them, and one those after
 * them. */
static void update_flat(sgt_cuda_backend *c)
{
    size_t begin = c->flat.muon_at, end = c->flat.muon_end;
    if (begin) update_range(c, 0, begin, begin);
    update_range(c, end, c->flat.own - end, c->flat.own_decayed - end);
}

static void compute_update(sgt_cuda_backend *c)
{
    const sgt_optim *o = &c->o.optim;
    uint64_t before = sgt_cuda_count().launches;
    sgt_cupti_push("update");
    if (!c->group) sgt_cupti_work(0, (double)(c->flat.count * sizeof *c->flat.grads));
    sgt_cuda_grad_squares(c->queue.compute, c->buf.control, c->flat.own_grads, c->flat.own,
                          c->buf.scratch);
    if (c->group) sgt_cuda_ranks_norm(c);
    sgt_cuda_grad_finish(c->queue.compute, c->buf.control, (float)o->grad_clip, o->beta1, o->beta2);
    if (c->o.skip_spikes > 0)
        sgt_cuda_spikes(c->queue.compute, c->buf.control, c->buf.outliers, c->o.skip_spikes);
    /* must run before sgt_cuda_scale clips the gradients, because Muon uses unclipped gradients */
    sgt_cuda_muon_step(c);
    if (c->o.no_fuse)
        sgt_cuda_scale(c->queue.compute, c->buf.control, c->flat.own_grads, c->flat.own);
    /* update_tensors requires a single rank: with several ranks, the elements that a rank owns do
     * not end where tensors end */
    if (c->o.no_fuse && !c->group) update_tensors(c);
    else update_flat(c);
    if (c->group) sgt_cuda_ranks_share(c, !c->plan.written);
    sgt_cuda_end_step(c->queue.compute, c->buf.control);
    sgt_cuda_part_ends(c, sgt_part_update((unsigned)c->shape.L));
    sgt_cupti_pop();
    /* plus 1 for the kernel at the start of an update */
    unsigned launched = (unsigned)(sgt_cuda_count().launches - before) + 1;
    c->base.launches_step = c->queue.launched_micro * (c->o.accum ? c->o.accum : 1) + launched;
}

int sgt_cuda_update(sgt_backend *b, uint64_t step, double lr, sgt_error *err)
{
    sgt_cuda_backend *c = (sgt_cuda_backend *)b;
    int at = (int)(step % SGT_CUDA_RING);
    if (!c->queue.open_step)
        return sgt_fail(err, SGT_EUSAGE, "backend: update without a micro-step");
    if (c->group && c->queue.open_step < 2)
        return sgt_fail(err, SGT_EUSAGE,
                        "backend: update before the last of the step's %u micro-steps", c->o.accum);
    sgt_cuda_begin_update(c->queue.compute, c->buf.control, (float)lr, step);
    int rc = sgt_cuda_run(c, &c->queue.update_graph, compute_update, err);
    sgt_cuda_copy(c->queue.compute, &c->queue.seen[at], c->buf.control, sizeof *c->buf.control);
    sgt_cuda_record(c->queue.measured[at], c->queue.compute);
    c->queue.steps[at] = step + 1;
    c->queue.open_step = 0;
    return rc;
}

int sgt_cuda_metrics(sgt_backend *b, uint64_t step, sgt_step_metrics *m, sgt_error *err)
{
    sgt_cuda_backend *c = (sgt_cuda_backend *)b;
    int at = (int)(step % SGT_CUDA_RING);
    if (c->queue.steps[at] != step + 1)
        return sgt_fail(err, SGT_EUSAGE, "backend: the metrics of step %llu are no longer held",
                        (unsigned long long)step);
    int rc = sgt_cuda_event_finish(c->queue.measured[at], err);
    if (rc < 0) return rc;
    const sgt_cuda_control *s = &c->queue.seen[at];
    *m = (sgt_step_metrics){.loss = s->last_targets > 0 ? s->last_loss / s->last_targets : 0,
                            .grad_norm = s->last_norm,
                            .loss_scale = (double)s->last_loss_scale,
                            .skipped = s->skipped,
                            .spikes = s->spikes};
    return SGT_OK;
}
