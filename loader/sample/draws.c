/* draws.c: the functions of draws.h with vector instructions of x86-64. The AVX2 version computes
 * four rows per vector, and the AVX-512 version eight. The build compiles this file once for each
 * of these levels. */
#ifdef SGT_LEVEL
#include <immintrin.h>
#include <stdint.h>

#if defined(__AVX512F__)
typedef uint64_t vec __attribute__((vector_size(64)));
#define LANES 8
#define MUL(x, y) ((vec)_mm512_mul_epu32((__m512i)(x), (__m512i)(y)))
#else
typedef uint64_t vec __attribute__((vector_size(32)));
#define LANES 4
#define MUL(x, y) ((vec)_mm256_mul_epu32((__m256i)(x), (__m256i)(y)))
#endif
#define REDUCE(x, m) ((x) - ((m) & (vec)((x) >= (m))))
#define SIDE 2
#include "loader/sample/draws_simd.h"

const sgt_draws SGT_NAME(sgt_draws) = {SGT_LEVEL, philox, permute};
#else
typedef int nothing_here;
#endif
