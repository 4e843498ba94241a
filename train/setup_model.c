/* setup_model.c: decides the model that a run trains: that of a checkpoint, of --init's
 * config.json, or of --model. */
#include <inttypes.h>
#include <stdlib.h>

#include "loader/base/file.h"
#include "train/trainer.h"

#define POSITIONS 1024 /* longest context, as in GPT-2 */

/* If --init names a run instead of a checkpoint, replace the error by one that names the run's
 * newest checkpoint. */
static void explain_run(const char *init, int rc, sgt_error *err)
{
    char *config = sgt_join(init, "config.json"), *newest = NULL;
    if (config && sgt_file_gone(config) && sgt_run_newest(&newest, init, 0, NULL, NULL) == SGT_OK &&
        newest)
        sgt_fail(err, rc, "--init %s: it is a run, not a checkpoint (its newest one is %s)", init,
                 newest);
    free(newest);
    free(config);
}

int sgt_trainer_read_shape(sgt_trainer *t, sgt_error *err)
{
    const char *dir = t->from ? t->from : t->s->init;
    int rc = dir ? sgt_checkpoint_shape(&t->model, dir, err) : SGT_OK;
    if (rc < 0 && !t->from) explain_run(dir, rc, err);
    return rc;
}

int sgt_trainer_model(const sgt_trainer *t, uint32_t vocab, sgt_model *m, sgt_error *err)
{
    const sgt_settings *s = t->s;
    *m = t->model;
    if (!t->from && !s->init) {
        int rc = sgt_model_named(m, s->model, err);
        if (rc < 0) return rc;
        m->vocab = vocab;
        m->untied = s->no_tie != 0;
        if (s->seq > POSITIONS) m->positions = (uint32_t)s->seq;
    }
    if (s->seq > m->positions)
        return sgt_fail(err, SGT_EUSAGE,
                        "--seq-len %" PRIu64 ": the model has %u positions (take no more)", s->seq,
                        m->positions);
    if (s->gelu != SGT_DEFAULT_WORD && !t->from) m->gelu = (sgt_gelu_kind)s->gelu;
    if (s->no_tie && !m->untied && s->init)
        return sgt_fail(err, SGT_EUSAGE,
                        "--no-tie: the model of --init %s has a tied head (leave --no-tie out)",
                        s->init);
    return SGT_OK;
}
