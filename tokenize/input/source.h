/* source.h: read an input as the stream of bytes to tokenize: a file as it is, the unpacked bytes
 * of .gz and .zst, the output of a filter, or standard input. One thread at a time.
 *
 *     sgt_source *s;
 *     size_t n = 0;
 *     int end = 0;
 *     if (sgt_source_open(&s, &corpus->files[i], stop, NULL, &err) < 0) ...;
 *     if (sgt_source_read(s, text, &n, sizeof text, &end, &err) < 0) ...;
 *     sgt_source_close(s); */
#ifndef SGT_SOURCE_H
#define SGT_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"

typedef struct sgt_source sgt_source;

/* Open f. stop, cancel: either ends the wait for a stream (SGT_ESTOPPED). f and both must outlive
 * the source. */
int sgt_source_open(sgt_source **out, const sgt_corpus_file *f, const sgt_stop *stop,
                    const sgt_stop *cancel, sgt_error *err);
void sgt_source_close(sgt_source *s); /* NULL is allowed */

/* Continue at byte `at`; only for a file that is read as it is. */
int sgt_source_seek(sgt_source *s, uint64_t at, sgt_error *err);

/* Read into p[*n ... want) and advance *n; to less than `want` only at the end. Set *end to 1 once
 * the stream is known to have ended, which may take another call. On failure, p[0 ... *n) is still
 * valid. */
int sgt_source_read(sgt_source *s, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err);

/* Return the bytes of the file on disk that have been read so far. */
uint64_t sgt_source_raw(const sgt_source *s);

#endif
