/* prefault.c: see prefault.h. */
#include "loader/read/prefault.h"

#include <sys/mman.h>
#include <unistd.h>

#include "loader/base/thread.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

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
