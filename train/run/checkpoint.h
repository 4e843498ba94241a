/* checkpoint.h: reads and writes a checkpoint. A checkpoint is a folder RUN/step-NNNNNNNN: a
 * Hugging Face GPT-2 directory with additional files for resuming.
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
    uint64_t documents; /* number of documents that begin in the tokens trained on */
    /* index of the batch that the next micro-step will use, counted from the start of the run */
    uint64_t next_batch;
    double val_loss; /* validation loss after step `step`; 0: not evaluated then, or not finite */
    uint64_t seed;
    const char *sampling; /* option word of the sampling */
    sgt_schedule schedule;
    uint64_t data_hash;
    /* JSON text that describes the data sets of a mix (path, weight and hash of each); NULL if
     * --data names only one set */
    char *sets;
    /* Names of the device, the kernels and the matrix-product library that the run used. With
     * another device, kernel or library, results differ in their last bits. */
    char device[16], level[64], library[96];
    int scaling; /* 1: the backend had a loss scaler, and `scaler` holds its state */
    sgt_scaler scaler;
    /* 1: the run used --skip-spikes, and scaler.outliers holds the history */
    int skipping;
    /* text that names the algorithms for matrix products (sgt_backend.choices); NULL: none */
    char *choices;
    /* JSON text of the settings; sgt_checkpoint_read allocates `options`, `choices` and `sets` with
     * malloc */
    char *options;
} sgt_checkpoint_state;

/* number of floats that are copied from the backend at a time, and size of the buffer for
 * parameters and moments */
#define SGT_CHECKPOINT_PIECE ((size_t)1 << 20)

/* Write all files of a checkpoint to the existing folder `dir`. tokenizer: text of tokenizer.json;
 * NULL: none. eot: id of the end-of-text token; -1: unknown. */
int sgt_checkpoint_write(const char *dir, const sgt_checkpoint_state *state, sgt_backend *b,
                         const sgt_model *m, const char *tokenizer, int64_t eot, sgt_error *err);

/* Copy the run's state from the backend, in the model's layout: the parameters to the array to[0],
 * the first moments to to[1], the second moments to to[2]. Copy only the first `states` of these
 * three. A thread can later write the checkpoint from these arrays, by passing sgt_checkpoint_write
 * a backend whose `get` reads them.
 *
 * All ranks must call `get`. Therefore, while rank 0 copies or writes, all other ranks must call
 * this function with `to` = NULL: it then makes the same calls to the backend but copies
 * nothing. */
int sgt_checkpoint_copy(float *const *to, int states, sgt_backend *b, const sgt_model *m,
                        sgt_error *err);

/* Read the state.json of a checkpoint, but no other file. The fields tokens, next_batch, seed and
 * sampling are not set, because they follow from the other fields and the settings. The caller
 * frees *state with sgt_checkpoint_state_free. */
int sgt_checkpoint_read(sgt_checkpoint_state *state, const char *dir, sgt_error *err);
void sgt_checkpoint_state_free(sgt_checkpoint_state *state);

/* Check that the folder `dir` is a complete checkpoint of step `step`: its files must exist, be
 * valid and match each other. If `sums` is set, also read all files and verify their checksums. */
int sgt_checkpoint_check(const char *dir, uint64_t step, int sums, sgt_error *err);

/* Set *m to the shape of the model at `path`. If `path` is a file, it must be an llm.c model file,
 * and its header is read. If `path` is a folder, it may be any Hugging Face GPT-2 directory, and
 * its config.json is read. */
int sgt_checkpoint_shape(sgt_model *m, const char *path, sgt_error *err);

/* sgt_checkpoint_load_model loads the parameters from model.safetensors, or from the files that
 * model.safetensors.index.json names. Tensor names may begin with "transformer.". A tied weight may
 * be stored as wte, as lm_head, or as both. If both are stored and differ, the function returns
 * SGT_EFORMAT. sgt_checkpoint_load_moments loads both moments. If a tensor is missing or has a
 * wrong shape, either function returns SGT_EFORMAT with a message that names the tensor. */
int sgt_checkpoint_load_model(const char *dir, sgt_backend *b, const sgt_model *m, sgt_error *err);
int sgt_checkpoint_load_moments(const char *dir, sgt_backend *b, const sgt_model *m,
                                sgt_error *err);

#endif
