/* product.h: our own matrix products, one block of C on the calling thread. gemm.c cuts C into
 * blocks and gives them to threads.
 *
 * The method is that of Goto & van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
 * (2008). The block's part of B is packed into panels of 64 columns that stay in the second-level
 * cache. Six rows of A stay in the first-level cache, and the sums of a tile in registers. With
 * AVX-512 a tile is 6 x 64: 24 multiply-adds for 10 loads. AVX2 and plain C have half as many
 * registers. Their panels consist of strips of 16 and 8 columns; a tile is 6 x 16 or 6 x 8 and
 * takes 12 multiply-adds for 8 loads.
 *
 * A group is what a lane takes in one multiply-add: 1 float, or 2 bfloat16 numbers that are
 * neighbours along k. `vdpbf16ps` multiplies both and adds both results to the sum. A group always
 * has 4 bytes, so all other code is the same for both formats.
 *
 * The matrix product in AMX tiles (product_bf16_amx.c) has different blocks and packs
 * differently. */
#ifndef SGT_PRODUCT_H
#define SGT_PRODUCT_H

#include "kernels/kernels.h"

enum {
    SGT_PRODUCT_ROWS = 6,
    SGT_PRODUCT_COLUMNS = 64,
    SGT_PRODUCT_PANELS = 8, /* maximum number of panels in a block */
    /* groups of k packed at a time; a longer sum is the sum of such sections, added in order */
    SGT_PRODUCT_GROUPS = 384,
    SGT_PRODUCT_LEFT = 5 * SGT_PRODUCT_ROWS, /* rows of a transposed A packed at a time */
};

/* Factors for A: A's number (i, j), as stored, is multiplied by of[j / part * ld + i]. So each
 * `part` neighbours in a row share a factor. With trans_a, a block's rows must lie within one part.
 * The factors are then applied to B instead, which is given as float32 in `right` and rounded after
 * the multiplication. Without trans_a, part is at most SGT_PRODUCT_GROUPS groups. */
typedef struct sgt_factors {
    const float *of;
    size_t part, ld;
    const float *right; /* with trans_a: B as float32, (k, n) with row stride ldb */
} sgt_factors;

/* Compute rows i0 .. i0 + rows - 1 and columns j0 .. j0 + columns - 1 of C of `s`'s product. Each
 * number's sum is added in the same order wherever blocks begin. squares, with row stride
 * ld_squares, receives the sum of squares of each unit of C; it may be NULL. */
typedef void sgt_product_run(const sgt_gemm_shape *s, const void *a, const void *b,
                             const float *bias, float *c, size_t i0, size_t rows, size_t j0,
                             size_t columns, const sgt_factors *f, double *squares,
                             size_t ld_squares, void *scratch);

/* One of our matrix products, and what gemm.c must know to cut C into blocks for it. Costs are in
 * cycles per step along k; only their ratios matter. */
typedef struct sgt_product {
    sgt_product_run *run; /* f must be NULL for the product in AMX tiles */
    size_t scratch;       /* bytes of one thread's scratch, which is SGT_ARENA_ALIGN-aligned */
    /* size of a unit of C: blocks begin at multiples of it, in rows and in columns */
    size_t rows, columns;
    size_t deep; /* numbers of k packed at a time; a longer sum is the sum of such sections */
    /* maximum number of rows in a block if a sum has several sections, so that C stays in a cache;
     * 0: no limit */
    size_t most_rows;
    double unit_cost;     /* to compute a unit */
    double left_cost[2];  /* to pack a unit's rows of A; the same of a transposed A */
    double right_cost[2]; /* to pack a unit's columns of B; the same of a transposed B */
} sgt_product;

/* A part of the head's softmax: logits (n, V) = x w', x (n, C), w (V, C). The part of columns j0 ..
 * j0 + part - 1 has number j0 / part. For every row i it computes:
 *   max = max_j logits_ij   sum = sum_j e_ij
 *   e_ij = exp(logits_ij - max), in the format of the matrix products
 * and, if the column target_i is in the part, logits_i[target_i]. e has row stride `lde`, at least
 * V rounded up to a multiple of 64; columns from V up to that multiple become 0. */
typedef struct sgt_softmax {
    size_t n, V, C, part, lde;
    const void *x, *w;
    const int32_t *targets;
    void *e;
    float *max, *sum; /* (parts, n) */
    float *at_target; /* (n) */
} sgt_softmax;

typedef void sgt_softmax_part(const sgt_softmax *s, size_t j0, void *scratch);

/* maximum number of columns in a part */
enum { SGT_SOFTMAX_COLUMNS = SGT_PRODUCT_PANELS * SGT_PRODUCT_COLUMNS };

extern const sgt_product sgt_product_plain;
sgt_softmax_part sgt_softmax_plain;
/* x86-64 only. The bfloat16 products require sgt_cpu_bf16(), or sgt_cpu_amx() for the one in
 * tiles. */
extern const sgt_product sgt_product_avx2, sgt_product_avx512, sgt_product_bf16_avx512,
    sgt_product_bf16_amx;
sgt_softmax_part sgt_softmax_avx2, sgt_softmax_avx512, sgt_softmax_bf16_avx512;
/* Return the matrix product of sgt_cpu()'s level. For bfloat16, return the one in AMX tiles, else
 * the one in AVX512-BF16's vectors, or NULL if the CPU has neither. */
const sgt_product *sgt_own_product(int bf16);
/* Return the softmax of sgt_cpu()'s level. Returns NULL for bfloat16 unless the CPU has
 * AVX512-BF16. */
sgt_softmax_part *sgt_own_softmax(int bf16);

#endif
