/* head_bf16_amx.c: the head, its softmax and its loss in AMX tiles. Logits exist only in blocks of
 * up to 512 columns and 32 rows.
 *
 * Everything is computed transposed: logits' (V, n) = w x'. So each row of x has a vector lane of
 * its own, which holds the row's maximum, sum or factor. dlogits' is directly the right operand of
 * dx' = w' dlogits'. When its rows are interleaved, dlogits' is the left operand of dw = dlogits'
 * x.
 *
 * The columns of the logits are divided into parts. Row i of the logits is stored as e_ij =
 * exp(logit_ij - r_i), rounded to bfloat16. r_i, the reference of the row, is the largest logit in
 * the first part. The gradient of the logits is e_ij times a factor, which is the same in all parts
 * of a row: scale / sum_j e_ij. Because this factor does not depend on the part, the tiles can sum
 * dx' over all parts before the factor is applied, and each row of x is multiplied by its factor
 * and packed only once for all of w. At the target, 1 is subtracted before rounding.
 *
 * If a logit exceeds r_i + 30, a sum could overflow. Therefore the part that contains the logit
 * uses its own maximum instead of r_i, and its own factor, in row i. A part with such a row is
 * called mixed. All rows of a mixed part take a slower code path.
 *
 * e, x times its factor, and the inputs of the matrix products are rounded to bfloat16. The sums
 * and both gradients are float32, losses double. Logits are summed over C, dx over the columns of
 * the logits, and dw over the rows of x, each in steps of 32 from the first step on, whatever the
 * number of threads.
 *
 * Loads and tile products: A pair is 32 x 32 elements (2 KiB) in two tiles, one after the other in
 * memory. Every step multiplies two pairs, with 4 loads for 4 tile products. These are 32 x 32 x 32
 * multiply-adds.
 *   logits: C/32 steps per 32 x 32 logits. The pairs of x (C 256: 16 KiB) stay in the L1 cache, the
 *           part's packed w (256 KiB) in the L2 cache.
 *   dx:     16 steps per part and 32 x 32 elements, with another 4 loads and 4 stores of sums, so
 *           1.06 loads per tile product. The pairs of e (32 KiB) stay in the L1 cache, packed w'
 *           (256 KiB) in the L2 cache.
 *   dw:     n/32 steps, 16 at a time with another 4 loads and 4 stores of sums (1.06). 512 rows of
 *           e (32 KiB) stay in the L1 cache, packed x (n 1024: 512 KiB) in the L2 cache.
 * So each step loads one pair from the L2 cache (32 bytes a cycle if a tile product takes 16
 * cycles) and one pair from the L1 cache. e (n 1024: 103 MB) is written to memory once and read
 * twice. Each part packs three operands: w, in order; w' (64 shuffles per tile, each tile used n/16
 * times); and e for dw (one permutation per 64 bytes, each tile used C/16 times). */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "loader/base/memory.h"
#include "kernels/kernels.h"

#if defined(__x86_64__)
#include "kernels/cpu/amx.h"
#include "kernels/cpu/levels.h"

enum {
    COLUMNS = 512, /* maximum number of columns of x that a task for dx or dw computes */
    /* number of steps (of 32 rows of x each) after which a task for dw stores the sums in the tiles
     * to memory and continues with the next block of dw */
    STEPS = 16,
    STEPS_BYTES = STEPS * PAIR
};

/* The sizes of the head, and the arrays that sgt_head.memory holds. Shapes of operands count pairs
 * of tiles (amx.h), PAIR bytes each. "Products" are the matrix products that read the operand. */
typedef struct head {
    size_t n, V, C;
    /* sizes of the matrices in blocks of SIDE, rounded up: `rows` is n / SIDE, `words` is V / SIDE
     * (V is the size of the vocabulary), `deep` is C / SIDE */
    size_t rows, words, deep;
    size_t lanes; /* n rounded up to SIDE */
    /* part: number of columns of the logits in a part; parts: number of parts */
    size_t part, parts;
    size_t line; /* row stride of e, in pairs; odd */
    const float *x32;
    const uint16_t *x, *w;
    const int32_t *targets;
    /* e, the exponentials of the logits, as (words, line) right pairs of tiles whose columns are
     * rows of x, for products that sum over columns of the logits */
    char *e;
    /* x as (rows, deep) right pairs of tiles whose columns are rows of x, for products that sum
     * over channels */
    char *xt;
    /* x, with each row multiplied by its factor, as (deep, rows) right pairs of tiles, for the
     * product that gives dw, which sums over rows of x. These pairs reuse the memory of xt when xt
     * is no longer needed. */
    char *fx;
    /* dx', the transposed gradient of x, as (rows, deep) blocks of SIDE x SIDE floats, in which its
     * terms are added up. In a block, rows are channels and columns are rows of x. */
    float *dxt;
    float *subtracted, *largest, *sum, *factor; /* (parts, lanes) */
    /* arrays of `lanes` floats, one for each row of x:
     *   reference  value r_i that is subtracted from the row's logits (see the top of this file)
     *   at_target  logit of the row's target
     *   common     the row's factor in all parts that are not mixed (see `mixed`) */
    float *reference, *at_target, *common;
    double *squares; /* sum of squares of dw for each task */
    /* array of `parts` flags: 1 if the part is mixed, that is, if its factor differs from `common`
     * in at least one row. In a row with a different factor, the row's maximum in the part is
     * subtracted instead of the reference, or subtract_one has replaced the row's e. The terms of a
     * mixed part are multiplied by `factor`. */
    int *mixed;
    char *scratch; /* (threads, scratch_bytes) */
    size_t scratch_bytes;
} head;

SGT_INLINE size_t across_of(const head *r) { return (r->deep * SIDE + COLUMNS - 1) / COLUMNS; }

SGT_INLINE char *own_scratch(const head *r)
{
    return r->scratch + (size_t)omp_get_thread_num() * r->scratch_bytes;
}

SGT_INLINE char *pair_of_e(const head *r, size_t word, size_t row)
{
    return r->e + (word * r->line + row) * PAIR;
}

SGT_INLINE size_t columns_of(const head *r, size_t p) { return least(r->part, r->V - p * r->part); }

enum {
    PART = 512,          /* maximum number of columns in a part of the logits */
    PART_BYTES = 1 << 20 /* maximum size in bytes of a part's packed weights: half of an L2 cache */
};

/* If a logit exceeds the reference r_i of its row by more than ABOVE, the part (range of columns)
 * that contains it uses its own maximum in that row instead of r_i, and is called mixed. */
#define ABOVE 30.0f

/* Return the number of columns in a part of the logits, which is a multiple of SIDE. */
static size_t part_of(size_t deep)
{
    size_t fit = PART_BYTES / (deep * PAIR) * SIDE;
    return fit < SIDE ? SIDE : least(fit, PART);
}

/* Return the size in bytes of one thread's scratch memory: the maximum of the sizes that the
 * logits, dx and dw need. */
static size_t scratch_of(const head *r)
{
    size_t wide = least(r->deep, COLUMNS / SIDE);
    size_t softmax = r->part / SIDE * r->deep * PAIR + r->part * SIDE * sizeof(float);
    size_t dx = r->part / SIDE * wide * PAIR + BLOCK_BYTES;
    size_t dw = STEPS_BYTES + wide * BLOCK_BYTES + wide * r->rows * PAIR;
    return softmax > dx ? (softmax > dw ? softmax : dw) : dx > dw ? dx : dw;
}

static head lay_out(const sgt_head *h, size_t n, sgt_arena *a)
{
    head r = {.n = n, .V = h->V, .C = h->C};
    r.rows = units(n), r.words = units(h->V), r.deep = units(h->C);
    r.lanes = r.rows * SIDE;
    r.part = part_of(r.deep);
    r.parts = (h->V + r.part - 1) / r.part;
    r.line = r.rows | 1;
    r.scratch_bytes = scratch_of(&r);
    r.e = sgt_arena_take(a, r.words * r.line, PAIR);
    r.fx = r.xt = sgt_arena_take(a, r.rows * r.deep, PAIR);
    r.dxt = sgt_arena_take(a, r.rows * r.deep, BLOCK_BYTES);
    float **const stats[] = {&r.subtracted, &r.largest, &r.sum, &r.factor};
    for (size_t i = 0; i < 4; i++) *stats[i] = sgt_arena_take(a, r.parts * r.lanes, sizeof(float));
    float **const of_rows[] = {&r.reference, &r.at_target, &r.common};
    for (size_t i = 0; i < 3; i++) *of_rows[i] = sgt_arena_take(a, r.lanes, sizeof(float));
    r.squares = sgt_arena_take(a, r.parts * across_of(&r), sizeof(double));
    r.mixed = sgt_arena_take(a, r.parts, sizeof(int));
    r.scratch = sgt_arena_take(a, r.scratch_bytes, (size_t)h->threads);
    return r;
}

size_t sgt_head_bf16_amx_memory(const sgt_head *h)
{
    sgt_arena measured = {0};
    lay_out(h, h->n, &measured);
    return measured.used;
}

/* ---- logits and softmax ---- */

/* Pack row block b (SIDE rows of x) as right pairs of tiles for the product that gives the logits.
 * Set the reference value of each row to -infinity, which the first part of the logits will
 * replace. For rows past n and rows whose target is ignored, set the reference value to +infinity
 * instead, so that e is 0 in all parts. */
static void prepare_rows(const head *r, size_t b)
{
    size_t i0 = b * SIDE, rows = least(SIDE, r->n - i0);
    for (size_t p = 0; p < r->deep; p++)
        amx_pack_transposed(r->xt + (b * r->deep + p) * PAIR, r->x + i0 * r->C + p * SIDE, r->C,
                            rows, least(SIDE, r->C - p * SIDE));
    for (size_t i = i0; i < i0 + SIDE; i++) {
        r->at_target[i] = 0;
        r->reference[i] = i < r->n && r->targets[i] >= 0 ? -INFINITY : INFINITY;
    }
}

/* Return exp(x) for x <= ABOVE, with a relative error below 2^-21, in three fifths as many
 * instructions as vexp. The result is 0 below -87.33. Unlike in exp_part of product.c, the fraction
 * of x log2 e is rounded only once, so that the result is accurate for large x, too. */
SGT_INLINE vf exp_of(vf x)
{
    vf log2e = vset(1.44269504f);
    vf n = vround(vmax(vset(-126), x * log2e)), f = vfma(x, log2e, -n);
    return vscale(vpower_of_2(f), n, x, vset(-87.33f));
}

/* Compute e of part p, for W rows of x from row `lane` on. `logits` (columns, SIDE) are the part's
 * logits, transposed. For each row, also store the largest logit in the part, the value that was
 * subtracted from the logits, and the sum of e.
 *
 * The value subtracted is the row's reference. In part 0, the reference is first set to the row's
 * largest logit in this part. If a logit exceeds the reference by more than ABOVE, the part's
 * largest logit is subtracted instead, and the part is marked as mixed. */
static void exp_lanes(const head *r, const float *logits, size_t p, size_t columns, size_t lane)
{
    size_t at = p * r->lanes + lane, word = p * r->part / SIDE, half = lane % SIDE;
    vf top = vset(-INFINITY), limit = vload(r->reference + lane), total[2] = {vset(0), vset(0)};
    const float *from = logits + half;
    for (size_t j = 0; j < columns; j++) top = vmax(vload(from + j * SIDE), top);
    vf above = limit + vset(ABOVE), less = vpick_less(above, top, top, limit);
    if (p == 0) vstore(r->reference + lane, less);
    else if (vlargest(vpick_less(above, top, vset(1), vset(0))) > 0) r->mixed[p] = 1;
    vstore(r->largest + at, top);
    vstore(r->subtracted + at, less);
    for (size_t j = 0; j < units(columns) * SIDE; j += 2) {
        vf e[2] = {vset(0), vset(0)};
        for (size_t k = 0; k < 2; k++) {
            if (j + k < columns) e[k] = exp_of(vload(from + (j + k) * SIDE) - less);
            total[k] += e[k];
        }
        char *out =
            pair_of_e(r, word + j / SIDE, lane / SIDE) + half / W * TILE + j % SIDE / 2 * 64;
        amx_stream(out, amx_pair(e[0], e[1]));
    }
    vstore(r->sum + at, total[0] + total[1]);
}

/* Pack the rows of w that belong to part p of the logits into `w`, as left pairs of tiles. */
static void pack_part(const head *r, char *w, size_t p)
{
    size_t columns = columns_of(r, p), j0 = p * r->part;
    for (size_t v = 0; v < units(columns); v++)
        for (size_t k = 0; k < r->deep; k++)
            amx_pack_rows(w + (v * r->deep + k) * PAIR, r->w + (j0 + v * SIDE) * r->C + k * SIDE,
                          r->C, least(SIDE, columns - v * SIDE), least(SIDE, r->C - k * SIDE));
}

/* Compute the logits of row block b (SIDE rows of x) in part p, and store e, the exponentials of
 * these logits. For each row, also store the largest logit and the sum of e in this part. If the
 * row's target is in this part, store the target's logit. `w` contains the part's packed
 * weights. */
static void softmax_rows(const head *r, const char *w, size_t p, size_t b)
{
    size_t columns = columns_of(r, p), j0 = p * r->part;
    float *logits = (float *)(void *)(own_scratch(r) + r->part / SIDE * r->deep * PAIR);
    for (size_t v = 0; v < units(columns); v++)
        amx_block(logits + v * SIDE * SIDE, w + v * r->deep * PAIR, r->xt + b * r->deep * PAIR,
                  PAIR, r->deep, 0);
    for (size_t i = b * SIDE; i < least((b + 1) * SIDE, r->n); i++) {
        size_t target = r->targets[i] < 0 ? 0 : (size_t)r->targets[i];
        if (target >= j0 && target < j0 + columns)
            r->at_target[i] = logits[(target - j0) * SIDE + i % SIDE];
    }
    for (size_t lane = b * SIDE; lane < (b + 1) * SIDE; lane += W)
        exp_lanes(r, logits, p, columns, lane);
}

/* Compute e, maxima and sums of all parts. The first part of the logits sets the references of all
 * rows, so it must be complete before other parts begin. The first part is divided into tasks of
 * SIDE rows; each of the other parts is a single task. */
static void softmax(const head *r)
{
    char *w = own_scratch(r);
    pack_part(r, w, 0);
#pragma omp for schedule(dynamic, 1)
    for (size_t b = 0; b < r->rows; b++) {
        prepare_rows(r, b);
        softmax_rows(r, w, 0, b);
        vstream_end();
    }
#pragma omp for schedule(dynamic, 1)
    for (size_t p = 1; p < r->parts; p++) {
        pack_part(r, w, p);
        for (size_t b = 0; b < r->rows; b++) softmax_rows(r, w, p, b);
        vstream_end();
    }
}

/* ---- losses and factors ---- */

/* Return the address at which e_ij is stored, for row i of x and column j of the logits. */
static uint16_t *number_of_e(const head *r, size_t i, size_t j)
{
    char *pair = pair_of_e(r, j / SIDE, i / SIDE) + i % SIDE / W * TILE + j % SIDE / 2 * 64;
    return (uint16_t *)(void *)(pair + i % W * 4 + j % 2 * 2);
}

static int is_greedy(const head *r, size_t i)
{
    float max = -INFINITY;
    for (size_t p = 0; p < r->parts; p++)
        max = r->largest[p * r->lanes + i] > max ? r->largest[p * r->lanes + i] : max;
    return r->at_target[i] >= max;
}

/* Subtract 1 from the probability of row i's target. `max` is the largest value that any part has
 * subtracted from the row's logits. `below` is the value that the target's part has subtracted,
 * minus `max`.
 *
 * If `below` is less than -60, the part's probabilities in this row are negligible (below about
 * e^-60). In this case, set the part's entries of e in this row to 0, except the target's, which
 * becomes -1, and mark the part as mixed, so that its own factor is used. */
static void subtract_one(const head *r, size_t i, double max, double sum, double below,
                         double scale)
{
    size_t target = (size_t)r->targets[i], own = target / r->part;
    float x = (float)((exp((double)r->at_target[i] - max) - sum) * exp(-below));
    if (below < -60) {
        for (size_t j = own * r->part; j < own * r->part + columns_of(r, own); j++)
            *number_of_e(r, i, j) = 0;
        x = -1;
        r->factor[own * r->lanes + i] = (float)scale;
        /* atomic, because threads that finish other rows can store the same value at the same
         * time */
        __atomic_store_n(&r->mixed[own], 1, __ATOMIC_RELAXED);
    }
    sgt_kernels_cpu()->to_bf16(number_of_e(r, i, target), &x, 1);
}

/* Complete row i when all parts of its logits have been computed, and return its loss. Set the
 * row's factor in each part, so that factor times e is the gradient of the logits. For the target,
 * subtract 1 from its probability in e. */
static float finish_row(const head *r, size_t i, double scale)
{
    size_t lanes = r->lanes;
    const float *subtracted = r->subtracted + i;
    double sum = 0, max = -INFINITY;
    int ignored = r->targets[i] < 0;
    r->common[i] = 0;
    for (size_t p = 0; p < r->parts; p++) r->factor[p * lanes + i] = 0;
    if (ignored) return 0;
    for (size_t p = 0; p < r->parts; p++)
        max = (double)subtracted[p * lanes] > max ? (double)subtracted[p * lanes] : max;
    for (size_t p = 0; p < r->parts; p++)
        sum += (double)r->sum[p * lanes + i] * exp((double)subtracted[p * lanes] - max);
    for (size_t p = 0; p < r->parts; p++)
        r->factor[p * lanes + i] = (float)(scale / sum * exp((double)subtracted[p * lanes] - max));
    r->common[i] = (float)(scale / sum * exp((double)r->reference[i] - max));
    size_t own = (size_t)r->targets[i] / r->part;
    subtract_one(r, i, max, sum, (double)subtracted[own * lanes] - max, scale);
    return (float)(max + log(sum) - (double)r->at_target[i]);
}

/* ---- the gradient of the input ---- */

/* Add the terms of part p to dx', for row block b and column blocks c0 .. c0 + wide - 1. If the
 * part is mixed, this function multiplies its terms by the part's own factors. Otherwise
 * input_gradient applies the factor later, because all parts that are not mixed have the same
 * factor in a row. `left` contains the part's packed w', with one row of pairs for each column
 * block. */
static void add_part(const head *r, size_t p, const char *left, size_t b, size_t c0, size_t wide)
{
    size_t steps = units(columns_of(r, p));
    const char *right = pair_of_e(r, p * r->part / SIDE, b);
    const float *factor = r->factor + p * r->lanes + b * SIDE;
    float *one = (float *)(void *)(own_scratch(r) + r->part / SIDE * wide * PAIR);
    for (size_t c = 0; c < wide; c++) {
        float *sum = r->dxt + (b * r->deep + c0 + c) * SIDE * SIDE;
        const char *row = left + c * steps * PAIR;
        if (!r->mixed[p]) amx_block(sum, row, right, r->line * PAIR, steps, 1);
        else amx_block(one, row, right, r->line * PAIR, steps, 0);
        for (size_t k = 0; r->mixed[p] && k < BLOCK; k += W)
            vstore(sum + k, vfma(vload(one + k), vload(factor + k % SIDE), vload(sum + k)));
    }
}

/* Add the terms of some parts of the logits to dx': if `mixed` is 1, those of the mixed parts,
 * which have their own factors; if `mixed` is 0, those of all other parts. Compute row blocks b0 ..
 * b0 + rows - 1 and column blocks c0 .. c0 + wide - 1, where a block has SIDE rows or columns. */
static void add_parts(const head *r, int mixed, size_t b0, size_t rows, size_t c0, size_t wide)
{
    char *left = own_scratch(r);
    for (size_t p = 0; p < r->parts; p++) {
        size_t columns = columns_of(r, p), steps = units(columns);
        if (r->mixed[p] != mixed) continue;
        for (size_t k = 0; k < steps; k++)
            for (size_t c = 0; c < wide; c++)
                amx_pack_columns(left + (c * steps + k) * PAIR,
                                 r->w + (p * r->part + k * SIDE) * r->C + (c0 + c) * SIDE, r->C,
                                 least(SIDE, columns - k * SIDE),
                                 least(SIDE, r->C - (c0 + c) * SIDE));
        for (size_t b = b0; b < b0 + rows; b++) add_part(r, p, left, b, c0, wide);
    }
}

/* Transpose block (b, c) of dx', the transposed gradient of x, and write it to dx. */
static void transpose_out(const head *r, float *dx, size_t b, size_t c)
{
    const float *block = r->dxt + (b * r->deep + c) * SIDE * SIDE;
    for (size_t i = 0; i < SIDE; i += W)
        for (size_t j = 0; j < SIDE; j += W) {
            vf v[W];
            size_t row = b * SIDE + i, column = c * SIDE + j;
            for (size_t k = 0; k < W; k++) v[k] = vload(block + (j + k) * SIDE + i);
            vtranspose(v);
            for (size_t k = 0; k < W && row + k < r->n && column < r->C; k++)
                vstore_upto(dx + (row + k) * r->C + column, v[k], r->C - column);
        }
}

static void input_gradient(const head *r, float *dx, size_t b0, size_t rows, size_t c0, size_t wide)
{
    for (size_t b = b0; b < b0 + rows; b++)
        memset(r->dxt + (b * r->deep + c0) * SIDE * SIDE, 0, wide * BLOCK_BYTES);
    add_parts(r, 0, b0, rows, c0, wide);
    for (size_t b = b0; b < b0 + rows; b++) {
        float *sum = r->dxt + (b * r->deep + c0) * SIDE * SIDE;
        for (size_t k = 0; k < wide * SIDE * SIDE; k += W)
            vstore(sum + k, vload(sum + k) * vload(r->common + b * SIDE + k % SIDE));
    }
    add_parts(r, 1, b0, rows, c0, wide);
    for (size_t b = b0; b < b0 + rows; b++)
        for (size_t c = c0; c < c0 + wide; c++) transpose_out(r, dx, b, c);
}

/* Compute dx (n, C), the gradient of x, from e and the factors of all rows. */
static void input_gradients(const head *r, float *dx, int threads)
{
    size_t across = across_of(r), down = 1, wide = (r->deep + across - 1) / across;
    across = (r->deep + wide - 1) / wide;
    while (down * across % (size_t)threads) down++;
    size_t rows = (r->rows + down - 1) / down;
    down = (r->rows + rows - 1) / rows;
#pragma omp parallel num_threads(threads)
    {
        tile_config();
#pragma omp for schedule(dynamic, 1)
        for (size_t t = 0; t < down * across; t++) {
            size_t b = t / across * rows, c = t % across * wide;
            input_gradient(r, dx, b, least(rows, r->rows - b), c, least(wide, r->deep - c));
        }
        tile_release();
    }
}

/* ---- the gradient of the weights ---- */

/* Pack column block c of x (SIDE columns) as right pairs for the product that gives dw. Row i of x
 * is multiplied by factor[i] before it is packed. */
static void pack_factored(const head *r, char *out, const float *factor, size_t c)
{
    for (size_t b = 0; b < r->rows; b++)
        amx_pack_factored(out + b * PAIR, r->x32 + b * SIDE * r->C + c * SIDE, r->C,
                          factor + b * SIDE, least(SIDE, r->n - b * SIDE),
                          least(SIDE, r->C - c * SIDE));
}

/* Store the sums for up to 256 columns of a row of dw, or add them to dw if `add` is set. `sum`
 * points to the row in a block of SIDE x SIDE sums. The sums for the next SIDE columns are in the
 * next block, which begins BLOCK_BYTES later in memory. If `streams` is set, use non-temporal
 * stores. Return the sum of squares of the new elements of dw. */
static double finish_weights(float *dw, const float *sum, size_t columns, int add, int streams)
{
    vf squares = vset(0);
    for (size_t j = 0; j < columns; j += W) {
        vf x = vload(sum + j / SIDE * SIDE * SIDE + j % SIDE);
        if (add) x += vload_upto(dw + j, columns - j);
        if (streams) vstream(dw + j, x);
        else vstore_upto(dw + j, x, columns - j);
        x = vkeep(x, columns - j);
        squares = vfma(x, x, squares);
    }
    return vtotal(squares);
}

/* Compute dw for row block `word` (SIDE rows, one for each token of the vocabulary) and column
 * blocks c0 .. c0 + wide - 1 (SIDE columns each). Return the sum of squares of these elements. */
static double weight_rows(const head *r, float *dw, size_t word, size_t c0, size_t wide,
                          const char *right, char *left, int add)
{
    float *sum = (float *)(void *)(left + STEPS_BYTES);
    for (size_t k = 0; k < r->rows; k += STEPS) {
        size_t steps = least(STEPS, r->rows - k);
        for (size_t s = 0; s < steps; s++)
            amx_right_to_left(left + s * PAIR, pair_of_e(r, word, k + s));
        for (size_t c = 0; c < wide; c++)
            amx_block(sum + c * SIDE * SIDE, left, right + (c * r->rows + k) * PAIR, PAIR, steps,
                      k > 0);
    }
    size_t j0 = c0 * SIDE, columns = least(wide * SIDE, r->C - j0);
    int streams = !add && r->C % W == 0 && (uintptr_t)dw % 64 == 0;
    double squares = 0;
    for (size_t i = 0; i < least(SIDE, r->V - word * SIDE); i++)
        for (size_t j = 0; j < columns; j += 256)
            squares +=
                finish_weights(dw + (word * SIDE + i) * r->C + j0 + j, sum + j * SIDE + i * SIDE,
                               least(256, columns - j), add, streams);
    return squares;
}

static double weight_part(const head *r, float *dw, size_t p, size_t c0, size_t wide, int add)
{
    char *left = own_scratch(r), *own = left + STEPS_BYTES + wide * BLOCK_BYTES;
    const char *right = r->fx + c0 * r->rows * PAIR;
    double squares = 0;
    if (r->mixed[p]) {
        right = own;
        for (size_t c = 0; c < wide; c++)
            pack_factored(r, own + c * r->rows * PAIR, r->factor + p * r->lanes, c0 + c);
    }
    for (size_t v = 0; v < units(columns_of(r, p)); v++)
        squares += weight_rows(r, dw, p * r->part / SIDE + v, c0, wide, right, left, add);
    vstream_end();
    return squares;
}

/* Compute dw (V, C), or add to it if `add` is set. Return the sum of squares of the new dw. */
static double weight_gradients(const head *r, float *dw, int add, int threads)
{
    size_t across = across_of(r), tasks = r->parts * across, wide = COLUMNS / SIDE;
    double sum = 0;
#pragma omp parallel num_threads(threads)
    {
        tile_config();
#pragma omp for schedule(static)
        for (size_t c = 0; c < r->deep; c++)
            pack_factored(r, r->fx + c * r->rows * PAIR, r->common, c);
#pragma omp for schedule(dynamic, 1)
        for (size_t t = 0; t < tasks; t++) {
            size_t c = t % across * wide;
            r->squares[t] = weight_part(r, dw, t / across, c, least(wide, r->deep - c), add);
        }
        tile_release();
    }
    for (size_t t = 0; t < tasks; t++) sum += r->squares[t];
    return sum;
}

/* ---- the whole head ---- */

double sgt_head_bf16_amx(const sgt_head *h, size_t n, const void *x, const float *x32,
                         const void *w, const int32_t *targets, double scale, float *loss,
                         float *dx, float *dw, int add)
{
    sgt_arena a = {.base = h->memory, .size = SIZE_MAX};
    head r = lay_out(h, n, &a);
    r.x = x, r.x32 = x32, r.w = w, r.targets = targets;
    memset(r.mixed, 0, r.parts * sizeof *r.mixed);
#pragma omp parallel num_threads(h->threads)
    {
        tile_config();
        softmax(&r);
#pragma omp for schedule(static)
        for (size_t i = 0; i < n; i++) {
            if (h->greedy && targets[i] >= 0) h->greedy[i] = (uint8_t)is_greedy(&r, i);
            loss[i] = finish_row(&r, i, scale);
        }
        tile_release();
    }
    if (!(scale > 0)) return 0;
    for (size_t i = n; i < r.lanes; i++) {
        r.common[i] = 0;
        for (size_t p = 0; p < r.parts; p++) r.factor[p * r.lanes + i] = 0;
    }
    input_gradients(&r, dx, h->threads);
    return weight_gradients(&r, dw, add, h->threads);
}
#endif
