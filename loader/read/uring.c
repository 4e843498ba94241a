/* uring.c: windows read by io_uring when they are asked for, all of a batch at once: for sets larger than memory.
 * Each cursor has a ring of its own and slots that the kernel writes into. Where rings are forbidden (containers) or
 * cannot be had (limits), pread does the same reads one after another, and one notice says so. */
#include <errno.h>
#include <inttypes.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "read/reader.h"

#define DEPTH 128                    /* reads in flight at most: where the study's disk reached its limit */
#define MOST_BYTES ((size_t)1 << 30) /* of one read: what every kernel takes */

typedef struct reader {
    const sgt_set *set;
    sgt_reader_options o;
    size_t window_bytes;
    unsigned rings; /* made so far; atomic, for the fault of the tests */
    unsigned order; /* atomic: see make_ring */
    int noticed;    /* atomic: a notice is said once */
    int fallback;   /* decided at open: pread */
    char detail[128];
    uint32_t count;
    int fds[];
} reader;

typedef struct cursor {
    reader *r;
    int has_ring;
    struct io_uring ring;
    uint16_t *slots; /* windows * (seq + 1) */
    size_t *done;    /* bytes of each window that have arrived */
    unsigned flying; /* reads asked for and not yet finished */
    int ruined;      /* the ring failed with reads in flight: nobody knows when they end */
} cursor;

/* ---- opening ---- */

static void close_reader(void *p)
{
    reader *r = p;
    if (!r) return;
    for (uint32_t i = 0; i < r->count; i++) close(r->fds[i]);
    free(r);
}

/* A ring, or a negative errno. */
static int make_ring(reader *r, struct io_uring *ring)
{
    if (r->o.fault.ring_error && __atomic_fetch_add(&r->rings, 1, __ATOMIC_RELAXED) >= r->o.fault.rings_first)
        return -r->o.fault.ring_error;
    int rc = io_uring_queue_init(DEPTH, ring, 0);
    if (rc < 0) return rc;
    struct io_uring_probe *probe = io_uring_get_probe_ring(ring); /* plain reads came with Linux 5.6 */
    int reads = probe && io_uring_opcode_supported(probe, IORING_OP_READ);
    if (probe) io_uring_free_probe(probe);
    if (!reads) {
        io_uring_queue_exit(ring);
        return -ENOSYS;
    }
    /* The kernel may give this ring the memory of one that another thread closed, and only the kernel knows the order
     * of the two. Acquires what close_cursor released, for those (the thread sanitizer) who know of atomics alone. */
    __atomic_fetch_add(&r->order, 1, __ATOMIC_ACQUIRE);
    return 0;
}

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

static void fall_back(reader *r, int error)
{
    char buf[128];
    if (!__atomic_exchange_n(&r->noticed, 1, __ATOMIC_RELAXED))
        sgt_say(&r->o.notice, "%s here (%s): reading with pread instead", why_no_ring(error),
                strerror_r(error, buf, sizeof buf));
}

static int open_shards(reader *r, const sgt_set *set, sgt_error *err)
{
    for (; r->count < set->count; r->count++) {
        int fd = sgt_set_open_shard(set, r->count, err);
        if (fd < 0) return fd;
        r->fds[r->count] = fd;
    }
    return SGT_OK;
}

static int open_reader(void **out, const sgt_set *set, const sgt_reader_options *o, sgt_error *err)
{
    reader *r = calloc(1, sizeof *r + set->count * sizeof *r->fds);
    if (!r) return sgt_fail(err, SGT_ENOMEM, "%s: out of memory", set->shards[0].path);
    r->set = set;
    r->o = *o;
    r->window_bytes = 2 * ((size_t)o->seq + 1);
    int rc = open_shards(r, set, err);
    if (rc < 0) {
        close_reader(r);
        return rc;
    }
    struct io_uring ring;
    int ring_rc = make_ring(r, &ring); /* asked once now, so that the answer is known before the first batch */
    if (ring_rc == 0) {
        io_uring_queue_exit(&ring);
        strcpy(r->detail, "uring");
    } else {
        r->fallback = 1;
        snprintf(r->detail, sizeof r->detail, "uring (pread: %s)", why_no_ring(-ring_rc));
        fall_back(r, -ring_rc);
    }
    *out = r;
    return SGT_OK;
}

static const char *detail(const void *p)
{
    return ((const reader *)p)->detail;
}

static void close_cursor(void *p)
{
    cursor *c = p;
    if (!c) return;
    if (c->has_ring) {
        __atomic_fetch_add(&c->r->order, 1, __ATOMIC_RELEASE); /* pairs with make_ring's */
        io_uring_queue_exit(&c->ring);
    }
    if (!c->ruined) free(c->slots); /* else the kernel may yet write into them: better lost than written to */
    free(c->done);
    free(c);
}

static int open_cursor(void **out, void *p, sgt_error *err)
{
    reader *r = p;
    size_t bytes, most = r->o.windows;
    cursor *c = __builtin_mul_overflow(most, r->window_bytes, &bytes) ? NULL : calloc(1, sizeof *c);
    if (c) {
        c->r = r;
        c->slots = calloc(1, bytes); /* valgrind and the memory sanitizer do not see the kernel write */
        c->done = malloc(most * sizeof *c->done);
    }
    if (!c || !c->slots || !c->done) {
        close_cursor(c);
        return sgt_fail(err, SGT_ENOMEM, "%zu windows of %zu bytes: out of memory", most, r->window_bytes);
    }
    if (!r->fallback) {
        int rc = make_ring(r, &c->ring);
        c->has_ring = rc == 0;
        if (rc < 0) fall_back(r, -rc);
    }
    *out = c;
    return SGT_OK;
}

/* ---- reading ---- */

static char *slot(const cursor *c, uint32_t i)
{
    return (char *)c->slots + i * c->r->window_bytes;
}

static uint64_t place(const cursor *c, const sgt_window *w)
{
    return c->r->set->shards[w->shard].head.data + 2 * w->offset;
}

static size_t bytes_of(const sgt_window *w)
{
    return 2 * (size_t)w->tokens;
}

static size_t read_size(const cursor *c, const sgt_window *w, uint32_t i)
{
    size_t left = bytes_of(w) - c->done[i], fault = c->r->o.fault.most_bytes, most = fault ? fault : MOST_BYTES;
    return left < most ? left : most;
}

static int fail_read(const cursor *c, const sgt_window *w, uint32_t i, int result, sgt_error *err)
{
    const char *path = c->r->set->shards[w->shard].path;
    uint64_t at = place(c, w) + c->done[i];
    if (result == 0)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: ends at byte %" PRIu64 ", in the middle of a window: cut short while in use", path, at);
    errno = -result;
    return sgt_fail_errno(err, "%s: at byte %" PRIu64 ": cannot read", path, at);
}

static int fetch_pread(cursor *c, const sgt_window *windows, uint32_t n, sgt_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        for (c->done[i] = 0; c->done[i] < bytes_of(&windows[i]);) {
            ssize_t got = pread(c->r->fds[windows[i].shard], slot(c, i) + c->done[i], read_size(c, &windows[i], i),
                                (off_t)(place(c, &windows[i]) + c->done[i]));
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return fail_read(c, &windows[i], i, got < 0 ? -errno : 0, err);
            c->done[i] += (size_t)got;
        }
    }
    return SGT_OK;
}

/* Asks for what is missing of window i. The ring has room for DEPTH, and no more than that are ever in flight. */
static void ask(cursor *c, const sgt_window *w, uint32_t i)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&c->ring);
    io_uring_prep_read(sqe, c->r->fds[w->shard], slot(c, i) + c->done[i], (unsigned)read_size(c, w, i),
                       place(c, w) + c->done[i]);
    io_uring_sqe_set_data64(sqe, i);
    c->flying++;
}

/* The next finished read, left on the ring; NULL with *err filled in when the ring itself fails. Asking the kernel is
 * the last resort: whatever is queued goes with one call, and whatever has finished needs none. */
static struct io_uring_cqe *next_finished(cursor *c, sgt_error *err)
{
    struct io_uring_cqe *cqe = NULL;
    while (io_uring_peek_cqe(&c->ring, &cqe) < 0 || !cqe) {
        int rc = io_uring_submit_and_wait(&c->ring, 1);
        if (rc >= 0 || rc == -EINTR || rc == -EAGAIN || rc == -EBUSY) continue;
        c->ruined = 1;
        errno = -rc;
        sgt_fail_errno(err, "%s: io_uring", c->r->set->shards[0].path);
        return NULL;
    }
    return cqe;
}

/* After a failure reads may still be in flight, and they write into the slots: they are waited for before anybody goes
 * on. */
static int fetch_ring(cursor *c, const sgt_window *windows, uint32_t n, sgt_error *err)
{
    int rc = SGT_OK;
    uint32_t next = 0;
    if (c->ruined) return sgt_fail(err, SGT_EIO, "%s: io_uring failed before", c->r->set->shards[0].path);
    while (c->flying || (rc == 0 && next < n)) {
        for (; rc == 0 && next < n && c->flying < DEPTH; next++) {
            c->done[next] = 0;
            ask(c, &windows[next], next);
        }
        struct io_uring_cqe *cqe = next_finished(c, rc == 0 ? err : NULL);
        if (!cqe) return SGT_EIO;
        uint32_t i = (uint32_t)io_uring_cqe_get_data64(cqe);
        int result = cqe->res;
        io_uring_cqe_seen(&c->ring, cqe);
        c->flying--;
        if (result > 0) c->done[i] += (size_t)result;
        int again = result == -EINTR || result == -EAGAIN || (result > 0 && c->done[i] < bytes_of(&windows[i]));
        if (rc == 0 && again)
            ask(c, &windows[i], i);
        else if (rc == 0 && result <= 0)
            rc = fail_read(c, &windows[i], i, result, err);
    }
    return rc;
}

static int fetch(void *p, const sgt_window *windows, uint32_t n, const uint16_t **tokens, sgt_error *err)
{
    cursor *c = p;
    for (uint32_t i = 0; i < n; i++) tokens[i] = (const uint16_t *)(const void *)slot(c, i);
    return c->has_ring ? fetch_ring(c, windows, n, err) : fetch_pread(c, windows, n, err);
}

const sgt_reader_ops sgt_read_uring = {open_reader, close_reader, detail, open_cursor, close_cursor, fetch, NULL, 0};
