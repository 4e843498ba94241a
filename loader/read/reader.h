/* reader.h: the interface that preload.c, mmap.c and uring.c implement, and the list of these
 * readers. A reader knows shards and offsets, but no batches and outputs, and of the sampling
 * only whether rows come in the order of the files or in blocks (blocks.h computes those).
 *
 * open makes the state that all threads share and that never changes; cursor_open makes one
 * thread's state. fetch returns, for each of n windows of at most T+1 tokens, a pointer to its
 * first token. It is valid until the next fetch on that cursor and points into memory that holds
 * the set, or into slots of the cursor. The caller must not read outside the window.
 *
 * expect is a hint: the windows that a coming fetch will ask for. It is NULL if a reader has no use
 * for it. Expected fetches come in the order in which they were announced, with the same windows in
 * the same order, as many as a fetch takes. expect is cheap and never waits. It returns 0 if there
 * is no room now: announce the windows again after the next fetch. n = 0 cancels all expected
 * windows; call it before windows are fetched that are not the next expected ones. */
#ifndef SGT_READER_H
#define SGT_READER_H

#include <stdint.h>

#include "loader/sample/mix.h"
#include "loader/shards/set.h"

/* The functions of a reader. The set outlives it. Functions with an `err` return 0, or a negative
 * SGT_E* with *err filled in. */
typedef struct sgt_reader_ops {
    /* A fetch asks for at most o->batch / o->ranks windows. The mix, which outlives the reader too,
     * computes which windows a batch has. Sets *remark, a constant text, to the way in which it
     * reads if that is not the usual one: "through the page cache". If this machine refuses what it
     * needs, it returns SGT_EUNSUPPORTED, with the reason as the error's text; mmap replaces it
     * then. */
    int (*open)(void **reader, const char **remark, const sgt_set *set, const sgt_loader_options *o,
                const sgt_mix *mix, sgt_error *err);
    void (*close)(void *reader);
    /* NULL: a thread needs no state, and the reader takes the place of its cursor */
    int (*cursor_open)(void **cursor, void *reader, sgt_error *err);
    void (*cursor_close)(void *cursor);
    int (*fetch)(void *cursor, const sgt_window *windows, uint32_t n, const void **tokens,
                 sgt_error *err);
    int (*expect)(void *cursor, const sgt_window *windows, uint32_t n);
    /* how many windows to announce ahead of the fetch; at least a batch's, unless expect is NULL */
    uint32_t ahead;
    /* Check the windows of the last fetch after the caller has copied their tokens: fail if these
     * may not be the files'. NULL: no check is needed. */
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
