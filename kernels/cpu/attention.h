/* attention.h: causal attention of one head in blocks of 64 queries and 64 keys, after Dao et al., "FlashAttention"
 * (2022): scores live in one block at a time, forward keeps a running maximum and sum a row, backward computes scores
 * again from lse.
 *
 * Operands are first copied into scratch, rows contiguous and padded with zeros, keys and values transposed as well:
 * then every product is tiles of ROWS x whole vectors with no edge to look after, and rows a large power of two apart
 * do not compete for the same cache sets. Blocks above the diagonal are skipped; in a block on it, so are the vectors
 * and terms above it. So is what lies before the documents of all ROWS queries of a tile: starts never fall from one
 * query to the next, and what the first of some queries does not see, none of them does. */
#include "dropout.h"
#include "kernels.h"
#include "simd.h"

enum { BLOCK = 64, ROWS = 4, TILE_VECTORS = W == 16 ? 4 : 2 }; /* accumulators: ROWS * TILE_VECTORS registers */

SGT_INLINE size_t attention_round(size_t n, size_t to) { return (n + to - 1) / to * to; }

/* c (ROWS, vectors*W) = a (ROWS, k) b (k, vectors*W), or += ; a's element (i, p) is a[i*a_row + p*a_col]. */
SGT_INLINE void product_tile(float *c, size_t ldc, const float *a, size_t a_row, size_t a_col, const float *b,
                             size_t ldb, size_t k, int vectors, int accumulate)
{
    vf sum[ROWS][TILE_VECTORS];
    for (int i = 0; i < ROWS; i++)
        for (int v = 0; v < vectors; v++) sum[i][v] = accumulate ? vload(c + i * ldc + v * W) : vset(0);
    for (size_t p = 0; p < k; p++, a += a_col, b += ldb) {
        vf row[TILE_VECTORS];
        for (int v = 0; v < vectors; v++) row[v] = vload(b + v * W);
        for (int i = 0; i < ROWS; i++) {
            vf x = vset(a[i * a_row]);
            for (int v = 0; v < vectors; v++) sum[i][v] = vfma(x, row[v], sum[i][v]);
        }
    }
    for (int i = 0; i < ROWS; i++)
        for (int v = 0; v < vectors; v++) vstore(c + i * ldc + v * W, sum[i][v]);
}

/* The same for any number n of columns that is a multiple of W. The number of vectors is a constant in every call, so
 * that the sums are registers. */
SGT_INLINE void product_rows(float *c, size_t ldc, const float *a, size_t a_row, size_t a_col, const float *b,
                             size_t ldb, size_t n, size_t k, int accumulate)
{
    size_t x = 0;
    for (; x + TILE_VECTORS * W <= n; x += TILE_VECTORS * W)
        product_tile(c + x, ldc, a, a_row, a_col, b + x, ldb, k, TILE_VECTORS, accumulate);
    size_t rest = (n - x) / W;
    if (rest == 1) product_tile(c + x, ldc, a, a_row, a_col, b + x, ldb, k, 1, accumulate);
    else if (TILE_VECTORS == 4 && rest == 2) product_tile(c + x, ldc, a, a_row, a_col, b + x, ldb, k, 2, accumulate);
    else if (TILE_VECTORS == 4 && rest == 3) product_tile(c + x, ldc, a, a_row, a_col, b + x, ldb, k, 3, accumulate);
}

/* ---- packing ---- */

/* out (rows to the next multiple of ROWS, width) = factor * x (rows, D), zeros around. */
static void pack_rows(float *out, size_t width, const float *x, size_t ld, size_t rows, size_t D, float factor)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t d = 0; d < D; d += W) vstore(out + i * width + d, vload_upto(x + i * ld + d, D - d) * vset(factor));
    memset(out + rows * width, 0, (attention_round(rows, ROWS) - rows) * width * sizeof *out);
}

/* out (width, BLOCK) = the transpose of x (rows <= BLOCK, D), zeros around up to the next multiple of W rows. */
static void pack_transposed(float *out, const float *x, size_t ld, size_t rows, size_t D)
{
    for (size_t i = 0; i < rows; i += W)
        for (size_t d = 0; d < D; d += W) {
            vf v[W];
            for (size_t r = 0; r < W; r++) v[r] = i + r < rows ? vload_upto(x + (i + r) * ld + d, D - d) : vset(0);
            vtranspose(v);
            for (size_t r = 0; r < W; r++) vstore(out + (d + r) * BLOCK + i, v[r]);
        }
}

static void unpack_rows(float *out, size_t ld, const float *x, size_t width, size_t rows, size_t D, float factor)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t d = 0; d < D; d += W) vstore_upto(out + i * ld + d, vload(x + i * width + d) * vset(factor), D - d);
}

/* ---- forward ---- */

/* The parts of the scratch, in floats. Forward uses the first four, and dq for its output. */
typedef struct attention_parts {
    size_t width; /* D to whole vectors */
    size_t rows;  /* T to whole blocks */
    float *q, *k_t, *v, *s; /* (rows, width), (width, BLOCK) a block, (rows, width), (BLOCK, BLOCK) */
    float *k, *v_t, *dout, *dq, *dk, *dv; /* as v, k_t, v, v; (BLOCK, width) twice */
    float *dp, *lse, *delta;              /* (BLOCK, BLOCK), (rows) twice */
    const sgt_dropout *drop;              /* NULL: none */
    const int32_t *start;                 /* (T), or NULL: 0 for all */
    size_t T, total;
} attention_parts;

static attention_parts attention_lay_out(float *base, size_t T, size_t D)
{
    attention_parts a = {.width = attention_round(D, W), .rows = attention_round(T, BLOCK), .T = T};
    size_t whole = a.rows * a.width, block = BLOCK * a.width;
    const struct {
        float **part;
        size_t size;
    } parts[] = {
        {&a.q, whole},    {&a.k_t, whole}, {&a.v, whole},  {&a.s, BLOCK * BLOCK},  {&a.k, whole},    {&a.v_t, whole},
        {&a.dout, whole}, {&a.dq, whole},  {&a.dk, block}, {&a.dv, block},         {&a.dp, BLOCK * BLOCK},
        {&a.lse, a.rows}, {&a.delta, a.rows},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (base) *parts[i].part = base + a.total;
        a.total += parts[i].size; /* multiples of BLOCK floats: every part stays aligned */
    }
    return a;
}

/* The first key of block j0 that query i sees: 0 to BLOCK. Queries past T see what the last one sees. */
SGT_INLINE size_t attention_first(const attention_parts *a, size_t i, size_t j0)
{
    if (!a->start) return 0;
    size_t start = (size_t)a->start[i < a->T ? i : a->T - 1];
    return start <= j0 ? 0 : start - j0 < BLOCK ? start - j0 : BLOCK;
}

/* What probabilities of query i for keys j0 + from to j0 + padded are multiplied by, where some are dropped. */
SGT_INLINE void attention_factors(float factor[BLOCK], const attention_parts *a, size_t i, size_t j0, size_t from,
                                  size_t padded)
{
    uint64_t element = a->drop->first + i * attention_round(a->T, 4) + j0;
    for (size_t j = from / DROP * DROP; j < padded; j += DROP) drop_factors(factor + j, a->drop, element + j);
}

static size_t attention_scratch(size_t T, size_t D)
{
    return attention_lay_out(NULL, T, D).total;
}

/* Scores that are masked: exp makes them 0. */
SGT_INLINE void mask_scores(float *s, size_t n)
{
    for (size_t j = 0; j < n; j++) s[j] = -INFINITY;
}

/* One row of scores s (n in use of `padded`, the first `masked` of them masked) becomes exp(s - max), zeros where
 * masked and past n. Updates the running maximum and sum, returns by what everything summed so far shrinks. */
SGT_INLINE float online_softmax(float *s, size_t masked, size_t n, size_t padded, float *max, double *sum)
{
    if (masked >= n) {
        memset(s, 0, padded * sizeof *s);
        return 1;
    }
    mask_scores(s, masked);
    vf top = vset(*max);
    for (size_t j = 0; j + W <= n; j += W) top = vmax(vload(s + j), top);
    float m = vlargest(top);
    for (size_t j = n / W * W; j < n; j++) m = s[j] > m ? s[j] : m;
    vf total = vset(0);
    for (size_t j = 0; j < padded; j += W) {
        vf e = j < n ? vkeep(vexp(vload(s + j) - vset(m)), n - j) : vset(0);
        vstore(s + j, e);
        total += e;
    }
    /* 1 also in the first block, where *max is -inf and nothing has been summed. */
    float shrink = m > *max && *sum > 0 ? (float)exp((double)*max - m) : 1;
    *sum = *sum * shrink + vtotal(total);
    *max = m;
    return shrink;
}

SGT_INLINE void attention_drop(float *p, const attention_parts *a, size_t i, size_t j0, size_t from, size_t padded)
{
    float factor[BLOCK];
    attention_factors(factor, a, i, j0, from, padded);
    for (size_t j = from; j < padded; j += W) vstore(p + j, vload(p + j) * vload(factor + j));
}

/* Query rows i0 ... i0 + rows - 1 against all keys up to theirs; out (rows, width) in scratch, normalized. */
static void attention_block(const attention_parts *a, float *out, float *lse, size_t i0, size_t rows)
{
    float max[BLOCK];
    double sum[BLOCK];
    size_t width = a->width, padded_rows = attention_round(rows, ROWS);
    for (size_t r = 0; r < BLOCK; r++) max[r] = -INFINITY, sum[r] = 0;
    memset(out, 0, padded_rows * width * sizeof *out);
    for (size_t j0 = a->start ? (size_t)a->start[i0] / BLOCK * BLOCK : 0; j0 <= i0; j0 += BLOCK) {
        for (size_t r0 = 0; r0 < padded_rows; r0 += ROWS) {
            size_t keys = j0 == i0 ? r0 + ROWS : BLOCK, padded = attention_round(keys, W);
            size_t from = attention_first(a, i0 + r0, j0) / W * W;
            if (from == BLOCK) break;
            float *s = a->s + r0 * BLOCK + from, *o = out + r0 * width;
            product_rows(s, BLOCK, a->q + (i0 + r0) * width, width, 1, a->k_t + j0 * width + from, BLOCK,
                         padded - from, width, 0);
            for (size_t r = 0; r < ROWS; r++) {
                size_t n = j0 == i0 ? r0 + r + 1 : BLOCK, first = attention_first(a, i0 + r0 + r, j0);
                float shrink = online_softmax(s + r * BLOCK, first - from, n - from, padded - from, &max[r0 + r],
                                              &sum[r0 + r]);
                for (size_t d = 0; d < width && shrink != 1; d += W)
                    vstore(o + r * width + d, vload(o + r * width + d) * vset(shrink));
                if (a->drop) attention_drop(a->s + (r0 + r) * BLOCK, a, i0 + r0 + r, j0, from, padded);
            }
            product_rows(o, width, s, BLOCK, 1, a->v + (j0 + from) * width, width, width, keys - from, 1);
        }
    }
    for (size_t r = 0; r < rows; r++) {
        lse[r] = (float)(max[r] + log(sum[r]));
        for (size_t d = 0; d < width; d += W)
            vstore(out + r * width + d, vload(out + r * width + d) * vset((float)(1 / sum[r])));
    }
}

static void attention(float *out, size_t ld_out, float *lse, const float *q, const float *k, const float *v, size_t ld,
                      size_t T, size_t D, float scale, const sgt_dropout *drop, const int32_t *start, float *scratch)
{
    attention_parts a = attention_lay_out(scratch, T, D);
    a.drop = drop;
    a.start = start;
    pack_rows(a.q, a.width, q, ld, T, D, scale);
    pack_rows(a.v, a.width, v, ld, T, D, 1);
    for (size_t i0 = 0; i0 < T; i0 += BLOCK) {
        size_t rows = T - i0 < BLOCK ? T - i0 : BLOCK;
        pack_transposed(a.k_t + i0 * a.width, k + i0 * ld, ld, rows, D);
        attention_block(&a, a.dq, lse + i0, i0, rows);
        unpack_rows(out + i0 * ld_out, ld_out, a.dq, a.width, rows, D, 1);
    }
}

/* ---- backward ---- */

/* For ROWS queries from row r0 of block i0 and keys from `from` on, with P = exp(s - lse): s becomes f P, dp becomes
 * dS = P (f dP - delta), zeros above the diagonal and before a query's document. */
SGT_INLINE void score_gradients(const attention_parts *a, size_t i0, size_t r0, size_t j0, size_t from, size_t padded)
{
    float factor[BLOCK];
    for (size_t r = r0; r < r0 + ROWS; r++) {
        size_t n = i0 == j0 ? r + 1 : BLOCK;
        if (a->drop) attention_factors(factor, a, i0 + r, j0, from, padded);
        vf lse = vset(a->lse[i0 + r]), delta = vset(a->delta[i0 + r]);
        float *s = a->s + r * BLOCK, *dp = a->dp + r * BLOCK;
        mask_scores(s + from, attention_first(a, i0 + r, j0) - from);
        for (size_t j = from; j < padded; j += W) {
            vf p = j < n ? vkeep(vexp(vload(s + j) - lse), n - j) : vset(0);
            vf f = a->drop ? vload(factor + j) : vset(1);
            vstore(s + j, f * p);
            vstore(dp + j, p * (f * vload(dp + j) - delta));
        }
    }
}

/* One block of queries against one block of keys: adds to dq's rows, and to dk and dv of the key block. Queries from
 * `rows` on see none of these keys, those from `last` on none of the ROWS keys in turn. */
static void backward_block(const attention_parts *a, size_t i0, size_t rows, size_t j0, size_t keys)
{
    int diagonal = i0 == j0;
    size_t width = a->width;
    for (size_t r0 = 0; r0 < rows; r0 += ROWS) {
        size_t used = diagonal ? r0 + ROWS : BLOCK, padded = attention_round(used, W);
        size_t from = attention_first(a, i0 + r0, j0) / W * W;
        if (from == BLOCK) {
            rows = r0;
            break;
        }
        const float *q = a->q + (i0 + r0) * width, *dout = a->dout + (i0 + r0) * width;
        float *s = a->s + r0 * BLOCK + from, *dp = a->dp + r0 * BLOCK + from;
        product_rows(s, BLOCK, q, width, 1, a->k_t + j0 * width + from, BLOCK, padded - from, width, 0);
        product_rows(dp, BLOCK, dout, width, 1, a->v_t + j0 * width + from, BLOCK, padded - from, width, 0);
        score_gradients(a, i0, r0, j0, from, padded);
        product_rows(a->dq + (i0 + r0) * width, width, dp, BLOCK, 1, a->k + (j0 + from) * width, width, width,
                     used - from, 1);
    }
    for (size_t c0 = 0, last = 0; c0 < keys; c0 += ROWS) {
        size_t first = diagonal ? c0 : 0; /* earlier queries do not see these keys */
        while (last < rows && attention_first(a, i0 + last, j0) < c0 + ROWS) last++;
        const float *s = a->s + first * BLOCK + c0, *ds = a->dp + first * BLOCK + c0;
        const float *q = a->q + (i0 + first) * width, *dout = a->dout + (i0 + first) * width;
        product_rows(a->dv + c0 * width, width, s, 1, BLOCK, dout, width, width, last - first, 1);
        product_rows(a->dk + c0 * width, width, ds, 1, BLOCK, q, width, width, last - first, 1);
    }
}

static void attention_row_sums(const attention_parts *a, const float *lse, const float *dout, const float *out,
                               size_t ld_out, size_t T, size_t D)
{
    memset(a->lse, 0, a->rows * sizeof *a->lse); /* rows past T: their scores are 0, and so must stay finite */
    memset(a->delta, 0, a->rows * sizeof *a->delta);
    for (size_t i = 0; i < T; i++, dout += ld_out, out += ld_out) {
        vf sum = vset(0);
        for (size_t d = 0; d < D; d += W) sum = vfma(vload_upto(dout + d, D - d), vload_upto(out + d, D - d), sum);
        a->lse[i] = lse[i];
        a->delta[i] = (float)vtotal(sum);
    }
}

static void attention_backward(float *dq, float *dk, float *dv, size_t ld_d, const float *dout, const float *out,
                               size_t ld_out, const float *lse, const float *q, const float *k, const float *v,
                               size_t ld, size_t T, size_t D, float scale, const sgt_dropout *drop,
                               const int32_t *start, float *scratch)
{
    attention_parts a = attention_lay_out(scratch, T, D);
    a.drop = drop;
    a.start = start;
    size_t width = a.width, padded = attention_round(T, ROWS);
    pack_rows(a.q, width, q, ld, T, D, scale);
    pack_rows(a.k, width, k, ld, T, D, 1);
    pack_rows(a.dout, width, dout, ld_out, T, D, 1);
    attention_row_sums(&a, lse, dout, out, ld_out, T, D);
    memset(a.dq, 0, padded * width * sizeof *a.dq);
    for (size_t j0 = 0; j0 < T; j0 += BLOCK) {
        size_t keys = T - j0 < BLOCK ? T - j0 : BLOCK;
        pack_transposed(a.k_t + j0 * width, k + j0 * ld, ld, keys, D);
        pack_transposed(a.v_t + j0 * width, v + j0 * ld, ld, keys, D);
        memset(a.dk, 0, BLOCK * width * sizeof *a.dk);
        memset(a.dv, 0, BLOCK * width * sizeof *a.dv);
        for (size_t i0 = j0; i0 < T && attention_first(&a, i0, j0) < BLOCK; i0 += BLOCK)
            backward_block(&a, i0, padded - i0 < BLOCK ? padded - i0 : BLOCK, j0, attention_round(keys, ROWS));
        unpack_rows(dk + j0 * ld_d, ld_d, a.dk, width, keys, D, 1); /* q was scaled already */
        unpack_rows(dv + j0 * ld_d, ld_d, a.dv, width, keys, D, 1);
    }
    unpack_rows(dq, ld_d, a.dq, width, T, D, scale);
}
