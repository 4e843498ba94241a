/* packed.c: sampling packed: the plans of the sets, which say what documents a row holds. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/handle.h"

/* The place of a document in a plan: the shard above, and below the token it begins at (documents.c
 * refuses longer shards). */
static uint64_t pack_at(uint32_t shard, uint64_t offset) { return (uint64_t)shard << 32 | offset; }

sgt_window sgt_loader_packed_window(const sgt_pack_piece *document)
{
    return (sgt_window){.shard = (uint32_t)(document->place >> 32),
                        .offset = (uint32_t)document->place,
                        .tokens = document->tokens};
}

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
    *place = pack_at(w.shard, w.offset);
    *tokens = w.tokens;
}

int sgt_loader_fail_beginning(const sgt_loader *l, uint32_t shard, uint64_t offset, uint16_t id,
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
    sgt_pack_piece document = {.place = p->places[p->first[p->most]]};
    sgt_window w = sgt_loader_packed_window(&document);
    const sgt_set_shard *h = &l->set.shards[w.shard];
    uint16_t id;
    int fd = sgt_set_open_shard(&l->set, w.shard, err);
    if (fd < 0) return fd;
    int rc = sgt_pread_all(fd, &id, sizeof id, h->head.data + 2 * w.offset, h->path, err);
    close(fd);
    if (rc == SGT_OK && id != sgt_set_eot(&l->set, w.shard))
        rc = sgt_loader_fail_beginning(l, w.shard, w.offset, id, err);
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
    return sgt_loader_packed_window(&first);
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
