/* sampler.h: compute the window of any row of a run, that is, its shard and the position in that
 * shard. The sampler keeps no state, reads no files, and stores only two numbers per shard. Rows
 * are numbered across the entire run: batch k of B rows has rows k*B ... k*B + B-1.
 *
 *     sgt_sampler s;
 *     if (sgt_sampler_init(&s, SGT_SAMPLING_SHUFFLE, seed, T, tokens, shards, &err) < 0) ...;
 *     sgt_sampler_memo memo = {0};                            // one per thread; may be NULL
 *     sgt_window w = sgt_sampler_window(&s, &memo, k * B + r);
 *     sgt_sampler_free(&s);
 *
 * The following definition must never change silently, because a resumed run depends on it.
 * tests/loader/test_sampler.c checks fixed values, and compares the sampler with a slow
 * implementation. Shard s has n_s > T tokens. A window has T+1 tokens, and the next window begins T
 * tokens later, because the last token of a window is only a target.
 *
 *     draw(purpose, a, b) = the first 64 bits of philox (base/philox.h)
 *                           with key: seed, counter: (a, b * 256 + purpose)
 *     below(u, n) = floor(u * n / 2^64), a number in 0 ... n-1
 *                   (probabilities within 1 + n/2^64 of equal)
 *
 * random: a row may begin at each of the first n_s - T tokens of a shard. S is the sum of these
 * numbers over all shards. Row r begins at the possible first token with index below(draw(RANDOM,
 * r, 0), S), where the possible first tokens of all shards are numbered in the order of the shards.
 *
 * sequential: a shard has floor((n_s - 1) / T) windows, which begin at tokens 0, T, 2T, ... W is
 * the number of windows in all shards. Row r is window r mod W.
 *
 * shuffle: a shard has W_s = max(1, floor((n_s - T) / T)) windows; W is the sum of W_s over all
 * shards. Epoch e = floor(r / W), and i = r mod W. Row r is window permute(draw(ORDER, e, 0), W,
 * i), where the windows of all shards are numbered in the order of the shards. The j-th window of
 * shard s begins at token phase(e, s) + j*T, where phase(e, s) = below(draw(PHASE, e, s), min(T-1,
 * n_s - 1 - W_s*T) + 1). The phase is different in each epoch, so that over the epochs every token
 * appears at every position of a row.
 *
 * block: the windows and phases of shuffle, in an order for readers that need large reads. A block
 * is K = ceil(131072 / T) consecutive windows, numbered as for shuffle: at least 256 KiB. If K does
 * not divide W, the last block of the set has fewer windows and is called the short block. Each
 * epoch has a different order of blocks. In this order, the short block is at position
 * below(draw(SHORT, e, 0), number of blocks). The other blocks fill the remaining positions, in the
 * order permute(draw(BLOCKS, e, 0), number of other blocks, ·). Every 256 blocks of the order form
 * a pool; the last pool may be smaller. The windows of pool j come in the order permute(draw(POOL,
 * e, j), number of windows in the pool, ·).
 *
 * documents: D_s documents begin in shard s; D is the sum of D_s over all shards. Epoch e = floor(r
 * / D), and i = r mod D. Row r is document permute(draw(ORDER, e, 0), D, i), where the documents of
 * all shards are numbered in the order of the shards. This does not depend on T.
 *
 * packed: pack.h defines the rows; the sampler only returns their numbers.
 *
 * permute(key, n, i) is a bijection of 0 ... n-1 for every key. It is computed, not stored, by a
 * Feistel network over pairs (x, y), where x is below a = ceil(sqrt n) and y below b = ceil(n / a).
 * Instead of XOR, the network adds modulo a or b. It begins with x = floor(i / b) and y = i mod b,
 * followed by 12 rounds r = 0 ... 11. (With 8 rounds, the permutations of n < 30 are visibly
 * uneven.) Even rounds compute x = (x + F(y, r, a)) mod a, odd rounds y = (y + F(x, r, b)) mod b.
 * The result is x*b + y. It is rarely n or more, because a*b exceeds n by less than a. If it is,
 * the result is permuted again (cycle walking: Black & Rogaway, "Ciphers with arbitrary finite
 * domains", 2002). F(v, r, m) = floor(hash(v xor key_r) * m / 2^32), where hash(u) = fold(fold(u *
 * 0xD2511F53) * 0xCD9E8D57). fold of a 64-bit number is the xor of its upper and lower 32 bits.
 * key_r is word r mod 4 of philox(key: key, counter: (floor(r / 4), 0)). All factors have 32 bits,
 * so that vector instructions can multiply them. */
#ifndef SGT_SAMPLER_H
#define SGT_SAMPLER_H

#include <stdint.h>

#include "loader/sgt_loader.h"

/* tokens per block: 256 KiB of 2-byte ids. Reads of this size reach the full throughput of a
 * disk */
#define SGT_BLOCK_TOKENS 131072u
/* blocks per pool. A pool is at least 64 MiB. For sampling `block`, the reader `uring` holds pools
 * in memory */
#define SGT_POOL_BLOCKS 256u
#define SGT_PERMUTE_ROUNDS 12

/* names of the samplings, in the order of the enum sgt_sampling, followed by NULL. Used by
 * command-line options that choose a sampling */
extern const char *const sgt_sampling_words[];

/* Return 1 if rows are built from documents, 0 if they are windows of fixed length. If they are
 * built from documents, a shard may be shorter than a row. */
static inline int sgt_sampling_of_documents(sgt_sampling s)
{
    return s == SGT_SAMPLING_DOCUMENTS || s == SGT_SAMPLING_PACKED;
}

typedef struct sgt_window {
    uint32_t shard;
    uint64_t offset; /* index of the window's first token in the shard */
    /* length in tokens: T+1, or less if the window is a document or a part of one */
    uint32_t tokens;
    /* for sampling `block`: index of the window's block in the sequence of all blocks drawn since
     * the beginning of epoch 0. For samplings `documents` and `packed`: flags (see batch.c) */
    uint64_t block;
} sgt_window;

/* An extent is a contiguous range of tokens in one shard, made of consecutive windows. offset:
 * index of its first token in the shard; tokens: its length in tokens. */
typedef struct sgt_extent {
    uint32_t shard;
    uint64_t offset, tokens;
} sgt_extent;

typedef struct sgt_permutation {
    uint64_t n;
    uint32_t a, b;
    uint32_t keys[SGT_PERMUTE_ROUNDS];
} sgt_permutation;

void sgt_permutation_init(sgt_permutation *p, uint64_t key, uint64_t n); /* 1 <= n <= 2^63 */
uint64_t sgt_permute(const sgt_permutation *p, uint64_t i);              /* i < n */
/* Permute i once, without the repetitions of cycle walking. The result may be n or more. */
uint64_t sgt_permute_once(const sgt_permutation *p, uint64_t i);

typedef struct sgt_sampler {
    sgt_sampling sampling;
    uint64_t seed;
    uint32_t seq; /* T */
    uint32_t shards;
    uint32_t first; /* index of this sampler's first shard in the list of the shards of all sets */
    /* number of rows in an epoch.
     * - packed: number of rows in the first epoch; other epochs may have one more or one less
     * - documents: number of documents
     * - others: number of windows. `random` has no epochs, but this is the number that `shuffle`
     *   has */
    uint64_t windows;
    /* array of shards + 1 counts: element s is the number of items in the shards before shard s. An
     * item is what a row selects: a possible first token for `random`, a document for `documents`,
     * otherwise a window */
    uint64_t *before;
    /* for `shuffle` and `block`: array with one element per shard, the number of possible values of
     * phase(e, s), the random offset that is added to all windows of shard s in epoch e */
    uint32_t *phases;
    /* SGT_BLOCK_TOKENS and SGT_POOL_BLOCKS. Tests may set smaller values before they draw the first
     * window */
    uint32_t block_tokens, pool_blocks;
} sgt_sampler;

/* A cache of values that are the same for all rows of an epoch or a pool, so that they are not
 * computed for every row. Each thread has its own cache, which must be zeroed before its first
 * use. */
typedef struct sgt_sampler_memo {
    int ready;
    uint64_t epoch;
    /* permutation that gives the order of this epoch: the order of windows for `shuffle`, of
     * documents for `documents`, of all blocks except the short block for `block` */
    sgt_permutation order;
    /* for sampling `block`: position of the short block in this epoch's order of blocks;
     * UINT64_MAX: there is no short block */
    uint64_t short_at;
    /* for sampling `block`: index of the pool whose order of windows is in `within`; UINT64_MAX:
     * none */
    uint64_t pool;
    sgt_permutation within;
} sgt_sampler_memo;

/* Initialize s. `tokens` has one element for each shard:
 * - documents: number of documents that begin in the shard; the sum over all shards must be at
 *   least 1
 * - packed: any numbers whose sum is the number of rows in the first epoch
 * - others: number of tokens in the shard, which must be more than `seq`
 *
 * Returns SGT_EUSAGE if there are more than 2^63 windows. */
int sgt_sampler_init(sgt_sampler *s, sgt_sampling sampling, uint64_t seed, uint32_t seq,
                     const uint64_t *tokens, uint32_t shards, sgt_error *err);
void sgt_sampler_free(sgt_sampler *s);

/* Return the window of row `row`. For `documents`, the `offset` of the result is the index of the
 * document within its shard, and `tokens` is 0 (sgt_documents_window in set.h finds the tokens).
 * For `packed`, `shard` is 0 and `offset` is `row`. */
sgt_window sgt_sampler_window(const sgt_sampler *s, sgt_sampler_memo *memo, uint64_t row);

/* Set windows[i] to the window of row rows[i], for i < n. If the rows are in the same epoch, this
 * is faster than n calls of sgt_sampler_window (see draws.h). `memo` must not be NULL. */
void sgt_sampler_windows(const sgt_sampler *s, sgt_sampler_memo *memo, const uint64_t *rows,
                         uint32_t n, sgt_window *windows);

/* Functions for sampling `block`.
 * - sgt_sampler_blocks returns the number of blocks per epoch.
 * - sgt_sampler_block_windows returns the number of windows per block; only the short block has
 *   fewer.
 * - sgt_sampler_block returns the number of extents (contiguous ranges of tokens) of block `block`,
 *   which is counted as in sgt_window.block. It stores the first `most` extents in `out`, in the
 *   order of the block's windows. */
uint64_t sgt_sampler_blocks(const sgt_sampler *s);
uint64_t sgt_sampler_block_windows(const sgt_sampler *s);
uint32_t sgt_sampler_block(const sgt_sampler *s, sgt_sampler_memo *memo, uint64_t block,
                           sgt_extent *out, uint32_t most);

#endif
