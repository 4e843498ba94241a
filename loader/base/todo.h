/* todo.h: what to do, behind what is wrong: for who opens a file of a format, of which many things can be wrong and one
 * or two be done about them. */
#ifndef SGT_BASE_TODO_H
#define SGT_BASE_TODO_H

#include "base/error.h"

/* Adds " (todo)" to a message about a file's content, SGT_EFORMAT, that does not end in such already; returns `code`. */
int sgt_fail_todo(sgt_error *err, int code, const char *todo);

#endif
