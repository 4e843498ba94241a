/* test_map_ahead.c: pages in the page cache are mapped before their first access. Pages that cannot
 * be mapped are left alone, and no signal is raised. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/read/pages.h"
#include "tests/loader/batches.h"

TestSuite(map_ahead, .init = enter_scratch, .fini = leave_scratch);

static const char *const path = "d.bin";

/* Map the set's only shard, run `cut` on it, map ahead, and return the bytes that were mapped. */
static uint64_t mapped(const sgt_loader *l, const reader_fault *fault, void (*cut)(void))
{
    uint64_t bytes;
    scoped_memory sgt_guarded *g = sgt_guard_new(1);
    size_t size = (size_t)sgt_shard_bytes(&l->set.shards[0].head);
    int fd = open(path, O_RDONLY);
    char *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    cr_assert(g && fd >= 0 && p != MAP_FAILED);
    close(fd);
    g->maps[0] = (sgt_guard_map){.base = p, .size = size};
    if (cut) cut();
    set_faults(fault);
    sgt_map_ahead *m = sgt_map_ahead_new(&l->set, g);
    for (int i = 0; i < 3; i++) sgt_map_ahead_begin(m); /* the second and third call do nothing */
    bytes = sgt_map_ahead_bytes(m);
    sgt_map_ahead_free(m);
    munmap(p, size);
    return bytes;
}

/* Return whether this kernel has MADV_POPULATE_READ and this file system tells which pages are
 * cached. */
static int can_map(uint64_t size)
{
    int fd = open(path, O_RDONLY);
    char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    int can =
        madvise(p, 4096, 22 /* MADV_POPULATE_READ */) == 0 && sgt_resident(fd, 0, (size_t)size);
    munmap(p, 4096);
    close(fd);
    return can;
}

static void shorten(void) { resize(path, 3 << 20); }

Test(map_ahead, maps_what_is_cached)
{
    enum { TOKENS = 4 << 20 };
    reader_fault old = {.no_cachestat = 1}, poor = {.memory = "poor"};
    put_shard(path, 1, TOKENS);
    scoped(sgt_loader) *l =
        open_loader(path, &(sgt_loader_options){.reader = SGT_READER_MMAP}, NULL);
    uint64_t size = sgt_shard_bytes(&l->set.shards[0].head);
    if (!can_map(1 << 20)) {
        sgt_loader_close(l);
        cr_skip_test("the kernel does not populate maps or does not tell what is cached");
    }
    cr_assert_eq(mapped(l, NULL, NULL), size);
    cr_assert_eq(mapped(l, &old, NULL), size);
    cr_assert(mkdir("poor", 0777) == 0 && mkdir("poor/proc", 0777) == 0);
    put_bytes("poor/proc/meminfo", "MemAvailable: 8000 kB\n", 22);
    cr_assert_eq(mapped(l, &poor, NULL), 0);
    /* the file is shorter than its map, which raises no SIGBUS */
    cr_assert_lt(mapped(l, NULL, shorten), size);
}

/* This set is large enough for threads to be started. They end when the loader is closed, however
 * much they have mapped. */
Test(map_ahead, threads_end_with_the_loader)
{
    sgt_loader_options o = {.reader = SGT_READER_MMAP, .batch = 2, .seq = 1024};
    put_shard(path, 1, 10 << 20);
    unsigned before = open_descriptors();
    for (int i = 0; i < 10; i++) {
        scoped(sgt_loader) *l = open_loader(path, &o, NULL);
        scoped(sgt_cursor) *c = open_cursor(l), *d = open_cursor(l);
    }
    cr_assert_eq(open_descriptors(), before);
}
