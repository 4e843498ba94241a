/* run_fixture.h: whole training runs, through sgt_train, in the temporary folder of folder.h, and
 * checks of the files that they write. */
#ifndef TESTS_TRAIN_RUN_FIXTURE_H
#define TESTS_TRAIN_RUN_FIXTURE_H

#include <jansson.h>

#include "tests/scoped.h"
#include "train/log/metrics.h"
#include "train/run/checkpoint.h"
#include "train/sgt_train.h"

SCOPED_POINTER(json_t, json_decref)
SCOPED_STRUCT(sgt_config, sgt_config_free)
SCOPED_STRUCT(sgt_checkpoint_state, sgt_checkpoint_state_free)

/* notices (said) and warnings (warned) of the last run, one per line */
extern char said[8192], warned[8192];

/* metrics of the steps of the last run, or of the last runs with other steps; index: the step */
extern sgt_metrics stepped[256];

/* the function of an sgt_notice: append the line to `into`, which is `said` or `warned` */
void hear(void *into, const char *line);

/* The function that later runs with --data FILE.jsonl call to read FILE.jsonl. */
extern int (*use_examples)(const char *path, const char *model, uint32_t vocab, sgt_examples *e,
                           sgt_error *err);

/* Criterion's .init for a test that needs data; remove_folder is its .fini. Writes FOLDER/data.bin,
 * a shard with 20,001 tokens from FIXTURES/curve/tokens.bin. The tokens are bytes (vocabulary 256),
 * and a newline begins a document. */
void make_data(void);

/* Return the settings with which the fixture's curve was recorded. */
sgt_config curve(uint64_t steps);
/* Return the settings of a model small enough to be trained many times. */
sgt_config tiny(uint64_t steps);

enum { OR_START = 2 }; /* for `resume`: start at step 0 if there is no checkpoint */

/* Call sgt_train with the run directory FOLDER/name. Stop after `stop` steps, unless `stop` is
 * 0. */
int train(sgt_config s, const char *name, int resume, int force, uint64_t stop,
          sgt_training_result *result, sgt_error *err);
void must_train(sgt_config s, const char *name, int resume);

/* Return the log of FOLDER/run without measured values such as times; malloc'd. */
char *facts(const char *run);
void same_facts(const char *a, const char *b);
void same_bytes(const char *a, const char *b);

#endif
