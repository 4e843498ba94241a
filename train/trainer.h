/* trainer.h: the state of a training run. setup.c fills it in, and loop.c trains with it. */
#ifndef SGT_TRAINER_H
#define SGT_TRAINER_H

#include <string.h>

#include "train/backend.h"
#include "train/device.h"
#include "train/run/run.h"
#include "loader/sgt_loader.h"
#include "train/sgt_train.h"
#include "train/log/trace.h"

/* size in bytes of the text that says why a run has no evaluation */
#define SGT_UNEVALUATED 600

typedef struct sgt_trainer {
    sgt_config *s;
    const sgt_train_options *o;
    sgt_model model;
    sgt_schedule schedule; /* learning-rate schedule of the whole run */
    uint64_t rows, tokens; /* rows and tokens that all ranks together train on in one step */
    sgt_backend *backend;
    sgt_run *run;
    sgt_loader *train, *val; /* val NULL: no evaluation */
    /* prompts and completions for training and for evaluation, used instead of the loaders if
     * --data is a .jsonl file */
    sgt_examples examples, val_examples;
    sgt_loader_info info; /* information about `train` */
    uint64_t eval_rows;   /* rows per evaluation, over all ranks; 0: no evaluation */
    char *tokenizer;      /* text of tokenizer.json, which is copied to checkpoints; NULL: none */
    /* id of the end-of-text token, which begins each document in the data; -1: unknown */
    int64_t eot;
    /* array with the length in bytes of each id's text, 0 for an id without text; NULL: unknown or
     * not needed */
    uint32_t *text_bytes;
    /* folder of the data or the model from which `tokenizer` was read; NULL: none */
    const char *tokenizer_of;
    char *from; /* folder of the checkpoint from which this run resumes; NULL: a new run */
    char *init; /* folder of the model given by --init; NULL: none */
    /* state for the next checkpoint; a resumed run begins with the state read from the checkpoint
     * `from` */
    sgt_checkpoint_state state;
    sgt_trace *trace; /* NULL: no trace */
    /* array with an sgt_recompute for each layer, as chosen by --recompute auto to fit in memory;
     * NULL: the setting `recompute` applies to all layers */
    uint8_t *recompute_at;
    int dry;       /* 1: only estimate the memory; 0: train */
    char gpu[256]; /* name of the CUDA device */
    /* data_is_ours: 1 if the user gave no --data, so that the data is the default, ./out;
     * lr_is_ours: 1 if --lr auto chose the learning rate */
    int data_is_ours, lr_is_ours;
    /* reason why the run has no evaluation although the user requested one, else "" */
    char unevaluated[SGT_UNEVALUATED];
    /* verdicts of the self-check of the CUDA backend; count 0: nothing was checked */
    sgt_verdicts verdicts;
    const sgt_cuda_library *cuda; /* functions of libsgt-cuda.so; NULL if the run is on a CPU */
} sgt_trainer;

/* Resolve the device and those options on which an estimate of memory depends (setup.c).
 * sgt_trainer_open also calls this function. */
int sgt_trainer_settle(sgt_trainer *t, sgt_error *err);
/* sgt_trainer_read_shape reads the initial model's config.json, if there is one. Call it before
 * opening the data, because ids are checked against the model's vocabulary. If opening the data
 * fails, too, report the data's error and not the one of this function.
 *
 * sgt_trainer_model sets *m to the shape of the model to train. The vocabulary is that of the data
 * described by *data, unless --init or --resume determines it. */
int sgt_trainer_read_shape(sgt_trainer *t, sgt_error *err);
int sgt_trainer_model(const sgt_trainer *t, const sgt_loader_info *data, sgt_model *m,
                      sgt_error *err);
/* Return the number of steps that --steps, --compute-budget or --epochs determines, for model `m`
 * with `rows` rows per step and `windows` rows per epoch. Return HUGE_VAL if
 * --epochs determines the number but `windows` is 0, so that it is unknown. */
double sgt_trainer_steps(const sgt_config *s, const sgt_model *m, uint64_t windows, uint64_t rows);
/* Both functions are in data.c. sgt_trainer_open_data opens the data for training and validation,
 * reads the tokenizer, and compares the data with the data of a resumed run.
 * sgt_trainer_measure_data reads only the headers of shards, and gives no notices. It describes the
 * training data in *info, and sets *val to the number of tokens in the validation shards, or to 0
 * if there is no evaluation. */
int sgt_trainer_open_data(sgt_trainer *t, sgt_error *err);
int sgt_trainer_measure_data(const sgt_trainer *t, sgt_loader_info *info, uint64_t *val,
                             sgt_error *err);
/* Return an error if --data was not given and the data of the resumed run no longer exists. */
int sgt_trainer_find_data(const sgt_trainer *t, sgt_error *err);
int sgt_trainer_has_shards(const char *folder); /* return whether the folder has training shards */

/* Prepare the run up to its first step. The caller must call sgt_trainer_close, even if
 * sgt_trainer_open fails. */
int sgt_trainer_open(sgt_trainer *t, sgt_config *s, const sgt_train_options *o, sgt_error *err);
void sgt_trainer_close(sgt_trainer *t);

/* Return whether this rank writes to a run directory: only rank 0 does, and only if the run has
 * one. */
static inline int sgt_trainer_writes(const sgt_trainer *t)
{
    return t->o->run && sgt_ranks_first(t->o->ranks);
}

/* Return whether the backend has a loss scaler and spike detection, whose state checkpoints
 * store. */
static inline int sgt_trainer_scales(const sgt_trainer *t)
{
    return t->backend->put_scaler && t->backend->get_scaler;
}

/* Return the number of CPU threads: the number that the user requested, else all available cores,
 * or this rank's share of the cores if ranks share a machine (see sgt_cpu_threads). */
int sgt_trainer_threads(const sgt_trainer *t);
/* Fill in t->s->step, the options for the backend. Call it when settings, device and model are
 * resolved. For an estimate of memory, the numbers of rows and steps and the learning rate may
 * still be unresolved. */
int sgt_trainer_step(const sgt_trainer *t, sgt_error *err);

#endif
