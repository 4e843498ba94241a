/* unpack.h: unpack gzip (RFC 1952) and zstd (RFC 8878), a buffer at a time. Members or frames may
 * follow one another. Zeros after a gzip member are padding, as in gzip itself; anything else is
 * damage. Memory is bounded by the window: 32 KiB for gzip, at most 128 MiB for zstd. A zstd frame
 * that needs more is refused, as the zstd program does. One thread at a time. */
#ifndef SGT_UNPACK_H
#define SGT_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"

typedef struct sgt_unpack sgt_unpack;

/* Create an unpacker; `path` must outlive it. */
int sgt_unpack_new(sgt_unpack **out, sgt_pack pack, const char *path, sgt_error *err);
/* Free u; NULL is allowed. */
void sgt_unpack_free(sgt_unpack *u);

/* The input and output buffers of one call. */
typedef struct sgt_unpack_io {
    const uint8_t *in;
    size_t in_at, in_size;
    uint64_t offset; /* position of in[0] in the file, in bytes */
    uint8_t *out;
    size_t out_at, out_size;
} sgt_unpack_io;

/* Unpack until `in` is used up or `out` is full. The error names the file and the offset in it. */
int sgt_unpack_some(sgt_unpack *u, sgt_unpack_io *io, sgt_error *err);

/* Return 1 if the file must not end here: a member or frame has begun and not ended. */
int sgt_unpack_inside(const sgt_unpack *u);

#endif
