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
    sgt_reader_fault fault;
    sgt_warn_once once;
    sgt_files *files;
    /* shard 0's at open; it stays the bound for all shards if direct reads are refused later */
    size_t align;
    int pread;                    /* 1: use pread; decided at open */
    int plain;                    /* 1: no FLAGS (setup.c); decided at open */
    unsigned made, reads, enters; /* atomic counts, for faults */
    unsigned order;               /* atomic: see make_ring in setup.c */
    char detail[256];
};

/* A read in flight, in the kernel or the thread pool; NULL: none. */
typedef struct flight {
    sgt_ring_read *read;
    sgt_thread_pool_job job;
} flight;

struct sgt_ring {
    sgt_rings *all;
    struct io_uring ring;
    int has_ring, enabled;
    unsigned flags; /* the ring's IORING_SETUP flags */
    /* its end reports that a closed ring has no reads in flight; -1: there is no pipe */
    int pipe;
    /* (shards): 1 if the shard is registered; NULL: files are not registered */
    uint8_t *registered;
    char *memory;
    size_t memory_bytes;
    int memory_registered;
    sgt_thread_pool *pool; /* used instead of the ring ... */
    int error;             /* ... because of this errno */
    int ruined;            /* errno with which the ring failed, if nothing can replace it */
    int closing;
    pid_t pid;
    unsigned depth, flying;
    sgt_ring_read *first, **end; /* queue of reads that wait for a flight */
    flight *flights;             /* (depth) */
    /* (depth): the last depth - flying of them are the free flights */
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

/* Close the ring from a thread other than its own, and wait until no read is in flight. Returns 0
 * if it is unknown when that is. */
int sgt_setup_leave_from_afar(sgt_ring *r);

#endif
