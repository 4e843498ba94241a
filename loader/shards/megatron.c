/* megatron.c: read Megatron-LM's .idx without trusting it. Its three columns are the length of each
 * sequence, the byte at which each sequence begins, and the first sequence of each document. They
 * are read in parallel, and each number is checked against the numbers before it and the size of
 * the .bin. */
#include "loader/shards/megatron.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"

#define MAGIC "MMIDIDX\0" /* C adds one NUL more */
#define OLD "TNTIDX\0"
enum {
    VERSION_AT = 9,
    TYPE_AT = 17,
    COUNTS_AT = 18,
    COLUMNS_AT = 34,
    CHUNK = 1 << 16,
    INT16 = 3,
    UINT16 = 8
};

typedef struct megatron_index {
    char *path;
    int fd;
    uint64_t size, sequences, entries; /* entries: number of documents + 1 */
} megatron_index;

static uint64_t get64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v); /* the file is little-endian, like this machine */
    return v;
}

/* ---- which file ---- */

static char *with_ending(const char *path, size_t keep, const char *ending)
{
    size_t n = strlen(ending);
    char *made = malloc(keep + n + 1);
    if (!made) return NULL;
    memcpy(made, path, keep);
    memcpy(made + keep, ending, n + 1);
    return made;
}

static int ends(const char *path, const char *ending)
{
    size_t n = strlen(path), e = strlen(ending);
    return n > e && strcmp(path + n - e, ending) == 0;
}

static void close_index(megatron_index *x)
{
    if (x->fd >= 0) close(x->fd);
    free(x->path);
}

/* Open the .idx beside `shard`. Return 1, or 0 if there is none or it is not Megatron-LM's. The
 * caller must close it in any case. */
static int open_index(megatron_index *x, const char *shard, sgt_error *err)
{
    unsigned char magic[9] = {0};
    struct stat st;
    *x = (megatron_index){.fd = -1};
    if (!ends(shard, ".bin")) return 0;
    if (!(x->path = with_ending(shard, strlen(shard) - 4, ".idx")))
        return sgt_fail_memory(err, shard);
    /* opening a FIFO would wait for a writer */
    x->fd = open(x->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (x->fd < 0) return errno == ENOENT ? 0 : sgt_fail_errno(err, "%s", x->path);
    if (fstat(x->fd, &st) < 0) return sgt_fail_errno(err, "%s", x->path);
    x->size = (uint64_t)st.st_size;
    if (!S_ISREG(st.st_mode) || x->size < sizeof magic) return 0;
    int rc = sgt_pread_all(x->fd, magic, sizeof magic, 0, x->path, err);
    if (rc < 0) return rc;
    if (memcmp(magic, OLD, sizeof OLD) == 0)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "%s: at byte 0: TNTIDX, the index that Megatron-LM wrote before MMIDIDX: "
                        "sgt reads the latter",
                        x->path);
    return memcmp(magic, MAGIC, sizeof MAGIC) == 0;
}

char *sgt_megatron_shard(const char *path)
{
    megatron_index x;
    size_t keep = strlen(path) - (ends(path, ".idx") ? 4 : 0);
    char *shard = with_ending(path, keep, ".bin");
    int is = shard ? open_index(&x, shard, NULL) : 0;
    if (shard) close_index(&x);
    if (is == 1) return shard;
    free(shard);
    return NULL;
}

/* ---- its header ---- */

static int check_type(const megatron_index *x, unsigned type, sgt_error *err)
{
    static const char *const names[] = {NULL,    "uint8", "int8",    NULL,
                                        "int32", "int64", "float64", "float32"};
    static const int bits[] = {0, 8, 8, 0, 32, 64, 64, 32};
    if (type == UINT16 || type == INT16) return SGT_OK;
    if (type < sizeof bits / sizeof *bits && names[type])
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "%s: at byte %d: type %u, %s: %d-bit tokens: sgt reads 16-bit ones (which "
                        "Megatron-LM writes for vocabularies below 65,500)",
                        x->path, TYPE_AT, type, names[type], bits[type]);
    return sgt_fail(err, SGT_EFORMAT, "%s: at byte %d: type %u, expected 8 (uint16)", x->path,
                    TYPE_AT, type);
}

static int read_header(megatron_index *x, sgt_error *err)
{
    unsigned char h[COLUMNS_AT];
    if (x->size < sizeof h)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: %" PRIu64 " bytes, expected at least the header's %zu: cut short",
                        x->path, x->size, sizeof h);
    int rc = sgt_pread_all(x->fd, h, sizeof h, 0, x->path, err);
    if (rc < 0) return rc;
    if (get64(h + VERSION_AT) != 1)
        return sgt_fail(err, SGT_EUNSUPPORTED, "%s: at byte %d: version %" PRIu64 ", expected 1",
                        x->path, VERSION_AT, get64(h + VERSION_AT));
    if ((rc = check_type(x, h[TYPE_AT], err)) < 0) return rc;
    x->sequences = get64(h + COUNTS_AT);
    x->entries = get64(h + COUNTS_AT + 8);
    uint64_t room = x->size - COLUMNS_AT, wanted = 0;
    if (x->entries && x->sequences <= room / 12 && x->entries <= room / 8)
        wanted = 12 * x->sequences + 8 * x->entries;
    if (wanted && (wanted == room || wanted + x->sequences == room)) return SGT_OK;
    return sgt_fail(
        err, SGT_EFORMAT,
        "%s: %" PRIu64 " bytes, but at byte %d it says %" PRIu64 " sequences and %" PRIu64
        " bounds of documents, 12 and 8 bytes each (cut short or not whole; make it again)",
        x->path, x->size, COUNTS_AT, x->sequences, x->entries);
}

int sgt_megatron_beside(const char *shard, sgt_error *err)
{
    megatron_index x;
    int rc = open_index(&x, shard, err);
    if (rc == 1 && (rc = read_header(&x, err)) == SGT_OK) rc = 1;
    close_index(&x);
    return rc;
}

/* ---- its columns ---- */

/* A column of the .idx: numbers of `width` bytes, read chunk by chunk. */
typedef struct column {
    uint64_t at, end; /* offsets in the file: the next read, and the end of the column */
    size_t width, next, have;
    uint64_t hash; /* hash of all chunks read so far */
    unsigned char bytes[CHUNK];
} column;

static int next_number(column *c, const megatron_index *x, uint64_t *v, sgt_error *err)
{
    if (c->next == c->have) {
        c->have = c->end - c->at < CHUNK ? (size_t)(c->end - c->at) : CHUNK;
        c->next = 0;
        int rc = sgt_pread_all(x->fd, c->bytes, c->have, c->at, x->path, err);
        if (rc < 0) return rc;
        c->at += c->have;
        c->hash = XXH3_64bits_withSeed(c->bytes, c->have, c->hash);
    }
    int32_t narrow;
    if (c->width == 8) {
        *v = get64(c->bytes + c->next);
    } else {
        memcpy(&narrow, c->bytes + c->next, sizeof narrow);
        *v = (uint64_t)(int64_t)narrow; /* a negative number becomes too large, so it is refused */
    }
    c->next += c->width;
    return SGT_OK;
}

/* Return the file offset of the number that was read last. */
static uint64_t place(const column *c) { return c->at - c->have + c->next - c->width; }

typedef struct walk {
    const megatron_index *x;
    column *tokens, *begins, *bounds;
    uint64_t size;  /* tokens of the .bin */
    uint64_t read;  /* numbers read so far from the column of documents */
    uint64_t bound; /* the last number read from that column: the first sequence of a document */
    uint64_t from;  /* byte of the .bin at which the document read last begins */
    uint64_t documents;
    int (*start)(void *ctx, uint64_t token, sgt_error *err);
    void *ctx;
} walk;

static int next_bound(walk *w, sgt_error *err)
{
    uint64_t last = w->bound;
    int rc = next_number(w->bounds, w->x, &w->bound, err);
    if (rc < 0) return rc;
    w->read++;
    int ok = w->bound >= last && w->bound <= w->x->sequences;
    if (w->read == 1 && w->bound != 0) ok = 0;
    if (w->read == w->x->entries && w->bound != w->x->sequences) ok = 0;
    if (ok) return SGT_OK;
    return sgt_fail(
        err, SGT_EFORMAT,
        "%s: at byte %" PRIu64 ": document %" PRIu64 " begins with sequence %" PRId64
        ", expected 0 first, none below the one before, and last the number of sequences, %" PRIu64,
        w->x->path, place(w->bounds), w->read - 1, (int64_t)w->bound, w->x->sequences);
}

/* Handle the fact that sequence i begins at byte `at` of the .bin. Documents whose first sequence
 * is i begin there too, and the document before them ends there. */
static int bounds_at(walk *w, uint64_t i, uint64_t at, sgt_error *err)
{
    int rc = SGT_OK;
    while (rc == SGT_OK && w->bound == i) {
        if (at > w->from) {
            w->documents++;
            if (w->start) rc = w->start(w->ctx, w->from / 2, err);
        }
        w->from = at;
        if (w->read == w->x->entries) break;
        if (rc == SGT_OK) rc = next_bound(w, err);
    }
    return rc;
}

static int walk_sequences(walk *w, sgt_error *err)
{
    uint64_t at = 0, tokens, begins;
    int rc = next_bound(w, err);
    for (uint64_t i = 0; i < w->x->sequences && rc == SGT_OK; i++, at += 2 * tokens) {
        if ((rc = next_number(w->tokens, w->x, &tokens, err)) < 0 ||
            (rc = next_number(w->begins, w->x, &begins, err)) < 0)
            return rc;
        if (tokens > (w->size - at) / 2)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: at byte %" PRIu64 ": sequence %" PRIu64 " has %" PRId64
                            " tokens, expected at most the %" PRIu64 " that are left of the .bin",
                            w->x->path, place(w->tokens), i, (int64_t)tokens, (w->size - at) / 2);
        if (begins != at)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: at byte %" PRIu64 ": sequence %" PRIu64 " begins at byte %" PRId64
                            " of the .bin, expected %" PRIu64 ", where the one before ends",
                            w->x->path, place(w->begins), i, (int64_t)begins, at);
        rc = bounds_at(w, i, at, err);
    }
    if (rc == SGT_OK && at != w->size)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: its sequences have %" PRIu64 " tokens, but the .bin has %" PRIu64
                        " (they do not belong together, or one is cut short)",
                        w->x->path, at / 2, w->size / 2);
    return rc == SGT_OK ? bounds_at(w, w->x->sequences, at, err) : rc;
}

static column *new_column(uint64_t at, uint64_t count, size_t width)
{
    column *c = calloc(1, sizeof *c);
    if (c) c->at = at, c->end = at + count * width, c->width = width;
    return c;
}

static int walk_index(sgt_megatron *m, walk *w, sgt_error *err)
{
    const megatron_index *x = w->x;
    uint64_t n = x->sequences;
    int rc;
    w->tokens = new_column(COLUMNS_AT, n, 4);
    w->begins = new_column(COLUMNS_AT + 4 * n, n, 8);
    w->bounds = new_column(COLUMNS_AT + 12 * n, x->entries, 8);
    if (!w->tokens || !w->begins || !w->bounds) rc = sgt_fail_memory(err, x->path);
    else rc = walk_sequences(w, err);
    if (rc == SGT_OK && m) {
        uint64_t all[] = {x->sequences, x->entries, w->tokens->hash, w->begins->hash,
                          w->bounds->hash};
        *m = (sgt_megatron){x->sequences, w->documents, XXH3_64bits(all, sizeof all)};
    }
    free(w->tokens);
    free(w->begins);
    free(w->bounds);
    return rc;
}

int sgt_megatron_read(sgt_megatron *m, const char *shard, uint64_t tokens,
                      int (*start)(void *ctx, uint64_t token, sgt_error *err), void *ctx,
                      sgt_error *err)
{
    megatron_index x;
    walk w = {.x = &x, .size = 2 * tokens, .start = start, .ctx = ctx};
    int rc = open_index(&x, shard, err);
    if (rc == 0)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: its .idx is gone, or no longer Megatron-LM's", shard);
    else if (rc == 1 && (rc = read_header(&x, err)) == SGT_OK) rc = walk_index(m, &w, err);
    close_index(&x);
    return rc;
}
