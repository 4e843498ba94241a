/* parquet_page.c: one page of a column, from its packed bytes to strings, and to documents.
 *
 * Strings of PLAIN and DELTA_LENGTH_BYTE_ARRAY stay where they were unpacked. Those of
 * DELTA_BYTE_ARRAY are put together behind them, and so are numbers that are neither PLAIN nor in a
 * dictionary. The lengths between strings of PLAIN become zeros once they are read, so that all
 * strings of a page can be checked as one text. A dictionary is a page of its own, which the pages
 * that use it share; its strings are copied behind each page, and so are the rows of a large page.
 * Encodings.md of the Parquet format describes the encodings. Numbers in few bits are read in
 * order, any number at a time, so no length in a file decides how much memory is allocated. */
#define ZSTD_STATIC_LINKING_ONLY /* for ZSTD_decompressBound */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#ifdef SGT_snappy
#include <snappy-c.h>
#endif
#ifdef SGT_lz4
#include <lz4.h>
#endif

#include "tokenize/input/feed.h"
#include "tokenize/input/parquet.h"
#include "tokenize/text/utf8.h"

#define BATCH 256

enum {
    PLAIN = 0,
    PLAIN_DICTIONARY = 2,
    RLE = 3,
    DELTA_NUMBERS = 5,
    DELTA_LENGTH = 6,
    DELTA_STRINGS = 7,
    RLE_DICTIONARY = 8,
    SPLIT_NUMBERS = 9
};

static const char ended[] = "its values end too early";
static const char no_memory[] = "out of memory";
/* pages that are not damaged, but are not read */
static const char other_encoding[] = "an encoding of numbers that is not read";
static const char old_levels[] = "levels of BIT_PACKED, which Parquet has given up, are not read";
static const char too_long[] = "more than 1 GiB of text in its rows";

static int fail(sgt_error *err, const char *path, uint64_t offset, const char *why)
{
    if (why == no_memory) return sgt_fail_memory(err, path);
    const int good = why == other_encoding || why == old_levels || why == too_long;
    return sgt_fail(err, SGT_EFORMAT, "%s: offset %" PRIu64 ": %s%s (%s)", path, offset,
                    good ? "" : "damaged page: ", why,
                    why == other_encoding ? "write it with PLAIN or a dictionary"
                    : why == old_levels   ? "write it with a current program"
                    : good                ? "write smaller pages"
                                          : "fetch the file again");
}

/* Return NULL, or that the packed page has another checksum than its head says. */
static const char *check_crc(const sgt_parquet_head *h, const uint8_t *packed)
{
    if (!h->has_crc || crc32(0, packed, (uInt)h->packed) == h->crc) return NULL;
    return "its checksum is another";
}

/* ---- codecs: each one's library, behind one call ---- */

#define OTHER "write it with zstd or snappy, or --filter reads it through a command"
#define REBUILD(package) "build sgt again where the package " package " is installed"

/* by parquet.thrift's numbers */
enum { CODEC_NONE = 0, CODEC_SNAPPY = 1, CODEC_GZIP = 2, CODEC_ZSTD = 6, CODEC_LZ4_RAW = 7 };

/* most bytes that one packed byte can become in each format */
#define SNAPPY_MOST 32
#define GZIP_MOST 1040
#define LZ4_MOST 256

const char *sgt_parquet_codec_lacks(int codec, const char **remedy)
{
    static const char *const names[] = {
        [3] = "lzo", [4] = "brotli", [5] = "lz4 in Hadoop's frames"};
    *remedy = OTHER;
    switch (codec) {
    case CODEC_NONE:
    case CODEC_GZIP:
    case CODEC_ZSTD: return NULL;
    case CODEC_SNAPPY:
#ifdef SGT_snappy
        return NULL;
#else
        *remedy = REBUILD("libsnappy-dev");
        return "snappy, which this build is without";
#endif
    case CODEC_LZ4_RAW:
#ifdef SGT_lz4
        return NULL;
#else
        *remedy = REBUILD("liblz4-dev");
        return "lz4, which this build is without";
#endif
    }
    return codec > 2 && codec < 6 ? names[codec] : "a codec that Parquet's format does not name";
}

/* Return whether in[n] can unpack to `size` bytes. Callers ask before they allocate memory, because
 * a damaged file may state any size. */
static int can_unpack(int codec, const uint8_t *in, size_t n, size_t size)
{
    switch (codec) {
    case CODEC_NONE: return size == n;
    case CODEC_SNAPPY: return size / SNAPPY_MOST <= n;
    case CODEC_GZIP: return size / GZIP_MOST <= n;
    case CODEC_LZ4_RAW: return size / LZ4_MOST <= n;
    default: {
        const unsigned long long most = ZSTD_decompressBound(in, n);
        /* if so, unpacking reports the error */
        return most == ZSTD_CONTENTSIZE_ERROR || size <= most;
    }
    }
}

/* The bytes may have several members, one after the other. */
static size_t unpack_gzip(const uint8_t *in, size_t n, uint8_t *out, size_t size)
{
    z_stream z = {.next_in = (uint8_t *)(uintptr_t)in, .avail_in = (uInt)n};
    int rc = inflateInit2(&z, 15 + 32); /* accept gzip's header and zlib's */
    if (rc != Z_OK) return SIZE_MAX;
    z.next_out = out;
    z.avail_out = (uInt)size;
    do rc = inflate(&z, Z_FINISH);
    while (rc == Z_STREAM_END && z.avail_in && z.avail_out && inflateReset(&z) == Z_OK);
    const size_t got = size - z.avail_out;
    inflateEnd(&z);
    return rc == Z_STREAM_END ? got : SIZE_MAX;
}

static size_t unpack_zstd(const uint8_t *in, size_t n, uint8_t *out, size_t size)
{
    size_t got = ZSTD_decompress(out, size, in, n);
    return ZSTD_isError(got) ? SIZE_MAX : got;
}

static size_t unpack(int codec, const uint8_t *in, size_t n, uint8_t *out, size_t size)
{
    switch (codec) {
    case CODEC_NONE:
        if (n == size && n) memcpy(out, in, n);
        return n;
    case CODEC_GZIP: return unpack_gzip(in, n, out, size);
    case CODEC_ZSTD: return unpack_zstd(in, n, out, size);
#ifdef SGT_snappy
    case CODEC_SNAPPY: {
        size_t got = size, said;
        if (snappy_uncompressed_length((const char *)in, n, &said) != SNAPPY_OK || said > size)
            return SIZE_MAX;
        return snappy_uncompress((const char *)in, n, (char *)out, &got) ? SIZE_MAX : got;
    }
#endif
#ifdef SGT_lz4
    case CODEC_LZ4_RAW: {
        int got = LZ4_decompress_safe((const char *)in, (char *)out, (int)n, (int)size);
        return got < 0 ? SIZE_MAX : (size_t)got;
    }
#endif
    }
    return SIZE_MAX;
}

/* Unpack in[n] to exactly `size` bytes. Return NULL, or what is wrong. */
static const char *unpack_exactly(int codec, const uint8_t *in, size_t n, uint8_t *out, size_t size)
{
    if (!size && !n) return NULL;
    size_t got = unpack(codec, in, n, out, size);
    if (got == size) return NULL;
    return got == SIZE_MAX ? "its packed bytes are damaged"
                           : "it unpacks to another length than it says";
}

/* ---- numbers in few bits ---- */

/* Return the `width` bits from bit number `bit` of p on. Bytes from `end` on are not read. */
static uint64_t get_bits(const uint8_t *p, uint64_t bit, unsigned width, const uint8_t *end)
{
    const uint8_t *at = p + bit / 8;
    const unsigned shift = (unsigned)(bit % 8);
    uint64_t low = 0, high = 0;
    if (!width) return 0;
    if ((size_t)(end - at) >= 9) {
        memcpy(&low, at, 8);
        high = at[8];
    } else
        for (size_t i = 0; i < 9 && at + i < end; i++) {
            if (i < 8) low |= (uint64_t)at[i] << (8 * i);
            else high = at[i];
        }
    low >>= shift;
    if (shift) low |= high << (64 - shift);
    return width == 64 ? low : low & (((uint64_t)1 << width) - 1);
}

/* Read a varint at *at. Return 0 at the end of the bytes, which is no valid head of a run. */
static uint64_t get_varint(const uint8_t **at, const uint8_t *end, int *bad)
{
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        const uint8_t b = *(*at)++;
        n |= (uint64_t)(b & 0x7F) << shift;
        if (b < 0x80) return n;
    }
    *bad = 1;
    return 0;
}

/* ---- runs: levels, and the indices of a dictionary (the RLE and bit-packed hybrid) ---- */

typedef struct runs {
    const uint8_t *at, *end;
    unsigned width; /* bits per number, at most 32 */
    uint64_t left;  /* numbers left in this run */
    int packed;     /* the run is packed bits, from bit `bit` of `at`, to `after` */
    uint64_t bit;
    const uint8_t *after;
    uint32_t value; /* the number that a run of equal numbers repeats */
} runs;

static int next_run(runs *r)
{
    int bad = 0;
    const uint64_t head = get_varint(&r->at, r->end, &bad);
    const size_t bytes = (r->width + 7) / 8, left = (size_t)(r->end - r->at);
    if (bad || head < 2) return -1;
    r->packed = (int)(head & 1);
    r->left = head >> 1;
    if (!r->packed) {
        if (left < bytes) return -1;
        r->value = (uint32_t)get_bits(r->at, 0, 8 * (unsigned)bytes, r->end);
        r->at += bytes;
        return 0;
    }
    /* groups of eight numbers; some writers leave out the last bytes of the last group */
    uint64_t size = r->left > (uint64_t)1 << 32 ? left : r->left * r->width;
    if (r->left > (uint64_t)1 << 32) return -1;
    r->left *= 8;
    if (size > left) {
        size = left;
        if (r->width) r->left = size * 8 / r->width;
    }
    r->bit = 0;
    r->after = r->at + size;
    return r->left ? 0 : -1;
}

/* Set *value to the number of the current run and *n to how often it still repeats. Return 0 if the
 * run is packed bits instead. */
static int runs_repeats(runs *r, uint32_t *value, uint64_t *n)
{
    if (!r->left && next_run(r) < 0) return 0;
    if (r->packed) return 0;
    *value = r->value;
    *n = r->left;
    return 1;
}

static void pass_numbers(runs *r, uint64_t n)
{
    r->left -= n;
    r->bit += n * r->width;
    if (r->packed && !r->left) r->at = r->after;
}

/* Take the next n numbers. Return 0, or -1 if the bytes have ended. */
static int runs_read(runs *r, uint32_t *out, size_t n)
{
    while (n) {
        if (!r->left && next_run(r) < 0) return -1;
        const size_t k = r->left < n ? (size_t)r->left : n;
        if (r->packed)
            for (size_t i = 0; i < k; i++)
                out[i] = (uint32_t)get_bits(r->at, r->bit + i * r->width, r->width, r->after);
        else
            for (size_t i = 0; i < k; i++) out[i] = r->value;
        pass_numbers(r, k);
        out += k;
        n -= k;
    }
    return 0;
}

/* Skip n numbers. Return like runs_read. */
static int runs_skip(runs *r, uint64_t n)
{
    while (n) {
        if (!r->left && next_run(r) < 0) return -1;
        const uint64_t k = r->left < n ? r->left : n;
        pass_numbers(r, k);
        n -= k;
    }
    return 0;
}

/* ---- deltas: lengths, and integers of a column (DELTA_BINARY_PACKED) ---- */

typedef struct deltas {
    const uint8_t *at, *end;
    uint64_t left;         /* numbers not yet taken */
    uint64_t last;         /* the last number taken, or the first of all */
    int begun;             /* the first number has been taken */
    uint64_t block, minis; /* numbers per block, and miniblocks in it */
    uint64_t mini;         /* the miniblock within the block */
    uint64_t in_mini;      /* numbers left in it */
    uint64_t least;        /* smallest delta of the block */
    const uint8_t *widths; /* bits of the numbers of each miniblock */
    /* where the miniblock's bits begin; the next bit is counted from there */
    const uint8_t *bits;
    uint64_t bit;
} deltas;

static uint64_t get_zigzag(const uint8_t **at, const uint8_t *end, int *bad)
{
    const uint64_t n = get_varint(at, end, bad);
    return (n >> 1) ^ (0 - (n & 1));
}

/* Read the head at p. Return 0, or -1 if it is damaged. */
static int deltas_open(deltas *d, const uint8_t *p, const uint8_t *end)
{
    int bad = 0;
    *d = (deltas){.at = p, .end = end};
    d->block = get_varint(&d->at, end, &bad);
    d->minis = get_varint(&d->at, end, &bad);
    d->left = get_varint(&d->at, end, &bad);
    d->last = get_zigzag(&d->at, end, &bad);
    if (bad || !d->block || d->block % 128 || d->block > (uint64_t)1 << 20 || !d->minis ||
        d->block % d->minis || d->block / d->minis % 8)
        return -1;
    d->mini = d->minis;
    return 0;
}

/* Turn to the next miniblock. */
static int next_mini(deltas *d)
{
    int bad = 0;
    if (++d->mini >= d->minis) {
        d->least = get_zigzag(&d->at, d->end, &bad);
        if (bad || (uint64_t)(d->end - d->at) < d->minis) return -1;
        d->widths = d->at;
        d->at += d->minis;
        d->mini = 0;
    }
    d->in_mini = d->block / d->minis;
    const uint64_t size = d->in_mini / 8 * d->widths[d->mini];
    if (d->widths[d->mini] > 64 || size > (uint64_t)(d->end - d->at)) return -1;
    d->bits = d->at;
    d->bit = 0;
    d->at += size;
    return 0;
}

/* Take the next number, of any kind. Its lower 32 bits are a number of 32 bits. Return 0, or -1 if
 * there is none. */
static int deltas_next(deltas *d, uint64_t *out)
{
    if (!d->left) return -1;
    if (d->begun) {
        if (!d->in_mini && next_mini(d) < 0) return -1;
        const unsigned width = d->widths[d->mini];
        d->last += d->least + get_bits(d->bits, d->bit, width, d->end);
        d->bit += width;
        d->in_mini--;
    }
    d->begun = 1;
    d->left--;
    *out = d->last;
    return 0;
}

/* Take the next n numbers. Return 0, or -1 if there are fewer, or one is not a length. */
static int deltas_read(deltas *d, uint32_t *out, size_t n)
{
    for (uint64_t number; n; n--) {
        /* numbers have 32 bits and wrap around; they are lengths, so a negative one is damage */
        if (deltas_next(d, &number) < 0 || (uint32_t)number > INT32_MAX) return -1;
        *out++ = (uint32_t)number;
    }
    return 0;
}

/* Return where the bytes of the deltas, which are lengths, end; NULL: they are damaged. Add the
 * lengths to *sum. */
static const uint8_t *deltas_end(const deltas *d, uint64_t *sum)
{
    deltas copy = *d;
    uint32_t some[BATCH];
    while (copy.left) {
        const size_t n = copy.left < BATCH ? (size_t)copy.left : BATCH;
        if (deltas_read(&copy, some, n) < 0) return NULL;
        for (size_t i = 0; i < n; i++) *sum += some[i];
    }
    return copy.at;
}

/* ---- strings, by encoding ---- */

/* Find n strings of the encoding PLAIN in text[end], from *at on. Their positions are offsets in
 * `text`. */
static const char *read_lengths_and_strings(uint8_t *text, size_t *at, size_t end,
                                            sgt_parquet_string *out, size_t n)
{
    size_t p = *at;
    for (size_t i = 0; i < n; i++) {
        uint32_t length;
        if (end - p < sizeof length) return ended;
        memcpy(&length, text + p, sizeof length);
        memset(text + p, 0, sizeof length);
        p += sizeof length;
        if (length > end - p) return ended;
        out[i] = (sgt_parquet_string){p, length};
        p += length;
    }
    *at = p;
    return NULL;
}

/* Find n numbers of `width` bytes, likewise. */
static const char *read_numbers(unsigned width, size_t *at, size_t end, sgt_parquet_string *out,
                                size_t n)
{
    if ((end - *at) / width < n) return ended;
    for (size_t i = 0; i < n; i++, *at += width) out[i] = (sgt_parquet_string){*at, width};
    return NULL;
}

/* Find n strings or numbers of the encoding PLAIN in text[end], from *at on. Their positions are
 * offsets in `text`. The lengths before strings become zeros. Return NULL, or what is wrong. */
static const char *read_plain(int type, uint8_t *text, size_t *at, size_t end,
                              sgt_parquet_string *out, size_t n)
{
    const unsigned width = sgt_parquet_width(type);
    return width ? read_numbers(width, at, end, out, n)
                 : read_lengths_and_strings(text, at, end, out, n);
}

int sgt_parquet_has_indices(const sgt_parquet_head *h)
{
    return h->encoding == PLAIN_DICTIONARY || h->encoding == RLE_DICTIONARY;
}

/* ---- pages that other pages, or several threads, share ---- */

struct sgt_parquet_shared {
    atomic_int users;
    pthread_mutex_t lock; /* guards all below until the page is decoded */
    sgt_parquet_page page;
    sgt_unit unit; /* the page's packed bytes, and then its strings */
    sgt_parquet_string *rows;
    const uint8_t *strings; /* what the rows' positions are in */
    int decoded;
    const char *why; /* why it cannot be decoded; NULL: it can */
};

int sgt_parquet_shared_new(sgt_parquet_shared **out, const sgt_parquet_page *p, uint8_t **packed,
                           sgt_error *err)
{
    const sgt_parquet_head *h = &p->head;
    sgt_parquet_shared *s = calloc(1, sizeof *s);
    /* a damaged head may state any size, so only a likely one is reserved before it is needed */
    const size_t likely = h->unpacked < SGT_PARQUET_LIKELY ? h->unpacked : 0;
    if (!s) return sgt_fail_memory(err, "a page");
    int rc = sgt_unit_reserve(&s->unit, h->packed + likely + 1, err);
    if (rc < 0) {
        free(s);
        return rc;
    }
    s->users = 1;
    s->page = *p;
    s->page.at = s->page.first = 0;
    s->page.count = h->rows;
    s->page.whole = NULL;
    sgt_parquet_shared_use(p->dictionary);
    s->unit.used = h->packed;
    pthread_mutex_init(&s->lock, NULL);
    *packed = s->unit.text;
    *out = s;
    return SGT_OK;
}

sgt_parquet_shared *sgt_parquet_shared_use(sgt_parquet_shared *s)
{
    if (s) atomic_fetch_add(&s->users, 1);
    return s;
}

void sgt_parquet_shared_drop(sgt_parquet_shared *s)
{
    if (!s || atomic_fetch_sub(&s->users, 1) > 1) return;
    pthread_mutex_destroy(&s->lock);
    sgt_parquet_shared_drop(s->page.dictionary);
    sgt_unit_free(&s->unit);
    free(s->rows);
    free(s);
}

static const char *decode_page(const sgt_parquet_page *p, sgt_unit *u, sgt_parquet_string *rows,
                               const uint8_t **strings);

static const char *decode_shared(sgt_parquet_shared *s)
{
    sgt_parquet_head *h = &s->page.head;
    if (h->kind == SGT_PARQUET_DICTIONARY) {
        if (h->encoding != PLAIN && h->encoding != PLAIN_DICTIONARY)
            return "a dictionary of another encoding than PLAIN";
        if (h->rows > h->unpacked / 4) return "its dictionary ends too early";
        h->encoding = PLAIN;
    }
    if (!(s->rows = malloc((size_t)(h->rows + 1) * sizeof *s->rows))) return no_memory;
    return decode_page(&s->page, &s->unit, s->rows, &s->strings);
}

/* Decode the page if no thread has done so. Return NULL, or what is wrong. Any number of threads may
 * call this. */
static const char *open_shared(sgt_parquet_shared *s)
{
    pthread_mutex_lock(&s->lock);
    if (!s->decoded) s->why = decode_shared(s);
    s->decoded = 1;
    pthread_mutex_unlock(&s->lock);
    return s->why;
}

/* ---- pages: strings, by encoding ---- */

typedef struct decoder {
    const sgt_parquet_page *p;
    sgt_unit *u;
    size_t at, end; /* bytes left of PLAIN and delta strings, in the unit's text */
    runs levels, indices;
    deltas prefixes, lengths; /* lengths: also of numbers */
    size_t stride; /* BYTE_STREAM_SPLIT: bytes from one byte of a number to its next one */
    size_t made;   /* bytes of strings written behind the unpacked page */
    sgt_parquet_string last;
} decoder;

/* Make room for n bytes of strings behind the unpacked page. */
static const char *make_room(decoder *d, uint64_t n)
{
    if (n > SGT_PARQUET_PAGE) return too_long;
    return sgt_unit_reserve(d->u, d->u->used + (size_t)n, NULL) < 0 ? no_memory : NULL;
}

/* Begin to read numbers that are neither PLAIN nor in a dictionary, from d->at to d->end. count: the
 * most numbers there can be. */
static const char *begin_numbers(decoder *d, uint64_t count)
{
    static const char damaged[] = "its numbers are damaged";
    const int type = d->p->type;
    const unsigned width = sgt_parquet_width(type);
    const size_t size = d->end - d->at;
    const char *why = make_room(d, count * width);
    const uint8_t *text = d->u->text;
    if (why) return why;
    if (d->p->head.encoding == SPLIT_NUMBERS && width) {
        d->stride = size / width;
        d->end = d->at + d->stride;
        return size % width || d->stride > count ? damaged : NULL;
    }
    if (d->p->head.encoding != DELTA_NUMBERS ||
        (type != SGT_PARQUET_INT32 && type != SGT_PARQUET_INT64))
        return other_encoding;
    if (!size) return NULL; /* all rows are null */
    const int rc = deltas_open(&d->lengths, text + d->at, text + d->end);
    return rc < 0 || d->lengths.left > count ? damaged : NULL;
}

/* Begin to read deltas of lengths at offset *at, and go behind them. count: the most there can be.
 * Add the lengths to *sum. */
static int begin_lengths(decoder *d, deltas *lengths, size_t *at, uint64_t count, uint64_t *sum)
{
    const uint8_t *text = d->u->text, *p;
    if (deltas_open(lengths, text + *at, text + d->end) < 0 || lengths->left > count ||
        !(p = deltas_end(lengths, sum)))
        return -1;
    *at = (size_t)(p - text);
    return 0;
}

/* Begin to read strings of DELTA_BYTE_ARRAY, and make room for them. */
static const char *begin_prefixed(decoder *d, uint64_t count)
{
    const size_t prefixes = d->at;
    uint64_t bytes = 0;
    if (begin_lengths(d, &d->prefixes, &d->at, count, &bytes) < 0)
        return "its prefixes are damaged";
    const size_t lengths = d->at;
    if (begin_lengths(d, &d->lengths, &d->at, count, &bytes) < 0) return "its lengths are damaged";
    const char *why = make_room(d, bytes);
    if (why) return why;
    /* the text may have moved */
    const uint8_t *text = d->u->text;
    deltas_open(&d->prefixes, text + prefixes, text + d->end);
    deltas_open(&d->lengths, text + lengths, text + d->end);
    return NULL;
}

/* Begin to read the strings, which lie in u's text from `at` to `end`. count: the most strings
 * there can be. */
static const char *begin_strings(decoder *d, size_t at, size_t end, uint64_t count)
{
    const uint8_t *text = d->u->text;
    uint64_t sum = 0;
    d->at = at;
    d->end = end;
    switch (d->p->head.encoding) {
    case PLAIN: return NULL;
    case PLAIN_DICTIONARY:
    case RLE_DICTIONARY:
        if (!d->p->dictionary) return "it uses a dictionary, and there is none";
        const char *why = open_shared(d->p->dictionary);
        if (why || at == end) return why; /* at the end: all rows are null */
        d->indices = (runs){.at = text + at + 1, .end = text + end, .width = text[at]};
        return text[at] > 32 ? "indices of more than 32 bits" : NULL;
    }
    if (d->p->type != SGT_PARQUET_BYTES) return begin_numbers(d, count);
    if (d->p->head.encoding != DELTA_LENGTH && d->p->head.encoding != DELTA_STRINGS)
        return "an encoding that strings do not have";
    if (at == end) return NULL;
    if (d->p->head.encoding == DELTA_STRINGS) return begin_prefixed(d, count);
    return begin_lengths(d, &d->lengths, &d->at, count, &sum) < 0 ? "its lengths are damaged"
                                                                  : NULL;
}

static const char *read_indexed(decoder *d, sgt_parquet_string *out, size_t n)
{
    const sgt_parquet_shared *w = d->p->dictionary;
    uint32_t index[BATCH];
    if (runs_read(&d->indices, index, n) < 0) return ended;
    for (size_t i = 0; i < n; i++) {
        if (index[i] >= w->page.count) return "an index beyond its dictionary";
        out[i] = w->rows[index[i]];
    }
    return NULL;
}

static const char *read_lengths(decoder *d, sgt_parquet_string *out, size_t n)
{
    uint32_t length[BATCH];
    if (deltas_read(&d->lengths, length, n) < 0) return ended;
    for (size_t i = 0; i < n; i++) {
        if (length[i] > d->end - d->at) return ended;
        out[i] = (sgt_parquet_string){d->at, length[i]};
        d->at += length[i];
    }
    return NULL;
}

/* Take n strings of DELTA_BYTE_ARRAY. Each begins with a prefix of the string before it. */
static const char *read_prefixed(decoder *d, sgt_parquet_string *out, size_t n)
{
    uint32_t prefix[BATCH], length[BATCH];
    if (deltas_read(&d->prefixes, prefix, n) < 0 || deltas_read(&d->lengths, length, n) < 0)
        return ended;
    for (size_t i = 0; i < n; i++) {
        if (prefix[i] > d->last.length) return "a prefix longer than the string before";
        if (length[i] > d->end - d->at) return ended;
        uint8_t *text = d->u->text;
        out[i] = (sgt_parquet_string){d->u->used + d->made, (size_t)prefix[i] + length[i]};
        memcpy(text + out[i].at, text + d->last.at, prefix[i]);
        memcpy(text + out[i].at + prefix[i], text + d->at, length[i]);
        d->at += length[i];
        d->made += out[i].length;
        d->last = out[i];
    }
    return NULL;
}

/* Take n numbers of DELTA_BINARY_PACKED or BYTE_STREAM_SPLIT. In the latter the first bytes of all
 * numbers come first, then the second ones, and so on. */
static const char *read_other_numbers(decoder *d, sgt_parquet_string *out, size_t n)
{
    const unsigned width = sgt_parquet_width(d->p->type);
    for (size_t i = 0; i < n; i++) {
        uint64_t number = 0;
        uint8_t *text = d->u->text, *to = text + d->u->used + d->made;
        if (!d->stride) {
            if (deltas_next(&d->lengths, &number) < 0) return ended;
            memcpy(to, &number, width);
        } else {
            if (d->at == d->end) return ended;
            for (unsigned b = 0; b < width; b++) to[b] = text[d->at + b * d->stride];
            d->at++;
        }
        out[i] = (sgt_parquet_string){(size_t)(to - text), width};
        d->made += width;
    }
    return NULL;
}

/* Take n strings, at most BATCH. */
static const char *read_strings(decoder *d, sgt_parquet_string *out, size_t n)
{
    if (!n) return NULL;
    switch (d->p->head.encoding) {
    case PLAIN: return read_plain(d->p->type, d->u->text, &d->at, d->end, out, n);
    case DELTA_LENGTH: return read_lengths(d, out, n);
    case DELTA_STRINGS: return read_prefixed(d, out, n);
    case DELTA_NUMBERS:
    case SPLIT_NUMBERS: return read_other_numbers(d, out, n);
    default: return read_indexed(d, out, n);
    }
}

/* ---- rows: strings and nulls ---- */

/* Read the next n rows, at most BATCH; rows that are null take no string. */
static const char *read_rows(decoder *d, sgt_parquet_string *rows, size_t n)
{
    uint32_t level[BATCH], least = d->p->levels;
    sgt_parquet_string strings[BATCH];
    uint64_t same;
    uint32_t value;
    size_t there = 0;
    if (!least || (runs_repeats(&d->levels, &value, &same) && same >= n && value == least)) {
        if (least) runs_skip(&d->levels, n);
        return read_strings(d, rows, n);
    }
    if (runs_read(&d->levels, level, n) < 0) return "its levels end too early";
    for (size_t i = 0; i < n; i++) {
        if (level[i] > least) return "a level beyond its column's";
        there += level[i] == least;
    }
    const char *why = read_strings(d, strings, there);
    for (size_t i = 0, k = 0; i < n && !why; i++)
        rows[i] = level[i] == least ? strings[k++] : (sgt_parquet_string){SGT_PARQUET_NULL, 0};
    return why;
}

static const char *decode(decoder *d, size_t at, size_t levels, size_t end,
                          sgt_parquet_string *rows)
{
    const sgt_parquet_page *p = d->p;
    sgt_parquet_string passed[BATCH];
    const char *why = begin_strings(d, at + levels, end, p->head.rows);
    const uint8_t *text = d->u->text + at;
    d->levels = (runs){.at = text, .end = text + levels, .width = 1};
    while (p->levels >> d->levels.width) d->levels.width++;
    for (uint64_t i = 0, all = p->first + p->count, n; i < all && !why; i += n) {
        const uint64_t left = i < p->first ? p->first - i : all - i;
        n = left < BATCH ? left : BATCH;
        why = read_rows(d, i < p->first ? passed : rows + (i - p->first), (size_t)n);
    }
    return why;
}

/* ---- pages ---- */

/* Unpack the page behind the unit's text; bytes that are not packed stay where they are. Set *at
 * and *end to the page, and *levels to the bytes of its levels, which come first. */
static const char *unpack_page(decoder *d, size_t *at, size_t *levels, size_t *end)
{
    const sgt_parquet_page *p = d->p;
    const sgt_parquet_head *h = &p->head;
    const size_t apart = h->levels, packed = h->packed - apart, size = h->unpacked - apart;
    const int codec = h->kind == SGT_PARQUET_DATA2 && !h->is_packed ? CODEC_NONE : p->codec;
    const char *why = check_crc(h, d->u->text + p->at);
    if (why) return why;
    if (h->repeats) return "it has repetition levels, and its column has one string a row";
    *at = codec == CODEC_NONE ? p->at : d->u->used;
    *end = *at + h->unpacked;
    *levels = apart;
    if (!can_unpack(codec, d->u->text + p->at + apart, packed, size))
        return "its packed bytes are damaged";
    if (codec != CODEC_NONE) {
        if (sgt_unit_reserve(d->u, *end, NULL) < 0) return no_memory;
        uint8_t *to = d->u->text + *at, *from = d->u->text + p->at;
        if (apart) memcpy(to, from, apart);
        why = unpack_exactly(codec, from + apart, packed, to + apart, size);
        d->u->used = *end;
    }
    const uint8_t *text = d->u->text;
    if (why || h->kind == SGT_PARQUET_DATA2 || !p->levels) return why;
    uint32_t n;
    if (h->level_encoding != RLE) return old_levels;
    if (h->unpacked < sizeof n) return "its levels end too early";
    memcpy(&n, text + *at, sizeof n);
    *at += sizeof n;
    *levels = n;
    return n > *end - *at ? "its levels end too early" : NULL;
}

/* Decode the page's rows first ... first + count - 1, and set *strings to what their positions are
 * in: u's text, or that of the dictionary, which lives as long as it is used. */
static const char *decode_page(const sgt_parquet_page *p, sgt_unit *u, sgt_parquet_string *rows,
                               const uint8_t **strings)
{
    decoder d = {.p = p, .u = u};
    size_t at, levels, end;
    const char *why = unpack_page(&d, &at, &levels, &end);
    if (why) return why;
    why = decode(&d, at, levels, end, rows);
    u->used += d.made;
    *strings = sgt_parquet_has_indices(&p->head) && !why ? p->dictionary->strings : u->text;
    return why;
}

/* Copy the strings of rows[count] into u's text after u->used, and set their positions to those
 * there. strings: what the positions are in, which is not u's text. */
static const char *copy_rows(sgt_unit *u, sgt_parquet_string *rows, uint64_t count,
                             const uint8_t *strings)
{
    size_t all = 0;
    for (uint64_t i = 0; i < count && all <= SGT_PARQUET_PAGE; i++) all += rows[i].length;
    if (all > SGT_PARQUET_PAGE) return too_long;
    if (sgt_unit_reserve(u, u->used + all, NULL) < 0) return no_memory;
    for (uint64_t i = 0; i < count; i++) {
        if (rows[i].at == SGT_PARQUET_NULL) continue;
        memcpy(u->text + u->used, strings + rows[i].at, rows[i].length);
        rows[i].at = u->used;
        u->used += rows[i].length;
    }
    return NULL;
}

int sgt_parquet_page_decode(const sgt_parquet_page *p, sgt_unit *u, sgt_parquet_string *rows,
                            const char *path, sgt_error *err)
{
    const uint8_t *strings;
    const char *why;
    if (p->whole) {
        why = open_shared(p->whole);
        strings = p->whole->strings;
        if (!why) memcpy(rows, p->whole->rows + p->first, (size_t)p->count * sizeof *rows);
    } else why = decode_page(p, u, rows, &strings);
    if (!why && strings != u->text) why = copy_rows(u, rows, p->count, strings);
    return why ? fail(err, path, p->offset, why) : SGT_OK;
}

void sgt_parquet_pages_drop(sgt_unit *u)
{
    for (size_t i = 0; i < u->page_count; i++) {
        sgt_parquet_shared_drop(u->pages[i].dictionary);
        sgt_parquet_shared_drop(u->pages[i].whole);
    }
    u->page_count = 0;
}

/* ---- rows become parts. A null, and a string that is not UTF-8, is a bad row ---- */

/* Return whether all strings are UTF-8, at once: between them in the unit's text is only ASCII,
 * or strings of the same kind (sgt_parquet_page_decode), and none begins within a character. */
static int all_valid(const sgt_unit *u, const sgt_parquet_string *rows, uint64_t count)
{
    size_t from = SIZE_MAX, to = 0, before = SIZE_MAX;
    for (uint64_t i = 0; i < count; i++) {
        const size_t at = rows[i].at, end = at + rows[i].length;
        if (at == SGT_PARQUET_NULL || at == end) continue;
        /* a string that does not follow another one at once has ASCII before it */
        if (at == before && (u->text[at] & 0xC0) == 0x80) return 0;
        if (at < from) from = at;
        if (end > to) to = end;
        before = end;
    }
    return from == SIZE_MAX || sgt_utf8_valid(u->text + from, to - from) == to - from;
}

/* Return why the row is no document, and the byte; NULL if it is one. valid: it is UTF-8. */
static const char *bad_row(const sgt_unit *u, const sgt_parquet_string *s, int valid,
                           uint64_t *byte)
{
    *byte = 0;
    if (s->at == SGT_PARQUET_NULL) return "the field is null";
    if (valid) return NULL;
    const size_t good = sgt_utf8_valid(u->text + s->at, s->length);
    if (good == s->length) return NULL;
    *byte = good + 1;
    return "not UTF-8";
}

static int add_rows(sgt_unit *u, const sgt_part *p, const sgt_parquet_string *rows, uint64_t count,
                    const sgt_corpus *c, const sgt_tokenize_options *o, sgt_error *err)
{
    const char *name = c->files[p->file].name, *why = NULL;
    const int valid = all_valid(u, rows, count);
    sgt_part next = *p;
    uint64_t byte;
    int rc = SGT_OK;
    next.kind = SGT_PART_ROW;
    next.closes = next.first = next.last = 0;
    next.end = p->offset;
    next.records = next.length = 0;
    for (uint64_t i = 0; i < count && !rc; i++) {
        if ((why = bad_row(u, &rows[i], valid, &byte)) && !o->skip_bad) break;
        next.end = p->offset + i + 1;
        next.records++;
        next.bad += why != NULL;
        if (why) continue;
        sgt_part row = next;
        row.at = rows[i].at;
        row.length = rows[i].length;
        row.first = row.last = 1;
        row.row.number = p->offset + i;
        row.split = sgt_text_feed_split(name, p->offset + i, o->val_fraction);
        rc = sgt_unit_add_part(u, &row, err);
        next.offset = next.end;
        next.records = next.bad = 0;
    }
    if (rc < 0) return rc;
    const int stopped = why && !o->skip_bad;
    if (stopped) u->bad = (sgt_bad_line){p->file, byte, why};
    next.closes = p->closes && !stopped;
    if (next.closes || next.end > next.offset) rc = sgt_unit_add_part(u, &next, err);
    return rc < 0 ? rc : stopped;
}

int sgt_parquet_parts(sgt_unit *u, const sgt_part *p, const sgt_corpus *c,
                      const sgt_tokenize_options *o, sgt_error *err)
{
    const sgt_parquet_page *page = p->page.page ? &u->pages[p->page.page - 1] : NULL;
    const uint64_t count = page ? page->count : 0;
    sgt_parquet_string *rows = malloc((size_t)(count + 1) * sizeof *rows);
    if (!rows) return sgt_fail_memory(err, "rows of a page");
    int rc = page ? sgt_parquet_page_decode(page, u, rows, c->files[p->file].path, err) : SGT_OK;
    if (!rc) rc = add_rows(u, p, rows, count, c, o, err);
    free(rows);
    return rc;
}
