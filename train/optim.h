/* optim.h: the optimizer's settings and its arithmetic, shared by every backend. */
#ifndef SGT_OPTIM_H
#define SGT_OPTIM_H

#include <stdint.h>

#include "kernels.h"

typedef enum sgt_optim_kind { SGT_ADAMW, SGT_SGD } sgt_optim_kind;

typedef struct sgt_optim {
    sgt_optim_kind kind;
    float beta1, beta2, eps; /* AdamW's */
    float momentum;          /* SGD's; its momentum stands where AdamW has its first moment */
    int nesterov;
    float weight_decay; /* decoupled, on tensors of two dimensions only */
    float grad_clip;    /* the global norm gradients are clipped to; 0: not at all */
} sgt_optim;

/* What gradients are multiplied by so that their norm is at most o->grad_clip. */
double sgt_optim_clip(const sgt_optim *o, double norm);

/* The numbers of the update that comes after `step` others. decay: whether the tensor has two
 * dimensions. */
sgt_adamw sgt_optim_adamw(const sgt_optim *o, uint64_t step, double lr, double grad_scale,
                          int decay);
sgt_sgd sgt_optim_sgd(const sgt_optim *o, double lr, double grad_scale, int decay);

#endif
