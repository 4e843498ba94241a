/* parquet_runs.c: read runs and deltas. Encodings.md of the Parquet format describes both. */
#include "tokenize/input/parquet_runs.h"

#include <string.h>

#include "tokenize/input/parquet_thrift.h"

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
    sgt_thrift t = {*at, end, 0, 0};
    uint64_t n = sgt_thrift_varint(&t);
    *bad |= t.cut || t.wrong;
    *at = t.at;
    return n;
}

/* ---- runs ---- */

static int next_run(sgt_runs *r)
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

int sgt_runs_repeats(sgt_runs *r, uint32_t *value, uint64_t *n)
{
    if (!r->left && next_run(r) < 0) return 0;
    if (r->packed) return 0;
    *value = r->value;
    *n = r->left;
    return 1;
}

static void pass(sgt_runs *r, uint64_t n)
{
    r->left -= n;
    r->bit += n * r->width;
    if (r->packed && !r->left) r->at = r->after;
}

int sgt_runs_take(sgt_runs *r, uint32_t *out, size_t n)
{
    while (n) {
        if (!r->left && next_run(r) < 0) return -1;
        const size_t k = r->left < n ? (size_t)r->left : n;
        if (r->packed)
            for (size_t i = 0; i < k; i++)
                out[i] = (uint32_t)get_bits(r->at, r->bit + i * r->width, r->width, r->after);
        else
            for (size_t i = 0; i < k; i++) out[i] = r->value;
        pass(r, k);
        out += k;
        n -= k;
    }
    return 0;
}

int sgt_runs_skip(sgt_runs *r, uint64_t n)
{
    while (n) {
        if (!r->left && next_run(r) < 0) return -1;
        const uint64_t k = r->left < n ? r->left : n;
        pass(r, k);
        n -= k;
    }
    return 0;
}

/* ---- deltas ---- */

static uint64_t get_zigzag(const uint8_t **at, const uint8_t *end, int *bad)
{
    const uint64_t n = get_varint(at, end, bad);
    return (n >> 1) ^ (0 - (n & 1));
}

int sgt_deltas_open(sgt_deltas *d, const uint8_t *p, const uint8_t *end)
{
    int bad = 0;
    *d = (sgt_deltas){.at = p, .end = end};
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
static int next_mini(sgt_deltas *d)
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

int sgt_deltas_next(sgt_deltas *d, uint64_t *out)
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

int sgt_deltas_take(sgt_deltas *d, uint32_t *out, size_t n)
{
    for (uint64_t number; n; n--) {
        /* numbers have 32 bits and wrap around; they are lengths, so a negative one is damage */
        if (sgt_deltas_next(d, &number) < 0 || (uint32_t)number > INT32_MAX) return -1;
        *out++ = (uint32_t)number;
    }
    return 0;
}

const uint8_t *sgt_deltas_end(const sgt_deltas *d)
{
    sgt_deltas copy = *d;
    uint32_t some[256];
    while (copy.left)
        if (sgt_deltas_take(&copy, some, copy.left < 256 ? (size_t)copy.left : 256) < 0)
            return NULL;
    return copy.at;
}
