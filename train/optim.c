/* optim.c: the learning rate of a step, gradient clipping, and the constants of an update. */
#include "train/optim.h"

#include <math.h>
#include <stddef.h>

double sgt_optim_clip(const sgt_optim *o, double norm)
{
    double most = (double)(float)o->grad_clip;
    if (!(most > 0)) return 1;
    /* like torch.nn.utils.clip_grad_norm_ */
    double scale = most / (norm + 1e-6);
    return scale < 1 ? scale : 1;
}

sgt_adamw sgt_optim_adamw(const sgt_optim *o, uint64_t step, double lr, double grad_scale,
                          int decay)
{
    double t = (double)step + 1;
    return (sgt_adamw){
        .lr = (float)lr,
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .eps = o->eps,
        .decay = decay ? (float)o->weight_decay : 0,
        .grad_scale = (float)grad_scale,
        .c1 = 1 - pow((double)o->beta1, t),
        .c2 = 1 - pow((double)o->beta2, t),
    };
}

sgt_muon_update sgt_optim_muon(const sgt_optim *o, double lr, double grad_scale)
{
    return (sgt_muon_update){
        .lr = (float)lr, .decay = (float)o->weight_decay, .grad_scale = (float)grad_scale};
}

sgt_sgd sgt_optim_sgd(const sgt_optim *o, double lr, double grad_scale, int decay)
{
    return (sgt_sgd){
        .lr = (float)lr,
        .momentum = (float)o->momentum,
        .decay = decay ? (float)o->weight_decay : 0,
        .grad_scale = (float)grad_scale,
        .nesterov = o->nesterov,
    };
}

const char *const sgt_schedule_words[] = {"cosine", "linear", "constant", "wsd", NULL};

/* Return how far s has come from `from` to `to`, from 0 to 1. */
static double part(uint64_t s, uint64_t from, uint64_t to)
{
    if (s <= from) return 0;
    return s >= to ? 1 : (double)(s - from) / (double)(to - from);
}

double sgt_schedule_lr(const sgt_schedule *c, uint64_t s)
{
    double range = c->lr - c->min_lr;
    if (s < c->warmup) return c->lr * (double)(s + 1) / (double)c->warmup;
    switch (c->kind) {
    case SGT_COSINE:
        return c->min_lr + range * 0.5 * (1 + cos(M_PI * part(s, c->warmup, c->steps)));
    case SGT_LINEAR: return c->lr - range * part(s, c->warmup, c->steps);
    case SGT_WSD: {
        uint64_t decay = c->steps - c->steps / 5;
        return c->lr - range * part(s, decay > c->warmup ? decay : c->warmup, c->steps);
    }
    default: return c->lr;
    }
}
