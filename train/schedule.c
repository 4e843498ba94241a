/* schedule.c: learning-rate schedules, pure functions of the step. */
#include "train/schedule.h"

#include <math.h>
#include <stddef.h>

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
