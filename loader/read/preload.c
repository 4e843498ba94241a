/* preload.c: the reader that keeps the entire set in memory, in a single block of huge pages.
 * Threads fill this memory when the reader is opened, so later fetches cannot fail. Ids are checked
 * while they are read, so that an invalid id is reported before a run begins.
 *
 * The copy of each shard's file, including its header, begins at a multiple of PAGE in memory. As a
 * result, bytes that are aligned in the file are also aligned in memory, as reads with O_DIRECT
 * require. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "loader/base/memory.h"
#include "loader/base/thread.h"
#include "loader/read/pages.h"
#include "loader/read/reader.h"
#include "loader/rows/rows.h"

/* alignment in bytes of the copies in memory and of reads with O_DIRECT; it is enough for every
 * file system */
#define PAGE ((size_t)4096)
#define READ_BYTES ((size_t)1 << 20) /* bytes per read */
#define THREADS 16 /* maximum number of threads that read, in addition to the calling thread */
/* number of pieces between checks of whether there is still enough free memory: before each piece
 * whose index is a multiple of this, the thread that reads the piece checks */
#define LOOK_PIECES 64

/* A reader. Several threads fill its memory. For this, the shards' files are divided into pieces of
 * READ_BYTES bytes, which are numbered across all shards. A thread that has finished a piece takes
 * the next one. */
typedef struct reader {
    const sgt_set *set;
    /* the loader's options; valid only while the reader is being opened */
    const sgt_loader_options *o;
    uint64_t bytes; /* size in bytes of one copy of the data set in memory */
    /* maximum size in bytes of the copies in all processes on this machine together (see
     * find_all) */
    uint64_t all;
    sgt_arena arena;
    /* pieces: number of pieces in all files; next: index of the next piece that a thread will take
     * (atomic) */
    uint64_t pieces, next;
    /* lowest index of a piece that could not be read (atomic); UINT64_MAX: none */
    uint64_t failed;
    /* address in the arena of the first token of each shard (set->count elements) */
    char *tokens[];
} reader;

static void close_reader(void *p)
{
    reader *r = p;
    sgt_arena_unmap(&r->arena);
    free(r);
}

/* ---- reading ---- */

static size_t round_up(uint64_t bytes) { return (size_t)(bytes + PAGE - 1) / PAGE * PAGE; }

/* Return the bytes of memory for the copy of a shard's file. This is a multiple of PAGE, because a
 * read with O_DIRECT at the end of the file may write an entire page. */
static uint64_t image_size(const sgt_set_shard *h) { return round_up(sgt_shard_bytes(&h->head)); }

/* Read `bytes` bytes of a shard, from offset `at` of its file, to `to`. If these bytes are in the
 * page cache, read them from there, which is faster. Otherwise use O_DIRECT, which saves a copy and
 * evicts nothing from the page cache. If the kernel refuses to read with O_DIRECT, for example
 * because a short read has left an unaligned offset, continue through the page cache. */
static int read_bytes(int fd, char *to, size_t bytes, uint64_t at, const sgt_set_shard *h,
                      sgt_error *err)
{
    int direct = !sgt_resident(fd, at, bytes) && fcntl(fd, F_SETFL, O_DIRECT) == 0;
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(fd, to + done, round_up(bytes) - done, (off_t)(at + done));
        if (got > 0) done += (size_t)got;
        else if (got == 0) return sgt_set_fail_read(h, at + done, err);
        else if (errno == EINVAL && direct) direct = 0, fcntl(fd, F_SETFL, 0);
        else if (errno != EINTR)
            return sgt_fail_errno(err, "%s: at byte %" PRIu64 ": cannot read", h->path, at + done);
    }
    return SGT_OK;
}

/* Return the number of bytes that the copies of all processes together may take: the memory that
 * was free before any process began to copy. If the caller knows this number, it is o->available.
 * Otherwise it must be estimated, because other processes may already have filled part of their
 * copies. The estimate is the memory that is free now, plus the anonymous memory of these
 * processes. If the processes cannot be found, return the total memory. */
static uint64_t find_all(const sgt_loader_options *o)
{
    sgt_memory m;
    uint64_t filled = UINT64_MAX;
    if (o->available) return o->available;
    sgt_memory_look(&m, NULL);
    if (o->copies > 1) filled = sgt_memory_of_siblings(o->copies, NULL);
    return filled < m.total - m.available ? m.available + filled : m.total;
}

/* Check that the copies of all processes together fit into r->all, and that the free memory is
 * enough for the rest of this process's copy, of which `filled` bytes are filled already. The check
 * is repeated while the copy is filled, because the kernel lets a process allocate more memory than
 * there is, and kills a process when it writes to such memory. */
static int check_memory(const reader *r, uint64_t filled, sgt_error *err)
{
    const sgt_loader_options *o = r->o;
    char each[64] = "";
    sgt_memory m;
    sgt_memory_look(&m, NULL);
    /* If o->copies is 0 (unknown), `fits` is always 1, so only the next line, which checks the free
     * memory, limits the copy. */
    int fits = (double)r->bytes * o->copies <= (double)r->all;
    if (fits && (r->bytes <= filled || r->bytes - filled <= m.available)) return SGT_OK;
    if (o->copies > 1) snprintf(each, sizeof each, " in each of %" PRIu32 " processes", o->copies);
    return sgt_fail(
        err, o->may_map ? SGT_EUNSUPPORTED : SGT_ENOMEM,
        "the set needs %" PRIu64 " MiB%s, but %s has only %" PRIu64 " MiB of %s%s",
        (r->bytes + (1 << 20) - 1) >> 20, each, m.limit,
        (fits ? m.available + filled : r->all) >> 20,
        fits || r->all < m.total ? "free memory for data" : "memory",
        o->may_map ? "" : " (use the reader mmap or uring, which need no memory for the set)");
}

static uint64_t count_pieces(const sgt_set_shard *h)
{
    return (sgt_shard_bytes(&h->head) + READ_BYTES - 1) / READ_BYTES;
}

static int read_piece(const reader *r, uint64_t number, sgt_error *err)
{
    const sgt_set_shard *h = r->set->shards;
    uint64_t n = number; /* index of the piece in its shard */
    for (; n >= count_pieces(h); h++) n -= count_pieces(h);
    uint32_t shard = (uint32_t)(h - r->set->shards);
    uint64_t data = h->head.data, size = sgt_shard_bytes(&h->head);
    uint64_t at = n * READ_BYTES, begin = at < data ? data : at;
    uint64_t end = size - at < READ_BYTES ? size : at + READ_BYTES;
    char *to = r->tokens[shard] - data + at;
    int rc = number % LOOK_PIECES ? SGT_OK : check_memory(r, number * READ_BYTES, err);
    int fd = rc < 0 ? rc : sgt_set_open_shard(r->set, shard, err);
    if (fd < 0) return fd;
    rc = read_bytes(fd, to, (size_t)(end - at), at, h, err);
    close(fd);
    if (rc < 0 || begin >= end) return rc;
    const size_t width = r->set->width, count = (size_t)(end - begin) / width;
    const char *ids = to + (begin - at);
    const size_t bad = sgt_rows_first_beyond(width, ids, count, r->set->vocab);
    if (bad == count) return SGT_OK;
    return sgt_shard_bad_id(h->path, &h->head, (begin - data) / width + bad,
                            sgt_id_at(ids, width, bad), r->set->vocab, err);
}

/* Read pieces until no piece is left or a piece fails. After a failure, no thread begins another
 * piece. Pieces are begun in ascending order, and each of them is read to its end. Therefore, when
 * all threads have ended, every piece with an index below r->failed has been read successfully, and
 * r->failed is the lowest index of a piece that cannot be read. */
static void *fill_pieces(void *ctx)
{
    reader *r = ctx;
    for (uint64_t n; (n = __atomic_fetch_add(&r->next, 1, __ATOMIC_RELAXED)) < r->pieces;) {
        if (read_piece(r, n, NULL) == SGT_OK) continue;
        uint64_t failed = __atomic_load_n(&r->failed, __ATOMIC_RELAXED);
        while (n < failed && !__atomic_compare_exchange_n(&r->failed, &failed, n, 0,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        }
        __atomic_store_n(&r->next, r->pieces, __ATOMIC_RELAXED);
    }
    return NULL;
}

static int fill(reader *r, sgt_error *err)
{
    pthread_t threads[THREADS];
    int rc = SGT_OK;
    uint64_t started = 0;
    for (uint32_t i = 0; i < r->set->count; i++) r->pieces += count_pieces(&r->set->shards[i]);
    while (started < THREADS && started < r->pieces &&
           !sgt_thread_start(&threads[started], fill_pieces, r))
        started++;
    fill_pieces(r);
    while (started) pthread_join(threads[--started], NULL);
    /* Read the failed piece with the lowest index again to get its error message. If each thread
     * stored a message instead, which message is reported would depend on which thread failed
     * first. */
    for (uint64_t n = r->failed; n < r->pieces && rc == SGT_OK; n++) rc = read_piece(r, n, err);
    return rc;
}

/* ---- opening ---- */

static int open_reader(void **out, const char **remark, const sgt_set *set,
                       const sgt_loader_options *o, const sgt_mix *mix, sgt_error *err)
{
    (void)mix;
    (void)remark;
    reader *r = calloc(1, sizeof *r + set->count * sizeof *r->tokens);
    if (!r) return sgt_fail_memory(err, set->shards[0].path);
    r->set = set;
    r->o = o;
    r->failed = UINT64_MAX;
    for (uint32_t i = 0; i < set->count; i++) r->bytes += image_size(&set->shards[i]);
    r->all = find_all(o);
    int rc = check_memory(r, 0, err);
    if (rc == SGT_OK && (rc = sgt_arena_map(&r->arena, (size_t)r->bytes, 0, err)) == 0) {
        char *at = r->arena.base;
        for (uint32_t i = 0; i < set->count; at += image_size(&set->shards[i++]))
            r->tokens[i] = at + set->shards[i].head.data;
        rc = fill(r, err);
    }
    if (rc < 0) close_reader(r);
    else *out = r;
    return rc;
}

static int fetch(void *p, const sgt_window *windows, uint32_t n, const void **tokens,
                 sgt_error *err)
{
    const reader *r = p;
    (void)err;
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = r->tokens[windows[i].shard] + r->set->width * windows[i].offset;
    return SGT_OK;
}

const sgt_reader_ops sgt_read_preload = {
    .open = open_reader, .close = close_reader, .fetch = fetch};
