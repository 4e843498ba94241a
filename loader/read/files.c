/* files.c: a table of all shards. If too many are open, a hand goes round the table and closes the
 * next one that is not in use. */
#include "loader/read/files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct file {
    uint32_t users;
    int fd;         /* -1: closed */
    unsigned align; /* alignment of direct reads, in bytes; 0: not known yet */
} file;

struct sgt_files {
    const sgt_set *set;
    sgt_notice notice;
    pthread_mutex_t lock; /* protects the rest, and is held while a notice is given */
    int warned;
    uint32_t most, open, hand;
    unsigned align; /* alignment of shard 0, in bytes; no shard is read with a larger one */
    file files[];
};

/* ---- direct reads ---- */

/* Find the smallest alignment, of at most `most` bytes, of fd's direct reads, by reading. Return 1
 * and set errno if none works. */
static unsigned find_align(int fd, unsigned most)
{
    alignas(SGT_FILES_ALIGN) char bytes[SGT_FILES_ALIGN];
    unsigned align = 512;
    while (align <= most && pread(fd, bytes, align, 0) < 0) align *= 8;
    return align <= most ? align : 1;
}

/* Switch a shard that was just opened to direct reads. Buffers are aligned for shard 0. A shard
 * whose direct reads need a larger alignment is therefore read through the page cache. */
static void go_direct(sgt_files *f, uint32_t shard, int fd)
{
    file *e = &f->files[shard];
    char buf[128];
    if (e->align == 1) return;
    if (fcntl(fd, F_SETFL, O_DIRECT) < 0) e->align = 1;
    else if (!e->align) e->align = find_align(fd, f->align ? f->align : SGT_FILES_ALIGN);
    if (e->align > 1) return;
    if (!f->warned)
        sgt_say(&f->notice, "%s: direct reads are refused (%s): reading through the page cache",
                f->set->shards[shard].path, strerror_r(errno, buf, sizeof buf));
    f->warned = 1;
    fcntl(fd, F_SETFL, 0);
}

unsigned sgt_files_align(const sgt_files *f, uint32_t shard) { return f->files[shard].align; }

/* ---- those that are open ---- */

/* Close the next shard that is not in use. Return 0 if there is none. */
static int close_unused(sgt_files *f)
{
    for (uint32_t n = f->set->count; n; n--) {
        file *e = &f->files[f->hand = (f->hand + 1) % f->set->count];
        if (e->fd < 0 || e->users) continue;
        close(e->fd);
        e->fd = -1;
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
    go_direct(f, shard, fd);
    f->files[shard].fd = fd;
    f->open++;
    return fd;
}

int sgt_files_take(sgt_files *f, uint32_t shard, int insist, sgt_error *err)
{
    pthread_mutex_lock(&f->lock);
    int fd = f->files[shard].fd;
    if (fd < 0) fd = open_file(f, shard, insist, err);
    if (fd >= 0) f->files[shard].users++;
    pthread_mutex_unlock(&f->lock);
    return fd;
}

void sgt_files_give(sgt_files *f, uint32_t shard)
{
    pthread_mutex_lock(&f->lock);
    f->files[shard].users--;
    pthread_mutex_unlock(&f->lock);
}

/* ---- all of them ---- */

int sgt_files_open(sgt_files **out, const sgt_set *set, uint32_t most, const sgt_notice *notice,
                   sgt_error *err)
{
    sgt_files *f = calloc(1, sizeof *f + set->count * sizeof *f->files);
    if (!f) return sgt_fail_memory(err, set->shards[0].path);
    f->set = set;
    f->notice = *notice;
    f->most = most;
    for (uint32_t i = 0; i < set->count; i++) f->files[i].fd = -1;
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
        if (f->files[i].fd >= 0) close(f->files[i].fd);
    pthread_mutex_destroy(&f->lock);
    free(f);
}
