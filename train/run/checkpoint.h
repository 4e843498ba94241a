/* checkpoint.h: read and write a folder RUN/step-NNNNNNNN: a Hugging Face GPT-2 directory that also
 * holds what a resume needs.
 *
 *   config.json, generation_config.json,
 *   model.safetensors        the model, with the names that transformers uses
 *   tokenizer.json           if the data had one
 *   optimizer.safetensors    both moments, "m.NAME" and "v.NAME"
 *   state.json               step, tokens, sampler, scaler, schedule, data, machine, options, and
 *                            the checksum of every file (sums.h) */
#ifndef SGT_CHECKPOINT_H
#define SGT_CHECKPOINT_H

#include <stdint.h>

#include "train/backend.h"
#include "loader/base/error.h"
#include "train/model/model.h"
#include "train/schedule.h"

typedef struct sgt_checkpoint_state {
    uint64_t step;       /* steps completed */
    uint64_t tokens;     /* tokens trained on */
    uint64_t documents;  /* documents begun in those tokens */
    uint64_t next_batch; /* index of the next micro-step's batch */
    uint64_t seed;
    char sampling[16];
    sgt_schedule schedule;
    uint64_t data_hash;
    /* JSON text with path, weight and hash of each set of a mix; NULL for one set */
    char *sets;
    /* device, kernels and library of the run, on which the bits depend */
    char device[16], level[64], library[96];
    int scaling; /* the backend had a loss scaler, and its state */
    sgt_scaler scaler;
    /* the run skips spikes, with history in scaler.outliers */
    int skipping;
    /* JSON text of the algorithms chosen by timing; NULL: none */
    char *choices;
    /* verdicts of the self-check, {"PATH": "ok", ...}; NULL: none was made */
    char *verdicts;
    /* settings as JSON text, malloc'd by sgt_checkpoint_read, like choices and sets */
    char *options;
} sgt_checkpoint_state;

/* floats copied at a time, and the size of the buffer for them */
#define SGT_CHECKPOINT_PIECE ((size_t)1 << 20)

/* Write all files to the existing folder `dir`. tokenizer: text of tokenizer.json, or NULL. eot: -1
 * if unknown. */
int sgt_checkpoint_write(const char *dir, const sgt_checkpoint_state *state, sgt_backend *b,
                         const sgt_model *m, const char *tokenizer, int64_t eot, sgt_error *err);

/* Copy the first `states` of parameters and both moments, each to an array with the model's layout.
 * sgt_checkpoint_write can then run later, with a backend whose `get` reads these arrays. */
int sgt_checkpoint_copy(float *const *to, int states, sgt_backend *b, const sgt_model *m,
                        sgt_error *err);

/* Make the same backend calls as rank 0 makes while it writes or copies; for the other ranks. */
int sgt_checkpoint_follow(sgt_backend *b, const sgt_model *m, sgt_error *err);

/* Read state.json only. The caller frees *state with sgt_checkpoint_state_free. */
int sgt_checkpoint_read(sgt_checkpoint_state *state, const char *dir, sgt_error *err);
void sgt_checkpoint_state_free(sgt_checkpoint_state *state);

/* Check that the folder is a complete checkpoint of step `step`: its files exist, are valid, and
 * fit one another. With `sums`, which reads them all, check their checksums too. */
int sgt_checkpoint_check(const char *dir, uint64_t step, int sums, sgt_error *err);

/* Read the shape of a model to start from: from config.json of any Hugging Face GPT-2 directory,
 * or, if `path` is a file, from the header of an llm.c file. */
int sgt_checkpoint_shape(sgt_model *m, const char *path, sgt_error *err);

/* Load the parameters from model.safetensors, or from the files that model.safetensors.index.json
 * names (tensor names with or without "transformer."); load_moments loads the moments. SGT_EFORMAT
 * names a tensor that is missing or has another shape. */
int sgt_checkpoint_load_model(const char *dir, sgt_backend *b, const sgt_model *m, sgt_error *err);
int sgt_checkpoint_load_moments(const char *dir, sgt_backend *b, const sgt_model *m,
                                sgt_error *err);

#endif
