/* made.h: read a finished set of shards: the tokens of each split as one sequence, and where its
 * documents start.
 *
 *     sgt_made *s;
 *     if (sgt_made_open(&s, "out", &err) < 0) ...;
 *     sgt_made_start(s, 0, 7, &at, &err);        // document 7 of the train split begins at `at`
 *     sgt_made_ids(s, 0, at, 100, &ids, &err);   // 100 tokens from there on
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

#define SGT_MADE_WINDOW ((size_t)1 << 19) /* most tokens per call of sgt_made_ids */
#define SGT_MADE_OPEN 256                 /* most shards that a set has open at once */

typedef struct sgt_made sgt_made;

/* Open a set by reading its manifest; *out is set only on success. */
int sgt_made_open(sgt_made **out, const char *path, sgt_error *err);
void sgt_made_close(sgt_made *s); /* NULL is allowed */
/* Close the files and free the buffers; the next read opens them again. */
void sgt_made_rest(sgt_made *s);

const char *sgt_made_path(const sgt_made *s);
const sgt_manifest *sgt_made_manifest(const sgt_made *s);
size_t sgt_made_shards(const sgt_made *s, int split);
uint64_t sgt_made_tokens(const sgt_made *s, int split);
uint64_t sgt_made_documents(const sgt_made *s, int split);

/* Return n tokens (at most SGT_MADE_WINDOW, all of them in the split) from token `at` on. *ids is
 * valid until the next call. */
int sgt_made_ids(sgt_made *s, int split, uint64_t at, size_t n, const uint16_t **ids,
                 sgt_error *err);
/* Set *at to the first token of document `index` of a split. If `index` is the number of documents,
 * set it to the number of tokens. Starts rise from 0: SGT_EFORMAT names an index that is wrong. */
int sgt_made_start(sgt_made *s, int split, uint64_t index, uint64_t *at, sgt_error *err);
/* Set *start to the first token of document `index` of a split, which must exist, and *tokens to
 * its length, at least 1. For a rank's part: an error says how to make it again. */
int sgt_made_document(sgt_made *s, int split, uint64_t index, uint64_t *start, uint64_t *tokens,
                      sgt_error *err);

#endif
