/* pieces.c: encodes pieces (pre-tokens), and finds offsets at which a long piece can be cut without
 * changing the ids. The file is compiled once for each width of an id (width.h). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tokenize/bpe/width.h"
#include "tokenize/bpe/words.h"

/* ---- the definition ----
 *
 * This section applies the definition of byte-pair encoding (see bpe.c) step by step. The time is
 * quadratic in the number of bytes. */

/* Apply merges to the n > 0 tokens whose ids are in `ids`, in place, until no pair can be merged.
 * Return the number of tokens that remain. merged[i] is the id that ids[i] and ids[i + 1] merge to,
 * or NO_PAIR if they do not merge. For the last token, merged[i] is NO_PAIR. */
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

/* Encode the n bytes at s by applying the definition of BPE. Unlike sgt_bpe_scan_32, which starts
 * with one token per byte, start with one token per character wherever this gives the same ids
 * (begin_with_characters). This function is only used for 4-byte ids. */
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
 * This section encodes a long piece (pre-token) in linear time. Two adjacent tokens "fit" if
 * encoding the joined bytes of these two tokens gives the same two tokens. A sequence of tokens is
 * the BPE encoding of the joined bytes of the tokens if and only if every two adjacent tokens fit.
 * (This assumes that the encoding of each token's bytes is that token, which is checked when a
 * vocabulary is read.) The proof is in H. van Antwerpen, A. Neubeck, "So many tokens, so little
 * time: introducing a faster, more flexible byte-pair tokenizer" (GitHub, 2024).
 *
 * The algorithm goes through the piece from left to right. It appends the longest token that
 * matches the next bytes and fits next to the token appended before. If no such token fits, it
 * removes the token appended before, and tries a shorter token in its place. */

static uint32_t merged_by(const void *pairs, uint32_t left, uint32_t right)
{
    return sgt_pair(pairs, left, right);
}

/* Return 1 if encoding the joined bytes of the tokens `left` and `right` with BPE gives these two
 * tokens; otherwise 0. */
static int fit(const sgt_vocab *v, uint32_t left, uint32_t right)
{
    return sgt_stay_apart((const uint32_t(*)[2])v->halves, merged_by, &v->pairs, left, right);
}

static size_t encode_by_steps(sgt_words *w, const uint8_t *s, size_t n, void *room)
{
    const sgt_vocab *v = w->v;
    sgt_id *ids = room;
    /* Loop invariant: the first `count` elements of `ids` are tokens whose joined bytes are the
     * first `at` bytes at s, and `fit` returns 1 for every two adjacent tokens. */
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
            /* No token that begins at offset `at` fits: mark the offset as a dead end, so that it
             * is not tried again, and go back by one token. If a later mark overwrites this mark,
             * the offset may be tried again, which takes time but does not change the ids. */
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

/* Encode the n bytes at s, a word of at most SGT_BPE_SCAN_MAX bytes, in sections. The word is cut
 * between any two adjacent bytes that no token contains next to each other, because no token can
 * cross such a cut. Each section is encoded separately. */
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

/* Encode the n bytes at s, a word. The cache of long words is neither searched nor changed. */
static size_t encode_anew(sgt_words *w, const uint8_t *s, size_t n, sgt_id *ids)
{
    if (take_whole(w->v, s, n, ids)) return 1;
    const size_t count =
        n > SGT_BPE_SCAN_MAX ? encode_by_steps(w, s, n, ids) : encode_parts(w, s, n, ids);
    publish(w->v, ids, count);
    return count;
}

/* A word in the cache of long words. When the memory of the cache is full, new words are not
 * stored, but their sizes are added up. When the sum exceeds a quarter of that memory, the cache is
 * emptied. The cache is not emptied as soon as it is full, because if a text whose words take
 * slightly more than the cache is encoded repeatedly, few words would then be found. */
typedef struct long_word {
    uint16_t count, n; /* number of ids, and length of the word in bytes */
    /* In the upper 4 bits, the number of ids, or 0 if there are more than 15. As a result, a
     * long_word has the same layout as a word_found (words.c): 8 bytes that end with these 4 bits,
     * then the ids. */
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

/* Encode the last words of a text: those that start less than 16 bytes before the end of the text.
 * The words are first copied to a larger buffer, because the encoder reads 16 bytes from the start
 * of each word on. */
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

/* Encode `count` consecutive words, of which the first starts at s, into `ids`. Return the number
 * of ids. `left` is the number of bytes that are readable at s, and also the number of ids for
 * which `ids` has room. */
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

/* Split the n bytes at `text` into pieces (pre-tokens), and encode the pieces. Return the number of
 * ids. If matching the PCRE2 split pattern fails, set e->failure to the error, and return
 * SGT_PATTERN_FAILED. */
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

/* ---- cuts inside a long piece ---- */

/* Number of bytes at the end of a piece (pre-token) in which no cut is searched for, because a cut
 * is valid only if text of some length follows it. If the piece is shorter than four times this
 * number, no cut is searched for in the last quarter of the piece. */
#define AHEAD ((size_t)16 << 10)
#define TRIES 24 /* maximum number of borders between tokens that find_border tests in a piece */

typedef struct extent {
    sgt_words *words;
    const sgt_vocab *v;
    const uint8_t *s; /* start of the piece */
    size_t from;      /* bytes of text before the piece */
    /* number of bytes of the piece that are in memory; more bytes of the piece may follow in the
     * input */
    size_t n;
    size_t longest; /* bytes of the longest token */
    sgt_id *ids;    /* array with room for the ids of n bytes (n elements) */
} extent;

static size_t longest_token(const sgt_vocab *v)
{
    size_t most = 1;
    for (uint32_t id = 0; id < v->made; id++)
        if (sgt_vocab_length(v, id) > most) most = sgt_vocab_length(v, id);
    return most;
}

/* Return the length of a prefix of the n bytes at `text`. The prefix is a few bytes shorter than n,
 * and ends at the end of a character, whatever bytes follow the n bytes. */
static size_t in_sight(const uint8_t *text, size_t n)
{
    size_t m = n > 4 ? n - 4 : 0, low = m > 3 ? m - 3 : 0;
    while (m > low && (text[m] & 0xC0) == 0x80) m--;
    /* If the four bytes text[n - 7] to text[n - 4] are all UTF-8 continuation bytes, the last of
     * these bytes cannot belong to a lead byte, because at most three continuation bytes follow a
     * lead byte. It is therefore ill-formed, counts as a separate character, and the prefix may end
     * before it. */
    return (text[m] & 0xC0) == 0x80 && n > 4 ? n - 4 : m;
}

/* Find the longest piece (pre-token) in the n bytes at `text`. Return its length in bytes, and set
 * *from to its offset from `text`. */
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

/* Return 1 if offset b of the piece x->s is a border between two tokens, whatever text follows the
 * first t bytes of the piece; otherwise 0. `last` is the token that ends at b. As the proof in
 * bpe.h requires, the function encodes the bytes from b up to each offset near t at which a token
 * may end, and checks that `fit` returns 1 for `last` and the first token of each of these
 * encodings. */
static int stands(const extent *x, size_t b, uint32_t last, size_t t)
{
    uint32_t first = SGT_NO_TOKEN;
    /* x->ids holds the tokens of the b bytes before b. These are at most b tokens, so the elements
     * from index b on are free for the tokens after b. */
    sgt_id *ids = x->ids + b;
    for (size_t a = t - x->longest + 1; a <= t; a++) {
        if (!encode_by_steps(x->words, x->s + b, a - b, ids)) return 0;
        if (ids[0] != first && !fit(x->v, last, ids[0])) return 0;
        first = ids[0];
    }
    return 1;
}

/* Search the piece x->s backwards from offset `until` for an offset at which the text can be cut.
 * This must be a border between two tokens, whatever text follows, and the split rule must allow a
 * cut there. Return the offset, or 0 if none is found. */
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
    /* Ignore the last few bytes of the piece. If the piece is white space, the split rule may
     * assign its last character to the next piece, depending on the text that follows. */
    if (x.n > 4) x.n = in_sight(x.s, x.n);
    ahead = AHEAD < x.n / 4 ? AHEAD : x.n / 4;
    if (x.longest > SGT_EXTENT_TOKEN || ahead < 2 * x.longest) return 0;
    /* If no memory is available, return 0, as if there were no cut. The caller then reads more text
     * into memory, and reports an error if it runs out of memory, too. */
    if (!(x.ids = malloc(x.n * sizeof *x.ids))) return 0;
    size_t b = find_border(&x, x.n - ahead);
    free(x.ids);
    return b ? x.from + b : 0;
}

const sgt_bpe WIDTH(sgt_bpe) = {encode_by_steps, encode_text, extent_cut};
