/* hint.c: see hint.h. */
#include "loader/base/hint.h"

#include <string.h>

int sgt_fail_hint(sgt_error *err, int code, const char *hint)
{
    if (!err || code != SGT_EFORMAT) return code;
    sgt_error said = *err;
    size_t n = strlen(said.text);
    return n && said.text[n - 1] == ')' ? code : sgt_fail(err, code, "%s (%s)", said.text, hint);
}
