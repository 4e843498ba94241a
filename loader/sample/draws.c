/* draws.c: the table, and the plain C that defines it. */
#include "sample/draws.h"

#include "base/cpu.h"
#include "base/philox.h"

static void philox(uint64_t *u, uint64_t key, const uint64_t *lo, const uint64_t *hi, size_t n)
{
    for (size_t i = 0; i < n; i++) u[i] = sgt_philox_u64(key, lo[i], hi[i]);
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

const sgt_draws *sgt_draws_best(void)
{
    return sgt_draws_level((int)sgt_cpu());
}
