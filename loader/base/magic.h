/* magic.h: tell by its first bytes that a file is neither text nor tokens.
 *
 *     const sgt_magic *m = sgt_magic_of(bytes, n);
 *     if (m) printf("%s: %s\n", path, m->what);
 *
 * 16-bit tokens have no magic number. One that is read as such ids gives at least one that GPT-2
 * lacks, or two that do not follow each other in a text. But bytes as ids, of a vocabulary of 256,
 * are the same as UTF-16. */
#ifndef SGT_BASE_MAGIC_H
#define SGT_BASE_MAGIC_H

#include <stddef.h>
#include <stdint.h>

typedef enum sgt_magic_kind {
    SGT_MAGIC_OTHER,
    SGT_MAGIC_GZIP,
    SGT_MAGIC_ZSTD,
    SGT_MAGIC_PARQUET,
    SGT_MAGIC_ARRAY,   /* of numpy.save */
    SGT_MAGIC_WIDE,    /* UTF-16 or UTF-32 */
    SGT_MAGIC_NUMBERS, /* of 16 or 32 bits, most of them small */
} sgt_magic_kind;

typedef struct sgt_magic {
    const char *what; /* name of the format: "a PDF" */
    const char *hint; /* how sgt-tokenize gets its text, for a message */
    sgt_magic_kind kind;
} sgt_magic;

/* Return the format whose magic number, or whose header, p[n] begins with; NULL: none is known. */
const sgt_magic *sgt_magic_of(const uint8_t *p, size_t n);

/* Return what a file is that begins with p[n] and has a byte order mark, or units of 16 or 32 bits;
 * NULL: neither. whole: p[n] is the entire file. */
const sgt_magic *sgt_magic_wide(const uint8_t *p, size_t n, int whole);

#endif
