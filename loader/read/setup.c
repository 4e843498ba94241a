/* setup.c: make rings with all fast features that this machine allows, and close them.
 *
 * With SINGLE_ISSUER and DEFER_TASKRUN only one thread, the first that submits, may use the ring.
 * The kernel then does the work of a completion when that thread asks for completions, without
 * interrupting it. If another thread arrives (or closes the ring), or the ring fails, the reads in
 * flight cannot be waited for through the ring. But the kernel releases a ring's registered files
 * when its last read has ended. So one end of a pipe is registered with each ring; once the ring is
 * closed, the other end tells when no read is in flight. */
#include "loader/read/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/base/arena.h"

/* depth of the ring that is made at open, to find out which features are available */
#define USUAL_DEPTH 128u
#define POOL_THREADS 16u /* threads of the pool that replaces an io_uring */
#define FEWEST 8 /* descriptors that may stay open, even if the process's limit is very low */
#define PATIENCE_MS 10000 /* milliseconds to wait for reads in flight after their ring was closed */

#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif
#define FLAGS (IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_R_DISABLED)

enum { SAID_PREAD, SAID_FLAGS, SAID_FILES, SAID_MEMORY, SAID_CACHE, SAID_FAILED };

/* ---- making one ---- */

static const char *why_no_ring(int error)
{
    switch (error) {
    case EPERM:
    case EACCES: return "io_uring is forbidden";
    case ENOSYS: return "this kernel has no io_uring, or an old one";
    case ENOMEM: return "io_uring is short of memory it may lock";
    case EMFILE:
    case ENFILE: return "io_uring is short of file descriptors";
    default: return "io_uring is unavailable";
    }
}

/* Make a ring with these flags; return 0 or a negative errno. */
static int make_ring(sgt_ring *r, unsigned flags)
{
    int rc = io_uring_queue_init(r->depth, &r->ring, flags);
    if (rc < 0) return rc;
    /* IORING_OP_READ needs Linux 5.6 */
    struct io_uring_probe *probe = io_uring_get_probe_ring(&r->ring);
    int reads = probe && io_uring_opcode_supported(probe, IORING_OP_READ);
    if (probe) io_uring_free_probe(probe);
    if (!reads) {
        io_uring_queue_exit(&r->ring);
        return -ENOSYS;
    }
    /* For the thread sanitizer, which sees only atomics: the kernel may give this ring memory that
     * another thread's ring had. This operation acquires what sgt_setup_leave released. */
    __atomic_fetch_add(&r->all->order, 1, __ATOMIC_ACQUIRE);
    r->has_ring = 1;
    r->flags = flags;
    r->enabled = !(flags & IORING_SETUP_R_DISABLED);
    return 0;
}

void sgt_setup_leave(sgt_ring *r)
{
    __atomic_fetch_add(&r->all->order, 1, __ATOMIC_RELEASE); /* pairs with the load in make_ring */
    io_uring_queue_exit(&r->ring);
    r->has_ring = 0;
    free(r->registered);
    r->registered = NULL;
    r->memory_registered = 0;
}

/* Register a table of `n` files, all of them empty. */
static int make_table(sgt_ring *r, unsigned n)
{
    struct rlimit limit;
    /* newer kernels check this limit themselves and return EMFILE */
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && n > limit.rlim_cur) return -EMFILE;
    return io_uring_register_files_sparse(&r->ring, n);
}

/* Register one end of the pipe as file `at` of the table, and keep the other end. */
static int put_pipe(sgt_ring *r, unsigned at)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) return -errno;
    int rc = io_uring_register_files_update(&r->ring, at, &ends[1], 1);
    close(ends[1]);
    if (rc != 1) close(ends[0]);
    r->pipe = rc == 1 ? ends[0] : -1;
    return rc == 1 ? 0 : rc < 0 ? rc : -EINVAL;
}

/* Register a table with a slot for each shard, and the pipe. If there are too many shards, register
 * the pipe alone, which rings with FLAGS need. */
static int register_files(sgt_ring *r)
{
    char buf[128];
    uint32_t shards = r->all->set->count;
    int rc = make_table(r, shards + 1);
    if (rc == 0 && !(r->registered = calloc(1, shards))) rc = -ENOMEM;
    if (rc < 0) {
        sgt_warn_once_say(&r->all->once, SAID_FILES,
                          "io_uring cannot register %" PRIu32
                          " files here (%s): handing them over with each read",
                          shards, strerror_r(-rc, buf, sizeof buf));
        if ((rc = make_table(r, 1)) < 0) return rc;
    }
    return put_pipe(r, r->registered ? shards : 0);
}

static void register_memory(sgt_ring *r)
{
    char buf[128];
    struct iovec v = {r->memory, r->memory_bytes};
    if (!r->memory) return;
    int rc = io_uring_register_buffers(&r->ring, &v, 1);
    r->memory_registered = rc == 0;
    if (rc == 0) return;
    sgt_warn_once_say(&r->all->once, SAID_MEMORY,
                      "io_uring cannot register %zu KiB of memory here (%s; ulimit -l): reading "
                      "into memory that is not",
                      r->memory_bytes >> 10, strerror_r(-rc, buf, sizeof buf));
}

/* Make the best ring that the machine allows; `plain`: one that any thread may use. Return 0, or a
 * negative errno. */
static int get_ring(sgt_ring *r, int plain)
{
    char buf[128];
    int refused = 0;
    if (!plain && !r->all->plain) {
        refused = make_ring(r, FLAGS);
        if (refused == 0 && (refused = register_files(r)) < 0) sgt_setup_leave(r);
    }
    if (!r->has_ring) {
        int rc = make_ring(r, 0);
        if (rc < 0) return rc;
        if (refused)
            sgt_warn_once_say(
                &r->all->once, SAID_FLAGS,
                "io_uring has no SINGLE_ISSUER and DEFER_TASKRUN here (%s): doing without",
                strerror_r(-refused, buf, sizeof buf));
        register_files(r); /* ignore errors: the ring also works without a table or a pipe */
    }
    register_memory(r);
    return 0;
}

static int get_pool(sgt_ring *r)
{
    r->pool = sgt_thread_pool_open(r->depth < POOL_THREADS ? r->depth : POOL_THREADS);
    return r->pool != NULL;
}

int sgt_setup_get(sgt_ring *r, int plain)
{
    char buf[128];
    r->error = r->all->pread ? 0 : -get_ring(r, plain);
    if (r->has_ring) return 1;
    if (r->error)
        sgt_warn_once_say(&r->all->once, SAID_PREAD, "%s here (%s): reading with pread instead",
                          why_no_ring(r->error), strerror_r(r->error, buf, sizeof buf));
    return get_pool(r);
}

int sgt_setup_replace(sgt_ring *r, int error)
{
    char buf[128];
    r->error = error;
    sgt_warn_once_say(&r->all->once, SAID_FAILED,
                      "io_uring failed (%s): reading with pread instead",
                      strerror_r(error, buf, sizeof buf));
    return get_pool(r);
}

/* ---- using and leaving one ---- */

/* Make the system call directly: liburing 2.3 declares io_uring_enable_rings, but its library does
 * not export it. */
int sgt_setup_enable(sgt_ring *r)
{
    if (r->enabled) return 0;
    r->enabled = 1;
    return syscall(SYS_io_uring_register, r->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0) <
                   0
               ? -errno
               : 0;
}

int sgt_setup_leave_from_afar(sgt_ring *r)
{
    struct pollfd end = {.fd = r->pipe};
    int told = 0;
    sgt_setup_leave(r);
    if (r->flying && r->pipe >= 0)
        while ((told = poll(&end, 1, PATIENCE_MS)) < 0 && errno == EINTR) {
        }
    if (r->pipe >= 0) close(r->pipe);
    r->pipe = -1;
    return told == 1 || !r->flying;
}

/* ---- what the rings of a reader share ---- */

static void describe(sgt_rings *all, int error)
{
    static const struct {
        unsigned kind;
        const char *text;
    } rest[] = {{SAID_FLAGS, "no SINGLE_ISSUER"},
                {SAID_FILES, "no registered files"},
                {SAID_MEMORY, "no registered memory"},
                {SAID_CACHE, "through the page cache"}};
    if (all->pread) snprintf(all->detail, sizeof all->detail, "pread: %s", why_no_ring(error));
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        if (all->once.said >> rest[i].kind & 1) {
            size_t n = strlen(all->detail);
            snprintf(all->detail + n, sizeof all->detail - n, "%s%s", n ? ", " : "", rest[i].text);
        }
}

/* Make and close a ring with memory for reads of `bytes` bytes, to find out which features are
 * available. */
static int try_ring(sgt_rings *all, size_t bytes, sgt_error *err)
{
    sgt_arena memory = {0};
    sgt_ring *r;
    int rc = bytes ? sgt_arena_map(&memory, bytes, 0, err) : SGT_OK;
    if (rc < 0 || (rc = sgt_ring_open(&r, all, USUAL_DEPTH, memory.base, bytes, err)) < 0) {
        sgt_arena_unmap(&memory);
        return rc;
    }
    all->pread = !r->has_ring;
    all->plain = r->has_ring && !r->flags;
    describe(all, r->error);
    sgt_ring_close(r);
    sgt_arena_unmap(&memory);
    return SGT_OK;
}

/* Return how many descriptors may be open: half of the process's limit, so that the program keeps
 * the other half. */
static uint32_t most_open(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 2 < FEWEST) return FEWEST;
    return limit.rlim_cur / 2 > UINT32_MAX ? UINT32_MAX : (uint32_t)(limit.rlim_cur / 2);
}

int sgt_rings_open(sgt_rings **out, const sgt_set *set, const sgt_reader_options *o, size_t reads,
                   size_t bytes, sgt_error *err)
{
    sgt_rings *all = calloc(1, sizeof *all);
    if (!all) return sgt_fail_memory(err, set->shards[0].path);
    all->set = set;
    sgt_warn_once_init(&all->once, &o->notice);
    int rc = sgt_files_open(&all->files, set, most_open(), &all->once, SAID_CACHE, err);
    if (rc == 0) all->align = sgt_files_align(all->files, 0);
    if (rc < 0 || (rc = try_ring(all, reads * sgt_rings_room(all, bytes), err)) < 0) {
        sgt_rings_close(all);
        return rc;
    }
    *out = all;
    return SGT_OK;
}

void sgt_rings_close(sgt_rings *all)
{
    if (!all) return;
    sgt_files_close(all->files);
    sgt_warn_once_free(&all->once);
    free(all);
}

const char *sgt_rings_detail(const sgt_rings *all) { return all->detail; }

size_t sgt_rings_align(const sgt_rings *all) { return all->align; }

size_t sgt_rings_room(const sgt_rings *all, size_t bytes)
{
    size_t align = sgt_rings_align(all);
    return (bytes + 2 * (align - 1)) / align * align;
}
