/* test_draws.c: many rows that are drawn in one call equal rows that are drawn one by one, at every
 * CPU level and for any epochs, pools and shards. */
#include <stdlib.h>
#include <string.h>

#include "loader/base/cpu.h"
#include "loader/base/philox.h"
#include "loader/sample/draws.h"
#include "loader/sample/mix.h"
#include "tests/loader/shards.h"

enum { MOST = 160 };

static void each_level(void (*check)(void))
{
    sgt_error err;
    int levels = (int)sgt_cpu() + 1;
    for (int level = 0; level < levels; level++) {
        must(sgt_cpu_limit(sgt_cpu_names[level], why));
        cr_assert_str_eq(sgt_draws_best()->level, sgt_cpu_names[level]);
        check();
    }
    sgt_cpu_limit("auto", &err);
}

/* Return a random number: sometimes with ones in its upper half, sometimes small. */
static uint64_t any(uint64_t k, uint64_t what)
{
    uint64_t u = sgt_philox_u64(77, k, what);
    return k % 7 == 0 ? u | UINT64_C(0xffffffff00000000) : k % 11 == 0 ? u >> 33 : u;
}

static void check_permute(void)
{
    static const uint64_t sizes[] = {1,          2,          3,
                                     5,          16,         97,
                                     1000,       65536,      (1ull << 32) - 1,
                                     1ull << 32, 1ull << 63, (1ull << 63) - 25};
    uint64_t at[64];
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (uint64_t round = 0; round < 20; round++) {
            sgt_permutation p;
            uint64_t before[64];
            sgt_permutation_init(&p, any(round, 4), sizes[k]);
            for (size_t i = 0; i < 64; i++)
                at[i] = i < 2 ? sizes[k] - 1 : any(round * 64 + i, 5) % sizes[k];
            memcpy(before, at, sizeof before);
            sgt_draws_best()->permute(at, &p, 64);
            for (size_t i = 0; i < 64; i++)
                cr_assert_eq(at[i], sgt_permute_once(&p, before[i]), "size %zu", k);
        }
}

/* Draw n rows, `step` apart, in one call, and compare them with rows drawn one by one. */
static void check_rows(const sgt_mix *m, sgt_mix_memo *memo, uint64_t row, uint32_t step,
                       uint32_t n)
{
    sgt_window got[MOST + 1], spare = {7, 7, 7, 7};
    got[n] = spare;
    sgt_mix_windows(m, memo, row, step, n, got);
    for (uint32_t i = 0; i < n; i++) {
        sgt_window w = sgt_mix_window(m, row + (uint64_t)i * step);
        cr_assert(got[i].shard == w.shard && got[i].offset == w.offset &&
                      got[i].tokens == w.tokens && got[i].block == w.block,
                  "%u sets, %s, row %lu + %u * %u", m->sets,
                  sgt_sampling_name(m->samplers[0].sampling), row, i, step);
    }
    cr_assert_eq(memcmp(&got[n], &spare, sizeof spare), 0);
}

/* Cases: epochs with fewer rows than a vector has, and with more rows than one call draws; a single
 * block, a few blocks, and more blocks than a pool has; several sets. */
static struct {
    uint32_t seq, sets;
    sgt_loader_set_info of[3];
    uint64_t tokens[6];
} mixes[] = {{16, 1, {{.shards = 1}}, {17}},
             {16, 1, {{.shards = 3}}, {17, 100, 33}},
             {8, 1, {{.shards = 5}}, {1000, 9, 400, 77, 2000}},
             {1024, 1, {{.shards = 2}}, {1 << 20, 300000}},
             {131072, 1, {{.shards = 2}}, {50000000, 30000000}},
             {131072, 1, {{.shards = 4}}, {50000000, 30000000, 9000000000, 131073}},
             {32,
              2,
              {{.weight = .6, .shards = 2}, {.weight = .4, .first_shard = 2, .shards = 1}},
              {4000, 700, 90000}},
             {32,
              3,
              {{.weight = .5, .shards = 2},
               {.weight = .3, .first_shard = 2, .shards = 1},
               {.weight = .2, .first_shard = 3, .shards = 3}},
              {4000, 700, 90000, 1000, 2000, 3000}}};

static void check_samplings(void)
{
    for (size_t k = 0; k < sizeof mixes / sizeof *mixes; k++)
        for (int sampling = 0; sampling < SGT_SAMPLINGS; sampling++) {
            scoped(sgt_mix) m;
            const sgt_loader_options o = {
                .sampling = (sgt_sampling)sampling, .seed = 5 + k, .seq = mixes[k].seq};
            must(sgt_mix_init(&m, &o, mixes[k].of, mixes[k].sets, mixes[k].tokens, why));
            scoped_memory sgt_mix_memo *memo = calloc(1, sgt_mix_memo_bytes(&m));
            for (uint64_t round = 0; round < 40; round++) {
                uint64_t row = any(round, 6) % (3 * m.windows + 10);
                uint32_t step = round % 2 ? 1 : 1 + (uint32_t)(any(round, 7) % 9);
                check_rows(&m, memo, row, step, 1 + (uint32_t)(any(round, 8) % MOST));
            }
            check_rows(&m, memo, m.windows - 1, 1, 33);
            check_rows(&m, memo, ((uint64_t)1 << 62) + 3, 3, 65);
        }
}

Test(draws, permute) { each_level(check_permute); }

Test(draws, rows_are_those_drawn_one_by_one) { each_level(check_samplings); }
