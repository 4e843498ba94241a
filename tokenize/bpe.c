/* bpe.c: the bytes of a piece become ids: of all adjacent pairs that some merge joins, the one of the lowest id is
 * joined, the leftmost first, until none is left.
 *
 * A piece takes the first of these ways that fits:
 *   cache   pieces up to 15 bytes that were met before: nearly all of them
 *   scan    up to 64 bytes: the definition itself, on the stack
 *   steps   longer ones, where the definition would be quadratic: left to right, by the longest token that may follow
 * and a piece too long for the cache is first cut wherever two bytes meet that no token holds side by side. */
#include "bpe.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "split.h"

#define KEY_MAX 15   /* bytes of a cached piece: 16 with its length */
#define KEY_IDS 7    /* ids of a cached piece */
#define LINES 65536  /* of two entries each: 4 MiB an encoder, however long the text */
#define MARKS 4096

typedef struct entry {
    uint64_t low, high; /* the piece's bytes, zero-padded; the last byte is their number, in an empty entry 0 */
    uint16_t ids[KEY_IDS], count;
} entry;

struct sgt_encoder {
    const sgt_vocab *v;
    sgt_arena memory;  /* what follows, in huge pages, touched when used */
    entry (*lines)[2]; /* (LINES, 2): one cache line each, the newer entry first */
    uint64_t *marks;   /* (MARKS): places, counted over the encoder's life, from which no tokens lead to the end */
    uint64_t place;    /* of the current long piece's first byte; starts at 1 */
};

int sgt_encoder_new(sgt_encoder **out, const sgt_vocab *v, sgt_error *err)
{
    sgt_encoder *e = calloc(1, sizeof *e);
    if (!e) return sgt_fail(err, SGT_ENOMEM, "encoder: out of memory");
    e->v = v;
    e->place = 1;
    int rc = sgt_arena_map(&e->memory, LINES * sizeof *e->lines + MARKS * sizeof *e->marks, 0, err);
    if (rc < 0) {
        sgt_encoder_free(e);
        return rc;
    }
    e->lines = sgt_arena_take(&e->memory, LINES, sizeof *e->lines);
    e->marks = sgt_arena_take(&e->memory, MARKS, sizeof *e->marks);
    *out = e;
    return SGT_OK;
}

void sgt_encoder_free(sgt_encoder *e)
{
    if (!e) return;
    sgt_arena_unmap(&e->memory);
    free(e);
}

/* ---- scan ---- */

size_t sgt_bpe_scan(const sgt_vocab *v, const uint8_t *s, size_t n, uint16_t *ids)
{
    uint32_t merged[SGT_BPE_SCAN_MAX]; /* what ids[i] and ids[i + 1] make; the last is never anything */
    for (size_t i = 0; i < n; i++) {
        ids[i] = v->byte_id[s[i]];
        merged[i] = i + 1 < n ? v->byte_pairs[(unsigned)s[i] << 8 | s[i + 1]] : SGT_NO_TOKEN;
    }
    for (;;) {
        size_t at = 0;
        for (size_t i = 1; i < n; i++)
            if (merged[i] < merged[at]) at = i;
        if (merged[at] == SGT_NO_TOKEN) return n;
        ids[at] = (uint16_t)merged[at];
        n--;
        memmove(ids + at + 1, ids + at + 2, (n - at - 1) * sizeof *ids);
        memmove(merged + at + 1, merged + at + 2, (n - at - 1) * sizeof *merged);
        merged[at] = at + 1 < n ? sgt_vocab_pair(v, ids[at], ids[at + 1]) : SGT_NO_TOKEN;
        if (at > 0) merged[at - 1] = sgt_vocab_pair(v, ids[at - 1], ids[at]);
    }
}

/* ---- steps ----
 *
 * Some tokens in a row are what the merges make of their bytes exactly where every two neighbours are what the merges
 * make of those two alone (each token being what they make of its own bytes, which the tests check for every token of
 * GPT-2). So tokens can be laid from left to right, always the longest that may stand beside the last; where none leads
 * on, the last is taken back for a shorter one. The idea and its proof: H. van Antwerpen, A. Neubeck, "So many tokens,
 * so little time: introducing a faster, more flexible byte-pair tokenizer" (GitHub, 2024). */

/* Whether the merges leave the border between `left` and `right` standing. The last merge on either side is undone, and
 * again the last: the later one is that of the higher id, and of equal ids the right one. What then touches at the
 * border must not make a token of an id below `limit`, for that merge would have gone before the one undone, and across
 * the border. */
static int may_follow(const sgt_vocab *v, uint32_t left, uint32_t right)
{
    for (uint32_t limit = SGT_NO_TOKEN;;) {
        uint32_t merged = sgt_vocab_pair(v, left, right);
        if (merged != SGT_NO_TOKEN && merged < limit) return 0;
        if (left > right) {
            if (left < 256) return 1; /* both are single bytes: nothing left to undo */
            limit = left;
            left = v->halves[left][1];
        } else {
            if (right < 256) return 1;
            limit = right + 1; /* at equal ids the pair at the border is further left than right's, and goes first */
            right = v->halves[right][0];
        }
    }
}

size_t sgt_bpe_steps(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids)
{
    const sgt_vocab *v = e->v;
    size_t at = 0, count = 0, len = 0;
    sgt_vocab_need_trie(v);
    uint32_t token = sgt_vocab_longest(v, s, n, &len);
    while (at < n) {
        uint64_t after = e->place + at + len;
        if (e->marks[after % MARKS] != after && (count == 0 || may_follow(v, ids[count - 1], token))) {
            ids[count++] = (uint16_t)token;
            at += len;
            if (at < n) token = sgt_vocab_longest(v, s + at, n - at, &len);
        } else if (len > 1) {
            token = sgt_vocab_longest(v, s + at, len - 1, &len);
        } else {
            /* Dead end: never come here again. A mark that another overwrites costs time, not exactness. */
            assert(count > 0);
            e->marks[(e->place + at) % MARKS] = e->place + at;
            token = ids[--count];
            len = sgt_vocab_length(v, token);
            at -= len;
        }
    }
    e->place += n + 1;
    return count;
}

/* ---- cache ---- */

static size_t encode_uncached(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids)
{
    return n <= SGT_BPE_SCAN_MAX ? sgt_bpe_scan(e->v, s, n, ids) : sgt_bpe_steps(e, s, n, ids);
}

/* The key of s[0..n), n <= KEY_MAX; `left` bytes may be read from s on. */
static inline entry make_key(const uint8_t *s, size_t n, size_t left)
{
    uint64_t w[2] = {0, 0};
    memcpy(w, s, left >= 16 ? 16 : n);
    if (n < 8) {
        w[0] &= ((uint64_t)1 << 8 * n) - 1;
        w[1] = 0;
    } else {
        w[1] &= ((uint64_t)1 << 8 * (n - 8)) - 1;
    }
    return (entry){.low = w[0], .high = w[1] | (uint64_t)n << 56};
}

static inline size_t line_of(const entry *k)
{
    uint64_t h = (k->low ^ k->high * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
    return (size_t)((h ^ h >> 32) * 0x9E3779B97F4A7C15u >> 48) % LINES;
}

static size_t encode_short(sgt_encoder *e, const uint8_t *s, size_t n, size_t left, uint16_t *ids)
{
    entry key = make_key(s, n, left);
    entry *line = e->lines[line_of(&key)];
    for (int i = 0; i < 2; i++)
        if (line[i].low == key.low && line[i].high == key.high) {
            for (size_t j = 0; j < line[i].count; j++) ids[j] = line[i].ids[j];
            return line[i].count;
        }
    size_t count = sgt_bpe_scan(e->v, s, n, ids);
    if (count <= KEY_IDS) {
        key.count = (uint16_t)count;
        memcpy(key.ids, ids, count * sizeof *ids);
        line[1] = line[0];
        line[0] = key;
    }
    return count;
}

/* A piece that is too long for the cache, in parts that no token spans. */
static size_t encode_long(sgt_encoder *e, const uint8_t *s, size_t n, size_t left, uint16_t *ids)
{
    size_t count = 0;
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n; to++) {
            unsigned pair = (unsigned)s[to - 1] << 8 | s[to];
            if (!(e->v->joins[pair >> 6] >> (pair & 63) & 1)) break;
        }
        count += to - from <= KEY_MAX ? encode_short(e, s + from, to - from, left - from, ids + count)
                                      : encode_uncached(e, s + from, to - from, ids + count);
    }
    return count;
}

static size_t encode_piece(sgt_encoder *e, const uint8_t *s, size_t n, size_t left, uint16_t *ids)
{
    return n <= KEY_MAX ? encode_short(e, s, n, left, ids) : encode_long(e, s, n, left, ids);
}

size_t sgt_encode_piece(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids)
{
    return n ? encode_piece(e, s, n, n, ids) : 0;
}

size_t sgt_encode(sgt_encoder *e, const void *text, size_t n, uint16_t *ids)
{
    const uint8_t *s = text;
    sgt_splitter sp = sgt_splitter_start(text, n);
    uint32_t ends[256];
    size_t pieces, from = 0, count = 0;
    while ((pieces = sgt_split(&sp, ends, 256)) > 0) {
        for (size_t i = 0, begin = from; i < pieces; i++) {
            size_t end = i + 1 < pieces ? from + ends[i] : sp.at;
            count += encode_piece(e, s + begin, end - begin, n - begin, ids + count);
            begin = end;
        }
        from = sp.at;
    }
    return count;
}
