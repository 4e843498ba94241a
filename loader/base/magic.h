/* magic.h: recognize, by its first bytes, a file that holds neither text nor tokens.
 *
 *     const sgt_magic *m = sgt_magic_of(bytes, n);
 *     if (m) printf("%s: %s\n", path, m->what);
 *
 * Files of 16-bit tokens have no magic number, but they are not mistaken for other formats. Each
 * magic number in this file, if read as 16-bit ids, has an id that GPT-2 lacks, or two ids that do
 * not follow each other in text. Only ids below 256 are an exception: they look like UTF-16. */
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
    SGT_MAGIC_NUMBERS, /* binary data: 16-bit or 32-bit integers, most of them small */
} sgt_magic_kind;

typedef struct sgt_magic {
    const char *what; /* name of the format: "a PDF" */
    const char *hint; /* advice for a message: how sgt-tokenize can read this format */
    sgt_magic_kind kind;
} sgt_magic;

/* Return the format that the magic number or header at the beginning of the n bytes at p indicates,
 * or NULL if it is unknown. */
const sgt_magic *sgt_magic_of(const uint8_t *p, size_t n);

/* Return the format of a file that begins with the n bytes at p if it has a byte order mark of
 * UTF-16 or UTF-32, or seems to consist of numbers or characters of 16 or 32 bits. Otherwise return
 * NULL. `whole` is 1 if these bytes are the entire file. */
const sgt_magic *sgt_magic_wide(const uint8_t *p, size_t n, int whole);

#endif
