/* cache.c: queries, empties and fills the page cache, file by file. mincore is right only about
 * files that the caller owns or may write (since Linux 5.2; for others every page counts as
 * present). So other files cannot be evicted. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
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

/* Set *there to an array with a byte per page, whose lowest bit says whether the page is cached,
 * and count the pages in *r. The caller frees *there, which is NULL for an empty file. */
static int ask(residence *r, unsigned char **there, int fd, uint64_t size, const char *path,
               sgt_error *err)
{
    size_t pages = (size_t)((size + page_bytes() - 1) / page_bytes());
    *r = (residence){.pages = pages};
    *there = NULL;
    if (!pages) return SGT_OK;
    if (!(*there = malloc(pages))) return sgt_fail_memory(err, path);
    void *map = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
    int rc = map == MAP_FAILED || mincore(map, (size_t)size, *there) < 0
                 ? sgt_fail_errno(err, "%s: mincore", path)
                 : SGT_OK;
    for (size_t i = 0; i < pages && rc == SGT_OK; i++) r->resident += (*there)[i] & 1;
    if (map != MAP_FAILED) munmap(map, (size_t)size);
    return rc;
}

static int evict(int fd, uint64_t size, const char *path, sgt_error *err)
{
    residence r;
    unsigned char *there;
    int rc;
    for (int i = 0; i < TRIES; i++) {
        if (i) nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        fdatasync(fd); /* dirty pages cannot be dropped */
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        rc = ask(&r, &there, fd, size, path, err);
        free(there);
        if (rc < 0) return rc;
        if (!r.resident) return SGT_OK;
    }
    return sgt_fail(err, SGT_EUNSUPPORTED,
                    "%s: %" PRIu64 " of %" PRIu64
                    " pages stay in memory, so --cold would not be cold (a file system in memory, "
                    "a program that maps it, or not your file)",
                    path, r.resident, r.pages);
}

static int all_there(const unsigned char *there, uint64_t first, uint64_t end)
{
    while (first < end && there[first] & 1) first++;
    return first >= end;
}

/* Read every READ_BYTES of the file that lack a page, to cache them. */
static int fill(int fd, uint64_t size, const char *path, sgt_error *err)
{
    residence r;
    unsigned char *there;
    char *buffer = NULL;
    int rc = ask(&r, &there, fd, size, path, err);
    if (rc == SGT_OK && r.resident < r.pages && !(buffer = malloc(READ_BYTES)))
        rc = sgt_fail_memory(err, path);
    for (uint64_t at = 0; buffer && at < size && rc == SGT_OK;) {
        uint64_t first = at / page_bytes(), pages = READ_BYTES / page_bytes();
        if (all_there(there, first, first + pages < r.pages ? first + pages : r.pages)) {
            at += READ_BYTES;
            continue;
        }
        ssize_t n = pread(fd, buffer, READ_BYTES, (off_t)at);
        if (n < 0 && errno != EINTR) rc = sgt_fail_errno(err, "%s", path);
        if (n == 0) break; /* the file was cut short: the loader will report it */
        if (n > 0) at += (uint64_t)n;
    }
    free(buffer);
    free(there);
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
