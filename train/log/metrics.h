/* metrics.h: the metrics of a step, writing them to log.jsonl and for TensorBoard, and the memory
 * of this process. */
#ifndef SGT_METRICS_H
#define SGT_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "train/model/model.h"

typedef struct sgt_metrics {
    uint64_t step; /* from 0 */
    double loss, grad_norm, lr;
    double loss_scale; /* scale used in the step; 1 without scaling */
    uint64_t skipped;  /* updates skipped so far */
    uint64_t spikes;   /* updates skipped so far because of a spike */
    int skipping;      /* 1: --skip-spikes is on */
    double val_loss;
    double val_noise;         /* standard error of val_loss; 0: unknown */
    double val_bits_per_byte; /* the same in bits per byte of text; 0: the bytes are unknown */
    int evaluated;            /* 1: val_loss was measured after this step */
    uint64_t tokens;          /* tokens trained on, including this step */
    double epoch;             /* passes over the data, including this step */
    double ms_per_step, tokens_per_s, data_wait_ms;
    /* speed as a fraction of the measured peak, and of the datasheet's peak (sgt_mfu); 0:
     * unknown */
    double mfu, mfu_datasheet;
    /* peak memory of the process so far; for a device with its own memory, the bytes held there */
    uint64_t peak_bytes;
    /* advice about the losses so far, owned by the caller; NULL: none */
    const char *advice;
} sgt_metrics;

/* Fill `list` with all metrics except `step`, with the names and in the order of log.jsonl. Return
 * their number. */
typedef struct sgt_metric {
    const char *name;
    double value;
    int digits; /* significant digits to write; 0: an integer */
} sgt_metric;
#define SGT_METRICS 24
size_t sgt_metrics_list(const sgt_metrics *m, sgt_metric list[SGT_METRICS]);

/* Write m to buf as one JSON object without a newline; numbers that are not finite become null.
 * Return buf. */
char *sgt_metrics_json(char *buf, size_t n, const sgt_metrics *m);

/* A sum of losses over targets, and the bytes of text that these targets stand for. Unlike losses
 * per token, bits per byte can be compared between models with different vocabularies. Targets that
 * stand for no text, such as the end of text, do not count. */
typedef struct sgt_text_loss {
    double nats, bytes;
} sgt_text_loss;

/* Add a target's loss, in nats. text_bytes: for each id, the bytes of its text, or 0 if it has
 * none. */
static inline void sgt_text_loss_add(sgt_text_loss *s, const uint32_t *text_bytes, int32_t target,
                                     float loss)
{
    uint32_t bytes = text_bytes[target];
    if (bytes) s->nats += (double)loss;
    s->bytes += bytes;
}

/* Return the loss in bits per byte; 0: there was no text. */
double sgt_bits_per_byte(const sgt_text_loss *s);

/* Return the floating-point operations per token of a training step, counted as in appendix B of
 * PaLM (Chowdhery et al., 2022): 6 for each weight of a matrix product, including the head, and 12
 * * layers * channels * T for attention, as if there were no causal mask. Recomputation and padding
 * do not count. */
double sgt_flops_per_token(const sgt_model *m, uint64_t seq);

/* Return `rate` as a fraction of *peak, from 0 to 1; both are in operations per second. The result
 * is rounded to as many digits as the log has, so that all displays start from the same number. If
 * rate > *peak, the fraction is 1, and if `exact` is set, *peak becomes rate. Return 0 if `rate` or
 * *peak is unknown. */
double sgt_mfu(double rate, double *peak, int exact);

/* Return the compute of a training run in petaflop/s-days (8.64e19 operations each), counted as in
 * appendix D of GPT-3 (Brown et al., 2020): 6 N D operations for N parameters and D tokens, 2
 * forward and 4 backward for each parameter and token. The operations of attention itself are not
 * included. */
double sgt_pf_days(uint64_t parameters, double tokens);

uint64_t sgt_memory_peak(void);     /* peak resident bytes of this process */
uint64_t sgt_memory_resident(void); /* current resident bytes */
uint64_t sgt_memory_total(void);    /* bytes of memory of this machine or container */
/* bytes available without swapping; UINT64_MAX if unknown */
uint64_t sgt_memory_available(void);

/* ---- event files: write the log's numbers for TensorBoard to
 * RUN/tb/events.out.tfevents.TIME.HOST.PID, a new file each time a run starts or resumes.
 *
 *     sgt_events *e;
 *     if (sgt_events_open(&e, "run/tb", step, &err) < 0) ...;
 *     sgt_events_add(e, &metrics, &err);                     // a point of each scalar
 *     sgt_events_close(e);
 *
 * A file is a sequence of records: u64 length, u32 masked CRC32C of those eight bytes, that many
 * bytes of an Event (TensorFlow's event.proto, in Protocol Buffers' encoding), u32 masked CRC32C of
 * them; all little-endian. The first record gives the version of the format. The second is a
 * SessionLog START at `step`, which makes TensorBoard ignore later steps in earlier files. ---- */

typedef struct sgt_events sgt_events;

/* Create an event file in `folder` (created if missing). Its name sorts after those of all other
 * event files there. If `step` is 0, delete these other files. */
int sgt_events_open(sgt_events **out, const char *folder, uint64_t step, sgt_error *err);
void sgt_events_close(sgt_events *e); /* NULL is fine */

/* Append the metrics of step m->step as scalars, with the same names as in log.jsonl, in one write.
 * Allocates no memory. */
int sgt_events_add(sgt_events *e, const sgt_metrics *m, sgt_error *err);

/* sgt_crc32c returns the CRC-32C (Castagnoli). sgt_crc32c_masked returns the form that records use:
 * rotated, plus a constant, because the CRC of data that contains its own CRC would be weak. */
uint32_t sgt_crc32c(const void *p, size_t n);
uint32_t sgt_crc32c_masked(const void *p, size_t n);

#endif
