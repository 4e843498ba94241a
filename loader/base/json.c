/* json.c: see json.h. The number of values in a JSON text is estimated from its brackets and commas
 * before the text is parsed, because parsing takes memory for each value. */
#include "loader/base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "loader/base/file.h"

/* Return the offset of the first byte after a JSON string. `at` is the offset of the first byte
 * after the string's opening quotation mark. */
static size_t pass_string(const char *text, size_t n, size_t at)
{
    while (at < n && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
    return at + 1;
}

int sgt_json_fits(const char *text, size_t n, size_t most, const char *path, sgt_error *err)
{
    /* upper bound of the number of values. The outermost value counts as 1. Each other value
     * directly follows an opening bracket or a comma, so counting brackets and commas gives an
     * upper bound */
    size_t values = 1;
    for (size_t at = 0; at < n && values <= most;) {
        char c = text[at++];
        if (c == '"') at = pass_string(text, n, at);
        values += c == ',' || c == '[' || c == '{';
    }
    if (values <= most) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: more than %zu JSON values, too many for a file of this kind", path, most);
}

int sgt_json_object(json_t **out, const char *text, size_t n, size_t most, const char *path,
                    sgt_error *err)
{
    json_error_t why;
    int rc = sgt_json_fits(text, n, most, path, err);
    if (rc < 0) return rc;
    json_t *o = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(o))
        rc = sgt_fail(err, SGT_EFORMAT, "%s: line %d: %s", path, o ? 1 : why.line,
                      o ? "expected a JSON object" : why.text);
    if (rc == SGT_OK) *out = o;
    else json_decref(o);
    return rc;
}

int sgt_json_file(json_t **out, const char *path, size_t most_bytes, size_t most, sgt_error *err)
{
    char *text = NULL;
    size_t n;
    int rc = sgt_file_get(&text, &n, path, most_bytes, err);
    if (rc == SGT_OK) rc = sgt_json_object(out, text, n, most, path, err);
    free(text);
    return rc;
}

char *sgt_json_dumps(const json_t *json, size_t flags)
{
    size_t n = json ? json_dumpb(json, NULL, 0, flags) : 0; /* 0: JSON cannot express the value */
    char *text = n ? malloc(n + 1) : NULL;
    if (!text) return NULL;
    if (json_dumpb(json, text, n, flags) != n) {
        free(text);
        return NULL;
    }
    text[n] = 0;
    return text;
}

json_t *sgt_json_hex(uint64_t v)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, v);
    return json_string(text);
}
