/* test_device.c: the loop and the run directory with an asynchronous device, which fake_cuda.h
 * imitates. Its metrics come a step late, rows must stay valid, it has a loss scaler, makes choices
 * by timing, and has a known peak speed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/run/checkpoint.h"
#include "tests/expect.h"
#include "tests/train/fake_cuda.h"
#include "tests/train/folder.h"
#include "tests/train/run_fixture.h"

TestSuite(device, .init = make_data, .fini = remove_folder);

static sgt_config on_cuda(uint64_t steps)
{
    sgt_config s = tiny(steps);
    s.step.precision = SGT_DEFAULT_WORD; /* the device's own value */
    s.device = SGT_DEVICE_CUDA;
    use_cuda = &fake_cuda;
    return s;
}

/* Return line `step` of the log. */
static json_t *line(const char *run, int step)
{
    char path[64], *text;
    snprintf(path, sizeof path, "%s/log.jsonl", run);
    cr_assert((text = get_file(path, NULL)), "%s", path);
    char *at = text;
    for (int i = 0; i < step && at; i++) at = (at = strchr(at, '\n')) ? at + 1 : NULL;
    json_t *json = at ? json_loads(at, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    cr_assert(json, "no line %d", step);
    free(text);
    return json;
}

static double number(const json_t *json, const char *name)
{
    return json_number_value(json_object_get(json, name));
}

/* ---- options ---- */

Test(device, every_option_reaches_the_backend)
{
    sgt_config s = on_cuda(1);
    s.step.precision = SGT_PRECISION_FP16;
    s.recompute = SGT_RECOMPUTE_BLOCK;
    s.step.attention = SGT_ATTENTION_NAIVE;
    s.variant = "none";
    s.step.optim.kind = SGT_SGD;
    s.step.loss_scale = 1024;
    s.step.dropout = 0.25;
    s.step.optim.momentum = 0.5;
    s.step.optim.weight_decay = 0.125;
    s.step.optim.grad_clip = 2;
    s.ignore = 0;
    s.seed = 77;
    s.step.optim.nesterov = s.step.no_fuse = s.step.no_graphs = s.step.no_overlap =
        s.step.no_pad_vocab = s.step.deterministic = 1;
    must_train(s, "r", 0);
    const sgt_backend_options *o = &fake_seen.options;
    cr_expect(o->precision == SGT_PRECISION_FP16 && o->recompute == SGT_RECOMPUTE_BLOCK &&
              o->attention == SGT_ATTENTION_NAIVE && o->optim.kind == SGT_SGD && o->optim.nesterov);
    cr_expect(o->loss_scale == 1024 && o->dropout == 0.25f && o->optim.momentum == 0.5f &&
              o->optim.weight_decay == 0.125f && o->optim.grad_clip == 2 && o->seed == 77);
    cr_expect(o->no_fuse && o->no_graphs && o->no_overlap && o->no_pad_vocab && o->deterministic);
    cr_expect(o->ignoring && o->ignore == 0 && o->batch == 2 && o->accum == 2 && o->seq == 32);
    scoped_memory char *text = get_file("r/options.json", NULL);
    static const char *const kept[] = {
        "\"precision\": \"fp16\"",  "\"loss-scale\": 1024",    "\"recompute\": \"block\"",
        "\"attention\": \"naive\"", "\"optimizer\": \"sgd\"",  "\"momentum\": 0.5",
        "\"nesterov\": true",       "\"dropout\": 0.25",       "\"ignore-index\": 0",
        "\"no-fuse\": true",        "\"no-graphs\": true",     "\"no-overlap\": true",
        "\"no-pad-vocab\": true",   "\"deterministic\": true", "\"batching\": \"simd\"",
        "\"device\": \"cuda\"",     "\"variant\": \"none\""};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        cr_expect(strstr(text, kept[i]), "%s lacks %s", text, kept[i]);
    cr_expect_not(strstr(text, "betas") || strstr(text, "sync-metrics"), "%s", text);
}

Test(device, defaults_of_a_device)
{
    sgt_config s = on_cuda(1);
    s.batch = SGT_DEFAULT_COUNT;
    s.accum = 1;
    must_train(s, "r", 0);
    const sgt_backend_options *o = &fake_seen.options;
    cr_expect(o->batch == 64 && o->precision == SGT_PRECISION_BF16 && o->loss_scale == 65536 &&
              o->dropout == 0 && !o->ignoring && o->attention == SGT_ATTENTION_AUTO &&
              o->optim.kind == SGT_ADAMW && !o->choices);
}

/* ---- the loop ---- */

Test(device, metrics_come_a_step_late_and_every_line_is_there)
{
    sgt_config s = on_cuda(9);
    s.save_every = 4;
    must_train(s, "late", 0);
    cr_expect_eq(fake_seen.late, 1);
    cr_expect_eq(fake_seen.asked_at_once, 3, "at the two saves and at the end: %lu",
                 fake_seen.asked_at_once);
    s = on_cuda(9);
    s.save_every = 4;
    s.sync_metrics = 1;
    fake_seen.late = 0;
    must_train(s, "sync", 0);
    cr_expect_eq(fake_seen.late, 0);
    same_facts("late", "sync");
    same_bytes("late/step-00000008/model.safetensors", "sync/step-00000008/model.safetensors");
    /* the fake device calls its precision bf16, but computes in fp32 */
    must_train(tiny(9), "cpu", 0);
    same_facts("late", "cpu");
}

Test(device, rows_stay_while_they_may_be_read)
{
    for (int now = 0; now < 2; now++) {
        sgt_config s = on_cuda(40);
        s.step.no_overlap = now;
        s.workers = 3;
        fake_seen = (struct fake_seen){0};
        must_train(s, now ? "now" : "ahead", 0);
        cr_expect_not(fake_seen.overwritten);
        cr_expect_eq(fake_seen.pinned, 0, "%d buffers are left", fake_seen.pinned);
        cr_expect_eq(fake_seen.allocations, now ? 3 : 6);
    }
    same_facts("now", "ahead");
}

Test(device, stopped_and_resumed_is_undisturbed)
{
    sgt_error err;
    must_train(on_cuda(9), "whole", 0);
    cr_assert_eq(train(on_cuda(9), "cut", 0, 0, 4, NULL, &err), SGT_ESTOPPED);
    must_train(on_cuda(9), "cut", 1);
    same_facts("whole", "cut");
    same_bytes("whole/step-00000009/state.json", "cut/step-00000009/state.json");
}

/* ---- what is measured ---- */

/* Known figures for gpt2 with 50,304 ids: 741.4 million operations for weights, 113.2 for attention
 * at T=1024. */
Test(device, operations_of_a_token)
{
    sgt_model m;
    cr_assert_eq(sgt_model_named(&m, "gpt2", NULL), 0);
    m.vocab = 50304;
    cr_expect_eq(sgt_flops_per_token(&m, 1024), 741408768.0 + 113246208.0);
    cr_expect_eq(sgt_flops_per_token(&m, 512), 741408768.0 + 56623104.0);
}

Test(device, a_known_peak_gives_mfu_and_a_device_its_memory)
{
    sgt_training_result r;
    must(train(on_cuda(3), "r", 0, 0, 0, &r, why));
    cr_expect(r.peak_bytes == FAKE_MEMORY && r.total_bytes == FAKE_TOTAL);
    sgt_training_result_free(&r);
    sgt_model m;
    cr_assert_eq(sgt_model_named(&m, "2x16x2", NULL), 0);
    m.vocab = 256;
    scoped(json_t) *json = line("r", 1);
    double want = number(json, "tokens_per_s") * sgt_flops_per_token(&m, 32) / FAKE_PEAK,
           got = number(json, "mfu");
    /* in the log, tokens_per_s has 6 significant digits, mfu 4 */
    cr_expect(fabs(got / want - 1) <= 1e-5 + 5e-4, "%g, not %g", got, want);
    cr_expect(fabs(number(json, "mfu_datasheet") / got - FAKE_PEAK / FAKE_DATASHEET) <= 1e-3);
    cr_expect_eq(number(json, "peak_bytes"), FAKE_MEMORY);
    json_decref(json);
    cr_expect(strstr(said, "Fake H1, fp16: products of matrices reach 1 TFLOP/s, measured (mfu), "
                           "of 2 on the datasheet (mfu_datasheet)\n"),
              "%s", said);
    must_train(tiny(1), "cpu", 0);
    json = line("cpu", 0);
    cr_expect_not(json_object_get(json, "mfu_datasheet"), "what nobody knows is left out");
}

/* The peak may be measured too low on a CPU whose cores are busy. The first step that exceeds it
 * raises it. On a GPU, steps do not raise it, because their metrics come late. */
Test(device, mfu_is_never_above_1)
{
    double peak = 8e9, third = 24e9;
    cr_expect_eq(sgt_mfu(2e9, &peak, 1), 0.25);
    cr_expect_eq(sgt_mfu(16e9, &peak, 0), 1);
    cr_expect_eq(peak, 8e9);
    cr_expect_eq(sgt_mfu(16e9, &peak, 1), 1);
    cr_expect_eq(peak, 16e9, "the best that was seen");
    cr_expect_eq(sgt_mfu(8e9, &peak, 1), 0.5);
    cr_expect_eq(sgt_mfu(8e9, &third, 1), 0.3333, "as the log writes it");
    /* speeds computed with a clock that jumped */
    const double strange[] = {0, -1e9, INFINITY, -INFINITY, (double)NAN};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
        cr_expect_eq(sgt_mfu(strange[i], &peak, 1), 0);
    cr_expect_eq(peak, 16e9);
    peak = 0;
    cr_expect_eq(sgt_mfu(8e9, &peak, 1), 0, "not known");
    fake_peak = 1;
    must_train(on_cuda(3), "r", 0);
    for (int i = 0; i < 3; i++) {
        scoped(json_t) *json = line("r", i);
        cr_expect_eq(number(json, "mfu"), 1);
        cr_expect_lt(number(json, "mfu_datasheet"), 1);
    }
}

/* ---- loss scaling ---- */

static sgt_config scaled(uint64_t steps)
{
    sgt_config s = on_cuda(steps);
    s.step.precision = SGT_PRECISION_FP16;
    s.step.loss_scale = 1024;
    return s;
}

Test(device, a_skipped_step_is_logged_and_no_reason_to_worry)
{
    static const double scales[] = {1024, 1024, 2048, 2048, 1024, 1024, 2048, 2048, 4096, 2048};
    static const int skipped[] = {0, 0, 0, 1, 1, 1, 1, 1, 2, 2};
    must_train(scaled(10), "r", 0);
    cr_expect_str_empty(warned);
    for (int i = 0; i < 10; i++) {
        scoped(json_t) *json = line("r", i);
        cr_expect_eq(number(json, "loss_scale"), scales[i], "step %d", i);
        cr_expect_eq(number(json, "skipped"), skipped[i], "step %d", i);
        cr_expect_eq(json_is_null(json_object_get(json, "grad_norm")), i % 5 == 3, "step %d", i);
    }
}

Test(device, the_scaler_goes_on_where_it_stood)
{
    sgt_error err;
    scoped(sgt_checkpoint_state) st;
    must_train(scaled(12), "whole", 0);
    /* just before and just after a step that overflows */
    for (uint64_t stop = 3; stop <= 4; stop++) {
        char name[8] = {'c', (char)('0' + stop), 0}, dir[64];
        /* metrics come a step late, so the run stops a step later than asked */
        cr_assert_eq(train(scaled(12), name, 0, 0, stop - 1, NULL, &err), SGT_ESTOPPED);
        snprintf(dir, sizeof dir, "%s/step-0000000%d", name, (int)stop);
        must(sgt_checkpoint_read(&st, in_folder(dir), why));
        cr_expect(st.scaling && st.scaler.scale == (stop == 3 ? 2048 : 1024) &&
                  st.scaler.skipped == stop - 3 && st.scaler.good_steps == (stop == 3 ? 1 : 0));
        must_train(scaled(12), name, 1);
        cr_expect(fake_seen.put.scale == st.scaler.scale &&
                  fake_seen.put.good_steps == st.scaler.good_steps &&
                  fake_seen.put.skipped == st.scaler.skipped);
        cr_expect_str_empty(warned);
        same_facts("whole", name);
        sgt_checkpoint_state_free(&st);
    }
    /* other precisions have no scaler */
    must_train(on_cuda(2), "bf16", 0);
    must(sgt_checkpoint_read(&st, in_folder("bf16/step-00000002"), why));
    cr_expect_not(st.scaling);
}

Test(device, a_scaler_that_cannot_be_is_refused)
{
    static const char *const bad[][2] = {
        {"{\"scale\":0,\"good_steps\":0,\"skipped\":0}", "the scaler is out of range"},
        {"{\"scale\":1,\"good_steps\":-1,\"skipped\":0}", "the scaler is out of range"},
        {"{\"scale\":1e99,\"good_steps\":0,\"skipped\":0}", "the scaler is out of range"},
        {"{\"scale\":1}", "scaler: Object item not found: good_steps"},
        {"7", "scaler: Expected object, got integer"}};
    sgt_error err;
    must_train(scaled(2), "r", 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        scoped(sgt_checkpoint_state) st;
        json_error_t why;
        json_t *json = json_load_file(in_folder("r/step-00000002/state.json"), 0, &why);
        json_object_set_new(json, "scaler", json_loads(bad[i][0], JSON_DECODE_ANY, NULL));
        cr_assert_eq(json_dump_file(json, in_folder("r/step-00000002/state.json"), 0), 0);
        json_decref(json);
        cr_expect_eq(sgt_checkpoint_read(&st, in_folder("r/step-00000002"), &err), SGT_EFORMAT,
                     "taken: %s", bad[i][0]);
        cr_expect(strstr(err.text, bad[i][1]), "%s", err.text);
    }
}

/* ---- choices made by timing ---- */

Test(device, choices_are_kept_and_given_back_where_bits_must_not_change)
{
    for (int fixed = 0; fixed < 2; fixed++) {
        sgt_error err;
        const char *name = fixed ? "fixed" : "free";
        sgt_config s = on_cuda(4);
        s.step.deterministic = fixed;
        /* metrics come a step late: it stops after step 2 */
        cr_assert_eq(train(s, name, 0, 0, 1, NULL, &err), SGT_ESTOPPED);
        cr_expect_str_eq(fake_seen.choices, "");
        char path[64];
        snprintf(path, sizeof path, "%s/step-00000002/state.json", name);
        char *text = get_file(path, NULL);
        json_t *json = json_loads(text, 0, NULL), *machine = json_object_get(json, "machine");
        char *kept = json_dumps(json_object_get(machine, "choices"), JSON_COMPACT);
        cr_expect_str_eq(kept, "{\"qkv\":[3,1]}");
        free(kept);
        json_decref(json);
        free(text);
        must_train(s, name, 1);
        json = json_loads(fake_seen.choices, 0, NULL);
        cr_expect_eq(json != NULL, fixed, "given %s", fake_seen.choices);
        json_decref(json);
    }
}

/* ---- another device ---- */

Test(device, a_run_moves_to_the_cpu_and_back)
{
    sgt_config s = on_cuda(2);
    s.step.attention = SGT_ATTENTION_CUDNN;
    s.step.precision = SGT_PRECISION_TF32;
    s.step.no_graphs = s.sync_metrics = 1;
    must_train(s, "r", 0);
    sgt_config_default(&s); /* everything else comes from the checkpoint */
    s.device = SGT_DEVICE_CPU;
    s.steps = 4;
    s.threads = 1;
    s.given[SGT_SET_DEVICE] = s.given[SGT_SET_STEPS] = s.given[SGT_SET_THREADS] = 1;
    must_train(s, "r", 1);
    cr_expect(
        strstr(warned, "continuing in fp32 on the CPU; the checkpoint is from tf32 on CUDA\n"),
        "%s", warned);
    cr_expect(strstr(warned, "; the checkpoint is from cuda, sm_90, fake 1.0: results will differ"),
              "%s", warned);
    char *text = get_file("r/options.json", NULL);
    cr_expect(strstr(text, "\"precision\": \"fp32\"") && strstr(text, "\"attention\": \"auto\"") &&
                  !strstr(text, "no-graphs"),
              "%s", text);
    free(text);
    must_train(tiny(4), "cpu", 0);
    /* the fake device computes on the CPU, so the bits are equal */
    same_bytes("r/step-00000004/model.safetensors", "cpu/step-00000004/model.safetensors");
    /* a CUDA option that is given explicitly is refused on the CPU */
    s.step.no_graphs = 1;
    s.given[SGT_SET_NO_GRAPHS] = 1;
    expect_failure(train(s, "r", 1, 0, 0, NULL, why), SGT_EUNSUPPORTED,
                   "--no-graphs: needs --device cuda");
    /* back on CUDA it may take another precision */
    s = on_cuda(6);
    s.given[SGT_SET_DEVICE] = s.given[SGT_SET_STEPS] = s.given[SGT_SET_PRECISION] = 1;
    s.step.precision = SGT_PRECISION_BF16;
    must_train(s, "r", 1);
    cr_expect_eq(fake_seen.options.precision, SGT_PRECISION_BF16);
    /* but on the same device it may not */
    s = on_cuda(8);
    s.given[SGT_SET_STEPS] = s.given[SGT_SET_PRECISION] = 1;
    s.step.precision = SGT_PRECISION_FP16;
    expect_failure_about(train(s, "r", 1, 0, 0, NULL, why), SGT_EUNSUPPORTED,
                         "--precision: it is \"fp16\" here and was \"bf16\" in");
}

/* ---- estimates ---- */

Test(device, an_estimate_asks_the_library_and_runs_nothing)
{
    sgt_train_estimate e;
    scoped(sgt_config) s = on_cuda(2);
    sgt_train_options o = {.run = in_folder("r"), .cuda = &fake_cuda};
    s.recompute = SGT_RECOMPUTE_GELU;
    must(sgt_train_estimate_memory(&s, &o, &e, why));
    cr_expect_str_eq(e.device, "cuda");
    cr_expect(e.count == 2 && e.total == FAKE_MEMORY && e.available == FAKE_TOTAL / 2 &&
              e.model.vocab == 256);
    cr_expect_eq(fake_seen.options.recompute, SGT_RECOMPUTE_GELU);
    cr_expect_not(exists("r"));
}

/* The fake device always needs FAKE_MEMORY, and half of FAKE_TOTAL is free. A limit below
 * FAKE_MEMORY is refused. --recompute auto gives the backend a level for each layer. */
Test(device, what_memory_decides_reaches_the_backend)
{
    sgt_config s = on_cuda(1);
    s.batch = SGT_DEFAULT_COUNT;
    s.batch_auto = 1;
    s.memory_limit = FAKE_MEMORY - 1;
    expect_failure_about(train(s, "r", 0, 0, 0, NULL, why), SGT_ENOMEM,
                         "--batch-size auto: the model and its step need 117.7 MiB with one "
                         "row, more than the 117.7 MiB of --memory-limit");
    cr_expect_not(exists("r"));
    s = on_cuda(1);
    s.recompute = SGT_RECOMPUTE_AUTO;
    must_train(s, "r", 0);
    cr_expect(fake_seen.options.recompute_at, "levels are left to `recompute`");
    s = on_cuda(1);
    must_train(s, "none", 0);
    cr_expect_not(fake_seen.options.recompute_at);
}
