/* sampler.h: which window of which shard row `row` of a run is. Arithmetic alone: no state, no
 * files, nothing stored that grows with the data but two numbers a shard. Row numbers run through
 * the whole run: batch k of B rows is rows k*B ... k*B + B-1.
 *
 *     sgt_sampler s;
 *     if (sgt_sampler_init(&s, SGT_SAMPLING_SHUFFLE, seed, T, tokens, shards, &err) < 0) ...;
 *     sgt_sampler_memo memo = {0};                            // one a thread; or NULL
 *     sgt_window w = sgt_sampler_window(&s, &memo, k * B + r);
 *     sgt_sampler_free(&s);
 *
 * The definition. It may never change silently (runs resume by it): tests/loader/test_sampler.c
 * holds values of it, and a slow model. Shard s has n_s > T tokens; a window is T+1 tokens and
 * advances by T, since its last token is only ever a target.
 *
 *     draw(purpose, a, b) = the first 64 bits of philox(key: seed, counter: (a, b * 256 + purpose))     base/philox.h
 *     below(u, n) = floor(u * n / 2^64), a number in 0 ... n-1 (probabilities within 1 + n/2^64 of equal)
 *
 * random: S = sum of (n_s - T), every start there is. Row r is start below(draw(RANDOM, r, 0), S),
 * counted through the shards.
 *
 * sequential: floor((n_s - 1) / T) windows a shard, at 0, T, 2T, ...; row r is the (r mod their
 * sum)-th.
 *
 * shuffle: W_s = max(1, floor((n_s - T) / T)) windows a shard, W their sum; epoch e = floor(r / W),
 * i = r mod W. Row r is window permute(draw(ORDER, e, 0), W, i), counted through the shards; the
 * j-th of shard s starts at phase(e, s) + j*T, where phase(e, s) = below(draw(PHASE, e, s),
 * min(T-1, n_s - 1 - W_s*T) + 1): over the epochs every token meets every position.
 *
 * block: the windows and phases of shuffle, for readers that want large requests. K = ceil(131072 /
 * T) windows that follow one another (through the shards, in order) are a block: at least 256 KiB.
 * The last block is short where K does not divide W. Blocks are put into an order: the short one at
 * place below(draw(SHORT, e, 0), blocks), the others, numbered by the places left, by
 * permute(draw(BLOCKS, e, 0), whole blocks, ·). Runs of 256 blocks in that order are pools (the
 * last one of fewer), and windows are permuted within pool j by permute(draw(POOL, e, j), windows
 * of the pool, ·).
 *
 * documents: D_s documents begin in shard s, D their sum; epoch e = floor(r / D), i = r mod D. Row
 * r is document permute(draw(ORDER, e, 0), D, i), counted through the shards. T has no part in it.
 *
 * permute(key, n, i): a bijection of 0 ... n-1 for every key, computed, not stored: a Feistel
 * network over pairs (x, y), x below a = ceil(sqrt n), y below b = ceil(n / a), addition modulo a
 * or b in the place of XOR. a*b exceeds n by less than a, so it is rare that the result falls
 * outside and is put through again (cycle walking: Black & Rogaway, "Ciphers with arbitrary finite
 * domains", 2002). x = floor(i / b), y = i mod b; then 12 rounds r = 0 ... 11 (8 leave sizes below
 * 30 visibly uneven), even ones x = (x + F(y, r, a)) mod a, odd ones y = (y + F(x, r, b)) mod b;
 * the result is x*b + y. F(v, r, m) = floor(hash(v xor key_r) * m / 2^32), hash(u) = fold(fold(u *
 * 0xD2511F53) * 0xCD9E8D57), fold of 64 bits: their high half xor their low half; key_r is word r
 * mod 4 of philox(key: key, counter: (floor(r / 4), 0)). All of it is 32-bit multiplications, so
 * that it can be done in vectors. */
#ifndef SGT_SAMPLER_H
#define SGT_SAMPLER_H

#include <stdint.h>

#include "sgt_loader.h"

/* 256 KiB of 16-bit ids: where the disk's request rate stops mattering */
#define SGT_BLOCK_TOKENS 131072u
#define SGT_POOL_BLOCKS 256u /* 64 MiB or more: what a reader of `block` may hold at a time */
#define SGT_PERMUTE_ROUNDS 12

typedef struct sgt_window {
    uint32_t shard;
    uint64_t offset; /* in tokens */
    uint32_t tokens; /* T+1; of documents, and pieces of them, fewer */
    uint64_t block;  /* of `block`: its place in the order of blocks, counted through all epochs */
} sgt_window;

/* Windows of one shard that follow one another, and all their tokens. */
typedef struct sgt_stretch {
    uint32_t shard;
    uint64_t offset, tokens;
} sgt_stretch;

typedef struct sgt_permutation {
    uint64_t n;
    uint32_t a, b;
    uint32_t keys[SGT_PERMUTE_ROUNDS];
} sgt_permutation;

void sgt_permutation_init(sgt_permutation *p, uint64_t key, uint64_t n); /* 1 <= n <= 2^63 */
uint64_t sgt_permute(const sgt_permutation *p, uint64_t i);              /* i < n */
/* without cycle walking: may be n or above */
uint64_t sgt_permute_once(const sgt_permutation *p, uint64_t i);

typedef struct sgt_sampler {
    sgt_sampling sampling;
    uint64_t seed;
    uint32_t seq; /* T */
    uint32_t shards;
    uint64_t windows; /* in an epoch; for `random` what shuffle would have; documents */
    /* shards + 1: starts (random), windows or documents in the shards before this one */
    uint64_t *before;
    uint32_t *phases; /* shards: how many phases a shard has (shuffle, block) */
    /* as defined; tests make them smaller, before the first window */
    uint32_t block_tokens, pool_blocks;
} sgt_sampler;

/* What is the same for all rows of an epoch or a pool, kept so that neighbouring rows need not work
 * it out again. */
typedef struct sgt_sampler_memo {
    int ready;
    uint64_t epoch;
    sgt_permutation order; /* of windows (shuffle), of whole blocks (block) */
    uint64_t short_at;     /* block: place of the short block; UINT64_MAX where all are whole */
    uint64_t pool;         /* block: UINT64_MAX where none is ready */
    sgt_permutation within;
} sgt_sampler_memo;

/* tokens: of each shard, all above seq; for `documents` how many documents begin in each, one in
 * all at least. SGT_EUSAGE for more than 2^63 windows. */
int sgt_sampler_init(sgt_sampler *s, sgt_sampling sampling, uint64_t seed, uint32_t seq,
                     const uint64_t *tokens, uint32_t shards, sgt_error *err);
void sgt_sampler_free(sgt_sampler *s);

/* Of `documents`, offset is the document's number among those of its shard, and tokens is 0
 * (documents.h has more). */
sgt_window sgt_sampler_window(const sgt_sampler *s, sgt_sampler_memo *memo, uint64_t row);

/* Rows row, row + step, ..., n of them, as that call has them one by one, only faster (draws.h).
 * memo: not NULL. */
void sgt_sampler_windows(const sgt_sampler *s, sgt_sampler_memo *memo, uint64_t row, uint64_t step,
                         uint32_t n, sgt_window *windows);

/* Of `block`. Blocks in an epoch, of which every pool_blocks are a pool, the last ones fewer;
 * windows in a block, but for an epoch's short one; and what a block (as windows have it) consists
 * of, in the order of its windows: the first `most` extents of the number that is returned. */
uint64_t sgt_sampler_blocks(const sgt_sampler *s);
uint64_t sgt_sampler_block_windows(const sgt_sampler *s);
uint32_t sgt_sampler_block(const sgt_sampler *s, sgt_sampler_memo *memo, uint64_t block,
                           sgt_stretch *out, uint32_t most);

#endif
