/* fixture.h: tests/data/fixtures/NAME.bin (make_fixtures.py beside it describes the file) in the
 * layout of train/model/model.h. */
#ifndef TESTS_TRAIN_FIXTURE_H
#define TESTS_TRAIN_FIXTURE_H

#include "train/backend.h"

#define FIXTURES "tests/data/fixtures/"

typedef struct fixture {
    sgt_model model;
    uint32_t batch, seq, steps;
    sgt_backend_options options; /* of the run that it holds, on 2 threads */
    double lr;
    /* (B, T) each; y is not x moved by one, so it comes as targets beside the rows */
    int32_t *x, *y;
    uint16_t *tokens; /* x as rows (B, T + 1) */
    void (*unpin)(void *ctx, void *p);
    void *pinned_ctx;
    float *initial;        /* in the flat layout, like the last two */
    double *loss, *norm;   /* (steps + 1), (steps) */
    double *grads, *final; /* of step 1 before clipping; parameters after the last step */
} fixture;

void fixture_load(fixture *f, const char *name, sgt_gelu_kind gelu);
void fixture_free(fixture *f);

/* With `layers` blocks instead, whose initial parameters are those of the fixture's in turn; loss,
 * norm, grads and final are not of that model. */
void fixture_deepen(fixture *f, uint32_t layers);

/* A CPU backend with f->options, changed as the test likes, and the fixture's initial
 * parameters. */
sgt_backend *fixture_open(const fixture *f, const sgt_backend_options *o);

/* A CPU backend for rows `batch`, with the fixture's model, optimizer settings and initial
 * parameters. */
sgt_backend *fixture_backend(const fixture *f, uint32_t batch, int threads);

/* One micro-step over rows first .. first + count - 1 of the fixture. */
void fixture_micro_step(const fixture *f, sgt_backend *b, uint32_t first, uint32_t count,
                        double scale);
void fixture_micro_step_of(const fixture *f, sgt_backend *b, uint64_t step, uint32_t micro,
                           uint32_t first, uint32_t count, double scale);

/* Of rows first .. first + count - 1, how many tokens have a loss. */
uint32_t fixture_targets(const fixture *f, uint32_t first, uint32_t count);

/* Step `step`, the rows in micro-steps of `rows`, up to the update; and the update. */
void fixture_accumulate(const fixture *f, sgt_backend *b, uint64_t step, uint32_t rows);
void fixture_finish(const fixture *f, sgt_backend *b, uint64_t step, sgt_step_metrics *m);

/* Moves the rows where the backend wants them; until fixture_free, which the backend's library must
 * see. */
void fixture_pin(fixture *f, const sgt_backend *b);

/* A whole state in the flat layout; the caller frees. */
float *flat_state(sgt_backend *b, const sgt_model *m, sgt_state what);
void put_flat(sgt_backend *b, const sgt_model *m, sgt_state what, const float *flat);

#endif
