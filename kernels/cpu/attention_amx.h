/* attention_amx.h: causal attention of one head in AMX tiles, after Dao et al., "FlashAttention"
 * (2022). amx.h explains pairs and blocks.
 *
 * Scores are computed transposed: S' (keys, queries) = K Q'. So each query has a vector lane of its
 * own, which holds the query's maximum, sum, lse or delta, and no lanes need be added up. In matrix
 * products, P' and dS' are used as follows:
 *   O' = V' P'    two interleaved rows of P' are a row of the right pair
 *   dV = P' dO    a row of P' is a row of the left pair
 *   dK = dS' Q    dS' is the left operand
 *   dQ' = K' dS'  dS' is the right operand
 *
 * The forward pass computes 32 queries against up to CHUNK blocks of 32 keys at a time, with a
 * running maximum and sum. The backward pass computes AROUND x AROUND blocks at a time. It
 * recomputes the scores, and uses the lse that the forward pass stored. Blocks above the diagonal
 * are skipped. A key block that ends before the documents of all queries of a query block is
 * skipped, too. Only the first of these queries is checked, because a query's document never begins
 * earlier than that of the query before it.
 *
 * Rounding is the same as in attention.h with SGT_FOR_bf16: queries, keys, values, dout,
 * probabilities (before they are divided by their sum) and score gradients become bfloat16.
 * Everything else is float32.
 *
 * Loads and tile products for 64 channels: A block of scores takes 8 loads for 8 tile products, and
 * 4 stores. Each step of O' takes 4 loads for 4 tile products. Each chunk of up to 8 steps takes
 * another 4 loads and 4 stores of sums. So the forward pass has 1.125 loads per tile product. In
 * the backward pass, a sum has up to 4 steps between loading and storing it, which gives 1.25 loads
 * per tile product. All operands of a task fit in the L2 cache. A chunk's scores and probabilities
 * (32 + 16 KiB) nearly fit in the L1 cache. The exponentials take most of the time: a block of
 * scores needs 64 vectors of exponentials, but only 8 tile products each for S' and O'. */
#include "kernels/cpu/amx.h"
#include "kernels/kernels.h"
#include "kernels/cpu/simd.h"

enum { CHUNK = 8, AROUND = 4, HALVES = SIDE / W };

/* For W queries, one per vector lane: the index of the query (`query`), and the index of the first
 * key that the query sees (`start`). A query sees the keys from `start` to `query`. */
typedef struct attention_lanes {
    __m512i query, start;
} attention_lanes;

/* Arrays in the scratch memory. Shapes count pairs (PAIR bytes each) or blocks (SIDE x SIDE floats
 * each). "Products" are the matrix products that read the pairs. */
typedef struct attention_parts {
    /* blocks: T / SIDE, rounded up, the number of blocks of SIDE positions; deep: D / SIDE, rounded
     * up, the number of blocks of SIDE channels */
    size_t T, D, blocks, deep;
    /* k and v as (blocks, deep) left pairs of tiles whose rows are keys, for products that sum over
     * channels */
    char *k_left, *v_left;
    /* q and dout as (blocks, deep) right pairs of tiles whose columns are queries, for products
     * that sum over channels */
    char *q_right, *o_right;
    /* k and v as (deep, blocks) left pairs of tiles whose rows are channels, for products that sum
     * over keys */
    char *k_across, *v_across;
    /* q and dout as (deep, blocks) right pairs of tiles whose columns are channels, for products
     * that sum over queries */
    char *q_down, *o_down;
    /* P' and dS' as (AROUND keys, AROUND queries) left pairs of tiles, for products that sum over
     * queries */
    char *p, *ds;
    /* dS' as (AROUND queries, AROUND keys) right pairs of tiles, for products that sum over keys */
    char *ds_right;
    /* s: transposed scores of one block of queries and up to CHUNK blocks of keys; dp: transposed
     * gradients of the probabilities, for one block of queries and one block of keys */
    float *s, *dp;
    /* dQ', the transposed gradient of q, as (blocks, deep) blocks of SIDE x SIDE floats. In the
     * forward pass, the first `deep` blocks hold O', the transposed output of one block of
     * queries. */
    float *dq;
    float *dk, *dv; /* (AROUND, deep) blocks */
    /* arrays of `blocks` * SIDE floats, one for each query i: lse is the log-sum-exp of the query's
     * scores, delta the dot product of dout_i and out_i; both are 0 for queries past T */
    float *lse, *delta;
    const sgt_dropout *drop; /* NULL: no dropout */
    /* array of T elements: for each query, the index of the first key that it sees, at which its
     * document begins; NULL: every query sees the keys from index 0 on */
    const int32_t *start;
    float scale;
    size_t total;
} attention_parts;

static attention_parts attention_lay_out(float *base, size_t T, size_t D)
{
    attention_parts a = {.T = T, .D = D, .blocks = units(T), .deep = units(D)};
    size_t whole = a.blocks * a.deep, around = AROUND * AROUND;
    sgt_arena m = {.base = (char *)base, .size = SIZE_MAX};
    char **const pairs[] = {&a.k_left,   &a.v_left,   &a.q_right, &a.o_right,
                            &a.k_across, &a.v_across, &a.q_down,  &a.o_down};
    for (size_t i = 0; i < 8; i++) *pairs[i] = sgt_arena_take(&m, whole, PAIR);
    a.p = sgt_arena_take(&m, around, PAIR);
    a.ds = sgt_arena_take(&m, around, PAIR);
    a.ds_right = sgt_arena_take(&m, around, PAIR);
    a.s = sgt_arena_take(&m, CHUNK, BLOCK_BYTES);
    a.dp = sgt_arena_take(&m, 1, BLOCK_BYTES);
    a.dq = sgt_arena_take(&m, whole, BLOCK_BYTES);
    a.dk = sgt_arena_take(&m, AROUND * a.deep, BLOCK_BYTES);
    a.dv = sgt_arena_take(&m, AROUND * a.deep, BLOCK_BYTES);
    a.lse = sgt_arena_take(&m, a.blocks * SIDE, sizeof(float));
    a.delta = sgt_arena_take(&m, a.blocks * SIDE, sizeof(float));
    a.total = m.used / sizeof(float);
    return a;
}

static size_t attention_scratch(size_t T, size_t D) { return attention_lay_out(NULL, T, D).total; }

/* ---- packing ---- */

/* Ways in which attention_pack_pair packs 32 x 32 floats of x into a pair of tiles: as the left or
 * right operand of a matrix product. LEFT and RIGHT are for products that sum along the rows of x,
 * LEFT_ACROSS and RIGHT_ACROSS for products that sum down its columns. */
enum { LEFT, LEFT_ACROSS, RIGHT, RIGHT_ACROSS };

SGT_INLINE vf attention_load(const float *x, size_t ld, size_t row, size_t rows, size_t column,
                             size_t columns)
{
    return row < rows && column < columns ? vload_upto(x + row * ld + column, columns - column)
                                          : vset(0);
}

SGT_INLINE __m512i attention_along(const float *x, size_t ld, size_t row, size_t rows,
                                   size_t columns)
{
    return amx_along(attention_load(x, ld, row, rows, 0, columns),
                     attention_load(x, ld, row, rows, W, columns));
}

SGT_INLINE __m512i attention_down(const float *x, size_t ld, size_t row, size_t rows, size_t column,
                                  size_t columns)
{
    return amx_pair(attention_load(x, ld, row, rows, column, columns),
                    attention_load(x, ld, row + 1, rows, column, columns));
}

SGT_INLINE void attention_pack_pair(char *out, int how, const float *x, size_t ld, size_t rows,
                                    size_t columns)
{
    for (size_t i = 0; i < SIDE && how == LEFT; i++)
        amx_put(out + i * 64, attention_along(x, ld, i, rows, columns));
    for (size_t h = 0; h < HALVES; h++, out += TILE) {
        __m512i group[W];
        for (size_t i = 0; i < W && how == RIGHT; i++)
            group[i] = attention_along(x, ld, h * W + i, rows, columns);
        for (size_t i = 0; i < W && how != LEFT && how != RIGHT; i++)
            group[i] = attention_down(x, ld, 2 * i, rows, h * W, columns);
        for (size_t i = 0; i < W && how == RIGHT_ACROSS; i++) amx_put(out + i * 64, group[i]);
        if (how == RIGHT || how == LEFT_ACROSS) amx_put_transposed(out, group);
    }
}

/* Pack all of x (T, D) into pairs: (blocks, deep) pairs if `how` is LEFT or RIGHT, or (deep,
 * blocks) pairs if it is LEFT_ACROSS or RIGHT_ACROSS. */
SGT_INLINE void attention_pack(const attention_parts *a, char *out, int how, const float *x,
                               size_t ld)
{
    for (size_t b = 0; b < a->blocks; b++)
        for (size_t c = 0; c < a->deep; c++) {
            int across = how == LEFT_ACROSS || how == RIGHT_ACROSS;
            size_t at = across ? c * a->blocks + b : b * a->deep + c;
            attention_pack_pair(out + at * PAIR, how, x + b * SIDE * ld + c * SIDE, ld,
                                least(SIDE, a->T - b * SIDE), least(SIDE, a->D - c * SIDE));
        }
}

/* Multiply `block`, a block of SIDE x SIDE floats, or its transpose, by `factor`, and write the
 * result to block (b, c) of `out` (T, D). Rows from T on and columns from D on are not written. */
SGT_INLINE void attention_unpack(const attention_parts *a, float *out, size_t ld,
                                 const float *block, size_t b, size_t c, vf factor[HALVES],
                                 int transposed)
{
    size_t rows = least(SIDE, a->T - b * SIDE), columns = least(SIDE, a->D - c * SIDE);
    out += b * SIDE * ld + c * SIDE;
    for (size_t i = 0; i < SIDE; i += W)
        for (size_t j = 0; j < columns; j += W) {
            vf v[W];
            for (size_t k = 0; k < W; k++)
                v[k] = transposed ? vload(block + (j + k) * SIDE + i) * factor[i / W]
                                  : vload(block + (i + k) * SIDE + j) * factor[0];
            if (transposed) vtranspose(v);
            for (size_t k = 0; k < W && i + k < rows; k++)
                vstore_upto(out + (i + k) * ld + j, v[k], columns - j);
        }
}

/* ---- which query sees which key ---- */

/* Return the index of the first key block that any query of query block b sees. Only the block's
 * first query is checked, because no later query's document begins earlier. */
SGT_INLINE size_t attention_first(const attention_parts *a, size_t b)
{
    return a->start ? (size_t)a->start[b * SIDE] / SIDE : 0;
}

/* Return whether every query of block b sees every key of block v. */
SGT_INLINE int attention_sees_all(const attention_parts *a, size_t b, size_t v)
{
    size_t last = b * SIDE + least(SIDE, a->T - b * SIDE) - 1;
    return v < b && (!a->start || (size_t)a->start[last] <= v * SIDE);
}

/* Return the indexes of the W queries `query` .. `query` + W - 1, and the first key that each of
 * them sees. Queries past T, which exist in the last block, count as part of the last query's
 * document. */
SGT_INLINE attention_lanes attention_lanes_from(const attention_parts *a, size_t query)
{
    int32_t start[W] = {0};
    for (size_t i = 0; a->start && i < W; i++)
        start[i] = a->start[query + i < a->T ? query + i : a->T - 1];
    attention_lanes l = {
        .query = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
        .start = _mm512_loadu_si512(start)};
    l.query = _mm512_add_epi32(l.query, _mm512_set1_epi32((int)query));
    return l;
}

/* Return a mask of the queries in `l` that see the key with index `key`. */
SGT_INLINE __mmask16 attention_visible(const attention_lanes *l, size_t key)
{
    __m512i k = _mm512_set1_epi32((int)key);
    return _mm512_cmple_epi32_mask(l->start, k) & _mm512_cmple_epi32_mask(k, l->query);
}

/* Return a mask of the queries that see more than their own key. For a query that sees only its own
 * key, the only probability is 1, whatever the score, so the gradient of the score is exactly 0.
 * The general formula would give the tiny rounding error of dP - delta instead. AdamW divides
 * gradients by their size, so it would turn even a tiny error into a step of size lr. */
SGT_INLINE __mmask16 attention_not_alone(const attention_lanes *l)
{
    return _mm512_cmplt_epi32_mask(l->start, l->query);
}

/* Set factor[i][l] to the dropout factor of key `key` + i for query `query` + l. The compiler
 * vectorizes the loop over queries. */
static void attention_factors(float factor[4][W], const attention_parts *a, size_t query,
                              size_t key)
{
    const sgt_dropout *d = a->drop;
    const uint32_t limit = sgt_dropout_limit(d->rate);
    const float keep = sgt_dropout_keep(d->rate);
    size_t quads = (a->T + 3) / 4; /* draws per query, each for 4 keys */
    uint64_t draw = (d->first + key) / 4 + query * quads;
    for (size_t l = 0; l < W; l++) {
        sgt_philox4 r = sgt_philox(d->seed, draw + l * quads, d->draw);
        for (int i = 0; i < 4; i++) factor[i][l] = r.x[i] >> 8 >= limit ? keep : 0;
    }
}

/* ---- forward ---- */

/* State of a running softmax of W queries, which is updated with one chunk of keys after another.
 * max: each query's largest score so far; sum: sum of each query's exponentials so far. */
typedef struct attention_row {
    attention_lanes lanes;
    vf max, sum;
} attention_row;

/* Convert the scores of W queries against key blocks v .. v + count - 1 to probabilities, apply
 * dropout, and write them to `out` as right pairs. The probabilities are not yet divided by their
 * sum, which the caller must do at the end. Return the factors by which the caller must multiply
 * its earlier sums. The factor of a query is below 1 if the query's maximum has grown, because the
 * earlier sums are relative to the old maximum. */
SGT_INLINE vf attention_softmax(const attention_parts *a, attention_row *r, size_t b, size_t half,
                                size_t v, size_t count, char *out)
{
    const float *s = a->s + half * W;
    vf scale = vset(a->scale), top = r->max, total[4] = {vset(0), vset(0), vset(0), vset(0)};
    for (size_t k = 0; k < count; k++) {
        int all = attention_sees_all(a, b, v + k);
        for (size_t j = k * SIDE; j < (k + 1) * SIDE; j++) {
            __mmask16 see = all ? 0xffff : attention_visible(&r->lanes, v * SIDE + j);
            /* the order of the operands matters: if a score is NaN, the result is the second
             * operand, `top` */
            top = _mm512_mask_max_ps(top, see, vload(s + j * SIDE) * scale, top);
        }
    }
    for (size_t j = 0; j < count * SIDE; j += 4) {
        float factor[4][W];
        vf p[4];
        int all = attention_sees_all(a, b, v + j / SIDE);
        if (a->drop) attention_factors(factor, a, b * SIDE + half * W, v * SIDE + j);
        for (size_t i = 0; i < 4; i++) {
            vf e = vexp(vload(s + (j + i) * SIDE) * scale - top);
            if (!all) e = _mm512_maskz_mov_ps(attention_visible(&r->lanes, v * SIDE + j + i), e);
            total[i] += e;
            p[i] = e;
            if (a->drop) p[i] *= vload(factor[i]);
        }
        char *at = out + j / SIDE * PAIR + half * TILE + j % SIDE / 2 * 64;
        amx_put(at, amx_pair(p[0], p[1]));
        amx_put(at + 64, amx_pair(p[2], p[3]));
    }
    vf shrink = vexp(r->max - top);
    r->sum = r->sum * shrink + ((total[0] + total[1]) + (total[2] + total[3]));
    r->max = top;
    return shrink;
}

SGT_INLINE void attention_shrink(const attention_parts *a, const vf shrink[HALVES])
{
    for (size_t k = 0; k < a->deep * SIDE * SIDE; k += W)
        vstore(a->dq + k, vload(a->dq + k) * shrink[k % SIDE / W]);
}

static void attention_queries(const attention_parts *a, float *out, size_t ld_out, float *lse,
                              size_t b)
{
    attention_row row[HALVES];
    for (size_t h = 0; h < HALVES; h++)
        row[h] = (attention_row){attention_lanes_from(a, b * SIDE + h * W), vset(-3e38f), vset(0)};
    for (size_t v = attention_first(a, b), from = v; v <= b; v += CHUNK) {
        size_t count = b + 1 - v < CHUNK ? b + 1 - v : CHUNK;
        vf shrink[HALVES];
        for (size_t k = 0; k < count; k++)
            amx_block(a->s + k * SIDE * SIDE, a->k_left + (v + k) * a->deep * PAIR,
                      a->q_right + b * a->deep * PAIR, PAIR, a->deep, 0);
        for (size_t h = 0; h < HALVES; h++)
            shrink[h] = attention_softmax(a, &row[h], b, h, v, count, a->p);
        if (v > from && (vlargest(-shrink[0]) > -1 || vlargest(-shrink[1]) > -1))
            attention_shrink(a, shrink);
        for (size_t c = 0; c < a->deep; c++)
            amx_block(a->dq + c * SIDE * SIDE, a->v_across + (c * a->blocks + v) * PAIR, a->p, PAIR,
                      count, v > from);
    }
    vf inverse[HALVES];
    for (size_t h = 0; h < HALVES; h++) {
        float max[W], sum[W];
        inverse[h] = vset(1) / row[h].sum;
        vstore(max, row[h].max), vstore(sum, row[h].sum);
        for (size_t i = 0, query = b * SIDE + h * W; i < W && query + i < a->T; i++)
            lse[query + i] = (float)((double)max[i] + log((double)sum[i]));
    }
    for (size_t c = 0; c < a->deep; c++)
        attention_unpack(a, out, ld_out, a->dq + c * SIDE * SIDE, b, c, inverse, 1);
}

static void attention(float *out, size_t ld_out, float *lse, const float *q, const float *k,
                      const float *v, size_t ld, size_t T, size_t D, float scale,
                      const sgt_dropout *drop, const int32_t *start, float *scratch)
{
    attention_parts a = attention_lay_out(scratch, T, D);
    a.drop = drop, a.start = start, a.scale = scale;
    tile_config();
    attention_pack(&a, a.k_left, LEFT, k, ld);
    attention_pack(&a, a.q_right, RIGHT, q, ld);
    attention_pack(&a, a.v_across, LEFT_ACROSS, v, ld);
    for (size_t b = 0; b < a.blocks; b++) attention_queries(&a, out, ld_out, lse, b);
    tile_release();
}

/* ---- backward ---- */

/* Take the W queries in half `half` (0 or 1) of query block b, and the keys of block v. Replace
 * their transposed scores S' with f P', and dP' with dS' = P' (f dP' - delta), where f are the
 * dropout factors. Also pack dS' into the right pair for dQ'. */
SGT_INLINE void attention_score_lanes(const attention_parts *a, size_t b, size_t half, size_t v,
                                      char *ds_right)
{
    attention_lanes lanes = attention_lanes_from(a, b * SIDE + half * W);
    __mmask16 not_alone = attention_not_alone(&lanes);
    vf lse = vload(a->lse + b * SIDE + half * W), delta = vload(a->delta + b * SIDE + half * W);
    int all = attention_sees_all(a, b, v);
    for (size_t j = 0; j < SIDE; j += 4) {
        float factor[4][W];
        vf ds[4];
        if (a->drop) attention_factors(factor, a, b * SIDE + half * W, v * SIDE + j);
        for (size_t i = 0; i < 4; i++) {
            float *s = a->s + (j + i) * SIDE + half * W, *dp = a->dp + (j + i) * SIDE + half * W;
            __mmask16 see = all ? 0xffff : attention_visible(&lanes, v * SIDE + j + i);
            vf p = _mm512_maskz_mov_ps(see, vexp(vload(s) * vset(a->scale) - lse));
            vf f = a->drop ? vload(factor[i]) : vset(1);
            ds[i] = _mm512_maskz_mul_ps(see & not_alone, p, f * vload(dp) - delta);
            vstore(s, f * p);
            vstore(dp, ds[i]);
        }
        char *at = ds_right + half * TILE + j / 2 * 64;
        amx_put(at, amx_pair(ds[0], ds[1]));
        amx_put(at + 64, amx_pair(ds[2], ds[3]));
    }
}

/* Compute P' (times the dropout factors) and dS' for key block v and query block b. Both matrices
 * are transposed: they have a row for each key and a column for each query. Both are packed as left
 * operands into pair (vi, bi) of a->p and a->ds, which hold AROUND x AROUND pairs. */
static void attention_scores(const attention_parts *a, size_t v, size_t vi, size_t b, size_t bi)
{
    size_t deep = a->deep, at = (vi * AROUND + bi) * PAIR;
    amx_block(a->s, a->k_left + v * deep * PAIR, a->q_right + b * deep * PAIR, PAIR, deep, 0);
    amx_block(a->dp, a->v_left + v * deep * PAIR, a->o_right + b * deep * PAIR, PAIR, deep, 0);
    for (size_t h = 0; h < HALVES; h++)
        attention_score_lanes(a, b, h, v, a->ds_right + (bi * AROUND + vi) * PAIR);
    for (size_t j = 0; j < SIDE; j++) {
        const float *s = a->s + j * SIDE, *dp = a->dp + j * SIDE;
        amx_put(a->p + at + j * 64, amx_along(vload(s), vload(s + W)));
        amx_put(a->ds + at + j * 64, amx_along(vload(dp), vload(dp + W)));
    }
}

/* Add the contributions of query blocks b0 .. b0 + AROUND - 1 and key blocks v0 .. v0 + AROUND - 1
 * to the gradients dq, dk and dv. */
static void attention_around(const attention_parts *a, size_t v0, size_t b0)
{
    size_t keys = a->blocks - v0 < AROUND ? a->blocks - v0 : AROUND,
           queries = a->blocks - b0 < AROUND ? a->blocks - b0 : AROUND;
    /* Ranges that tell which query blocks see which key blocks. bi counts query blocks from b0 on,
     * vi counts key blocks from v0 on.
     *   - Query block bi sees key blocks from[bi] .. to[bi] - 1.
     *   - Key block vi is seen by query blocks first[vi] .. past[vi] - 1. */
    size_t from[AROUND], to[AROUND], first[AROUND] = {0}, past[AROUND] = {0};
    for (size_t bi = 0; bi < queries; bi++) {
        size_t low = attention_first(a, b0 + bi);
        from[bi] = low > v0 ? low - v0 : 0;
        to[bi] = b0 + bi + 1 - v0 < keys ? b0 + bi + 1 - v0 : keys;
        for (size_t vi = from[bi]; vi < to[bi]; vi++) {
            if (!past[vi]) first[vi] = bi;
            past[vi] = bi + 1;
            attention_scores(a, v0 + vi, vi, b0 + bi, bi);
        }
    }
    for (size_t c = 0; c < a->deep; c++) {
        for (size_t vi = 0; vi < keys; vi++) {
            size_t at = (vi * AROUND + first[vi]) * PAIR, sum = (vi * a->deep + c) * SIDE * SIDE,
                   right = (c * a->blocks + b0 + first[vi]) * PAIR, steps = past[vi] - first[vi];
            if (!past[vi]) continue;
            amx_block(a->dv + sum, a->p + at, a->o_down + right, PAIR, steps, 1);
            amx_block(a->dk + sum, a->ds + at, a->q_down + right, PAIR, steps, 1);
        }
        for (size_t bi = 0; bi < queries; bi++)
            if (from[bi] < to[bi])
                amx_block(a->dq + ((b0 + bi) * a->deep + c) * SIDE * SIDE,
                          a->k_across + (c * a->blocks + v0 + from[bi]) * PAIR,
                          a->ds_right + (bi * AROUND + from[bi]) * PAIR, PAIR, to[bi] - from[bi],
                          1);
    }
}

static void attention_backward(float *dq, float *dk, float *dv, size_t ld_d, const float *dout,
                               const float *out, size_t ld_out, const float *lse, const float *q,
                               const float *k, const float *v, size_t ld, size_t T, size_t D,
                               float scale, const sgt_dropout *drop, const int32_t *start,
                               float *scratch)
{
    attention_parts a = attention_lay_out(scratch, T, D);
    size_t sums = a.deep * BLOCK_BYTES;
    a.drop = drop, a.start = start, a.scale = scale;
    tile_config();
    attention_pack(&a, a.k_left, LEFT, k, ld);
    attention_pack(&a, a.v_left, LEFT, v, ld);
    attention_pack(&a, a.k_across, LEFT_ACROSS, k, ld);
    attention_pack(&a, a.q_right, RIGHT, q, ld);
    attention_pack(&a, a.o_right, RIGHT, dout, ld_out);
    attention_pack(&a, a.q_down, RIGHT_ACROSS, q, ld);
    attention_pack(&a, a.o_down, RIGHT_ACROSS, dout, ld_out);
    attention_row_sums(a.lse, a.delta, a.blocks * SIDE, lse, dout, out, ld_out, T, D);
    memset(a.dq, 0, a.blocks * sums);
    vf scaled[HALVES] = {vset(scale), vset(scale)}, one[HALVES] = {vset(1), vset(1)};
    for (size_t v0 = 0; v0 < a.blocks; v0 += AROUND) {
        memset(a.dk, 0, AROUND * sums);
        memset(a.dv, 0, AROUND * sums);
        for (size_t b0 = v0; b0 < a.blocks && attention_first(&a, b0) < v0 + AROUND; b0 += AROUND)
            attention_around(&a, v0, b0);
        for (size_t i = 0; i < AROUND * a.deep && v0 + i / a.deep < a.blocks; i++) {
            size_t b = v0 + i / a.deep, c = i % a.deep;
            attention_unpack(&a, dk, ld_d, a.dk + i * SIDE * SIDE, b, c, scaled, 0);
            attention_unpack(&a, dv, ld_d, a.dv + i * SIDE * SIDE, b, c, one, 0);
        }
    }
    for (size_t i = 0; i < a.blocks * a.deep; i++)
        attention_unpack(&a, dq, ld_d, a.dq + i * SIDE * SIDE, i / a.deep, i % a.deep, scaled, 1);
    tile_release();
}
