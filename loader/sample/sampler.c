/* sampler.c: see sampler.h for the definition, which this follows name by name. */
#include "sample/sampler.h"

#include <assert.h>
#include <stdlib.h>

#include "base/philox.h"

enum { RANDOM = 1, ORDER, PHASE, SHORT, BLOCKS, POOL }; /* purposes: no draw for one is ever a draw for another */

static uint64_t draw(const sgt_sampler *s, unsigned purpose, uint64_t a, uint64_t b)
{
    return sgt_philox_u64(s->seed, a, b << 8 | purpose);
}

static uint64_t below(uint64_t u, uint64_t n)
{
    return (uint64_t)((unsigned __int128)u * n >> 64);
}

/* ---- the permutation ---- */

static uint64_t ceil_sqrt(uint64_t n)
{
    uint64_t root = 0; /* the largest with root^2 < n, bit by bit: exact, and the same everywhere */
    for (uint64_t bit = (uint64_t)1 << 31; bit; bit >>= 1)
        if ((root | bit) * (root | bit) < n) root |= bit;
    return root + 1;
}

void sgt_permutation_init(sgt_permutation *p, uint64_t key, uint64_t n)
{
    assert(n >= 1 && n <= (uint64_t)1 << 63);
    p->n = n;
    p->a = (uint32_t)ceil_sqrt(n); /* at most 3,037,000,500 */
    p->b = (uint32_t)((n + p->a - 1) / p->a);
    for (unsigned r = 0; r < SGT_PERMUTE_ROUNDS; r++) p->keys[r] = sgt_philox(key, r / 4, 0).x[r % 4];
}

static uint32_t fold(uint64_t z)
{
    return (uint32_t)(z >> 32) ^ (uint32_t)z;
}

/* v + F(other) modulo m */
static uint32_t feistel_round(uint32_t v, uint32_t other, uint32_t key, uint32_t m)
{
    uint32_t u = fold((uint64_t)(other ^ key) * 0xD2511F53u);
    u = fold((uint64_t)u * 0xCD9E8D57u);
    uint64_t sum = v + ((uint64_t)u * m >> 32);
    return (uint32_t)(sum >= m ? sum - m : sum);
}

uint64_t sgt_permute(const sgt_permutation *p, uint64_t i)
{
    assert(i < p->n);
    do {
        uint32_t x = (uint32_t)(i / p->b), y = (uint32_t)(i % p->b);
        for (unsigned r = 0; r < SGT_PERMUTE_ROUNDS; r += 2) {
            x = feistel_round(x, y, p->keys[r], p->a);
            y = feistel_round(y, x, p->keys[r + 1], p->b);
        }
        i = (uint64_t)x * p->b + y;
    } while (i >= p->n);
    return i;
}

/* ---- the windows of a set ---- */

static sgt_window window_at(const sgt_sampler *s, uint32_t shard, uint64_t offset)
{
    return (sgt_window){shard, offset, s->seq + 1};
}

static uint64_t shuffle_windows(uint64_t tokens, uint32_t seq)
{
    return tokens < 2 * (uint64_t)seq ? 1 : tokens / seq - 1;
}

static uint32_t phases_of(uint64_t tokens, uint32_t seq)
{
    uint64_t room = tokens - 1 - shuffle_windows(tokens, seq) * seq;
    return room < seq ? (uint32_t)room + 1 : seq;
}

/* Of a shard with n tokens, or n documents: its windows. */
static uint64_t windows_of(const sgt_sampler *s, uint64_t n)
{
    if (s->sampling == SGT_SAMPLING_DOCUMENTS) return n;
    return s->sampling == SGT_SAMPLING_SEQUENTIAL ? (n - 1) / s->seq : shuffle_windows(n, s->seq);
}

int sgt_sampler_init(sgt_sampler *s, sgt_sampling sampling, uint64_t seed, uint32_t seq, const uint64_t *tokens,
                     uint32_t shards, sgt_error *err)
{
    *s = (sgt_sampler){.sampling = sampling, .seed = seed, .seq = seq, .shards = shards};
    s->before = malloc(((size_t)shards + 1) * sizeof *s->before);
    s->phases = malloc(((size_t)shards + 1) * sizeof *s->phases);
    if (!s->before || !s->phases) {
        sgt_sampler_free(s);
        return sgt_fail(err, SGT_ENOMEM, "%u shards: out of memory", shards);
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < shards; i++) {
        uint64_t n = tokens[i], windows = windows_of(s, n);
        assert((n > seq || sampling == SGT_SAMPLING_DOCUMENTS) && n < (uint64_t)1 << 62);
        s->before[i] = sum;
        s->phases[i] = sampling == SGT_SAMPLING_DOCUMENTS ? 0 : phases_of(n, seq);
        s->windows += windows;
        sum += sampling == SGT_SAMPLING_RANDOM ? n - seq : windows;
        if (sum > (uint64_t)1 << 63) {
            sgt_sampler_free(s);
            return sgt_fail(err, SGT_EUSAGE, "more than 2^63 windows");
        }
    }
    s->before[shards] = sum;
    return SGT_OK;
}

void sgt_sampler_free(sgt_sampler *s)
{
    free(s->before);
    free(s->phases);
    *s = (sgt_sampler){0};
}

/* The shard that item `item` falls in, without a branch that could be guessed wrong. */
static uint32_t shard_of(const sgt_sampler *s, uint64_t item)
{
    uint32_t first = 0, n = s->shards;
    while (n > 1) {
        uint32_t half = n / 2;
        first = s->before[first + half] <= item ? first + half : first;
        n -= half;
    }
    return first;
}

static sgt_window phased(const sgt_sampler *s, uint64_t epoch, uint64_t window)
{
    uint32_t shard = shard_of(s, window);
    uint64_t phase = below(draw(s, PHASE, epoch, shard), s->phases[shard]);
    return window_at(s, shard, phase + (window - s->before[shard]) * s->seq);
}

/* ---- block ---- */

static uint64_t block_windows(const sgt_sampler *s)
{
    return (SGT_BLOCK_TOKENS + (uint64_t)s->seq - 1) / s->seq;
}

/* The number of windows in the first `place` blocks of the order. */
static uint64_t block_start(const sgt_sampler *s, const sgt_sampler_memo *m, uint64_t place)
{
    uint64_t K = block_windows(s);
    return place > m->short_at ? place * K - (K - s->windows % K) : place * K;
}

/* The place in the order of the block that position `at` falls in: as if all blocks were whole, but for the gap that
 * the short one leaves behind it. */
static uint64_t place_of(const sgt_sampler *s, const sgt_sampler_memo *m, uint64_t at)
{
    uint64_t K = block_windows(s), rest = s->windows % K;
    int behind = m->short_at != UINT64_MAX && at >= m->short_at * K + rest;
    return (behind ? at + K - rest : at) / K;
}

static uint64_t block_window(const sgt_sampler *s, sgt_sampler_memo *m, uint64_t i)
{
    uint64_t K = block_windows(s), blocks = (s->windows + K - 1) / K;
    uint64_t pool = place_of(s, m, i) / SGT_POOL_BLOCKS, end = (pool + 1) * SGT_POOL_BLOCKS;
    uint64_t start = block_start(s, m, pool * SGT_POOL_BLOCKS);
    if (m->pool != pool) {
        uint64_t stop = block_start(s, m, end < blocks ? end : blocks);
        sgt_permutation_init(&m->within, draw(s, POOL, m->epoch, pool), stop - start);
        m->pool = pool;
    }
    uint64_t at = start + sgt_permute(&m->within, i - start), place = place_of(s, m, at);
    uint64_t block = place == m->short_at ? blocks - 1 : sgt_permute(&m->order, place - (place > m->short_at));
    return block * K + (at - block_start(s, m, place));
}

/* ---- rows ---- */

static void begin_epoch(const sgt_sampler *s, sgt_sampler_memo *m, uint64_t epoch)
{
    uint64_t n = s->windows;
    *m = (sgt_sampler_memo){.ready = 1, .epoch = epoch, .short_at = UINT64_MAX, .pool = UINT64_MAX};
    if (s->sampling == SGT_SAMPLING_BLOCK) {
        uint64_t K = block_windows(s), whole = n / K;
        if (n % K) m->short_at = below(draw(s, SHORT, epoch, 0), whole + 1);
        if (whole) sgt_permutation_init(&m->order, draw(s, BLOCKS, epoch, 0), whole);
    } else {
        sgt_permutation_init(&m->order, draw(s, ORDER, epoch, 0), n);
    }
}

sgt_window sgt_sampler_window(const sgt_sampler *s, sgt_sampler_memo *memo, uint64_t row)
{
    sgt_sampler_memo mine = {0};
    if (s->sampling == SGT_SAMPLING_RANDOM) {
        uint64_t start = below(draw(s, RANDOM, row, 0), s->before[s->shards]);
        uint32_t shard = shard_of(s, start);
        return window_at(s, shard, start - s->before[shard]);
    }
    uint64_t epoch = row / s->windows, i = row % s->windows;
    if (s->sampling == SGT_SAMPLING_SEQUENTIAL) {
        uint32_t shard = shard_of(s, i);
        return window_at(s, shard, (i - s->before[shard]) * s->seq);
    }
    if (!memo) memo = &mine;
    if (!memo->ready || memo->epoch != epoch) begin_epoch(s, memo, epoch);
    if (s->sampling == SGT_SAMPLING_DOCUMENTS) {
        uint64_t document = sgt_permute(&memo->order, i);
        uint32_t shard = shard_of(s, document);
        return (sgt_window){shard, document - s->before[shard], 0};
    }
    return phased(s, epoch,
                  s->sampling == SGT_SAMPLING_BLOCK ? block_window(s, memo, i) : sgt_permute(&memo->order, i));
}
