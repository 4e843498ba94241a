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
#include "train/backend.h"

enum { ROWS = 2, SEQ = 24, VOCAB = 5003 };

/* The final state of a rank, in the flat layout, and the sum of the losses of its evaluations. */
typedef struct outcome {
    float *state[SGT_MOMENT2 + 1];
    double losses;
} outcome;

typedef struct job {
    sgt_backend_options o; /* except for the ranks */
    uint64_t steps;
    outcome ranks[MOST_RANKS];
} job;

/* Return number i of random sequence `of`. */
static uint32_t draw(uint64_t of, size_t i)
{
    uint64_t x = (of << 32 | i) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(x >> 32);
}

static void initialize(sgt_backend *b, const sgt_model *m)
{
    sgt_error err;
    float *x = malloc(sgt_model_floats(m) * sizeof *x);
    if (!x) fail("parameters", "out of memory");
    for (size_t i = 0; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_model_tensor(m, i, &t);
        for (size_t k = 0; k < t.count; k++) x[k] = ((float)draw(i, k) * 0x1p-32f - .5f) * .1f;
        if (b->put(b, SGT_PARAMETERS, i, 0, t.count, x, &err) < 0) fail("put", err.text);
    }
    free(x);
}

static void step(sgt_backend *b, sgt_batch *rows, const job *j, const sgt_ranks *r, uint64_t s)
{
    sgt_error err;
    int32_t *ids = rows->targets - 1; /* rows follow one another in ids[] */
    for (uint32_t a = 0; a < j->o.accum; a++) {
        for (size_t i = 0; i <= ROWS * SEQ; i++)
            ids[i] = (int32_t)(draw(1000 + (s * MOST_RANKS + r->rank) * j->o.accum + a, i) % VOCAB);
        if (b->micro_step(b, s, a, rows, 1.0 / (ROWS * SEQ * r->size * j->o.accum), &err) < 0)
            fail("a step", err.text);
    }
    if (b->update(b, s, 1e-3, &err) < 0) fail("an update", err.text);
}

/* Train. Between some steps, evaluate, read the state or initialize it. */
static void work(void *ctx, sgt_ranks *r)
{
    job *j = ctx;
    sgt_backend *b;
    sgt_error err;
    sgt_backend_options o = j->o;
    int32_t ids[ROWS * SEQ + 1];
    sgt_batch rows = {.inputs = ids, .targets = ids + 1};
    outcome *seen = &j->ranks[r->rank];
    double loss;
    uint64_t targets;
    o.ranks = r;
    if (sgt_cpu_backend_open(&b, &o, &err) < 0) fail("open", err.text);
    initialize(b, &o.model);
    for (uint64_t s = 0; s < j->steps; s++) {
        step(b, &rows, j, r, s);
        if (s % 4 == 3) free(flat_state(b, &o.model, SGT_PARAMETERS));
        if (s % 4 != 1) continue;
        if (b->eval(b, &rows, &loss, &targets, &err) < 0) fail("an evaluation", err.text);
        seen->losses += loss;
        if (s % 8 == 5) initialize(b, &o.model); /* other ranks may still evaluate */
    }
    for (int what = SGT_PARAMETERS; what <= SGT_MOMENT2; what++)
        seen->state[what] = flat_state(b, &o.model, (sgt_state)what);
    b->close(b);
}

/* Check that all ranks of two runs have the same state, and each rank the same losses. */
static void compare(const job *first, const job *again, uint32_t ranks)
{
    size_t bytes = sgt_model_floats(&first->o.model) * sizeof(float);
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

/* Train twice, and compare the runs. fp32 uses AdamW and a tied head, bf16 AdamW and an untied
 * head, fp16 SGD and two micro-steps per step. */
static void train(uint32_t ranks, sgt_precision precision, uint64_t steps)
{
    sgt_error err;
    job first = {.steps = steps};
    sgt_backend_options *o = &first.o;
    if (sgt_model_named(&o->model, "3x64x4", &err) < 0) fail("model", err.text);
    o->model.vocab = VOCAB;
    o->model.untied = precision == SGT_PRECISION_BF16;
    o->accum = precision == SGT_PRECISION_FP16 ? 2 : 1;
    o->optim = (sgt_optim){.kind = o->accum == 2 ? SGT_SGD : SGT_ADAMW,
                           .beta1 = .9f,
                           .beta2 = .95f,
                           .eps = 1e-8f,
                           .momentum = .9f,
                           .grad_clip = 1};
    o->batch = ROWS;
    o->seq = SEQ;
    o->threads = 1;
    o->precision = precision;
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
    for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++)
        for (int p = 0; p < 3; p++)
            train(ranks,
                  (sgt_precision[]){SGT_PRECISION_FP32, SGT_PRECISION_BF16, SGT_PRECISION_FP16}[p],
                  steps);
    printf("stress-ranks: %llu steps of 2 to %d ranks in 3 precisions, every bit the same\n", steps,
           MOST_RANKS);
    return 0;
}
