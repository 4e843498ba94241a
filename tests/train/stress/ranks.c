/* ranks.c: stress test of ranks that train at the same time, as threads of one process. Each rank's
 * communication thread sums gradients while its backward pass continues. All ranks must have the
 * same bits, and a second run must have those of the first.
 *
 * This is a plain program without Criterion, so that it runs under the thread sanitizer. The
 * sanitizer does not know OpenMP's threads, so each rank computes on one thread:
 *
 *     make SAN=thread build/thread/tests/stress-ranks && build/thread/tests/stress-ranks [STEPS]
 *
 * Trains STEPS steps (default 12) in each precision on two, three and four ranks. Exits with 0 if
 * all results were right. */
#include <string.h>

#include "tests/stress.h"
#include "tests/train/fixture.h"
#include "tests/train/ranks_fixture.h"

/* The final state of a rank, in the flat layout, and the sum of the losses of its evaluations. */
typedef struct outcome {
    float *state[SGT_MOMENT2 + 1];
    double losses;
} outcome;

typedef struct job {
    const fixture *f;
    sgt_backend_options o; /* except for the ranks */
    uint64_t steps;
    outcome ranks[MOST_RANKS];
} job;

/* Run a step in which each micro-step of each rank has one of the fixture's rows. */
static void step(sgt_backend *b, const job *j, const sgt_ranks *r, uint64_t s)
{
    sgt_error err;
    for (uint32_t a = 0; a < j->o.accum; a++)
        fixture_micro_step_of(j->f, b, s, a, (r->rank * j->o.accum + a) % j->f->batch,
                              1.0 / (j->f->seq * r->size * j->o.accum));
    if (b->update(b, s, 1e-3, &err) < 0) fail("an update", err.text);
}

/* Train. Between some steps, evaluate, read the state or initialize it. */
static void work(void *ctx, sgt_ranks *r)
{
    job *j = ctx;
    sgt_error err;
    sgt_backend_options o = j->o;
    sgt_batch rows = {.inputs = j->f->x, .targets = j->f->y};
    outcome *seen = &j->ranks[r->rank];
    double loss;
    uint64_t targets;
    o.ranks = r;
    sgt_backend *b = fixture_open(j->f, &o);
    for (uint64_t s = 0; s < j->steps; s++) {
        step(b, j, r, s);
        if (s % 4 == 3) free(flat_state(b, &o.model, SGT_PARAMETERS));
        if (s % 4 != 1) continue;
        if (b->eval(b, &rows, &loss, &targets, &err) < 0) fail("an evaluation", err.text);
        seen->losses += loss;
        /* other ranks may still evaluate */
        if (s % 8 == 5) put_flat(b, &o.model, SGT_PARAMETERS, j->f->initial);
    }
    for (int what = SGT_PARAMETERS; what <= SGT_MOMENT2; what++)
        seen->state[what] = flat_state(b, &o.model, (sgt_state)what);
    b->close(b);
}

/* Check that all ranks of two runs have the same state, and each rank the same losses. */
static void compare(const job *first, const job *again, uint32_t ranks)
{
    size_t bytes = sgt_model_floats(&first->f->model) * sizeof(float);
    for (uint32_t i = 0; i < ranks; i++) {
        for (int what = SGT_PARAMETERS; what <= SGT_MOMENT2; what++) {
            if (memcmp(first->ranks[i].state[what], first->ranks[0].state[what], bytes) != 0)
                fail("state", "other bits in another rank");
            if (memcmp(again->ranks[i].state[what], first->ranks[0].state[what], bytes) != 0)
                fail("state", "other bits in another run");
        }
        if (memcmp(&again->ranks[i].losses, &first->ranks[i].losses, sizeof(double)) != 0)
            fail("losses", "other bits in another run");
    }
}

static void forget(job *j)
{
    for (uint32_t i = 0; i < MOST_RANKS; i++)
        for (int what = SGT_PARAMETERS; what <= SGT_MOMENT2; what++) free(j->ranks[i].state[what]);
}

/* Train twice, and compare the runs. */
static void train(uint32_t ranks, const char *name, sgt_precision precision, uint64_t steps)
{
    scoped(fixture) f;
    fixture_load(&f, name, SGT_GELU_TANH);
    job first = {.f = &f, .o = f.options, .steps = steps};
    first.o.precision = precision;
    first.o.batch = 1;
    first.o.accum = precision == SGT_PRECISION_FP16 ? 2 : 1;
    first.o.threads = 1;
    job again = first;
    as_ranks(ranks, work, &first);
    as_ranks(ranks, work, &again);
    compare(&first, &again, ranks);
    forget(&first);
    forget(&again);
}

int main(int argc, char **argv)
{
    unsigned long long steps = argument(argc, argv, 1, 1, 12);
    for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++) {
        train(ranks, "tiny_tanh", SGT_PRECISION_FP32, steps);      /* AdamW */
        train(ranks, "options_untied", SGT_PRECISION_BF16, steps); /* SGD, an untied head */
        train(ranks, "options_muon", SGT_PRECISION_FP16, steps);
    }
    printf("stress-ranks: %llu steps of 2 to %d ranks in 3 precisions, every bit the same\n", steps,
           MOST_RANKS);
    return 0;
}
