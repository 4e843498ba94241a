/* stress.c: a thread writes checkpoints while the state that they were copied from changes and the
 * log grows. Each checkpoint is read again, and every float is checked. A plain program without
 * Criterion, so that it runs under the thread sanitizer:
 *
 *     make SAN=thread build/thread/tests/stress-saver && build/thread/tests/stress-saver [SAVES]
 *
 * Saves SAVES times (default 400), sometimes into the run directory of a killed process. Exit 0:
 * every checkpoint was right. */
#include "tests/stress.h"
#include "tests/train/fixture.h"
#include "train/run/saver.h"

/* Return float i of state `what` after `step` steps. */
static float value(int what, size_t i, uint64_t step)
{
    return (float)((i * 31 + step * 7919 + (size_t)what * 104729) % 65537);
}

static sgt_backend *open_state(const sgt_model *m)
{
    sgt_error err;
    sgt_backend *b;
    sgt_backend_options o = {.model = *m, .batch = 1, .seq = 4, .threads = 1};
    if (sgt_cpu_backend_open(&b, &o, &err) < 0) fail("state", err.text);
    return b;
}

/* Change the state as an update does. */
static void advance(sgt_backend *b, const sgt_model *m, uint64_t step)
{
    for (int what = SGT_PARAMETERS; what <= SGT_MOMENT2; what++) {
        scoped_memory float *flat = flat_state(b, m, (sgt_state)what);
        for (size_t i = 0; i < sgt_model_floats(m); i++) flat[i] = value(what, i, step);
        put_flat(b, m, (sgt_state)what, flat);
    }
}

/* Load a checkpoint into b, and check its floats. */
static void check(sgt_run *run, sgt_backend *b, const sgt_model *m, uint64_t step)
{
    sgt_error err;
    sgt_tensor t;
    char *dir = sgt_run_checkpoint(run, step);
    if (!dir) fail("a checkpoint's name", "out of memory");
    if (sgt_checkpoint_load_model(dir, b, m, &err) < 0 ||
        sgt_checkpoint_load_moments(dir, b, m, &err) < 0)
        fail("reading", err.text);
    for (int what = SGT_PARAMETERS; what <= SGT_MOMENT2; what++) {
        scoped_memory float *flat = flat_state(b, m, (sgt_state)what);
        for (size_t n = 0; n < sgt_model_tensors(m); n++) {
            sgt_model_tensor(m, n, &t);
            for (size_t i = t.offset; i < t.offset + t.count; i++)
                if (flat[i] != value(what, i, step)) fail(dir, "a float of another step");
        }
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
    scoped(sgt_backend) *now = open_state(m), *read = open_state(m);
    if (sgt_run_open(&run, from, 1, &nobody, NULL, &err) < 0) fail("run", err.text);
    sgt_config s = {.keep = 2, .threads = 1, .step.optim.kind = SGT_ADAMW};
    const sgt_train_options o = {0};
    const sgt_trainer t = {.run = run, .model = *m, .s = &s, .o = &o, .eot = -1};
    if (sgt_saver_open(&saver, &t, &err) < 0) fail("saver", err.text);
    for (uint64_t step = from; step < to; step++) {
        char line[64];
        advance(now, m, step + 1);
        snprintf(line, sizeof line, "{\"step\":%llu,\"loss\":1}", (unsigned long long)step);
        if (sgt_run_log(run, line, &err) < 0 || sgt_saver_check(saver, &err) < 0)
            fail("a step", err.text);
        sgt_checkpoint_state at = {
            .step = step + 1, .sampling = "shuffle", .device = "cpu", .options = "{}"};
        if (sgt_saver_save(saver, &at, now, step + 1 < to, &err) < 0) fail("saving", err.text);
        /* wait for the previous save, and check it */
        if (step > from && step % 8 == 0) check(run, read, m, step);
    }
    if (sgt_saver_wait(saver, &err) < 0) fail("waiting", err.text);
    check(run, read, m, to);
    if (sgt_saver_saved(saver) != to) fail("the last save", "not said to be done");
    sgt_saver_close(saver);
    sgt_run_close(run);
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
