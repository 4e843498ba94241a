/* advice.h: recommends learning rates by model size, and detects problems in the losses during
 * training, such as a divergence. */
#ifndef SGT_ADVICE_H
#define SGT_ADVICE_H

#include <stddef.h>
#include <stdint.h>

/* The usual range of learning rates for a model of one size, trained with AdamW and 64 rows
 * (sequences) per step. */
typedef struct sgt_lr_range {
    /* Number of parameters of the model to which the range belongs. If the caller's model has
     * SGT_LR_SMALLEST or more parameters, this is the published model whose size is nearest, by
     * ratio. For a smaller model, the range is computed, and this is the size of the caller's
     * model. */
    uint64_t parameters;
    double low, high;
    /* learning rate that --lr auto chooses with 64 rows per step: equal to `low` for models of at
     * least SGT_LR_SMALLEST parameters, higher than `low` for smaller models */
    double chosen;
} sgt_lr_range;

#define SGT_LR_SMALLEST 124000000 /* number of parameters of the smallest published model */
/* Maximum of the learning rate that --lr auto chooses. For models below SGT_LR_SMALLEST parameters,
 * also the maximum of `high`. */
#define SGT_LR_MOST 0.01

/* Return the usual range of learning rates for a model with this number of parameters. For
 * SGT_LR_SMALLEST or more parameters, the range comes from the GPT-2 and GPT-3 papers and their
 * reproductions. For smaller models, it was measured with tests/data/measure_lr.sh (see the table
 * in sgt-train(1)). With r = SGT_LR_SMALLEST / parameters, the field `chosen` is proportional to
 * sqrt(r), and the field `high` to r. */
sgt_lr_range sgt_advice_lr(uint64_t parameters);

/* Return the learning rate that --lr auto chooses for `rows` rows per step. If `rows` equals
 * `base`, this is the field `chosen` returned by sgt_advice_lr. For more rows, that rate is
 * multiplied by rows / base, but the result is at most SGT_LR_MOST. For fewer rows, it is
 * multiplied by (rows / base) to the power of SGT_LR_ROWS_POWER. */
double sgt_advice_auto_lr(uint64_t parameters, uint64_t rows, uint64_t base);

/* exponent of (rows / base) in sgt_advice_auto_lr if `rows` is less than `base`; measured with 4 to
 * 64 rows per step */
#define SGT_LR_ROWS_POWER 0.25

/* If `lr` is outside the usual range for this model size and `rows` rows per step, write a sentence
 * that says so to `buf` and return `buf`; otherwise return NULL. The range returned by
 * sgt_advice_lr holds for 64 rows per step. For fewer rows, its lower end is multiplied by the same
 * factor as the rate of --lr auto. For more rows, its upper end is multiplied by rows / 64. */
const char *sgt_advice_lr_outside(char *buf, size_t n, uint64_t parameters, uint64_t rows,
                                  double lr);

/* Convert `lr`, a learning rate for `base` rows per step, to a rate for `rows` rows per step, and
 * return it. The rule is linear scaling (Goyal et al., 2017): the rate is proportional to the
 * number of rows. */
double sgt_advice_scale_lr(double lr, uint64_t rows, uint64_t base);

/* If the loss or the gradient norm of step `step` (from 1) is infinite or NaN, write advice to
 * `buf` and return `buf`; otherwise return NULL. `lr` is the learning rate of the run. `attention`
 * is the text sgt_backend.attention, which becomes part of the advice if only the gradient norm is
 * infinite or NaN. */
const char *sgt_advice_not_finite(char *buf, size_t n, uint64_t step, double loss, double grad_norm,
                                  double lr, const char *attention);

/* If the validation loss is significantly above the training loss, write advice to `buf` and return
 * `buf`; otherwise return NULL. loss_noise and val_noise are the standard errors of the two losses;
 * if either is NaN (unknown), return NULL. The difference of the losses is significant if it
 * exceeds SGT_GAP_NOISE times their combined standard error. The difference must also exceed
 * SGT_GAP_PART times the training loss, because the validation text may simply be a little more
 * difficult. */
const char *sgt_advice_gap(char *buf, size_t n, double loss, double loss_noise, double val_loss,
                           double val_noise);
#define SGT_GAP_NOISE 3
#define SGT_GAP_PART 0.02

/* The kinds of report that sgt_diagnosis_step gives, each at most once in a run. Here, lr is the
 * learning rate.
 *   diverged      The mean of the last SGT_MEAN_STEPS losses is NaN, or above the loss at the start
 *                 of the run, for SGT_ABOVE_STEPS steps in a row or at the last step. Advice: lower
 *                 the lr. The loss at the start of the run is the mean of the first SGT_MEAN_STEPS
 *                 losses, but at most about 1.1 times the first loss.
 *   lr too high   The mean of SGT_RISE_STEPS losses rises above the first loss, or above an earlier
 *                 low, at most SGT_RISE_WITHIN steps after the warm-up. Advice: divide the lr by 3
 *                 to 30. The loss of such a run falls again later, but not as far as with a lower
 *                 lr. After this report, "flat" is not reported.
 *   oscillating   The loss goes up and down SGT_SWINGS times within SGT_SWING_STEPS steps. Advice:
 *                 divide the lr by 2 to 10.
 *   flat          After the warm-up, the mean loss over the second half of the steps is not lower
 *                 than the mean over the quarter before that half. Advice: raise the lr.
 *   a spike       The loss rises above the median of the last SGT_SPIKE_BEFORE losses by more than
 *                 SGT_SPIKE_NOISE times the noise, SGT_SPIKE_PART of the median, and twice the
 *                 range of these losses. It falls back within SGT_SPIKE_LASTS steps, and only then
 *                 is the spike reported. Advice: --grad-clip, and after SGT_SPIKE_STEPS steps also
 *                 --skip-spikes, which has no effect before. After "oscillating" was reported,
 *                 spikes are not. In the first SGT_SPIKE_LEAST steps, a loss is compared with the
 *                 mean of the losses before and after it.
 *   norm spike    The gradient norm is more than SGT_SPIKE_NORM times the median of the last
 *                 SGT_SPIKE_STEPS norms (at least SGT_SPIKE_BEFORE of them). Advice: as for a
 *                 spike. If --skip-spikes is set, neither kind of spike is reported.
 *   not finite    The loss or the gradient norm is infinite or NaN. Advice: divide the lr by 10.
 * Changes that noise can explain are not reported. The losses of single tokens have a standard
 * deviation of about 3 nats. Because the losses of successive tokens are correlated, the loss of a
 * step of n tokens is assumed to have a standard deviation of 4.5/sqrt(n), not 3/sqrt(n). A rise or
 * fall must exceed six times this deviation, and a tenth of the loss. If the rows contain texts of
 * many kinds, losses vary more from step to step. Therefore a swing must also exceed six times the
 * noise measured over the last SGT_SWING_STEPS steps, and no swing is reported before that many
 * steps have been done. */
#define SGT_SWINGS 4
#define SGT_SWING_STEPS 64
/* maximum distance in steps between two losses whose difference is used to estimate the noise */
#define SGT_NOISE_LAGS 4
#define SGT_SPIKE_STEPS 128
#define SGT_SPIKE_NOISE 7
#define SGT_SPIKE_BEFORE 9
#define SGT_SPIKE_PART 0.1
#define SGT_SPIKE_LASTS 16
#define SGT_SPIKE_NORM 10
#define SGT_SPIKE_LEAST 20
#define SGT_FLAT_BLOCKS 128
/* Number of steps in one block at the start of a run; the losses of a block are averaged. Each time
 * all SGT_FLAT_BLOCKS blocks are full, flat_loss doubles the number of steps per block. The test
 * for a flat loss needs SGT_FLAT_BLOCKS / 2 = 64 full blocks, so the loss cannot count as flat
 * before step 256. */
#define SGT_FLAT_BLOCK 4
/* the loss counts as flat if the mean over the second half of the run, and the mean over the
 * quarter of the run before that half, differ by less than this fraction of the loss */
#define SGT_FLAT_PART 0.005
/* number of losses in the moving average that is compared with the loss at the start of the run */
#define SGT_MEAN_STEPS 20
/* a run has diverged if its mean loss exceeds the loss at the start of the run for this number of
 * steps in a row */
#define SGT_ABOVE_STEPS 50
/* number of losses in the moving average; a rise of this average at the end of the warm-up means
 * that the learning rate is too high */
#define SGT_RISE_STEPS 5
/* A rise of the loss counts only if it happens no more than this many steps after the end of the
 * warm-up. A rise that is found in that time may be confirmed and reported later, up to twice as
 * many steps after the warm-up. */
#define SGT_RISE_WITHIN 64
/* A rise counts only if the moving average over SGT_RISE_STEPS losses has risen by more than this
 * fraction of the loss at which the rise began. */
#define SGT_RISE_PART 0.05
/* Used only if there was a spike in the first SGT_SPIKE_LEAST steps. In that case, a rise of the
 * loss counts only if the mean loss stays above this fraction of the loss at which the rise began.
 * If it does not, the rise was probably part of the spike. */
#define SGT_RISE_STAYS 0.85

typedef struct sgt_diagnosis {
    double lr; /* rate of the run */
    /* maximum deviation, in nats, of a single loss from its expected value that counts as noise:
     * six standard deviations */
    double chance;
    int skipping;  /* 1: --skip-spikes is on */
    unsigned told; /* bit set of the kinds of report given so far */
    /* highest loss (if `rising` is 1) or lowest loss (if 0) since the loss last changed
     * direction */
    double extreme;
    int rising;
    /* turned: ring buffer of the latest steps at which the loss changed direction (began to rise or
     * to fall); turns: number of such steps since the run began */
    uint64_t turned[2 * SGT_SWINGS], turns;
    /* ring buffers of the losses (`recent`) and gradient norms (`norms`) of the latest steps; an
     * element may be NaN */
    double recent[SGT_SPIKE_STEPS], norms[SGT_SPIKE_STEPS];
    uint64_t seen; /* number of losses so far */
    /* The latest rise of the loss far above the losses before it (a possible spike). spike: step at
     * which the loss was highest, 0 if there was no such rise yet; peak: loss at that step; before:
     * median of the losses before the rise. */
    uint64_t spike;
    double peak, before;
    /* 1: a spike is in progress, so the loss has risen and has not fallen back yet; 0: no spike is
     * in progress */
    int spiking;
    int early; /* 1: the loss had a spike in the first SGT_SPIKE_LEAST steps */
    /* block: mean losses, one for each full block of block_steps steps; sum: sum of the losses in
     * the latest block, which is not full yet */
    double block[SGT_FLAT_BLOCKS], sum;
    unsigned blocks, block_steps, filled;
    /* The caller sets `steps` and `attention` after sgt_diagnosis_start. steps: number of the last
     * step of the run, 0 if unknown. attention: the text sgt_backend.attention. */
    uint64_t steps;
    const char *attention;
    /* first: loss of the run's first step; start: loss at the start of the run, a mean of several
     * steps; mean: mean of the last SGT_MEAN_STEPS losses. The run has diverged if `mean` stays
     * above `start`. */
    double first, start, mean;
    /* lr_most: highest learning rate so far; warm: first step with that rate, which is the end of
     * the warm-up */
    double lr_most;
    uint64_t warm;
    /* means: ring buffer of the latest SGT_RISE_STEPS values of a moving average over
     * SGT_RISE_STEPS losses; low: lowest of the older values, which are no longer in the ring
     * buffer */
    double means[SGT_RISE_STEPS], low;
    /* The largest rise of the loss so far. from: loss at which the rise began; rise: number of nats
     * by which the loss rose. */
    double from, rise;
    uint64_t above; /* number of latest steps in a row with `mean` above `start` */
    /* 1: the run has diverged, as defined above under "diverged"; 0: not (yet) */
    int diverged;
    int grave; /* 1: the latest report is "diverged" or "not finite" */
} sgt_diagnosis;

void sgt_diagnosis_start(sgt_diagnosis *d, double lr, uint64_t tokens_per_step, int skipping);

/* Add the results of step `step` (from 1), in which the learning rate was lr_now. If there is
 * something to report, write the report to `buf` and return `buf`, otherwise return NULL. If the
 * loss scaler skipped the update because gradients overflowed, pass 0 as grad_norm. */
const char *sgt_diagnosis_step(sgt_diagnosis *d, char *buf, size_t n, uint64_t step, double loss,
                               double grad_norm, double lr_now);

#endif
