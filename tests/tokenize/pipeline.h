/* pipeline.h: writes input files in a temporary folder, and computes the expected output of
 * sgt_tokenize in a slow and simple way: each whole document is read and encoded at once, and the
 * stream of all ids is then divided into shards. */
#ifndef SGT_TESTS_PIPELINE_H
#define SGT_TESTS_PIPELINE_H

#include "tests/tokenize/common.h"

#include <stddef.h>
#include <stdint.h>

typedef struct stream {
    uint16_t *ids;
    size_t count;
    uint64_t *starts; /* (documents): index of each document's first token */
    size_t documents;
} stream;

void enter_scratch(void); /* make an empty temporary folder the working directory */
void leave_scratch(void);

/* Bytes of text per unit of work in this thread's calls of sgt_tokenize; 0: 256 KiB. */
extern _Thread_local size_t piece_bytes;

void put_text(const char *path, const void *text, size_t n);
size_t get_file(char **out, const char *path); /* returns the size; *out is malloc'd */

/* Return malloc'd mixed text of about *n bytes, and set *n; the same seed gives the same text. It
 * has words, numbers, white space, letters without spaces, long runs and literal <|endoftext|>. If
 * `odd` is set, it also has bytes that are not UTF-8. */
char *mixed_text(uint64_t seed, size_t *n, int odd);
void put_mixed(const char *path, uint64_t seed, size_t n, int odd);

/* Call sgt_tokenize with one input. */
int tokenize(sgt_tokenize_options o, const char *input, const char *out, sgt_tokenize_result *r,
             sgt_error *err);

/* Return the tokens of the documents `paths` that belong to `split`, one document after another.
 * Uses o->special_eot, o->invalid_utf8 and o->val_fraction. */
stream slow_stream(const char *const *paths, size_t count, const sgt_tokenize_options *o,
                   int split);
void free_stream(stream *s);
SCOPED_STRUCT(stream, free_stream)

/* Check that OUT holds the stream `s` as `split`, in shards of `shard_tokens` tokens, with the
 * right headers and indexes. */
void expect_shards(const char *out, const char *split, const stream *s, uint64_t shard_tokens);

/* Context of stop_after, a progress function that requests a stop `after` calls after the first one
 * of a run. The first call reports what earlier runs have done; first_done and first_tokens keep
 * that. */
typedef struct stopper {
    sgt_stop stop;
    int after, calls;
    uint64_t first_done, first_tokens;
} stopper;
void stop_after(void *ctx, uint64_t done, uint64_t total, uint64_t tokens);

/* Tokenize `in` in several runs until OUT is complete. Each run has another number of threads and
 * another size of units. The first run is stopped after `after` calls of its progress function, and
 * each later run after `more` calls more than the run before. Return the number of stops. */
int tokenize_in_stops(sgt_tokenize_options o, const char *out, int after, int more);

/* Check that two folders have the same file names with the same bytes (expect_same_folders), or
 * that the file `name` is the same in both (expect_same_file). */
void expect_same_folders(const char *a, const char *b);
void expect_same_file(const char *a, const char *b, const char *name);
int folder_is_gone(const char *path);

#endif
