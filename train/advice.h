/* advice.h: suitable learning rates by model size, and the diagnosis of losses during training. */
#ifndef SGT_ADVICE_H
#define SGT_ADVICE_H

#include <stddef.h>
#include <stdint.h>

/* The usual range of learning rates for one model size, with AdamW and 64 rows per step. */
typedef struct sgt_lr_range {
    /* Number of parameters of the model for which the range is known. If the caller's model has
     * SGT_LR_SMALLEST or more parameters, this is the published model of the nearest size, by
     * ratio. For smaller models, the range is computed, and this is the number of parameters of the
     * caller's model. */
    uint64_t parameters;
    double low, high;
    /* the learning rate that --lr auto chooses with 64 rows per step: equal to `low` for models of
     * at least SGT_LR_SMALLEST parameters, higher than `low` for smaller models */
    double chosen;
} sgt_lr_range;

#define SGT_LR_SMALLEST 124000000 /* number of parameters of the smallest published model */
/* maximum of the learning rate that --lr auto chooses, and of the usual range for small models */
#define SGT_LR_MOST 0.01

/* Return the range for a model of this size. For SGT_LR_SMALLEST or more parameters, the range
 * comes from the GPT-2 and GPT-3 papers and their reproductions. For smaller models, the range was
 * measured with tests/data/measure_lr.sh (sgt-train(1) has the table). With r = SGT_LR_SMALLEST /
 * parameters, the chosen rate is proportional to sqrt(r), and the upper end of the range to r. */
sgt_lr_range sgt_advice_lr(uint64_t parameters);

/* Return the learning rate that --lr auto chooses for `rows` rows per step. With `base` rows per
 * step, the rate is `chosen` of sgt_advice_lr. With more rows, it is multiplied by rows / base, but
 * the result is at most SGT_LR_MOST. With fewer rows, it is multiplied by (rows / base) to the
 * power of SGT_LR_ROWS_POWER. */
double sgt_advice_auto_lr(uint64_t parameters, uint64_t rows, uint64_t base);

/* exponent of rows per step in sgt_advice_auto_lr, measured with 4 to 64 rows per step */
#define SGT_LR_ROWS_POWER 0.25

/* If lr is outside the usual range for this model size and `rows` rows per step, write a sentence
 * about that to buf and return buf; else return NULL. The range of sgt_advice_lr holds for 64 rows.
 * With fewer rows its lower end is multiplied by the factor that --lr auto uses. With more rows its
 * upper end is multiplied by rows / 64. */
const char *sgt_advice_lr_outside(char *buf, size_t n, uint64_t parameters, uint64_t rows,
                                  double lr);

/* Return the learning rate for `rows` rows per step, if lr suits `base` rows per step. The rule is
 * linear scaling (Goyal et al., 2017). */
double sgt_advice_scale_lr(double lr, uint64_t rows, uint64_t base);

/* If the loss or the gradient norm of step `step` (from 1) is infinite or NaN, write advice to buf
 * and return it; else return NULL. lr is the learning rate of the run. `attention` is
 * sgt_backend.attention; the advice names it if the gradient norm is not finite but the loss is. */
const char *sgt_advice_not_finite(char *buf, size_t n, uint64_t step, double loss, double grad_norm,
                                  double lr, const char *attention);

/* If the validation loss is significantly above the training loss, write advice to buf and return
 * it; else return NULL. loss_noise and val_noise are the standard errors of the losses; if either
 * is NaN (unknown), there is no advice. The difference of the two losses is significant if it
 * exceeds SGT_GAP_NOISE times their combined standard error. It must also exceed SGT_GAP_PART times
 * the training loss, because the validation text may simply be a little more difficult. */
const char *sgt_advice_gap(char *buf, size_t n, double loss, double loss_noise, double val_loss,
                           double val_noise);
#define SGT_GAP_NOISE 3
#define SGT_GAP_PART 0.02

/* The reports of sgt_diagnosis_step, each of which is given at most once:
 *   diverged      The mean of SGT_MEAN_STEPS losses is NaN or above the run's start, for
 *                 SGT_ABOVE_STEPS steps in a row or at the last step. Advice: lower the lr. The
 *                 start is the mean of the first SGT_MEAN_STEPS losses. If these already rise, the
 *                 start is at most about 1.1 times the first loss.
 *   lr too high   The mean of SGT_RISE_STEPS losses rises above the first loss, or above an earlier
 *                 low, within SGT_RISE_WITHIN steps after the warm-up. Advice: divide the lr by 3
 *                 to 30. The loss of such a run falls again, but stays far above what a lower lr
 *                 reaches. After this report, "flat" is not reported.
 *   oscillating   The loss makes SGT_SWINGS swings within SGT_SWING_STEPS steps. Advice: divide
 *                 the lr by 2 to 10.
 *   flat          After the warm-up, the last half of the steps has no lower loss than the quarter
 *                 before it. Advice: raise the lr.
 *   a spike       The loss rises above the median of the last SGT_SPIKE_BEFORE losses by
 *                 SGT_SPIKE_NOISE times the noise, by SGT_SPIKE_PART of the median, and by twice
 *                 the range of these losses; and it falls back within SGT_SPIKE_LASTS steps. It is
 *                 reported when it has fallen back. Advice: --grad-clip, and after SGT_SPIKE_STEPS
 *                 steps --skip-spikes, which has no effect before. Swings that were reported do not
 *                 count as spikes. In the first SGT_SPIKE_LEAST steps, a loss is compared with the
 *                 line between the losses before and after it.
 *   norm spike    The gradient norm is SGT_SPIKE_NORM times the median of the last
 *                 SGT_SPIKE_STEPS norms (at least SGT_SPIKE_BEFORE of them). Advice: as for a
 *                 spike. With --skip-spikes, neither kind of spike is reported.
 *   not finite    Advice, at once: divide the lr by 10.
 * Changes that noise can explain do not count. The losses of single tokens have a standard
 * deviation of about 3 nats. Because the losses of successive tokens are correlated, the loss of a
 * step of n tokens is assumed to have a standard deviation of 4.5/sqrt(n) and not 3/sqrt(n). A rise
 * or fall must exceed six times this deviation, and a tenth of the loss. If the rows contain texts
 * of many kinds, losses vary more between steps. Therefore a swing must also exceed six times the
 * noise measured over the last SGT_SWING_STEPS steps, and no swing is reported before that many
 * steps. */
#define SGT_SWINGS 4
#define SGT_SWING_STEPS 64
/* To measure the noise, each loss is compared with those 1, 2, ... SGT_NOISE_LAGS steps earlier. */
#define SGT_NOISE_LAGS 4
#define SGT_SPIKE_STEPS 128
#define SGT_SPIKE_NOISE 7
#define SGT_SPIKE_BEFORE 9
#define SGT_SPIKE_PART 0.1
#define SGT_SPIKE_LASTS 16
#define SGT_SPIKE_NORM 10
#define SGT_SPIKE_LEAST 20
#define SGT_FLAT_BLOCKS 128
/* Number of steps whose losses are averaged in one block, at the start of the run. flat_loss
 * doubles it each time that all blocks are full. The test for a flat loss needs SGT_FLAT_BLOCKS / 2
 * = 64 full blocks, so it cannot succeed before step 256. */
#define SGT_FLAT_BLOCK 4
/* the loss counts as flat if two means differ by less than this fraction of the loss: the mean over
 * the second half of the run, and the mean over the quarter before it */
#define SGT_FLAT_PART 0.005
/* number of losses in each mean that is compared with the loss at the start of the run */
#define SGT_MEAN_STEPS 20
/* a run diverges if the mean loss is above the loss at the run's start for this many steps in a
 * row */
#define SGT_ABOVE_STEPS 50
/* number of losses in the moving average; if this average rises after the warm-up, the learning
 * rate is too high */
#define SGT_RISE_STEPS 5
/* A rise counts only if it happens at most this many steps after the warm-up. It may be confirmed
 * and reported later, up to twice as many steps after the warm-up. */
#define SGT_RISE_WITHIN 64
/* The moving average over SGT_RISE_STEPS losses must rise by at least this fraction of the loss to
 * be reported as a rise. */
#define SGT_RISE_PART 0.05
/* Used only after a spike in the first SGT_SPIKE_LEAST steps. After such a spike, a rise counts
 * only if the mean loss is still above this fraction of the loss at which the rise began. Otherwise
 * the rise was probably part of the spike. */
#define SGT_RISE_STAYS 0.85

typedef struct sgt_diagnosis {
    double lr; /* rate of the run */
    /* largest deviation of a single loss from its expected value that noise may explain, in nats:
     * six standard deviations */
    double chance;
    int skipping;  /* 1: --skip-spikes is on */
    unsigned told; /* bit set of the kinds of report already given; a kind is reported only once */
    /* highest (if `rising`) or lowest loss since the loss last changed its direction */
    double extreme;
    int rising;
    /* turned: ring buffer of the latest steps at which the loss began to rise or to fall; turns:
     * number of such steps so far */
    uint64_t turned[2 * SGT_SWINGS], turns;
    /* ring buffers of the latest losses and gradient norms, which may be NaN */
    double recent[SGT_SPIKE_STEPS], norms[SGT_SPIKE_STEPS];
    uint64_t seen; /* number of losses so far */
    /* The latest rise that was far above the losses before it. spike: step of its highest loss, 0:
     * no such rise yet; peak: that loss; before: median of the losses before the rise. */
    uint64_t spike;
    double peak, before;
    /* 1: the loss has risen to `peak`, and may still fall back; 0: no spike is in progress */
    int spiking;
    int early; /* 1: there was a spike in the first SGT_SPIKE_LEAST steps */
    /* block: mean loss of each block of block_steps steps; sum: sum of the losses in the block that
     * is not yet full */
    double block[SGT_FLAT_BLOCKS], sum;
    unsigned blocks, block_steps, filled;
    /* Fields that the caller sets after sgt_diagnosis_start. steps: last step of the run, 0:
     * unknown. attention: text of sgt_backend.attention. */
    uint64_t steps;
    const char *attention;
    /* first: loss of the run's first step; start: initial loss, with which `mean` is compared to
     * detect a divergence; mean: mean of the last SGT_MEAN_STEPS losses */
    double first, start, mean;
    /* lr_most: highest learning rate so far; warm: first step with that rate, at which the warm-up
     * ends */
    double lr_most;
    uint64_t warm;
    /* means: ring buffer of the last SGT_RISE_STEPS moving averages of the loss, each over
     * SGT_RISE_STEPS losses; low: lowest earlier average that is no longer in the buffer */
    double means[SGT_RISE_STEPS], low;
    /* from: loss at which the largest rise so far began; rise: amount of that rise */
    double from, rise;
    uint64_t above; /* number of latest steps in a row whose `mean` was above `start` */
    /* 1: the run has diverged (see "diverged" above) */
    int diverged;
    int grave; /* 1: the latest report is "diverged" or "not finite" */
} sgt_diagnosis;

void sgt_diagnosis_start(sgt_diagnosis *d, double lr, uint64_t tokens_per_step, int skipping);

/* Add the results of step `step` (from 1), which used the learning rate lr_now. Return a report in
 * buf, or NULL if there is nothing to report. If gradients overflowed and the loss scaler skipped
 * the update, pass 0 as grad_norm. */
const char *sgt_diagnosis_step(sgt_diagnosis *d, char *buf, size_t n, uint64_t step, double loss,
                               double grad_norm, double lr_now);

#endif
