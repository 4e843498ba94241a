/* json.c: sgt accepts a line of JSONL exactly if jansson finds a string in the field, and both give
 * the same string. An input that is not such a line is also tried as the content of a string in a
 * line. */
#include "tests/fuzz/fuzz.h"

#include <jansson.h>
#include <string.h>

#include "tokenize/input/json_line.h"
#include "tokenize/text/utf8.h"

/* Return whether jansson refuses a line that sgt and Python accept: because of jansson's own
 * limits, or because of lone surrogates. */
static int beyond_jansson(const json_error_t *e)
{
    enum json_error_code code = json_error_code(e);
    return code == json_error_stack_overflow || code == json_error_numeric_overflow ||
           code == json_error_null_byte_in_key || strstr(e->text, "Unicode");
}

static void try_line(const uint8_t *data, size_t n)
{
    sgt_json_path path;
    sgt_json_found t;
    json_error_t e;
    if (memchr(data, '\n', n) || memchr(data, 0, n) || sgt_utf8_valid(data, n) < n)
        return; /* jansson treats a NUL as the end, so skip lines with a NUL */
    json_t *j = json_loadb((const char *)data, n, JSON_ALLOW_NUL, &e);
    const json_t *want = json_object_get(j, "a");
    /* allocate exactly the bytes needed, so that the sanitizer finds reads and writes beyond
     * them */
    uint8_t *line = malloc(n + 1 + SGT_JSON_PAD), *scratch = malloc(n + SGT_JSON_PAD);
    must(line && scratch && sgt_json_path_set(&path, "a", NULL) == 0, "there is memory");
    if (n) memcpy(line, data, n);
    line[n] = '\n';
    memset(line + n + 1, '"', SGT_JSON_PAD);
    size_t at, length;
    const char *why = sgt_json_value(&path, line, scratch, &at, &length);
    must(!memcmp(line, data, n), "looking for a value leaves the line as it is");
    if (json_is_object(j)) {
        json_t *got =
            json_loadb((const char *)line + at, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        must(!why && (want ? json_equal(got, want) : !length),
             "the value is the one that jansson finds");
        json_decref(got);
    }
    why = sgt_json_line(&path, line, scratch, 1, &t);
    if (j || !beyond_jansson(&e)) {
        must(!why == json_is_string(want), "a line is good where jansson finds a string");
        must(why || (t.length == json_string_length(want) &&
                     !memcmp(line + t.at, json_string_value(want), t.length)),
             "it is the string that jansson finds");
        must(!why || (t.at == SGT_JSON_NOWHERE) == json_is_object(j),
             "what is JSON is not called broken");
    }
    must(!why || t.at == SGT_JSON_NOWHERE || t.at <= n, "it breaks within the line");
    free(line);
    free(scratch);
    json_decref(j);
}

void fuzz_json(const uint8_t *data, size_t size)
{
    static const char *const around[][2] = {
        {"", ""}, {"{\"a\":\"", "\"}"}, {"{\"b\":", ",\"a\":\"x\"}"}, {"{\"a\":", "}"}};
    for (size_t i = 0; i < 4; i++) {
        size_t before = strlen(around[i][0]), after = strlen(around[i][1]);
        scoped_memory uint8_t *line = malloc(before + size + after + 1);
        must(line != NULL, "there is memory");
        memcpy(line, around[i][0], before);
        if (size) memcpy(line + before, data, size);
        memcpy(line + before + size, around[i][1], after);
        try_line(line, before + size + after);
    }
}
