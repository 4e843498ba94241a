/* binary.h: decide whether a file is text. The answer depends only on the first SGT_BINARY_PREFIX
 * bytes of its stream (unpacked if it is packed). So it is the same for any threads, ranks and
 * resumed runs.
 *
 *     const sgt_magic *b = sgt_binary_of(bytes, n, n < SGT_BINARY_PREFIX, 0);
 *     if (b) printf("%s: %s, not UTF-8 text (%s)\n", path, b->what, b->hint);
 *
 * A file that begins with the magic number of a known format or with the byte order mark of UTF-16
 * or UTF-32 is not text. Neither is UTF-16 or UTF-32 without a mark, which NUL bytes at every second
 * or fourth place tell, nor a file that holds both a NUL byte and bytes that are not UTF-8. U+0000
 * in UTF-8 is text. */
#ifndef SGT_BINARY_H
#define SGT_BINARY_H

#include "loader/base/magic.h"

#define SGT_BINARY_PREFIX ((size_t)64 << 10) /* bytes examined */

/* Return what the file that begins with p[n] is, or NULL if it is text. whole: p[n] is the entire
 * file. lines: the file is JSONL; only magic numbers are looked for, because the JSON parser
 * reports invalid bytes. */
const sgt_magic *sgt_binary_of(const uint8_t *p, size_t n, int whole, int lines);

#endif
