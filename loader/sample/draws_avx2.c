/* draws_avx2.c: four rows per vector. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>

typedef uint64_t vec __attribute__((vector_size(32)));
#define LANES 4
#define MUL(x, y) ((vec)_mm256_mul_epu32((__m256i)(x), (__m256i)(y)))
#define REDUCE(x, m) ((x) - ((m) & (vec)((x) >= (m))))
#define SIDE 2
#include "loader/sample/draws_simd.h"

const sgt_draws sgt_draws_avx2 = {"avx2", philox, permute};
#else
typedef int nothing_here;
#endif
