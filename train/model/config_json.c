/* config_json.c: reads the shape of a model (sgt_model) from a config.json file, and writes such a
 * file. */
#include "train/model/model.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "loader/base/json.h"

/* maximum size of a config.json in bytes, so that a damaged file cannot use up memory; real files
 * are smaller than a kilobyte */
#define MAX_CONFIG ((size_t)1 << 20)
#define MOST_VALUES ((size_t)1 << 16)
#define FLOAT_DIGITS 9 /* decimal digits that distinguish any two different floats */

typedef struct config {
    json_t *json;
    const char *path;
    sgt_error *err;
} config;

static int read_size(const config *c, const char *key, uint32_t *out)
{
    const json_t *v = json_object_get(c->json, key);
    if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > UINT32_MAX)
        return sgt_fail(c->err, SGT_EFORMAT, "%s: %s is not a positive whole number", c->path, key);
    *out = (uint32_t)json_integer_value(v);
    return SGT_OK;
}

/* Set m->untied from the member tie_word_embeddings of config.json. If the member is missing, the
 * head is tied to wte, as in GPT-2. */
static int read_tied(const config *c, sgt_model *m)
{
    const json_t *v = json_object_get(c->json, "tie_word_embeddings");
    if (v && !json_is_null(v) && !json_is_boolean(v))
        return sgt_fail(c->err, SGT_EFORMAT, "%s: tie_word_embeddings is neither true nor false",
                        c->path);
    m->untied = json_is_false(v);
    return SGT_OK;
}

/* Return an error unless the boolean `key` is absent or has the value `want`. Any other value would
 * request a feature that GPT-2 lacks. */
static int must_be(const config *c, const char *key, int want)
{
    const json_t *v = json_object_get(c->json, key);
    if (!v || json_is_null(v) || (json_is_boolean(v) && json_boolean_value(v) == want))
        return SGT_OK;
    return sgt_fail(c->err, SGT_EFORMAT, "%s: %s is not %s (sgt supports only GPT-2 as published)",
                    c->path, key, want ? "true" : "false");
}

static int read_activation(const config *c, sgt_gelu_kind *out)
{
    static const struct {
        const char *name;
        sgt_gelu_kind kind;
    } known[] = {{"gelu_new", SGT_GELU_TANH},
                 {"gelu_pytorch_tanh", SGT_GELU_TANH},
                 {"gelu_fast", SGT_GELU_TANH},
                 {"gelu", SGT_GELU_ERF}};
    const json_t *v = json_object_get(c->json, "activation_function");
    const char *name = v ? json_string_value(v) : "gelu_new";
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0) {
            *out = known[i].kind;
            return SGT_OK;
        }
    return sgt_fail(c->err, SGT_EFORMAT,
                    "%s: activation_function '%s' is neither gelu_new nor gelu", c->path,
                    name ? name : "");
}

static int read_rest(const config *c, const sgt_model *m)
{
    const json_t *inner = json_object_get(c->json, "n_inner");
    if (inner && !json_is_null(inner) && json_integer_value(inner) != 4 * (json_int_t)m->channels)
        return sgt_fail(
            c->err, SGT_EFORMAT,
            "%s: n_inner is not four times n_embd (sgt supports only GPT-2 as published)", c->path);
    int rc;
    if ((rc = must_be(c, "scale_attn_weights", 1)) < 0 ||
        (rc = must_be(c, "scale_attn_by_inverse_layer_idx", 0)) < 0 ||
        (rc = must_be(c, "add_cross_attention", 0)) < 0)
        return rc;
    return SGT_OK;
}

static int read_model(const config *c, sgt_model *m)
{
    int rc;
    const char *type = json_string_value(json_object_get(c->json, "model_type"));
    if (!type || strcmp(type, "gpt2") != 0)
        return sgt_fail(c->err, SGT_EFORMAT, "%s: model_type is '%s', not gpt2", c->path,
                        type ? type : "");
    *m = (sgt_model){.eps = 1e-5f};
    if ((rc = read_size(c, "n_layer", &m->layers)) < 0 ||
        (rc = read_size(c, "n_embd", &m->channels)) < 0 ||
        (rc = read_size(c, "n_head", &m->heads)) < 0 ||
        (rc = read_size(c, "vocab_size", &m->vocab)) < 0 ||
        (rc = read_size(c, "n_positions", &m->positions)) < 0 ||
        (rc = read_activation(c, &m->gelu)) < 0 || (rc = read_tied(c, m)) < 0 ||
        (rc = read_rest(c, m)) < 0)
        return rc;
    const json_t *eps = json_object_get(c->json, "layer_norm_epsilon");
    if (eps && !json_is_null(eps) && !json_is_number(eps))
        return sgt_fail(c->err, SGT_EFORMAT, "%s: layer_norm_epsilon is not a number", c->path);
    if (json_is_number(eps)) m->eps = (float)json_number_value(eps);
    rc = sgt_model_check(m, c->path, c->err);
    /* sgt_model_check returns SGT_EUSAGE because it also checks options, but here the file is
     * wrong */
    if (rc < 0 && c->err) c->err->code = SGT_EFORMAT;
    return rc < 0 ? SGT_EFORMAT : SGT_OK;
}

int sgt_model_read_config(sgt_model *m, const char *dir, sgt_error *err)
{
    json_t *json = NULL;
    char path[SGT_PATH];
    int rc = sgt_json_file(&json, sgt_path(path, dir, "config.json"), MAX_CONFIG, MOST_VALUES, err);
    if (rc == SGT_OK) rc = read_model(&(config){json, path, err}, m);
    json_decref(json);
    return rc;
}

/* Write `json` to the file DIR/NAME. Release one reference to `json`, on error too. */
static int write_json(json_t *json, const char *dir, const char *name, sgt_error *err)
{
    const size_t form = JSON_INDENT(2) | JSON_REAL_PRECISION(FLOAT_DIGITS);
    char path[SGT_PATH], *text = sgt_json_dumps(json, form);
    sgt_path(path, dir, "%s", name);
    int rc = text ? sgt_file_put(path, text, strlen(text), err) : sgt_fail_memory(err, path);
    json_decref(json);
    free(text);
    return rc;
}

/* Return the double with the fewest significant digits, at most 9, that becomes x when it is
 * converted to float. Example: 1e-05 for the float with the exact value 9.99999975e-06. */
static double shortest(float x)
{
    char text[32];
    double d = (double)x;
    for (int digits = 6; digits <= FLOAT_DIGITS; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)x);
        d = strtod(text, NULL);
        if ((float)d == x) break;
    }
    return d;
}

static json_t *id_or_null(int64_t id) { return id < 0 ? json_null() : json_integer(id); }

int sgt_model_write_config(const sgt_model *m, const char *dir, int64_t eot, sgt_error *err)
{
    json_t *json = json_pack(
        "{s:s, s:[s], s:i, s:i, s:i, s:i, s:i, s:i, s:n, s:s, s:f, s:f, s:f, s:f, s:f, s:b, s:b, "
        "s:o, s:o, s:s}",
        "model_type", "gpt2", "architectures", "GPT2LMHeadModel", "vocab_size", (int)m->vocab,
        "n_positions", (int)m->positions, "n_ctx", (int)m->positions, "n_embd", (int)m->channels,
        "n_layer", (int)m->layers, "n_head", (int)m->heads, "n_inner", "activation_function",
        m->gelu == SGT_GELU_TANH ? "gelu_new" : "gelu", "layer_norm_epsilon", shortest(m->eps),
        "initializer_range", 0.02, "attn_pdrop", 0.0, "embd_pdrop", 0.0, "resid_pdrop", 0.0,
        "tie_word_embeddings", !m->untied, "use_cache", 1, "bos_token_id", id_or_null(eot),
        "eos_token_id", id_or_null(eot), "torch_dtype", "float32");
    int rc = write_json(json, dir, "config.json", err);
    if (rc < 0) return rc;
    json_t *generation =
        json_pack("{s:o, s:o}", "bos_token_id", id_or_null(eot), "eos_token_id", id_or_null(eot));
    return write_json(generation, dir, "generation_config.json", err);
}
