/* trainer.h: the state of a run, which setup.c opens and loop.c runs. */
#ifndef SGT_TRAINER_H
#define SGT_TRAINER_H

#include <string.h>

#include "train/backend.h"
#include "train/device.h"
#include "train/run/run.h"
#include "loader/sgt_loader.h"
#include "train/sgt_train.h"
#include "train/log/trace.h"

#define SGT_UNEVALUATED 600 /* bytes of the reason why there is no evaluation */

typedef struct sgt_trainer {
    sgt_config *s;
    const sgt_train_options *o;
    sgt_model model;
    sgt_schedule schedule; /* schedule of the learning rate for the whole run */
    uint64_t rows, tokens; /* rows and tokens of a step, over all ranks */
    sgt_backend *backend;
    sgt_run *run;
    sgt_loader *train, *val; /* val NULL: no evaluation */
    /* used instead of train and val if --data is a .jsonl file */
    sgt_examples examples, val_examples;
    sgt_loader_info info; /* information about `train` */
    uint64_t eval_rows;   /* rows of an evaluation, over all ranks; 0: there is none */
    char *tokenizer;      /* tokenizer.json's text, for checkpoints, or NULL */
    int64_t eot;          /* id of the end-of-text token; -1: not known */
    /* (info.vocab): bytes of each id's text, 0 for none; NULL: unknown, or not wanted */
    uint32_t *text_bytes;
    const char *tokenizer_of; /* folder from which `tokenizer` was read, or NULL */
    char *from;               /* checkpoint that this run resumes from, or NULL */
    char *init;               /* model with which this run begins (--init), or NULL */
    /* state of the run, copied into each checkpoint: after a resume, the state of `from` */
    sgt_checkpoint_state state;
    sgt_trace *trace; /* NULL: no trace */
    /* sgt_recompute of each layer if free memory decides it, else NULL */
    uint8_t *recompute_at;
    int dry;       /* 1: estimate memory only, run nothing */
    char gpu[256]; /* name of the CUDA device */
    /* data_is_ours: 1 if --data was not given and ./out is used; lr_is_ours: 1 if --lr was auto */
    int data_is_ours, lr_is_ours;
    /* reason why there is no evaluation; "" if there is one or none was requested */
    char unevaluated[SGT_UNEVALUATED];
    sgt_verdicts verdicts;        /* verdicts of the self-check; count 0: nothing was checked */
    const sgt_cuda_library *cuda; /* CUDA's library; NULL: the run is on the CPU */
} sgt_trainer;

/* Decide options and device (setup.c). This is the part of sgt_trainer_open that an estimate of
 * memory also needs. */
int sgt_trainer_settle(sgt_trainer *t, sgt_error *err);
/* sgt_trainer_read_shape reads config.json, if there is one. Call it before the data is opened,
 * because ids are checked against the model's vocabulary; but report its error only after errors of
 * the data. sgt_trainer_model sets *m to the model that the run trains on data described by
 * *data. */
int sgt_trainer_read_shape(sgt_trainer *t, sgt_error *err);
int sgt_trainer_model(const sgt_trainer *t, const sgt_loader_info *data, sgt_model *m,
                      sgt_error *err);
/* Return the number of steps, by --steps, --compute-budget or --epochs, of a run that trains model
 * `m` with `rows` rows per step and `windows` rows per epoch; HUGE_VAL if no option determines
 * it. */
double sgt_trainer_steps(const sgt_config *s, const sgt_model *m, uint64_t windows, uint64_t rows);
/* In data.c. sgt_trainer_open_data opens the data for training and validation, reads the tokenizer,
 * and compares the data with that of a resumed run. sgt_trainer_measure_data reads only the
 * headers, and gives no notices. It describes the training data in *info, and sets *val to the
 * number of tokens in the validation shards, or to 0 if there is no evaluation. */
int sgt_trainer_open_data(sgt_trainer *t, sgt_error *err);
int sgt_trainer_measure_data(const sgt_trainer *t, sgt_loader_info *info, uint64_t *val,
                             sgt_error *err);
/* Fail if the data of a resumed run is gone and --data was not given. */
int sgt_trainer_find_data(const sgt_trainer *t, sgt_error *err);
int sgt_trainer_has_shards(const char *folder); /* return whether the folder has training shards */

/* Prepare everything up to the first step. The caller must call sgt_trainer_close, even after a
 * failure. */
int sgt_trainer_open(sgt_trainer *t, sgt_config *s, const sgt_train_options *o, sgt_error *err);
void sgt_trainer_close(sgt_trainer *t);

/* Return whether this rank writes to the run directory, if there is one. */
static inline int sgt_trainer_writes(const sgt_trainer *t)
{
    return t->o->run && sgt_ranks_first(t->o->ranks);
}

/* Return whether the backend can set and get the state of a loss scaler and of spike detection. */
static inline int sgt_trainer_scales(const sgt_trainer *t)
{
    return t->backend->put_scaler && t->backend->get_scaler;
}

/* Return the number of CPU threads: the requested number, or if none was requested, all available
 * cores or this rank's share of them (see sgt_cpu_threads). */
int sgt_trainer_threads(const sgt_trainer *t);
/* Set t->s->step, the options of the backend. Call it after settings, device and model were
 * decided. An estimate of memory may call it while rows, steps or the learning rate are
 * undecided. */
int sgt_trainer_step(const sgt_trainer *t, sgt_error *err);

#endif
