/* fixture.h: load a fixture, tests/data/fixtures/NAME.bin: the numbers of a training run that
 * PyTorch computed in float64, in the layout of train/model/model.h. make_fixtures.py in the same
 * folder describes the file. */
#ifndef TESTS_TRAIN_FIXTURE_H
#define TESTS_TRAIN_FIXTURE_H

#include "tests/scoped.h"
#include "train/backend.h"

#define FIXTURES "tests/data/fixtures/"

static inline void scoped_sgt_backend(sgt_backend **b)
{
    if (*b) (*b)->close(*b);
}

typedef struct fixture {
    sgt_model model;
    uint32_t batch, seq, steps;
    sgt_backend_options options; /* options of the recorded run, on 2 threads */
    double lr;
    int32_t *x, *y; /* (2, B, T): inputs and targets; y is not x shifted by one */
    void (*unpin)(void *ctx, void *p);
    void *pinned_ctx;
    float *initial;        /* in the flat layout, like grads and final */
    double *loss, *norm;   /* (steps + 1), (steps) */
    double *grads, *final; /* gradients of step 1 before clipping; parameters after the last step */
} fixture;

void fixture_load(fixture *f, const char *name, sgt_gelu_kind gelu);
void fixture_free(fixture *f);
SCOPED_STRUCT(fixture, fixture_free)

/* Change f to a model of `layers` blocks, whose initial parameters are those of the fixture's
 * blocks in turn. loss, norm, grads and final are not valid for this model. */
void fixture_deepen(fixture *f, uint32_t layers);

/* Open a CPU backend with options `o` and the fixture's initial parameters. */
sgt_backend *fixture_open(const fixture *f, const sgt_backend_options *o);

/* Open a CPU backend for `batch` rows, with the fixture's model, optimizer settings and initial
 * parameters. */
sgt_backend *fixture_backend(const fixture *f, uint32_t batch, int threads);

/* Run one micro-step over the fixture's rows from `first` on, as many as the backend has. */
void fixture_micro_step_of(const fixture *f, sgt_backend *b, uint64_t step, uint32_t micro,
                           uint32_t first, double scale);

/* Return how many targets of rows first .. first + count - 1 are not ignored. */
uint32_t fixture_targets(const fixture *f, uint32_t first, uint32_t count);

/* fixture_accumulate runs the micro-steps of step `step`, of `rows` rows each. fixture_finish
 * updates the parameters and stores the step's metrics in *m. */
void fixture_accumulate(const fixture *f, sgt_backend *b, uint64_t step, uint32_t rows);
void fixture_finish(const fixture *f, sgt_backend *b, uint64_t step, sgt_step_metrics *m);
/* Run a whole step, with one micro-step of all rows, and return the loss. */
double fixture_step(const fixture *f, sgt_backend *b, uint64_t step);

/* Copy the rows of f to pinned memory, which the backend's device can read. fixture_free frees it;
 * call that before the backend's library is closed. */
void fixture_pin(fixture *f, const sgt_backend *b);

/* Return the whole state `what` in the flat layout; the caller frees it. put_flat writes one. */
float *flat_state(sgt_backend *b, const sgt_model *m, sgt_state what);
void put_flat(sgt_backend *b, const sgt_model *m, sgt_state what, const float *flat);

#endif
