/* mmap.c: the reader that maps each shard's file into memory as a whole. The pages that it reads
 * stay in the page cache, which all processes share.
 *
 * Windows at random positions need two kinds of advice to the kernel. MADV_RANDOM turns off
 * readahead: with readahead, a page fault would read megabytes although a window needs only two
 * kilobytes. MADV_WILLNEED starts to read all windows of the next batches at once, without waiting,
 * whereas page faults would read them one after another. (Also prefetching the first cache line of
 * these windows made batches slower when the set was in the page cache.)
 *
 * When the first cursor is opened, pages that are already in the page cache are prefaulted.
 * Otherwise the first access to each page would be a fault even though the page is cached, and such
 * faults would take most of the time of the first epoch. Prefaulting these pages reads nothing from
 * the disk, and takes memory only for page tables (0.2 % of the set's size). All other pages are
 * mapped by faults.
 *
 * A file may change while it is mapped. If it is cut short or its disk fails, the kernel cannot
 * load a page and sends SIGBUS. The handler that sgt_loader_guard_sigbus (sgt_loader.h) installs
 * maps zeros there and marks the map as torn. `verify` checks this mark after the tokens have been
 * copied. The handler runs in the thread that reads. It finds the reader through a thread-local
 * variable, which is set by fetch and cleared by verify. This variable and the handler are the only
 * global state of the readers. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/memory.h"
#include "loader/read/pages.h"
#include "loader/read/reader.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* number of windows that batch.c announces before it fetches them. The kernel is asked to read each
 * announced window at once, so this is also the maximum number of reads in flight. A higher number
 * did not make the disk that we measured faster */
#define AHEAD 128
/* number of batches between checks of whether the cursor's thread still causes disk reads (see
 * cursor.advising) */
#define LOOK_BATCHES 8
/* size in bytes of the ranges in which files are prefaulted; a range is prefaulted only if it is in
 * the page cache */
#define PIECE ((size_t)2 << 20)
#define AROUND 16 /* number of pages that the kernel maps in one page fault */
/* maximum time in seconds for prefaulting when the first cursor is opened. In this time, an idle
 * core maps about 5 GB of cached pages */
#define MAP_S .25
/* alignment and minimum size in bytes of the ranges passed to madvise if the sampling is `block`.
 * Such a range may be larger than a window, because the neighbouring windows of the block will be
 * needed soon, too */
#define CHUNK ((uintptr_t)1 << 16)

typedef struct map {
    char *base;
    size_t size;
    const char *tokens; /* address in memory of the first token of the shard */
    /* 1 + the lowest file offset that could not be read (atomic); 0: no read has failed */
    uint64_t torn;
} map;

typedef struct reader {
    const sgt_set *set;
    /* 1: prefaulting (map_ahead) has begun or is done; 0: it has not begun. Atomic */
    int begun;
    uint64_t mapped; /* number of bytes that map_ahead has prefaulted (atomic) */
    int random;      /* windows come in random order */
    uintptr_t page;  /* bytes */
    /* alignment in bytes of the ranges passed to madvise: CHUNK if the sampling is `block`,
     * otherwise the page size */
    uintptr_t unit;
    /* the map of each shard's file (set->count elements); `size` is 0 if the file is not mapped */
    map maps[];
} reader;

typedef struct cursor {
    reader *r;
    /* 1: call madvise for the pages of each announced window, so that the kernel reads them; 0: do
     * not call it. If the set is in the page cache, these calls are useless and double the time
     * that a batch takes. Therefore, the flag is cleared when the kernel's counters show that this
     * thread no longer causes disk reads, and set again when they show that it does */
    int advising;
    unsigned batches; /* number of batches since the kernel's counters were last checked */
    /* number of fetches that have been announced (by calls of `expect`) but not made yet */
    unsigned told;
    /* thread whose counters were checked last; a different thread may use the cursor later */
    pthread_t thread;
    /* value of the kernel's counters for that thread at the last check: major page faults plus disk
     * blocks read, including blocks read because of madvise */
    long reads;
} cursor;

/* ---- the handler of SIGBUS ---- */

static struct {
    int ready; /* 1 once `before` is valid (atomic). It is changed only while `lock` is held */
    /* the handler that was installed before this one; it receives each SIGBUS at an address outside
     * the maps */
    struct sigaction before;
    pthread_mutex_t lock;
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The reader whose maps this thread is reading; NULL: none. The variable is used in a signal
 * handler, which must not allocate memory. The TLS model initial-exec ensures that an access to the
 * variable never does. */
static _Thread_local reader *reading __attribute__((tls_model("initial-exec")));

/* Record that byte `at` of the map could not be read, unless a lower offset has already been
 * recorded. */
static void tear(map *m, uint64_t at)
{
    uint64_t *torn = &m->torn, before = __atomic_load_n(torn, __ATOMIC_SEQ_CST);
    while (!before || at < before - 1)
        if (__atomic_compare_exchange_n(torn, &before, at + 1, 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
            break;
}

/* Replace the pages of the map from address `at` to the end of the map with zeros, so that further
 * reads cause no fault. Mark the map as torn before that: as soon as the zeros are mapped, other
 * threads read them without a fault and need the mark. Return 1, or 0 if the zeros cannot be
 * mapped. */
static int mend(map *m, uintptr_t at, uintptr_t page)
{
    uintptr_t from = at & ~(page - 1), end = (uintptr_t)m->base + m->size;
    tear(m, from - (uintptr_t)m->base);
    end = (end + page - 1) & ~(page - 1);
    /* Make the system call directly, which is safe in a signal handler. In addition, the thread
     * sanitizer would treat a call of mmap() as a write */
    return syscall(SYS_mmap, from, end - from, PROT_READ,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != -1;
}

/* If the address `at` is in a map of the reader that this thread uses, map zeros there and return
 * 1, so that the thread can continue. Otherwise return 0. */
static int mended(uintptr_t at)
{
    reader *r = reading;
    for (uint32_t i = 0; r && i < r->set->count; i++)
        if (at - (uintptr_t)r->maps[i].base < r->maps[i].size)
            return mend(&r->maps[i], at, r->page);
    return 0;
}

/* Pass the signal to the handler that was installed before this one. If there was none, take the
 * default action. `faulted` is 1 if an access to memory caused the signal, 0 if not. */
static void pass_on(int number, siginfo_t *info, void *context, int faulted)
{
    const struct sigaction to = guard.before, none = {.sa_handler = SIG_DFL};
    int called = to.sa_flags & SA_SIGINFO || (to.sa_handler != SIG_DFL && to.sa_handler != SIG_IGN);
    if (!called && to.sa_handler == SIG_IGN && !faulted) return;
    if (!called || to.sa_flags & (int)SA_RESETHAND) sigaction(SIGBUS, &none, NULL);
    /* If there is no previous handler, let the default action kill the process. If an access to
     * memory caused the signal, it is enough to return: the access is repeated and causes the
     * signal again. A signal that a process sent does not repeat, so raise it again. */
    if (!called && !faulted) raise(number);
    if (called && to.sa_flags & SA_SIGINFO) to.sa_sigaction(number, info, context);
    else if (called) to.sa_handler(number);
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
    const int error = errno;
    /* pairs with the release store of `ready` in sgt_loader_guard_sigbus */
    (void)__atomic_load_n(&guard.ready, __ATOMIC_ACQUIRE);
    /* 1: an access to memory caused the signal; 0: a process sent the signal, or it only warns of a
     * memory error in a page that has not been accessed yet (BUS_MCEERR_AO) */
    int faulted = info->si_code > 0 && info->si_code != BUS_MCEERR_AO;
    if (!faulted || !mended((uintptr_t)info->si_addr)) pass_on(number, info, context, faulted);
    errno = error;
}

int sgt_loader_guard_sigbus(sgt_error *err)
{
    int rc = SGT_OK;
    pthread_mutex_lock(&guard.lock);
    if (!guard.ready && (rc = sigaction(SIGBUS, NULL, &guard.before)) == 0) {
        /* Start from the signal mask and the flags of the previous handler, so that it runs under
         * the same conditions as before */
        struct sigaction ours = guard.before;
        ours.sa_sigaction = on_sigbus;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (ours.sa_flags & (int)(SA_NODEFER | SA_RESTART));
        __atomic_store_n(&guard.ready, 1, __ATOMIC_RELEASE);
        rc = sigaction(SIGBUS, &ours, NULL);
    }
    if (rc < 0) {
        rc = sgt_fail_errno(err, "cannot install the handler of SIGBUS");
        __atomic_store_n(&guard.ready, 0, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&guard.lock);
    return rc;
}

/* ---- opening ---- */

static void close_reader(void *p)
{
    reader *r = p;
    for (uint32_t i = 0; i < r->set->count; i++)
        if (r->maps[i].size) munmap(r->maps[i].base, r->maps[i].size);
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
        rc = errno == ENOMEM ? sgt_fail(err, SGT_ENOMEM,
                                        "%s: cannot map %" PRIu64
                                        " bytes: a limit on mappings is reached (raise sysctl "
                                        "vm.max_map_count or ulimit -v, or use the reader uring)",
                                        h->path, size)
                             : sgt_fail_errno(err, "%s: cannot map it into memory", h->path);
    close(fd); /* the mapping keeps the file open */
    if (rc < 0) return rc;
    r->maps[shard] = (map){.base = base, .size = (size_t)size};
    r->maps[shard].tokens = (const char *)base + h->head.data;
    /* ignore errors: if this madvise fails, reading is slower but still correct */
    madvise(base, (size_t)size, r->random ? MADV_RANDOM : MADV_SEQUENTIAL);
    return SGT_OK;
}

static int open_reader(void **out, const char **remark, const sgt_set *set,
                       const sgt_loader_options *o, const sgt_mix *mix, sgt_error *err)
{
    int rc = SGT_OK;
    (void)mix;
    (void)remark;
    reader *r = calloc(1, sizeof *r + set->count * sizeof *r->maps);
    if (!r) return sgt_fail_memory(err, set->shards[0].path);
    r->set = set;
    r->random = o->sampling != SGT_SAMPLING_SEQUENTIAL;
    r->page = (uintptr_t)sysconf(_SC_PAGESIZE);
    r->unit = o->sampling == SGT_SAMPLING_BLOCK ? CHUNK : r->page;
    for (uint32_t i = 0; i < set->count && rc == SGT_OK; i++) rc = map_shard(r, i, err);
    if (rc < 0) {
        close_reader(r);
        return rc;
    }
    *out = r;
    return SGT_OK;
}

/* ---- prefaulting ---- */

/* Prefault those pages of the `bytes` bytes at `from` that are in the page cache, so that later
 * accesses to them cause no page faults. When the kernel populates a cached page, it also maps the
 * cached pages around it, by default those of an aligned group of 16. Therefore, populate only one
 * page of each group, which is faster than populating every page. If a kernel maps smaller groups,
 * the other pages are mapped by faults later. Return 0 if the kernel does not support
 * MADV_POPULATE_READ, otherwise 1. */
static int map_piece(uintptr_t page, char *from, size_t bytes)
{
    uintptr_t around = AROUND * page, at = (uintptr_t)from, end = at + bytes;
    for (; at < end; at = (at | (around - 1)) + 1)
        /* EINVAL means that the kernel is too old. Any other error concerns only this group of
         * pages, for example because the file was cut short or memory is low */
        if (madvise((void *)at, page, MADV_POPULATE_READ) < 0) return errno != EINVAL;
    return 1;
}

/* Prefault the cached pages of all shards, but for at most MAP_S seconds, and only if the entire
 * set fits into the available memory. Only the first call for a reader does anything. */
static void map_ahead(reader *r)
{
    const double end = sgt_now() + MAP_S;
    sgt_memory memory;
    if (__atomic_exchange_n(&r->begun, 1, __ATOMIC_RELAXED)) return;
    sgt_memory_look(&memory, NULL);
    int goes_on = r->set->width * r->set->tokens <= memory.available;
    for (uint32_t i = 0; i < r->set->count && goes_on; i++) {
        const map *m = &r->maps[i];
        int fd = sgt_set_open_shard(r->set, i, NULL);
        for (size_t at = 0; fd >= 0 && goes_on && at < m->size; at += PIECE) {
            size_t n = m->size - at < PIECE ? m->size - at : PIECE;
            if (sgt_resident(fd, at, n)) {
                goes_on = map_piece(r->page, m->base + at, n);
                __atomic_fetch_add(&r->mapped, goes_on ? n : 0, __ATOMIC_RELAXED);
            }
            goes_on &= sgt_now() < end;
        }
        if (fd >= 0) close(fd);
    }
}

static int open_cursor(void **out, void *p, sgt_error *err)
{
    reader *r = p;
    cursor *c = calloc(1, sizeof *c);
    if (!c) return sgt_fail_memory(err, "a cursor");
    c->r = r;
    map_ahead(r);
    c->advising =
        r->random && __atomic_load_n(&r->mapped, __ATOMIC_RELAXED) < r->set->width * r->set->tokens;
    *out = c;
    return SGT_OK;
}

/* ---- files cut short ---- */

/* Return an error if a window extends beyond the first byte that could not be read. (Windows before
 * that byte are intact, so a stream can still deliver batches of such windows, even after a
 * prefetch thread has reached the missing bytes.) If a file was cut short in the middle of a page,
 * reading the rest of that page causes no signal but returns zeros. Therefore, if a window ends in
 * id 0, also check whether the file has become shorter. */
static int verify(void *p, const sgt_window *windows, uint32_t n, const void **tokens,
                  sgt_error *err)
{
    reader *r = ((const cursor *)p)->r;
    const size_t width = r->set->width;
    int rc = SGT_OK;
    for (uint32_t i = 0; i < n && rc == SGT_OK; i++) {
        const sgt_window *w = &windows[i];
        const sgt_set_shard *h = &r->set->shards[w->shard];
        map *m = &r->maps[w->shard];
        uint64_t end;
        if (sgt_id_at(tokens[i], width, w->tokens - 1) == 0 && sgt_set_is_cut(h, &end))
            tear(m, end);
        uint64_t torn = __atomic_load_n(&m->torn, __ATOMIC_SEQ_CST);
        if (torn && torn <= h->head.data + width * (w->offset + w->tokens))
            rc = sgt_set_fail_read(h, torn - 1, err);
    }
    /* this store must come after the reads of the tokens */
    __atomic_store_n(&reading, NULL, __ATOMIC_RELEASE);
    return rc;
}

/* ---- reading ---- */

static void check_reads(cursor *c)
{
    struct rusage used;
    if (!c->r->random || ++c->batches < LOOK_BATCHES) return;
    c->batches = 0;
    if (getrusage(RUSAGE_THREAD, &used) < 0) return;
    /* The kernel counts reads separately for each thread. If a different thread used the cursor
     * last, c->reads comes from the counters of that thread and must not be compared with those of
     * this thread. In that case, only store the new value. */
    if (pthread_equal(c->thread, pthread_self()))
        c->advising = used.ru_majflt + used.ru_inblock != c->reads;
    c->thread = pthread_self();
    c->reads = used.ru_majflt + used.ru_inblock;
}

/* If c->advising is 1, call madvise for all pages (or chunks) that contain a part of these windows,
 * so that the kernel reads them. */
static void advise_all(cursor *c, const sgt_window *windows, uint32_t n)
{
    for (uint32_t i = 0; i < n && c->advising; i++) {
        const map *m = &c->r->maps[windows[i].shard];
        const size_t width = c->r->set->width;
        uintptr_t unit = c->r->unit, base = (uintptr_t)m->base,
                  from = (uintptr_t)m->tokens + width * windows[i].offset,
                  end = (from + width * windows[i].tokens + unit - 1) & ~(unit - 1);
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

static int fetch(void *p, const sgt_window *windows, uint32_t n, const void **tokens,
                 sgt_error *err)
{
    cursor *c = p;
    (void)err;
    reading = c->r;
    check_reads(c);
    if (c->told) c->told--;
    /* These windows were not announced, so the kernel has not begun to read them. Request all their
     * pages now, because page faults would read them one by one. */
    else advise_all(c, windows, n);
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = c->r->maps[windows[i].shard].tokens + c->r->set->width * windows[i].offset;
    return SGT_OK;
}

const sgt_reader_ops sgt_read_mmap = {open_reader, close_reader, open_cursor, free,
                                      fetch,       expect,       AHEAD,       verify};
