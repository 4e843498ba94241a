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
#define MADV_POPULATE_WRITE 23
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

/* ---- prefaulting ---- */

#define STEP ((size_t)2 << 20) /* a huge page */

static void *prefault_steps(void *arg)
{
    sgt_prefault *t = arg;
    size_t at;
    while ((at = __atomic_fetch_add(&t->next, STEP, __ATOMIC_RELAXED)) < t->size) {
        size_t n = t->size - at < STEP ? t->size - at : STEP;
        if (madvise(t->base + at, n, MADV_POPULATE_WRITE) < 0) break;
    }
    return NULL;
}

void sgt_prefault_begin(sgt_prefault *t, char *base, size_t size)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *t = (sgt_prefault){.base = base, .size = size};
    while (t->count < SGT_PREFAULT_THREADS && t->count < cores &&
           !sgt_thread_start(&t->threads[t->count], prefault_steps, t))
        t->count++;
}

void sgt_prefault_end(sgt_prefault *t)
{
    __atomic_store_n(&t->next, t->size, __ATOMIC_RELAXED);
    while (t->count) pthread_join(t->threads[--t->count], NULL);
}

/* ---- mapping ahead ---- */

/* A page fault maps the cached pages around the address too: 16 pages, by default. Populating one page
 * of each 16 therefore maps them all, in less time than populating every page. If a kernel maps fewer
 * pages around a fault, the others are left to faults. */
#define PIECE ((size_t)2 << 20) /* bytes that a thread claims at once */
#define AROUND 16               /* pages that a fault maps */
#define THREADS 3               /* most threads beside the caller's */
#define WAIT_S .25              /* longest time that begin takes: a 5 GB set on one idle core */
/* smallest set in bytes for which a thread is started; mapping less takes no longer than starting a
 * thread */
#define SMALL ((uint64_t)16 << 20)

struct sgt_map_ahead {
    const sgt_set *set;
    const sgt_guarded *maps;
    pthread_mutex_t lock; /* protects begun, shard and at */
    int begun;
    uint64_t all;   /* bytes of the set; filled in by sgt_map_ahead_begin */
    uint32_t shard; /* the next piece to claim */
    size_t at;
    int count;
    pthread_t threads[THREADS];
    int stop;       /* atomic */
    uint64_t bytes; /* atomic: mapped so far */
};

sgt_map_ahead *sgt_map_ahead_new(const sgt_set *set, const sgt_guarded *maps)
{
    sgt_map_ahead *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->set = set;
    m->maps = maps;
    pthread_mutex_init(&m->lock, NULL);
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

/* Claim the next piece of the set to map. Return 0 if none is left. */
static int claim(sgt_map_ahead *m, uint32_t *shard, size_t *at)
{
    int found = 0;
    pthread_mutex_lock(&m->lock);
    while (m->shard < m->set->count && m->at >= m->maps->maps[m->shard].size) {
        m->shard++;
        m->at = 0;
    }
    if (m->shard < m->set->count && !__atomic_load_n(&m->stop, __ATOMIC_RELAXED)) {
        *shard = m->shard;
        *at = m->at;
        m->at += PIECE;
        found = 1;
    }
    pthread_mutex_unlock(&m->lock);
    return found;
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

/* Map pieces until none is left, or until `seconds` have passed; 0: no time limit. */
static void work(sgt_map_ahead *m, double seconds)
{
    double end = sgt_now() + seconds;
    uint32_t shard, open = UINT32_MAX;
    size_t at;
    int fd = -1;
    while ((seconds <= 0 || sgt_now() < end) && claim(m, &shard, &at)) {
        const sgt_guard_map *g = &m->maps->maps[shard];
        size_t n = g->size - at < PIECE ? g->size - at : PIECE;
        if (shard != open) {
            if (fd >= 0) close(fd);
            fd = sgt_set_open_shard(m->set, shard, NULL);
            open = shard;
        }
        if (fd < 0 || !sgt_resident(fd, at, n)) continue;
        if (map((char *)g->base + at, n)) __atomic_fetch_add(&m->bytes, n, __ATOMIC_RELAXED);
        else __atomic_store_n(&m->stop, 1, __ATOMIC_RELAXED);
    }
    if (fd >= 0) close(fd);
}

static void *help(void *arg)
{
    work(arg, 0);
    return NULL;
}

void sgt_map_ahead_begin(sgt_map_ahead *m)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    sgt_memory memory;
    uint64_t all = 0;
    pthread_mutex_lock(&m->lock);
    int first = !m->begun;
    m->begun = 1;
    pthread_mutex_unlock(&m->lock);
    if (!first) return;
    for (uint32_t i = 0; i < m->set->count; i++) all += m->maps->maps[i].size;
    __atomic_store_n(&m->all, all, __ATOMIC_RELAXED);
    sgt_memory_look(&memory, NULL);
    if (all > memory.available) return;
    while (all > SMALL && m->count < THREADS && (m->count == 0 || m->count + 1 < cores) &&
           !sgt_thread_start(&m->threads[m->count], help, m))
        m->count++;
    work(m, WAIT_S);
}

void sgt_map_ahead_free(sgt_map_ahead *m)
{
    if (!m) return;
    __atomic_store_n(&m->stop, 1, __ATOMIC_RELAXED);
    while (m->count) pthread_join(m->threads[--m->count], NULL);
    pthread_mutex_destroy(&m->lock);
    free(m);
}
