/* documents.h: find where the documents of a set are, for sampling documents (one row per
 * document). A document extends to the start of the next one, across as many shards as that takes.
 * The set's last document ends with its last shard.
 *
 *     sgt_documents d;
 *     if (sgt_documents_find(&d, &set, 0, set.count, "out", &err) < 0) ...;
 *     // which shard, and which of its documents
 *     sgt_window w = sgt_sampler_window(&sampler, NULL, row);
 *     // where it starts, and its tokens
 *     w = sgt_documents_window(&d, &set, set.count, &w, T + 1);
 *     sgt_documents_free(&d);
 *
 * Each start takes four bytes: 32 MB for the eight million documents of OpenWebText. */
#ifndef SGT_DOCUMENTS_H
#define SGT_DOCUMENTS_H

#include <stdint.h>

#include "loader/sample/sampler.h"
#include "loader/shards/set.h"

typedef struct sgt_documents {
    uint64_t count, room;
    uint32_t *starts; /* (count): offsets in tokens within their shards, shard after shard */
    uint64_t *before; /* (shards + 1): number of documents that start in earlier shards */
    /* (shards): 1 if the starts are unknown: the shard has no .idx file, and its tokens were not
     * searched */
    uint8_t *unlisted;
    uint32_t unlisted_count;
} sgt_documents;

/* Find the documents of shards first .. first + shards - 1, which must follow the shards already in
 * *d ({0}: none). Reads SHARD.idx beside SHARD.bin; without it, searches for end-of-text ids.
 * SGT_EFORMAT names the file and the offset of an impossible entry, or the set (`path`) in which no
 * document starts. If path is NULL, only .idx files are read, and a set without documents is not an
 * error. */
int sgt_documents_find(sgt_documents *d, const sgt_set *set, uint32_t first, uint32_t shards,
                       const char *path, sgt_error *err);
void sgt_documents_free(sgt_documents *d);

/* Find the document starts in a window that lies in one shard. Stores their offsets, in tokens from
 * the window's first, in `starts`, which has room for w->tokens, and returns their number. In an
 * unlisted shard, the ids equal to `eot` among the window's `tokens` are the starts. */
uint32_t sgt_documents_within(const sgt_documents *d, const sgt_window *w, const uint16_t *tokens,
                              uint32_t eot, uint32_t *starts);

/* Return the number of documents that start in a shard. */
uint64_t sgt_documents_in(const sgt_documents *d, uint32_t shard);

/* Return the position and the length, at most `most` tokens, of one document: number w->offset,
 * from 0, of those that start in w->shard. It may continue in later shards, but not beyond shard
 * end - 1, the last of its set. */
sgt_window sgt_documents_window(const sgt_documents *d, const sgt_set *set, uint32_t end,
                                const sgt_window *w, uint32_t most);

#endif
