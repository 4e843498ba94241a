/* arena.c: one mapping, aligned to 2 MiB so that the kernel can back it with huge pages. A huge
 * page takes one page fault and one TLB entry instead of 512. */
#include "loader/base/arena.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE SGT_ARENA_PAGE

int sgt_arena_map(sgt_arena *a, size_t size, int prefault, sgt_error *err)
{
    if (size > SIZE_MAX - 2 * HUGE)
        return sgt_fail(err, SGT_ENOMEM, "%zu bytes: more than this machine can address", size);
    size_t rounded = (size + HUGE - 1) / HUGE * HUGE;
    if (!rounded) rounded = HUGE;
    /* mmap aligns to 4 KiB only: map 2 MiB more than needed, then unmap what lies outside the
     * aligned part. */
    char *p = mmap(NULL, rounded + HUGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return sgt_fail_errno(err, "%zu MiB of memory", rounded >> 20);
    size_t head = (HUGE - ((uintptr_t)p & (HUGE - 1))) & (HUGE - 1);
    if (head) munmap(p, head);
    if (HUGE - head) munmap(p + head + rounded, HUGE - head);
    p += head;
    /* refusal is harmless: the memory then has 4 KiB pages. So has less than a huge page: io_uring
     * counts the whole of it against the memory that a user may lock, 8 MiB as a rule. */
    if (size >= HUGE) (void)madvise(p, rounded, MADV_HUGEPAGE);
    if (prefault)
        for (size_t i = 0; i < rounded; i += 4096) ((volatile char *)p)[i] = 0;
    *a = (sgt_arena){p, rounded, 0};
    return SGT_OK;
}

void *sgt_arena_take(sgt_arena *a, size_t count, size_t size)
{
    assert(!size || count <= (SIZE_MAX - SGT_ARENA_ALIGN) / size);
    size_t bytes = (count * size + SGT_ARENA_ALIGN - 1) / SGT_ARENA_ALIGN * SGT_ARENA_ALIGN;
    size_t at = a->used;
    assert(bytes <= SIZE_MAX - at);
    a->used = at + bytes;
    if (!a->base) return NULL;
    assert(a->used <= a->size);
    return a->base + at;
}

void sgt_arena_unmap(sgt_arena *a)
{
    if (a->base) munmap(a->base, a->size);
    *a = (sgt_arena){0};
}

int sgt_reserve(void *array, size_t *room, size_t count, size_t size, const char *what,
                sgt_error *err)
{
    typedef void *any_pointer __attribute__((may_alias));
    any_pointer *at = array;
    size_t more = count > 2 * *room ? count : 2 * *room;
    if (count <= *room) return SGT_OK;
    if (more < 16) more = 16;
    void *grown = reallocarray(*at, more, size);
    if (!grown) return sgt_fail_memory(err, what);
    *at = grown;
    *room = more;
    return SGT_OK;
}
