/* ring.c: implements ring.h.
 *
 * A read waits in a list until fewer than `depth` reads are in flight; then it gets a slot and is
 * issued. When the kernel returns it, `ended` completes it, or queues the rest of it if it was
 * interrupted or short. Slots record which reads the kernel has, so that `move` can issue them all
 * again. It does so if a second thread uses a ring that only its first thread may use, or if the
 * ring fails. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "loader/read/setup.h"

#define MOST_DEPTH 4096u
#define MOST_BYTES ((size_t)1 << 30) /* bytes of one read: every kernel accepts this */

/* state of a read. ENDED: the file ended before the read's last byte. REFUSED: the file could not
 * be opened */
enum { IDLE, WAITING, FLYING, DONE, FAILED, ENDED, REFUSED };

static const char *path_of(const sgt_ring *r, uint32_t shard)
{
    return r->all->set->shards[shard].path;
}

/* ---- a read ---- */

static size_t needed(const sgt_ring_read *d) { return d->skip + d->bytes; }

/* Return how many bytes to request next: all that are missing, rounded up to the alignment. */
static size_t ask_bytes(const sgt_ring_read *d)
{
    size_t left = (needed(d) + d->align - 1) / d->align * d->align - d->done;
    return left < MOST_BYTES ? left : MOST_BYTES;
}

static uint64_t ask_at(const sgt_ring_read *d) { return d->at - d->skip + d->done; }

static int into_registered(const sgt_ring *r, const char *to, size_t bytes)
{
    return r->memory_registered && to >= r->memory && bytes <= r->memory_bytes &&
           (size_t)(to - r->memory) <= r->memory_bytes - bytes;
}

/* Set the read's file, which is a descriptor or an index in the ring's table of registered files,
 * and its alignment. Return 0 or a negative SGT_E*. */
static int prepare(sgt_ring *r, sgt_ring_read *d, sgt_error *err)
{
    d->registered = r->registered && r->registered[d->shard];
    d->fd =
        d->registered ? (int)d->shard : sgt_files_take(r->all->files, d->shard, !r->flying, err);
    if (d->fd < 0) return d->fd;
    if (!d->registered) {
        d->taken = 1;
        if (r->registered && io_uring_register_files_update(&r->ring, d->shard, &d->fd, 1) == 1) {
            r->registered[d->shard] = 1;
            sgt_files_give(r->all->files, d->shard); /* the ring's table keeps the file open */
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

/* Give a read to the kernel or to the thread pool. Return 0 if the ring has no room for it now. */
static int issue(sgt_ring *r, sgt_ring_read *d)
{
    unsigned slot = r->slots[r->flying];
    flight *f = &r->flights[slot];
    char *to = d->to + d->done;
    size_t bytes = ask_bytes(d);
    if (r->has_ring) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);
        if (!sqe) return 0;
        if (into_registered(r, to, bytes))
            io_uring_prep_read_fixed(sqe, d->fd, to, (unsigned)bytes, ask_at(d), 0);
        else io_uring_prep_read(sqe, d->fd, to, (unsigned)bytes, ask_at(d));
        if (d->registered) io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
        io_uring_sqe_set_data64(sqe, slot);
    } else {
        f->job = (sgt_thread_pool_job){.fd = d->fd, .to = to, .bytes = bytes, .at = ask_at(d)};
        sgt_thread_pool_put(r->pool, &f->job);
    }
    f->read = d;
    d->state = FLYING;
    r->flying++;
    return 1;
}

/* Issue waiting reads until `depth` are in flight. Return 0 if the ring has no room for one, or if
 * no descriptor is available for it while others are in flight. */
static int issue_waiting(sgt_ring *r)
{
    while (r->first && r->flying < r->depth) {
        sgt_ring_read *d = r->first;
        int ready = d->fd >= 0 || prepare(r, d, NULL) == 0;
        if (!ready && r->flying) return 0;
        if (ready && !issue(r, d)) return 0;
        shift(r);
        if (!ready) finish(r, d, REFUSED);
    }
    return 1;
}

/* ---- what comes back ---- */

/* Queue a read again as a buffered one, because direct reads of its file are refused. Unregister
 * the file, so that it is registered again, opened without O_DIRECT. */
static void read_otherwise(sgt_ring *r, sgt_ring_read *d)
{
    if (d->align > 1) sgt_files_refuse(r->all->files, d->shard, EINVAL);
    if (r->registered) r->registered[d->shard] = 0;
    d->turned = 1;
    give_back(r, d);
    append(r, d);
}

/* Handle the result of a read: complete it, or queue it again. A direct read whose length is no
 * multiple of the alignment has reached the end of the file. */
static void ended(sgt_ring *r, unsigned slot, int result)
{
    sgt_ring_read *d = r->flights[slot].read;
    r->flights[slot].read = NULL;
    r->slots[--r->flying] = slot;
    if (result > 0) d->done += (size_t)result;
    if (result > 0 && d->done >= needed(d)) {
        finish(r, d, DONE);
    } else if (result == 0 || d->done % d->align) {
        finish(r, d, ENDED);
    } else if (result > 0 || result == -EINTR || result == -EAGAIN || result == -ECANCELED) {
        append(r, d); /* ECANCELED: the thread that issued the read has ended */
    } else if (result == -EINVAL && !d->turned) {
        read_otherwise(r, d);
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
        for (unsigned i = 0; i < n; i++)
            ended(r, (unsigned)io_uring_cqe_get_data64(cqes[i]), cqes[i]->res);
        io_uring_cq_advance(&r->ring, n);
    }
}

static void reap_pool(sgt_ring *r, unsigned wait)
{
    sgt_thread_pool_job *job;
    while ((job = sgt_thread_pool_take(r->pool, wait > 0))) {
        flight *f = (flight *)(void *)((char *)job - offsetof(flight, job));
        ended(r, (unsigned)(f - r->flights), job->result);
        if (wait) wait--;
    }
}

/* Issue all reads in flight again. error 0: to a ring that any thread may use, because another
 * thread uses this one now. Otherwise to a thread pool, because the ring failed with this errno. */
static void move(sgt_ring *r, int error)
{
    if (!sgt_setup_leave_from_afar(r)) {
        r->ruined = error ? error : EIO;
        return;
    }
    r->flying = 0;
    if (!r->closing && !(error ? sgt_setup_replace(r, error) : sgt_setup_get(r, 1)))
        r->ruined = ENOMEM;
    for (unsigned i = 0; i < r->depth; i++) {
        r->slots[i] = i;
        if (r->flights[i].read) append(r, r->flights[i].read);
        r->flights[i].read = NULL;
    }
    /* the closed ring's table of files is gone: release each read's file, so that it is opened
     * again */
    for (sgt_ring_read *d = r->first; d; d = d->next) give_back(r, d);
}

/* Return how many completions to wait for at once; `pending` reads are wanted. If reads wait for a
 * slot, return at most a quarter of the depth, so that they are issued before the disk is idle. */
static unsigned patience(const sgt_ring *r, uint32_t pending)
{
    unsigned most = r->first ? (r->depth + 3) / 4 : r->flying;
    if (most > r->flying) most = r->flying;
    return pending < most ? pending : most;
}

static int enter_ring(sgt_ring *r, uint32_t pending)
{
    int rc = sgt_setup_enable(r);
    if (rc < 0) return rc;
    while (!issue_waiting(r) && (rc = io_uring_submit(&r->ring)) > 0) {
    }
    unsigned wait = rc < 0 ? 0 : patience(r, pending);
    return rc < 0 ? rc
           : wait ? io_uring_submit_and_wait(&r->ring, wait)
                  : io_uring_submit(&r->ring);
}

/* Submit the waiting reads and collect the completed ones. If `pending` reads are wanted, wait for
 * at least one. */
static void enter(sgt_ring *r, uint32_t pending)
{
    int rc = r->has_ring ? enter_ring(r, pending) : 0;
    if (rc == -EEXIST) move(r, 0);
    else if (rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY) move(r, -rc);
    if (r->has_ring) {
        reap(r);
    } else if (r->pool) {
        issue_waiting(r);
        reap_pool(r, patience(r, pending));
    }
}

/* ---- what callers see ---- */

int sgt_ring_open(sgt_ring **out, sgt_rings *all, unsigned depth, void *memory, size_t bytes,
                  sgt_error *err)
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
    if (!r || !r->flights || !r->slots || !sgt_setup_get(r, 0)) {
        sgt_ring_close(r);
        return sgt_fail(err, SGT_ENOMEM, "%s: %u reads in flight: out of memory",
                        all->set->shards[0].path, depth);
    }
    for (unsigned i = 0; i < r->depth; i++) r->slots[i] = i;
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
    d->taken = d->turned = d->error = 0;
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
        if (d >= reads && d < reads + n) finish(r, d, IDLE);
        else append(r, d);
        d = after;
    }
}

static int fail_read(const sgt_ring *r, const sgt_ring_read *d, sgt_error *err)
{
    uint64_t at = ask_at(d) < d->at && d->state == FAILED ? d->at : ask_at(d);
    if (d->state == ENDED)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: ends at byte %" PRIu64
                        ", in the middle of a window: cut short while in use",
                        path_of(r, d->shard), at);
    errno = d->error;
    return sgt_fail_errno(err, "%s: at byte %" PRIu64 ": cannot read", path_of(r, d->shard), at);
}

/* Queue the REFUSED reads again: now that no other read holds a descriptor, open one more even
 * above the limit. Return 1 if there were any, 0 if not, or the error of opening a file. */
static int open_refused(sgt_ring *r, sgt_ring_read *reads, uint32_t n, sgt_error *err)
{
    int again = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (reads[i].state != REFUSED) continue;
        int fd = sgt_files_take(r->all->files, reads[i].shard, 1, err);
        if (fd < 0) {
            /* also drop the reads that this loop has queued, because no caller will wait for
             * them */
            sgt_ring_drop(r, reads, i);
            return fd;
        }
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
        return sgt_fail(err, SGT_EUSAGE,
                        "the cursor belongs to the parent process: io_uring does not survive a "
                        "fork (open a cursor in the child)");
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
        if (reads[i].state == FAILED || reads[i].state == ENDED)
            return fail_read(r, &reads[i], err);
    return SGT_OK;
}

/* Drop waiting reads and wait for those in flight. A child after fork only drops its copies. Return
 * 1 if reads may still be in flight. */
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
    if (r->has_ring) sgt_setup_leave(r);
    if (!child) sgt_thread_pool_close(r->pool);
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
