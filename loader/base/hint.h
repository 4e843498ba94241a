/* hint.h: append what to do to a message about a damaged file. Many things can be wrong with a file
 * of a format, and the same one or two actions help against all of them. */
#ifndef SGT_BASE_HINT_H
#define SGT_BASE_HINT_H

#include "loader/base/error.h"

/* If `code` is SGT_EFORMAT and the message does not end in a parenthesis yet, append " (hint)" to
 * it. Return `code`. */
int sgt_fail_hint(sgt_error *err, int code, const char *hint);

#endif
