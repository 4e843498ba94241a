/* resolve.c: makes a run's plan from its settings. */
#include "loader/base/cpu.h"
#include "train/trainer.h"

int sgt_resolve_step(sgt_backend_options *o, const sgt_settings *s, sgt_error *err)
{
    uint32_t variants = 0;
    double betas[2];
    int rc = s->variant ? sgt_variants_parse(&variants, s->variant, err) : SGT_OK;
    if (rc < 0 || (rc = sgt_settings_betas(s, betas, err)) < 0) return rc;
    *o = (sgt_backend_options){
        .optim = {.kind = (sgt_optim_kind)s->optimizer,
                  .beta1 = (float)betas[0],
                  .beta2 = (float)betas[1],
                  .eps = 1e-8f,
                  .bf16_moments = s->optimizer_state,
                  .momentum = (float)s->momentum,
                  .nesterov = s->nesterov,
                  .weight_decay = (float)s->weight_decay,
                  .grad_clip = (float)s->grad_clip},
        .seq = (uint32_t)s->seq,
        .accum = (uint32_t)s->accum,
        .precision = (sgt_precision)s->precision,
        .recompute =
            s->recompute == SGT_RECOMPUTE_AUTO ? SGT_RECOMPUTE_NONE : (sgt_recompute)s->recompute,
        .loss_scale = (float)s->loss_scale,
        .skip_spikes = s->skip_spikes,
        .dropout = (float)s->dropout,
        .seed = s->seed,
        .ignoring = s->ignore != SGT_DEFAULT_COUNT,
        .ignore = s->ignore != SGT_DEFAULT_COUNT ? (int32_t)s->ignore : 0,
        .documents = s->document_mask,
        .attention = (sgt_attention)s->attention,
        .no_fuse = s->no_fuse,
        .no_graphs = s->no_graphs,
        .sync_kernels = s->sync_kernels,
        .no_overlap = s->no_overlap,
        .no_pad_vocab = s->no_pad_vocab,
        .variants = variants,
        .deterministic = s->deterministic,
    };
    return SGT_OK;
}

/* Return the number of CPU threads: as many as requested; otherwise all available cores, or this
 * rank's share of them. */
static int resolve_threads(const sgt_trainer *t)
{
    const sgt_ranks *r = t->o->ranks;
    int n = r && r->sharing ? sgt_cpu_count() / (int)r->sharing : sgt_cpu_count();
    return t->s->threads != SGT_DEFAULT_COUNT ? (int)t->s->threads : n < 1 ? 1 : n;
}

int sgt_trainer_resolve(const sgt_trainer *t, sgt_plan *plan, sgt_error *err)
{
    const sgt_settings *s = t->s;
    sgt_backend_options *o = &plan->backend;
    *plan = (sgt_plan){
        .schedule = {(sgt_schedule_kind)s->schedule, s->lr, s->min_lr, s->warmup, s->steps},
        .batch = s->batch,
        .rows = s->batch * s->accum,
        .tokens = s->batch * s->accum * s->seq,
        .steps = s->steps,
        .eval_every = s->eval_every,
        .save_every = s->save_every,
        .keep = s->keep,
        .workers = (uint32_t)s->workers,
        .save_threads = s->threads == SGT_DEFAULT_COUNT ? sgt_cpu_count() : (int)s->threads,
        .no_overlap = s->no_overlap,
        .sync_metrics = s->sync_metrics,
        .overfit = s->overfit,
    };
    int rc = sgt_resolve_step(o, s, err);
    o->model = t->model;
    o->batch = (uint32_t)s->batch / sgt_ranks_size(t->o->ranks);
    o->threads = resolve_threads(t);
    o->recompute_at = t->recompute_at;
    o->eot = (int32_t)t->eot;
    o->notice = t->o->notice;
    o->detail = t->o->detail;
    o->cache = t->o->cache;
    o->choices = s->deterministic ? t->state.choices : NULL;
    o->unverified = !t->o->checker;
    o->verdicts = t->verdicts.count ? &t->verdicts : NULL;
    o->trace = t->trace;
    o->ranks = t->o->ranks;
    return rc;
}
