/* parquet_page.c: unpack a page, then read levels and strings from it.
 *
 * Strings of PLAIN and DELTA_LENGTH_BYTE_ARRAY stay where they were unpacked. Those of
 * DELTA_BYTE_ARRAY are put together behind them, and so are numbers that are neither PLAIN nor in a
 * dictionary. The lengths between strings of PLAIN become zeros once they are read, so that all
 * strings of a page can be checked as one text.
 * A dictionary is in the unit's text or shared (parquet_dictionary.h); in the latter case its
 * strings are copied behind the page. */
#include "tokenize/input/parquet_page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tokenize/input/parquet_body.h"
#include "tokenize/input/parquet_codec.h"
#include "tokenize/input/parquet_dictionary.h"
#include "tokenize/input/parquet_meta.h"
#include "tokenize/input/parquet_runs.h"

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
/* pages that are not damaged, but are not read */
static const char other_encoding[] = "an encoding of numbers that is not read";
static const char old_levels[] = "levels of BIT_PACKED, which Parquet has given up, are not read";
static const char too_long[] = "more than 1 GiB of text in its rows";

static int fail(sgt_error *err, const char *path, uint64_t offset, const char *why)
{
    const int good = why == other_encoding || why == old_levels || why == too_long;
    return sgt_fail(err, SGT_EFORMAT, "%s: offset %" PRIu64 ": %s%s (%s)", path, offset,
                    good ? "" : "damaged page: ", why,
                    why == other_encoding ? "write it with PLAIN or a dictionary"
                    : why == old_levels   ? "write it with a current program"
                    : good                ? "write smaller pages"
                                          : "fetch the file again");
}

const char *sgt_parquet_check_crc(const sgt_parquet_head *h, const uint8_t *packed)
{
    if (!h->has_crc || crc32(0, packed, (uInt)h->packed) == h->crc) return NULL;
    return "its checksum is another";
}

/* ---- strings, by encoding ---- */

/* Find n strings of the encoding PLAIN in text[end], from *at on. Their positions are offsets in
 * `text`. */
static const char *take_plain(uint8_t *text, size_t *at, size_t end, sgt_parquet_string *out,
                              size_t n)
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
static const char *take_numbers(unsigned width, size_t *at, size_t end, sgt_parquet_string *out,
                                size_t n)
{
    if ((end - *at) / width < n) return ended;
    for (size_t i = 0; i < n; i++, *at += width) out[i] = (sgt_parquet_string){*at, width};
    return NULL;
}

const char *sgt_parquet_take_plain(int type, uint8_t *text, size_t *at, size_t end,
                                   sgt_parquet_string *out, size_t n)
{
    const unsigned width = sgt_parquet_width(type);
    return width ? take_numbers(width, at, end, out, n) : take_plain(text, at, end, out, n);
}

int sgt_parquet_has_indices(const sgt_parquet_head *h)
{
    return h->encoding == PLAIN_DICTIONARY || h->encoding == RLE_DICTIONARY;
}

typedef struct decoder {
    const sgt_parquet_page *p;
    sgt_unit *u;
    size_t at, end;          /* bytes left of PLAIN and delta strings, in the unit's text */
    sgt_parquet_words words; /* its dictionary */
    sgt_runs levels, indices;
    sgt_deltas prefixes, lengths; /* lengths: also of numbers */
    size_t stride; /* BYTE_STREAM_SPLIT: bytes from one byte of a number to its next one */
    size_t made;   /* bytes of strings written behind the unpacked page */
    sgt_parquet_string last;
} decoder;

/* Unpack the page's dictionary, if it needs one. */
static const char *ready_dictionary(decoder *d)
{
    sgt_parquet_dictionary *of = d->p->dictionary;
    if (!sgt_parquet_has_indices(&d->p->head)) return NULL;
    if (!of) return "it uses a dictionary, and there is none";
    return sgt_parquet_dictionary_open(&d->words, of, d->u);
}

/* Begin to read numbers that are neither PLAIN nor in a dictionary, from d->at to d->end. count: the
 * most numbers there can be. */
static const char *begin_numbers(decoder *d, uint64_t count)
{
    static const char damaged[] = "its numbers are damaged";
    const int type = d->p->type;
    const unsigned width = sgt_parquet_width(type);
    const uint8_t *text = d->u->text;
    const size_t size = d->end - d->at;
    if (d->p->head.encoding == SPLIT_NUMBERS) {
        d->stride = size / width;
        d->end = d->at + d->stride;
        return size % width || d->stride > count ? damaged : NULL;
    }
    if (d->p->head.encoding != DELTA_NUMBERS ||
        (type != SGT_PARQUET_INT32 && type != SGT_PARQUET_INT64))
        return other_encoding;
    if (!size) return NULL; /* all rows are null */
    const int rc = sgt_deltas_open(&d->lengths, text + d->at, text + d->end);
    return rc < 0 || d->lengths.left > count ? damaged : NULL;
}

/* Begin to read the strings, which lie in u's text from `at` to `end`. count: the most strings
 * there can be. */
static const char *begin_strings(decoder *d, size_t at, size_t end, uint64_t count)
{
    const uint8_t *text = d->u->text, *p = text + at;
    d->at = at;
    d->end = end;
    switch (d->p->head.encoding) {
    case PLAIN: return NULL;
    case PLAIN_DICTIONARY:
    case RLE_DICTIONARY:
        if (at == end) return NULL; /* all rows are null */
        d->indices = (sgt_runs){.at = p + 1, .end = text + end, .width = *p};
        return *p > 32 ? "indices of more than 32 bits" : NULL;
    }
    if (d->p->type != SGT_PARQUET_BYTES) return begin_numbers(d, count);
    if (d->p->head.encoding != DELTA_LENGTH && d->p->head.encoding != DELTA_STRINGS)
        return "an encoding that strings do not have";
    if (at == end) return NULL;
    if (d->p->head.encoding == DELTA_STRINGS) {
        if (sgt_deltas_open(&d->prefixes, p, text + end) < 0 || d->prefixes.left > count ||
            !(p = sgt_deltas_end(&d->prefixes)))
            return "its prefixes are damaged";
    }
    if (sgt_deltas_open(&d->lengths, p, text + end) < 0 || d->lengths.left > count ||
        !(p = sgt_deltas_end(&d->lengths)))
        return "its lengths are damaged";
    d->at = (size_t)(p - text);
    return NULL;
}

static const char *take_indexed(decoder *d, sgt_parquet_string *out, size_t n)
{
    const sgt_parquet_words *w = &d->words;
    uint32_t index[BATCH];
    if (sgt_runs_take(&d->indices, index, n) < 0) return ended;
    for (size_t i = 0; i < n; i++) {
        if (index[i] >= w->count) return "an index beyond its dictionary";
        const sgt_parquet_string *s = &w->strings[index[i]];
        out[i] = (sgt_parquet_string){w->base + s->at, s->length};
    }
    return NULL;
}

static const char *take_lengths(decoder *d, sgt_parquet_string *out, size_t n)
{
    uint32_t length[BATCH];
    if (sgt_deltas_take(&d->lengths, length, n) < 0) return ended;
    for (size_t i = 0; i < n; i++) {
        if (length[i] > d->end - d->at) return ended;
        out[i] = (sgt_parquet_string){d->at, length[i]};
        d->at += length[i];
    }
    return NULL;
}

static void move_pointer(const uint8_t **p, ptrdiff_t by)
{
    if (*p) *p += by;
}

/* Adjust the decoder's pointers and offsets, because the unit's text has moved by `by` bytes. */
static void move_all(decoder *d, ptrdiff_t by)
{
    sgt_deltas *deltas[] = {&d->prefixes, &d->lengths};
    for (int i = 0; i < 2; i++) {
        move_pointer(&deltas[i]->at, by);
        move_pointer(&deltas[i]->end, by);
        move_pointer(&deltas[i]->widths, by);
        move_pointer(&deltas[i]->bits, by);
    }
    move_pointer(&d->levels.at, by);
    move_pointer(&d->levels.end, by);
    move_pointer(&d->levels.after, by);
}

/* Make room for n more bytes behind the unpacked page. */
static const char *make_room(decoder *d, size_t n)
{
    sgt_unit *u = d->u;
    const size_t used = u->used + d->made;
    const uint8_t *was = u->text;
    if (n > SGT_PARQUET_PAGE || d->made + n > SGT_PARQUET_PAGE) return too_long;
    if (used + n <= u->room) return NULL;
    if (sgt_unit_reserve(u, used + n + used / 2, NULL) < 0) return "out of memory for its text";
    move_all(d, u->text - was);
    return NULL;
}

/* Take n strings of DELTA_BYTE_ARRAY. Each begins with a prefix of the string before it. */
static const char *take_prefixed(decoder *d, sgt_parquet_string *out, size_t n)
{
    uint32_t prefix[BATCH], length[BATCH];
    if (sgt_deltas_take(&d->prefixes, prefix, n) < 0 || sgt_deltas_take(&d->lengths, length, n) < 0)
        return ended;
    for (size_t i = 0; i < n; i++) {
        if (prefix[i] > d->last.length) return "a prefix longer than the string before";
        if (length[i] > d->end - d->at) return ended;
        const char *why = make_room(d, (size_t)prefix[i] + length[i]);
        if (why) return why;
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
static const char *take_made(decoder *d, sgt_parquet_string *out, size_t n)
{
    const unsigned width = sgt_parquet_width(d->p->type);
    const char *why = make_room(d, n * width);
    if (why) return why;
    for (size_t i = 0; i < n; i++) {
        uint64_t number = 0;
        uint8_t *text = d->u->text, *to = text + d->u->used + d->made;
        if (!d->stride) {
            if (sgt_deltas_next(&d->lengths, &number) < 0) return ended;
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
static const char *take_strings(decoder *d, sgt_parquet_string *out, size_t n)
{
    if (!n) return NULL;
    switch (d->p->head.encoding) {
    case PLAIN: return sgt_parquet_take_plain(d->p->type, d->u->text, &d->at, d->end, out, n);
    case DELTA_LENGTH: return take_lengths(d, out, n);
    case DELTA_STRINGS: return take_prefixed(d, out, n);
    case DELTA_NUMBERS:
    case SPLIT_NUMBERS: return take_made(d, out, n);
    default: return take_indexed(d, out, n);
    }
}

/* ---- rows: strings and nulls ---- */

/* Read the next n rows, at most BATCH; rows that are null take no string. */
static const char *take_rows(decoder *d, sgt_parquet_string *rows, size_t n)
{
    uint32_t level[BATCH], least = d->p->levels;
    sgt_parquet_string strings[BATCH];
    uint64_t same;
    uint32_t value;
    size_t there = 0;
    if (!least || (sgt_runs_repeats(&d->levels, &value, &same) && same >= n && value == least)) {
        if (least) sgt_runs_skip(&d->levels, n);
        return take_strings(d, rows, n);
    }
    if (sgt_runs_take(&d->levels, level, n) < 0) return "its levels end too early";
    for (size_t i = 0; i < n; i++) {
        if (level[i] > least) return "a level beyond its column's";
        there += level[i] == least;
    }
    const char *why = take_strings(d, strings, there);
    for (size_t i = 0, k = 0; i < n && !why; i++)
        rows[i] = level[i] == least ? strings[k++] : (sgt_parquet_string){SGT_PARQUET_NULL, 0};
    return why;
}

static const char *decode(decoder *d, size_t at, size_t levels, size_t end,
                          sgt_parquet_string *rows)
{
    const sgt_parquet_page *p = d->p;
    sgt_parquet_string passed[BATCH];
    d->levels = (sgt_runs){.at = d->u->text + at, .end = d->u->text + at + levels, .width = 1};
    while (p->levels >> d->levels.width) d->levels.width++;
    const char *why = begin_strings(d, at + levels, end, p->head.rows);
    for (uint64_t i = 0, all = p->first + p->count, n; i < all && !why; i += n) {
        const uint64_t left = i < p->first ? p->first - i : all - i;
        n = left < BATCH ? left : BATCH;
        why = take_rows(d, i < p->first ? passed : rows + (i - p->first), (size_t)n);
    }
    return why;
}

/* ---- pages ---- */

/* Unpack the page behind the unit's text; bytes that are not packed stay where they are. Set *at
 * and *end to the page, and *levels to the bytes of its levels, which come first. */
static const char *unpack_page(decoder *d, size_t *at, size_t *levels, size_t *end, sgt_error *err)
{
    const sgt_parquet_page *p = d->p;
    const sgt_parquet_head *h = &p->head;
    const size_t apart = h->levels, packed = h->packed - apart, size = h->unpacked - apart;
    const int codec = h->kind == SGT_PARQUET_DATA2 && !h->is_packed ? SGT_PARQUET_PLAIN : p->codec;
    const char *why = sgt_parquet_check_crc(h, d->u->text + p->at);
    if (why) return why;
    if (h->repeats) return "it has repetition levels, and its column has one string a row";
    *at = codec == SGT_PARQUET_PLAIN ? p->at : d->u->used;
    *end = *at + h->unpacked;
    *levels = apart;
    if (!sgt_parquet_codec_may(codec, d->u->text + p->at + apart, packed, size))
        return "its packed bytes are damaged";
    if (codec != SGT_PARQUET_PLAIN) {
        if (sgt_unit_reserve(d->u, *end, err) < 0) return "out of memory for its text";
        uint8_t *to = d->u->text + *at, *from = d->u->text + p->at;
        if (apart) memcpy(to, from, apart);
        why = sgt_parquet_unpack(codec, from + apart, packed, to + apart, size);
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

int sgt_parquet_page_strings(const sgt_parquet_page *p, sgt_unit *u, sgt_parquet_string *rows,
                             const uint8_t **strings, const char *path, sgt_error *err)
{
    decoder d = {.p = p, .u = u};
    size_t at, levels, end;
    const char *why = unpack_page(&d, &at, &levels, &end, err);
    if (!why) why = ready_dictionary(&d);
    if (!why) {
        why = decode(&d, at, levels, end, rows);
        u->used += d.made;
    }
    *strings = d.words.text ? d.words.text : u->text;
    return why ? fail(err, path, p->offset, why) : SGT_OK;
}

int sgt_parquet_rows_copy(sgt_unit *u, sgt_parquet_string *rows, uint64_t count,
                          const uint8_t *strings, const char *path, uint64_t offset, sgt_error *err)
{
    size_t all = 0;
    for (uint64_t i = 0; i < count && all <= SGT_PARQUET_PAGE; i++) all += rows[i].length;
    if (all > SGT_PARQUET_PAGE) return fail(err, path, offset, too_long);
    const int own = strings == u->text;
    int rc = sgt_unit_reserve(u, u->used + all, err);
    if (rc < 0) return rc;
    if (own) strings = u->text;
    for (uint64_t i = 0; i < count; i++) {
        if (rows[i].at == SGT_PARQUET_NULL) continue;
        memcpy(u->text + u->used, strings + rows[i].at, rows[i].length);
        rows[i].at = u->used;
        u->used += rows[i].length;
    }
    return SGT_OK;
}

/* Return whether the rows have more bytes than `most`. */
static int exceed(const sgt_parquet_string *rows, uint64_t count, size_t most)
{
    size_t all = 0;
    for (uint64_t i = 0; i < count && all <= most; i++) all += rows[i].length;
    return all > most;
}

int sgt_parquet_page_decode(const sgt_parquet_page *p, sgt_unit *u, sgt_parquet_string *rows,
                            const char *path, sgt_error *err)
{
    const uint8_t *strings;
    const size_t before = u->used;
    if (p->body) return sgt_parquet_body_rows(p->body, p->first, p->count, u, rows, path, err);
    int rc = sgt_parquet_page_strings(p, u, rows, &strings, path, err);
    if (rc < 0) return rc;
    /* rows that repeat strings of the dictionary often are copied: parts of a unit have no more
     * bytes than its text */
    if (strings == u->text &&
        (!sgt_parquet_has_indices(&p->head) || !exceed(rows, p->count, u->used - before)))
        return rc;
    return sgt_parquet_rows_copy(u, rows, p->count, strings, path, p->offset, err);
}

void sgt_parquet_pages_drop(sgt_unit *u)
{
    for (size_t i = 0; i < u->page_count; i++) {
        sgt_parquet_dictionary_drop(u->pages[i].dictionary);
        sgt_parquet_body_drop(u->pages[i].body);
    }
    u->page_count = 0;
}
