/* saver.c: copies the state of a run to memory, and writes this copy as a checkpoint in a
 * background thread. */
#include "train/run/saver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/memory.h"
#include "train/log/metrics.h"

#define STATES 3

/* A copy of the state in memory, and a backend from which the background thread writes the
 * checkpoint. The backend's only function is `get`, which reads from the copy. */
typedef struct copy {
    sgt_backend calls;
    const sgt_model *model;
    sgt_arena memory;
    /* flat[s]: copy of the state s (an sgt_state), as a flat array in the model's layout; NULL if
     * the state is not copied, because all of its elements are 0 */
    float *flat[STATES];
} copy;

struct sgt_saver {
    const sgt_trainer *t;
    copy copy;
    /* number of states to copy, starting with the parameters (see states_of); a state that is not
     * copied reads as zeros */
    int states;
    /* 1: a notice that there is not enough memory for the copy has been given, so it is not
     * repeated; otherwise 0 */
    int said;
    int track;
    pthread_t thread;
    /* 1: the background thread has been started and not been joined yet; otherwise 0 */
    int writing;
    /* 1: the background thread has stored its result in `rc` and `why`, and is about to exit;
     * otherwise 0. Only that thread sets it to 1. */
    int written;
    int rc;
    sgt_error why;
    sgt_checkpoint_state state;
    uint64_t saved;
};

/* ---- the copy ---- */

/* Return the number of states to copy: 3 (parameters, first and second moments), or 2 for SGD,
 * which has no second moments. */
static int states_of(sgt_optim_kind optimizer) { return optimizer == SGT_SGD ? 2 : STATES; }

uint64_t sgt_saver_bytes(const sgt_model *m, sgt_optim_kind optimizer)
{
    return (uint64_t)states_of(optimizer) * sgt_model_floats(m) * sizeof(float);
}

static int get(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count, float *to,
               sgt_error *err)
{
    const copy *c = (const copy *)b;
    sgt_tensor t;
    (void)err;
    sgt_model_tensor(c->model, tensor, &t);
    if (c->flat[what]) memcpy(to, c->flat[what] + t.offset + first, count * sizeof *to);
    else memset(to, 0, count * sizeof *to);
    return SGT_OK;
}

static int map_copy(sgt_saver *s, sgt_error *err)
{
    const sgt_model *m = &s->t->model;
    uint64_t need = sgt_saver_bytes(m, s->t->s->step.optim.kind),
             available = sgt_memory_available();
    if (need > available)
        return sgt_fail(err, SGT_ENOMEM, "a copy has %.1f GiB, but only %.1f GiB of memory is free",
                        (double)need / 0x1p30, (double)available / 0x1p30);
    int rc = sgt_arena_map(&s->copy.memory, (size_t)need, 0, err);
    if (rc < 0) return rc;
    /* Prefault the memory now, with all threads. In a virtual machine, the host may have to
     * allocate a page when it is first written, which takes seconds for all pages of the copy. */
    sgt_cpu_prefault(s->copy.memory.base, (size_t)need, sgt_trainer_threads(s->t));
    for (int i = 0; i < s->states; i++)
        s->copy.flat[i] = (float *)s->copy.memory.base + (size_t)i * sgt_model_floats(m);
    return SGT_OK;
}

/* Return 1 if there is memory for the copy of the state, otherwise 0. The first call allocates the
 * memory, and later calls reuse it. */
static int have_memory(sgt_saver *s)
{
    sgt_error why;
    if (s->copy.memory.base || map_copy(s, &why) == SGT_OK) return 1;
    if (!s->said)
        sgt_say(&s->t->o->notice,
                "the checkpoint cannot be copied: %s; training waits while it is written",
                why.text);
    s->said = 1;
    return 0;
}

/* ---- the thread ---- */

static int write_out(sgt_saver *s, sgt_backend *from, sgt_error *err)
{
    const sgt_trainer *t = s->t;
    return sgt_run_save(t->run, &s->state, from, &t->model, t->tokenizer, t->eot, t->s->keep, err);
}

static void *write_copy(void *ctx)
{
    sgt_saver *s = ctx;
    uint64_t from = sgt_trace_begin(s->t->trace);
    s->rc = write_out(s, &s->copy.calls, &s->why);
    sgt_trace_end(s->t->trace, from, s->track, "checkpoint", "write");
    __atomic_store_n(&s->written, 1, __ATOMIC_RELEASE); /* pairs with sgt_saver_check's load */
    return NULL;
}

int sgt_saver_wait(sgt_saver *s, sgt_error *err)
{
    if (!s->writing) return SGT_OK;
    pthread_join(s->thread, NULL);
    s->writing = 0;
    if (s->rc < 0) return sgt_fail(err, s->rc, "%s", s->why.text);
    s->saved = s->state.step;
    return SGT_OK;
}

int sgt_saver_check(sgt_saver *s, sgt_error *err)
{
    if (!s->writing || !__atomic_load_n(&s->written, __ATOMIC_ACQUIRE)) return SGT_OK;
    return sgt_saver_wait(s, err);
}

int sgt_saver_save(sgt_saver *s, const sgt_checkpoint_state *state, sgt_backend *b, int more,
                   sgt_error *err)
{
    int rc = sgt_saver_wait(s, err);
    if (rc < 0) return rc;
    s->state = *state;
    if (more && have_memory(s)) {
        if ((rc = sgt_checkpoint_copy(s->copy.flat, s->states, b, s->copy.model, err)) < 0)
            return rc;
        s->written = 0;
        s->writing = pthread_create(&s->thread, NULL, write_copy, s) == 0;
        if (s->writing) return SGT_OK;
        /* The thread could not be started. Write the checkpoint now, from the copy. Reading the
         * state from the backend again is impossible, because all ranks would have to make the same
         * calls. */
        b = &s->copy.calls;
    }
    if ((rc = write_out(s, b, err)) == SGT_OK) s->saved = state->step;
    return rc;
}

uint64_t sgt_saver_saved(const sgt_saver *s) { return s->saved; }

int sgt_saver_open(sgt_saver **out, const sgt_trainer *t, sgt_error *err)
{
    sgt_saver *s = calloc(1, sizeof *s);
    if (!s) return sgt_fail_memory(err, "checkpoints");
    s->t = t;
    s->copy.calls.get = get;
    s->copy.model = &t->model;
    s->states = states_of(t->s->step.optim.kind);
    s->track = t->trace ? sgt_trace_track(t->trace, SGT_TRACE_HOST, "checkpoint") : 0;
    *out = s;
    return SGT_OK;
}

void sgt_saver_close(sgt_saver *s)
{
    if (!s) return;
    sgt_saver_wait(s, NULL);
    sgt_arena_unmap(&s->copy.memory);
    free(s);
}
