/* dedup.c: find equal records: scatter them over bucket files, then sort one file at a time. */
#include "tokenize/parts/dedup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "tokenize/parts/buckets.h"
#include "tokenize/out/record.h"
#include "tokenize/out/journal.h"
#include "tokenize/out/out.h"

#define BUCKET_BYTES ((uint64_t)32 << 20)
#define READ 4096 /* records per read */

/* A record in a bucket file, with the document it belongs to. */
typedef struct where {
    sgt_dedup_record r;
    uint64_t number; /* index of the document in the input */
    uint64_t place;  /* index of the document in its split */
} where;

struct sgt_dedup {
    sgt_dedup_request r;
    char *folder;
    size_t buckets;
    uint64_t *first[SGT_SPLITS]; /* index of the first document of each share, and their number */
    uint64_t *left_out[SGT_SPLITS]; /* tokens of the duplicates of each part */
    uint64_t duplicates;
    uint32_t marked; /* share whose marks are loaded */
    /* The marks of that share: the number of duplicates, left_out of each part and split, and the
     * bits of both splits. NULL: none are loaded. */
    uint64_t *marks;
};

static uint64_t part_of(const sgt_dedup *d, uint32_t share)
{
    return sgt_share_first(&d->r.share, d->r.count, share);
}

/* ---- the marks of a share: an array of words ---- */

static size_t head_words(const sgt_dedup *d, uint32_t share)
{
    return 1 + SGT_SPLITS * (size_t)(part_of(d, share + 1) - part_of(d, share));
}

static size_t bit_words(const sgt_dedup *d, uint32_t share, int split)
{
    return (size_t)((d->first[split][share + 1] - d->first[split][share]) / 64 + 1);
}

static size_t mark_words(const sgt_dedup *d, uint32_t share)
{
    return head_words(d, share) + bit_words(d, share, 0) + bit_words(d, share, 1);
}

static uint64_t *bits_of(const sgt_dedup *d, int split)
{
    return d->marks + head_words(d, d->marked) + (split ? bit_words(d, d->marked, 0) : 0);
}

static char *marks_path(const sgt_dedup *d, uint32_t share)
{
    char name[32];
    snprintf(name, sizeof name, "left-out-%05u", share);
    return sgt_join(d->folder, name);
}

/* Read the first `words` words of the marks of a share. */
static int read_marks(const sgt_dedup *d, uint32_t share, uint64_t *to, size_t words,
                      sgt_error *err)
{
    char *path = marks_path(d, share);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1, rc = SGT_OK;
    if (!path) rc = sgt_fail_memory(err, d->folder);
    else if (fd < 0) rc = sgt_fail_errno(err, "%s", path);
    else rc = sgt_pread_all(fd, to, words * sizeof *to, 0, path, err);
    if (fd >= 0) close(fd);
    free(path);
    return rc;
}

static int load(sgt_dedup *d, uint32_t share, sgt_error *err)
{
    free(d->marks);
    d->marked = share;
    d->marks = malloc(mark_words(d, share) * sizeof *d->marks);
    if (!d->marks) return sgt_fail_memory(err, d->folder);
    int rc = read_marks(d, share, d->marks, mark_words(d, share), err);
    if (rc == 0) return SGT_OK;
    free(d->marks);
    d->marks = NULL;
    return rc;
}

/* Return the share that has a document. */
static uint32_t share_of(const sgt_dedup *d, int split, uint64_t number)
{
    uint32_t low = 0, high = d->r.share.count;
    while (low + 1 < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (d->first[split][middle] <= number) low = middle;
        else high = middle;
    }
    return low;
}

static int has(const sgt_dedup *d, uint32_t share, int split, uint64_t number)
{
    return number >= d->first[split][share] && number < d->first[split][share + 1];
}

int sgt_dedup_is_duplicate(sgt_dedup *d, int split, uint64_t number, sgt_error *err)
{
    int rc;
    if ((!d->marks || !has(d, d->marked, split, number)) &&
        (rc = load(d, share_of(d, split, number), err)) < 0)
        return rc;
    const uint64_t i = number - d->first[split][d->marked];
    return (int)(bits_of(d, split)[i / 64] >> i % 64 & 1);
}
uint64_t sgt_dedup_count(const sgt_dedup *d) { return d->duplicates; }
uint64_t sgt_dedup_left_out(const sgt_dedup *d, size_t part, int split)
{
    return d->left_out[split][part];
}

void sgt_dedup_close(sgt_dedup *d)
{
    if (!d) return;
    for (int s = 0; s < SGT_SPLITS; s++) {
        free(d->first[s]);
        free(d->left_out[s]);
    }
    free(d->marks);
    free(d->folder);
    free(d);
}

/* ---- 1. scattering ---- */

static char *rank_folder(const sgt_dedup *d, const char *kind, uint32_t share)
{
    char name[32];
    snprintf(name, sizeof name, "%s-%05u", kind, share);
    return sgt_join(d->folder, name);
}

typedef struct scattering {
    sgt_buckets *b;
    size_t count;
    uint64_t number, place[SGT_SPLITS];
} scattering;

static int scatter_records(scattering *s, const sgt_dedup_record *r, size_t n, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < n && !rc; i++) {
        where w = {r[i], s->number++, s->place[r[i].length & SGT_DEDUP_VAL ? 1 : 0]++};
        rc = sgt_buckets_put(s->b, (size_t)(r[i].hash[0] % s->count), &w, sizeof w, err);
    }
    return rc;
}

static int scatter_part(scattering *s, const sgt_made *part, const sgt_stop *stop, sgt_error *err)
{
    static const char wrong[] =
        "%s: %lld bytes, expected %" PRIu64 " of %" PRIu64
        " documents (remove the folder it is in, and its rank makes it again)";
    const char *folder = sgt_made_path(part);
    uint64_t count = sgt_made_documents(part, 0) + sgt_made_documents(part, 1);
    sgt_dedup_record *r = malloc(READ * sizeof *r);
    char *path = sgt_join(folder, SGT_DEDUP_FILE);
    struct stat st = {0};
    int rc = r && path ? SGT_OK : sgt_fail_memory(err, folder);
    int fd = rc ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (!rc && (fd < 0 || fstat(fd, &st) < 0)) rc = sgt_fail_errno(err, "%s", path);
    if (!rc && (uint64_t)st.st_size != count * sizeof *r)
        rc = sgt_fail(err, SGT_EFORMAT, wrong, path, (long long)st.st_size, count * sizeof *r,
                      count);
    for (uint64_t at = 0; at < count && !rc; at += READ) {
        size_t n = count - at < READ ? (size_t)(count - at) : READ;
        if (sgt_stopped(stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
        if (!rc) rc = sgt_pread_all(fd, r, n * sizeof *r, at * sizeof *r, path, err);
        if (!rc) rc = scatter_records(s, r, n, err);
    }
    if (fd >= 0) close(fd);
    free(path);
    free(r);
    return rc;
}

static int scatter(const sgt_dedup *d, sgt_error *err)
{
    const uint32_t mine = d->r.share.index;
    if (mine >= d->r.share.count) return SGT_OK;
    scattering s = {.count = d->buckets};
    int rc = sgt_buckets_open(&s.b, rank_folder(d, "from", mine), s.count, err);
    if (rc < 0) return rc;
    for (int k = 0; k < SGT_SPLITS; k++) s.number += s.place[k] = d->first[k][mine];
    for (size_t i = part_of(d, mine); i < part_of(d, mine + 1) && !rc; i++)
        rc = scatter_part(&s, d->r.parts[i], d->r.stop, err);
    for (int k = 0; k < SGT_SPLITS && !rc; k++)
        if (s.place[k] != d->first[k][mine + 1])
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: the parts' records are of %" PRIu64 " %s documents, of %" PRIu64
                          " (--force starts over)",
                          d->r.work, s.place[k] - d->first[k][mine], sgt_split_names[k],
                          d->first[k][mine + 1] - d->first[k][mine]);
    if (!rc) return sgt_buckets_close(s.b, 0, err);
    sgt_buckets_abandon(s.b);
    return rc;
}

/* ---- 2. finding ---- */

static int same_text(const where *x, const where *y)
{
    return x->r.hash[0] == y->r.hash[0] && x->r.hash[1] == y->r.hash[1] &&
           ((x->r.length ^ y->r.length) & ~SGT_DEDUP_VAL) == 0;
}

/* Order for qsort: equal records are adjacent, and the earliest in the input is the first of
 * them. */
static int in_order(const void *a, const void *b)
{
    const where *x = a, *y = b;
    uint64_t p[] = {x->r.hash[0], x->r.hash[1], x->r.length & ~SGT_DEDUP_VAL, x->number};
    uint64_t q[] = {y->r.hash[0], y->r.hash[1], y->r.length & ~SGT_DEDUP_VAL, y->number};
    int i = 0;
    while (i < 3 && p[i] == q[i]) i++;
    return p[i] < q[i] ? -1 : p[i] > q[i];
}

/* Append a bucket's files of all ranks to *bytes, which has *n bytes. */
static int gather(const sgt_dedup *d, const char *kind, size_t bucket, char **bytes, size_t *n,
                  sgt_error *err)
{
    int rc = SGT_OK;
    for (uint32_t i = 0; i < d->r.share.count && !rc; i++) {
        char *path = NULL, *more = NULL;
        uint64_t size = 0;
        const int fd = sgt_buckets_read(rank_folder(d, kind, i), bucket, &path, &size, err);
        if (fd < 0) rc = fd;
        else if (!(more = realloc(*bytes, *n + (size_t)size + 1))) rc = sgt_fail_memory(err, path);
        else *bytes = more;
        if (!rc) rc = sgt_pread_all(fd, *bytes + *n, (size_t)size, 0, path, err);
        if (!rc) *n += (size_t)size;
        if (fd >= 0) close(fd);
        free(path);
    }
    return rc;
}

/* List the duplicates of a bucket: each as its place, with SGT_DEDUP_VAL in the val split. */
static int search_bucket(const sgt_dedup *d, size_t bucket, sgt_buckets *found, sgt_error *err)
{
    char *bytes = NULL;
    size_t size = 0;
    int rc = gather(d, "from", bucket, &bytes, &size, err);
    where *w = (where *)(void *)bytes;
    const size_t n = size / sizeof *w;
    if (!rc && n) qsort(w, n, sizeof *w, in_order);
    for (size_t i = 1; i < n && !rc; i++) {
        if (!same_text(&w[i - 1], &w[i])) continue;
        const uint64_t val = w[i].r.length & SGT_DEDUP_VAL, entry = w[i].place | val;
        rc = sgt_buckets_put(found, share_of(d, val != 0, w[i].place), &entry, sizeof entry, err);
    }
    free(bytes);
    return rc;
}

static int search(const sgt_dedup *d, sgt_error *err)
{
    const sgt_share *s = &d->r.share;
    if (s->index >= s->count) return SGT_OK;
    sgt_buckets *found;
    int rc = sgt_buckets_open(&found, rank_folder(d, "found", s->index), s->count, err);
    if (rc < 0) return rc;
    const size_t end = (size_t)sgt_share_first(s, d->buckets, s->index + 1);
    for (size_t i = (size_t)sgt_share_first(s, d->buckets, s->index); i < end && !rc; i++) {
        rc = search_bucket(d, i, found, err);
        if (!rc && sgt_stopped(d->r.stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
    }
    if (!rc) return sgt_buckets_close(found, 0, err);
    sgt_buckets_abandon(found);
    return rc;
}

/* ---- 3. marking ---- */

/* Set the bits of our share, and count them. */
static int set_bits(sgt_dedup *d, sgt_error *err)
{
    char *bytes = NULL;
    size_t size = 0;
    int rc = gather(d, "found", d->marked, &bytes, &size, err);
    const uint64_t *found = (const uint64_t *)(void *)bytes;
    for (size_t i = 0; i < size / sizeof *found && !rc; i++) {
        const int split = found[i] & SGT_DEDUP_VAL ? 1 : 0;
        const uint64_t number = found[i] & ~SGT_DEDUP_VAL;
        if (!has(d, d->marked, split, number)) {
            rc = sgt_fail(err, SGT_EFORMAT, "%s: damaged (start again)", d->folder);
            break;
        }
        const uint64_t k = number - d->first[split][d->marked];
        bits_of(d, split)[k / 64] |= (uint64_t)1 << k % 64;
        d->marks[0]++;
    }
    free(bytes);
    return rc;
}

/* Add up the tokens of the duplicates of a part, whose first document is `number` of our share. */
static int count_part(sgt_dedup *d, size_t part, int split, uint64_t number, sgt_error *err)
{
    const uint64_t *bits = bits_of(d, split), n = sgt_made_documents(d->r.parts[part], split);
    uint64_t *sum = &d->marks[1 + SGT_SPLITS * (part - part_of(d, d->marked)) + (size_t)split];
    int rc = SGT_OK;
    for (uint64_t i = 0; i < n && !rc; i++) {
        uint64_t start, tokens = 0, at = number + i;
        if (!(bits[at / 64] >> at % 64 & 1)) continue;
        rc = sgt_made_document(d->r.parts[part], split, i, &start, &tokens, err);
        *sum += tokens;
    }
    return rc;
}

static int count_tokens(sgt_dedup *d, sgt_error *err)
{
    int rc = SGT_OK;
    for (int k = 0; k < SGT_SPLITS; k++) {
        uint64_t number = 0;
        for (size_t i = part_of(d, d->marked); i < part_of(d, d->marked + 1) && !rc; i++) {
            rc = count_part(d, i, k, number, err);
            number += sgt_made_documents(d->r.parts[i], k);
        }
    }
    for (size_t i = part_of(d, d->marked); i < part_of(d, d->marked + 1); i++)
        sgt_made_rest(d->r.parts[i]);
    return rc;
}

static int mark(sgt_dedup *d, sgt_error *err)
{
    if (d->r.share.index >= d->r.share.count) return SGT_OK;
    d->marked = d->r.share.index;
    const size_t words = mark_words(d, d->marked);
    d->marks = calloc(words, sizeof *d->marks);
    char *path = marks_path(d, d->marked), *from = rank_folder(d, "from", d->marked);
    int rc = d->marks && path && from ? SGT_OK : sgt_fail_memory(err, d->folder);
    /* all ranks have read our records */
    if (!rc) rc = sgt_remove_tree(from, err);
    if (!rc && (rc = set_bits(d, err)) == 0 && (rc = count_tokens(d, err)) == 0)
        rc = sgt_file_put(path, d->marks, words * sizeof *d->marks, err);
    free(path);
    free(from);
    return rc;
}

/* Read what the ranks have counted. */
static int add_up(sgt_dedup *d, sgt_error *err)
{
    int rc = SGT_OK;
    for (uint32_t s = 0; s < d->r.share.count && !rc; s++) {
        const size_t first = (size_t)part_of(d, s), n = head_words(d, s);
        uint64_t *head = malloc(n * sizeof *head);
        rc = head ? read_marks(d, s, head, n, err) : sgt_fail_memory(err, d->folder);
        for (size_t i = 0; i + 1 < n && !rc; i++)
            d->left_out[i % SGT_SPLITS][first + i / SGT_SPLITS] = head[1 + i];
        if (!rc) d->duplicates += head[0];
        free(head);
    }
    return rc;
}

/* Number the documents, and choose the number of buckets: the same in all ranks. */
static int prepare(sgt_dedup *d, sgt_error *err)
{
    const uint32_t shares = d->r.share.count;
    uint64_t documents = 0;
    for (int k = 0; k < SGT_SPLITS; k++) {
        d->first[k] = calloc(shares + 1u, sizeof(uint64_t));
        d->left_out[k] = calloc(d->r.count + 1, sizeof(uint64_t));
        if (!d->first[k] || !d->left_out[k]) return sgt_fail_memory(err, d->r.work);
        for (uint32_t s = 0; s < shares; s++) {
            d->first[k][s + 1] = d->first[k][s];
            for (size_t i = part_of(d, s); i < part_of(d, s + 1); i++)
                d->first[k][s + 1] += sgt_made_documents(d->r.parts[i], k);
        }
        documents += d->first[k][shares];
    }
    d->buckets =
        sgt_share_pieces(&d->r.share, sgt_buckets_count(documents * sizeof(where), BUCKET_BYTES));
    return SGT_OK;
}

int sgt_dedup_open(sgt_dedup **out, const sgt_dedup_request *r, sgt_error *err)
{
    sgt_dedup *d = calloc(1, sizeof *d);
    if (!d) return sgt_fail_memory(err, r->work);
    d->r = *r;
    d->r.share = sgt_share_or_all(r->share);
    d->folder = sgt_join(r->work, SGT_OUT_SORTING "/duplicates");
    int rc = d->folder ? prepare(d, err) : sgt_fail_memory(err, r->work);
    sgt_meeting *m = r->share.meeting;
    if (!rc && (rc = scatter(d, err)) == 0 && (rc = sgt_meet(m, SGT_MEET_RECORDS, err)) == 0 &&
        (rc = search(d, err)) == 0 && (rc = sgt_meet(m, SGT_MEET_FOUND, err)) == 0 &&
        (rc = mark(d, err)) == 0 && (rc = sgt_meet(m, SGT_MEET_MARKS, err)) == 0)
        rc = add_up(d, err);
    if (rc < 0) sgt_dedup_close(d);
    else *out = d;
    return rc;
}
