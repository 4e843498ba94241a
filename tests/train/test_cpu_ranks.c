/* test_cpu_ranks.c: the CPU backend on several ranks, which are threads here. Gradients are summed
 * in the order of ranks. All ranks have the same bits, which are close to the numbers of a run on
 * one rank. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/train/fixture.h"
#include "tests/train/ranks_fixture.h"

#define STEPS 3

/* The final state of one rank. */
typedef struct seen {
    int rc;
    sgt_error err;
    float *state[SGT_GRADIENTS + 1]; /* in the flat layout; gradients are those of the first step */
    sgt_step_metrics m[STEPS];
} seen;

typedef struct job {
    const fixture *f;
    sgt_backend_options o; /* without `ranks`, which each rank sets */
    uint32_t micro;        /* micro-steps per step */
    /* number of a rank that gives up after its first micro-step; UINT32_MAX: none */
    uint32_t fails;
    seen ranks[MOST_RANKS];
} job;

static job job_of(const fixture *f, uint32_t ranks, uint32_t micro)
{
    job j = {.f = f, .o = f->options, .micro = micro, .fails = UINT32_MAX};
    j.o.batch = f->batch / ranks / micro;
    j.o.accum = micro;
    /* with more threads than cores, OpenMP's threads would wait for each other's time slices */
    j.o.threads = ranks > 2 ? 1 : 2;
    return j;
}

static void free_job(job *j)
{
    for (int i = 0; i < MOST_RANKS; i++)
        for (int what = 0; what <= SGT_GRADIENTS; what++) free(j->ranks[i].state[what]);
}
SCOPED_STRUCT(job, free_job)

/* Run the micro-steps of a step. Each rank takes consecutive rows. Which rows it takes does not
 * change the sum. */
static int micro_steps(const job *j, sgt_backend *b, const sgt_ranks *r, uint64_t step,
                       sgt_error *err)
{
    const fixture *f = j->f;
    int rc = SGT_OK;
    for (uint32_t a = 0; a < j->micro && rc == SGT_OK; a++) {
        uint32_t first = ((r ? r->rank : 0) * j->micro + a) * j->o.batch;
        sgt_batch rows = {.inputs = f->x + first * f->seq, .targets = f->y + first * f->seq};
        rc = b->micro_step(b, step, a, &rows, 1.0 / (f->batch * f->seq), err);
    }
    return rc;
}

static int steps(const job *j, sgt_backend *b, sgt_ranks *r, seen *s)
{
    int rc = SGT_OK;
    for (uint64_t i = 0; i < STEPS && rc == SGT_OK; i++) {
        if (i == 1 && r && r->rank == j->fails) {
            sgt_fail(&s->err, SGT_EIO, "it was told to");
            r->give_up(r, &s->err);
            return SGT_EIO;
        }
        if ((rc = micro_steps(j, b, r, i, &s->err)) < 0 ||
            (rc = b->update(b, i, 1e-3, &s->err)) < 0)
            return rc;
        rc = b->metrics(b, i, &s->m[i], &s->err);
        if (i == 0 && j->fails == UINT32_MAX)
            s->state[SGT_GRADIENTS] = flat_state(b, &j->f->model, SGT_GRADIENTS);
    }
    for (int what = SGT_PARAMETERS; rc == SGT_OK && what <= SGT_MOMENT2; what++)
        s->state[what] = flat_state(b, &j->f->model, (sgt_state)what);
    return rc;
}

static void work(void *ctx, sgt_ranks *r)
{
    job *j = ctx;
    seen *s = &j->ranks[r ? r->rank : 0];
    scoped(sgt_backend) *b = NULL;
    sgt_backend_options o = j->o;
    o.ranks = r;
    if ((s->rc = sgt_cpu_backend_open(&b, &o, &s->err)) < 0) {
        if (r) r->give_up(r, &s->err);
        return;
    }
    put_flat(b, &j->f->model, SGT_PARAMETERS, j->f->initial);
    s->rc = steps(j, b, r, s);
    if (s->rc < 0) r->give_up(r, &s->err);
}

/* Return the gradients of one rank's rows, computed without other ranks. */
static float *alone(const job *j, uint32_t rank)
{
    scoped(sgt_backend) *b = NULL;
    sgt_ranks r = {.rank = rank};
    cr_assert_eq(sgt_cpu_backend_open(&b, &j->o, NULL), 0);
    put_flat(b, &j->f->model, SGT_PARAMETERS, j->f->initial);
    cr_assert_eq(micro_steps(j, b, &r, 0, NULL), 0);
    float *g = flat_state(b, &j->f->model, SGT_GRADIENTS);
    return g;
}

/* Check that gradients are (((g0 + g1) + g2) + g3), summed in float32 in the order of ranks. */
static void check_sums(const job *j, uint32_t ranks)
{
    size_t n = sgt_model_floats(&j->f->model);
    scoped_memory float *want = alone(j, 0);
    for (uint32_t i = 1; i < ranks; i++) {
        scoped_memory float *g = alone(j, i);
        for (size_t k = 0; k < n; k++) want[k] += g[k];
    }
    for (uint32_t i = 0; i < ranks; i++)
        cr_expect_arr_eq(j->ranks[i].state[SGT_GRADIENTS], want, n * sizeof(float),
                         "%u ranks: gradients of rank %u", ranks, i);
}

static void check_same(const job *j, uint32_t ranks)
{
    size_t n = sgt_model_floats(&j->f->model) * sizeof(float);
    const seen *first = &j->ranks[0];
    for (uint32_t i = 1; i < ranks; i++) {
        const seen *s = &j->ranks[i];
        for (int what = SGT_PARAMETERS; what <= SGT_MOMENT2; what++)
            cr_expect_arr_eq(s->state[what], first->state[what], n, "state %d of rank %u of %u",
                             what, i, ranks);
        cr_expect_arr_eq(s->m, first->m, sizeof s->m, "metrics of rank %u", i);
    }
}

/* Losses are about 5 and may differ by 5e-6, the bound that the fixtures have. */
static void check_numbers(const job *one, const job *j)
{
    for (int s = 0; s < STEPS; s++) {
        const sgt_step_metrics *a = &one->ranks[0].m[s], *b = &j->ranks[0].m[s];
        cr_expect_float_eq(b->loss, a->loss, 5e-6, "step %d: loss %.9f, not %.9f", s, b->loss,
                           a->loss);
        cr_expect_float_eq(b->grad_norm / a->grad_norm, 1, 5e-6, "step %d: norm %.9f, not %.9f", s,
                           b->grad_norm, a->grad_norm);
    }
}

/* Run j on all ranks. Check that none fails, that the gradients are the sums of all ranks, and that
 * all ranks have the same bits. */
static void agree(job *j, uint32_t ranks)
{
    as_ranks(ranks, work, j);
    for (uint32_t i = 0; i < ranks; i++)
        cr_assert_eq(j->ranks[i].rc, 0, "rank %u: %s", i, j->ranks[i].err.text);
    check_sums(j, ranks);
    check_same(j, ranks);
}

/* In 16 bits, matrix products read copies of the weights. The copies must have the updates of all
 * ranks. Then the losses of one rank are not compared. */
static void ranks_of(const char *name, uint32_t ranks, uint32_t micro, const sgt_optim *optim,
                     sgt_precision precision)
{
    scoped(fixture) f;
    fixture_load(&f, name, SGT_GELU_TANH);
    f.options.optim.kind = optim->kind;
    f.options.optim.momentum = .9f;
    f.options.optim.bf16_moments = optim->bf16_moments;
    f.options.precision = precision;
    f.batch = f.batch / ranks * ranks;
    scoped(job) one = job_of(&f, 1, micro), many = job_of(&f, ranks, micro);
    agree(&many, ranks);
    if (precision != SGT_PRECISION_FP32) return;
    work(&one, NULL);
    check_numbers(&one, &many);
}

static const sgt_optim adamw = {.kind = SGT_ADAMW}, sgd = {.kind = SGT_SGD},
                       muon = {.kind = SGT_MUON},
                       bf16_moments = {.kind = SGT_ADAMW, .bf16_moments = 1};

Test(cpu_ranks, two_of_two_micro_steps) { ranks_of("tiny_tanh", 2, 2, &sgd, SGT_PRECISION_FP32); }
Test(cpu_ranks, four) { ranks_of("tiny_tanh", 4, 1, &adamw, SGT_PRECISION_FP32); }
Test(cpu_ranks, odd_sizes) { ranks_of("odd_tanh", 3, 1, &adamw, SGT_PRECISION_FP32); }
Test(cpu_ranks, moments_in_bf16) { ranks_of("tiny_tanh", 2, 1, &bf16_moments, SGT_PRECISION_FP32); }
Test(cpu_ranks, two_with_muon) { ranks_of("tiny_tanh", 2, 1, &muon, SGT_PRECISION_FP32); }
Test(cpu_ranks, four_with_muon) { ranks_of("tiny_tanh", 4, 1, &muon, SGT_PRECISION_FP32); }
Test(cpu_ranks, bf16) { ranks_of("tiny_tanh", 4, 1, &adamw, SGT_PRECISION_BF16); }
Test(cpu_ranks, fp16) { ranks_of("tiny_tanh", 4, 1, &adamw, SGT_PRECISION_FP16); }

/* Parts of the gradient with more numbers than fit in one message or in one task of the
 * optimizer. */
Test(cpu_ranks, parts_that_are_long)
{
    scoped(fixture) f;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    sgt_model m = f.model;
    m.vocab = 50257;
    float *initial = calloc(sgt_model_floats(&m), sizeof *initial);
    for (size_t i = 0; i < sgt_model_floats(&m); i++) initial[i] = .02f * (float)sin((double)i);
    free(f.initial);
    f.initial = initial;
    f.model = f.options.model = m;
    cr_assert_gt((size_t)m.vocab * m.channels / 2, (size_t)1 << 20);
    scoped(job) j = job_of(&f, 2, 1);
    agree(&j, 2);
}

Test(cpu_ranks, nobody_waits_for_a_rank_that_has_given_up, .timeout = 30)
{
    scoped(fixture) f;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    scoped(job) j = job_of(&f, 4, 1);
    j.fails = 2;
    as_ranks(4, work, &j);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(j.ranks[i].rc, SGT_EIO, "rank %d: %d", i, j.ranks[i].rc);
}
