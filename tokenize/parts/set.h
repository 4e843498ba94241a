/* set.h: a finished set of shards, read again: the tokens of each split as one long run, and where its documents begin.
 *
 *     sgt_set *s;
 *     if (sgt_set_open(&s, "out", &err) < 0) ...;
 *     sgt_set_start(s, 0, 7, &at, &err);              // document 7 of the train split begins at token `at`
 *     sgt_set_ids(s, 0, at, 100, &ids, &err);         // 100 tokens from there on
 *     sgt_set_close(s);
 *
 * One thread at a time. Reads in the order of the set are buffered, and no file is open before the first of them. */
#ifndef SGT_SET_H
#define SGT_SET_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "shards/manifest.h"

#define SGT_SET_WINDOW ((size_t)1 << 19) /* tokens of one read at most */

typedef struct sgt_set sgt_set;

int sgt_set_open(sgt_set **out, const char *path, sgt_error *err); /* reads the manifest; *out only on success */
void sgt_set_close(sgt_set *s);                                    /* NULL is fine */
void sgt_set_rest(sgt_set *s); /* closes its files and gives back its buffers, until the next read */

const char *sgt_set_path(const sgt_set *s);
const sgt_manifest *sgt_set_manifest(const sgt_set *s);
uint64_t sgt_set_tokens(const sgt_set *s, int split);
uint64_t sgt_set_documents(const sgt_set *s, int split);

/* n tokens (at most SGT_SET_WINDOW, all of them in the split) from token `at` on; *ids is valid until the next call. */
int sgt_set_ids(sgt_set *s, int split, uint64_t at, size_t n, const uint16_t **ids, sgt_error *err);
/* The first token of document `index`; of one past the last: the number of tokens. */
int sgt_set_start(sgt_set *s, int split, uint64_t index, uint64_t *at, sgt_error *err);

#endif
