/* outliers.h: decides for CPU and GPU which updates --skip-spikes skips: those of steps whose loss
 * or gradient norm lies far above the recent ones, as llm.c's -sl and -sg do. A skipped step is not
 * entered into the history; otherwise a series of spikes would come to look normal.
 *
 *     sgt_outliers o = {0};
 *     if (sgt_outliers_take(&o, z, loss, norm)) ...;  // skip this update
 *
 * A run that resumes from a checkpoint makes the same decisions, because the sums are computed anew
 * each time, in array order. */
#ifndef SGT_OUTLIERS_H
#define SGT_OUTLIERS_H

#include <math.h>

#include "loader/base/philox.h" /* for SGT_EVERYWHERE */

#define SGT_OUTLIER_STEPS 128

typedef struct sgt_outliers {
    uint64_t taken;  /* steps accepted so far; step i is at i % SGT_OUTLIER_STEPS */
    uint64_t spikes; /* steps skipped so far */
    double loss[SGT_OUTLIER_STEPS], norm[SGT_OUTLIER_STEPS];
} sgt_outliers;

/* Return by how many standard deviations x lies above the mean of `last`, or 0 if all numbers of
 * `last` are equal. */
SGT_EVERYWHERE double sgt_outlier_z(const double *last, double x)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < SGT_OUTLIER_STEPS; i++) sum += last[i];
    double mean = sum / SGT_OUTLIER_STEPS;
    for (int i = 0; i < SGT_OUTLIER_STEPS; i++) squares += (last[i] - mean) * (last[i] - mean);
    return squares > 0 ? (x - mean) / sqrt(squares / SGT_OUTLIER_STEPS) : 0;
}

/* Return 1 if a step with this loss and norm, both finite, is a spike: either is more than z
 * standard deviations above its mean. Otherwise record the step and return 0. Returns 0 until the
 * history holds SGT_OUTLIER_STEPS steps. */
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
