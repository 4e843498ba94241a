/* ring.h: read many parts of the shards of a set at the same time from one thread, with io_uring.
 *
 *     sgt_rings *all;       // one per reader: open files
 *     if (sgt_rings_open(&all, &remark, set, &notice, &err) < 0) ...;
 *     size_t room = sgt_rings_room(all, 2050);
 *     sgt_ring *r;          // one per thread that reads
 *     if (sgt_ring_open(&r, all, 128, memory, n * room, &err) < 0) ...;
 *     for (i = 0; i < n; i++) {
 *         reads[i] = (sgt_ring_read){.shard = 3, .at = 1024 + 2 * token, .bytes = 2050,
 *                                    .to = memory + i * room};
 *         sgt_ring_ask(r, &reads[i]);
 *     }
 *     sgt_ring_submit(r);   // the reads are in flight: the thread can do something else
 *     if (sgt_ring_wait(r, reads, n, &err) < 0) ...;
 *     ... reads[i].data points to byte `at` of the shard, and `bytes` bytes follow ...
 *     if (sgt_ring_close(r)) (memory must not be reused) else free(memory);
 *     sgt_rings_close(all);
 *
 * If their file system supports it, files are read with O_DIRECT, which bypasses the page cache.
 * Such reads begin and end at multiples of the file system's alignment. Therefore, the requested
 * bytes begin at `data`, which may be an address after `to`. `data` equals `to` if `at` and `bytes`
 * are multiples of the alignment, or if the file is read through the page cache. A read that is
 * short or interrupted is continued until all its bytes have arrived. If the file ends too early,
 * the read fails with an error that states where the file ends. Any other error makes the read
 * fail, too.
 *
 * If a file system does not support O_DIRECT, its files are read through the page cache, and one
 * notice is sent for each reader. If a ring fails while it is in use, its reads fail, but the
 * kernel may still write to their memory.
 *
 * A file descriptor for each shard stays open. If fewer than 64 further descriptors remain for the
 * process, its limit (RLIMIT_NOFILE) is raised. */
#ifndef SGT_RING_H
#define SGT_RING_H

#include "loader/read/reader.h"

typedef struct sgt_rings sgt_rings;
typedef struct sgt_ring sgt_ring;

/* alignment in bytes of memory that is enough for reads with O_DIRECT on every file system */
#define SGT_RING_ALIGN ((size_t)4096)

/* A read. The caller owns this struct, zeroes it before its first use, and must not move it between
 * sgt_ring_ask and the end of sgt_ring_wait. */
typedef struct sgt_ring_read {
    uint64_t at; /* byte offset in the shard's file */
    size_t bytes;
    /* buffer for the read, of sgt_rings_room(all, bytes) bytes, which may be more than `bytes`
     * because the read is aligned. The address of the buffer is a multiple of
     * sgt_rings_align(all) */
    char *to;
    uint32_t shard;
    const char *data; /* address of the requested bytes; valid after sgt_ring_wait */

    /* The following fields are private to ring.c. error: errno of a failed read, or 0 if the file
     * ended too early; align: alignment of this read in bytes; done: number of bytes that have
     * arrived so far */
    int state, error;
    size_t align, done;
    struct sgt_ring_read *next;
} sgt_ring_read;

/* Open the state that all rings of a reader share, mainly the open files of the shards. The set
 * must outlive it. Any number of threads may share it. *remark must be NULL before the call; it is
 * set to "through the page cache" if any shard is read in that way. Returns SGT_EUNSUPPORTED if
 * there are too few file descriptors, or if a trial shows that io_uring is unavailable. The reason
 * is in *err, for example "io_uring is forbidden". */
int sgt_rings_open(sgt_rings **out, const char **remark, const sgt_set *set,
                   const sgt_notice *notice, sgt_error *err);
void sgt_rings_close(sgt_rings *all); /* `all` may be NULL. Close all rings before this call. */

/* Return the alignment in bytes that memory for reads needs: 512 or 4096, or 1 if shard 0 is read
 * through the page cache. */
size_t sgt_rings_align(const sgt_rings *all);
/* Return the bytes of memory into which a read of `bytes` bytes may write, including bytes that are
 * read only because reads are aligned. */
size_t sgt_rings_room(const sgt_rings *all, size_t bytes);

/* Open a ring. At most `depth` reads (1 to 4096) are in flight at a time; further reads wait until
 * others complete. `memory` is a buffer of `bytes` bytes (at most 1 GiB) into which most reads go,
 * or NULL. It is registered with the kernel, which makes reads cheaper, if the user's limits allow
 * that. Only one thread at a time may use a ring; it is faster if this is always the same thread. A
 * child process after fork must not use the ring. */
int sgt_ring_open(sgt_ring **out, sgt_rings *all, unsigned depth, void *memory, size_t bytes,
                  sgt_error *err);

/* Wait for the reads in flight, and close the ring. Returns 0 if the kernel no longer writes to the
 * memory of the reads, or if r is NULL. Returns 1 if the ring has failed. In this case, the kernel
 * may write to that memory at any time, so the caller must leave it mapped. */
int sgt_ring_close(sgt_ring *r);

/* sgt_ring_ask queues a read. sgt_ring_submit issues queued reads to the kernel and collects
 * completed ones. Neither of these functions fails or waits. sgt_ring_wait also issues queued
 * reads, even while it waits for earlier reads. */
void sgt_ring_ask(sgt_ring *r, sgt_ring_read *read);
void sgt_ring_submit(sgt_ring *r);

/* Return how many of the n reads at `reads` have not ended, as far as this thread knows. These are
 * reads that are still queued, and reads that were in flight when completed reads were last
 * collected. */
uint32_t sgt_ring_pending(const sgt_ring_read *reads, uint32_t n);

/* Wait until the n reads at `reads` have ended; after that, their structs may be moved or freed.
 * Return 0, or the error of the first read that failed. Return SGT_EUSAGE in a child process after
 * fork. */
int sgt_ring_wait(sgt_ring *r, sgt_ring_read *reads, uint32_t n, sgt_error *err);

#endif
