/* guard.c: the SIGBUS handler and its state, which is the library's only global, because a
 * signal handler gets no argument.
 *
 * The handler takes no lock. It walks the list of open maps, which other threads change under one.
 * While it does so, it counts itself; sgt_guard_remove takes its maps out of the list and waits
 * until this count is zero, so that no handler looks at them any more. */
#include "loader/read/pages.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/sgt_loader.h"

static struct {
    sgt_guarded *first; /* atomic, as is `next` in those behind it; changed under the lock */
    int looking;        /* atomic: number of handlers that may be walking the list */
    int ready;          /* atomic: 1 once the fields below are written; changed under the lock */
    struct sigaction before; /* the handler before ours, for every other SIGBUS */
    uintptr_t page;          /* bytes */
    pthread_mutex_t lock;
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the list ---- */

sgt_guarded *sgt_guard_new(uint32_t count)
{
    sgt_guarded *g = calloc(1, sizeof *g + count * sizeof *g->maps);
    if (g) g->count = count;
    return g;
}

void sgt_guard_add(sgt_guarded *g)
{
    pthread_mutex_lock(&guard.lock);
    g->next = guard.first;
    __atomic_store_n(&guard.first, g, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&guard.lock);
}

void sgt_guard_remove(sgt_guarded *g)
{
    pthread_mutex_lock(&guard.lock);
    sgt_guarded **at = &guard.first;
    while (*at && *at != g) at = &(*at)->next;
    if (*at) __atomic_store_n(at, g->next, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&guard.lock);
    /* A handler that increments `looking` after this store does not find the maps, because both
     * threads use sequentially consistent operations. */
    while (__atomic_load_n(&guard.looking, __ATOMIC_SEQ_CST)) sched_yield();
}

/* ---- the handler ---- */

void sgt_guard_tear(sgt_guarded *g, uint32_t map, uint64_t at)
{
    uint64_t *torn = &g->maps[map].torn, before = __atomic_load_n(torn, __ATOMIC_SEQ_CST);
    while (!before || at < before - 1)
        if (__atomic_compare_exchange_n(torn, &before, at + 1, 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
            break;
    __atomic_store_n(&g->torn, 1, __ATOMIC_SEQ_CST);
}

/* Map zero pages from the page of `at` to the map's end, so that a torn map faults only once. Mark
 * the map as torn before that: other threads then read zeros without a fault, and must find the
 * mark. */
static int mend(sgt_guarded *g, uint32_t map, uintptr_t at)
{
    sgt_guard_map *m = &g->maps[map];
    uintptr_t from = at & ~(guard.page - 1), end = (uintptr_t)m->base + m->size;
    sgt_guard_tear(g, map, from - (uintptr_t)m->base);
    end = (end + guard.page - 1) & ~(guard.page - 1);
    /* The bare system call, which is safe in a signal handler. The thread sanitizer would also
     * treat mmap() as a write. */
    return syscall(SYS_mmap, from, end - from, PROT_READ,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != -1;
}

/* If the address `at` is in one of our maps, map zeros there and return 1: the faulting thread can
 * continue. Otherwise return 0. */
static int mended(uintptr_t at)
{
    int done = 0;
    __atomic_fetch_add(&guard.looking, 1, __ATOMIC_SEQ_CST);
    sgt_guarded *g = __atomic_load_n(&guard.first, __ATOMIC_SEQ_CST);
    for (; g && !done; g = __atomic_load_n(&g->next, __ATOMIC_SEQ_CST))
        for (uint32_t i = 0; i < g->count && !done; i++)
            if (at - (uintptr_t)g->maps[i].base < g->maps[i].size) done = mend(g, i, at);
    __atomic_fetch_sub(&guard.looking, 1, __ATOMIC_SEQ_CST);
    return done;
}

/* Do with the signal what the handler that was installed before ours would have done. */
static void pass_on(int number, siginfo_t *info, void *context, int faulted)
{
    struct sigaction to = guard.before;
    int special = !(to.sa_flags & SA_SIGINFO) &&
                  (to.sa_handler == SIG_DFL || (to.sa_handler == SIG_IGN && faulted));
    if (!(to.sa_flags & SA_SIGINFO) && to.sa_handler == SIG_IGN && !faulted) return;
    if (special || (to.sa_flags & (int)SA_RESETHAND)) {
        const struct sigaction none = {.sa_handler = SIG_DFL};
        sigaction(SIGBUS, &none, NULL);
    }
    /* In the special cases the default action, which ends the process, was restored above. A fault
     * happens again when this handler returns; a signal that was sent must be raised again. */
    if (special) {
        if (!faulted) raise(number);
    } else if (to.sa_flags & SA_SIGINFO) {
        to.sa_sigaction(number, info, context);
    } else {
        to.sa_handler(number);
    }
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
    /* pairs with the release store in the function that installs the handler */
    int error = errno, ready = __atomic_load_n(&guard.ready, __ATOMIC_ACQUIRE);
    (void)ready;
    /* other signals were sent by a process, or report a memory error that no read has hit yet */
    int faulted = info->si_code > 0 && info->si_code != BUS_MCEERR_AO;
    if (!faulted || !mended((uintptr_t)info->si_addr)) pass_on(number, info, context, faulted);
    errno = error;
}

int sgt_loader_guard_sigbus(sgt_error *err)
{
    struct sigaction ours = {.sa_sigaction = on_sigbus};
    int rc = SGT_OK;
    pthread_mutex_lock(&guard.lock);
    if (!guard.ready) {
        guard.page = (uintptr_t)sysconf(_SC_PAGESIZE);
        rc = sigaction(SIGBUS, NULL, &guard.before);
        /* block the same signals as the previous handler and use its flags, so that it runs as it
         * would without ours */
        ours.sa_mask = guard.before.sa_mask;
        ours.sa_flags =
            SA_SIGINFO | SA_ONSTACK | (guard.before.sa_flags & (int)(SA_NODEFER | SA_RESTART));
        __atomic_store_n(&guard.ready, 1, __ATOMIC_RELEASE);
        if (rc < 0 || sigaction(SIGBUS, &ours, NULL) < 0) {
            rc = sgt_fail_errno(err, "the handler of SIGBUS");
            __atomic_store_n(&guard.ready, 0, __ATOMIC_RELAXED);
        }
    }
    pthread_mutex_unlock(&guard.lock);
    return rc;
}
