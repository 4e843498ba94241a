/* advice.c: published and measured learning rates by model size, and the diagnosis of losses. */
#include "train/advice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Return the range for a model smaller than SGT_LR_SMALLEST. Models smaller than the smallest
 * measured one get that one's rates. */
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
    size_t best = 0;
    if (parameters < SGT_LR_SMALLEST) return small_range(parameters);
    for (size_t i = 1; i < sizeof table / sizeof *table; i++)
        if (fabs(log((double)parameters / (double)table[i].parameters)) <
            fabs(log((double)parameters / (double)table[best].parameters)))
            best = i;
    return table[best];
}

/* Return the factor of the learning rate for steps of fewer rows than `base`; it is 1 from `base`
 * rows on. */
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

int sgt_advice_lr_outside(uint64_t parameters, uint64_t rows, double lr)
{
    const uint64_t base = 64; /* rows per step for which the ranges hold */
    sgt_lr_range r = sgt_advice_lr(parameters);
    if (lr < r.low * few_rows(rows, base) * (1 - 1e-9)) return -1;
    return lr > (rows > base ? sgt_advice_scale_lr(r.high, rows, base) : r.high);
}

const char *sgt_advice_not_finite(char *buf, size_t n, uint64_t step, double loss, double grad_norm,
                                  double lr)
{
    if (isfinite(loss) && isfinite(grad_norm)) return NULL;
    double bad = isfinite(loss) ? grad_norm : loss;
    snprintf(buf, n,
             "step %llu: the %s is %s: start again with an lr 10 times lower (--lr %.3g); look at "
             "grad_norm in log.jsonl and at --grad-clip",
             (unsigned long long)step, isfinite(loss) ? "gradient norm" : "loss",
             isnan(bad) ? "not a number" : "infinite", lr / 10);
    return buf;
}

const char *sgt_advice_gap(char *buf, size_t n, double loss, double loss_noise, double val_loss,
                           double val_noise)
{
    double gap = val_loss - loss, noise = sqrt(loss_noise * loss_noise + val_noise * val_noise);
    if (!(gap > SGT_GAP_NOISE * noise && gap > SGT_GAP_PART * loss)) return NULL;
    snprintf(
        buf, n,
        "the validation loss, %.4g, is above the training loss, %.4g, by more than their noise "
        "(%.1g): the model learns its data by heart, or the texts for validation are of "
        "another kind (more data, fewer --epochs, or --dropout 0.1)",
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

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sort n numbers, and return their median. */
static double median(double *of, uint64_t n)
{
    qsort(of, n, sizeof *of, ascending);
    return of[n / 2];
}

/* Return the median of the last n values of `ring`, which is d->recent or d->norms. */
static double median_of_last(const sgt_diagnosis *d, const double *ring, uint64_t n)
{
    double last[SGT_SPIKE_STEPS];
    for (uint64_t i = 0; i < n; i++) last[i] = ring[(d->seen - 1 - i) % SGT_SPIKE_STEPS];
    return median(last, n);
}

/* Return the mean of the last n losses (n is at most SGT_MEAN_STEPS), or NaN if one of them is
 * NaN. */
static double mean_of_last(const sgt_diagnosis *d, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 1; i <= n; i++) sum += d->last[(d->counted - i) % SGT_MEAN_STEPS];
    return sum / (double)n;
}

/* Update d->diverged. Chance must not look like divergence: the difference of two means of
 * SGT_MEAN_STEPS losses deviates by sqrt(2 / SGT_MEAN_STEPS) of what one loss does. The start is
 * the mean of the first SGT_MEAN_STEPS losses. If they rise, it is at most the first loss plus a
 * margin, because one loss alone is uncertain: a tenth of it, or d->chance / 2 if that is more. */
static void watch_start(sgt_diagnosis *d, uint64_t step, double loss)
{
    if (d->counted == 0) d->first = loss;
    d->last[d->counted++ % SGT_MEAN_STEPS] = loss;
    if (d->counted < SGT_MEAN_STEPS) return;
    d->mean = mean_of_last(d, SGT_MEAN_STEPS);
    if (d->counted == SGT_MEAN_STEPS)
        d->start = fmin(d->mean, d->first + fmax(0.1 * d->first, d->chance / 2));
    int above =
        !isfinite(d->mean) || !(d->mean <= d->start + sqrt(2.0 / SGT_MEAN_STEPS) * d->chance);
    d->above = above ? d->above + 1 : 0;
    d->diverged = d->above >= SGT_ABOVE_STEPS || (above && step == d->steps);
}

/* Estimate the noise of the last losses, SGT_SWING_STEPS or as many as there are, as a standard
 * deviation: half of the differences between two noisy losses are less than .954 of it. Return the
 * least estimate over pairs 1 to 4 steps apart, because a loss that swings is close to one of the
 * four losses before it, and noise is not. */
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

/* Return whether the loss rose, near the end of the warm-up, by more than chance: by six standard
 * deviations for the number of tokens, and five of the measured noise. For SGT_SWING_STEPS steps
 * the rise itself counts as noise, so test again at every step. */
static int rises(sgt_diagnosis *d, uint64_t step, double lr_now)
{
    if (lr_now > d->lr_most) {
        d->lr_most = lr_now;
        d->warm = step;
    }
    if (step > d->warm + (uint64_t)2 * SGT_RISE_WITHIN || d->counted < SGT_RISE_STEPS) return 0;
    double *before = &d->means[d->counted % SGT_RISE_STEPS], mean = mean_of_last(d, SGT_RISE_STEPS);
    int spiked = d->spike && step < d->spike + SGT_RISE_STEPS; /* the mean has a spike in it */
    if (step <= d->warm + SGT_RISE_WITHIN && !spiked) {
        if (d->counted >= (uint64_t)2 * SGT_RISE_STEPS) d->low = fmin(d->low, *before);
        record_rise(d, d->first, mean);
        record_rise(d, d->low, mean);
        *before = mean;
    }
    if (d->seen < SGT_SWING_STEPS + SGT_NOISE_LAGS) return 0;
    return d->rise > fmax(sqrt(2.0 / SGT_RISE_STEPS) * d->chance, 5 * noise(d));
}

/* Track swings larger than noise, from one extreme of the loss to the next. Return whether they are
 * frequent. */
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

/* Return whether `loss` is a spike: after SGT_SPIKE_STEPS steps, SGT_SPIKE_Z standard deviations
 * above their mean; earlier, and while the losses fall so fast that their deviation says little,
 * SGT_SPIKE_NOISE times the noise above `before`, the losses just before, but not for a small part
 * of these. The noise is estimated last, because that takes the longest. */
static int is_spike(const sgt_diagnosis *d, double loss, double before)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < SGT_SPIKE_STEPS; i++) sum += d->recent[i];
    double mean = sum / SGT_SPIKE_STEPS;
    for (size_t i = 0; i < SGT_SPIKE_STEPS; i++)
        squares += (d->recent[i] - mean) * (d->recent[i] - mean);
    double least = fmax(fmax(d->chance, 0.1 * mean), SGT_SPIKE_Z * sqrt(squares / SGT_SPIKE_STEPS));
    if (d->seen >= SGT_SPIKE_STEPS && loss > mean + least) return 1;
    return loss > before + fmax(d->chance, SGT_SPIKE_PART * before) &&
           loss > before + SGT_SPIKE_NOISE * noise(d);
}

/* Set *before and *norm to the medians of the last losses and gradient norms if `loss` or grad_norm
 * is a spike above them, else to 0. Then add the two to the last ones. */
static void find_spikes(sgt_diagnosis *d, double loss, double grad_norm, double *before,
                        double *norm)
{
    uint64_t n = d->seen < SGT_SPIKE_STEPS ? d->seen : SGT_SPIKE_STEPS, below = 0;
    *before = *norm = 0;
    if (n >= SGT_SPIKE_BEFORE) {
        double loss_before = median_of_last(d, d->recent, SGT_SPIKE_BEFORE);
        if (n >= SGT_SPIKE_LEAST && is_spike(d, loss, loss_before)) *before = loss_before;
        /* of most steps this tells, without sorting, that their norm is not above the median */
        for (uint64_t i = 0; i < n; i++) below += grad_norm > SGT_SPIKE_NORM * d->norms[i];
        if (below > n / 2) *norm = median_of_last(d, d->norms, n);
    }
    d->norms[d->seen % SGT_SPIKE_STEPS] = grad_norm;
    d->recent[d->seen++ % SGT_SPIKE_STEPS] = loss;
}

/* Return the mean of blocks first .. end - 1, and set *error2 to the square of its standard
 * error. */
static double mean_of(const double *block, unsigned first, unsigned end, double *error2)
{
    double sum = 0, squares = 0, n = end - first;
    for (unsigned i = first; i < end; i++) sum += block[i];
    for (unsigned i = first; i < end; i++) squares += (block[i] - sum / n) * (block[i] - sum / n);
    *error2 = squares / (n * (n - 1));
    return sum / n;
}

/* Return the loss if it is flat, else 0. It is flat if the last half of all steps lowered it by
 * less than SGT_FLAT_PART, measured with a small enough error. A rising loss is not flat, nor is
 * one below half a nat, which has little left to lose. Steps are averaged in blocks; when all
 * blocks are full, pairs are merged and the block size doubles, so the beginning is kept. */
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

/* A flat loss says something about --lr only while the schedule is near that rate, not during the
 * warm-up or a decay. */
const char *sgt_diagnosis_step(sgt_diagnosis *d, char *buf, size_t n, uint64_t step, double loss,
                               double grad_norm, double lr_now)
{
    unsigned long long s = step;
    watch_start(d, step, loss);
    const char *bad = sgt_advice_not_finite(buf, n, step, loss, grad_norm, d->lr);
    d->grave = 1;
    if (bad) return first_time(d, TOLD_NOT_FINITE, 1) ? bad : NULL;
    if (first_time(d, TOLD_DIVERGED, d->diverged && isfinite(d->mean))) {
        char start[48];
        if (d->start > d->first * (1 + 1e-9))
            snprintf(start, sizeof start, "%.4g at the first step", d->first);
        else snprintf(start, sizeof start, "%.4g over the first %d", d->start, SGT_MEAN_STEPS);
        snprintf(buf, n,
                 "step %llu: diverged: the loss is above where it started; lower --lr (%.4g over "
                 "the last %d steps, %s; --lr auto chooses a rate)",
                 s, d->mean, SGT_MEAN_STEPS, start);
        return buf;
    }
    d->grave = 0;
    /* a run that has diverged needs only the advice to lower the rate */
    if (d->told & TOLD_DIVERGED) return NULL;
    double before, norm;
    find_spikes(d, loss, grad_norm, &before, &norm);
    if (before > 0) d->spike = step;
    int swings = oscillates(d, step, loss), high = rises(d, step, lr_now);
    double flat = lr_now >= d->lr / 2 ? flat_loss(d, loss) : 0;
    if (d->told & TOLD_HIGH) flat = 0;
    if (first_time(d, TOLD_HIGH, high && !d->above))
        snprintf(
            buf, n,
            "step %llu: the lr is too high: the loss rose from %.4g to %.4g at first, where it "
            "should fall: lower the lr 3 to 30 times (--lr %.3g to %.3g), or give --lr auto",
            s, d->from, d->from + d->rise, d->lr / 3, d->lr / 30);
    else if (first_time(d, TOLD_SWINGS, swings))
        snprintf(buf, n,
                 "step %llu: the loss oscillates, up and down %d times in the last %d steps: lower "
                 "the lr 2 to 10 times (--lr %.3g to %.3g)",
                 s, SGT_SWINGS, SGT_SWING_STEPS, d->lr / 2, d->lr / 10);
    else if (first_time(d, TOLD_FLAT, flat > 0))
        snprintf(buf, n,
                 "step %llu: the loss has been flat for %u steps, at %.4g: raise the lr 2 to 10 "
                 "times (--lr %.3g to %.3g)",
                 s, d->blocks / 2 * d->block_steps, flat, 2 * d->lr, 10 * d->lr);
    else if (first_time(d, TOLD_SPIKE,
                        before > 0 && !d->above && !d->skipping && !(d->told & TOLD_SWINGS)))
        snprintf(buf, n,
                 "step %llu: the loss spikes: %.4g, %.2g above the steps before: --skip-spikes %d "
                 "leaves such updates out, from step %d on",
                 s, loss, loss - before, SGT_SPIKE_Z, SGT_SPIKE_STEPS + 1);
    else if (first_time(d, TOLD_NORM, norm > 0 && !d->skipping))
        snprintf(buf, n,
                 "step %llu: the gradient norm spikes: %.3g is %.0f times the median of the steps "
                 "before: --grad-clip 1 bounds such an update, and --skip-spikes %d leaves it out, "
                 "from step %d on",
                 s, grad_norm, grad_norm / norm, SGT_SPIKE_Z, SGT_SPIKE_STEPS + 1);
    else return NULL;
    return buf;
}

double sgt_advice_scale_lr(double lr, uint64_t rows, uint64_t base)
{
    return lr * (double)rows / (double)base;
}
