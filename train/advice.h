/* advice.h: known learning rates by model size, and diagnosis of losses that go wrong. */
#ifndef SGT_ADVICE_H
#define SGT_ADVICE_H

#include <stddef.h>
#include <stdint.h>

/* The usual range of learning rates for training models of one size with AdamW and 64 rows per
 * step. */
typedef struct sgt_lr_range {
    /* number of parameters of the published model that is nearest by ratio; below SGT_LR_SMALLEST,
     * the number that the caller gave */
    uint64_t parameters;
    double low, high;
    /* rate that --lr auto chooses for 64 rows: `low`, or more if the model has fewer than
     * SGT_LR_SMALLEST parameters */
    double chosen;
} sgt_lr_range;

#define SGT_LR_SMALLEST 124000000 /* parameters of the smallest published model */
/* upper bound of the rate that --lr auto chooses, and of the usual range for small models */
#define SGT_LR_MOST 0.01

/* Return the range for a model size. From SGT_LR_SMALLEST on, the range comes from the GPT-2 and
 * GPT-3 papers and their reproductions. For smaller models, it was measured with
 * tests/data/measure_lr.sh (sgt-train(1) has the table): with r = SGT_LR_SMALLEST / parameters, the
 * chosen rate grows with sqrt(r) and the upper end with r. */
sgt_lr_range sgt_advice_lr(uint64_t parameters);

/* Return the rate of --lr auto for steps of `rows` rows. It is `chosen` of the range for this size.
 * If rows > base, it is multiplied by rows / base (up to SGT_LR_MOST). If rows < base, it is
 * multiplied by (rows / base) to the power of SGT_LR_ROWS_POWER. */
double sgt_advice_auto_lr(uint64_t parameters, uint64_t rows, uint64_t base);

#define SGT_LR_ROWS_POWER 0.25 /* exponent, measured with 4 to 64 rows */

/* Return -1 if lr is below the range for this size, 1 if above, else 0. Below 64 rows the lower end
 * of the range decreases as the rate of --lr auto does; above 64 rows the upper end grows in
 * proportion to the rows. */
int sgt_advice_lr_outside(uint64_t parameters, uint64_t rows, double lr);

/* Return the rate for a step of `rows` rows if lr is right for `base` rows: linear scaling (Goyal
 * et al., 2017). */
double sgt_advice_scale_lr(double lr, uint64_t rows, uint64_t base);

/* If the loss or the gradient norm of step `step` (from 1) is not finite, write advice to buf and
 * return it; else return NULL. lr is the learning rate of the run. `attention` is the member of
 * sgt_backend; it is used if the gradient is not finite although the loss is. */
const char *sgt_advice_not_finite(char *buf, size_t n, uint64_t step, double loss, double grad_norm,
                                  double lr, const char *attention);

/* If the validation loss is above the training loss by more than their noise, write advice to buf
 * and return it; else return NULL. The noises are standard errors; if one is NaN (unknown), there
 * is no advice. The difference must exceed SGT_GAP_NOISE times the combined noise, and also
 * SGT_GAP_PART times the loss, because no two texts are of exactly the same kind. */
const char *sgt_advice_gap(char *buf, size_t n, double loss, double loss_noise, double val_loss,
                           double val_noise);
#define SGT_GAP_NOISE 3
#define SGT_GAP_PART 0.02

/* The reports of sgt_diagnosis_step, each of which is given at most once:
 *   diverged      The mean of SGT_MEAN_STEPS losses is NaN or above the run's start, for
 *                 SGT_ABOVE_STEPS steps in a row or at the last step. Advice: lower the lr. The
 *                 start is the mean of the first SGT_MEAN_STEPS losses; but if these rise already,
 *                 at most about 1.1 times the first loss.
 *   lr too high   The mean of SGT_RISE_STEPS losses rises above the first loss, or above an earlier
 *                 low, within SGT_RISE_WITHIN steps after the warm-up. Advice: lower the lr 3 to 30
 *                 times. The loss of such a run falls again, but stays far above what a lower lr
 *                 reaches. After this report, "flat" is not reported.
 *   oscillating   The loss makes SGT_SWINGS swings within SGT_SWING_STEPS steps. Advice: lower the
 *                 lr 2 to 10 times.
 *   flat          After the warm-up, the last half of the steps has no lower loss than the quarter
 *                 before it. Advice: raise the lr.
 *   a spike       The loss rises above the median of the last SGT_SPIKE_BEFORE losses by
 *                 SGT_SPIKE_NOISE times the noise, by SGT_SPIKE_PART of the median, and by twice
 *                 the range of these losses; and it falls back within SGT_SPIKE_LASTS steps. It is
 *                 reported when it has fallen back. Advice: --skip-spikes. Swings that were
 *                 reported do not count as spikes. In the first SGT_SPIKE_LEAST steps, a loss is
 *                 compared with the line between the losses before and after it.
 *   norm spike    The gradient norm is SGT_SPIKE_NORM times the median of the last
 *                 SGT_SPIKE_STEPS norms (at least SGT_SPIKE_BEFORE of them). Advice: --grad-clip or
 *                 --skip-spikes. With --skip-spikes, neither kind of spike is reported.
 *   not finite    Advice, at once: lower the lr 10 times.
 * Changes that noise can explain do not count. The losses of single tokens have a standard
 * deviation of about 3 nats, and those in a row are correlated. So the loss of a step of n tokens
 * is assumed to have a standard deviation of 4.5/sqrt(n). A rise or fall must exceed six times
 * that, and a tenth of the loss. Losses vary more between steps if the rows are of many kinds. So a
 * swing must also exceed six times the noise measured over the last SGT_SWING_STEPS steps, and no
 * swing is reported before that many steps. */
#define SGT_SWINGS 4
#define SGT_SWING_STEPS 64
/* number of lags, in steps, at which losses are compared to measure the noise */
#define SGT_NOISE_LAGS 4
#define SGT_SPIKE_STEPS 128
#define SGT_SPIKE_Z 6
#define SGT_SPIKE_NOISE 7
#define SGT_SPIKE_BEFORE 9
#define SGT_SPIKE_PART 0.1
#define SGT_SPIKE_LASTS 16
#define SGT_SPIKE_NORM 10
#define SGT_SPIKE_LEAST 20
#define SGT_FLAT_BLOCKS 128
#define SGT_FLAT_BLOCK 4 /* steps per block at first; no loss counts as flat before step 256 */
/* fall of the loss below which it counts as flat, as a fraction of the loss */
#define SGT_FLAT_PART 0.005
#define SGT_MEAN_STEPS 20 /* number of steps in the mean that is compared with the start */
/* number of consecutive steps with this mean above the start that count as divergence */
#define SGT_ABOVE_STEPS 50
#define SGT_RISE_STEPS 5 /* number of steps in the mean whose rise after the warm-up is reported */
/* a rise counts only up to this many steps after the warm-up, and is reported up to twice as many
 * steps after it */
#define SGT_RISE_WITHIN 64
#define SGT_RISE_PART 0.05 /* least rise that counts, as a fraction of the loss */
/* after a spike in the first steps, a rise counts only if the loss stays above this fraction of the
 * loss from which it rose; otherwise the spike caused it */
#define SGT_RISE_STAYS 0.85

typedef struct sgt_diagnosis {
    double lr;      /* rate of the run */
    double chance;  /* how far a loss may deviate by chance, in nats */
    int skipping;   /* 1: --skip-spikes is on */
    unsigned told;  /* bit set of the kinds of report given so far; each kind is given only once */
    double extreme; /* highest or lowest loss since a swing last turned */
    int rising;
    /* turned: steps of the newest turns of a swing; turns: number of turns so far */
    uint64_t turned[2 * SGT_SWINGS], turns;
    /* the last losses and gradient norms, which may be NaN */
    double recent[SGT_SPIKE_STEPS], norms[SGT_SPIKE_STEPS];
    uint64_t seen; /* number of losses so far */
    /* spike: step of the last peak of the loss, 0: none; before: median of the losses before it
     * rose */
    uint64_t spike;
    double peak, before;
    int spiking; /* 1: the loss has not fallen back from the peak */
    int early;   /* 1: there was a spike in the first SGT_SPIKE_LEAST steps */
    /* block: mean losses of block_steps steps each; sum: sum of the losses in the block that is
     * being filled */
    double block[SGT_FLAT_BLOCKS], sum;
    unsigned blocks, block_steps, filled;
    /* set by the caller after sgt_diagnosis_start: last step of the run (0: unknown), and
     * `attention` of sgt_backend */
    uint64_t steps;
    const char *attention;
    /* first: loss of the first step; start: loss at the run's start, as defined above; mean: the
     * mean of the last SGT_MEAN_STEPS */
    double first, start, mean;
    /* highest learning rate so far, and the first step that had it, which ends the warm-up */
    double lr_most;
    uint64_t warm;
    /* means: the newest SGT_RISE_STEPS values of the mean over SGT_RISE_STEPS steps; low: lowest
     * mean before these */
    double means[SGT_RISE_STEPS], low;
    double from, rise; /* largest rise so far: the loss it started from, and its amount */
    uint64_t above;    /* steps in a row with `mean` above `start` */
    /* 1: the run has diverged, as defined above */
    int diverged;
    int grave; /* 1: the last report says that the run has diverged or its numbers are not finite */
} sgt_diagnosis;

void sgt_diagnosis_start(sgt_diagnosis *d, double lr, uint64_t tokens_per_step, int skipping);

/* Add the results of step `step` (from 1), which used learning rate lr_now. Return a report,
 * written to buf, or NULL if there is none. Pass 0 as grad_norm for an overflow that loss scaling
 * handles. */
const char *sgt_diagnosis_step(sgt_diagnosis *d, char *buf, size_t n, uint64_t step, double loss,
                               double grad_norm, double lr_now);

#endif
