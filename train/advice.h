/* advice.h: known learning rates by model size, and diagnosis of losses that go wrong. */
#ifndef SGT_ADVICE_H
#define SGT_ADVICE_H

#include <stddef.h>
#include <stdint.h>

/* Range of learning rates with which AdamW trains models of one size, in steps of 64 rows. */
typedef struct sgt_lr_range {
    /* number of parameters of the published model nearest by ratio; below SGT_LR_SMALLEST, the
     * given number */
    uint64_t parameters;
    double low, high;
    /* rate of --lr auto for 64 rows: `low`, or more for models of fewer parameters than
     * SGT_LR_SMALLEST */
    double chosen;
} sgt_lr_range;

#define SGT_LR_SMALLEST 124000000 /* parameters of the smallest published model */
/* highest rate that --lr auto chooses, or that counts as usual for small models */
#define SGT_LR_MOST 0.01

/* Return the range for a model size. From SGT_LR_SMALLEST on, it is what the GPT-2 and GPT-3 papers
 * and their reproductions report. For smaller models, it is what tests/data/measure_lr.sh measured
 * (sgt-train(1) has the table): with r = SGT_LR_SMALLEST / parameters, the chosen rate grows with
 * sqrt(r) and the upper end with r. */
sgt_lr_range sgt_advice_lr(uint64_t parameters);

/* Return the rate of --lr auto for steps of `rows` rows. It is the range's `chosen`, times rows /
 * base if rows > base (at most SGT_LR_MOST), or times (rows / base) to the power of
 * SGT_LR_ROWS_POWER if rows < base. */
double sgt_advice_auto_lr(uint64_t parameters, uint64_t rows, uint64_t base);

#define SGT_LR_ROWS_POWER 0.25 /* exponent, measured with 4 to 64 rows */

/* Return -1 if lr is below the range for this size, 1 if above, else 0. Below 64 rows the lower end
 * shrinks like the rate of --lr auto; above 64 rows the upper end grows with the rows. */
int sgt_advice_lr_outside(uint64_t parameters, uint64_t rows, double lr);

/* Return the rate for a step of `rows` rows if lr is right for `base` rows: linear scaling (Goyal
 * et al., 2017). */
double sgt_advice_scale_lr(double lr, uint64_t rows, uint64_t base);

/* If the loss or the gradient norm of step `step` (from 1) is not finite, write advice to buf and
 * return it; else return NULL. lr is the rate of the run. `attention` is sgt_backend's, for a
 * gradient that is not finite although the loss is. */
const char *sgt_advice_not_finite(char *buf, size_t n, uint64_t step, double loss, double grad_norm,
                                  double lr, const char *attention);

/* If the validation loss is above the training loss by more than their noise, write advice to buf
 * and return it; else return NULL. The noises are standard errors; a NaN stands for an unknown
 * one, of which there is no advice. The difference must be SGT_GAP_NOISE times the noise of both
 * and SGT_GAP_PART of the loss, because no two texts are of quite the same kind. */
const char *sgt_advice_gap(char *buf, size_t n, double loss, double loss_noise, double val_loss,
                           double val_noise);
#define SGT_GAP_NOISE 3
#define SGT_GAP_PART 0.02

/* What sgt_diagnosis_step reports about the losses, each at most once:
 *   diverged      The mean of SGT_MEAN_STEPS steps is NaN or above the run's start, for
 *                 SGT_ABOVE_STEPS steps in a row or at the last step: lower the lr. The start is
 *                 the mean of the first SGT_MEAN_STEPS steps; if these rise already, at most
 *                 about 1.1 times the loss of the first step.
 *   lr too high   The mean of SGT_RISE_STEPS rises above the first loss, or above an earlier low,
 *                 within SGT_RISE_WITHIN steps after the warm-up: lower the lr 3 to 30 times. The
 *                 loss of such a run falls again, then stays far above what a lower lr reaches;
 *                 "flat" is not reported then.
 *   oscillating   SGT_SWINGS swings within SGT_SWING_STEPS steps: lower the lr 2 to 10 times.
 *   flat          After the warm-up, the last half of the steps is no lower than the quarter
 *                 before it: raise the lr.
 *   a spike       SGT_SPIKE_NOISE times the noise, SGT_SPIKE_PART, and twice their range above
 *                 the last SGT_SPIKE_BEFORE, from where the loss falls back within SGT_SPIKE_LASTS
 *                 steps: --skip-spikes. It is reported when it is over. Swings that were reported are no
 *                 spikes. A loss of the first SGT_SPIKE_LEAST steps is compared with the line
 *                 between the steps before and after it.
 *   of the norm   The gradient norm is SGT_SPIKE_NORM times the median of the last
 *                 SGT_SPIKE_STEPS: --grad-clip or --skip-spikes. Neither spike is reported with
 *                 --skip-spikes, and one of the norm only after
 *                 SGT_SPIKE_BEFORE steps.
 *   not finite    Lower the lr 10 times, at once.
 * Only changes that chance does not explain count. Token losses lie about 3 nats around their mean,
 * and those of a row are correlated. So a step of n tokens is assumed to be off by 4.5/sqrt(n). A
 * rise or fall must exceed six times that and a tenth of the loss. If rows are of many kinds, steps
 * vary more: a swing must also exceed six times the noise measured over the last SGT_SWING_STEPS
 * steps, and none is reported before these exist. */
#define SGT_SWINGS 4
#define SGT_SWING_STEPS 64
#define SGT_NOISE_LAGS 4 /* lags at which losses are compared to measure the noise */
#define SGT_SPIKE_STEPS 128
#define SGT_SPIKE_Z 6
#define SGT_SPIKE_NOISE 7
#define SGT_SPIKE_BEFORE 9
#define SGT_SPIKE_PART 0.1
#define SGT_SPIKE_LASTS 16
#define SGT_SPIKE_NORM 10
#define SGT_SPIKE_LEAST 20
#define SGT_FLAT_BLOCKS 128
#define SGT_FLAT_BLOCK 4    /* steps of a block at first; no loss counts as flat before 256 steps */
#define SGT_FLAT_PART 0.005 /* least fall that is expected, as a fraction of the loss */
#define SGT_MEAN_STEPS 20   /* steps of the mean that is compared with the start */
/* steps in a row with this mean above the start that count as divergence */
#define SGT_ABOVE_STEPS 50
#define SGT_RISE_STEPS 5 /* steps of the mean whose rise after the warm-up is reported */
/* a rise counts if it comes at most this many steps after the warm-up; it is reported at most twice
 * as many after it */
#define SGT_RISE_WITHIN 64
#define SGT_RISE_PART 0.05 /* least rise that counts, as a fraction of the loss */
/* after a spike in the first steps: the least part of the loss before a rise that is left if the
 * rise counts; if less is left, it was the spike's */
#define SGT_RISE_STAYS 0.85

typedef struct sgt_diagnosis {
    double lr;      /* rate of the run */
    double chance;  /* how far a loss may be off by chance, in nats */
    int skipping;   /* --skip-spikes is on */
    unsigned told;  /* bits of the kinds of report made so far; each is made only once */
    double extreme; /* highest or lowest loss since a swing last turned */
    int rising;
    /* turned: steps at which a swing last turned; turns: how often it did */
    uint64_t turned[2 * SGT_SWINGS], turns;
    /* the last losses and gradient norms, which may be NaN */
    double recent[SGT_SPIKE_STEPS], norms[SGT_SPIKE_STEPS];
    uint64_t seen; /* how many there were so far */
    /* spike: step of the last peak of the loss, 0: none; before: median of the losses before it
     * rose */
    uint64_t spike;
    double peak, before;
    int spiking; /* 1: it has not fallen back from the peak */
    int early;   /* 1: there was a spike in the first SGT_SPIKE_LEAST steps */
    /* block: means of block_steps steps each; sum: of the losses in the block being filled */
    double block[SGT_FLAT_BLOCKS], sum;
    unsigned blocks, block_steps, filled;
    /* set by the caller after the start: last step of the run (0: unknown), and what sgt_backend has
     * as attention */
    uint64_t steps;
    const char *attention;
    /* first: loss of the first step; start: loss at the run's start, as defined above; mean: the
     * mean of the last SGT_MEAN_STEPS */
    double first, start, mean;
    /* highest learning rate so far, and the first step with it: the end of the warm-up */
    double lr_most;
    uint64_t warm;
    /* means: the last means of SGT_RISE_STEPS steps; low: the lowest of earlier ones */
    double means[SGT_RISE_STEPS], low;
    double from, rise; /* largest rise so far: the loss it started from, and its amount */
    uint64_t above;    /* steps in a row with `mean` above `start` */
    /* 1: the run has diverged, as defined above */
    int diverged;
    int grave; /* 1: the last report says that the run is lost */
} sgt_diagnosis;

void sgt_diagnosis_start(sgt_diagnosis *d, double lr, uint64_t tokens_per_step, int skipping);

/* Take the results of step `step` (from 1), made with learning rate lr_now. Return a report,
 * written to buf, or NULL if there is none. Pass 0 as grad_norm for an overflow that loss scaling
 * handles. */
const char *sgt_diagnosis_step(sgt_diagnosis *d, char *buf, size_t n, uint64_t step, double loss,
                               double grad_norm, double lr_now);

#endif
