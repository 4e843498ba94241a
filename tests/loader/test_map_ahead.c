/* test_map_ahead.c: pages in the page cache are mapped before their first access. Pages that cannot
 * be mapped are skipped, and no signal is raised. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/read/pages.h"
#include "tests/loader/batches.h"

TestSuite(map_ahead, .init = enter_scratch, .fini = leave_scratch);

static const char *const path = "d.bin";

/* Return how many KiB of ./d.bin are mapped in this process's page table. */
static uint64_t resident(void)
{
    char line[4352];
    int ours = 0;
    unsigned long n, sum = 0;
    scoped(FILE) *f = fopen("/proc/self/smaps", "r");
    cr_assert(f);
    while (fgets(line, sizeof line, f)) {
        if (strstr(line, "/d.bin")) ours = 1;
        if (ours && sscanf(line, "Rss: %lu kB", &n) == 1) {
            sum += n;
            ours = 0;
        }
    }
    return sum;
}

/* Open a loader, call `cut`, open two cursors, and return how many KiB are mapped then. */
static uint64_t mapped(const reader_fault *fault, void (*cut)(void))
{
    scoped(sgt_loader) *l =
        open_loader(path, &(sgt_loader_options){.reader = SGT_READER_MMAP}, fault);
    if (cut) cut();
    scoped(sgt_cursor) *c = open_cursor(l), *d = open_cursor(l);
    return resident();
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
    uint64_t size = (1024 + 2 * (uint64_t)TOKENS) >> 10;
    if (!can_map(1 << 20))
        cr_skip_test("the kernel does not populate maps or does not tell what is cached");
    cr_assert_geq(mapped(NULL, NULL), size);
    cr_assert_geq(mapped(&old, NULL), size);
    put_bytes("poor/proc/meminfo", "MemAvailable: 8000 kB\n", 22);
    cr_assert_lt(mapped(&poor, NULL), 64);
    /* the file is shorter than its map, which raises no SIGBUS */
    cr_assert_leq(mapped(NULL, shorten), 3 << 10);
}
