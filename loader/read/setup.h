/* setup.h: what a ring of ring.h stands on, an io_uring with as much as the machine grants it or a
 * pool of threads that pread; and what the rings of a reader share. For ring.c and setup.c
 * alone. */
#ifndef SGT_SETUP_H
#define SGT_SETUP_H

#include <liburing.h>
#include <sys/types.h>

#include "read/thread_pool.h"
#include "read/files.h"
#include "read/ring.h"

struct sgt_rings {
    const sgt_set *set;
    sgt_reader_fault fault;
    sgt_warn_once once;
    sgt_files *files;
    /* shard 0's at open: a direct read of it that is refused later changes no other shard's */
    size_t align;
    int pread;                    /* decided at open */
    int plain;                    /* likewise: without FLAGS */
    unsigned made, reads, enters; /* atomic, for faults */
    unsigned order;               /* atomic: see make_ring */
    char detail[256];
};

/* A read that the kernel or the thread pool has; NULL: none. */
typedef struct flight {
    sgt_ring_read *read;
    sgt_thread_pool_job job;
} flight;

struct sgt_ring {
    sgt_rings *all;
    struct io_uring ring;
    int has_ring, enabled;
    unsigned flags; /* of it */
    /* tells when a ring that was left has no reads in flight; -1: nothing does */
    int pipe;
    uint8_t *registered; /* which shards are; NULL: files are not registered */
    char *memory;
    size_t memory_bytes;
    int memory_registered;
    sgt_thread_pool *pool; /* in the ring's place ... */
    int error;             /* ... for this reason, an errno */
    int ruined;            /* the errno that the ring failed with, and nothing can take its place */
    int closing;
    pid_t pid;
    unsigned depth, flying;
    sgt_ring_read *first, **end; /* that wait */
    flight *flights;             /* depth */
    /* of these the last depth - flying are the flights without a read */
    unsigned *slots;
};

/* An io_uring, for any thread if `plain`; else a thread pool; 0: out of memory. */
int sgt_setup_get(sgt_ring *r, int plain);

/* A thread pool in the place of a ring that failed with this errno; 0: out of memory. */
int sgt_setup_replace(sgt_ring *r, int error);

/* Before the first submission, by the thread that submits: 0, or a negative errno. */
int sgt_setup_enable(sgt_ring *r);

void sgt_setup_leave(sgt_ring *r);

/* Leaves the ring without the help of its thread, and waits until no read is in flight; 0: nobody
 * can say when. */
int sgt_setup_leave_from_afar(sgt_ring *r);

#endif
