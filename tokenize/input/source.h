/* source.h: read inputs as streams of the bytes to tokenize. A source is one read function: for a
 * file as it is, the unpacked bytes of .gz and .zst, the output of a filter, or standard input.
 *
 * Gzip (RFC 1952) and zstd (RFC 8878) are unpacked a buffer at a time. Members or frames may follow
 * one another. Zeros after a gzip member are padding, and other bytes there are ignored, both as in
 * gzip itself; anything else is damage: an error, or, with --skip-bad, the end of the stream. The
 * bytes before it are the same however they are read. Memory is bounded by the window: 32 KiB for
 * gzip, at most 128 MiB for zstd. A zstd frame that needs more is refused, as the zstd program
 * does.
 *
 *     sgt_source *s;
 *     size_t n = 0;
 *     int end = 0;
 *     if (sgt_source_open(&s, &corpus->files[i], stop, NULL, &err) < 0) ...;
 *     if (sgt_source_read(s, text, &n, sizeof text, &end, &err) < 0) ...;
 *     sgt_source_close(s);
 *
 * A file must have the size and the time stamp it had when the inputs were listed. They must not
 * change until its last byte is read; otherwise the bytes read may never have been its content.
 *
 * A file that costs time (packed, or read through a filter) can be opened ahead of its turn: then a
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

/* Make a source of f, which is opened when it is first read. stop, cancel: either ends the wait
 * for a stream (SGT_ESTOPPED). f and both must outlive the source. */
int sgt_source_open(sgt_source **out, const sgt_corpus_file *f, const sgt_stop *stop,
                    const sgt_stop *cancel, sgt_error *err);

/* Have a thread open the file now, and read it up to SGT_AHEAD_BYTES ahead of the caller. All
 * errors are reported by sgt_source_read, after the bytes that could be read. If the system
 * refuses the thread, the caller reads the file itself when its turn comes. Closing the source
 * early waits for a filter that has ended its output and still runs, unless `stop` or `cancel` is
 * requested. */
#define SGT_AHEAD_BYTES ((size_t)2 << 20)
void sgt_source_ahead(sgt_source *s);

void sgt_source_close(sgt_source *s); /* NULL is allowed */

/* Continue at byte `at`; only for a file that is read as it is. */
int sgt_source_seek(sgt_source *s, uint64_t at, sgt_error *err);

/* Read into p[*n ... want) and advance *n; to less than `want` only at the end. Set *end to 1 once
 * the stream is known to have ended, which may take another call. On failure, p[0 ... *n) is still
 * valid. */
int sgt_source_read(sgt_source *s, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err);

/* Return what was left out of the stream, which has ended, in words: its text is empty if nothing
 * was, and its code is 0 unless the file is damaged there. */
const sgt_error *sgt_source_left(const sgt_source *s);

/* Return the bytes of the file on disk that have been read so far. For a file that is read as it
 * is, the next byte to read is at this offset. */
uint64_t sgt_source_raw(const sgt_source *s);

/* ---- the hash of a stream ----
 *
 * A stream is hashed in blocks: the hash of each is the seed of the next one's. So a run that
 * resumes within a large file needs only the block in which it stopped. */

#define SGT_HASH_BLOCK ((uint64_t)4 << 20)

typedef struct sgt_stream_hash {
    XXH3_state_t *state; /* the caller's */
    uint64_t at;         /* bytes of the stream so far */
    uint64_t block;      /* hash of all whole blocks */
} sgt_stream_hash;

/* Begin at byte `at`, a multiple of SGT_HASH_BLOCK, before which the blocks have the hash `block`;
 * both are 0 at the beginning. */
void sgt_stream_hash_begin(sgt_stream_hash *h, uint64_t at, uint64_t block);
void sgt_stream_hash_add(sgt_stream_hash *h, const void *bytes, size_t n);
/* Return the hash of the bytes so far, at which more can be added. */
uint64_t sgt_stream_hash_now(const sgt_stream_hash *h);

#endif
