/* reader.h: the interface of the readers, which preload.c, mmap.c and uring.c implement, and the
 * list of readers. A reader reads tokens at given offsets in given shards. It does not depend on
 * batches or outputs. It depends on the sampling only in one respect: whether rows come in the
 * order of the files, or in blocks (see blocks.h).
 *
 * open creates the state that all threads share and that never changes. cursor_open creates the
 * state of one thread. fetch returns a pointer to the first token of each of n windows, which have
 * at most T+1 tokens. The pointers are valid until the next fetch with the same cursor. They point
 * into memory that holds the set, or into buffers of the cursor. The caller must not read outside
 * the windows.
 *
 * expect announces the windows of a future fetch, so that the reader can read them ahead of time.
 * It is NULL if the reader does not read ahead. Each later fetch must be for exactly the windows of
 * one call of expect, in the order of these calls. expect is cheap and never waits. If it returns
 * 0, the reader has no room for more announcements, and the caller should announce the windows
 * again after the next fetch. A call with n = 0 cancels all announcements. Such a call is required
 * before the caller fetches any other windows. */
#ifndef SGT_READER_H
#define SGT_READER_H

#include <stdint.h>

#include "loader/sample/mix.h"
#include "loader/shards/set.h"

/* The functions of a reader. The set must outlive the reader. Each function with a parameter `err`
 * returns 0, or a negative SGT_E* with *err filled in. */
typedef struct sgt_reader_ops {
    /* Open a reader. A fetch will ask for at most o->batch / o->ranks windows. `mix` computes the
     * windows of each batch, and must outlive the reader. If files are read in an unusual way, set
     * *remark to a constant string such as "through the page cache". If this machine lacks
     * something that the reader needs, return SGT_EUNSUPPORTED with the reason in *err. In this
     * case, the caller opens the reader `mmap` instead. */
    int (*open)(void **reader, const char **remark, const sgt_set *set, const sgt_loader_options *o,
                const sgt_mix *mix, sgt_error *err);
    void (*close)(void *reader);
    /* function that opens a cursor, the reader's state for one thread. NULL: the reader needs no
     * such state, and callers pass the reader itself as the cursor */
    int (*cursor_open)(void **cursor, void *reader, sgt_error *err);
    void (*cursor_close)(void *cursor);
    int (*fetch)(void *cursor, const sgt_window *windows, uint32_t n, const void **tokens,
                 sgt_error *err);
    int (*expect)(void *cursor, const sgt_window *windows, uint32_t n);
    /* number of windows that batch.c announces (by calling `expect`) before it fetches them,
     * rounded up to entire batches. Not used if `expect` is NULL */
    uint32_t ahead;
    /* Check the windows of the last fetch, after the caller has copied their tokens. Return an
     * error if the copied tokens may differ from the content of the file. NULL: no check is
     * needed */
    int (*verify)(void *cursor, const sgt_window *windows, uint32_t n, const void **tokens,
                  sgt_error *err);
} sgt_reader_ops;

/* Expand to X(name) for each reader, in the order of the enum sgt_reader. The functions of the
 * reader NAME are in the variable sgt_read_NAME. */
#define SGT_READ_ALL(X) X(preload) X(mmap) X(uring)

/* names of the readers, in the order of the enum sgt_reader, followed by NULL. Used by command-line
 * options that choose a reader */
extern const char *const sgt_reader_words[];

#define SGT_READ_DECLARE(name) extern const sgt_reader_ops sgt_read_##name;
SGT_READ_ALL(SGT_READ_DECLARE)

#endif
