/* made.h: read finished sets of shards, one or several in a row: the tokens of each split as one
 * sequence, and where its documents start.
 *
 *     sgt_made *s = NULL;
 *     rc = sgt_made_add(&s, "out", &err);            // or several folders, one after the other
 *     if (!rc) rc = sgt_made_start(s, 0, 7, &at, &err);       // document 7 of the train split
 *     if (!rc) rc = sgt_made_ids(s, 0, at, &n, &ids, &err);   // its first tokens, up to n
 *     sgt_made_close(s);
 *
 * One thread at a time. Reads that follow each other are buffered, and the index of one shard is in
 * memory. No file is open before the first read. */
#ifndef SGT_MADE_H
#define SGT_MADE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/shards/manifest.h"

#define SGT_MADE_WINDOW ((size_t)1 << 20) /* most bytes of tokens per call of sgt_made_ids */
#define SGT_MADE_OPEN 256                 /* most shards that a set has open at once */

typedef struct sgt_made sgt_made;

/* Append the set in the folder `path` to *s (NULL: none yet). After a failure, *s can only be
 * closed. */
int sgt_made_add(sgt_made **s, const char *path, sgt_error *err);
void sgt_made_close(sgt_made *s); /* NULL is allowed */
/* Close the files and free the buffers; the next read opens them again. */
void sgt_made_rest(sgt_made *s);

size_t sgt_made_folders(const sgt_made *s);
const char *sgt_made_path(const sgt_made *s, size_t folder);
const sgt_manifest *sgt_made_manifest(const sgt_made *s, size_t folder);
size_t sgt_made_width(const sgt_made *s); /* bytes of an id, in all folders */
/* of a split, in all folders: */
size_t sgt_made_shards(const sgt_made *s, int split);
uint64_t sgt_made_tokens(const sgt_made *s, int split);
uint64_t sgt_made_documents(const sgt_made *s, int split);

/* Set *ids to the tokens of a split from token `at` on, which must exist: at most *n, and fewer if
 * a buffer or a shard ends before. Set *n to their number, at least 1. *ids is valid until the next
 * call. */
int sgt_made_ids(sgt_made *s, int split, uint64_t at, size_t *n, const void **ids, sgt_error *err);
/* Set *at to the first token of document `index` of a split. If `index` is the number of documents,
 * set it to the number of tokens. Starts rise from 0: SGT_EFORMAT names an index that is wrong. */
int sgt_made_start(sgt_made *s, int split, uint64_t index, uint64_t *at, sgt_error *err);
/* Return the index of a document that starts at token `at` of a split or, not far, before it. */
uint64_t sgt_made_before(const sgt_made *s, int split, uint64_t at);
/* Set *start to the first token of document `index` of a split, which must exist, and *tokens to
 * its length, at least 1. For a rank's part: an error says how to make it again. */
int sgt_made_document(sgt_made *s, int split, uint64_t index, uint64_t *start, uint64_t *tokens,
                      sgt_error *err);

#endif
