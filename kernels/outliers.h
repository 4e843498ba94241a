/* outliers.h: which updates --skip-spikes leaves out, on a CPU and on a GPU: those of steps whose
 * loss or gradient norm lies far above the last ones', as llm.c's -sl and -sg do; but what is left
 * out is not among those looked back at, so that a row of spikes does not come to look like the
 * rule.
 *
 *     sgt_outliers o = {0};
 *     if (sgt_outliers_take(&o, z, loss, norm)) ...;  // leave this update out
 *
 * The same answers after a checkpoint: sums are made anew each time, in the order of places. */
#ifndef SGT_OUTLIERS_H
#define SGT_OUTLIERS_H

#include <math.h>

#include "base/philox.h" /* SGT_EVERYWHERE */

#define SGT_OUTLIER_STEPS 128

typedef struct sgt_outliers {
    uint64_t taken;  /* steps that went in so far: number i stands at i % SGT_OUTLIER_STEPS */
    uint64_t spikes; /* steps that did not */
    double loss[SGT_OUTLIER_STEPS], norm[SGT_OUTLIER_STEPS];
} sgt_outliers;

/* Standard deviations that x lies above the mean of those; 0 where they are all the same. */
SGT_EVERYWHERE double sgt_outlier_z(const double *last, double x)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < SGT_OUTLIER_STEPS; i++) sum += last[i];
    double mean = sum / SGT_OUTLIER_STEPS;
    for (int i = 0; i < SGT_OUTLIER_STEPS; i++) squares += (last[i] - mean) * (last[i] - mean);
    return squares > 0 ? (x - mean) / sqrt(squares / SGT_OUTLIER_STEPS) : 0;
}

/* Whether a step with these numbers, both finite, is a spike: never before there are as many to
 * look back at. */
SGT_EVERYWHERE int sgt_outliers_take(sgt_outliers *o, double z, double loss, double norm)
{
    if (o->taken >= SGT_OUTLIER_STEPS &&
        (sgt_outlier_z(o->loss, loss) > z || sgt_outlier_z(o->norm, norm) > z)) {
        o->spikes++;
        return 1;
    }
    o->loss[o->taken % SGT_OUTLIER_STEPS] = loss;
    o->norm[o->taken % SGT_OUTLIER_STEPS] = norm;
    o->taken++;
    return 0;
}

#endif
