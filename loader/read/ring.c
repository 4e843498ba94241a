/* ring.c: an io_uring and its reads in flight.
 *
 * A read waits in a list until fewer than `depth` are in flight, gets a slot and is issued; what comes back is looked at
 * in `ended`, and either issued again (interrupted, or only a part of it arrived) or over. Slots say which reads the
 * kernel has, so that all of them can be issued anew by other means.
 *
 * With SINGLE_ISSUER and DEFER_TASKRUN only one thread, the first that submits, may use the ring: the kernel does the
 * work of a completion when that thread asks for completions, and not by interrupting it. Should another thread come
 * (or close the ring), the reads in flight cannot be waited for through the ring. But the kernel lets go of a ring's
 * registered files when its last read has ended: each such ring has the one end of a pipe among them, and once the ring
 * is closed the other end tells when that is. Then the reads are issued anew, to a ring that any thread may use. */
#include "read/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "read/crew.h"
#include "read/files.h"

#define MOST_DEPTH 4096u
#define MOST_BYTES ((size_t)1 << 30) /* of one read, and of registered memory: what every kernel takes */
#define USUAL_DEPTH 128u             /* of the ring that is tried first */
#define CREW 16u                     /* threads in the place of an io_uring */
#define PATIENCE_MS 10000            /* for reads in flight to end after their ring is closed */

#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif
#define FLAGS (IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_R_DISABLED)

enum { SAID_PREAD, SAID_FLAGS, SAID_FILES, SAID_MEMORY, SAID_CACHE };

enum { IDLE, WAITING, FLYING, DONE, FAILED, ENDED, REFUSED }; /* ENDED: at the file's end. REFUSED: it was not opened */

struct sgt_rings {
    const sgt_set *set;
    sgt_reader_fault fault;
    sgt_once once;
    sgt_files *files;
    int pread;            /* decided at open */
    int plain;            /* likewise: without FLAGS */
    unsigned made, reads; /* atomic, for faults */
    unsigned order;       /* atomic: see make_ring */
    char detail[256];
};

typedef struct flight {
    sgt_ring_read *read;
    sgt_crew_job job;
} flight;

struct sgt_ring {
    sgt_rings *all;
    struct io_uring ring;
    int has_ring;
    unsigned flags;      /* of it */
    int enabled, closing;
    int ruined; /* the errno that it failed with */
    int pipe;            /* see above; -1: none */
    uint8_t *registered; /* which shards are; NULL: files are not registered */
    char *memory;
    size_t memory_bytes;
    int memory_registered;
    sgt_crew *crew; /* in the ring's place ... */
    int error;      /* ... for this reason, an errno */
    pid_t pid;
    unsigned depth, flying;
    sgt_ring_read *first, **end; /* that wait */
    flight *flights;             /* depth */
    unsigned *slots;             /* depth: those without a read are the last depth - flying */
};

static const char *path_of(const sgt_ring *r, uint32_t shard)
{
    return r->all->set->shards[shard].path;
}

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
    default: return "io_uring cannot be had";
    }
}

/* A ring with these flags, or a negative errno. */
static int make_ring(sgt_ring *r, unsigned flags)
{
    sgt_rings *all = r->all;
    const sgt_reader_fault *fault = &all->fault;
    if (fault->ring_error && __atomic_load_n(&all->made, __ATOMIC_RELAXED) >= fault->rings_first)
        return -fault->ring_error;
    if (flags && fault->flags_error) return -fault->flags_error;
    int rc = io_uring_queue_init(fault->ring_entries ? fault->ring_entries : r->depth, &r->ring, flags);
    if (rc < 0) return rc;
    struct io_uring_probe *probe = io_uring_get_probe_ring(&r->ring); /* plain reads came with Linux 5.6 */
    int reads = probe && io_uring_opcode_supported(probe, IORING_OP_READ);
    if (probe) io_uring_free_probe(probe);
    if (!reads) {
        io_uring_queue_exit(&r->ring);
        return -ENOSYS;
    }
    __atomic_fetch_add(&all->made, 1, __ATOMIC_RELAXED);
    /* The kernel may give this ring the memory of one that another thread closed, and only the kernel knows the order
     * of the two. Acquires what leave_ring released, for those (the thread sanitizer) who know of atomics alone. */
    __atomic_fetch_add(&all->order, 1, __ATOMIC_ACQUIRE);
    r->has_ring = 1;
    r->flags = flags;
    r->enabled = !(flags & IORING_SETUP_R_DISABLED);
    return 0;
}

static void leave_ring(sgt_ring *r)
{
    __atomic_fetch_add(&r->all->order, 1, __ATOMIC_RELEASE); /* pairs with make_ring's */
    io_uring_queue_exit(&r->ring);
    r->has_ring = 0;
    free(r->registered);
    r->registered = NULL;
    r->memory_registered = 0;
}

/* A table of `n` files, none of them there yet. */
static int make_table(sgt_ring *r, unsigned n)
{
    struct rlimit limit;
    if (r->all->fault.files_error && n > 1) return -r->all->fault.files_error;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && n > limit.rlim_cur) return -EMFILE; /* what newer kernels say too */
    return io_uring_register_files_sparse(&r->ring, n);
}

/* The pipe's one end becomes file `at` of the table; the other is kept. */
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

/* Where there are too many shards for a table, one of the pipe alone is made: without it there are no FLAGS. */
static int register_files(sgt_ring *r)
{
    char buf[128];
    uint32_t shards = r->all->set->count;
    int rc = make_table(r, shards + 1);
    if (rc == 0 && !(r->registered = calloc(1, shards))) rc = -ENOMEM;
    if (rc < 0) {
        sgt_once_say(&r->all->once, SAID_FILES,
                     "io_uring cannot register %" PRIu32 " files here (%s): handing them over with each read", shards,
                     strerror_r(-rc, buf, sizeof buf));
        if (!r->flags) return 0;
        if ((rc = make_table(r, 1)) < 0) return rc;
    }
    return r->flags ? put_pipe(r, r->registered ? shards : 0) : 0;
}

static void register_memory(sgt_ring *r)
{
    char buf[128];
    struct iovec v = {r->memory, r->memory_bytes};
    if (!r->memory) return;
    int rc = r->all->fault.memory_error ? -r->all->fault.memory_error : io_uring_register_buffers(&r->ring, &v, 1);
    r->memory_registered = rc == 0;
    if (rc == 0) return;
    sgt_once_say(&r->all->once, SAID_MEMORY,
                 "io_uring cannot register %zu KiB of memory here (%s; ulimit -l): reading into memory that is not",
                 r->memory_bytes >> 10, strerror_r(-rc, buf, sizeof buf));
}

/* As good a ring as can be had, for any thread if `plain`; 0, or a negative errno. */
static int get_ring(sgt_ring *r, int plain)
{
    char buf[128];
    int refused = 0;
    if (!plain && !r->all->plain) {
        refused = make_ring(r, FLAGS);
        if (refused == 0 && (refused = register_files(r)) < 0) leave_ring(r);
    }
    if (!r->has_ring) {
        int rc = make_ring(r, 0);
        if (rc < 0) return rc;
        if (refused)
            sgt_once_say(&r->all->once, SAID_FLAGS,
                         "io_uring has no SINGLE_ISSUER and DEFER_TASKRUN here (%s): doing without",
                         strerror_r(-refused, buf, sizeof buf));
        register_files(r);
    }
    register_memory(r);
    return 0;
}

/* An io_uring, or a crew. */
static int get_means(sgt_ring *r, int plain)
{
    char buf[128];
    r->error = r->all->pread ? 0 : -get_ring(r, plain);
    if (r->has_ring) return 1;
    if (r->error)
        sgt_once_say(&r->all->once, SAID_PREAD, "%s here (%s): reading with pread instead", why_no_ring(r->error),
                     strerror_r(r->error, buf, sizeof buf));
    r->crew = sgt_crew_open(r->depth < CREW ? r->depth : CREW);
    return r->crew != NULL;
}

int sgt_ring_open(sgt_ring **out, sgt_rings *all, unsigned depth, void *memory, size_t bytes, sgt_error *err)
{
    sgt_ring *r = calloc(1, sizeof *r);
    if (r) {
        r->all = all;
        r->depth = !depth ? 1 : depth < MOST_DEPTH ? depth : MOST_DEPTH;
        r->pid = getpid();
        r->memory = memory;
        r->memory_bytes = bytes;
        r->pipe = -1;
        r->end = &r->first;
        r->flights = calloc(r->depth, sizeof *r->flights);
        r->slots = calloc(r->depth, sizeof *r->slots);
    }
    if (!r || !r->flights || !r->slots || !get_means(r, 0)) {
        sgt_ring_close(r);
        return sgt_fail(err, SGT_ENOMEM, "%s: %u reads in flight: out of memory", all->set->shards[0].path, depth);
    }
    for (unsigned i = 0; i < r->depth; i++) r->slots[i] = i;
    *out = r;
    return SGT_OK;
}

/* ---- a read ---- */

static size_t needed(const sgt_ring_read *d)
{
    return d->skip + d->bytes;
}

/* What is asked for next: all that is missing, to the next multiple of the alignment. */
static size_t ask_bytes(const sgt_ring *r, const sgt_ring_read *d)
{
    size_t most = r->all->fault.most_bytes ? r->all->fault.most_bytes : MOST_BYTES;
    size_t left = (needed(d) + d->align - 1) / d->align * d->align - d->done;
    if (most < d->align) most = d->align;
    return left < most ? left : most / d->align * d->align;
}

static uint64_t ask_at(const sgt_ring_read *d)
{
    return d->at - d->skip + d->done;
}

static int into_registered(const sgt_ring *r, const char *to, size_t bytes)
{
    return r->memory_registered && to >= r->memory && bytes <= r->memory_bytes &&
           (size_t)(to - r->memory) <= r->memory_bytes - bytes;
}

/* Its descriptor, or the number of its file in the ring's table, and where it begins. */
static int prepare(sgt_ring *r, sgt_ring_read *d, sgt_error *err)
{
    d->registered = r->registered && r->registered[d->shard];
    d->fd = d->registered ? (int)d->shard : sgt_files_take(r->all->files, d->shard, err);
    if (d->fd < 0) return d->fd;
    if (!d->registered) {
        d->taken = 1;
        if (r->registered && io_uring_register_files_update(&r->ring, d->shard, &d->fd, 1) == 1) {
            r->registered[d->shard] = 1;
            sgt_files_give(r->all->files, d->shard); /* the table holds it open */
            d->taken = 0;
            d->registered = 1;
            d->fd = (int)d->shard;
        }
    }
    d->align = sgt_files_align(r->all->files, d->shard);
    d->skip = (size_t)(d->at % d->align);
    d->done = 0;
    d->data = d->to + d->skip;
    return 0;
}

static void give_back(sgt_ring *r, sgt_ring_read *d)
{
    if (d->taken) sgt_files_give(r->all->files, d->shard);
    d->taken = 0;
    d->fd = -1;
}

static void finish(sgt_ring *r, sgt_ring_read *d, int state)
{
    give_back(r, d);
    d->state = state;
}

static void append(sgt_ring *r, sgt_ring_read *d)
{
    d->state = WAITING;
    d->next = NULL;
    *r->end = d;
    r->end = &d->next;
}

static void shift(sgt_ring *r)
{
    if (!(r->first = r->first->next)) r->end = &r->first;
}

/* ---- issuing ---- */

/* 0: no room for it now. */
static int issue(sgt_ring *r, sgt_ring_read *d)
{
    unsigned slot = r->slots[r->flying];
    flight *f = &r->flights[slot];
    char *to = d->to + d->done;
    size_t bytes = ask_bytes(r, d);
    f->read = d;
    if (r->has_ring) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);
        if (!sqe) return 0;
        if (into_registered(r, to, bytes))
            io_uring_prep_read_fixed(sqe, d->fd, to, (unsigned)bytes, ask_at(d), 0);
        else
            io_uring_prep_read(sqe, d->fd, to, (unsigned)bytes, ask_at(d));
        if (d->registered) io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
        io_uring_sqe_set_data64(sqe, slot);
    } else {
        f->job = (sgt_crew_job){.fd = d->fd, .to = to, .bytes = bytes, .at = ask_at(d)};
        sgt_crew_put(r->crew, &f->job);
    }
    d->state = FLYING;
    r->flying++;
    return 1;
}

/* Issues those that wait, as many as may fly; 0: there was no room for one. */
static int issue_waiting(sgt_ring *r)
{
    while (r->first && r->flying < r->depth) {
        sgt_ring_read *d = r->first;
        sgt_ring_read *after = d->next;
        if (d->fd < 0 && prepare(r, d, NULL) < 0) {
            shift(r);
            finish(r, d, REFUSED);
        } else if (issue(r, d)) {
            r->first = after;
            if (!after) r->end = &r->first;
        } else {
            return 0;
        }
    }
    return 1;
}

/* ---- what comes back ---- */

static int faulty(sgt_ring *r, sgt_ring_read *d, int result)
{
    const sgt_reader_fault *f = &r->all->fault;
    if (f->first_error && !d->tried) result = -f->first_error;
    if (f->direct_read_error && d->align > 1) result = -f->direct_read_error;
    if (f->read_error && __atomic_fetch_add(&r->all->reads, 1, __ATOMIC_RELAXED) >= f->reads_first)
        result = -f->read_error;
    d->tried = 1;
    return result;
}

/* A direct read that ends within its alignment has met the file's end. */
static void ended(sgt_ring *r, unsigned slot, int result)
{
    sgt_ring_read *d = r->flights[slot].read;
    r->slots[--r->flying] = slot;
    result = faulty(r, d, result);
    if (result > 0) d->done += (size_t)result;
    if (result > 0 && d->done >= needed(d)) {
        finish(r, d, DONE);
    } else if (result == 0 || d->done % d->align) {
        finish(r, d, ENDED);
    } else if (result > 0 || result == -EINTR || result == -EAGAIN) {
        append(r, d);
    } else if (result == -EINVAL && d->align > 1) {
        sgt_files_refuse(r->all->files, d->shard, EINVAL);
        if (r->registered) r->registered[d->shard] = 0; /* it goes there anew, turned to other reads */
        give_back(r, d);
        append(r, d);
    } else {
        d->error = -result;
        finish(r, d, FAILED);
    }
}

static void reap(sgt_ring *r)
{
    struct io_uring_cqe *cqes[64];
    unsigned n;
    while (r->has_ring && (n = io_uring_peek_batch_cqe(&r->ring, cqes, 64)) > 0) {
        for (unsigned i = 0; i < n; i++) ended(r, (unsigned)io_uring_cqe_get_data64(cqes[i]), cqes[i]->res);
        io_uring_cq_advance(&r->ring, n);
    }
}

static void reap_crew(sgt_ring *r, unsigned wait)
{
    sgt_crew_job *job;
    while ((job = sgt_crew_take(r->crew, wait > 0))) {
        flight *f = (flight *)(void *)((char *)job - offsetof(flight, job));
        ended(r, (unsigned)(f - r->flights), job->result);
        if (wait) wait--;
    }
}

/* Leaves the ring without the help of its thread, and waits until no read is in flight; 0: nobody can say when. */
static int leave_from_afar(sgt_ring *r)
{
    struct pollfd end = {.fd = r->pipe};
    int told = 0;
    leave_ring(r);
    if (!r->flying) return 1;
    if (r->pipe >= 0)
        while ((told = poll(&end, 1, PATIENCE_MS)) < 0 && errno == EINTR) {}
    return told == 1;
}

/* Another thread uses the ring now: everything in flight is issued anew, to one that any thread may use. */
static void move(sgt_ring *r)
{
    unsigned n = r->flying;
    if (!leave_from_afar(r)) {
        r->ruined = EIO;
        return;
    }
    r->flying = 0;
    if (!r->closing && !get_means(r, 1)) r->ruined = ENOMEM;
    for (unsigned i = 0; i < n; i++) append(r, r->flights[r->slots[i]].read);
    for (sgt_ring_read *d = r->first; d; d = d->next) give_back(r, d); /* the table that it is in is no more */
}

/* By hand: liburing 2.3 declares this call and leaves it out of its library. */
static int enable(sgt_ring *r)
{
    if (r->enabled) return 0;
    r->enabled = 1;
    return syscall(SYS_io_uring_register, r->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0) < 0 ? -errno : 0;
}

/* How many reads to wait for where `pending` are wanted. While others wait for their turn, a quarter of the depth:
 * theirs comes before the disk runs out of work. */
static unsigned patience(const sgt_ring *r, uint32_t pending)
{
    unsigned most = r->first ? (r->depth + 3) / 4 : r->flying;
    if (most > r->flying) most = r->flying;
    return pending < most ? pending : most;
}

static int enter_ring(sgt_ring *r, uint32_t pending)
{
    int full, rc = enable(r);
    if (rc < 0) return rc;
    do {
        full = !issue_waiting(r);
        unsigned wait = full ? 0 : patience(r, pending);
        rc = wait ? io_uring_submit_and_wait(&r->ring, wait) : io_uring_submit(&r->ring);
    } while (full && rc > 0);
    return rc;
}

/* Hands over what waits, and takes note of what has ended; where `pending` reads are wanted, of one at least. */
static void enter(sgt_ring *r, uint32_t pending)
{
    int rc = r->has_ring ? enter_ring(r, pending) : 0;
    if (rc == -EEXIST) {
        move(r);
    } else if (rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY) {
        r->ruined = -rc;
        if (leave_from_afar(r)) r->flying = 0;
    }
    if (r->has_ring) {
        reap(r);
    } else if (r->crew) {
        issue_waiting(r);
        reap_crew(r, patience(r, pending));
    }
}

/* ---- what callers see ---- */

uint32_t sgt_ring_pending(const sgt_ring_read *reads, uint32_t n)
{
    uint32_t pending = 0;
    for (uint32_t i = 0; i < n; i++) pending += reads[i].state == WAITING || reads[i].state == FLYING;
    return pending;
}

void sgt_ring_ask(sgt_ring *r, sgt_ring_read *d)
{
    if (r->ruined || sgt_ring_pending(d, 1)) return; /* the latter is the child's, which waits for nothing */
    d->fd = -1;
    d->taken = d->tried = d->error = 0;
    append(r, d);
}

void sgt_ring_submit(sgt_ring *r)
{
    if (r->first && !r->ruined && r->pid == getpid()) enter(r, 0);
}

void sgt_ring_drop(sgt_ring *r, const sgt_ring_read *reads, uint32_t n)
{
    sgt_ring_read *d = r->first;
    r->first = NULL;
    r->end = &r->first;
    while (d) {
        sgt_ring_read *after = d->next;
        if (d >= reads && d < reads + n)
            finish(r, d, IDLE);
        else
            append(r, d);
        d = after;
    }
}

static int fail_read(const sgt_ring *r, const sgt_ring_read *d, sgt_error *err)
{
    uint64_t at = ask_at(d) < d->at && d->state == FAILED ? d->at : ask_at(d);
    if (d->state == ENDED)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: ends at byte %" PRIu64 ", in the middle of a window: cut short while in use",
                        path_of(r, d->shard), at);
    errno = d->error;
    return sgt_fail_errno(err, "%s: at byte %" PRIu64 ": cannot read", path_of(r, d->shard), at);
}

/* One that was not opened is tried again, now that no other read holds a descriptor. */
static int open_refused(sgt_ring *r, sgt_ring_read *reads, uint32_t n, sgt_error *err)
{
    int again = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (reads[i].state != REFUSED) continue;
        int fd = sgt_files_take(r->all->files, reads[i].shard, err);
        if (fd < 0) return fd;
        sgt_files_give(r->all->files, reads[i].shard);
        sgt_ring_ask(r, &reads[i]);
        again = 1;
    }
    return again;
}

int sgt_ring_wait(sgt_ring *r, sgt_ring_read *reads, uint32_t n, sgt_error *err)
{
    uint32_t pending;
    int again;
    if (r->pid != getpid())
        return sgt_fail(err, SGT_EUSAGE, "a cursor of before a fork: a child opens its own (io_uring is not inherited)");
    do {
        while (!r->ruined && (pending = sgt_ring_pending(reads, n)) > 0) enter(r, pending);
        again = r->ruined ? 0 : open_refused(r, reads, n, err);
    } while (again > 0);
    if (again < 0) return again;
    if (r->ruined) {
        errno = r->ruined;
        return sgt_fail_errno(err, "%s: io_uring failed", path_of(r, n ? reads[0].shard : 0));
    }
    for (uint32_t i = 0; i < n; i++)
        if (reads[i].state == FAILED || reads[i].state == ENDED) return fail_read(r, &reads[i], err);
    return SGT_OK;
}

/* A child has copies of what its parent goes on with: it lets go of them and waits for nothing. */
static int stop(sgt_ring *r)
{
    int child = r->pid != getpid();
    r->closing = 1;
    do {
        while (r->first) {
            sgt_ring_read *d = r->first;
            shift(r);
            finish(r, d, IDLE);
        }
        if (r->flying && !r->ruined && !child) enter(r, r->flying);
    } while (r->first || (r->flying && !r->ruined && !child));
    if (r->has_ring) leave_ring(r);
    if (!child) sgt_crew_close(r->crew);
    return r->flying > 0 && !child;
}

int sgt_ring_close(sgt_ring *r)
{
    if (!r) return 0;
    int lost = stop(r);
    if (r->pipe >= 0) close(r->pipe);
    free(r->flights);
    free(r->slots);
    free(r);
    return lost;
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

/* Makes a ring, to see what can be had. */
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

int sgt_rings_open(sgt_rings **out, const sgt_set *set, const sgt_reader_options *o, size_t reads, size_t bytes,
                   sgt_error *err)
{
    sgt_rings *all = calloc(1, sizeof *all);
    if (!all) return sgt_fail(err, SGT_ENOMEM, "%s: out of memory", set->shards[0].path);
    all->set = set;
    all->fault = o->fault;
    sgt_once_init(&all->once, &o->notice);
    int rc = sgt_files_open(&all->files, set, &all->fault, &all->once, SAID_CACHE, err);
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
    sgt_once_free(&all->once);
    free(all);
}

const char *sgt_rings_detail(const sgt_rings *all)
{
    return all->detail;
}

size_t sgt_rings_align(const sgt_rings *all)
{
    return sgt_files_align(all->files, 0);
}

size_t sgt_rings_room(const sgt_rings *all, size_t bytes)
{
    size_t align = sgt_rings_align(all);
    return (bytes + 2 * (align - 1)) / align * align;
}
