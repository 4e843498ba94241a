/* test_resume.c: runs that were stopped, killed or damaged, and are resumed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/expect.h"
#include "tests/train/folder.h"
#include "train/run/run.h"
#include "tests/train/run_fixture.h"
#include "loader/shards/shard.h"

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
