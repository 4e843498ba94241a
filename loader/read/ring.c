/* ring.c: implements ring.h.
 *
 * A read waits in a list until fewer than `depth` reads are in flight; then it is issued. When it
 * comes back, `complete_read` completes it, or queues the rest of it if it was interrupted or
 * short. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loader/read/files.h"
#include "loader/read/ring.h"

#define MOST_DEPTH 4096u
#define MOST_BYTES ((size_t)1 << 30) /* bytes of one read: every kernel accepts this */
/* depth of the ring that is made at open, to find out which features are available */
#define USUAL_DEPTH 128u
#define FEWEST 8 /* descriptors that may stay open, even if the process's limit is very low */

/* state of a read. ENDED: the file ended before the read's last byte. REFUSED: the file could not
 * be opened */
enum { IDLE, WAITING, FLYING, DONE, FAILED, ENDED, REFUSED };

struct sgt_rings {
    const sgt_set *set;
    sgt_files *files;
    size_t align;   /* alignment in bytes of shard 0's reads; no shard gets a larger one */
    unsigned order; /* atomic: see make_ring */
};

struct sgt_ring {
    sgt_rings *all;
    struct io_uring ring;
    struct iovec
        memory; /* registered with the ring, so that reads into it pin no pages; or empty */
    int ruined; /* errno with which the ring failed while it was in use; else 0 */
    pid_t pid;
    unsigned depth, flying; /* most reads in the kernel, and how many are */
    /* the reads that wait to be issued, first and last */
    sgt_ring_read *waiting, *last;
    sgt_error refusal; /* why the file of the last REFUSED read could not be opened */
};

/* ---- io_uring ---- */

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

/* Make an io_uring; return 0 or a negative errno. It has no SINGLE_ISSUER and DEFER_TASKRUN: they
 * made reading no faster, and any thread may use or close a ring without them. */
static int make_ring(sgt_ring *r)
{
    int rc = io_uring_queue_init(r->depth, &r->ring, 0);
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
     * another thread's ring had. This operation acquires what leave_ring released. */
    __atomic_fetch_add(&r->all->order, 1, __ATOMIC_ACQUIRE);
    return 0;
}

static void leave_ring(sgt_ring *r)
{
    __atomic_fetch_add(&r->all->order, 1, __ATOMIC_RELEASE); /* pairs with the load in make_ring */
    io_uring_queue_exit(&r->ring);
}

/* ---- a read ---- */

static const char *path_of(const sgt_ring *r, uint32_t shard)
{
    return r->all->set->shards[shard].path;
}

static size_t needed(const sgt_ring_read *d) { return d->skip + d->bytes; }

/* Return how many bytes to request next: all that are missing, rounded up to the alignment. */
static size_t ask_bytes(const sgt_ring_read *d)
{
    size_t left = (needed(d) + d->align - 1) / d->align * d->align - d->done;
    return left < MOST_BYTES ? left : MOST_BYTES;
}

static uint64_t ask_at(const sgt_ring_read *d) { return d->at - d->skip + d->done; }

/* Open the read's file, and find the alignment of its reads. Return 0 if the file cannot be opened.
 * That is final if no other read of this ring is in flight, which could give a descriptor back. */
static int prepare(sgt_ring *r, sgt_ring_read *d)
{
    d->fd = sgt_files_take(r->all->files, d->shard, !r->flying, &r->refusal);
    if (d->fd < 0) return 0;
    d->align = sgt_files_align(r->all->files, d->shard);
    d->skip = (size_t)(d->at % d->align);
    d->done = 0;
    d->data = d->to + d->skip;
    return 1;
}

static void finish(sgt_ring *r, sgt_ring_read *d, int state)
{
    if (d->fd >= 0) sgt_files_give(r->all->files, d->shard);
    d->fd = -1;
    d->state = state;
}

static void queue(sgt_ring *r, sgt_ring_read *d)
{
    d->state = WAITING;
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

/* Give a read to the kernel, whose queue has room. */
static void issue(sgt_ring *r, sgt_ring_read *d)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);
    char *to = d->to + d->done;
    size_t bytes = ask_bytes(d);
    if (is_registered(r, to, bytes))
        io_uring_prep_read_fixed(sqe, d->fd, to, (unsigned)bytes, ask_at(d), 0);
    else io_uring_prep_read(sqe, d->fd, to, (unsigned)bytes, ask_at(d));
    io_uring_sqe_set_data(sqe, d);
    d->state = FLYING;
    r->flying++;
}

/* Issue waiting reads until `depth` are in flight. Return 0 if the ring has no room for one, or if
 * no descriptor is available for it while others are in flight. */
static int issue_waiting(sgt_ring *r)
{
    while (r->waiting && r->flying < r->depth) {
        sgt_ring_read *d = r->waiting;
        int ready = d->fd >= 0 || prepare(r, d);
        if (!ready && r->flying) return 0;
        if (!io_uring_sq_space_left(&r->ring)) return 0;
        r->waiting = d->next;
        if (ready) issue(r, d);
        else finish(r, d, REFUSED);
    }
    return 1;
}

/* ---- what comes back ---- */

/* Handle the result of a read: complete it, or queue it again. A direct read whose length is no
 * multiple of the alignment has reached the end of the file. */
static void complete_read(sgt_ring *r, sgt_ring_read *d, int result)
{
    r->flying--;
    if (result > 0) d->done += (size_t)result;
    if (result > 0 && d->done >= needed(d)) {
        finish(r, d, DONE);
    } else if (result == 0 || d->done % d->align) {
        finish(r, d, ENDED);
    } else if (result > 0 || result == -EINTR || result == -EAGAIN || result == -ECANCELED) {
        queue(r, d); /* ECANCELED: the thread that issued the read has ended */
    } else {
        d->error = -result;
        finish(r, d, FAILED);
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

/* Return how many completions to wait for at once; `pending` reads are wanted. If reads wait for a
 * slot, return at most a quarter of the depth, so that they are issued before the disk is idle. */
static unsigned patience(const sgt_ring *r, uint32_t pending)
{
    unsigned most = r->waiting ? (r->depth + 3) / 4 : r->flying;
    if (most > r->flying) most = r->flying;
    return pending < most ? pending : most;
}

/* Submit the waiting reads and collect the completed ones. If `pending` reads are wanted, wait for
 * at least one. */
static void enter(sgt_ring *r, uint32_t pending)
{
    int rc = 0;
    while (!issue_waiting(r) && (rc = io_uring_submit(&r->ring)) > 0) {
    }
    unsigned wait = rc < 0 ? 0 : patience(r, pending);
    if (rc >= 0) rc = wait ? io_uring_submit_and_wait(&r->ring, wait) : io_uring_submit(&r->ring);
    if (rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY) r->ruined = -rc;
    reap(r);
}

/* ---- what callers see ---- */

int sgt_ring_open(sgt_ring **out, sgt_rings *all, unsigned depth, void *memory, size_t bytes,
                  sgt_error *err)
{
    sgt_ring *r = calloc(1, sizeof *r);
    if (!r) return sgt_fail_memory(err, all->set->shards[0].path);
    r->all = all;
    r->depth = !depth ? 1 : depth < MOST_DEPTH ? depth : MOST_DEPTH;
    r->pid = getpid();
    int rc = make_ring(r);
    if (rc < 0) {
        free(r);
        return sgt_fail(err, SGT_EUNSUPPORTED, "%s (the reader mmap needs none)", why_no_ring(-rc));
    }
    if (memory) {
        r->memory = (struct iovec){memory, bytes};
        /* few users may lock much memory: without this, reading takes a little more of the CPU */
        if (io_uring_register_buffers(&r->ring, &r->memory, 1) < 0) r->memory = (struct iovec){0};
    }
    *out = r;
    return SGT_OK;
}

uint32_t sgt_ring_pending(const sgt_ring_read *reads, uint32_t n)
{
    uint32_t pending = 0;
    for (uint32_t i = 0; i < n; i++)
        pending += reads[i].state == WAITING || reads[i].state == FLYING;
    return pending;
}

void sgt_ring_ask(sgt_ring *r, sgt_ring_read *d)
{
    /* Ignore a read that already waits or is in flight. After a fork, those of the parent count as
     * in flight in the child for ever, which cannot learn when they end. */
    if (r->ruined || sgt_ring_pending(d, 1)) return;
    d->fd = -1;
    d->error = 0;
    queue(r, d);
}

void sgt_ring_submit(sgt_ring *r)
{
    if (!r->ruined && r->pid == getpid()) enter(r, 0);
}

static int fail_read(const sgt_ring *r, const sgt_ring_read *d, sgt_error *err)
{
    if (d->state == REFUSED) {
        if (err) *err = r->refusal;
        return r->refusal.code;
    }
    uint64_t at = ask_at(d) < d->at && d->state == FAILED ? d->at : ask_at(d), end;
    /* the read may lie behind the file's end */
    if (d->state == ENDED && sgt_set_is_cut(&r->all->set->shards[d->shard], &end)) at = end;
    if (d->state == ENDED)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: ends at byte %" PRIu64
                        ", in the middle of a window: cut short while in use",
                        path_of(r, d->shard), at);
    errno = d->error;
    return sgt_fail_errno(err, "%s: at byte %" PRIu64 ": cannot read", path_of(r, d->shard), at);
}

int sgt_ring_wait(sgt_ring *r, sgt_ring_read *reads, uint32_t n, sgt_error *err)
{
    uint32_t pending;
    if (r->pid != getpid())
        return sgt_fail(err, SGT_EUSAGE,
                        "the cursor belongs to the parent process: io_uring does not survive a "
                        "fork (open a cursor in the child)");
    /* a file that could not be opened ahead of its need may be there now */
    for (uint32_t i = 0; i < n; i++)
        if (reads[i].state == REFUSED) sgt_ring_ask(r, &reads[i]);
    while (!r->ruined && (pending = sgt_ring_pending(reads, n)) > 0) enter(r, pending);
    if (r->ruined) {
        errno = r->ruined;
        return sgt_fail_errno(err, "%s: io_uring failed", path_of(r, n ? reads[0].shard : 0));
    }
    for (uint32_t i = 0; i < n; i++)
        if (reads[i].state == FAILED || reads[i].state == ENDED || reads[i].state == REFUSED)
            return fail_read(r, &reads[i], err);
    return SGT_OK;
}

int sgt_ring_close(sgt_ring *r)
{
    if (!r) return 0;
    int child = r->pid != getpid(); /* a child after fork only drops its copies */
    do {
        for (; r->waiting; r->waiting = r->waiting->next) finish(r, r->waiting, IDLE);
        if (r->flying && !r->ruined && !child) enter(r, r->flying);
    } while (r->waiting || (r->flying && !r->ruined && !child));
    leave_ring(r);
    int lost = r->flying > 0 && !child;
    free(r);
    return lost;
}

/* ---- what the rings of a reader share ---- */

/* Return how many descriptors may be open: half of the process's limit, so that the program keeps
 * the other half. */
static uint32_t most_open(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 2 < FEWEST) return FEWEST;
    return limit.rlim_cur / 2 > UINT32_MAX ? UINT32_MAX : (uint32_t)(limit.rlim_cur / 2);
}

int sgt_rings_open(sgt_rings **out, const char **refused, const sgt_set *set,
                   const sgt_notice *notice, sgt_error *err)
{
    sgt_rings *all = calloc(1, sizeof *all);
    if (!all) return sgt_fail_memory(err, set->shards[0].path);
    all->set = set;
    sgt_ring trial = {.all = all, .depth = USUAL_DEPTH};
    int rc = make_ring(&trial);
    if (rc < 0) {
        *refused = why_no_ring(-rc);
        rc = sgt_fail(err, SGT_EUNSUPPORTED, "%s", *refused);
    } else {
        leave_ring(&trial);
        rc = sgt_files_open(&all->files, set, most_open(), notice, err);
    }
    if (rc < 0) {
        sgt_rings_close(all);
        return rc;
    }
    all->align = sgt_files_align(all->files, 0);
    *out = all;
    return SGT_OK;
}

void sgt_rings_close(sgt_rings *all)
{
    if (!all) return;
    sgt_files_close(all->files);
    free(all);
}

size_t sgt_rings_align(const sgt_rings *all) { return all->align; }

size_t sgt_rings_room(const sgt_rings *all, size_t bytes)
{
    size_t align = sgt_rings_align(all);
    return (bytes + 2 * (align - 1)) / align * align;
}
