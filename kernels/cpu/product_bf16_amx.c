/* product_bf16_amx.c: our own matrix products of bfloat16 in AMX tiles.
 *
 * A unit is 32 x 32 elements of C, whose sums are in four tiles. Each step adds 32 values of k to
 * them, with four tile loads and four tile products (amx.h). B is packed for all columns of a block
 * of C and for at most DEEP steps, in panels of 32 columns. The panels take up to 1 MiB and stay in
 * the L2 cache. A is packed for 32 rows and NEAR steps at a time. The L1 cache has room for these
 * rows of A (16 KiB), for the same NEAR steps of a panel (16 KiB), and for the sums of a unit (4
 * KiB). Therefore each step loads a pair of A from the L1 cache and a pair of B from the L2 cache.
 *
 * A unit's sums are loaded into tiles again for the next NEAR steps, so NEAR does not affect the
 * bits of the result. The bias and the old C are added with vector instructions, after the last
 * step. A sum of more than DEEP steps is accumulated in C, in order. Denormal numbers count as 0 in
 * the tiles.
 *
 * This code was not measured on a CPU with AMX. Its sizes come from measurements of similar
 * products on such a CPU: rows in blocks of 32 and k in steps of 256 were fastest if B is small. */
#include "kernels/cpu/product.h"

#if defined(__x86_64__)
#include "kernels/cpu/amx.h"

enum {
    /* Maximum number of steps along k for which B is packed at a time. A step covers SIDE values of
     * k. */
    DEEP = 32,
    NEAR = 8, /* number of steps along k for which A is packed at a time */
    MOST_COLUMNS = SGT_PRODUCT_PANELS * SGT_PRODUCT_COLUMNS,
    PANELS = MOST_COLUMNS / SIDE,
    RIGHT_BYTES = PANELS * DEEP * PAIR,
    LEFT_BYTES = NEAR * PAIR,
    /* Number of rows by which the prefetches of B are ahead of packing. B is prefetched because it
     * is often not in any cache. */
    AHEAD = 8
};

/* Description of the work of one call: the block of C to compute, and the section of k to sum over.
 * The block's columns of B in that section are already packed. */
typedef struct block {
    const sgt_gemm_shape *s;
    const uint16_t *a, *b;
    const float *bias; /* NULL: no bias, or already added */
    float *c;
    size_t j0, columns;
    /* k0: first value of k in the section; steps: length of the section, in steps of SIDE values */
    size_t k0, steps;
    /* add: 1 to add to C, 0 to overwrite C; stream: 1 to write C with non-temporal stores, 0 with
     * ordinary stores */
    int add, stream;
    char *right; /* (columns / SIDE, steps) pairs */
    char *left;  /* (NEAR) pairs */
    float *sums; /* (columns / SIDE) units */
} block;

/* ---- packing ---- */

/* Pack a B that is stored (k, n). All panels are packed at the same time, row by row, so that B is
 * read in the order of memory. */
static void pack_across(const block *q)
{
    const __m512i low = vturns_low(), high = vturns_high();
    const size_t ld = q->s->ldb, k = q->s->k;
    for (size_t r = 0; r < q->steps * W; r++) {
        size_t upper = q->k0 + 2 * r, lower = upper + 1;
        const uint16_t *first = q->b + least(upper, k - 1) * ld + q->j0,
                       *second = q->b + least(lower, k - 1) * ld + q->j0,
                       *ahead = q->b + least(upper + AHEAD, k - 1) * ld + q->j0;
        for (size_t j = 0; j < q->columns; j += SIDE) {
            size_t n = least(SIDE, q->columns - j);
            __m512i x = amx_numbers(first + j, upper < k ? n : 0);
            __m512i y = amx_numbers(second + j, lower < k ? n : 0);
            char *out = q->right + (j / SIDE * q->steps + r / W) * PAIR + r % W * 64;
            amx_put(out, _mm512_permutex2var_epi16(x, low, y));
            amx_put(out + TILE, _mm512_permutex2var_epi16(x, high, y));
            __builtin_prefetch(ahead + j);
            __builtin_prefetch(ahead + ld + j);
        }
    }
}

/* Pack a B stored (n, k). */
static void pack_along(const block *q)
{
    char *out = q->right;
    for (size_t j = 0; j < q->columns; j += SIDE)
        for (size_t p = 0; p < q->steps; p++, out += PAIR) {
            size_t k = q->k0 + p * SIDE;
            amx_pack_transposed(out, q->b + (q->j0 + j) * q->s->ldb + k, q->s->ldb,
                                least(SIDE, q->columns - j), least(SIDE, q->s->k - k));
        }
}

/* Pack up to SIDE rows of A, from row i on: of each row, the elements of `steps` steps along k,
 * from element k on. */
static void pack_left(const block *q, size_t i, size_t rows, size_t k, size_t steps)
{
    const sgt_gemm_shape *s = q->s;
    char *out = q->left;
    for (size_t p = 0; p < steps; p++, k += SIDE, out += PAIR) {
        size_t some = least(SIDE, s->k - k);
        if (s->trans_a) amx_pack_columns(out, q->a + k * s->lda + i, s->lda, some, rows);
        else amx_pack_rows(out, q->a + i * s->lda + k, s->lda, rows, some);
    }
}

/* ---- a unit of C ---- */

/* Store the sums of a unit (32 x 32 elements) in C. The unit begins at row i of C and at column j
 * of the block. Elements of the unit beyond the edges of C are not stored. Return the sum of
 * squares of the stored elements. */
static double finish(const block *q, const float *sum, size_t i, size_t rows, size_t j)
{
    const size_t ld = q->s->ldc, columns = least(SIDE, q->columns - j);
    const float *bias = q->bias ? q->bias + q->j0 + j : NULL;
    float *c = q->c + i * ld + q->j0 + j;
    double total = 0;
    for (size_t r0 = 0; r0 < rows; r0 += 8) { /* sum only a few squares in float */
        vf squares = vset(0);
        for (size_t r = r0; r < least(rows, r0 + 8); r++)
            for (size_t v = 0; v < columns; v += W) {
                float *at = c + r * ld + v;
                size_t n = columns - v;
                vf x = vload(sum + r * SIDE + v);
                if (bias) x += vload_upto(bias + v, n);
                if (q->add) x += vload_upto(at, n);
                if (q->stream && n >= W) vstream(at, x);
                else vstore_upto(at, x, n);
                x = vkeep(x, n);
                squares = vfma(x, x, squares);
            }
        total += vtotal(squares);
    }
    return total;
}

/* Compute one row of units (32 x 32 elements each) of the block of C that *q describes: up to SIDE
 * rows, from row i of C on. If `squares` is not NULL, set squares[v] to the sum of squares of unit
 * v. */
static void row_of_units(const block *q, size_t i, size_t rows, double *squares)
{
    for (size_t p = 0; p < q->steps; p += NEAR) {
        size_t steps = least(NEAR, q->steps - p);
        pack_left(q, i, rows, q->k0 + p * SIDE, steps);
        for (size_t v = 0; v < units(q->columns); v++) {
            float *sum = q->sums + v * BLOCK;
            amx_block(sum, q->left, q->right + (v * q->steps + p) * PAIR, PAIR, steps, p > 0);
            if (p + steps < q->steps) continue;
            double of_unit = finish(q, sum, i, rows, v * SIDE);
            if (squares) squares[v] = of_unit;
        }
    }
}

/* Return whether to write C with non-temporal stores. They are used only if A is transposed,
 * because C is then the gradient of a weight, which is not read before the end of the backward
 * pass. */
static int streams(const sgt_gemm_shape *s, const float *c)
{
    return s->trans_a && !s->accumulate && units(s->k) <= DEEP && s->ldc % W == 0 &&
           (uintptr_t)c % 64 == 0;
}

static void product(const sgt_gemm_shape *s, const void *a, const void *b, const float *bias,
                    float *c, size_t i0, size_t rows, size_t j0, size_t columns,
                    const sgt_factors *f, double *squares, size_t ld_squares, void *scratch)
{
    char *room = scratch;
    size_t all = units(s->k);
    (void)f;
    tile_config();
    for (size_t p = 0; p < all; p += DEEP) {
        const block q = {.s = s,
                         .a = a,
                         .b = b,
                         .bias = s->bias && p == 0 ? bias : NULL,
                         .c = c,
                         .j0 = j0,
                         .columns = columns,
                         .k0 = p * SIDE,
                         .steps = least(DEEP, all - p),
                         .add = s->accumulate || p > 0,
                         .stream = streams(s, c),
                         .right = room,
                         .left = room + RIGHT_BYTES,
                         .sums = (float *)(void *)(room + RIGHT_BYTES + LEFT_BYTES)};
        if (s->trans_b) pack_along(&q);
        else pack_across(&q);
        int last = p + q.steps == all;
        for (size_t i = 0; i < rows; i += SIDE)
            row_of_units(&q, i0 + i, least(SIDE, rows - i),
                         squares && last ? squares + i / SIDE * ld_squares : NULL);
    }
    tile_release();
    /* make C visible to other threads: thread barriers do not wait for non-temporal stores */
    if (s->trans_a) vstream_end();
}

/* Costs in cycles per step of 32 values of k. They are estimates, not measurements:
 *   unit_cost              A unit takes 4 tile products per step, of 16 cycles each.
 *   left_cost, right_cost  A step of a row or column of units needs one packed pair of A or B. It
 *                          takes 32 loads and stores, and 128 shuffles if it must be transposed.
 * most_rows is 512, so that a block of C takes at most 512 x 512 floats: 1 MiB, as much as the
 * panels of B, with which it shares the L2 cache. */
const sgt_product sgt_product_bf16_amx = {
    .run = product,
    .scratch = RIGHT_BYTES + LEFT_BYTES + (size_t)PANELS * BLOCK_BYTES,
    .rows = SIDE,
    .columns = SIDE,
    .deep = (size_t)DEEP * SIDE,
    .most_rows = 512,
    .unit_cost = 64,
    .left_cost = {40, 160},
    .right_cost = {50, 140},
};
#endif
