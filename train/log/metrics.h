/* metrics.h: the metrics of a step, functions that write them to log.jsonl and to event files for
 * TensorBoard, and functions that return how much memory is in use and available. */
#ifndef SGT_METRICS_H
#define SGT_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "train/model/model.h"

typedef struct sgt_metrics {
    uint64_t step; /* from 0 */
    double loss, grad_norm, lr;
    /* loss scale: factor by which the loss was multiplied before the backward pass; 1 if it was not
     * scaled */
    double loss_scale;
    uint64_t skipped; /* updates skipped since the run began */
    uint64_t spikes;  /* updates skipped since the run began because of a spike */
    int skipping;     /* 1: --skip-spikes is on */
    double val_loss;
    /* standard error of val_loss, estimated from the variation of the loss between rows; 0:
     * unknown */
    double val_noise;
    double val_bits_per_byte; /* val_loss converted to bits per byte of text; 0: unknown */
    int evaluated;            /* 1: val_loss was measured after this step */
    uint64_t tokens;          /* tokens trained on since the run began, including this step */
    double epoch;             /* passes over the data since the run began, including this step */
    double ms_per_step, tokens_per_s, data_wait_ms;
    /* mfu: training speed divided by the device's measured peak speed; mfu_datasheet: training
     * speed divided by the datasheet's peak speed (see sgt_mfu); 0: unknown */
    double mfu, mfu_datasheet;
    /* peak memory of the process in bytes; for a device with its own memory, the bytes allocated
     * there */
    uint64_t peak_bytes;
    /* advice about the losses so far; NULL: none; the caller owns the string */
    const char *advice;
} sgt_metrics;

/* A metric as a name and a value, for log.jsonl and TensorBoard. */
typedef struct sgt_metric {
    const char *name;
    double value;
    int digits; /* significant digits to write; 0: write an integer */
} sgt_metric;
#define SGT_METRICS 24
/* Fill `list` with all metrics except `step`, in the order of log.jsonl. Return how many metrics
 * there are. */
size_t sgt_metrics_list(const sgt_metrics *m, sgt_metric list[SGT_METRICS]);

/* Write *m to buf as one JSON object without a newline, and return buf. Infinite and NaN values
 * become null. */
char *sgt_metrics_json(char *buf, size_t n, const sgt_metrics *m);

/* The sum of the losses of some targets, in nats, and the number of bytes of text that these
 * targets represent. sgt_bits_per_byte computes bits per byte from them. Unlike a loss per token, a
 * loss per byte can be compared between models with different vocabularies. Targets that represent
 * no text, such as the end-of-text token, count in neither sum. */
typedef struct sgt_text_loss {
    double nats, bytes;
} sgt_text_loss;

/* Add the loss of one target, in nats. text_bytes[id] is the number of bytes of text that the token
 * `id` represents, or 0 if it represents no text. */
static inline void sgt_text_loss_add(sgt_text_loss *s, const uint32_t *text_bytes, int32_t target,
                                     float loss)
{
    uint32_t bytes = text_bytes[target];
    if (bytes) s->nats += (double)loss;
    s->bytes += bytes;
}

/* Return the loss in bits per byte, or 0 if the targets have no text. */
double sgt_bits_per_byte(const sgt_text_loss *s);

/* Return the floating-point operations that a training step needs per token, as defined in appendix
 * B of PaLM (Chowdhery et al., 2022). Per token, matrix products need 6 operations for each of
 * their weights, including the head's. Attention needs 12 * layers * channels * T operations, where
 * T is `seq`, counted as if there were no causal mask. Operations for recomputation and padding are
 * not counted. */
double sgt_flops_per_token(const sgt_model *m, uint64_t seq);

/* Return rate / *peak, but at most 1, or 0 if either is unknown. Both are speeds in operations per
 * second. The result is rounded as in log.jsonl, so that all outputs show the same value. If
 * `exact` is 1, `rate` was measured exactly. In this case, a rate above *peak means that the peak
 * was estimated too low: set *peak to `rate`. */
double sgt_mfu(double rate, double *peak, int exact);

/* Return the compute of a training run in petaflop/s-days (8.64e19 operations each), as defined in
 * appendix D of GPT-3 (Brown et al., 2020). N parameters and D tokens need 6 N D operations: for
 * each parameter and token 2 in the forward pass and 4 in the backward pass. The operations of
 * attention itself are not counted. */
double sgt_pf_days(uint64_t parameters, double tokens);

uint64_t sgt_memory_peak(void);     /* peak resident memory of this process, in bytes */
uint64_t sgt_memory_resident(void); /* current resident bytes */
uint64_t sgt_memory_total(void);    /* total memory of this machine or container, in bytes */
/* Return how many bytes of memory are available without swapping, or UINT64_MAX if unknown. */
uint64_t sgt_memory_available(void);

/* ---- event files ---- */

/* Event files store the numbers of log.jsonl for TensorBoard, in
 * RUN/tb/events.out.tfevents.TIME.HOST.PID. Each start or resume of a run creates a new file.
 *
 *     sgt_events *e;
 *     if (sgt_events_open(&e, "run/tb", step, &err) < 0) ...;
 *     sgt_events_add(e, &metrics, &err);                     // a point of each scalar
 *     sgt_events_close(e);
 *
 * A file is a sequence of records. A record is the length of the data (u64), the masked CRC32C of
 * these eight bytes (u32), the data, and the masked CRC32C of the data (u32), all little-endian.
 * The data is an Event of TensorFlow's event.proto, encoded as Protocol Buffers. The first record
 * states the version of the format. The second record is a SessionLog START at step `step`, which
 * makes TensorBoard ignore later steps in earlier files. */

typedef struct sgt_events sgt_events;

/* Create an event file in `folder`, which is created if missing. The file's name sorts after all
 * other event files in the folder. If `step` is 0, delete the other event files. */
int sgt_events_open(sgt_events **out, const char *folder, uint64_t step, sgt_error *err);
void sgt_events_close(sgt_events *e); /* NULL is fine */

/* Append the metrics of step m->step in one write, as scalars with the same names as in log.jsonl.
 * No memory is allocated. */
int sgt_events_add(sgt_events *e, const sgt_metrics *m, sgt_error *err);

/* sgt_crc32c returns the CRC-32C (Castagnoli) of n bytes. sgt_crc32c_masked returns the form of it
 * that event files store: the CRC's bits are rotated, and a constant is added. Without this mask,
 * the CRC of data that itself contains a CRC would detect fewer errors. */
uint32_t sgt_crc32c(const void *p, size_t n);
uint32_t sgt_crc32c_masked(const void *p, size_t n);

#endif
