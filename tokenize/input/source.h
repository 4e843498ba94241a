/* source.h: reads inputs as streams of the bytes to tokenize. One function reads every kind of
 * input: an ordinary file, the decompressed bytes of .gz and .zst, the output of a filter, or
 * standard input.
 *
 *     sgt_source *s;
 *     size_t n = 0;
 *     int end = 0;
 *     if (sgt_source_open(&s, &corpus->files[i], stop, NULL, &err) < 0) ...;
 *     if (sgt_source_read(s, text, &n, sizeof text, &end, &err) < 0) ...;
 *     sgt_source_close(s);
 *
 * Gzip (RFC 1952) and zstd (RFC 8878) are decompressed a buffer at a time. A file may have several
 * members or frames. As in the gzip program, zeros after a gzip member are padding, and other bytes
 * there are ignored. Anything else is damage: an error, or, with --skip-bad, the end of the stream.
 * However the stream is read, it has the same bytes before the damage.
 *
 * A decompressor's window determines its memory: 32 KiB for gzip, at most 128 MiB for zstd. Like
 * the zstd program, sgt refuses a zstd frame that needs more.
 *
 * A file must have the size and the time stamp that it had when the inputs were listed, until its
 * last byte is read. Otherwise the bytes read may be a mixture of two contents, and reading fails.
 *
 * A compressed or filtered file takes time to read. It can be opened before it is needed; a
 * separate thread then reads it ahead.
 *
 * Only one thread at a time may use a source. */
#ifndef SGT_SOURCE_H
#define SGT_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"

typedef struct sgt_source sgt_source;

/* Create a source for file f. The file is opened at the first read. If `stop` or `cancel` is
 * requested, waiting for a stream ends with SGT_ESTOPPED. f and both stops must outlive the
 * source. */
int sgt_source_open(sgt_source **out, const sgt_corpus_file *f, const sgt_stop *stop,
                    const sgt_stop *cancel, sgt_error *err);

/* maximum number of bytes that a read-ahead thread reads ahead of the caller */
#define SGT_AHEAD_BYTES ((size_t)2 << 20)
/* Start a thread that opens the file now, and reads it up to SGT_AHEAD_BYTES ahead of the caller.
 * If no thread can be started, the caller reads the file itself. sgt_source_read reports all
 * errors, after the bytes that could be read. Closing the source early waits for a filter that has
 * closed its output but is still running, unless `stop` or `cancel` is requested. */
void sgt_source_ahead(sgt_source *s);

void sgt_source_close(sgt_source *s); /* NULL is allowed */

/* Continue reading at byte `at`. The file must be neither compressed nor filtered. */
int sgt_source_seek(sgt_source *s, uint64_t at, sgt_error *err);

/* Read into p[*n ... want), and advance *n. *n stays less than `want` only at the end of the stream
 * or after a failure. Set *end to 1 when the stream has ended; detecting this may take one more
 * call. After a failure, p[0 ... *n) is still valid. */
int sgt_source_read(sgt_source *s, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err);

/* Describe the bytes at the end of the file that were skipped. The result is valid once the stream
 * has ended. Its text is empty if nothing was skipped. Its code is 0 if the bytes are garbage after
 * a gzip member, and not 0 if they are damaged. */
const sgt_error *sgt_source_left(const sgt_source *s);

/* Return how many bytes of the file on disk have been read so far. If the file is neither
 * compressed nor filtered, this is the offset of the next byte. */
uint64_t sgt_source_raw(const sgt_source *s);

/* ---- the hash of a stream ----
 *
 * A stream is hashed in blocks, and the hash of each block is the seed for the next block. A run
 * that resumes in the middle of a large file therefore rereads only the block in which the earlier
 * run stopped. */

#define SGT_HASH_BLOCK ((uint64_t)4 << 20)

typedef struct sgt_stream_hash {
    XXH3_state_t *state; /* allocated and freed by the caller */
    uint64_t at;         /* bytes of the stream hashed so far */
    uint64_t block;      /* hash of all complete blocks */
} sgt_stream_hash;

/* Begin hashing at byte `at`, a multiple of SGT_HASH_BLOCK. `block` is the hash of the blocks
 * before it. At the beginning of a stream, both are 0. */
void sgt_stream_hash_begin(sgt_stream_hash *h, uint64_t at, uint64_t block);
void sgt_stream_hash_add(sgt_stream_hash *h, const void *bytes, size_t n);
/* Return the hash of the bytes added so far. More bytes can be added afterwards. */
uint64_t sgt_stream_hash_now(const sgt_stream_hash *h);

#endif
