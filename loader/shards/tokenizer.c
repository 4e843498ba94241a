/* tokenizer.c: writes tokenizer_config.json. */
#include "loader/shards/tokenizer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "loader/base/json.h"
#include "loader/shards/json_dumps.h"

/* most JSON values of a tokenizer.json: two for each id and merge, and the rest */
#define MOST_VALUES ((size_t)1 << 19)

/* Return the name of the token `id`, which lives as long as the tokenizer; NULL if it has none. */
static const char *name_of(const json_t *tokenizer, json_int_t id)
{
    size_t i;
    const char *name;
    json_t *v;
    json_array_foreach(json_object_get(tokenizer, "added_tokens"), i, v)
    {
        const json_t *of = json_object_get(v, "id");
        if (json_is_integer(of) && json_integer_value(of) == id)
            return json_string_value(json_object_get(v, "content"));
    }
    json_object_foreach(json_object_get(json_object_get(tokenizer, "model"), "vocab"), name,
                        v) if (json_is_integer(v) && json_integer_value(v) == id) return name;
    return NULL;
}

int sgt_tokenizer_name(char **name, const char *tokenizer, size_t n, int64_t id, sgt_error *err)
{
    json_error_t why;
    *name = NULL;
    if (id < 0 || sgt_json_fits(tokenizer, n, MOST_VALUES, "tokenizer.json", NULL) < 0)
        return SGT_OK;
    json_t *json = json_loadb(tokenizer, n, 0, &why);
    if (!json)
        return json_error_code(&why) == json_error_out_of_memory
                   ? sgt_fail_memory(err, "tokenizer.json")
                   : SGT_OK;
    const char *found = name_of(json, id);
    if (found) *name = strdup(found);
    json_decref(json);
    return found && !*name ? sgt_fail_memory(err, "tokenizer.json") : SGT_OK;
}

int sgt_tokenizer_config_write(const char *dir, const char *eot, uint32_t positions, sgt_error *err)
{
    char *text = NULL, *path = sgt_join(dir, SGT_TOKENIZER_CONFIG);
    json_t *json = json_pack("{s:s, s:s*, s:s*, s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
                             "bos_token", eot, "eos_token", eot, "clean_up_tokenization_spaces", 0);
    if (json && positions &&
        json_object_set_new(json, "model_max_length", json_integer(positions)) < 0) {
        json_decref(json);
        json = NULL;
    }
    if (json) text = sgt_json_dumps(json, JSON_INDENT(2));
    int rc = path && text ? sgt_file_put(path, text, strlen(text), err) : sgt_fail_memory(err, dir);
    json_decref(json);
    free(path);
    free(text);
    return rc;
}
