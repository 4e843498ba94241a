/* sampler.c: compute the windows that sampler.h defines. The names are those of the definition
 * there. */
#include "loader/sample/sampler.h"

#include <assert.h>
#include <stdlib.h>

#include "loader/base/cpu.h"
#include "loader/base/philox.h"
#include "loader/base/search.h"
#include "loader/sample/draws.h"

/* Values of the argument `purpose` of draw. Each kind of random number has its own value, so that
 * the kinds are independent of each other */
enum { RANDOM = 1, ORDER, PHASE, SHORT, BLOCKS, POOL };

static uint64_t draw(const sgt_sampler *s, unsigned purpose, uint64_t a, uint64_t b)
{
    return sgt_philox_u64(s->seed, a, b << 8 | purpose);
}

__extension__ typedef unsigned __int128 wide;

static uint64_t below(uint64_t u, uint64_t n) { return (uint64_t)((wide)u * n >> 64); }

/* ---- the permutation ---- */

static uint64_t ceil_sqrt(uint64_t n)
{
    /* Compute the largest root with root^2 < n in integers, bit by bit, so that the result is exact
     * and the same on all machines. */
    uint64_t root = 0;
    for (uint64_t bit = (uint64_t)1 << (63 - __builtin_clzll(n)) / 2; bit; bit >>= 1)
        if ((root | bit) * (root | bit) < n) root |= bit;
    return root + 1;
}

void sgt_permutation_init(sgt_permutation *p, uint64_t key, uint64_t n)
{
    assert(n >= 1 && n <= (uint64_t)1 << 63);
    p->n = n;
    p->a = (uint32_t)ceil_sqrt(n); /* at most 3,037,000,500 */
    p->b = (uint32_t)((n + p->a - 1) / p->a);
    for (unsigned r = 0; r < SGT_PERMUTE_ROUNDS; r += 4) {
        sgt_philox4 words = sgt_philox(key, r / 4, 0);
        for (unsigned k = 0; k < 4; k++) p->keys[r + k] = words.x[k];
    }
}

uint64_t sgt_permute(const sgt_permutation *p, uint64_t i)
{
    assert(i < p->n);
    do i = sgt_permute_once(p, i);
    while (i >= p->n);
    return i;
}

/* ---- the windows of a set ---- */

static uint64_t shuffle_windows(uint64_t tokens, uint32_t seq)
{
    return tokens < 2 * (uint64_t)seq ? 1 : tokens / seq - 1;
}

static uint32_t phases_of(uint64_t tokens, uint32_t seq)
{
    uint64_t room = tokens - 1 - shuffle_windows(tokens, seq) * seq;
    return room < seq ? (uint32_t)room + 1 : seq;
}

/* Return the number of windows in a shard of size n. For the samplings `documents` and `packed`, n
 * is already a number of rows and is returned unchanged; for others, n is a number of tokens. */
static uint64_t windows_of(const sgt_sampler *s, uint64_t n)
{
    if (sgt_sampling_of_documents(s->sampling)) return n;
    return s->sampling == SGT_SAMPLING_SEQUENTIAL ? (n - 1) / s->seq : shuffle_windows(n, s->seq);
}

int sgt_sampler_init(sgt_sampler *s, sgt_sampling sampling, uint64_t seed, uint32_t seq,
                     const uint64_t *tokens, uint32_t shards, sgt_error *err)
{
    *s = (sgt_sampler){.sampling = sampling, .seed = seed, .seq = seq, .shards = shards};
    s->block_tokens = SGT_BLOCK_TOKENS;
    s->pool_blocks = SGT_POOL_BLOCKS;
    s->before = malloc(((size_t)shards + 1) * sizeof *s->before);
    s->phases = malloc(((size_t)shards + 1) * sizeof *s->phases);
    int rc = SGT_OK;
    if (!s->before || !s->phases)
        rc = sgt_fail(err, SGT_ENOMEM, "%u shards: out of memory", shards);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < shards && rc == SGT_OK; i++) {
        uint64_t n = tokens[i], windows = windows_of(s, n);
        assert((n > seq || sgt_sampling_of_documents(sampling)) && n < (uint64_t)1 << 62);
        s->before[i] = sum;
        s->phases[i] = sgt_sampling_of_documents(sampling) ? 0 : phases_of(n, seq);
        s->windows += windows;
        sum += sampling == SGT_SAMPLING_RANDOM ? n - seq : windows;
        if (sum > (uint64_t)1 << 63)
            rc = sgt_fail(err, SGT_EUSAGE, "the data has more than 2^63 windows");
    }
    if (rc == SGT_OK) s->before[shards] = sum;
    else sgt_sampler_free(s);
    return rc;
}

void sgt_sampler_free(sgt_sampler *s)
{
    free(s->before);
    free(s->phases);
    *s = (sgt_sampler){0};
}

/* Return the window that begins at an item. Depending on the sampling, an item is a possible first
 * token, a window, or a document. `item` is the index of the item among the items of all shards
 * (see s->before). The k-th item of a shard begins at offset k * each of the shard, where k counts
 * from 0. */
static sgt_window window_of(const sgt_sampler *s, uint64_t item, uint64_t each)
{
    uint32_t shard = (uint32_t)sgt_last_up_to(s->before, 1, s->shards, item);
    return (sgt_window){
        .shard = shard, .offset = (item - s->before[shard]) * each, .tokens = s->seq + 1};
}

/* ---- block ---- */

uint64_t sgt_sampler_block_windows(const sgt_sampler *s)
{
    return (s->block_tokens + (uint64_t)s->seq - 1) / s->seq;
}

uint64_t sgt_sampler_blocks(const sgt_sampler *s)
{
    uint64_t K = sgt_sampler_block_windows(s);
    return s->windows / K + (s->windows % K != 0);
}

/* Return the number of windows in the first `place` blocks of this epoch's order of blocks. (Each
 * epoch has a different order of blocks.) All blocks have K windows, except the short block. */
static uint64_t block_start(const sgt_sampler *s, const sgt_sampler_memo *m, uint64_t place)
{
    uint64_t K = sgt_sampler_block_windows(s);
    return place > m->short_at ? place * K - (K - s->windows % K) : place * K;
}

/* Return the position, in this epoch's order of blocks, of the block that contains window `at`. The
 * windows of an epoch are numbered in this order. If all blocks had K windows, the position would
 * be at / K. For windows after the short block, this needs a correction. */
static uint64_t place_of(const sgt_sampler *s, const sgt_sampler_memo *m, uint64_t at)
{
    uint64_t K = sgt_sampler_block_windows(s), rest = s->windows % K;
    int behind = m->short_at != UINT64_MAX && at >= m->short_at * K + rest;
    return (behind ? at + K - rest : at) / K;
}

/* Return the index in the set of the block that is at position `place` in this epoch's order of
 * blocks. */
static uint64_t block_at(const sgt_sampler *s, const sgt_sampler_memo *m, uint64_t place)
{
    if (place == m->short_at) return sgt_sampler_blocks(s) - 1;
    return sgt_permute(&m->order, place - (place > m->short_at));
}

/* Prepare the cache for the pool that contains window i of the epoch: set m->within to the
 * permutation of the pool's windows, unless the cache already has it. Return the index in the epoch
 * of the pool's first window. */
static uint64_t ready_pool(const sgt_sampler *s, sgt_sampler_memo *m, uint64_t i)
{
    uint64_t blocks = sgt_sampler_blocks(s);
    uint64_t pool = place_of(s, m, i) / s->pool_blocks, end = (pool + 1) * s->pool_blocks;
    uint64_t start = block_start(s, m, pool * s->pool_blocks);
    if (m->pool != pool) {
        uint64_t stop = block_start(s, m, end < blocks ? end : blocks);
        sgt_permutation_init(&m->within, draw(s, POOL, m->epoch, pool), stop - start);
        m->pool = pool;
    }
    return start;
}

/* ---- rows ---- */

static void begin_epoch(const sgt_sampler *s, sgt_sampler_memo *m, uint64_t epoch)
{
    uint64_t n = s->windows;
    *m = (sgt_sampler_memo){.ready = 1, .epoch = epoch, .short_at = UINT64_MAX, .pool = UINT64_MAX};
    if (s->sampling == SGT_SAMPLING_BLOCK) {
        uint64_t K = sgt_sampler_block_windows(s), whole = n / K;
        if (n % K) m->short_at = below(draw(s, SHORT, epoch, 0), whole + 1);
        if (whole) sgt_permutation_init(&m->order, draw(s, BLOCKS, epoch, 0), whole);
    } else {
        sgt_permutation_init(&m->order, draw(s, ORDER, epoch, 0), n);
    }
}

enum { ROWS = 64 };
_Static_assert(ROWS % SGT_DRAWS_WIDTH == 0, "whole vectors");

/* Rows whose windows are computed together. They are all in the same epoch or, for sampling
 * `block`, in the same pool. At first, at[k] is the index of row k in this epoch or pool. The
 * functions below replace it step by step with the index of the row's window in the set. The arrays
 * are processed in entire vectors, so their elements from n on hold values that are not used. */
typedef struct rows {
    uint64_t at[ROWS], lo[ROWS], hi[ROWS], u[ROWS];
    /* n: number of rows; wide: n rounded up to a multiple of SGT_DRAWS_WIDTH, so that entire
     * vectors are processed */
    uint32_t n, wide;
    uint64_t start; /* for sampling `block`: the pool's first window, as an index in the epoch */
} rows;

/* Copy the row indices row[0 ... n-1] to r->at, with `begin` subtracted. Stop at the first index
 * outside the range begin ... begin + last, or after ROWS indices. */
static void init_rows(rows *r, const uint64_t *row, uint32_t n, uint64_t begin, uint64_t last)
{
    for (r->n = 0; r->n < n && r->n < ROWS && row[r->n] - begin <= last; r->n++)
        r->at[r->n] = row[r->n] - begin;
    r->wide = (r->n + SGT_DRAWS_WIDTH - 1) / SGT_DRAWS_WIDTH * SGT_DRAWS_WIDTH;
    for (uint32_t k = r->n; k < r->wide; k++) r->at[k] = r->at[0];
}

static void permute_rows(rows *r, const sgt_permutation *p)
{
    sgt_draws_best()->permute(r->at, p, r->wide);
    for (uint32_t k = 0; k < r->n; k++)
        while (r->at[k] >= p->n) r->at[k] = sgt_permute_once(p, r->at[k]);
}

/* Set windows[k] to the window with index r->at[k] in the set, for each row k. Then add to its
 * offset the phase of its shard, which is a random number that differs from epoch to epoch. */
static void phase_rows(const sgt_sampler *s, uint64_t epoch, rows *r, sgt_window *windows)
{
    for (uint32_t k = 0; k < r->wide; k++) {
        if (k < r->n) windows[k] = window_of(s, r->at[k], s->seq);
        r->lo[k] = epoch;
        r->hi[k] = (uint64_t)windows[k < r->n ? k : 0].shard << 8 | PHASE;
    }
    sgt_draws_best()->philox(r->u, s->seed, r->lo, r->hi, r->wide);
    for (uint32_t k = 0; k < r->n; k++)
        windows[k].offset += below(r->u[k], s->phases[windows[k].shard]);
}

/* ---- the samplings ---- */

static void draw_shuffle(const sgt_sampler *s, sgt_sampler_memo *m, rows *r, sgt_window *windows)
{
    permute_rows(r, &m->order);
    phase_rows(s, m->epoch, r, windows);
}

static void draw_random(const sgt_sampler *s, sgt_sampler_memo *m, rows *r, sgt_window *windows)
{
    (void)m;
    for (uint32_t k = 0; k < r->wide; k++) r->hi[k] = RANDOM;
    sgt_draws_best()->philox(r->u, s->seed, r->at, r->hi, r->wide);
    for (uint32_t k = 0; k < r->n; k++)
        windows[k] = window_of(s, below(r->u[k], s->before[s->shards]), 1);
}

static void draw_block(const sgt_sampler *s, sgt_sampler_memo *m, rows *r, sgt_window *windows)
{
    uint64_t K = sgt_sampler_block_windows(s), blocks = sgt_sampler_blocks(s), places[ROWS];
    permute_rows(r, &m->within);
    for (uint32_t k = 0; k < r->n; k++) {
        uint64_t at = r->start + r->at[k], place = place_of(s, m, at);
        places[k] = place;
        r->lo[k] = at - block_start(s, m, place);
        r->at[k] = place == m->short_at ? 0 : place - (place > m->short_at);
    }
    /* if s->windows < K, the short block is the only block, so there is nothing to permute */
    if (s->windows >= K) permute_rows(r, &m->order);
    for (uint32_t k = 0; k < r->n; k++)
        r->at[k] = (places[k] == m->short_at ? blocks - 1 : r->at[k]) * K + r->lo[k];
    phase_rows(s, m->epoch, r, windows);
    for (uint32_t k = 0; k < r->n; k++) windows[k].block = m->epoch * blocks + places[k];
}

static void draw_sequential(const sgt_sampler *s, sgt_sampler_memo *m, rows *r, sgt_window *windows)
{
    (void)m;
    for (uint32_t k = 0; k < r->n; k++) windows[k] = window_of(s, r->at[k], s->seq);
}

static void draw_documents(const sgt_sampler *s, sgt_sampler_memo *m, rows *r, sgt_window *windows)
{
    permute_rows(r, &m->order);
    for (uint32_t k = 0; k < r->n; k++) {
        windows[k] = window_of(s, r->at[k], 1);
        windows[k].tokens = 0;
    }
}

static void draw_packed(const sgt_sampler *s, sgt_sampler_memo *m, rows *r, sgt_window *windows)
{
    (void)s;
    (void)m;
    for (uint32_t k = 0; k < r->n; k++) windows[k] = (sgt_window){.offset = r->at[k]};
}

/* The function for each sampling, in the order of the enum sgt_sampling. `draw` computes the
 * windows of the rows *r. has_epochs: 1 if all rows in *r must be in the same epoch, with indices
 * counted from the beginning of that epoch; 0 if the indices are counted from the beginning of the
 * run. */
static const struct {
    void (*draw)(const sgt_sampler *s, sgt_sampler_memo *m, rows *r, sgt_window *windows);
    int has_epochs;
} samplings[] = {{draw_shuffle, 1},    {draw_random, 0},    {draw_block, 1},
                 {draw_sequential, 1}, {draw_documents, 1}, {draw_packed, 0}};
_Static_assert(sizeof samplings / sizeof *samplings == SGT_SAMPLINGS, "all samplings");

void sgt_sampler_windows(const sgt_sampler *s, sgt_sampler_memo *m, const uint64_t *row, uint32_t n,
                         sgt_window *windows)
{
    rows r;
    for (uint32_t done = 0; done < n; done += r.n) {
        uint64_t begin = 0, last = UINT64_MAX;
        if (samplings[s->sampling].has_epochs) {
            uint64_t epoch = row[done] / s->windows;
            begin = epoch * s->windows;
            last = s->windows - 1;
            if (!m->ready || m->epoch != epoch) begin_epoch(s, m, epoch);
        }
        if (s->sampling == SGT_SAMPLING_BLOCK) {
            begin += r.start = ready_pool(s, m, row[done] - begin);
            last = m->within.n - 1;
        }
        init_rows(&r, row + done, n - done, begin, last);
        samplings[s->sampling].draw(s, m, &r, windows + done);
    }
}

sgt_window sgt_sampler_window(const sgt_sampler *s, sgt_sampler_memo *memo, uint64_t row)
{
    sgt_sampler_memo mine = {0};
    sgt_window w = {0};
    sgt_sampler_windows(s, memo ? memo : &mine, &row, 1, &w);
    return w;
}

uint32_t sgt_sampler_block(const sgt_sampler *s, sgt_sampler_memo *memo, uint64_t block,
                           sgt_extent *out, uint32_t most)
{
    uint64_t blocks = sgt_sampler_blocks(s), epoch = block / blocks,
             K = sgt_sampler_block_windows(s);
    uint32_t n = 0;
    if (!memo->ready || memo->epoch != epoch) begin_epoch(s, memo, epoch);
    uint64_t first = block_at(s, memo, block % blocks) * K,
             end = first + K < s->windows ? first + K : s->windows;
    for (; first < end; n++) {
        rows r = {.at = {first}, .n = 1, .wide = SGT_DRAWS_WIDTH};
        sgt_window w = {0};
        phase_rows(s, epoch, &r, &w);
        uint64_t next = s->before[w.shard + 1] < end ? s->before[w.shard + 1] : end;
        if (n < most) out[n] = (sgt_extent){w.shard, w.offset, (next - first) * s->seq + 1};
        first = next;
    }
    return n;
}

/* ---- the functions of draws.h in plain C ---- */

typedef uint64_t vec;
#define LANES 1
#define SIDE 1
#define MUL(x, y) ((uint64_t)(uint32_t)(x) * (uint32_t)(y))
#define REDUCE(x, m) ((x) >= (m) ? (x) - (m) : (x))
#include "loader/sample/draws_simd.h"

uint64_t sgt_permute_once(const sgt_permutation *p, uint64_t i)
{
    permute(&i, p, 1);
    return i;
}

const sgt_draws sgt_draws_plain = {"plain", philox, permute};

const sgt_draws *sgt_draws_best(void)
{
#if defined(__x86_64__)
    if (sgt_cpu() >= SGT_CPU_AVX512) return &sgt_draws_avx512;
    if (sgt_cpu() >= SGT_CPU_AVX2) return &sgt_draws_avx2;
#endif
    return &sgt_draws_plain;
}
