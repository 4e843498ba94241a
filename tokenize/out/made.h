/* made.h: reads one complete set of shards, or several sets as if they were one. It presents the
 * tokens of each split as one sequence, and looks up the positions at which the documents of a
 * split start.
 *
 *     sgt_made *s = NULL;
 *     rc = sgt_made_add(&s, "out", &err);            // or several folders, one after the other
 *     if (!rc) rc = sgt_made_start(s, 0, 7, &at, &err);       // document 7 of the train split
 *     if (!rc) rc = sgt_made_ids(s, 0, at, &n, &ids, &err);   // its first tokens, up to n
 *     sgt_made_close(s);
 *
 * Only one thread at a time may use an sgt_made. Sequential reads are buffered. Only one shard's
 * document index is in memory at a time. Shards are opened when they are first read. */
#ifndef SGT_MADE_H
#define SGT_MADE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/shards/manifest.h"

/* maximum size in bytes of the token ids that one call to sgt_made_ids returns */
#define SGT_MADE_WINDOW ((size_t)1 << 20)
#define SGT_MADE_OPEN 256 /* maximum number of shards that are open at the same time */

typedef struct sgt_made sgt_made;

/* Append the set of shards in folder `path` to *s. Set *s to NULL before the first call, which then
 * allocates it. After an error, *s must not be used any more, except to close it. */
int sgt_made_add(sgt_made **s, const char *path, sgt_error *err);
void sgt_made_close(sgt_made *s); /* NULL is allowed */
/* Close all shard files and free the buffers. *s can still be used: the next read reopens the files
 * and reallocates the buffers. */
void sgt_made_rest(sgt_made *s);

size_t sgt_made_folders(const sgt_made *s);
const char *sgt_made_path(const sgt_made *s, size_t folder);
const sgt_manifest *sgt_made_manifest(const sgt_made *s, size_t folder);
/* size of a token id in bytes; it is the same in all folders */
size_t sgt_made_width(const sgt_made *s);
/* totals of a split, in all folders: */
size_t sgt_made_shards(const sgt_made *s, int split);
uint64_t sgt_made_tokens(const sgt_made *s, int split);
uint64_t sgt_made_documents(const sgt_made *s, int split);

/* Read tokens of a split, starting at token `at`, which must exist, and set *ids to them; they are
 * valid until the next call. On entry, *n is the maximum number of tokens to return. On return, *n
 * is the number of tokens at *ids, at least 1. It is below the maximum if the buffer or the shard
 * ends earlier. */
int sgt_made_ids(sgt_made *s, int split, uint64_t at, size_t *n, const void **ids, sgt_error *err);
/* Set *at to the position of the first token of document `index` in a split; if `index` is the
 * number of documents, set it to the number of tokens. The positions in a shard's .idx file must
 * increase, and for each split of a folder, the first position must be 0; otherwise, return
 * SGT_EFORMAT with a message that names the file. */
int sgt_made_start(sgt_made *s, int split, uint64_t index, uint64_t *at, sgt_error *err);
/* Return the index of a document of a split that starts at or before token `at`. To avoid opening a
 * shard, the result is not the last such document, but the last one that starts before the shard
 * with this token, or document 0 if that shard is the first one. */
uint64_t sgt_made_before(const sgt_made *s, int split, uint64_t at);
/* Set *start to the position of the first token of document `index` in a split, and *tokens to the
 * document's length, which is at least 1. The document must exist. The set must consist of parts
 * (each a set of shards that one rank has written), because the error message tells the user to run
 * the rank's command again. */
int sgt_made_document(sgt_made *s, int split, uint64_t index, uint64_t *start, uint64_t *tokens,
                      sgt_error *err);

#endif
