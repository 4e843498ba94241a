/* advice.c: learning rates by model size, as the GPT-2 and GPT-3 papers and their reproductions report them. */
#include "advice.h"

#include <math.h>
#include <stddef.h>

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

double sgt_advice_scale_lr(double lr, uint64_t rows, uint64_t base) { return lr * (double)rows / (double)base; }
