/* check-step.h: helpers for the cases of check-step.
 *
 *     static void as_pytorch(step_check *s) // in tests/step/NAME.c; listed in step_cases (cases.c)
 *     {
 *         // on the device and in the precision under test
 *         sgt_backend *b = open_fixture(s, &f, &options, f.batch);
 *         ...
 *         expect(s, error <= bound, "loss %g", loss);
 *     }
 *
 * A case runs in the precisions that it lists. If the device is missing, all cases are skipped. */
#ifndef SGT_CHECK_STEP_H
#define SGT_CHECK_STEP_H

#include "kernels/cuda/runtime.h"
#include "tests/train/fixture.h"

typedef struct step_check {
    int cuda; /* 1: the backend under test is CUDA's; 0: the CPU's */
    sgt_precision precision;
    unsigned steps;    /* maximum steps of a curve (--steps) */
    uint32_t variants; /* variants of the CUDA step (train/backend.h) */
    int failures, skipped;
    char at[160]; /* description of what is being tested, for expect's messages */
} step_check;

/* Open a backend on the device under test, with the fixture's model and `rows` rows per micro-step,
 * and put the fixture's parameters. changes: options; NULL: the fixture's. A failure ends the
 * program. */
sgt_backend *open_fixture(step_check *s, fixture *f, const sgt_backend_options *changes,
                          uint32_t rows);
/* Open a backend on the CPU with options `o`, and put the fixture's parameters. */
sgt_backend *open_on_cpu(const fixture *f, const sgt_backend_options *o);
/* Open a backend as open_fixture does, without putting parameters. */
sgt_backend *open_bare(const step_check *s, const fixture *f);
/* Open a backend and close it again; return the result of opening. */
int try_open(step_check *s, const sgt_backend_options *o, sgt_error *err);
sgt_backend_options fixture_options(const step_check *s, const fixture *f, uint32_t rows);

/* Return the CUDA library's counts of calls (runtime.h); zeros on the CPU. */
sgt_cuda_counts counts_now(const step_check *s);

/* Unless ok, count one failure and print where it happened. */
void expect(step_check *s, int ok, const char *fmt, ...) SGT_PRINTF(3, 4);

/* Run steps `from` .. `from + steps - 1`, each over the fixture's rows in `micro` micro-steps.
 * Return the metrics of the last step. */
sgt_step_metrics run_steps(step_check *s, const fixture *f, sgt_backend *b, uint64_t from,
                           unsigned steps, uint32_t micro);
double relative_l2(const float *x, const double *want, size_t n);
double largest_difference(const float *x, const float *y, size_t n);
/* Return half a unit in the last place of the precision's matrices, as a relative error. */
double unit_of(sgt_precision p);

#endif
