/* test_config.c: config.json. What is read, what is refused, and that a written file can be read
 * again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/model/model.h"
#include "tests/expect.h"
#include "tests/train/folder.h"

TestSuite(config, .init = make_folder, .fini = remove_folder);

#define GOOD                                                                                   \
    "\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":64,\"n_head\":4,\"vocab_size\":256,\"n_" \
    "positions\":16"

static int read_config(const char *text, sgt_model *m, sgt_error *err)
{
    put_file("config.json", text, strlen(text));
    return sgt_model_read_config(m, folder, err);
}

/* A resumed run reads LayerNorm's epsilon from config.json, and must get the same bits. */
Test(config, what_is_written_is_read_again)
{
    static const float eps[] = {1e-6f, 1e-12f, 1.2345678e-6f, 0.99999994f, 1e-30f, 1e-5f};
    for (size_t i = 0; i < sizeof eps / sizeof *eps; i++) {
        sgt_model got, m = {.layers = 3,
                            .channels = 52,
                            .heads = 4,
                            .vocab = 251,
                            .positions = 13,
                            .gelu = SGT_GELU_ERF,
                            .eps = eps[i]};
        must(sgt_model_write_config(&m, folder, 250, why));
        must(sgt_model_read_config(&got, folder, why));
        cr_expect(memcmp(&m, &got, sizeof m) == 0, "epsilon %.9g", (double)eps[i]);
    }
    scoped_memory char *text = get_file("config.json", NULL),
                       *generation = get_file("generation_config.json", NULL);
    cr_expect(strstr(text, "\"activation_function\": \"gelu\"") &&
              strstr(text, "\"eos_token_id\": 250"));
    cr_expect(strstr(text, "\"layer_norm_epsilon\": 1e-"), "%s", text);
    cr_expect(strstr(generation, "\"bos_token_id\": 250"));
}

Test(config, defaults_are_gpt2s)
{
    sgt_model m;
    must(read_config("{" GOOD "}", &m, why));
    cr_expect(m.gelu == SGT_GELU_TANH && m.eps == 1e-5f && m.layers == 2 && m.vocab == 256 &&
              !m.untied);
    must(read_config("{" GOOD ",\"n_inner\":256,\"activation_function\":\"gelu\",\"tie_word_"
                     "embeddings\":true,\"n_ctx\":16,\"summary_type\":\"cls_index\"}",
                     &m, why));
    cr_expect_eq(m.gelu, SGT_GELU_ERF);
    must(read_config("{" GOOD ",\"n_inner\":null,\"layer_norm_epsilon\":null}", &m, why));
    cr_expect_eq(m.eps, 1e-5f);
}

Test(config, other_models_are_refused_by_name)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"{\"model_type\":\"llama\"}", "model_type is 'llama', not gpt2"},
        {"{}", "model_type is '', not gpt2"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":2.5}", "n_layer is not a positive whole number"},
        {"{" GOOD ",\"n_inner\":100}",
         "n_inner is not four times n_embd (sgt supports only GPT-2 as published)"},
        {"{" GOOD ",\"activation_function\":\"relu\"}",
         "activation_function 'relu' is neither gelu_new nor gelu"},
        {"{" GOOD ",\"tie_word_embeddings\":0}", "tie_word_embeddings is neither true nor false"},
        {"{" GOOD ",\"scale_attn_by_inverse_layer_idx\":true}",
         "scale_attn_by_inverse_layer_idx is not false (sgt supports only GPT-2 as published)"},
        {"{" GOOD ",\"layer_norm_epsilon\":0}",
         "LayerNorm's epsilon is 0: must be above 0 and below 1"},
        {"{" GOOD ",\"layer_norm_epsilon\":\"1e-5\"}", "layer_norm_epsilon is not a number"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":64,\"n_head\":5,\"vocab_size\":256,\"n_"
         "positions\":16}",
         "5 heads do not divide 64 channels"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":64,\"n_head\":4,\"vocab_size\":9999999,"
         "\"n_positions\":16}",
         "a vocabulary of 9999999 ids: must be 1 to 1048576"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":64,\"n_head\":4,\"vocab_size\":9,\"n_"
         "positions\":2000000}",
         "2000000 positions: must be 1 to 1048576"},
        {"[]", "line 1: expected a JSON object"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sgt_model m;
        char want[512];
        snprintf(want, sizeof want, "%s/config.json: %s", folder, bad[i].why);
        expect_failure(read_config(bad[i].text, &m, why), SGT_EFORMAT, "%s", want);
    }
    sgt_model m;
    sgt_error err;
    cr_expect_eq(read_config("{\"model_type\":", &m, &err), SGT_EFORMAT);
    cr_expect_eq(sgt_model_read_config(&m, in_folder("nowhere"), &err), SGT_EIO);
}
