/* metrics.h: what a step measured, and how it is written down. */
#ifndef SGT_METRICS_H
#define SGT_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

typedef struct sgt_metrics {
    uint64_t step; /* from 0 */
    double loss, grad_norm, lr;
    double loss_scale; /* that the step used; 1 without one */
    uint64_t skipped;  /* updates left out so far */
    uint64_t spikes;   /* of these, those for a spike; */
    int skipping;      /* there is an eye on them */
    double val_loss;
    int evaluated;   /* after this step: val_loss was measured */
    uint64_t tokens; /* trained on, this step included */
    double epoch;    /* passes over the data, this step included */
    double ms_per_step, tokens_per_s, data_wait_ms;
    /* of the device's peak as measured and as its maker says (sgt_mfu); 0: not known */
    double mfu, mfu_datasheet;
    uint64_t peak_bytes; /* of the process so far, or on the device */
    /* what the losses up to this step ask for, the caller's; NULL: nothing */
    const char *advice;
} sgt_metrics;

/* What was measured, under its name in log.jsonl and in the log's order, `step` aside; returns how
 * many. */
typedef struct sgt_metric {
    const char *name;
    double value;
    int digits; /* significant ones worth writing; 0: a whole number */
} sgt_metric;
#define SGT_METRICS 24
size_t sgt_metrics_list(const sgt_metrics *m, sgt_metric list[SGT_METRICS]);

/* One JSON object without a newline into buf; numbers that are not finite are null. Returns buf. */
char *sgt_metrics_json(char *buf, size_t n, const sgt_metrics *m);

/* Floating-point operations that a token of a training step needs, as PaLM's appendix B counts them
 * (Chowdhery et al., 2022): 6 for each weight of a matrix product, the head's too, and 12 * layers
 * * channels * T for attention, its causal mask left out of account. Neither what is computed twice
 * nor padding counts. */
double sgt_flops_per_token(const sgt_model *m, uint64_t seq);

/* The part of *peak operations a second that `rate` is, from 0 to 1, with the digits that the log
 * has, so that what is shown elsewhere rounds the same number. A rate above *peak raises it if the
 * rate is exact, and counts as 1 otherwise. 0: either is not known. */
double sgt_mfu(double rate, double *peak, int exact);

/* Operations of a training in petaflop/s-days of 8.64e19, as Brown et al. (GPT-3, 2020, appendix D)
 * count them: 6 N D, for N parameters and D tokens: forward 2 for each, backward 4. Attention's own
 * are left out. */
double sgt_pf_days(uint64_t parameters, double tokens);

uint64_t sgt_memory_peak(void);     /* resident bytes of this process at their highest */
uint64_t sgt_memory_resident(void); /* now */
uint64_t sgt_memory_total(void);    /* bytes this machine, or this container, has */
/* bytes to be had without swapping; UINT64_MAX where the system does not say */
uint64_t sgt_memory_available(void);

#endif
