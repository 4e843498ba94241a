/* test_settings.c: the settings of a run: writing them as JSON and reading them, what is refused,
 * and what may change on resume. */
#include <stdlib.h>
#include <string.h>

#include "train/backend.h"
#include "kernels/kernels.h"
#include "train/config.h"
#include "loader/sgt_loader.h"
#include "tests/expect.h"

SCOPED_STRUCT(sgt_config, sgt_config_free)

TestSuite(settings);

/* Return the default settings, changed by those in the JSON `text`. */
static sgt_config with(const char *text)
{
    sgt_config s;
    sgt_config_default(&s);
    must(sgt_config_merge(&s, text, "x", SGT_MERGE_GIVEN, why));
    return s;
}

Test(settings, json_and_back)
{
    sgt_config s;
    sgt_config_default(&s);
    s.data = "a \"quoted\"\\path\n";
    s.lr = 0.1 + 0.2; /* 17 digits are needed */
    s.seed = INT64_MAX;
    s.steps = 12;
    s.step.optim.weight_decay = -0.0; /* JSON's -0 is an integer, and would be read as 0 */
    s.step.optim.grad_clip = 0.1;
    scoped_memory char *text = sgt_config_json(&s);
    cr_assert(text);
    cr_expect(strstr(text, "\"weight-decay\": 0,") && strstr(text, "\"grad-clip\": 0.1,") &&
                  strstr(text, "\"lr\": 0.30000000000000004,"),
              "%s", text);
    cr_expect_not(strstr(text, "warmup"), "undecided settings are left out");
    cr_expect_not(strstr(text, "threads"), "so are the machine's");
    scoped(sgt_config) back = with(text);
    cr_expect_str_eq(back.data, s.data);
    cr_expect(back.lr == s.lr && back.seed == s.seed && back.steps == 12 &&
              back.given[SGT_SET_LR] && !back.given[SGT_SET_WARMUP]);
    scoped_memory char *again = sgt_config_json(&back);
    cr_expect_str_eq(again, text);
}

Test(settings, wrong_files_are_refused)
{
    static const struct {
        const char *text, *why;
    } bad[] = {{"{\"speed\": 3}",
                "x: unknown option 'speed' (options are named as in --help, without the dashes)"},
               {"{\"lr\": \"fast\"}", "x: 'lr' is not a number"},
               {"{\"steps\": -1}", "x: 'steps' is not a whole number of at least 0"},
               {"{\"steps\": 1.5}", "x: 'steps' is not a whole number of at least 0"},
               {"{\"data\": 7}", "x: 'data' is not a string"},
               {"{\"no-graphs\": 1}", "x: 'no-graphs' is not true or false"},
               {"{\"loader\": 1}", "x: 'loader' is not a string"},
               {"{\"dropout\": \"auto\"}", "x: 'dropout' is not a number"},
               {"[]", "x: line 1: expected a JSON object"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        scoped(sgt_config) s;
        sgt_config_default(&s);
        expect_failure(sgt_config_merge(&s, bad[i].text, "x", SGT_MERGE_GIVEN, why), SGT_EFORMAT,
                       "%s", bad[i].why);
    }
}

Test(settings, every_wrong_value_names_its_option)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"{\"loader\": \"pre\"}", NULL},
        {"{\"sampling\": \"\"}",
         "--sampling : must be one of shuffle|random|block|sequential|documents|packed"},
        {"{\"pad-id\": 1048576}", "--pad-id 1048576: must be from 0 to 1048575"},
        {"{\"precision\": \"fp8\"}", "--precision fp8: must be one of fp32|tf32|bf16|fp16"},
        {"{\"momentum\": 1}", "--momentum 1: must be at least 0 and below 1"},
        {"{\"ignore-index\": 1048576}", "--ignore-index 1048576: must be from 0 to 1048575"},
        {"{\"loss-scale\": 0}", "--loss-scale 0: must be from 1 to 16777216"},
        {"{\"betas\": \"0.9\"}",
         "--betas 0.9: must be two numbers of at least 0 and below 1, such as 0.9,0.95"},
        {"{\"betas\": \"0.9,0.999999999\"}", /* 1 as a float: the first update would divide by 0 */
         "--betas 0.9,0.999999999: must be two numbers of at least 0 and below 1, such as "
         "0.9,0.95"},
        {"{\"betas\": \"-0.1,0.9\"}",
         "--betas -0.1,0.9: must be two numbers of at least 0 and below 1, such as 0.9,0.95"},
        {"{\"batch-size\": 0}", "--batch-size 0: must be from 1 to 1048576"},
        {"{\"steps\": 0}", "--steps 0: must be from 1 to 99999999"},
        {"{\"lr\": -2}", "--lr -2: must be at least 0"},
        {"{\"min-lr\": -1e-9}", "--min-lr -1e-09: must be from 0 to 1000000000"},
        {"{\"weight-decay\": -0.1}", "--weight-decay -0.1: must be from 0 to 1000000000"},
        {"{\"grad-clip\": -1}", "--grad-clip -1: must be from 0 to 1000000000"},
        /* 1 in float */
        {"{\"dropout\": 0.999999999}", "--dropout 1: must be at least 0 and below 1"},
        {"{\"dropout\": -0.5}", "--dropout -0.5: must be at least 0 and below 1"},
        {"{\"eval-every\": 1000000001}", "--eval-every 1000000001: must be from 0 to 1000000000"},
        {"{\"memory-limit\": 0}", "--memory-limit 0: must be from 1 to 9e+18"},
        {"{\"model\": \"x\"}", NULL},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        scoped(sgt_config) s;
        sgt_error err;
        sgt_config_default(&s);
        must(sgt_config_check(&s, why));
        int rc = sgt_config_merge(&s, bad[i].text, "x", SGT_MERGE_GIVEN, &err);
        if (rc == SGT_OK) rc = sgt_config_check(&s, &err);
        cr_expect_eq(rc, SGT_EUSAGE, "taken: %s", bad[i].text);
        if (bad[i].why) cr_expect_str_eq(err.text, bad[i].why);
    }
}

Test(settings, which_may_differ_in_a_resumed_run)
{
    static const struct {
        const char *text;
        int may;
    } changes[] = {{"{\"steps\": 99}", 1},
                   {"{\"device\": \"cpu\"}", 1},
                   {"{\"loader\": \"mmap\"}", 1},
                   {"{\"threads\": 3}", 1},
                   {"{\"data\": \"elsewhere\"}", 1},
                   {"{\"lr\": 0.5}", 1},
                   {"{\"seed\": 2}", 0},
                   {"{\"batch-size\": 3}", 0},
                   {"{\"model\": \"1x8x1\"}", 0},
                   {"{\"betas\": \"0.9,0.99\"}", 0},
                   {"{\"keep\": 9}", 1},
                   {"{\"precision\": \"bf16\"}", 0},
                   {"{\"attention\": \"own\"}", 0},
                   {"{\"no-graphs\": true}", 0},
                   {"{\"no-fuse\": false}", 1},
                   {"{\"deterministic\": true}", 0},
                   {"{\"dropout\": 0.1}", 0},
                   {"{\"ignore-index\": 0}", 0},
                   {"{\"recompute\": \"block\"}", 0},
                   {"{\"document-mask\": true}", 0},
                   {"{\"momentum\": 0.5}", 1}, /* AdamW has no momentum */
                   {"{\"loss-scale\": 2}", 1}, /* fp32 has no loss scale */
                   {"{\"optimizer\": \"sgd\"}", 0},
                   {"{\"schedule\": \"wsd\"}", 1},
                   {"{\"min-lr\": 0}", 1},
                   {"{\"warmup\": 3}", 0},
                   {"{\"sampling\": \"random\"}", 0}};
    sgt_config kept;
    sgt_error err;
    sgt_config_default(&kept);
    kept.step.precision = SGT_PRECISION_FP32;
    scoped_memory char *text = sgt_config_json(&kept);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        scoped(sgt_config) s;
        sgt_config_default(&s);
        s.step.precision = SGT_PRECISION_FP32;
        must(sgt_config_merge(&s, changes[i].text, "x", SGT_MERGE_GIVEN, why));
        int rc = sgt_config_same_run(&s, text, 0, &err);
        cr_expect_eq(rc, changes[i].may ? SGT_OK : SGT_EUNSUPPORTED, "%s", changes[i].text);
    }
    sgt_config s;
    sgt_config_default(&s);
    s.step.precision = SGT_PRECISION_FP32;
    s.step.optim.kind = SGT_SGD;
    expect_failure(sgt_config_same_run(&s, text, 0, why), SGT_EUNSUPPORTED,
                   "--optimizer: \"sgd\" here, but it was \"adamw\" in the run to "
                   "resume (leave it out, or start a new --run)");
}

/* All options of a rank must equal those of rank 0, to the last bit, except paths and options about
 * the machine. The two seeds below are equal as doubles. */
Test(settings, which_may_differ_between_ranks)
{
    static const char first[] = "{\"precision\": \"fp16\", \"seed\": 9007199254740993}";
    const struct {
        const char *text, *told; /* told: the error; NULL: the option may differ */
    } changes[] = {
        {"{\"data\": \"/mnt/out\", \"init\": \"gpt2/\", \"val-data\": \"v.jsonl\"}", NULL},
        {"{\"threads\": 3, \"cpu\": \"avx2\", \"memory-limit\": 1000}", NULL},
        {"{\"lr\": \"auto\"}", NULL},
        {"{\"gelu\": \"erf\"}", "--gelu: \"erf\" here, but it is not set on rank 0"},
        {"{\"ignore-index\": 0}", "--ignore-index: 0 here, but it is not set on rank 0"},
        {"{\"document-mask\": true}", "--document-mask: true here, but it is not set on rank 0"},
        {"{\"loss-scale\": 2}", "--loss-scale: 2 here, but it is 65536 on rank 0"},
        {"{\"skip-spikes\": 6}", "--skip-spikes: 6 here, but it is 0 on rank 0"},
        {"{\"seed\": 9007199254740992}",
         "--seed: 9007199254740992 here, but it is 9007199254740993 on rank 0"},
        {"{\"save-every\": 7}", "--save-every: 7 here, but it is 1000 on rank 0"}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        scoped(sgt_config) s = with(changes[i].text);
        must(sgt_config_merge(&s, first, "x", SGT_MERGE_GIVEN, why));
        if (!changes[i].told) must(sgt_config_same_ranks(&s, first, why));
        else
            expect_failure_about(sgt_config_same_ranks(&s, first, why), SGT_EUSAGE,
                                 changes[i].told);
    }
}

/* Options without an effect on examples (FILE.jsonl) are not written, and neither is a path that is
 * not UTF-8. */
Test(settings, examples_whose_path_is_not_utf8)
{
    scoped(sgt_config) s;
    sgt_config_default(&s);
    s.data = "\377.jsonl";
    scoped_memory char *text = sgt_config_json(&s);
    cr_expect(!strstr(text, "\"data\"") && !strstr(text, "\"sampling\""), "%s", text);
    must(sgt_config_same_run(&s, text, 0, why));
    must(sgt_config_same_ranks(&s, text, why));
}

/* A run that began with --init has its shape from there, so --model is not compared. */
Test(settings, whose_shape_came_from_elsewhere)
{
    static const char begun[] = "{\"init\": \"gpt2/\"}";
    scoped(sgt_config) s = with(begun);
    must(sgt_config_same_run(&s, begun, 0, why));
    expect_failure_about(sgt_config_same_run(&s, "{}", 0, why), SGT_EUNSUPPORTED,
                         "--init: \"gpt2/\" here, but it was not set in");
    s.model = NULL;
    must(sgt_config_same_run(&s, begun, 0, why));
}

/* If a run is resumed on another device, only options that one of the devices lacks may differ. */
Test(settings, which_may_differ_on_another_device)
{
    sgt_config kept, s;
    sgt_error err;
    sgt_config_default(&kept);
    kept.step.precision = SGT_PRECISION_BF16;
    kept.step.attention = SGT_ATTENTION_CUDNN;
    kept.step.no_graphs = kept.step.no_fuse = kept.step.no_pad_vocab = kept.sync_metrics = 1;
    scoped_memory char *text = sgt_config_json(&kept);
    sgt_config_default(&s);
    s.step.precision = SGT_PRECISION_FP32;
    must(sgt_config_same_run(&s, text, 1, why));
    cr_expect_eq(sgt_config_same_run(&s, text, 0, &err), SGT_EUNSUPPORTED);
    s.step.dropout = 0.1;
    expect_failure_about(sgt_config_same_run(&s, text, 1, why), SGT_EUNSUPPORTED,
                         "--dropout: 0.1 here, but it was 0 in");
}

/* Variants are stored by name, in a fixed order. A resumed run keeps its variants if the default
 * changes. */
Test(settings, variants_are_kept_by_name)
{
    char names[SGT_VARIANTS_TEXT], all[SGT_VARIANTS_TEXT];
    sgt_error err;
    sgt_config s;
    uint32_t set;
    sgt_config_default(&s);
    cr_expect_null(s.variant);
    must(sgt_config_take_device(&s, 1, 1, why));
    scoped_memory char *text = sgt_config_json(&s);
    scoped(sgt_config) kept = with(text);
    cr_expect_str_eq(kept.variant, sgt_variants_words(names, SGT_VARIANTS_DEFAULT));
    s.variant = names;
    must(sgt_config_same_run(&s, text, 0, why));
    s.variant = "head-chunks";
    expect_failure_about(sgt_config_same_run(&s, text, 0, why), SGT_EUNSUPPORTED,
                         "--variant: \"head-chunks\" here, but it was \"none\"");
    must(sgt_config_same_run(&s, text, 1, why));
    s.batch = SGT_DEFAULT_COUNT;
    s.step.precision = SGT_DEFAULT_WORD;
    /* a run from before variants existed */
    must(sgt_config_same_run(&s, "{}", 0, why));
    sgt_variants_words(all, (1u << SGT_VARIANTS) - 1);
    must(sgt_variants_parse(&set, all, why));
    cr_expect_str_eq(sgt_variants_words(names, set), all);
    cr_expect(sgt_variants_parse(&set, "none", &err) == 0 && set == 0);
    cr_expect(sgt_variants_parse(&set, "none,default", &err) == 0 && set == SGT_VARIANTS_DEFAULT);
    cr_expect(sgt_variants_parse(&set, "all", &err) == 0 && set == (1u << SGT_VARIANTS) - 1);
    static const char *const bad[] = {"", "head", "head-chunks,", ",all", "head-chunks none"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        s.variant = bad[i];
        cr_expect_eq(sgt_config_check(&s, &err), SGT_EUSAGE, "%s", bad[i]);
        cr_expect(strstr(err.text, "unknown variant '") && strstr(err.text, all), "%s", err.text);
    }
}

Test(settings, options_without_use_are_refused_and_not_kept)
{
    static const struct {
        const char *text, *why;
    } given[] = {
        {"{\"momentum\": 0.5}", "--momentum: needs --optimizer sgd"},
        {"{\"nesterov\": true}", "--nesterov: needs --optimizer sgd"},
        {"{\"nesterov\": true, \"optimizer\": \"sgd\", \"momentum\": 0}",
         "--nesterov: needs a --momentum above 0"},
        {"{\"betas\": \"0.9,0.99\", \"optimizer\": \"sgd\"}",
         "--betas: needs --optimizer adamw or muon"},
        {"{\"momentum\": 0.5, \"optimizer\": \"muon\"}", "--momentum: needs --optimizer sgd"},
        {"{\"optimizer-state\": \"bf16\", \"optimizer\": \"muon\"}",
         "--optimizer-state: needs --optimizer adamw"},
        {"{\"loss-scale\": 1024}", "--loss-scale: needs --precision fp16"},
        {"{\"loss-scale\": 1024, \"precision\": \"bf16\"}", "--loss-scale: needs --precision fp16"},
        {"{\"loss-scale\": 1024, \"precision\": \"fp16\"}", NULL},
        {"{\"optimizer\": \"sgd\", \"momentum\": 0.5, \"nesterov\": true}", NULL}};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        sgt_error err;
        scoped(sgt_config) s = with(given[i].text);
        must(sgt_config_check(&s, why));
        cr_expect_eq(sgt_config_check_together(&s, &err), given[i].why ? SGT_EUSAGE : 0, "%s",
                     given[i].text);
        if (given[i].why) cr_expect_str_eq(err.text, given[i].why);
        /* a value that was stored is also valid as an argument */
        scoped_memory char *text = sgt_config_json(&s);
        scoped(sgt_config) again = with(text);
        cr_expect_eq(sgt_config_check_together(&again, &err), 0, "%s: %s", text, err.text);
        if (!given[i].why)
            cr_expect(strstr(text, i == 8 ? "\"loss-scale\": 1024" : "\"nesterov\": true"), "%s",
                      text);
    }
}

Test(settings, what_only_cuda_has_is_refused_elsewhere)
{
    static const struct {
        const char *text, *why;
    } given[] = {{"{\"attention\": \"own\"}", "--attention own: needs --device cuda"},
                 {"{\"sync-metrics\": true}", "--sync-metrics: needs --device cuda"},
                 {"{\"no-fuse\": true}", "--no-fuse: needs --device cuda"},
                 {"{\"no-graphs\": true}", "--no-graphs: needs --device cuda"},
                 {"{\"no-pad-vocab\": true}", "--no-pad-vocab: needs --device cuda"},
                 {"{\"variant\": \"head-chunks\"}", "--variant head-chunks: needs --device cuda"},
                 {"{\"attention\": \"auto\", \"no-fuse\": false, \"no-overlap\": true}", NULL},
                 {"{\"deterministic\": true, \"batching\": \"scalar\"}", NULL}};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        for (int cuda = 0; cuda < 2; cuda++) {
            sgt_error err;
            scoped(sgt_config) s = with(given[i].text);
            int bf16 = (int)(i + (size_t)cuda) % 2,
                rc = sgt_config_take_device(&s, cuda, bf16, &err);
            cr_expect_eq(rc, !cuda && given[i].why ? SGT_EUNSUPPORTED : 0, "%s", given[i].text);
            if (rc < 0) cr_expect_str_eq(err.text, given[i].why);
            else cr_expect_eq(s.step.precision, bf16 ? SGT_PRECISION_BF16 : SGT_PRECISION_FP32);
            if (rc == 0) cr_expect_eq(s.batch, cuda ? 64 : 8);
            sgt_config_free(&s);
            /* a run that began on CUDA with this option continues without it */
            sgt_config_default(&s);
            must(sgt_config_merge(&s, given[i].text, "x", SGT_MERGE_KEPT, why));
            must(sgt_config_take_device(&s, cuda, bf16, why));
            cr_expect_eq(s.step.no_fuse + s.step.no_graphs + s.step.no_pad_vocab + s.sync_metrics +
                             (s.step.attention == SGT_ATTENTION_OWN) +
                             (s.variant && !strcmp(s.variant, "head-chunks")),
                         cuda && given[i].why ? 1 : 0, "%s", given[i].text);
        }
}
