/* trainer.h: the state of a training run, which setup.c fills in and loop.c uses. */
#ifndef SGT_TRAINER_H
#define SGT_TRAINER_H

#include <string.h>

#include "train/backend.h"
#include "train/device.h"
#include "train/run/run.h"
#include "loader/sgt_loader.h"
#include "train/sgt_train.h"
#include "train/log/trace.h"

/* size in bytes of a buffer for the reason why a run has no evaluation */
#define SGT_UNEVALUATED 600

typedef struct sgt_trainer {
    sgt_config *s;
    const sgt_train_options *o;
    sgt_model model;
    sgt_schedule schedule; /* learning-rate schedule of the whole run */
    uint64_t rows, tokens; /* number of rows and tokens in one step, summed over all ranks */
    sgt_backend *backend;
    sgt_run *run;
    sgt_loader *train, *val; /* val NULL: no evaluation */
    /* prompts and completions for training and for evaluation, used instead of the loaders `train`
     * and `val` if --data names a .jsonl file */
    sgt_examples examples, val_examples;
    sgt_loader_info info; /* information about `train` */
    uint64_t eval_rows;   /* number of rows in an evaluation, over all ranks; 0: none */
    char *tokenizer;      /* content of tokenizer.json, copied to checkpoints; NULL: none */
    /* id of the end-of-text token, with which each document in the data begins; -1: unknown */
    int64_t eot;
    /* array with the length in bytes of each token id's text, 0 for an id without text; NULL:
     * unknown or not needed */
    uint32_t *text_bytes;
    /* folder (of the data or of a model) from which `tokenizer` was read; NULL: none */
    const char *tokenizer_of;
    char *from; /* path of the checkpoint to resume from; NULL: a new run */
    char *init; /* path of the checkpoint that --init names; NULL: none */
    /* state to be stored in the next checkpoint; when a run is resumed, it is read from the
     * checkpoint `from` */
    sgt_checkpoint_state state;
    sgt_trace *trace; /* NULL: no trace */
    /* array that holds, for each layer, an sgt_recompute chosen by --recompute auto; NULL: the
     * setting `recompute` holds for all layers */
    uint8_t *recompute_at;
    int dry;       /* 1: only estimate the memory; 0: train */
    char gpu[256]; /* name of the CUDA device */
    /* data_is_ours: 1 if the user did not set --data, so that the data is in ./out; lr_is_ours: 1
     * if --lr auto chose the learning rate */
    int data_is_ours, lr_is_ours;
    /* reason why the run has no evaluation although evaluations are turned on; "" if it has
     * evaluations */
    char unevaluated[SGT_UNEVALUATED];
    /* results of the self-check of the CUDA backend; verdicts.count is 0 if there was no
     * self-check */
    sgt_verdicts verdicts;
    const sgt_cuda_library *cuda; /* functions of libsgt-cuda.so; NULL if the device is a CPU */
} sgt_trainer;

/* Decide the device, and the options on which an estimate of memory depends (in setup.c).
 * sgt_trainer_open calls this function too. */
int sgt_trainer_settle(sgt_trainer *t, sgt_error *err);
/* sgt_trainer_read_shape reads the shape of the model from config.json, if the run starts from a
 * checkpoint or from --init. Call it before opening the data, because token ids are checked against
 * the model's vocabulary. If both this function and opening the data fail, report the data's error.
 *
 * sgt_trainer_model sets *m to the shape of the model to train. Its vocabulary is that of *data,
 * unless --init or --resume determines the vocabulary. */
int sgt_trainer_read_shape(sgt_trainer *t, sgt_error *err);
int sgt_trainer_model(const sgt_trainer *t, const sgt_loader_info *data, sgt_model *m,
                      sgt_error *err);
/* Return the number of steps in the run, as set by --steps, --compute-budget or --epochs, for a
 * model `m` with `rows` rows per step and `windows` rows per epoch. Return HUGE_VAL if --epochs
 * sets the number of steps but `windows` is 0 (unknown). */
double sgt_trainer_steps(const sgt_config *s, const sgt_model *m, uint64_t windows, uint64_t rows);
/* Two functions in data.c. sgt_trainer_open_data opens the data for training and validation, reads
 * the tokenizer, and compares the data with those of the run that is resumed.
 * sgt_trainer_measure_data reads only the headers of the shards, and prints no notices. It sets
 * *info to a description of the training data, and *val to the number of tokens in the validation
 * shards, or to 0 if there is no evaluation. */
int sgt_trainer_open_data(sgt_trainer *t, sgt_error *err);
int sgt_trainer_measure_data(const sgt_trainer *t, sgt_loader_info *info, uint64_t *val,
                             sgt_error *err);
/* Return an error if the user did not set --data, and the data of the resumed run no longer
 * exists. */
int sgt_trainer_find_data(const sgt_trainer *t, sgt_error *err);
int sgt_trainer_has_shards(const char *folder); /* return 1 if `folder` has shards, else 0 */

/* Prepare the run so that its first step can begin. The caller must call sgt_trainer_close, even if
 * sgt_trainer_open fails. */
int sgt_trainer_open(sgt_trainer *t, sgt_config *s, const sgt_train_options *o, sgt_error *err);
void sgt_trainer_close(sgt_trainer *t);

/* Return 1 if this rank writes to a run directory, otherwise 0. Only rank 0 writes, and only if
 * o->run is set. */
static inline int sgt_trainer_writes(const sgt_trainer *t)
{
    return t->o->run && sgt_ranks_first(t->o->ranks);
}

/* Return 1 if the backend has a loss scaler and spike detection, whose states are stored in
 * checkpoints; otherwise 0. */
static inline int sgt_trainer_scales(const sgt_trainer *t)
{
    return t->backend->put_scaler && t->backend->get_scaler;
}

/* Return the number of CPU threads: the number that the user has set or, by default, all available
 * cores. If ranks share a machine, the default is this rank's share of the cores (see
 * sgt_cpu_threads). */
int sgt_trainer_threads(const sgt_trainer *t);
/* Fill in t->s->step, the options of the backend. Call this function after the settings, device and
 * model have been decided. For an estimate of memory, the number of rows, the number of steps and
 * the learning rate may still be undecided. */
int sgt_trainer_step(const sgt_trainer *t, sgt_error *err);

#endif
