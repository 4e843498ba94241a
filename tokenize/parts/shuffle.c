/* shuffle.c: scatter documents over files by their keys, and sort each file when it is read. */
#include "tokenize/parts/shuffle.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "tokenize/parts/buckets.h"
#include "tokenize/out/journal.h"
#include "tokenize/out/out.h"

#define BUCKET_BYTES ((uint64_t)64 << 20)
/* a larger file is not loaded; its documents are read one by one */
#define MEMORY_BYTES ((uint64_t)96 << 20)
#define MAGIC UINT64_C(0x31656c6666756873) /* "shuffle1" */

/* The header of each document in its file. */
typedef struct head {
    uint64_t key, number, tokens;
} head;

/* A document of the current file. */
typedef struct entry {
    uint64_t key, number, at; /* at: byte of its header in the file */
} entry;

typedef struct bucket {
    uint64_t documents, tokens;
} bucket;

struct sgt_shuffle {
    char *folder;
    const sgt_stop *stop;
    uint64_t memory;
    size_t count;
    bucket *buckets;
    size_t bucket; /* index of the current bucket */
    int fd;        /* descriptor of its file; -1: the bucket is not loaded */
    char *path;
    char *bytes; /* the whole file; NULL: it is too large */
    entry *entries;
    size_t next;           /* index of the next entry */
    uint64_t from, tokens; /* last document delivered: first byte of its ids, and their number */
    uint16_t *ids;         /* buffer of SGT_MADE_WINDOW ids */
};

/* ---- scattering ---- */

static int put_document(sgt_shuffle *s, sgt_buckets *b, sgt_order *input, const head *h,
                        sgt_error *err)
{
    /* choose the file by the leading bits of the key, so that the files, one after another, are in
     * order */
    size_t i = s->count == 1 ? 0 : (size_t)(h->key >> (64 - __builtin_ctzll(s->count)));
    int rc = sgt_buckets_put(b, i, h, sizeof *h, err);
    for (uint64_t at = 0; at < h->tokens && !rc;) {
        const uint16_t *ids;
        size_t n = h->tokens - at < SGT_MADE_WINDOW ? (size_t)(h->tokens - at) : SGT_MADE_WINDOW;
        if ((rc = sgt_order_ids(input, at, n, &ids, err)) == 0)
            rc = sgt_buckets_put(b, i, ids, 2 * n, err);
        at += n;
    }
    s->buckets[i].documents++;
    s->buckets[i].tokens += h->tokens;
    return rc;
}

static int scatter(sgt_shuffle *s, const sgt_order_request *r, sgt_order *input, sgt_error *err)
{
    sgt_buckets *b;
    head h;
    uint64_t tokens = 0, told = 0;
    int rc = sgt_buckets_open(&b, s->folder, s->count, err);
    if (rc < 0) return rc;
    while (!rc && (rc = sgt_order_next(input, &h.tokens, err)) == 0) {
        if (sgt_stopped(r->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
        h.number = sgt_order_number(input);
        h.key = XXH3_64bits_withSeed(&h.number, sizeof h.number, r->seed);
        if (!rc) rc = put_document(s, b, input, &h, err);
        sgt_advance_to(&r->advance, r->split, tokens += h.tokens, &told);
    }
    if (rc == 1) return sgt_buckets_close(b, err);
    sgt_buckets_abandon(b);
    return rc;
}

/* ---- the table: MAGIC, the buckets, and a checksum of both ---- */

static int write_table(const sgt_shuffle *s, const char *path, sgt_error *err)
{
    size_t n = 8 + s->count * sizeof(bucket);
    uint64_t *words = malloc(n + 8);
    if (!words) return sgt_fail_memory(err, path);
    words[0] = MAGIC;
    memcpy(words + 1, s->buckets, n - 8);
    words[n / 8] = XXH3_64bits(words, n);
    int rc = sgt_file_put(path, words, n + 8, err);
    free(words);
    return rc;
}

/* Read the table. Return 1 if it is valid and has as many buckets, 0 if not, or a negative
 * SGT_E*. */
static int read_table(sgt_shuffle *s, const char *path, sgt_error *err)
{
    char *text = NULL;
    size_t n = 8 + s->count * sizeof(bucket), got;
    uint64_t sum;
    if (access(path, F_OK) < 0) return 0;
    int rc = sgt_file_get(&text, &got, path, n + 8, err);
    if (rc < 0) return rc;
    rc = got == n + 8 && (memcpy(&sum, text + n, 8), sum == XXH3_64bits(text, n)) &&
         *(uint64_t *)(void *)text == MAGIC;
    if (rc) memcpy(s->buckets, text + 8, n - 8);
    free(text);
    return rc;
}

int sgt_shuffle_open(sgt_shuffle **out, const sgt_order_request *r, sgt_order *input,
                     sgt_error *err)
{
    char *table = NULL, name[64];
    sgt_shuffle *s = calloc(1, sizeof *s);
    if (!s) return sgt_fail_memory(err, r->work);
    s->fd = -1;
    s->stop = r->stop;
    s->memory = r->memory ? r->memory : MEMORY_BYTES;
    s->count = sgt_buckets_count(2 * sgt_order_tokens(input), BUCKET_BYTES);
    s->buckets = calloc(s->count, sizeof *s->buckets);
    s->ids = malloc(SGT_MADE_WINDOW * sizeof *s->ids);
    snprintf(name, sizeof name, SGT_OUT_SORTING "/%s", sgt_split_names[r->split]);
    s->folder = sgt_join(r->work, name);
    if (s->folder) table = sgt_join(s->folder, "table");
    int rc = s->buckets && s->ids && table ? SGT_OK : sgt_fail_memory(err, r->work);
    if (!rc && !r->force) rc = read_table(s, table, err);
    if (!rc && (rc = scatter(s, r, input, err)) == 0) rc = write_table(s, table, err);
    free(table);
    if (rc < 0) sgt_shuffle_close(s);
    else *out = s;
    return rc < 0 ? rc : SGT_OK;
}

static void unload(sgt_shuffle *s)
{
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
    free(s->path);
    free(s->entries);
    free(s->bytes);
    s->path = s->bytes = NULL;
    s->entries = NULL;
    s->next = 0;
}

void sgt_shuffle_close(sgt_shuffle *s)
{
    if (!s) return;
    unload(s);
    free(s->folder);
    free(s->buckets);
    free(s->ids);
    free(s);
}

/* ---- the order ---- */

static int in_order(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Read n bytes of the current bucket's file, from byte `at` on, into p. */
static int fetch(const sgt_shuffle *s, void *p, size_t n, uint64_t at, sgt_error *err)
{
    if (!s->bytes) return sgt_pread_all(s->fd, p, n, at, s->path, err);
    memcpy(p, s->bytes + at, n);
    return SGT_OK;
}

/* Load the current bucket: the whole file, unless it is too large for memory, and its headers,
 * sorted. */
static int load(sgt_shuffle *s, sgt_error *err)
{
    const bucket *b = &s->buckets[s->bucket];
    uint64_t size, at = 0, tokens = 0;
    int rc = SGT_OK;
    unload(s);
    if ((s->fd = sgt_buckets_read(s->folder, s->bucket, &s->path, &size, err)) < 0) return s->fd;
    if (size != b->documents * sizeof(head) + 2 * b->tokens)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: %" PRIu64 " bytes, %" PRIu64 " were written (--force starts over)",
                        s->path, size, b->documents * sizeof(head) + 2 * b->tokens);
    posix_fadvise(s->fd, 0, 0, POSIX_FADV_WILLNEED);
    if (!(s->entries = calloc(b->documents + 1, sizeof *s->entries)))
        return sgt_fail_memory(err, s->path);
    if (size <= s->memory && !(s->bytes = malloc(size + 1))) return sgt_fail_memory(err, s->path);
    if (s->bytes) rc = sgt_pread_all(s->fd, s->bytes, (size_t)size, 0, s->path, err);
    for (uint64_t i = 0; i < b->documents && !rc; i++) {
        head h = {0};
        if (size - at < sizeof h) break;
        rc = fetch(s, &h, sizeof h, at, err);
        s->entries[i] = (entry){h.key, h.number, at};
        if (!rc && (!h.tokens || h.tokens > (size - at - sizeof h) / 2)) break;
        tokens += h.tokens;
        at += sizeof h + 2 * h.tokens;
    }
    if (!rc && (at != size || tokens != b->tokens))
        rc = sgt_fail(err, SGT_EFORMAT, "%s: offset %" PRIu64 ": damaged (--force starts over)",
                      s->path, at);
    if (!rc) qsort(s->entries, b->documents, sizeof *s->entries, in_order);
    return rc;
}

int sgt_shuffle_next(sgt_shuffle *s, uint64_t *tokens, sgt_error *err)
{
    head h;
    int rc;
    while (s->bucket < s->count && s->next == s->buckets[s->bucket].documents) {
        unload(s);
        s->bucket++;
    }
    if (s->bucket == s->count) return 1;
    if (s->fd < 0 && (rc = load(s, err)) < 0) return rc;
    const entry *e = &s->entries[s->next++];
    if ((rc = fetch(s, &h, sizeof h, e->at, err)) < 0) return rc;
    s->from = e->at + sizeof h;
    *tokens = s->tokens = h.tokens;
    return SGT_OK;
}

int sgt_shuffle_seek(sgt_shuffle *s, uint64_t at, uint64_t *tokens, uint64_t *skip, sgt_error *err)
{
    int rc;
    uint64_t position = 0;
    unload(s);
    for (s->bucket = 0; s->bucket + 1 < s->count && position + s->buckets[s->bucket].tokens <= at;
         s->bucket++)
        position += s->buckets[s->bucket].tokens;
    while ((rc = sgt_shuffle_next(s, tokens, err)) == 0 && position + *tokens <= at)
        position += *tokens;
    *skip = at - position;
    return rc == 1
               ? sgt_fail(err, SGT_EFORMAT, "%s: ends too early (--force starts over)", s->folder)
               : rc;
}

int sgt_shuffle_ids(sgt_shuffle *s, uint64_t at, size_t n, const uint16_t **ids, sgt_error *err)
{
    *ids = s->bytes ? (const uint16_t *)(const void *)(s->bytes + s->from + 2 * at) : s->ids;
    return s->bytes ? SGT_OK : sgt_pread_all(s->fd, s->ids, 2 * n, s->from + 2 * at, s->path, err);
}
