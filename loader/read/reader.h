/* reader.h: the interface that preload.c, mmap.c and uring.c implement, and the list of these
 * readers. A reader reads tokens at given shards and offsets. It knows nothing of batches and
 * outputs. Of the sampling it knows only whether rows come in the order of the files, or in blocks
 * (see blocks.h).
 *
 * open creates the state that all threads share and that never changes; cursor_open creates the
 * state of one thread. fetch returns, for each of n windows of at most T+1 tokens, a pointer to its
 * first token. The pointer is valid until the next fetch on that cursor. It points into memory that
 * holds the set, or into buffers of the cursor. The caller must not read outside the window.
 *
 * expect is a hint: the windows that a coming fetch will ask for. It is NULL if a reader has no use
 * for it. The caller then fetches the announced windows in the order in which it announced them:
 * each fetch asks for exactly the windows of one expect call, in the same order. expect is cheap
 * and never waits. It returns 0 if there is no room now: announce the windows again after the next
 * fetch. n = 0 cancels all expected windows; call it before windows are fetched that are not the
 * next expected ones. */
#ifndef SGT_READER_H
#define SGT_READER_H

#include <stdint.h>

#include "loader/sample/mix.h"
#include "loader/shards/set.h"

/* The functions of a reader. The set outlives it. Functions with an `err` return 0, or a negative
 * SGT_E* with *err filled in. */
typedef struct sgt_reader_ops {
    /* A fetch asks for at most o->batch / o->ranks windows. The mix, which outlives the reader too,
     * computes which windows a batch has. If the reader does not read in its usual way, it sets
     * *remark to a constant text such as "through the page cache". If this machine does not support
     * what the reader needs, it returns SGT_EUNSUPPORTED with the reason as the error's text, and
     * mmap is used instead. */
    int (*open)(void **reader, const char **remark, const sgt_set *set, const sgt_loader_options *o,
                const sgt_mix *mix, sgt_error *err);
    void (*close)(void *reader);
    /* NULL: a thread needs no state, and the reader itself is passed as the cursor */
    int (*cursor_open)(void **cursor, void *reader, sgt_error *err);
    void (*cursor_close)(void *cursor);
    int (*fetch)(void *cursor, const sgt_window *windows, uint32_t n, const void **tokens,
                 sgt_error *err);
    int (*expect)(void *cursor, const sgt_window *windows, uint32_t n);
    /* number of windows to announce ahead of their fetch; batch.c announces at least one batch.
     * Unused if expect is NULL */
    uint32_t ahead;
    /* Check the windows of the last fetch after the caller has copied their tokens: fail if the
     * copied tokens may differ from the files' content. NULL: no check is needed. */
    int (*verify)(void *cursor, const sgt_window *windows, uint32_t n, const void **tokens,
                  sgt_error *err);
} sgt_reader_ops;

/* Calls X(name) for each reader, in the order of sgt_reader. The functions of reader `name` are in
 * sgt_read_NAME. */
#define SGT_READ_ALL(X) X(preload) X(mmap) X(uring)

/* The names of readers, in their order, and NULL: for options whose value is such a name. */
extern const char *const sgt_reader_words[];

#define SGT_READ_DECLARE(name) extern const sgt_reader_ops sgt_read_##name;
SGT_READ_ALL(SGT_READ_DECLARE)

#endif
