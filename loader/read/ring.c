/* ring.c: read parts of shards with io_uring. A read waits in a list until fewer than `depth` reads
 * are in flight, and is then issued to the kernel. When its result arrives, complete_read marks the
 * read as done or failed. If the read was interrupted or short, complete_read instead puts it into
 * the list again, to read the remaining bytes. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loader/read/ring.h"

/* maximum number of bytes that are requested at once; every kernel accepts this number */
#define MOST_BYTES ((size_t)1 << 30)
/* depth (maximum number of reads in flight) of a trial ring that is opened only to find out whether
 * io_uring is available */
#define USUAL_DEPTH 128u
#define SPARE 64u /* number of file descriptors that must remain for other uses in this process */

/* States of a read. IDLE: not queued yet; PENDING: queued or in flight; DONE: all requested bytes
 * have arrived; FAILED: some of the requested bytes could not be read */
enum { IDLE, PENDING, DONE, FAILED };

typedef struct file {
    int fd;
    /* alignment in bytes of reads with O_DIRECT; 1: the file is read through the page cache */
    size_t align;
} file;

struct sgt_rings {
    const sgt_set *set;
    unsigned order; /* counter that is accessed atomically; see make_ring */
    uint32_t open;  /* number of open files, which are files[0 ... open-1] */
    file files[];   /* (set->count) */
};

struct sgt_ring {
    sgt_rings *all;
    struct io_uring ring;
    /* memory that is registered with the kernel, so that its pages need not be pinned for each
     * read; empty: none */
    struct iovec memory;
    int ruined; /* errno of the failure that made the ring unusable; 0: no failure */
    pid_t pid;
    /* depth: maximum number of reads in flight; flying: number of reads that are in flight now */
    unsigned depth, flying;
    /* waiting: first read in the list of reads that have not been issued; last: last read in that
     * list */
    sgt_ring_read *waiting, *last;
};

/* ---- io_uring ---- */

static const char *why_no_ring(int error)
{
    switch (error) {
    case EPERM:
    case EACCES: return "io_uring is forbidden";
    case ENOSYS: return "this kernel has no io_uring, or its io_uring is too old";
    case ENOMEM: return "io_uring may not lock enough memory (ulimit -l)";
    case EMFILE:
    case ENFILE: return "io_uring needs more file descriptors than allowed (ulimit -n)";
    default: return "io_uring is unavailable";
    }
}

/* Create an io_uring instance. Return 0 or a negative errno. The flags SINGLE_ISSUER and
 * DEFER_TASKRUN are not used: they did not make reads faster, and with them, different threads
 * could not use or close the same ring. */
static int make_ring(sgt_ring *r)
{
    int rc = io_uring_queue_init(r->depth, &r->ring, 0);
    if (rc < 0) return rc;
    /* The kernel has no feature flag for IORING_OP_READ, but Linux 5.6 introduced this operation
     * together with IORING_FEAT_RW_CUR_POS, so test that flag instead. */
    if (!(r->ring.features & IORING_FEAT_RW_CUR_POS)) {
        io_uring_queue_exit(&r->ring);
        return -ENOSYS;
    }
    /* This ring may read into memory that a closed ring of a different thread has used. The kernel
     * ensures that the accesses of the other ring come first, but the thread sanitizer learns this
     * order only from atomic operations. This operation pairs with the release in leave_ring. */
    __atomic_fetch_add(&r->all->order, 1, __ATOMIC_ACQUIRE);
    return 0;
}

static void leave_ring(sgt_ring *r)
{
    /* pairs with the acquire in make_ring */
    __atomic_fetch_add(&r->all->order, 1, __ATOMIC_RELEASE);
    io_uring_queue_exit(&r->ring);
}

/* ---- a read ---- */

/* Return the number of bytes that are read before the requested offset, so that the read is
 * aligned. */
static size_t skipped(const sgt_ring_read *d) { return (size_t)(d->data - d->to); }

static size_t needed(const sgt_ring_read *d) { return skipped(d) + d->bytes; }

/* Return the number of bytes to request next for this read: all bytes that are still missing,
 * rounded up to the alignment, but at most MOST_BYTES. */
static size_t ask_bytes(const sgt_ring_read *d)
{
    size_t left = (needed(d) + d->align - 1) / d->align * d->align - d->done;
    return left < MOST_BYTES ? left : MOST_BYTES;
}

static uint64_t ask_at(const sgt_ring_read *d) { return d->at - skipped(d) + d->done; }

static void queue(sgt_ring *r, sgt_ring_read *d)
{
    d->state = PENDING;
    d->next = NULL;
    if (r->waiting) r->last->next = d;
    else r->waiting = d;
    r->last = d;
}

/* ---- issuing ---- */

static int is_registered(const sgt_ring *r, const char *to, size_t bytes)
{
    size_t at = (size_t)((uintptr_t)to - (uintptr_t)r->memory.iov_base);
    return at < r->memory.iov_len && bytes <= r->memory.iov_len - at;
}

/* Issue the first read of the waiting list to the kernel. The submission queue always has room,
 * because it has at least `depth` entries and fewer than `depth` reads are in flight. */
static void issue(sgt_ring *r)
{
    sgt_ring_read *d = r->waiting;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);
    char *to = d->to + d->done;
    size_t bytes = ask_bytes(d);
    int fd = r->all->files[d->shard].fd;
    if (is_registered(r, to, bytes))
        io_uring_prep_read_fixed(sqe, fd, to, (unsigned)bytes, ask_at(d), 0);
    else io_uring_prep_read(sqe, fd, to, (unsigned)bytes, ask_at(d));
    io_uring_sqe_set_data(sqe, d);
    r->waiting = d->next;
    r->flying++;
}

/* ---- completions ---- */

/* Handle the result of a read: complete the read, or queue it again for its remaining bytes. A read
 * with O_DIRECT that stops at a byte that is not a multiple of the alignment has reached the end of
 * the file. */
static void complete_read(sgt_ring *r, sgt_ring_read *d, int result)
{
    r->flying--;
    if (result > 0) d->done += (size_t)result;
    if (result > 0 && d->done >= needed(d)) {
        d->state = DONE;
    } else if (result == 0 || d->done % d->align) {
        d->state = FAILED; /* the file ended too early, so d->error stays 0 */
    } else if (result > 0 || result == -EINTR || result == -EAGAIN || result == -ECANCELED) {
        /* ECANCELED means that the thread that issued the read has ended, so issue the read
         * again */
        queue(r, d);
    } else {
        d->error = -result;
        d->state = FAILED;
    }
}

static void reap(sgt_ring *r)
{
    struct io_uring_cqe *cqes[64];
    unsigned n;
    while ((n = io_uring_peek_batch_cqe(&r->ring, cqes, 64)) > 0) {
        for (unsigned i = 0; i < n; i++)
            complete_read(r, io_uring_cqe_get_data(cqes[i]), cqes[i]->res);
        io_uring_cq_advance(&r->ring, n);
    }
}

/* Return the number of completed reads for which a system call should wait. `pending` is the number
 * of reads that the caller waits for. If there are reads that have not been issued yet, wait for at
 * most a quarter of the depth, so that new reads are issued before the disk runs out of work. */
static unsigned patience(const sgt_ring *r, uint32_t pending)
{
    unsigned most = r->waiting ? (r->depth + 3) / 4 : r->flying;
    if (most > r->flying) most = r->flying;
    return pending < most ? pending : most;
}

/* Issue waiting reads to the kernel, and collect completed reads. If `pending` is not 0, wait until
 * at least one read has completed. */
static void enter(sgt_ring *r, uint32_t pending)
{
    while (r->waiting && r->flying < r->depth) issue(r);
    int rc = io_uring_submit_and_wait(&r->ring, patience(r, pending));
    if (rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY) r->ruined = -rc;
    reap(r);
}

/* ---- public functions ---- */

int sgt_ring_open(sgt_ring **out, sgt_rings *all, unsigned depth, void *memory, size_t bytes,
                  sgt_error *err)
{
    sgt_ring *r = calloc(1, sizeof *r);
    if (!r) return sgt_fail_memory(err, all->set->shards[0].path);
    r->all = all;
    r->depth = depth;
    r->pid = getpid();
    int rc = make_ring(r);
    if (rc < 0) {
        free(r);
        return sgt_fail(err, SGT_EUNSUPPORTED, "%s: use the reader mmap, which does not need it",
                        why_no_ring(-rc));
    }
    if (memory) {
        r->memory = (struct iovec){memory, bytes};
        /* Ignore an error here: registering memory locks it, and most users may lock only little.
         * Without registration, reads only take slightly more CPU time. */
        if (io_uring_register_buffers(&r->ring, &r->memory, 1) < 0) r->memory = (struct iovec){0};
    }
    *out = r;
    return SGT_OK;
}

uint32_t sgt_ring_pending(const sgt_ring_read *reads, uint32_t n)
{
    uint32_t pending = 0;
    for (uint32_t i = 0; i < n; i++) pending += reads[i].state == PENDING;
    return pending;
}

void sgt_ring_ask(sgt_ring *r, sgt_ring_read *d)
{
    if (r->ruined) return;
    d->align = r->all->files[d->shard].align;
    d->data = d->to + d->at % d->align;
    d->done = 0;
    d->error = 0;
    queue(r, d);
}

void sgt_ring_submit(sgt_ring *r)
{
    if (!r->ruined && r->pid == getpid()) enter(r, 0);
}

static int fail_read(const sgt_ring *r, const sgt_ring_read *d, sgt_error *err)
{
    const sgt_set_shard *h = &r->all->set->shards[d->shard];
    uint64_t at = ask_at(d);
    if (!d->error) return sgt_set_fail_read(h, at, err);
    errno = d->error;
    return sgt_fail_errno(err, "%s: at byte %" PRIu64 ": cannot read", h->path,
                          at < d->at ? d->at : at);
}

int sgt_ring_wait(sgt_ring *r, sgt_ring_read *reads, uint32_t n, sgt_error *err)
{
    uint32_t pending;
    if (r->pid != getpid())
        return sgt_fail(err, SGT_EUSAGE,
                        "the cursor belongs to the parent process: io_uring does not survive a "
                        "fork (open a cursor in the child)");
    while (!r->ruined && (pending = sgt_ring_pending(reads, n)) > 0) enter(r, pending);
    if (r->ruined) {
        errno = r->ruined;
        return sgt_fail_errno(err, "%s: io_uring failed",
                              r->all->set->shards[n ? reads[0].shard : 0].path);
    }
    for (uint32_t i = 0; i < n; i++)
        if (reads[i].state == FAILED) return fail_read(r, &reads[i], err);
    return SGT_OK;
}

int sgt_ring_close(sgt_ring *r)
{
    if (!r) return 0;
    /* 1: this is a child process after fork, so only close its copy of the ring */
    int child = r->pid != getpid();
    while (r->flying && !r->ruined && !child) {
        /* do not issue further reads, not even for the remaining bytes of a short read */
        r->waiting = NULL;
        enter(r, r->flying);
    }
    leave_ring(r);
    int lost = r->flying > 0 && !child;
    free(r);
    return lost;
}

/* ---- state shared by all rings of a reader ---- */

/* Ensure that the process can open SPARE more files after descriptor `fd`, the highest so far. If
 * its limit on open files is too low for that, raise the limit by one. Return 1, or 0 if the system
 * does not allow a higher limit. */
static int spare_descriptors(int fd)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) < 0 || (rlim_t)fd + SPARE < l.rlim_cur) return 1;
    l.rlim_cur++;
    return setrlimit(RLIMIT_NOFILE, &l) == 0;
}

/* Make a file use O_DIRECT, and try to read from it with alignment `align`. Return 1 if this works,
 * or 0 if it fails (errno has the reason). */
static int go_direct(int fd, size_t align)
{
    alignas(SGT_RING_ALIGN) char bytes[SGT_RING_ALIGN];
    return fcntl(fd, F_SETFL, O_DIRECT) == 0 && pread(fd, bytes, align, 0) >= 0;
}

/* Open the next shard for reads with O_DIRECT, with the smallest alignment that works. If none
 * works, the shard is read through the page cache instead; in this case, set *remark, and send a
 * notice if it is the first such shard. All memory for reads is aligned as shard 0 requires, so an
 * alignment above that of shard 0 does not work either. */
static int open_file(sgt_rings *all, const char **remark, const sgt_notice *notice, sgt_error *err)
{
    size_t most = all->open ? all->files[0].align : SGT_RING_ALIGN;
    file *f = &all->files[all->open];
    f->fd = sgt_set_open_shard(all->set, all->open, err);
    if (f->fd < 0) return f->fd;
    for (f->align = 512; f->align <= most && !go_direct(f->fd, f->align);) f->align *= 8;
    if (f->align > most) {
        char buf[128];
        if (!*remark)
            sgt_say(notice,
                    "%s: the file system refuses direct reads (%s): reading through the page cache "
                    "instead",
                    all->set->shards[all->open].path, strerror_r(errno, buf, sizeof buf));
        *remark = "through the page cache";
        f->align = 1;
        fcntl(f->fd, F_SETFL, 0);
    }
    all->open++;
    if (spare_descriptors(f->fd)) return SGT_OK;
    return sgt_fail(err, SGT_EUNSUPPORTED, "%s", why_no_ring(EMFILE));
}

int sgt_rings_open(sgt_rings **out, const char **remark, const sgt_set *set,
                   const sgt_notice *notice, sgt_error *err)
{
    sgt_rings *all = calloc(1, sizeof *all + set->count * sizeof *all->files);
    if (!all) return sgt_fail_memory(err, set->shards[0].path);
    all->set = set;
    sgt_ring trial = {.all = all, .depth = USUAL_DEPTH};
    int rc = make_ring(&trial);
    if (rc < 0) rc = sgt_fail(err, SGT_EUNSUPPORTED, "%s", why_no_ring(-rc));
    else leave_ring(&trial);
    while (rc == SGT_OK && all->open < set->count) rc = open_file(all, remark, notice, err);
    if (rc < 0) sgt_rings_close(all);
    else *out = all;
    return rc;
}

void sgt_rings_close(sgt_rings *all)
{
    if (!all) return;
    while (all->open) close(all->files[--all->open].fd);
    free(all);
}

size_t sgt_rings_align(const sgt_rings *all) { return all->files[0].align; }

size_t sgt_rings_room(const sgt_rings *all, size_t bytes)
{
    size_t align = sgt_rings_align(all);
    return (bytes + 2 * (align - 1)) / align * align;
}
