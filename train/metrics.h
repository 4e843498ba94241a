/* metrics.h: what a step measured, and how it is written down. */
#ifndef SGT_METRICS_H
#define SGT_METRICS_H

#include <stddef.h>
#include <stdint.h>

typedef struct sgt_metrics {
    uint64_t step; /* from 0 */
    double loss, grad_norm, lr;
    double val_loss;
    int evaluated;    /* after this step: val_loss was measured */
    uint64_t tokens;  /* trained on, this step included */
    double epoch;     /* passes over the data, this step included */
    double ms_per_step, tokens_per_s, data_wait_ms;
    uint64_t peak_bytes; /* of the process so far */
} sgt_metrics;

/* One JSON object without a newline into buf; numbers that are not finite are null. Returns buf. */
char *sgt_metrics_json(char *buf, size_t n, const sgt_metrics *m);

uint64_t sgt_memory_peak(void);      /* resident bytes of this process at their highest */
uint64_t sgt_memory_total(void);     /* bytes this machine, or this container, has */
uint64_t sgt_memory_available(void); /* bytes to be had without swapping; UINT64_MAX where the system does not say */

#endif
