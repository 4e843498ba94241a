/* order.c: walk the documents of the parts one after the other, or in a shuffled order: read from the
 * parts (gathered), or from files into which they were scattered by their keys (shuffled). */
#include "tokenize/parts/order.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/base/memory.h"
#include "loader/shards/shard.h"
#include "tokenize/out/out.h"
#include "tokenize/parts/buckets.h"

#define BUCKET_BYTES ((uint64_t)64 << 20)
#define MEMORY_BYTES ((uint64_t)512 << 20)       /* of a bucket that is loaded in any case */
#define LIST_BYTES ((uint64_t)96 << 20)          /* limit of gathered's lists, in all ranks */
#define TABLE_MAGIC UINT64_C(0x31656c6666756873) /* "shuffle1" */

/* Return the key of a document, by which documents are shuffled. */
static uint64_t key_of(uint64_t number, uint64_t seed)
{
    return XXH3_64bits_withSeed(&number, sizeof number, seed);
}

/* ---- the order of the input ---- */

struct sgt_order {
    sgt_order_request r;
    uint64_t *before;       /* tokens of the parts before part i; of all parts for i = count */
    uint64_t *numbers;      /* documents of the parts before part i, also those left out */
    size_t part, end;       /* index of the current part; where the order ends */
    uint64_t document;      /* index in that part of the next document */
    uint64_t start, tokens; /* extent in the part of the last document delivered */
    /* both NULL: the documents come in the order of the input */
    struct shuffled *shuffled;
    struct gathered *gathered;
};

static void go_to_part(sgt_order *o, size_t part)
{
    if (o->part < o->r.count) sgt_made_rest(o->r.parts[o->part]);
    o->part = part;
    o->document = o->start = o->tokens = 0;
}

static uint64_t documents_here(const sgt_order *o)
{
    return sgt_made_documents(o->r.parts[o->part], o->r.split);
}

/* Return 1 if the document just reached is left out, 0 if not, or a negative SGT_E*. */
static int left_out(const sgt_order *o, sgt_error *err)
{
    if (!o->r.dedup) return 0;
    return sgt_dedup_is_duplicate(o->r.dedup, o->r.split, sgt_order_number(o), err);
}

static int next_of_part(sgt_order *o, sgt_error *err)
{
    int rc = 1;
    while (rc == 1 && o->document < documents_here(o)) {
        rc = sgt_made_document(o->r.parts[o->part], o->r.split, o->document, &o->start, &o->tokens,
                               err);
        o->document++;
        if (!rc) rc = left_out(o, err);
    }
    return rc;
}

/* Count the tokens of each part that are in this order. */
static void add_up(sgt_order *o)
{
    for (size_t i = 0; i < o->r.count; i++) {
        const sgt_made *s = o->r.parts[i];
        const uint64_t less = o->r.dedup ? sgt_dedup_left_out(o->r.dedup, i, o->r.split) : 0;
        o->numbers[i + 1] = o->numbers[i] + sgt_made_documents(s, o->r.split);
        o->before[i + 1] = o->before[i] + sgt_made_tokens(s, o->r.split) - less;
    }
}

/* Open the order of the input. */
static int open_input(sgt_order **out, const sgt_order_request *r, sgt_error *err)
{
    sgt_order *o = calloc(1, sizeof *o);
    if (!o) return sgt_fail_memory(err, "the order of documents");
    o->r = *r;
    o->r.share = sgt_share_or_all(r->share);
    o->end = r->count;
    o->before = calloc(r->count + 1, sizeof *o->before);
    o->numbers = calloc(r->count + 1, sizeof *o->numbers);
    if (!o->before || !o->numbers) {
        sgt_order_close(o);
        return sgt_fail_memory(err, "the order of documents");
    }
    add_up(o);
    *out = o;
    return SGT_OK;
}

/* ---- shuffled, and read from the parts ---- */

/* A shard of a part. */
typedef struct piece {
    uint64_t first; /* tokens of the split in the shards before it */
    char *path;
    int fd;
} piece;

typedef struct gathered {
    sgt_order_request r;
    piece *pieces; /* (count + 1): in the order of the input; the last one is only their end */
    size_t count;
    /* (all documents + 1): index of the first token of each in the order of the input, among the
     * tokens of all parts; duplicates included */
    uint64_t *starts;
    /* (documents): of those delivered, in their order: the upper half of a document's key, and its
     * number (LIST_BYTES allows fewer than 2^32 documents) */
    uint64_t *numbers;
    uint64_t documents, next;
    uint16_t *ids; /* buffer of SGT_MADE_WINDOW ids */
} gathered;

static int is_of_split(const sgt_order_request *r, const sgt_manifest_shard *shard)
{
    return !strcmp(shard->split, sgt_split_names[r->split]);
}

static size_t count_shards(const sgt_order_request *r)
{
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++) {
        const sgt_manifest *m = sgt_made_manifest(r->parts[i]);
        for (size_t k = 0; k < m->count; k++) count += (size_t)is_of_split(r, &m->shards[k]);
    }
    return count;
}

static uint64_t count_documents(const sgt_order_request *r)
{
    uint64_t count = 0;
    for (size_t i = 0; i < r->count; i++) count += sgt_made_documents(r->parts[i], r->split);
    return count;
}

/* Return whether the ranks of r->share read the documents from the parts. All of them get the same
 * answer. */
static int suits_gathering(const sgt_order_request *r)
{
    const sgt_share *s = &r->share;
    const uint64_t lists = (uint64_t)24 * s->ranks * count_documents(r);
    uint64_t bytes = lists, most = s->memory;
    if (r->memory || lists > LIST_BYTES || count_shards(r) > SGT_ORDER_SHARDS) return 0;
    for (size_t i = 0; i < r->count; i++) bytes += 2 * sgt_made_tokens(r->parts[i], r->split);
    if (s->count == 1) {
        sgt_memory m;
        sgt_memory_look(&m, NULL);
        most = m.available / 2;
    }
    return bytes <= most;
}

static int open_pieces(gathered *g, sgt_error *err)
{
    for (size_t i = 0; i < g->r.count; i++) {
        const sgt_manifest *m = sgt_made_manifest(g->r.parts[i]);
        for (size_t k = 0; k < m->count; k++) {
            if (!is_of_split(&g->r, &m->shards[k])) continue;
            piece *p = &g->pieces[g->count];
            p->path = sgt_join(sgt_made_path(g->r.parts[i]), m->shards[k].file);
            if (!p->path) return sgt_fail_memory(err, g->r.work);
            p->fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
            g->count++;
            if (p->fd < 0) return sgt_fail_errno(err, "%s", p->path);
            /* a part that is in memory no more, as after a restart, is read at once */
            posix_fadvise(p->fd, 0, 0, POSIX_FADV_WILLNEED);
            g->pieces[g->count].first = p->first + m->shards[k].tokens;
        }
    }
    return SGT_OK;
}

static uint64_t pack(uint64_t number, uint64_t seed)
{
    return (key_of(number, seed) & ~(uint64_t)UINT32_MAX) | number;
}

/* Add the documents of a part, of which the first has number *number and begins at token *at of the
 * split. Set both to those after the part. */
static int list_part(gathered *g, sgt_made *part, uint64_t *number, uint64_t *at, sgt_error *err)
{
    const uint64_t count = sgt_made_documents(part, g->r.split);
    int rc = SGT_OK;
    for (uint64_t i = 0; i < count && rc >= 0; i++) {
        uint64_t start, tokens = 0;
        rc = sgt_made_document(part, g->r.split, i, &start, &tokens, err);
        if (!rc && g->r.dedup) rc = sgt_dedup_is_duplicate(g->r.dedup, g->r.split, *number, err);
        if (!rc && sgt_stopped(g->r.stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
        if (!rc) g->numbers[g->documents++] = pack(*number, g->r.seed);
        g->starts[++*number] = *at += tokens;
    }
    sgt_made_rest(part);
    return rc < 0 ? rc : SGT_OK;
}

/* Order packed documents by (key, number). */
static int by_key(const void *a, const void *b, void *seed)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    if ((x ^ y) >> 32) return x < y ? -1 : 1;
    const uint64_t p = key_of((uint32_t)x, *(uint64_t *)seed);
    const uint64_t q = key_of((uint32_t)y, *(uint64_t *)seed);
    if (p != q) return p < q ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void close_gathered(gathered *g)
{
    if (!g) return;
    for (size_t i = 0; g->pieces && i < g->count; i++) {
        if (g->pieces[i].fd >= 0) close(g->pieces[i].fd);
        free(g->pieces[i].path);
    }
    free(g->pieces);
    free(g->starts);
    free(g->numbers);
    free(g->ids);
    free(g);
}

/* List the documents and sort them. */
static int open_gathered(gathered **out, const sgt_order_request *r, sgt_error *err)
{
    const uint64_t documents = count_documents(r);
    gathered *g = calloc(1, sizeof *g);
    if (!g) return sgt_fail_memory(err, r->work);
    g->r = *r;
    g->pieces = calloc(count_shards(r) + 1, sizeof *g->pieces);
    g->starts = calloc(documents + 1, sizeof *g->starts);
    g->numbers = calloc(documents + 1, sizeof *g->numbers);
    g->ids = malloc(SGT_MADE_WINDOW * sizeof *g->ids);
    int rc = g->pieces && g->starts && g->numbers && g->ids ? open_pieces(g, err)
                                                            : sgt_fail_memory(err, r->work);
    uint64_t number = 0, at = 0;
    for (size_t i = 0; i < r->count && !rc; i++) rc = list_part(g, r->parts[i], &number, &at, err);
    if (rc < 0) {
        close_gathered(g);
        return rc;
    }
    qsort_r(g->numbers, g->documents, sizeof *g->numbers, by_key, &g->r.seed);
    *out = g;
    return SGT_OK;
}

static int next_gathered(gathered *g, uint64_t *tokens)
{
    if (g->next == g->documents) return 1;
    const uint64_t number = (uint32_t)g->numbers[g->next++];
    *tokens = g->starts[number + 1] - g->starts[number];
    return SGT_OK;
}

/* Return the piece that has token `at` of the split. */
static const piece *find_piece(const gathered *g, uint64_t at)
{
    size_t low = 0, high = g->count;
    while (low + 1 < high) {
        const size_t middle = low + (high - low) / 2;
        if (g->pieces[middle].first <= at) low = middle;
        else high = middle;
    }
    return &g->pieces[low];
}

static int read_gathered(gathered *g, uint64_t at, size_t n, const uint16_t **ids, sgt_error *err)
{
    uint64_t from = g->starts[(uint32_t)g->numbers[g->next - 1]] + at;
    int rc = SGT_OK;
    *ids = g->ids;
    for (uint16_t *to = g->ids; n && !rc;) {
        const piece *p = find_piece(g, from);
        const size_t k = n < p[1].first - from ? n : (size_t)(p[1].first - from);
        rc =
            sgt_pread_all(p->fd, to, 2 * k, SGT_SHARD_HEADER + 2 * (from - p->first), p->path, err);
        to += k;
        from += k;
        n -= k;
    }
    return rc;
}

/* ---- shuffled through files ---- */

/* What a bucket holds; the numbers in a table. */
typedef struct bucket {
    uint64_t documents, tokens;
} bucket;

/* The header of each document in its file. */
typedef struct head {
    uint64_t key, number, tokens;
} head;

/* A document of the current bucket. */
typedef struct entry {
    uint64_t key, number, at; /* at: byte of its header in the bucket */
} entry;

/* A rank's file of the current bucket. */
typedef struct bucket_file {
    int fd; /* -1: not open */
    char *path;
    uint64_t begin; /* byte of the bucket at which the file begins */
} bucket_file;

typedef struct shuffled {
    sgt_order_request r;
    size_t count;    /* number of buckets */
    bucket *buckets; /* (count): of all ranks together */
    bucket *tables;  /* (ranks, count): of the files of each rank */
    size_t begin;    /* index of the next bucket to begin */
    char *buffer;    /* (room): used for one bucket after another, as new memory costs time */
    uint64_t room;
    char *bytes; /* the current bucket, in `buffer`; NULL: it is too large, and read from `files` */
    bucket_file *files; /* (ranks): open while the current bucket is read from them */
    entry *entries;     /* (documents): of the current bucket, in order */
    size_t documents, next;
    uint64_t from, tokens; /* last document delivered: first byte of its ids, and their number */
    uint16_t *ids;         /* buffer of SGT_MADE_WINDOW ids */
} shuffled;

static uint64_t bytes_of(const bucket *b) { return b->documents * sizeof(head) + 2 * b->tokens; }

/* Return which of `count` buckets a key belongs to: its leading bits. The buckets, one after another,
 * are then in order. */
static size_t bucket_of(uint64_t key, size_t count)
{
    return count == 1 ? 0 : (size_t)(key >> (64 - __builtin_ctzll(count)));
}

/* Return the folder of a rank's files, malloc'd. */
static char *folder_of(const sgt_order_request *r, uint32_t rank)
{
    char name[96];
    const int n = snprintf(name, sizeof name, SGT_OUT_SORTING "/%s", sgt_split_names[r->split]);
    if (r->share.count > 1)
        snprintf(name + n, sizeof name - (size_t)n, "/%05u-of-%05u", rank, r->share.count);
    return sgt_join(r->work, name);
}

static char *table_path(const sgt_order_request *r, uint32_t rank)
{
    char *folder = folder_of(r, rank), *path = folder ? sgt_join(folder, "table") : NULL;
    free(folder);
    return path;
}

/* Return 1 if files of all documents are there, which a rank that was alone wrote; 0 if not, or a
 * negative SGT_E*. */
static int buckets_exist(const sgt_order_request *r, sgt_error *err)
{
    char *path = table_path(r, 0);
    const int rc = path ? !sgt_file_gone(path) : sgt_fail_memory(err, r->work);
    free(path);
    return rc;
}

static void close_bucket(shuffled *s)
{
    for (uint32_t i = 0; s->files && i < s->r.share.count; i++) {
        if (s->files[i].path && s->files[i].fd >= 0) close(s->files[i].fd);
        free(s->files[i].path);
        s->files[i] = (bucket_file){.fd = -1};
    }
    free(s->entries);
    s->bytes = NULL;
    s->entries = NULL;
    s->documents = s->next = 0;
}

static void close_shuffled(shuffled *s)
{
    if (!s) return;
    close_bucket(s);
    free(s->files);
    free(s->buffer);
    free(s->buckets);
    free(s->tables);
    free(s->ids);
    free(s);
}

static int new_shuffled(shuffled **out, const sgt_order_request *r, uint64_t tokens, sgt_error *err)
{
    shuffled *s = calloc(1, sizeof *s);
    if (!s) return sgt_fail_memory(err, r->work);
    s->r = *r;
    s->count = sgt_share_pieces(&r->share, sgt_buckets_count(2 * tokens, BUCKET_BYTES));
    s->buckets = calloc(s->count, sizeof *s->buckets);
    s->tables = calloc(r->share.count, s->count * sizeof *s->tables);
    s->files = calloc(r->share.count, sizeof *s->files);
    s->ids = malloc(SGT_MADE_WINDOW * sizeof *s->ids);
    if (s->buckets && s->tables && s->files && s->ids) {
        *out = s;
        return SGT_OK;
    }
    close_shuffled(s);
    return sgt_fail_memory(err, r->work);
}

/* ---- shuffled through files: what a rank has written ---- */

/* The table of a rank's files: TABLE_MAGIC, the buckets, and a checksum of both. It appears when
 * all files are on disk. */
static int write_table(const char *path, const bucket *table, size_t count, sgt_error *err)
{
    size_t n = 8 + count * sizeof *table;
    uint64_t *words = malloc(n + 8);
    if (!words) return sgt_fail_memory(err, path);
    words[0] = TABLE_MAGIC;
    memcpy(words + 1, table, n - 8);
    words[n / 8] = XXH3_64bits(words, n);
    int rc = sgt_file_put(path, words, n + 8, err);
    free(words);
    return rc;
}

/* Read a table. Return 1 if it is valid and has `count` buckets, 0 if not, or a negative SGT_E*. */
static int read_table(const char *path, bucket *table, size_t count, sgt_error *err)
{
    char *text = NULL;
    size_t n = 8 + count * sizeof *table, got;
    uint64_t sum;
    if (access(path, F_OK) < 0) return 0;
    int rc = sgt_file_get(&text, &got, path, n + 8, err);
    if (rc < 0) return rc;
    rc = got == n + 8 && (memcpy(&sum, text + n, 8), sum == XXH3_64bits(text, n)) &&
         *(uint64_t *)(void *)text == TABLE_MAGIC;
    if (rc) memcpy(table, text + 8, n - 8);
    free(text);
    return rc;
}

/* ---- shuffled through files: scattering ---- */

static int put_document(const shuffled *s, bucket *table, sgt_buckets *b, sgt_order *input,
                        const head *h, sgt_error *err)
{
    size_t i = bucket_of(h->key, s->count);
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

static int scatter(const shuffled *s, bucket *table, sgt_order *input, sgt_error *err)
{
    const sgt_order_request *r = &s->r;
    sgt_buckets *b;
    head h;
    int rc = sgt_buckets_open(&b, folder_of(r, r->share.index), s->count, err);
    if (rc < 0) return rc;
    memset(table, 0, s->count * sizeof *table);
    while (!rc && (rc = sgt_order_next(input, &h.tokens, err)) == 0) {
        if (sgt_stopped(r->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
        h.number = sgt_order_number(input);
        h.key = key_of(h.number, r->seed);
        if (!rc) rc = put_document(s, table, b, input, &h, err);
        if (!rc && r->advance) r->advance(r->ctx, h.tokens);
    }
    if (rc == 1) return sgt_buckets_close(b, 1, err);
    sgt_buckets_abandon(b);
    return rc;
}

/* Write the files of our share. `input`: its documents in input order. It is read to its end,
 * unless an earlier run has done so. */
static int scatter_share(const sgt_order_request *r, sgt_order *input, sgt_error *err)
{
    shuffled *s;
    int rc = new_shuffled(&s, r, sgt_order_tokens(input), err);
    if (rc < 0) return rc;
    bucket *table = s->tables + r->share.index * s->count;
    char *path = table_path(&s->r, r->share.index);
    if (!path) rc = sgt_fail_memory(err, r->work);
    if (!rc) rc = read_table(path, table, s->count, err);
    for (size_t i = 0; rc == 1 && r->advance && i < s->count; i++)
        r->advance(r->ctx, table[i].tokens);
    if (!rc && (rc = scatter(s, table, input, err)) == 0)
        rc = write_table(path, table, s->count, err);
    free(path);
    close_shuffled(s);
    return rc < 0 ? rc : SGT_OK;
}

/* ---- shuffled through files: reading ---- */

static int read_tables(shuffled *s, sgt_error *err)
{
    int rc = 1;
    for (uint32_t i = 0; i < s->r.share.count && rc == 1; i++) {
        bucket *table = s->tables + i * s->count;
        char *path = table_path(&s->r, i);
        rc = path ? read_table(path, table, s->count, err) : sgt_fail_memory(err, s->r.work);
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

/* Open a shuffled order, of which all ranks have written their files. tokens: of all documents. */
static int open_shuffled(shuffled **out, const sgt_order_request *r, uint64_t tokens,
                         sgt_error *err)
{
    shuffled *s;
    int rc = new_shuffled(&s, r, tokens, err);
    if (rc < 0) return rc;
    if ((rc = read_tables(s, err)) < 0) close_shuffled(s);
    else *out = s;
    return rc;
}

/* ---- shuffled through files: sorting a bucket ---- */

static int in_order(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Read n bytes of the current bucket, from byte `at` on, into p. They are in one file. */
static int read_bucket(const shuffled *s, void *p, size_t n, uint64_t at, sgt_error *err)
{
    if (s->bytes) {
        memcpy(p, s->bytes + at, n);
        return SGT_OK;
    }
    uint32_t i = 0;
    while (i + 1 < s->r.share.count && s->files[i + 1].begin <= at) i++;
    const bucket_file *f = &s->files[i];
    return sgt_pread_all(f->fd, p, n, at - f->begin, f->path, err);
}

/* Add the documents of a file to the entries. */
static int list_documents(shuffled *s, const bucket_file *f, const bucket *b, sgt_error *err)
{
    const uint64_t end = f->begin + bytes_of(b);
    uint64_t at = f->begin, tokens = 0;
    int rc = SGT_OK;
    for (uint64_t i = 0; i < b->documents && !rc; i++) {
        head h = {0};
        if (end - at < sizeof h) break;
        if (sgt_stopped(s->r.stop)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
        rc = read_bucket(s, &h, sizeof h, at, err);
        s->entries[s->documents] = (entry){h.key, h.number, at};
        if (!rc && (!h.tokens || h.tokens > (end - at - sizeof h) / 2)) break;
        s->documents++;
        tokens += h.tokens;
        at += sizeof h + 2 * h.tokens;
    }
    if (!rc && (at != end || tokens != b->tokens))
        rc = sgt_fail(err, SGT_EFORMAT, "%s: offset %" PRIu64 ": damaged (--force starts over)",
                      f->path, at - f->begin);
    return rc;
}

/* Open a rank's file of bucket `index`, which must be as long as `b` says. */
static int open_file(const shuffled *s, bucket_file *f, size_t index, uint32_t rank,
                     const bucket *b, sgt_error *err)
{
    uint64_t size;
    f->fd = sgt_buckets_read(folder_of(&s->r, rank), index, &f->path, &size, err);
    if (f->fd < 0) return f->fd;
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_WILLNEED);
    if (size == bytes_of(b)) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: %" PRIu64 " bytes, %" PRIu64 " were written (--force starts over)",
                    f->path, size, bytes_of(b));
}

/* Open a rank's file of bucket `index`, load it if the bucket is loaded, and list its documents. */
static int begin_file(shuffled *s, size_t index, uint32_t rank, sgt_error *err)
{
    const bucket *b = &s->tables[rank * s->count + index];
    bucket_file *f = &s->files[rank];
    int rc = open_file(s, f, index, rank, b, err);
    if (!rc && s->bytes)
        rc = sgt_pread_all(f->fd, s->bytes + f->begin, (size_t)bytes_of(b), 0, f->path, err);
    if (s->bytes && f->fd >= 0) {
        close(f->fd);
        f->fd = -1;
    }
    return rc ? rc : list_documents(s, f, b, err);
}

/* Make room for `size` bytes of a bucket. */
static int make_room(shuffled *s, uint64_t size, sgt_error *err)
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

/* Return whether a bucket is small enough to be loaded: 512 MiB, or a 32nd of the free memory, which
 * the ranks of a machine share. */
static int fits_memory(const shuffled *s, uint64_t bytes)
{
    sgt_memory m;
    if (s->r.memory) return bytes <= s->r.memory;
    if (bytes <= MEMORY_BYTES) return 1;
    sgt_memory_look(&m, NULL);
    return bytes <= m.available / 32;
}

/* Begin the next bucket: load its bytes, unless it is too large for memory, and sort its headers. */
static int begin_bucket(shuffled *s, sgt_error *err)
{
    const size_t index = s->begin++;
    const bucket *all = &s->buckets[index];
    uint64_t at = 0;
    int rc = SGT_OK;
    close_bucket(s);
    if (!all->documents) return SGT_OK;
    for (uint32_t i = 0; i < s->r.share.count; i++) {
        s->files[i] = (bucket_file){.fd = -1, .begin = at};
        at += bytes_of(&s->tables[i * s->count + index]);
    }
    s->entries = calloc(all->documents, sizeof *s->entries);
    if (!s->entries) return sgt_fail_memory(err, s->r.work);
    if (fits_memory(s, bytes_of(all))) rc = make_room(s, bytes_of(all), err);
    for (uint32_t i = 0; i < s->r.share.count && !rc; i++) rc = begin_file(s, index, i, err);
    if (!rc) qsort(s->entries, s->documents, sizeof *s->entries, in_order);
    return rc;
}

static int next_shuffled(shuffled *s, uint64_t *tokens, sgt_error *err)
{
    head h;
    int rc;
    while (s->next == s->documents) {
        if (s->begin == s->count) return 1;
        if ((rc = begin_bucket(s, err)) < 0) return rc;
    }
    const entry *e = &s->entries[s->next++];
    if ((rc = read_bucket(s, &h, sizeof h, e->at, err)) < 0) return rc;
    s->from = e->at + sizeof h;
    *tokens = s->tokens = h.tokens;
    return SGT_OK;
}

/* Begin the bucket that has token `at`. Add the tokens before it to *position. */
static int seek_shuffled(shuffled *s, uint64_t at, uint64_t *position, sgt_error *err)
{
    for (s->begin = 0; s->begin + 1 < s->count && *position + s->buckets[s->begin].tokens <= at;
         s->begin++)
        *position += s->buckets[s->begin].tokens;
    return begin_bucket(s, err);
}

static int read_shuffled(shuffled *s, uint64_t at, size_t n, const uint16_t **ids, sgt_error *err)
{
    *ids = s->bytes ? (const uint16_t *)(const void *)(s->bytes + s->from + 2 * at) : s->ids;
    return s->bytes ? SGT_OK : read_bucket(s, s->ids, 2 * n, s->from + 2 * at, err);
}

/* ---- any order ---- */

int sgt_order_copies(const sgt_order_request *r, sgt_error *err)
{
    sgt_order_request all = *r;
    all.share = sgt_share_or_all(r->share);
    if (!r->shuffle || !suits_gathering(&all)) return r->shuffle;
    return all.share.count > 1 ? 0 : buckets_exist(&all, err);
}

int sgt_order_scatter(const sgt_order_request *r, sgt_error *err)
{
    sgt_order *o;
    int rc = open_input(&o, r, err);
    if (rc < 0) return rc;
    const sgt_share *s = &o->r.share;
    o->part = (size_t)sgt_share_first(s, r->count, s->index);
    o->end = (size_t)sgt_share_first(s, r->count, s->index + 1ull);
    rc = sgt_order_copies(r, err);
    if (rc > 0) rc = s->index < s->count ? scatter_share(&o->r, o, err) : SGT_OK;
    sgt_order_close(o);
    return rc;
}

int sgt_order_open(sgt_order **out, const sgt_order_request *r, sgt_error *err)
{
    sgt_order *o;
    int rc = open_input(&o, r, err);
    if (rc < 0) return rc;
    /* a rank that is alone has scattered the documents if their files are there */
    int copied = !r->shuffle            ? 0
                 : o->r.share.count > 1 ? !suits_gathering(&o->r)
                                        : buckets_exist(&o->r, err);
    if (copied < 0) rc = copied;
    else if (copied) rc = open_shuffled(&o->shuffled, &o->r, sgt_order_tokens(o), err);
    else if (r->shuffle) rc = open_gathered(&o->gathered, &o->r, err);
    if (rc < 0) sgt_order_close(o);
    else *out = o;
    return rc;
}

void sgt_order_close(sgt_order *o)
{
    if (!o) return;
    for (size_t i = 0; i < o->r.count; i++) sgt_made_rest(o->r.parts[i]);
    close_shuffled(o->shuffled);
    close_gathered(o->gathered);
    free(o->before);
    free(o->numbers);
    free(o);
}

uint64_t sgt_order_tokens(const sgt_order *o) { return o->before[o->r.count]; }
uint64_t sgt_order_number(const sgt_order *o) { return o->numbers[o->part] + o->document - 1; }

int sgt_order_next(sgt_order *o, uint64_t *tokens, sgt_error *err)
{
    if (o->shuffled) return next_shuffled(o->shuffled, tokens, err);
    if (o->gathered) return next_gathered(o->gathered, tokens);
    int rc = 1;
    while (o->part < o->end && (rc = next_of_part(o, err)) == 1) go_to_part(o, o->part + 1);
    *tokens = o->tokens;
    return rc;
}

/* Go to the part that has token `at`. Add the tokens before it to *position. */
static void seek_part(sgt_order *o, uint64_t at, uint64_t *position)
{
    size_t part = 0;
    while (part + 1 < o->r.count && o->before[part + 1] <= at) part++;
    go_to_part(o, part);
    *position = o->before[part];
}

int sgt_order_seek(sgt_order *o, uint64_t at, uint64_t *tokens, uint64_t *skip, sgt_error *err)
{
    uint64_t position = 0;
    int rc = SGT_OK;
    if (o->shuffled) rc = seek_shuffled(o->shuffled, at, &position, err);
    else if (o->gathered) o->gathered->next = 0;
    else seek_part(o, at, &position);
    while (!rc && (rc = sgt_order_next(o, tokens, err)) == 0 && position + *tokens <= at)
        position += *tokens;
    *skip = at - position;
    return rc == 1
               ? sgt_fail(err, SGT_EFORMAT,
                          "%s: the documents end before token %" PRIu64 " (--force starts over)",
                          o->r.work, at)
               : rc;
}

int sgt_order_ids(sgt_order *o, uint64_t at, size_t n, const uint16_t **ids, sgt_error *err)
{
    if (o->shuffled) return read_shuffled(o->shuffled, at, n, ids, err);
    if (o->gathered) return read_gathered(o->gathered, at, n, ids, err);
    return sgt_made_ids(o->r.parts[o->part], o->r.split, o->start + at, n, ids, err);
}
