/* pieces.c: encodes pieces (pre-tokens), and finds offsets at which long ones can be cut without
 * changing the ids. Compiled once for each id width (width.h). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tokenize/bpe/width.h"
#include "tokenize/bpe/words.h"

/* ---- the definition ----
 *
 * This section applies the definition of byte-pair encoding (bpe.c) literally. The time is
 * quadratic in the number of bytes. */

/* Apply all merges to the n > 0 tokens of `ids`, in place. Return the number of tokens that remain.
 * merged[i] is the id that ids[i] and ids[i + 1] merge to; the last entry is always NO_PAIR. */
static size_t merge_all(const sgt_vocab *v, sgt_id *ids, sgt_id *merged, size_t n)
{
    for (;;) {
        size_t at = 0;
        for (size_t i = 1; i < n; i++)
            if (merged[i] < merged[at]) at = i;
        if (merged[at] == NO_PAIR) return n;
        ids[at] = merged[at];
        n--;
        memmove(ids + at + 1, ids + at + 2, (n - at - 1) * sizeof *ids);
        memmove(merged + at + 1, merged + at + 2, (n - at - 1) * sizeof *merged);
        merged[at] = at + 1 < n ? (sgt_id)sgt_pair(&v->pairs, ids[at], ids[at + 1]) : NO_PAIR;
        if (at > 0) merged[at - 1] = (sgt_id)sgt_pair(&v->pairs, ids[at - 1], ids[at]);
    }
}

size_t WIDTH(sgt_bpe_scan)(const sgt_vocab *v, const uint8_t *s, size_t n, void *room)
{
    const sgt_id *byte_pairs = v->byte_pairs;
    sgt_id *ids = room, merged[SGT_BPE_SCAN_MAX];
    for (size_t i = 0; i < n; i++) {
        ids[i] = v->byte_id[s[i]];
        merged[i] = i + 1 < n ? byte_pairs[s[i] | s[i + 1] << 8] : NO_PAIR;
    }
    return n ? merge_all(v, ids, merged, n) : 0;
}

/* Encode the n bytes at s by the definition of BPE. Unlike sgt_bpe_scan, start with one token per
 * character (begin_with_characters) where that gives the same ids; elsewhere, with one per byte.
 * Only used for 4-byte ids. */
static size_t scan_characters(const sgt_vocab *v, const uint8_t *s, size_t n, void *room)
{
    sgt_id *ids = room;
    sgt_id merged[SGT_BPE_SCAN_MAX];
    const size_t count = begin_with_characters(v, s, n, ids, merged, SGT_BPE_SCAN_MAX);
    merged[count - 1] = NO_PAIR;
    return merge_all(v, ids, merged, count);
}

/* ---- steps ----
 *
 * Encodes a long piece in linear time. Two adjacent tokens "fit" if encoding the bytes of these two
 * tokens alone gives the same two tokens. A sequence of tokens is the encoding of its bytes if and
 * only if every two adjacent tokens fit. (This assumes that each token is the encoding of its own
 * bytes, which is checked when a vocabulary is read.) The proof is in H. van Antwerpen, A. Neubeck,
 * "So many tokens, so little time: introducing a faster, more flexible byte-pair tokenizer"
 * (GitHub, 2024).
 *
 * The algorithm goes from left to right. It takes the longest token that fits next to the last
 * token. If no token fits, it replaces the last token by a shorter one. */

static uint32_t merged_by(const void *pairs, uint32_t left, uint32_t right)
{
    return sgt_pair(pairs, left, right);
}

/* Return 1 if BPE-encoding the joined bytes of the two tokens gives exactly these two tokens. */
static int fit(const sgt_vocab *v, uint32_t left, uint32_t right)
{
    return sgt_stay_apart((const uint32_t(*)[2])v->halves, merged_by, &v->pairs, left, right);
}

static size_t encode_by_steps(sgt_words *w, const uint8_t *s, size_t n, void *room)
{
    const sgt_vocab *v = w->v;
    sgt_id *ids = room;
    /* Loop invariant: the first `count` ids encode the first `at` bytes of s, and `fit` is 1 for
     * every two adjacent tokens. */
    size_t at = 0, count = 0, len = 0;
    sgt_vocab_need_trie(v);
    uint32_t token = n ? sgt_vocab_longest(v, s, n, &len) : 0;
    while (at < n) {
        const uint64_t after = w->place + at + len;
        if (w->marks[after % SGT_MARKS] != after && (!count || fit(v, ids[count - 1], token))) {
            ids[count++] = (sgt_id)token;
            at += len;
            if (at < n) token = sgt_vocab_longest(v, s + at, n - at, &len);
        } else if (len > 1) {
            token = sgt_vocab_longest(v, s + at, len - 1, &len);
        } else {
            /* No token at this offset passes `fit`: mark it as a dead end, so that it is not tried
             * again. A later mark may overwrite this one. In this case, the offset is tried again,
             * which takes time but gives the same ids. */
            assert(count > 0);
            w->marks[(w->place + at) % SGT_MARKS] = w->place + at;
            token = ids[--count];
            len = sgt_vocab_length(v, token);
            at -= len;
        }
    }
    w->place += n + 1;
    return count;
}

/* ---- long words ---- */

/* Encode a word in sections. The word is cut between any two adjacent bytes that no token contains
 * next to each other, and each section is encoded separately. */
static size_t encode_parts(sgt_words *w, const uint8_t *s, size_t n, sgt_id *ids)
{
    size_t count = 0;
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && sgt_vocab_joins_at(w->v, s + to); to++) continue;
        count += (sizeof *ids == 4 ? scan_characters : WIDTH(sgt_bpe_scan))(w->v, s + from,
                                                                            to - from, ids + count);
    }
    return count;
}

/* Encode a word without looking it up in the cache of long words and without storing its ids
 * there. */
static size_t encode_anew(sgt_words *w, const uint8_t *s, size_t n, sgt_id *ids)
{
    if (take_whole(w->v, s, n, ids)) return 1;
    const size_t count =
        n > SGT_BPE_SCAN_MAX ? encode_by_steps(w, s, n, ids) : encode_parts(w, s, n, ids);
    publish(w->v, ids, count);
    return count;
}

/* A long word in the cache. If the cache's memory is full, new words are not stored, but their
 * sizes are added up. Once they add up to a quarter of that memory, the cache is emptied. If it
 * were emptied at once, encoding a text slightly larger than the cache again would find few of its
 * words there. */
typedef struct long_word {
    uint16_t count, n; /* count: number of ids; n: length of the word in bytes */
    /* Number of ids in the upper 4 bits, or 0 if there are more than 15. This makes the first 8
     * bytes of a long_word the same as those of a word_found (words.c). */
    uint32_t found;
    sgt_id ids[]; /* the word's bytes follow the ids */
} long_word;

static uint32_t *long_set(const sgt_words *w, uint64_t hash)
{
    return w->long_sets[(hash >> 32) % SGT_LONG_SETS(sizeof(sgt_id))];
}

const void *WIDTH(sgt_find_long)(const sgt_words *w, const uint8_t *s, size_t n)
{
    if (n > SGT_BPE_SCAN_MAX) return NULL;
    const uint64_t hash = XXH3_64bits(s, n);
    const uint32_t *set = long_set(w, hash);
    for (int i = 0; i < 4; i++) {
        const long_word *at = (const long_word *)w->long_words[set[i] % (1u << SGT_UNIT_BITS)];
        if (!((set[i] ^ (uint32_t)hash) >> SGT_UNIT_BITS) && at->n == n &&
            !memcmp(at->ids + at->count, s, n))
            return at;
    }
    return NULL;
}

void WIDTH(sgt_keep_long)(sgt_words *w, const uint8_t *s, size_t n, const void *ids, size_t count)
{
    const uint64_t hash = XXH3_64bits(s, n);
    const size_t room = SGT_LONG_UNITS(sizeof(sgt_id)),
                 units = (sizeof(long_word) + count * sizeof(sgt_id) + n) / 16 + 1;
    uint32_t *set = long_set(w, hash);
    if (w->long_used + units > room + room / 4) {
        memset(w->long_sets, 0, sizeof *w->long_sets * SGT_LONG_SETS(sizeof(sgt_id)));
        w->long_used = 1;
    }
    const size_t unit = w->long_used;
    if ((w->long_used += units) > room) return;
    long_word *at = (long_word *)w->long_words[unit];
    *at = (long_word){(uint16_t)count, (uint16_t)n, count < 16 ? (uint32_t)count << 28 : 0};
    memcpy(mempcpy(at->ids, ids, count * sizeof(sgt_id)), s, n);
    memmove(set + 1, set, 3 * sizeof *set);
    set[0] = ((uint32_t)hash >> SGT_UNIT_BITS << SGT_UNIT_BITS) | (uint32_t)unit;
}

size_t WIDTH(sgt_encode_long)(sgt_words *w, const uint8_t *s, size_t n, void *ids)
{
    const long_word *known = WIDTH(sgt_find_long)(w, s, n);
    if (known) memcpy(ids, known->ids, known->count * sizeof(sgt_id));
    if (known) return known->count;
    const size_t count = encode_anew(w, s, n, ids);
    if (n <= SGT_BPE_SCAN_MAX) WIDTH(sgt_keep_long)(w, s, n, ids, count);
    return count;
}

/* ---- text ---- */

/* Encode the words at the end of a text that start fewer than 16 bytes before its end. They are
 * copied to a larger buffer first, because the encoder reads 16 bytes from each word's start. */
static size_t encode_tail(sgt_encoder *e, const uint8_t *s, const uint32_t *ends, size_t count,
                          sgt_id *ids)
{
    uint8_t text[32] = {0};
    sgt_id out[32];
    memcpy(text, s, ends[count - 1]);
    size_t n = e->words.encode(&e->words, text, ends, count, out);
    memcpy(ids, out, n * sizeof *ids);
    return n;
}

/* Encode `count` words that start at s. `left` is the number of bytes that may be read from s on,
 * and also the number of ids that fit into `ids`. */
static size_t encode_words(sgt_encoder *e, const uint8_t *s, const uint32_t *ends, size_t count,
                           size_t left, sgt_id *ids)
{
    size_t safe = count;
    while (safe && (safe > 1 ? (size_t)ends[safe - 2] : 0) + 16 > left) safe--;
    size_t n = safe ? e->words.encode(&e->words, s, ends, safe, ids) : 0;
    if (safe == count) return n;
    uint32_t tail[16];
    size_t from = safe ? ends[safe - 1] : 0;
    for (size_t i = safe; i < count; i++) tail[i - safe] = ends[i] - (uint32_t)from;
    return n + encode_tail(e, s + from, tail, count - safe, ids + n);
}

/* Split the n bytes at `text` into pieces and encode these. Return the number of ids. If the
 * pattern fails, return SGT_PATTERN_FAILED and set e->failure to the cause. */
static size_t encode_text(sgt_encoder *e, const void *text, size_t n, void *room)
{
    sgt_id *ids = room;
    const uint8_t *s = text;
    sgt_splitter sp = e->pattern ? sgt_pattern_splitter(e->pattern, text, n, &e->failure)
                                 : sgt_splitter_by(&e->words.v->rule, text, n);
    uint32_t ends[SGT_WORDS];
    size_t words, from = 0, count = 0;
    if (!e->words.v->wholes) sp.cuts = &e->words.v->cuts;
    for (; (words = sgt_split(&sp, ends, SGT_WORDS)) > 0; from = sp.at) {
        if (ends[0] == UINT32_MAX)
            count += WIDTH(sgt_encode_long)(&e->words, s + from, sp.at - from, ids + count);
        else count += encode_words(e, s + from, ends, words, n - from, ids + count);
    }
    return sp.at < n ? SGT_PATTERN_FAILED : count;
}

/* ---- cuts inside a long piece (bpe.h) ---- */

/* Number of bytes at the end of a piece in which no cut is tried, because a cut is checked against
 * the text that follows it. In a piece of less than four times this length, the last quarter is
 * used instead. */
#define AHEAD ((size_t)16 << 10)
#define TRIES 24 /* maximum number of token borders that find_border tests in one piece */

typedef struct extent {
    sgt_words *words;
    const sgt_vocab *v;
    const uint8_t *s; /* start of the piece */
    size_t from;      /* bytes of text before the piece */
    /* length in bytes of the part of the piece that is in memory; the piece itself may be longer */
    size_t n;
    size_t longest; /* bytes of the longest token */
    sgt_id *ids;    /* array of n elements, for the ids of the piece */
} extent;

static size_t longest_token(const sgt_vocab *v)
{
    size_t most = 1;
    for (uint32_t id = 0; id < v->made; id++)
        if (sgt_vocab_length(v, id) > most) most = sgt_vocab_length(v, id);
    return most;
}

/* Return the length of a prefix of the n bytes at `text`, a few bytes shorter than n, that ends
 * with a complete character whatever text follows these n bytes. */
static size_t in_sight(const uint8_t *text, size_t n)
{
    size_t m = n > 4 ? n - 4 : 0, low = m > 3 ? m - 3 : 0;
    while (m > low && (text[m] & 0xC0) == 0x80) m--;
    /* If text[n - 7 ... n - 4] are all continuation bytes, the last of them belongs to no lead
     * byte, which has at most three, and counts as a separate character. */
    return (text[m] & 0xC0) == 0x80 && n > 4 ? n - 4 : m;
}

/* Find the longest piece (pre-token) in the n bytes at `text`. Return its length, and set *from to
 * its start. */
static size_t longest_piece(const sgt_rule *r, const uint8_t *text, size_t n, size_t *from)
{
    sgt_splitter sp = sgt_splitter_by(r, text, n);
    uint32_t ends[320];
    size_t most = 0;
    for (size_t start = 0, count; (count = sgt_split(&sp, ends, 320)) > 0; start = sp.at)
        for (size_t i = 0, at = start; i < count; i++) {
            size_t end = ends[i] == UINT32_MAX ? sp.at : start + ends[i];
            if (end - at > most) most = end - at, *from = at;
            at = end;
        }
    return most;
}

/* Return 1 if offset b is a border between two tokens of the encoded piece, whatever text follows
 * s[0 ... t); else 0. `last` is the token that ends at b. As the proof in bpe.h requires, the bytes
 * from b to each offset at which a token may end near t are encoded. `fit` must be 1 for `last` and
 * the first token of each result. */
static int stands(const extent *x, size_t b, uint32_t last, size_t t)
{
    uint32_t first = SGT_NO_TOKEN;
    /* x->ids holds the tokens before b in at most b entries, so the entries from index b on are
     * free for the tokens after b */
    sgt_id *ids = x->ids + b;
    for (size_t a = t - x->longest + 1; a <= t; a++) {
        if (!encode_by_steps(x->words, x->s + b, a - b, ids)) return 0;
        if (ids[0] != first && !fit(x->v, last, ids[0])) return 0;
        first = ids[0];
    }
    return 1;
}

/* Search backwards from offset `until` for a border between two tokens that can be a cut. Return
 * its offset, or 0 if none is found. The split rule must allow a cut there, and the border must
 * stay a border whatever text follows. */
static size_t find_border(const extent *x, size_t until)
{
    size_t count = encode_by_steps(x->words, x->s, until, x->ids), b = until;
    for (int tries = 0; count > 1 && tries < TRIES;) {
        b -= sgt_vocab_length(x->v, x->ids[--count]);
        if (until - b < 2 * x->longest || !sgt_rule_within(&x->v->rule, x->s, x->n, b, x->from))
            continue;
        for (size_t ahead = 2 * x->longest; b + ahead <= x->n; ahead *= 8)
            if (stands(x, b, x->ids[count - 1], b + ahead)) return b;
        tries++;
    }
    return 0;
}

static size_t extent_cut(sgt_encoder *e, const uint8_t *text, size_t n)
{
    const sgt_vocab *v = e->words.v;
    extent x = {.words = &e->words, .v = v, .longest = longest_token(v)};
    size_t ahead;
    x.n = longest_piece(&v->rule, text, in_sight(text, n), &x.from);
    x.s = text + x.from;
    /* Leave out the piece's last few bytes. If the piece is white space, text that follows it may
     * move its last character to the next piece. */
    if (x.n > 4) x.n = in_sight(x.s, x.n);
    ahead = AHEAD < x.n / 4 ? AHEAD : x.n / 4;
    if (x.longest > SGT_EXTENT_TOKEN || ahead < 2 * x.longest) return 0;
    /* If memory runs out, return 0 as if no cut was found. The caller then reads more text, and
     * reports an error if it runs out of memory, too. */
    if (!(x.ids = malloc(x.n * sizeof *x.ids))) return 0;
    size_t b = find_border(&x, x.n - ahead);
    free(x.ids);
    return b ? x.from + b : 0;
}

const sgt_bpe WIDTH(sgt_bpe) = {encode_by_steps, encode_text, extent_cut};
