/* ring.h: many concurrent reads of a set's shards, for one thread, by io_uring.
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
 *     sgt_ring_submit(r);   // they are in flight now: do something else
 *     if (sgt_ring_wait(r, reads, n, &err) < 0) ...;
 *     ... reads[i].data points to byte `at` of the shard, and `bytes` bytes follow ...
 *     if (sgt_ring_close(r)) (nobody may reuse memory) else free(memory);
 *     sgt_rings_close(all);
 *
 * Files are read with O_DIRECT, which bypasses the page cache, if their file system supports it.
 * Such reads begin and end at multiples of the file system's alignment. The requested bytes
 * therefore begin at `data`, which may lie after `to`. data == to if `at` and `bytes` are multiples
 * themselves, or if the file is read through the page cache. A read that returns fewer bytes or is
 * interrupted is continued until all its bytes have arrived. If the file ends before that, the read
 * fails with an error that names the byte at which the file ends. Any other error makes it fail,
 * too.
 *
 * If a file system refuses O_DIRECT, the files are read through the page cache, with one notice for
 * each reader. If a ring fails later, its reads fail, but the kernel may still write to their
 * memory.
 *
 * Each shard keeps a file descriptor open. If fewer than 64 remain for the process, its limit
 * (RLIMIT_NOFILE) is raised. */
#ifndef SGT_RING_H
#define SGT_RING_H

#include "loader/read/reader.h"

typedef struct sgt_rings sgt_rings;
typedef struct sgt_ring sgt_ring;

/* alignment of `to` that suffices for every file system */
#define SGT_RING_ALIGN ((size_t)4096)

/* A read. The caller owns it, zeroes it before its first use, and must not move it until it has
 * been waited for. */
typedef struct sgt_ring_read {
    uint64_t at; /* byte offset in the shard's file */
    size_t bytes;
    /* room for sgt_rings_room(all, bytes) bytes, aligned at least to sgt_rings_align */
    char *to;
    uint32_t shard;
    const char *data; /* the bytes, once the read has been waited for */

    /* internal to the ring. error: errno, or 0 if the file ended before the read's last byte;
     * align: alignment of the read in bytes; done: bytes that have arrived so far, from `to` on */
    int state, error;
    size_t align, done;
    struct sgt_ring_read *next;
} sgt_ring_read;

/* Open the state that all rings of a reader share: the shards' files. The set must outlive it. Any
 * number of threads may use it. The call opens and closes a ring to find out whether io_uring is
 * available. If it is not, or if there are too few descriptors, *remark says why ("io_uring is
 * forbidden"), and the call returns SGT_EUNSUPPORTED. *remark, NULL before, is "through the page
 * cache" if any shard is read so. */
int sgt_rings_open(sgt_rings **out, const char **remark, const sgt_set *set,
                   const sgt_notice *notice, sgt_error *err);
void sgt_rings_close(sgt_rings *all); /* Close its rings first. NULL is fine. */

/* Return the largest alignment of reads: 512 or 4096, or 1 through the page cache. */
size_t sgt_rings_align(const sgt_rings *all);
/* Return how many bytes of memory a read of `bytes` bytes may fill. */
size_t sgt_rings_room(const sgt_rings *all, size_t bytes);

/* Open a ring. At most `depth` reads (1 to 4096) are in flight at a time; further reads wait for
 * their turn. `memory`, if not NULL, is the memory of `bytes` bytes (at most 1 GiB) into which most
 * reads go. It is registered with the kernel if limits allow. One thread may open a ring and
 * another thread use it, but only one thread at a time, and preferably always the same. A child
 * after fork must not use it. */
int sgt_ring_open(sgt_ring **out, sgt_rings *all, unsigned depth, void *memory, size_t bytes,
                  sgt_error *err);

/* Close a ring after waiting for its reads in flight. Returns 0 if nothing writes to the reads'
 * memory any more. Returns 1 if the ring failed and the kernel may still write to the memory at an
 * unknown time: leave that memory mapped. NULL is fine and gives 0. */
int sgt_ring_close(sgt_ring *r);

/* sgt_ring_ask queues a read. sgt_ring_submit submits the queued reads and collects those that have
 * ended. Neither call fails or waits. sgt_ring_wait submits queued reads, too, even while it waits
 * for earlier ones. */
void sgt_ring_ask(sgt_ring *r, sgt_ring_read *read);
void sgt_ring_submit(sgt_ring *r);

/* Return how many of these reads are queued, or were in flight at the last call. */
uint32_t sgt_ring_pending(const sgt_ring_read *reads, uint32_t n);

/* Wait until all of these reads have ended and the ring has no pointer to them. Returns 0, or the
 * error of the first read that failed; SGT_EUSAGE in a child after fork. */
int sgt_ring_wait(sgt_ring *r, sgt_ring_read *reads, uint32_t n, sgt_error *err);

#endif
