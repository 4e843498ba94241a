/* source.c: read files, standard input and the output of filters, unpack .gz and .zst, and read such
 * files ahead of their turn. */
#include "tokenize/input/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "loader/base/clock.h"
#include "loader/base/thread.h"
#include "tokenize/input/filter.h"

/* bytes per read of packed input: zstd's largest block, large enough for cheap reads */
#define IN ((size_t)128 << 10)
#define CHUNK ((size_t)256 << 10) /* bytes read ahead at a time, before the caller can read them */

/* ---- unpacking ----
 *
 * Zlib and zstd behind one call, each with a row in the table `codecs`. */

typedef struct codec codec;

struct sgt_unpack {
    const codec *codec;
    const char *path;
    /* 1: a member has begun and not ended. A file begins as 1, because it must have a member */
    int inside;
    int padding; /* 1: zeros followed the last member */
    z_stream gz;
    ZSTD_DStream *zst;
    int between; /* 1: zst is between two frames */
};

struct codec {
    const char *name;
    int (*begin)(sgt_unpack *u); /* returns 0, or -1 if out of memory */
    void (*end)(sgt_unpack *u);
    /* unpacks some bytes; sgt_unpack_some calls it repeatedly */
    int (*some)(sgt_unpack *u, sgt_unpack_io *io, sgt_error *err);
};

static int damaged(const sgt_unpack *u, const sgt_unpack_io *io, const char *why, sgt_error *err)
{
    return sgt_fail(err, SGT_EFORMAT, "%s: offset %" PRIu64 ": not %s, or damaged: %s", u->path,
                    io->offset + io->in_at, u->codec->name, why);
}

/* ---- gzip ---- */

static int begin_gzip(sgt_unpack *u) { return inflateInit2(&u->gz, 15 + 16) == Z_OK ? 0 : -1; }

static void end_gzip(sgt_unpack *u) { inflateEnd(&u->gz); }

static size_t at_most(size_t n, size_t max) { return n < max ? n : max; }

/* Between two members, skip zeros or begin the next member. */
static int begin_member(sgt_unpack *u, sgt_unpack_io *io, sgt_error *err)
{
    while (io->in_at < io->in_size && io->in[io->in_at] == 0) {
        io->in_at++;
        u->padding = 1;
    }
    if (io->in_at == io->in_size) return SGT_OK;
    if (u->padding) return damaged(u, io, "neither zeros nor the end follows zeros", err);
    inflateReset(&u->gz);
    u->inside = 1;
    return SGT_OK;
}

static int inflate_some(sgt_unpack *u, sgt_unpack_io *io, sgt_error *err)
{
    z_stream *z = &u->gz;
    if (!u->inside) {
        int rc = begin_member(u, io, err);
        if (rc < 0 || !u->inside) return rc;
    }
    size_t in = at_most(io->in_size - io->in_at, 1u << 30),
           out = at_most(io->out_size - io->out_at, 1u << 30);
    /* zlib does not write to its input, although the type is not const */
    z->next_in = (Bytef *)(uintptr_t)(io->in + io->in_at);
    z->avail_in = (uInt)in;
    z->next_out = io->out + io->out_at;
    z->avail_out = (uInt)out;
    int got = inflate(z, Z_NO_FLUSH);
    io->in_at += in - z->avail_in;
    io->out_at += out - z->avail_out;
    if (got == Z_STREAM_END) u->inside = 0;
    else if (got == Z_MEM_ERROR) return sgt_fail_memory(err, u->path);
    else if (got != Z_OK && got != Z_BUF_ERROR)
        return damaged(u, io, z->msg ? z->msg : "it needs a dictionary", err);
    return SGT_OK;
}

/* ---- zstd ---- */

static int begin_zstd(sgt_unpack *u)
{
    u->between = 1;
    return (u->zst = ZSTD_createDStream()) ? 0 : -1;
}

static void end_zstd(sgt_unpack *u) { ZSTD_freeDStream(u->zst); }

/* Return whether a frame that begins with this byte is older than zstd 0.8. libzstd's decoders for
 * such frames ignore our memory limit, and their errors depend on how the input is divided. */
static int is_legacy(uint8_t first) { return first >= 0x1e && first <= 0x27; }

static int decompress_some(sgt_unpack *u, sgt_unpack_io *io, sgt_error *err)
{
    ZSTD_inBuffer in = {io->in, io->in_size, io->in_at};
    ZSTD_outBuffer out = {io->out, io->out_size, io->out_at};
    if (!u->inside && in.pos == in.size) return SGT_OK;
    if (u->between && in.pos < in.size && is_legacy(io->in[in.pos]))
        return damaged(u, io, ZSTD_getErrorString(ZSTD_error_prefix_unknown), err);
    size_t got = ZSTD_decompressStream(u->zst, &out, &in);
    u->between = got == 0 || (u->between && in.pos == io->in_at);
    io->in_at = in.pos;
    io->out_at = out.pos;
    if (!ZSTD_isError(got)) {
        u->inside = got != 0;
        return SGT_OK;
    }
    if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
        return sgt_fail_memory(err, u->path);
    if (ZSTD_getErrorCode(got) != ZSTD_error_frameParameter_windowTooLarge)
        return damaged(u, io, ZSTD_getErrorName(got), err);
    return sgt_fail(
        err, SGT_EUNSUPPORTED,
        "%s: offset %" PRIu64
        ": wants a window of more than 128 MiB (zstd --long=31 -dc FILE | sgt-tokenize - OUT)",
        u->path, io->offset + io->in_at);
}

/* ---- both ---- */

static const codec codecs[] = {[SGT_PACK_GZ] = {"gzip", begin_gzip, end_gzip, inflate_some},
                               [SGT_PACK_ZST] = {"zstd", begin_zstd, end_zstd, decompress_some}};

int sgt_unpack_new(sgt_unpack **out, sgt_pack pack, const char *path, sgt_error *err)
{
    sgt_unpack *u = calloc(1, sizeof *u);
    if (!u) return sgt_fail_memory(err, path);
    u->codec = &codecs[pack];
    u->path = path;
    u->inside = 1;
    if (u->codec->begin(u) < 0) {
        free(u);
        return sgt_fail_memory(err, path);
    }
    *out = u;
    return SGT_OK;
}

void sgt_unpack_free(sgt_unpack *u)
{
    if (!u) return;
    u->codec->end(u);
    free(u);
}

int sgt_unpack_inside(const sgt_unpack *u) { return u->inside; }

int sgt_unpack_some(sgt_unpack *u, sgt_unpack_io *io, sgt_error *err)
{
    for (;;) {
        size_t in = io->in_at, out = io->out_at;
        int rc = u->codec->some(u, io, err);
        if (rc < 0 || io->out_at == io->out_size) return rc;
        /* no progress: more input is needed */
        if (io->in_at == in && io->out_at == out) return SGT_OK;
    }
}

/* ---- sources ---- */

typedef struct slot slot;

struct sgt_source {
    /* Read as sgt_source_read does. */
    int (*read)(sgt_source *s, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err);
    const sgt_corpus_file *file;
    const sgt_stop *stop, *cancel; /* requesting either ends the wait for a stream */
    /* the file, or standard input */
    int fd;          /* -1: not open */
    uint64_t at;     /* bytes read from fd or the filter */
    int filtered;    /* 1: the filter has been started */
    sgt_child child; /* the file's filter, whose output is read instead of the file */
    struct stat opened;
    /* a packed file */
    sgt_unpack *unpack;
    uint8_t *in; /* packed bytes */
    size_t in_at, in_size;
    int in_end; /* 1: the file has no bytes after those in `in` */
    /* a file that a thread of `ahead` reads into `slot` */
    sgt_ahead *ahead;
    slot *slot;
    uint64_t raw; /* bytes read from disk, when the slot was last checked */
};

/* ---- bytes as the system delivers them ---- */

static int open_file(sgt_source *s, sgt_error *err)
{
    const sgt_corpus_file *f = s->file;
    struct stat *st = &s->opened;
    /* O_NONBLOCK: do not wait if the path has become a pipe */
    s->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (s->fd < 0 || fstat(s->fd, st) < 0) return sgt_fail_errno(err, "%s", f->path);
    if (!S_ISREG(st->st_mode) || (uint64_t)st->st_size != f->size)
        return sgt_fail(err, SGT_EIO,
                        "%s: changed since the inputs were listed: %" PRIu64
                        " bytes then, now %lld (start again)",
                        f->path, f->size, (long long)st->st_size);
    if (st->st_mtim.tv_sec != f->mtime || st->st_mtim.tv_nsec != f->nanoseconds)
        return sgt_fail(err, SGT_EIO,
                        "%s: changed since the inputs were listed: its time stamp is new (start "
                        "again)",
                        f->path);
    if (f->filter) {
        const int rc = sgt_filter_start(f->filter, f->path, &s->child, err);
        if (rc < 0) return rc;
        s->filtered = 1;
    }
    posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return SGT_OK;
}

/* Wait until a stream or filter can be read, checking at intervals whether to stop. */
static int wait_stream(const sgt_source *s, int fd, sgt_error *err)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int rc;
    do {
        if (sgt_stopped(s->stop) || sgt_stopped(s->cancel))
            return sgt_fail(err, SGT_ESTOPPED, "stopped");
        rc = poll(&p, 1, 100);
    } while (rc == 0 || (rc < 0 && errno == EINTR));
    return SGT_OK; /* if poll failed, the read that follows reports it */
}

/* Check that this is still the file that was opened. Called at the last expected byte, and at an
 * early end. */
static int check_end(sgt_source *s, int *end, sgt_error *err)
{
    const sgt_corpus_file *f = s->file;
    const struct stat *was = &s->opened;
    struct stat now;
    uint8_t more;
    ssize_t got = 0;
    if (!*end) do
            got = read(s->fd, &more, 1);
        while (got < 0 && errno == EINTR);
    if (got < 0) return sgt_fail_errno(err, "%s: offset %" PRIu64, f->path, s->at);
    s->at += (uint64_t)got;
    *end = got == 0;
    const int rc =
        f->filter ? sgt_filter_end(f->filter, f->path, &s->child, s->stop, s->cancel, err) : SGT_OK;
    if (rc < 0) return rc;
    if (fstat(s->fd, &now) < 0) return sgt_fail_errno(err, "%s", f->path);
    if ((s->at == f->size || f->filter) && got == 0 && now.st_size == was->st_size &&
        now.st_mtim.tv_sec == was->st_mtim.tv_sec && now.st_mtim.tv_nsec == was->st_mtim.tv_nsec)
        return SGT_OK;
    if (!f->filter && now.st_size == was->st_size && s->at != f->size)
        return sgt_fail(err, SGT_EIO,
                        "%s: has no size that can be trusted: the system says %" PRIu64
                        " bytes, but it holds %s (files in /proc and /sys are like that: copy it "
                        "with cat, and name the copy)",
                        f->path, f->size, s->at > f->size ? "more" : "fewer");
    return sgt_fail(err, SGT_EIO,
                    "%s: changed while it was read: %" PRIu64
                    " bytes when it was opened, now %lld (start again)",
                    f->path, f->size, (long long)now.st_size);
}

/* Read from the file, standard input or the filter. */
static int read_file(sgt_source *s, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err)
{
    const sgt_corpus_file *f = s->file;
    const int waits = f->stream || f->filter, fd = f->filter ? s->child.fd : s->fd;
    while (*n < want && !*end) {
        int rc = waits ? wait_stream(s, fd, err) : SGT_OK;
        if (rc < 0) return rc;
        ssize_t got = read(fd, p + *n, want - *n);
        if (got < 0 && (errno == EINTR || (errno == EAGAIN && waits))) continue;
        if (got < 0) return sgt_fail_errno(err, "%s: offset %" PRIu64, f->path, s->at);
        *n += (size_t)got;
        s->at += (uint64_t)got;
        *end = got == 0;
    }
    if (f->stream) return SGT_OK;
    return *end || (s->at >= f->size && !f->filter) ? check_end(s, end, err) : SGT_OK;
}

/* ---- packed files ---- */

static int read_packed(sgt_source *s, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err)
{
    while (*n < want && !*end) {
        int rc = SGT_OK;
        if (s->in_at == s->in_size && !s->in_end) {
            s->in_at = s->in_size = 0;
            rc = read_file(s, s->in, &s->in_size, IN, &s->in_end, err);
        }
        sgt_unpack_io io = {s->in, s->in_at, s->in_size, s->at - s->in_size, p, *n, want};
        if (!rc) rc = sgt_unpack_some(s->unpack, &io, err);
        int nothing = io.out_at == *n;
        s->in_at = io.in_at;
        *n = io.out_at;
        if (rc < 0) return rc;
        if (!s->in_end || s->in_at < s->in_size) continue;
        *end = !sgt_unpack_inside(s->unpack);
        if (!*end && nothing)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: offset %" PRIu64
                            ": cut off: the file ends in the middle of its compressed data",
                            s->file->path, s->at);
    }
    return SGT_OK;
}

/* ---- one source ---- */

int sgt_source_open(sgt_source **out, const sgt_corpus_file *f, const sgt_stop *stop,
                    const sgt_stop *cancel, sgt_error *err)
{
    sgt_source *s = calloc(1, sizeof *s);
    if (!s) return sgt_fail_memory(err, f->path);
    *s = (sgt_source){.file = f, .stop = stop, .cancel = cancel, .fd = STDIN_FILENO};
    s->read = f->pack == SGT_PACK_NONE ? read_file : read_packed;
    int rc = f->stream ? SGT_OK : open_file(s, err);
    if (!rc && f->pack != SGT_PACK_NONE) {
        s->in = malloc(IN);
        rc = s->in ? sgt_unpack_new(&s->unpack, f->pack, f->path, err)
                   : sgt_fail_memory(err, f->path);
    }
    if (rc < 0) sgt_source_close(s);
    else *out = s;
    return rc;
}

static void give_back_slot(sgt_ahead *a, slot *s);

void sgt_source_close(sgt_source *s)
{
    if (!s) return;
    if (s->slot) give_back_slot(s->ahead, s->slot);
    if (s->fd >= 0 && !s->file->stream) close(s->fd);
    if (s->filtered) sgt_filter_stop(&s->child);
    sgt_unpack_free(s->unpack);
    free(s->in);
    free(s);
}

int sgt_source_seek(sgt_source *s, uint64_t at, sgt_error *err)
{
    if (lseek(s->fd, (off_t)at, SEEK_SET) < 0) return sgt_fail_errno(err, "%s", s->file->path);
    s->at = at;
    return SGT_OK;
}

int sgt_source_read(sgt_source *s, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err)
{
    return s->read(s, p, n, want, end, err);
}

uint64_t sgt_source_raw(const sgt_source *s)
{
    const uint64_t size = s->file->size;
    if (s->slot) return s->raw;
    /* how much of the file a filter has read is unknown, so assume as many bytes as it has
     * printed */
    if (s->file->filter) return s->at < size ? s->at : size;
    return s->at - (s->in_size - s->in_at);
}

/* ---- reading ahead: the threads ----
 *
 * A ring of slots in corpus order, one slot for each file that is packed or filtered. A thread takes
 * the next of these files whose slot is free and reads it to its end. The slot holds a ring of the
 * file's bytes, written by that thread and read by the caller. Files are taken in order, so a thread
 * is always at work on the file that the caller reads next. */

struct slot {
    uint8_t *bytes;      /* (SGT_AHEAD_BYTES); byte i of the stream lies at i % SGT_AHEAD_BYTES */
    uint64_t made, used; /* bytes of the stream written and read */
    uint64_t raw;
    int ended; /* 1: its thread has finished. Then the stream is complete, or rc is the error */
    int rc;
    sgt_error err;
};

struct sgt_ahead {
    sgt_ahead_options o;
    pthread_mutex_t lock; /* guards all fields below, and the numbers in slots */
    pthread_cond_t changed;
    sgt_stop closing;
    slot *slots;
    size_t slot_count;
    uint64_t next_file; /* first file that no thread has taken */
    /* number of files taken by threads and finished by the caller; file k has slots[k %
     * slot_count] */
    uint64_t taken, returned;
    pthread_t *threads;
    size_t running;
};

/* Read file f into the slot, to its end. */
static void fill_slot(sgt_ahead *a, const sgt_corpus_file *f, slot *s)
{
    sgt_source *source = NULL;
    int end = 0, over = 0, rc = SGT_OK;
    if (!s->bytes && !(s->bytes = malloc(SGT_AHEAD_BYTES))) rc = sgt_fail_memory(&s->err, f->path);
    if (!rc) rc = sgt_source_open(&source, f, a->o.stop, &a->closing, &s->err);
    pthread_mutex_lock(&a->lock);
    do {
        while (s->made - s->used == SGT_AHEAD_BYTES && !sgt_stopped(&a->closing))
            pthread_cond_wait(&a->changed, &a->lock);
        const size_t from = (size_t)(s->made % SGT_AHEAD_BYTES),
                     room = at_most(SGT_AHEAD_BYTES - (size_t)(s->made - s->used), CHUNK);
        size_t n = 0;
        over = sgt_stopped(&a->closing);
        pthread_mutex_unlock(&a->lock);
        if (!rc && !over)
            rc = sgt_source_read(source, s->bytes + from, &n, at_most(room, SGT_AHEAD_BYTES - from),
                                 &end, &s->err);
        pthread_mutex_lock(&a->lock);
        s->made += n;
        if (source) s->raw = sgt_source_raw(source);
        s->ended = end || rc < 0;
        s->rc = rc;
        pthread_cond_broadcast(&a->changed);
    } while (!rc && !end && !over);
    pthread_mutex_unlock(&a->lock);
    sgt_source_close(source);
}

/* Take the next packed or filtered file and its slot. Return NULL if all are taken, or reading is
 * cancelled. */
static slot *next_file(sgt_ahead *a, const sgt_corpus_file **f)
{
    const sgt_corpus *c = a->o.corpus;
    slot *s = NULL;
    pthread_mutex_lock(&a->lock);
    while (a->taken - a->returned == a->slot_count && !sgt_stopped(&a->closing))
        pthread_cond_wait(&a->changed, &a->lock);
    while (a->next_file < c->count && !sgt_corpus_made(&c->files[a->next_file])) a->next_file++;
    if (a->next_file < c->count && !sgt_stopped(&a->closing)) {
        *f = &c->files[a->next_file++];
        s = &a->slots[a->taken++ % a->slot_count];
    }
    pthread_mutex_unlock(&a->lock);
    return s;
}

static void *read_files(void *arg)
{
    sgt_ahead *a = arg;
    const sgt_corpus_file *f;
    for (slot *s; (s = next_file(a, &f));) fill_slot(a, f, s);
    return NULL;
}

static int start_threads(sgt_ahead *a, sgt_error *err)
{
    const sgt_corpus *c = a->o.corpus;
    size_t most = a->o.threads ? a->o.threads : 1, threads = 0;
    int failed = 0;
    for (uint64_t i = a->next_file; i < c->count && threads < most; i++)
        threads += sgt_corpus_made(&c->files[i]) != 0;
    if (!threads) return SGT_OK;
    a->slot_count = 2 * threads;
    a->slots = calloc(a->slot_count, sizeof *a->slots);
    a->threads = calloc(threads, sizeof *a->threads);
    if (!a->slots || !a->threads) return sgt_fail_memory(err, "reading inputs");
    while (a->running < threads &&
           !(failed = sgt_thread_start(&a->threads[a->running], read_files, a)))
        a->running++;
    if (a->running) return SGT_OK; /* the system may refuse threads: one is enough */
    errno = failed;
    return sgt_fail_errno(err, "cannot start a thread");
}

int sgt_ahead_new(sgt_ahead **out, const sgt_ahead_options *o, sgt_error *err)
{
    sgt_ahead *a = calloc(1, sizeof *a);
    if (!a) return sgt_fail_memory(err, "reading inputs");
    a->o = *o;
    a->next_file = o->first;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    const int rc = start_threads(a, err);
    if (rc < 0) sgt_ahead_free(a);
    else *out = a;
    return rc;
}

void sgt_ahead_free(sgt_ahead *a)
{
    if (!a) return;
    pthread_mutex_lock(&a->lock);
    sgt_stop_request(&a->closing);
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    for (size_t i = 0; i < a->running; i++) pthread_join(a->threads[i], NULL);
    for (size_t i = 0; a->slots && i < a->slot_count; i++) free(a->slots[i].bytes);
    free(a->slots);
    free(a->threads);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

/* ---- reading ahead: the caller ---- */

static int read_slot(sgt_source *source, uint8_t *p, size_t *n, size_t want, int *end,
                     sgt_error *err)
{
    sgt_ahead *a = source->ahead;
    slot *s = source->slot;
    int rc = SGT_OK;
    pthread_mutex_lock(&a->lock);
    while (*n < want && !*end && !rc) {
        while (s->made == s->used && !s->ended && !rc) {
            sgt_wait_briefly(&a->changed, &a->lock);
            if (sgt_stopped(source->stop) || sgt_stopped(source->cancel))
                rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
        }
        const size_t from = (size_t)(s->used % SGT_AHEAD_BYTES),
                     there = at_most((size_t)(s->made - s->used), want - *n),
                     k = rc ? 0 : at_most(there, SGT_AHEAD_BYTES - from);
        source->raw = s->raw;
        pthread_mutex_unlock(&a->lock);
        if (k) memcpy(p + *n, s->bytes + from, k);
        *n += k;
        pthread_mutex_lock(&a->lock);
        s->used += k;
        pthread_cond_broadcast(&a->changed);
        if (rc || !s->ended || s->used < s->made) continue;
        *end = !s->rc;
        rc = s->rc;
        if (rc < 0 && err) *err = s->err;
    }
    pthread_mutex_unlock(&a->lock);
    return rc;
}

int sgt_ahead_open(sgt_ahead *a, uint64_t file, sgt_source **out, sgt_error *err)
{
    const sgt_corpus_file *f = &a->o.corpus->files[file];
    if (!sgt_corpus_made(f)) return sgt_source_open(out, f, a->o.stop, a->o.cancel, err);
    sgt_source *s = calloc(1, sizeof *s);
    if (!s) return sgt_fail_memory(err, f->path);
    *s = (sgt_source){.read = read_slot,
                      .file = f,
                      .stop = a->o.stop,
                      .cancel = a->o.cancel,
                      .fd = -1,
                      .ahead = a,
                      .slot = &a->slots[a->returned % a->slot_count]};
    *out = s;
    return SGT_OK;
}

/* Let a thread use the slot for a later file. If its thread is still at work on it, nothing more is
 * read ahead. */
static void give_back_slot(sgt_ahead *a, slot *s)
{
    pthread_mutex_lock(&a->lock);
    if (s->ended) {
        *s = (slot){.bytes = s->bytes};
        a->returned++;
    } else sgt_stop_request(&a->closing);
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

/* ---- the hash of a stream ---- */

void sgt_stream_hash_begin(sgt_stream_hash *h, uint64_t at, uint64_t block)
{
    h->at = at;
    h->block = block;
    XXH3_64bits_reset_withSeed(h->state, block);
}

void sgt_stream_hash_add(sgt_stream_hash *h, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    while (n) {
        const uint64_t room = SGT_HASH_BLOCK - h->at % SGT_HASH_BLOCK;
        const size_t k = n < room ? n : (size_t)room;
        XXH3_64bits_update(h->state, p, k);
        p += k;
        n -= k;
        if (k == room) sgt_stream_hash_begin(h, h->at + k, XXH3_64bits_digest(h->state));
        else h->at += k;
    }
}

uint64_t sgt_stream_hash_now(const sgt_stream_hash *h) { return XXH3_64bits_digest(h->state); }
