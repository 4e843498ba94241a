/* estimate.c: what a step would hold in memory, before any of it is taken: settings, device and shape are decided as
 * for a run, of the data no more than headers is read, and the backend lays out without allocating. */
#include <inttypes.h>

#include "metrics.h"
#include "trainer.h"

/* Without data a model has the vocabulary that it is named with. */
static int find_vocab(sgt_trainer *t, sgt_error *err)
{
    const sgt_settings *s = t->s;
    sgt_loader_options o = {.reader = SGT_READER_MMAP, .batch = (uint32_t)s->batch, .seq = (uint32_t)s->seq};
    if (!s->data) {
        sgt_model m;
        int rc = s->model ? sgt_model_named(&m, s->model, err) : SGT_OK;
        t->info.vocab = s->model ? m.vocab : t->model.vocab;
        return rc;
    }
    return sgt_trainer_open_train(t, &o, err);
}

static int ask(const sgt_trainer *t, sgt_train_estimate *e, sgt_error *err)
{
    sgt_backend_options o;
    sgt_cuda_device d;
    int rc = sgt_trainer_backend_options(t, &o, err);
    if (rc < 0) return rc;
    e->model = t->model;
    e->device = t->cuda ? "cuda" : "cpu";
    if (!t->cuda) {
        e->available = sgt_memory_available();
        return sgt_cpu_backend_estimate(&o, e->kinds, &e->count, &e->total, err);
    }
    e->available = t->cuda->usable(&d, NULL) == SGT_OK ? d.available : UINT64_MAX;
    return t->cuda->estimate(&o, e->kinds, &e->count, &e->total, err);
}

int sgt_train_estimate_memory(sgt_settings *s, const sgt_train_options *o, sgt_train_estimate *e, sgt_error *err)
{
    sgt_trainer t = {.s = s, .o = o, .dry = 1};
    *e = (sgt_train_estimate){0};
    int rc = sgt_trainer_settle(&t, err);
    if (rc == SGT_OK) rc = sgt_trainer_read_shape(&t, err);
    if (rc == SGT_OK) rc = find_vocab(&t, err);
    if (rc == SGT_OK) rc = sgt_trainer_decide_model(&t, err);
    if (rc == SGT_OK) rc = ask(&t, e, err);
    sgt_trainer_close(&t);
    return rc;
}
