/* trainer.h: a run that is set up, between setup.c, which opens everything, and loop.c, which runs it. */
#ifndef SGT_TRAINER_H
#define SGT_TRAINER_H

#include "backend.h"
#include "run.h"
#include "sgt_loader.h"
#include "sgt_train.h"

typedef struct sgt_trainer {
    sgt_settings *s;
    const sgt_train_options *o;
    sgt_model model;
    sgt_schedule schedule;
    sgt_backend *backend;
    sgt_run *run;
    sgt_loader *train, *val;    /* val NULL: no evaluation */
    sgt_loader_info info;       /* of train */
    uint64_t eval_batches;
    char *tokenizer;            /* tokenizer.json's text, for checkpoints, or NULL */
    int64_t eot;                /* -1: not known */
    char *from;                 /* the checkpoint this run goes on from, or NULL */
    sgt_checkpoint_state state; /* as of now */
} sgt_trainer;

/* Everything up to the first step. Close with sgt_trainer_close, after a failure too. */
int sgt_trainer_open(sgt_trainer *t, sgt_settings *s, const sgt_train_options *o, sgt_error *err);
void sgt_trainer_close(sgt_trainer *t);

int sgt_trainer_run(sgt_trainer *t, sgt_train_result *r, sgt_error *err);

#endif
