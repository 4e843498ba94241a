/* advice.c: learning rates by model size, as the GPT-2 and GPT-3 papers and their reproductions report them; and what a
 * loss that is not a number asks for. */
#include "advice.h"

#include <math.h>
#include <stdio.h>

sgt_lr_range sgt_advice_lr(uint64_t parameters)
{
    static const sgt_lr_range table[] = {{124000000, 3e-4, 6e-4},
                                         {355000000, 1e-4, 3e-4},
                                         {774000000, 1e-4, 2e-4},
                                         {1500000000, 5e-5, 1e-4},
                                         {175000000000, 0.6e-4, 0.6e-4}};
    size_t best = 0;
    for (size_t i = 1; i < sizeof table / sizeof *table; i++)
        if (fabs(log((double)parameters / (double)table[i].parameters)) <
            fabs(log((double)parameters / (double)table[best].parameters)))
            best = i;
    return table[best];
}

int sgt_advice_lr_outside(uint64_t parameters, double lr)
{
    sgt_lr_range r = sgt_advice_lr(parameters);
    if (lr < r.low) return -1;
    return lr > r.high && parameters >= 124000000 / 2;
}

const char *sgt_advice_not_finite(char *buf, size_t n, uint64_t step, double loss, double grad_norm, double lr)
{
    if (isfinite(loss) && isfinite(grad_norm)) return NULL;
    double bad = isfinite(loss) ? grad_norm : loss;
    snprintf(buf, n,
             "step %llu: the %s is %s: start again with an lr 10 times lower (--lr %.3g); look at grad_norm in "
             "log.jsonl and at --grad-clip",
             (unsigned long long)step, isfinite(loss) ? "gradient norm" : "loss",
             isnan(bad) ? "not a number" : "infinite", lr / 10);
    return buf;
}

double sgt_advice_scale_lr(double lr, uint64_t rows, uint64_t base) { return lr * (double)rows / (double)base; }
