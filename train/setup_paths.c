/* setup_paths.c: runs the self-check of CUDA's paths before a run opens its backend, and compares
 * the verdicts with the checkpoint's. */
#include <stdlib.h>

#include "train/paths.h"
#include "train/trainer.h"

/* Run the self-check, and print one notice for each path that it rejects. On a GPU that serves only
 * one process at a time, no path can be tried; the run then continues as if every path were ok. */
int sgt_trainer_check_paths(sgt_trainer *t, sgt_error *err)
{
    sgt_error why;
    sgt_paths_options o = {.program = t->o->checker,
                           .cache = t->o->cache,
                           .device = t->o->ranks ? (int)t->o->ranks->local : 0,
                           .stop = t->o->stop,
                           .warning = t->o->warning};
    if (!t->cuda || !o.program) return SGT_OK;
    int rc = sgt_paths_check(&t->verdicts, t->cuda, &o, &why);
    if (rc == SGT_ESTOPPED || rc == SGT_ENOMEM) return sgt_fail(err, rc, "%s", why.text);
    if (rc < 0) sgt_say(&t->o->warning, "nothing was checked: %s", why.text);
    for (size_t i = 0; i < t->verdicts.count; i++) {
        const sgt_checked *c = &t->verdicts.of[i];
        if (!sgt_checked_good(c))
            sgt_say(&t->o->warning, "self-check: %s is left out: %s (%s)", c->path, c->verdict,
                    c->why);
    }
    return SGT_OK;
}

/* Refuse or warn if a verdict differs from the checkpoint's, because verdicts decide which paths a
 * step uses. */
static int compare_verdicts(const sgt_trainer *t, sgt_error *err)
{
    char then[12];
    const sgt_checked *c;
    if (!t->from || !t->state.verdicts || !t->verdicts.count) return SGT_OK;
    if (!(c = sgt_paths_differ(&t->verdicts, t->state.verdicts, then))) return SGT_OK;
    if (t->s->step.deterministic)
        return sgt_fail(
            err, SGT_EUNSUPPORTED,
            "--deterministic: in the self-check %s is %s here and was %s for the checkpoint, so "
            "that the bits may differ (leave --deterministic out, or start a new --run)",
            c->path, c->verdict, then);
    sgt_say(&t->o->warning,
            "self-check: %s is %s here and was %s for the checkpoint: the bits may differ", c->path,
            c->verdict, then);
    return SGT_OK;
}

int sgt_trainer_take_verdicts(sgt_trainer *t, sgt_error *err)
{
    int rc = compare_verdicts(t, err);
    if (rc < 0) return rc;
    char *json = t->verdicts.count ? sgt_paths_json(&t->verdicts) : NULL;
    if (t->verdicts.count && !json) return sgt_fail_memory(err, "self-check");
    free(t->state.verdicts);
    t->state.verdicts = json;
    return SGT_OK;
}
