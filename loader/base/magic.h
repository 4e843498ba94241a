/* magic.h: recognize, by their first bytes, files that contain neither text nor tokens.
 *
 *     const sgt_magic *m = sgt_magic_of(bytes, n);
 *     if (m) printf("%s: %s\n", path, m->what);
 *
 * Files of 16-bit token ids have no magic number, but are not mistaken for these formats. The
 * reason is that each magic number in this file, read as 16-bit ids, contains an id beyond GPT-2's
 * vocabulary, or two ids that never follow each other in text. There is one exception: token ids
 * that are all below 256 look like UTF-16. */
#ifndef SGT_BASE_MAGIC_H
#define SGT_BASE_MAGIC_H

#include <stddef.h>
#include <stdint.h>

typedef enum sgt_magic_kind {
    SGT_MAGIC_OTHER,
    SGT_MAGIC_GZIP,
    SGT_MAGIC_ZSTD,
    SGT_MAGIC_PARQUET,
    SGT_MAGIC_ARRAY,   /* an array written by numpy.save */
    SGT_MAGIC_WIDE,    /* UTF-16 or UTF-32 */
    SGT_MAGIC_NUMBERS, /* binary data: 16-bit or 32-bit integers, most of which are small */
} sgt_magic_kind;

typedef struct sgt_magic {
    const char *what; /* name of the format: "a PDF" */
    const char *hint; /* advice for an error message: how sgt-tokenize can read this format */
    sgt_magic_kind kind;
} sgt_magic;

/* Return the format of a file that begins with the n bytes at p, recognized by its magic number or
 * header. Return NULL if the format is unknown. */
const sgt_magic *sgt_magic_of(const uint8_t *p, size_t n);

/* Return the format of a file that begins with the n bytes at p if the file has a byte order mark
 * of UTF-16 or UTF-32, or seems to consist of 16-bit or 32-bit characters or integers. Otherwise
 * return NULL. `whole` is 1 if the n bytes are the entire file, otherwise 0. */
const sgt_magic *sgt_magic_wide(const uint8_t *p, size_t n, int whole);

#endif
