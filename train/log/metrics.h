/* metrics.h: the metrics of a step, their form in log.jsonl, and the memory of this process. */
#ifndef SGT_METRICS_H
#define SGT_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "train/model/model.h"

typedef struct sgt_metrics {
    uint64_t step; /* from 0 */
    double loss, grad_norm, lr;
    double loss_scale; /* scale used in the step; 1 without scaling */
    uint64_t skipped;  /* updates skipped so far */
    uint64_t spikes;   /* those skipped because of a spike */
    int skipping;      /* --skip-spikes is on */
    double val_loss;
    int evaluated;   /* val_loss was measured after this step */
    uint64_t tokens; /* tokens trained on, including this step */
    double epoch;    /* passes over the data, including this step */
    double ms_per_step, tokens_per_s, data_wait_ms;
    /* fraction of the measured peak and of the datasheet's (sgt_mfu); 0: unknown */
    double mfu, mfu_datasheet;
    uint64_t peak_bytes; /* peak memory of the process so far, or memory on the device */
    /* advice about the losses so far, owned by the caller; NULL: none */
    const char *advice;
} sgt_metrics;

/* List the metrics but `step`, with their names and their order in log.jsonl; return how many. */
typedef struct sgt_metric {
    const char *name;
    double value;
    int digits; /* significant digits worth writing; 0: an integer */
} sgt_metric;
#define SGT_METRICS 24
size_t sgt_metrics_list(const sgt_metrics *m, sgt_metric list[SGT_METRICS]);

/* Write m to buf as one JSON object without a newline; numbers that are not finite become null.
 * Return buf. */
char *sgt_metrics_json(char *buf, size_t n, const sgt_metrics *m);

/* Return the floating-point operations per token of a training step, as appendix B of PaLM counts
 * them (Chowdhery et al., 2022): 6 for each weight of a matrix product, including the head, and 12
 * * layers * channels * T for attention, ignoring the causal mask. Recomputation and padding do not
 * count. */
double sgt_flops_per_token(const sgt_model *m, uint64_t seq);

/* Return `rate` as a fraction of *peak, both in operations per second, from 0 to 1. It is rounded
 * to the log's digits, so every display rounds the same number. A rate above *peak raises *peak if
 * the rate is exact, and otherwise counts as 1. Return 0 if either is unknown. */
double sgt_mfu(double rate, double *peak, int exact);

/* Return the operations of a training in petaflop/s-days of 8.64e19, as Brown et al. count them
 * (GPT-3, 2020, appendix D): 6 N D for N parameters and D tokens, 2 forward and 4 backward for
 * each. Those of attention itself are left out. */
double sgt_pf_days(uint64_t parameters, double tokens);

uint64_t sgt_memory_peak(void);     /* peak resident bytes of this process */
uint64_t sgt_memory_resident(void); /* current resident bytes */
uint64_t sgt_memory_total(void);    /* bytes of memory of this machine or container */
/* bytes available without swapping; UINT64_MAX if the system does not say */
uint64_t sgt_memory_available(void);

#endif
