/* stress.c: a thread writes checkpoints while the state that they were copied from changes and the
 * log grows. Each checkpoint is read again, and every float is checked. A plain program without
 * Criterion, so that it runs under the thread sanitizer:
 *
 *     make SAN=thread build/thread/tests/stress-saver && build/thread/tests/stress-saver [SAVES]
 *
 * Saves SAVES times (default 400), sometimes into the run directory of a killed process. Exit 0:
 * every checkpoint was right. */
#include <string.h>

#include "tests/stress.h"
#include "train/run/saver.h"

enum { STATES = 3 }; /* parameters and two moments */

typedef struct state {
    sgt_backend calls;
    const sgt_model *model;
    float *flat[STATES];
} state;

/* Return float i of state `what` (below STATES) after `step` steps. */
static float value(int what, size_t i, uint64_t step)
{
    return (float)((i * 31 + step * 7919 + (size_t)what * 104729) % 65537);
}

static int get(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count, float *to,
               sgt_error *err)
{
    const state *s = (const state *)b;
    sgt_tensor t;
    (void)err;
    sgt_model_tensor(s->model, tensor, &t);
    memcpy(to, s->flat[what] + t.offset + first, count * sizeof *to);
    return SGT_OK;
}

static int put(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
               const float *from, sgt_error *err)
{
    state *s = (state *)b;
    sgt_tensor t;
    (void)err;
    sgt_model_tensor(s->model, tensor, &t);
    memcpy(s->flat[what] + t.offset + first, from, count * sizeof *from);
    return SGT_OK;
}

static void open_state(state *s, const sgt_model *m)
{
    *s = (state){.calls = {.get = get, .put = put}, .model = m};
    for (int i = 0; i < STATES; i++)
        if (!(s->flat[i] = calloc(sgt_model_floats(m), sizeof(float))))
            fail("state", "out of memory");
}

static void close_state(state *s)
{
    for (int i = 0; i < STATES; i++) free(s->flat[i]);
}

/* Change the state as an update does. */
static void advance(state *s, uint64_t step)
{
    for (int what = 0; what < STATES; what++)
        for (size_t i = 0; i < sgt_model_floats(s->model); i++)
            s->flat[what][i] = value(what, i, step);
}

static void check(sgt_run *run, state *read, uint64_t step)
{
    sgt_error err;
    sgt_tensor t;
    char *dir = sgt_run_checkpoint(run, step);
    if (!dir) fail("a checkpoint's name", "out of memory");
    if (sgt_checkpoint_load_model(dir, &read->calls, read->model, &err) < 0 ||
        sgt_checkpoint_load_moments(dir, &read->calls, read->model, &err) < 0)
        fail("reading", err.text);
    for (int what = 0; what < STATES; what++)
        for (size_t n = 0; n < sgt_model_tensors(read->model); n++) {
            sgt_model_tensor(read->model, n, &t);
            for (size_t i = t.offset; i < t.offset + t.count; i++)
                if (read->flat[what][i] != value(what, i, step))
                    fail(dir, "a float of another step");
        }
    free(dir);
}

/* Run from step `from` to step `to`, and save after each. Most saves begin while the previous one
 * is still being written. */
static void train(const sgt_model *m, uint64_t from, uint64_t to)
{
    sgt_error err;
    sgt_run *run;
    sgt_saver *saver;
    sgt_claimant nobody = {.folder = "run"};
    state now, read;
    open_state(&now, m);
    open_state(&read, m);
    if (sgt_run_open(&run, from, 1, &nobody, NULL, &err) < 0) fail("run", err.text);
    sgt_config s = {.keep = 2, .threads = 1, .step.optim.kind = SGT_ADAMW};
    const sgt_train_options o = {0};
    const sgt_trainer t = {.run = run, .model = *m, .s = &s, .o = &o, .eot = -1};
    if (sgt_saver_open(&saver, &t, &err) < 0) fail("saver", err.text);
    for (uint64_t step = from; step < to; step++) {
        char line[64];
        advance(&now, step + 1);
        snprintf(line, sizeof line, "{\"step\":%llu,\"loss\":1}", (unsigned long long)step);
        if (sgt_run_log(run, line, &err) < 0 || sgt_saver_check(saver, &err) < 0)
            fail("a step", err.text);
        sgt_checkpoint_state at = {
            .step = step + 1, .sampling = "shuffle", .device = "cpu", .options = "{}"};
        if (sgt_saver_save(saver, &at, &now.calls, step + 1 < to, &err) < 0)
            fail("saving", err.text);
        /* wait for the previous save, and check it */
        if (step > from && step % 8 == 0) check(run, &read, step);
    }
    if (sgt_saver_wait(saver, &err) < 0) fail("waiting", err.text);
    check(run, &read, to);
    if (sgt_saver_saved(saver) != to) fail("the last save", "not said to be done");
    sgt_saver_close(saver);
    sgt_run_close(run);
    close_state(&now);
    close_state(&read);
}

int main(int argc, char **argv)
{
    char work[SCRATCH_SIZE];
    unsigned long long saves = argument(argc, argv, 1, 4, 400);
    sgt_model m;
    sgt_error err;
    enter_scratch(work, "/tmp");
    if (sgt_model_named(&m, "2x16x2", &err) < 0) fail("model", err.text);
    m.vocab = 97;
    for (uint64_t from = 0, part = saves / 4; from < 4 * part; from += part)
        train(&m, from, from + part);
    remove_scratch(work);
    printf("stress-saver: %llu saves, every float right\n", saves / 4 * 4);
    return 0;
}
