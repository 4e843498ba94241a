/* words.c: encodes a batch of words (pre-tokens, see words.h). The file is compiled once for each
 * supported instruction set and each id width (width.h).
 *
 * A batch is encoded in four passes. If all words are short and in the table of encoded words, no
 * pass executes a branch that depends on the text:
 *   fill   Compute the key, the hash and the table line (a bucket of two entries) of each word;
 *          prefetch the line.
 *   look   Compare the key of each word with the first entry of the line. If they are equal, store
 *          a pointer to the word's ids; otherwise, add the word to the list of missing words.
 *   merge  Encode each distinct missing word, four words at a time, because the merges within a
 *          word depend on each other and cannot overlap.
 *   emit   For each word, copy 16 bytes of ids to the output, and advance the output pointer by the
 *          number of ids.
 * The missing words are stored in the table only after the pass "emit", because storing them moves
 * entries to which earlier passes have stored pointers.
 *
 * Measured choices, in ns per piece (pre-token) or word, without the time of the splitter (one
 * thread, AVX-512, AMD EPYC Zen 4, 2026-11-21; "scripts": text of many scripts):
 *   - pieces are found by the splitter's vector code instead of byte by byte: English 18.8 to 12.8,
 *     scripts 25.4 to 16.3
 *   - a merge takes two look-ups of pairs, and has no branches otherwise: a missing word takes 69
 *     instead of 100
 *   - four words are merged at a time: this is faster only because a merge has no branches (when it
 *     had branches, the time rose from 19 to 21)
 *   - pairs are looked up with a perfect hash instead of open addressing: English 19.2 to 18.6,
 *     code 9.6 to 9.2, scripts 25.0 to 25.7
 *   - words of 63 to 126 bytes are cached, too: on code, the pass "emit" drops from 2.5 to 1.8
 *   - the size of a batch makes no difference: with 160, 256, 384 and 575 words, English takes
 *     18.7, 18.4, 19.3 and 18.9
 *   - branches choose between the two parts of the table, because they are predicted well: with bit
 *     masks instead, "fill" on code rises from 2.8 to 3.4, and "look" from 1.5 to 2.1
 *   - Each encoder has a separate table. A table shared by all threads would gain at most 8 % on
 *     English, 6 % on code and 7 % on scripts. (This was measured on one thread, with one encoder
 *     compared to two that take turns.) But without a lock, entries of 32 bytes can be shared only
 *     if they are never replaced, which costs 7 %, 8 % and 12 %. Passing new words from thread to
 *     thread would not pay either: four in five never occur in the other thread, and storing a word
 *     takes a fifth of the time of merging it.
 * Later changes, which together made the code 1.12, 1.15 and 1.13 times as fast on English, code
 * and text of many scripts (70 MB each, `sgt-bench tokenize --threads 1 --turns 3 FILE`, medians of
 * 11 alternating runs of the old and the new build, Zen 4, 2026-11-26):
 *   - words with more ids than a table entry can hold, such as runs of spaces and many words that
 *     are not ASCII, are cached separately (long words; see words.h)
 *   - a missing word that occurs twice in a batch is merged once
 *   - the table in which pairs are looked up is in a huge page
 *   - the key of a short word is computed with one load and without a minimum or a conditional move
 *   - `look` loads the second half of a key only if the word is longer than 7 bytes
 *   - the number of ids of a word is read from memory next to the ids, and is not stored elsewhere
 *   - long words (words.h) are looked up in a cache before they are merged, and each takes only as
 *     much memory as it needs: with 4-byte ids, a cache of 16 MiB holds nearly all long words of 24
 *     MB of text of many scripts (2026-11-30)
 *
 * These changes were tried, but made the code slower: comparing both entries of a line at once with
 * vector instructions; merging eight words at a time; separate tables for the first and the second
 * entries; running `look` in the loop of `fill`, 48 words later.
 *
 * With twice as many lines in the table (SGT_WORD_LINES 18 instead of 17), the code was 1.02 times
 * as fast on 685 MB of English and 1.00 times as fast on code (one thread, Zen 4, 2026-11-25,
 * `sgt-bench tokenize --threads 1`), but took 12 MiB more per thread. The larger table is not used,
 * because hostile text could then make two threads take more than 100 MiB (tests/cli/hostile.sh).
 *
 * The table is not filled with the vocabulary's tokens in advance, because only 8 to 14 % of the
 * distinct words of a text are tokens. */
#include <string.h>

#include "tokenize/bpe/width.h"
#include "tokenize/bpe/words.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#ifndef SGT_NAME
#define SGT_NAME(f) f##_plain
#endif
#define INLINE static inline __attribute__((always_inline))
#define COUNT_SHIFT 60
#define KEY_MASK (((uint64_t)1 << COUNT_SHIFT) - 1)
#define NEVER ((sgt_word_key){~(uint64_t)0, 1})

/* The encoding of a word. The upper four bits of `count` are the number of ids, or 0 if there are
 * more ids than `ids` can hold. The lower bits of `count` are undefined: pointers to word_found may
 * also point into a table entry, where these bits hold bytes of the word's key. */
typedef struct word_found {
    uint64_t count;
    sgt_id ids[16];
} word_found;

static inline uint64_t load64(const void *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Return the lower n bytes of x (n <= 8), with all higher bytes set to 0. */
static inline uint64_t low_bytes(uint64_t x, size_t n)
{
#if defined(__BMI2__)
    return _bzhi_u64(x, (unsigned)(8 * n));
#else
    return n < 8 ? x & (((uint64_t)1 << 8 * n) - 1) : x;
#endif
}

INLINE sgt_word_key make_key(const uint8_t *s, size_t n)
{
    const uint64_t length = (uint64_t)n << 56;
    if (n <= SGT_WORD_SHORT) return (sgt_word_key){low_bytes(load64(s), n) | length, 0};
    if (n > SGT_WORD_BYTES) return NEVER;
    return (sgt_word_key){load64(s), low_bytes(load64(s + 8), n - 8) | length};
}

INLINE uint32_t place_of(const sgt_word_key *k)
{
    uint64_t h = k->low * 0x9E3779B97F4A7C15u ^ k->high * 0xD6E8FEB86659FD93u;
    uint32_t line = (uint32_t)(h >> (64 - SGT_WORD_LINES));
    return k->high ? (SGT_WORD_SHORT_LINE << SGT_WORD_LINES) + line * SGT_WORD_LONG_LINE
                   : line * SGT_WORD_SHORT_LINE;
}

INLINE void fill(sgt_words *w, const uint8_t *s, const uint32_t *ends, size_t count)
{
    uint32_t from = 0;
    for (size_t i = 0; i < count; i++) {
        w->keys[i] = make_key(s + from, ends[i] - from);
        w->places[i] = place_of(&w->keys[i]);
        __builtin_prefetch(w->table + w->places[i]);
        from = ends[i];
    }
}

/* Compare the key of each word of the batch with the first entry of the word's line in the table.
 * Store the indices of the words whose keys differ from that entry in w->missing, and return the
 * number of these words. */
INLINE size_t look(sgt_words *w, size_t count)
{
    size_t missing = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *p = w->table + w->places[i];
        const sgt_word_key *k = &w->keys[i];
        uint64_t a = load64(p), differ = a ^ k->low;
        if (k->high) {
            p += 8;
            a = load64(p);
            differ |= (a ^ k->high) & KEY_MASK;
        } else {
            differ &= KEY_MASK;
        }
        w->found[i] = p;
        w->missing[missing] = (uint16_t)i;
        missing += differ != 0;
    }
    return missing;
}

/* ---- merging ----
 *
 * Encodes words of up to 15 bytes, LANES words at a time. In a word, each merge depends on the
 * merge before: find the pair that merges to the lowest id, then look up the new token's pairs with
 * its neighbours. This takes about 50 cycles. To hide this latency, several words are merged in an
 * interleaved way, without a branch that depends on the bytes of the words.
 *
 * Within a word, byte i (counted from 0) has position i + 1. Positions 0 and n + 1 hold no token,
 * but mark the beginning and the end of the word.
 *   ids[p]    id of the token that begins at position p
 *   ranks[p]  id that this token and its right neighbour merge to, or NO_PAIR if they do not
 *             merge; the pair with the lowest rank is merged next
 *   alive     bit mask of the positions at which a token begins, plus positions 0 and n + 1
 * If the token at position p is merged with its right neighbour at position q, the new token is
 * written to ids[p], and bit q of `alive` is cleared.
 *
 * Sixteen ranks of 2 bytes fit into one register, and one instruction finds the lowest of eight.
 * Ranks of 4 bytes are stored as rank << 4 | position, so that the lowest value also contains the
 * position of the lowest rank. */

/* LANES: number of words that are merged at a time. LONG_WORDS: 1 if merge_lanes can also encode
 * words that are too long for the table of encoded words; otherwise 0. */
#if defined(__AVX2__)
enum { LANES = 4, LONG_WORDS = sizeof(sgt_id) == 4 };
#else
enum { LANES = 1, LONG_WORDS = 0 };
#endif

/* Return 1 if the word with key *k is ASCII and short enough for the table of encoded words;
 * otherwise 0. (A word that is too long has the key NEVER, which has bytes that are not ASCII.) */
INLINE int is_ascii(const sgt_word_key *k) { return !((k->low | k->high) & 0x8080808080808080u); }

#if defined(__AVX2__)

#if !defined(SGT_FOR_wide)
typedef __m256i ranks16;
#elif defined(__AVX512F__)
typedef __m512i ranks16;
#else
typedef struct ranks16 {
    __m256i low, high; /* ranks at positions 0 to 7, and ranks at positions 8 to 15 */
} ranks16;
#endif

typedef struct merging {
    sgt_id ids[LANES][24];
    uint32_t alive[LANES];
    ranks16 ranks[LANES];
} merging;

#if !defined(SGT_FOR_wide)

/* Load the 16 ranks of a word (the ids that its pairs of adjacent tokens merge to). The elements of
 * `ranks` after the word's last pair are undefined. They are set to NO_PAIR by an OR with `beyond`,
 * which is NO_PAIR (all bits set) at these positions and 0 at the positions before. */
INLINE ranks16 load_ranks(const sgt_id *ranks, const sgt_id *beyond)
{
    __m256i r = _mm256_loadu_si256((const __m256i *)(const void *)ranks);
    return _mm256_or_si256(r, _mm256_loadu_si256((const __m256i *)(const void *)beyond));
}

/* Return a copy of the vector v in which the element at index i is x. `bit` must be 1 << i: the
 * function uses either `bit` or `i`, depending on the instruction set. */
INLINE ranks16 set_lane(ranks16 v, uint32_t bit, uint32_t i, uint32_t x)
{
#if defined(__AVX512BW__)
    (void)i;
    return _mm256_mask_set1_epi16(v, (__mmask16)bit, (short)x);
#else
    static const uint16_t one[32] = {[16] = 0xFFFF};
    (void)bit;
    __m256i here = _mm256_loadu_si256((const __m256i *)(const void *)(one + 16 - i));
    return _mm256_blendv_epi8(v, _mm256_set1_epi16((short)x), here);
#endif
}

/* Set *best to the lowest of the ranks r, *at to the first position with this rank, and *bit to 1
 * << *at. Return 1 if *at is 0, which means that no pair can be merged; otherwise 0. */
INLINE uint32_t find_lowest(ranks16 r, uint32_t *best, uint32_t *bit, uint32_t *at)
{
    __m128i least =
        _mm_minpos_epu16(_mm_min_epu16(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1)));
    __m256i all = _mm256_broadcastw_epi16(least);
    *best = (uint32_t)_mm_extract_epi16(least, 0);
#if defined(__AVX512BW__)
    uint32_t equal = _mm256_cmpeq_epi16_mask(r, all);
    *at = _tzcnt_u32(equal);
    *bit = equal & -equal;
#else
    uint32_t equal = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi16(r, all));
    *at = _tzcnt_u32(equal) / 2;
    *bit = 1u << *at;
#endif
    return equal & 1;
}

#else

INLINE __m256i load8(const sgt_id *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

INLINE ranks16 load_ranks(const sgt_id *ranks, const sgt_id *beyond)
{
    static const sgt_id positions[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    __m256i r[2];
    for (size_t i = 0; i < 2; i++)
        r[i] = _mm256_or_si256(
            _mm256_slli_epi32(_mm256_or_si256(load8(ranks + 8 * i), load8(beyond + 8 * i)), 4),
            load8(positions + 8 * i));
#if defined(__AVX512F__)
    return _mm512_inserti64x4(_mm512_castsi256_si512(r[0]), r[1], 1);
#else
    return (ranks16){r[0], r[1]};
#endif
}

INLINE ranks16 set_lane(ranks16 v, uint32_t bit, uint32_t i, uint32_t x)
{
    x = x << 4 | i;
#if defined(__AVX512F__)
    return _mm512_mask_set1_epi32(v, (__mmask16)bit, (int)x);
#else
    static const sgt_id one[32] = {[16] = UINT32_MAX};
    const __m256i all = _mm256_set1_epi32((int)x);
    (void)bit;
    return (ranks16){_mm256_blendv_epi8(v.low, all, load8(one + 16 - i)),
                     _mm256_blendv_epi8(v.high, all, load8(one + 24 - i))};
#endif
}

INLINE uint32_t find_lowest(ranks16 r, uint32_t *best, uint32_t *bit, uint32_t *at)
{
#if defined(__AVX512F__)
    __m256i r8 = _mm256_min_epu32(_mm512_castsi512_si256(r), _mm512_extracti64x4_epi64(r, 1));
#else
    __m256i r8 = _mm256_min_epu32(r.low, r.high);
#endif
    __m128i r4 = _mm_min_epu32(_mm256_castsi256_si128(r8), _mm256_extracti128_si256(r8, 1));
    r4 = _mm_min_epu32(r4, _mm_shuffle_epi32(r4, 0x4E));
    const uint32_t least =
        (uint32_t)_mm_cvtsi128_si32(_mm_min_epu32(r4, _mm_shuffle_epi32(r4, 0xB1)));
    *best = least >> 4;
    *at = least & 15;
    *bit = 1u << *at;
    return *at == 0;
}

#endif

/* Begin merging word j (an index from 0 to LANES - 1). The n initial tokens of the word are in
 * g->ids[j][1 ... n]. For each i from 1 to n - 1, ranks[i] is the id that the tokens i and i + 1
 * merge to. */
INLINE void merge_begin(merging *g, int j, sgt_id *ranks, size_t n)
{
#define NO8 NO_PAIR, NO_PAIR, NO_PAIR, NO_PAIR, NO_PAIR, NO_PAIR, NO_PAIR, NO_PAIR
    static const sgt_id beyond[48] = {0, 0, 0, 0, 0, 0, 0,   0,   0,   0,
                                      0, 0, 0, 0, 0, 0, NO8, NO8, NO8, NO8};
#undef NO8
    g->ids[j][0] = NO_PAIR;
    g->ids[j][n + 1] = NO_ID;
    ranks[0] = NO_PAIR;
    g->alive[j] = (uint32_t)((4u << n) - 1);
    g->ranks[j] = load_ranks(ranks, beyond + 16 - n);
}

/* Begin merging word j, the n bytes at s with the key *k. If LONG_WORDS is 1 and the word is not
 * ASCII, begin with one token per character where possible (begin_with_characters); otherwise,
 * begin with one token per byte. If there would be more than 15 tokens, begin with none:
 * merge_lanes then reports 0 ids, and its caller encodes the word in another way. */
INLINE void merge_start(merging *g, int j, const sgt_vocab *v, const sgt_word_key *k,
                        const uint8_t *s, size_t n)
{
    const sgt_id *byte_pairs = v->byte_pairs;
    uint8_t bytes[16];
    sgt_id ranks[16];
    memcpy(bytes, k, 16);
    if (LONG_WORDS && !is_ascii(k)) {
        n = begin_with_characters(v, s, n, g->ids[j] + 1, ranks + 1, 15);
        merge_begin(g, j, ranks, n);
        return;
    }
#pragma GCC unroll 15
    for (int i = 0; i < 15; i++) {
        uint16_t pair;
        memcpy(&pair, bytes + i, 2);
        g->ids[j][i + 1] = v->byte_id[bytes[i]];
        ranks[i + 1] = byte_pairs[pair];
    }
    merge_begin(g, j, ranks, n);
}

/* Do the next merge in word j, and return 0. If no pair of word j can be merged, leave the tokens
 * unchanged, and return 1. (In this case, find_lowest has found position 0, whose rank is always
 * NO_PAIR.) */
INLINE uint32_t merge_step(merging *g, int j, const sgt_vocab *v)
{
    ranks16 r = g->ranks[j];
    uint32_t best, bit, at, alive = g->alive[j];
    const uint32_t none = find_lowest(r, &best, &bit, &at);
    uint32_t after = alive & -(2 * bit), gone = after & -after,
             next = _tzcnt_u32(after & (after - 1));
    uint32_t before = 31 - _lzcnt_u32((alive & (bit - 1)) | 1);
    /* if `after` has fewer than two bits set, `next` is 32, an index beyond the end of ids[]:
     * change it to 0 */
    if (LONG_WORDS) next &= 31;
    sgt_id *ids = g->ids[j];
    ids[at] = (sgt_id)best;
    g->alive[j] = alive ^ (gone & (none - 1));
    uint32_t right = sgt_pair(&v->pairs, best, ids[next]),
             left = sgt_pair(&v->pairs, ids[before], best);
    r = set_lane(r, gone, _tzcnt_u32(gone), NO_PAIR);
    r = set_lane(r, bit, at, right);
    g->ranks[j] = set_lane(r, 1u << before, before, left);
    return none;
}

INLINE void merge_end(const merging *g, int j, sgt_id *ids)
{
    const sgt_id *from = g->ids[j] + 1;
    for (uint32_t tokens = g->alive[j] >> 1; tokens & (tokens - 1); tokens &= tokens - 1)
        /* each set bit of `tokens` is the position of a token, except the highest set bit, which
         * marks the end of the word */
        *ids++ = from[_tzcnt_u32(tokens)];
}

/* Encode LANES words. Word j has the key keys[j] and consists of the n[j] bytes at s[j]. Write the
 * ids of word j to out[j], and the number of these ids to counts[j]. If word j has more than 15
 * initial tokens, counts[j] is 0, and the caller must encode the word in another way. */
INLINE void merge_lanes(const sgt_vocab *v, const sgt_word_key keys[LANES], const uint8_t **s,
                        const size_t *n, sgt_id (*out)[16], uint32_t counts[LANES])
{
    merging g;
    uint32_t done;
#pragma GCC unroll 4
    for (int j = 0; j < LANES; j++) merge_start(&g, j, v, &keys[j], s[j], n[j]);
    do {
        done = 1;
#pragma GCC unroll 4
        for (int j = 0; j < LANES; j++) done &= merge_step(&g, j, v);
    } while (!done);
#pragma GCC unroll 4
    for (int j = 0; j < LANES; j++) {
        /* subtract 2, because the bits for position 0 and for the end of the word stand for no
         * token */
        counts[j] = (uint32_t)__builtin_popcount(g.alive[j]) - 2;
        merge_end(&g, j, out[j]);
    }
}

#else

INLINE void merge_lanes(const sgt_vocab *v, const sgt_word_key keys[LANES], const uint8_t **s,
                        const size_t *n, sgt_id (*out)[16], uint32_t counts[LANES])
{
    (void)keys;
    counts[0] = (uint32_t)WIDTH(sgt_bpe_scan)(v, s[0], n[0], *out);
}

#endif

/* If the second entry of the table line (bucket) at `line` has the key *k, return a pointer to the
 * encoding in this entry (struct word_found). Otherwise return NULL. */
INLINE const uint8_t *second_place(const uint8_t *line, const sgt_word_key *k)
{
    const uint8_t *p = line + (k->high ? 32 : 16);
    if (!k->high) return (load64(p) ^ k->low) & KEY_MASK ? NULL : p;
    return load64(p) != k->low || ((load64(p + 8) ^ k->high) & KEY_MASK) ? NULL : p + 8;
}

/* Look up the words listed in w->missing again: long words in the cache of long words, other words
 * in the second entries of their table lines. Copy the encodings that are found to w->merged,
 * because `keep` moves entries of the table later. For each distinct word that is still not found,
 * store its index in w->missing in the array `left`. Return the number of these words, which must
 * be merged. */
INLINE size_t look_again(sgt_words *w, const uint8_t *s, const uint32_t *ends, size_t missing,
                         uint16_t *left)
{
    word_found *merged = (word_found *)w->merged;
    /* Hash table that finds words that occur twice in the batch. For each value `bits` of six bits
     * of a table line's number, seen[bits] is the batch index, plus 1, of the last word added to
     * `left` whose line has these bits; 0 if no such word was added. If another word with the same
     * bits was added between two occurrences of a word, the word is merged twice, with the same
     * result. */
    uint16_t seen[64] = {0};
    size_t count = 0;
    for (size_t m = 0; m < missing; m++) {
        const size_t i = w->missing[m];
        const sgt_word_key *k = &w->keys[i];
        const uint8_t *second = second_place(w->table + w->places[i], k);
        uint16_t *last = &seen[w->places[i] / SGT_WORD_SHORT_LINE % 64];
        w->found[i] = (const uint8_t *)&merged[m];
        merged[m].count = 0;
        if (k->high == NEVER.high) {
            const uint32_t from = i ? ends[i - 1] : 0, n = ends[i] - from;
            const void *known = WIDTH(sgt_find_long)(w, s + from, n);
            if (known) memcpy(&merged[m], known, sizeof *merged);
            else if (LONG_WORDS && s[ends[i] - 1] >= 0x80 && n <= 45) left[count++] = (uint16_t)m;
        } else if (second) {
            memcpy(&merged[m], second, 8 + 16);
        } else if (*last && !memcmp(k, &w->keys[*last - 1], sizeof *k)) {
            w->found[i] = w->found[*last - 1];
        } else {
            *last = (uint16_t)(i + 1);
            left[count++] = (uint16_t)m;
        }
    }
    return count;
}

INLINE void merge(sgt_words *w, const uint8_t *s, const uint32_t *ends, size_t missing)
{
    uint16_t left[SGT_WORDS + LANES];
    size_t count = look_again(w, s, ends, missing, left);
    for (size_t m = 0; m < count; m += LANES) {
        sgt_word_key keys[LANES];
        const uint8_t *texts[LANES];
        size_t lengths[LANES];
        sgt_id ids[LANES][16];
        uint32_t counts[LANES];
        size_t lanes = count - m < LANES ? count - m : LANES;
        for (size_t j = 0; j < LANES; j++) {
            const size_t i = w->missing[left[m + (j < lanes ? j : 0)]], from = i ? ends[i - 1] : 0;
            keys[j] = w->keys[i];
            texts[j] = s + from;
            lengths[j] = ends[i] - from;
        }
        merge_lanes(w->v, keys, texts, lengths, ids, counts);
        for (size_t j = 0; j < lanes; j++) {
            word_found *to = (word_found *)w->merged + left[m + j];
            publish(w->v, ids[j], counts[j]);
            if (__builtin_expect(w->v->wholes != NULL, 0) &&
                take_whole(w->v, texts[j], lengths[j], ids[j]))
                counts[j] = 1;
            if (LONG_WORDS && counts[j] && keys[j].high == NEVER.high)
                WIDTH(sgt_keep_long)(w, texts[j], lengths[j], ids[j], counts[j]);
            to->count = (uint64_t)counts[j] << COUNT_SHIFT;
            memcpy(to->ids, ids[j], sizeof to->ids);
        }
    }
}

INLINE sgt_id *emit(sgt_words *w, const uint8_t *s, const uint32_t *ends, size_t count, sgt_id *ids)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *p = w->found[i];
        size_t n = (size_t)(load64(p) >> COUNT_SHIFT);
        if (__builtin_expect(n - 1 < 16 / sizeof *ids, 1)) {
            memcpy(ids, p + 8, 16);
        } else if (n) {
            memcpy(ids, p + 8, sizeof((word_found *)NULL)->ids);
        } else {
            uint32_t from = i ? ends[i - 1] : 0;
            n = WIDTH(sgt_encode_long)(w, s + from, ends[i] - from, ids);
        }
        ids += n;
    }
    return ids;
}

/* Store each word listed in w->missing in the first entry of the word's line in the table. The
 * entry that was there moves to the second entry of the line. Long words are skipped, because the
 * table cannot hold them. */
INLINE void keep(sgt_words *w, size_t missing)
{
    for (size_t m = 0; m < missing; m++) {
        const size_t i = w->missing[m];
        const sgt_word_key *k = &w->keys[i];
        const uint64_t most = (k->high ? 16 : 8) / sizeof(sgt_id), count = load64(w->found[i]);
        const size_t size = k->high ? 32 : 16;
        uint64_t tagged[2] = {k->low, k->high};
        uint8_t *p = w->table + w->places[i];
        if (k->high == NEVER.high) continue;
        if (count >> COUNT_SHIFT <= most) tagged[k->high != 0] |= count & ~KEY_MASK;
        /* Skip the word if the first entry already holds it: this happens if the word occurs more
         * than once in the batch. */
        if (!memcmp(p, tagged, size / 2)) continue;
        memcpy(p + size, p, size);
        memcpy(p, tagged, size / 2);
        memcpy(p + size / 2, w->found[i] + 8, size / 2);
    }
}

size_t SGT_NAME(sgt_words)(sgt_words *w, const uint8_t *s, const uint32_t *ends, size_t count,
                           void *ids)
{
    fill(w, s, ends, count);
    size_t missing = look(w, count);
    merge(w, s, ends, missing);
    sgt_id *end = emit(w, s, ends, count, ids);
    keep(w, missing);
    return (size_t)(end - (sgt_id *)ids);
}
