/* decoder.h: runs a GPT-2 on the CPU, for inference: a forward pass over a few rows at a time. The
 * keys and values of earlier tokens are cached, so nothing is computed twice.
 *
 *     sgt_decoder *d;
 *     sgt_decoder_options o = {.model = model, .sequences = 1, .threads = 2};
 *     if (sgt_decoder_open(&d, &o, &err) < 0) ...;
 *     if (sgt_checkpoint_load_model(dir, sgt_decoder_loads(d), &model, &err) < 0) ...;
 *     sgt_decoder_row rows[] = {{.id = 464, .position = 0},
 *                               {.id = 3290, .position = 1, .wanted = 1}};
 *     sgt_decoder_run(d, rows, 2, logits);       // (1, vocab): logits of the token after the two
 *     sgt_decoder_close(d);
 *
 * A row is one token of one sequence. Its result depends only on the tokens of its sequence and on
 * the CPU's level (kernels.h), to the bit. It does not depend on the other rows of a run, on how a
 * sequence is cut into runs, or on the number of threads. Calls on one decoder come from one thread
 * at a time. */
#ifndef SGT_DECODER_H
#define SGT_DECODER_H

#include "train/backend.h"

#define SGT_DECODER_ROWS 64 /* most rows of a run */

typedef struct sgt_decoder sgt_decoder;

typedef struct sgt_decoder_options {
    sgt_model model;
    uint32_t sequences; /* most sequences in the cache at a time, at least 1 */
    /* most positions of each sequence; 0: the model's, which is also the upper bound */
    uint32_t window;
    int threads; /* 0: all available cores */
    /* 1: round weight matrices to bfloat16, for half the memory and nearly twice the speed; all
     * other numbers, including inputs of products, stay float32 */
    int bf16;
} sgt_decoder_options;

typedef struct sgt_decoder_row {
    /* numbers of the sequence and the position, below the limits in the options */
    uint32_t sequence, position;
    uint16_t id; /* token, below the model's vocab */
    int wanted;  /* 1: return the logits of the token after this one */
} sgt_decoder_row;

/* Open a decoder with all parameters zero. Returns SGT_ENOMEM, with how much memory is needed. */
int sgt_decoder_open(sgt_decoder **out, const sgt_decoder_options *o, sgt_error *err);
void sgt_decoder_close(sgt_decoder *d); /* NULL is fine */

/* Return a backend for loading parameters: only its `put` may be called, with SGT_PARAMETERS. The
 * decoder owns it until sgt_decoder_close. */
sgt_backend *sgt_decoder_loads(sgt_decoder *d);

/* Run n rows (at most SGT_DECODER_ROWS) of any sequences; rows of one sequence must be in rising
 * order of position. A row attends to the rows of its sequence at lower positions, from this call
 * or earlier ones. Running a position again replaces it. Writes to `logits` (wanted rows, vocab),
 * in the order of the rows. */
void sgt_decoder_run(sgt_decoder *d, const sgt_decoder_row *rows, size_t n, float *logits);

uint32_t sgt_decoder_window(const sgt_decoder *d);
uint32_t sgt_decoder_sequences(const sgt_decoder *d);
const sgt_model *sgt_decoder_model(const sgt_decoder *d);
int sgt_decoder_threads(const sgt_decoder *d);
/* Return the bytes of all memory: weights, keys and values, and work space. */
uint64_t sgt_decoder_bytes(const sgt_decoder *d);
/* bytes of the weights, all read in every run */
uint64_t sgt_decoder_weights(const sgt_decoder *d);

#endif
