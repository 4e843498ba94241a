/* ahead.h: read the files of a corpus one after the other, each as the stream of source.h. Threads
 * of the reader prepare the files that cost time (packed, or read through a filter) ahead of their
 * turn, several at once.
 *
 *     sgt_ahead *a;
 *     if (sgt_ahead_new(&a, &(sgt_ahead_options){.corpus = c, .threads = 2}, &err) < 0) ...;
 *     for (uint64_t i = 0; i < c->count; i++) {
 *         if (sgt_ahead_begin(a, i, &err) < 0) ...;
 *         while (!end && sgt_ahead_read(a, text, &n, sizeof text, &end, &err) == 0) ...;
 *         sgt_ahead_finish(a);
 *     }
 *     sgt_ahead_free(a);
 *
 * At most 2 * threads such files are held at once, each with at most SGT_AHEAD_BYTES in memory. An
 * error in a file is reported when its turn comes, after the bytes that could be read. One thread
 * at a time may call these functions. */
#ifndef SGT_AHEAD_H
#define SGT_AHEAD_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"

#define SGT_AHEAD_BYTES ((size_t)2 << 20)

typedef struct sgt_ahead_options {
    const sgt_corpus *corpus;
    size_t threads;                /* threads that read ahead; 0: one */
    const sgt_stop *stop, *cancel; /* requesting either ends every wait with SGT_ESTOPPED */
} sgt_ahead_options;

typedef struct sgt_ahead sgt_ahead;

int sgt_ahead_new(sgt_ahead **out, const sgt_ahead_options *o, sgt_error *err);
void sgt_ahead_free(sgt_ahead *a); /* NULL is allowed */

/* Turn to file `file`: any file at first, and the next one from then on. The threads start at the
 * first file that is packed or filtered. */
int sgt_ahead_begin(sgt_ahead *a, uint64_t file, sgt_error *err);
/* Continue the current file at byte `at`. Allowed only right after sgt_ahead_begin, for a file that
 * is neither compressed nor read through a program (--filter). */
int sgt_ahead_seek(sgt_ahead *a, uint64_t at, sgt_error *err);
/* Do what sgt_source_read and sgt_source_raw do, for the current file. */
int sgt_ahead_read(sgt_ahead *a, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err);
uint64_t sgt_ahead_raw(const sgt_ahead *a);
void sgt_ahead_finish(sgt_ahead *a); /* end the current file; does nothing if none has begun */

#endif
