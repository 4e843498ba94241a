/* made.h: read finished sets of shards, one set or several in a row: the tokens of each split as
 * one sequence, and the starts of its documents.
 *
 *     sgt_made *s = NULL;
 *     rc = sgt_made_add(&s, "out", &err);            // or several folders, one after the other
 *     if (!rc) rc = sgt_made_start(s, 0, 7, &at, &err);       // document 7 of the train split
 *     if (!rc) rc = sgt_made_ids(s, 0, at, &n, &ids, &err);   // its first tokens, up to n
 *     sgt_made_close(s);
 *
 * Only one thread at a time may use a reader. Reads that follow each other are buffered. The index
 * of one shard at a time is in memory. No file is opened before the first read. */
#ifndef SGT_MADE_H
#define SGT_MADE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/shards/manifest.h"

/* most bytes of tokens that one call of sgt_made_ids returns */
#define SGT_MADE_WINDOW ((size_t)1 << 20)
#define SGT_MADE_OPEN 256 /* most shards of a set that are open at the same time */

typedef struct sgt_made sgt_made;

/* Append the set in the folder `path` to *s; *s is NULL at first. After a failure, *s can only be
 * closed. */
int sgt_made_add(sgt_made **s, const char *path, sgt_error *err);
void sgt_made_close(sgt_made *s); /* NULL is allowed */
/* Close the files and free the buffers. The next read opens and allocates them again. */
void sgt_made_rest(sgt_made *s);

size_t sgt_made_folders(const sgt_made *s);
const char *sgt_made_path(const sgt_made *s, size_t folder);
const sgt_manifest *sgt_made_manifest(const sgt_made *s, size_t folder);
size_t sgt_made_width(const sgt_made *s); /* bytes of an id, equal in all folders */
/* totals of a split, in all folders: */
size_t sgt_made_shards(const sgt_made *s, int split);
uint64_t sgt_made_tokens(const sgt_made *s, int split);
uint64_t sgt_made_documents(const sgt_made *s, int split);

/* Set *ids to the tokens of a split from token `at` on, which must exist, and set *n to their
 * number. It is at least 1 and at most the *n given: less if the buffer or the shard ends earlier.
 * *ids is valid until the next call. */
int sgt_made_ids(sgt_made *s, int split, uint64_t at, size_t *n, const void **ids, sgt_error *err);
/* Set *at to the first token of document `index` of a split. If `index` is the number of documents,
 * set *at to the number of tokens. Starts begin with 0 and increase; SGT_EFORMAT names an index
 * file that is wrong. */
int sgt_made_start(sgt_made *s, int split, uint64_t index, uint64_t *at, sgt_error *err);
/* Return the index of a document that starts at token `at` of a split, or a short distance before
 * it. */
uint64_t sgt_made_before(const sgt_made *s, int split, uint64_t at);
/* Set *start to the first token of document `index` of a split, which must exist, and *tokens to
 * its length, at least 1. For a set that is a rank's part: the error message tells how to make the
 * part again. */
int sgt_made_document(sgt_made *s, int split, uint64_t index, uint64_t *start, uint64_t *tokens,
                      sgt_error *err);

#endif
