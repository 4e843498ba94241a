/* product.c: the matrix product (sgt_product) and the softmax (sgt_softmax) of one CPU level (plain
 * C, AVX2 or AVX-512). The file is compiled once per level for float32, and once more with AVX-512
 * for bfloat16 (SGT_FOR_bf16). kernels/NOTES.md has measurements. */
#ifndef SGT_NAME
#define SGT_NAME(f) f##_plain
#endif
#ifndef SGT_FOR_bf16
#define SGT_FOR_bf16 0
#endif
#include "kernels/cpu/product.h"
#include "kernels/cpu/simd.h"

enum {
    ROWS_OF = SGT_PRODUCT_ROWS,
    /* Width of a tile in vectors. A tile has six rows, so its sums take 24 of the 32 vector
     * registers of AVX-512, or 12 of the 16 of AVX2. */
    VECTORS = W == 16 ? 4 : 2,
    WIDE = VECTORS * W, /* columns of a tile, and of a strip of packed B */
    PER_GROUP = SGT_FOR_bf16 ? 2 : 1,
    ELEMENT = 4 / PER_GROUP /* bytes */
};

/* All compilers that we build with unroll these short loops of constant length, so the sums stay in
 * registers. */
#define UNROLLED_FOR(...) _Pragma("GCC unroll 8") for (__VA_ARGS__)

/* ---- vectors of groups: each of W lanes holds one group (product.h) ---- */
#if SGT_FOR_bf16
typedef __m512i group_vector;

SGT_INLINE group_vector group_everywhere(const char *p)
{
    int group;
    memcpy(&group, p, sizeof group);
    return _mm512_set1_epi32(group);
}
SGT_INLINE vf multiply_add(group_vector a, group_vector b, vf sum)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}
SGT_INLINE group_vector load_groups(const char *p) { return _mm512_loadu_si512(p); }
SGT_INLINE void store_groups(char *p, group_vector v) { _mm512_storeu_si512(p, v); }
/* Load n of W * PER_GROUP elements from p, and set the rest to 0. If n is 0, p is not read. */
SGT_INLINE group_vector load_elements(const char *p, size_t n)
{
    if (n >= W * PER_GROUP) return load_groups(p);
    if (n == 0) return _mm512_setzero_si512();
    return _mm512_maskz_loadu_epi16((__mmask32)((1u << n) - 1), p);
}
#else
typedef vf group_vector;

SGT_INLINE group_vector group_everywhere(const char *p)
{
    return vset(*(const float *)(const void *)p);
}
SGT_INLINE vf multiply_add(group_vector a, group_vector b, vf sum) { return vfma(a, b, sum); }
SGT_INLINE group_vector load_groups(const char *p) { return vload((const float *)(const void *)p); }
SGT_INLINE void store_groups(char *p, group_vector v) { vstore((float *)(void *)p, v); }
SGT_INLINE group_vector load_elements(const char *p, size_t n)
{
    return n == 0 ? vset(0) : vload_upto((const float *)(const void *)p, n);
}
#endif

/* how a tile stores its sums: WRITE: overwrite C; ADD: add to C; STREAM: overwrite C with
 * non-temporal stores */
enum { WRITE, ADD, STREAM };

/* Description of what to do with the complete sums of a tile: multiply each row by its element of
 * `factor`, add `bias`, and store the result at `c` in the way that `how` names. `factor` and
 * `bias` may be NULL. Unless `squares` is NULL, the sum of squares of the stored elements is added
 * to *squares. */
typedef struct tile_end {
    float *c;
    size_t ldc;
    int how;
    const float *factor, *bias;
    double *squares;
} tile_end;

/* Compute a tile of C: `rows` rows and WIDE columns. A group is 4 bytes: 1 float or 2 bfloat16.
 * Group p of row i of A is at a + i*row + p*step. For each p, the groups of all WIDE columns of B
 * are at b + p*WIDE*4, next to each other. `rows` must be a compile-time constant, so that the
 * loops are unrolled. */
SGT_INLINE void tile_of(const tile_end *e, const char *a, size_t row, size_t step, const char *b,
                        size_t groups, int rows)
{
    float *c = e->c;
    const size_t ldc = e->ldc;
    const int how = e->how;
    vf sum[ROWS_OF][VECTORS];
    UNROLLED_FOR (int i = 0; i < rows; i++) {
        UNROLLED_FOR (int v = 0; v < VECTORS; v++) {
            sum[i][v] = vset(0);
            /* prefetch the cache lines of C now, so that they have arrived when the sums are
             * complete */
            if (how != STREAM) __builtin_prefetch(c + i * ldc + v * W);
        }
    }
    for (size_t p = 0; p < groups; p++, a += step, b += WIDE * 4) {
        group_vector right[VECTORS];
        UNROLLED_FOR (int v = 0; v < VECTORS; v++) right[v] = load_groups(b + v * W * 4);
        UNROLLED_FOR (int i = 0; i < rows; i++) {
            group_vector left = group_everywhere(a + i * row);
            UNROLLED_FOR (int v = 0; v < VECTORS; v++)
                sum[i][v] = multiply_add(left, right[v], sum[i][v]);
        }
    }
    vf squares = vset(0);
    UNROLLED_FOR (int i = 0; i < rows; i++) {
        UNROLLED_FOR (int v = 0; v < VECTORS; v++) {
            float *at = c + i * ldc + v * W;
            vf total = sum[i][v];
            if (e->factor) total *= vset(e->factor[i]);
            if (e->bias) total += vload(e->bias + v * W);
            if (how == ADD) total += vload(at);
            if (how == STREAM) vstream(at, total);
            else vstore(at, total);
            squares = vfma(total, total, squares);
        }
    }
    if (e->squares) *e->squares += vtotal(squares);
}

static void tile(const tile_end *e, const char *a, size_t row, size_t step, const char *b,
                 size_t groups, size_t rows)
{
    switch (rows) {
    case 6: tile_of(e, a, row, step, b, groups, 6); break;
    case 5: tile_of(e, a, row, step, b, groups, 5); break;
    case 4: tile_of(e, a, row, step, b, groups, 4); break;
    case 3: tile_of(e, a, row, step, b, groups, 3); break;
    case 2: tile_of(e, a, row, step, b, groups, 2); break;
    default: tile_of(e, a, row, step, b, groups, 1);
    }
}

/* ---- packing groups p0 .. p0 + groups - 1; elements past k and past the last column are 0 ---- */

static inline size_t left_of(size_t end, size_t at) { return end > at ? end - at : 0; }

/* Distance by which prefetches of B are ahead of packing, because B is often not in any cache: in
 * groups (4 bytes) along k if B is stored (k, n), else in cache lines along a row. */
enum { AHEAD = 4 };

/* Pack one group (4 bytes) for each of WIDE columns, of which only the first `left` exist; write 0
 * for the others. The first elements of all groups are next to each other at `at`. With bfloat16, a
 * group also has a second element, which is in the next row, `line` bytes after the first. If
 * second_too is 0, there is no next row, and the second elements become 0. */
SGT_INLINE void pack_group(char *out, const char *at, size_t line, int second_too, size_t left)
{
#if SGT_FOR_bf16
    const group_vector low = vturns_low(), high = vturns_high();
    for (size_t j = 0; j < WIDE; j += 32) {
        size_t n = left_of(left, j);
        group_vector first = load_elements(at + j * ELEMENT, n);
        group_vector second = load_elements(at + line + j * ELEMENT, second_too ? n : 0);
        store_groups(out + j * 4, _mm512_permutex2var_epi16(first, low, second));
        store_groups(out + j * 4 + 64, _mm512_permutex2var_epi16(first, high, second));
        __builtin_prefetch(at + AHEAD * PER_GROUP * line + j * ELEMENT);
        __builtin_prefetch(at + (AHEAD * PER_GROUP + 1) * line + j * ELEMENT);
    }
#else
    (void)second_too;
    for (size_t j = 0; j < WIDE; j += W) {
        store_groups(out + j * 4, load_elements(at + j * ELEMENT, left_of(left, j)));
        __builtin_prefetch(at + AHEAD * line + j * ELEMENT);
    }
#endif
}

/* Pack a B that is stored (k, n). The panels are filled together, one row of B after the other, so
 * that B is read in the order of memory. b points to column j0 of row 0. With bfloat16, two rows
 * are read at a time, because a group has elements of two successive rows. */
static void pack_across(char *out, const sgt_gemm_shape *s, const char *b, size_t columns,
                        size_t p0, size_t groups)
{
    size_t line = s->ldb * ELEMENT;
    for (size_t p = 0; p < groups; p++) {
        size_t k = (p0 + p) * PER_GROUP;
        for (size_t j = 0; j < columns; j += WIDE)
            pack_group(out + (j * groups + p * WIDE) * 4, b + k * line + j * ELEMENT, line,
                       k + 1 < s->k, columns - j);
    }
}

/* Pack a float32 B that is stored (k, n), with each row k multiplied by factor[k]. `at` points to
 * the first column to be packed, in row 0. */
static void pack_factored(char *out, const sgt_gemm_shape *s, const float *at, const float *factor,
                          size_t columns, size_t p0, size_t groups)
{
    for (size_t p = p0; p < p0 + groups; p++, out += WIDE * 4)
        for (size_t j = 0; j < WIDE; j += W) {
            size_t k = p * PER_GROUP;
            vf first = vset(0);
            if (j < columns) first = vload_upto(at + k * s->ldb + j, columns - j) * vset(factor[k]);
#if SGT_FOR_bf16
            vf second = vset(0);
            if (j < columns && k + 1 < s->k)
                second = vload_upto(at + (k + 1) * s->ldb + j, columns - j) * vset(factor[k + 1]);
            vstore((float *)(void *)(out + j * 4), vpair_bf16(first, second));
#else
            vstore((float *)(void *)(out + j * 4), first);
#endif
        }
}

/* Pack a B that is stored (n, k), which must be transposed. Blocks of W rows by W groups are
 * transposed in registers. b points to column 0 of the first row to be packed.
 *
 * All groups of W rows are packed before the next W rows, because the cache lines of all 64 rows of
 * a panel, read together, would evict each other from the L1 cache: row strides are often near a
 * power of two. */
static void pack_along(char *out, const sgt_gemm_shape *s, const char *b, size_t columns, size_t p0,
                       size_t groups)
{
    for (size_t j = 0; j < WIDE; j += W)
        for (size_t p = 0; p < groups; p += W) {
            vf v[W];
            size_t first = (p0 + p) * PER_GROUP, n = left_of(s->k, first);
            for (size_t r = 0; r < W; r++) {
                const char *at = b + ((j + r) * s->ldb + first) * ELEMENT;
                v[r] = (vf)load_elements(at, j + r < columns ? n : 0);
                __builtin_prefetch(at + AHEAD * 64);
            }
            vtranspose(v);
            for (size_t r = 0; r < W && p + r < groups; r++)
                store_groups(out + (p + r) * WIDE * 4 + j * 4, (group_vector)v[r]);
        }
}

/* Return the number of bytes that six packed rows of A take, rounded up to a multiple of 64. This
 * includes 8 more bytes at the end, because store_six always writes 8 groups of 4 bytes, although
 * only 6 are needed. */
static inline size_t left_bytes(size_t groups) { return (groups * ROWS_OF * 4 + 8 + 63) / 64 * 64; }

/* For one step along k, pack one group (4 bytes) for each of `rows` rows of the product, at most
 * 30. A is transposed, so a row of the product is a column of A. The first elements of all groups
 * are next to each other at `at`. With bfloat16, each second element is `line` bytes after the
 * first element, or 0 if second_too is 0.
 *
 * The groups of rows 6 i .. 6 i + 5 go to out + i*bytes. Each store writes eight groups, of which
 * only six are needed; the next step along k overwrites the last two. Each cache line of A, which
 * holds 32 columns of bfloat16, is read only once. */
#if defined(__AVX512F__)
SGT_INLINE void store_six(char *at, group_vector x)
{
    _mm256_storeu_si256((__m256i *)(void *)at, _mm512_castsi512_si256((__m512i)x));
}

SGT_INLINE void pack_sixes(char *out, size_t bytes, const char *at, size_t line, int second_too,
                           size_t rows)
{
#if SGT_FOR_bf16
    group_vector first = load_elements(at, rows),
                 second = load_elements(at + line, second_too ? rows : 0);
    __m512i x = _mm512_permutex2var_epi16(first, vturns_low(), second);
    __m512i y = _mm512_permutex2var_epi16(first, vturns_high(), second);
#else
    (void)line, (void)second_too;
    __m512i x = (__m512i)load_elements(at, rows),
            y = (__m512i)load_elements(at + 64, left_of(rows, W));
#endif
    store_six(out, (group_vector)x);
    if (rows > 6) store_six(out + bytes, (group_vector)_mm512_alignr_epi32(y, x, 6));
    if (rows > 12) store_six(out + 2 * bytes, (group_vector)_mm512_alignr_epi32(y, x, 12));
    if (rows > 18) store_six(out + 3 * bytes, (group_vector)_mm512_alignr_epi32(y, y, 2));
    if (rows > 24) store_six(out + 4 * bytes, (group_vector)_mm512_alignr_epi32(y, y, 8));
}
#else
SGT_INLINE void pack_sixes(char *out, size_t bytes, const char *at, size_t line, int second_too,
                           size_t rows)
{
    (void)line, (void)second_too;
    for (size_t i = 0; i < rows; i += ROWS_OF, out += bytes)
        for (size_t j = 0; j < 8; j += W)
            store_groups(out + j * 4, load_elements(at + (i + j) * 4, left_of(rows, i + j)));
}
#endif

/* Pack up to 30 columns of an A that is stored (k, m). Each of these columns belongs to one row of
 * the product. Six rows form a block, in which the six groups of each step along k are next to each
 * other. So a tile, which has six rows, reads its block in the order of memory. */
static void pack_left(char *out, const sgt_gemm_shape *s, const char *a, size_t rows, size_t p0,
                      size_t groups)
{
    size_t line = s->lda * ELEMENT, bytes = left_bytes(groups);
    /* Offset in bytes of the last byte that the next call will pack in a row of A. The loop
     * prefetches the columns that the next call will pack. */
    const size_t last = 2 * SGT_PRODUCT_LEFT * ELEMENT - 1;
    for (size_t p = p0; p < p0 + groups; p++, out += ROWS_OF * 4) {
        const char *at = a + p * PER_GROUP * line;
        __builtin_prefetch(at + last, 0, 2);
        __builtin_prefetch(SGT_FOR_bf16 ? at + last + line : at + last - 64, 0, 2);
        pack_sixes(out, bytes, at, line, 2 * p + 1 < s->k, rows);
    }
}

/* Copy rows of an A that is stored (m, k) with an odd k, in bfloat16. The last group of a row has
 * only one element, to which the copy adds a 0. In the copy, groups are 4 bytes apart, and rows are
 * groups*4 bytes apart. */
static void pack_ragged(char *out, const sgt_gemm_shape *s, const char *a, size_t rows, size_t p0,
                        size_t groups)
{
    size_t bytes = (s->k - p0 * PER_GROUP) * ELEMENT;
    memset(out, 0, rows * groups * 4);
    for (size_t i = 0; i < rows; i++)
        memcpy(out + i * groups * 4, a + (i * s->lda + p0 * PER_GROUP) * ELEMENT,
               bytes < groups * 4 ? bytes : groups * 4);
}

/* ---- a block ---- */

typedef struct product_room {
    /* right: packed panels of B; left: packed rows of A, which are six rows or, if A is transposed,
     * SGT_PRODUCT_LEFT rows */
    char *right, *left;
    float *edge; /* room for a tile that reaches beyond C's edge, or for six rows of logits */
} product_room;

/* Compute a tile that reaches beyond the right edge of C. The tile is computed entirely in
 * room->edge, and only its first `columns` columns are stored in C. */
static void edge_tile(const product_room *room, const tile_end *e, const char *a, size_t row,
                      size_t step, const char *b, size_t groups, size_t rows, size_t columns)
{
    const tile_end whole = {.c = room->edge, .ldc = WIDE, .factor = e->factor};
    vf squares = vset(0);
    tile(&whole, a, row, step, b, groups, rows);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j += W) {
            size_t n = columns - j;
            float *at = e->c + i * e->ldc + j;
            vf total = vload(room->edge + i * WIDE + j);
            if (e->bias) total += vload_upto(e->bias + j, n);
            if (e->how == ADD) total += vload_upto(at, n);
            vstore_upto(at, total, n);
            total = vkeep(total, n);
            squares = vfma(total, total, squares);
        }
    if (e->squares) *e->squares += vtotal(squares);
}

/* Return whether to write C with non-temporal stores. They are used only if A is transposed: in
 * this case, C is the gradient of a weight, which is not read before the end of the backward pass.
 * Ordinary stores would waste bandwidth, because they first fetch each cache line. */
static int streams(const sgt_gemm_shape *s, const float *c)
{
    return s->trans_a && s->k <= SGT_PRODUCT_GROUPS * PER_GROUP && s->ldc % W == 0 &&
           (uintptr_t)c % 64 == 0;
}

/* Compute up to six rows of a block of C, in all columns of the block. end.c points to the first of
 * these rows. If A is transposed, `a` must point to the packed rows. */
static void row_of_tiles(const product_room *room, const sgt_gemm_shape *s, const char *a,
                         tile_end end, size_t rows, size_t columns, size_t p0, size_t groups)
{
    size_t row = s->lda * ELEMENT, step = 4;
    const char *left = a + p0 * 4;
    double *squares = (p0 + groups) * PER_GROUP < s->k ? NULL : end.squares;
    end.ldc = s->ldc;
    end.how = s->accumulate || p0 > 0 ? ADD : streams(s, end.c) ? STREAM : WRITE;
    if (p0 > 0) end.bias = NULL;
    if (s->trans_a) {
        left = a, row = 4, step = ROWS_OF * 4;
    } else if ((p0 + groups) * PER_GROUP > s->k) {
        pack_ragged(room->left, s, a, rows, p0, groups);
        left = room->left, row = groups * 4;
    }
    for (size_t j = 0; j < columns; j += WIDE) {
        const char *right = room->right + j * groups * 4;
        end.squares = squares ? squares + j / SGT_PRODUCT_COLUMNS : NULL;
        if (squares && j % SGT_PRODUCT_COLUMNS == 0) *end.squares = 0;
        if (columns - j >= WIDE) tile(&end, left, row, step, right, groups, rows);
        else edge_tile(room, &end, left, row, step, right, groups, rows, columns - j);
        end.c += WIDE;
        if (end.bias) end.bias += WIDE;
    }
}

static product_room room_in(void *scratch)
{
    product_room room = {.right = scratch};
    room.edge = (float *)(void *)(room.right + SGT_PRODUCT_GROUPS * 4 * SGT_PRODUCT_PANELS *
                                                   SGT_PRODUCT_COLUMNS);
    room.left = (char *)(room.edge + ROWS_OF * SGT_PRODUCT_PANELS * SGT_PRODUCT_COLUMNS);
    return room;
}

/* Pack columns j0 .. j0 + columns - 1 of B into panels. */
static void pack_right(const product_room *room, const sgt_gemm_shape *s, const void *b, size_t j0,
                       size_t columns, size_t p0, size_t groups)
{
    const char *from = (const char *)b + (s->trans_b ? j0 * s->ldb : j0) * ELEMENT;
    if (!s->trans_b) pack_across(room->right, s, from, columns, p0, groups);
    for (size_t j = 0; s->trans_b && j < columns; j += WIDE)
        pack_along(room->right + j * groups * 4, s, from + j * s->ldb * ELEMENT, columns - j, p0,
                   groups);
}

static void product(const sgt_gemm_shape *s, const void *a, const void *b, const float *bias,
                    float *c, size_t i0, size_t rows, size_t j0, size_t columns,
                    const sgt_factors *f, double *squares, size_t ld_squares, void *scratch)
{
    size_t all = (s->k + PER_GROUP - 1) / PER_GROUP, most = SGT_PRODUCT_GROUPS;
    const product_room room = room_in(scratch);
    const float *right = f && s->trans_a ? f->of + i0 / f->part * f->ld : NULL,
                *left = f && !s->trans_a ? f->of : NULL;
    if (left) most = f->part / PER_GROUP;
    for (size_t p = 0; p < all; p += most, left += left ? f->ld : 0) {
        size_t groups = all - p < most ? all - p : most;
        if (!right) pack_right(&room, s, b, j0, columns, p, groups);
        for (size_t j = 0; right && j < columns; j += WIDE)
            pack_factored(room.right + j * groups * 4, s, f->right + j0 + j, right, columns - j, p,
                          groups);
        for (size_t i = i0; i < i0 + rows; i += ROWS_OF) {
            const char *from = (const char *)a + (s->trans_a ? i : i * s->lda) * ELEMENT;
            size_t packed = (i - i0) % SGT_PRODUCT_LEFT, some = left_of(i0 + rows, i);
            if (s->trans_a && packed == 0)
                pack_left(room.left, s, from, some < SGT_PRODUCT_LEFT ? some : SGT_PRODUCT_LEFT, p,
                          groups);
            if (s->trans_a) from = room.left + packed / ROWS_OF * left_bytes(groups);
            const tile_end end = {.c = c + i * s->ldc + j0,
                                  .factor = left ? left + i : NULL,
                                  .bias = s->bias ? bias + j0 : NULL,
                                  .squares =
                                      squares ? squares + (i - i0) / ROWS_OF * ld_squares : NULL};
            row_of_tiles(&room, s, from, end, some < ROWS_OF ? some : ROWS_OF, columns, p, groups);
        }
    }
    /* make C visible to other threads: thread barriers do not wait for non-temporal stores */
    if (s->trans_a) vstream_end();
}

/* ---- softmax ---- */

/* Write 2 * W elements of e with non-temporal stores. Megabytes of other data are written before
 * these elements are read again, so the elements would not stay in a cache anyway. Ordinary stores
 * would also read each cache line from memory first, which takes as long as computing the
 * exponentials. */
SGT_INLINE void stream_product_format(char *at, vf low, vf high)
{
#if SGT_FOR_bf16
    _mm512_stream_si512((__m512i *)(void *)at, (__m512i)_mm512_cvtne2ps_pbh(high, low));
#else
    vstream((float *)(void *)at, low);
    vstream((float *)(void *)at + W, high);
#endif
}

/* Return exp(x) for x <= 0, with two thirds as many instructions as vexp. The result is computed as
 * 2^y with y = x log2 e. The relative error is below 2^-22 near 0, and grows to |y| 2^-24 for large
 * |y|. For such y, exp(x) is so small that its absolute error is negligible compared with 1, the
 * largest exponential of a row. The result is 0 below -87.33. */
SGT_INLINE vf exp_part(vf x)
{
    vf y = vmax(vset(-126), x * vset(1.44269504f)); /* a NaN in x stays in this order */
    vf n = vround(y);
    return vscale(vpower_of_2(y - n), n, x, vset(-87.33f));
}

/* Set *max to the largest of a row's n logits. Write e = exp(logit - *max), and zeros up to the
 * next multiple of 64 columns. Return the sum of e. A NaN is never the maximum, but makes the sum
 * NaN. */
static float exp_row(char *e, const float *logits, size_t n, float *max)
{
    size_t padded = (n + SGT_PRODUCT_COLUMNS - 1) / SGT_PRODUCT_COLUMNS * SGT_PRODUCT_COLUMNS,
           j = 0;
    *max = vlargest_of(logits, n);
    vf top = vset(*max), total = vset(0);
    for (; j + 2 * W <= n; j += 2 * W) {
        vf low = exp_part(vload(logits + j) - top), high = exp_part(vload(logits + j + W) - top);
        stream_product_format(e + j * ELEMENT, low, high);
        total += low + high;
    }
    for (; j < padded; j += 2 * W) {
        vf low = vset(0), high = low;
        if (j < n) low = vkeep(exp_part(vload(logits + j) - top), n - j);
        if (j + W < n) high = vkeep(exp_part(vload(logits + j + W) - top), n - j - W);
        stream_product_format(e + j * ELEMENT, low, high);
        total += low + high;
    }
    return (float)vtotal(total);
}

static void softmax(const sgt_softmax *s, size_t j0, void *scratch)
{
    const product_room room = room_in(scratch);
    const sgt_gemm_shape g = {
        .m = s->n, .n = s->V, .k = s->C, .trans_b = 1, .lda = s->C, .ldb = s->C, .ldc = s->part};
    size_t groups = s->C / PER_GROUP, columns = s->V - j0 < s->part ? s->V - j0 : s->part,
           part = j0 / s->part;
    size_t wide = (columns + WIDE - 1) / WIDE * WIDE;
    pack_right(&room, &g, s->w, j0, columns, 0, groups);
    for (size_t i = 0; i < s->n; i += ROWS_OF) {
        size_t rows = s->n - i < ROWS_OF ? s->n - i : ROWS_OF;
        /* compute complete tiles, even beyond column V: the logits beyond V are 0, and exp_row
         * ignores them */
        const tile_end end = {.c = room.edge};
        row_of_tiles(&room, &g, (const char *)s->x + i * s->C * ELEMENT, end, rows, wide, 0,
                     groups);
        for (size_t r = i; r < i + rows; r++) {
            const float *logits = room.edge + (r - i) * s->part;
            size_t at = part * s->n + r, target = s->targets[r] < 0 ? 0 : (size_t)s->targets[r];
            if (target >= j0 && target < j0 + columns) s->at_target[r] = logits[target - j0];
            s->sum[at] =
                exp_row((char *)s->e + (r * s->lde + j0) * ELEMENT, logits, columns, &s->max[at]);
        }
    }
    vstream_end(); /* make exp_row's non-temporal stores visible to other threads */
}

/* ---- the table ---- */

/* The scratch memory holds panels of B, packed rows of A, and a row of tiles of C. The costs were
 * measured on Zen 4 with AVX-512. With AVX2, each cost is twice as high, which does not matter,
 * because costs are only compared with each other.
 *
 * most_rows: without AVX-512, blocks have at most 512 rows. On Zen 3 with AVX2, matrix products of
 * 4096 x 768 x 2304 and 4096 x 3072 x 768 took a tenth longer with blocks of 4096 rows. With
 * AVX-512, this was not measured, so blocks are not limited. */
const sgt_product SGT_NAME(sgt_product) = {
    .run = product,
    .softmax = softmax,
    .scratch = SGT_PRODUCT_GROUPS * 4 *
                   (SGT_PRODUCT_PANELS * SGT_PRODUCT_COLUMNS + SGT_PRODUCT_LEFT) +
               6 * 64 + SGT_PRODUCT_ROWS * SGT_PRODUCT_COLUMNS * SGT_PRODUCT_PANELS * 4,
    .rows = SGT_PRODUCT_ROWS,
    .columns = SGT_PRODUCT_COLUMNS,
    .deep = SGT_PRODUCT_GROUPS * PER_GROUP,
    .most_rows = W == 16 ? 0 : 512,
    .unit_cost = 24,
    .left_cost = {0, 4},
    .right_cost = {8, 20},
};
