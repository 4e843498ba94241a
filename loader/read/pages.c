/* pages.c: see pages.h. */
#include "loader/read/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/memory.h"
#include "loader/base/thread.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* ---- the page cache ---- */

/* cachestat (Linux 6.5) counts cached pages without mapping the file; older kernels have mincore. Only
 * users who own the file or may write to it get an answer: cachestat refuses others, and mincore
 * tells them that every page is cached. */
#define CACHESTAT 451 /* on every architecture; newer than the headers of many machines */
#define MOST_PAGES 512u

static int by_cachestat(int fd, uint64_t at, size_t bytes, uint64_t pages)
{
    /* counts: pages cached, dirty, in writeback, evicted, recently evicted */
    uint64_t range[2] = {at, bytes}, counts[5] = {0};
    if (syscall(CACHESTAT, fd, range, counts, 0) < 0) return -1;
    return counts[0] >= pages;
}

static int by_mincore(int fd, uint64_t at, size_t bytes, uint64_t pages)
{
    unsigned char there[MOST_PAGES];
    struct stat st;
    if (pages > MOST_PAGES || fstat(fd, &st) < 0 || st.st_uid != geteuid()) return 0;
    void *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)at);
    if (p == MAP_FAILED) return 0;
    int all = mincore(p, bytes, there) == 0;
    for (uint64_t i = 0; i < pages && all; i++) all = there[i] & 1;
    munmap(p, bytes);
    return all;
}

int sgt_resident(int fd, uint64_t at, size_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), before = at % page,
             pages = (before + bytes + page - 1) / page;
    at -= before; /* mmap needs an offset that begins a page */
    bytes += (size_t)before;
    int all = by_cachestat(fd, at, bytes, pages);
    return all >= 0 ? all : by_mincore(fd, at, bytes, pages);
}

/* ---- helpers ---- */

static void *take_steps(void *arg)
{
    sgt_helpers *h = arg;
    uint64_t n;
    while ((n = __atomic_fetch_add(&h->next, 1, __ATOMIC_RELAXED)) < h->count) {
        int more = h->step(h->ctx, n);
        __atomic_fetch_add(&h->done, 1, __ATOMIC_RELEASE); /* pairs with sgt_map_ahead_begin */
        if (!more) break;
    }
    return NULL;
}

void sgt_helpers_start(sgt_helpers *h, int most)
{
    while (h->started < most && (uint64_t)h->started < h->count &&
           !sgt_thread_start(&h->threads[h->started], take_steps, h))
        h->started++;
}

void sgt_helpers_work(sgt_helpers *h) { take_steps(h); }

void sgt_helpers_end(sgt_helpers *h)
{
    __atomic_store_n(&h->next, h->count, __ATOMIC_RELAXED);
    while (h->started) pthread_join(h->threads[--h->started], NULL);
}

/* ---- mapping ahead ---- */

/* A page fault maps the cached pages around the address too: 16 pages, by default. Populating one page
 * of each 16 therefore maps them all, in less time than populating every page. If a kernel maps fewer
 * pages around a fault, the others are left to faults. */
#define PIECE ((size_t)2 << 20) /* bytes that are looked up in the page cache at once */
#define AROUND 16               /* pages that a fault maps */
#define MAPPERS 4               /* threads, but at most one per core */
#define WAIT_S .25              /* longest time that begin takes: a 5 GB set on one idle core */
/* smallest set in bytes for which a thread is started; mapping less takes no longer than starting a
 * thread */
#define SMALL ((uint64_t)16 << 20)

struct sgt_map_ahead {
    const sgt_set *set;
    const sgt_guarded *maps;
    int begun, stop;     /* atomic */
    uint64_t all, bytes; /* atomic: bytes of the set, once it has begun; and those mapped so far */
    sgt_helpers helpers; /* a step is a shard */
};

sgt_map_ahead *sgt_map_ahead_new(const sgt_set *set, const sgt_guarded *maps)
{
    sgt_map_ahead *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->set = set;
    m->maps = maps;
    return m;
}

uint64_t sgt_map_ahead_bytes(const sgt_map_ahead *m)
{
    return __atomic_load_n(&m->bytes, __ATOMIC_RELAXED);
}

int sgt_map_ahead_all(const sgt_map_ahead *m)
{
    uint64_t all = __atomic_load_n(&m->all, __ATOMIC_RELAXED);
    return all && sgt_map_ahead_bytes(m) == all;
}

/* Map the cached pages of a piece. Return 0 if this kernel cannot do it. */
static int map(char *from, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), around = AROUND * page;
    uintptr_t at = (uintptr_t)from, end = at + bytes;
    for (; at < end; at = (at | (around - 1)) + 1)
        /* EINVAL: the kernel is too old. Other errors concern only this piece: the file was cut
         * short, or memory is short */
        if (madvise((void *)at, page, MADV_POPULATE_READ) < 0) return errno != EINVAL;
    return 1;
}

static int has_stopped(const sgt_map_ahead *m)
{
    return __atomic_load_n(&m->stop, __ATOMIC_RELAXED);
}

static int map_shard(void *ctx, uint64_t shard)
{
    sgt_map_ahead *m = ctx;
    const sgt_guard_map *g = &m->maps->maps[shard];
    int fd = sgt_set_open_shard(m->set, (uint32_t)shard, NULL);
    for (size_t at = 0; fd >= 0 && !has_stopped(m) && at < g->size; at += PIECE) {
        size_t n = g->size - at < PIECE ? g->size - at : PIECE;
        if (!sgt_resident(fd, at, n)) continue;
        if (map(g->base + at, n)) __atomic_fetch_add(&m->bytes, n, __ATOMIC_RELAXED);
        else __atomic_store_n(&m->stop, 1, __ATOMIC_RELAXED);
    }
    if (fd >= 0) close(fd);
    return !has_stopped(m);
}

void sgt_map_ahead_begin(sgt_map_ahead *m)
{
    sgt_helpers *h = &m->helpers;
    sgt_memory memory;
    uint64_t all = 0;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (__atomic_exchange_n(&m->begun, 1, __ATOMIC_RELAXED)) return;
    for (uint32_t i = 0; i < m->set->count; i++) all += m->maps->maps[i].size;
    __atomic_store_n(&m->all, all, __ATOMIC_RELAXED);
    sgt_memory_look(&memory, NULL);
    if (all > memory.available) return;
    *h = (sgt_helpers){.step = map_shard, .ctx = m, .count = m->set->count};
    if (all <= SMALL) sgt_helpers_work(h);
    else sgt_helpers_start(h, cores < MAPPERS ? (int)cores : MAPPERS);
    double end = sgt_now() + WAIT_S;
    while (h->started && __atomic_load_n(&h->done, __ATOMIC_ACQUIRE) < h->count &&
           !has_stopped(m) && sgt_now() < end)
        usleep(500);
}

void sgt_map_ahead_free(sgt_map_ahead *m)
{
    if (!m) return;
    __atomic_store_n(&m->stop, 1, __ATOMIC_RELAXED);
    sgt_helpers_end(&m->helpers);
    free(m);
}
