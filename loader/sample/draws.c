/* draws.c: choose the functions for this CPU, and define them in plain C. */
#include "loader/sample/draws.h"

#include "loader/base/cpu.h"
#include "loader/base/philox.h"

static void philox(uint64_t *u, uint64_t key, const uint64_t *lo, const uint64_t *hi, size_t n)
{
    for (size_t i = 0; i < n; i++) u[i] = sgt_philox_u64(key, lo[i], hi[i]);
}

static uint32_t fold(uint64_t z) { return (uint32_t)(z >> 32) ^ (uint32_t)z; }

/* Return (v + F(other)) mod m: a round of the Feistel network in sampler.h. */
static uint32_t feistel_round(uint32_t v, uint32_t other, uint32_t key, uint32_t m)
{
    uint32_t u = fold((uint64_t)(other ^ key) * 0xD2511F53u);
    u = fold((uint64_t)u * 0xCD9E8D57u);
    uint64_t sum = v + ((uint64_t)u * m >> 32);
    return (uint32_t)(sum >= m ? sum - m : sum);
}

uint64_t sgt_permute_once(const sgt_permutation *p, uint64_t i)
{
    uint32_t x = (uint32_t)(i / p->b), y = (uint32_t)(i % p->b);
    for (unsigned r = 0; r < SGT_PERMUTE_ROUNDS; r += 2) {
        x = feistel_round(x, y, p->keys[r], p->a);
        y = feistel_round(y, x, p->keys[r + 1], p->b);
    }
    return (uint64_t)x * p->b + y;
}

static void permute(uint64_t *at, const sgt_permutation *p, size_t n)
{
    for (size_t i = 0; i < n; i++) at[i] = sgt_permute_once(p, at[i]);
}

const sgt_draws sgt_draws_plain = {"plain", philox, permute};

const sgt_draws *sgt_draws_level(int level)
{
    if (level > (int)sgt_cpu()) return NULL;
#if defined(__x86_64__)
    if (level == SGT_CPU_AVX512) return &sgt_draws_avx512;
    if (level == SGT_CPU_AVX2) return &sgt_draws_avx2;
#endif
    return level == SGT_CPU_PLAIN ? &sgt_draws_plain : NULL;
}

const sgt_draws *sgt_draws_best(void) { return sgt_draws_level((int)sgt_cpu()); }
