/* advice.h: what is known about learning rates by model size. */
#ifndef SGT_ADVICE_H
#define SGT_ADVICE_H

#include <stdint.h>

typedef struct sgt_lr_range {
    uint64_t parameters; /* the published model nearest in size (by ratio) */
    double low, high;
} sgt_lr_range;

sgt_lr_range sgt_advice_lr(uint64_t parameters);

/* lr for a step of `rows` rows where it was meant for `base` rows: linear scaling (Goyal et al., 2017). */
double sgt_advice_scale_lr(double lr, uint64_t rows, uint64_t base);

#endif
