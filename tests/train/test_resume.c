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
                   "interrupted after step 5 of 12; --resume goes on from there");
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

/* The run was killed after a checkpoint: the log has lines of later steps, the last one
 * incomplete. */
Test(resume, lines_past_the_checkpoint_are_cut)
{
    sgt_error err;
    must_train(tiny(8), "whole", 0);
    cr_assert_eq(train(tiny(8), "cut", 0, 0, 4, NULL, &err), SGT_ESTOPPED);
    FILE *f = fopen(in_folder("cut/log.jsonl"), "a");
    fputs("{\"step\":4,\"loss\":1}\n{\"step\":5,\"lo", f);
    fclose(f);
    must_train(tiny(8), "cut", 1);
    same_facts("whole", "cut");
}

/* Return the log of FOLDER/run with `text` instead of line `at`. */
static void damage_log(const char *run, int at, const char *text)
{
    char name[64], *out = NULL, *log;
    size_t n;
    int i = 0;
    snprintf(name, sizeof name, "%s/log.jsonl", run);
    cr_assert((log = get_file(name, NULL)));
    FILE *f = open_memstream(&out, &n);
    for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n"), i++) {
        if (i == at) fputs(text, f);
        else fprintf(f, "%s\n", line);
    }
    fclose(f);
    put_file(name, out, n);
    free(out);
    free(log);
}

Test(resume, a_damaged_line_of_the_log_costs_that_line_alone)
{
    must_train(tiny(4), "cut", 0);
    damage_log("cut", 1, "{\"step\":1,\"lo#s\":\n{\"step\":0}\n\n{\"step\":\"1\"}\n[1]\n");
    sgt_config s = tiny(6);
    s.given[SGT_SET_STEPS] = 1;
    must_train(s, "cut", 1);
    cr_expect(strstr(warned, "/cut/log.jsonl: lines of 1 of the 4 steps before the checkpoint are "
                             "missing or damaged; the others stay\n"),
              "%s", warned);
    cr_expect_not(strstr(said, "log.jsonl"));
    char *log = get_file("cut/log.jsonl", NULL), *line = log;
    static const int left[] = {0, 2, 3, 4, 5};
    for (int i = 0; i < 5; i++) {
        char want[32];
        snprintf(want, sizeof want, "{\"step\":%d,", left[i]);
        cr_assert(line && strncmp(line, want, strlen(want)) == 0, "%s where %s should be", line,
                  want);
        line = strchr(line, '\n');
        if (line) line++;
    }
    cr_expect_str_empty(line);
    free(log);
    /* if the log is missing, the run goes on, with a warning */
    cr_assert_eq(unlink(in_folder("cut/log.jsonl")), 0);
    s.steps = 7;
    must_train(s, "cut", 1);
    cr_expect(strstr(warned, "lines of 6 of the 6 steps before"), "%s", warned);
}

Test(resume, a_resume_with_other_data_is_refused_by_name)
{
    must_train(tiny(4), "r", 0);
    size_t n;
    char *shard = get_file("data.bin", &n);
    int32_t fewer = 5000;
    memcpy(shard + 8, &fewer, 4);
    put_file("other.bin", shard, SGT_SHARD_HEADER + 2 * 5000);
    free(shard);
    sgt_config s = tiny(8);
    s.data = in_folder("other.bin");
    s.given[SGT_SET_DATA] = 1;
    expect_failure_about(train(s, "r", 1, 0, 0, NULL, why), SGT_EUNSUPPORTED,
                         "other.bin: not the tokens that the run to resume was trained on");
}

Test(resume, a_finished_run_stays_as_it_is)
{
    must_train(tiny(3), "r", 0);
    scoped_memory char *before = get_file("r/log.jsonl", NULL);
    must_train(tiny(3), "r", 1);
    cr_expect(strstr(said, "has completed all of its 3 steps"), "%s", said);
    scoped_memory char *after = get_file("r/log.jsonl", NULL);
    cr_expect_str_eq(before, after);
}

/* The run was killed after the last checkpoint got its name, and before an older one was
 * removed. */
Test(resume, what_the_last_save_left_goes)
{
    sgt_config s = tiny(3);
    s.save_every = s.keep = 1;
    must_train(s, "r", 0);
    must_train(tiny(2), "older", 0);
    char *from = strdup(in_folder("older/step-00000002"));
    cr_assert_eq(rename(from, in_folder("r/step-00000002")), 0);
    free(from);
    must_train(s, "r", 1);
    cr_expect(!exists("r/step-00000002"));
    cr_expect(exists("r/step-00000003/state.json"));
}

Test(resume, another_machine_is_said_aloud)
{
    must_train(tiny(2), "r", 0);
    size_t n;
    char *text = get_file("r/step-00000002/state.json", &n), *at = strstr(text, "\"library\": \"");
    cr_assert(at);
    memcpy(at + strlen("\"library\": \""), "an", 2);
    cr_assert((at = strstr(text, "\n  \"xxh3\": ")), "its own sum is the last thing it says");
    memcpy(at, "\n  \"none\": ", 11); /* an older version wrote no checksum */
    put_file("r/step-00000002/state.json", text, n);
    free(text);
    must_train(tiny(3), "r", 1);
    cr_expect(strstr(warned, "results will differ in the last bits from an uninterrupted run"),
              "%s", said);
}
