/* faults.c: see faults.h. The results of reads are changed when they arrive, from the ring or in
 * preload's threads. */
#include "tests/loader/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/memory.h"
#include "loader/read/ring.h"

#define CACHESTAT 451 /* as in loader/read/pages.c */

/* Define the function that the library calls instead of `name`. The original is __real_name. */
#define WRAP(type, name, ...)        \
    type __real_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__)

static reader_fault faults;
static unsigned made, reads, enters; /* atomic counts of successes */
static unsigned looks;               /* atomic: at free memory */
static unsigned blocks;              /* atomic */
/* atomic, by a hash of the read: 1 if its last try failed with first_error */
static uint8_t tried[4096];

void set_faults(const reader_fault *fault)
{
    faults = fault ? *fault : (reader_fault){0};
    made = reads = enters = looks = blocks = 0;
    memset(tried, 0, sizeof tried);
}

/* Count one more call, and return whether `first` calls or more came before it. */
static int is_late(unsigned *count, unsigned first)
{
    return __atomic_fetch_add(count, 1, __ATOMIC_RELAXED) >= first;
}

/* ---- results of reads ---- */

/* Return the changed result of a read: a negative error, or a number of bytes. `read` identifies
 * the read, `result` is what it returned, and `to` is its buffer. Bytes that were read and are no
 * longer reported are overwritten in `to`. */
static int change_result(uintptr_t read, size_t align, char *to, int result)
{
    int given = result;
    size_t most = faults.most_bytes < align ? align : faults.most_bytes / align * align;
    if (faults.most_bytes && result > 0 && (size_t)result > most) given = (int)most;
    if (faults.first_error && !__atomic_fetch_xor(&tried[read % sizeof tried], 1, __ATOMIC_RELAXED))
        given = -faults.first_error;
    if ((faults.cut || faults.read_error) && is_late(&reads, faults.reads_first)) {
        if (faults.cut && truncate(faults.cut, faults.left) < 0) given = -errno;
        if (faults.read_error) given = -faults.read_error;
    }
    int kept = given > 0 ? given : 0;
    if (kept < result) memset(to + kept, 0xEE, (size_t)(result - kept));
    return given;
}

WRAP(unsigned, io_uring_peek_batch_cqe, struct io_uring *ring, struct io_uring_cqe **cqes,
     unsigned most)
{
    unsigned n = __real_io_uring_peek_batch_cqe(ring, cqes, most);
    for (unsigned i = 0; i < n; i++) {
        const sgt_ring_read *d = io_uring_cqe_get_data(cqes[i]);
        cqes[i]->res =
            change_result((uintptr_t)d / sizeof *d, d->align, d->to + d->done, cqes[i]->res);
    }
    return n;
}

/* Change only preload's reads. Only those have page-aligned buffers, sizes and offsets and 16 KiB
 * or more. */
WRAP(ssize_t, pread, int fd, void *to, size_t n, off_t at)
{
    ssize_t got = __real_pread(fd, to, n, at);
    if (got < 0 || ((uintptr_t)to | n | (size_t)at) % 4096 || n < (1 << 14)) return got;
    /* EINVAL is for direct reads only: pages that could not be evicted are read through the page
     * cache */
    if (faults.first_error == EINVAL && !(fcntl(fd, F_GETFL) & O_DIRECT)) return got;
    int given = change_result((uintptr_t)to / 4096, 1, to, (int)got);
    if (given >= 0) return given;
    errno = -given;
    return -1;
}

/* ---- rings ---- */

/* All processes of a user share a small limit of locked memory, and the kernel releases that of a
 * closed ring late. So if it refuses a ring, the tests try again for up to 10 s. */
static int wait_for_memory(unsigned *waits)
{
    usleep(10000);
    return ++*waits < 1000;
}

WRAP(int, io_uring_queue_init, unsigned entries, struct io_uring *ring, unsigned flags)
{
    if (faults.ring_error && __atomic_load_n(&made, __ATOMIC_RELAXED) >= faults.rings_first)
        return -faults.ring_error;
    int rc;
    unsigned waits = 0;
    do rc = __real_io_uring_queue_init(entries, ring, flags);
    while (rc == -ENOMEM && wait_for_memory(&waits));
    if (rc == 0) __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
    return rc;
}

WRAP(int, io_uring_submit_and_wait, struct io_uring *ring, unsigned n)
{
    if (faults.enter_error && is_late(&enters, faults.enters_first)) return -faults.enter_error;
    return __real_io_uring_submit_and_wait(ring, n);
}

/* ---- files ---- */

WRAP(int, fcntl, int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    long arg = va_arg(args, long);
    va_end(args);
    if (!faults.direct_error || command != F_SETFL || !(arg & O_DIRECT))
        return __real_fcntl(fd, command, arg);
    errno = faults.direct_error;
    return -1;
}

WRAP(long, syscall, long number, ...)
{
    va_list args;
    long a[6];
    va_start(args, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(args, long);
    va_end(args);
    if (faults.no_cachestat && number == CACHESTAT) {
        errno = ENOSYS;
        return -1;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- sizes ---- */

WRAP(void, sgt_memory_look, sgt_memory *m, const char *root)
{
    const char *from = faults.looks && is_late(&looks, faults.looks) ? faults.later : faults.memory;
    __real_sgt_memory_look(m, from ? from : root);
}

WRAP(uint64_t, sgt_memory_of_siblings, uint32_t least, const char *root)
{
    return __real_sgt_memory_of_siblings(least, faults.memory ? faults.memory : root);
}

WRAP(int, sgt_sampler_init, sgt_sampler *s, sgt_sampling sampling, uint64_t seed, uint32_t seq,
     const uint64_t *tokens, uint32_t shards, sgt_error *err)
{
    int rc = __real_sgt_sampler_init(s, sampling, seed, seq, tokens, shards, err);
    if (rc == SGT_OK && faults.pool_blocks) {
        s->block_tokens = faults.block_tokens;
        s->pool_blocks = faults.pool_blocks;
    }
    return rc;
}

/* Count blocks: the library calls this before it reads a block. */
WRAP(uint32_t, sgt_sampler_block, const sgt_sampler *s, sgt_sampler_memo *memo, uint64_t block,
     sgt_extent *extents, uint32_t most)
{
    __atomic_fetch_add(&blocks, 1, __ATOMIC_RELAXED);
    return __real_sgt_sampler_block(s, memo, block, extents, most);
}

unsigned count_blocks(void) { return __atomic_load_n(&blocks, __ATOMIC_RELAXED); }
