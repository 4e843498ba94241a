/* ranks.c: ranks of one thread each that train beside one another and read each other's gradients, parameters and
 * progress: an update goes on while others compute with what is already new. The same bits as where gradients are sent
 * and each update is done at once. A plain program, without Criterion, so that it runs under the thread sanitizer,
 * which knows nothing of OpenMP's threads, so that no rank has any:
 *
 *     make SAN=thread build/thread/tests/stress-ranks && build/thread/tests/stress-ranks [STEPS]
 *
 * Trains STEPS steps (default 12) in each precision on two, three and four ranks. Exit 0: all was right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "tests/train/ranks_fixture.h"

enum { ROWS = 2, SEQ = 24, VOCAB = 5003 };

typedef struct job {
    sgt_backend_options o; /* ranks aside */
    uint64_t steps;
    float *params[MOST_RANKS]; /* in the end, flat */
} job;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "stress-ranks: %s: %s\n", what, why);
    exit(1);
}

/* Number i of stream `of`. */
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

static float *parameters(sgt_backend *b, const sgt_model *m)
{
    sgt_error err;
    float *x = calloc(sgt_model_floats(m), sizeof *x);
    if (!x) fail("parameters", "out of memory");
    for (size_t i = 0; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_model_tensor(m, i, &t);
        if (b->get(b, SGT_PARAMETERS, i, 0, t.count, x + t.offset, &err) < 0) fail("get", err.text);
    }
    return x;
}

/* Now and then somebody looks between two steps: an evaluation, a read. */
static void work(void *ctx, sgt_ranks *r)
{
    job *j = ctx;
    sgt_backend *b;
    sgt_error err;
    sgt_backend_options o = j->o;
    uint16_t tokens[ROWS * (SEQ + 1)];
    sgt_rows rows = {.tokens = tokens};
    double loss;
    uint64_t targets;
    o.ranks = r;
    if (sgt_cpu_backend_open(&b, &o, &err) < 0) fail("open", err.text);
    initialize(b, &o.model);
    for (uint64_t s = 0; s < j->steps; s++) {
        for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
            tokens[i] = (uint16_t)(draw(1000 + s * MOST_RANKS + r->rank, i) % VOCAB);
        if (b->micro_step(b, s, 0, &rows, 1.0 / (ROWS * SEQ * r->size), &err) < 0) fail("a step", err.text);
        if (b->update(b, s, 1e-3, &err) < 0) fail("an update", err.text);
        if (s % 4 == 1 && b->eval(b, &rows, &loss, &targets, &err) < 0) fail("an evaluation", err.text);
        if (s % 4 == 3) free(parameters(b, &o.model));
    }
    j->params[r->rank] = parameters(b, &o.model);
    b->close(b);
}

static void train(uint32_t ranks, sgt_precision precision, uint64_t steps)
{
    sgt_error err;
    job by[2] = {{.steps = steps}};
    sgt_backend_options *o = &by->o;
    if (sgt_model_named(&o->model, "3x64x4", &err) < 0) fail("model", err.text);
    o->model.vocab = VOCAB;
    o->optim = (sgt_optim){.kind = SGT_ADAMW, .beta1 = .9f, .beta2 = .95f, .eps = 1e-8f, .grad_clip = 1};
    o->batch = ROWS;
    o->seq = SEQ;
    o->threads = 1;
    o->precision = precision;
    by[1] = by[0];
    as_ranks(ranks, BY_MEMORY, work, &by[0]);
    as_ranks(ranks, BY_SWAP, work, &by[1]);
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < ranks; i++) {
            if (memcmp(by[k].params[i], by[0].params[0], sgt_model_floats(&o->model) * sizeof(float)) != 0)
                fail(k ? "sent" : "shared", "other bits");
            if (k || i) free(by[k].params[i]);
        }
    free(by[0].params[0]);
}

int main(int argc, char **argv)
{
    char *end = NULL;
    unsigned long long steps = argc > 1 ? strtoull(argv[1], &end, 10) : 12;
    if (steps < 1 || (end && *end)) fail("STEPS", "wanted a number from 1 on");
    for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++)
        for (int p = 0; p < 3; p++)
            train(ranks, (sgt_precision[]){SGT_PRECISION_FP32, SGT_PRECISION_BF16, SGT_PRECISION_FP16}[p], steps);
    printf("stress-ranks: %llu steps of 2 to %d ranks in 3 precisions, every bit the same\n", steps, MOST_RANKS);
    return 0;
}
