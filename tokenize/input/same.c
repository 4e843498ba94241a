/* same.c: hash the stream of an input. */
#include "tokenize/input/same.h"

#include <stdlib.h>

#include "tokenize/input/parquet.h"
#include "tokenize/input/source.h"

#define CHUNK ((size_t)128 << 10)

void sgt_stream_hash_begin(sgt_stream_hash *h, uint64_t at, uint64_t block)
{
    h->at = at;
    h->block = block;
    XXH3_64bits_reset_withSeed(h->state, block);
}

void sgt_stream_hash_add(sgt_stream_hash *h, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    while (n) {
        const uint64_t room = SGT_SAME_BLOCK - h->at % SGT_SAME_BLOCK;
        const size_t k = n < room ? n : (size_t)room;
        XXH3_64bits_update(h->state, p, k);
        p += k;
        n -= k;
        if (k == room) sgt_stream_hash_begin(h, h->at + k, XXH3_64bits_digest(h->state));
        else h->at += k;
    }
}

uint64_t sgt_stream_hash_now(const sgt_stream_hash *h) { return XXH3_64bits_digest(h->state); }

static int hash_rows(uint64_t *hash, const sgt_corpus_file *f, const char *field, uint64_t length,
                     const sgt_stop *stop, sgt_error *err)
{
    const sgt_parquet_request r = {.file = f, .field = field, .stop = stop};
    sgt_parquet *p = NULL;
    sgt_unit u = {0};
    uint64_t rows, covered = 0;
    int rc = sgt_unit_new(&u, err);
    if (!rc) rc = sgt_parquet_open(&p, &r, err);
    if (!rc) *hash = sgt_parquet_hash(p, &covered);
    while (!rc && covered < length) {
        rc = sgt_parquet_next(p, &u, &rows, err);
        if (!rc && sgt_stopped(stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
        *hash = sgt_parquet_hash(p, &covered);
        u.used = u.unpacked = 0;
        sgt_parquet_pages_drop(&u);
    }
    sgt_parquet_close(p);
    sgt_unit_free(&u);
    return rc < 0 ? rc : SGT_OK;
}

int sgt_same_hash(uint64_t *hash, const sgt_corpus_file *f, const char *field, uint64_t length,
                  const sgt_stop *stop, sgt_error *err)
{
    if (f->rows) return hash_rows(hash, f, field, length, stop, err);
    sgt_source *s = NULL;
    sgt_stream_hash h = {.state = XXH3_createState()};
    uint8_t *bytes = malloc(CHUNK);
    int end = 0, rc = h.state && bytes ? SGT_OK : sgt_fail_memory(err, f->path);
    if (!rc) rc = sgt_source_open(&s, f, stop, NULL, err);
    if (!rc) sgt_stream_hash_begin(&h, 0, 0);
    while (!rc && !end && h.at < length) {
        size_t n = 0, want = length - h.at < CHUNK ? (size_t)(length - h.at) : CHUNK;
        rc = sgt_source_read(s, bytes, &n, want, &end, err);
        sgt_stream_hash_add(&h, bytes, n);
        if (!rc && sgt_stopped(stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
    }
    if (!rc) *hash = sgt_stream_hash_now(&h);
    sgt_source_close(s);
    XXH3_freeState(h.state);
    free(bytes);
    return rc;
}
