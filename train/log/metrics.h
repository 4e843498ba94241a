/* metrics.h: the metrics of a training step, and functions that write them to log.jsonl and to
 * TensorBoard event files. Other functions return how much memory is in use and how much is
 * available. */
#ifndef SGT_METRICS_H
#define SGT_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "train/model/model.h"

typedef struct sgt_metrics {
    uint64_t step; /* from 0 */
    double loss, grad_norm, lr;
    /* factor by which the loss was multiplied before the backward pass; 1 if it was not scaled */
    double loss_scale;
    uint64_t skipped; /* updates skipped since the run began */
    uint64_t spikes;  /* number of updates skipped because of a spike since the run began */
    int skipping;     /* 1: --skip-spikes is on */
    double val_loss;
    /* standard error of val_loss, estimated from the differences between the losses of rows; 0 if
     * unknown */
    double val_noise;
    double val_bits_per_byte; /* validation loss in bits per byte of text; 0 if unknown */
    int evaluated;            /* 1: val_loss was measured after this step */
    /* number of tokens trained on from the start of the run to the end of this step */
    uint64_t tokens;
    /* number of passes over the data from the start of the run to the end of this step */
    double epoch;
    double ms_per_step, tokens_per_s, data_wait_ms;
    /* mfu (model FLOPs utilization): training speed divided by the device's measured peak speed;
     * mfu_datasheet: training speed divided by the peak speed in the device's datasheet; both are 0
     * if unknown (see sgt_mfu) */
    double mfu, mfu_datasheet;
    /* peak memory in bytes: memory of the process or, if the device has its own memory, memory
     * allocated on the device */
    uint64_t peak_bytes;
    /* advice about the losses so far; NULL if there is none. The caller owns the string. */
    const char *advice;
} sgt_metrics;

/* Name and value of one metric, as written to log.jsonl and TensorBoard. */
typedef struct sgt_metric {
    const char *name;
    double value;
    int digits; /* number of significant digits to write; 0: write as an integer */
} sgt_metric;
#define SGT_METRICS 24
/* Write all metrics except `step` to `list`, in the order of log.jsonl, and return their number. */
size_t sgt_metrics_list(const sgt_metrics *m, sgt_metric list[SGT_METRICS]);

/* Write *m to `buf`, which has n bytes, as one JSON object without a newline. Return `buf`. Values
 * that are infinite or NaN become null. */
char *sgt_metrics_json(char *buf, size_t n, const sgt_metrics *m);

/* The sum of the losses of a set of targets, in nats, and the number of bytes of text that the
 * targets stand for. sgt_bits_per_byte computes bits per byte from these sums. Unlike loss per
 * token, loss per byte can be compared between models with different vocabularies. A target without
 * text, such as the end-of-text token, is left out of both sums. */
typedef struct sgt_text_loss {
    double nats, bytes;
} sgt_text_loss;

/* Add the loss of one target, in nats. text_bytes[id] is the length in bytes of the text that token
 * `id` stands for, or 0 if the token has no text. */
static inline void sgt_text_loss_add(sgt_text_loss *s, const uint32_t *text_bytes, int32_t target,
                                     float loss)
{
    uint32_t bytes = text_bytes[target];
    if (bytes) s->nats += (double)loss;
    s->bytes += bytes;
}

/* Return the loss in bits per byte, or 0 if no target has text. */
double sgt_bits_per_byte(const sgt_text_loss *s);

/* Return the number of floating-point operations that a training step needs per token, as defined
 * in appendix B of PaLM (Chowdhery et al., 2022). Matrix products need 6 operations per weight,
 * including the weights of the head. Attention needs 12 * layers * channels * T operations; T is
 * `seq`, and the causal mask is ignored. Operations for recomputation and padding are not
 * counted. */
double sgt_flops_per_token(const sgt_model *m, uint64_t seq);

/* Return the model FLOPs utilization, rate / *peak, limited to 1, or 0 if either speed is unknown.
 * Both speeds are in operations per second. The result is rounded as in log.jsonl, so that all
 * outputs show the same value. If `exact` is 1, `rate` was measured exactly, so a rate above *peak
 * means that the peak was estimated too low. In that case, set *peak to `rate`. */
double sgt_mfu(double rate, double *peak, int exact);

/* Return the operations of a training run in petaflop/s-days (8.64e19 operations each), as defined
 * in appendix D of GPT-3 (Brown et al., 2020). For N parameters and D tokens, the run needs 6 N D
 * operations: per parameter and token, 2 in the forward pass and 4 in the backward pass. The
 * products of queries, keys and values in attention are not counted. */
double sgt_pf_days(uint64_t parameters, double tokens);

uint64_t sgt_memory_peak(void);     /* peak resident memory of this process, in bytes */
uint64_t sgt_memory_resident(void); /* current resident bytes */
uint64_t sgt_memory_total(void);    /* total memory of this machine or container, in bytes */
/* Return how many bytes of memory can be allocated without swapping, or UINT64_MAX if unknown. */
uint64_t sgt_memory_available(void);

/* ---- event files ---- */

/* Event files contain the metrics of log.jsonl in TensorBoard's format. Whenever a run starts or
 * resumes, it creates a new file RUN/tb/events.out.tfevents.TIME.HOST.PID.
 *
 *     sgt_events *e;
 *     if (sgt_events_open(&e, "run/tb", step, &err) < 0) ...;
 *     sgt_events_add(e, &metrics, &err);                     // a point of each scalar
 *     sgt_events_close(e);
 *
 * A file is a sequence of records. A record consists of the data's length (u64), the masked CRC-32C
 * of the eight bytes of this length (u32), the data, and the masked CRC-32C of the data (u32). All
 * numbers are little-endian. The data is an Event of TensorFlow's event.proto, encoded as Protocol
 * Buffers. The first record states the format version. The second record is a SessionLog START at
 * step `step`. It makes TensorBoard ignore steps from `step` on in earlier files. */

typedef struct sgt_events sgt_events;

/* Create an event file in `folder`. Create the folder if it is missing. The name of the new file
 * sorts after the names of all other event files in the folder. If `step` is 0, first delete the
 * other event files. */
int sgt_events_open(sgt_events **out, const char *folder, uint64_t step, sgt_error *err);
void sgt_events_close(sgt_events *e); /* NULL is fine */

/* Append the metrics of step m->step as scalars, which have the same names as in log.jsonl. The
 * function makes a single write call and does not allocate memory. */
int sgt_events_add(sgt_events *e, const sgt_metrics *m, sgt_error *err);

/* Return the masked CRC-32C of n bytes, which event files store: the CRC-32C (Castagnoli), rotated
 * by some bits, plus a constant. Without this mask, a CRC of data that itself contains a CRC would
 * detect fewer errors. */
uint32_t sgt_crc32c_masked(const void *p, size_t n);

#endif
