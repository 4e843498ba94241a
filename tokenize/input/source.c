/* source.c: reads a file's bytes, and decompresses them if the file is packed (.gz, .zst). */
#include "tokenize/input/source.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tokenize/input/raw.h"
#include "tokenize/input/unpack.h"

/* bytes per read of packed input: zstd's largest block, large enough for cheap reads */
#define IN ((size_t)128 << 10)

struct sgt_source {
    sgt_raw raw;
    sgt_unpack *unpack; /* NULL: the file is not packed */
    uint8_t *in;        /* packed bytes */
    size_t in_at, in_size;
    int in_end; /* 1: the file has no bytes after those in `in` */
};

int sgt_source_open(sgt_source **out, const sgt_corpus_file *f, const sgt_stop *stop,
                    const sgt_stop *cancel, sgt_error *err)
{
    sgt_source *s = calloc(1, sizeof *s);
    if (!s) return sgt_fail_memory(err, f->path);
    s->raw = (sgt_raw){.file = f, .stop = stop, .cancel = cancel};
    int rc = sgt_raw_open(&s->raw, err);
    if (rc < 0) {
        free(s);
        return rc;
    }
    if (f->pack != SGT_PACK_NONE) {
        s->in = malloc(IN);
        rc = s->in ? sgt_unpack_new(&s->unpack, f->pack, f->path, err)
                   : sgt_fail_memory(err, f->path);
    }
    if (rc < 0) sgt_source_close(s);
    else *out = s;
    return rc;
}

void sgt_source_close(sgt_source *s)
{
    if (!s) return;
    sgt_raw_close(&s->raw);
    sgt_unpack_free(s->unpack);
    free(s->in);
    free(s);
}

uint64_t sgt_source_raw(const sgt_source *s)
{
    uint64_t size = s->raw.file->size;
    /* how much of the file a filter has read is unknown, so assume as many bytes as it has
     * printed */
    if (s->raw.file->filter) return s->raw.at < size ? s->raw.at : size;
    return s->raw.at - (s->in_size - s->in_at);
}

int sgt_source_read(sgt_source *s, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err)
{
    if (!s->unpack) return sgt_raw_read(&s->raw, p, n, want, end, err);
    while (*n < want && !*end) {
        int rc = SGT_OK;
        if (s->in_at == s->in_size && !s->in_end) {
            s->in_at = s->in_size = 0;
            rc = sgt_raw_read(&s->raw, s->in, &s->in_size, IN, &s->in_end, err);
        }
        sgt_unpack_io io = {s->in, s->in_at, s->in_size, s->raw.at - s->in_size, p, *n, want};
        if (!rc) rc = sgt_unpack_some(s->unpack, &io, err);
        int nothing = io.out_at == *n;
        s->in_at = io.in_at;
        *n = io.out_at;
        if (rc < 0) return rc;
        if (!s->in_end || s->in_at < s->in_size) continue;
        *end = !sgt_unpack_inside(s->unpack);
        if (!*end && nothing)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: offset %" PRIu64
                            ": cut off: the file ends in the middle of its compressed data",
                            s->raw.file->path, s->raw.at);
    }
    return SGT_OK;
}

int sgt_source_seek(sgt_source *s, uint64_t at, sgt_error *err)
{
    return sgt_raw_seek(&s->raw, at, err);
}
