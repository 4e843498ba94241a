/* curves.c: 200 steps of three models, compared with PyTorch's in float64, as recorded in
 * tests/data/fixtures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/step/cases.h"
#include "train/run/checkpoint.h"
#include "train/model/model.h"
#include "train/backend.h"
#include "loader/shards/shard.h"

#define STEPS 200

typedef struct curve {
    char dir[64];
    fixture f;     /* only f.model, f.batch and f.seq are used */
    int32_t *rows; /* (STEPS, 2, B, T): each step's inputs, then its targets */
    double loss[STEPS], norm[STEPS];
} curve;

static FILE *file_of(step_check *s, const curve *c, const char *name)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%s", c->dir, name);
    FILE *f = fopen(path, "rb");
    expect(s, f != NULL, "%s: not there (run from the source tree)", path);
    if (!f) exit(1);
    return f;
}

static void read_numbers(step_check *s, curve *c)
{
    char line[64];
    int step, n = 0;
    FILE *f = file_of(s, c, "f64.tsv");
    if (fgets(line, sizeof line, f))
        while (n < STEPS && fscanf(f, "%d %lf %lf", &step, &c->loss[n], &c->norm[n]) == 3 &&
               step == n)
            n++;
    fclose(f);
    expect(s, n == STEPS, "%d steps in f64.tsv", n);
}

static void read_rows(step_check *s, curve *c, const sgt_backend *b)
{
    size_t N = (size_t)c->f.batch * c->f.seq, n = STEPS * N;
    scoped_memory uint16_t *ids = calloc(n + 1, sizeof *ids);
    FILE *f = file_of(s, c, "tokens.bin");
    expect(s,
           fseek(f, SGT_SHARD_HEADER, SEEK_SET) == 0 && fread(ids, sizeof *ids, n + 1, f) == n + 1,
           "tokens.bin is too short");
    fclose(f);
    size_t bytes = 2 * n * sizeof *c->rows;
    c->rows = b->pinned_alloc ? b->pinned_alloc(b->pinned_ctx, bytes) : malloc(bytes);
    for (size_t i = 0; i < n; i++) {
        int32_t *at = c->rows + 2 * N * (i / N) + i % N;
        at[0] = ids[i], at[N] = ids[i + 1];
    }
}

/* Errors of a run, compared with the run in float64: the largest error of the loss and of the norm
 * (relative), and the sum and the last of the loss's errors. */
typedef struct errors {
    double loss, norm, sum, last;
    unsigned steps;
} errors;

static void one_step(step_check *s, curve *c, sgt_backend *b, unsigned k, errors *e)
{
    static const sgt_schedule schedule = {SGT_COSINE, 1e-3, 1e-4, 20, STEPS, 0, 0};
    size_t targets = (size_t)c->f.batch * c->f.seq;
    sgt_batch rows = {.inputs = c->rows + 2 * k * targets,
                      .targets = c->rows + (2 * k + 1) * targets};
    sgt_step_metrics m = {0};
    sgt_error err;
    if (b->micro_step(b, k, 0, &rows, 1.0 / (double)targets, &err) < 0 ||
        b->update(b, k, sgt_schedule_lr(&schedule, k), &err) < 0 || b->metrics(b, k, &m, &err) < 0)
        expect(s, 0, "step %u: %s", k, err.text);
    e->last = fabs(m.loss - c->loss[k]);
    e->loss = fmax(e->loss, e->last);
    e->norm = fmax(e->norm, fabs(m.grad_norm / c->norm[k] - 1));
    e->sum += e->last;
    e->steps++;
    if (s->precision != SGT_PRECISION_FP32) return;
    expect(s, e->last <= 2e-5, "step %u: loss %.9f, not %.9f", k, m.loss, c->loss[k]);
    expect(s, fabs(m.grad_norm / c->norm[k] - 1) <= 1e-4, "step %u: norm %.9f, not %.9f", k,
           m.grad_norm, c->norm[k]);
}

/* Check the bounds that sgt promises for the loss: of the mean error in bf16 and TF32, and of the
 * last step's error in fp16. TF32's bound is a quarter of bf16's. */
static void judge(step_check *s, const errors *e)
{
    double mean = e->sum / e->steps, most = s->precision == SGT_PRECISION_BF16 ? 0.02 : 0.02 / 4;
    printf("  %s: %u steps, loss off by %.3g on the mean, %.3g at most, %.3g at the end; norm by "
           "%.3g of itself\n",
           s->at, e->steps, mean, e->loss, e->last, e->norm);
    if (s->precision == SGT_PRECISION_FP16)
        expect(s, e->last <= 0.05, "loss off by %g at the end", e->last);
    else if (s->precision != SGT_PRECISION_FP32)
        expect(s, mean <= most, "loss off by %g on the mean", mean);
}

static void one_curve(step_check *s, const char *name, uint32_t batch)
{
    curve c = {.f.batch = batch};
    sgt_error err;
    errors e = {0};
    snprintf(s->at, sizeof s->at, "%s", name);
    snprintf(c.dir, sizeof c.dir, FIXTURES "%s", name);
    if (sgt_model_read_config(&c.f.model, c.dir, &err) < 0) {
        expect(s, 0, "%s", err.text);
        return;
    }
    c.f.seq = c.f.model.positions;
    read_numbers(s, &c);
    scoped(sgt_backend) *b = open_bare(s, &c.f);
    read_rows(s, &c, b);
    if (sgt_checkpoint_load_model(c.dir, b, &c.f.model, &err) < 0) expect(s, 0, "%s", err.text);
    for (unsigned k = 0; k < s->steps && k < STEPS && !s->failures; k++) one_step(s, &c, b, k, &e);
    if (e.steps) judge(s, &e);
    if (b->pinned_free) b->pinned_free(b->pinned_ctx, c.rows);
    else free(c.rows);
}

void curve_plain(step_check *s) { one_curve(s, "curve", 12); }
void curve_odd(step_check *s) { one_curve(s, "curve_odd", 5); }
void curve_deep(step_check *s) { one_curve(s, "curve_deep", 3); }
