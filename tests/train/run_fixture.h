/* run_fixture.h: whole runs through sgt_train in the temporary folder of folder.h, and what they
 * leave. */
#ifndef TESTS_TRAIN_RUN_FIXTURE_H
#define TESTS_TRAIN_RUN_FIXTURE_H

#include "train/sgt_train.h"

/* every notice and every warning of the last run, a line each */
extern char said[8192], warned[8192];

void hear(void *into, const char *line); /* a sgt_notice: appends the line to such a text */

/* What `--device cuda` finds in runs from here on; NULL: whatever the machine has. */
extern const struct sgt_cuda_library *use_cuda;

/* What says whether the CPU multiplies bfloat16 in runs from here on; NULL: sgt_gemm_bf16. */
extern int (*use_bf16)(sgt_error *err);

/* What reads a --data FILE.jsonl. */
extern int (*use_examples)(const char *path, sgt_examples *e, sgt_error *err);

/* For .init, with remove_folder for .fini. FOLDER/data.bin: 20,001 ids of the curve's text (bytes)
 * as a shard that says what they are: 256 ids; a newline begins a document. */
void make_data(void);

/* The curve's settings, as contract and fixture have them. */
sgt_settings curve(uint64_t steps);
/* A run of a model small enough to be done many times. */
sgt_settings tiny(uint64_t steps);

enum { OR_START = 2 }; /* for `resume`: start at step 0 if there is no checkpoint */

/* sgt_train into FOLDER/name; stop after `stop` steps where that is not 0. */
int train(sgt_settings s, const char *name, int resume, int force, uint64_t stop,
          sgt_train_result *result, sgt_error *err);
void must_train(sgt_settings s, const char *name, int resume);

/* The log of FOLDER/run without what is measured; malloc'd. */
char *facts(const char *run);
void same_facts(const char *a, const char *b);
void same_bytes(const char *a, const char *b);

#endif
