/* shard.c: read and write the shard format. A header is checked against the size of the file before
 * it is used. sgt_shard_verify reads the entire file, and also checks the ids and the checksum. The
 * loader checks ids when it reads them. */
#include "loader/shards/shard.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/base/magic.h"
#include "loader/rows/rows.h"
#include "loader/shards/megatron.h"

#define REVISION 1
/* number of 32-bit words at the beginning of the header that sgt uses; the other words are 0 */
#define OWN_WORDS 10
/* size in bytes below which a *.bin file without a header is assumed to contain tokens, because it
 * is too short to tell whether it is text */
#define LEAST_TEXT 64
/* number of bytes at the beginning of a file without a header that are examined to find out whether
 * the file contains ids */
#define SAMPLE ((size_t)16384)
/* minimum number of 16-bit words that must vary like the low halves of 32-bit ids, for a file
 * without a header to count as having 32-bit ids (see width_of) */
#define LEAST_WIDE 16
/* number of bytes per read in sgt_shard_verify, few enough to be still in the L2 cache when they
 * are checked */
#define VERIFY_BYTES ((size_t)1 << 18)
/* number of bytes per readahead request in sgt_shard_verify */
#define VERIFY_AHEAD ((uint64_t)8 << 20)

const char *sgt_shard_format_name(sgt_shard_format f)
{
    static const char *const names[] = {"sgt", "llm.c", "raw", "megatron"};
    return names[f];
}

/* Write the header. Its numbers are little-endian, as on this machine. */
void sgt_shard_pack(uint8_t bytes[SGT_SHARD_HEADER], const sgt_shard_header *h)
{
    const int wide = sgt_id_width(h->vocab) == 4;
    const uint32_t words[OWN_WORDS] = {wide ? SGT_SHARD_WIDE_MAGIC : SGT_SHARD_MAGIC,
                                       wide ? SGT_SHARD_WIDE_VERSION : SGT_SHARD_VERSION,
                                       (uint32_t)h->tokens,
                                       REVISION,
                                       h->vocab,
                                       h->eot,
                                       (uint32_t)h->fingerprint,
                                       (uint32_t)(h->fingerprint >> 32),
                                       (uint32_t)h->xxh3,
                                       (uint32_t)(h->xxh3 >> 32)};
    memset(bytes, 0, SGT_SHARD_HEADER);
    memcpy(bytes, words, sizeof words);
}

static uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }

/* Return the width in bits of the ids in a file of `size` bytes that has no header. `head` holds
 * the first n bytes of the file. The result is 16 or, if the 16-bit words of the file cannot be
 * 16-bit ids, 32 or 64.
 *
 * In a file of 16-bit ids, words at odd and at even positions have the same distribution. In a file
 * of 32-bit ids, the words at odd positions are the high halves of ids. Such a file is recognized
 * by three properties:
 * - All odd words are below 16, because no vocabulary has more than 2^20 ids.
 * - At least an eighth of the odd words are 0, because frequent ids are small. (The 16-bit ids of
 *   text like "red, green, blue" do not have this property: their odd words may all be 11, a
 *   comma.)
 * - At least LEAST_WIDE even words are greater than every odd word, and differ from the even word
 *   before them. */
static int width_of(const uint8_t *head, size_t n, uint64_t size)
{
    size_t pairs = n / 4, zeros = 0, varied = 0, long_zeros = 0;
    uint16_t most = 0;
    for (size_t i = 0; i < pairs; i++) {
        uint16_t low = get16(head + 4 * i), high = get16(head + 4 * i + 2);
        most = high > most ? high : most;
        zeros += !high;
        long_zeros += i % 2 && !high && !low;
    }
    for (size_t i = 1; i < pairs; i++) {
        uint16_t low = get16(head + 4 * i), before = get16(head + 4 * i - 4);
        varied += low > most && low != before;
    }
    if (size % 4 || most >= 16 || zeros < pairs / 8 || varied < LEAST_WIDE) return 16;
    return size % 8 || long_zeros < pairs / 2 ? 32 : 64;
}

/* Return 1 if the n bytes at `head` may be text in UTF-8 or any other encoding that extends ASCII,
 * that is, if their only control characters are those that occur in text. Otherwise return 0. */
static int is_text(const uint8_t *head, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (head[i] == 127 || (head[i] < ' ' && !memchr("\t\n\f\r\033", head[i], 5))) return 0;
    return 1;
}

int sgt_shard_is_bin(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && !strcmp(path + n - 4, ".bin");
}

/* Return SGT_EFORMAT if a file cannot contain 16-bit ids, because it has a different known format
 * or looks like text. `head` holds the first n bytes of the file, which has `size` bytes. A file of
 * ids usually does not look like text, because the high bytes of frequent (small) ids are control
 * characters.
 *
 * There is one exception: if all ids are below 256, the file looks like UTF-16 text. Therefore, a
 * file whose name ends in .bin is not checked for UTF-16. */
static int check_tokens(const uint8_t *head, size_t n, uint64_t size, const char *path,
                        sgt_error *err)
{
    static const char *const advice[] = {
        [SGT_MAGIC_OTHER] = "tokenize text with sgt-tokenize",
        [SGT_MAGIC_ARRAY] = "write 16-bit ids without a header with numpy's tofile",
        [SGT_MAGIC_WIDE] = "if it holds ids, give it a name that ends in .bin"};
    const sgt_magic *m = sgt_magic_of(head, n);
    if (!m && (!n || (n < LEAST_TEXT && sgt_shard_is_bin(path)))) return SGT_OK;
    if (!m && !sgt_shard_is_bin(path)) m = sgt_magic_wide(head, n, n == size);
    if (m && m->kind == SGT_MAGIC_NUMBERS) m = NULL;
    if (m && advice[m->kind])
        return sgt_fail(err, SGT_EFORMAT, "%s: %s, not 16-bit tokens (%s)", path, m->what,
                        advice[m->kind]);
    if (n > SGT_SHARD_HEADER) n = SGT_SHARD_HEADER;
    const size_t mark = sgt_utf8_mark(head, n);
    if (!m && !is_text(head, n)) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: %s, not 16-bit tokens (tokenize it with sgt-tokenize %s OUT/)", path,
                    m                                        ? m->what
                    : head[mark] == '{' || head[mark] == '[' ? "JSON"
                                                             : "text",
                    path);
}

/* Return SGT_EUNSUPPORTED if a file without a header seems to have ids of more than `bits` bits.
 * `head` holds the first n bytes of the file, which has `size` bytes. Also return SGT_EUNSUPPORTED
 * if `bits` is 32 and an id is SGT_MOST_IDS or more: no vocabulary has such an id, so the file
 * probably contains 16-bit ids. */
static int check_width(const uint8_t *head, size_t n, uint64_t size, int bits, const char *path,
                       sgt_error *err)
{
    const int width = width_of(head, n, size);
    for (size_t i = 3; i < n && bits == 32 && size % 4 == 0; i += 4)
        if (get16(head + i - 1) >= SGT_MOST_IDS >> 16)
            return sgt_fail(err, SGT_EUNSUPPORTED,
                            "%s: not 32-bit ids: token %zu would be %u, which no vocabulary has "
                            "(read 16-bit ids with --raw 16, in Python with raw=16)",
                            path, i / 4, (uint32_t)get16(head + i - 1) << 16 | get16(head + i - 3));
    if (width <= bits) return SGT_OK;
    return sgt_fail(
        err, SGT_EUNSUPPORTED,
        width == 32
            ? "%s: 32-bit ids without a header, not 16-bit ones (sgt-inspect and "
              "sgt-bench loader read them with --raw 32, Python with raw=32; sgt-train "
              "and sgt-eval need a header)"
            : "%s: 64-bit ids without a header: sgt reads only 16-bit and 32-bit ids (convert them "
              "with numpy.fromfile(FILE, 'u8').astype('u4').tofile(NEW), then use --raw 32)",
        path);
}

/* Fill in *h for a file that does not begin with the magic number of sgt. `head` holds the first n
 * bytes of the file, which has `size` bytes. The file may be a .bin file of Megatron-LM or, if
 * `raw` allows that, a file without a header. */
static int foreign_header(sgt_shard_header *h, uint64_t size, const uint8_t *head, size_t n,
                          const char *path, int raw, sgt_error *err)
{
    int beside = raw > 0 ? 0 : sgt_megatron_beside(path, err), rc;
    const int bits = beside ? 8 * beside : raw > 0 ? raw & ~SGT_SHARD_SURE : 16;
    uint32_t magic;
    memcpy(&magic, head, sizeof magic);
    if (beside < 0) return beside;
    if (!beside && raw < 0 && (rc = check_tokens(head, n, size, path, err)) < 0) return rc;
    if (!beside && !(raw > 0 && raw & SGT_SHARD_SURE) &&
        (rc = check_width(head, n, size, bits, path, err)) < 0)
        return rc;
    if (!beside && raw == 0)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: at byte 0: magic number %" PRIu32
                        ", expected %d: not a shard (if it has no header, pass the file itself)",
                        path, magic, SGT_SHARD_MAGIC);
    const size_t width = (size_t)bits / 8;
    if (size % width)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: %" PRIu64
                        " bytes: the size of a file of %d-bit tokens must be a multiple of %zu",
                        path, size, bits, width);
    *h = (sgt_shard_header){.tokens = size / width,
                            .width = width,
                            .format = beside ? SGT_SHARD_MEGATRON : SGT_SHARD_RAW};
    return SGT_OK;
}

/* Read the header from word 3 on. (The caller has read words 0 to 2, whose layout is that of
 * llm.c.) Word 3 is the revision. If it is 0, sgt did not write the file, and all words after it
 * are ignored. */
static int read_own_words(sgt_shard_header *h, const uint32_t *words, const char *path,
                          sgt_error *err)
{
    h->revision = words[3];
    h->format = h->revision ? SGT_SHARD_OWN : SGT_SHARD_LLMC;
    if (h->revision == 0) return SGT_OK;
    if (h->revision != REVISION)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: at byte 12: header revision %" PRIu32
                        ", expected 0 or %d (made by a newer sgt?)",
                        path, h->revision, REVISION);
    h->vocab = words[4];
    h->eot = words[5];
    h->fingerprint = (uint64_t)words[7] << 32 | words[6];
    h->xxh3 = (uint64_t)words[9] << 32 | words[8];
    if (h->vocab > SGT_MOST_IDS || (h->vocab && h->width != sgt_id_width(h->vocab)))
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: at byte 16: a vocabulary of %" PRIu32
                        " ids does not match the %zu-bit ids of this file",
                        path, h->vocab, 8 * h->width);
    if (h->vocab && h->eot >= h->vocab)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: at byte 20: end-of-text id %" PRIu32
                        ", expected an id below the vocabulary size, %" PRIu32,
                        path, h->eot, h->vocab);
    return SGT_OK;
}

static int read_header(sgt_shard_header *h, int fd, const char *path, int raw, sgt_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0) return sgt_fail_errno(err, "%s", path);
    if (!S_ISREG(st.st_mode)) return sgt_fail(err, SGT_EFORMAT, "%s: not a regular file", path);
    uint64_t size = (uint64_t)st.st_size;

    uint8_t bytes[SAMPLE] = {0};
    uint32_t words[OWN_WORDS];
    size_t all = size < 4 ? 0 : size < SAMPLE ? (size_t)size : SAMPLE;
    size_t n = all < SGT_SHARD_HEADER ? all : SGT_SHARD_HEADER;
    int rc = sgt_pread_all(fd, bytes, n, 0, path, err);
    if (rc < 0) return rc;
    memcpy(words, bytes, sizeof words);
    const int wide = words[0] == SGT_SHARD_WIDE_MAGIC;
    const uint32_t version = wide ? SGT_SHARD_WIDE_VERSION : SGT_SHARD_VERSION;
    if (raw > 0 || (words[0] != SGT_SHARD_MAGIC && !wide)) {
        rc = sgt_pread_all(fd, bytes + n, all - n, n, path, err);
        return rc < 0 ? rc : foreign_header(h, size, bytes, all, path, raw, err);
    }
    if (size < SGT_SHARD_HEADER)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: %" PRIu64 " bytes, expected at least the header's %d: cut short", path,
                        size, SGT_SHARD_HEADER);
    if (words[1] != version)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: at byte 4: version %" PRIu32 ", expected %" PRIu32 " (%d-bit tokens)",
                        path, words[1], version, wide ? 32 : 16);

    sgt_shard_header got = {.tokens = words[2], .width = wide ? 4 : 2, .data = SGT_SHARD_HEADER};
    if (got.tokens > SGT_SHARD_MAX_TOKENS)
        return sgt_fail(err, SGT_EFORMAT, "%s: at byte 8: the number of tokens is %" PRId32, path,
                        (int32_t)got.tokens);
    uint64_t wanted = sgt_shard_bytes(&got);
    if (size != wanted)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: %" PRIu64 " bytes, but its header says %" PRIu64
                        " tokens, which take %" PRIu64 " (%s: make it again)",
                        path, size, got.tokens, wanted, size < wanted ? "cut short" : "too long");
    if ((rc = read_own_words(&got, words, path, err)) < 0) return rc;
    *h = got;
    return SGT_OK;
}

int sgt_shard_open(sgt_shard_header *h, const char *path, int raw, sgt_error *err)
{
    /* O_NONBLOCK is needed because opening a FIFO would otherwise wait for a writer, before
     * read_header can refuse the FIFO */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return sgt_fail_path(err, path, "make a folder of shards with sgt-tokenize");
    int rc = read_header(h, fd, path, raw, err);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    return fd;
}

int sgt_shard_bad_id(const char *path, const sgt_shard_header *h, uint64_t token, uint32_t id,
                     uint32_t vocab, sgt_error *err)
{
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: token %" PRIu64 " (byte %" PRIu64 "): id %" PRIu32
                    ", expected below %" PRIu32,
                    path, token, h->data + h->width * token, id, vocab);
}

/* If `at` is a multiple of VERIFY_AHEAD, request readahead of the VERIFY_AHEAD bytes after the next
 * VERIFY_AHEAD, and drop the bytes before `at` from the page cache. */
static void read_ahead(int fd, uint64_t at, uint64_t end)
{
    if (at % VERIFY_AHEAD) return;
    if (at < end)
        posix_fadvise(fd, (off_t)(at + VERIFY_AHEAD), (off_t)VERIFY_AHEAD, POSIX_FADV_WILLNEED);
    if (at) posix_fadvise(fd, 0, (off_t)at, POSIX_FADV_DONTNEED);
}

static int verify_tokens(int fd, const sgt_shard_header *h, const char *path, uint32_t vocab,
                         const sgt_shard_visitor *visitor, const sgt_stop *stop, void *ids,
                         XXH3_state_t *hash, sgt_error *err)
{
    const size_t width = h->width;
    uint64_t bytes = width * h->tokens;
    XXH3_64bits_reset(hash);
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    for (uint64_t at = 0; at < bytes; at += VERIFY_BYTES) {
        if (sgt_stopped(stop)) return sgt_fail(err, SGT_ESTOPPED, "%s: stopped", path);
        read_ahead(fd, at, bytes);
        size_t n = bytes - at < VERIFY_BYTES ? (size_t)(bytes - at) : VERIFY_BYTES;
        int rc = sgt_pread_all(fd, ids, n, h->data + at, path, err);
        if (rc < 0) return rc;
        XXH3_64bits_update(hash, ids, n);
        const size_t count = n / width, bad = sgt_rows_first_beyond(width, ids, count, vocab);
        if (bad < count)
            return sgt_shard_bad_id(path, h, at / width + bad, sgt_id_at(ids, width, bad), vocab,
                                    err);
        if (visitor && (rc = visitor->see(visitor->ctx, ids, count, at / width, err)) < 0)
            return rc;
    }
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    uint64_t got = XXH3_64bits_digest(hash);
    if (h->xxh3 && got != h->xxh3)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: checksum %016" PRIx64 ", expected %016" PRIx64
                        ": its tokens have changed since it was written (make it again)",
                        path, got, h->xxh3);
    return SGT_OK;
}

int sgt_shard_verify(const char *path, int raw, uint32_t vocab, const sgt_shard_visitor *visitor,
                     const sgt_stop *stop, sgt_error *err)
{
    sgt_shard_header h = {0};
    int fd = sgt_shard_open(&h, path, raw, err), rc;
    if (fd < 0) return fd;
    if (visitor && visitor->xxh3) h.xxh3 = visitor->xxh3;
    void *ids = malloc(VERIFY_BYTES);
    XXH3_state_t *hash = XXH3_createState();
    if (!ids || !hash) rc = sgt_fail_memory(err, path);
    else rc = verify_tokens(fd, &h, path, vocab, visitor, stop, ids, hash, err);
    XXH3_freeState(hash);
    free(ids);
    close(fd);
    return rc;
}
