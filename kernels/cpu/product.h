/* product.h: our own matrix products: one block of C on the calling thread. gemm.c cuts C into
 * blocks and gives them to threads.
 *
 * After Goto & van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): the
 * block's part of B is packed into panels of 64 columns that stay in the second-level cache, six
 * rows of A stay in the first, and the sums of a tile are registers. With AVX-512 a tile is 6 x 64:
 * 24 multiply-adds for 10 loads. AVX2 and plain C have half as many registers: their panels consist
 * of strips of 16 and 8 columns, a tile is 6 x 16 or 6 x 8, and takes 12 multiply-adds for 8 loads.
 * A group is what a lane takes in one multiply-add: 1 float, or 2 neighbours in k in bfloat16,
 * where `vdpbf16ps` adds both products; either is 4 bytes, and all else is the same code. */
#ifndef SGT_PRODUCT_H
#define SGT_PRODUCT_H

#include "kernels.h"

enum {
    SGT_PRODUCT_ROWS = 6,
    SGT_PRODUCT_COLUMNS = 64,
    SGT_PRODUCT_PANELS = 8, /* most columns of a block, in panels */
    /* of k that are packed at a time: a sum is made of such parts, in their order */
    SGT_PRODUCT_GROUPS = 384,
    SGT_PRODUCT_LEFT = 5 * SGT_PRODUCT_ROWS, /* rows of a turned A that are packed at a time */
    /* one thread's scratch: B's panels, rows of A, a row of C's tiles; SGT_ARENA_ALIGN-aligned */
    SGT_PRODUCT_SCRATCH =
        SGT_PRODUCT_GROUPS * 4 * (SGT_PRODUCT_PANELS * SGT_PRODUCT_COLUMNS + SGT_PRODUCT_LEFT) +
        6 * 64 + SGT_PRODUCT_ROWS * SGT_PRODUCT_COLUMNS * SGT_PRODUCT_PANELS * 4
};

/* Factors that A's numbers have besides, the same for each `part` of them in a row as A is stored:
 * A's number (i, j) is multiplied by of[j / part * ld + i]. With trans_a a block's rows lie within
 * one part, and B is float32 in `right` instead, to be multiplied and rounded once; without, part
 * is at most GROUPS groups. */
typedef struct sgt_factors {
    const float *of;
    size_t part, ld;
    const float *right; /* (k, n) with ldb */
} sgt_factors;

/* Rows i0 .. i0 + rows - 1 and columns j0 .. j0 + columns - 1 of C, of `s`'s product. Each number's
 * sum is made in one order, wherever blocks begin. squares: (rows / 6, columns / 64), rounded up,
 * with ld_squares: sums of squares of what is written, a tile each; NULL: not wanted. */
typedef void sgt_product(const sgt_gemm_shape *s, const void *a, const void *b, const float *bias,
                         float *c, size_t i0, size_t rows, size_t j0, size_t columns,
                         const sgt_factors *f, double *squares, size_t ld_squares, void *scratch);

/* A part of the head's softmax: logits (n, V) = x w', x (n, C), w (V, C). Of columns j0 .. j0 +
 * part - 1, which is part number j0 / part, for every row i:
 *   max = max_j logits_ij   e_ij = exp(logits_ij - max), in the products' format   sum = sum_j e_ij
 * and logits_i[target_i], where it is among them. e has `lde` numbers from row to row, at least V
 * to the next multiple of 64; those past V up to there become 0. */
typedef struct sgt_softmax {
    size_t n, V, C, part, lde;
    const void *x, *w;
    const int32_t *targets;
    void *e;
    float *max, *sum; /* (parts, n) */
    float *at_target; /* (n) */
} sgt_softmax;

typedef void sgt_softmax_part(const sgt_softmax *s, size_t j0, void *scratch);

enum { SGT_SOFTMAX_COLUMNS = SGT_PRODUCT_PANELS * SGT_PRODUCT_COLUMNS }; /* most of a part */

sgt_product sgt_product_f32_plain;
sgt_softmax_part sgt_softmax_f32_plain;
/* x86-64 only; of bfloat16 where sgt_cpu_bf16(). */
sgt_product sgt_product_f32_avx2, sgt_product_f32_avx512, sgt_product_bf16_avx512;
sgt_softmax_part sgt_softmax_f32_avx2, sgt_softmax_f32_avx512, sgt_softmax_bf16_avx512;
/* Those of sgt_cpu()'s level. NULL for bfloat16 unless vectors multiply it and there is no AMX,
 * whose products are oneDNN's. */
sgt_product *sgt_own_product(int bf16);
sgt_softmax_part *sgt_own_softmax(int bf16);

#endif
