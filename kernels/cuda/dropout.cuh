// dropout.cuh: which elements dropout keeps: Philox-4x32-10 as in loader/base/philox.h, keyed by the seed, counted by
// (step, layer, site) and the element; one draw serves four elements.
#pragma once

#include "elements.cuh"

namespace sgt {

struct Draw {
    uint32_t x[4];
};

DEV Draw philox(uint64_t key, uint64_t lo, uint64_t hi)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)lo, c1 = (uint32_t)(lo >> 32), c2 = (uint32_t)hi, c3 = (uint32_t)(hi >> 32);
    DEV_UNROLL for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

// The factors of V elements from `element` of this micro-step on (a multiple of 4 unless V is 1): 0 or 1/(1 - rate).
// An element is kept where its 32-bit draw is at least rate * 2^32, in float32: 1 - rate is met to 2^-24.
template <int V> DEV void dropout_factors(float (&factor)[V], const sgt_cuda_dropout &d, uint64_t element)
{
    uint64_t at = d.place->row * d.row_elements + element, hi = d.place->step << 16 | d.layer << 4 | d.site;
    float keep = 1 / (1 - d.rate), limit = d.rate * 0x1p32f;
    DEV_UNROLL for (int i = 0; i < V; i += 4) {
        Draw draw = philox(d.place->seed, at / 4 + i / 4, hi);
        DEV_UNROLL for (int j = 0; j < 4 && i + j < V; j++) {
            int k = V == 1 ? (int)(at % 4) : j;
            uint32_t bits = k == 0 ? draw.x[0] : k == 1 ? draw.x[1] : k == 2 ? draw.x[2] : draw.x[3];
            factor[i + j] = (float)(bits >> 8) * 0x1p8f >= limit ? keep : 0;
        }
    }
}

} // namespace sgt
