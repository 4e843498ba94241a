/* source.c: reads files, standard input and the output of filters, and decompresses .gz and .zst
 * files. A separate thread can read a compressed or filtered file ahead. */
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

#include "loader/base/thread.h"
#include "tokenize/input/filter.h"

/* size in bytes of the buffer for compressed input; it equals zstd's maximum block size, and is
 * large enough for efficient reads */
#define IN ((size_t)128 << 10)
/* size in bytes of the buffer for decompressed bytes; equals zstd's maximum block size */
#define OUT ((size_t)128 << 10)
/* Maximum number of bytes that a read-ahead thread reads at a time. The thread makes these bytes
 * available to the caller when it has read all of them. */
#define CHUNK ((size_t)256 << 10)

/* Ring buffer of the bytes that the read-ahead thread of a source has read and that its caller has
 * not read yet. */
typedef struct ring {
    pthread_t thread;
    /* guards all members below, except the bytes in the ring buffer that are not available to the
     * caller yet, which the thread writes without holding the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* memory of the ring buffer: byte i of the stream is bytes[i % SGT_AHEAD_BYTES] */
    uint8_t *bytes;
    /* made: number of bytes of the stream that the thread has made available to the caller. used:
     * number of these bytes that the caller has read. */
    uint64_t made, used;
    uint64_t raw; /* bytes read from disk */
    /* ended: 1 after the thread has read the complete stream or has failed. rc: valid if `ended` is
     * 1; SGT_OK if the stream was read completely, otherwise the error code. */
    int ended;
    int rc;
    sgt_error err;
} ring;

struct sgt_source {
    const sgt_corpus_file *file;
    /* two stop requests: if a stop is requested through either of them, waiting for bytes ends with
     * SGT_ESTOPPED */
    const sgt_stop *stop, *cancel;
    sgt_stop closing; /* stop request by which sgt_source_close ends the read-ahead thread */
    int fd;           /* descriptor of the file or of standard input; -1 if not open */
    /* number of bytes read so far from `fd` or, if there is a filter, from its output */
    uint64_t at;
    int filtered; /* 1: the filter has been started */
    /* the filter's process, whose output is read instead of the file; valid if `filtered` is 1 */
    sgt_child child;
    /* The members from here to `left` are only used for compressed files. `out` is always filled
     * completely (except at the end of the stream), and is refilled only when all bytes in it have
     * been read. As a result, the bytes that are delivered from a damaged file do not depend on the
     * sizes of the caller's reads. (libzstd fails to deliver some bytes before the damage, and
     * their number depends on how many bytes each call decompresses.) */
    uint8_t *in, *out; /* buffer for compressed bytes, and buffer for decompressed bytes */
    size_t in_at, in_size, out_at, out_size;
    int in_end; /* 1 if the file ends after the bytes in `in` */
    z_stream gz;
    ZSTD_DStream *zst;
    /* 1 while a gzip member or a zstd frame has begun but has not ended. At the start of a file, it
     * is 1 as well, so that an empty file counts as truncated, because a compressed file must have
     * at least one member or frame. */
    int inside;
    /* offset in the file at which the last complete gzip member ended; 0 if no member has ended
     * yet */
    uint64_t member_end;
    /* 1 if the byte directly after the last complete gzip member is the first byte of gzip's magic
     * number, so that another member may begin there; otherwise 0 */
    int next;
    /* 1 if the stream ends after the bytes in `out`; otherwise 0 */
    int ended;
    /* error to return after all bytes in `out` have been read; code 0 if there is none */
    sgt_error failure;
    /* description of the bytes at the end of the file that were skipped (sgt_source_left) */
    sgt_error left;
    /* ring buffer that the read-ahead thread fills; NULL if there is no such thread */
    ring *ahead;
    /* number of bytes that the read-ahead thread had read from disk when the caller last read from
     * the ring buffer; used to show progress */
    uint64_t raw;
};

static size_t at_most(size_t n, size_t max) { return n < max ? n : max; }

/* ---- reading files, standard input and filters ---- */

/* Return SGT_OK if the file still has the size and the modification time that it had when the
 * inputs were listed; otherwise return an error. */
static int check_same(const sgt_source *s, sgt_error *err)
{
    const sgt_corpus_file *f = s->file;
    struct stat st;
    char how[80] = "its modification time is new";
    if (fstat(s->fd, &st) < 0) return sgt_fail_errno(err, "%s", f->path);
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != f->size)
        snprintf(how, sizeof how, "it had %" PRIu64 " bytes, and now %lld", f->size,
                 (long long)st.st_size);
    else if (st.st_mtim.tv_sec == f->mtime && st.st_mtim.tv_nsec == f->nanoseconds) return SGT_OK;
    return sgt_fail(err, SGT_EIO,
                    "%s: changed since the inputs were listed: %s (run the command again)", f->path,
                    how);
}

static int open_file(sgt_source *s, sgt_error *err)
{
    const sgt_corpus_file *f = s->file;
    /* with O_NONBLOCK, open does not block if the path now names a pipe */
    s->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (s->fd < 0) return sgt_fail_errno(err, "%s", f->path);
    int rc = check_same(s, err);
    if (!rc && f->filter) {
        rc = sgt_filter_start(f->filter, f->path, &s->child, err);
        s->filtered = !rc;
    }
    posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return rc;
}

/* Wait until a read from `fd` would not block. Return SGT_ESTOPPED if a stop was requested. Call
 * this before each read, even of a regular file, which never blocks: skipping a long line may take
 * minutes, during which a stop request must be noticed. */
static int wait_bytes(const sgt_source *s, int fd, sgt_error *err)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int rc;
    do {
        if (sgt_stopped(s->stop) || sgt_stopped(s->cancel) || sgt_stopped(&s->closing))
            return sgt_fail(err, SGT_ESTOPPED, "stopped");
        rc = poll(&p, 1, 100);
    } while (rc == 0 || (rc < 0 && errno == EINTR));
    return SGT_OK; /* if poll failed, the read that follows returns the error */
}

/* Set *end to 1 if there are no more bytes to read, otherwise to 0. Return an error if the file has
 * changed since the inputs were listed, if the number of bytes read is not the size of the file, or
 * if the filter of the file failed. Call this after the last expected byte has been read, or when
 * the file or the filter's output ends. */
static int check_end(sgt_source *s, int *end, sgt_error *err)
{
    const sgt_corpus_file *f = s->file;
    uint8_t more;
    ssize_t got = 0;
    if (!*end) do
            got = read(s->fd, &more, 1);
        while (got < 0 && errno == EINTR);
    if (got < 0) return sgt_fail_errno(err, "%s: offset %" PRIu64, f->path, s->at);
    s->at += (uint64_t)got;
    *end = got == 0;
    int rc =
        f->filter ? sgt_filter_end(f->filter, f->path, &s->child, s->stop, s->cancel, err) : SGT_OK;
    if (!rc) rc = check_same(s, err);
    if (rc < 0 || f->filter || (s->at == f->size && got == 0)) return rc;
    return sgt_fail(
        err, SGT_EIO,
        "%s: its stated size is wrong: the system reports %" PRIu64
        " bytes, but it has %s (common in /proc and /sys: copy it with cat, and name the copy)",
        f->path, f->size, s->at > f->size ? "more" : "fewer");
}

/* Fill p[*n] to p[want-1] with bytes of the source (a file, standard input or a filter), and advance
 * *n past the bytes read. Set *end to 1 at the end of the source. */
static int read_file(sgt_source *s, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err)
{
    const sgt_corpus_file *f = s->file;
    const int fd = f->filter ? s->child.fd : s->fd;
    while (*n < want && !*end) {
        int rc = wait_bytes(s, fd, err);
        if (rc < 0) return rc;
        ssize_t got = read(fd, p + *n, want - *n);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got < 0) return sgt_fail_errno(err, "%s: offset %" PRIu64, f->path, s->at);
        *n += (size_t)got;
        s->at += (uint64_t)got;
        *end = got == 0;
    }
    if (f->stream) return SGT_OK;
    return *end || (s->at >= f->size && !f->filter) ? check_end(s, end, err) : SGT_OK;
}

/* ---- packed files ---- */

/* Return the offset, in the file, of the next compressed byte to be decompressed. */
static uint64_t packed_at(const sgt_source *s) { return s->at - (s->in_size - s->in_at); }

/* Return 1 if the bytes after a gzip member are garbage, that is, if they do not begin with two
 * bytes that zlib accepts as the start of another member; otherwise 0. If the file has only one
 * byte after the member, and a member may begin with this byte, return 0: as in gzip(1), the byte
 * counts as a truncated member. */
static int is_garbage(const sgt_source *s)
{
    return s->member_end && (s->gz.msg ? s->gz.total_in < 3 : s->gz.total_in < 2 && !s->next);
}

/* Set *err to an error that describes the damage or the trailing garbage, and return
 * SGT_EFORMAT. */
static int damaged(const sgt_source *s, const char *kind, const char *why, sgt_error *err)
{
    if (is_garbage(s))
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: offset %" PRIu64 ": trailing garbage ignored: %" PRIu64
                        " B after the last gzip member",
                        s->file->path, s->member_end, s->file->size - s->member_end);
    return sgt_fail(err, SGT_EFORMAT, "%s: offset %" PRIu64 ": %s: %s%s", s->file->path,
                    packed_at(s), kind, why,
                    s->file->skip_bad ? ": skipping the rest of the file"
                                      : " (--skip-bad skips the rest of such files)");
}

/* Decompress bytes from s->in to s->out with one call to zlib. */
static int inflate_some(sgt_source *s, sgt_error *err)
{
    z_stream *z = &s->gz;
    if (!s->inside) { /* skip the zeros (padding) after a gzip member, and begin the next member */
        while (s->in_at < s->in_size && s->in[s->in_at] == 0) s->in_at++;
        if (s->in_at == s->in_size) return SGT_OK;
        inflateReset(z);
        s->inside = 1;
        s->next = s->in[s->in_at] == 0x1f && packed_at(s) == s->member_end;
    }
    z->next_in = s->in + s->in_at;
    z->avail_in = (uInt)(s->in_size - s->in_at);
    z->next_out = s->out + s->out_size;
    z->avail_out = (uInt)(OUT - s->out_size);
    const int got = inflate(z, Z_NO_FLUSH);
    s->in_at = s->in_size - z->avail_in;
    s->out_size = OUT - z->avail_out;
    if (got == Z_STREAM_END) {
        s->inside = 0;
        s->member_end = packed_at(s);
    } else if (got == Z_MEM_ERROR) return sgt_fail_memory(err, s->file->path);
    else if (got != Z_OK && got != Z_BUF_ERROR)
        return damaged(s, "not gzip, or damaged", z->msg ? z->msg : "it needs a dictionary", err);
    return SGT_OK;
}

/* Return 1 if `first` is the first byte of a frame in a format older than that of zstd 0.8;
 * otherwise 0. These formats are refused, because libzstd's decoders for them ignore the memory
 * limit, and because their errors depend on how the input is divided among calls. */
static int is_legacy(uint8_t first) { return first >= 0x1e && first <= 0x27; }

/* Decompress bytes from s->in to s->out with one call to libzstd. */
static int decompress_some(sgt_source *s, sgt_error *err)
{
    static const char not_zstd[] = "not zstd, or damaged";
    ZSTD_inBuffer in = {s->in, s->in_size, s->in_at};
    ZSTD_outBuffer out = {s->out, OUT, s->out_size};
    const int begins = !s->inside || !packed_at(s);
    if (!s->inside && in.pos == in.size) return SGT_OK;
    if (begins && in.pos < in.size && is_legacy(s->in[in.pos]))
        return damaged(s, not_zstd, ZSTD_getErrorString(ZSTD_error_prefix_unknown), err);
    const size_t got = ZSTD_decompressStream(s->zst, &out, &in);
    s->in_at = in.pos;
    s->out_size = out.pos;
    if (!ZSTD_isError(got)) {
        s->inside = got != 0;
        return SGT_OK;
    }
    if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
        return sgt_fail_memory(err, s->file->path);
    if (ZSTD_getErrorCode(got) != ZSTD_error_frameParameter_windowTooLarge)
        return damaged(s, not_zstd, ZSTD_getErrorName(got), err);
    return sgt_fail(err, SGT_EUNSUPPORTED,
                    "%s: offset %" PRIu64 ": needs a zstd window of more than 128 MiB (--filter "
                    "'zst=zstd --long=31 -dc {}' decompresses such files)",
                    s->file->path, packed_at(s));
}

static int begin_unpacking(sgt_source *s, sgt_error *err)
{
    s->inside = 1;
    s->in = malloc(IN + OUT);
    const int begun = s->file->pack == SGT_PACK_GZ ? inflateInit2(&s->gz, 15 + 16) == Z_OK
                                                   : (s->zst = ZSTD_createDStream()) != NULL;
    if (!s->in || !begun) return sgt_fail_memory(err, s->file->path);
    s->out = s->in + IN;
    return SGT_OK;
}

/* Fill s->out with new bytes, completely or up to the end of the stream. All bytes that were in
 * s->out must have been read before. */
static int unpack(sgt_source *s, sgt_error *err)
{
    s->out_at = s->out_size = 0;
    while (s->out_size < OUT && !s->ended) {
        const size_t before = s->out_size;
        int rc = SGT_OK;
        if (s->in_at == s->in_size && !s->in_end) {
            s->in_at = s->in_size = 0;
            rc = read_file(s, s->in, &s->in_size, IN, &s->in_end, err);
        }
        if (!rc) rc = s->zst ? decompress_some(s, err) : inflate_some(s, err);
        if (rc < 0) return rc;
        if (!s->in_end || s->in_at < s->in_size) continue;
        s->ended = !s->inside;
        if (s->inside && s->out_size == before)
            return damaged(s, "truncated", "the file ends in the middle of its compressed data",
                           err);
    }
    return SGT_OK;
}

/* Fill s->out with new bytes. If trailing garbage or, with --skip-bad, damage is found, end the
 * stream there, and describe the skipped bytes in s->left. Store any other error in s->failure, so
 * that it is returned after the bytes in s->out. */
static void unpack_more(sgt_source *s)
{
    const int rc = unpack(s, &s->failure), garbage = is_garbage(s);
    if (rc != SGT_EFORMAT || !(garbage || s->file->skip_bad)) return;
    s->left = s->failure;
    if (garbage) s->left.code = SGT_OK;
    s->failure.code = check_same(s, &s->failure);
    s->ended = 1;
}

static int read_packed(sgt_source *s, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err)
{
    while (*n < want && !*end) {
        const size_t k = at_most(s->out_size - s->out_at, want - *n);
        memcpy(p + *n, s->out + s->out_at, k);
        *n += k;
        s->out_at += k;
        if (s->out_at < s->out_size) break;
        if (s->failure.code) return sgt_fail(err, s->failure.code, "%s", s->failure.text);
        if (s->ended) *end = 1;
        else unpack_more(s);
    }
    return SGT_OK;
}

const sgt_error *sgt_source_left(const sgt_source *s) { return &s->left; }

/* ---- one source ---- */

/* Open the file unless it is already open. If the file is compressed, prepare to decompress it. */
static int open_stream(sgt_source *s, sgt_error *err)
{
    const int rc = s->fd < 0 ? open_file(s, err) : SGT_OK;
    return rc < 0 || s->in || s->file->pack == SGT_PACK_NONE ? rc : begin_unpacking(s, err);
}

static void close_stream(sgt_source *s)
{
    if (s->fd >= 0 && !s->file->stream) close(s->fd);
    if (s->filtered) sgt_filter_stop(&s->child);
    s->fd = -1;
    s->filtered = 0;
    inflateEnd(&s->gz);
    ZSTD_freeDStream(s->zst);
    s->zst = NULL;
    free(s->in);
    s->in = NULL;
}

static int read_stream(sgt_source *s, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err)
{
    return (s->in ? read_packed : read_file)(s, p, n, want, end, err);
}

int sgt_source_open(sgt_source **out, const sgt_corpus_file *f, const sgt_stop *stop,
                    const sgt_stop *cancel, sgt_error *err)
{
    sgt_source *s = *out = calloc(1, sizeof *s);
    if (!s) return sgt_fail_memory(err, f->path);
    s->file = f;
    s->stop = stop;
    s->cancel = cancel;
    s->fd = f->stream ? STDIN_FILENO : -1;
    return SGT_OK;
}

int sgt_source_seek(sgt_source *s, uint64_t at, sgt_error *err)
{
    const int rc = open_stream(s, err);
    if (rc < 0) return rc;
    if (lseek(s->fd, (off_t)at, SEEK_SET) < 0) return sgt_fail_errno(err, "%s", s->file->path);
    s->at = at;
    return SGT_OK;
}

static uint64_t raw_bytes(const sgt_source *s)
{
    const uint64_t size = s->file->size;
    /* It is not known how many bytes of the file a filter has read. Return the number of bytes that
     * the filter has printed instead, but not more than the size of the file. */
    if (s->file->filter) return s->at < size ? s->at : size;
    return packed_at(s);
}

uint64_t sgt_source_raw(const sgt_source *s) { return s->ahead ? s->raw : raw_bytes(s); }

/* ---- reading ahead ---- */

/* Main function of the read-ahead thread: open the file, and read its stream into the ring buffer
 * until the stream ends, an error occurs or a stop is requested. */
static void *fill_ring(void *arg)
{
    sgt_source *s = arg;
    ring *r = s->ahead;
    int end = 0, rc = open_stream(s, &r->err);
    pthread_mutex_lock(&r->lock);
    while (!r->ended) {
        while (r->made - r->used == SGT_AHEAD_BYTES && !sgt_stopped(&s->closing))
            pthread_cond_wait(&r->changed, &r->lock);
        const size_t from = (size_t)(r->made % SGT_AHEAD_BYTES),
                     room = at_most(SGT_AHEAD_BYTES - (size_t)(r->made - r->used), CHUNK);
        size_t n = 0;
        pthread_mutex_unlock(&r->lock);
        if (!rc && (sgt_stopped(s->stop) || sgt_stopped(s->cancel) || sgt_stopped(&s->closing)))
            rc = sgt_fail(&r->err, SGT_ESTOPPED, "stopped");
        if (!rc)
            rc = read_stream(s, r->bytes + from, &n, at_most(room, SGT_AHEAD_BYTES - from), &end,
                             &r->err);
        pthread_mutex_lock(&r->lock);
        r->made += n;
        r->raw = raw_bytes(s);
        r->rc = rc;
        r->ended = end || rc < 0;
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    close_stream(s);
    return NULL;
}

static void free_ring(ring *r)
{
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r->bytes);
    free(r);
}

void sgt_source_ahead(sgt_source *s)
{
    ring *r = calloc(1, sizeof *r);
    if (!r) return;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    s->ahead = r;
    if ((r->bytes = malloc(SGT_AHEAD_BYTES)) && !sgt_thread_start(&r->thread, fill_ring, s)) return;
    free_ring(r);
    s->ahead = NULL;
}

static int read_ring(sgt_source *s, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err)
{
    ring *r = s->ahead;
    int rc = SGT_OK;
    pthread_mutex_lock(&r->lock);
    while (*n < want && !*end && !rc) {
        /* no timeout is needed here, because the read-ahead thread ends if a stop is requested, and
         * then signals `changed` */
        while (r->made == r->used && !r->ended) pthread_cond_wait(&r->changed, &r->lock);
        const size_t from = (size_t)(r->used % SGT_AHEAD_BYTES),
                     there = at_most((size_t)(r->made - r->used), want - *n),
                     k = at_most(there, SGT_AHEAD_BYTES - from);
        s->raw = r->raw;
        pthread_mutex_unlock(&r->lock);
        if (k) memcpy(p + *n, r->bytes + from, k);
        *n += k;
        pthread_mutex_lock(&r->lock);
        r->used += k;
        pthread_cond_broadcast(&r->changed);
        if (!r->ended || r->used < r->made) continue;
        rc = r->rc;
        *end = !rc;
        if (rc < 0 && err) *err = r->err;
    }
    pthread_mutex_unlock(&r->lock);
    return rc;
}

int sgt_source_read(sgt_source *s, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err)
{
    if (s->ahead) return read_ring(s, p, n, want, end, err);
    const int rc = open_stream(s, err);
    return rc < 0 ? rc : read_stream(s, p, n, want, end, err);
}

void sgt_source_close(sgt_source *s)
{
    ring *r = s ? s->ahead : NULL;
    if (!s) return;
    if (r) {
        pthread_mutex_lock(&r->lock);
        sgt_stop_request(&s->closing);
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
        pthread_join(r->thread, NULL);
        free_ring(r);
    }
    close_stream(s);
    free(s);
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
