/* pages.c: find out whether a part of a file is in the page cache. */
#include "loader/read/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* There are two ways to find out whether pages are cached. The system call cachestat (Linux 6.5)
 * counts them without mapping the file; on older kernels, mincore examines a mapping of it. Both
 * are reliable only if the user owns the file or may write to it. For other users, cachestat fails,
 * and mincore reports every page as cached. */
/* number of the system call cachestat, the same on every architecture; defined here because kernel
 * headers may be older than the kernel */
#define CACHESTAT 451
#define MOST_PAGES 512u

static int by_cachestat(int fd, uint64_t at, size_t bytes, uint64_t pages)
{
    /* range: offset and length in bytes. counts: the five fields of struct cachestat, of which only
     * counts[0], the number of cached pages, is used. The others are the numbers of dirty,
     * written-back, evicted and recently evicted pages */
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
    at -= before; /* mmap requires an offset that is a multiple of the page size */
    bytes += (size_t)before;
    int all = by_cachestat(fd, at, bytes, pages);
    return all >= 0 ? all : by_mincore(fd, at, bytes, pages);
}
