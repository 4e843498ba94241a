/* backend_options.c: what a backend is asked for, from a run's settings. */
#include <string.h>

#include "base/cpu.h"
#include "trainer.h"

static int take_optimizer(sgt_optim *o, const sgt_settings *s, sgt_error *err)
{
    double betas[2];
    int rc = sgt_settings_betas(s, betas, err);
    if (rc < 0) return rc;
    *o = (sgt_optim){.kind = strcmp(s->optimizer, "sgd") == 0 ? SGT_SGD : SGT_ADAMW,
                     .beta1 = (float)betas[0],
                     .beta2 = (float)betas[1],
                     .eps = 1e-8f,
                     .momentum = (float)s->momentum,
                     .nesterov = s->nesterov,
                     .weight_decay = (float)s->weight_decay,
                     .grad_clip = (float)s->grad_clip};
    return SGT_OK;
}

int sgt_trainer_threads(const sgt_trainer *t)
{
    const sgt_ranks *r = t->o->ranks;
    int n = r && r->sharing ? sgt_cpu_count() / (int)r->sharing : sgt_cpu_count();
    return t->s->threads != SGT_DEFAULT_COUNT ? (int)t->s->threads : n < 1 ? 1 : n;
}

int sgt_trainer_backend_options(const sgt_trainer *t, sgt_backend_options *o, sgt_error *err)
{
    const sgt_settings *s = t->s; /* sgt_settings_check knows every word */
    uint32_t variants = 0;
    int rc = s->variant ? sgt_variants_parse(&variants, s->variant, err) : SGT_OK;
    if (rc < 0) return rc;
    *o = (sgt_backend_options){
        .model = t->model,
        .batch = (uint32_t)s->batch / sgt_ranks_size(t->o->ranks),
        .seq = (uint32_t)s->seq,
        .accum = (uint32_t)s->accum,
        .threads = sgt_trainer_threads(t),
        .notice = t->o->notice,
        .detail = t->o->detail,
        .precision = (sgt_precision)sgt_word_index(s->precision, sgt_precision_words),
        .recompute = (sgt_recompute)sgt_word_index(s->recompute, sgt_recompute_words),
        .recompute_at = t->recompute_at,
        .loss_scale = (float)s->loss_scale,
        .skip_spikes = s->skip_spikes,
        .dropout = (float)s->dropout,
        .seed = s->seed,
        .ignoring = s->ignore != SGT_DEFAULT_COUNT,
        .ignore = s->ignore != SGT_DEFAULT_COUNT ? (int32_t)s->ignore : 0,
        .documents = s->document_mask,
        .eot = (int32_t)t->eot,
        .attention = (sgt_attention)sgt_word_index(s->attention, sgt_attention_words),
        .no_fuse = s->no_fuse,
        .no_graphs = s->no_graphs,
        .sync_kernels = t->o->sync_kernels,
        .no_overlap = s->no_overlap && t->cuda, /* a CPU has nothing to copy: there the loop sees to it alone */
        .no_pad_vocab = s->no_pad_vocab,
        .variants = variants,
        .deterministic = s->deterministic,
        .cache = t->o->cache,
        .choices = s->deterministic ? t->state.choices : NULL,
        .unverified = !t->o->checker,
        .verdicts = t->verdicts.count ? &t->verdicts : NULL,
        .trace = t->trace,
        .ranks = t->o->ranks,
    };
    return take_optimizer(&o->optim, s, err);
}
