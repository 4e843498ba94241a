/* order.c: reads the documents of all parts, in the order of the input or in a shuffled order. For
 * a shuffled order, the documents are divided into batches, and each batch is sorted by key when it
 * begins. Either a single batch contains all documents, which are then read from the shards of the
 * parts; or each batch is a bucket, a set of files into which the documents with similar keys were
 * copied. */
#include "tokenize/parts/order.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "tokenize/out/out.h"
#include "tokenize/out/writer.h"

#define BUCKET_BYTES ((uint64_t)64 << 20)
/* Maximum number of buckets. It is limited because a rank has a file of every bucket open while it
 * copies documents into the buckets. */
#define BUCKETS 512
/* Minimum number of buckets per rank. If the border between the shares of two ranks lies inside a
 * bucket, both ranks read the entire bucket, so a bucket must be small compared with a rank's
 * share. */
#define BUCKETS_OF_A_RANK 4
#define BUFFER ((size_t)64 << 10) /* size in bytes of a bucket file's write buffer */
/* Maximum total size in bytes of the lists of documents that all ranks hold in memory (each rank
 * has a list of all documents). If the lists would be larger, the documents are copied into buckets
 * instead of being read directly from the parts. */
#define LIST_BYTES ((uint64_t)192 << 20)

/* a number of documents, and the total number of tokens in them */
typedef struct counts {
    uint64_t documents, tokens;
} counts;

/* A document of the current batch. */
typedef struct entry {
    /* key: random sort key of the document. at: position of the document's token ids, as a byte
     * offset in o->bytes if the batch is a bucket, otherwise as a token index in the split. tokens:
     * number of tokens in the document. */
    uint64_t key, at, tokens;
} entry;

struct sgt_order {
    sgt_order_request r;
    /* all.tokens: number of tokens in this order, which excludes duplicates. all.documents: number
     * of documents in the split, including duplicates. */
    counts all;
    /* document: index, in input order, of the document to examine next. end: index after the last
     * document to examine, which is the last of the split or, while documents are copied into
     * buckets, the last of this rank's share. */
    uint64_t document, end;
    /* position of the current document's first token, counted in tokens from the beginning of the
     * split in input order */
    uint64_t start;
    /* position: number of tokens that come before the current document in the order in which
     * documents are read. tokens: number of tokens in the current document; 0 if there is no
     * current document. */
    uint64_t position, tokens;
    /* only for a shuffled order: */
    int copied;     /* 1 if each batch is a bucket, 0 if a single batch contains all documents */
    size_t batches; /* 0: the order is that of the input */
    counts *batch;  /* counts of each batch */
    /* two-dimensional array (ranks, batches): number of documents, and number of their tokens, that
     * each rank has copied into each bucket */
    counts *tables;
    size_t begin;   /* index of the next batch to begin */
    entry *entries; /* the current batch's documents, sorted by key */
    size_t documents, next;
    /* contents of the current bucket, in a buffer of `room` bytes; the buffer is reused for the
     * next bucket, because allocating a new one would cost time */
    char *bytes;
    uint64_t room;
};

/* ---- the order of the input ---- */

/* Make the next document in input order that is not a duplicate the current document. Return 1 if
 * there is none, 0 if there is one, or a negative SGT_E*. */
static int next_of_input(sgt_order *o, sgt_error *err)
{
    if (sgt_stopped(o->r.stop)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
    while (o->document < o->end) {
        const uint64_t n = o->document++;
        if (o->r.dedup && sgt_dedup_is_duplicate(o->r.dedup, o->r.split, n)) continue;
        return sgt_made_document(o->r.set, o->r.split, n, &o->start, &o->tokens, err);
    }
    return 1;
}

/* Go to a document that begins at or before token `at` of the order. If no duplicates are skipped,
 * this is done by a look-up. Otherwise, the position of a document is known only after reading the
 * lengths of all documents before it. In that case, keep the current document if it begins at or
 * before token `at`, else go back to the beginning of the split. */
static int seek_input(sgt_order *o, uint64_t at, sgt_error *err)
{
    if (o->r.dedup && o->tokens && at >= o->position) return SGT_OK;
    o->tokens = o->position = 0;
    o->document = o->r.dedup ? 0 : sgt_made_before(o->r.set, o->r.split, at);
    return o->r.dedup ? SGT_OK
                      : sgt_made_start(o->r.set, o->r.split, o->document, &o->position, err);
}

/* Open the order of the input. */
static int open_input(sgt_order **out, const sgt_order_request *r, sgt_error *err)
{
    sgt_order *o = calloc(1, sizeof *o);
    if (!o) return sgt_fail_memory(err, "the order of documents");
    o->r = *r;
    o->end = o->all.documents = sgt_made_documents(r->set, r->split);
    o->all.tokens =
        sgt_made_tokens(r->set, r->split) - (r->dedup ? sgt_dedup_left_out(r->dedup, r->split) : 0);
    *out = o;
    return SGT_OK;
}

/* ---- a batch ---- */

static void close_batch(sgt_order *o)
{
    free(o->entries);
    o->entries = NULL;
    o->documents = o->next = 0;
}

/* Comparison function for qsort: compare two entries by key and, if their keys are equal, by their
 * order in the input. */
static int in_order(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Return the sort key of document `number` of a split: a hash of `number` that depends on `seed`.
 * Sorting documents by their keys puts them in random order. */
static uint64_t key_of(uint64_t number, uint64_t seed)
{
    return XXH3_64bits_withSeed(&number, sizeof number, seed);
}

/* ---- a single batch ---- */

/* Return 1 if the documents are to be read directly from the parts, or 0 if they must be copied
 * into buckets first. The result is the same in all ranks. */
static int suits_parts(const sgt_order_request *r)
{
    const uint64_t lists = 2 * sizeof(entry) * r->ranks * sgt_made_documents(r->set, r->split);
    return lists <= LIST_BYTES && sgt_made_shards(r->set, r->split) <= SGT_MADE_OPEN &&
           sgt_made_width(r->set) * sgt_made_tokens(r->set, r->split) + lists <= r->memory;
}

static int list_parts(sgt_order *o, sgt_error *err)
{
    int rc;
    /* begin with the first document of the split, because an earlier call may have failed
     * halfway */
    o->document = 0;
    while ((rc = next_of_input(o, err)) == 0)
        o->entries[o->documents++] =
            (entry){key_of(o->document - 1, o->r.seed), o->start, o->tokens};
    o->tokens = 0; /* there is no current document yet */
    return rc == 1 ? SGT_OK : rc;
}

/* ---- buckets ---- */

/* header that precedes the token ids of each document in a bucket file */
typedef struct head {
    uint64_t key, number, tokens;
} head;

static uint64_t bytes_of(const sgt_order *o, const counts *c)
{
    return c->documents * sizeof(head) + sgt_made_width(o->r.set) * c->tokens;
}

/* Return the number of buckets for a split that has `tokens` tokens without duplicates. It is a
 * power of two. */
static size_t count_buckets(const sgt_order_request *r, uint64_t tokens)
{
    const size_t width = sgt_made_width(r->set);
    size_t count = 1;
    while (count < BUCKETS && (width * tokens / count > BUCKET_BYTES ||
                               (r->ranks > 1 && count < (size_t)BUCKETS_OF_A_RANK * r->ranks)))
        count *= 2;
    return count;
}

/* Return the index of the bucket, among `count` buckets, for documents with this key. It is given
 * by the leading bits of the key, so all keys in a bucket are lower than those in the next
 * bucket. */
static size_t bucket_of(uint64_t key, size_t count)
{
    return count == 1 ? 0 : (size_t)(key >> (64 - __builtin_ctzll(count)));
}

/* Write the path of the folder that contains the bucket files of rank `rank` to `path`, and return
 * `path`. */
static char *folder_of(char path[SGT_PATH], const sgt_order_request *r, uint32_t rank)
{
    return sgt_path(path, r->work, SGT_OUT_SORTING "/%s/%05u-of-%05u", sgt_split_names[r->split],
                    rank, r->ranks);
}

/* Write the path of the table of rank `rank` to `path`, and return `path`. The table has the
 * numbers of documents and tokens in each bucket file of this rank. It is written after all of
 * these files have been flushed to disk. */
static char *table_path(char path[SGT_PATH], const sgt_order_request *r, uint32_t rank)
{
    char folder[SGT_PATH];
    return sgt_path(path, folder_of(folder, r, rank), "counts");
}

/* Read the table with the numbers of documents and tokens in each bucket file of rank `rank`.
 * Return 1 if the table exists and has `count` entries, 0 if it does not, or a negative SGT_E*. */
static int read_table(const sgt_order_request *r, uint32_t rank, counts *table, size_t count,
                      sgt_error *err)
{
    char path[SGT_PATH], *text = NULL;
    const size_t want = count * sizeof *table;
    size_t n;
    if (sgt_file_gone(table_path(path, r, rank))) return 0;
    int rc = sgt_file_get(&text, &n, path, want, err);
    if (rc < 0) return rc;
    if (n == want) memcpy(table, text, want);
    free(text);
    return n == want;
}

/* ---- scattering ---- */

/* Append the current document to this rank's file for the document's bucket, and add the document
 * to the counts of the bucket. */
static int put_document(sgt_order *o, sgt_sink *files, sgt_error *err)
{
    const uint64_t number = o->document - 1;
    const head h = {key_of(number, o->r.seed), number, o->tokens};
    const size_t i = bucket_of(h.key, o->batches);
    int rc = sgt_sink_put(&files[i], &h, sizeof h, err);
    for (uint64_t at = 0; at < h.tokens && !rc;) {
        const void *ids;
        size_t n = (size_t)(h.tokens - at);
        rc = sgt_made_ids(o->r.set, o->r.split, o->start + at, &n, &ids, err);
        if (!rc) rc = sgt_sink_put(&files[i], ids, sgt_made_width(o->r.set) * n, err);
        at += n;
    }
    o->batch[i].documents++;
    o->batch[i].tokens += h.tokens;
    if (!rc && o->r.advance) o->r.advance(o->r.ctx, h.tokens);
    return rc;
}

/* Copy the documents of this rank's share into this rank's files of the buckets. Then write the
 * table with the numbers of documents and tokens in each file. */
static int scatter(sgt_order *o, sgt_sink *files, sgt_error *err)
{
    char name[32], folder[SGT_PATH], path[SGT_PATH];
    int rc = sgt_remove_tree(folder_of(folder, &o->r, o->r.rank), err);
    if (!rc) rc = sgt_make_folders(folder, err);
    for (size_t i = 0; i < o->batches && !rc; i++) {
        snprintf(name, sizeof name, "%05zu", i);
        rc = sgt_sink_open(&files[i], folder, name, O_CREAT | O_EXCL, err);
    }
    while (!rc && (rc = next_of_input(o, err)) == 0) rc = put_document(o, files, err);
    if (rc == 1) rc = SGT_OK;
    for (size_t i = 0; i < o->batches && !rc; i++) rc = sgt_sink_sync(&files[i], err);
    if (!rc) rc = sgt_sync_folder(folder, err);
    if (rc < 0) return rc;
    table_path(path, &o->r, o->r.rank);
    return sgt_file_put(path, o->batch, o->batches * sizeof *o->batch, err);
}

int sgt_order_copies(const sgt_order_request *r) { return r->shuffle && !suits_parts(r); }

int sgt_order_scatter(const sgt_order_request *r, sgt_error *err)
{
    sgt_order *o;
    int rc = sgt_order_copies(r) ? open_input(&o, r, err) : 1;
    if (rc) return rc < 0 ? rc : SGT_OK;
    o->document = o->all.documents * r->rank / r->ranks;
    o->end = o->all.documents * (r->rank + 1ull) / r->ranks;
    o->batches = count_buckets(r, o->all.tokens);
    o->batch = calloc(o->batches, sizeof *o->batch);
    sgt_sink *files = calloc(o->batches, sizeof *files);
    /* if the table exists, an earlier run has completed this rank's bucket files: use these
     * files */
    rc = o->batch && files ? read_table(r, r->rank, o->batch, o->batches, err)
                           : sgt_fail_memory(err, r->work);
    for (size_t i = 0; rc == 1 && r->advance && i < o->batches; i++)
        r->advance(r->ctx, o->batch[i].tokens);
    for (size_t i = 0; i < o->batches && files; i++)
        files[i] = (sgt_sink){.fd = -1, .size = BUFFER};
    if (!rc) rc = scatter(o, files, err);
    for (size_t i = 0; i < o->batches && files; i++) sgt_sink_free(&files[i]);
    free(files);
    sgt_order_close(o);
    return rc < 0 ? rc : SGT_OK;
}

/* ---- reading a bucket ---- */

/* Read the file of the current bucket that rank `rank` has written into o->bytes, at byte offset
 * `at`, and append an entry for each of its documents to o->entries. *c has the expected numbers of
 * documents and tokens. */
static int load_file(sgt_order *o, uint32_t rank, const counts *c, uint64_t at, sgt_error *err)
{
    char folder[SGT_PATH], path[SGT_PATH];
    const uint64_t begin = at, end = at + bytes_of(o, c), width = sgt_made_width(o->r.set);
    uint64_t tokens = 0;
    sgt_path(path, folder_of(folder, &o->r, rank), "%05zu", o->begin);
    const int fd = sgt_file_open(path, O_RDONLY, err);
    if (fd < 0) return fd;
    const off_t size = lseek(fd, 0, SEEK_END);
    const int rc =
        (uint64_t)size == end - at
            ? sgt_pread_all(fd, o->bytes + at, (size_t)(end - at), 0, path, err)
            : sgt_fail(err, SGT_EFORMAT,
                       "%s: has %lld bytes, but %" PRIu64 " were written (--force starts over)",
                       path, (long long)size, end - at);
    close(fd);
    if (rc < 0) return rc;
    for (uint64_t i = 0; i < c->documents && end - at >= sizeof(head); i++) {
        head h;
        memcpy(&h, o->bytes + at, sizeof h);
        if (!h.tokens || h.tokens > (end - at - sizeof h) / width) break;
        o->entries[o->documents++] = (entry){h.key, at + sizeof h, h.tokens};
        tokens += h.tokens;
        at += sizeof h + width * h.tokens;
    }
    if (at == end && tokens == c->tokens) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT, "%s: offset %" PRIu64 ": damaged (--force starts over)", path,
                    at - begin);
}

static int load_bucket(sgt_order *o, sgt_error *err)
{
    const uint64_t bytes = bytes_of(o, &o->batch[o->begin]);
    uint64_t at = 0;
    int rc = SGT_OK;
    if (bytes > o->room) {
        free(o->bytes);
        o->room = 0;
        o->bytes = malloc(bytes);
        if (!o->bytes) return sgt_fail_memory(err, o->r.work);
        o->room = bytes;
    }
    for (uint32_t i = 0; i < o->r.ranks && !rc; i++) {
        const counts *c = &o->tables[i * o->batches + o->begin];
        rc = load_file(o, i, c, at, err);
        at += bytes_of(o, c);
    }
    return rc;
}

/* ---- a shuffled order ---- */

/* Read the tables of all ranks. */
static int read_tables(sgt_order *o, sgt_error *err)
{
    int rc = 1;
    for (uint32_t i = 0; i < o->r.ranks && rc == 1; i++) {
        counts *table = o->tables + i * o->batches;
        char path[SGT_PATH];
        rc = read_table(&o->r, i, table, o->batches, err);
        for (size_t k = 0; k < o->batches && rc == 1; k++)
            rc = table[k].documents <= o->all.documents && table[k].tokens <= o->all.tokens;
        if (!rc)
            rc = sgt_fail(err, SGT_EFORMAT, "%s: missing or damaged (--force starts over)",
                          table_path(path, &o->r, i));
        for (size_t k = 0; k < o->batches; k++) {
            o->batch[k].documents += table[k].documents;
            o->batch[k].tokens += table[k].tokens;
        }
    }
    return rc < 0 ? rc : SGT_OK;
}

/* Allocate the list of batches (o->batch), and set the numbers of documents and tokens in each
 * batch. */
static int open_batches(sgt_order *o, sgt_error *err)
{
    o->copied = !suits_parts(&o->r);
    o->batches = o->copied ? count_buckets(&o->r, sgt_order_tokens(o)) : 1;
    o->batch = calloc(o->batches, sizeof *o->batch);
    o->tables = calloc(o->r.ranks, o->batches * sizeof *o->tables);
    if (!o->batch || !o->tables) return sgt_fail_memory(err, o->r.work);
    if (o->copied) return read_tables(o, err);
    o->batch[0] = o->all;
    return SGT_OK;
}

static int begin_batch(sgt_order *o, sgt_error *err)
{
    close_batch(o);
    if (o->batch[o->begin].documents) {
        o->entries = calloc(o->batch[o->begin].documents, sizeof *o->entries);
        if (!o->entries) return sgt_fail_memory(err, o->r.work);
        const int rc = (o->copied ? load_bucket : list_parts)(o, err);
        if (rc < 0) return rc;
        qsort(o->entries, o->documents, sizeof *o->entries, in_order);
    }
    o->begin++;
    return SGT_OK;
}

static int next_of_batches(sgt_order *o, sgt_error *err)
{
    while (o->next == o->documents) {
        if (o->begin == o->batches) return 1;
        const int rc = begin_batch(o, err);
        if (rc < 0) return rc;
    }
    o->tokens = o->entries[o->next++].tokens;
    return SGT_OK;
}

/* ---- any order ---- */

int sgt_order_open(sgt_order **out, const sgt_order_request *r, sgt_error *err)
{
    sgt_order *o;
    int rc = open_input(&o, r, err);
    if (rc < 0) return rc;
    if (r->shuffle && (rc = open_batches(o, err)) < 0) sgt_order_close(o);
    else *out = o;
    return rc;
}

void sgt_order_close(sgt_order *o)
{
    if (!o) return;
    sgt_made_rest(o->r.set);
    close_batch(o);
    free(o->batch);
    free(o->tables);
    free(o->bytes);
    free(o);
}

uint64_t sgt_order_tokens(const sgt_order *o) { return o->all.tokens; }

/* Begin the batch that contains token `at` of the order. Set o->position to the position of the
 * first document in the batch, and make no document the current one. */
static int seek_batch(sgt_order *o, uint64_t at, sgt_error *err)
{
    size_t i = 0;
    o->tokens = 0;
    for (o->position = 0; i + 1 < o->batches && o->position + o->batch[i].tokens <= at; i++)
        o->position += o->batch[i].tokens;
    o->next = 0;
    if (i + 1 == o->begin) return SGT_OK; /* it is the current batch */
    o->begin = i;
    return begin_batch(o, err);
}

/* Set *ids to token ids of the current document, starting with token `at` of the document. On
 * entry, *n is the maximum number of ids; on return, *n is the number of ids at *ids. */
static int read_ids(sgt_order *o, uint64_t at, size_t *n, const void **ids, sgt_error *err)
{
    const uint64_t from = o->batches ? o->entries[o->next - 1].at : o->start;
    if (!o->copied) return sgt_made_ids(o->r.set, o->r.split, from + at, n, ids, err);
    *ids = o->bytes + from + sgt_made_width(o->r.set) * at;
    return SGT_OK;
}

int sgt_order_read(sgt_order *o, uint64_t at, uint64_t most, sgt_order_ids *out, sgt_error *err)
{
    int rc = SGT_OK;
    if (!o->tokens || at < o->position || at - o->position > o->tokens)
        rc = (o->batches ? seek_batch : seek_input)(o, at, err);
    while (!rc && at - o->position >= o->tokens) {
        o->position += o->tokens;
        rc = (o->batches ? next_of_batches : next_of_input)(o, err);
    }
    if (rc == 1)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: the documents end before token %" PRIu64 " (--force starts over)",
                      o->r.work, at);
    if (rc < 0) {
        o->tokens = 0; /* make a later read seek again */
        return rc;
    }
    const uint64_t skip = at - o->position;
    const uint64_t n = o->tokens - skip < most ? o->tokens - skip : most;
    out->count = (size_t)n;
    out->begins = !skip;
    return read_ids(o, skip, &out->count, &out->ids, err);
}
