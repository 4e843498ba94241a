/* checkpoint.h: reads and writes checkpoints. A checkpoint is a folder RUN/step-NNNNNNNN, which is
 * a Hugging Face GPT-2 directory with additional files for resuming.
 *
 *   config.json, generation_config.json,
 *   model.safetensors        the model, with the names that transformers uses
 *   tokenizer.json, tokenizer_config.json    if the data had a tokenizer.json
 *   optimizer.safetensors    both moments, "m.NAME" and "v.NAME"
 *   state.json               step, tokens, sampler, scaler, schedule, data, machine, options, and
 *                            the checksum of every file */
#ifndef SGT_CHECKPOINT_H
#define SGT_CHECKPOINT_H

#include <stdint.h>

#include "train/backend.h"
#include "loader/base/error.h"
#include "train/model/model.h"

typedef struct sgt_checkpoint_state {
    uint64_t step;      /* steps completed */
    uint64_t tokens;    /* tokens trained on */
    uint64_t documents; /* number of documents that begin within the tokens trained on */
    /* index of the batch for the next micro-step; the first batch of the run is 0 */
    uint64_t next_batch;
    /* validation loss after step `step`; 0 if there was no evaluation after this step, or if the
     * loss was not finite */
    double val_loss;
    uint64_t seed;
    const char *sampling; /* option word of the sampling */
    sgt_schedule schedule;
    uint64_t data_hash;
    /* JSON text with the path, weight and hash of each data set; NULL if --data names only one data
     * set */
    char *sets;
    /* Names of the device, the kernels' instruction set and the matrix-product library that the run
     * used. If any of them changes, results differ in their last bits. */
    char device[16], level[96], library[96];
    int scaling; /* 1: the backend has a loss scaler, whose state is in `scaler`; 0: it has none */
    sgt_scaler scaler;
    /* 1: the run uses --skip-spikes, whose past losses and gradient norms are in scaler.outliers;
     * 0: it does not */
    int skipping;
    /* names of the chosen matrix-product algorithms, as text (see sgt_backend.choices); NULL if
     * none were chosen */
    char *choices;
    /* JSON text of the run's options. sgt_checkpoint_read allocates `options`, `choices` and `sets`
     * with malloc. */
    char *options;
} sgt_checkpoint_state;

/* maximum number of floats copied from the backend in one call, and the size in floats of the
 * buffer for these copies */
#define SGT_CHECKPOINT_PIECE ((size_t)1 << 20)

/* Write all files of a checkpoint to the folder `dir`, which must exist. tokenizer: text of
 * tokenizer.json, or NULL to write no tokenizer; eot: id of the end-of-text token, or -1 if
 * unknown. */
int sgt_checkpoint_write(const char *dir, const sgt_checkpoint_state *state, sgt_backend *b,
                         const sgt_model *m, const char *tokenizer, int64_t eot, sgt_error *err);

/* Copy the first `states` of these three from the backend, in the model's layout: the parameters to
 * the array to[0], the first moments to to[1], and the second moments to to[2]. A background thread
 * can later write a checkpoint from these arrays: it calls sgt_checkpoint_write with a backend
 * whose function `get` reads the arrays.
 *
 * All ranks must make the same calls to the real backend's `get`. Therefore, whenever rank 0 copies
 * or writes the state, all other ranks must call this function with `to` = NULL, which makes the
 * same calls but discards the data. */
int sgt_checkpoint_copy(float *const *to, int states, sgt_backend *b, const sgt_model *m,
                        sgt_error *err);

/* Read only the file state.json of a checkpoint. Do not set the fields tokens, next_batch, seed and
 * sampling, which the caller can derive from the other fields and the settings. The caller must
 * pass *state to sgt_checkpoint_state_free. */
int sgt_checkpoint_read(sgt_checkpoint_state *state, const char *dir, sgt_error *err);
void sgt_checkpoint_state_free(sgt_checkpoint_state *state);

/* Return an error unless the folder `dir` is a complete checkpoint of step `step`. All files must
 * exist, have valid headers and belong to the same model. If `sums` is set, also read every file
 * completely and verify its checksum. */
int sgt_checkpoint_check(const char *dir, uint64_t step, int sums, sgt_error *err);

/* Set *m to the shape of the model at `path`. If `path` is a folder, read its config.json; the
 * folder may be any Hugging Face GPT-2 directory. If `path` is a file, read its header; the file
 * must be an llm.c model file. */
int sgt_checkpoint_shape(sgt_model *m, const char *path, sgt_error *err);

/* sgt_checkpoint_load_model loads the parameters from model.safetensors, or from the files that
 * model.safetensors.index.json lists. Tensor names may begin with "transformer.". A tied weight may
 * be stored under the name of wte, of lm_head, or of both; if the two differ, the function returns
 * SGT_EFORMAT. sgt_checkpoint_load_moments loads the first and second moments. If a tensor is
 * missing or has the wrong shape, both functions return SGT_EFORMAT with a message that names the
 * tensor. */
int sgt_checkpoint_load_model(const char *dir, sgt_backend *b, const sgt_model *m, sgt_error *err);
int sgt_checkpoint_load_moments(const char *dir, sgt_backend *b, const sgt_model *m,
                                sgt_error *err);

#endif
