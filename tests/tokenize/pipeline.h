/* pipeline.h: input files in a temporary folder, and the expected output of sgt_tokenize, made in a
 * slow and simple way: each document is read and encoded whole, and the stream of ids is then cut
 * into shards. */
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

/* Bytes of text per unit in this thread's calls of sgt_tokenize; 0: 256 KiB. */
extern _Thread_local size_t piece_bytes;

void put_text(const char *path, const void *text, size_t n);
size_t get_file(char **out, const char *path); /* returns the size; *out is malloc'd */

/* Return malloc'd mixed text of about *n bytes, and set *n; the same seed gives the same text. It
 * has words, numbers, white space, letters without spaces, long runs and literal <|endoftext|>. If
 * `odd` is set, it also has bytes that are not UTF-8. */
char *mixed_text(uint64_t seed, size_t *n, int odd);
void put_mixed(const char *path, uint64_t seed, size_t n, int odd);

/* sgt_tokenize, of one input. */
int tokenize(sgt_tokenize_options o, const char *input, const char *out, sgt_tokenize_result *r,
             sgt_error *err);

/* Return the tokens of the documents `paths` that belong to `split`, one document after another.
 * Uses o->special_eot, o->invalid_utf8 and o->val_fraction. */
stream slow_stream(const char *const *paths, size_t count, const sgt_tokenize_options *o,
                   int split);
void free_stream(stream *s);
SCOPED_STRUCT(stream, free_stream)

/* Check that OUT holds that stream for `split`, in shards of `shard_tokens` tokens, with the right
 * headers and indexes. */
void expect_shards(const char *out, const char *split, const stream *s, uint64_t shard_tokens);

/* Requests a stop `after` calls after the first call of a run's progress function, whose ctx it is.
 * The first call tells what earlier runs have done. */
typedef struct stopper {
    sgt_stop stop;
    int after, calls;
    uint64_t first_done, first_tokens;
} stopper;
void stop_after(void *ctx, uint64_t done, uint64_t total, uint64_t tokens);

/* Tokenize `in` until OUT is complete, each time with other numbers of threads and sizes of pieces. Stop
 * after `after` calls of progress, and after `more` calls more each time. Return the number of stops. */
int tokenize_in_stops(sgt_tokenize_options o, const char *out, int after, int more);

/* Check that two folders hold files of the same names with the same bytes; or one file. */
void expect_same_folders(const char *a, const char *b);
void expect_same_file(const char *a, const char *b, const char *name);
int folder_is_gone(const char *path);

#endif
