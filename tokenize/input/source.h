/* source.h: reads each input as a stream, that is, as the sequence of bytes that are tokenized. The
 * same functions read all kinds of inputs: the bytes of a file, the decompressed bytes of a .gz or
 * .zst file, the output of a filter, and standard input.
 *
 *     sgt_source *s;
 *     size_t n = 0;
 *     int end = 0;
 *     if (sgt_source_open(&s, &corpus->files[i], stop, NULL, &err) < 0) ...;
 *     if (sgt_source_read(s, text, &n, sizeof text, &end, &err) < 0) ...;
 *     sgt_source_close(s);
 *
 * Gzip (RFC 1952) and zstd (RFC 8878) are decompressed a buffer at a time. A file may consist of
 * several gzip members or zstd frames. As in the gzip program, zeros after a gzip member are
 * padding, and other bytes after the last member are ignored, with a notice. Any other invalid data
 * is damage. Damage is an error or, with --skip-bad, ends the stream. The bytes that are delivered
 * before the damage are always the same, however the stream is read.
 *
 * The memory for decompression is mainly the window: 32 KiB for gzip, and at most 128 MiB for zstd.
 * Like the zstd program, sgt refuses a zstd frame that needs a larger window.
 *
 * Until its last byte has been read, a file must have the size and the modification time that it
 * had when the inputs were listed. If either has changed, reading fails, because the bytes read may
 * be a mixture of the old and the new contents.
 *
 * Because decompressing or filtering a file takes time, such a file can be opened before it is
 * needed. A separate thread then reads it ahead.
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

/* Set *out to a new source, from which the stream of the file f is read. The file is opened at the
 * first read or seek. If a stop is requested through `stop` or `cancel`, waiting for bytes ends
 * with SGT_ESTOPPED. f, `stop` and `cancel` must outlive the source. */
int sgt_source_open(sgt_source **out, const sgt_corpus_file *f, const sgt_stop *stop,
                    const sgt_stop *cancel, sgt_error *err);

/* maximum number of bytes that a read-ahead thread has read but the caller has not */
#define SGT_AHEAD_BYTES ((size_t)2 << 20)
/* Start a thread that opens the file immediately, and reads up to SGT_AHEAD_BYTES ahead of the
 * caller. If no thread can be started, sgt_source_read reads the file. All errors are returned by
 * sgt_source_read, after the bytes that could be read. If the file has a filter that has closed its
 * output but is still running, closing the source waits until the filter ends or a stop is
 * requested. */
void sgt_source_ahead(sgt_source *s);

void sgt_source_close(sgt_source *s); /* NULL is allowed */

/* Open the file if necessary, and continue reading at offset `at`. The file must not be filtered.
 * If it is compressed, `at` must be 0, and nothing must have been read. */
int sgt_source_seek(sgt_source *s, uint64_t at, sgt_error *err);

/* Read bytes into the buffer p, from index *n up to index `want`, and advance *n past the bytes
 * read. *n remains less than `want` only at the end of the stream or after a failure. If the end of
 * the stream was detected, set *end to 1. Detecting the end may take one call more than reading the
 * last byte. After a failure, the first *n bytes at p are still valid. */
int sgt_source_read(sgt_source *s, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err);

/* Return a description of the bytes at the end of the file that were skipped. Call this after the
 * stream has ended. If nothing was skipped, the `text` of the result is empty. The `code` of the
 * result is 0 if the skipped bytes are garbage after a gzip member, and not 0 if they are
 * damaged. */
const sgt_error *sgt_source_left(const sgt_source *s);

/* Return the number of bytes of the file on disk that have been read so far. If the file is neither
 * compressed nor filtered, this is the offset of the next byte to be read. */
uint64_t sgt_source_raw(const sgt_source *s);

/* ---- the hash of a stream ----
 *
 * A stream is hashed in blocks of SGT_HASH_BLOCK bytes. The hash of each block is the seed with
 * which the next block is hashed. A run that resumes in the middle of a large file therefore only
 * has to reread the block in which the earlier run stopped. */

#define SGT_HASH_BLOCK ((uint64_t)4 << 20)

typedef struct sgt_stream_hash {
    XXH3_state_t *state; /* allocated and freed by the caller */
    uint64_t at;         /* number of bytes of the stream that have been hashed */
    uint64_t block;      /* hash of all complete blocks */
} sgt_stream_hash;

/* Begin hashing a stream at offset `at`, a multiple of SGT_HASH_BLOCK. `block` is the hash of the
 * blocks before this offset. At the beginning of a stream, `at` and `block` are 0. */
void sgt_stream_hash_begin(sgt_stream_hash *h, uint64_t at, uint64_t block);
void sgt_stream_hash_add(sgt_stream_hash *h, const void *bytes, size_t n);
/* Return the hash of all bytes of the stream that have been added. More bytes can be added after
 * this call. */
uint64_t sgt_stream_hash_now(const sgt_stream_hash *h);

#endif
