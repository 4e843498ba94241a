/* cache.c: queries, empties and fills the page cache, file by file. mincore is right only about
 * files that the caller owns or may write (since Linux 5.2; for others every page counts as
 * present). So other files cannot be evicted. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/bench/bench.h"

#define TRIES 5 /* attempts to evict: pages in a CPU's local list are dropped only by a later one */
#define READ_BYTES ((size_t)1 << 20)

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

typedef struct residence {
    uint64_t pages, resident;
} residence;

/* Count the pages of the file, and those in the page cache. */
static int count_pages(residence *r, int fd, uint64_t size, const char *path, sgt_error *err)
{
    *r = (residence){.pages = (size + page_bytes() - 1) / page_bytes()};
    if (!r->pages) return SGT_OK;
    unsigned char *there =
        malloc((size_t)r->pages); /* of each page, the lowest bit: it is cached */
    if (!there) return sgt_fail_memory(err, path);
    void *map = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
    int rc = map == MAP_FAILED || mincore(map, (size_t)size, there) < 0
                 ? sgt_fail_errno(err, "%s: mincore", path)
                 : SGT_OK;
    for (uint64_t i = 0; i < r->pages && rc == SGT_OK; i++) r->resident += there[i] & 1;
    if (map != MAP_FAILED) munmap(map, (size_t)size);
    free(there);
    return rc;
}

static int evict(int fd, uint64_t size, const char *path, sgt_error *err)
{
    residence r;
    for (int i = 0; i < TRIES; i++) {
        if (i) nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        fdatasync(fd); /* dirty pages cannot be dropped */
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        int rc = count_pages(&r, fd, size, path, err);
        if (rc < 0 || !r.resident) return rc;
    }
    return sgt_fail(err, SGT_EUNSUPPORTED,
                    "%s: %" PRIu64 " of %" PRIu64
                    " pages stay in memory, so --cold would not be cold (a file system in memory, "
                    "a program that maps it, or not your file)",
                    path, r.resident, r.pages);
}

/* Read the file, to cache it, if it lacks a page. */
static int fill(int fd, uint64_t size, const char *path, sgt_error *err)
{
    residence r;
    int rc = count_pages(&r, fd, size, path, err);
    if (rc < 0 || r.resident == r.pages) return rc;
    char *buffer = malloc(READ_BYTES);
    if (!buffer) return sgt_fail_memory(err, path);
    for (uint64_t at = 0; at < size && rc == SGT_OK;) {
        ssize_t n = pread(fd, buffer, READ_BYTES, (off_t)at);
        if (n < 0 && errno != EINTR) rc = sgt_fail_errno(err, "%s", path);
        if (n == 0) break; /* the file was cut short: the loader will report it */
        if (n > 0) at += (uint64_t)n;
    }
    free(buffer);
    return rc;
}

static int with_file(const char *path,
                     int (*act)(int fd, uint64_t size, const char *path, sgt_error *err),
                     sgt_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return sgt_fail_errno(err, "%s", path);
    int rc = fstat(fd, &st) < 0 ? sgt_fail_errno(err, "%s", path)
                                : act(fd, (uint64_t)st.st_size, path, err);
    close(fd);
    return rc;
}

int bench_cache_evict(const char *path, sgt_error *err) { return with_file(path, evict, err); }

int bench_cache_fill(const char *path, sgt_error *err) { return with_file(path, fill, err); }
