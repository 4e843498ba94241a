/* form.h: find out by the first bytes of a stream what it holds, whatever its name. Streams are
 * unpacked if they are packed. Only these bytes decide, so the answer is the same for any threads,
 * ranks and resumed runs.
 *
 * Whether it is text: the first SGT_BINARY_PREFIX bytes tell.
 *
 *     const sgt_magic *b = sgt_binary_of(bytes, n, n < SGT_BINARY_PREFIX, 0);
 *     if (b) printf("%s: %s, not UTF-8 text (%s)\n", path, b->what, b->hint);
 *
 * A file that begins with the magic number of a known format or with the byte order mark of UTF-16
 * or UTF-32 is not text. Neither is UTF-16 or UTF-32 without a mark, which NUL bytes at every second
 * or fourth place tell, nor a file that holds both a NUL byte and bytes that are not UTF-8. U+0000
 * in UTF-8 is text.
 *
 * Whether it is JSON Lines:
 *
 *     sgt_form form;
 *     if (sgt_form_of(&form, bytes, n, n < sizeof bytes, "text", &err) < 0) ...;
 *
 * A stream is JSON Lines if its first line, and the second if there is one, is an object whose
 * field is a string. Blank lines do not count. A line without a newline counts only at the end of
 * the stream. At most SGT_FORM_PREFIX bytes decide, so a stream whose first line is longer is text. */
#ifndef SGT_FORM_H
#define SGT_FORM_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/base/magic.h"

#define SGT_BINARY_PREFIX ((size_t)64 << 10) /* bytes examined */

/* Return what the file that begins with p[n] is, or NULL if it is text. whole: p[n] is the entire
 * file. lines: the file is JSONL; only magic numbers are looked for, because the JSON parser
 * reports invalid bytes. */
const sgt_magic *sgt_binary_of(const uint8_t *p, size_t n, int whole, int lines);

#define SGT_FORM_PREFIX ((size_t)16 << 20) /* bytes examined at most */

typedef enum sgt_form {
    SGT_FORM_TEXT,
    SGT_FORM_BRACE, /* text that begins with a brace */
    SGT_FORM_LINES, /* JSON Lines */
    SGT_FORM_ARRAY, /* a JSON array, whose first element is an object with that field */
    SGT_FORM_MORE   /* not known yet: look again at more bytes, such as four times as many */
} sgt_form;

/* Set *form to that of the stream that begins with p[n]. whole: p[n] is the entire stream. field:
 * as in sgt_json_path_set. Return 0, SGT_EUSAGE for a wrong field, or SGT_ENOMEM. */
int sgt_form_of(sgt_form *form, const uint8_t *p, size_t n, int whole, const char *field,
                sgt_error *err);

/* Say how a stream is read whose form its first bytes told, unless it is plain text. name: of the
 * stream, or of the first of `count` such files; count 0: there is only this one. text: the option
 * that reads it as text. */
void sgt_form_notice(const sgt_notice *to, sgt_form form, const char *name, size_t count,
                     const char *field, const char *text);

#endif
