/* outliers.h: decides which updates the option --skip-spikes skips, on CPU and GPU. An update is
 * skipped if the loss or the gradient norm of its step is far above the average over recent steps,
 * as with llm.c's options -sl and -sg. A skipped step is not added to the history, because several
 * spikes in a row would otherwise seem normal.
 *
 *     sgt_outliers o = {0};
 *     if (sgt_outliers_take(&o, z, loss, norm)) ...;  // skip this update
 *
 * A resumed run makes the same decisions as an uninterrupted one: each decision computes mean and
 * deviation anew from the history, in the order of the array, and checkpoints store the history. */
#ifndef SGT_OUTLIERS_H
#define SGT_OUTLIERS_H

#include <math.h>

#include "loader/base/philox.h" /* for SGT_EVERYWHERE */

#define SGT_OUTLIER_STEPS 128

typedef struct sgt_outliers {
    /* number of steps that were added to the history since the run began (skipped steps are not
     * added); the i-th step that was added, counted from 0, is at index i % SGT_OUTLIER_STEPS of
     * `loss` and `norm` */
    uint64_t taken;
    uint64_t spikes; /* steps skipped so far */
    double loss[SGT_OUTLIER_STEPS], norm[SGT_OUTLIER_STEPS];
} sgt_outliers;

/* Return the number of standard deviations by which x is above the mean of the SGT_OUTLIER_STEPS
 * values in `last`. Return 0 if all of these values are equal. */
SGT_EVERYWHERE double sgt_outlier_z(const double *last, double x)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < SGT_OUTLIER_STEPS; i++) sum += last[i];
    double mean = sum / SGT_OUTLIER_STEPS;
    for (int i = 0; i < SGT_OUTLIER_STEPS; i++) squares += (last[i] - mean) * (last[i] - mean);
    return squares > 0 ? (x - mean) / sqrt(squares / SGT_OUTLIER_STEPS) : 0;
}

/* Return 1 if a step with this loss and this gradient norm is a spike. Otherwise add the step to
 * the history and return 0. A step is a spike if its loss or its norm is more than z standard
 * deviations above the mean of the history. Until the history has SGT_OUTLIER_STEPS steps, no step
 * is a spike. loss and norm must be finite. */
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
