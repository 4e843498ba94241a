/* unpack.h: gzip (RFC 1952) and zstd (RFC 8878), a bufferful at a time. Members or frames may
 * follow one another, zeros after a gzip member are padding, as gzip itself has it, and anything
 * else after one is damage. Memory is bounded by the window: 32 KiB of gzip, at most 128 MiB of
 * zstd, which refuses a frame that wants more, as the zstd program does. One thread at a time. */
#ifndef SGT_UNPACK_H
#define SGT_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "corpus.h"

typedef struct sgt_unpack sgt_unpack;

/* path must outlive it */
int sgt_unpack_new(sgt_unpack **out, sgt_pack pack, const char *path, sgt_error *err);
/* NULL is fine */
void sgt_unpack_free(sgt_unpack *u);

/* What lies in memory of both sides. */
typedef struct sgt_unpack_io {
    const uint8_t *in;
    size_t in_at, in_size;
    uint64_t offset; /* of in[0] in the file */
    uint8_t *out;
    size_t out_at, out_size;
} sgt_unpack_io;

/* Unpacks until `in` is used up or `out` is full. The error names the file and the offset in it. */
int sgt_unpack_some(sgt_unpack *u, sgt_unpack_io *io, sgt_error *err);

/* 1: what was unpacked so far cannot be all of the file. */
int sgt_unpack_inside(const sgt_unpack *u);

#endif
