/* philox.h: random numbers as a pure function of a key and a counter. The function is
 * Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Because
 * it keeps no state, all machines and threads get the same numbers, whatever the order of the
 * calls. CPU and CUDA code share this file. */
#ifndef SGT_BASE_PHILOX_H
#define SGT_BASE_PHILOX_H

#include <stdint.h>

/* prefix of functions that C, C++ and CUDA kernels can all call */
#ifdef __CUDACC__
#define SGT_EVERYWHERE static __host__ __device__ __forceinline__
#else
#define SGT_EVERYWHERE static inline
#endif

typedef struct sgt_philox4 {
    uint32_t x[4];
} sgt_philox4;

SGT_EVERYWHERE sgt_philox4 sgt_philox(uint64_t key, uint64_t counter_lo, uint64_t counter_hi)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)counter_lo, c1 = (uint32_t)(counter_lo >> 32);
    uint32_t c2 = (uint32_t)counter_hi, c3 = (uint32_t)(counter_hi >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    sgt_philox4 r = {{c0, c1, c2, c3}};
    return r;
}

/* Return 64 of the 128 random bits that sgt_philox returns: those in x[0] and x[1]. */
SGT_EVERYWHERE uint64_t sgt_philox_u64(uint64_t key, uint64_t counter_lo, uint64_t counter_hi)
{
    sgt_philox4 r = sgt_philox(key, counter_lo, counter_hi);
    return (uint64_t)r.x[1] << 32 | r.x[0];
}

#endif
