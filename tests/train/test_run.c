/* Whole runs through sgt_train: the 200-step curve, resume bit for bit, what a run directory holds and how it is
 * guarded. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "fixture.h"
#include "folder.h"
#include "run.h"
#include "shard.h"
#include "sgt_train.h"

#define TOKENS 20001

/* 20,001 ids of the curve's text (bytes) as a shard that says what they are: 256 ids; a newline begins a document. */
static void make_data(void)
{
    static uint8_t bytes[SGT_SHARD_HEADER + 2 * TOKENS];
    sgt_shard_header h = {.tokens = TOKENS, .revision = 1, .vocab = 256, .eot = '\n'};
    FILE *f = fopen(FIXTURES "curve/tokens.bin", "rb");
    make_folder();
    cr_assert(f && fread(bytes, 1, sizeof bytes, f) == sizeof bytes);
    fclose(f);
    sgt_shard_pack(bytes, &h);
    put_file("data.bin", bytes, sizeof bytes);
}

TestSuite(run, .init = make_data, .fini = remove_folder);

static char said[8192], warned[8192]; /* every notice and every warning, a line each */

static void hear(void *into, const char *line)
{
    size_t n = strlen(into);
    snprintf((char *)into + n, sizeof said - n, "%s\n", line);
}

/* The curve's settings, as contract and fixture have them. */
static sgt_settings curve(uint64_t steps)
{
    sgt_settings s;
    sgt_settings_default(&s);
    s.data = FIXTURES "curve/tokens.bin";
    s.init = FIXTURES "curve";
    s.sampling = "sequential";
    s.device = "cpu";
    s.batch = 12;
    s.seq = 64;
    s.steps = steps;
    s.lr = 1e-3;
    s.min_lr = 1e-4;
    s.warmup = 20;
    s.eval_every = 0;
    s.threads = 1; /* other tests run beside this one */
    return s;
}

/* A run of a model small enough to be done many times. */
static sgt_settings tiny(uint64_t steps)
{
    sgt_settings s = curve(steps);
    s.init = NULL;
    s.data = in_folder("data.bin");
    s.model = "2x16x2";
    s.batch = 2;
    s.accum = 2;
    s.seq = 32;
    s.sampling = "shuffle";
    s.warmup = 3;
    return s;
}

typedef struct stop_at {
    uint64_t step;
    sgt_stop *stop;
} stop_at;

static void request_stop(void *ctx, const sgt_metrics *m, uint64_t steps, uint64_t first)
{
    stop_at *s = ctx;
    (void)steps;
    (void)first;
    if (m->step + 1 == s->step) sgt_stop_request(s->stop);
}

/* sgt_train into FOLDER/name; stop after `stop` steps where that is not 0. */
static int train(sgt_settings s, const char *name, int resume, int force, uint64_t stop, sgt_train_result *result,
                 sgt_error *err)
{
    sgt_stop request = {0};
    stop_at when = {stop, &request};
    sgt_train_result r;
    sgt_train_options o = {.run = in_folder(name),
                           .resume = resume,
                           .force = force,
                           .notice = {hear, said},
                           .warning = {hear, warned},
                           .stop = &request,
                           .progress = request_stop,
                           .ctx = &when};
    said[0] = warned[0] = '\0';
    int rc = sgt_train(&s, &o, &r, err);
    if (result) *result = r;
    else sgt_train_result_free(&r);
    sgt_settings_free(&s);
    return rc;
}

static void must_train(sgt_settings s, const char *name, int resume)
{
    sgt_error err;
    cr_assert_eq(train(s, name, resume, 0, 0, NULL, &err), 0, "%s", err.text);
}

/* The log without what is measured. */
static char *facts(const char *run)
{
    char path[64], *out = NULL, *text;
    size_t n;
    snprintf(path, sizeof path, "%s/log.jsonl", run);
    cr_assert((text = get_file(path, NULL)), "%s", path);
    FILE *f = open_memstream(&out, &n);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        cr_assert(json, "%s", line);
        static const char *const measured[] = {"ms_per_step", "tokens_per_s", "data_wait_ms", "peak_bytes"};
        for (int i = 0; i < 4; i++) cr_assert_eq(json_object_del(json, measured[i]), 0, "%s is missing", measured[i]);
        json_dumpf(json, f, JSON_COMPACT);
        fputc('\n', f);
        json_decref(json);
    }
    fclose(f);
    free(text);
    return out;
}

static void same_facts(const char *a, const char *b)
{
    char *x = facts(a), *y = facts(b);
    cr_expect_str_eq(x, y, "the logs of %s and %s differ", a, b);
    free(x);
    free(y);
}

static void same_bytes(const char *a, const char *b)
{
    size_t n = 0, m = 0;
    char *x = get_file(a, &n), *y = get_file(b, &m);
    cr_expect(x && y && n == m && memcmp(x, y, n) == 0, "%s and %s differ", a, b);
    free(x);
    free(y);
}

/* ---- numbers ---- */

Test(run, the_curve_of_pytorch_in_float64, .timeout = 600)
{
    must_train(curve(200), "r", 0);
    FILE *want = fopen(FIXTURES "curve/f64.tsv", "r"), *log = fopen(in_folder("r/log.jsonl"), "r");
    char line[1024];
    cr_assert(want && log && fgets(line, sizeof line, want));
    int steps = 0, step;
    double loss, norm;
    while (fscanf(want, "%d %lf %lf", &step, &loss, &norm) == 3) {
        cr_assert(fgets(line, sizeof line, log), "the log ends before step %d", step);
        json_t *json = json_loads(line, 0, NULL);
        cr_assert_eq(json_integer_value(json_object_get(json, "step")), step);
        double got = json_number_value(json_object_get(json, "loss")),
               got_norm = json_number_value(json_object_get(json, "grad_norm"));
        cr_expect_leq(fabs(got - loss), 2e-5, "step %d: loss %.9f, not %.9f", step, got, loss);
        cr_expect_leq(fabs(got_norm / norm - 1), 1e-4, "step %d: gradient norm %.9f, not %.9f", step, got_norm, norm);
        json_decref(json);
        steps++;
    }
    cr_expect_eq(steps, 200);
    cr_expect_null(fgets(line, sizeof line, log));
    fclose(want);
    fclose(log);
}

Test(run, the_same_bits_for_any_number_of_threads)
{
    for (uint64_t threads = 1; threads <= 3; threads++) {
        char name[8] = {'r', (char)('0' + threads), 0};
        sgt_settings s = tiny(6);
        s.threads = threads;
        must_train(s, name, 0);
    }
    same_facts("r1", "r2");
    same_facts("r1", "r3");
    same_bytes("r1/step-00000006/model.safetensors", "r2/step-00000006/model.safetensors");
    same_bytes("r1/step-00000006/optimizer.safetensors", "r3/step-00000006/optimizer.safetensors");
}

/* ---- resume ---- */

Test(run, stopped_and_resumed_is_undisturbed)
{
    sgt_error err;
    sgt_train_result r;
    must_train(tiny(12), "whole", 0);
    cr_assert_eq(train(tiny(12), "cut", 0, 0, 5, &r, &err), SGT_ESTOPPED);
    cr_expect_str_eq(err.text, "interrupted after step 5 of 12; --resume goes on from there");
    cr_expect_str_eq(r.checkpoint, in_folder("cut/step-00000005"));
    cr_expect_eq(r.steps, 5);
    sgt_train_result_free(&r);
    cr_assert_eq(train(tiny(12), "cut", 1, 0, 6, NULL, &err), SGT_ESTOPPED);
    must_train(tiny(12), "cut", 1);
    same_facts("whole", "cut");
    same_bytes("whole/step-00000012/model.safetensors", "cut/step-00000012/model.safetensors");
    same_bytes("whole/step-00000012/optimizer.safetensors", "cut/step-00000012/optimizer.safetensors");
    same_bytes("whole/step-00000012/state.json", "cut/step-00000012/state.json");
}

/* A signal while everything is still being set up. */
Test(run, stopped_before_the_first_step)
{
    sgt_error err;
    sgt_train_result r;
    sgt_stop stop = {1};
    sgt_train_options o = {.run = in_folder("r"), .stop = &stop};
    sgt_settings s = tiny(4);
    cr_assert_eq(sgt_train(&s, &o, &r, &err), SGT_ESTOPPED);
    cr_expect_str_eq(err.text, "interrupted before the first step");
    cr_expect(r.steps == 0 && !r.last && !r.checkpoint);
    sgt_train_result_free(&r);
    must_train(tiny(4), "r", 1);
    cr_expect(strstr(said, "/r has no checkpoint to resume from: starting at step 0\n"), "%s", said);
}

/* Killed after a checkpoint, with lines of later steps in the log, one of them cut. */
Test(run, lines_past_the_checkpoint_are_cut)
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

/* The log of FOLDER/run with `text` in the place of line `at`. */
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

Test(run, a_damaged_line_of_the_log_costs_that_line_alone)
{
    must_train(tiny(4), "cut", 0);
    damage_log("cut", 1, "{\"step\":1,\"lo#s\":\n{\"step\":0}\n\n{\"step\":\"1\"}\n[1]\n");
    sgt_settings s = tiny(6);
    s.given[SGT_SET_STEPS] = 1;
    must_train(s, "cut", 1);
    cr_expect(strstr(warned, "/cut/log.jsonl: lines of 1 of the 4 steps before the checkpoint are missing or damaged; "
                             "the others stay\n"),
              "%s", warned);
    cr_expect_not(strstr(said, "log.jsonl"));
    char *log = get_file("cut/log.jsonl", NULL), *line = log;
    static const int left[] = {0, 2, 3, 4, 5};
    for (int i = 0; i < 5; i++) {
        char want[32];
        snprintf(want, sizeof want, "{\"step\":%d,", left[i]);
        cr_assert(line && strncmp(line, want, strlen(want)) == 0, "%s where %s should be", line, want);
        line = strchr(line, '\n');
        if (line) line++;
    }
    cr_expect_str_empty(line);
    free(log);
    /* a log that is gone takes nothing else with it */
    cr_assert_eq(unlink(in_folder("cut/log.jsonl")), 0);
    s.steps = 7;
    must_train(s, "cut", 1);
    cr_expect(strstr(warned, "lines of 6 of the 6 steps before"), "%s", warned);
}

/* Far too high a rate: the second step's loss is no number any more. */
Test(run, a_loss_that_is_no_number_is_said_once_with_advice)
{
    sgt_settings s = tiny(5);
    s.lr = 1e30;
    s.warmup = 0;
    must_train(s, "r", 0);
    char *line = strchr(warned, '\n');
    cr_expect(line && line[1] == '\0', "one line: %s", warned);
    cr_expect(strstr(warned, "step 2: the loss is not a number: start again with an lr 10 times lower (--lr 1e+29)"),
              "%s", warned);
    char *text = facts("r"); /* every line is JSON */
    cr_expect(strstr(text, "{\"step\":1,\"loss\":null,"), "%s", text);
    free(text);
    must_train(tiny(5), "healthy", 0);
    cr_expect_str_empty(warned);
}

Test(run, a_resume_may_take_more_steps_another_reader_and_no_options)
{
    must_train(tiny(4), "r", 0);
    sgt_settings s;
    sgt_settings_default(&s); /* all else from the checkpoint */
    s.steps = 7;
    s.given[SGT_SET_STEPS] = 1;
    s.loader = "mmap";
    s.given[SGT_SET_LOADER] = 1;
    must_train(s, "r", 1);
    cr_expect(exists("r/step-00000007"));
    char *text = get_file("r/options.json", NULL);
    cr_expect(strstr(text, "\"model\": \"2x16x2\"") && strstr(text, "\"steps\": 7") &&
                  strstr(text, "\"loader\": \"mmap\""),
              "%s", text);
    free(text);
}

Test(run, a_resume_with_other_settings_or_data_is_refused_by_name)
{
    sgt_error err;
    must_train(tiny(4), "r", 0);
    sgt_settings s = tiny(8);
    s.seed = 2;
    s.given[SGT_SET_SEED] = 1;
    cr_expect_eq(train(s, "r", 1, 0, 0, NULL, &err), SGT_EUNSUPPORTED);
    cr_expect_str_eq(err.text,
                     "--seed: it is 2 here and was 1 in the run to resume (leave it out, or start a new --run)");
    size_t n;
    char *shard = get_file("data.bin", &n);
    int32_t fewer = 5000;
    memcpy(shard + 8, &fewer, 4);
    put_file("other.bin", shard, SGT_SHARD_HEADER + 2 * 5000);
    free(shard);
    s = tiny(8);
    s.data = in_folder("other.bin");
    s.given[SGT_SET_DATA] = 1;
    cr_expect_eq(train(s, "r", 1, 0, 0, NULL, &err), SGT_EUNSUPPORTED);
    cr_expect(strstr(err.text, "other.bin: not the tokens that the run to resume was trained on"), "%s", err.text);
}

Test(run, resuming_what_has_no_checkpoint_starts_at_0_and_says_so)
{
    must_train(tiny(2), "r", 1);
    cr_expect(strstr(said, "/r has no checkpoint to resume from: starting at step 0\n"), "%s", said);
    cr_expect(exists("r/step-00000002"));
}

Test(run, a_finished_run_stays_as_it_is)
{
    must_train(tiny(3), "r", 0);
    char *before = get_file("r/log.jsonl", NULL);
    must_train(tiny(3), "r", 1);
    cr_expect(strstr(said, "has made its 3 steps already"), "%s", said);
    char *after = get_file("r/log.jsonl", NULL);
    cr_expect_str_eq(before, after);
    free(before);
    free(after);
}

Test(run, another_machine_is_said_aloud)
{
    must_train(tiny(2), "r", 0);
    size_t n;
    char *text = get_file("r/step-00000002/state.json", &n), *at = strstr(text, "oneDNN");
    cr_assert(at);
    memcpy(at, "twoDNN", 6);
    put_file("r/step-00000002/state.json", text, n);
    free(text);
    must_train(tiny(3), "r", 1);
    cr_expect(strstr(warned, "the bits will differ from an undisturbed run's"), "%s", said);
}

/* ---- the directory ---- */

Test(run, rotation_and_latest)
{
    sgt_settings s = tiny(10);
    s.save_every = 2;
    s.keep = 2;
    must_train(s, "r", 0);
    cr_expect(exists("r/step-00000010") && exists("r/step-00000008"));
    cr_expect_not(exists("r/step-00000006") || exists("r/step-00000002"));
    char *latest = get_file("r/latest", NULL);
    cr_expect_str_eq(latest, "step-00000010\n");
    free(latest);
    s = tiny(6);
    s.save_every = 2;
    s.keep = 0;
    must_train(s, "all", 0);
    cr_expect(exists("all/step-00000002") && exists("all/step-00000004") && exists("all/step-00000006"));
}

Test(run, one_with_a_checkpoint_is_neither_overwritten_nor_shared)
{
    sgt_error err;
    must_train(tiny(2), "r", 0);
    cr_expect_eq(train(tiny(3), "r", 0, 0, 0, NULL, &err), SGT_EUNSUPPORTED);
    cr_expect(strstr(err.text, "/r: it holds step-00000002 (--resume goes on from there, --force starts over)"), "%s",
              err.text);
    cr_expect_eq(train(tiny(3), "r", 1, 1, 0, NULL, &err), SGT_EUSAGE);
    cr_assert_eq(train(tiny(3), "r", 0, 1, 0, NULL, &err), 0, "%s", err.text);
    cr_expect(exists("r/step-00000003") && !exists("r/step-00000002"));
    int fd = open(in_folder("r"), O_RDONLY | O_DIRECTORY);
    cr_assert(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
    cr_expect_eq(train(tiny(4), "r", 1, 0, 0, NULL, &err), SGT_EUNSUPPORTED);
    cr_expect(strstr(err.text, "another sgt-train is writing to this run"), "%s", err.text);
    close(fd);
}

Test(run, what_is_not_whole_is_passed_over)
{
    sgt_error err;
    sgt_settings s = tiny(4);
    s.save_every = 2;
    must_train(s, "r", 0);
    must_train(s, "whole", 0);
    /* the newest is cut short; a save was interrupted; a folder has the wrong name */
    cr_assert_eq(truncate(in_folder("r/step-00000004/optimizer.safetensors"), 9000), 0);
    cr_assert_eq(sgt_make_folders(in_folder("r/.step-00000003.tmp"), &err), 0);
    cr_assert_eq(sgt_make_folders(in_folder("r/step-5"), &err), 0);
    put_file("r/latest.00112233445566aa.tmp", "step-", 5);
    put_file("r/options.json.00112233445566aa.tmp", "{", 1);
    put_file("r/log.jsonl.00112233445566aa.tmp", "{", 1);
    /* a checkpoint under another's name is none either */
    cr_assert_eq(rename(in_folder("whole/step-00000002"), in_folder("r/step-00000003")), 0);
    must_train(s, "r", 1);
    cr_expect(strstr(warned, "passed over an incomplete checkpoint: "), "%s", warned);
    cr_expect(strstr(warned, "/r/step-00000004/optimizer.safetensors: tensor "), "%s", warned);
    cr_expect(strstr(warned, "(a file cut short?)"), "%s", warned);
    cr_expect(strstr(warned, "/r/step-00000003: its state.json is of step 2\n"), "%s", warned);
    cr_expect_not(exists("r/.step-00000003.tmp") || exists("r/step-00000003"));
    cr_expect_not(exists("r/latest.00112233445566aa.tmp") || exists("r/options.json.00112233445566aa.tmp") ||
                  exists("r/log.jsonl.00112233445566aa.tmp"));
    same_facts("r", "whole");
    same_bytes("r/step-00000004/optimizer.safetensors", "whole/step-00000004/optimizer.safetensors");
}

Test(run, one_without_a_whole_checkpoint_is_started_over)
{
    sgt_error err;
    cr_assert_eq(sgt_make_folders(in_folder("r/step-00000009"), &err), 0);
    put_file("r/latest", "step-00000009\n", 14);
    put_file("r/log.jsonl", "{\"step\":0,\"loss\":1}\n", 20);
    must_train(tiny(2), "r", 0);
    must_train(tiny(2), "fresh", 0);
    same_facts("r", "fresh");
    cr_expect(exists("r/step-00000002") && !exists("r/step-00000009"));
}

/* What is to go is said before it goes. */
Test(run, a_damaged_checkpoint_is_named_before_its_run_is_started_over)
{
    sgt_error err;
    must_train(tiny(2), "r", 0);
    cr_assert_eq(truncate(in_folder("r/step-00000002/model.safetensors"), 9), 0);
    must_train(tiny(1), "r", 0);
    cr_expect(strstr(warned, "passed over an incomplete checkpoint: "), "%s", warned);
    cr_expect(exists("r/step-00000001") && !exists("r/step-00000002"));
    /* one that is refused anyway is told nothing else */
    cr_assert_eq(sgt_make_folders(in_folder("r/step-00000009"), &err), 0);
    cr_expect_eq(train(tiny(3), "r", 0, 0, 0, NULL, &err), SGT_EUNSUPPORTED);
    cr_expect_str_empty(warned);
}

/* Two started at once, neither of which has seen a checkpoint: the second to get the folder must not empty it. */
Test(run, what_another_process_has_just_saved_stays)
{
    sgt_run *r;
    sgt_error err;
    must_train(tiny(2), "r", 0);
    cr_expect_eq(sgt_run_open(&r, in_folder("r"), 0, 0, NULL, &err), SGT_EUNSUPPORTED);
    cr_expect(strstr(err.text, "/r: another sgt-train has just saved step-00000002 (the same command looks again)"),
              "%s", err.text);
    cr_expect(exists("r/step-00000002/model.safetensors") && exists("r/latest"));
    cr_assert_eq(sgt_run_open(&r, in_folder("r"), 2, 0, NULL, &err), 0, "%s", err.text);
    sgt_run_close(r);
    cr_expect(exists("r/step-00000002"));
    cr_assert_eq(sgt_run_open(&r, in_folder("r"), 0, 1, NULL, &err), 0, "%s", err.text);
    sgt_run_close(r);
    cr_expect_not(exists("r/step-00000002") || exists("r/latest"));
}

/* The tokenizer comes from the checkpoint that was gone on from, which rotation removes. */
Test(run, a_tokenizer_is_handed_on_past_the_checkpoint_it_came_from)
{
    must_train(tiny(1), "first", 0);
    put_file("first/step-00000001/tokenizer.json", "{\"model\": 1}\n", 13);
    sgt_settings s = tiny(2);
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

Test(run, state_says_where_the_run_stands)
{
    static const char zeros[] =
        "{\"version\":1,\"step\":0,\"tokens\":0,\"documents\":0,\"sampler\":{\"sampling\":\"shuffle\",\"seed\":1,"
        "\"next_batch\":0},\"schedule\":{\"kind\":\"cosine\",\"lr\":1,\"min_lr\":0,\"warmup\":0,\"steps\":1},"
        "\"data\":{\"hash\":\"0\"},\"machine\":{\"device\":\"cpu\",\"cpu_level\":\"\",\"library\":\"\"},"
        "\"options\":{}}";
    sgt_error err;
    sgt_checkpoint_state st;
    must_train(tiny(4), "r", 0);
    cr_assert_eq(sgt_checkpoint_read(&st, in_folder("r/step-00000004"), &err), 0, "%s", err.text);
    cr_expect_gt(st.documents, 0);
    cr_expect(st.step == 4 && st.next_batch == 8 && st.tokens == 4 * 2 * 2 * 32 && st.seed == 1);
    cr_expect_str_eq(st.sampling, "shuffle");
    cr_expect_str_eq(st.device, "cpu");
    cr_expect(st.schedule.kind == SGT_COSINE && st.schedule.lr == 1e-3 && st.schedule.warmup == 3 &&
              st.schedule.steps == 4);
    sgt_checkpoint_state_free(&st);
    put_file("r/step-00000004/state.json", "{\"version\":1}", 13);
    cr_expect_eq(sgt_checkpoint_read(&st, in_folder("r/step-00000004"), &err), SGT_EFORMAT);
    sgt_checkpoint_state_free(&st);
    put_file("r/step-00000004/state.json", zeros, strlen(zeros));
    cr_expect_eq(sgt_checkpoint_read(&st, in_folder("r/step-00000004"), &err), SGT_EFORMAT);
    cr_expect(strstr(err.text, "/r/step-00000004/state.json: a count is out of range"), "%s", err.text);
    sgt_checkpoint_state_free(&st);
    /* a newer program's checkpoint is neither passed over nor started over */
    put_file("r/step-00000004/state.json", "{\"version\":2}", 13);
    for (int resume = 0; resume < 2; resume++) {
        cr_expect_eq(train(tiny(8), "r", resume, 0, 0, NULL, &err), SGT_EUNSUPPORTED);
        cr_expect(strstr(err.text, "/r/step-00000004/state.json: version 2, not 1 (a newer sgt's?)"), "%s", err.text);
    }
    cr_expect(exists("r/step-00000004/model.safetensors"));
}

/* ---- --init ---- */

Test(run, a_checkpoint_is_a_model_to_start_from)
{
    sgt_error err;
    must_train(tiny(3), "r", 0);
    sgt_settings s = tiny(1);
    s.init = in_folder("r/step-00000003");
    s.lr = 0;
    must_train(s, "tuned", 0);
    same_bytes("r/step-00000003/model.safetensors", "tuned/step-00000001/model.safetensors");
    size_t n;
    char *text = get_file("r/step-00000003/config.json", &n), *at = strstr(text, "\"vocab_size\": 256");
    cr_assert(at, "%s", text);
    memcpy(at, "\"vocab_size\": 255", 17);
    put_file("r/step-00000003/config.json", text, n);
    free(text);
    s = tiny(1);
    s.init = in_folder("r/step-00000003");
    cr_expect_eq(train(s, "x", 0, 0, 0, NULL, &err), SGT_EFORMAT);
    cr_expect(strstr(err.text, "tensor wte.weight has 2 dimensions, 256 x 16, where config.json says 255 x 16"), "%s",
              err.text);
    cr_expect_not(exists("x"), "a run that could not start left its folder");
}

Test(run, longer_rows_than_the_model_has_positions_are_refused)
{
    sgt_error err;
    sgt_settings s = curve(1);
    s.seq = 65;
    cr_expect_eq(train(s, "r", 0, 0, 0, NULL, &err), SGT_EUSAGE);
    cr_expect_str_eq(err.text, "--seq-len 65: the model has 64 positions");
}

/* ---- defaults that are decided ---- */

Test(run, defaults_follow_from_data_and_model)
{
    sgt_settings s = tiny(SGT_DEFAULT_COUNT);
    s.lr = s.min_lr = SGT_DEFAULT_REAL;
    s.warmup = SGT_DEFAULT_COUNT;
    s.seq = 100;
    s.batch = 8;
    s.epochs = 0.5;
    must_train(s, "r", 0);
    /* 20,001 tokens are 199 windows of 100, and half of them seven steps of 16 rows, rounded up */
    sgt_checkpoint_state st;
    cr_assert_eq(sgt_checkpoint_read(&st, in_folder("r/step-00000007"), NULL), 0);
    cr_expect_float_eq(st.schedule.lr, 3e-4 * 16 / 64, 1e-12);
    cr_expect_float_eq(st.schedule.min_lr, 3e-5 * 16 / 64, 1e-12);
    cr_expect_eq(st.schedule.warmup, 0);
    cr_expect(
        strstr(said, "lr 7.5e-05: 0.0003 for models of about 124 million parameters, for 16 rows a step instead of 64"),
        "%s", said);
    sgt_checkpoint_state_free(&st);
}

Test(run, a_given_rate_is_scaled_aloud)
{
    sgt_settings s = tiny(1);
    s.lr = 3e-4;
    s.scale_lr = 1;
    s.lr_base_batch = 1;
    must_train(s, "r", 0);
    cr_expect(strstr(said, "Scaled learning rate: 0.00120\n"), "%s", said);
}
