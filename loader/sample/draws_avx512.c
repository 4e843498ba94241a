/* draws_avx512.c: eight rows per vector. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>

typedef uint64_t vec __attribute__((vector_size(64)));
#define LANES 8
#define MUL(x, y) ((vec)_mm512_mul_epu32((__m512i)(x), (__m512i)(y)))
#define REDUCE(x, m) ((x) - ((m) & (vec)((x) >= (m))))
#define SIDE 2
#include "loader/sample/draws_simd.h"

const sgt_draws sgt_draws_avx512 = {"avx512", philox, permute};
#else
typedef int nothing_here;
#endif
