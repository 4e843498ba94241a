/* trainer.h: a run that is set up, between setup.c, which opens everything, and loop.c, which runs
 * it. */
#ifndef SGT_TRAINER_H
#define SGT_TRAINER_H

#include <string.h>

#include "backend.h"
#include "device.h"
#include "plan.h"
#include "run/run.h"
#include "sgt_loader.h"
#include "sgt_train.h"
#include "log/trace.h"

typedef struct sgt_trainer {
    sgt_settings *s;
    const sgt_train_options *o;
    sgt_model model;
    sgt_plan plan; /* of what follows the set-up: s is not looked at there */
    sgt_backend *backend;
    sgt_run *run;
    sgt_loader *train, *val; /* val NULL: no evaluation */
    /* in the place of train and val, where --data is a .jsonl */
    sgt_examples examples, val_examples;
    sgt_loader_info info; /* of train */
    uint64_t eval_batches;
    char *tokenizer;            /* tokenizer.json's text, for checkpoints, or NULL */
    int64_t eot;                /* -1: not known */
    char *from;                 /* the checkpoint this run goes on from, or NULL */
    sgt_checkpoint_state state; /* as of now */
    sgt_trace *trace;           /* NULL: none is wanted */
    /* what each layer computes again, where memory decides that, or NULL */
    uint8_t *recompute_at;
    int dry;                      /* nothing is to be run, only estimated */
    char gpu[256];                /* the device's name, where it is CUDA's */
    int data_is_ours, lr_is_ours; /* --data was not given and ./out found; --lr was auto */
    /* why there is no evaluation; "": there is one, or none was asked for */
    char unevaluated[600];
    sgt_verdicts verdicts;        /* of the self-check; count 0: none was made */
    const sgt_cuda_library *cuda; /* of the device that was decided on; NULL: the CPU's */
} sgt_trainer;

/* The parts of sgt_trainer_open that an estimate has use for: options and device; then the shape
 * that config.json says, if one does; then, t->info.vocab being known, the model. */
int sgt_trainer_settle(sgt_trainer *t, sgt_error *err);
int sgt_trainer_read_shape(sgt_trainer *t, sgt_error *err);
/* data.c. The training data, and t->info; the validation shards that there are, t->val staying NULL
 * where there are none, which is said; both, examples, tokenizer and what a resume is held
 * against. */
int sgt_trainer_open_train(sgt_trainer *t, const sgt_loader_options *o, sgt_error *err);
int sgt_trainer_open_val(sgt_trainer *t, const sgt_loader_options *o, sgt_error *err);
int sgt_trainer_open_data(sgt_trainer *t, sgt_error *err);
/* Fail if a run that is resumed was trained on data that is gone, and no other place of it was
 * given. */
int sgt_trainer_find_data(const sgt_trainer *t, sgt_error *err);
int sgt_trainer_has_shards(const char *folder); /* of training */
int sgt_trainer_decide_model(sgt_trainer *t, sgt_error *err);

/* setup_paths.c. Fills in t->verdicts, where the run is on CUDA, and says what is out; then, with
 * the backend open, puts them into t->state, after a look at what the checkpoint's run had: another
 * verdict is said, and SGT_EUNSUPPORTED with --deterministic. */
int sgt_trainer_check_paths(sgt_trainer *t, sgt_error *err);
int sgt_trainer_take_verdicts(sgt_trainer *t, sgt_error *err);

/* Everything up to the first step. Close with sgt_trainer_close, after a failure too. */
int sgt_trainer_open(sgt_trainer *t, sgt_settings *s, const sgt_train_options *o, sgt_error *err);
void sgt_trainer_close(sgt_trainer *t);

/* Whether this is the rank that writes to the run directory. */
static inline int sgt_trainer_writes(const sgt_trainer *t) { return sgt_ranks_first(t->o->ranks); }

/* Whether the run's backend counts updates left out, and scales its loss where the precision asks
 * for that. */
static inline int sgt_trainer_scales(const sgt_trainer *t)
{
    return t->backend->put_scaler && t->backend->get_scaler;
}

/* resolve.c. The plan of a run, once settings, device and model are decided. An estimate of memory
 * resolves plans of its own while rows, steps or the learning rate are still undecided. */
int sgt_trainer_resolve(const sgt_trainer *t, sgt_plan *plan, sgt_error *err);

int sgt_trainer_run(sgt_trainer *t, sgt_train_result *r, sgt_error *err);

#endif
