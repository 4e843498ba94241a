/* pipeline.h: corpora in a scratch folder, and what sgt_tokenize ought to make of them, worked out
 * the slow way: every document read whole, encoded whole, laid end to end, and cut afterwards. */
#ifndef SGT_TESTS_PIPELINE_H
#define SGT_TESTS_PIPELINE_H

#include "tokenize/sgt_tokenize.h"

#include <stddef.h>
#include <stdint.h>

typedef struct stream {
    uint16_t *ids;
    size_t count;
    uint64_t *starts; /* of documents, in tokens from the first */
    size_t documents;
} stream;

void enter_scratch(void); /* an empty folder of its own is the working directory */
void leave_scratch(void);

void put_text(const char *path, const void *text, size_t n);
size_t get_file(char **out, const char *path); /* malloc'd */

/* Mixed text of about n bytes, the same for the same seed: words, numbers, white space, letters
 * without spaces, long runs, literal <|endoftext|>, and, where `odd`, bytes that are not UTF-8.
 * malloc'd, *n set. */
char *mixed_text(uint64_t seed, size_t *n, int odd);

/* The tokens of documents `paths` for one split, as one stream. special, replace as the options
 * say. */
stream slow_stream(const char *const *paths, size_t count, const sgt_tokenize_options *o,
                   int split);
void free_stream(stream *s);

/* OUT holds that stream in shards of o->shard_tokens, with the right headers and indices, as far as
 * `split` goes. */
void expect_shards(const char *out, const char *split, const stream *s, uint64_t shard_tokens);

/* A run's progress, with itself as the context, that asks it to stop at the call number `after`. */
typedef struct stopper {
    sgt_stop stop;
    int after, calls;
    uint64_t first_done;
} stopper;
void stop_after(void *ctx, uint64_t done, uint64_t total, uint64_t tokens);

/* Two folders hold the same names with the same bytes. */
void expect_same_folders(const char *a, const char *b);
int folder_is_gone(const char *path);

#endif
