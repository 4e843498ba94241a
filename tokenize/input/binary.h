/* binary.h: is this file text? The answer depends on the first SGT_BINARY_PREFIX bytes of its
 * stream (unpacked, where the file is packed) and on nothing else, so it is the same for any
 * threads, ranks and resumed runs.
 *
 *     const sgt_binary *b = sgt_binary_of(bytes, n, n < SGT_BINARY_PREFIX, 0);
 *     if (b) printf("%s: %s, not UTF-8 text (%s)\n", path, b->what, b->hint);
 *
 * Not text is a file that begins with the magic number of a known format, or with UTF-16's byte
 * order mark, or that holds a NUL byte as well as bytes that are not UTF-8. U+0000 in UTF-8 is
 * text. */
#ifndef SGT_BINARY_H
#define SGT_BINARY_H

#include <stddef.h>
#include <stdint.h>

#define SGT_BINARY_PREFIX ((size_t)64 << 10) /* bytes that are looked at */

typedef struct sgt_binary {
    const char *what; /* "a PDF" */
    const char *hint; /* how its text can be had, for a message */
} sgt_binary;

/* What the file that begins with p[n] is; NULL: text. whole: there are no bytes after these. lines:
 * the file is JSONL, in which the parser finds bytes that are wrong: only magic numbers are looked
 * for. */
const sgt_binary *sgt_binary_of(const uint8_t *p, size_t n, int whole, int lines);

#endif
