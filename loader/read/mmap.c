/* mmap.c: each shard's whole file is mapped once. Pages that were read stay in the page cache,
 * which other processes share.
 *
 * Random windows need two kinds of advice. MADV_RANDOM turns off readahead: a fault would read
 * megabytes, and a window needs two kilobytes. MADV_WILLNEED starts reading the windows of coming
 * batches, all at once and without waiting; faults would read them one after another. (For a set in
 * memory this is enough: prefetching the first line of coming windows as well made batches slower.)
 *
 * Pages that are in the page cache already are mapped ahead, when the first cursor is opened. The
 * first access to a page is a fault, even if the page is cached. An epoch touches each page for the
 * first time once, so faults would take most of its time. Nothing is read from the disk for that, and
 * no memory is taken but page tables: .2 % of the set. If it cannot be done, faults map the pages.
 *
 * Files may change under a map: sgt_loader_guard_sigbus in sgt_loader.h says what is promised,
 * pages.h how. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/memory.h"
#include "loader/read/pages.h"
#include "loader/read/reader.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* windows announced ahead, and so reads in flight; more did not make the measured disk faster */
#define AHEAD 128
/* seconds between two checks of the sizes of a batch's shards; each is a system call */
#define LOOK_S .01
#define LOOK_BATCHES 8 /* batches between two checks of what this thread has read from the disk */
#define PIECE ((size_t)2 << 20) /* bytes that are looked up in the page cache at once */
#define AROUND 16               /* pages that a fault maps */
#define MAPPERS 4               /* threads that map ahead, but at most one per core */
/* seconds that a cursor waits for them; a 5 GB set takes that long on one idle core */
#define MAP_S .25
/* smallest set in bytes for which a thread is started; mapping less takes no longer than starting a
 * thread */
#define SMALL ((uint64_t)16 << 20)
/* bytes per madvise call with sampling `block`, where a window's neighbours are needed soon too */
#define CHUNK ((uintptr_t)1 << 16)

typedef struct reader {
    const sgt_set *set;
    sgt_guarded *guarded; /* the maps */
    sgt_helpers mappers;  /* map pages that are cached; a step is a shard */
    /* atomic: whether they have begun, and must stop; the bytes of all maps, and those mapped so far */
    int begun, stop;
    uint64_t all, mapped;
    int random;     /* windows come in random order */
    uintptr_t unit; /* bytes: advice is given for whole pages, or chunks for sampling `block` */
    const uint16_t *tokens[]; /* first token of each shard */
} reader;

typedef struct cursor {
    reader *r;
    double looked; /* when the sizes were last checked */
    /* whether to call madvise: it costs a system call per window, half of the time of a batch that
     * is in the page cache. So advice ends when the kernel's counts show no reads by this thread,
     * and resumes after a fault that read from the disk. */
    int advising;
    unsigned batches; /* batches since the last check of these counts */
    unsigned told;    /* number of batches that were announced and not yet fetched */
    pthread_t thread; /* thread that `faults` and `blocks` were read for */
    /* the thread's major page faults; blocks read from disk for it, also through advice */
    long faults, blocks;
} cursor;

/* ---- opening ---- */

static void close_reader(void *p)
{
    reader *r = p;
    if (!r) return;
    __atomic_store_n(&r->stop, 1, __ATOMIC_RELAXED);
    sgt_helpers_end(&r->mappers);
    if (r->guarded) sgt_guard_remove(r->guarded);
    for (uint32_t i = 0; r->guarded && i < r->guarded->count; i++)
        if (r->guarded->maps[i].base) munmap(r->guarded->maps[i].base, r->guarded->maps[i].size);
    free(r->guarded);
    free(r);
}

static int map_shard(reader *r, uint32_t shard, sgt_error *err)
{
    const sgt_set_shard *h = &r->set->shards[shard];
    uint64_t size = sgt_shard_bytes(&h->head);
    int rc = SGT_OK, fd = sgt_set_open_shard(r->set, shard, err);
    if (fd < 0) return fd;
    void *base = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        rc =
            errno == ENOMEM
                ? sgt_fail(
                      err, SGT_ENOMEM,
                      "%s: mapping it: no room for a map of %" PRIu64
                      " bytes (sysctl vm.max_map_count, ulimit -v; the reader uring needs neither)",
                      h->path, size)
                : sgt_fail_errno(err, "%s: mapping it", h->path);
    close(fd); /* the mapping keeps the file open */
    if (rc < 0) return rc;
    r->guarded->maps[shard].base = base;
    r->guarded->maps[shard].size = (size_t)size;
    r->all += size;
    r->tokens[shard] = (const uint16_t *)(const void *)((const char *)base + h->head.data);
    /* ignore errors: without this advice, reading is only slower */
    madvise(base, (size_t)size, r->random ? MADV_RANDOM : MADV_SEQUENTIAL);
    return SGT_OK;
}

static int open_reader(void **out, const char **remark, const sgt_set *set,
                       const sgt_reader_options *o, sgt_error *err)
{
    int rc = SGT_OK;
    (void)remark;
    reader *r = calloc(1, sizeof *r + set->count * sizeof *r->tokens);
    if (!r || !(r->guarded = sgt_guard_new(set->count))) {
        free(r);
        return sgt_fail_memory(err, set->shards[0].path);
    }
    r->set = set;
    r->random = o->sampling != SGT_SAMPLING_SEQUENTIAL;
    r->unit = o->sampling == SGT_SAMPLING_BLOCK ? CHUNK : (uintptr_t)sysconf(_SC_PAGESIZE);
    for (uint32_t i = 0; i < set->count && rc == SGT_OK; i++) rc = map_shard(r, i, err);
    if (rc == SGT_OK) sgt_guard_add(r->guarded);
    if (rc < 0) close_reader(r);
    else *out = r;
    return rc;
}

/* ---- mapping ahead ---- */

/* Map the cached pages of a piece. A page fault maps the cached pages around the address too: 16
 * pages, by default. Populating one page of each 16 therefore maps them all, in less time than
 * populating every page. If a kernel maps fewer pages around a fault, the others are left to faults.
 * Return 0 if this kernel cannot do it. */
static int map_piece(char *from, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), around = AROUND * page;
    uintptr_t at = (uintptr_t)from, end = at + bytes;
    for (; at < end; at = (at | (around - 1)) + 1)
        /* EINVAL: the kernel is too old. Other errors concern only this piece: the file was cut
         * short, or memory is short */
        if (madvise((void *)at, page, MADV_POPULATE_READ) < 0) return errno != EINVAL;
    return 1;
}

static int has_stopped(const reader *r) { return __atomic_load_n(&r->stop, __ATOMIC_RELAXED); }

static int map_cached(void *ctx, uint64_t shard)
{
    reader *r = ctx;
    const sgt_guard_map *g = &r->guarded->maps[shard];
    int fd = sgt_set_open_shard(r->set, (uint32_t)shard, NULL);
    for (size_t at = 0; fd >= 0 && !has_stopped(r) && at < g->size; at += PIECE) {
        size_t n = g->size - at < PIECE ? g->size - at : PIECE;
        if (!sgt_resident(fd, at, n)) continue;
        if (map_piece(g->base + at, n)) __atomic_fetch_add(&r->mapped, n, __ATOMIC_RELAXED);
        else __atomic_store_n(&r->stop, 1, __ATOMIC_RELAXED);
    }
    if (fd >= 0) close(fd);
    return !has_stopped(r);
}

/* Map what is cached, once, and wait for a while; the helpers then go on with the rest. */
static void map_ahead(reader *r)
{
    sgt_helpers *h = &r->mappers;
    sgt_memory memory;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (__atomic_exchange_n(&r->begun, 1, __ATOMIC_RELAXED)) return;
    sgt_memory_look(&memory, NULL);
    if (r->all > memory.available) return;
    *h = (sgt_helpers){.step = map_cached, .ctx = r, .count = r->set->count};
    if (r->all <= SMALL) sgt_helpers_work(h);
    else sgt_helpers_start(h, cores < MAPPERS ? (int)cores : MAPPERS);
    double end = sgt_now() + MAP_S;
    while (h->started && __atomic_load_n(&h->done, __ATOMIC_ACQUIRE) < h->count &&
           !has_stopped(r) && sgt_now() < end)
        usleep(500);
}

static int open_cursor(void **out, void *p, sgt_error *err)
{
    reader *r = p;
    cursor *c = calloc(1, sizeof *c);
    if (!c) return sgt_fail_memory(err, "a cursor");
    c->r = r;
    c->looked = -LOOK_S;
    map_ahead(r);
    c->advising = r->random && __atomic_load_n(&r->mapped, __ATOMIC_RELAXED) < r->all;
    *out = c;
    return SGT_OK;
}

static void close_cursor(void *c) { free(c); }

/* ---- files cut short ---- */

/* If the file is cut short, mark the map as torn at the file's end. */
static void check_size(const reader *r, uint32_t shard)
{
    uint64_t end;
    if (sgt_set_is_cut(&r->set->shards[shard], &end)) sgt_guard_tear(r->guarded, shard, end);
}

static int fail_torn(const reader *r, uint32_t shard, sgt_error *err)
{
    const sgt_set_shard *h = &r->set->shards[shard];
    uint64_t end;
    if (sgt_set_is_cut(h, &end))
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: ends at byte %" PRIu64
                        ", in the middle of a window: cut short while in use",
                        h->path, end);
    return sgt_fail(err, SGT_EIO,
                    "%s: at byte %" PRIu64
                    ": cannot read: the disk failed, or the file was cut short while in use",
                    h->path, __atomic_load_n(&r->guarded->maps[shard].torn, __ATOMIC_RELAXED) - 1);
}

/* Fail if one of the windows ends past a tear. Earlier windows are whole, so the earlier batches of
 * a stream succeed even if a later batch has found the tear. */
static int find_torn(const reader *r, const sgt_window *windows, uint32_t n, sgt_error *err)
{
    if (!__atomic_load_n(&r->guarded->torn, __ATOMIC_SEQ_CST)) return SGT_OK;
    for (uint32_t i = 0; i < n; i++) {
        const sgt_window *w = &windows[i];
        uint64_t end = r->set->shards[w->shard].head.data + 2 * (w->offset + w->tokens);
        uint64_t torn = __atomic_load_n(&r->guarded->maps[w->shard].torn, __ATOMIC_RELAXED);
        if (torn && torn <= end) return fail_torn(r, w->shard, err);
    }
    return SGT_OK;
}

/* Check the sizes of shards with windows that end in id 0: after a cut, the rest of the file's last
 * page reads as zeros, without a signal. */
static int verify(void *p, const sgt_window *windows, uint32_t n, const uint16_t **tokens,
                  sgt_error *err)
{
    const cursor *c = p;
    for (uint32_t i = 0; i < n; i++)
        if (tokens[i][windows[i].tokens - 1] == 0) check_size(c->r, windows[i].shard);
    return find_torn(c->r, windows, n, err);
}

/* ---- reading ---- */

static void check_reads(cursor *c)
{
    struct rusage used;
    if (!c->r->random || ++c->batches < LOOK_BATCHES) return;
    c->batches = 0;
    if (getrusage(RUSAGE_THREAD, &used) < 0) return;
    if (pthread_equal(c->thread, pthread_self())) /* several threads may use a cursor in turn */
        c->advising = used.ru_majflt != c->faults || used.ru_inblock != c->blocks;
    c->thread = pthread_self();
    c->faults = used.ru_majflt;
    c->blocks = used.ru_inblock;
}

/* Request the pages or chunks of all windows, including those in which a window begins and ends,
 * unless advice has ended. */
static void advise_all(cursor *c, const sgt_window *windows, uint32_t n)
{
    for (uint32_t i = 0; i < n && c->advising; i++) {
        const uint16_t *first = c->r->tokens[windows[i].shard] + windows[i].offset;
        const sgt_guard_map *m = &c->r->guarded->maps[windows[i].shard];
        uintptr_t unit = c->r->unit, base = (uintptr_t)m->base, from = (uintptr_t)first,
                  end = ((uintptr_t)(first + windows[i].tokens) + unit - 1) & ~(unit - 1);
        from = (from & ~(unit - 1)) < base ? base : from & ~(unit - 1);
        if (end > base + m->size) end = base + m->size;
        madvise((void *)from, end - from, MADV_WILLNEED);
    }
}

static int expect(void *p, const sgt_window *windows, uint32_t n)
{
    cursor *c = p;
    c->told = n ? c->told + 1 : 0;
    advise_all(c, windows, n);
    return 1;
}

static int fetch(void *p, const sgt_window *windows, uint32_t n, const uint16_t **tokens,
                 sgt_error *err)
{
    cursor *c = p;
    double now = sgt_now();
    if (now < c->looked || now - c->looked >= LOOK_S) { /* now < looked: the clock went back */
        c->looked = now;
        for (uint32_t i = 0; i < n; i++) check_size(c->r, windows[i].shard);
    }
    check_reads(c);
    if (c->told) c->told--;
    /* these windows were not announced: at least request all their pages at once */
    else advise_all(c, windows, n);
    for (uint32_t i = 0; i < n; i++) tokens[i] = c->r->tokens[windows[i].shard] + windows[i].offset;
    return find_torn(c->r, windows, n, err);
}

const sgt_reader_ops sgt_read_mmap = {open_reader, close_reader, open_cursor, close_cursor,
                                      fetch,       expect,       AHEAD,       verify};
