/* packed.c: sampling packed: the plans of the sets, and batches whose rows are put together from
 * pieces of documents. A piece lies in one shard, and pieces are fetched in turns of as many as a
 * batch has rows. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/handle.h"

/* sizes of documents whose permutations a cursor keeps; with several sets, each has its part */
#define KEPT_SIZES 1024u
#define KEPT_LEAST 16u

/* ---- plans ---- */

/* The place of a document in a plan: the shard above, and below the token it begins at (documents.c
 * refuses longer shards). */
static uint64_t place_of(uint32_t shard, uint64_t offset) { return (uint64_t)shard << 32 | offset; }

/* The documents of one set, counted from its first. */
typedef struct listing {
    const sgt_loader *l;
    const sgt_loader_part *part;
    uint32_t shard; /* shard of the last document asked for */
} listing;

static void list_document(void *ctx, uint64_t n, uint64_t *place, uint64_t *tokens)
{
    listing *of = ctx;
    const sgt_documents *d = &of->l->documents;
    uint32_t end = of->part->first + of->part->shards;
    if (n == 0) of->shard = of->part->first;
    n += d->before[of->part->first];
    while (n >= d->before[of->shard + 1]) of->shard++;
    sgt_window w = {.shard = of->shard, .offset = n - d->before[of->shard]};
    w = sgt_documents_window(d, &of->l->set, end, &w, UINT32_MAX);
    *place = place_of(w.shard, w.offset);
    *tokens = w.tokens;
}

static int fail_beginning(const sgt_loader *l, uint32_t shard, uint64_t offset, uint16_t id,
                          sgt_error *err)
{
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: token %" PRIu64 ": a document begins with id %u, and packed rows need the "
                    "end-of-text id %" PRIu32 " there (the other samplings do not)",
                    l->set.shards[shard].path, offset, id, sgt_set_eot(&l->set, shard));
}

/* Check one document of a set: other trainers' documents may end with the end-of-text id
 * instead. */
static int check_beginning(const sgt_loader *l, const sgt_pack *p, sgt_error *err)
{
    /* of the largest size: a document of one token may be an end-of-text id at its end, too */
    uint64_t place = p->places[p->first[p->most]];
    uint32_t shard = (uint32_t)(place >> 32);
    uint64_t offset = (uint32_t)place;
    const sgt_set_shard *h = &l->set.shards[shard];
    uint16_t id;
    int fd = sgt_set_open_shard(&l->set, shard, err);
    if (fd < 0) return fd;
    int rc = sgt_pread_all(fd, &id, sizeof id, h->head.data + 2 * offset, h->path, err);
    close(fd);
    if (rc == SGT_OK && id != sgt_set_eot(&l->set, shard))
        rc = fail_beginning(l, shard, offset, id, err);
    return rc;
}

int sgt_loader_open_packs(sgt_loader *l, sgt_error *err)
{
    uint64_t documents = l->documents.count;
    int rc = SGT_OK;
    l->packs = calloc(l->part_count, sizeof *l->packs);
    if (!l->packs) rc = sgt_fail_memory(err, l->parts[0].path);
    for (uint32_t i = 0; i < l->part_count && rc == SGT_OK; i++) {
        listing of = {.l = l, .part = &l->parts[i]};
        uint32_t end = of.part->first + of.part->shards;
        sgt_pack_source from = {l->documents.before[end] - l->documents.before[of.part->first],
                                list_document, &of};
        rc = sgt_pack_init(&l->packs[i], l->o.seq, &from, of.part->path, err);
        if (rc == SGT_OK) rc = check_beginning(l, &l->packs[i], err);
    }
    sgt_documents_free(&l->documents);
    l->documents.count = documents;
    return rc;
}

void sgt_loader_seed_packs(sgt_loader *l)
{
    for (uint32_t i = 0; l->packs && i < l->part_count; i++)
        l->packs[i].seed = l->mix.samplers[i].seed;
}

void sgt_loader_close_packs(sgt_loader *l)
{
    for (uint32_t i = 0; l->packs && i < l->part_count; i++) sgt_pack_free(&l->packs[i]);
    free(l->packs);
}

sgt_window sgt_loader_draw_packed(const sgt_loader *l, uint64_t row)
{
    sgt_window w = sgt_mix_window(&l->mix, NULL, row);
    sgt_pack_piece first;
    sgt_pack_row(&l->packs[sgt_mix_set_of(&l->mix, w.shard)], NULL, w.offset, &first, 1);
    return (sgt_window){.shard = (uint32_t)(first.place >> 32),
                        .offset = (uint32_t)first.place,
                        .tokens = l->o.seq + 1};
}

int sgt_loader_get_packing(const sgt_loader *l, sgt_loader_packing *packing, sgt_error *err)
{
    *packing = (sgt_loader_packing){.fewest = UINT32_MAX};
    if (!l->packs)
        return sgt_fail(err, SGT_EUSAGE, "the sampling is %s, not packed",
                        sgt_sampling_name(l->o.sampling));
    for (uint32_t i = 0; i < l->part_count; i++) {
        const sgt_pack *p = &l->packs[i];
        uint32_t fewest, most;
        sgt_pack_extremes(p, &fewest, &most);
        packing->rows += sgt_pack_epoch_rows(p);
        packing->documents += p->count;
        packing->tokens += p->tokens;
        packing->cropped += p->tokens - p->kept;
        if (fewest < packing->fewest) packing->fewest = fewest;
        if (most > packing->most) packing->most = most;
    }
    return SGT_OK;
}

/* ---- cursors ---- */

/* The pieces of a batch, row after row. */
typedef struct packed_batch {
    uint64_t index;
    sgt_window *pieces;
    uint32_t count, room;
    uint32_t told,
        taken; /* how many the reader has been told to expect, and how many were fetched */
} packed_batch;

typedef struct sgt_packed {
    sgt_pack_memo **memos;     /* (sets) */
    sgt_pack_piece *documents; /* (T+1): documents of a row */
    sgt_window *rows;          /* (local_batch): each row's set and number in it, from the mix */
    /* (size): the current batch, in place `at`, and behind it those that were drawn ahead. `drawn`
     * counts them all; 0: there is no current batch */
    packed_batch *ring;
    uint32_t size, at, drawn;
} sgt_packed;

int sgt_cursor_open_packed(sgt_cursor *c, const sgt_loader *l, uint32_t n)
{
    uint32_t sets = l->part_count, sizes = KEPT_SIZES / sets;
    sgt_packed *p = c->packed = calloc(1, sizeof *p);
    if (!p) return 0;
    p->size = c->ahead + 1;
    p->memos = calloc(sets, sizeof *p->memos);
    p->documents = calloc((size_t)l->o.seq + 1, sizeof *p->documents);
    p->rows = calloc(n, sizeof *p->rows);
    p->ring = calloc(p->size, sizeof *p->ring);
    int ok = p->memos && p->documents && p->rows && p->ring;
    for (uint32_t i = 0; i < sets && ok; i++)
        ok = (p->memos[i] = sgt_pack_memo_new(sizes > KEPT_LEAST ? sizes : KEPT_LEAST)) != NULL;
    /* rows are all alike, and lie in c->gathered */
    for (uint32_t i = 0; i < n; i++) c->windows[i].tokens = l->o.seq + 1;
    return ok;
}

void sgt_cursor_close_packed(sgt_cursor *c)
{
    sgt_packed *p = c->packed;
    if (!p) return;
    for (uint32_t i = 0; p->memos && i < c->l->part_count; i++) sgt_pack_memo_free(p->memos[i]);
    for (uint32_t i = 0; p->ring && i < p->size; i++) free(p->ring[i].pieces);
    free(p->memos);
    free(p->documents);
    free(p->rows);
    free(p->ring);
    free(p);
}

/* ---- pieces ---- */

static int add_piece(packed_batch *b, sgt_window piece)
{
    if (b->count == b->room) {
        uint32_t room = b->room ? 2 * b->room : 64;
        sgt_window *more = reallocarray(b->pieces, room, sizeof *more);
        if (!more) return 0;
        b->pieces = more;
        b->room = room;
    }
    b->pieces[b->count++] = piece;
    return 1;
}

/* Add a document's pieces: one, or more if it goes on in the next shard. */
static int add_document(const sgt_loader *l, packed_batch *b, const sgt_pack_piece *document)
{
    sgt_window w = {.shard = (uint32_t)(document->place >> 32),
                    .offset = (uint32_t)document->place,
                    .block = 1};
    for (uint32_t left = document->tokens; left; left -= w.tokens) {
        uint64_t here = l->set.shards[w.shard].head.tokens - w.offset;
        w.tokens = here < left ? (uint32_t)here : left;
        if (!add_piece(b, w)) return 0;
        if (w.tokens == left) break;
        w = (sgt_window){.shard = w.shard + 1, .tokens = w.tokens};
    }
    return 1;
}

/* Find the pieces of batch `index`. Returns 0 if out of memory. */
static int draw(const sgt_loader *l, sgt_cursor *c, packed_batch *b, uint64_t index)
{
    sgt_packed *p = c->packed;
    uint32_t n = l->o.batch / l->o.ranks;
    b->index = index;
    b->count = b->told = b->taken = 0;
    sgt_mix_windows(&l->mix, &c->memo, index * l->o.batch + l->o.rank, l->o.ranks, n, p->rows);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t set = sgt_mix_set_of(&l->mix, p->rows[i].shard);
        uint32_t documents = sgt_pack_row(&l->packs[set], p->memos[set], p->rows[i].offset,
                                          p->documents, l->o.seq + 1);
        for (uint32_t k = 0; k < documents; k++)
            if (!add_document(l, b, &p->documents[k])) return 0;
    }
    return 1;
}

/* Return how many of the pieces from number `from` on are fetched together. */
static uint32_t turn_of(const sgt_loader *l, const packed_batch *b, uint32_t from)
{
    uint32_t n = l->o.batch / l->o.ranks;
    return b->count - from < n ? b->count - from : n;
}

static packed_batch *place_at(const sgt_packed *p, uint32_t after)
{
    return &p->ring[(p->at + after) % p->size];
}

/* Tell the reader about the pieces of this batch and of coming ones, as many as it takes. */
static void tell(const sgt_loader *l, sgt_cursor *c)
{
    sgt_packed *p = c->packed;
    uint64_t index, current = place_at(p, 0)->index;
    for (uint32_t i = 0; l->ops->expect && i < p->size; i++) {
        packed_batch *b = place_at(p, i);
        if (i == p->drawn) {
            if (!sgt_cursor_coming(l, c, current, i, &index) || !draw(l, c, b, index)) return;
            p->drawn++;
        }
        for (uint32_t n; b->told < b->count; b->told += n) {
            n = turn_of(l, b, b->told);
            if (!l->ops->expect(c->reader_cursor, b->pieces + b->told, n)) return;
        }
    }
}

/* Drop all batches, and tell the reader if it still expects pieces of them. */
static void forget(const sgt_loader *l, sgt_cursor *c)
{
    sgt_packed *p = c->packed;
    int expected = 0;
    for (uint32_t i = 0; i < p->drawn; i++)
        expected |= place_at(p, i)->told > place_at(p, i)->taken;
    if (expected && l->ops->expect) l->ops->expect(c->reader_cursor, NULL, 0);
    p->drawn = 0;
}

/* ---- batches ---- */

/* Where the next piece goes: row, and token in it; and the document starts found so far. */
typedef struct filling {
    uint32_t row, token, starts;
} filling;

static int take_piece(const sgt_loader *l, sgt_cursor *c, filling *f, const sgt_window *w,
                      const uint16_t *from, sgt_error *err)
{
    uint32_t width = l->o.seq + 1, t = 0;
    uint16_t *to = c->gathered + (size_t)f->row * width + f->token;
    if (l->rows->copy(to, from, w->tokens) >= l->set.vocab) {
        while (to[t] < l->set.vocab) t++;
        return sgt_set_bad_id(&l->set, w->shard, w->offset + t, to[t], err);
    }
    if (f->token == 0) {
        if (to[0] != sgt_set_eot(&l->set, w->shard))
            return fail_beginning(l, w->shard, w->offset, to[0], err);
        if (c->starts) c->starts_first[f->row] = f->starts;
    }
    if (c->starts && w->block) c->starts[f->starts++] = f->token;
    f->token += w->tokens;
    if (f->token == width) {
        f->token = 0;
        f->row++;
    }
    return SGT_OK;
}

static int take_turn(const sgt_loader *l, sgt_cursor *c, filling *f, const sgt_window *pieces,
                     uint32_t n, sgt_error *err)
{
    int rc = l->ops->fetch(c->reader_cursor, pieces, n, c->tokens, err);
    for (uint32_t k = 0; k < n && rc == SGT_OK; k++) {
        sgt_cursor_ask_ahead(c, pieces, k, n);
        rc = take_piece(l, c, f, &pieces[k], c->tokens[k], err);
    }
    if (rc == SGT_OK && l->ops->verify)
        rc = l->ops->verify(c->reader_cursor, pieces, n, c->tokens, err);
    return rc;
}

static int gather(const sgt_loader *l, sgt_cursor *c, packed_batch *b, sgt_error *err)
{
    filling f = {0};
    int rc = SGT_OK;
    for (uint32_t done = 0, n; done < b->count && rc == SGT_OK; done += n) {
        tell(l, c);
        n = turn_of(l, b, done);
        /* what the reader had no room to expect is not announced any more */
        if (b->told < done + n) b->told = done + n;
        rc = take_turn(l, c, &f, b->pieces + done, n, err);
        b->taken += n;
    }
    if (rc == SGT_OK && c->starts) c->starts_first[f.row] = f.starts;
    return rc;
}

int sgt_cursor_fetch_packed(const sgt_loader *l, sgt_cursor *c, uint64_t index, sgt_error *err)
{
    sgt_packed *p = c->packed;
    uint32_t n = l->o.batch / l->o.ranks;
    sgt_cursor_steer(c, index);
    if (p->drawn > 1 && place_at(p, 1)->index == index) {
        p->at = (p->at + 1) % p->size;
        p->drawn--;
    } else {
        forget(l, c);
        if (!draw(l, c, place_at(p, 0), index))
            return sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " rows: out of memory", n);
        p->drawn = 1;
    }
    int rc = gather(l, c, place_at(p, 0), err);
    if (rc < 0) {
        forget(l, c);
        return rc;
    }
    tell(l, c);
    for (uint32_t i = 0; i < n; i++) c->tokens[i] = c->gathered + (size_t)i * (l->o.seq + 1);
    return SGT_OK;
}
