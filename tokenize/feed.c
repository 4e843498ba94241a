/* feed.c: reads files one after the other and cuts them into units. No other file knows how documents lie in files. */
#include "feed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

struct sgt_feed {
    sgt_feed_options o;
    uint64_t file;   /* the one being read, or the next */
    uint64_t offset; /* in it, of the first byte not yet handed out */
    int fd;          /* -1: `file` is not open */
    struct stat opened;
    int split;      /* of the document being read */
    uint8_t *carry; /* bytes already read but not handed out */
    size_t carried, carry_room;
    sgt_error failure; /* code 0: none */
};

int sgt_feed_split(const char *name, uint64_t position, double val_fraction)
{
    if (val_fraction <= 0) return 0;
    /* The position is the seed: XXH3 mixes it with the name's bytes. 64 bits of hash against the fraction of 2^64. */
    return (double)XXH3_64bits_withSeed(name, strlen(name), position) < val_fraction * 18446744073709551616.0;
}

static const sgt_corpus_file *current(const sgt_feed *f)
{
    return &f->o.corpus->files[f->file];
}

static int open_file(sgt_feed *f, sgt_error *err)
{
    const sgt_corpus_file *s = current(f);
    f->split = sgt_feed_split(s->name, 0, f->o.val_fraction);
    if (s->stream) {
        f->fd = STDIN_FILENO;
        return SGT_OK;
    }
    f->fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* were it a pipe by now, open would wait */
    if (f->fd < 0) return sgt_fail_errno(err, "%s", s->path);
    if (fstat(f->fd, &f->opened) < 0) return sgt_fail_errno(err, "%s", s->path);
    if (!S_ISREG(f->opened.st_mode) || (uint64_t)f->opened.st_size != s->size)
        return sgt_fail(err, SGT_EIO,
                        "%s: changed since the inputs were listed: %" PRIu64 " bytes then, now %lld (start again)",
                        s->path, s->size, (long long)f->opened.st_size);
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    if (f->offset && lseek(f->fd, (off_t)f->offset, SEEK_SET) < 0) return sgt_fail_errno(err, "%s", s->path);
    return SGT_OK;
}

static void close_file(sgt_feed *f)
{
    if (f->fd >= 0 && !current(f)->stream) close(f->fd);
    f->fd = -1;
}

/* Waits until a stream has something to say, looking up now and then whether to stop. */
static int wait_stream(const sgt_feed *f, sgt_error *err)
{
    struct pollfd p = {.fd = f->fd, .events = POLLIN};
    int rc;
    do {
        if (sgt_stopped(f->o.stop) || sgt_stopped(f->o.cancel)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
        rc = poll(&p, 1, 100);
    } while (rc == 0 || (rc < 0 && errno == EINTR));
    return SGT_OK; /* an error of poll's is read's to report */
}

/* Reads on into text[*n ... want). *end: the file ended. */
static int read_on(sgt_feed *f, uint8_t *text, size_t *n, size_t want, int *end, sgt_error *err)
{
    const sgt_corpus_file *s = current(f);
    while (*n < want && !*end) {
        int rc = s->stream ? wait_stream(f, err) : SGT_OK;
        if (rc < 0) return rc;
        ssize_t got = read(f->fd, text + *n, want - *n);
        if (got < 0 && (errno == EINTR || (errno == EAGAIN && s->stream))) continue;
        if (got < 0) return sgt_fail_errno(err, "%s: offset %" PRIu64, s->path, f->offset + *n);
        *n += (size_t)got;
        *end = got == 0;
    }
    return SGT_OK;
}

/* At the last byte that was expected, or at an early end: is this still the file that was opened? */
static int check_end(sgt_feed *f, uint64_t at, int *end, sgt_error *err)
{
    const sgt_corpus_file *s = current(f);
    struct stat now;
    uint8_t more;
    size_t n = 0;
    if (s->stream || (!*end && at < s->size)) return SGT_OK;
    int rc = *end ? SGT_OK : read_on(f, &more, &n, 1, end, err);
    if (rc < 0) return rc;
    if (fstat(f->fd, &now) < 0) return sgt_fail_errno(err, "%s", s->path);
    if (at == s->size && n == 0 && now.st_size == f->opened.st_size && now.st_mtim.tv_sec == f->opened.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == f->opened.st_mtim.tv_nsec)
        return SGT_OK;
    return sgt_fail(err, SGT_EIO,
                    "%s: changed while it was read: %" PRIu64 " bytes when it was opened, now %lld (start again)",
                    s->path, s->size, (long long)now.st_size);
}

static int set_carry(sgt_feed *f, const uint8_t *bytes, size_t n, sgt_error *err)
{
    if (n > f->carry_room || f->carry_room > 4 * (n + f->o.piece)) {
        free(f->carry);
        f->carry_room = 0;
        f->carry = malloc(n + 1);
        if (!f->carry) return sgt_fail(err, SGT_ENOMEM, "%s: out of memory", current(f)->path);
        f->carry_room = n + 1;
    }
    if (n) memcpy(f->carry, bytes, n);
    f->carried = n;
    return SGT_OK;
}

static void add_part(sgt_feed *f, sgt_unit *u, size_t at, size_t n, int last)
{
    u->parts[u->count++] = (sgt_part){.file = f->file,
                                      .offset = f->offset,
                                      .at = at,
                                      .length = n,
                                      .first = f->offset == 0,
                                      .last = last,
                                      .split = f->split};
    u->used = at + n;
    f->offset += n;
    if (!last) return;
    close_file(f);
    f->file++;
    f->offset = 0;
}

/* The next part of the file that is open, after what the unit holds already. 1: the unit takes no more. */
static int take_part(sgt_feed *f, sgt_unit *u, sgt_error *err)
{
    size_t at = u->used, n = f->carried, want = f->o.piece > at ? f->o.piece - at : 1, cut;
    int end = 0, rc;
    for (;; want = 2 * n) {
        size_t room = want > n ? want : n;
        if (room > SIZE_MAX / 8) return sgt_fail(err, SGT_ENOMEM, "%s: out of memory", current(f)->path);
        if ((rc = sgt_unit_reserve(u, at + room, err)) < 0) return rc;
        if (f->carried) memcpy(u->text + at, f->carry, f->carried);
        f->carried = 0;
        if ((rc = read_on(f, u->text + at, &n, want, &end, err)) < 0 ||
            (rc = check_end(f, f->offset + n, &end, err)) < 0)
            return rc;
        if (end) {
            add_part(f, u, at, n, 1);
            return 0;
        }
        cut = sgt_unit_cut(u->text + at, n, f->o.joins, f->o.special);
        if (cut || u->count) break;
    }
    rc = set_carry(f, u->text + at + cut, n - cut, err);
    if (rc < 0) return rc;
    if (cut) add_part(f, u, at, cut, 0);
    return 1;
}

int sgt_feed_open(sgt_feed **out, const sgt_feed_options *o, uint64_t file, uint64_t offset, sgt_error *err)
{
    sgt_feed *f = calloc(1, sizeof *f);
    if (!f) return sgt_fail(err, SGT_ENOMEM, "reading inputs: out of memory");
    f->o = *o;
    f->file = file;
    f->offset = offset;
    f->fd = -1;
    *out = f;
    return SGT_OK;
}

int sgt_feed_next(sgt_feed *f, sgt_unit *u, sgt_error *err)
{
    int rc = SGT_OK;
    u->used = u->count = 0;
    while (!f->failure.code && !rc && u->count < SGT_UNIT_PARTS && (u->used < f->o.piece || !u->count)) {
        if (f->fd < 0 && f->file == f->o.corpus->count) break;
        rc = f->fd < 0 ? open_file(f, &f->failure) : SGT_OK;
        if (!rc) rc = take_part(f, u, &f->failure);
    }
    /* What was read before something failed is handed out first: where a run fails does not depend on the cuts. */
    if (u->count) return 0;
    if (!f->failure.code) return 1;
    if (err) *err = f->failure;
    return f->failure.code;
}

void sgt_feed_close(sgt_feed *f)
{
    if (!f) return;
    if (f->fd >= 0) close_file(f);
    free(f->carry);
    free(f);
}
