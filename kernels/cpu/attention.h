/* attention.h: causal attention of one head in blocks of 64 queries and 64 keys, after Dao et al.,
 * "FlashAttention" (2022). Only one block of scores exists at a time. The forward pass updates a
 * running maximum and a running sum for each query. The backward pass recomputes the scores, and
 * uses the lse that the forward pass stored.
 *
 * Operands are first packed into scratch memory. Packing makes their rows contiguous and pads them
 * with zeros, so that matrix products consist only of complete tiles of ROWS rows and whole
 * vectors. Keys and values are also transposed. Rows that are a large power of two apart would
 * compete for the same cache sets; packed rows do not.
 *
 * As in product.h, a group is the 4 bytes that a vector lane multiplies in one step: 1 float or,
 * with SGT_FOR_bf16, 2 bfloat16 numbers, which are successive terms of the sum. If a matrix product
 * sums along the rows of an operand, the two numbers of a group are neighbours in a row. If it sums
 * down the columns, the two numbers are neighbours in a column. With floats, one packed array
 * serves both kinds of products.
 *
 * These parts of the computation are skipped:
 *   - blocks above the diagonal
 *   - in a block on the diagonal, vectors and terms above the diagonal
 *   - keys that precede the documents of all ROWS queries of a tile. Only the tile's first query is
 *     checked, because no later query's document begins earlier. */
#include "kernels/kernels.h"
#include "kernels/cpu/simd.h"

/* A tile of a matrix product has ROWS rows and TILE_VECTORS vectors of columns. The sums of a tile
 * take half of the vector registers: 16 of the 32 of AVX-512, or 8 of the 16 of AVX2. */
enum { BLOCK = 64, ROWS = 4, TILE_VECTORS = W == 16 ? 4 : 2 };

SGT_INLINE size_t attention_round(size_t n, size_t to) { return (n + to - 1) / to * to; }

/* ---- groups: 4 bytes (1 float or 2 bfloat16) that a vector lane multiplies in one step ---- */

#if SGT_FOR_bf16
enum { GROUP = 2 };
SGT_INLINE vf group_fma(vf a, vf b, vf sum)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_castps_si512(a),
                            (__m512bh)_mm512_castps_si512(b));
}
/* Round 2 * W successive floats of a row to bfloat16, and return them as W pairs of successive
 * elements, one pair per lane. `low` contains the first W floats, `high` the others. */
SGT_INLINE vf group_along(vf low, vf high)
{
    return _mm512_castsi512_ps((__m512i)_mm512_cvtne2ps_pbh(high, low));
}
/* Round W floats of each of two successive rows to bfloat16. Lane i of the result holds the
 * elements of both rows in column i. */
SGT_INLINE vf group_down(vf first, vf second) { return vpair_bf16(first, second); }
#else
enum { GROUP = 1 };
SGT_INLINE vf group_fma(vf a, vf b, vf sum) { return vfma(a, b, sum); }
SGT_INLINE vf group_along(vf low, vf high)
{
    (void)high;
    return low;
}
SGT_INLINE vf group_down(vf first, vf second)
{
    (void)second;
    return first;
}
#endif

/* Load the first min(n, W) floats at p, and set the other lanes to 0. If n is 0, p is not read. */
SGT_INLINE vf vload_some(const float *p, size_t n) { return n ? vload_upto(p, n) : vset(0); }

/* Load the operand of one vector multiplication from a row: W floats or, with SGT_FOR_bf16, 2 * W
 * floats, which are rounded to bfloat16. Elements from x[n] on count as 0 and are not read. */
SGT_INLINE vf load_along(const float *x, size_t n)
{
    return group_along(vload_some(x, n), GROUP == 2 && n > W ? vload_upto(x + W, n - W) : vset(0));
}

/* ---- products ---- */

/* Compute c = a b, or c += a b if `accumulate` is set. The shapes are c (ROWS, vectors*W), a (ROWS,
 * k) and b (k, vectors*W). Each element of a and b is a group: 4 bytes, with 1 float or 2 bfloat16.
 * Element (i, p) of a is at a[i*a_row + p*a_col]. */
SGT_INLINE void product_tile(float *c, size_t ldc, const float *a, size_t a_row, size_t a_col,
                             const float *b, size_t ldb, size_t k, int vectors, int accumulate)
{
    vf sum[ROWS][TILE_VECTORS];
    for (int i = 0; i < ROWS; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] = accumulate ? vload(c + i * ldc + v * W) : vset(0);
    for (size_t p = 0; p < k; p++, a += a_col, b += ldb) {
        vf row[TILE_VECTORS];
        for (int v = 0; v < vectors; v++) row[v] = vload(b + v * W);
        for (int i = 0; i < ROWS; i++) {
            vf x = vset(a[i * a_row]);
            for (int v = 0; v < vectors; v++) sum[i][v] = group_fma(x, row[v], sum[i][v]);
        }
    }
    for (int i = 0; i < ROWS; i++)
        for (int v = 0; v < vectors; v++) vstore(c + i * ldc + v * W, sum[i][v]);
}

/* Compute c = a b, or c += a b if `accumulate` is set, for n columns of b and c; n is a multiple of
 * W. The columns are divided among calls to product_tile. Each call passes a constant number of
 * vectors, so that the compiler keeps the sums in registers. */
SGT_INLINE void product_rows(float *c, size_t ldc, const float *a, size_t a_row, size_t a_col,
                             const float *b, size_t ldb, size_t n, size_t k, int accumulate)
{
    size_t x = 0;
    for (; x + TILE_VECTORS * W <= n; x += TILE_VECTORS * W)
        product_tile(c + x, ldc, a, a_row, a_col, b + x, ldb, k, TILE_VECTORS, accumulate);
    size_t rest = (n - x) / W;
    if (rest == 1) product_tile(c + x, ldc, a, a_row, a_col, b + x, ldb, k, 1, accumulate);
    else if (TILE_VECTORS == 4 && rest == 2)
        product_tile(c + x, ldc, a, a_row, a_col, b + x, ldb, k, 2, accumulate);
    else if (TILE_VECTORS == 4 && rest == 3)
        product_tile(c + x, ldc, a, a_row, a_col, b + x, ldb, k, 3, accumulate);
}

/* ---- packing ---- */

/* Pack x (rows, D) for matrix products that sum along its rows: each 4-byte element of `out` holds
 * GROUP successive elements of a row of x. `out` has the shape (rows rounded up to a multiple of
 * ROWS, width/GROUP) and is padded with zeros. */
static void pack_along(float *out, size_t width, const float *x, size_t ld, size_t rows, size_t D)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t d = 0; d < width; d += GROUP * W)
            vstore(out + (i * width + d) / GROUP, load_along(x + i * ld + d, D > d ? D - d : 0));
    memset(out + rows * width / GROUP, 0,
           (attention_round(rows, ROWS) - rows) * width / GROUP * sizeof *out);
}

/* Pack x (rows, D) for matrix products that sum down its columns: each 4-byte element of `out`
 * holds GROUP successive elements of a column of x. `out` has the shape ((rows rounded up to a
 * multiple of ROWS)/GROUP, width) and is padded with zeros. */
static void pack_down(float *out, size_t width, const float *x, size_t ld, size_t rows, size_t D)
{
    for (size_t i = 0; i < attention_round(rows, ROWS); i += GROUP)
        for (size_t d = 0; d < width; d += W) {
            size_t n = D > d ? D - d : 0;
            vf first = vload_some(x + i * ld + d, i < rows ? n : 0);
            vf second = vload_some(x + (i + 1) * ld + d, GROUP == 2 && i + 1 < rows ? n : 0);
            vstore(out + i / GROUP * width + d, group_down(first, second));
        }
}

/* Pack x as pack_along does, but write the transpose of the packed array, with shape (width/GROUP,
 * BLOCK), to `out`. `rows` is at most BLOCK. The columns of `out` are padded with zeros up to the
 * next multiple of W. */
static void pack_transposed(float *out, size_t width, const float *x, size_t ld, size_t rows,
                            size_t D)
{
    for (size_t i = 0; i < rows; i += W)
        for (size_t d = 0; d < width; d += GROUP * W) {
            vf v[W];
            for (size_t r = 0; r < W; r++)
                v[r] = load_along(x + (i + r) * ld + d, i + r < rows && D > d ? D - d : 0);
            vtranspose(v);
            for (size_t r = 0; r < W; r++) vstore(out + (d / GROUP + r) * BLOCK + i, v[r]);
        }
}

static void unpack_rows(float *out, size_t ld, const float *x, size_t width, size_t rows, size_t D,
                        float factor)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t d = 0; d < D; d += W)
            vstore_upto(out + i * ld + d, vload(x + i * width + d) * vset(factor), D - d);
}

/* ---- forward ---- */

/* Arrays in the scratch memory, with their shapes. "Packed along" means packed by the function
 * pack_along, "packed down" by pack_down, and "packed transposed" by pack_transposed. The elements
 * of packed arrays are groups of 4 bytes: 1 float or 2 bfloat16 numbers. The elements of other
 * arrays are floats. */
typedef struct attention_parts {
    size_t width;    /* D rounded up to a multiple of GROUP * W */
    size_t rows;     /* T rounded up to whole blocks */
    float *q, *dout; /* packed along, (rows, width/GROUP) */
    /* k and v, packed transposed: (width/GROUP, BLOCK) for each block of keys */
    float *k_t, *v_t;
    float *k, *v;              /* packed down, (rows/GROUP, width) */
    float *q_down, *dout_down; /* q and dout, packed down columns: (rows/GROUP, width) */
    float *s, *dp; /* (BLOCK, BLOCK) arrays: s holds scores, dp the gradients of probabilities */
    /* p: probabilities; ds: score gradients; packed along rows: (BLOCK, BLOCK/GROUP) */
    float *p, *ds;
    float *p_down, *ds_down; /* p and ds, packed down columns: (BLOCK/GROUP, BLOCK) */
    /* Arrays in which the gradients are summed: dq (rows, width) for all queries, dk and dv (BLOCK,
     * width) for one block of keys. The forward pass stores its output in dq. */
    float *dq, *dk, *dv;
    /* arrays of `rows` floats, one for each query i: lse is the log-sum-exp of the query's scores;
     * delta is the dot product of dout_i and out_i */
    float *lse, *delta;
    const sgt_dropout *drop; /* NULL: no dropout */
    /* array of T elements: for each query, the index of the first key that it sees, at which its
     * document begins; NULL: every query sees the keys from index 0 on */
    const int32_t *start;
    float scale;
    size_t T, total;
} attention_parts;

static attention_parts attention_lay_out(float *base, size_t T, size_t D)
{
    attention_parts a = {
        .width = attention_round(D, GROUP * W), .rows = attention_round(T, BLOCK), .T = T};
    size_t whole = a.rows * a.width, groups = whole / GROUP, scores = BLOCK * BLOCK;
    sgt_arena m = {.base = (char *)base, .size = SIZE_MAX};
    float **const packed[] = {&a.q, &a.dout, &a.k_t, &a.v_t, &a.k, &a.v};
    for (size_t i = 0; i < 6; i++) *packed[i] = sgt_arena_take(&m, groups, sizeof(float));
    a.s = sgt_arena_take(&m, scores, sizeof(float));
    a.dp = sgt_arena_take(&m, scores, sizeof(float));
    a.dq = sgt_arena_take(&m, whole, sizeof(float));
    a.dk = sgt_arena_take(&m, BLOCK * a.width, sizeof(float));
    a.dv = sgt_arena_take(&m, BLOCK * a.width, sizeof(float));
    a.lse = sgt_arena_take(&m, a.rows, sizeof(float));
    a.delta = sgt_arena_take(&m, a.rows, sizeof(float));
#if SGT_FOR_bf16
    a.q_down = sgt_arena_take(&m, groups, sizeof(float));
    a.dout_down = sgt_arena_take(&m, groups, sizeof(float));
    float **const of_scores[] = {&a.p, &a.ds, &a.p_down, &a.ds_down};
    for (size_t i = 0; i < 4; i++)
        *of_scores[i] = sgt_arena_take(&m, scores / GROUP, sizeof(float));
#else
    a.q_down = a.q, a.dout_down = a.dout, a.p = a.p_down = a.s, a.ds = a.ds_down = a.dp;
#endif
    a.total = m.used / sizeof(float);
    return a;
}

/* In the block of keys that begins with key j0, return the number of keys that precede the document
 * of query i, at most BLOCK. This is also the index in the block of the first key of that document.
 * A query past T counts as part of the last query's document. */
SGT_INLINE size_t attention_first(const attention_parts *a, size_t i, size_t j0)
{
    if (!a->start) return 0;
    size_t start = (size_t)a->start[i < a->T ? i : a->T - 1];
    return start <= j0 ? 0 : start - j0 < BLOCK ? start - j0 : BLOCK;
}

/* Return attention_first(a, i, j0), rounded down to a multiple of GROUP * W, which is the number of
 * keys in one vector. */
SGT_INLINE size_t attention_from(const attention_parts *a, size_t i, size_t j0)
{
    return attention_first(a, i, j0) / (GROUP * W) * (GROUP * W);
}

/* Write the dropout factors of the probabilities of query i for keys j0 + `from` .. j0 + `padded` -
 * 1 to `factor`. a->drop must not be NULL. */
SGT_INLINE void attention_factors(float factor[BLOCK], const attention_parts *a, size_t i,
                                  size_t j0, size_t from, size_t padded)
{
    uint64_t element = a->drop->first + i * attention_round(a->T, 4) + j0;
    for (size_t j = from / DROP * DROP; j < padded; j += DROP)
        drop_factors(factor + j, a->drop, element + j);
}

static size_t attention_scratch(size_t T, size_t D) { return attention_lay_out(NULL, T, D).total; }

/* Multiply the first `padded` scores in s by `scale`. Then set the first `masked` of these scores
 * to -inf, so that their probabilities, exp(-inf), become 0. */
SGT_INLINE void scale_and_mask(float *s, float scale, size_t masked, size_t padded)
{
    for (size_t j = 0; j < padded; j += W) vstore(s + j, vload(s + j) * vset(scale));
    for (size_t j = 0; j < masked; j++) s[j] = -INFINITY;
}

/* Update the running softmax of a query with one block of its scores, s:
 *   - Replace each score by exp(scale s - max), where max is the largest scaled score so far.
 *   - Update *max and *sum, the maximum and the sum of exponentials over all keys so far.
 *   - Return the factor by which the caller must multiply its sums over earlier keys. This factor
 *     is below 1 if the maximum has grown, because the sums over earlier keys are relative to the
 *     old maximum.
 * Of the `padded` elements of s, only the first n are scores, and the query does not see the first
 * `masked` of these. All other elements become 0. */
SGT_INLINE float online_softmax(float *s, float scale, size_t masked, size_t n, size_t padded,
                                float *max, double *sum)
{
    if (masked >= n) {
        memset(s, 0, padded * sizeof *s);
        return 1;
    }
    scale_and_mask(s, scale, masked, padded);
    float m = vlargest_of(s, n);
    if (*max > m) m = *max;
    vf total = vset(0);
    for (size_t j = 0; j < padded; j += W) {
        vf e = j < n ? vkeep(vexp(vload(s + j) - vset(m)), n - j) : vset(0);
        vstore(s + j, e);
        total += e;
    }
    /* the factor is also 1 for a query's first block of keys, because nothing has been summed
     * yet */
    float shrink = m > *max && *sum > 0 ? (float)exp((double)*max - m) : 1;
    *sum = *sum * shrink + vtotal(total);
    *max = m;
    return shrink;
}

/* Pack elements `from` .. `padded` - 1 of a row of probabilities or score gradients into groups (1
 * float or 2 bfloat16), so that a matrix product can read them. */
SGT_INLINE void group_row(float *out, const float *s, size_t from, size_t padded)
{
    if (GROUP == 1) return; /* the matrix products read s itself */
    for (size_t j = from; j < padded; j += GROUP * W)
        vstore(out + j / GROUP, load_along(s + j, padded - j));
}

SGT_INLINE void attention_drop(float *p, const attention_parts *a, size_t i, size_t j0, size_t from,
                               size_t padded)
{
    float factor[BLOCK];
    attention_factors(factor, a, i, j0, from, padded);
    for (size_t j = from; j < padded; j += W) vstore(p + j, vload(p + j) * vload(factor + j));
}

/* Compute the output of queries i0 .. i0 + rows - 1 over all keys that they see. out (rows, width)
 * is in scratch memory. The weighted sums of values are divided by the sums of the softmax only
 * after the last block of keys. */
static void attention_block(const attention_parts *a, float *out, float *lse, size_t i0,
                            size_t rows)
{
    float max[BLOCK];
    double sum[BLOCK];
    size_t width = a->width, groups = width / GROUP, padded_rows = attention_round(rows, ROWS);
    for (size_t r = 0; r < BLOCK; r++) max[r] = -INFINITY, sum[r] = 0;
    memset(out, 0, padded_rows * width * sizeof *out);
    for (size_t j0 = a->start ? (size_t)a->start[i0] / BLOCK * BLOCK : 0; j0 <= i0; j0 += BLOCK) {
        for (size_t r0 = 0; r0 < padded_rows; r0 += ROWS) {
            size_t keys = j0 == i0 ? r0 + ROWS : BLOCK, padded = attention_round(keys, W);
            size_t from = attention_from(a, i0 + r0, j0);
            if (from == BLOCK) break;
            float *s = a->s + r0 * BLOCK + from, *o = out + r0 * width;
            product_rows(s, BLOCK, a->q + (i0 + r0) * groups, groups, 1,
                         a->k_t + j0 * groups + from, BLOCK, padded - from, groups, 0);
            for (size_t r = 0; r < ROWS; r++) {
                size_t n = j0 == i0 ? r0 + r + 1 : BLOCK,
                       first = attention_first(a, i0 + r0 + r, j0);
                float shrink = online_softmax(s + r * BLOCK, a->scale, first - from, n - from,
                                              padded - from, &max[r0 + r], &sum[r0 + r]);
                for (size_t d = 0; d < width && shrink != 1; d += W)
                    vstore(o + r * width + d, vload(o + r * width + d) * vset(shrink));
                if (a->drop)
                    attention_drop(a->s + (r0 + r) * BLOCK, a, i0 + r0 + r, j0, from, padded);
                group_row(a->p + (r0 + r) * BLOCK / GROUP, a->s + (r0 + r) * BLOCK, from, padded);
            }
            product_rows(o, width, a->p + (r0 * BLOCK + from) / GROUP, BLOCK / GROUP, 1,
                         a->v + (j0 + from) / GROUP * width, width, width, (keys - from) / GROUP,
                         1);
        }
    }
    for (size_t r = 0; r < rows; r++) {
        lse[r] = (float)(max[r] + log(sum[r]));
        for (size_t d = 0; d < width; d += W)
            vstore(out + r * width + d, vload(out + r * width + d) * vset((float)(1 / sum[r])));
    }
}

static void attention(float *out, size_t ld_out, float *lse, const float *q, const float *k,
                      const float *v, size_t ld, size_t T, size_t D, float scale,
                      const sgt_dropout *drop, const int32_t *start, float *scratch)
{
    attention_parts a = attention_lay_out(scratch, T, D);
    a.drop = drop;
    a.start = start;
    a.scale = scale;
    pack_along(a.q, a.width, q, ld, T, D);
    pack_down(a.v, a.width, v, ld, T, D);
    for (size_t i0 = 0; i0 < T; i0 += BLOCK) {
        size_t rows = T - i0 < BLOCK ? T - i0 : BLOCK;
        pack_transposed(a.k_t + i0 * a.width / GROUP, a.width, k + i0 * ld, ld, rows, D);
        attention_block(&a, a.dq, lse + i0, i0, rows);
        unpack_rows(out + i0 * ld_out, ld_out, a.dq, a.width, rows, D, 1);
    }
}

/* ---- backward ---- */

/* Return whether query i sees only its own key. In this case, the only probability is 1, whatever
 * the score, so the gradient of the score is exactly 0. The general formula would give a tiny
 * rounding error instead. AdamW divides gradients by their size, so it would turn even a tiny error
 * into a step of size lr. */
SGT_INLINE int attention_sees_itself(const attention_parts *a, size_t i)
{
    return i < a->T && i == (a->start ? (size_t)a->start[i] : 0);
}

/* Replace the scores s with f P, and dp with dS = P (f dP - delta), where P = exp(scale s - lse)
 * and f are the dropout factors. A call processes queries i0 + r0 .. i0 + r0 + ROWS - 1 and keys j0
 * + `from` .. j0 + `padded` - 1. Both results are 0 for keys that a query does not see: later keys,
 * and keys before the query's document. */
SGT_INLINE void score_gradients(const attention_parts *a, size_t i0, size_t r0, size_t j0,
                                size_t from, size_t padded)
{
    float factor[BLOCK];
    for (size_t r = r0; r < r0 + ROWS; r++) {
        size_t n = i0 == j0 ? r + 1 : BLOCK;
        if (a->drop) attention_factors(factor, a, i0 + r, j0, from, padded);
        vf lse = vset(a->lse[i0 + r]), delta = vset(a->delta[i0 + r]);
        float *s = a->s + r * BLOCK, *dp = a->dp + r * BLOCK;
        scale_and_mask(s + from, a->scale, attention_first(a, i0 + r, j0) - from, padded - from);
        for (size_t j = from; j < padded; j += W) {
            vf p = j < n ? vkeep(vexp(vload(s + j) - lse), n - j) : vset(0);
            vf f = a->drop ? vload(factor + j) : vset(1);
            vstore(s + j, f * p);
            vstore(dp + j, p * (f * vload(dp + j) - delta));
        }
        if (attention_sees_itself(a, i0 + r)) memset(dp + from, 0, (padded - from) * sizeof *dp);
    }
}

/* Pack rows r0 .. r0 + ROWS - 1 of s and dp for matrix products. s now holds f P, the probabilities
 * times their dropout factors, and dp holds dS, the gradient of the scores. The product for dQ sums
 * over keys, so dS is packed along its rows for this product. The products for dV and dK sum over
 * queries, so P and dS are packed down their columns for these products. */
SGT_INLINE void group_scores(const attention_parts *a, size_t r0, size_t from, size_t padded)
{
    /* if GROUP is 1, packing would change nothing: matrix products read s and dp directly */
    if (GROUP == 1) return;
    for (size_t r = r0; r < r0 + ROWS; r += GROUP) {
        const float *s = a->s + r * BLOCK, *dp = a->dp + r * BLOCK;
        group_row(a->ds + r * BLOCK / GROUP, dp, from, padded);
        group_row(a->ds + (r + 1) * BLOCK / GROUP, dp + BLOCK, from, padded);
        for (size_t j = from; j < padded; j += W) {
            vstore(a->p_down + r / GROUP * BLOCK + j,
                   group_down(vload(s + j), vload(s + BLOCK + j)));
            vstore(a->ds_down + r / GROUP * BLOCK + j,
                   group_down(vload(dp + j), vload(dp + BLOCK + j)));
        }
    }
}

/* Add the contributions of the block of queries at i0 and the block of keys at j0 to dq, dk and dv.
 * Queries that see none of these keys are skipped. These are the last queries of the block, because
 * a later query's document never begins earlier.
 *
 * The first loop computes ROWS queries at a time. If it reaches ROWS queries that see none of the
 * keys, the loop ends and sets `rows` to the number of queries before these. In the second loop,
 * `last` is the number of the block's queries up to and including the last one that sees any of the
 * keys c0 .. c0 + ROWS - 1. */
static void backward_block(const attention_parts *a, size_t i0, size_t rows, size_t j0, size_t keys)
{
    int diagonal = i0 == j0;
    size_t width = a->width, groups = width / GROUP;
    for (size_t r0 = 0; r0 < rows; r0 += ROWS) {
        size_t used = diagonal ? r0 + ROWS : BLOCK, padded = attention_round(used, W);
        size_t from = attention_from(a, i0 + r0, j0);
        if (from == BLOCK) {
            rows = r0;
            break;
        }
        const float *q = a->q + (i0 + r0) * groups, *dout = a->dout + (i0 + r0) * groups;
        float *s = a->s + r0 * BLOCK + from, *dp = a->dp + r0 * BLOCK + from;
        product_rows(s, BLOCK, q, groups, 1, a->k_t + j0 * groups + from, BLOCK, padded - from,
                     groups, 0);
        product_rows(dp, BLOCK, dout, groups, 1, a->v_t + j0 * groups + from, BLOCK, padded - from,
                     groups, 0);
        score_gradients(a, i0, r0, j0, from, padded);
        group_scores(a, r0, from, padded);
        product_rows(a->dq + (i0 + r0) * width, width, a->ds + (r0 * BLOCK + from) / GROUP,
                     BLOCK / GROUP, 1, a->k + (j0 + from) / GROUP * width, width, width,
                     (used - from) / GROUP, 1);
    }
    for (size_t c0 = 0, last = 0; c0 < keys; c0 += ROWS) {
        /* in the block on the diagonal, queries before c0 precede keys c0 and later, and do not see
         * these keys */
        size_t first = diagonal ? c0 : 0;
        while (last < rows && attention_first(a, i0 + last, j0) < c0 + ROWS) last++;
        /* the last group can also contain a query that sees none of these keys, but the p and ds of
         * this query are 0 and add nothing */
        size_t terms = (last - first + GROUP - 1) / GROUP, at = first / GROUP * BLOCK + c0;
        size_t below = (i0 + first) / GROUP * width;
        product_rows(a->dv + c0 * width, width, a->p_down + at, 1, BLOCK, a->dout_down + below,
                     width, width, terms, 1);
        product_rows(a->dk + c0 * width, width, a->ds_down + at, 1, BLOCK, a->q_down + below, width,
                     width, terms, 1);
    }
}

static void attention_backward(float *dq, float *dk, float *dv, size_t ld_d, const float *dout,
                               const float *out, size_t ld_out, const float *lse, const float *q,
                               const float *k, const float *v, size_t ld, size_t T, size_t D,
                               float scale, const sgt_dropout *drop, const int32_t *start,
                               float *scratch)
{
    attention_parts a = attention_lay_out(scratch, T, D);
    a.drop = drop;
    a.start = start;
    a.scale = scale;
    size_t width = a.width, padded = attention_round(T, ROWS);
    pack_along(a.q, width, q, ld, T, D);
    pack_along(a.dout, width, dout, ld_out, T, D);
    pack_down(a.k, width, k, ld, T, D);
    if (GROUP > 1) {
        pack_down(a.q_down, width, q, ld, T, D);
        pack_down(a.dout_down, width, dout, ld_out, T, D);
    }
    attention_row_sums(a.lse, a.delta, a.rows, lse, dout, out, ld_out, T, D);
    memset(a.dq, 0, padded * width * sizeof *a.dq);
    for (size_t j0 = 0; j0 < T; j0 += BLOCK) {
        size_t keys = T - j0 < BLOCK ? T - j0 : BLOCK;
        pack_transposed(a.k_t + j0 * width / GROUP, width, k + j0 * ld, ld, keys, D);
        pack_transposed(a.v_t + j0 * width / GROUP, width, v + j0 * ld, ld, keys, D);
        memset(a.dk, 0, BLOCK * width * sizeof *a.dk);
        memset(a.dv, 0, BLOCK * width * sizeof *a.dv);
        for (size_t i0 = j0; i0 < T && attention_first(&a, i0, j0) < BLOCK; i0 += BLOCK)
            backward_block(&a, i0, padded - i0 < BLOCK ? padded - i0 : BLOCK, j0,
                           attention_round(keys, ROWS));
        unpack_rows(dk + j0 * ld_d, ld_d, a.dk, width, keys, D, scale);
        unpack_rows(dv + j0 * ld_d, ld_d, a.dv, width, keys, D, 1);
    }
    unpack_rows(dq, ld_d, a.dq, width, T, D, scale);
}
