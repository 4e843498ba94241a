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
#include "tokenize/out/digests.h"
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
    uint64_t *bits[SGT_SPLITS];
    uint64_t documents[SGT_SPLITS], duplicates;
};

int sgt_dedup_is_duplicate(const sgt_dedup *d, int split, uint64_t number)
{
    return (int)(d->bits[split][number / 64] >> number % 64 & 1);
}
uint64_t sgt_dedup_count(const sgt_dedup *d) { return d->duplicates; }

void sgt_dedup_close(sgt_dedup *d)
{
    if (!d) return;
    for (int s = 0; s < SGT_SPLITS; s++) free(d->bits[s]);
    free(d);
}

/* ---- scattering ---- */

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

static int scatter_part(scattering *s, const sgt_made *part, const char *folder,
                        const sgt_stop *stop, sgt_error *err)
{
    static const char wrong[] =
        "%s: %lld bytes, expected %" PRIu64 " of %" PRIu64
        " documents (remove the folder it is in, and its rank makes it again)";
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

static int scatter(const sgt_dedup *d, scattering *s, const sgt_dedup_request *r,
                   const char *folder, sgt_error *err)
{
    int rc = sgt_buckets_open(&s->b, folder, s->count, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < r->count && !rc; i++)
        rc = scatter_part(s, r->parts[i], r->paths[i], r->stop, err);
    for (int k = 0; k < SGT_SPLITS && !rc; k++)
        if (s->place[k] != d->documents[k])
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: the parts' records are of %" PRIu64 " %s documents, of %" PRIu64
                          " (--force starts over)",
                          r->work, s->place[k], sgt_split_names[k], d->documents[k]);
    if (!rc) return sgt_buckets_close(s->b, err);
    sgt_buckets_abandon(s->b);
    return rc;
}

/* ---- finding ---- */

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

static int search_bucket(sgt_dedup *d, const char *folder, size_t bucket, sgt_error *err)
{
    char *path = NULL;
    uint64_t size = 0;
    int rc = SGT_OK, fd = sgt_buckets_read(folder, bucket, &path, &size, err);
    where *w = fd < 0 ? NULL : malloc(size + 1);
    if (fd < 0) rc = fd;
    else if (!w) rc = sgt_fail_memory(err, path);
    size_t n = (size_t)(size / sizeof *w);
    if (!rc) rc = sgt_pread_all(fd, w, n * sizeof *w, 0, path, err);
    if (!rc) qsort(w, n, sizeof *w, in_order);
    for (size_t i = 1; i < n && !rc; i++) {
        if (!same_text(&w[i - 1], &w[i])) continue;
        d->bits[w[i].r.length & SGT_DEDUP_VAL ? 1 : 0][w[i].place / 64] |= (uint64_t)1
                                                                           << w[i].place % 64;
        d->duplicates++;
    }
    if (fd >= 0) close(fd);
    free(w);
    free(path);
    return rc;
}

int sgt_dedup_open(sgt_dedup **out, const sgt_dedup_request *r, sgt_error *err)
{
    scattering s = {0};
    char *folder = sgt_join(r->work, SGT_OUT_SORTING "/duplicates");
    sgt_dedup *d = calloc(1, sizeof *d);
    int rc = folder && d ? SGT_OK : sgt_fail_memory(err, r->work);
    for (int k = 0; k < SGT_SPLITS && !rc; k++) {
        for (size_t i = 0; i < r->count; i++) d->documents[k] += sgt_made_documents(r->parts[i], k);
        if (!(d->bits[k] = calloc(d->documents[k] / 64 + 1, sizeof(uint64_t))))
            rc = sgt_fail_memory(err, r->work);
    }
    if (!rc) {
        s.count =
            sgt_buckets_count((d->documents[0] + d->documents[1]) * sizeof(where), BUCKET_BYTES);
        rc = scatter(d, &s, r, folder, err);
    }
    for (size_t i = 0; i < s.count && !rc; i++) {
        rc = search_bucket(d, folder, i, err);
        if (!rc && sgt_stopped(r->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
    }
    if (!rc) rc = sgt_remove_tree(folder, err);
    free(folder);
    if (rc < 0) sgt_dedup_close(d);
    else *out = d;
    return rc;
}
