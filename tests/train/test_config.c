/* config.json: what is read, what is refused, and that what is written is read again. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "folder.h"
#include "settings.h"

TestSuite(config, .init = make_folder, .fini = remove_folder);
TestSuite(settings);

#define GOOD "\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":64,\"n_head\":4,\"vocab_size\":256,\"n_positions\":16"

static int read_config(const char *text, sgt_model *m, sgt_error *err)
{
    put_file("config.json", text, strlen(text));
    return sgt_config_read(m, folder, err);
}

Test(config, what_is_written_is_read_again)
{
    sgt_model m = {
        .layers = 3, .channels = 52, .heads = 4, .vocab = 251, .positions = 13, .gelu = SGT_GELU_ERF, .eps = 1e-5f};
    sgt_model got;
    sgt_error err;
    cr_assert_eq(sgt_config_write(&m, folder, 250, &err), 0, "%s", err.text);
    cr_assert_eq(sgt_config_read(&got, folder, &err), 0, "%s", err.text);
    cr_expect(memcmp(&m, &got, sizeof m) == 0);
    char *text = get_file("config.json", NULL), *generation = get_file("generation_config.json", NULL);
    cr_expect(strstr(text, "\"activation_function\": \"gelu\"") && strstr(text, "\"eos_token_id\": 250"));
    cr_expect(strstr(text, "\"layer_norm_epsilon\": 1e-5") || strstr(text, "\"layer_norm_epsilon\": 1e-05"), "%s",
              text);
    cr_expect(strstr(generation, "\"bos_token_id\": 250"));
    free(text);
    free(generation);
}

Test(config, defaults_are_gpt2s)
{
    sgt_model m;
    sgt_error err;
    cr_assert_eq(read_config("{" GOOD "}", &m, &err), 0, "%s", err.text);
    cr_expect(m.gelu == SGT_GELU_TANH && m.eps == 1e-5f && m.layers == 2 && m.vocab == 256);
    cr_assert_eq(read_config("{" GOOD ",\"n_inner\":256,\"activation_function\":\"gelu\",\"tie_word_embeddings\":true,"
                             "\"n_ctx\":16,\"summary_type\":\"cls_index\"}",
                             &m, &err),
                 0, "%s", err.text);
    cr_expect_eq(m.gelu, SGT_GELU_ERF);
    cr_assert_eq(read_config("{" GOOD ",\"n_inner\":null,\"layer_norm_epsilon\":null}", &m, &err), 0, "%s", err.text);
    cr_expect_eq(m.eps, 1e-5f);
}

/* A resumed run takes the model from here, and its bits with it. */
Test(config, an_epsilon_of_any_digits_is_kept)
{
    static const float eps[] = {1e-5f, 1e-6f, 1e-12f, 1.2345678e-6f, 0.99999994f, 1e-30f};
    for (size_t i = 0; i < sizeof eps / sizeof *eps; i++) {
        sgt_model m = {.layers = 1, .channels = 8, .heads = 1, .vocab = 9, .positions = 4, .eps = eps[i]}, got;
        sgt_error err;
        cr_assert_eq(sgt_config_write(&m, folder, -1, &err), 0, "%s", err.text);
        cr_assert_eq(sgt_config_read(&got, folder, &err), 0, "%s", err.text);
        cr_expect_eq(got.eps, eps[i], "%.9g became %.9g", (double)eps[i], (double)got.eps);
    }
}

Test(config, other_models_are_refused_by_name)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"{\"model_type\":\"llama\"}", "model_type is 'llama', not gpt2"},
        {"{}", "model_type is '', not gpt2"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":2.5}", "n_layer is not a positive whole number"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":-2}", "n_layer is not a positive whole number"},
        {"{" GOOD ",\"n_inner\":100}", "n_inner is not four times n_embd"},
        {"{" GOOD ",\"activation_function\":\"relu\"}", "activation_function 'relu' is neither gelu_new nor gelu"},
        {"{" GOOD ",\"tie_word_embeddings\":false}", "tie_word_embeddings is not true: sgt trains GPT-2 as published"},
        {"{" GOOD ",\"scale_attn_by_inverse_layer_idx\":true}",
         "scale_attn_by_inverse_layer_idx is not false: sgt trains GPT-2 as published"},
        {"{" GOOD ",\"layer_norm_epsilon\":0}", "LayerNorm's epsilon is 0"},
        {"{" GOOD ",\"layer_norm_epsilon\":\"1e-5\"}", "layer_norm_epsilon is not a number"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":64,\"n_head\":5,\"vocab_size\":256,\"n_positions\":16}",
         "5 heads do not divide 64 channels"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":64,\"n_head\":4,\"vocab_size\":99999,\"n_positions\":16}",
         "a vocabulary of 99999, must be 1 to 65536"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":64,\"n_head\":4,\"vocab_size\":9,\"n_positions\":2000000}",
         "2000000 positions, must be 1 to 1048576"},
        {"[]", "not a JSON object"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sgt_model m;
        sgt_error err;
        char want[512];
        snprintf(want, sizeof want, "%s/config.json: %s", folder, bad[i].why);
        cr_expect_eq(read_config(bad[i].text, &m, &err), SGT_EFORMAT, "taken: %s", bad[i].text);
        cr_expect_str_eq(err.text, want);
    }
    sgt_model m;
    sgt_error err;
    cr_expect_eq(read_config("{\"model_type\":", &m, &err), SGT_EFORMAT);
    cr_expect_eq(sgt_config_read(&m, in_folder("nowhere"), &err), SGT_EIO);
}

/* ---- settings ---- */

Test(settings, json_and_back)
{
    sgt_settings s, back;
    sgt_error err;
    sgt_settings_default(&s);
    s.data = "a \"quoted\"\\path\n";
    s.lr = 0.1 + 0.2; /* 17 digits are needed */
    s.seed = INT64_MAX;
    s.steps = 12;
    char *text = sgt_settings_json(&s);
    cr_assert(text);
    cr_expect(strstr(text, "\"weight-decay\": 0.1,") && strstr(text, "\"lr\": 0.30000000000000004,"), "%s", text);
    cr_expect_not(strstr(text, "warmup"), "undecided settings are left out");
    cr_expect_not(strstr(text, "threads"), "so are the machine's");
    sgt_settings_default(&back);
    cr_assert_eq(sgt_settings_merge(&back, text, "x", 1, &err), 0, "%s", err.text);
    cr_expect_str_eq(back.data, s.data);
    cr_expect(back.lr == s.lr && back.seed == s.seed && back.steps == 12 && back.given[SGT_SET_LR] &&
              !back.given[SGT_SET_WARMUP]);
    char *again = sgt_settings_json(&back);
    cr_expect_str_eq(again, text);
    free(again);
    free(text);
    sgt_settings_free(&back);
}

Test(settings, what_was_given_comes_first)
{
    sgt_settings s;
    sgt_error err;
    sgt_settings_default(&s);
    s.batch = 5;
    s.given[SGT_SET_BATCH] = 1;
    cr_assert_eq(sgt_settings_merge(&s, "{\"batch-size\": 9, \"seq-len\": 7, \"threads\": 3}", "x", 0, &err), 0);
    cr_expect(s.batch == 5 && s.seq == 7 && s.threads == SGT_DEFAULT_COUNT,
              "a machine's own settings are not taken over");
    cr_expect_not(s.given[SGT_SET_SEQ]);
    sgt_settings_free(&s);
}

Test(settings, wrong_files_are_refused)
{
    static const struct {
        const char *text, *why;
    } bad[] = {{"{\"speed\": 3}", "x: unknown option 'speed'"},
               {"{\"lr\": \"fast\"}", "x: 'lr' is not a number"},
               {"{\"steps\": -1}", "x: 'steps' is not a whole number of at least 0"},
               {"{\"steps\": 1.5}", "x: 'steps' is not a whole number of at least 0"},
               {"{\"data\": 7}", "x: 'data' is not a text"},
               {"[]", "x: not a JSON object"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sgt_settings s;
        sgt_error err;
        sgt_settings_default(&s);
        cr_expect_eq(sgt_settings_merge(&s, bad[i].text, "x", 1, &err), SGT_EFORMAT);
        cr_expect_str_eq(err.text, bad[i].why);
        sgt_settings_free(&s);
    }
}

Test(settings, every_wrong_value_names_its_option)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"{\"loader\": \"pre\"}", "--loader pre: must be one of preload|mmap|uring"},
        {"{\"loader\": \"preload|mmap\"}", "--loader preload|mmap: must be one of preload|mmap|uring"},
        {"{\"sampling\": \"\"}", "--sampling : must be one of shuffle|random|block|sequential"},
        {"{\"schedule\": \"cos\"}", "--schedule cos: must be one of cosine|linear|constant|wsd"},
        {"{\"optimizer\": \"sgd\"}", "--optimizer sgd: must be one of adamw"},
        {"{\"precision\": \"bf16\"}", "--precision bf16: fp32 is what this build has on a CPU"},
        {"{\"betas\": \"0.9\"}", "--betas 0.9: not two numbers from 0 to below 1, such as 0.9,0.95"},
        {"{\"betas\": \"0.9,1\"}", "--betas 0.9,1: not two numbers from 0 to below 1, such as 0.9,0.95"},
        {"{\"betas\": \"0.9,0.999999999\"}", /* 1 in float: the first update would divide by 0 */
         "--betas 0.9,0.999999999: not two numbers from 0 to below 1, such as 0.9,0.95"},
        {"{\"betas\": \"-0.1,0.9\"}", "--betas -0.1,0.9: not two numbers from 0 to below 1, such as 0.9,0.95"},
        {"{\"batch-size\": 0}", "--batch-size 0: must be from 1 to 1048576"},
        {"{\"steps\": 0}", "--steps 0: must be from 1 to 99999999"},
        {"{\"lr\": -2}", "--lr -2: must be at least 0"},
        {"{\"lr\": -1e308}", "--lr -1e+308: must be at least 0"},
        {"{\"min-lr\": -1e-9}", "--min-lr -1e-09: must be at least 0"},
        {"{\"weight-decay\": -0.1}", "--weight-decay -0.1: must be at least 0"},
        {"{\"grad-clip\": -1}", "--grad-clip -1: must be at least 0"},
        {"{\"dropout\": 0.5}", "--dropout 0.5: 0 is what this build has"},
        {"{\"model\": \"x\"}", NULL},
        {"{\"model\": \"gpt2\", \"init\": \"dir\"}",
         "--model gpt2: not together with --init, whose config.json says the shape"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sgt_settings s;
        sgt_error err;
        sgt_settings_default(&s);
        cr_assert_eq(sgt_settings_check(&s, &err), 0);
        cr_assert_eq(sgt_settings_merge(&s, bad[i].text, "x", 1, &err), 0, "%s", err.text);
        cr_expect_eq(sgt_settings_check(&s, &err), SGT_EUSAGE, "taken: %s", bad[i].text);
        if (bad[i].why) cr_expect_str_eq(err.text, bad[i].why);
        sgt_settings_free(&s);
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
                   {"{\"lr\": 0.5}", 0},
                   {"{\"seed\": 2}", 0},
                   {"{\"batch-size\": 3}", 0},
                   {"{\"model\": \"1x8x1\"}", 0},
                   {"{\"betas\": \"0.9,0.99\"}", 0},
                   {"{\"keep\": 9}", 0},
                   {"{\"sampling\": \"random\"}", 0}};
    sgt_settings kept;
    sgt_error err;
    sgt_settings_default(&kept);
    char *text = sgt_settings_json(&kept);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        sgt_settings s;
        sgt_settings_default(&s);
        cr_assert_eq(sgt_settings_merge(&s, changes[i].text, "x", 1, &err), 0);
        int rc = sgt_settings_same_run(&s, text, &err);
        cr_expect_eq(rc, changes[i].may ? SGT_OK : SGT_EUNSUPPORTED, "%s", changes[i].text);
        sgt_settings_free(&s);
    }
    sgt_settings s;
    sgt_settings_default(&s);
    s.schedule = "wsd";
    cr_assert_eq(sgt_settings_same_run(&s, text, &err), SGT_EUNSUPPORTED);
    cr_expect_str_eq(
        err.text,
        "--schedule: it is \"wsd\" here and was \"cosine\" in the run to resume (leave it out, or start a new --run)");
    free(text);
}
