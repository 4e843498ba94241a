/* unpack.c: zlib and zstd behind one call, each with a row in the table `codecs`. */
#include "tokenize/input/unpack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

typedef struct codec codec;

struct sgt_unpack {
    const codec *codec;
    const char *path;
    /* 1: a member has begun and not ended. A file begins as 1, because it must have a member */
    int inside;
    int padding; /* 1: zeros followed the last member */
    z_stream gz;
    ZSTD_DStream *zst;
    int between; /* 1: zst is between two frames */
};

struct codec {
    const char *name;
    int (*begin)(sgt_unpack *u); /* returns 0, or -1 if out of memory */
    void (*end)(sgt_unpack *u);
    /* unpacks some bytes; sgt_unpack_some calls it repeatedly */
    int (*some)(sgt_unpack *u, sgt_unpack_io *io, sgt_error *err);
};

static int damaged(const sgt_unpack *u, const sgt_unpack_io *io, const char *why, sgt_error *err)
{
    return sgt_fail(err, SGT_EFORMAT, "%s: offset %" PRIu64 ": not %s, or damaged: %s", u->path,
                    io->offset + io->in_at, u->codec->name, why);
}

/* ---- gzip ---- */

static int begin_gzip(sgt_unpack *u) { return inflateInit2(&u->gz, 15 + 16) == Z_OK ? 0 : -1; }

static void end_gzip(sgt_unpack *u) { inflateEnd(&u->gz); }

static size_t at_most(size_t n, size_t max) { return n < max ? n : max; }

/* Between two members, skip zeros or begin the next member. */
static int begin_member(sgt_unpack *u, sgt_unpack_io *io, sgt_error *err)
{
    while (io->in_at < io->in_size && io->in[io->in_at] == 0) {
        io->in_at++;
        u->padding = 1;
    }
    if (io->in_at == io->in_size) return SGT_OK;
    if (u->padding) return damaged(u, io, "neither zeros nor the end follows zeros", err);
    inflateReset(&u->gz);
    u->inside = 1;
    return SGT_OK;
}

static int inflate_some(sgt_unpack *u, sgt_unpack_io *io, sgt_error *err)
{
    z_stream *z = &u->gz;
    if (!u->inside) {
        int rc = begin_member(u, io, err);
        if (rc < 0 || !u->inside) return rc;
    }
    size_t in = at_most(io->in_size - io->in_at, 1u << 30),
           out = at_most(io->out_size - io->out_at, 1u << 30);
    /* zlib does not write to its input, although the type is not const */
    z->next_in = (Bytef *)(uintptr_t)(io->in + io->in_at);
    z->avail_in = (uInt)in;
    z->next_out = io->out + io->out_at;
    z->avail_out = (uInt)out;
    int got = inflate(z, Z_NO_FLUSH);
    io->in_at += in - z->avail_in;
    io->out_at += out - z->avail_out;
    if (got == Z_STREAM_END) u->inside = 0;
    else if (got == Z_MEM_ERROR) return sgt_fail_memory(err, u->path);
    else if (got != Z_OK && got != Z_BUF_ERROR)
        return damaged(u, io, z->msg ? z->msg : "it needs a dictionary", err);
    return SGT_OK;
}

/* ---- zstd ---- */

static int begin_zstd(sgt_unpack *u)
{
    u->between = 1;
    return (u->zst = ZSTD_createDStream()) ? 0 : -1;
}

static void end_zstd(sgt_unpack *u) { ZSTD_freeDStream(u->zst); }

/* Return whether a frame that begins with this byte is older than zstd 0.8. libzstd's decoders for
 * such frames ignore our memory limit, and their errors depend on how the input is divided. */
static int is_legacy(uint8_t first) { return first >= 0x1e && first <= 0x27; }

static int decompress_some(sgt_unpack *u, sgt_unpack_io *io, sgt_error *err)
{
    ZSTD_inBuffer in = {io->in, io->in_size, io->in_at};
    ZSTD_outBuffer out = {io->out, io->out_size, io->out_at};
    if (!u->inside && in.pos == in.size) return SGT_OK;
    if (u->between && in.pos < in.size && is_legacy(io->in[in.pos]))
        return damaged(u, io, ZSTD_getErrorString(ZSTD_error_prefix_unknown), err);
    size_t got = ZSTD_decompressStream(u->zst, &out, &in);
    u->between = got == 0 || (u->between && in.pos == io->in_at);
    io->in_at = in.pos;
    io->out_at = out.pos;
    if (!ZSTD_isError(got)) {
        u->inside = got != 0;
        return SGT_OK;
    }
    if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
        return sgt_fail_memory(err, u->path);
    if (ZSTD_getErrorCode(got) != ZSTD_error_frameParameter_windowTooLarge)
        return damaged(u, io, ZSTD_getErrorName(got), err);
    return sgt_fail(
        err, SGT_EUNSUPPORTED,
        "%s: offset %" PRIu64
        ": wants a window of more than 128 MiB (zstd --long=31 -dc FILE | sgt-tokenize - OUT)",
        u->path, io->offset + io->in_at);
}

/* ---- both ---- */

static const codec codecs[] = {[SGT_PACK_GZ] = {"gzip", begin_gzip, end_gzip, inflate_some},
                               [SGT_PACK_ZST] = {"zstd", begin_zstd, end_zstd, decompress_some}};

int sgt_unpack_new(sgt_unpack **out, sgt_pack pack, const char *path, sgt_error *err)
{
    sgt_unpack *u = calloc(1, sizeof *u);
    if (!u) return sgt_fail_memory(err, path);
    u->codec = &codecs[pack];
    u->path = path;
    u->inside = 1;
    if (u->codec->begin(u) < 0) {
        free(u);
        return sgt_fail_memory(err, path);
    }
    *out = u;
    return SGT_OK;
}

void sgt_unpack_free(sgt_unpack *u)
{
    if (!u) return;
    u->codec->end(u);
    free(u);
}

int sgt_unpack_inside(const sgt_unpack *u) { return u->inside; }

int sgt_unpack_some(sgt_unpack *u, sgt_unpack_io *io, sgt_error *err)
{
    for (;;) {
        size_t in = io->in_at, out = io->out_at;
        int rc = u->codec->some(u, io, err);
        if (rc < 0 || io->out_at == io->out_size) return rc;
        /* no progress: more input is needed */
        if (io->in_at == in && io->out_at == out) return SGT_OK;
    }
}
