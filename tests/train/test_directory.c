/* test_directory.c: the files of a run directory, and how damaged files and other processes are
 * handled. */
#include <dlfcn.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "tests/expect.h"
#include "tests/train/folder.h"
#include "train/run/run.h"
#include "tests/train/run_fixture.h"

TestSuite(directory, .init = make_data, .fini = remove_folder);

Test(directory, what_is_not_whole_is_passed_over)
{
    sgt_config s = tiny(4);
    s.save_every = 2;
    must_train(s, "r", 0);
    must_train(s, "whole", 0);
    /* the newest checkpoint is cut short; a save was interrupted; a folder has a wrong name */
    cr_assert_eq(truncate(in_folder("r/step-00000004/optimizer.safetensors"), 9000), 0);
    must(sgt_make_folders(in_folder("r/.step-00000003.tmp"), why));
    must(sgt_make_folders(in_folder("r/step-5"), why));
    put_file("r/latest.00112233445566aa.tmp", "step-", 5);
    put_file("r/options.json.00112233445566aa.tmp", "{", 1);
    put_file("r/log.jsonl.00112233445566aa.tmp", "{", 1);
    /* a checkpoint in a folder that is named after another step is not valid either */
    cr_assert_eq(rename(in_folder("whole/step-00000002"), in_folder("r/step-00000003")), 0);
    must_train(s, "r", 1);
    cr_expect(strstr(warned, "skipped an incomplete checkpoint: "), "%s", warned);
    cr_expect(strstr(warned, "/r/step-00000004/optimizer.safetensors: tensor "), "%s", warned);
    cr_expect(strstr(warned, "(was it cut short?)"), "%s", warned);
    cr_expect(strstr(warned, "/r/step-00000003: its state.json says step 2\n"), "%s", warned);
    cr_expect_not(exists("r/.step-00000003.tmp") || exists("r/step-00000003"));
    cr_expect_not(exists("r/latest.00112233445566aa.tmp") ||
                  exists("r/options.json.00112233445566aa.tmp") ||
                  exists("r/log.jsonl.00112233445566aa.tmp"));
    same_facts("r", "whole");
    same_bytes("r/step-00000004/optimizer.safetensors",
               "whole/step-00000004/optimizer.safetensors");
}

/* Two processes start at once, and neither has seen a checkpoint. The one that opens the run second
 * must not remove what the first has saved. */
Test(directory, what_another_process_has_just_saved_stays)
{
    sgt_run *r;
    char run[SGT_PATH];
    sgt_claimant nobody = {.folder = sgt_path(run, folder, "r")};
    must_train(tiny(2), "r", 0);
    expect_failure_about(
        sgt_run_open(&r, 0, 0, &nobody, NULL, why), SGT_EUNSUPPORTED,
        "/r: another sgt-train has just saved step-00000002 (run the same command again)");
    cr_expect(exists("r/step-00000002/model.safetensors") && exists("r/latest"));
    must(sgt_run_open(&r, 2, 0, &nobody, NULL, why));
    sgt_run_close(r);
    cr_expect(exists("r/step-00000002"));
    must(sgt_run_open(&r, 0, 1, &nobody, NULL, why));
    sgt_run_close(r);
    cr_expect_not(exists("r/step-00000002") || exists("r/latest"));
}

/* A resumed run copies the tokenizer from its checkpoint into later ones, so it survives when
 * --keep 1 removes that checkpoint. */
Test(directory, a_tokenizer_is_handed_on_past_the_checkpoint_it_came_from)
{
    must_train(tiny(1), "first", 0);
    put_file("first/step-00000001/tokenizer.json", "{\"model\": 1}\n", 13);
    sgt_config s = tiny(2);
    s.init = in_folder("first/step-00000001");
    s.keep = 1;
    s.save_every = 1;
    must_train(s, "r", 0);
    s.steps = 5;
    s.given[SGT_SET_STEPS] = 1;
    must_train(s, "r", 1);
    cr_expect(exists("r/step-00000005") && !exists("r/step-00000002"));
    same_bytes("first/step-00000001/tokenizer.json", "r/step-00000005/tokenizer.json");
}

Test(directory, state_says_where_the_run_stands)
{
    static const char *const bad[][3] = {
        {"step", "0", "a count is out of range"},
        {"scaler", "{\"scale\":0,\"good_steps\":0,\"skipped\":0}", "the scaler is out of range"},
        {"scaler", "{\"scale\":1e99,\"good_steps\":0,\"skipped\":0}", "the scaler is out of range"},
        {"scaler", "{\"scale\":1}", "scaler: Object item not found: good_steps"},
        {"scaler", "7", "scaler: Expected object, got integer"}};
    sgt_checkpoint_state st;
    must_train(tiny(4), "r", 0);
    must(sgt_checkpoint_read(&st, in_folder("r/step-00000004"), why));
    cr_expect_gt(st.documents, 0);
    json_t *json = json_load_file(in_folder("r/step-00000004/state.json"), 0, NULL);
    json_int_t tokens, next, seed;
    const char *sampling;
    cr_assert_eq(json_unpack(json, "{s:I, s:{s:s, s:I, s:I}}", "tokens", &tokens, "sampler",
                             "sampling", &sampling, "seed", &seed, "next_batch", &next),
                 0);
    cr_expect(st.step == 4 && next == 8 && tokens == 4 * 2 * 2 * 32 && seed == 1);
    cr_expect_str_eq(sampling, "shuffle");
    cr_expect_str_eq(st.device, "cpu");
    cr_expect(st.schedule.kind == SGT_COSINE && st.schedule.lr == 1e-3 && st.schedule.warmup == 3 &&
              st.schedule.steps == 4);
    sgt_checkpoint_state_free(&st);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        scoped(json_t) *changed = json_copy(json);
        json_object_set_new(changed, bad[i][0], json_loads(bad[i][1], JSON_DECODE_ANY, NULL));
        cr_assert_eq(json_dump_file(changed, in_folder("r/step-00000004/state.json"), 0), 0);
        expect_failure_about(sgt_checkpoint_read(&st, in_folder("r/step-00000004"), why),
                             SGT_EFORMAT, bad[i][2]);
        sgt_checkpoint_state_free(&st);
    }
    json_decref(json);
    /* a checkpoint of a newer version is an error: it is neither skipped nor overwritten */
    put_file("r/step-00000004/state.json", "{\"version\":2}", 13);
    for (int resume = 0; resume < 2; resume++)
        expect_failure_about(
            train(tiny(8), "r", resume, 0, 0, NULL, why), SGT_EUNSUPPORTED,
            "/r/step-00000004/state.json: version 2, expected 1 (use the newer sgt that wrote it)");
    cr_expect(exists("r/step-00000004/model.safetensors"));
}

/* At the end of the first step, limit memory to 16 MiB more than is in use. That is too little for
 * a copy of the checkpoint (23 MB), but enough to write it without a copy. */
static void leave_little_memory(void *ctx, const sgt_metrics *m, uint64_t steps, uint64_t first)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    (void)ctx;
    (void)steps;
    (void)first;
    if (f && m->step == 0 && fscanf(f, "%lu", &pages) == 1) {
        rlim_t all = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)16 << 20);
        cr_assert_eq(setrlimit(RLIMIT_AS, &(struct rlimit){all, RLIM_INFINITY}), 0);
    }
    if (f) fclose(f);
}

/* From the end of the second step until a failed save was reported, let no file grow. */
static void fill_disk(void *ctx, const sgt_metrics *m, uint64_t steps, uint64_t first)
{
    struct rlimit r;
    int full = m->step > 0 && !strstr(warned, " is not saved");
    (void)ctx;
    (void)steps;
    (void)first;
    getrlimit(RLIMIT_FSIZE, &r);
    r.rlim_cur = full ? 100 : r.rlim_max;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &r), 0);
}

/* If the disk is full, training continues and the log is kept in memory. The next save for which
 * there is room writes everything. */
Test(directory, what_finds_no_room_is_saved_later)
{
    sgt_config s = tiny(12);
    s.save_every = 2;
    s.keep = 0;
    must_train(s, "whole", 0);
    signal(SIGXFSZ, SIG_IGN);
    warned[0] = '\0';
    sgt_training_result r;
    char *run = strdup(in_folder("r"));
    sgt_train_options o = {.run = run, .warning = {hear, warned}, .progress = fill_disk};
    expect_failure_about(sgt_train(&s, &o, &r, why), SGT_EIO, "/r: step 12 is saved, but ");
    cr_expect(strstr(warned, ": File too large (step 2 is not saved: training "
                             "continues, and the next save tries again)\n"),
              "%s", warned);
    cr_expect(strstr(warned, ": training continues without more points for TensorBoard\n"), "%s",
              warned);
    cr_expect(strstr(warned, "/r/memory.jsonl: cannot write: File too large: training continues "
                             "without memory.jsonl\n"),
              "%s", warned);
    cr_expect_eq(r.steps, 12);
    cr_expect_not(exists("r/step-00000002"));
    same_facts("whole", "r");
    same_bytes("r/step-00000012/state.json", "whole/step-00000012/state.json");
    same_bytes("r/step-00000012/optimizer.safetensors",
               "whole/step-00000012/optimizer.safetensors");
    sgt_training_result_free(&r);
    free(run);
}

Test(directory, without_memory_for_a_copy_training_waits_for_the_write)
{
    if (dlsym(RTLD_DEFAULT, "__sanitizer_print_stack_trace"))
        cr_skip("a sanitizer's malloc, which ends the process where it is refused memory");
    sgt_error err;
    sgt_training_result r;
    sgt_config s = tiny(5);
    s.model = "2x256x4";
    s.save_every = 2;
    must_train(s, "whole", 0);
    cr_expect_not(strstr(said, "cannot be copied"), "%s", said);
    sgt_train_options o = {
        .run = in_folder("r"), .notice = {hear, said}, .progress = leave_little_memory};
    said[0] = '\0';
    int rc = sgt_train(&s, &o, &r, &err);
    cr_assert_eq(setrlimit(RLIMIT_AS, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}), 0);
    cr_assert_eq(rc, 0, "%s", err.text);
    sgt_training_result_free(&r);
    const char *line = strstr(said, "the checkpoint cannot be copied: ");
    cr_expect(
        line && strstr(line,
                       " of memory: Cannot allocate memory; training waits while it is written\n"),
        "%s", said);
    cr_expect(line && !strstr(line + 1, "the checkpoint cannot be copied"), "said once: %s", said);
    same_facts("r", "whole");
    same_bytes("r/step-00000002/state.json", "whole/step-00000002/state.json");
    same_bytes("r/step-00000004/optimizer.safetensors",
               "whole/step-00000004/optimizer.safetensors");
}
