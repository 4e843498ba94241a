// attention.cuh: tiles in shared memory, and their matrix products on tensor cores, for
// attention.cu and attention_backward.cu. attention_hopper.cuh also uses the masks, the softmax and
// the dropout, which work on registers.
//
// A tile holds consecutive rows of q, k, v or dout of one head. A row has DP elements: the head's D
// elements, then zeros. 16 unused bytes follow each row, so that consecutive rows start in
// different banks and ldmatrix reads 8 rows without a bank conflict. A block has four warps. Each
// warp multiplies one or two groups of 16 rows of the block's own tile (the tile that the block
// keeps) by all rows of each tile in the loop. The products are in accumulators, float c[N][4] in
// each lane. Let g = lane/4 and t = lane%4. Then c[n] has these elements of a group's 16 rows: (g,
// 8n+2t), (g, 8n+2t+1), (g+8, 8n+2t) and (g+8, 8n+2t+1).
//
// The type T determines how elements are stored and multiplied: bf16, f16, or one of two methods
// for float32 (Tf32, Tf32x3). For every type, one step of a matrix product covers 32 bytes of a
// tile's row: 16 columns of a 16-bit type, or 8 columns of float32.
#pragma once

#include "kernels/cuda/dropout.cuh"

namespace sgt
{

static constexpr float LOG2E = 1.44269504088896340736f, LN2 = 0.69314718055994530942f;
// Initial value of the running maximum, before the first score. It is finite, because the weight of
// a masked score is exp2(-infinity - maximum): 0 for a finite maximum, but NaN for -infinity.
static constexpr float NONE_YET = -3e38f;
enum { ATTENTION_THREADS = 128, OWN = 64 /* rows of a block's own tile */ };

// A float32 that is rounded to TF32 (11 significant bits) before it is multiplied. The product of
// two such numbers has a relative error of up to 2^-10.
struct Tf32 {
    float x;
};
// A float32 that is multiplied as the sum of two TF32 numbers of 11 significant bits each: `big`,
// and the remainder `small`, which can lack the last bit of the float32. A product is computed as
// big*big + big*small + small*big. The relative error of the product is at most 2^-21: 2^-22
// because small*small is left out, and 2^-23 for the last bit of each of the two factors.
struct Tf32x3 {
    float x;
};
// mask of the low bits of a float that TF32 tensor cores ignore
enum : uint32_t { TF32_IGNORED = 0x1fff };
template <class T>
// number of tensor-core multiplications that one product of two elements of type T takes
constexpr int PASSES = std::is_same<T, Tf32x3>::value ? 3 : 1;

template <class T> DEV float number(T x)
{
    if constexpr (sizeof(T) == 2) return dev::to_float(x);
    else return x.x;
}

template <class T> struct Heads {
    const T *qkv;       // (B, T, 3, H, D)
    T *out;             // (B, T, H, D)
    float *lse, *delta; // (B, H, T)
    const T *dout;
    T *dqkv;
    int length, heads, D;
    // (B, T) arrays: start and end of each position's document; NULL: each row is one document
    const int32_t *start, *end;
    // scale: factor by which scores are multiplied; scale_log2: scale * log2(e), used because
    // exponentials are computed as powers of 2
    float scale, scale_log2;
    sgt_cuda_dropout drop;
    // limit: dropout keeps an attention probability if its random bits, read as a number, are at
    // least `limit` (see sgt_dropout_limit); pitch: distance between the element numbers
    // (kernels/dropout.h) of successive queries, which is T rounded up to a multiple of 4
    uint32_t limit, pitch;
    float keep;
};

// Position of one head of one sequence in each array of `Heads`: the index of its first element,
// and the distance between its rows.
struct Head {
    // Index of the head's first element: `packed` in qkv and dqkv, `plain` in out and dout, `row`
    // in lse and delta. Rows of the head are packed_ld elements apart in qkv and dqkv, plain_ld in
    // out and dout, and 1 in lse and delta.
    size_t packed, packed_ld, plain, plain_ld, row;

    template <class T> DEV Head(const Heads<T> &a, int which)
    {
        size_t b = which / a.heads, h = which % a.heads, width = (size_t)a.heads * a.D;
        packed_ld = 3 * width;
        packed = b * a.length * packed_ld + h * a.D;
        plain_ld = width;
        plain = b * a.length * width + h * a.D;
        row = (size_t)which * a.length;
    }
};

// Tells which positions of a sequence belong to the same document. A query sees only keys of its
// own document. (Sight does not apply the causal mask.) first_key returns the start of the query's
// document, and after_queries the end of the key's document. A position past the end of the
// sequence is treated like the last position. Each call reads the arrays again, because keeping the
// results would take registers.
template <class T> struct Sight {
    const Heads<T> &a;
    int row; // index of the sequence's first position in the arrays `start` and `end`

    DEV Sight(const Heads<T> &heads, int which) : a(heads), row(which / heads.heads * heads.length)
    {
    }

    DEV int first_key(int query) const
    {
        return a.start ? a.start[row + (query < a.length ? query : a.length - 1)] : 0;
    }
    DEV int after_queries(int key) const
    {
        return a.end ? a.end[row + (key < a.length ? key : a.length - 1)] : a.length;
    }
};

// In each row of a tile of scores, set the scores in some columns to -infinity, so that their
// probabilities become 0: the columns before limit(row) if BEFORE is true, else the columns from
// limit(row) on. Rows and columns are counted from the start of the tile.
template <bool BEFORE, int N, class F> DEV void mask_columns(float (&s)[N][4], F limit)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    DEV_UNROLL_FOR (int half = 0; half < 2; half++) {
        int at = limit(g + half * 8) - 2 * t;
        DEV_UNROLL_FOR (int n = 0; n < N; n++)
            DEV_UNROLL_FOR (int e = 0; e < 2; e++)
                if ((n * 8 + e < at) == BEFORE) s[n][2 * half + e] = -INFINITY;
    }
}

// Set the scores of keys in earlier documents to -infinity. Queries are in rows, keys in columns.
template <int N, class T>
DEV void mask_earlier(float (&s)[N][4], const Sight<T> &sight, int query, int key)
{
    mask_columns<true>(s, [&](int row) { return sight.first_key(query + row) - key; });
}

// Tells which attention probabilities of one head are kept by dropout. If DROP is false, the kernel
// has no dropout, and the struct costs nothing.
template <bool DROP> struct Kept {
    // first: element number (see kernels/dropout.h) of the head's probability of query 0 and key 0
    uint64_t seed, draw, first;
    uint32_t limit, pitch;
    float keep; // factor of the kept probabilities

    template <class T> DEV Kept(const Heads<T> &a, int which)
    {
        keep = DROP ? a.keep : 1;
        if (!DROP) return;
        const sgt_cuda_place &place = *a.drop.place;
        uint64_t row = step_row(place, which / a.heads), h = which % a.heads;
        seed = place.seed;
        draw = sgt_dropout_draw(place.step, a.drop.layer, a.drop.site);
        first = sgt_dropout_attention_element(row, h, 0, 0, a.heads, a.length);
        pitch = a.pitch;
        limit = a.limit;
    }

    // Return a bit mask that tells which of the keys `key` .. `key` + 3 dropout keeps for the query
    // `query`: bit j is set if `key` + j is kept. `key` must be a multiple of 4.
    DEV uint32_t four(int query, int key) const
    {
        return sgt_dropout_kept(seed, draw, first + (uint64_t)query * pitch + key, limit);
    }
};

// Tells which elements of a warp's tile of scores are kept by dropout. The tile has queries in rows
// (by_rows) or in columns (by_columns). One random draw decides about four consecutive keys of a
// query, but a lane holds only one or two of these keys. If each lane made all draws that it needs,
// most draws would be made in several lanes. Therefore each lane makes one draw for each block of 8
// columns and packs the results into a 32-bit word, and the lanes exchange their words.
template <int N> struct KeptTile {
    static_assert(N <= 8, "a word of four bits a block");
    uint32_t word[4]; // bit 4n + shift of word[e]: 1 if element e of block n is kept, else 0
    int shift;

    // Draw the dropout mask of a tile whose rows are queries and whose columns are keys. In block n
    // of 8 columns, lane 4g + t draws for the four keys from column 8n + 4 (t/2) on, and for the
    // query in row g if t is even, or in row g + 8 if t is odd.
    DEV void by_rows(const Kept<true> &k, int query, int key)
    {
        int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        uint32_t mine = 0, other;
        DEV_UNROLL_FOR (int n = 0; n < N; n++)
            mine |= k.four(query + g + t % 2 * 8, key + n * 8 + t / 2 * 4) << 4 * n;
        other = dev::shfl_xor(mine, 1);
        word[0] = t % 2 ? other : mine;
        word[2] = t % 2 ? mine : other;
        shift = t % 2 * 2;
        word[1] = word[0] >> 1;
        word[3] = word[2] >> 1;
    }

    // Draw the dropout mask of a tile whose rows are keys and whose columns are queries. Four lanes
    // that differ only in g%4 hold four consecutive keys of the same queries, and four elements
    // each per block of 8 columns. A random draw decides about four keys of a query, that is, about
    // one element in each of the four lanes. So the lane with g%4 = m makes the draw that decides
    // about element m of all four lanes.
    DEV void by_columns(const Kept<true> &k, int key, int query)
    {
        int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, m = g % 4;
        uint32_t mine = 0;
        DEV_UNROLL_FOR (int n = 0; n < N; n++)
            mine |= k.four(query + n * 8 + 2 * t + m % 2, key + g / 4 * 4 + m / 2 * 8) << 4 * n;
        DEV_UNROLL_FOR (int e = 0; e < 4; e++) word[e] = dev::shfl(mine, lane - 4 * m + 4 * e);
        shift = m;
    }

    DEV bool at(int n, int e) const { return word[e] >> (4 * n + shift) & 1; }
};

// Apply the dropout mask: set x[n][e] to 0 unless `kept` says that dropout keeps it.
template <int N> DEV void drop_elements(float (&x)[N][4], const KeptTile<N> &kept)
{
    DEV_UNROLL_FOR (int n = 0; n < N; n++)
        DEV_UNROLL_FOR (int e = 0; e < 4; e++)
            if (!kept.at(n, e)) x[n][e] = 0;
}

template <class T, int DP> constexpr int PITCH = DP + PER16<T>;
// Number of elements in a tile of ROWS rows, including the unused gap after each row.
template <class T, int DP, int ROWS> constexpr int TILE = ROWS *PITCH<T, DP>;

// Start copying ROWS rows from global memory into a tile. In global memory, the rows are `ld`
// elements apart, and only the first `present` rows and the first D columns exist. The rest of the
// tile is set to 0.
template <class T, int DP, int ROWS>
DEV void start_tile(T *tile, const T *rows, size_t ld, int present, int D)
{
    constexpr int EACH = PER16<T>, PIECES = DP / EACH;
    for (int i = threadIdx.x; i < ROWS * PIECES; i += ATTENTION_THREADS) {
        int row = i / PIECES, d = i % PIECES * EACH;
        bool there = row < present && d < D;
        dev::cp_async16(tile + row * PITCH<T, DP> + d, there ? rows + row * ld + d : rows, there);
    }
}

// Start copying a tile of keys and a tile of values, both beginning at the row of the key `key`.
template <class T, int DP, int ROWS>
DEV void start_keys(const Heads<T> &a, const Head &h, T *keys, T *values, int key)
{
    size_t width = (size_t)a.heads * a.D;
    const T *rows = a.qkv + h.packed + width + key * h.packed_ld;
    start_tile<T, DP, ROWS>(keys, rows, h.packed_ld, a.length - key, a.D);
    start_tile<T, DP, ROWS>(values, rows + width, h.packed_ld, a.length - key, a.D);
}

// Registers that hold operands of mma for one step of a matrix product: one left operand of 16
// rows, or two right operands of 8 columns each.
template <class T> struct Operand {
    // If T is Tf32x3, element i is big[i] + small[i]. Otherwise `small` is not used.
    uint32_t big[4], small[4];

    // Store x as element i. Tf32x3 needs no separate check for NaN, which would double the cost: if
    // x is NaN, `small` becomes NaN, and so does every product with x.
    DEV void set(int i, float x)
    {
        if constexpr (PASSES<T> == 3) {
            big[i] = dev::float_bits(x) + (TF32_IGNORED + 1) / 2;
            small[i] = dev::float_bits(x - dev::bits_float(big[i] & ~TF32_IGNORED));
        } else {
            big[i] = dev::to_tf32(x);
        }
    }

    // Load four matrices of 8x8 16-bit elements, or of 8x4 floats. Each of the 32 lanes passes the
    // address of one matrix row.
    DEV void read(const T *row)
    {
        dev::ldmatrix_x4(big, row);
        if constexpr (sizeof(T) == 4)
            DEV_UNROLL_FOR (int i = 0; i < 4; i++) set(i, dev::bits_float(big[i]));
    }
};

// For each of M groups of 16 rows, add the product of a[m] and b to blocks n and n + 1 of c[m]. A
// block has 8 columns. For Tf32x3, add the two products with a `small` operand before the product
// of `big` and `big`, because sums of small numbers lose less precision.
template <class T, int M, int N>
DEV void multiply(float (&c)[M][N][4], const Operand<T> (&a)[M], const Operand<T> &b, int n)
{
    DEV_UNROLL_FOR (int pass = PASSES<T> - 1; pass >= 0; pass--) {
        const uint32_t(&right)[4] = pass == 1 ? b.small : b.big;
        DEV_UNROLL_FOR (int m = 0; m < M; m++) {
            const uint32_t(&left)[4] = pass == 2 ? a[m].small : a[m].big;
            if constexpr (sizeof(T) == 2) {
                dev::mma<T>(c[m][n], left, right[0], right[1]);
                dev::mma<T>(c[m][n + 1], left, right[2], right[3]);
            } else {
                dev::mma_tf32(c[m][n], left, right[0], right[1]);
                dev::mma_tf32(c[m][n + 1], left, right[2], right[3]);
            }
        }
    }
}

// Load the left operand of step k of a matrix product: of each of 16 rows of a tile, from `row` on,
// the 32 bytes of columns that the step covers.
template <int DP, class T> DEV void left(Operand<T> &a, const T *tile, int row, int k)
{
    int lane = threadIdx.x % 32;
    a.read(tile + (row + lane % 16) * PITCH<T, DP> + (2 * k + lane / 16) * PER16<T>);
}

// Compute step k of the matrix product own x tile^T, which adds up the terms of the columns that
// the step covers. c[m] (16, N*8) receives the terms for the m-th of M groups of 16 rows of `own`,
// and a[m] holds the step's columns of these rows. The step's columns of N*8 rows of the tile are
// loaded only once for all groups.
template <class T, int DP, int M, int N>
DEV void times_rows(float (&c)[M][N][4], const Operand<T> (&a)[M], const T *tile, int k)
{
    int lane = threadIdx.x % 32;
    DEV_UNROLL_FOR (int n = 0; n < N; n += 2) {
        Operand<T> b;
        b.read(tile + (n * 8 + lane % 8 + lane / 16 * 8) * PITCH<T, DP> +
               (2 * k + lane / 8 % 2) * PER16<T>);
        multiply(c, a, b, n);
    }
}

// For each of M groups, set c[m] (16, N*8) to the product of 16 rows of `own`, from row + 16m on,
// and tile^T. The product is summed over all DP columns.
template <class T, int DP, int M, int N>
DEV void scores(float (&c)[M][N][4], const T *own, int row, const T *tile)
{
    DEV_UNROLL_FOR (int m = 0; m < M; m++)
        DEV_UNROLL_FOR (int n = 0; n < N; n++)
            c[m][n][0] = c[m][n][1] = c[m][n][2] = c[m][n][3] = 0;
    constexpr int STEPS = DP / (2 * PER16<T>);
    // for Tf32x3, unroll only two steps, because unrolling all steps would take too many registers
    DEV_UNROLL_BY(PASSES<T> == 3 ? 2 : STEPS)
    for (int k = 0; k < STEPS; k++) {
        Operand<T> a[M];
        DEV_UNROLL_FOR (int m = 0; m < M; m++) left<DP>(a[m], own, row + 16 * m, k);
        times_rows<T, DP>(c, a, tile, k);
    }
}

// Convert the accumulators p to the left operand of step k. For 16-bit types, p already has the
// layout that mma expects. For float32, a lane holds columns 2t and 2t + 1, but mma expects columns
// t and t + 4. So the lane passes its columns 2t and 2t + 1 as if they were columns t and t + 4,
// which permutes the columns of p. right_of permutes the tile's rows in the same way, so the
// product is still correct.
template <class T, int N> DEV void left_of(Operand<T> &a, const float (&p)[N][4], int k)
{
    DEV_UNROLL_FOR (int i = 0; i < 4; i++) {
        if constexpr (sizeof(T) == 2)
            a.big[i] = dev::pack2<T>(p[2 * k + i / 2][i % 2 * 2], p[2 * k + i / 2][i % 2 * 2 + 1]);
        else a.set(i, p[k][i % 2 * 2 + i / 2]);
    }
}

// Load the right operand of step k: columns 8n .. 8n + 15 of the tile's rows that belong to the
// step, in the order that left_of defines. ldmatrix transposes only 16-bit elements, so floats are
// read one by one. These reads have no bank conflicts, because rows 0, 2, 4 and 6 start 8 banks
// apart.
template <class T, int DP> DEV void right_of(Operand<T> &b, const T *tile, int k, int n)
{
    int lane = threadIdx.x % 32;
    if constexpr (sizeof(T) == 2) {
        dev::ldmatrix_x4_t(b.big,
                           tile + (k * 16 + lane % 16) * PITCH<T, DP> + n * 8 + lane / 16 * 8);
    } else {
        const T *at = tile + (k * 8 + lane % 4 * 2) * PITCH<T, DP> + n * 8 + lane / 4;
        DEV_UNROLL_FOR (int i = 0; i < 4; i++)
            b.set(i, number(at[i % 2 * PITCH<T, DP> + i / 2 * 8]));
    }
}

// For each of M groups, add to sum[m] (16, DP) the product p[m] (16, N*8) x tile (N*8, DP). p[m] is
// first rounded to T.
template <class T, int DP, int M, int N>
DEV void weigh_rows(float (&sum)[M][DP / 8][4], const float (&p)[M][N][4], const T *tile)
{
    DEV_UNROLL_FOR (int k = 0; k < N * 4 / PER16<T>; k++) {
        Operand<T> a[M];
        DEV_UNROLL_FOR (int m = 0; m < M; m++) left_of(a[m], p[m], k);
        DEV_UNROLL_FOR (int n = 0; n < DP / 8; n += 2) {
            Operand<T> b;
            right_of<T, DP>(b, tile, k, n);
            multiply(sum, a, b, n);
        }
    }
}

// Store x and y as two consecutive elements. The index of the first element must be even, so that
// one aligned store can write both.
template <class T> DEV void store_two(T *at, float x, float y)
{
    struct alignas(8) Two {
        float x, y;
    };
    if constexpr (sizeof(T) == 2) *(uint32_t *)at = dev::pack2<T>(x, y);
    else *(Two *)at = {x, y};
}

// Multiply row g by by_g and row g + 8 by by_g8, and store both rows. Together, the warp's lanes
// store 16 rows. `first` is the index in the sequence of the first of these rows. Do not store rows
// from `length` on, which are past the end of the sequence.
template <class T, int DP>
DEV void store_rows(T *rows, size_t ld, int first, int length, int D, const float (&c)[DP / 8][4],
                    float by_g, float by_g8)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    DEV_UNROLL_FOR (int n = 0; n < DP / 8; n++) {
        if (n * 8 >= D) break;
        T *at = rows + (size_t)(first + g) * ld + n * 8 + 2 * t;
        if (first + g < length) store_two(at, c[n][0] * by_g, c[n][1] * by_g);
        if (first + g + 8 < length) store_two(at + 8 * ld, c[n][2] * by_g8, c[n][3] * by_g8);
    }
}

// ---- the forward pass: a running softmax ----

// Maxima and sums of a warp's running softmax, for rows g and g + 8. max: largest score so far,
// multiplied by scale_log2. sum: sum of exp2(score * scale_log2 - max) over the columns that this
// lane holds. `finish` adds the sums of the four lanes of a row.
struct Running {
    float max[2], sum[2];
};

// Return the maximum of x over the four lanes that hold the same row.
DEV float quad_max(float x)
{
    x = fmaxf(x, dev::shfl_xor(x, 1));
    return fmaxf(x, dev::shfl_xor(x, 2));
}

// Apply the causal mask: set the score to -infinity if the key is later than the query. The score
// s[n][e] belongs to query `query` + g + 8 * (e >> 1) and to key `key` + 8n + 2t + (e & 1).
template <int N> DEV void mask_later(float (&s)[N][4], int query, int key)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    DEV_UNROLL_FOR (int n = 0; n < N; n++)
        DEV_UNROLL_FOR (int e = 0; e < 4; e++)
            if (key + n * 8 + 2 * t + (e & 1) > query + g + (e >> 1) * 8) s[n][e] = -INFINITY;
}

// Update the running softmax with a tile of scores, and replace each score by exp2(score *
// scale_log2 - max), where max is the row's new maximum. Set `down` to exp2(old max - new max) for
// rows g and g + 8. The caller must multiply its earlier sums by `down`, because the exponentials
// in these sums are relative to the old maximum.
template <int N> DEV void soften(float (&s)[N][4], Running &r, float (&down)[2], float scale_log2)
{
    DEV_UNROLL_FOR (int half = 0; half < 2; half++) {
        float max = -INFINITY;
        DEV_UNROLL_FOR (int n = 0; n < N; n++)
            max = fmaxf(max, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
        max = fmaxf(r.max[half], quad_max(max) * scale_log2);
        down[half] = dev::exp2_fast(r.max[half] - max);
        r.max[half] = max;
        r.sum[half] *= down[half];
        DEV_UNROLL_FOR (int n = 0; n < N; n++)
            DEV_UNROLL_FOR (int e = 2 * half; e < 2 * half + 2; e++) {
                s[n][e] = dev::exp2_fast(s[n][e] * scale_log2 - max);
                r.sum[half] += s[n][e];
            }
    }
}

template <int DP> DEV void scale_down(float (&out)[DP / 8][4], const float (&down)[2])
{
    DEV_UNROLL_FOR (int n = 0; n < DP / 8; n++)
        DEV_UNROLL_FOR (int e = 0; e < 4; e++) out[n][e] *= down[e >> 1];
}

template <class T, int DP>
DEV void finish(const Heads<T> &a, const Head &h, const float (&out)[DP / 8][4], Running &r,
                int query, float keep)
{
    int g = threadIdx.x % 32 / 4;
    float by[2];
    DEV_UNROLL_FOR (int half = 0; half < 2; half++) {
        r.sum[half] += dev::shfl_xor(r.sum[half], 1);
        r.sum[half] += dev::shfl_xor(r.sum[half], 2);
        by[half] = keep / r.sum[half];
        int row = query + g + half * 8;
        if (threadIdx.x % 4 == 0 && row < a.length)
            a.lse[h.row + row] = (r.max[half] + dev::log2_fast(r.sum[half])) * LN2;
    }
    store_rows<T, DP>(a.out + h.plain, h.plain_ld, query, a.length, a.D, out, by[0], by[1]);
}

// ---- on the host ----

template <class T>
Heads<T> heads_of(const sgt_cuda_heads &a, const void *qkv, const void *out, const float *lse)
{
    sgt_cuda_dropout d = a.drop ? *a.drop : sgt_cuda_dropout();
    sgt_cuda_documents seen = a.documents ? *a.documents : sgt_cuda_documents();
    return {(const T *)qkv,
            (T *)out,
            (float *)lse,
            NULL,
            NULL,
            NULL,
            (int)a.T,
            (int)a.H,
            (int)a.D,
            seen.start,
            seen.end,
            a.scale,
            a.scale * LOG2E,
            d,
            sgt_dropout_limit(d.rate),
            (uint32_t)sgt_dropout_attention_element(0, 0, 1, 0, a.H, a.T),
            sgt_dropout_keep(d.rate)};
}

// Return the kernel arguments of the backward pass: the arguments of the forward pass, and dqkv,
// delta and dout.
template <class T>
Heads<T> heads_of(const sgt_cuda_heads &a, const void *qkv, const void *out, const float *lse,
                  void *dqkv, float *delta, const void *dout)
{
    Heads<T> h = heads_of<T>(a, qkv, out, lse);
    h.delta = delta, h.dout = (const T *)dout, h.dqkv = (T *)dqkv;
    return h;
}

// Call f(std::true_type()) if dropout is on, else f(std::false_type()).
template <class F> void by_dropout(const sgt_cuda_heads &a, F f)
{
    if (a.drop && a.drop->rate > 0) f(std::true_type());
    else f(std::false_type());
}

// Call f(T(), DP, dropping). DP is the smallest compiled width that is at least D, and `dropping`
// is std::true_type if dropout is on, else std::false_type. For float32, where speed does not
// matter, only DP = 64 and 128 are compiled.
template <class F> void by_head(const sgt_cuda_heads &a, F f)
{
    auto of = [&](auto zero, auto width) {
        by_dropout(a, [&](auto dropping) { f(zero, width, dropping); });
    };
    auto wide = [&](auto zero) {
        if (a.D <= 64) of(zero, std::integral_constant<int, 64>());
        else of(zero, std::integral_constant<int, 128>());
    };
    auto sized = [&](auto zero) {
        if (a.D <= 32) of(zero, std::integral_constant<int, 32>());
        else if (a.D > 64 && a.D <= 96) of(zero, std::integral_constant<int, 96>());
        else wide(zero);
    };
    if (a.type == SGT_BF16) sized(dev::bf16());
    else if (a.type == SGT_F16) sized(dev::f16());
    else if (a.tf32) wide(Tf32());
    else wide(Tf32x3());
}

} // namespace sgt
