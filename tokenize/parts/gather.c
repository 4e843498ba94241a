/* gather.c: sort the numbers of documents by their keys, and read their ids from the parts. */
#include "tokenize/parts/gather.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/memory.h"
#include "loader/shards/shard.h"
#include "tokenize/out/writer.h"
#include "tokenize/parts/shuffle.h"

#define MEMORY_BYTES ((uint64_t)96 << 20) /* limit of the memory for documents, in all ranks */

/* A shard of a part. */
typedef struct piece {
    uint64_t first; /* tokens of the split in the shards before it */
    char *path;
    int fd;
} piece;

struct sgt_gather {
    sgt_order_request r;
    piece *pieces; /* (count + 1): in the order of the input; the last one is only their end */
    size_t count;
    /* (all documents + 1): index of the first token of each in the order of the input, among the
     * tokens of all parts; duplicates included */
    uint64_t *starts;
    /* (documents): of those delivered, in their order: the upper half of a document's key, and its
     * number (MEMORY_BYTES allows fewer than 2^32 documents) */
    uint64_t *numbers;
    uint64_t documents, next;
    uint16_t *ids; /* buffer of SGT_MADE_WINDOW ids */
};

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

int sgt_gather_suits(const sgt_order_request *r)
{
    const sgt_share *s = &r->share;
    const uint64_t ranks = s->count > 1 ? sgt_ranks_size(s->ranks) : 1;
    const uint64_t lists = 24 * ranks * count_documents(r);
    uint64_t bytes = lists, most = s->memory;
    if (r->memory || lists > MEMORY_BYTES || count_shards(r) > SGT_GATHER_SHARDS) return 0;
    for (size_t i = 0; i < r->count; i++) bytes += 2 * sgt_made_tokens(r->parts[i], r->split);
    if (s->count == 1) {
        sgt_memory m;
        sgt_memory_look(&m, NULL);
        most = m.available / 2;
    }
    return bytes <= most;
}

/* ---- opening ---- */

static int open_pieces(sgt_gather *g, sgt_error *err)
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
    return (sgt_shuffle_key(number, seed) & ~(uint64_t)UINT32_MAX) | number;
}

/* Add the documents of a part, of which the first has number *number and begins at token *at of the
 * split. Set both to those after the part. */
static int list_part(sgt_gather *g, sgt_made *part, uint64_t *number, uint64_t *at, sgt_error *err)
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
    const uint64_t p = sgt_shuffle_key((uint32_t)x, *(uint64_t *)seed);
    const uint64_t q = sgt_shuffle_key((uint32_t)y, *(uint64_t *)seed);
    if (p != q) return p < q ? -1 : 1;
    return x < y ? -1 : x > y;
}

int sgt_gather_open(sgt_gather **out, const sgt_order_request *r, sgt_error *err)
{
    const uint64_t documents = count_documents(r);
    sgt_gather *g = calloc(1, sizeof *g);
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
        sgt_gather_close(g);
        return rc;
    }
    qsort_r(g->numbers, g->documents, sizeof *g->numbers, by_key, &g->r.seed);
    *out = g;
    return SGT_OK;
}

void sgt_gather_close(sgt_gather *g)
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

/* ---- reading ---- */

int sgt_gather_next(sgt_gather *g, uint64_t *tokens, sgt_error *err)
{
    (void)err;
    if (g->next == g->documents) return 1;
    const uint64_t number = (uint32_t)g->numbers[g->next++];
    *tokens = g->starts[number + 1] - g->starts[number];
    return SGT_OK;
}

int sgt_gather_seek(sgt_gather *g, uint64_t at, uint64_t *tokens, uint64_t *skip, sgt_error *err)
{
    uint64_t position = 0;
    int rc;
    g->next = 0;
    while ((rc = sgt_gather_next(g, tokens, err)) == 0 && position + *tokens <= at)
        position += *tokens;
    *skip = at - position;
    return rc == 1 ? sgt_fail(err, SGT_EFORMAT, "the documents end before token %" PRIu64, at) : rc;
}

/* Return the piece that has token `at` of the split. */
static const piece *find(const sgt_gather *g, uint64_t at)
{
    size_t low = 0, high = g->count;
    while (low + 1 < high) {
        const size_t middle = low + (high - low) / 2;
        if (g->pieces[middle].first <= at) low = middle;
        else high = middle;
    }
    return &g->pieces[low];
}

int sgt_gather_ids(sgt_gather *g, uint64_t at, size_t n, const uint16_t **ids, sgt_error *err)
{
    uint64_t from = g->starts[(uint32_t)g->numbers[g->next - 1]] + at;
    int rc = SGT_OK;
    *ids = g->ids;
    for (uint16_t *to = g->ids; n && !rc;) {
        const piece *p = find(g, from);
        const size_t k = n < p[1].first - from ? n : (size_t)(p[1].first - from);
        rc =
            sgt_pread_all(p->fd, to, 2 * k, SGT_SHARD_HEADER + 2 * (from - p->first), p->path, err);
        to += k;
        from += k;
        n -= k;
    }
    return rc;
}
