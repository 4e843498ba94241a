/* test_run.c: whole runs through sgt_train: curves of 200 steps, MFU, defaults, runs that are stopped
 * and resumed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/run/checkpoint.h"
#include "tests/expect.h"
#include "tests/train/fixture.h"
#include "tests/train/folder.h"
#include "tests/train/run_fixture.h"

TestSuite(run, .init = make_data, .fini = remove_folder);

/* ---- numbers ---- */

static void as_pytorch(const char *name, uint64_t batch, uint64_t seq)
{
    char line[1024], path[96], model[64], tokens[96];
    sgt_config s = curve(200);
    snprintf(model, sizeof model, FIXTURES "%s", name);
    snprintf(tokens, sizeof tokens, "%s/tokens.bin", model);
    s.init = model;
    s.data = tokens;
    s.batch = batch;
    s.seq = seq;
    must_train(s, name, 0);
    snprintf(path, sizeof path, FIXTURES "%s/f64.tsv", name);
    scoped(FILE) *want = fopen(path, "r");
    cr_assert(want && fgets(line, sizeof line, want));
    int steps = 0, step;
    double loss, norm;
    for (; fscanf(want, "%d %lf %lf", &step, &loss, &norm) == 3; steps++) {
        const sgt_metrics *m = &stepped[step];
        cr_expect_leq(fabs(m->loss - loss), 2e-5, "step %d: loss %.9f, not %.9f", step, m->loss,
                      loss);
        cr_expect_leq(fabs(m->grad_norm / norm - 1), 1e-4, "step %d: gradient norm %.9f, not %.9f",
                      step, m->grad_norm, norm);
    }
    cr_expect_eq(steps, 200);
}

Test(run, the_curve_of_pytorch_in_float64, .timeout = 600) { as_pytorch("curve", 12, 64); }
Test(run, the_curve_of_odd_sizes, .timeout = 600) { as_pytorch("curve_odd", 5, 37); }
Test(run, the_curve_of_many_layers_and_long_rows, .timeout = 600)
{
    as_pytorch("curve_deep", 3, 101);
}

/* ---- speed ---- */

/* On a CPU whose cores are busy, the measured peak speed may be too low. A step that is faster
 * raises it. On a GPU, steps do not raise it, because their metrics come late. */
Test(run, mfu_is_never_above_1)
{
    double peak = 8e9, third = 24e9, none = 0;
    cr_expect_eq(sgt_mfu(2e9, &peak, 1), 0.25);
    cr_expect(sgt_mfu(16e9, &peak, 0) == 1 && peak == 8e9);
    cr_expect(sgt_mfu(16e9, &peak, 1) == 1 && peak == 16e9, "the best that was seen");
    cr_expect_eq(sgt_mfu(8e9, &peak, 1), 0.5);
    cr_expect_eq(sgt_mfu(8e9, &third, 1), 0.3333, "as the log writes it");
    cr_expect_eq(sgt_mfu(8e9, &none, 1), 0, "not known");
    /* speeds computed with a clock that jumped */
    const double strange[] = {0, -1e9, INFINITY, -INFINITY, (double)NAN};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
        cr_expect_eq(sgt_mfu(strange[i], &peak, 1), 0);
    cr_expect_eq(peak, 16e9);
}

/* ---- defaults that are decided ---- */

Test(run, defaults_follow_from_data_and_model)
{
    sgt_config s = tiny(SGT_DEFAULT_COUNT);
    s.lr = s.min_lr = SGT_DEFAULT_REAL;
    s.warmup = SGT_DEFAULT_COUNT;
    s.seq = 100;
    s.batch = 8;
    s.epochs = 0.5;
    must_train(s, "r", 0);
    /* 20,001 tokens have 199 windows of 100. Half of these windows take seven steps of 16 rows,
     * rounded up. */
    scoped(sgt_checkpoint_state) st;
    cr_assert_eq(sgt_checkpoint_read(&st, in_folder("r/step-00000007"), NULL), 0);
    /* the smallest model in the table of rates has 0.69 million parameters; a step has 16 rows */
    const double lr = 3e-4 * sqrt(124 / 0.69) * pow(16. / 64, 0.25);
    cr_expect_float_eq(st.schedule.lr, lr, 1e-12);
    cr_expect_float_eq(st.schedule.min_lr, lr / 10, 1e-12);
    cr_expect_eq(st.schedule.warmup, 0);
    cr_expect(strstr(said, "learning rate 0.00284, chosen for you: 0.00402 for 0.0271 million "
                           "parameters \u00d7 (16/64 rows per step)^0.25 (set it with --lr)"),
              "%s", said);
}

/* ---- stopped and resumed ---- */

TestSuite(resume, .init = make_data, .fini = remove_folder);

Test(resume, stopped_and_resumed_is_undisturbed)
{
    sgt_error err;
    sgt_training_result r;
    must_train(tiny(12), "whole", 0);
    expect_failure(train(tiny(12), "cut", 0, 0, 5, &r, why), SGT_ESTOPPED,
                   "interrupted after step 5 of 12 (--resume continues from there)");
    cr_expect_str_eq(r.checkpoint, in_folder("cut/step-00000005"));
    cr_expect_eq(r.steps, 5);
    sgt_training_result_free(&r);
    cr_assert_eq(train(tiny(12), "cut", 1, 0, 6, NULL, &err), SGT_ESTOPPED);
    must_train(tiny(12), "cut", 1);
    same_facts("whole", "cut");
    same_bytes("whole/step-00000012/model.safetensors", "cut/step-00000012/model.safetensors");
    same_bytes("whole/step-00000012/optimizer.safetensors",
               "cut/step-00000012/optimizer.safetensors");
    same_bytes("whole/step-00000012/state.json", "cut/step-00000012/state.json");
}

/* A signal arrives during set-up. */
Test(resume, stopped_before_the_first_step)
{
    sgt_training_result r;
    sgt_stop stop = {1};
    sgt_train_options o = {.run = in_folder("r"), .stop = &stop};
    sgt_config s = tiny(4);
    expect_failure(sgt_train(&s, &o, &r, why), SGT_ESTOPPED, "interrupted before the first step");
    cr_expect(r.steps == 0 && !r.last && !r.checkpoint);
    sgt_training_result_free(&r);
    must_train(tiny(4), "r", OR_START);
    cr_expect(strstr(said, "/r has no checkpoint to resume from: starting at step 0\n"), "%s",
              said);
}
