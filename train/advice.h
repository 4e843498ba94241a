/* advice.h: what is known about learning rates by model size, and about losses that go wrong. */
#ifndef SGT_ADVICE_H
#define SGT_ADVICE_H

#include <stddef.h>
#include <stdint.h>

/* What AdamW trains models of such a size with, in steps of 64 rows. */
typedef struct sgt_lr_range {
    /* the published model nearest in size (by ratio); below SGT_LR_SMALLEST the size itself */
    uint64_t parameters;
    double low, high;
    /* by --lr auto, for 64 rows: the lower end; more for models below SGT_LR_SMALLEST */
    double chosen;
} sgt_lr_range;

#define SGT_LR_SMALLEST 124000000 /* parameters of the smallest published model */
#define SGT_LR_MOST 0.01 /* no rate above is chosen, or taken to be usual for small models */

/* From SGT_LR_SMALLEST parameters on, what the GPT-2 and GPT-3 papers and their reproductions
 * report. Below, what tests/data/measure_lr.sh measured (sgt-train(1) has the table): the chosen
 * rate is that of SGT_LR_SMALLEST times the square root of how many times smaller the model is, the
 * upper end times the whole of it. */
sgt_lr_range sgt_advice_lr(uint64_t parameters);

/* The learning rate of --lr auto for steps of `rows` rows: the range's `chosen`, times rows / base
 * for larger steps, up to SGT_LR_MOST, and times (rows / base) to the power of SGT_LR_ROWS_POWER
 * for smaller ones. */
double sgt_advice_auto_lr(uint64_t parameters, uint64_t rows, uint64_t base);

#define SGT_LR_ROWS_POWER 0.25 /* measured with 4 to 64 rows */

/* -1: lr is below what models of this size are trained with, 1: above, 0: neither. Fewer rows than
 * 64 allow rates lower by as much as --lr auto takes off, more rows allow higher ones. */
int sgt_advice_lr_outside(uint64_t parameters, uint64_t rows, double lr);

/* lr for a step of `rows` rows where it was meant for `base` rows: linear scaling (Goyal et al.,
 * 2017). */
double sgt_advice_scale_lr(double lr, uint64_t rows, uint64_t base);

/* What to do once step `step` (counted from 1) ended with a loss or a gradient norm that is not
 * finite, into buf, which is returned; NULL where both are. lr: what the run was given. */
const char *sgt_advice_not_finite(char *buf, size_t n, uint64_t step, double loss, double grad_norm,
                                  double lr);

/* What losses show as they come: each of the following is told once, where it is there at all.
 *   diverged      the mean of SGT_MEAN_STEPS is above where the run started, or NaN, for SGT_ABOVE_STEPS steps in a row
 *                 or at the run's last step: the lr is to be lowered. A run starts at the mean of its first
 *                 SGT_MEAN_STEPS steps; if these rise already, a tenth above its first step's loss
 *   lr too high   the mean of SGT_RISE_STEPS rises above the first loss, or from where it had fallen to, within
 *                 SGT_RISE_WITHIN steps after the warm-up: such a run falls again and then stays flat, far above what a
 *                 lower lr reaches. The lr is to be lowered 3 to 30 times; "flat" and its advice do not apply then
 *   oscillating   up and down SGT_SWINGS times within SGT_SWING_STEPS steps: the lr is to be lowered 2 to 10 times
 *   flat          past the warm-up, the last half of the steps is no lower than the quarter before it: raised
 *   a spike       SGT_SPIKE_Z standard deviations above the last SGT_SPIKE_STEPS: --skip-spikes
 *   not finite    lowered 10 times, at once
 * Only what chance does not explain counts: the losses of a text's tokens lie about 3 nats around
 * their mean, those of a row hang together, so that a step of n tokens is taken to be off by
 * 4.5/sqrt(n), and a rise or fall by six times that and by a tenth of the loss to be none of
 * chance's. Where rows are of many kinds, steps are off by more: a swing is also six times what the
 * last SGT_SWING_STEPS steps show of chance, before which there is none. */
#define SGT_SWINGS 4
#define SGT_SWING_STEPS 64
#define SGT_NOISE_LAGS 4 /* steps that a loss is compared with to see what chance does */
#define SGT_SPIKE_STEPS 128
#define SGT_SPIKE_Z 6
#define SGT_FLAT_BLOCKS 128
#define SGT_FLAT_BLOCK 4    /* steps of a block at first: nothing is called flat before 256 */
#define SGT_FLAT_PART 0.005 /* of the loss: what it should have fallen by at least */
#define SGT_MEAN_STEPS 20   /* steps of the mean that is compared with the run's start */
#define SGT_ABOVE_STEPS 50  /* steps in a row that this mean must be above the start */
#define SGT_RISE_STEPS 5    /* steps of the mean that must not rise at first */
/* steps after the warm-up in which a rise counts; twice as many in which it is told */
#define SGT_RISE_WITHIN 64
#define SGT_RISE_PART 0.05 /* of the loss: a smaller rise does not count */

typedef struct sgt_diagnosis {
    double lr;      /* what the run was given */
    double chance;  /* nats */
    int skipping;   /* --skip-spikes is on */
    unsigned told;  /* a bit each */
    double extreme; /* of the loss since it last turned */
    int rising;
    uint64_t turned[2 * SGT_SWINGS], turns; /* steps of the last turns; how many there were */
    double recent[SGT_SPIKE_STEPS];
    uint64_t seen;
    /* means of so many steps each; of the one that is being filled */
    double block[SGT_FLAT_BLOCKS], sum;
    unsigned blocks, block_steps, filled;
    /* the run's last step, for the caller to set after the start; 0: not known */
    uint64_t steps;
    double last[SGT_MEAN_STEPS]; /* losses of the last steps, NaN among them */
    /* the first step's loss; what the run started at; mean of `last` */
    double first, start, mean;
    /* highest lr_now so far, and the step that had it first: the end of the warm-up */
    double lr_most;
    uint64_t warm;
    /* the last means of SGT_RISE_STEPS steps; the lowest of those before */
    double means[SGT_RISE_STEPS], low;
    double from, rise;       /* the largest rise so far: from which loss, by how much */
    uint64_t counted, above; /* losses so far; steps in a row with `mean` above `start` */
    /* the loss has been above its start, or NaN, for so long, and still is */
    int diverged;
    int grave; /* the last text says that the run is lost */
} sgt_diagnosis;

void sgt_diagnosis_start(sgt_diagnosis *d, double lr, uint64_t tokens_per_step, int skipping);

/* After step `step` (counted from 1) with a learning rate of `lr_now`; text goes into buf, which is
 * returned; NULL where there is nothing to say. An overflow that loss scaling is there for is no
 * grad_norm to give: 0. */
const char *sgt_diagnosis_step(sgt_diagnosis *d, char *buf, size_t n, uint64_t step, double loss,
                               double grad_norm, double lr_now);

#endif
