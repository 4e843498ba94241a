/* ring.h: many reads of a set's shards in flight at once, for one thread: by io_uring, or where
 * that cannot be had by threads that pread. Readers that read files themselves stand on this.
 *
 *     sgt_rings *all;                            // one a reader: descriptors, faults, what was said already
 *     if (sgt_rings_open(&all, set, options, n, 2050, &err) < 0) ...;
 *     sgt_ring *r;                               // one a thread that reads
 *     if (sgt_ring_open(&r, all, 128, memory, n * room, &err) < 0) ...;   // room: sgt_rings_room(all, 2050)
 *     for (i = 0; i < n; i++) {
 *         reads[i] = (sgt_ring_read){.shard = 3, .at = 1024 + 2 * token, .bytes = 2050, .to = memory + i * room};
 *         sgt_ring_ask(r, &reads[i]);
 *     }
 *     sgt_ring_submit(r);                        // they are on their way: do something else
 *     if (sgt_ring_wait(r, reads, n, &err) < 0) ...;
 *     ... reads[i].data is where byte `at` of the shard is, and `bytes` bytes follow ...
 *     if (sgt_ring_close(r)) (nobody may reuse memory) else free(memory);
 *     sgt_rings_close(all);
 *
 * Files are read around the page cache (O_DIRECT) where their file system allows it. Such reads
 * begin and end at multiples of its alignment, so that the bytes wanted lie somewhere within what
 * arrives: data, not to. Where `at` and `bytes` are multiples themselves, or where files are read
 * through the page cache, data == to. A read that arrives in pieces, or is interrupted, is asked
 * for again until all its bytes are there; the end of the file before them is a failure, at the
 * byte where it ends, and so is any other.
 *
 * What a kernel, a container or a file system refuses is done without, one by one, and each is said
 * once a reader, in one notice and in sgt_rings_detail: SINGLE_ISSUER and DEFER_TASKRUN, registered
 * files, registered memory, O_DIRECT, io_uring itself. A ring that fails later is replaced by
 * threads too, which a notice says; a wait fails for that only where nobody can tell when the reads
 * that it had in flight will end. */
#ifndef SGT_RING_H
#define SGT_RING_H

#include "read/reader.h"

typedef struct sgt_rings sgt_rings;
typedef struct sgt_ring sgt_ring;

/* of `to` and of memory: more than any file system asks for */
#define SGT_RING_ALIGN ((size_t)4096)

/* The caller's, zeroed before its first use, and where it is until it has been waited for. */
typedef struct sgt_ring_read {
    uint64_t at; /* in the shard's file */
    size_t bytes;
    /* room for sgt_rings_room(all, bytes) bytes; aligned as sgt_rings_align says at least */
    char *to;
    uint32_t shard;
    const char *data; /* once it has been waited for */

    /* the ring's */
    int state, error, tried, turned;
    int fd, taken, registered; /* a descriptor, to be given back; or a number in the ring's table */
    unsigned align;            /* the read is of this alignment ... */
    /* ... begins so many bytes before `at`; of it so many have arrived */
    size_t skip, done;
    struct sgt_ring_read *next;
} sgt_ring_read;

/* The set outlives it; of the options, notice and fault are used. Shard 0 is opened, and a ring is
 * made and closed again, with memory for `reads` reads of `bytes` bytes, so that the detail is
 * known. SGT_E* if the shard cannot be opened. Any number of threads may use it. */
int sgt_rings_open(sgt_rings **out, const sgt_set *set, const sgt_reader_options *o, size_t reads,
                   size_t bytes, sgt_error *err);
void sgt_rings_close(sgt_rings *all); /* after its rings; NULL is fine */

/* What was done without, to be put into brackets: "" or "pread: io_uring is forbidden", "no
 * registered files, through the page cache". Lives as long as `all`. */
const char *sgt_rings_detail(const sgt_rings *all);

/* 512 or 4096, of reads; 1 through the page cache */
size_t sgt_rings_align(const sgt_rings *all);
/* that a read of so many bytes may fill */
size_t sgt_rings_room(const sgt_rings *all, size_t bytes);

/* At most `depth` reads (to 4096) are with the kernel at a time; what is asked for beyond waits its
 * turn. memory, if not NULL, is where most reads go to: SGT_RING_ALIGN-aligned, at most 1 GiB; it
 * is registered where limits allow that. A ring may be made by one thread and used by another (best
 * always the same one); only one uses it at a time, and none in a child after fork. */
int sgt_ring_open(sgt_ring **out, sgt_rings *all, unsigned depth, void *memory, size_t bytes,
                  sgt_error *err);

/* Waits for the reads in flight. 0: nothing is written into the reads' memory any more; 1: nobody
 * can tell when that will be so (the ring itself failed): leave that memory mapped. NULL is fine,
 * and 0. */
int sgt_ring_close(sgt_ring *r);

/* Neither fails nor waits; reads are on their way after sgt_ring_submit or sgt_ring_wait, and while
 * those of earlier ones are waited for. */
void sgt_ring_ask(sgt_ring *r, sgt_ring_read *read);
void sgt_ring_submit(sgt_ring *r);

/* Of these, the ones that are not yet on their way are not asked for any more; the others end in
 * their time. */
void sgt_ring_drop(sgt_ring *r, const sgt_ring_read *reads, uint32_t n);

/* How many of these have not ended, as far as the ring has looked. */
uint32_t sgt_ring_pending(const sgt_ring_read *reads, uint32_t n);

/* Until all of these have ended, and the ring has forgotten them: 0, or the failure of the first of
 * them that has one. SGT_EUSAGE in a child after fork. */
int sgt_ring_wait(sgt_ring *r, sgt_ring_read *reads, uint32_t n, sgt_error *err);

#endif
