/* checkpoint.h: reads and writes a checkpoint, a folder RUN/step-NNNNNNNN: a Hugging Face GPT-2
 * directory with additional files for resuming.
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
    uint64_t step;       /* steps completed */
    uint64_t tokens;     /* tokens trained on */
    uint64_t documents;  /* documents that begin in those tokens */
    uint64_t next_batch; /* index of the next micro-step's batch */
    double val_loss;     /* validation loss after the last step; 0: not evaluated, or not finite */
    uint64_t seed;
    const char *sampling; /* option word of the sampling */
    sgt_schedule schedule;
    uint64_t data_hash;
    /* JSON text with path, weight and hash of each set of a mix; NULL for a single set */
    char *sets;
    /* device, kernels and library of the run; the bits of results depend on them */
    char device[16], level[64], library[96];
    int scaling; /* 1: the backend had a loss scaler, whose state is in `scaler` */
    sgt_scaler scaler;
    /* 1: the run skips spikes, and scaler.outliers has the history */
    int skipping;
    /* text that names the algorithms of matrix products (sgt_backend.choices); NULL: none */
    char *choices;
    /* JSON text of the settings, malloc'd by sgt_checkpoint_read, like choices and sets */
    char *options;
} sgt_checkpoint_state;

/* number of floats copied at a time, and size of the buffer for them */
#define SGT_CHECKPOINT_PIECE ((size_t)1 << 20)

/* Write all files of a checkpoint to the existing folder `dir`. tokenizer: text of tokenizer.json,
 * or NULL. eot: id of the end-of-text token, or -1 if unknown. */
int sgt_checkpoint_write(const char *dir, const sgt_checkpoint_state *state, sgt_backend *b,
                         const sgt_model *m, const char *tokenizer, int64_t eot, sgt_error *err);

/* Copy the parameters and both moments, or only the first `states` of these three, each to an array
 * with the model's layout. sgt_checkpoint_write can then run later, with a backend whose `get`
 * reads these arrays. If `to` is NULL, make the same calls of the backend but copy nothing; the
 * other ranks must do this while rank 0 writes or copies. */
int sgt_checkpoint_copy(float *const *to, int states, sgt_backend *b, const sgt_model *m,
                        sgt_error *err);

/* Read only state.json. Does not set tokens, next_batch, seed and sampling, which follow from the
 * other members and the settings. The caller frees *state with sgt_checkpoint_state_free. */
int sgt_checkpoint_read(sgt_checkpoint_state *state, const char *dir, sgt_error *err);
void sgt_checkpoint_state_free(sgt_checkpoint_state *state);

/* Check that the folder is a complete checkpoint of step `step`: its files exist, are valid and
 * match each other. If `sums` is set, also read all files and verify their checksums. */
int sgt_checkpoint_check(const char *dir, uint64_t step, int sums, sgt_error *err);

/* Read the shape of a model. If `path` is a file, read it from the header of that llm.c file;
 * otherwise from config.json in `path`, which may be any Hugging Face GPT-2 directory. */
int sgt_checkpoint_shape(sgt_model *m, const char *path, sgt_error *err);

/* sgt_checkpoint_load_model loads the parameters from model.safetensors, or from the files that
 * model.safetensors.index.json names. Names of tensors may begin with "transformer.". A tied weight
 * may be stored as wte, as lm_head, or as both; if both exist and differ, it returns SGT_EFORMAT.
 * sgt_checkpoint_load_moments loads the moments. Both return SGT_EFORMAT if a tensor is missing or
 * has another shape; the message names it. */
int sgt_checkpoint_load_model(const char *dir, sgt_backend *b, const sgt_model *m, sgt_error *err);
int sgt_checkpoint_load_moments(const char *dir, sgt_backend *b, const sgt_model *m,
                                sgt_error *err);

#endif
