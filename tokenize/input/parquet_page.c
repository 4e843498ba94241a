/* parquet_page.c: decompresses a page of a column, decodes its strings, and turns them into
 * documents. The encodings are described in Encodings.md, a part of the documentation of the
 * Parquet format.
 *
 * The encoding determines where in memory the decoded strings are:
 * - PLAIN and DELTA_LENGTH_BYTE_ARRAY: in the decompressed page. In PLAIN, the lengths that are
 *   stored between the strings are overwritten with zeros when they have been read, so that one
 *   call can check whether all strings of a page are UTF-8.
 * - DELTA_BYTE_ARRAY, DELTA_BINARY_PACKED and BYTE_STREAM_SPLIT: after the decompressed page, where
 *   the strings or numbers are assembled.
 * - Dictionary: in the dictionary, a separate page that several pages share. The strings that a
 *   page uses are copied from the dictionary to the memory after that page. If a large page is
 *   shared by several units, the strings of its rows are copied to the units in the same way. */
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

#define RLE 3 /* encoding of the definition levels */

static const char ended[] = "its values end too early";
static const char levels_end[] = "its levels end too early";
static const char no_memory[] = "out of memory";
static const char damaged_numbers[] = "its numbers are damaged";
static const char damaged_bytes[] = "its compressed bytes are damaged";
/* error messages for undamaged pages that this build of sgt cannot read; each message tells the
 * user what to do */
static const char other_encoding[] =
    "unsupported encoding of numbers (write the column with PLAIN or dictionary encoding)";
static const char old_levels[] = "levels in the deprecated encoding BIT_PACKED are not supported "
                                 "(write the file with a current program)";
static const char too_long[] =
    "the rows of a page have more than 1 GiB of text (write smaller pages)";

static int fail(sgt_error *err, const char *path, uint64_t offset, const char *why)
{
    if (why == no_memory) return sgt_fail_memory(err, path);
    const int remedy = why == other_encoding || why == old_levels || why == too_long;
    return sgt_fail(err, remedy ? SGT_EUNSUPPORTED : SGT_EFORMAT, "%s: offset %" PRIu64 ": %s%s%s",
                    path, offset, remedy ? "" : "damaged page: ", why,
                    remedy ? "" : " (fetch the file again)");
}

/* ---- codecs ----
 *
 * Each function in this section decompresses the n bytes at `in`, and writes at most `size` bytes
 * to `out`. It returns the number of bytes written, or SIZE_MAX if the input is damaged. */

typedef size_t unpacker(const uint8_t *in, size_t n, uint8_t *out, size_t size);

/* Decompress data in gzip format, which may consist of several gzip members. */
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

#ifdef SGT_snappy
static size_t unpack_snappy(const uint8_t *in, size_t n, uint8_t *out, size_t size)
{
    size_t got = size, said;
    if (snappy_uncompressed_length((const char *)in, n, &said) != SNAPPY_OK || said > size)
        return SIZE_MAX;
    return snappy_uncompress((const char *)in, n, (char *)out, &got) ? SIZE_MAX : got;
}
#else
#define unpack_snappy NULL
#endif

#ifdef SGT_lz4
static size_t unpack_lz4(const uint8_t *in, size_t n, uint8_t *out, size_t size)
{
    int got = LZ4_decompress_safe((const char *)in, (char *)out, (int)n, (int)size);
    return got < 0 ? SIZE_MAX : (size_t)got;
}
#else
#define unpack_lz4 NULL
#endif

#define OTHER "write it with zstd or snappy, or read it through a command with --filter"
#define REBUILD(package) "install the package " package " and build sgt again"
#define CODECS 8

/* The codecs of Parquet, indexed by their numbers in parquet.thrift. */
static const struct {
    /* Function that decompresses the codec's data. If it is NULL and `name` is not, this build has
     * no decompressor for the codec. If both are NULL, the codec stands for uncompressed data. */
    unpacker *unpack;
    /* Maximum number of decompressed bytes per compressed byte. A page that states a larger size is
     * damaged. Checking this limits the memory that is allocated for a damaged page, which may
     * state any size. */
    size_t most;
    const char *name, *remedy;
} codecs[CODECS] = {
    {NULL, 1, NULL, NULL},
    {unpack_snappy, 32, "snappy, which this build does not support", REBUILD("libsnappy-dev")},
    {unpack_gzip, 1040, NULL, NULL},
    {NULL, 0, "lzo, which sgt does not support", OTHER},
    {NULL, 0, "brotli, which sgt does not support", OTHER},
    {NULL, 0, "lz4 in Hadoop's frames, which sgt does not support", OTHER},
    /* zstd can compress a byte that is repeated 131,072 times into a block of 4 bytes, that is,
     * 32,768 bytes into each compressed byte */
    {unpack_zstd, 32768, NULL, NULL},
    {unpack_lz4, 256, "lz4, which this build does not support", REBUILD("liblz4-dev")},
};

const char *sgt_parquet_codec_lacks(int64_t codec, const char **remedy)
{
    const int known = codec >= 0 && codec < CODECS;
    *remedy = known ? codecs[codec].remedy : OTHER;
    if (known && (codecs[codec].unpack || !codecs[codec].name)) return NULL;
    return known ? codecs[codec].name : "an unknown codec";
}

/* ---- numbers of a few bits ---- */

/* Return the number that consists of `width` bits, starting `bit` bits after p (the lowest bit of a
 * byte comes first). Bytes at or after `end` are not read. */
static uint64_t get_bits(const uint8_t *p, uint64_t bit, unsigned width, const uint8_t *end)
{
    const uint8_t *at = p + bit / 8;
    const unsigned shift = (unsigned)(bit % 8);
    uint8_t last[9] = {0};
    uint64_t low;
    if (!width) return 0;
    if (end - at < 9) at = memcpy(last, at, (size_t)(end - at));
    memcpy(&low, at, 8);
    low >>= shift;
    if (shift) low |= (uint64_t)at[8] << (64 - shift);
    return width == 64 ? low : low & (((uint64_t)1 << width) - 1);
}

static uint64_t get_zigzag(const uint8_t **at, const uint8_t *end, int *bad)
{
    const uint64_t n = sgt_parquet_varint(at, end, bad);
    return (n >> 1) ^ (0 - (n & 1));
}

/* ---- runs ----
 *
 * Reads Parquet's hybrid of run-length encoding and bit-packing, in which definition levels and
 * dictionary indices are stored. */

typedef struct runs {
    const uint8_t *at, *end;
    unsigned width; /* bits per number, at most 32 */
    uint64_t left;  /* numbers left in this run */
    /* 1 if the current run is bit-packed; 0 if it is a repeated number. In a bit-packed run, the
     * next number begins `bit` bits after `at`, and the bytes of the run end before `after`. */
    int packed;
    uint64_t bit;
    const uint8_t *after;
    uint32_t value; /* the repeated number if the current run is not bit-packed */
} runs;

static int next_run(runs *r)
{
    int bad = 0;
    const uint64_t head = sgt_parquet_varint(&r->at, r->end, &bad);
    const size_t bytes = (r->width + 7) / 8, left = (size_t)(r->end - r->at);
    if (bad || head < 2 || head >> 1 > (uint64_t)1 << 32) return -1;
    r->packed = (int)(head & 1);
    r->left = head >> 1;
    if (!r->packed) {
        if (left < bytes) return -1;
        r->value = (uint32_t)get_bits(r->at, 0, 8 * (unsigned)bytes, r->end);
        r->at += bytes;
        return 0;
    }
    /* A bit-packed run consists of groups of eight numbers. The last group may be incomplete,
     * because some writers omit its last bytes. In this case, read only the complete numbers. */
    uint64_t size = r->left * r->width;
    r->left *= 8;
    if (size > left) {
        size = left;
        r->left = size * 8 / r->width;
    }
    r->bit = 0;
    r->after = r->at + size;
    return r->left ? 0 : -1;
}

/* Read the next n numbers into `out`. Return 0, or -1 if the data ends before n numbers have been
 * read or is damaged. */
static int read_runs(runs *r, uint32_t *out, size_t n)
{
    while (n) {
        if (!r->left && next_run(r) < 0) return -1;
        const size_t k = r->left < n ? (size_t)r->left : n;
        if (r->packed)
            for (size_t i = 0; i < k; i++, r->bit += r->width)
                out[i] = (uint32_t)get_bits(r->at, r->bit, r->width, r->after);
        else
            for (size_t i = 0; i < k; i++) out[i] = r->value;
        r->left -= k;
        if (r->packed && !r->left) r->at = r->after;
        out += k;
        n -= k;
    }
    return 0;
}

/* ---- DELTA_BINARY_PACKED ---- */

typedef struct deltas {
    const uint8_t *at, *end;
    uint64_t left; /* numbers not yet read */
    /* the number that was read last; before the first read, the first number, which is stored in
     * the header of the encoding */
    uint64_t last;
    int begun;             /* 1: the first number has been read */
    uint64_t block, minis; /* how many numbers a block has, and how many miniblocks */
    uint64_t mini;         /* index of the current miniblock within the current block */
    uint64_t in_mini;      /* numbers left in the miniblock */
    uint64_t least;        /* smallest delta of the block */
    /* for each of the `minis` miniblocks of the current block: number of bits per delta */
    const uint8_t *widths;
    /* start of the deltas of the current miniblock; the next delta begins `bit` bits after
     * `bits` */
    const uint8_t *bits;
    uint64_t bit;
} deltas;

/* Read the header of data encoded with DELTA_BINARY_PACKED at p, and initialize *d to read the
 * numbers. Return 0, or -1 if the header is damaged. */
static int open_deltas(deltas *d, const uint8_t *p, const uint8_t *end)
{
    int bad = 0;
    *d = (deltas){.at = p, .end = end};
    d->block = sgt_parquet_varint(&d->at, end, &bad);
    d->minis = sgt_parquet_varint(&d->at, end, &bad);
    d->left = sgt_parquet_varint(&d->at, end, &bad);
    d->last = get_zigzag(&d->at, end, &bad);
    if (bad || !d->block || d->block % 128 || d->block > (uint64_t)1 << 20 || !d->minis ||
        d->block % d->minis || d->block / d->minis % 8)
        return -1;
    d->mini = d->minis;
    return 0;
}

/* Go to the next miniblock. */
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

/* Read the next number into *out. If the encoded numbers are 32-bit integers, only the lower 32
 * bits of *out are valid. Return 0, or -1 if no number is left or the data is damaged. */
static int next_delta(deltas *d, uint64_t *out)
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

/* ---- shared pages (parquet.h) ---- */

struct sgt_parquet_shared {
    atomic_int users;
    /* guards the members below while the page is being decoded; when `decoded` is 1, they do not
     * change any more */
    pthread_mutex_t lock;
    sgt_parquet_page page;
    sgt_unit unit; /* its text holds the compressed bytes of the page, and later the strings */
    sgt_parquet_string *rows;
    const uint8_t *strings; /* memory from which the offsets in `rows` are counted */
    int decoded;
    const char *why; /* reason why the page could not be decoded; NULL if there was no error */
};

int sgt_parquet_shared_new(sgt_parquet_shared **out, const sgt_parquet_page *p, uint8_t **packed,
                           sgt_error *err)
{
    const sgt_parquet_head *h = &p->head;
    sgt_parquet_shared *s = calloc(1, sizeof *s);
    /* allocate the uncompressed size that the header states only if it is plausible, because the
     * header of a damaged page may state any size */
    const size_t likely = h->unpacked < SGT_PARQUET_LIKELY ? h->unpacked : 0;
    if (!s) return sgt_fail_memory(err, "a page");
    s->users = 1;
    s->page = *p;
    s->page.at = s->page.first = 0;
    s->page.count = h->rows;
    s->page.whole = NULL;
    sgt_parquet_shared_use(p->dictionary);
    s->unit.used = h->packed;
    pthread_mutex_init(&s->lock, NULL);
    *out = s;
    const int rc = sgt_unit_reserve(&s->unit, h->packed + likely + 1, err);
    *packed = s->unit.text;
    if (rc < 0) sgt_parquet_shared_drop(out);
    return rc;
}

sgt_parquet_shared *sgt_parquet_shared_use(sgt_parquet_shared *s)
{
    if (s) atomic_fetch_add(&s->users, 1);
    return s;
}

void sgt_parquet_shared_drop(sgt_parquet_shared **shared)
{
    sgt_parquet_shared *s = *shared;
    *shared = NULL;
    if (!s || atomic_fetch_sub(&s->users, 1) > 1) return;
    pthread_mutex_destroy(&s->lock);
    sgt_parquet_shared_drop(&s->page.dictionary);
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
        if (h->encoding != SGT_PARQUET_PLAIN && h->encoding != SGT_PARQUET_PLAIN_DICTIONARY)
            return "its dictionary is not encoded with PLAIN";
        if (h->rows > h->unpacked / 4) return "its dictionary ends too early";
        h->encoding = SGT_PARQUET_PLAIN;
    }
    if (!(s->rows = malloc((size_t)(h->rows + 1) * sizeof *s->rows))) return no_memory;
    return decode_page(&s->page, &s->unit, s->rows, &s->strings);
}

/* Decode the shared page s, unless a thread has already decoded it. Return NULL, or an error
 * message if the page is damaged or memory runs out. Any number of threads may call this at the
 * same time. */
static const char *open_shared(sgt_parquet_shared *s)
{
    pthread_mutex_lock(&s->lock);
    if (!s->decoded) s->why = decode_shared(s);
    s->decoded = 1;
    pthread_mutex_unlock(&s->lock);
    return s->why;
}

/* ---- strings, by encoding ----
 *
 * Each function in the table `encodings` decodes the next n > 0 strings (or numbers) of a page. For
 * each string, it stores in `out` the length of the string, and its offset in the text of the unit
 * or, if the page uses a dictionary, in the text of the dictionary. It returns NULL, or an error
 * message if it fails. */

typedef struct decoder {
    const sgt_parquet_page *p;
    sgt_unit *u;
    /* range of the page's bytes that have not been decoded yet: from offset `at` up to, but not
     * including, offset `end` of the unit's text */
    size_t at, end;
    /* Temporary memory for three arrays that have one element per row:
     * - first array: definition levels
     * - second array: dictionary indices or, depending on the encoding, lengths of strings or of
     *   the prefixes that strings share with the string before
     * - third array: only if prefixes are shared, lengths of the remaining bytes of strings */
    uint32_t *numbers;
} decoder;

/* Make sure that n bytes can be written after the text of the unit. The text may move to a
 * different address. Return NULL, or an error message. */
static const char *make_room(sgt_unit *u, uint64_t n)
{
    if (n > SGT_PARQUET_PAGE) return too_long;
    return sgt_unit_reserve(u, u->used + (size_t)n, NULL) < 0 ? no_memory : NULL;
}

static const char *read_plain(decoder *d, sgt_parquet_string *out, size_t n)
{
    const uint32_t width = sgt_parquet_width(d->p->column.type);
    uint8_t *text = d->u->text;
    for (size_t i = 0; i < n; i++) {
        uint32_t length = width;
        if (!width) {
            if (d->end - d->at < sizeof length) return ended;
            memcpy(&length, text + d->at, sizeof length);
            memset(text + d->at, 0, sizeof length);
            d->at += sizeof length;
        }
        if (length > d->end - d->at) return ended;
        out[i] = (sgt_parquet_string){d->at, length};
        d->at += length;
    }
    return NULL;
}

static const char *read_indexed(decoder *d, sgt_parquet_string *out, size_t n)
{
    sgt_parquet_shared *w = d->p->dictionary;
    uint32_t *index = d->numbers + d->p->head.rows;
    const char *why = w ? open_shared(w) : "it uses a dictionary, but there is none";
    if (why) return why;
    if (d->at == d->end) return ended;
    const uint8_t *text = d->u->text;
    runs r = {.at = text + d->at + 1, .end = text + d->end, .width = text[d->at]};
    if (r.width > 32) return "its indices have more than 32 bits";
    if (read_runs(&r, index, n) < 0) return ended;
    for (size_t i = 0; i < n; i++) {
        if (index[i] >= w->page.count) return "an index exceeds the size of the dictionary";
        out[i] = w->rows[index[i]];
    }
    return NULL;
}

/* Read all lengths that are stored at d->at: store the first n lengths in `out`, add all lengths to
 * *sum, and advance d->at past them, even if there are more than n. Return NULL, or an error
 * message. */
static const char *read_lengths(decoder *d, uint32_t *out, size_t n, uint64_t *sum)
{
    static const char damaged[] = "its lengths are damaged";
    const uint8_t *text = d->u->text;
    deltas all;
    if (open_deltas(&all, text + d->at, text + d->end) < 0 || all.left > d->p->head.rows)
        return damaged;
    if (all.left < n) return ended;
    for (size_t i = 0; all.left; i++) {
        uint64_t number;
        /* only the lower 32 bits of `number` are valid (see next_delta), and a value above
         * INT32_MAX is a negative number, which cannot be a length */
        if (next_delta(&all, &number) < 0 || (uint32_t)number > INT32_MAX) return damaged;
        if (i < n) out[i] = (uint32_t)number;
        *sum += (uint32_t)number;
    }
    d->at = (size_t)(all.at - text);
    return NULL;
}

static const char *read_delta_lengths(decoder *d, sgt_parquet_string *out, size_t n)
{
    uint32_t *length = d->numbers + d->p->head.rows;
    uint64_t sum = 0;
    const char *why = read_lengths(d, length, n, &sum);
    for (size_t i = 0; i < n && !why; i++) {
        if (length[i] > d->end - d->at) return ended;
        out[i] = (sgt_parquet_string){d->at, length[i]};
        d->at += length[i];
    }
    return why;
}

/* Read n strings in the encoding DELTA_BYTE_ARRAY, which stores a string as two parts: the length
 * of the prefix that the string shares with the previous string, and the bytes after the prefix. */
static const char *read_delta_strings(decoder *d, sgt_parquet_string *out, size_t n)
{
    uint32_t *prefix = d->numbers + d->p->head.rows, *length = prefix + d->p->head.rows;
    uint64_t sum = 0;
    sgt_parquet_string last = {0};
    const char *why = read_lengths(d, prefix, n, &sum);
    if (!why) why = read_lengths(d, length, n, &sum);
    if (!why) why = make_room(d->u, sum);
    for (size_t i = 0; i < n && !why; i++) {
        if (prefix[i] > last.length) return "a prefix is longer than the previous string";
        if (length[i] > d->end - d->at) return ended;
        uint8_t *text = d->u->text, *to = text + d->u->used;
        memcpy(to, text + last.at, prefix[i]);
        memcpy(to + prefix[i], text + d->at, length[i]);
        last = out[i] = (sgt_parquet_string){d->u->used, (size_t)prefix[i] + length[i]};
        d->at += length[i];
        d->u->used += last.length;
    }
    return why;
}

static const char *read_delta_numbers(decoder *d, sgt_parquet_string *out, size_t n)
{
    const unsigned width = sgt_parquet_width(d->p->column.type);
    deltas all;
    if (d->p->column.type != SGT_PARQUET_INT32 && d->p->column.type != SGT_PARQUET_INT64)
        return other_encoding;
    const char *why = make_room(d->u, n * width);
    const uint8_t *text = d->u->text;
    if (why) return why;
    if (open_deltas(&all, text + d->at, text + d->end) < 0 || all.left > d->p->head.rows)
        return damaged_numbers;
    for (size_t i = 0; i < n; i++, d->u->used += width) {
        uint64_t number;
        if (next_delta(&all, &number) < 0) return ended;
        memcpy(d->u->text + d->u->used, &number, width);
        out[i] = (sgt_parquet_string){d->u->used, width};
    }
    return NULL;
}

/* Read n numbers in the encoding BYTE_STREAM_SPLIT, which stores the first bytes of all numbers,
 * followed by the second bytes of all numbers, and so on. */
static const char *read_split_numbers(decoder *d, sgt_parquet_string *out, size_t n)
{
    const unsigned width = sgt_parquet_width(d->p->column.type);
    const size_t size = d->end - d->at, stride = size / width;
    const char *why = make_room(d->u, n * width);
    if (why) return why;
    if (size % width || stride > d->p->head.rows) return damaged_numbers;
    if (stride < n) return ended;
    for (size_t i = 0; i < n; i++, d->u->used += width) {
        uint8_t *text = d->u->text;
        for (unsigned b = 0; b < width; b++) text[d->u->used + b] = text[d->at + i + b * stride];
        out[i] = (sgt_parquet_string){d->u->used, width};
    }
    return NULL;
}

#define ENCODINGS 10

/* The functions that decode each encoding, indexed by the number of the encoding in
 * parquet.thrift. */
static const struct {
    const char *(*read)(decoder *d, sgt_parquet_string *out, size_t n);
    /* strings: 1 if the encoding is supported in columns of strings. numbers: 1 if it is supported
     * in columns of numbers. */
    int strings, numbers;
} encodings[ENCODINGS] = {
    [SGT_PARQUET_PLAIN] = {read_plain, 1, 1},
    [SGT_PARQUET_PLAIN_DICTIONARY] = {read_indexed, 1, 1},
    [5] = {read_delta_numbers, 0, 1}, /* DELTA_BINARY_PACKED */
    [6] = {read_delta_lengths, 1, 0}, /* DELTA_LENGTH_BYTE_ARRAY */
    [7] = {read_delta_strings, 1, 0}, /* DELTA_BYTE_ARRAY */
    [SGT_PARQUET_RLE_DICTIONARY] = {read_indexed, 1, 1},
    [9] = {read_split_numbers, 0, 1}, /* BYTE_STREAM_SPLIT */
};

int sgt_parquet_has_indices(const sgt_parquet_head *h)
{
    return h->encoding == SGT_PARQUET_PLAIN_DICTIONARY || h->encoding == SGT_PARQUET_RLE_DICTIONARY;
}

/* Decode the next n strings (or numbers) of the page with the function for the page's encoding.
 * Return NULL, or an error message. */
static const char *read_strings(decoder *d, sgt_parquet_string *out, size_t n)
{
    const int encoding = d->p->head.encoding, strings = d->p->column.type == SGT_PARQUET_BYTES;
    if (!n) return NULL;
    if (encoding < 0 || encoding >= ENCODINGS ||
        !(strings ? encodings[encoding].strings : encodings[encoding].numbers))
        return strings ? "its encoding is not one for strings" : other_encoding;
    return encodings[encoding].read(d, out, n);
}

/* ---- pages ---- */

/* Decode all rows of the page d->p into `rows`. The first `levels` bytes from d->at on hold the
 * definition levels, which state which rows are null. No string is stored for a null row. Return
 * NULL, or an error message. */
static const char *decode_rows(decoder *d, size_t levels, sgt_parquet_string *rows)
{
    const uint32_t least = d->p->column.levels;
    const size_t n = (size_t)d->p->head.rows;
    const uint8_t *text = d->u->text + d->at;
    uint32_t *level = d->numbers;
    runs r = {.at = text, .end = text + levels};
    size_t there = n;
    while (least >> r.width) r.width++;
    d->at += levels;
    if (n && least && next_run(&r) < 0) return levels_end;
    const int nulls = least && (r.packed || r.left < n || r.value != least);
    if (!nulls) return read_strings(d, rows, n);
    if (read_runs(&r, level, n) < 0) return levels_end;
    for (size_t i = 0; i < n; i++) {
        if (level[i] > least) return "a level exceeds the column's maximum";
        there -= level[i] < least;
    }
    const char *why = read_strings(d, rows, there);
    /* the strings are in the first `there` elements of `rows`: move them to the elements of the
     * rows that are not null, starting with the last row, so that no string is overwritten before
     * it is moved */
    for (size_t i = n; i-- > 0 && !why;)
        rows[i] = level[i] == least ? rows[--there] : (sgt_parquet_string){SGT_PARQUET_NULL, 0};
    return why;
}

/* Decompress the page d->p into the memory after the text of the unit. A page that is not
 * compressed stays where it is. Set d->at to the beginning and d->end to the end of the page's
 * uncompressed bytes in the unit's text, and *levels to the number of bytes at d->at that hold the
 * definition levels. Return NULL, or an error message. */
static const char *unpack_page(decoder *d, size_t *levels)
{
    const sgt_parquet_page *p = d->p;
    const sgt_parquet_head *h = &p->head;
    const size_t apart = h->levels, packed = h->packed - apart, size = h->unpacked - apart;
    const int codec = h->kind == SGT_PARQUET_DATA2 && !h->is_packed ? 0 : p->codec;
    const uint8_t *from = d->u->text + p->at;
    if (h->has_crc && crc32(0, from, (uInt)h->packed) != h->crc) return "its checksum is wrong";
    if (h->repeats) return "it has repetition levels, but its column has one string per row";
    if (codec ? size / codecs[codec].most > packed : size != packed) return damaged_bytes;
    d->at = codec ? d->u->used : p->at;
    d->end = d->at + h->unpacked;
    *levels = apart;
    if (codec) {
        if (sgt_unit_reserve(d->u, d->end, NULL) < 0) return no_memory;
        uint8_t *to = d->u->text + d->at;
        from = d->u->text + p->at;
        memcpy(to, from, apart);
        const size_t got =
            size || packed ? codecs[codec].unpack(from + apart, packed, to + apart, size) : 0;
        if (got == SIZE_MAX) return damaged_bytes;
        if (got != size) return "its size after decompression is not the stated one";
        d->u->used = d->end;
    }
    if (h->kind == SGT_PARQUET_DATA2 || !p->column.levels) return NULL;
    uint32_t n;
    if (h->level_encoding != RLE) return old_levels;
    if (h->unpacked < sizeof n) return levels_end;
    memcpy(&n, d->u->text + d->at, sizeof n);
    d->at += sizeof n;
    *levels = n;
    return n > d->end - d->at ? levels_end : NULL;
}

/* Decode all rows of the page p into `rows`. Set *strings to the memory from which the offsets in
 * `rows` are counted: the text of the unit u or, if the page uses a dictionary, the text of the
 * dictionary. The latter is valid as long as the page has a reference to the dictionary. Return
 * NULL, or an error message. */
static const char *decode_page(const sgt_parquet_page *p, sgt_unit *u, sgt_parquet_string *rows,
                               const uint8_t **strings)
{
    decoder d = {.p = p, .u = u, .numbers = malloc(3 * (size_t)(p->head.rows + 1) * 4)};
    size_t levels;
    const char *why = d.numbers ? unpack_page(&d, &levels) : no_memory;
    if (!why) why = decode_rows(&d, levels, rows);
    free(d.numbers);
    *strings =
        sgt_parquet_has_indices(&p->head) && p->dictionary ? p->dictionary->strings : u->text;
    return why;
}

/* Copy the strings of the `count` rows at `rows` to the end of the text of the unit u, and change
 * their offsets to offsets in this text. Before the call, the offsets are counted from `strings`,
 * which is not the text of u. Return NULL, or an error message. */
static const char *copy_rows(sgt_unit *u, sgt_parquet_string *rows, uint64_t count,
                             const uint8_t *strings)
{
    size_t all = 0;
    for (uint64_t i = 0; i < count && all <= SGT_PARQUET_PAGE; i++) all += rows[i].length;
    const char *why = make_room(u, all);
    for (uint64_t i = 0; i < count && !why; i++) {
        if (rows[i].at == SGT_PARQUET_NULL) continue;
        memcpy(u->text + u->used, strings + rows[i].at, rows[i].length);
        rows[i].at = u->used;
        u->used += rows[i].length;
    }
    return why;
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
    } else {
        why = decode_page(p, u, rows, &strings);
        if (!why) memmove(rows, rows + p->first, (size_t)p->count * sizeof *rows);
    }
    if (!why && strings != u->text) why = copy_rows(u, rows, p->count, strings);
    return why ? fail(err, path, p->offset, why) : SGT_OK;
}

void sgt_parquet_pages_drop(sgt_unit *u)
{
    for (size_t i = 0; i < u->page_count; i++) {
        sgt_parquet_shared_drop(&u->pages[i].dictionary);
        sgt_parquet_shared_drop(&u->pages[i].whole);
    }
    u->page_count = 0;
}

/* ---- rows to documents ---- */

/* Return 1 if the strings of all rows are valid UTF-8; otherwise 0. All bytes from the first string
 * to the last are checked in one call. This is possible because the bytes between the strings are
 * ASCII (sgt_parquet_page_decode). In addition, check that no string begins in the middle of a
 * character. */
static int all_valid(const sgt_unit *u, const sgt_parquet_string *rows, uint64_t count)
{
    size_t from = SIZE_MAX, to = 0, before = SIZE_MAX;
    for (uint64_t i = 0; i < count; i++) {
        const size_t at = rows[i].at, end = at + rows[i].length;
        if (at == SGT_PARQUET_NULL || at == end) continue;
        /* Only a string that directly follows another string can begin in the middle of a
         * character, because the byte before any other string is ASCII. */
        if (at == before && (u->text[at] & 0xC0) == 0x80) return 0;
        if (at < from) from = at;
        if (end > to) to = end;
        before = end;
    }
    return from == SIZE_MAX || sgt_utf8_valid(u->text + from, to - from) == to - from;
}

/* Return NULL if the row with the string *s is a document; otherwise return the reason why the row
 * is bad. If the string is not valid UTF-8, set *byte to the position of the first invalid byte in
 * the string, counted from 1; otherwise set *byte to 0. valid: 1 if the string is known to be valid
 * UTF-8. */
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

int sgt_parquet_records(sgt_unit *u, const sgt_part *p, sgt_part *next, sgt_error *err)
{
    const sgt_parquet_page *page = p->page.page ? &u->pages[p->page.page - 1] : NULL;
    const uint64_t count = page ? page->count : 0, all = page ? page->first + count : 0;
    const sgt_corpus_file *f = &u->reading->corpus->files[p->file];
    sgt_parquet_string *rows = calloc((size_t)all + 1, sizeof *rows);
    if (!rows) return sgt_fail_memory(err, "rows of a page");
    int rc = page ? sgt_parquet_page_decode(page, u, rows, f->path, err) : SGT_OK;
    /* Count all rows of the part as bad, because no readable page was found for them (`page` is
     * NULL), or because their page is damaged and --skip-bad is set. */
    if (!page || (rc == SGT_EFORMAT && f->skip_bad)) {
        next->records = next->bad = p->end - p->offset;
        next->end = p->end;
        free(rows);
        return SGT_OK;
    }
    const int valid = !rc && all_valid(u, rows, count);
    for (uint64_t i = 0; i < count && !rc; i++) {
        const uint64_t row = p->offset + i;
        uint64_t byte;
        const char *why = bad_row(u, &rows[i], valid, &byte);
        next->at = rows[i].at;
        next->length = rows[i].length;
        next->row.number = row;
        rc = sgt_unit_add_record(u, next, row, row + 1, why, byte, err);
    }
    free(rows);
    return rc;
}
