/* product.h: our own matrix products. A call computes one block of C in the calling thread. gemm.c
 * cuts C into blocks and distributes them to threads.
 *
 * The method is that of Goto & van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
 * (2008). The part of B that a block needs is packed into panels of 64 columns, which stay in the
 * L2 cache. Six rows of A stay in the L1 cache, and the sums of a tile in registers. With AVX-512 a
 * tile is 6 x 64: each step along k takes 24 multiply-adds and only 10 loads. AVX2 and plain C have
 * half as many registers. There, panels consist of strips of 16 columns (AVX2) or 8 columns (plain
 * C). A tile is 6 x 16 or 6 x 8, and each step takes 12 multiply-adds and 8 loads.
 *
 * A group is the 4 bytes that a vector lane multiplies in one step: 1 float, or 2 bfloat16 elements
 * with successive values of k, the index over which the product sums. The instruction `vdpbf16ps`
 * multiplies both and adds both products to the sum. So only code that handles groups differs
 * between the two formats.
 *
 * The matrix product in AMX tiles (product_bf16_amx.c) has different blocks and packs
 * differently. */
#ifndef SGT_PRODUCT_H
#define SGT_PRODUCT_H

#include "kernels/kernels.h"

enum {
    SGT_PRODUCT_ROWS = 6,
    SGT_PRODUCT_COLUMNS = 64,
    /* maximum number of panels (64 packed columns of B each) for a block of C */
    SGT_PRODUCT_PANELS = 8,
    /* Maximum length of the section of k that is packed at a time, in groups (4 bytes of A or B
     * each). If k is longer, a matrix product sums over one section after the other. */
    SGT_PRODUCT_GROUPS = 384,
    /* number of rows of the product that are packed at a time if A is transposed */
    SGT_PRODUCT_LEFT = 5 * SGT_PRODUCT_ROWS,
};

/* Factors by which A is multiplied, for the gradients of the head. The element in row i and column
 * j of A, as stored, is multiplied by of[j / part * ld + i]. So each row consists of parts of
 * `part` successive elements, and the elements of a part have the same factor.
 *
 * If A is not transposed, a part may have at most SGT_PRODUCT_GROUPS groups (4 bytes each).
 *
 * If A is transposed, row i of A as stored multiplies row i of B, so the factors are applied to B
 * instead: row i of `right`, which is B in float32, is multiplied by the factor and then rounded.
 * In this case, the rows of a block of C must lie within one part. */
typedef struct sgt_factors {
    const float *of;
    size_t part, ld;
    const float *right; /* B in float32, (k, n) with row stride ldb; used only if A is transposed */
} sgt_factors;

/* Compute one block of C, rows i0 .. i0 + rows - 1 and columns j0 .. j0 + columns - 1, for the
 * matrix product with shape *s. The terms of each element of C are added in the same order for all
 * sizes of blocks.
 *
 * A unit is the smallest possible block (see sgt_product). If `squares` is not NULL, set squares[y
 * * ld_squares + x] to the sum of squares of the unit in row y and column x of the block's
 * units. */
typedef void sgt_product_run(const sgt_gemm_shape *s, const void *a, const void *b,
                             const float *bias, float *c, size_t i0, size_t rows, size_t j0,
                             size_t columns, const sgt_factors *f, double *squares,
                             size_t ld_squares, void *scratch);

/* Arguments for the softmax of the head, whose logits are (n, V) = x w', with x (n, C) and w (V,
 * C). Each call computes one part of the logits: columns j0 .. j0 + part - 1, which are part number
 * j0 / part. For every row i, a call computes
 *   max = max_j logits_ij   sum = sum_j e_ij
 *   e_ij = exp(logits_ij - max), in the format of the matrix products
 *   at_target_i = logits_i[target_i], if that column is in the part
 * `lde` is the row stride of e, at least V rounded up to a multiple of 64. Columns from V up to
 * that multiple become 0. */
typedef struct sgt_softmax {
    size_t n, V, C, part, lde;
    const void *x, *w;
    const int32_t *targets;
    void *e;
    float *max, *sum; /* (parts, n) */
    float *at_target; /* (n) */
} sgt_softmax;

/* Description of one of our matrix-product implementations: its functions, and the sizes and costs
 * that gemm.c needs for cutting C into blocks. Costs are in cycles per step along k. The number of
 * elements in a step depends on the implementation, but gemm.c compares only costs of the same
 * implementation. */
typedef struct sgt_product {
    /* function that computes a block of C; for the implementation in AMX tiles, its argument f must
     * be NULL */
    sgt_product_run *run;
    /* function that computes the softmax of one part (a range of columns) of the logits, in the
     * format of A and B; NULL for the implementation in AMX tiles, because head_bf16_amx.c has its
     * own */
    void (*softmax)(const sgt_softmax *s, size_t j0, void *scratch);
    size_t scratch; /* bytes of scratch memory per thread, aligned to SGT_ARENA_ALIGN */
    /* Numbers of rows and columns of a unit, the smallest possible block of C. A block consists of
     * whole units, so its first row and column are multiples of these numbers. */
    size_t rows, columns;
    /* maximum number of elements along k that are packed at a time; a sum over more elements is
     * divided into sections of this length */
    size_t deep;
    /* Maximum number of rows in a block of C if k exceeds `deep`; 0: no limit. If k exceeds `deep`,
     * the sections of the sum are added to the entire block one after another, so the block should
     * stay in a cache between sections. */
    size_t most_rows;
    double unit_cost; /* cost of computing a unit */
    /* cost of packing A for one row of units (smallest blocks of C), in cycles per step:
     * left_cost[1] if A is transposed, else left_cost[0] */
    double left_cost[2];
    /* cost of packing B, the right operand, for one column of units (smallest blocks of C), in
     * cycles per step of k: right_cost[1] if B is transposed, else right_cost[0] */
    double right_cost[2];
} sgt_product;

/* maximum number of columns in a part of the logits (see sgt_softmax) */
enum { SGT_SOFTMAX_COLUMNS = SGT_PRODUCT_PANELS * SGT_PRODUCT_COLUMNS };

extern const sgt_product sgt_product_plain;
/* The following implementations exist only on x86-64. The bfloat16 ones may be used only if
 * sgt_cpu_bf16() is true, and the one in AMX tiles only if sgt_cpu_amx() is true. */
extern const sgt_product sgt_product_avx2, sgt_product_avx512, sgt_product_bf16_avx512,
    sgt_product_bf16_amx;
/* Return the matrix product for the CPU level (plain C, AVX2 or AVX-512) that sgt_cpu() reports.
 * For bfloat16, return the product in AMX tiles if the CPU has AMX, else the product in AVX512-BF16
 * vectors, or NULL if the CPU has neither. */
const sgt_product *sgt_own_product(int bf16);

#endif
