/* megatron.c: read an .idx file of Megatron-LM, which may be damaged. The file has three columns:
 * the length of each sequence, the byte of the .bin file at which each sequence begins, and the
 * first sequence of each document. The file is read into memory, and each number is checked against
 * the numbers before it and against the size of the .bin file. */
#include "loader/shards/megatron.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/shards/set.h"

#define MAGIC "MMIDIDX\0" /* the compiler appends the second NUL */
#define OLD "TNTIDX\0"
enum {
    VERSION_AT = 9,
    TYPE_AT = 17,
    COUNTS_AT = 18,
    COLUMNS_AT = 34,
    CHUNK = 1 << 16,
    INT16 = 3,
    INT32 = 4,
    UINT16 = 8
};

typedef struct megatron_index {
    char path[SGT_PATH];
    char *bytes; /* the file's content */
    size_t size;
    size_t width; /* number of bytes per id */
    /* sequences: number of sequences; entries: number of documents + 1 */
    uint64_t sequences, entries;
    /* offsets in bytes, in the .idx file, of two columns:
     *   begins  the second column: the byte of the .bin file at which each sequence begins
     *   bounds  the third column: the index of the sequence with which each document begins */
    uint64_t begins, bounds;
} megatron_index;

static uint64_t get64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v); /* the file and this machine are little-endian */
    return v;
}

/* ---- finding the .idx ---- */

int sgt_megatron_beside(const char *shard, sgt_error *err)
{
    char path[SGT_PATH], head[COUNTS_AT] = {0};
    if (!sgt_index_path(path, shard)) return 0;
    /* O_NONBLOCK is needed because opening a FIFO would otherwise wait for a writer */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno == ENOENT ? 0 : sgt_fail_errno(err, "%s", path);
    ssize_t n;
    while ((n = pread(fd, head, sizeof head, 0)) < 0 && errno == EINTR) {
    }
    int rc = n < (ssize_t)sizeof MAGIC || memcmp(head, MAGIC, sizeof MAGIC) ? 0
             : head[TYPE_AT] == INT32                                       ? 4
                                                                            : 2;
    if (n < 0 && errno != EISDIR && errno != ESPIPE) rc = sgt_fail_errno(err, "%s", path);
    else if (n >= (ssize_t)sizeof OLD && memcmp(head, OLD, sizeof OLD) == 0)
        rc = sgt_fail(err, SGT_EUNSUPPORTED,
                      "%s: at byte 0: TNTIDX, an index of an old Megatron-LM: sgt reads only "
                      "MMIDIDX (make it again with a newer Megatron-LM)",
                      path);
    close(fd);
    return rc;
}

char *sgt_megatron_shard(char shard[SGT_PATH], const char *path)
{
    size_t keep = strlen(path);
    if (keep > 4 && strcmp(path + keep - 4, ".idx") == 0) keep -= 4;
    snprintf(shard, SGT_PATH, "%.*s.bin", (int)keep, path);
    return sgt_megatron_beside(shard, NULL) > 0 ? shard : NULL;
}

/* ---- the header of the .idx ---- */

static int check_type(megatron_index *x, unsigned type, sgt_error *err)
{
    static const char *const names[] = {NULL, "uint8", "int8",    NULL,
                                        NULL, "int64", "float64", "float32"};
    static const int bits[] = {0, 8, 8, 0, 0, 64, 64, 32};
    x->width = type == INT32 ? 4 : 2;
    if (type == UINT16 || type == INT16 || type == INT32) return SGT_OK;
    if (type < sizeof bits / sizeof *bits && names[type])
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "%s: at byte %d: the tokens have type %u (%s, %d bits), but sgt reads only "
                        "uint16, int16 and int32",
                        x->path, TYPE_AT, type, names[type], bits[type]);
    return sgt_fail(err, SGT_EFORMAT, "%s: at byte %d: type %u, expected 8 (uint16) or 4 (int32)",
                    x->path, TYPE_AT, type);
}

static int read_header(megatron_index *x, sgt_error *err)
{
    const char *h = x->bytes;
    if (x->size < COLUMNS_AT)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: %zu bytes, expected at least the header's %d: cut short", x->path,
                        x->size, COLUMNS_AT);
    if (get64(h + VERSION_AT) != 1)
        return sgt_fail(err, SGT_EUNSUPPORTED, "%s: at byte %d: version %" PRIu64 ", expected 1",
                        x->path, VERSION_AT, get64(h + VERSION_AT));
    int rc = check_type(x, (unsigned char)h[TYPE_AT], err);
    if (rc < 0) return rc;
    x->sequences = get64(h + COUNTS_AT);
    x->entries = get64(h + COUNTS_AT + 8);
    uint64_t room = x->size - COLUMNS_AT, wanted = 0;
    if (x->entries && x->sequences <= room / 12 && x->entries <= room / 8)
        wanted = 12 * x->sequences + 8 * x->entries;
    x->begins = COLUMNS_AT + 4 * x->sequences;
    x->bounds = COLUMNS_AT + 12 * x->sequences;
    if (wanted && (wanted == room || wanted + x->sequences == room)) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: %zu bytes, but its header (at byte %d) says %" PRIu64
                    " sequences of 12 bytes and %" PRIu64
                    " document bounds of 8 bytes (cut short or damaged: make it again)",
                    x->path, x->size, COUNTS_AT, x->sequences, x->entries);
}

/* ---- the columns of the .idx ---- */

/* Check the lengths and positions of all sequences against a .bin file that has `size` bytes. */
static int check_sequences(const megatron_index *x, uint64_t size, sgt_error *err)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < x->sequences; i++) {
        uint64_t place = COLUMNS_AT + 4 * i, begins = get64(x->bytes + x->begins + 8 * i);
        int32_t tokens;
        memcpy(&tokens, x->bytes + place, sizeof tokens);
        if (tokens < 0 || (uint64_t)tokens > (size - at) / x->width)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: at byte %" PRIu64 ": sequence %" PRIu64 " has %" PRId32
                            " tokens, but only %" PRIu64 " are left in the .bin",
                            x->path, place, i, tokens, (size - at) / x->width);
        if (begins != at)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: at byte %" PRIu64 ": sequence %" PRIu64 " begins at byte %" PRId64
                            " of the .bin, expected %" PRIu64 ", where the sequence before it ends",
                            x->path, x->begins + 8 * i, i, (int64_t)begins, at);
        at += x->width * (uint64_t)tokens;
    }
    if (at == size) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: its sequences have %" PRIu64 " tokens, but the .bin has %" PRIu64
                    " (the two files do not belong together, or one was cut short)",
                    x->path, at / x->width, size / x->width);
}

/* Check the third column, which contains the index of the first sequence of each document. Store
 * the first token of each document that is not empty in `starts`, as an index in the .bin file, and
 * the number of these documents in *count. */
static int list_documents(const megatron_index *x, uint64_t size, uint64_t *starts, size_t *count,
                          sgt_error *err)
{
    /* last: previous number in the column, which is the index of the first sequence of the current
     * document; from: byte of the .bin file at which this sequence begins */
    uint64_t last = 0, from = 0;
    for (uint64_t i = 0; i < x->entries; i++) {
        uint64_t bound = get64(x->bytes + x->bounds + 8 * i);
        if (bound < last || bound > x->sequences || (i == 0 && bound != 0) ||
            (i + 1 == x->entries && bound != x->sequences))
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: at byte %" PRIu64 ": document %" PRIu64
                            " begins with sequence %" PRId64
                            ", but these numbers must begin with 0, never decrease, and end with "
                            "the number of sequences, %" PRIu64,
                            x->path, x->bounds + 8 * i, i, (int64_t)bound, x->sequences);
        uint64_t to = bound < x->sequences ? get64(x->bytes + x->begins + 8 * bound) : size;
        if (to > from) starts[(*count)++] = from / x->width;
        last = bound;
        from = to;
    }
    return SGT_OK;
}

/* Return the hash of the bytes `at` ... end-1 of the .idx file, which hold one of its columns. The
 * bytes are hashed in chunks of CHUNK bytes. */
static uint64_t hash_column(const megatron_index *x, uint64_t at, uint64_t end)
{
    uint64_t hash = 0;
    for (; at < end; at += CHUNK)
        hash = XXH3_64bits_withSeed(x->bytes + at, end - at < CHUNK ? end - at : CHUNK, hash);
    return hash;
}

static uint64_t hash_index(const megatron_index *x)
{
    uint64_t all[] = {x->sequences, x->entries, hash_column(x, COLUMNS_AT, x->begins),
                      hash_column(x, x->begins, x->bounds),
                      hash_column(x, x->bounds, x->bounds + 8 * x->entries)};
    return XXH3_64bits(all, sizeof all);
}

int sgt_megatron_read(uint64_t **starts, size_t *count, uint64_t *hash, const char *shard,
                      uint64_t tokens, sgt_error *err)
{
    megatron_index x = {0};
    uint64_t *found = NULL;
    int rc = sgt_megatron_beside(shard, err);
    *count = 0;
    if (rc == 0)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: its .idx file was removed, or is no longer an index of Megatron-LM",
                      shard);
    if (rc > 0)
        rc = sgt_file_get(&x.bytes, &x.size, sgt_index_path(x.path, shard), SIZE_MAX / 2, err);
    if (rc == SGT_OK) rc = read_header(&x, err);
    if (rc == SGT_OK) rc = check_sequences(&x, x.width * tokens, err);
    if (rc == SGT_OK && !(found = calloc(x.entries, sizeof *found)))
        rc = sgt_fail_memory(err, x.path);
    if (rc == SGT_OK) rc = list_documents(&x, x.width * tokens, found, count, err);
    if (rc == SGT_OK) *hash = hash_index(&x);
    if (rc == SGT_OK) *starts = found;
    else free(found);
    free(x.bytes);
    return rc;
}
