/* writer.c: write ids into shards. */
#include "tokenize/out/writer.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/shards/shard.h"

#define ID_BUFFER ((size_t)1 << 19) /* bytes of the buffer for ids */
/* number of document starts for which the write buffer of an .idx file has room */
#define START_BUFFER ((size_t)1 << 12)

struct sgt_writer {
    sgt_writer_options o;
    /* index: number of the current shard, counted from 0. tokens: number of tokens in the current
     * shard so far. documents: number of documents that start in the current shard. */
    uint64_t index, tokens, documents;
    size_t width; /* bytes of an id */
    /* Output files of the current shard. bin: file of the tokens, with a hash of those tokens that
     * have been written from its buffer to the file. idx: file of the positions at which documents
     * start. */
    sgt_sink bin, idx;
};

const char *const sgt_split_names[SGT_SPLITS] = {"train", "val"};

void sgt_writer_name(char name[64], const char *split, uint64_t index, const char *suffix)
{
    snprintf(name, 64, "%.15s_%06" PRIu64 ".%.15s", split, index, suffix);
}

void sgt_writer_index_name(char name[64], const char *file)
{
    snprintf(name, 64, "%.*s.idx", (int)strcspn(file, "."), file);
}

void sgt_writer_temporary_name(char temporary[80], const char *name)
{
    snprintf(temporary, 80, "%.63s.tmp", name);
}

int sgt_writer_reads_name(const char *name, int *split, uint64_t *index)
{
    for (*split = 0; *split < SGT_SPLITS; ++*split) {
        size_t n = strlen(sgt_split_names[*split]);
        if (strncmp(name, sgt_split_names[*split], n) || name[n] != '_') continue;
        const char *digits = name + n + 1;
        if (strspn(digits, "0123456789") != 6) continue;
        *index = strtoull(digits, NULL, 10);
        return !strcmp(digits + 6, ".bin") || !strcmp(digits + 6, ".idx");
    }
    return 0;
}

/* ---- one file ---- */

int sgt_sink_open(sgt_sink *s, const char *folder, const char *name, int flags, sgt_error *err)
{
    if (!s->buffer && !(s->buffer = malloc(s->size))) return sgt_fail_memory(err, folder);
    /* sgt_file_open fails if `name` is a symbolic link, which only another process could have
     * created; none should, because this run has locked the folder */
    s->fd = sgt_file_open(sgt_path(s->path, folder, "%s", name), O_RDWR | flags, err);
    return s->fd < 0 ? s->fd : SGT_OK;
}

int sgt_sink_flush(sgt_sink *s, sgt_error *err)
{
    int rc = sgt_write_all(s->fd, s->buffer, s->used, s->path, err);
    if (rc < 0) return rc;
    /* start writing the file's pages to disk now, without waiting, so that a later fsync has less
     * to write; an error is ignored, because the later fsync does everything that is necessary */
    (void)sync_file_range(s->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    if (s->hash) XXH3_64bits_update(s->hash, s->buffer, s->used);
    s->used = 0;
    return SGT_OK;
}

int sgt_sink_put(sgt_sink *s, const void *p, size_t n, sgt_error *err)
{
    for (const char *from = p; n;) {
        size_t k = s->size - s->used < n ? s->size - s->used : n;
        memcpy(s->buffer + s->used, from, k);
        s->used += k;
        from += k;
        n -= k;
        if (s->used < s->size) break;
        int rc = sgt_sink_flush(s, err);
        if (rc < 0) return rc;
    }
    return SGT_OK;
}

int sgt_sink_sync(sgt_sink *s, sgt_error *err)
{
    int rc = sgt_sink_flush(s, err);
    if (!rc && fsync(s->fd) < 0) rc = sgt_fail_errno(err, "%s: cannot flush to disk", s->path);
    return rc;
}

/* Close the file, and discard the bytes that are still in the buffer. */
static void close_sink(sgt_sink *s)
{
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
    s->used = 0;
}

void sgt_sink_free(sgt_sink *s)
{
    close_sink(s);
    free(s->buffer);
}

int sgt_sink_cut(sgt_sink *s, uint64_t size, sgt_error *err)
{
    struct stat st;
    if (fstat(s->fd, &st) < 0) return sgt_fail_errno(err, "%s", s->path);
    if ((uint64_t)st.st_size < size)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: has %lld bytes, expected at least %" PRIu64
                        " to continue (--force starts over)",
                        s->path, (long long)st.st_size, size);
    if (ftruncate(s->fd, (off_t)size) < 0 || lseek(s->fd, 0, SEEK_END) < 0)
        return sgt_fail_errno(err, "%s", s->path);
    return SGT_OK;
}

/* ---- shards ---- */

static int open_file(sgt_writer *w, sgt_sink *s, const char *suffix, int flags, sgt_error *err)
{
    char name[64];
    sgt_writer_name(name, w->o.split, w->index, suffix);
    return sgt_sink_open(s, w->o.work, name, flags, err);
}

/* Create the files of the next shard, unless the current shard already has open files. */
static int begin_shard(sgt_writer *w, sgt_error *err)
{
    /* zeros in place of the header, which can only be written when the shard is complete */
    static const uint8_t no_header[SGT_SHARD_HEADER];
    int flags = O_CREAT | O_TRUNC, rc;
    if (w->bin.fd >= 0) return SGT_OK;
    if (w->index >= SGT_WRITER_SHARDS)
        return sgt_fail(err, SGT_EUSAGE, "more than %d shards (use a larger --shard-tokens)",
                        SGT_WRITER_SHARDS);
    if ((rc = open_file(w, &w->bin, "bin.tmp", flags, err)) < 0 ||
        (rc = open_file(w, &w->idx, "idx.tmp", flags, err)) < 0)
        return rc;
    XXH3_64bits_reset(w->bin.hash);
    return sgt_write_all(w->bin.fd, no_header, sizeof no_header, w->bin.path, err);
}

static int rehash(sgt_writer *w, sgt_error *err)
{
    uint64_t bytes = w->width * w->tokens;
    XXH3_64bits_reset(w->bin.hash);
    for (uint64_t at = 0; at < bytes;) {
        size_t n = bytes - at < w->bin.size ? (size_t)(bytes - at) : w->bin.size;
        int rc =
            sgt_pread_all(w->bin.fd, w->bin.buffer, n, SGT_SHARD_HEADER + at, w->bin.path, err);
        if (rc < 0) return rc;
        XXH3_64bits_update(w->bin.hash, w->bin.buffer, n);
        at += n;
    }
    return SGT_OK;
}

static int resume_shard(sgt_writer *w, sgt_error *err)
{
    int rc;
    if ((rc = open_file(w, &w->bin, "bin.tmp", 0, err)) < 0 ||
        (rc = open_file(w, &w->idx, "idx.tmp", 0, err)) < 0 ||
        (rc = sgt_sink_cut(&w->bin, SGT_SHARD_HEADER + w->width * w->tokens, err)) < 0 ||
        (rc = sgt_sink_cut(&w->idx, 8 * w->documents, err)) < 0)
        return rc;
    return rehash(w, err);
}

int sgt_writer_open(sgt_writer **out, const sgt_writer_options *o, uint64_t shards, uint64_t tokens,
                    uint64_t documents, sgt_error *err)
{
    int rc = SGT_OK;
    sgt_writer *w = calloc(1, sizeof *w);
    if (!w) return sgt_fail_memory(err, o->work);
    *w = (sgt_writer){.o = *o, .index = shards, .tokens = tokens, .documents = documents};
    w->width = sgt_vocab_width(o->vocab);
    w->bin = (sgt_sink){.fd = -1, .size = ID_BUFFER, .hash = XXH3_createState()};
    w->idx = (sgt_sink){.fd = -1, .size = START_BUFFER * 8};
    if (!w->bin.hash) rc = sgt_fail_memory(err, o->work);
    if (!rc && tokens) rc = resume_shard(w, err);
    if (rc < 0) sgt_writer_close(w);
    else *out = w;
    return rc;
}

void sgt_writer_close(sgt_writer *w)
{
    if (!w) return;
    sgt_sink_free(&w->bin);
    sgt_sink_free(&w->idx);
    XXH3_freeState(w->bin.hash);
    free(w);
}

uint64_t sgt_writer_tokens(const sgt_writer *w) { return w->tokens; }
uint64_t sgt_writer_documents(const sgt_writer *w) { return w->documents; }
uint64_t sgt_writer_room(const sgt_writer *w) { return w->o.shard_tokens - w->tokens; }

int sgt_writer_document(sgt_writer *w, sgt_error *err)
{
    const int rc = begin_shard(w, err);
    if (rc < 0) return rc;
    w->documents++;
    return sgt_sink_put(&w->idx, &w->tokens, sizeof w->tokens, err);
}

int sgt_writer_append(sgt_writer *w, const void *ids, size_t n, sgt_error *err)
{
    assert(n <= sgt_writer_room(w));
    const int rc = begin_shard(w, err);
    if (rc < 0) return rc;
    w->tokens += n;
    return sgt_sink_put(&w->bin, ids, w->width * n, err);
}

int sgt_writer_sync(sgt_writer *w, sgt_error *err)
{
    if (w->bin.fd < 0) return SGT_OK;
    int rc = sgt_sink_sync(&w->bin, err);
    return rc < 0 ? rc : sgt_sink_sync(&w->idx, err);
}

int sgt_writer_finish(sgt_writer *w, sgt_manifest_shard *s, sgt_error *err)
{
    uint8_t header[SGT_SHARD_HEADER];
    assert(w->tokens > 0);
    int rc = sgt_sink_flush(&w->bin, err);
    if (rc < 0) return rc;
    sgt_shard_header h = {.tokens = w->tokens,
                          .revision = 1,
                          .vocab = sgt_vocab_size(w->o.vocab),
                          .eot = sgt_vocab_eot(w->o.vocab),
                          .fingerprint = sgt_vocab_fingerprint(w->o.vocab),
                          .xxh3 = XXH3_64bits_digest(w->bin.hash)};
    sgt_shard_pack(header, &h);
    if (lseek(w->bin.fd, 0, SEEK_SET) < 0) return sgt_fail_errno(err, "%s", w->bin.path);
    if ((rc = sgt_write_all(w->bin.fd, header, sizeof header, w->bin.path, err)) < 0 ||
        (rc = sgt_writer_sync(w, err)) < 0)
        return rc;
    *s = (sgt_manifest_shard){.tokens = w->tokens, .documents = w->documents, .xxh3 = h.xxh3};
    snprintf(s->split, sizeof s->split, "%s", w->o.split);
    sgt_writer_name(s->file, w->o.split, w->index, "bin");
    close_sink(&w->bin);
    close_sink(&w->idx);
    w->index++;
    w->tokens = w->documents = 0;
    return SGT_OK;
}
