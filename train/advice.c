/* advice.c: recommends learning rates by model size, and detects problems in the losses during
 * training, such as a divergence. */
#include "train/advice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Return the range of learning rates for a model with fewer than SGT_LR_SMALLEST parameters. The
 * smallest model that was measured has 690,000 parameters, so still smaller models get the range of
 * that model. */
static sgt_lr_range small_range(uint64_t parameters)
{
    const double measured = 690000;
    double times = SGT_LR_SMALLEST / fmax((double)parameters, measured);
    return (sgt_lr_range){parameters, 3e-4, fmin(6e-4 * times, SGT_LR_MOST), 3e-4 * sqrt(times)};
}

sgt_lr_range sgt_advice_lr(uint64_t parameters)
{
    static const sgt_lr_range table[] = {{SGT_LR_SMALLEST, 3e-4, 6e-4, 3e-4},
                                         {355000000, 1e-4, 3e-4, 1e-4},
                                         {774000000, 1e-4, 2e-4, 1e-4},
                                         {1500000000, 5e-5, 1e-4, 5e-5},
                                         {175000000000, 0.6e-4, 0.6e-4, 0.6e-4}};
    const sgt_lr_range *r = table, *last = r + sizeof table / sizeof *table - 1;
    const double p = (double)parameters;
    if (parameters < SGT_LR_SMALLEST) return small_range(parameters);
    /* If the model's size lies between two published sizes, use the range of the nearer one. Sizes
     * are compared by their ratio, so the border between two published sizes is their geometric
     * mean. */
    while (r < last && p * p > (double)r[0].parameters * (double)r[1].parameters) r++;
    return *r;
}

/* Return the factor by which a learning rate that was chosen for `base` rows per step must be
 * multiplied for `rows` rows per step. If `rows` is at least `base`, the factor is 1. */
static double few_rows(uint64_t rows, uint64_t base)
{
    return rows < base ? pow((double)rows / (double)base, SGT_LR_ROWS_POWER) : 1;
}

double sgt_advice_auto_lr(uint64_t parameters, uint64_t rows, uint64_t base)
{
    double lr = sgt_advice_lr(parameters).chosen;
    if (rows < base) return lr * few_rows(rows, base);
    return fmin(sgt_advice_scale_lr(lr, rows, base), SGT_LR_MOST);
}

const char *sgt_advice_lr_outside(char *buf, size_t n, uint64_t parameters, uint64_t rows,
                                  double lr)
{
    /* number of rows per step for which the usual ranges of learning rates hold */
    const uint64_t base = 64;
    sgt_lr_range r = sgt_advice_lr(parameters);
    int below = lr < r.low * few_rows(rows, base) * (1 - 1e-9);
    if (!below && lr <= (rows > base ? sgt_advice_scale_lr(r.high, rows, base) : r.high))
        return NULL;
    snprintf(buf, n,
             "lr %.3g is %s the usual rates for models of about %.3g million parameters (%.3g to "
             "%.3g)",
             lr, below ? "below" : "above", (double)r.parameters / 1e6, r.low, r.high);
    return buf;
}

const char *sgt_advice_not_finite(char *buf, size_t n, uint64_t step, double loss, double grad_norm,
                                  double lr, const char *attention)
{
    if (isfinite(loss) && isfinite(grad_norm)) return NULL;
    double bad = isfinite(loss) ? grad_norm : loss;
    int other = isfinite(loss) && attention;
    snprintf(buf, n,
             "step %llu: the %s is %s%s: start again with %s%san lr 10 times lower (--lr %.3g); "
             "see grad_norm in log.jsonl and --grad-clip",
             (unsigned long long)step, isfinite(loss) ? "gradient norm" : "loss",
             isnan(bad) ? "not a number" : "infinite", other ? ", but the loss is finite" : "",
             other ? attention : "", other ? ", or with " : "", lr / 10);
    return buf;
}

const char *sgt_advice_gap(char *buf, size_t n, double loss, double loss_noise, double val_loss,
                           double val_noise)
{
    double gap = val_loss - loss, noise = sqrt(loss_noise * loss_noise + val_noise * val_noise);
    if (!(gap > SGT_GAP_NOISE * noise && gap > SGT_GAP_PART * loss)) return NULL;
    snprintf(buf, n,
             "the validation loss, %.4g, exceeds the training loss, %.4g, by more than their noise "
             "(%.1g): the model overfits, or the validation data differs from the training data "
             "(use more data, fewer --epochs, or --dropout 0.1)",
             val_loss, loss, noise);
    return buf;
}

/* ---- diagnosis ---- */

enum {
    TOLD_SWINGS = 1,
    TOLD_FLAT = 2,
    TOLD_SPIKE = 4,
    TOLD_NOT_FINITE = 8,
    TOLD_DIVERGED = 16,
    TOLD_HIGH = 32,
    TOLD_NORM = 64
};

void sgt_diagnosis_start(sgt_diagnosis *d, double lr, uint64_t tokens_per_step, int skipping)
{
    *d = (sgt_diagnosis){.lr = lr,
                         .chance = 6 * 4.5 / sqrt((double)tokens_per_step),
                         .skipping = skipping,
                         .extreme = HUGE_VAL,
                         .low = HUGE_VAL,
                         .block_steps = SGT_FLAT_BLOCK};
}

/* Compare two doubles in ascending order, for qsort. A NaN sorts after all numbers. */
static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y || isnan(x)) - (x < y || isnan(y));
}

/* Sort the n values at `of` (losses or norms) in place, and return their median. */
static double median(double *of, uint64_t n)
{
    qsort(of, n, sizeof *of, ascending);
    return of[n / 2];
}

/* Return the median of the n values in the ring buffer `ring` (d->recent or d->norms) that precede
 * the newest value. Also write these n values to `last`, in ascending order. */
static double median_of_last(const sgt_diagnosis *d, const double *ring, double *last, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) last[i] = ring[(d->seen - 2 - i) % SGT_SPIKE_STEPS];
    return median(last, n);
}

/* Return the mean of the latest n losses, or NaN if any of these losses is NaN. */
static double mean_of_last(const sgt_diagnosis *d, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 1; i <= n; i++) sum += d->recent[(d->seen - i) % SGT_SPIKE_STEPS];
    return sum / (double)n;
}

/* Update d->diverged. The run has diverged if the mean of the last SGT_MEAN_STEPS losses is NaN, or
 * exceeds d->start by more than noise can explain, for SGT_ABOVE_STEPS steps in a row or at the
 * last step. Noise explains a deviation of up to d->chance for a single loss. The difference of two
 * means of SGT_MEAN_STEPS losses is less noisy, so its limit is d->chance times sqrt(2 /
 * SGT_MEAN_STEPS).
 *
 * d->start, the loss at the start of the run, is the mean of the first SGT_MEAN_STEPS losses. If
 * the loss already rises during these steps, this mean is too high. Therefore d->start is limited
 * to the first loss plus a margin: a tenth of the first loss or, if that is more, d->chance / 2.
 * The margin is needed because the first loss is a single, noisy value. */
static void watch_start(sgt_diagnosis *d, uint64_t step, double loss)
{
    if (d->seen == 1) d->first = loss;
    if (d->seen < SGT_MEAN_STEPS) return;
    d->mean = mean_of_last(d, SGT_MEAN_STEPS);
    if (d->seen == SGT_MEAN_STEPS)
        d->start = fmin(d->mean, d->first + fmax(0.1 * d->first, d->chance / 2));
    int above =
        !isfinite(d->mean) || !(d->mean <= d->start + sqrt(2.0 / SGT_MEAN_STEPS) * d->chance);
    d->above = above ? d->above + 1 : 0;
    d->diverged = d->above >= SGT_ABOVE_STEPS || (above && step == d->steps);
}

/* Estimate the standard deviation of the noise in the last SGT_SWING_STEPS losses (or in all losses
 * so far, if there are fewer). If losses differ only by noise, the median absolute difference of
 * two losses is 0.954 times the standard deviation.
 *
 * Compute one estimate from pairs of losses that are 1 step apart, one from pairs 2 steps apart,
 * and so on up to SGT_NOISE_LAGS, and return the smallest estimate. Regular swings of the loss are
 * not noise, and the smallest estimate excludes them: if two losses are one period of the swings
 * apart, they differ almost only by noise. */
static double noise(const sgt_diagnosis *d)
{
    double apart[SGT_SWING_STEPS], least = HUGE_VAL;
    uint64_t n =
        d->seen - SGT_NOISE_LAGS < SGT_SWING_STEPS ? d->seen - SGT_NOISE_LAGS : SGT_SWING_STEPS;
    for (uint64_t lag = 1; lag <= SGT_NOISE_LAGS; lag++) {
        for (uint64_t i = 0; i < n; i++)
            apart[i] = fabs(d->recent[(d->seen - 1 - i) % SGT_SPIKE_STEPS] -
                            d->recent[(d->seen - 1 - i - lag) % SGT_SPIKE_STEPS]);
        least = fmin(least, median(apart, n) / 0.954);
    }
    return least;
}

static void record_rise(sgt_diagnosis *d, double from, double to)
{
    if (!(to - from > fmax(d->rise, SGT_RISE_PART * from))) return;
    d->from = from;
    d->rise = to - from;
}

/* Return whether the loss rose near the end of the warm-up by more than noise explains. The rise
 * must exceed two limits: the first is computed from the standard deviation that is expected for a
 * step of this many tokens, the second is five times the result of noise(). The rise itself
 * increases the result of noise() for SGT_SWING_STEPS steps. Therefore a rise that is below the
 * second limit is recorded, and is tested again at each later step. */
static int rises(sgt_diagnosis *d, uint64_t step, double lr_now)
{
    if (lr_now > d->lr_most) {
        d->lr_most = lr_now;
        d->warm = step;
    }
    if (step > d->warm + (uint64_t)2 * SGT_RISE_WITHIN || d->seen < SGT_RISE_STEPS) return 0;
    double *before = &d->means[d->seen % SGT_RISE_STEPS], mean = mean_of_last(d, SGT_RISE_STEPS);
    int spiked = d->spike && step < d->spike + SGT_RISE_STEPS; /* the mean includes a spike */
    if (step <= d->warm + SGT_RISE_WITHIN && !spiked) {
        if (d->seen >= (uint64_t)2 * SGT_RISE_STEPS) d->low = fmin(d->low, *before);
        record_rise(d, d->first, mean);
        record_rise(d, d->low, mean);
        *before = mean;
    }
    if (d->seen < SGT_SWING_STEPS + SGT_NOISE_LAGS) return 0;
    if (d->early && mean < SGT_RISE_STAYS * d->from) return 0;
    return d->rise > fmax(sqrt(2.0 / SGT_RISE_STEPS) * d->chance, 5 * noise(d));
}

/* Track how the loss swings up and down, ignoring changes that noise explains. Return whether the
 * loss oscillates, that is, whether its latest 2 * SGT_SWINGS changes of direction lie within
 * SGT_SWING_STEPS steps. */
static int oscillates(sgt_diagnosis *d, uint64_t step, double loss)
{
    const size_t n = sizeof d->turned / sizeof *d->turned;
    if (d->rising ? loss >= d->extreme : loss <= d->extreme) {
        d->extreme = loss;
        return 0;
    }
    double low = loss < d->extreme ? loss : d->extreme;
    if (fabs(loss - d->extreme) < fmax(d->chance, 0.1 * low)) return 0;
    if (d->seen < SGT_SWING_STEPS + SGT_NOISE_LAGS || fabs(loss - d->extreme) < 6 * noise(d))
        return 0;
    d->extreme = loss;
    d->rising = !d->rising;
    d->turned[d->turns++ % n] = step;
    return d->turns >= n && step - d->turned[d->turns % n] < SGT_SWING_STEPS;
}

/* Set d->before to the median of the SGT_SPIKE_BEFORE losses that precede `loss`, and return
 * whether `loss` is far above d->before. The difference must exceed each of four limits:
 * - SGT_SPIKE_PART times the median
 * - four times the standard deviation expected for a step of this many tokens
 * - twice the range (maximum minus minimum) of the preceding losses, which may fall or swing
 * - SGT_SPIKE_NOISE times the measured noise, tested last because measuring it takes longest */
static int is_far_above(sgt_diagnosis *d, double loss)
{
    double last[SGT_SPIKE_BEFORE];
    d->before = median_of_last(d, d->recent, last, SGT_SPIKE_BEFORE);
    double least = fmax(2 * d->chance / 3, 2 * (last[SGT_SPIKE_BEFORE - 1] - *last));
    return loss > d->before + fmax(least, SGT_SPIKE_PART * d->before) &&
           loss > d->before + SGT_SPIKE_NOISE * noise(d);
}

/* Look for a spike among the first SGT_SPIKE_LEAST losses. These losses fall steeply, so the median
 * of earlier losses does not predict the next loss. Instead, each loss is compared with the mean of
 * its two neighbours, the losses of the step before and the step after. If losses differ from a
 * straight line only by noise, the median absolute difference between a loss and this mean is 0.826
 * times the standard deviation of the noise. A spike is a loss far above both of its neighbours, or
 * two such losses in a row. */
static int has_early_spike(sgt_diagnosis *d, uint64_t step)
{
    double off[SGT_SPIKE_LEAST];
    const uint64_t n = d->seen < 3 ? 0 : d->seen - 2;
    for (uint64_t i = 0; i < n; i++)
        off[i] = fabs(d->recent[i + 1] - (d->recent[i] + d->recent[i + 2]) / 2);
    const double least = n ? fmax(2 * d->chance / 3, SGT_SPIKE_NOISE * median(off, n) / 0.826) : 0;
    for (uint64_t i = 0; i < n; i++) {
        const double *at = d->recent + i, before = at[0],
                     after = at[2] > before + least && i + 1 < n ? at[3] : at[2],
                     line = (before + after) / 2;
        if (!(at[1] > fmax(before, after) + least && at[1] > line * (1 + SGT_SPIKE_PART))) continue;
        d->spike = step - n + i;
        d->peak = at[1];
        d->before = line;
        return d->early = 1;
    }
    return 0;
}

/* Track a rise of the loss from d->before to its highest value, d->peak. Return 1 if a spike has
 * just ended, otherwise 0. A spike ends when the loss has fallen back by three quarters of the
 * rise, or at the last step of the run if the peak is at that step. If the loss does not fall back
 * within SGT_SPIKE_LASTS steps, the rise is not a spike: the cause may be different data. */
static int was_spike(sgt_diagnosis *d, uint64_t step, double loss)
{
    if (d->seen == SGT_SPIKE_LEAST + 1 && has_early_spike(d, step)) return 1;
    if (d->seen <= SGT_SPIKE_LEAST) return step == d->steps && has_early_spike(d, step);
    if (d->spiking ? loss > d->peak : is_far_above(d, loss)) {
        d->spiking = 1;
        d->spike = step;
        d->peak = loss;
    }
    int over = d->spiking && (4 * loss < 3 * d->before + d->peak || d->spike == d->steps);
    if (over || step >= d->spike + SGT_SPIKE_LASTS) d->spiking = 0;
    return over;
}

/* If grad_norm is a spike (far above the latest gradient norms), return the median of these norms,
 * otherwise 0. */
static double norm_before_spike(const sgt_diagnosis *d, double grad_norm)
{
    double last[SGT_SPIKE_STEPS];
    uint64_t n = d->seen < SGT_SPIKE_STEPS ? d->seen - 1 : SGT_SPIKE_STEPS - 1, below = 0;
    /* grad_norm is a spike if it exceeds SGT_SPIKE_NORM times the median norm. Count the norms for
     * which it exceeds SGT_SPIKE_NORM times the norm. Usually these are at most half of all norms,
     * so the median is not one of them, and need not be found by sorting. */
    for (uint64_t i = 0; i < n; i++) below += grad_norm > SGT_SPIKE_NORM * d->norms[i];
    return n >= SGT_SPIKE_BEFORE && below > n / 2 ? median_of_last(d, d->norms, last, n) : 0;
}

/* Return the mean of block[first..end-1]; each element is the mean loss of some steps. Set *error2
 * to the square of the standard error of the returned mean. */
static double mean_of(const double *block, unsigned first, unsigned end, double *error2)
{
    double sum = 0, squares = 0, n = end - first;
    for (unsigned i = first; i < end; i++) sum += block[i];
    for (unsigned i = first; i < end; i++) squares += (block[i] - sum / n) * (block[i] - sum / n);
    *error2 = squares / (n * (n - 1));
    return sum / n;
}

/* Return the mean loss over the second half of all steps if the loss is flat, otherwise 0. This
 * mean is compared with the mean over the quarter of the steps just before the second half. The
 * loss is flat if the difference of the two means and twice the standard error of this difference
 * are both below SGT_FLAT_PART times the loss. A loss below 0.5 nats never counts as flat, because
 * it cannot fall much further.
 *
 * Losses are stored in blocks: each element of d->block is the mean loss of block_steps successive
 * steps. When all SGT_FLAT_BLOCKS blocks are full, each pair of blocks is merged into one, and
 * block_steps is doubled. In this way, a fixed number of blocks covers a run of any length. */
static double flat_loss(sgt_diagnosis *d, double loss)
{
    double error2[2];
    d->sum += loss;
    if (++d->filled < d->block_steps) return 0;
    d->block[d->blocks++] = d->sum / d->filled;
    d->sum = 0;
    d->filled = 0;
    unsigned n = d->blocks;
    if (n == SGT_FLAT_BLOCKS) {
        for (size_t i = 0; i < n / 2; i++)
            d->block[i] = (d->block[2 * i] + d->block[2 * i + 1]) / 2;
        d->blocks = n = n / 2;
        d->block_steps *= 2;
    }
    if (n < SGT_FLAT_BLOCKS / 2) return 0;
    double before = mean_of(d->block, n / 4, n / 2, &error2[0]),
           after = mean_of(d->block, n / 2, n, &error2[1]);
    double least = SGT_FLAT_PART * after;
    int flat =
        after > 0.5 && fabs(before - after) < least && 2 * sqrt(error2[0] + error2[1]) < least;
    return flat ? after : 0;
}

static int first_time(sgt_diagnosis *d, unsigned what, int there)
{
    if (!there || d->told & what) return 0;
    d->told |= what;
    return 1;
}

/* Return advice about a loss spike at `step`: it names the options that would have limited or
 * skipped the update that caused the spike. It names --skip-spikes only if `step` is after step
 * SGT_SPIKE_STEPS, because that option does not detect spikes in earlier steps. */
static const char *against_spike(uint64_t step)
{
    return step > SGT_SPIKE_STEPS ? "a low --grad-clip limits such an update, and --skip-spikes 6 "
                                    "skips it"
                                  : "a low --grad-clip limits such an update";
}

/* A flat loss is reported only while the scheduled learning rate is at least half of --lr. During
 * the warm-up and the decay, the rate can be far below --lr. A flat loss at such a rate does not
 * show that --lr is wrong. */
const char *sgt_diagnosis_step(sgt_diagnosis *d, char *buf, size_t n, uint64_t step, double loss,
                               double grad_norm, double lr_now)
{
    unsigned long long s = step;
    d->norms[d->seen % SGT_SPIKE_STEPS] = grad_norm;
    d->recent[d->seen++ % SGT_SPIKE_STEPS] = loss;
    watch_start(d, step, loss);
    const char *bad = sgt_advice_not_finite(buf, n, step, loss, grad_norm, d->lr, d->attention);
    d->grave = 1;
    if (bad) return first_time(d, TOLD_NOT_FINITE, 1) ? bad : NULL;
    if (first_time(d, TOLD_DIVERGED, d->diverged && isfinite(d->mean))) {
        char start[48];
        if (d->start > d->first * (1 + 1e-9))
            snprintf(start, sizeof start, "%.4g at the first step", d->first);
        else snprintf(start, sizeof start, "%.4g over the first %d", d->start, SGT_MEAN_STEPS);
        snprintf(buf, n,
                 "step %llu: diverged: the loss is above its initial value: %.4g over the last %d "
                 "steps, %s (lower --lr, or let --lr auto choose it)",
                 s, d->mean, SGT_MEAN_STEPS, start);
        return buf;
    }
    d->grave = 0;
    /* after a divergence, give no other advice than to lower the learning rate */
    if (d->told & TOLD_DIVERGED) return NULL;
    double norm = norm_before_spike(d, grad_norm);
    int spiked = was_spike(d, step, loss);
    int swings = oscillates(d, step, loss), high = rises(d, step, lr_now);
    double flat = lr_now >= d->lr / 2 && !(d->told & TOLD_HIGH) ? flat_loss(d, loss) : 0;
    if (first_time(d, TOLD_HIGH, high && !d->above))
        snprintf(
            buf, n,
            "step %llu: the lr is too high: the loss rose from %.4g to %.4g at the start, where it "
            "should fall (make the lr 3 to 30 times lower, --lr %.3g to %.3g, or use --lr auto)",
            s, d->from, d->from + d->rise, d->lr / 3, d->lr / 30);
    else if (first_time(d, TOLD_SWINGS, swings))
        snprintf(buf, n,
                 "step %llu: the loss oscillates: it went up and down %d times in the last %d "
                 "steps (make the lr 2 to 10 times lower, --lr %.3g to %.3g)",
                 s, SGT_SWINGS, SGT_SWING_STEPS, d->lr / 2, d->lr / 10);
    else if (first_time(d, TOLD_FLAT, flat > 0))
        snprintf(buf, n,
                 "step %llu: the loss has stayed at %.4g for %u steps (make the lr 2 to 10 times "
                 "higher, --lr %.3g to %.3g)",
                 s, flat, d->blocks / 2 * d->block_steps, 2 * d->lr, 10 * d->lr);
    else if (first_time(d, TOLD_SPIKE,
                        spiked && !d->above && !d->skipping && !(d->told & TOLD_SWINGS)))
        snprintf(
            buf, n,
            "step %llu: the loss spikes: it is %.4g, which is %.2g above the steps around it (%s)",
            (unsigned long long)d->spike, d->peak, d->peak - d->before, against_spike(d->spike));
    else if (first_time(d, TOLD_NORM, norm > 0 && !d->skipping))
        snprintf(buf, n,
                 "step %llu: the gradient norm spikes: %.3g is %.0f times the median of earlier "
                 "steps (%s)",
                 s, grad_norm, grad_norm / norm, against_spike(step));
    else return NULL;
    return buf;
}

double sgt_advice_scale_lr(double lr, uint64_t rows, uint64_t base)
{
    return lr * (double)rows / (double)base;
}
