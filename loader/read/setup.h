/* setup.h: the base of a ring of ring.h: an io_uring with the features that the machine grants, or
 * a pool of threads that call pread; and the state that the rings of a reader share. Only for
 * ring.c and setup.c, which call each other: setup.c opens a ring to find out what is available,
 * and ring.c makes and replaces rings through setup.c. */
#ifndef SGT_SETUP_H
#define SGT_SETUP_H

#include <liburing.h>
#include <sys/types.h>

#include "loader/read/thread_pool.h"
#include "loader/read/files.h"
#include "loader/read/ring.h"

struct sgt_rings {
    const sgt_set *set;
    sgt_warn_once once;
    sgt_files *files;
    /* alignment in bytes of shard 0's reads at open; no shard gets a larger one, even if direct
     * reads are refused later */
    size_t align;
    int pread;      /* 1: read by pread in threads; decided at open */
    int plain;      /* 1: make rings without FLAGS (setup.c); decided at open */
    unsigned order; /* atomic: see make_ring in setup.c */
    char detail[256];
};

/* A read in flight, in the kernel or in the thread pool. read NULL: the slot is free. */
typedef struct flight {
    sgt_ring_read *read;
    sgt_thread_pool_job job;
} flight;

struct sgt_ring {
    sgt_rings *all;
    struct io_uring ring;
    int has_ring, enabled;
    unsigned flags; /* the ring's IORING_SETUP flags */
    /* end of a pipe that reports when a closed ring has no reads in flight; -1: no pipe */
    int pipe;
    /* (shards): 1 if the shard is registered; NULL: files are not registered */
    uint8_t *registered;
    char *memory;
    size_t memory_bytes;
    int memory_registered;
    sgt_thread_pool *pool; /* replaces the ring if it is not NULL */
    int error;             /* errno because of which the pool replaces the ring */
    int ruined;            /* errno with which the ring failed, if nothing can replace it; else 0 */
    int closing;
    pid_t pid;
    unsigned depth, flying;
    sgt_ring_read *first, **end; /* queue of reads that wait for a flight */
    flight *flights;             /* (depth) */
    /* (depth): indices of flights; slots[flying .. depth-1] are the free ones */
    unsigned *slots;
};

/* Make an io_uring (`plain`: one that any thread may use), or else a thread pool. Returns 0 if out
 * of memory. */
int sgt_setup_get(sgt_ring *r, int plain);

/* Replace a ring that failed with this errno by a thread pool. Returns 0 if out of memory. */
int sgt_setup_replace(sgt_ring *r, int error);

/* Enable the ring: before the first submission, from the thread that submits. Returns 0, or a
 * negative errno. */
int sgt_setup_enable(sgt_ring *r);

void sgt_setup_leave(sgt_ring *r);

/* Close the ring, from a thread that may not wait for its completions, and wait until no read is in
 * flight. Return 0 if it cannot be known when that is. */
int sgt_setup_leave_from_afar(sgt_ring *r);

#endif
