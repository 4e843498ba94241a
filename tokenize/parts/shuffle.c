/* shuffle.c: scatter documents over files by their keys, and sort each bucket when it is read. */
#include "tokenize/parts/shuffle.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "tokenize/parts/buckets.h"
#include "tokenize/parts/table.h"
#include "tokenize/out/journal.h"
#include "tokenize/out/out.h"

#define BUCKET_BYTES ((uint64_t)64 << 20)
#define MEMORY_BYTES ((uint64_t)96 << 20) /* a larger bucket is not loaded */

/* The header of each document in its file. */
typedef struct head {
    uint64_t key, number, tokens;
} head;

/* A document of the loaded bucket. */
typedef struct entry {
    uint64_t key, number, at; /* at: byte of its header in the bucket */
} entry;

typedef sgt_table_bucket bucket;

struct sgt_shuffle {
    sgt_order_request r;
    size_t count;    /* number of buckets */
    bucket *buckets; /* (count): of all ranks together */
    bucket *tables;  /* (ranks, count): of the files of each rank */
    size_t begin;    /* index of the next bucket to begin */
    /* The bucket that was begun last is read as `piles` piles, of which `pile` are done: one, which
     * is the bucket itself, or the smaller buckets that it was copied into. */
    size_t piles, pile;
    bucket *apart; /* (piles): of those; NULL: the bucket itself */
    char *buffer;  /* (room): used for one pile after another, as new memory costs time */
    uint64_t room;
    char *bytes;    /* the loaded pile, in `buffer`; NULL: it is too large, or none is loaded */
    int fd;         /* file of a pile that is too large; -1: none */
    char *path;     /* the last file of the pile */
    entry *entries; /* (documents): of the loaded pile, in order */
    size_t documents, next;
    uint64_t from, tokens; /* last document delivered: first byte of its ids, and their number */
    uint16_t *ids;         /* buffer of SGT_MADE_WINDOW ids */
};

static uint64_t bytes_of(const bucket *b) { return b->documents * sizeof(head) + 2 * b->tokens; }

/* Return which of `count` buckets a key belongs to: its bits after the first `skip`. The buckets,
 * one after another, are then in order. */
static size_t bucket_of(uint64_t key, int skip, size_t count)
{
    return count == 1 ? 0 : (size_t)(key << skip >> (64 - __builtin_ctzll(count)));
}

/* Return the folder of a rank's files, malloc'd; kind "apart": of those that only it reads. */
static char *folder_of(const sgt_order_request *r, const char *kind, uint32_t rank)
{
    char name[96];
    const int n = snprintf(name, sizeof name, SGT_OUT_SORTING "/%s", sgt_split_names[r->split]);
    if (kind) snprintf(name + n, sizeof name - (size_t)n, "/%s-%05u", kind, rank);
    else if (r->share.count > 1)
        snprintf(name + n, sizeof name - (size_t)n, "/%05u-of-%05u", rank, r->share.count);
    return sgt_join(r->work, name);
}

/* Open a new folder of ours for writing `count` buckets. */
static int open_ours(const sgt_shuffle *s, const char *kind, size_t count, sgt_buckets **b,
                     sgt_error *err)
{
    char *folder = folder_of(&s->r, kind, s->r.share.index);
    int rc = folder ? sgt_buckets_open(b, folder, count, err) : sgt_fail_memory(err, s->r.work);
    free(folder);
    return rc;
}

static char *table_path(const sgt_order_request *r, uint32_t rank)
{
    char *folder = folder_of(r, NULL, rank), *path = folder ? sgt_join(folder, "table") : NULL;
    free(folder);
    return path;
}

int sgt_shuffle_exists(const sgt_order_request *r, sgt_error *err)
{
    char *path = table_path(r, 0);
    const int rc = path ? !sgt_file_gone(path) : sgt_fail_memory(err, r->work);
    free(path);
    return rc;
}

int sgt_shuffle_remove(const sgt_order_request *r, sgt_error *err)
{
    char *folder = folder_of(r, NULL, 0);
    const int rc = folder ? sgt_remove_tree(folder, err) : sgt_fail_memory(err, r->work);
    free(folder);
    return rc;
}

static int new_shuffle(sgt_shuffle **out, const sgt_order_request *r, uint64_t tokens,
                       sgt_error *err)
{
    sgt_shuffle *s = calloc(1, sizeof *s);
    if (!s) return sgt_fail_memory(err, r->work);
    s->r = *r;
    s->fd = -1;
    if (!s->r.memory) s->r.memory = MEMORY_BYTES;
    s->count = sgt_share_pieces(&r->share, sgt_buckets_count(2 * tokens, BUCKET_BYTES));
    s->buckets = calloc(s->count, sizeof *s->buckets);
    s->tables = calloc(r->share.count, s->count * sizeof *s->tables);
    s->ids = malloc(SGT_MADE_WINDOW * sizeof *s->ids);
    if (s->buckets && s->tables && s->ids) {
        *out = s;
        return SGT_OK;
    }
    sgt_shuffle_close(s);
    return sgt_fail_memory(err, r->work);
}

/* ---- scattering ---- */

static int put_document(const sgt_shuffle *s, bucket *table, sgt_buckets *b, sgt_order *input,
                        const head *h, sgt_error *err)
{
    size_t i = bucket_of(h->key, 0, s->count);
    int rc = sgt_buckets_put(b, i, h, sizeof *h, err);
    for (uint64_t at = 0; at < h->tokens && !rc;) {
        const uint16_t *ids;
        size_t n = h->tokens - at < SGT_MADE_WINDOW ? (size_t)(h->tokens - at) : SGT_MADE_WINDOW;
        if ((rc = sgt_order_ids(input, at, n, &ids, err)) == 0)
            rc = sgt_buckets_put(b, i, ids, 2 * n, err);
        at += n;
    }
    table[i].documents++;
    table[i].tokens += h->tokens;
    return rc;
}

static int scatter(const sgt_shuffle *s, bucket *table, sgt_order *input, sgt_error *err)
{
    const sgt_order_request *r = &s->r;
    sgt_buckets *b;
    head h;
    uint64_t tokens = 0, told = 0;
    int rc = open_ours(s, NULL, s->count, &b, err);
    if (rc < 0) return rc;
    memset(table, 0, s->count * sizeof *table);
    while (!rc && (rc = sgt_order_next(input, &h.tokens, err)) == 0) {
        if (sgt_stopped(r->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
        h.number = sgt_order_number(input);
        h.key = sgt_shuffle_key(h.number, r->seed);
        if (!rc) rc = put_document(s, table, b, input, &h, err);
        sgt_advance_to(&r->advance, r->split, tokens += h.tokens, &told);
    }
    if (rc == 1) return sgt_buckets_close(b, 1, err);
    sgt_buckets_abandon(b);
    return rc;
}

int sgt_shuffle_scatter(const sgt_order_request *r, sgt_order *input, sgt_error *err)
{
    sgt_shuffle *s;
    int rc = new_shuffle(&s, r, sgt_order_tokens(input), err);
    if (rc < 0) return rc;
    bucket *table = s->tables + r->share.index * s->count;
    char *path = table_path(&s->r, r->share.index);
    if (!path) rc = sgt_fail_memory(err, r->work);
    if (!rc && !r->force) rc = sgt_table_read(path, table, s->count, err);
    if (!rc && (rc = scatter(s, table, input, err)) == 0)
        rc = sgt_table_write(path, table, s->count, err);
    free(path);
    sgt_shuffle_close(s);
    return rc < 0 ? rc : SGT_OK;
}

/* ---- reading ---- */

static int read_tables(sgt_shuffle *s, sgt_error *err)
{
    int rc = 1;
    for (uint32_t i = 0; i < s->r.share.count && rc == 1; i++) {
        bucket *table = s->tables + i * s->count;
        char *path = table_path(&s->r, i);
        rc = path ? sgt_table_read(path, table, s->count, err) : sgt_fail_memory(err, s->r.work);
        if (!rc)
            rc = sgt_fail(err, SGT_EFORMAT, "%s: missing or damaged (--force starts over)", path);
        free(path);
        for (size_t k = 0; k < s->count; k++) {
            s->buckets[k].documents += table[k].documents;
            s->buckets[k].tokens += table[k].tokens;
        }
    }
    return rc < 0 ? rc : SGT_OK;
}

int sgt_shuffle_open(sgt_shuffle **out, const sgt_order_request *r, uint64_t tokens, sgt_error *err)
{
    sgt_shuffle *s;
    int rc = new_shuffle(&s, r, tokens, err);
    if (rc < 0) return rc;
    if ((rc = read_tables(s, err)) < 0) sgt_shuffle_close(s);
    else *out = s;
    return rc;
}

static void unload(sgt_shuffle *s)
{
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
    free(s->path);
    free(s->entries);
    s->path = s->bytes = NULL;
    s->entries = NULL;
    s->documents = s->next = 0;
}

/* Forget the bucket that was begun, and remove the files that it was copied into. */
static void end_bucket(sgt_shuffle *s)
{
    char *folder = s->apart ? folder_of(&s->r, "apart", s->r.share.index) : NULL;
    unload(s);
    if (folder) (void)sgt_remove_tree(folder, NULL);
    free(folder);
    free(s->apart);
    s->apart = NULL;
    s->piles = s->pile = 0;
}

void sgt_shuffle_close(sgt_shuffle *s)
{
    if (!s) return;
    end_bucket(s);
    free(s->buffer);
    free(s->buckets);
    free(s->tables);
    free(s->ids);
    free(s);
}

/* Open a bucket's file in a folder, which must be as long as `want` says. */
static int open_file(const char *folder, size_t index, const bucket *want, char **path,
                     sgt_error *err)
{
    uint64_t size;
    const int fd = sgt_buckets_read(folder, index, path, &size, err);
    if (fd < 0) return fd;
    posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
    if (size == bytes_of(want)) return fd;
    close(fd);
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: %" PRIu64 " bytes, %" PRIu64 " were written (--force starts over)", *path,
                    size, bytes_of(want));
}

/* ---- buckets that are too large: copied into smaller ones ---- */

/* Copy a document, of which the header is at byte *at, and move *at to its end. */
static int copy_document(sgt_shuffle *s, sgt_buckets *b, int fd, const char *path, uint64_t *at,
                         uint64_t size, sgt_error *err)
{
    head h = {0};
    int rc = size - *at < sizeof h ? SGT_OK : sgt_pread_all(fd, &h, sizeof h, *at, path, err);
    if (rc < 0) return rc;
    if (!h.tokens || h.tokens > (size - *at - sizeof h) / 2)
        return sgt_fail(err, SGT_EFORMAT, "%s: offset %" PRIu64 ": damaged (--force starts over)",
                        path, *at);
    const size_t i = bucket_of(h.key, __builtin_ctzll(s->count), s->piles);
    rc = sgt_buckets_put(b, i, &h, sizeof h, err);
    *at += sizeof h;
    for (uint64_t left = h.tokens; left && !rc;) {
        const size_t n = left < SGT_MADE_WINDOW ? (size_t)left : SGT_MADE_WINDOW;
        if ((rc = sgt_pread_all(fd, s->ids, 2 * n, *at, path, err)) == 0)
            rc = sgt_buckets_put(b, i, s->ids, 2 * n, err);
        *at += 2 * n;
        left -= n;
    }
    s->apart[i].documents++;
    s->apart[i].tokens += h.tokens;
    return rc;
}

static int copy_file(sgt_shuffle *s, sgt_buckets *b, size_t index, uint32_t rank, sgt_error *err)
{
    const bucket *want = &s->tables[rank * s->count + index];
    char *path = NULL, *folder = folder_of(&s->r, NULL, rank);
    const int fd =
        folder ? open_file(folder, index, want, &path, err) : sgt_fail_memory(err, s->r.work);
    int rc = fd < 0 ? fd : SGT_OK;
    for (uint64_t at = 0; !rc && at < bytes_of(want);) {
        if (sgt_stopped(s->r.stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
        else rc = copy_document(s, b, fd, path, &at, bytes_of(want), err);
    }
    if (fd >= 0) close(fd);
    free(path);
    free(folder);
    return rc;
}

/* Copy a bucket into `piles` smaller ones. */
static int set_apart(sgt_shuffle *s, size_t index, size_t piles, sgt_error *err)
{
    sgt_buckets *b;
    int rc = open_ours(s, "apart", piles, &b, err);
    if (rc < 0) return rc;
    s->piles = piles;
    s->pile = 0;
    if (!(s->apart = calloc(piles, sizeof *s->apart))) rc = sgt_fail_memory(err, s->r.work);
    for (uint32_t i = 0; i < s->r.share.count && !rc; i++) rc = copy_file(s, b, index, i, err);
    if (!rc) return sgt_buckets_close(b, 0, err);
    sgt_buckets_abandon(b);
    return rc;
}

static int begin_bucket(sgt_shuffle *s, sgt_error *err)
{
    const size_t index = s->begin++;
    const uint64_t size = bytes_of(&s->buckets[index]);
    const size_t piles = sgt_buckets_count(size, s->r.memory / 3 * 2);
    end_bucket(s);
    /* a pile that is too large for memory must be one file */
    if (size > s->r.memory && (piles > 1 || s->r.share.count > 1))
        return set_apart(s, index, piles, err);
    s->piles = 1;
    return SGT_OK;
}

/* ---- the order ---- */

static int in_order(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Read n bytes of the loaded pile, from byte `at` on, into p. */
static int fetch(const sgt_shuffle *s, void *p, size_t n, uint64_t at, sgt_error *err)
{
    if (!s->bytes) return sgt_pread_all(s->fd, p, n, at, s->path, err);
    memcpy(p, s->bytes + at, n);
    return SGT_OK;
}

/* Add the documents of a file, which begins at byte `begin` of the pile, to the entries. */
static int list_documents(sgt_shuffle *s, uint64_t begin, const bucket *b, sgt_error *err)
{
    const uint64_t end = begin + bytes_of(b);
    uint64_t at = begin, tokens = 0;
    int rc = SGT_OK;
    for (uint64_t i = 0; i < b->documents && !rc; i++) {
        head h = {0};
        if (end - at < sizeof h) break;
        rc = fetch(s, &h, sizeof h, at, err);
        s->entries[s->documents] = (entry){h.key, h.number, at};
        if (!rc && (!h.tokens || h.tokens > (end - at - sizeof h) / 2)) break;
        s->documents++;
        tokens += h.tokens;
        at += sizeof h + 2 * h.tokens;
    }
    if (!rc && (at != end || tokens != b->tokens))
        rc = sgt_fail(err, SGT_EFORMAT, "%s: offset %" PRIu64 ": damaged (--force starts over)",
                      s->path, at - begin);
    return rc;
}

/* Load one file of the pile, which begins at byte *at of the pile. Move *at to its end. */
static int load_file(sgt_shuffle *s, const char *folder, size_t index, const bucket *b,
                     uint64_t *at, sgt_error *err)
{
    free(s->path);
    s->path = NULL;
    int rc = SGT_OK, fd = open_file(folder, index, b, &s->path, err);
    if (fd < 0) return fd;
    if (s->bytes) rc = sgt_pread_all(fd, s->bytes + *at, (size_t)bytes_of(b), 0, s->path, err);
    if (s->bytes) close(fd);
    else s->fd = fd;
    if (!rc) rc = list_documents(s, *at, b, err);
    *at += bytes_of(b);
    return rc;
}

/* Make room for `size` bytes of a pile. */
static int make_room(sgt_shuffle *s, uint64_t size, sgt_error *err)
{
    if (size > s->room) {
        free(s->buffer);
        s->room = 0;
        s->buffer = malloc(size);
        if (!s->buffer) return sgt_fail_memory(err, s->r.work);
        s->room = size;
    }
    s->bytes = s->buffer;
    return SGT_OK;
}

/* Load pile s->pile: its bytes, unless it is too large for memory, and its headers, sorted. */
static int load(sgt_shuffle *s, sgt_error *err)
{
    const size_t index = s->apart ? s->pile : s->begin - 1;
    const bucket *all = s->apart ? &s->apart[index] : &s->buckets[index];
    uint64_t at = 0;
    int rc = SGT_OK;
    unload(s);
    s->pile++;
    if (!all->documents) return SGT_OK;
    s->entries = calloc(all->documents, sizeof *s->entries);
    if (!s->entries) return sgt_fail_memory(err, s->r.work);
    if (bytes_of(all) <= s->r.memory) rc = make_room(s, bytes_of(all), err);
    for (uint32_t i = 0; i < (s->apart ? 1 : s->r.share.count) && !rc; i++) {
        char *folder =
            s->apart ? folder_of(&s->r, "apart", s->r.share.index) : folder_of(&s->r, NULL, i);
        const bucket *b = s->apart ? all : &s->tables[i * s->count + index];
        rc = folder ? load_file(s, folder, index, b, &at, err) : sgt_fail_memory(err, s->r.work);
        free(folder);
    }
    if (!rc) qsort(s->entries, s->documents, sizeof *s->entries, in_order);
    return rc;
}

int sgt_shuffle_next(sgt_shuffle *s, uint64_t *tokens, sgt_error *err)
{
    head h;
    int rc;
    while (s->next == s->documents) {
        if (s->pile == s->piles) {
            if (s->begin == s->count) return 1;
            if ((rc = begin_bucket(s, err)) < 0) return rc;
        }
        if ((rc = load(s, err)) < 0) return rc;
    }
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
    for (s->begin = 0; s->begin + 1 < s->count && position + s->buckets[s->begin].tokens <= at;
         s->begin++)
        position += s->buckets[s->begin].tokens;
    if ((rc = begin_bucket(s, err)) < 0) return rc;
    for (; s->apart && s->pile + 1 < s->piles && position + s->apart[s->pile].tokens <= at;
         s->pile++)
        position += s->apart[s->pile].tokens;
    while ((rc = sgt_shuffle_next(s, tokens, err)) == 0 && position + *tokens <= at)
        position += *tokens;
    *skip = at - position;
    return rc == 1 ? sgt_fail(err, SGT_EFORMAT,
                              "%s/" SGT_OUT_SORTING "/%s: ends too early "
                              "(--force starts over)",
                              s->r.work, sgt_split_names[s->r.split])
                   : rc;
}

int sgt_shuffle_ids(sgt_shuffle *s, uint64_t at, size_t n, const uint16_t **ids, sgt_error *err)
{
    *ids = s->bytes ? (const uint16_t *)(const void *)(s->bytes + s->from + 2 * at) : s->ids;
    return s->bytes ? SGT_OK : sgt_pread_all(s->fd, s->ids, 2 * n, s->from + 2 * at, s->path, err);
}
