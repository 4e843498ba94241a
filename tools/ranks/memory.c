/* memory.c: shares an anonymous file, which all ranks of a machine map. */
#include "tools/ranks/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE ((size_t)2 << 20)

/* Rank 0's message that tells the other ranks where its file is. On another machine, the same pid
 * is another process; so the file begins with the token, and the receiver compares it. */
typedef struct ticket {
    int64_t pid, fd;
    uint64_t bytes;
    uint64_t token[2];
} ticket;

/* Map the file at a multiple of 2 MiB, so that huge pages are possible: reserve addresses first,
 * then map the file there. map, make and find return -1 and set errno on failure, else 0. */
static int map(void **at, int fd, size_t bytes)
{
    char *room =
        mmap(NULL, bytes + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return -1;
    size_t head = (HUGE - ((uintptr_t)room & (HUGE - 1))) & (HUGE - 1),
           end = head + (bytes + 4095) / 4096 * 4096;
    if (head) munmap(room, head);
    if (bytes + HUGE > end) munmap(room + end, bytes + HUGE - end);
    *at = mmap(room + head, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (*at == MAP_FAILED) return -1;
    (void)madvise(*at, bytes, MADV_HUGEPAGE); /* only a hint: small pages work too */
    return 0;
}

/* Make the file, on rank 0. */
static int make(void **at, ticket *t, size_t bytes)
{
    int fd = memfd_create("sgt ranks", MFD_CLOEXEC);
    t->fd = fd;
    if (fd < 0 || ftruncate(fd, (off_t)t->bytes) < 0 || map(at, fd, bytes) < 0) return -1;
    if (getentropy(t->token, sizeof t->token) < 0) return -1;
    memcpy(*at, t->token, sizeof t->token);
    return 0;
}

/* Open rank 0's file, on the other ranks, and check its size and token. */
static int find(void **at, const ticket *t)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)t->pid, (long long)t->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    int rc = size < 0 ? -1 : size != (off_t)t->bytes ? (errno = ENOENT, -1) : map(at, fd, t->bytes);
    if (rc == 0 && memcmp(*at, t->token, sizeof t->token) != 0) {
        munmap(*at, t->bytes);
        errno = ENOENT;
        rc = -1;
    }
    int why = errno;
    if (fd >= 0) close(fd);
    errno = why;
    return rc;
}

/* Wait until all ranks have opened the file, then close rank 0's descriptor; the mappings stay.
 * *failed: 1 if this rank failed; becomes the number of ranks that did. */
static int wait_for_all(sgt_ranks *r, const ticket *t, double *failed, sgt_error *err)
{
    int rc = r->sum(r, failed, 1, err);
    if (!r->rank && t->fd >= 0) close((int)t->fd);
    return rc;
}

static int share(sgt_ranks *r, size_t bytes, void **at, sgt_error *err)
{
    ticket t = {.pid = getpid(), .fd = -1, .bytes = bytes};
    int rc, why = 0;
    *at = MAP_FAILED;
    if (!r->rank && make(at, &t, bytes) < 0) why = errno;
    if ((rc = r->broadcast(r, &t, sizeof t, 0, err)) < 0) return rc;
    int other = t.bytes != bytes;
    if (r->rank && !other && find(at, &t) < 0) why = errno;
    double failed = why || other;
    rc = wait_for_all(r, &t, &failed, err);
    if (rc == SGT_OK && failed == 0) {
        if (!r->rank) memset(*at, 0, sizeof t.token);
        return r->barrier(r, err);
    }
    if (*at != MAP_FAILED) munmap(*at, bytes);
    *at = NULL;
    if (rc < 0) return rc;
    if (other)
        return sgt_fail(err, SGT_EUSAGE,
                        "ranks do not run the same command: their memory differs in size");
    errno = why;
    return why ? sgt_fail_errno(err, "%zu MiB of memory for all ranks", bytes >> 20)
               : sgt_fail(err, SGT_EIO,
                          "%zu MiB of memory for all ranks: another rank could not have it",
                          bytes >> 20);
}

static void unshare(sgt_ranks *r, void *at, size_t bytes)
{
    (void)r;
    munmap(at, bytes);
}

int sgt_ranks_memory_join(sgt_ranks *r, sgt_error *err)
{
    void *at;
    sgt_error why;
    double lacking = 0;
    int rc = share(r, (size_t)sysconf(_SC_PAGESIZE), &at, &why);
    if (rc == SGT_OK) unshare(r, at, (size_t)sysconf(_SC_PAGESIZE));
    else lacking = 1;
    if ((rc = r->sum(r, &lacking, 1, err)) < 0 || lacking > 0) return rc;
    r->share = share;
    r->unshare = unshare;
    return SGT_OK;
}
