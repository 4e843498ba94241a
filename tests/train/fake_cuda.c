/* fake_cuda.c: the CPU backend, wrapped. */
#include "tests/train/fake_cuda.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAG 1
#define HOLD 2

double fake_peak = FAKE_PEAK;
struct fake_seen fake_seen;

typedef struct fake {
    sgt_backend base;
    sgt_backend *cpu;
    size_t row_bytes;
    uint64_t steps, micros; /* steps and micro-steps queued so far */
    sgt_step_metrics ring[LAG + 1];
    const uint16_t *given[HOLD + 1];
    uint64_t sums[HOLD + 1];
    sgt_scaler scaler;
} fake;

static uint64_t sum_of(const void *p, size_t n)
{
    uint64_t h = 1469598103934665603u; /* FNV-1a */
    for (const uint8_t *at = p; n; n--) h = (h ^ *at++) * 1099511628211u;
    return h;
}

static void close_fake(sgt_backend *b)
{
    fake *f = (fake *)b;
    f->cpu->close(f->cpu);
    free(f);
}

static int put(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
               const float *from, sgt_error *err)
{
    sgt_backend *cpu = ((fake *)b)->cpu;
    return cpu->put(cpu, what, tensor, first, count, from, err);
}

static int get(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count, float *to,
               sgt_error *err)
{
    sgt_backend *cpu = ((fake *)b)->cpu;
    return cpu->get(cpu, what, tensor, first, count, to, err);
}

/* The rows of this call and of the HOLD calls before it must be unchanged. */
static int micro_step(sgt_backend *b, uint64_t step, uint32_t micro, const sgt_batch *rows,
                      double scale, sgt_error *err)
{
    fake *f = (fake *)b;
    size_t at = f->micros++ % (HOLD + 1);
    f->given[at] = rows->tokens;
    f->sums[at] = sum_of(rows->tokens, f->row_bytes);
    int rc = f->cpu->micro_step(f->cpu, step, micro, rows, scale, err);
    for (size_t i = 0; i <= HOLD && i < f->micros; i++)
        if (sum_of(f->given[i], f->row_bytes) != f->sums[i]) fake_seen.overwritten = 1;
    return rc;
}

/* Every fifth step's gradient overflows and halves the scale; two good steps double it. */
static void move_scaler(fake *f, uint64_t step, sgt_step_metrics *m)
{
    m->loss_scale = (double)f->scaler.scale;
    if (fake_seen.options.precision == SGT_PRECISION_FP16 && step % 5 == 3) {
        m->grad_norm = INFINITY;
        f->scaler = (sgt_scaler){.scale = f->scaler.scale / 2, .skipped = f->scaler.skipped + 1};
    } else if (fake_seen.options.precision == SGT_PRECISION_FP16 && ++f->scaler.good_steps == 2) {
        f->scaler.scale *= 2;
        f->scaler.good_steps = 0;
    }
    m->skipped = f->scaler.skipped;
}

static int update(sgt_backend *b, uint64_t step, double lr, sgt_error *err)
{
    fake *f = (fake *)b;
    sgt_step_metrics *m = &f->ring[step % (LAG + 1)];
    int rc = f->cpu->update(f->cpu, step, lr, err);
    if (rc == SGT_OK) rc = f->cpu->metrics(f->cpu, step, m, err);
    if (rc == SGT_OK) move_scaler(f, step, m);
    f->steps = step + 1;
    return rc;
}

static int metrics(sgt_backend *b, uint64_t step, sgt_step_metrics *m, sgt_error *err)
{
    const fake *f = (const fake *)b;
    cr_assert(step < f->steps && f->steps - step <= LAG + 1, "metrics of step %lu after %lu", step,
              f->steps);
    unsigned late = (unsigned)(f->steps - 1 - step);
    if (late > fake_seen.late) fake_seen.late = late;
    if (!late) fake_seen.asked_at_once++;
    *m = f->ring[step % (LAG + 1)];
    (void)err;
    return SGT_OK;
}

static int eval(sgt_backend *b, const sgt_batch *rows, double *loss, uint64_t *targets,
                sgt_error *err)
{
    sgt_backend *cpu = ((fake *)b)->cpu;
    return cpu->eval(cpu, rows, loss, targets, err);
}

static void put_scaler(sgt_backend *b, uint64_t step, const sgt_scaler *s)
{
    fake *f = (fake *)b;
    f->scaler = fake_seen.put = *s;
    f->steps = step;
}

static int get_scaler(sgt_backend *b, sgt_scaler *s, sgt_error *err)
{
    (void)err;
    *s = ((fake *)b)->scaler;
    return SGT_OK;
}

static size_t memory(const sgt_backend *b, sgt_memory_kind kinds[SGT_MEMORY_KINDS])
{
    (void)b;
    kinds[0] = (sgt_memory_kind){"weights", FAKE_MEMORY - 789};
    kinds[1] = (sgt_memory_kind){"data", 789};
    return 2;
}

static void live(const sgt_backend *b, unsigned part, int again, uint64_t within[SGT_LIVE_KINDS],
                 uint64_t after[SGT_LIVE_KINDS])
{
    const sgt_backend *cpu = ((const fake *)b)->cpu;
    cpu->live(cpu, part, again, within, after);
}

static void *pinned_alloc(void *ctx, size_t bytes)
{
    struct fake_seen *seen = ctx;
    seen->pinned++;
    seen->allocations++;
    return malloc(bytes);
}

static void pinned_free(void *ctx, void *p)
{
    struct fake_seen *seen = ctx;
    seen->pinned--;
    free(p);
}

static int open_fake(sgt_backend **out, const sgt_backend_options *o, sgt_error *err)
{
    fake *f = calloc(1, sizeof *f);
    cr_assert(f);
    fake_seen.options = *o;
    snprintf(fake_seen.choices, sizeof fake_seen.choices, "%s", o->choices ? o->choices : "");
    /* the CPU's plain step: other options are recorded in fake_seen and change nothing */
    sgt_backend_options plain = {.model = o->model,
                                 .optim = o->optim,
                                 .batch = o->batch,
                                 .seq = o->seq,
                                 .accum = o->accum,
                                 .threads = 1,
                                 .notice = o->notice};
    plain.optim.kind = SGT_ADAMW;
    plain.optim.nesterov = 0;
    int rc = sgt_cpu_backend_open(&f->cpu, &plain, err);
    if (rc < 0) {
        free(f);
        return rc;
    }
    f->row_bytes = (size_t)o->batch * (o->seq + 1) * sizeof(uint16_t);
    f->scaler.scale = o->precision == SGT_PRECISION_FP16 ? o->loss_scale : 1;
    f->base = *f->cpu;
    f->base.name = "cuda";
    f->base.level = "sm_90";
    f->base.library = "fake 1.0";
    f->base.lag = LAG;
    f->base.hold = HOLD;
    f->base.pinned_alloc = pinned_alloc;
    f->base.pinned_free = pinned_free;
    f->base.pinned_ctx = &fake_seen;
    f->base.close = close_fake;
    f->base.put = put;
    f->base.get = get;
    f->base.micro_step = micro_step;
    f->base.update = update;
    f->base.metrics = metrics;
    f->base.eval = eval;
    f->base.put_scaler = put_scaler;
    f->base.get_scaler = get_scaler;
    f->base.memory = memory;
    f->base.live = live;
    f->base.choices = o->choices ? fake_seen.choices : "{\"qkv\":[3,1]}";
    f->base.peak_flops = fake_peak;
    f->base.datasheet_flops = FAKE_DATASHEET;
    f->base.peak_name = "Fake H1, fp16";
    f->base.memory_total = FAKE_TOTAL;
    *out = &f->base;
    return SGT_OK;
}

static int usable(sgt_cuda_device *d, sgt_error *err)
{
    (void)err;
    *d = (sgt_cuda_device){
        .name = "Fake H1", .major = 9, .memory = FAKE_TOTAL, .available = FAKE_TOTAL / 2};
    return SGT_OK;
}

static int estimate(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                    size_t *count, uint64_t *bytes, sgt_error *err)
{
    (void)err;
    fake_seen.options = *o;
    *count = memory(NULL, kinds);
    *bytes = FAKE_MEMORY;
    return SGT_OK;
}

const sgt_cuda_library fake_cuda = {.usable = usable, .open = open_fake, .estimate = estimate};
