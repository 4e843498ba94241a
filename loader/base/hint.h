/* hint.h: append advice to an error message about a damaged file. A file can be damaged in many
 * ways, and one piece of advice ("tokenize again") fits all of them. */
#ifndef SGT_BASE_HINT_H
#define SGT_BASE_HINT_H

#include "loader/base/error.h"

/* If `code` is SGT_EFORMAT and the text of *err does not end in a parenthesis yet, append " (hint)"
 * to it. Return `code`. */
int sgt_fail_hint(sgt_error *err, int code, const char *hint);

#endif
