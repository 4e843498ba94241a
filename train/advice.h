/* advice.h: what is known about learning rates by model size, and about losses that go wrong. */
#ifndef SGT_ADVICE_H
#define SGT_ADVICE_H

#include <stddef.h>
#include <stdint.h>

typedef struct sgt_lr_range {
    uint64_t parameters; /* the published model nearest in size (by ratio) */
    double low, high;
} sgt_lr_range;

sgt_lr_range sgt_advice_lr(uint64_t parameters);

/* -1: lr is below the range of such models, 1: above, 0: neither. Of models under half of the smallest published one
 * none is above: small ones are trained with far higher rates, and nobody has published how high. */
int sgt_advice_lr_outside(uint64_t parameters, double lr);

/* lr for a step of `rows` rows where it was meant for `base` rows: linear scaling (Goyal et al., 2017). */
double sgt_advice_scale_lr(double lr, uint64_t rows, uint64_t base);

/* What to do once step `step` (counted from 1) ended with a loss or a gradient norm that is not finite, into buf, which
 * is returned; NULL where both are. lr: what the run was given. */
const char *sgt_advice_not_finite(char *buf, size_t n, uint64_t step, double loss, double grad_norm, double lr);

#endif
