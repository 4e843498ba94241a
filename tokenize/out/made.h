/* made.h: reads one finished set of shards, or several as if they were one. The tokens of each
 * split can be read as one sequence, and the positions at which its documents start can be looked
 * up.
 *
 *     sgt_made *s = NULL;
 *     rc = sgt_made_add(&s, "out", &err);            // or several folders, one after the other
 *     if (!rc) rc = sgt_made_start(s, 0, 7, &at, &err);       // document 7 of the train split
 *     if (!rc) rc = sgt_made_ids(s, 0, at, &n, &ids, &err);   // its first tokens, up to n
 *     sgt_made_close(s);
 *
 * Only one thread at a time may use an sgt_made. Consecutive reads are buffered. The document index
 * of one shard at a time is in memory. No shard is opened before the first read. */
#ifndef SGT_MADE_H
#define SGT_MADE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/shards/manifest.h"

/* maximum size in bytes of the tokens that one call to sgt_made_ids returns */
#define SGT_MADE_WINDOW ((size_t)1 << 20)
#define SGT_MADE_OPEN 256 /* maximum number of shards that are open at the same time */

typedef struct sgt_made sgt_made;

/* Append the set in folder `path` to *s; before the first call, *s is NULL. If a call fails, *s may
 * only be closed. */
int sgt_made_add(sgt_made **s, const char *path, sgt_error *err);
void sgt_made_close(sgt_made *s); /* NULL is allowed */
/* Close the shards and free the buffers. The sgt_made can still be used: the next read opens and
 * allocates them again. */
void sgt_made_rest(sgt_made *s);

size_t sgt_made_folders(const sgt_made *s);
const char *sgt_made_path(const sgt_made *s, size_t folder);
const sgt_manifest *sgt_made_manifest(const sgt_made *s, size_t folder);
/* size of an id in bytes, which is the same in all folders */
size_t sgt_made_width(const sgt_made *s);
/* totals of a split, in all folders: */
size_t sgt_made_shards(const sgt_made *s, int split);
uint64_t sgt_made_tokens(const sgt_made *s, int split);
uint64_t sgt_made_documents(const sgt_made *s, int split);

/* Read tokens of a split, starting at token `at`, which must exist. Set *ids to the tokens, valid
 * until the next call. On entry, *n is the maximum number of tokens; on return, it is their number,
 * at least 1. There are fewer than the maximum if the buffer or the shard ends earlier. */
int sgt_made_ids(sgt_made *s, int split, uint64_t at, size_t *n, const void **ids, sgt_error *err);
/* Set *at to the first token of document `index` of a split, or to the number of tokens if `index`
 * is the number of documents. If the first tokens in an index file do not begin with 0 and
 * increase, return SGT_EFORMAT and name the file. */
int sgt_made_start(sgt_made *s, int split, uint64_t index, uint64_t *at, sgt_error *err);
/* Return the index of a document of a split that starts at or before token `at`. No shard is opened
 * to find it, so it may start much earlier: it is the last document that starts before this token's
 * shard, or document 0. */
uint64_t sgt_made_before(const sgt_made *s, int split, uint64_t at);
/* Set *start to the first token of document `index` of a split, and *tokens to its length, which is
 * at least 1. The document must exist. Only call this for the set of a rank's part, because the
 * error message tells the user how to repeat the part. */
int sgt_made_document(sgt_made *s, int split, uint64_t index, uint64_t *start, uint64_t *tokens,
                      sgt_error *err);

#endif
