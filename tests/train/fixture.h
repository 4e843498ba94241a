/* fixture.h: tests/data/fixtures/NAME.bin (make_fixtures.py beside it describes the file) in the
 * layout of train/model/model.h. */
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
    float *initial;        /* in the flat layout, like the next two */
    double *loss, *norm;   /* (steps + 1), (steps) */
    double *grads, *final; /* gradients of step 1 before clipping; parameters after the last step */
} fixture;

void fixture_load(fixture *f, const char *name, sgt_gelu_kind gelu);
void fixture_free(fixture *f);
SCOPED_STRUCT(fixture, fixture_free)

/* Load it with `layers` blocks instead, whose initial parameters are the fixture's blocks in turn.
 * loss, norm, grads and final do not belong to that model. */
void fixture_deepen(fixture *f, uint32_t layers);

/* Open a CPU backend with f->options, which the test may have changed, and the fixture's initial
 * parameters. */
sgt_backend *fixture_open(const fixture *f, const sgt_backend_options *o);

/* Open a CPU backend for `batch` rows, with the fixture's model, optimizer settings and initial
 * parameters. */
sgt_backend *fixture_backend(const fixture *f, uint32_t batch, int threads);

/* Run one micro-step over rows first .. first + count - 1 of the fixture. */
void fixture_micro_step_of(const fixture *f, sgt_backend *b, uint64_t step, uint32_t micro,
                           uint32_t first, uint32_t count, double scale);

/* Return how many tokens of rows first .. first + count - 1 have a loss. */
uint32_t fixture_targets(const fixture *f, uint32_t first, uint32_t count);

/* Run step `step` in micro-steps of `rows` rows, up to the update; then the update. */
void fixture_accumulate(const fixture *f, sgt_backend *b, uint64_t step, uint32_t rows);
void fixture_finish(const fixture *f, sgt_backend *b, uint64_t step, sgt_step_metrics *m);
/* Run both, in one micro-step of all rows, and return the loss. */
double fixture_step(const fixture *f, sgt_backend *b, uint64_t step);

/* Copy the rows to memory that the backend can read. Valid until fixture_free, which must come
 * before the backend's library is closed. */
void fixture_pin(fixture *f, const sgt_backend *b);

/* Return a whole state in the flat layout; the caller frees it. */
float *flat_state(sgt_backend *b, const sgt_model *m, sgt_state what);
void put_flat(sgt_backend *b, const sgt_model *m, sgt_state what, const float *flat);

#endif
