/* cuda_backend.c: opens the CUDA backend, and implements the functions of backend.h that run a
 * micro-step or an evaluation. forward.c and backward.c launch the kernels. In the tests, this code
 * also runs on a CPU (tests/kernels/host). */
#include "train/cuda/cuda_backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* minimum size in bytes of the pinned staging buffer, through which the host copies parameters,
 * moments and the batches of evaluations */
#define STAGING ((size_t)4 << 20)
/* The arena leaves 1/64 of the device's memory, but at most this many bytes, free for the code of
 * kernels and for CUDA graphs. */
#define SPARE ((uint64_t)256 << 20)

static void close_backend(sgt_backend *b)
{
    sgt_cuda_backend *c = (sgt_cuda_backend *)b;
    int lost = c->group && c->o.ranks->given_up;
    if (c->queue.compute && !lost) sgt_cuda_finish(c->queue.compute, NULL);
    sgt_cuda_trace_close(c);
    sgt_cuda_graph_free(c->queue.micro_graph);
    sgt_cuda_graph_free(c->queue.last_graph);
    sgt_cuda_graph_free(c->queue.update_graph);
    /* free the graphs before this call: NCCL waits until no graph contains NCCL calls */
    sgt_cuda_ranks_leave(c);
    if (lost) sgt_cuda_finish(c->queue.compute, NULL);
    for (int i = 0; i < SGT_CUDA_RING; i++) {
        sgt_cuda_event_free(c->queue.copied[i]);
        sgt_cuda_event_free(c->queue.measured[i]);
        sgt_cuda_host_free(c->queue.staged[i]);
    }
    for (int i = 0; i < SGT_CUDA_SLOTS; i++) sgt_cuda_event_free(c->queue.taken[i]);
    sgt_cuda_event_free(c->queue.forked);
    sgt_cuda_event_free(c->queue.rejoined);
    sgt_cudnn_attention_close(c->plan.cudnn);
    sgt_cuda_gemms_close(c->plan.gemms);
    sgt_cuda_host_free(c->queue.seen);
    sgt_cuda_host_free(c->queue.staging);
    sgt_cuda_stream_free(c->queue.copies);
    sgt_cuda_stream_free(c->queue.beside);
    sgt_cuda_stream_free(c->queue.compute);
    sgt_cuda_free(c->buf.arena);
    sgt_live_free(&c->live);
    free(c->buf.blocks);
    free(c->flat.tensor_at);
    free(c->flat.bucket_at);
    free((char *)c->base.choices);
    free(c);
}

static void refresh_copy(sgt_cuda_backend *c)
{
    if (c->flat.stale && c->flat.own_copy)
        sgt_cuda_convert(c->queue.compute, c->shape.type, c->flat.own_copy, c->flat.params,
                         c->flat.own);
    if (c->flat.stale && c->group) sgt_cuda_ranks_share(c, 0);
    c->flat.stale = 0;
}

static size_t memory(const sgt_backend *b, sgt_memory_kind kinds[SGT_MEMORY_KINDS])
{
    const sgt_cuda_backend *c = (const sgt_cuda_backend *)b;
    memcpy(kinds, c->memory, c->kinds * sizeof *kinds);
    return c->kinds;
}

/* ---- a micro-step ---- */

/* Copy a batch to the device's row buffer with index `slot`, on the stream s. With --document-mask,
 * also copy an array that states, for each of the N positions, where its document begins. `staged`
 * is pinned memory for this array. */
static void copy_batch(sgt_cuda_backend *c, sgt_cuda_stream s, const sgt_batch *rows, int slot,
                       int32_t *staged)
{
    size_t N = c->shape.N, bytes = N * sizeof *rows->inputs;
    sgt_cuda_copy(s, c->buf.batch[slot], rows->inputs, bytes);
    sgt_cuda_copy(s, c->buf.batch[slot] + N, rows->targets, bytes);
    if (!c->o.documents) return;
    sgt_batch_starts(rows, c->shape.B, c->shape.T, c->o.eot, staged);
    sgt_cuda_copy(s, c->buf.starts[slot], staged, bytes);
}

/* Copy a batch to the device's row buffer with index `slot`. Unless the user has turned overlap
 * off, the copy runs while the device computes the previous micro-step. */
static void copy_rows(sgt_cuda_backend *c, const sgt_batch *rows, int slot)
{
    uint64_t k = c->queue.micro_steps;
    sgt_cuda_stream s = c->o.no_overlap ? c->queue.compute : c->queue.copies;
    /* before overwriting this row buffer, wait until the device has finished the micro-step that
     * read it, which is the one before the previous micro-step */
    sgt_cuda_wait(s, c->queue.taken[slot]);
    copy_batch(c, s, rows, slot, c->queue.staged[k % SGT_CUDA_RING]);
    sgt_cuda_record(c->queue.copied[k % SGT_CUDA_RING], s);
    sgt_cuda_wait(c->queue.compute, c->queue.copied[k % SGT_CUDA_RING]);
}

/* Copy ids and targets from the row buffer with index `slot` to the fixed addresses at which the
 * kernels read them. */
static void take_rows(sgt_cuda_backend *c, int slot)
{
    sgt_cuda_take_batch(c->queue.compute, c->buf.ids, c->buf.targets, c->buf.batch[slot],
                        c->shape.N, c->o.ignoring ? c->o.ignore : -1);
    if (c->o.documents)
        sgt_cuda_place_documents(c->queue.compute, &c->buf.documents, c->buf.starts[slot],
                                 c->shape.B, c->shape.T);
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

static void compute_micro_step(sgt_cuda_backend *c)
{
    uint64_t before = sgt_cuda_count().launches;
    sgt_cuda_forward(c, 1);
    sgt_cuda_head(c, 1);
    /* count the kernels that take_rows has already launched: one, or two with --document-mask */
    unsigned rows = 1 + (c->o.documents != 0);
    c->base.launches_forward = (unsigned)(sgt_cuda_count().launches - before) + rows;
    sgt_cuda_backward(c);
    /* plus 1 for the kernel that prepares the control block at the start of a micro-step */
    c->queue.launched_micro = (unsigned)(sgt_cuda_count().launches - before) + rows + 1;
}

static void compute_last_micro_step(sgt_cuda_backend *c)
{
    sgt_cuda_ranks_begin(c);
    compute_micro_step(c);
    sgt_cuda_ranks_end(c);
}

static int micro_step(sgt_backend *b, uint64_t step, uint32_t micro, const sgt_batch *rows,
                      double scale, sgt_error *err)
{
    sgt_cuda_backend *c = (sgt_cuda_backend *)b;
    uint64_t k = c->queue.micro_steps;
    int slot = (int)(k % SGT_CUDA_SLOTS), last = sgt_cuda_ranks_last(c, micro);
    if (!(scale > 0))
        return sgt_fail(err, SGT_EUSAGE, "backend: the gradient scale %g is not a positive number",
                        scale);
    if (c->plan.written && c->queue.open_step)
        return sgt_fail(err, SGT_EUSAGE,
                        "backend: this step has only one micro-step, and a second was asked for");
    refresh_copy(c);
    copy_rows(c, rows, slot);
    sgt_cuda_begin_micro_step(c->queue.compute, c->buf.control, c->buf.place, (float)scale,
                              c->o.seed, step,
                              (uint64_t)micro * c->shape.B * c->shape.ranks + c->shape.rank);
    take_rows(c, slot);
    sgt_cuda_record(c->queue.taken[slot], c->queue.compute);
    int rc = last ? sgt_cuda_run(c, &c->queue.last_graph, compute_last_micro_step, err)
                  : sgt_cuda_run(c, &c->queue.micro_graph, compute_micro_step, err);
    c->queue.micro_steps++;
    c->queue.open_step = 1 + last;
    /* After this function returns, the caller may overwrite the batch that it passed base.hold
     * calls ago, so wait until that batch has been copied. This makes the host wait only if it is
     * several micro-steps ahead of the device. */
    if (rc < 0 || k < c->base.hold) return rc;
    return sgt_cuda_event_finish(c->queue.copied[(k - c->base.hold) % SGT_CUDA_RING], err);
}

/* ---- evaluation ---- */

/* Return an unsigned integer for the floating-point number at `at` (16 or 32 bits), such that
 * comparing two of these integers is the same as comparing the two numbers. */
static uint32_t order_of(const sgt_cuda_backend *c, const unsigned char *at)
{
    uint32_t bits, sign = c->shape.width == 4 ? 1u << 31 : 1u << 15;
    uint16_t half;
    if (c->shape.width == 4) memcpy(&bits, at, sizeof bits);
    else memcpy(&half, at, sizeof half), bits = half;
    return bits & sign ? ~bits & (2 * sign - 1) : bits | sign;
}

/* For each target i that counts in the loss, set rows->greedy[i] to 1 if the target's logit is the
 * largest logit of its position, otherwise to 0. The logits are copied to the host one position at
 * a time. In practice there are few such targets, for example the last word of a text. */
static int find_greedy(sgt_cuda_backend *c, const sgt_batch *rows, sgt_error *err)
{
    size_t bytes = c->shape.V * c->shape.width;
    for (size_t i = 0; i < c->shape.N; i++) {
        int32_t target = rows->targets[i];
        if (target < 0 || (c->o.ignoring && target == c->o.ignore)) continue;
        sgt_cuda_copy(c->queue.compute, c->queue.staging,
                      (unsigned char *)c->buf.logits + i * c->shape.ldv * c->shape.width, bytes);
        int rc = sgt_cuda_finish(c->queue.compute, err);
        if (rc < 0) return rc;
        uint32_t own = order_of(c, c->queue.staging + (size_t)target * c->shape.width);
        rows->greedy[i] = 1;
        for (size_t v = 0; v < c->shape.V && rows->greedy[i]; v++)
            rows->greedy[i] = order_of(c, c->queue.staging + v * c->shape.width) <= own;
    }
    return SGT_OK;
}

static int eval(sgt_backend *b, const sgt_batch *rows, double *loss, uint64_t *targets,
                sgt_error *err)
{
    sgt_cuda_backend *c = (sgt_cuda_backend *)b;
    sgt_cuda_control seen;
    sgt_batch staged = *rows;
    size_t bytes = c->shape.N * sizeof *rows->inputs;
    if (c->queue.open_step)
        return sgt_fail(err, SGT_EUSAGE, "backend: evaluation in the middle of a step");
    refresh_copy(c);
    int rc =
        /* wait until the device has read row buffer 0 and the staging buffer */
        sgt_cuda_finish(c->queue.copies, err);
    if (rc == SGT_OK) rc = sgt_cuda_finish(c->queue.compute, err);
    if (rc < 0) return rc;
    staged.inputs = memcpy(c->queue.staging, rows->inputs, bytes);
    staged.targets = memcpy(c->queue.staging + bytes, rows->targets, bytes);
    copy_batch(c, c->queue.compute, &staged, 0, c->queue.staged[0]);
    sgt_cuda_zero(c->queue.compute, c->buf.eval_control, sizeof *c->buf.eval_control);
    take_rows(c, 0);
    sgt_cuda_forward(c, 0);
    sgt_cuda_head(c, 0);
    if ((rc = sgt_cuda_read_control(c, c->buf.eval_control, err)) < 0) return rc;
    memcpy(&seen, c->queue.staging, sizeof seen);
    *loss = seen.loss;
    *targets = (uint64_t)seen.targets;
    if (rows->losses) rc = sgt_cuda_stage(c, c->buf.loss, rows->losses, NULL, c->shape.N, err);
    return rc == SGT_OK && rows->greedy ? find_greedy(c, rows, err) : rc;
}

/* ---- set-up ---- */

static void *pinned_alloc(void *ctx, size_t bytes)
{
    void *p;
    (void)ctx;
    return sgt_cuda_host_alloc(&p, bytes, NULL) < 0 ? NULL : p;
}

static void pinned_free(void *ctx, void *p)
{
    (void)ctx;
    sgt_cuda_host_free(p);
}

/* Return how many bytes the arena may use: the free device memory minus a reserve. The driver needs
 * the reserve when a kernel is first launched, because it then loads the kernel's code into device
 * memory. */
static uint64_t room_on(const sgt_cuda_device *d)
{
    uint64_t spare = d->memory / 64 < SPARE ? d->memory / 64 : SPARE;
    return d->available > spare ? d->available - spare : 0;
}

/* Return the error that the arena does not fit in device memory. The message advises a
 * --batch-size. taken: number of bytes that the backend has already allocated; they are added to
 * the free memory, because the required memory includes them. */
static int no_room(const sgt_cuda_backend *c, uint64_t taken, sgt_error *err)
{
    const sgt_cuda_device *d = &c->device;
    uint64_t need = c->buf.used + SGT_CUDA_GEMM_WORKSPACE, room = room_on(d) + taken;
    /* room >= need: enough memory is free, but not in one contiguous range. The length of the
     * longest free range is unknown, so advise a batch that needs 1/64 less memory than this
     * one. */
    uint64_t most = room < need ? room : need - need / 64;
    uint32_t rows = sgt_cuda_most_rows(&c->o, most);
    char advice[96];
    if (rows)
        snprintf(advice, sizeof advice, "the largest --batch-size that fits is %zu",
                 rows * c->shape.ranks);
    else
        snprintf(advice, sizeof advice, "no --batch-size fits: use a smaller --model or --seq-len");
    return sgt_fail(err, SGT_ENOMEM,
                    "out of GPU memory: the model and a step of %u x %u tokens need %.2f GiB, but "
                    "%s has only %.2f of %.2f GiB free (%s)",
                    c->o.batch, c->o.seq, (double)need / 0x1p30, d->name, (double)room / 0x1p30,
                    (double)d->memory / 0x1p30, advice);
}

int sgt_cuda_open_card(sgt_cuda_device *d, int card, sgt_error *err)
{
    if (card > 0 && sgt_cuda_device_open(d, card, NULL) == SGT_OK) return SGT_OK;
    return sgt_cuda_device_open(d, 0, err);
}

static int open_device(sgt_cuda_backend *c, sgt_error *err)
{
    return sgt_cuda_open_card(&c->device, (int)(c->o.ranks ? c->o.ranks->local : c->o.card), err);
}

static int allocate_arena(sgt_cuda_backend *c, sgt_error *err)
{
    sgt_error why;
    void *arena;
    /* read the amount of free memory again, because libraries have allocated memory since the
     * device was opened */
    int rc = open_device(c, err);
    if (rc < 0) return rc;
    sgt_cuda_lay_out(c);
    if (c->buf.used > room_on(&c->device) || sgt_cuda_malloc(&arena, c->buf.used, &why) < 0)
        return no_room(c, SGT_CUDA_GEMM_WORKSPACE, err);
    c->buf.arena = arena;
    sgt_cuda_lay_out(c);
    return SGT_OK;
}

/* Set all flat arrays to 0 before parameters are loaded. Gradients and moments must start at 0, and
 * padding and the gaps between tensors must always be 0. */
static int clear_state(sgt_cuda_backend *c, sgt_error *err)
{
    size_t bytes = c->flat.own * sizeof(float);
    sgt_scaler s = {.scale = 1};
    if (c->o.precision == SGT_PRECISION_FP16)
        s.scale = c->o.loss_scale > 0 ? (float)c->o.loss_scale : 65536;
    sgt_cuda_zero(c->queue.compute, c->flat.params, bytes);
    sgt_cuda_zero(c->queue.compute, c->flat.copy, c->flat.count * c->shape.width);
    sgt_cuda_zero(c->queue.compute, c->flat.grads, c->flat.count * sizeof(float));
    if (c->group) sgt_cuda_zero(c->queue.compute, c->flat.own_grads, bytes);
    sgt_cuda_zero(c->queue.compute, c->flat.m, bytes);
    if (c->flat.v)
        sgt_cuda_zero(c->queue.compute, c->flat.v,
                      bytes - (c->flat.muon_end - c->flat.muon_at) * sizeof(float));
    c->flat.stale = 1;
    sgt_cuda_place place = {.ranks = c->shape.ranks};
    memcpy(c->queue.staging, &place, sizeof place);
    sgt_cuda_copy(c->queue.compute, c->buf.place, c->queue.staging, sizeof place);
    /* wait for the last copy from the staging buffer, so that the buffer can be reused */
    int rc = sgt_cuda_finish(c->queue.compute, err);
    return rc < 0 ? rc : sgt_cuda_start_control(c, &s, err);
}

static int open_streams(sgt_cuda_backend *c, sgt_error *err)
{
    int rc;
    size_t batch = 2 * c->shape.N * sizeof(int32_t);
    void *p;
    c->queue.staging_bytes = batch > STAGING ? batch : STAGING;
    if ((rc = sgt_cuda_stream_new(&c->queue.compute, err)) < 0 ||
        (rc = sgt_cuda_stream_new(&c->queue.copies, err)) < 0 ||
        (rc = sgt_cuda_host_alloc(&p, c->queue.staging_bytes, err)) < 0)
        return rc;
    c->queue.staging = p;
    if (!c->o.no_fuse && ((rc = sgt_cuda_stream_new(&c->queue.beside, err)) < 0 ||
                          (rc = sgt_cuda_event_new(&c->queue.forked, 0, err)) < 0 ||
                          (rc = sgt_cuda_event_new(&c->queue.rejoined, 0, err)) < 0))
        return rc;
    if ((rc = sgt_cuda_host_alloc(&p, SGT_CUDA_RING * sizeof *c->queue.seen, err)) < 0) return rc;
    c->queue.seen = p;
    for (int i = 0; i < SGT_CUDA_SLOTS; i++)
        if ((rc = sgt_cuda_event_new(&c->queue.taken[i], 0, err)) < 0) return rc;
    for (int i = 0; i < SGT_CUDA_RING; i++) {
        if ((rc = sgt_cuda_event_new(&c->queue.copied[i], 0, err)) < 0 ||
            (rc = sgt_cuda_event_new(&c->queue.measured[i], 0, err)) < 0 ||
            (rc = sgt_cuda_host_alloc(&p, c->shape.N * sizeof **c->queue.staged, err)) < 0)
            return rc;
        c->queue.staged[i] = p;
    }
    return SGT_OK;
}

static int open_products(sgt_cuda_backend *c, sgt_error *err)
{
    sgt_cuda_gemms_options g = {.device = c->device.name,
                                .unverified = c->o.unverified || c->o.checking,
                                .notice = c->o.notice,
                                .deterministic = c->o.deterministic,
                                .choices = c->o.choices,
                                .timing = !c->o.deterministic && !c->o.checking};
    int rc = sgt_cuda_gemms_open(&c->plan.gemms, &g, err);
    /* the device has too little memory for the workspace of matrix products */
    if (rc == SGT_ENOMEM) {
        sgt_cuda_lay_out(c);
        return no_room(c, 0, err);
    }
    return rc == SGT_OK ? sgt_cuda_plan_products(c, err) : rc;
}

static void describe(sgt_cuda_backend *c)
{
    char head[40] = "";
    if (c->plan.head_rows < c->shape.N)
        snprintf(head, sizeof head, "head by %zu rows, ", c->plan.head_rows);
    snprintf(c->plan.path_text, sizeof c->plan.path_text, "sm_%d%d, %s%s%s", c->device.major,
             c->device.minor, head, sgt_cuda_attention_name(c->plan.path, &c->base.attention),
             sgt_cuda_launches_early() ? ", early launches" : "");
    /* naive attention was chosen because of the head size, so no other attention can be used */
    if (!sgt_cuda_attention_serves(c->shape.D)) c->base.attention = NULL;
    snprintf(c->library, sizeof c->library, "CUDA %d.%d, %s%s%s", c->device.runtime / 1000,
             c->device.runtime % 1000 / 10, sgt_cuda_gemms_library(c->plan.gemms),
             c->plan.cudnn ? ", " : "",
             c->plan.cudnn ? sgt_cudnn_attention_library(c->plan.cudnn) : "");
    size_t n = strlen(c->plan.path_text);
    if (c->group)
        snprintf(c->plan.path_text + n, sizeof c->plan.path_text - n, ", %zu ranks",
                 c->shape.ranks);
    c->base.level = c->plan.path_text;
    c->base.library = c->library;
    if (c->o.deterministic) c->base.choices = sgt_cuda_gemms_choices(c->plan.gemms);
}

int sgt_cuda_backend_open(sgt_backend **out, const sgt_backend_options *o, sgt_error *err)
{
    sgt_cuda_backend *c = calloc(1, sizeof *c);
    if (!c) return sgt_fail_memory(err, "backend");
    c->base = (sgt_backend){.name = "cuda",
                            .lag = 1,
                            .hold = 2,
                            .pinned_alloc = pinned_alloc,
                            .pinned_free = pinned_free,
                            .close = close_backend,
                            .put = sgt_cuda_put,
                            .get = sgt_cuda_get,
                            .micro_step = micro_step,
                            .update = sgt_cuda_update,
                            .metrics = sgt_cuda_metrics,
                            .eval = eval,
                            .put_scaler = sgt_cuda_put_scaler,
                            .get_scaler = sgt_cuda_get_scaler,
                            .memory = memory};
    int rc = sgt_cuda_decide(c, o, err);
    sgt_cuda_sync_kernels(o->sync_kernels);
    if (rc == SGT_OK) rc = open_device(c, err);
    /* kernels wait for the kernel before them only in their form for sm_90 */
    sgt_cuda_launch_early(c->plan.variants & SGT_VARIANT_EARLY_LAUNCH && c->device.major == 9);
    if (rc == SGT_OK) rc = sgt_cuda_trace_open(c, err);
    if (rc == SGT_OK) rc = sgt_cuda_choose_attention(c, err);
    if (rc == SGT_OK) rc = open_streams(c, err);
    if (rc == SGT_OK) rc = sgt_cuda_ranks_open(c, err);
    if (rc == SGT_OK) rc = open_products(c, err);
    /* measure the peak speed before allocating the arena, while there is enough memory for large
     * matrices */
    if (rc == SGT_OK) sgt_cuda_find_peak(c);
    if (rc == SGT_OK) rc = allocate_arena(c, err);
    if (rc == SGT_OK) rc = sgt_cuda_choose_gelu(c, err);
    if (rc == SGT_OK) rc = sgt_cuda_choose_head(c, err);
    if (rc == SGT_OK) rc = sgt_cuda_time_attention(c, err);
    if (rc == SGT_OK) rc = clear_state(c, err);
    if (rc < 0) {
        close_backend(&c->base);
        return rc;
    }
    describe(c);
    *out = &c->base;
    return SGT_OK;
}
