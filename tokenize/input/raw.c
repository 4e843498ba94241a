/* raw.c: read files, standard input and the output of filters. */
#include "tokenize/input/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#define DROP ((uint64_t)8 << 20) /* pages are dropped this many bytes at a time */

/* Return whether the middle of the file is in the page cache: then another program may use it, and
 * its pages are kept. */
static int is_cached(const sgt_raw *r)
{
    char byte;
    struct iovec one = {&byte, 1};
    return preadv2(r->fd, &one, 1, r->opened.st_size / 2, RWF_NOWAIT) == 1;
}

int sgt_raw_open(sgt_raw *r, sgt_error *err)
{
    const sgt_corpus_file *f = r->file;
    r->at = r->dropped = 0;
    r->fd = STDIN_FILENO;
    if (f->stream) return SGT_OK;
    /* O_NONBLOCK: do not wait if the path has become a pipe */
    int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return sgt_fail_errno(err, "%s", f->path);
    int rc = fstat(fd, &r->opened) < 0 ? sgt_fail_errno(err, "%s", f->path) : SGT_OK;
    if (!rc && (!S_ISREG(r->opened.st_mode) || (uint64_t)r->opened.st_size != f->size))
        rc = sgt_fail(err, SGT_EIO,
                      "%s: changed since the inputs were listed: %" PRIu64
                      " bytes then, now %lld (start again)",
                      f->path, f->size, (long long)r->opened.st_size);
    if (!rc &&
        (r->opened.st_mtim.tv_sec != f->mtime || r->opened.st_mtim.tv_nsec != f->nanoseconds))
        rc = sgt_fail(err, SGT_EIO,
                      "%s: changed since the inputs were listed: its time stamp is new (start "
                      "again)",
                      f->path);
    r->fd = fd;
    if (!rc && f->filter) rc = sgt_filter_start(f->filter, f->path, &r->child, err);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    r->passing = f->size >= DROP && !f->filter && !is_cached(r);
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return SGT_OK;
}

int sgt_raw_seek(sgt_raw *r, uint64_t at, sgt_error *err)
{
    if (lseek(r->fd, (off_t)at, SEEK_SET) < 0) return sgt_fail_errno(err, "%s", r->file->path);
    r->at = r->dropped = at;
    return SGT_OK;
}

void sgt_raw_close(sgt_raw *r)
{
    if (r->passing) posix_fadvise(r->fd, (off_t)r->dropped, 0, POSIX_FADV_DONTNEED);
    if (!r->file->stream) close(r->fd);
    if (r->file->filter) sgt_filter_stop(&r->child);
}

/* Wait until a stream or filter can be read, checking at intervals whether to stop. */
static int wait_stream(const sgt_raw *r, int fd, sgt_error *err)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int rc;
    do {
        if (sgt_stopped(r->stop) || sgt_stopped(r->cancel))
            return sgt_fail(err, SGT_ESTOPPED, "stopped");
        rc = poll(&p, 1, 100);
    } while (rc == 0 || (rc < 0 && errno == EINTR));
    return SGT_OK; /* if poll failed, the read that follows reports it */
}

static int read_on(sgt_raw *r, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err)
{
    int stream = r->file->stream || r->file->filter, fd = r->file->filter ? r->child.fd : r->fd;
    while (*n < want && !*end) {
        int rc = stream ? wait_stream(r, fd, err) : SGT_OK;
        if (rc < 0) return rc;
        ssize_t got = read(fd, p + *n, want - *n);
        if (got < 0 && (errno == EINTR || (errno == EAGAIN && stream))) continue;
        if (got < 0) return sgt_fail_errno(err, "%s: offset %" PRIu64, r->file->path, r->at);
        *n += (size_t)got;
        r->at += (uint64_t)got;
        *end = got == 0;
    }
    return SGT_OK;
}

/* Check that this is still the file that was opened. Called at the last expected byte, and at an
 * early end. */
static int check_end(sgt_raw *r, int *end, sgt_error *err)
{
    const sgt_corpus_file *f = r->file;
    const struct stat *was = &r->opened;
    struct stat now;
    uint8_t more;
    size_t n = 0;
    int rc = *end ? SGT_OK : read_on(r, &more, &n, 1, end, err);
    if (!rc && f->filter)
        rc = sgt_filter_end(f->filter, f->path, &r->child, r->stop, r->cancel, err);
    if (rc < 0) return rc;
    if (fstat(r->fd, &now) < 0) return sgt_fail_errno(err, "%s", f->path);
    if ((r->at == f->size || f->filter) && n == 0 && now.st_size == was->st_size &&
        now.st_mtim.tv_sec == was->st_mtim.tv_sec && now.st_mtim.tv_nsec == was->st_mtim.tv_nsec)
        return SGT_OK;
    if (!f->filter && now.st_size == was->st_size && r->at != f->size)
        return sgt_fail(err, SGT_EIO,
                        "%s: has no size that can be trusted: the system says %" PRIu64
                        " bytes, but it holds %s (files in /proc and /sys are like that: copy it "
                        "with cat, and name the copy)",
                        f->path, f->size, r->at > f->size ? "more" : "fewer");
    return sgt_fail(err, SGT_EIO,
                    "%s: changed while it was read: %" PRIu64
                    " bytes when it was opened, now %lld (start again)",
                    f->path, f->size, (long long)now.st_size);
}

static void drop_behind(sgt_raw *r)
{
    if (!r->passing || r->at - r->dropped < DROP) return;
    posix_fadvise(r->fd, (off_t)r->dropped, (off_t)(r->at - r->dropped), POSIX_FADV_DONTNEED);
    r->dropped = r->at;
}

int sgt_raw_read(sgt_raw *r, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err)
{
    int rc = read_on(r, p, n, want, end, err);
    if (rc < 0 || r->file->stream) return rc;
    drop_behind(r);
    return *end || (r->at >= r->file->size && !r->file->filter) ? check_end(r, end, err) : SGT_OK;
}
