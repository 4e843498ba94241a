/* decoder.h: a GPT-2 that says what may come next, on the CPU: a forward pass over a few rows at a
 * time, which keeps keys and values of everything before them, and so computes nothing twice.
 *
 *     sgt_decoder *d;
 *     sgt_decoder_options o = {.model = model, .sequences = 1, .threads = 2};
 *     if (sgt_decoder_open(&d, &o, &err) < 0) ...;
 *     if (sgt_checkpoint_load_model(dir, sgt_decoder_loads(d), &model, &err) < 0) ...;
 *     sgt_decoder_row rows[] = {{.id = 464, .position = 0}, {.id = 3290, .position = 1, .wanted = 1}};
 *     sgt_decoder_run(d, rows, 2, logits);       // (1, vocab): what follows the two
 *     sgt_decoder_close(d);
 *
 * A row is one token of one sequence. What comes out for it depends on its sequence's tokens alone,
 * to the last bit: neither on the rows that it is run with, nor on how a sequence is cut into runs,
 * nor on the number of threads; only on the CPU's level (kernels.h). All calls on one decoder come
 * from one thread at a time. */
#ifndef SGT_DECODER_H
#define SGT_DECODER_H

#include "backend.h"

#define SGT_DECODER_ROWS 64 /* rows of a run at most */

typedef struct sgt_decoder sgt_decoder;

typedef struct sgt_decoder_options {
    sgt_model model;
    uint32_t sequences; /* kept at a time, at least 1 */
    uint32_t window;    /* positions of each; 0: the model's, which are the most */
    int threads;        /* 0: the cores at hand */
    int bf16; /* matrices are rounded to bfloat16: half the memory, and nearly twice the speed; all else, and
                           what they are multiplied by, stays float32 */
} sgt_decoder_options;

typedef struct sgt_decoder_row {
    uint32_t sequence, position; /* below the options' */
    uint16_t id;                 /* below the model's vocab */
    int wanted;                  /* what follows it is asked for */
} sgt_decoder_row;

/* SGT_ENOMEM says how much is needed. Parameters are zeros until loaded. */
int sgt_decoder_open(sgt_decoder **out, const sgt_decoder_options *o, sgt_error *err);
void sgt_decoder_close(sgt_decoder *d); /* NULL is fine */

/* Where parameters are put: a backend whose `put` alone may be called, with SGT_PARAMETERS; d's,
 * until its close. */
sgt_backend *sgt_decoder_loads(sgt_decoder *d);

/* Rows of any sequences, those of one in rising order of position: each sees the rows of its
 * sequence that were run at lower positions, in this call or before; running a position again
 * replaces it. `logits` (wanted rows, vocab), in the order of the rows. n is at most
 * SGT_DECODER_ROWS. */
void sgt_decoder_run(sgt_decoder *d, const sgt_decoder_row *rows, size_t n, float *logits);

uint32_t sgt_decoder_window(const sgt_decoder *d);
uint32_t sgt_decoder_sequences(const sgt_decoder *d);
const sgt_model *sgt_decoder_model(const sgt_decoder *d);
int sgt_decoder_threads(const sgt_decoder *d);
/* of memory: weights, keys and values, and the rest */
uint64_t sgt_decoder_bytes(const sgt_decoder *d);
uint64_t sgt_decoder_weights(const sgt_decoder *d); /* bytes of weights that every run reads */

#endif
