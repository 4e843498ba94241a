/* parquet_codec.c: each codec's library, behind one call. */
#define ZSTD_STATIC_LINKING_ONLY /* for ZSTD_decompressBound */
#include "tokenize/input/parquet_codec.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>
#ifdef SGT_snappy
#include <snappy-c.h>
#endif
#ifdef SGT_lz4
#include <lz4.h>
#endif

#define OTHER "write it with zstd or snappy, or --filter reads it through a command"
#define REBUILD(package) "build sgt again where the package " package " is installed"

/* most bytes that one packed byte can become in each format */
#define SNAPPY_MOST 32
#define GZIP_MOST 1040
#define LZ4_MOST 256

const char *sgt_parquet_codec_lacks(int codec, const char **todo)
{
    static const char *const names[] = {
        [3] = "lzo", [4] = "brotli", [5] = "lz4 in Hadoop's frames"};
    *todo = OTHER;
    switch (codec) {
    case SGT_PARQUET_PLAIN:
    case SGT_PARQUET_GZIP:
    case SGT_PARQUET_ZSTD: return NULL;
    case SGT_PARQUET_SNAPPY:
#ifdef SGT_snappy
        return NULL;
#else
        *todo = REBUILD("libsnappy-dev");
        return "snappy, which this build is without";
#endif
    case SGT_PARQUET_LZ4_RAW:
#ifdef SGT_lz4
        return NULL;
#else
        *todo = REBUILD("liblz4-dev");
        return "lz4, which this build is without";
#endif
    }
    return codec > 2 && codec < 6 ? names[codec] : "a codec that Parquet's format does not name";
}

int sgt_parquet_codec_may(int codec, const uint8_t *in, size_t n, size_t size)
{
    switch (codec) {
    case SGT_PARQUET_PLAIN: return size == n;
    case SGT_PARQUET_SNAPPY: return size / SNAPPY_MOST <= n;
    case SGT_PARQUET_GZIP: return size / GZIP_MOST <= n;
    case SGT_PARQUET_LZ4_RAW: return size / LZ4_MOST <= n;
    default: {
        const unsigned long long most = ZSTD_decompressBound(in, n);
        /* if so, unpacking reports the error */
        return most == ZSTD_CONTENTSIZE_ERROR || size <= most;
    }
    }
}

/* The bytes may have several members, one after the other. */
static size_t unpack_gzip(const uint8_t *in, size_t n, uint8_t *out, size_t size)
{
    z_stream z = {.next_in = (uint8_t *)(uintptr_t)in, .avail_in = (uInt)n};
    int rc = inflateInit2(&z, 15 + 32); /* accept gzip's header and zlib's */
    if (rc != Z_OK) return SIZE_MAX;
    z.next_out = out;
    z.avail_out = (uInt)size;
    do rc = inflate(&z, Z_FINISH);
    while (rc == Z_STREAM_END && z.avail_in && z.avail_out && inflateReset(&z) == Z_OK);
    const size_t got = size - z.avail_out;
    inflateEnd(&z);
    return rc == Z_STREAM_END ? got : SIZE_MAX;
}

static size_t unpack_zstd(const uint8_t *in, size_t n, uint8_t *out, size_t size)
{
    size_t got = ZSTD_decompress(out, size, in, n);
    return ZSTD_isError(got) ? SIZE_MAX : got;
}

static size_t unpack(int codec, const uint8_t *in, size_t n, uint8_t *out, size_t size)
{
    switch (codec) {
    case SGT_PARQUET_PLAIN:
        if (n == size && n) memcpy(out, in, n);
        return n;
    case SGT_PARQUET_GZIP: return unpack_gzip(in, n, out, size);
    case SGT_PARQUET_ZSTD: return unpack_zstd(in, n, out, size);
#ifdef SGT_snappy
    case SGT_PARQUET_SNAPPY: {
        size_t got = size, said;
        if (snappy_uncompressed_length((const char *)in, n, &said) != SNAPPY_OK || said > size)
            return SIZE_MAX;
        return snappy_uncompress((const char *)in, n, (char *)out, &got) ? SIZE_MAX : got;
    }
#endif
#ifdef SGT_lz4
    case SGT_PARQUET_LZ4_RAW: {
        int got = LZ4_decompress_safe((const char *)in, (char *)out, (int)n, (int)size);
        return got < 0 ? SIZE_MAX : (size_t)got;
    }
#endif
    }
    return SIZE_MAX;
}

const char *sgt_parquet_unpack(int codec, const uint8_t *in, size_t n, uint8_t *out, size_t size)
{
    if (!size && !n) return NULL;
    size_t got = unpack(codec, in, n, out, size);
    if (got == size) return NULL;
    return got == SIZE_MAX ? "its packed bytes are damaged"
                           : "it unpacks to another length than it says";
}
