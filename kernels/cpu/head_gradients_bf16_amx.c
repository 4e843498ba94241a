/* head_gradients_bf16_amx.c: both gradients of the head in AMX tiles; see head_bf16_amx.c. */
#if defined(__x86_64__)
#include <string.h>

#include "kernels/cpu/amx.h"
#include "kernels/cpu/head_parts_amx.h"

/* ---- of the input ---- */

/* Add part p's share to dx' of row block b and column blocks c0 .. c0 + wide - 1. A mixed part's
 * share is multiplied by its factors here; input_gradient does that for the others. `left` is the
 * part's packed w', one row of pairs per SIDE columns of x. */
static void add_part(const head *r, size_t p, const char *left, size_t b, size_t c0, size_t wide)
{
    size_t steps = units(columns_of(r, p));
    const char *right = pair_of_e(r, p * r->part / SIDE, b);
    const float *factor = r->factor + p * r->lanes + b * SIDE;
    float *one = (float *)(void *)(own_scratch(r) + r->part / SIDE * wide * PAIR);
    for (size_t c = 0; c < wide; c++) {
        float *sum = r->dxt + (b * r->deep + c0 + c) * SIDE * SIDE;
        const char *row = left + c * steps * PAIR;
        if (!r->mixed[p]) amx_block(sum, row, PAIR, right, r->line * PAIR, steps, 1);
        else amx_block(one, row, PAIR, right, r->line * PAIR, steps, 0);
        for (size_t k = 0; r->mixed[p] && k < BLOCK; k += W)
            vstore(sum + k, vfma(vload(one + k), vload(factor + k % SIDE), vload(sum + k)));
    }
}

/* Add the shares of all parts that are mixed, or of all that are not, to dx' of row blocks b0 .. b0
 * + rows - 1 and column blocks c0 .. c0 + wide - 1. A block has SIDE rows or columns. */
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

/* Write block (b, c) of dx' to dx, transposed. */
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

void AMX_NAME(sgt_head_amx_dx)(const head *r, float *dx, int threads)
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

/* ---- of the weights ---- */

/* Pack column block c of x (SIDE columns), each row multiplied by its factor. */
static void pack_factored(const head *r, char *out, const float *factor, size_t c)
{
    for (size_t b = 0; b < r->rows; b++)
        amx_pack_factored(out + b * PAIR, r->x32 + b * SIDE * r->C + c * SIDE, r->C,
                          factor + b * SIDE, least(SIDE, r->n - b * SIDE),
                          least(SIDE, r->C - c * SIDE));
}

/* Write up to 256 columns of a row of dw, or add them if `add`. They come from `sum`, whose blocks
 * of SIDE columns are BLOCK_BYTES apart. Return the sum of squares of the new numbers. */
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

/* Compute row block `word` of dw (SIDE rows), column blocks c0 .. c0 + wide - 1. Return the sum of
 * its squares. */
static double weight_rows(const head *r, float *dw, size_t word, size_t c0, size_t wide,
                          const char *right, char *left, int add)
{
    float *sum = (float *)(void *)(left + STEPS_BYTES);
    for (size_t k = 0; k < r->rows; k += STEPS) {
        size_t steps = least(STEPS, r->rows - k);
        for (size_t s = 0; s < steps; s++)
            amx_right_to_left(left + s * PAIR, pair_of_e(r, word, k + s));
        for (size_t c = 0; c < wide; c++)
            amx_block(sum + c * SIDE * SIDE, left, PAIR, right + (c * r->rows + k) * PAIR, PAIR,
                      steps, k > 0);
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

double AMX_NAME(sgt_head_amx_dw)(const head *r, float *dw, int add, int threads)
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
#endif
