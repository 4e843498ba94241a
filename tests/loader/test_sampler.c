/* test_sampler.c: sampling, compared with a slow model that writes out every list as sampler.h
 * defines it. Also permutations of any size, and recorded values, so that no run's order ever changes
 * by accident. test_draws.c compares rows drawn in any order with those drawn one by one. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "loader/base/philox.h"
#include "loader/sample/sampler.h"
#include "tests/loader/shards.h"

/* ---- the model: plain lists, divisions and 128-bit arithmetic. It shares only Philox with the
 * library ---- */

__extension__ typedef unsigned __int128 wide;

static uint64_t model_draw(uint64_t seed, unsigned purpose, uint64_t a, uint64_t b)
{
    sgt_philox4 r = sgt_philox(seed, a, b * 256 + purpose);
    return r.x[0] + ((uint64_t)r.x[1] << 32);
}

static uint64_t model_below(uint64_t u, uint64_t n)
{
    return (uint64_t)((wide)u * n / ((wide)1 << 64));
}

static uint64_t model_f(uint64_t key, unsigned round, uint64_t v, uint64_t m)
{
    uint64_t z = v ^ sgt_philox(key, round / 4, 0).x[round % 4];
    z *= 0xD2511F53u;
    z = z / 4294967296u ^ z % 4294967296u;
    z *= 0xCD9E8D57u;
    z = z / 4294967296u ^ z % 4294967296u;
    return (uint64_t)((wide)z * m / 4294967296u);
}

static uint64_t model_permute(uint64_t key, uint64_t n, uint64_t i)
{
    uint64_t a = 0;
    for (uint64_t bit = 1ull << 31; bit; bit /= 2)
        if ((wide)(a + bit) * (a + bit) < n) a += bit;
    a++; /* the square root of n, rounded up */
    uint64_t b = (n + a - 1) / a;
    do {
        uint64_t x = i / b, y = i % b;
        for (unsigned round = 0; round < 12; round++) {
            if (round % 2 == 0) x = (x + model_f(key, round, y, a)) % a;
            else y = (y + model_f(key, round, x, b)) % b;
        }
        i = x * b + y;
    } while (i >= n);
    return i;
}

/* List the windows of one epoch in the order in which shuffle numbers them: shard by shard. Return
 * how many. */
static uint64_t model_windows(sgt_window *w, uint64_t seed, uint32_t T, const uint64_t *tokens,
                              uint32_t shards, uint64_t epoch)
{
    uint64_t count = 0;
    for (uint32_t s = 0; s < shards; s++) {
        uint64_t n = tokens[s], W = (n - T) / T > 1 ? (n - T) / T : 1, room = n - 1 - W * T;
        uint64_t phase =
            model_below(model_draw(seed, 3, epoch, s), (room < T - 1 ? room : T - 1) + 1);
        for (uint64_t j = 0; j < W; j++)
            w[count++] = (sgt_window){.shard = s, .offset = phase + j * T, .tokens = T + 1};
    }
    return count;
}

/* Reorder the windows of one epoch from the order of their numbers (`from`) into the order of
 * sampling block (`to`). */
static void model_block(sgt_window *to, const sgt_window *from, uint64_t W, uint64_t seed,
                        uint32_t T, uint64_t epoch)
{
    uint64_t K = (131072 + T - 1) / T, blocks = (W + K - 1) / K, whole = W / K, used = 0;
    scoped_memory uint64_t *order = malloc(blocks * sizeof *order),
                           *line = malloc(W * sizeof *line);
    uint64_t short_at =
        whole < blocks ? model_below(model_draw(seed, 4, epoch, 0), blocks) : blocks;
    for (uint64_t place = 0, k = 0; place < blocks; place++)
        order[place] = place == short_at ? blocks - 1
                                         : model_permute(model_draw(seed, 5, epoch, 0), whole, k++);
    for (uint64_t pool = 0; pool * 256 < blocks; pool++) {
        uint64_t n = 0;
        for (uint64_t place = pool * 256; place < blocks && place < pool * 256 + 256; place++)
            for (uint64_t j = 0; j < K && order[place] * K + j < W; j++)
                line[n++] = order[place] * K + j;
        for (uint64_t i = 0; i < n; i++)
            to[used + i] = from[line[model_permute(model_draw(seed, 6, epoch, pool), n, i)]];
        used += n;
    }
    cr_assert_eq(used, W);
}

/* Return window number `start` of all possible ones, which may begin at any token of a shard. */
static sgt_window model_start(uint64_t start, uint32_t T, const uint64_t *tokens)
{
    uint32_t s = 0;
    for (; start >= tokens[s] - T; s++) start -= tokens[s] - T;
    return (sgt_window){.shard = s, .offset = start, .tokens = T + 1};
}

/* List all rows of an epoch, or a thousand rows for random sampling. Return their number. */
static uint64_t model_epoch(sgt_window *out, sgt_sampling sampling, uint64_t seed, uint32_t T,
                            const uint64_t *tokens, uint32_t shards, uint64_t epoch)
{
    uint64_t n = 0, starts = 0;
    if (sampling == SGT_SAMPLING_SEQUENTIAL) {
        for (uint32_t s = 0; s < shards; s++)
            for (uint64_t at = 0; at + T + 1 <= tokens[s]; at += T)
                out[n++] = (sgt_window){.shard = s, .offset = at, .tokens = T + 1};
        return n;
    }
    if (sampling == SGT_SAMPLING_RANDOM) {
        for (uint32_t s = 0; s < shards; s++) starts += tokens[s] - T;
        for (; n < 1000; n++)
            out[n] = model_start(model_below(model_draw(seed, 1, epoch * 1000 + n, 0), starts), T,
                                 tokens);
        return n;
    }
    for (uint32_t s = 0; s < shards; s++) n += tokens[s] / T + 1;
    scoped_memory sgt_window *w = malloc(n * sizeof *w);
    n = model_windows(w, seed, T, tokens, shards, epoch);
    if (sampling == SGT_SAMPLING_BLOCK) {
        model_block(out, w, n, seed, T, epoch);
    } else {
        for (uint64_t i = 0; i < n; i++)
            out[i] = w[model_permute(model_draw(seed, 2, epoch, 0), n, i)];
    }
    return n;
}

/* ---- the permutation ---- */

static void check_bijection(uint64_t key, uint64_t n)
{
    sgt_permutation p;
    scoped_memory uint8_t *seen = calloc(1, n);
    sgt_permutation_init(&p, key, n);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t to = sgt_permute(&p, i);
        cr_assert(to < n && !seen[to], "n %lu, key %lu: %lu goes to %lu", n, key, i, to);
        seen[to] = 1;
    }
}

Test(sampler, permutation_is_a_bijection)
{
    static const uint64_t primes[] = {1009, 4099, 9973, 65521, 104729, 1299709};
    for (uint64_t n = 1; n <= 300; n++)
        for (uint64_t key = 0; key < 4; key++) check_bijection(key, n);
    for (int bit = 9; bit <= 20; bit++)
        for (uint64_t n = (1u << bit) - 1; n <= (1u << bit) + 1; n++) check_bijection(n * 31, n);
    /* a square n, for which a * b is exactly n, and the numbers just below and above */
    for (uint64_t root = 17; root < 400; root += 53)
        for (uint64_t n = root * root - 1; n <= root * root + 1; n++) check_bijection(root, n);
    for (size_t i = 0; i < sizeof primes / sizeof *primes; i++) check_bijection(i, primes[i]);
}

/* The first and the last items of permutations that are too large to be listed. */
Test(sampler, permutation_of_huge_sizes)
{
    static const uint64_t sizes[] = {
        1ull << 32,       (1ull << 32) + 1, (1ull << 40) - 1, 1000000000000000003ull,
        (1ull << 62) + 1, (1ull << 63) - 1, 1ull << 63};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        sgt_permutation p;
        sgt_permutation_init(&p, k, sizes[k]);
        for (uint64_t i = 0; i < 20000; i++) {
            uint64_t at = i % 2 ? sizes[k] - 1 - i / 2 : i / 2;
            cr_assert_eq(sgt_permute(&p, at), model_permute(k, sizes[k], at), "%lu of %lu", at,
                         sizes[k]);
        }
    }
}

/* ---- windows ---- */

typedef struct set {
    uint32_t T, shards;
    uint64_t tokens[6];
} set;

static const set sets[] = {
    {1, 1, {2}}, /* the smallest set */
    {1, 3, {2, 3, 50}},
    {16, 1, {17}},     /* one window, with one possible phase */
    {16, 1, {32}},     /* one window, with 16 possible phases */
    {16, 1, {47}},     /* still one window */
    {16, 2, {48, 17}}, /* two windows and one */
    {16, 5, {1000, 17, 33, 777, 16 * 40 + 1}},
    {7, 6, {100, 200, 8, 14, 15, 22}},
    /* blocks of 2048 windows: full ones and a short one */
    {64, 2, {64 * 2048 * 2 + 65, 64 * 2048 + 900}},
    {64, 1, {64 * 2048 * 2 + 64}},               /* only whole blocks */
    {65536, 3, {65536 * 700, 65537, 65536 * 3}}, /* blocks of 2 windows, pools of 512 */
    {200000, 2, {200000 * 520, 250001}},         /* blocks of one window, pools of 256 */
    {1000003, 2, {8589934593, 5000000000}},      /* more tokens than 32 bits can count */
};

static void check_set(const set *d, sgt_sampling sampling, uint64_t seed)
{
    scoped(sgt_sampler) s;
    sgt_sampler_memo memo = {0};
    uint64_t total = 1000, row = 0;
    for (uint32_t i = 0; i < d->shards; i++) total += d->tokens[i] / d->T + 1;
    scoped_memory sgt_window *want = malloc(total * sizeof *want);
    must(sgt_sampler_init(&s, sampling, seed, d->T, d->tokens, d->shards, why));
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        uint64_t n = model_epoch(want, sampling, seed, d->T, d->tokens, d->shards, epoch);
        if (sampling != SGT_SAMPLING_RANDOM) cr_assert_eq(s.windows, n);
        for (uint64_t i = 0; i < n; i++, row++) {
            sgt_window w = sgt_sampler_window(&s, &memo, row),
                       alone = sgt_sampler_window(&s, NULL, row);
            cr_assert(w.shard == want[i].shard && w.offset == want[i].offset,
                      "%s, T %u, row %lu: %u:%lu, expected %u:%lu", sgt_sampling_name(sampling),
                      d->T, row, w.shard, w.offset, want[i].shard, want[i].offset);
            cr_assert(alone.shard == w.shard && alone.offset == w.offset);
            cr_assert(w.offset + d->T + 1 <= d->tokens[w.shard]);
        }
    }
}

Test(sampler, equals_the_slow_model)
{
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        for (int sampling = 0; sampling < SGT_SAMPLING_DOCUMENTS; sampling++)
            for (uint64_t seed = 0; seed < 2; seed++)
                check_set(&sets[i], (sgt_sampling)sampling, seed * 0x123456789abcdef);
}

/* Different seeds give different orders. */
Test(sampler, seeds_differ)
{
    const set *d = &sets[8];
    for (int sampling = 0; sampling < SGT_SAMPLING_SEQUENTIAL; sampling++) {
        scoped(sgt_sampler) a, b;
        uint64_t same = 0;
        cr_assert_eq(
            sgt_sampler_init(&a, (sgt_sampling)sampling, 0, d->T, d->tokens, d->shards, NULL), 0);
        cr_assert_eq(
            sgt_sampler_init(&b, (sgt_sampling)sampling, 1, d->T, d->tokens, d->shards, NULL), 0);
        for (uint64_t row = 0; row < 1000; row++)
            same += sgt_sampler_window(&a, NULL, row).offset ==
                    sgt_sampler_window(&b, NULL, row).offset;
        cr_assert_lt(same, 10);
    }
}

/* Values recorded when the definition was made. A change would break resuming for every existing
 * run. */
Test(sampler, frozen)
{
    static const uint64_t tokens[] = {100000000, 5000, 33000000},
                          documents[] = {0, 5000, 0, 8000, 1}; /* of each shard */
    static const struct {
        uint32_t shard;
        uint64_t offset;
    } want[SGT_SAMPLING_PACKED][6] = {
        {{0, 33305927}, {2, 1345107}, {0, 70814023}, {0, 66445285}, {0, 48449681}, {2, 21697596}},
        {{2, 21948243}, {0, 90590059}, {0, 46731469}, {0, 93979112}, {0, 12281749}, {0, 33908673}},
        {{0, 32106823}, {2, 24140371}, {0, 10630471}, {2, 23604106}, {0, 24161425}, {0, 85857554}},
        {{0, 0}, {0, 1024}, {2, 32995328}, {2, 32996352}, {0, 7877632}, {0, 76546048}},
        {{1, 2017}, {3, 670}, {1, 3416}, {1, 876}, {1, 4873}, {3, 2092}}};
    static const uint64_t rows[2][6] = {{0, 1, 129882, 129883, 1000000007, 123456789ull * 512},
                                        {0, 1, 13000, 13001, 1000000007, UINT64_MAX}};
    for (int sampling = 0; sampling < SGT_SAMPLING_PACKED; sampling++) {
        const int whole = sampling == SGT_SAMPLING_DOCUMENTS;
        scoped(sgt_sampler) s;
        must(sgt_sampler_init(&s, (sgt_sampling)sampling, 1337, 1024, whole ? documents : tokens,
                              whole ? 5 : 3, why));
        for (int i = 0; i < 6; i++) {
            const uint64_t row = rows[whole][i];
            sgt_window w = sgt_sampler_window(&s, NULL, row);
            cr_assert(w.shard == want[sampling][i].shard && w.offset == want[sampling][i].offset,
                      "%s, row %lu: {%u, %lu}", sgt_sampling_name(sampling), row, w.shard,
                      w.offset);
        }
    }
}
