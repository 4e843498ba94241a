/* files.c: a table of all shards. If too many are open, a hand goes round the table and closes the
 * next one that is not in use. */
#include "loader/read/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct file {
    int users; /* atomic; -1: closed. Stored last when the file is opened, which publishes the rest */
    int fd;
    unsigned align; /* alignment of direct reads, in bytes; 0: not known yet */
} file;

struct sgt_files {
    const sgt_set *set;
    sgt_warn_once *once;
    unsigned kind;
    pthread_mutex_t lock;
    uint32_t most, open, hand; /* under the lock, as is the change of users from and to -1 */
    unsigned align; /* alignment of shard 0, in bytes; no shard is read with a larger one */
    file files[];
};

/* ---- notices ---- */

void sgt_warn_once_init(sgt_warn_once *o, const sgt_notice *notice)
{
    *o = (sgt_warn_once){.notice = *notice};
    pthread_mutex_init(&o->lock, NULL);
}

void sgt_warn_once_free(sgt_warn_once *o) { pthread_mutex_destroy(&o->lock); }

/* The lock is held while a notice is given, so that notices come one at a time. */
void sgt_warn_once_say(sgt_warn_once *o, unsigned kind, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    pthread_mutex_lock(&o->lock);
    if (!(o->said >> kind & 1)) {
        o->said |= 1u << kind;
        sgt_say(&o->notice, "%s", line);
    }
    pthread_mutex_unlock(&o->lock);
}

/* ---- direct reads ---- */

/* Called if statx reports no alignment for direct reads. Find it by reading: return the smallest
 * size in bytes that works; 0, with errno set, if none does. */
static unsigned try_reads(int fd)
{
    unsigned align = 512;
    void *p;
    if ((errno = posix_memalign(&p, SGT_FILES_ALIGN, SGT_FILES_ALIGN))) return 0;
    while (align <= SGT_FILES_ALIGN && pread(fd, p, align, 0) < 0) align *= 8;
    free(p);
    return align <= SGT_FILES_ALIGN ? align : 0;
}

/* Switch fd to direct reads and return their alignment in bytes; 0, with errno set, if the file
 * system refuses them. */
static unsigned go_direct(int fd)
{
    struct statx s = {0};
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_DIRECT) < 0) return 0;
    unsigned align = 0;
    int known = statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &s) == 0 &&
                s.stx_mask & STATX_DIOALIGN; /* reported since Linux 6.1 */
    errno = EINVAL;
    if (!known) align = try_reads(fd);
    else if (s.stx_dio_mem_align && s.stx_dio_offset_align &&
             s.stx_dio_mem_align <= SGT_FILES_ALIGN)
        align = s.stx_dio_offset_align < 512 ? 512 : s.stx_dio_offset_align;
    if (align && align <= SGT_FILES_ALIGN && SGT_FILES_ALIGN % align == 0) return align;
    fcntl(fd, F_SETFL, flags);
    return 0;
}

static void warn_refused(sgt_files *f, uint32_t shard, int error)
{
    char buf[128];
    sgt_warn_once_say(f->once, f->kind,
                      "%s: direct reads are refused (%s): reading through the page cache",
                      f->set->shards[shard].path, strerror_r(error, buf, sizeof buf));
}

unsigned sgt_files_align(const sgt_files *f, uint32_t shard) { return f->files[shard].align; }

/* Buffers are aligned for shard 0. A shard whose direct reads need a larger alignment is therefore
 * read through the page cache. */
static void find_align(sgt_files *f, uint32_t shard, int fd)
{
    file *e = &f->files[shard];
    if (e->align == 1) return;
    unsigned align = f->align == 1 ? 1 : go_direct(fd);
    if (align > 1 && f->align && align > f->align) {
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_DIRECT);
        errno = EINVAL;
        align = 0;
    }
    if (!align) warn_refused(f, shard, errno);
    e->align = align ? align : 1;
}

/* ---- those that are open ---- */

/* Close the next shard that is not in use. Return 0 if there is none. */
static int close_unused(sgt_files *f)
{
    for (uint32_t n = f->set->count; n; n--) {
        file *e = &f->files[f->hand = (f->hand + 1) % f->set->count];
        int none = 0;
        if (!__atomic_compare_exchange_n(&e->users, &none, -1, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        close(e->fd);
        f->open--;
        return 1;
    }
    return 0;
}

/* Open a shard for its first user. If that fails for lack of descriptors, close those that are not in
 * use and try again. */
static int open_file(sgt_files *f, uint32_t shard, int insist, sgt_error *err)
{
    while (f->open >= f->most && close_unused(f)) {
    }
    if (f->open >= f->most && !insist) return SGT_EIO;
    int fd = sgt_set_open_shard(f->set, shard, err);
    if (fd < 0 && close_unused(f)) {
        while (close_unused(f)) {
        }
        fd = sgt_set_open_shard(f->set, shard, err);
    }
    if (fd < 0) return fd;
    find_align(f, shard, fd);
    f->files[shard].fd = fd;
    f->open++;
    __atomic_store_n(&f->files[shard].users, 1, __ATOMIC_RELEASE);
    return fd;
}

/* Add a user to an open shard. Return its descriptor, or -1 if it is closed. */
static int add_user(file *e)
{
    int users = __atomic_load_n(&e->users, __ATOMIC_RELAXED);
    while (users >= 0)
        if (__atomic_compare_exchange_n(&e->users, &users, users + 1, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return e->fd;
    return -1;
}

int sgt_files_take(sgt_files *f, uint32_t shard, int insist, sgt_error *err)
{
    int fd = add_user(&f->files[shard]);
    if (fd >= 0) return fd;
    pthread_mutex_lock(&f->lock);
    fd = add_user(&f->files[shard]); /* another thread may have opened it */
    if (fd < 0) fd = open_file(f, shard, insist, err);
    pthread_mutex_unlock(&f->lock);
    return fd;
}

void sgt_files_give(sgt_files *f, uint32_t shard)
{
    __atomic_fetch_sub(&f->files[shard].users, 1, __ATOMIC_RELEASE);
}

/* ---- all of them ---- */

int sgt_files_open(sgt_files **out, const sgt_set *set, uint32_t most, sgt_warn_once *once,
                   unsigned kind, sgt_error *err)
{
    sgt_files *f = calloc(1, sizeof *f + set->count * sizeof *f->files);
    if (!f) return sgt_fail_memory(err, set->shards[0].path);
    f->set = set;
    f->once = once;
    f->kind = kind;
    f->most = most;
    for (uint32_t i = 0; i < set->count; i++) f->files[i].users = -1;
    pthread_mutex_init(&f->lock, NULL);
    int fd = sgt_files_take(f, 0, 1, err);
    if (fd < 0) {
        sgt_files_close(f);
        return fd;
    }
    f->align = f->files[0].align;
    sgt_files_give(f, 0);
    *out = f;
    return SGT_OK;
}

void sgt_files_close(sgt_files *f)
{
    if (!f) return;
    for (uint32_t i = 0; i < f->set->count; i++)
        if (f->files[i].users >= 0) close(f->files[i].fd);
    pthread_mutex_destroy(&f->lock);
    free(f);
}
