/* cases.h: the cases of check-step, in order. */
#ifndef SGT_STEP_CASES_H
#define SGT_STEP_CASES_H

#include "tests/step/check-step.h"

typedef struct step_case {
    const char *name;
    void (*body)(step_check *s);
    int precisions; /* bit p: the case runs in precision p */
    int cuda_only;
    int by_name; /* 1: the case runs only if --case names it */
} step_case;

extern const step_case step_cases[]; /* ended by a zeroed one */

/* Result of three_steps (cases.c): loss and norm of the last step, then all parameters (p) and
 * first moments (m), n each. */
typedef struct outcome {
    double loss, norm;
    float *p, *m;
    size_t n;
} outcome;
outcome three_steps(step_check *s, const sgt_backend_options *o, const char *shape, uint32_t micro);
void forget(outcome *r);
SCOPED_STRUCT(outcome, forget)
void expect_same(step_check *s, const outcome *a, const outcome *b);
/* Check that losses and norms, which differ by rounding, agree within the precision's bound. */
void expect_near(step_check *s, double loss, double want_loss, double norm, double want_norm);
void expect_near_outcome(step_check *s, const outcome *r, const outcome *want);
/* Return the fixture's options. On CUDA nothing is chosen by timing, so that two backends compute
 * the same products. */
sgt_backend_options options_of(const step_check *s, const char *shape, uint32_t micro);
/* Run three steps of tiny_tanh with options `o`, and check that they have the same bits (near_steps:
 * are near). at: description for messages. */
void same_steps(step_check *s, const outcome *want, const sgt_backend_options *o, const char *at);
void near_steps(step_check *s, const outcome *want, const sgt_backend_options *o, const char *at);
/* Run a fixture's steps, with the fixture's options if its name begins with options_. Compare
 * losses, norms and the first step's gradients with PyTorch's numbers, within the precision's
 * bounds. In fp32, also compare the last parameters, within a fifth of a step. */
void expect_pytorch(step_check *s, const char *name, sgt_gelu_kind gelu);
void as_pytorch(step_check *s); /* three fixtures, with the default options */

/* variants.c */
void variants(step_check *s);
void variants_used(step_check *s);
void head_chunks(step_check *s);
void gradients_written(step_check *s);

/* cuda_cases.c */
void switches(step_check *s);
void hopper(step_check *s);
void cudnn(step_check *s);
void waits(step_check *s);
void launches(step_check *s);
void norm_weights(step_check *s);

/* documents.c */
void documents(step_check *s);

/* muon.c */
void muon(step_check *s);
void muon_on_cuda(step_check *s);
/* Check that two backends have the same parameters and moments. */
void expect_same_states(step_check *s, sgt_backend *a, sgt_backend *b, const sgt_model *m);

/* curves.c: 200 steps, or fewer with --steps */
void curve_plain(step_check *s);
void curve_odd(step_check *s);
void curve_deep(step_check *s);

#endif
