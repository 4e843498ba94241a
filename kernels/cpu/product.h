/* product.h: our own matrix products, for AVX-512: one block of C on the calling thread. gemm.c cuts C into blocks and
 * gives them to threads.
 *
 * After Goto & van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): the block's part of B is packed
 * into panels of 64 columns that stay in the second-level cache, six rows of A stay in the first, and 6 x 64 sums are
 * registers: 24 multiply-adds for 10 loads. A group is what a lane takes in one multiply-add: 1 float, or 2 neighbours
 * in k in bfloat16, where `vdpbf16ps` adds both products; either is 4 bytes, and all else is the same code. */
#ifndef SGT_PRODUCT_H
#define SGT_PRODUCT_H

#include "kernels.h"

enum {
    SGT_PRODUCT_ROWS = 6,
    SGT_PRODUCT_COLUMNS = 64,
    SGT_PRODUCT_PANELS = 8,   /* most columns of a block, in panels */
    SGT_PRODUCT_GROUPS = 256, /* of k that are packed at a time: a sum is made of such parts, in their order */
    /* one thread's scratch: B's panels, six rows of A, a tile of C; SGT_ARENA_ALIGN-aligned */
    SGT_PRODUCT_SCRATCH = SGT_PRODUCT_GROUPS * 4 * (SGT_PRODUCT_PANELS * SGT_PRODUCT_COLUMNS + SGT_PRODUCT_ROWS) + 64 +
                          SGT_PRODUCT_ROWS * SGT_PRODUCT_COLUMNS * 4
};

/* Rows i0 .. i0 + rows - 1 and columns j0 .. j0 + columns - 1 of C, of `s`'s product. Each number's sum is made in one
 * order, wherever blocks begin. */
typedef void sgt_product(const sgt_gemm_shape *s, const void *a, const void *b, const float *bias, float *c, size_t i0,
                         size_t rows, size_t j0, size_t columns, void *scratch);

/* x86-64 only; of bfloat16 where sgt_cpu_bf16(). */
sgt_product sgt_product_f32_avx512, sgt_product_bf16_avx512;

#endif
