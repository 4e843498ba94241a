/* source.h: read inputs as streams of the bytes to tokenize. One function reads every kind of
 * source: a file as it is, the unpacked bytes of .gz and .zst, the output of a filter, or standard
 * input.
 *
 * Gzip (RFC 1952) and zstd (RFC 8878) are unpacked a buffer at a time. A file may have several
 * members or frames. Zeros after a gzip member are padding, and other bytes there are ignored, both
 * as gzip does. Anything else is damage: an error, or, with --skip-bad, the end of the stream. The
 * bytes before the damage are the same however they are read. The window bounds the memory: 32 KiB
 * for gzip, at most 128 MiB for zstd. A zstd frame that needs more is refused, as by the zstd
 * program.
 *
 *     sgt_source *s;
 *     size_t n = 0;
 *     int end = 0;
 *     if (sgt_source_open(&s, &corpus->files[i], stop, NULL, &err) < 0) ...;
 *     if (sgt_source_read(s, text, &n, sizeof text, &end, &err) < 0) ...;
 *     sgt_source_close(s);
 *
 * A file must have the size and the time stamp that it had when the inputs were listed, until its
 * last byte is read. Otherwise the bytes read may be a mixture of two contents, and reading fails.
 *
 * A file that takes time (packed, or read through a filter) can be opened ahead of its turn; then a
 * thread of the source's own reads it.
 *
 * One thread at a time may use a source. */
#ifndef SGT_SOURCE_H
#define SGT_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"

typedef struct sgt_source sgt_source;

/* Create a source of f, which is opened at the first read. A request of `stop` or `cancel` ends a
 * wait for a stream, with SGT_ESTOPPED. f and both stops must outlive the source. */
int sgt_source_open(sgt_source **out, const sgt_corpus_file *f, const sgt_stop *stop,
                    const sgt_stop *cancel, sgt_error *err);

/* Start a thread that opens the file now, and reads it up to SGT_AHEAD_BYTES ahead of the caller.
 * All errors are reported by sgt_source_read, after the bytes that could be read. If the system
 * refuses the thread, the caller reads the file itself when its turn comes. If a filter has ended
 * its output but still runs, closing the source early waits for the filter, unless `stop` or
 * `cancel` is requested. */
#define SGT_AHEAD_BYTES ((size_t)2 << 20)
void sgt_source_ahead(sgt_source *s);

void sgt_source_close(sgt_source *s); /* NULL is allowed */

/* Continue reading at byte `at`. Only for a file that is read as it is. */
int sgt_source_seek(sgt_source *s, uint64_t at, sgt_error *err);

/* Read into p[*n ... want) and advance *n. *n stays below `want` only at the end of the stream. Set
 * *end to 1 once the stream is known to have ended, which may take another call. On failure, p[0
 * ... *n) is still valid. */
int sgt_source_read(sgt_source *s, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err);

/* Return a description of what was left out of the stream, once it has ended. Its text is empty if
 * nothing was left out, and its code is 0 unless the file is damaged there. */
const sgt_error *sgt_source_left(const sgt_source *s);

/* Return how many bytes of the file on disk have been read so far. If the file is read as it is,
 * this is the offset of the next byte to read. */
uint64_t sgt_source_raw(const sgt_source *s);

/* ---- the hash of a stream ----
 *
 * A stream is hashed in blocks; the hash of each block is the seed for the next one. So a run that
 * resumes within a large file has to read again only the block in which it stopped. */

#define SGT_HASH_BLOCK ((uint64_t)4 << 20)

typedef struct sgt_stream_hash {
    XXH3_state_t *state; /* allocated and freed by the caller */
    uint64_t at;         /* bytes of the stream hashed so far */
    uint64_t block;      /* hash of all complete blocks */
} sgt_stream_hash;

/* Begin at byte `at`, a multiple of SGT_HASH_BLOCK. `block` is the hash of the blocks before it.
 * Both are 0 at the beginning of a stream. */
void sgt_stream_hash_begin(sgt_stream_hash *h, uint64_t at, uint64_t block);
void sgt_stream_hash_add(sgt_stream_hash *h, const void *bytes, size_t n);
/* Return the hash of the bytes so far. More bytes can be added afterwards. */
uint64_t sgt_stream_hash_now(const sgt_stream_hash *h);

#endif
