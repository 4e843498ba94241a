/* test_mix.c: the order of the rows of several sets, compared with a slow model that follows mix.h,
 * and with recorded values. Also the largest number of windows. test_draws.c and
 * test_sets.c compare the windows of a mix with those of its sets. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "loader/base/philox.h"
#include "loader/sample/mix.h"
#include "tests/loader/shards.h"

__extension__ typedef unsigned __int128 wide;

#define T 16
#define MOST 70 /* sets */

/* Weights and shard sizes of a mix; each set has two shards. Weights of 0: shares proportional to
 * the numbers of windows. */
typedef struct recipe {
    uint32_t sets;
    double weights[MOST];
    uint64_t tokens[MOST][2];
} recipe;

static const recipe recipes[] = {
    {2, {0.7, 0.3}, {{100, 1000}, {333, 40}}},
    {2, {1e-9, 1e6}, {{100, 40}, {40, 40}}},
    {3, {1, 1, 1}, {{64, 640}, {64, 640}, {64, 640}}},
    {5,
     {0.125, 3.75, 0.001, 1e-3, 20},
     {{100, 200}, {300, 400}, {500, 600}, {700, 800}, {900, 1000}}},
    {2, {0}, {{1000, 2000}, {17, 4000}}},
    {4, {0}, {{17, 17}, {1 << 20, 999}, {48, 48}, {5000, 6000}}},
    {7,
     {2, 3, 5, 7, 11, 13, 17},
     {{99, 99}, {99, 98}, {97, 96}, {95, 94}, {93, 92}, {91, 90}, {89, 88}}},
};

static recipe many(void)
{
    recipe r = {.sets = MOST};
    for (uint32_t i = 0; i < MOST; i++) {
        r.weights[i] = 1.0 / (1 + i % 9);
        r.tokens[i][0] = r.tokens[i][1] = 100 + i;
    }
    return r;
}

static sgt_mix mix_of(const recipe *r, sgt_sampling sampling, uint64_t seed)
{
    sgt_mix m;
    const sgt_loader_options o = {.sampling = sampling, .seed = seed, .seq = T};
    sgt_loader_set_info sets[MOST] = {0};
    for (uint32_t i = 0; i < r->sets; i++) {
        sets[i].weight = r->weights[i];
        sets[i].first_shard = 2 * i;
        sets[i].shards = 2;
    }
    must(sgt_mix_init(&m, &o, sets, r->sets, r->tokens[0], why));
    return m;
}

/* ---- the model ---- */

typedef struct model {
    uint32_t sets;
    uint64_t seed, shares[MOST];
} model;

static uint64_t windows_of(const uint64_t tokens[2])
{
    uint64_t n = 0;
    for (int s = 0; s < 2; s++) n += (tokens[s] - T) / T > 1 ? (tokens[s] - T) / T : 1;
    return n;
}

static model model_of(const recipe *r, uint64_t seed)
{
    model m = {.sets = r->sets, .seed = seed};
    for (uint32_t i = 0; i < r->sets; i++)
        m.shares[i] =
            r->weights[0] > 0 ? (uint64_t)(r->weights[i] * 1e9 + 0.5) : windows_of(r->tokens[i]);
    uint64_t divisor = m.shares[0];
    for (uint32_t i = 1; i < r->sets; i++)
        for (uint64_t a = m.shares[i], rest; a; divisor = a, a = rest) rest = divisor % a;
    for (uint32_t i = 0; i < r->sets; i++) m.shares[i] /= divisor;
    return m;
}

static wide total(const model *m, uint32_t i, uint32_t j)
{
    wide sum = 0;
    for (; i < j; i++) sum += m->shares[i];
    return sum;
}

/* Return how many of the first `rows` rows belong to set `set`. */
static uint64_t model_count(const model *m, uint32_t set, wide rows)
{
    uint32_t i = 0, j = m->sets;
    while (j - i > 1) {
        uint32_t h = (i + j) / 2;
        wide left = rows * total(m, i, h) / total(m, i, j);
        if (set < h) j = h, rows = left;
        else i = h, rows -= left;
    }
    return (uint64_t)rows;
}

static void model_turn(const model *m, uint64_t turn, uint32_t set[64], uint64_t row[64])
{
    uint64_t next[MOST];
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->sets; i++) {
        next[i] = model_count(m, i, (wide)turn * 64);
        uint64_t end = model_count(m, i, (wide)turn * 64 + 64) - next[i];
        for (uint64_t k = 0; k < end; k++) set[n++] = i;
    }
    cr_assert_eq(n, 64);
    for (uint32_t j = 63; j >= 1; j--) {
        uint32_t word = sgt_philox(m->seed, turn, (j / 4) * 256 + 7).x[j % 4];
        uint32_t other = (uint32_t)((wide)word * (j + 1) / ((wide)1 << 32)), moved = set[j];
        set[j] = set[other];
        set[other] = moved;
    }
    for (uint32_t j = 0; j < 64; j++) row[j] = next[set[j]]++;
}

static void check_turn(const model *want, const sgt_mix *m, sgt_mix_memo *memo, uint64_t turn)
{
    uint32_t set[64];
    uint64_t row[64], own, alone;
    model_turn(want, turn, set, row);
    for (uint32_t i = 0; i < m->sets; i++)
        cr_assert_eq(sgt_mix_drawn(m, i, turn * 64), model_count(want, i, (wide)turn * 64));
    for (uint64_t j = 0; j < 64; j++) {
        uint32_t s = sgt_mix_row(m, memo, turn * 64 + j, &own);
        cr_assert(s == set[j] && own == row[j], "row %lu: %lu of set %u, expected %lu of %u",
                  turn * 64 + j, own, s, row[j], set[j]);
        cr_assert(sgt_mix_row(m, NULL, turn * 64 + j, &alone) == s && alone == own);
        cr_assert_eq(sgt_mix_drawn(m, s, turn * 64 + j), own);
    }
}

static void check_model(const recipe *r, uint64_t seed)
{
    scoped(sgt_mix) m = mix_of(r, SGT_SAMPLING_SHUFFLE, seed);
    scoped_memory sgt_mix_memo *memo = calloc(1, sgt_mix_memo_bytes(&m));
    model want = model_of(r, seed);
    for (uint32_t i = 0; i < r->sets; i++) {
        /* after every multiple of 64 N rows, each set has had exactly its share */
        uint64_t share = m.shares_before[i + 1] - m.shares_before[i];
        cr_assert_eq(share, want.shares[i]);
        cr_assert_eq(sgt_mix_drawn(&m, i, 192 * m.shares_before[m.sets]), 192 * share);
    }
    for (uint64_t turn = 0; turn < 60; turn++) check_turn(&want, &m, memo, turn);
    for (uint64_t k = 0; k < 60; k++) /* random rows, up to the largest row number */
        check_turn(&want, &m, memo, sgt_philox_u64(3, k, 0) >> (6 + k % 50));
    check_turn(&want, &m, memo, UINT64_MAX / 64);
}

Test(mix, equals_the_slow_model)
{
    recipe most = many();
    for (uint64_t seed = 0; seed < 2; seed++) {
        for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
            check_model(&recipes[i], seed * 0x123456789abcdef);
        check_model(&most, seed);
    }
}

/* ---- properties ---- */

/* Each of two sets has half of the rows. If the order were the same in all turns (64 rows here),
 * one of two ranks might never see one of the sets. */
Test(mix, turns_differ)
{
    recipe r = {2, {1, 1}, {{1000, 1000}, {1000, 1000}}};
    scoped(sgt_mix) m = mix_of(&r, SGT_SAMPLING_SHUFFLE, 1);
    uint64_t own, odd = 0, alike = 0, last = 0;
    for (uint64_t turn = 0; turn < 1000; turn++) {
        uint64_t pattern = 0;
        for (uint64_t j = 0; j < 64; j++) {
            uint64_t set = sgt_mix_row(&m, NULL, turn * 64 + j, &own);
            pattern |= set << j;
            odd += set && j % 2;
        }
        cr_assert_eq(__builtin_popcountll(pattern), 32);
        alike += pattern == last;
        last = pattern;
    }
    cr_assert_eq(alike, 0); /* a turn has 1.8e18 possible orders */
    /* In a turn, 16 +- 2 of the 32 odd positions have the second set (hypergeometric distribution:
     * variance 32*32*32*32 / (64*64*63) = 4.06). Six standard deviations of the sum over 1,000
     * turns are 6 * sqrt(4063) = 383. */
    cr_assert(odd > 16000 - 383 && odd < 16000 + 383, "%lu", odd);
}

/* Recorded orders. They must never change, because resumed runs depend on them. */
Test(mix, frozen)
{
    static const struct {
        size_t recipe;
        uint64_t row, own;
        uint32_t set;
    } rows[] = {
        {0, 0, 0, 1},
        {0, 1, 1, 1},
        {0, 2, 0, 0},
        {0, 63, 43, 0},
        {0, 64, 20, 1},
        {0, 1000000000, 300000000, 1},
        {3, 77, 66, 4},
        {3, 4611686018427387904u, 3862868885058749345u, 4},
        {4, 9223372036854775808u, 3922583509926743734u, 0},
        {6, 18446744073709551615u, 3498520427772501168u, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        scoped(sgt_mix) m =
            mix_of(&recipes[rows[i].recipe], SGT_SAMPLING_SHUFFLE, 1234567890123456789);
        uint64_t own;
        uint32_t set = sgt_mix_row(&m, NULL, rows[i].row, &own);
        cr_assert(set == rows[i].set && own == rows[i].own, "{%zu, %luu, %luu, %u},",
                  rows[i].recipe, rows[i].row, own, set);
    }
}

/* Sets of 2^62 - 1 tokens each, with T = 1: as many sets as 2^63 windows allow, then one set too
 * many. */
Test(mix, the_most_windows)
{
    static const uint64_t tokens[] = {((uint64_t)1 << 62) - 1};
    const sgt_loader_options o = {.seed = 1, .seq = 1};
    sgt_loader_set_info sets[3] = {{.shards = 1}, {.shards = 1}, {.shards = 1}};
    sgt_mix m;
    uint64_t own, sum = 0;
    cr_assert_eq(sgt_mix_init(&m, &o, sets, 2, tokens, NULL), 0);
    for (uint32_t s = 0; s < 2; s++) sum += sgt_mix_drawn(&m, s, (uint64_t)1 << 63);
    cr_assert_eq(sum, (uint64_t)1 << 63);
    uint32_t set = sgt_mix_row(&m, NULL, UINT64_MAX, &own);
    cr_assert_eq(own, sgt_mix_drawn(&m, set, UINT64_MAX));
    sgt_mix_free(&m);
    expect_failure(sgt_mix_init(&m, &o, sets, 3, tokens, why), SGT_EUSAGE,
                   "the data has more than 2^63 windows");
}
