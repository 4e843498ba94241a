/* checkpoint.h: one RUN/step-NNNNNNNN folder: a Hugging Face GPT-2 directory that also holds what a
 * resume needs.
 *
 *   config.json generation_config.json model.safetensors   the model, as transformers names things
 *   tokenizer.json                                         where the data had one
 *   optimizer.safetensors                                  both moments, "m.NAME" and "v.NAME"
 *   state.json                                             step, tokens, sampler, scaler, schedule, data, machine,
 *                                                          options, and every file's checksum (sums.h) */
#ifndef SGT_CHECKPOINT_H
#define SGT_CHECKPOINT_H

#include <stdint.h>

#include "backend.h"
#include "base/error.h"
#include "model/model.h"
#include "schedule.h"

typedef struct sgt_checkpoint_state {
    uint64_t step;       /* completed */
    uint64_t tokens;     /* trained on */
    uint64_t documents;  /* begun in them */
    uint64_t next_batch; /* index of the next micro-step's batch */
    uint64_t seed;
    char sampling[16];
    sgt_schedule schedule;
    uint64_t data_hash;
    /* of a mix, JSON text: each set's path, weight and hash; NULL of one set */
    char *sets;
    char device[16], level[64], library[96]; /* what computed: the bits depend on it */
    int scaling;                             /* whether the backend had a loss scaler, */
    sgt_scaler scaler;                       /* and where it stood */
    int skipping;                            /* the run leaves spikes out: scaler.outliers */
    /* what the backend chose by timing, JSON text; NULL: nothing */
    char *choices;
    /* of the self-check, {"PATH": "ok", ...}; NULL: none was made */
    char *verdicts;
    /* settings as JSON text, malloc'd by sgt_checkpoint_read like choices and sets */
    char *options;
} sgt_checkpoint_state;

/* floats moved at a time, through a buffer of so many */
#define SGT_CHECKPOINT_PIECE ((size_t)1 << 20)

/* Everything into the existing folder `dir`. tokenizer: tokenizer.json's text, or NULL. eot: -1
 * where it is not known. */
int sgt_checkpoint_write(const char *dir, const sgt_checkpoint_state *state, sgt_backend *b,
                         const sgt_model *m, const char *tokenizer, int64_t eot, sgt_error *err);

/* The first `states` of parameters and both moments, each into an array laid out as the model says:
 * with a backend whose `get` reads from them, sgt_checkpoint_write can come later. */
int sgt_checkpoint_copy(float *const *to, int states, sgt_backend *b, const sgt_model *m,
                        sgt_error *err);

/* What the other ranks do while the first one writes or copies: the same calls of the backend. */
int sgt_checkpoint_follow(sgt_backend *b, const sgt_model *m, sgt_error *err);

/* state.json alone. Free with sgt_checkpoint_state_free. */
int sgt_checkpoint_read(sgt_checkpoint_state *state, const char *dir, sgt_error *err);
void sgt_checkpoint_state_free(sgt_checkpoint_state *state);

/* Whether the folder is a whole checkpoint of step `step`: its files are there, are what their
 * formats promise, and fit one another; with `sums`, which reads all of them, have the bytes that
 * were written. */
int sgt_checkpoint_check(const char *dir, uint64_t step, int sums, sgt_error *err);

/* The shape of a model to start from: what config.json says in any Hugging Face GPT-2 directory,
 * or, where `path` is a file, the header of llm.c's. */
int sgt_checkpoint_shape(sgt_model *m, const char *path, sgt_error *err);

/* Its parameters: in model.safetensors, or in the files that model.safetensors.index.json names
 * (names with or without "transformer."). A tensor that is missing or has another shape is
 * SGT_EFORMAT and named. */
int sgt_checkpoint_load_model(const char *dir, sgt_backend *b, const sgt_model *m, sgt_error *err);
int sgt_checkpoint_load_moments(const char *dir, sgt_backend *b, const sgt_model *m,
                                sgt_error *err);

#endif
