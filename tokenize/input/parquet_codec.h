/* parquet_codec.h: the ways in which Parquet packs a page. snappy and lz4_raw need libraries that a
 * build can be without; then a file that uses them is refused. */
#ifndef SGT_PARQUET_CODEC_H
#define SGT_PARQUET_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

enum {
    SGT_PARQUET_PLAIN = 0,
    SGT_PARQUET_SNAPPY = 1,
    SGT_PARQUET_GZIP = 2,
    SGT_PARQUET_ZSTD = 6,
    SGT_PARQUET_LZ4_RAW = 7
};

/* Return NULL if this build can unpack the codec. Otherwise return its name, and set *todo to what
 * the user can do. */
const char *sgt_parquet_codec_lacks(int codec, const char **todo);

/* Return whether in[n] can unpack to `size` bytes. Callers ask before they allocate memory, because
 * a damaged file may state any size. */
int sgt_parquet_codec_may(int codec, const uint8_t *in, size_t n, size_t size);

/* Unpack in[n] to exactly `size` bytes. Return NULL, or what is wrong. Any number of threads may
 * call this. */
const char *sgt_parquet_unpack(int codec, const uint8_t *in, size_t n, uint8_t *out, size_t size);

#endif
