/* merge.inc.h: merges the bytes of words of up to 15 bytes, LANES words side by side. Each step of
 * a word depends on the step before (find the lowest pair, then look up the new token's pairs: some
 * 50 cycles). So several words are processed at once, without a branch that depends on any of them.
 *
 * In each word, position i + 1 is byte i; positions 0 and n + 1 hold no token. ranks (16): the
 * token that the one at a position and its right neighbour merge to, or SGT_NO_PAIR. alive: a bit
 * for each position where a token begins, and for positions 0 and n + 1. A merge at p with its
 * neighbour q writes the new token to ids[p] and clears q's bit in alive. */
#if defined(__AVX2__)

enum { LANES = 4 };

typedef struct merging {
    uint16_t ids[LANES][24];
    uint32_t alive[LANES];
    __m256i ranks[LANES];
} merging;

INLINE void merge_start(merging *g, int j, const sgt_vocab *v, const sgt_word_key *k)
{
#define NO8                                                                                    \
    SGT_NO_PAIR, SGT_NO_PAIR, SGT_NO_PAIR, SGT_NO_PAIR, SGT_NO_PAIR, SGT_NO_PAIR, SGT_NO_PAIR, \
        SGT_NO_PAIR
    static const uint16_t beyond[48] = {0, 0, 0, 0, 0, 0, 0,   0,   0,   0,
                                        0, 0, 0, 0, 0, 0, NO8, NO8, NO8, NO8};
#undef NO8
    uint8_t bytes[16];
    uint16_t ranks[16];
    size_t n = key_length(k);
    memcpy(bytes, k, 16);
    g->ids[j][0] = SGT_NO_PAIR;
    ranks[0] = SGT_NO_PAIR;
#pragma GCC unroll 15
    for (int i = 0; i < 15; i++) {
        uint16_t pair;
        memcpy(&pair, bytes + i, 2);
        g->ids[j][i + 1] = v->byte_id[bytes[i]];
        ranks[i + 1] = v->byte_pairs[pair];
    }
    g->ids[j][n + 1] = SGT_NO_PAIR;
    g->alive[j] = (uint32_t)((4u << n) - 1);
    __m256i r = _mm256_loadu_si256((const __m256i *)(const void *)ranks);
    g->ranks[j] =
        _mm256_or_si256(r, _mm256_loadu_si256((const __m256i *)(const void *)(beyond + 16 - n)));
}

/* Return v with one lane set to x. The lane is given both as a bit and as its index i. */
INLINE __m256i set_lane(__m256i v, uint32_t bit, uint32_t i, uint32_t x)
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

/* Do one merge of word j. Return 1, and change nothing, if there is none left: then position 0,
 * which never merges, has the lowest rank too. */
INLINE uint32_t merge_step(merging *g, int j, const sgt_vocab *v)
{
    __m256i r = g->ranks[j];
    __m128i least =
        _mm_minpos_epu16(_mm_min_epu16(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1)));
    uint32_t best = (uint32_t)_mm_extract_epi16(least, 0), alive = g->alive[j];
    __m256i all = _mm256_broadcastw_epi16(least);
#if defined(__AVX512BW__)
    uint32_t equal = _mm256_cmpeq_epi16_mask(r, all), at = _tzcnt_u32(equal), bit = equal & -equal;
#else
    uint32_t equal = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi16(r, all));
    uint32_t at = _tzcnt_u32(equal) / 2, bit = 1u << at;
#endif
    uint32_t after = alive & -(2 * bit), gone = after & -after,
             next = _tzcnt_u32(after & (after - 1));
    uint32_t before = 31 - _lzcnt_u32((alive & (bit - 1)) | 1);
    uint16_t *ids = g->ids[j];
    ids[at] = (uint16_t)best;
    g->alive[j] = alive ^ (gone & ((equal & 1) - 1));
    uint32_t right = sgt_pair(&v->pairs, best, ids[next]),
             left = sgt_pair(&v->pairs, ids[before], best);
    r = set_lane(r, gone, _tzcnt_u32(gone), SGT_NO_PAIR);
    r = set_lane(r, bit, at, right);
    g->ranks[j] = set_lane(r, 1u << before, before, left);
    return equal & 1;
}

INLINE void merge_end(const merging *g, int j, uint16_t *ids)
{
    const uint16_t *from = g->ids[j] + 1;
    for (uint32_t tokens = g->alive[j] >> 1; tokens & (tokens - 1); tokens &= tokens - 1)
        *ids++ = from[_tzcnt_u32(tokens)]; /* the highest bit marks the word's end */
}

/* Merge keys[j] to the ids out[j]. Set a bit in starts[j] for each byte where a token starts, and
 * for the end. */
INLINE void merge_lanes(const sgt_vocab *v, const sgt_word_key keys[LANES], sgt_word_ids *out,
                        uint32_t starts[LANES])
{
    merging g;
    uint32_t done;
#pragma GCC unroll 4
    for (int j = 0; j < LANES; j++) merge_start(&g, j, v, &keys[j]);
    do {
        done = 1;
#pragma GCC unroll 4
        for (int j = 0; j < LANES; j++) done &= merge_step(&g, j, v);
    } while (!done);
#pragma GCC unroll 4
    for (int j = 0; j < LANES; j++) {
        starts[j] = g.alive[j] >> 1;
        merge_end(&g, j, out[j].ids);
    }
}

#else

enum { LANES = 1 };

INLINE void merge_lanes(const sgt_vocab *v, const sgt_word_key keys[LANES], sgt_word_ids *out,
                        uint32_t starts[LANES])
{
    size_t count = sgt_bpe_scan(v, (const uint8_t *)keys, key_length(keys), out->ids), at = 0;
    starts[0] = 0;
    for (size_t i = 0; i < count; at += sgt_vocab_length(v, out->ids[i++])) starts[0] |= 1u << at;
    starts[0] |= 1u << at;
}

#endif
