/* magic.h: recognize, by its first bytes, a file that is neither text nor tokens.
 *
 *     const sgt_magic *m = sgt_magic_of(bytes, n);
 *     if (m) printf("%s: %s\n", path, m->what);
 *
 * A file of 16-bit tokens has no magic number. Every magic number here, read as 16-bit ids, has an
 * id that GPT-2 lacks, or two ids that do not follow each other in text. But ids of a vocabulary of
 * 256 bytes cannot be told from UTF-16. */
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
    SGT_MAGIC_NUMBERS, /* numbers of 16 or 32 bits, most of them small */
} sgt_magic_kind;

typedef struct sgt_magic {
    const char *what; /* name of the format: "a PDF" */
    const char *hint; /* advice for a message: how to get the text into sgt-tokenize */
    sgt_magic_kind kind;
} sgt_magic;

/* Return the format whose magic number or header is at the beginning of p[n]; NULL if none is
 * known. */
const sgt_magic *sgt_magic_of(const uint8_t *p, size_t n);

/* Return the format of a file that begins with p[n] and has a UTF-16 or UTF-32 byte order mark, or
 * consists of units of 16 or 32 bits; NULL if neither holds. whole: p[n] is the entire file. */
const sgt_magic *sgt_magic_wide(const uint8_t *p, size_t n, int whole);

#endif
