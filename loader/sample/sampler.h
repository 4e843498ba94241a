/* sampler.h: compute, for row `row` of a run, its shard and its window in that shard. The sampler
 * keeps no state, reads no files, and stores only two numbers per shard. Rows are numbered across
 * the entire run: batch k of B rows has rows k*B ... k*B + B-1.
 *
 *     sgt_sampler s;
 *     if (sgt_sampler_init(&s, SGT_SAMPLING_SHUFFLE, seed, T, tokens, shards, &err) < 0) ...;
 *     sgt_sampler_memo memo = {0};                            // one per thread; may be NULL
 *     sgt_window w = sgt_sampler_window(&s, &memo, k * B + r);
 *     sgt_sampler_free(&s);
 *
 * The following definition must never change silently, because a resumed run depends on it.
 * tests/loader/test_sampler.c checks fixed values, and compares the sampler with a slow model.
 * Shard s has n_s > T tokens. A window has T+1 tokens, and the next window begins T tokens later,
 * since a window's last token is only a target.
 *
 *     draw(purpose, a, b) = the first 64 bits of philox (base/philox.h)
 *                           with key: seed, counter: (a, b * 256 + purpose)
 *     below(u, n) = floor(u * n / 2^64), a number in 0 ... n-1
 *                   (probabilities within 1 + n/2^64 of equal)
 *
 * random: a row may begin at each of the first n_s - T tokens of a shard. S is the sum of these
 * numbers over all shards. Row r begins at possible start number below(draw(RANDOM, r, 0), S),
 * counted from the first shard on.
 *
 * sequential: a shard has floor((n_s - 1) / T) windows, which begin at tokens 0, T, 2T, ... W is
 * the number of all windows. Row r is window r mod W.
 *
 * shuffle: a shard has W_s = max(1, floor((n_s - T) / T)) windows; W is their sum over all shards.
 * Epoch e = floor(r / W), and i = r mod W. Row r is window permute(draw(ORDER, e, 0), W, i),
 * counted from the first shard on. The j-th window of shard s begins at token phase(e, s) + j*T,
 * where phase(e, s) = below(draw(PHASE, e, s), min(T-1, n_s - 1 - W_s*T) + 1). The phase is
 * different in each epoch, so that over the epochs every token appears at every position of a row.
 *
 * block: the windows and phases of shuffle, in an order for readers that need large reads. A block
 * is K = ceil(131072 / T) consecutive windows, counted from the first shard on: at least 256 KiB.
 * If K does not divide W, the last block of the set is short. Each epoch has its own order of
 * blocks. In this order, the short block is at place below(draw(SHORT, e, 0), blocks). The other
 * blocks fill the places that are left, in the order permute(draw(BLOCKS, e, 0), whole blocks, ·).
 * Every 256 blocks of the order form a pool; the last pool may be smaller. Within pool j, the
 * windows are in the order permute(draw(POOL, e, j), windows of the pool, ·).
 *
 * documents: D_s documents begin in shard s; D is their sum over all shards. Epoch e = floor(r /
 * D), and i = r mod D. Row r is document permute(draw(ORDER, e, 0), D, i), counted from the first
 * shard on, for any T.
 *
 * packed: pack.h defines its rows; the sampler only returns their numbers.
 *
 * permute(key, n, i) is a bijection of 0 ... n-1 for every key. It is computed, not stored, by a
 * Feistel network over pairs (x, y), where x is below a = ceil(sqrt n) and y below b = ceil(n / a).
 * Instead of XOR, the network adds modulo a or b. It begins with x = floor(i / b) and y = i mod b.
 * Then follow 12 rounds r = 0 ... 11 (with 8, sizes below 30 are visibly uneven). Even rounds
 * compute x = (x + F(y, r, a)) mod a, odd ones y = (y + F(x, r, b)) mod b. The result is x*b + y.
 * a*b exceeds n by less than a, so the result is rarely n or more. If it is, it is permuted again
 * (cycle walking: Black & Rogaway, "Ciphers with arbitrary finite domains", 2002). F(v, r, m) =
 * floor(hash(v xor key_r) * m / 2^32), where hash(u) = fold(fold(u * 0xD2511F53) * 0xCD9E8D57).
 * fold of 64 bits is their high half xor their low half. key_r is word r mod 4 of philox(key: key,
 * counter: (floor(r / 4), 0)). All multiplications are of 32 bits, so that vector instructions can
 * do them. */
#ifndef SGT_SAMPLER_H
#define SGT_SAMPLER_H

#include <stdint.h>

#include "loader/sgt_loader.h"

/* tokens per block: 256 KiB of 2-byte ids, for which a read reaches the disk's full throughput */
#define SGT_BLOCK_TOKENS 131072u
/* blocks per pool; a pool is at least 64 MiB, which the reader `uring` holds in memory for sampling
 * `block` */
#define SGT_POOL_BLOCKS 256u
#define SGT_PERMUTE_ROUNDS 12

/* names of the samplings, in the order of the enum sgt_sampling, and a final NULL. Used by
 * command-line options that choose a sampling */
extern const char *const sgt_sampling_words[];

/* Return whether rows are built from documents and not from windows of fixed length. If so, a shard
 * may be shorter than a row. */
static inline int sgt_sampling_of_documents(sgt_sampling s)
{
    return s == SGT_SAMPLING_DOCUMENTS || s == SGT_SAMPLING_PACKED;
}

typedef struct sgt_window {
    uint32_t shard;
    uint64_t offset; /* in tokens */
    uint32_t tokens; /* length in tokens: T+1, or less for documents and pieces of documents */
    /* for sampling `block`: index of the window's block in the sequence of all blocks drawn since
     * the beginning of epoch 0. For pieces of documents: flags (batch.c) */
    uint64_t block;
} sgt_window;

/* An extent: a contiguous range of tokens in one shard, which covers consecutive windows. offset:
 * first token; tokens: length. */
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
/* Permute i once, without cycle walking. The result may be n or more. */
uint64_t sgt_permute_once(const sgt_permutation *p, uint64_t i);

typedef struct sgt_sampler {
    sgt_sampling sampling;
    uint64_t seed;
    uint32_t seq; /* T */
    uint32_t shards;
    uint32_t first; /* index of this sampler's first shard in the list of all sets' shards */
    /* number of rows in an epoch.
     * - packed: rows in the first epoch; other epochs may have one more or one less
     * - documents: number of documents
     * - others: number of windows. `random` has no epochs, but has the same number as `shuffle` */
    uint64_t windows;
    /* array of shards + 1 counts: for each shard, the number of items in all earlier shards. An
     * item is what a draw selects: a possible first token for `random`, a document for `documents`,
     * otherwise a window */
    uint64_t *before;
    /* array with one element for each shard, for `shuffle` and `block`: number of possible values
     * of phase(e, s), the shard's random offset in an epoch */
    uint32_t *phases;
    /* the constants SGT_BLOCK_TOKENS and SGT_POOL_BLOCKS; tests may set smaller values before the
     * first window is drawn */
    uint32_t block_tokens, pool_blocks;
} sgt_sampler;

/* A cache of values that all rows of an epoch or a pool have in common, so that they are not
 * computed for every row. Each thread has its own cache, zeroed at first. */
typedef struct sgt_sampler_memo {
    int ready;
    uint64_t epoch;
    /* permutation that gives this epoch's order: of windows for `shuffle`, of documents for
     * `documents`, of all blocks except the short one for `block` */
    sgt_permutation order;
    /* for sampling `block`: index of the short block in this epoch's order of blocks; UINT64_MAX:
     * there is no short block */
    uint64_t short_at;
    /* for sampling block: index of the pool for which `within` is valid; UINT64_MAX: none */
    uint64_t pool;
    sgt_permutation within;
} sgt_sampler_memo;

/* Initialise s. `tokens` has one element for each shard:
 * - documents: number of documents that begin in the shard; the sum must be at least 1
 * - packed: any numbers whose sum is the number of rows in the first epoch
 * - others: number of tokens in the shard, more than seq
 *
 * Returns SGT_EUSAGE if there are more than 2^63 windows. */
int sgt_sampler_init(sgt_sampler *s, sgt_sampling sampling, uint64_t seed, uint32_t seq,
                     const uint64_t *tokens, uint32_t shards, sgt_error *err);
void sgt_sampler_free(sgt_sampler *s);

/* Return the window of row `row`. For `documents`, `offset` is the index of the document within its
 * shard, and `tokens` is 0 (sgt_documents_window in set.h finds the tokens). For `packed`, `shard`
 * is 0 and `offset` is `row`. */
sgt_window sgt_sampler_window(const sgt_sampler *s, sgt_sampler_memo *memo, uint64_t row);

/* Set windows[i] to the window of row rows[i], for i < n. For rows of the same epoch this is faster
 * than n calls to sgt_sampler_window (see draws.h). memo must not be NULL. */
void sgt_sampler_windows(const sgt_sampler *s, sgt_sampler_memo *memo, const uint64_t *rows,
                         uint32_t n, sgt_window *windows);

/* Functions for sampling `block`.
 * - sgt_sampler_blocks returns the number of blocks per epoch.
 * - sgt_sampler_block_windows returns the number of windows per block; only the short block has
 *   fewer.
 * - sgt_sampler_block returns the number of extents of block `block` (see sgt_window.block). It
 *   stores the first `most` of them in `out`, in the order of the block's windows. */
uint64_t sgt_sampler_blocks(const sgt_sampler *s);
uint64_t sgt_sampler_block_windows(const sgt_sampler *s);
uint32_t sgt_sampler_block(const sgt_sampler *s, sgt_sampler_memo *memo, uint64_t block,
                           sgt_extent *out, uint32_t most);

#endif
