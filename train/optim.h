/* optim.h: settings and arithmetic of the optimizer, shared by all backends, and learning-rate
 * schedules. */
#ifndef SGT_OPTIM_H
#define SGT_OPTIM_H

#include <stdint.h>

#include "kernels/kernels.h"
#include "kernels/muon.h"

/* SGT_MUON: Muon for the matrices of blocks (kernels/muon.h), AdamW for all other tensors */
typedef enum sgt_optim_kind { SGT_ADAMW, SGT_SGD, SGT_MUON } sgt_optim_kind;

/* The command line writes most of these. They are rounded to float where they are used. */
typedef struct sgt_optim {
    sgt_optim_kind kind;
    float beta1, beta2, eps; /* for AdamW, also beside Muon */
    int bf16_moments;        /* 1: AdamW stores its moments in bfloat16 (kernels/moments.h) */
    double momentum;         /* for SGD; its momentum is stored where AdamW has the first moment */
    int nesterov;
    double weight_decay; /* decoupled weight decay, on tensors of two dimensions only */
    /* largest global norm of the gradients of SGD and AdamW (Muon's are not clipped, but count
     * towards the norm); 0: no clipping */
    double grad_clip;
} sgt_optim;

/* Return the factor for gradients of norm `norm` that scales them to at most o->grad_clip. */
double sgt_optim_clip(const sgt_optim *o, double norm);

/* Return the constants of an update; for AdamW, of the one after `step` earlier ones. decay:
 * whether the tensor has two dimensions, so that weight decay applies. */
sgt_adamw sgt_optim_adamw(const sgt_optim *o, uint64_t step, double lr, double grad_scale,
                          int decay);
sgt_sgd sgt_optim_sgd(const sgt_optim *o, double lr, double grad_scale, int decay);
sgt_muon_update sgt_optim_muon(const sgt_optim *o, double lr, double grad_scale);

typedef enum sgt_schedule_kind {
    SGT_COSINE,
    SGT_LINEAR,
    SGT_CONSTANT,
    SGT_WSD,
    SGT_SCHEDULES
} sgt_schedule_kind;

typedef struct sgt_schedule {
    sgt_schedule_kind kind;
    double lr, min_lr;
    uint64_t warmup, steps; /* the warm-up may be longer than the run */
} sgt_schedule;

extern const char *const sgt_schedule_words[]; /* "cosine", "linear", "constant", "wsd"; NULL */

/* Return the learning rate at step s (from 0) of S = c->steps. It is lr*(s+1)/warmup while s <
 * warmup; then, by kind:
 *   cosine, linear: from lr at s = warmup to min_lr at s = S
 *   constant: lr
 *   wsd: lr, and over the last fifth of the run linearly to min_lr ("warm-up, stable, decay") */
double sgt_schedule_lr(const sgt_schedule *c, uint64_t s);

#endif
