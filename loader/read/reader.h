/* reader.h: where windows come from: the interface that preload.c, mmap.c and uring.c implement,
 * and the list of them. A reader knows shards and offsets, and nothing of batches, samplings or
 * outputs.
 *
 * open makes what all threads share and never changes after; cursor_open what one thread needs.
 * fetch gives, for each of n windows of at most T+1 tokens, a pointer to its first token, good
 * until the next fetch on that cursor: into memory that holds the set, or into slots of the
 * cursor's own. Nothing outside the window may be touched through it.
 *
 * expect is a hint, and NULL in a reader that has no use for it: what a coming fetch will ask for.
 * Such fetches come in the order in which they were expected; the windows of each are as many as
 * fetch takes, and in the same order. It is cheap, and waits for nothing; 0: there is no room for
 * it now, say it again after the next fetch. A fetch of other windows leaves what is expected as it
 * is; n = 0 says that nothing of it will be asked for. A reader finds out by comparing windows, so
 * that a wrong hint costs time alone. */
#ifndef SGT_READER_H
#define SGT_READER_H

#include <stdint.h>

#include "sample/mix.h"
#include "shards/set.h"

/* Tests only: faults that a healthy machine does not show. Zero: none. */
typedef struct sgt_reader_fault {
    int ring_error;       /* the errno that making an io_uring fails with ... */
    unsigned rings_first; /* ... after this many have been made */
    /* ... that an io_uring of SINGLE_ISSUER and DEFER_TASKRUN is refused with */
    int flags_error;
    int enter_error;       /* ... that every call of one fails with ... */
    unsigned enters_first; /* ... after this many */
    int files_error;       /* ... that registering files fails with */
    int pipe_error;        /* ... that watching for a ring's end fails with */
    int memory_error;      /* ... that registering memory fails with */
    int direct_error;      /* ... that opening for O_DIRECT fails with */
    /* ... that direct reads fail with, though opening did not, after reads_first */
    int direct_read_error;
    int align_unknown; /* statx says nothing of alignments */
    /* reads return at most this many bytes (direct ones: or as few as they can) */
    size_t most_bytes;
    int first_error;       /* the errno that the first try of each read ends with */
    int read_error;        /* ... that every read ends with ... */
    unsigned reads_first;  /* ... after this many */
    unsigned ring_entries; /* of an io_uring, however many reads are in flight */
    unsigned most_files;   /* descriptors that are kept open */
    int no_cachestat;      /* the kernel is older than that call */
    int cache_error;       /* not 0: what the page cache has cannot be read from there after all */
    const char *memory;    /* the folder whose proc and sys say how much memory there is */
    uint32_t block_tokens, pool_blocks; /* not 0: of `block`, which with them is another sampling */
} sgt_reader_fault;

typedef struct sgt_reader_options {
    sgt_sampling sampling;
    const sgt_mix *mix; /* that windows come from; outlives the reader */
    uint32_t seq;       /* windows have at most seq + 1 tokens */
    uint32_t windows;   /* the most that a fetch asks for */
    sgt_notice notice;  /* called by one thread at a time */
    sgt_reader_fault fault;
} sgt_reader_options;

/* The set outlives the reader. Each call that can fail returns 0 or a negative SGT_E* with *err
 * filled in. */
typedef struct sgt_reader_ops {
    int (*open)(void **reader, const sgt_set *set, const sgt_reader_options *o, sgt_error *err);
    void (*close)(void *reader);
    /* for sgt_loader_info.reader_detail; lives as long as the reader */
    const char *(*detail)(const void *reader);
    int (*cursor_open)(void **cursor, void *reader, sgt_error *err);
    void (*cursor_close)(void *cursor);
    int (*fetch)(void *cursor, const sgt_window *windows, uint32_t n, const uint16_t **tokens,
                 sgt_error *err);
    int (*expect)(void *cursor, const sgt_window *windows, uint32_t n);
    /* windows that it wants to hear of ahead of the fetch; at least a batch where expect is not
     * NULL */
    uint32_t ahead;
    /* Of the windows of the last fetch, once their tokens have been read: whether those were the
     * files'. NULL: always. */
    int (*verify)(void *cursor, const sgt_window *windows, uint32_t n, const uint16_t **tokens,
                  sgt_error *err);
} sgt_reader_ops;

/* Every reader, by its name, in the order of sgt_reader: sgt_read_preload and so on are their
 * functions. */
#define SGT_READ_ALL(X) X(preload) X(mmap) X(uring)

#define SGT_READ_DECLARE(name) extern const sgt_reader_ops sgt_read_##name;
SGT_READ_ALL(SGT_READ_DECLARE)

#endif
