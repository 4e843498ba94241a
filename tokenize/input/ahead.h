/* ahead.h: the files of a corpus one after the other, each as source.h's stream, and those that
 * cost time to read (unpacked, or through a filter) several at once and before their turn, by
 * threads of their own.
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
 * Of each such file at most SGT_AHEAD_BYTES wait in memory, of 2 * threads files at once. What goes
 * wrong with a file is said when its turn comes, after what could be read of it. One thread at a
 * time calls. */
#ifndef SGT_AHEAD_H
#define SGT_AHEAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "corpus.h"

#define SGT_AHEAD_BYTES ((size_t)2 << 20)

typedef struct sgt_ahead_options {
    const sgt_corpus *corpus;
    size_t threads;                /* that read ahead; 0: one */
    const sgt_stop *stop, *cancel; /* either ends every wait (SGT_ESTOPPED) */
} sgt_ahead_options;

typedef struct sgt_ahead sgt_ahead;

int sgt_ahead_new(sgt_ahead **out, const sgt_ahead_options *o, sgt_error *err);
void sgt_ahead_free(sgt_ahead *a); /* NULL is fine */

/* Turns to file `file`, any at first and from then on the next. Threads start with the first that
 * is for them. */
int sgt_ahead_begin(sgt_ahead *a, uint64_t file, sgt_error *err);
/* Of a file that is read as it is, straight after its beginning: goes on at byte `at`. */
int sgt_ahead_seek(sgt_ahead *a, uint64_t at, sgt_error *err);
/* As sgt_source_read and sgt_source_raw, of that file. */
int sgt_ahead_read(sgt_ahead *a, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err);
uint64_t sgt_ahead_raw(const sgt_ahead *a);
void sgt_ahead_finish(sgt_ahead *a); /* with that file; where none has begun nothing happens */

#endif
