/* long_words.c: encode words that are too long for the table of words.h, in bytes or in ids. Words
 * of up to 126 bytes are cached in a table of their own. */
#include "tokenize/bpe/long_words.h"

#include <string.h>

#include "tokenize/bpe/bpe.h"
#include "tokenize/bpe/runs.h"

#define LONGS (SGT_LONG_WORDS_BYTES / sizeof(long_word))
#define LONG_BYTES 126 /* most bytes of a word that the table holds */
#define LONG_IDS 64
/* Words of more bytes are encoded whole by runs.h, whose cost per call is then small beside the
 * rest. Shorter ones are cut into parts first. */
#define RUN_BYTES 512

typedef struct long_word {
    uint8_t n, count; /* number of bytes (0: empty), and of ids */
    uint8_t text[LONG_BYTES];
    uint16_t ids[LONG_IDS];
} long_word;

static size_t encode_apart(const sgt_long_words *l, const uint8_t *s, size_t n, uint16_t *ids)
{
    return n <= SGT_BPE_SCAN_MAX ? sgt_bpe_scan(l->v, s, n, ids)
                                 : sgt_runs_encode(l->runs, s, n, ids);
}

/* Encode a word in parts: cut it wherever no token spans the cut. */
static size_t encode_parts(const sgt_long_words *l, const uint8_t *s, size_t n, uint16_t *ids)
{
    size_t count = 0;
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && sgt_vocab_joins_at(l->v, s + to); to++) continue;
        count += encode_apart(l, s + from, to - from, ids + count);
    }
    return count;
}

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Return the table index of s[0..n). */
static inline size_t long_line(const uint8_t *s, size_t n)
{
    uint64_t h = n;
    if (n >= 8) h ^= load64(s + n - 8);
    else
        for (size_t i = 0; i < n; i++) h = h << 8 | s[i];
    h *= 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i + 8 < n; i += 8) h = (h ^ h >> 29 ^ load64(s + i)) * 0x9E3779B97F4A7C15u;
    return (size_t)(h >> 40) % LONGS;
}

size_t sgt_encode_long(const sgt_long_words *l, const uint8_t *s, size_t n, uint16_t *ids)
{
    if (n > RUN_BYTES) return sgt_runs_encode(l->runs, s, n, ids);
    if (n > LONG_BYTES) return encode_parts(l, s, n, ids);
    long_word *at = &((long_word *)l->table)[long_line(s, n)];
    if (at->n == n && !memcmp(at->text, s, n)) {
        memcpy(ids, at->ids, at->count * sizeof *ids);
        return at->count;
    }
    size_t count = encode_parts(l, s, n, ids);
    if (count > LONG_IDS) return count;
    at->n = (uint8_t)n;
    at->count = (uint8_t)count;
    memcpy(at->text, s, n);
    memcpy(at->ids, ids, count * sizeof *ids);
    return count;
}
