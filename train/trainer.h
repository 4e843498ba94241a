/* trainer.h: the state of a run, which setup.c opens and loop.c runs. */
#ifndef SGT_TRAINER_H
#define SGT_TRAINER_H

#include <string.h>

#include "train/backend.h"
#include "train/device.h"
#include "train/plan.h"
#include "train/run/run.h"
#include "loader/sgt_loader.h"
#include "train/sgt_train.h"
#include "train/log/trace.h"

typedef struct sgt_trainer {
    sgt_settings *s;
    const sgt_train_options *o;
    sgt_model model;
    sgt_plan plan; /* used after the set-up instead of s */
    sgt_backend *backend;
    sgt_run *run;
    sgt_loader *train, *val; /* val NULL: no evaluation */
    /* replace train and val if --data is a .jsonl */
    sgt_examples examples, val_examples;
    sgt_loader_info info; /* of train */
    uint64_t eval_batches;
    char *tokenizer;            /* tokenizer.json's text, for checkpoints, or NULL */
    int64_t eot;                /* -1: not known */
    char *from;                 /* checkpoint that this run resumes from, or NULL */
    sgt_checkpoint_state state; /* current state */
    sgt_trace *trace;           /* NULL: no trace */
    /* what each layer recomputes, if memory decides that, or NULL */
    uint8_t *recompute_at;
    int dry;                      /* estimate only, run nothing */
    char gpu[256];                /* name of the CUDA device */
    int data_is_ours, lr_is_ours; /* --data was not given and ./out was found; --lr was auto */
    /* why there is no evaluation; "" if there is one or none was requested */
    char unevaluated[600];
    sgt_verdicts verdicts;        /* verdicts of the self-check; count 0: none was made */
    const sgt_cuda_library *cuda; /* library of the chosen device; NULL: the CPU */
} sgt_trainer;

/* In setup.c. Settle options and device: a part of sgt_trainer_open that an estimate uses too. */
int sgt_trainer_settle(sgt_trainer *t, sgt_error *err);
/* In setup_model.c. read_shape reads config.json, if there is one, before the data is opened, whose
 * ids are checked against the vocabulary; the caller reports its error only after those of the
 * data. decide_model completes the model, once t->info.vocab is known. */
int sgt_trainer_read_shape(sgt_trainer *t, sgt_error *err);
int sgt_trainer_decide_model(sgt_trainer *t, sgt_error *err);
/* In data.c. Open the training data and fill in t->info. Open the validation shards; if there are
 * none, say so and leave t->val NULL. Open both, with examples and tokenizer, and compare them with
 * the checkpoint of a resume. */
int sgt_trainer_open_train(sgt_trainer *t, const sgt_loader_options *o, sgt_error *err);
int sgt_trainer_open_val(sgt_trainer *t, const sgt_loader_options *o, sgt_error *err);
int sgt_trainer_open_data(sgt_trainer *t, sgt_error *err);
/* Fail if the data of a resumed run is gone and no other place was given. */
int sgt_trainer_find_data(const sgt_trainer *t, sgt_error *err);
int sgt_trainer_has_shards(const char *folder); /* whether it has training shards */

/* In setup_paths.c. check_paths fills in t->verdicts if the run is on CUDA, and reports the paths
 * that are out. take_verdicts, with the backend open, compares them with the checkpoint's and puts
 * them into t->state. A difference is a warning, or SGT_EUNSUPPORTED with --deterministic. */
int sgt_trainer_check_paths(sgt_trainer *t, sgt_error *err);
int sgt_trainer_take_verdicts(sgt_trainer *t, sgt_error *err);

/* Do everything up to the first step. The caller must call sgt_trainer_close, even after a
 * failure. */
int sgt_trainer_open(sgt_trainer *t, sgt_settings *s, const sgt_train_options *o, sgt_error *err);
void sgt_trainer_close(sgt_trainer *t);

/* Return whether this rank writes to the run directory. */
static inline int sgt_trainer_writes(const sgt_trainer *t) { return sgt_ranks_first(t->o->ranks); }

/* Return whether the backend counts skipped updates, and scales its loss if the precision requires
 * it. */
static inline int sgt_trainer_scales(const sgt_trainer *t)
{
    return t->backend->put_scaler && t->backend->get_scaler;
}

/* In resolve.c. Make the plan of a run once settings, device and model are decided. An estimate of
 * memory makes its own plans while rows, steps or the learning rate are undecided. */
int sgt_trainer_resolve(const sgt_trainer *t, sgt_plan *plan, sgt_error *err);

/* In announce.c. Print three lines about the run, and details. */
void sgt_trainer_announce(const sgt_trainer *t);

int sgt_trainer_run(sgt_trainer *t, sgt_train_result *r, sgt_error *err);

#endif
