/* json.c: count the values of a JSON text by its brackets and commas. */
#include "loader/base/json.h"

/* Return the offset after the string whose opening quotation mark is text[at - 1]. */
static size_t pass_string(const char *text, size_t n, size_t at)
{
    while (at < n && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
    return at + 1;
}

int sgt_json_fits(const char *text, size_t n, size_t most, const char *path, sgt_error *err)
{
    size_t values = 1; /* the first value; each further value follows a bracket or a comma */
    for (size_t at = 0; at < n && values <= most;) {
        char c = text[at++];
        if (c == '"') at = pass_string(text, n, at);
        values += c == ',' || c == '[' || c == '{';
    }
    if (values <= most) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT, "%s: more than %zu values of JSON, which no such file needs",
                    path, most);
}
