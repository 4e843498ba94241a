/* documents.h: where the documents of a set lie, for the sampling that makes a row of each. A
 * document is the tokens from its start to the next one's, through as many shards as that takes;
 * the set's last one ends with its last shard.
 *
 *     sgt_documents d;
 *     if (sgt_documents_find(&d, &set, 0, set.count, "out", &err) < 0) ...;
 *     sgt_window w = sgt_sampler_window(&sampler, NULL, row);             // shard, and which of its documents
 *     w = sgt_documents_window(&d, &set, set.count, &w, T + 1);           // where it starts, and its tokens
 *     sgt_documents_free(&d);
 *
 * Starts are four bytes a document: 32 MB for the eight million of OpenWebText. */
#ifndef SGT_DOCUMENTS_H
#define SGT_DOCUMENTS_H

#include <stdint.h>

#include "loader/sample/sampler.h"
#include "loader/shards/set.h"

typedef struct sgt_documents {
    uint64_t count, room;
    uint32_t *starts; /* (count): in tokens of their shards, shard after shard */
    uint64_t *before; /* (shards + 1): documents that start in the shards before this one */
    /* (shards): no .idx says where its documents start, and its tokens were not looked at */
    uint8_t *unlisted;
    uint32_t unlisted_count;
} sgt_documents;

/* Of shards first ... first + shards - 1, which follow those whose documents are in *d already
 * ({0}: none are). Reads SHARD.idx beside SHARD.bin; where there is none, looks for end-of-text
 * ids. SGT_EFORMAT names the file and the offset of an entry that cannot be, or the set (`path`)
 * where no document starts. path NULL: reads .idx files alone, and a set without documents is no
 * failure. */
int sgt_documents_find(sgt_documents *d, const sgt_set *set, uint32_t first, uint32_t shards,
                       const char *path, sgt_error *err);
void sgt_documents_free(sgt_documents *d);

/* The tokens of a window, which ends in its shard, at which documents start, counted from its
 * first: into `starts`, room for w->tokens; how many. In a shard that is unlisted they are told by
 * `eot` among the window's `tokens`. */
uint32_t sgt_documents_within(const sgt_documents *d, const sgt_window *w, const uint16_t *tokens,
                              uint32_t eot, uint32_t *starts);

/* How many start in a shard. */
uint64_t sgt_documents_in(const sgt_documents *d, uint32_t shard);

/* Where document w->offset of those that start in w->shard does; its tokens, at most `most`. Its
 * set ends with shard end - 1. */
sgt_window sgt_documents_window(const sgt_documents *d, const sgt_set *set, uint32_t end,
                                const sgt_window *w, uint32_t most);

#endif
