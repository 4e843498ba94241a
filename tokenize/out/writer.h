/* writer.h: writes the shards of one split, one after the other. Only one thread at a time may use
 * a writer. In the work folder, token ids are written to SPLIT_NNNNNN.bin.tmp, and the starts of
 * documents to SPLIT_NNNNNN.idx.tmp. When a shard is full, its header is written and its files are
 * flushed to disk. The files keep their temporary names until the journal counts the shard as
 * complete; then they are moved to the output folder under their final names. */
#ifndef SGT_WRITER_H
#define SGT_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/base/file.h"
#include "loader/shards/manifest.h"
#include "tokenize/sgt_tokenize.h"

/* maximum number of shards in a split; it is limited because the number in a shard's file name has
 * six digits */
#define SGT_WRITER_SHARDS 1000000

#define SGT_SPLITS 2
extern const char *const sgt_split_names[SGT_SPLITS]; /* "train" and "val" */

/* A file in .work that is written through a buffer.
 *
 *     sgt_sink s = {.fd = -1, .size = 1 << 16};
 *     rc = sgt_sink_open(&s, work, "journal", O_CREAT, &err);
 *     if (!rc) rc = sgt_sink_put(&s, p, n, &err);
 *     if (!rc) rc = sgt_sink_sync(&s, &err); // now it is on disk
 *     sgt_sink_free(&s); */
typedef struct sgt_sink {
    int fd; /* descriptor; -1: not open */
    char path[SGT_PATH];
    char *buffer;
    size_t used, size; /* used: number of bytes in `buffer`; size: capacity of `buffer` in bytes */
    /* running hash of the bytes that have been written from `buffer` to the file; NULL if the file
     * is not hashed */
    struct XXH3_state_s *hash;
} sgt_sink;

/* Open the file `name` in `folder` for reading and writing, as *s. The caller must have set s->size
 * and s->hash. `flags` is 0 or a combination of O_CREAT and O_TRUNC. */
int sgt_sink_open(sgt_sink *s, const char *folder, const char *name, int flags, sgt_error *err);
/* Truncate a file of an earlier run to its first `size` bytes, and continue writing at its new end.
 * If the file is shorter than `size`, return SGT_EFORMAT. */
int sgt_sink_cut(sgt_sink *s, uint64_t size, sgt_error *err);
int sgt_sink_put(sgt_sink *s, const void *p, size_t n, sgt_error *err);
int sgt_sink_flush(sgt_sink *s, sgt_error *err); /* write the bytes in the buffer */
/* write the bytes in the buffer to the file, and flush the file to disk */
int sgt_sink_sync(sgt_sink *s, sgt_error *err);
/* close the file and free the buffer; discard the bytes that are still in the buffer */
void sgt_sink_free(sgt_sink *s);

typedef struct sgt_writer sgt_writer;

typedef struct sgt_writer_options {
    const char *work;      /* folder for unfinished files */
    const char *split;     /* "train" */
    uint64_t shard_tokens; /* tokens of every shard but the last */
    const sgt_vocab *vocab;
} sgt_writer_options;

/* Open a writer for the shards of a split that follow the first `shards` shards, which are
 * complete. If an earlier run has begun the next shard, truncate its files to their first `tokens`
 * tokens and `documents` document starts; if both numbers are 0, create new files. The strings and
 * the vocabulary to which *o points must outlive the writer. */
int sgt_writer_open(sgt_writer **out, const sgt_writer_options *o, uint64_t shards, uint64_t tokens,
                    uint64_t documents, sgt_error *err);
/* close and free the writer; NULL is allowed; files of an unfinished shard stay in the work
 * folder */
void sgt_writer_close(sgt_writer *w);

uint64_t sgt_writer_tokens(const sgt_writer *w); /* tokens in the unfinished shard */
/* return the number of documents that start in the unfinished shard */
uint64_t sgt_writer_documents(const sgt_writer *w);
/* Return how many more tokens can be appended before the current shard is full. */
uint64_t sgt_writer_room(const sgt_writer *w);

/* Record that the token appended next is the first token of a document. */
int sgt_writer_document(sgt_writer *w, sgt_error *err);
/* Append n token ids to the current shard. n must not exceed sgt_writer_room(w). Each id is as wide
 * as the vocabulary requires (sgt_vocab_width). */
int sgt_writer_append(sgt_writer *w, const void *ids, size_t n, sgt_error *err);
int sgt_writer_sync(sgt_writer *w, sgt_error *err); /* flush everything appended to disk */

/* Complete the current shard, which must have at least one token, and describe it in *s. The id
 * appended next becomes the first of a new shard. */
int sgt_writer_finish(sgt_writer *w, sgt_manifest_shard *s, sgt_error *err);

/* Write the file name of a shard into name[64]: for example, "train", 7 and "bin" give
 * "train_000007.bin". */
void sgt_writer_name(char name[64], const char *split, uint64_t index, const char *suffix);
/* From `file`, the file name of a shard, make the name of the shard's document index, and write it
 * into name[64]: "x.idx" for "x.bin". */
void sgt_writer_index_name(char name[64], const char *file);
/* Write the name that the file `name` has in the work folder, before it is complete, into
 * temporary[80]: "x.bin.tmp" for "x.bin". */
void sgt_writer_temporary_name(char temporary[80], const char *name);
/* If `name` is the name of a shard's token file or document index (SPLIT_NNNNNN.bin or .idx), set
 * *split to the index of SPLIT in sgt_split_names and *index to NNNNNN, and return 1. Otherwise,
 * return 0. */
int sgt_writer_reads_name(const char *name, int *split, uint64_t *index);

#endif
