/* level.c: all CPU kernels, in the order of ref/ref.c. They are written with vectors of W floats,
 * and compiled once for each CPU level (plain C, AVX2, AVX-512). For AVX-512 they are compiled
 * twice more: with attention's matrix products in bfloat16 (SGT_FOR_bf16) and in AMX tiles
 * (SGT_FOR_amx). Everything but the table is static, so that the linker cannot replace code for one
 * level with code for another. */
#ifndef SGT_NAME
#define SGT_NAME(f) f##_plain
#define SGT_LEVEL "plain"
#endif
#include "kernels/dropout.h"
#include "kernels/kernels.h"
#include "kernels/moments.h"
#include "loader/base/memory.h"
#include "loader/base/philox.h"
#include "kernels/cpu/levels.h"
#include "kernels/cpu/simd.h"

/* ---- sums ---- */

/* Operations on n floats: sum_of sets sum = x + y, `add` adds y to x, and sum_squares returns the
 * sum of the squares of x in double. */

SGT_INLINE void sum_of(float *sum, const float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i += W)
        vstore_upto(sum + i, vload_upto(x + i, n - i) + vload_upto(y + i, n - i), n - i);
}

static void add(float *x, const float *y, size_t n) { sum_of(x, x, y, n); }

typedef struct squares {
    vd low, high;
} squares;

SGT_INLINE void square(squares *s, vf v)
{
    s->low = vdfma(vlow(v), vlow(v), s->low);
    s->high = vdfma(vhigh(v), vhigh(v), s->high);
}

static double sum_squares(const float *x, size_t n)
{
    squares s = {vdset(0), vdset(0)};
    for (size_t i = 0; i < n; i += W) square(&s, vload_upto(x + i, n - i));
    return vdtotal(s.low + s.high);
}

/* ---- rounding to 16 bits ---- */

/* Floats are rounded to bfloat16 or fp16 with integer operations on their bits. The compiler
 * vectorizes the loops that do so, because the iterations of the loops are independent. */

/* Round a float, given as its bits, to the nearest number whose lowest `drop` bits are 0, ties to
 * even. If rounding up overflows the fraction, the carry increases the exponent, which gives the
 * correct result. A number that becomes too large for the exponent gets the bits of infinity. */
SGT_INLINE uint32_t round_bits(uint32_t u, int drop)
{
    uint32_t half = (1u << (drop - 1)) - 1 + (u >> drop & 1);
    return (u + half) & ~((1u << drop) - 1);
}

SGT_INLINE float from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

SGT_INLINE uint32_t to_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* Return a mask of 32 ones if `yes` is 1, or of 32 zeros if `yes` is 0. */
SGT_INLINE uint32_t pick(int yes) { return 0u - (uint32_t)yes; }

SGT_INLINE float round_bf16(float x)
{
    uint32_t u = to_bits(x), r = round_bits(u, 16);
    return from_bits((u & 0x7fffffff) > 0x7f800000 ? u : r); /* a NaN stays a NaN */
}

/* Round x to fp16. Below 2^-14, fp16 numbers are subnormal, multiples of 2^-24. Floats in [0.5, 1)
 * are multiples of 2^-24, too. So for |x| < 2^-14, the addition of 0.5 rounds x to such a multiple,
 * and subtracting 0.5 again is exact. */
SGT_INLINE float round_fp16(float x)
{
    uint32_t u = to_bits(x), sign = u & 0x80000000, size = u & 0x7fffffff;
    uint32_t normal = round_bits(size, 13), small = to_bits(from_bits(size) + 0.5f - 0.5f);
    uint32_t low = pick(size < 0x38800000), high = pick(normal > 0x477fe000); /* 2^-14 and 65504 */
    uint32_t r = (small & low) | (normal & ~low & ~high) | (0x7f800000 & high & ~low),
             nan = pick(size > 0x7f800000);
    return from_bits((u & nan) | ((sign | r) & ~nan));
}

static void round_to(float *out, const float *x, size_t n, sgt_rounding to)
{
    if (to == SGT_FORMAT_BF16)
        for (size_t i = 0; i < n; i++) out[i] = round_bf16(x[i]);
    else
        for (size_t i = 0; i < n; i++) out[i] = round_fp16(x[i]);
}

static void to_bf16(uint16_t *out, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t u = to_bits(x[i]), nan = pick((u & 0x7fffffff) > 0x7f800000);
        out[i] = (uint16_t)(((u | 0x400000) & nan) >> 16 | (round_bits(u, 16) & ~nan) >> 16);
    }
}

/* stream_bf16 converts as to_bf16 does. With AVX-512, if `out` begins at a cache line, stream_bf16
 * uses non-temporal stores, which write to memory without first fetching the cache line. These
 * stores are faster for results that would leave the caches before they are read again. Call
 * stream_end after the last conversion, before another thread reads the data. */
#if defined(__AVX512BW__)
SGT_INLINE __m512i bf16_in_upper_half(const float *x)
{
    __m512i u = _mm512_loadu_si512(x), one = _mm512_set1_epi32(1),
            quiet = _mm512_set1_epi32(0x400000);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), one);
    __m512i r = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
    __mmask16 nan =
        _mm512_cmp_ps_mask(_mm512_castsi512_ps(u), _mm512_castsi512_ps(u), _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(r, nan, u, quiet);
}

static void stream_bf16(uint16_t *out, const float *x, size_t n)
{
    const __m512i upper = _mm512_setr_epi32(0x30001, 0x70005, 0xb0009, 0xf000d, 0x130011, 0x170015,
                                            0x1b0019, 0x1f001d, 0x230021, 0x270025, 0x2b0029,
                                            0x2f002d, 0x330031, 0x370035, 0x3b0039, 0x3f003d);
    size_t i = 0;
    for (; (uintptr_t)out % 64 == 0 && i + 2 * W <= n; i += 2 * W)
        _mm512_stream_si512((__m512i *)(void *)(out + i),
                            _mm512_permutex2var_epi16(bf16_in_upper_half(x + i), upper,
                                                      bf16_in_upper_half(x + i + W)));
    to_bf16(out + i, x + i, n - i);
}

static inline void stream_end(void) { _mm_sfence(); }
#else
static void stream_bf16(uint16_t *out, const float *x, size_t n) { to_bf16(out, x, n); }
static inline void stream_end(void) {}
#endif

/* ---- normal random numbers ---- */

/* Normally distributed random numbers, computed from W calls to Philox (a counter-based generator)
 * at a time. Every CPU level gives the same bits: IEEE 754 defines how each operation rounds, and
 * fused multiply-adds are not used. The polynomials for logf, sinf and cosf come from Cephes
 * (Moshier, 1989). */

/* Return ln u for 0 < u <= 1. u is split into 2^e (1 + f) with 1 + f between sqrt(1/2) and sqrt
 * 2. */
SGT_INLINE float normal_log(float u)
{
    int32_t e = (int32_t)(to_bits(u) - 0x3f3504f3u) >> 23;
    float f = from_bits(to_bits(u) - ((uint32_t)e << 23)) - 1;
    float z = f * f, k = (float)e, y = 7.0376836292e-2f;
    y = y * f - 1.1514610310e-1f;
    y = y * f + 1.1676998740e-1f;
    y = y * f - 1.2420140846e-1f;
    y = y * f + 1.4249322787e-1f;
    y = y * f - 1.6668057665e-1f;
    y = y * f + 2.0000714765e-1f;
    y = y * f - 2.4999993993e-1f;
    y = y * f + 3.3333331174e-1f;
    y = y * f * z - 2.12194440e-4f * k - 0.5f * z;
    return (f + y) + 0.693359375f * k;
}

/* Compute the cosine and sine of x/2^32 of a full turn. First subtract the nearest multiple of a
 * quarter turn, so that the polynomials need only cover angles of at most an eighth of a turn. */
SGT_INLINE void normal_turn(float *cosine, float *sine, uint32_t x)
{
    uint32_t quarter = (x + 0x20000000u) >> 30;
    float r = (float)(int32_t)(x - (quarter << 30)) * (float)(2 * 3.14159265358979324 * 0x1p-32),
          z = r * r;
    float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
    float c =
        ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z -
        0.5f * z + 1;
    float a = quarter & 1 ? s : c, b = quarter & 1 ? c : s;
    *cosine = (quarter + 1) & 2 ? -a : a;
    *sine = quarter & 2 ? -b : b;
}

/* Write 4 * W random numbers for the elements `element`, element + 1, ...; `element` must be a
 * multiple of 4, because one call to Philox serves four elements. The iterations of each loop are
 * independent, so the compiler vectorizes the loops. */
static void normal_block(float *out, const sgt_normals *d, uint64_t element)
{
    uint32_t word[4][W];
    float radius[2][W], cosine[2][W], sine[2][W];
    for (size_t l = 0; l < W; l++) {
        sgt_philox4 r = sgt_philox(d->seed, element / 4 + l, d->draw);
        for (int i = 0; i < 4; i++) word[i][l] = r.x[i];
    }
    for (int p = 0; p < 2; p++) {
        for (size_t l = 0; l < W; l++)
            radius[p][l] = -2 * normal_log(((float)word[2 * p][l] + 1.0f) * 0x1p-32f);
        for (size_t l = 0; l < W; l++) normal_turn(&cosine[p][l], &sine[p][l], word[2 * p + 1][l]);
        vf r = vset(d->sigma) * vsqrt(vload(radius[p]));
        vstore(cosine[p], r * vload(cosine[p]));
        vstore(sine[p], r * vload(sine[p]));
    }
    for (size_t l = 0; l < W; l++)
        for (int p = 0; p < 2; p++) {
            out[4 * l + 2 * (size_t)p] = cosine[p][l];
            out[4 * l + 2 * (size_t)p + 1] = sine[p][l];
        }
}

static void normals(float *out, size_t n, const sgt_normals *d)
{
    float block[4 * W];
    /* number of elements before d->first whose random numbers come from the same call to Philox;
     * these numbers are computed, too, but not returned */
    size_t skip = d->first % 4;
    uint64_t element = d->first - skip;
    for (size_t i = 0, count; i < n; i += count, element += 4 * W, skip = 0) {
        count = 4 * W - skip < n - i ? 4 * W - skip : n - i;
        if (count == 4 * W) normal_block(out + i, d, element);
        else {
            normal_block(block, d, element);
            memcpy(out + i, block + skip, count * sizeof *out);
        }
    }
}

/* ---- token plus position embedding ---- */

/* The functions here compute the sum of token and position embeddings, and the gradients of
 * both. */

static void embed(float *out, const int32_t *ids, const float *wte, const float *wpe, size_t row0,
                  size_t n, size_t T, size_t C)
{
    for (size_t i = 0; i < n; i++)
        sum_of(out + i * C, wte + (size_t)ids[i] * C, wpe + (row0 + i) % T * C, C);
}

/* Return new^2 - old^2 in each lane. */
SGT_INLINE vd growth(vd old, vd new) { return (new - old) * (new + old); }

static double embed_backward(float *dwte, float *dwpe, const int32_t *ids, const float *dout,
                             size_t n, size_t T, size_t C, size_t c0, size_t c1)
{
    vd grown = vdset(0);
    for (size_t i = 0; i < n; i++, dout += C) {
        float *token = dwte + (size_t)ids[i] * C, *place = dwpe + i % T * C;
        for (size_t c = c0; c < c1; c += W) {
            vf d = vload_upto(dout + c, c1 - c), old = vload_upto(token + c, c1 - c), sum = old + d;
            vstore_upto(token + c, sum, c1 - c);
            grown += growth(vlow(old), vlow(sum)) + growth(vhigh(old), vhigh(sum));
            vstore_upto(place + c, vload_upto(place + c, c1 - c) + d, c1 - c);
        }
    }
    return vdtotal(grown);
}

/* ---- layer normalization ---- */

/* LayerNorm is computed for one row at a time, so that the row stays in the L1 cache while several
 * passes read it. */

/* Compute the mean and 1/sqrt(variance + eps) of a row in two passes. A one-pass formula would lose
 * digits by cancellation if the mean is large. */
SGT_INLINE void row_statistics(float *mean, float *rstd, const float *x, size_t C, float eps)
{
    /* two independent sums, so that an addition need not wait for the result of the previous
     * addition */
    vf a = vset(0), b = vset(0);
    size_t c = 0;
    for (; c + 2 * W <= C; c += 2 * W) {
        a += vload(x + c);
        b += vload(x + c + W);
    }
    for (; c < C; c += W) a += vload_upto(x + c, C - c);
    float m = (float)(vtotal(a + b) / (double)C);

    a = b = vset(0);
    for (c = 0; c + 2 * W <= C; c += 2 * W) {
        vf s = vload(x + c) - vset(m), t = vload(x + c + W) - vset(m);
        a = vfma(s, s, a);
        b = vfma(t, t, b);
    }
    for (; c < C; c += W) {
        vf s = vkeep(vload_upto(x + c, C - c) - vset(m), C - c);
        a = vfma(s, s, a);
    }
    *mean = m;
    *rstd = (float)(1 / sqrt(vtotal(a + b) / (double)C + eps));
}

SGT_INLINE void row_normalize(float *out, float *mean, float *rstd, const float *x, const float *w,
                              const float *b, size_t C, float eps)
{
    row_statistics(mean, rstd, x, C, eps);
    vf m = vset(*mean), r = vset(*rstd);
    for (size_t c = 0; c < C; c += W) {
        vf xhat = (vload_upto(x + c, C - c) - m) * r;
        vstore_upto(out + c, vfma(xhat, vload_upto(w + c, C - c), vload_upto(b + c, C - c)), C - c);
    }
}

static void layernorm(float *out, float *mean, float *rstd, const float *x, const float *w,
                      const float *b, size_t n, size_t C, float eps)
{
    for (size_t i = 0; i < n; i++)
        row_normalize(out + i * C, &mean[i], &rstd[i], x + i * C, w, b, C, eps);
}

static void residual_layernorm(float *sum, float *out, float *mean, float *rstd, const float *x,
                               const float *y, const float *w, const float *b, size_t n, size_t C,
                               float eps)
{
    for (size_t i = 0; i < n; i++, sum += C, out += C, x += C, y += C) {
        sum_of(sum, x, y, C);
        row_normalize(out, &mean[i], &rstd[i], sum, w, b, C, eps);
    }
}

/* Compute mean(g) and mean(g*xhat) of one row, with g = dout*w. */
SGT_INLINE void row_means(float *mean_g, float *mean_gx, const float *dout, const float *x,
                          const float *w, float mean, float rstd, size_t C)
{
    vf g_sum = vset(0), gx_sum = vset(0);
    for (size_t c = 0; c < C; c += W) {
        /* in lanes past the end of the row, g is 0, so these lanes add 0 to both sums */
        vf g = vload_upto(dout + c, C - c) * vload_upto(w + c, C - c);
        vf xhat = (vload_upto(x + c, C - c) - vset(mean)) * vset(rstd);
        g_sum += g;
        gx_sum = vfma(g, xhat, gx_sum);
    }
    *mean_g = (float)(vtotal(g_sum) / (double)C);
    *mean_gx = (float)(vtotal(gx_sum) / (double)C);
}

/* Backward pass of `rows` rows, at most LAYERNORM_ROWS, whose mean(g) and mean(g*xhat) are known.
 * Add the gradient of x to dx, and the gradients of weight and bias to dw and db. The sums for dw
 * and db over these rows stay in registers, so that each element of dw and db is read and written
 * once for all rows. */
enum { LAYERNORM_ROWS = 8 };
SGT_INLINE void rows_backward(float *dx, float *dw, float *db, const float *dout, const float *x,
                              const float *mean, const float *rstd, const float *w,
                              const float *mean_g, const float *mean_gx, size_t rows, size_t C)
{
    for (size_t c = 0; c < C; c += W) {
        vf weight = vload_upto(w + c, C - c), w_sum = vset(0), b_sum = vset(0);
        for (size_t i = 0; i < rows; i++) {
            vf d = vload_upto(dout + i * C + c, C - c);
            vf xhat = (vload_upto(x + i * C + c, C - c) - vset(mean[i])) * vset(rstd[i]);
            vf g = vfma(d, weight, -vfma(xhat, vset(mean_gx[i]), vset(mean_g[i])));
            w_sum = vfma(d, xhat, w_sum);
            b_sum += d;
            vstore_upto(dx + i * C + c, vfma(g, vset(rstd[i]), vload_upto(dx + i * C + c, C - c)),
                        C - c);
        }
        vstore_upto(dw + c, vload_upto(dw + c, C - c) + w_sum, C - c);
        vstore_upto(db + c, vload_upto(db + c, C - c) + b_sum, C - c);
    }
}

static void layernorm_backward(float *dx, float *dw, float *db, const float *dout, const float *x,
                               const float *mean, const float *rstd, const float *w, size_t n,
                               size_t C)
{
    float mean_g[LAYERNORM_ROWS], mean_gx[LAYERNORM_ROWS];
    for (size_t i = 0; i < n; i += LAYERNORM_ROWS) {
        size_t rows = n - i < LAYERNORM_ROWS ? n - i : LAYERNORM_ROWS;
        for (size_t r = 0; r < rows; r++)
            row_means(&mean_g[r], &mean_gx[r], dout + (i + r) * C, x + (i + r) * C, w, mean[i + r],
                      rstd[i + r], C);
        rows_backward(dx + i * C, dw, db, dout + i * C, x + i * C, mean + i, rstd + i, w, mean_g,
                      mean_gx, rows, C);
    }
}

/* ---- dropout ---- */

/* The functions here compute dropout factors, which kernels/dropout.h defines, and multiply arrays
 * by them. */

/* Number of elements whose dropout factors are computed together. Each of the W lanes computes one
 * call to Philox, which gives the factors of four elements. */
enum { DROP = 4 * W };

/* Write the dropout factors of DROP successive elements. The number of the first element is
 * `element`, which must be a multiple of 4. The iterations of the loop are independent, so the
 * compiler vectorizes it. */
static void drop_factors(float *factor, const sgt_dropout *d, uint64_t element)
{
    const uint32_t limit = sgt_dropout_limit(d->rate);
    const float keep = sgt_dropout_keep(d->rate);
    for (size_t l = 0; l < W; l++) {
        sgt_philox4 r = sgt_philox(d->seed, element / 4 + l, d->draw);
        for (int i = 0; i < 4; i++) factor[4 * l + i] = r.x[i] >> 8 >= limit ? keep : 0;
    }
}

static void dropout(float *out, const float *x, size_t n, const sgt_dropout *d)
{
    float factor[DROP];
    /* number of elements before d->first whose factors come from the same call to Philox; these
     * factors are computed, too, but not used */
    size_t skip = d->first % 4;
    uint64_t element = d->first - skip;
    for (size_t i = 0; i < n; element += DROP, skip = 0) {
        drop_factors(factor, d, element);
        for (size_t f = skip, lanes; f < DROP && i < n; f += lanes, i += lanes) {
            lanes = DROP - f < n - i ? DROP - f : n - i;
            if (lanes > W) lanes = W;
            vstore_upto(out + i, vload_upto(x + i, lanes) * vload_upto(factor + f, lanes), lanes);
        }
    }
}

/* ---- GELU ---- */

/* GELU and its derivative, for the W elements of a vector. Both forms of GELU are x*Phi(x). With
 * erf, Phi is the distribution function of the normal distribution; with tanh, it is an
 * approximation. The error of a result is at most a few times the error of rounding it to float. */

/* Return exp(-2u), from which GELU computes 0.5 (1 + tanh u) as 1 / (1 + exp(-2u)). This formula
 * loses no digits by cancellation, whatever the sign of x. */
SGT_INLINE vf exp_minus_2u(vf x)
{
    /* -2 sqrt(2/pi)(x + 0.044715 x^3) */
    const vf a = vset(-2 * 0.797884561f), b = vset(-2 * 0.797884561f * 0.044715f);
    return vexp(x * vfma(x * x, b, a));
}

SGT_INLINE vf gelu_tanh(vf x) { return x / (vset(1) + exp_minus_2u(x)); }

SGT_INLINE vf gelu_tanh_slope(vf x)
{
    const vf a = vset(2 * 0.797884561f), b = vset(6 * 0.797884561f * 0.044715f); /* d(2u)/dx */
    /* Limit x so that x * x does not overflow. For |x| > 100, the derivative is exactly 0 or 1, so
     * the limit does not change the derivative. */
    x = vmin(vset(100), vmax(vset(-100), x));
    vf e = vmin(vset(1e30f), exp_minus_2u(x));
    vf s = vset(1) / (vset(1) + e);
    return vfma(x * s, (e * s) * vfma(x * x, b, a), s); /* s + x s (1 - s) 2u' */
}

/* Return Phi(x), the distribution function of the standard normal distribution, and set phi =
 * exp(-x^2/2)/sqrt(2 pi).
 *
 * For t = |x|, Phi(-t) = exp(-t^2/2) R(t), where R decreases slowly from 1/2. R is approximated by
 * a polynomial of degree 9 in (t - 3)/(t + 3) (Chebyshev fit), with a relative error of 1.6e-8 for
 * t up to 13.5. Beyond 13.5, the exponential is 0. Phi(t) = 1 - Phi(-t) loses no digits, because
 * Phi(-t) is at most 1/2. */
SGT_INLINE vf normal(vf x, vf *phi)
{
    vf t = vmin(vset(13.5f), vabs(x));
    vf e = vexp(t * t * vset(-0.5f));
    vf y = (t - vset(3)) / (t + vset(3));
    vf r = vset(5.40025878e-5f);
    r = vfma(r, y, vset(1.16098912e-4f));
    r = vfma(r, y, vset(-3.39449645e-4f));
    r = vfma(r, y, vset(-9.84132279e-4f));
    r = vfma(r, y, vset(2.90439854e-3f));
    r = vfma(r, y, vset(6.13213881e-3f));
    r = vfma(r, y, vset(-4.62132459e-2f));
    r = vfma(r, y, vset(0.123225028f));
    r = vfma(r, y, vset(-0.206402622f));
    r = vfma(r, y, vset(0.121513948f));
    vf tail = e * r;
    *phi = e * vset(0.398942280f);
    return vpick_less(x, vset(0), tail, vset(1) - tail);
}

SGT_INLINE vf gelu_erf(vf x)
{
    vf phi;
    return x * normal(x, &phi);
}

SGT_INLINE vf gelu_erf_slope(vf x)
{
    vf phi, cumulative = normal(x, &phi);
    return vfma(x, phi, cumulative);
}

static void gelu(float *out, const float *x, size_t n, sgt_gelu_kind kind)
{
    if (kind == SGT_GELU_TANH)
        for (size_t i = 0; i < n; i += W)
            vstore_upto(out + i, gelu_tanh(vload_upto(x + i, n - i)), n - i);
    else
        for (size_t i = 0; i < n; i += W)
            vstore_upto(out + i, gelu_erf(vload_upto(x + i, n - i)), n - i);
}

static void gelu_backward(float *dx, const float *dout, const float *x, size_t n,
                          sgt_gelu_kind kind)
{
    for (size_t i = 0; i < n; i += W) {
        vf v = vload_upto(x + i, n - i), d = vload_upto(dout + i, n - i);
        vstore_upto(dx + i, d * (kind == SGT_GELU_TANH ? gelu_tanh_slope(v) : gelu_erf_slope(v)),
                    n - i);
    }
}

/* ---- the gradient of a bias ---- */

/* The gradient of a bias is the sum of the rows of dout, which are float32 or bfloat16. It is
 * computed for one strip (a few columns) at a time, so that the sums stay in registers. The sums
 * are double, because float sums over thousands of rows would lose some of their last bits. */

/* Sum a strip of columns over n rows, and add the sums to db. The strip has `width` columns in
 * `vectors` vectors, of which only the last can be partly filled. A strip of four vectors consists
 * of entire cache lines, so that no cache line is read for two strips. */
SGT_INLINE void strip_sum(float *db, const void *dout, size_t first, size_t n, size_t ld,
                          int vectors, size_t width, int bf16)
{
    vd low[4], high[4];
    for (int v = 0; v < vectors; v++) {
        vf old = vload_upto(db + v * W, width - v * W);
        low[v] = vlow(old);
        high[v] = vhigh(old);
    }
    for (size_t i = 0; i < n; i++)
        for (int v = 0; v < vectors; v++) {
            vf d = vload_either(dout, first + i * ld + v * W, width - v * W, bf16);
            low[v] += vlow(d);
            high[v] += vhigh(d);
        }
    for (int v = 0; v < vectors; v++)
        vstore_upto(db + v * W, vjoin(low[v], high[v]), width - v * W);
}

SGT_INLINE void bias_sums(float *db, const void *dout, size_t n, size_t C, size_t ld, int bf16)
{
    size_t c = 0;
    for (; c + 4 * W <= C; c += 4 * W) strip_sum(db + c, dout, c, n, ld, 4, 4 * W, bf16);
    for (; c < C; c += W) strip_sum(db + c, dout, c, n, ld, 1, C - c, bf16);
}

static void bias_backward(float *db, const void *dout, size_t n, size_t C, size_t ld, int bf16)
{
    if (bf16) bias_sums(db, dout, n, C, ld, 1);
    else bias_sums(db, dout, n, C, ld, 0);
}

/* ---- generating text one token at a time ---- */

/* Kernels for generating text one token at a time: matrix products with few rows, which read the
 * weights from memory once, and attention of one query to earlier positions.
 *
 * Each dot product is accumulated, in the order of k, in one vector of W partial sums, which are
 * added up at the end. So the bits of a dot product do not depend on the tile in which it is
 * computed or on the number of rows. A tile multiplies rows of x by DOT_COLUMNS rows of weights.
 * While the first rows of x use these weights, the next tile's weights are prefetched. So only
 * memory bandwidth limits the speed, even with a single row of x. */

/* the DOT_ROWS * DOT_COLUMNS sums of a tile fit in registers */
enum { DOT_ROWS = W == 16 ? 4 : 2, DOT_COLUMNS = 4 };

SGT_INLINE void dots_step(vf sum[DOT_ROWS][DOT_COLUMNS], const float *x, const void *w, size_t k,
                          size_t p, size_t n, int rows, int columns, int bf16)
{
    vf right[DOT_COLUMNS];
    for (int j = 0; j < columns; j++) right[j] = vload_either(w, j * k + p, n, bf16);
    for (int i = 0; i < rows; i++) {
        vf left = vload_upto(x + i * k + p, n);
        for (int j = 0; j < columns; j++) sum[i][j] = vfma(left, right[j], sum[i][j]);
    }
}

/* Compute out (rows, columns) = x (rows, k) w' + bias. Unless `ahead` is NULL, prefetch the next
 * tile's weights, which begin at this address. Every call passes constants as `rows`, `columns` and
 * `bf16`, so that the compiler unrolls the loops. */
SGT_INLINE void dots_tile(float *out, size_t ld_out, const float *x, const void *w,
                          const float *bias, size_t k, const char *ahead, int rows, int columns,
                          int bf16)
{
    vf sum[DOT_ROWS][DOT_COLUMNS];
    size_t p = 0, size = bf16 ? sizeof(uint16_t) : sizeof(float);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) sum[i][j] = vset(0);
    for (; p + W <= k; p += W) {
        if (ahead)
            for (int j = 0; j < columns; j++) __builtin_prefetch(ahead + (j * k + p) * size);
        dots_step(sum, x, w, k, p, W, rows, columns, bf16);
    }
    if (p < k) dots_step(sum, x, w, k, p, k - p, rows, columns, bf16);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            out[i * ld_out + j] = (float)(vtotal(sum[i][j]) + (bias ? (double)bias[j] : 0));
}

/* Compute the first `columns` columns of the output: multiply all n rows of x by the first
 * `columns` rows of w. Unless `ahead` is NULL, also prefetch the weights for the next columns,
 * which begin at this address. */
SGT_INLINE void dots_columns(float *out, size_t ld_out, const float *x, const void *w,
                             const float *bias, size_t n, size_t k, const char *ahead, int columns,
                             int bf16)
{
    size_t i = 0;
    for (; i + DOT_ROWS <= n; i += DOT_ROWS, ahead = NULL)
        dots_tile(out + i * ld_out, ld_out, x + i * k, w, bias, k, ahead, DOT_ROWS, columns, bf16);
    for (; i < n; i++, ahead = NULL)
        dots_tile(out + i * ld_out, ld_out, x + i * k, w, bias, k, ahead, 1, columns, bf16);
}

SGT_INLINE void dots_of(float *out, size_t ld_out, const float *x, const void *w, const float *bias,
                        size_t n, size_t m, size_t k, int bf16)
{
    size_t j = 0, line = k * (bf16 ? sizeof(uint16_t) : sizeof(float));
    for (; j + DOT_COLUMNS <= m; j += DOT_COLUMNS) {
        const char *here = (const char *)w + j * line, *next = here + DOT_COLUMNS * line;
        dots_columns(out + j, ld_out, x, here, bias ? bias + j : NULL, n, k,
                     j + 2 * DOT_COLUMNS <= m ? next : NULL, DOT_COLUMNS, bf16);
    }
    for (; j < m; j++)
        dots_columns(out + j, ld_out, x, (const char *)w + j * line, bias ? bias + j : NULL, n, k,
                     NULL, 1, bf16);
}

static void dots(float *out, size_t ld_out, const float *x, const void *w, const float *bias,
                 size_t n, size_t m, size_t k, int bf16)
{
    if (bf16) dots_of(out, ld_out, x, w, bias, n, m, k, 1);
    else dots_of(out, ld_out, x, w, bias, n, m, k, 0);
}

/* Compute out = sum_j p_j v_j for `count` columns of v, whose row stride is ld. The sums are kept
 * in `vectors` vector registers. */
SGT_INLINE void weighted_sum(float *out, const float *p, const float *v, size_t ld, size_t T,
                             size_t count, int vectors)
{
    vf sum[4];
    for (int x = 0; x < vectors; x++) sum[x] = vset(0);
    for (size_t j = 0; j < T; j++, v += ld)
        for (int x = 0; x < vectors; x++)
            sum[x] = vfma(vset(p[j]), vload_upto(v + x * W, count - x * W), sum[x]);
    for (int x = 0; x < vectors; x++) vstore_upto(out + x * W, sum[x], count - x * W);
}

static void attend(float *out, const float *q, const float *k, const float *v, size_t T, size_t D,
                   float scale, float *scores)
{
    float max = -INFINITY;
    vf sum = vset(0);
    dots_of(scores, T, q, k, NULL, 1, T, D, 0);
    for (size_t j = 0; j < T; j++) {
        scores[j] *= scale;
        max = scores[j] > max ? scores[j] : max;
    }
    vf most = vset(max);
    for (size_t j = 0; j < T; j += W) {
        vf e = vkeep(vexp(vload_upto(scores + j, T - j) - most), T - j);
        vstore_upto(scores + j, e, T - j);
        sum += e;
    }
    vf share = vset((float)(1 / vtotal(sum)));
    for (size_t j = 0; j < T; j += W)
        vstore_upto(scores + j, vload_upto(scores + j, T - j) * share, T - j);
    size_t d = 0;
    for (; d + 4 * W <= D; d += 4 * W) weighted_sum(out + d, scores, v + d, D, T, 4 * W, 4);
    for (; d < D; d += W) weighted_sum(out + d, scores, v + d, D, T, D - d, 1);
}

/* ---- the loss of a softmax classifier ---- */

/* Compute softmax, loss and gradient of one row of logits before the next row is read. With GPT-2's
 * vocabulary, a row takes 200 KB, so the row stays in the L2 cache while several passes read it. */

/* Length of the blocks in which the exponentials of a row are summed in float; the sums of the
 * blocks are added in double. A single float sum over the vocabulary would lose more digits. */
enum { CROSS_ENTROPY_BLOCK = 1024 };

/* Return the sum of exp(x - max) over V columns. If `out` is not NULL, store the exponentials
 * there; `out` may be the same array as x. */
SGT_INLINE double row_exp(float *out, const float *x, size_t V, float max)
{
    double total = 0;
    for (size_t block = 0; block < V; block += CROSS_ENTROPY_BLOCK) {
        size_t end = V - block < CROSS_ENTROPY_BLOCK ? V : block + CROSS_ENTROPY_BLOCK;
        vf sum = vset(0);
        for (size_t c = block; c < end; c += W) {
            vf e = vkeep(vexp(vload_upto(x + c, end - c) - vset(max)), end - c);
            if (out) vstore_upto(out + c, e, end - c);
            sum += e;
        }
        total += vtotal(sum);
    }
    return total;
}

SGT_INLINE void row_scale(float *x, size_t V, float factor)
{
    for (size_t c = 0; c < V; c += W)
        vstore_upto(x + c, vload_upto(x + c, V - c) * vset(factor), V - c);
}

static void cross_entropy(float *logits, float *loss, const int32_t *targets, size_t n, size_t V,
                          size_t ld, float scale)
{
    for (size_t i = 0; i < n; i++, logits += ld) {
        int ignored = targets[i] < 0, with_gradient = scale != 0;
        if (ignored) {
            loss[i] = 0;
            if (with_gradient) memset(logits, 0, ld * sizeof *logits);
            continue;
        }
        size_t target = (size_t)targets[i];
        float max = vlargest_of(logits, V), at_target = logits[target];
        double total = row_exp(with_gradient ? logits : NULL, logits, V, max);
        loss[i] = (float)(max + log(total) - at_target);
        if (!with_gradient) continue;
        row_scale(logits, V, (float)(scale / total));
        logits[target] -= scale;
        memset(logits + V, 0, (ld - V) * sizeof *logits);
    }
}

/* ---- AdamW ---- */

/* The AdamW update in one pass over parameters, moments and gradients. The same pass writes the
 * bfloat16 copy of the parameters that matrix products read. Prefetch instructions did not make the
 * update faster on a Zen 4 (check-kernels --bench --kernel adamw). */

/* Number of parameters that are updated before their new values are copied to bfloat16. The number
 * is small, so that the new values are still in the L1 cache when they are copied. */
enum { COPIED_FLOATS = 64 };

typedef struct adamw_factors {
    vf scale, b1, b1_rest, b2, b2_rest, step, root, eps, decay;
} adamw_factors;

SGT_INLINE void adamw_lanes(float *p, float *m, float *v, const float *g, size_t n,
                            const adamw_factors *f)
{
    vf grad = vload_upto(g, n) * f->scale, old = vload_upto(p, n);
    vf m1 = vfma(f->b1, vload_upto(m, n), f->b1_rest * grad);
    vf v1 = vfma(f->b2, vload_upto(v, n), f->b2_rest * grad * grad);
    vstore_upto(m, m1, n);
    vstore_upto(v, v1, n);
    vf change = m1 * f->step / vfma(vsqrt(v1), f->root, f->eps);
    vstore_upto(p, old - vfma(f->decay, old, change), n);
}

SGT_INLINE adamw_factors adamw_factors_of(const sgt_adamw *a)
{
    return (adamw_factors){
        .scale = vset(a->grad_scale),
        .b1 = vset(a->beta1),
        .b1_rest = vset(1 - a->beta1),
        .b2 = vset(a->beta2),
        .b2_rest = vset(1 - a->beta2),
        .step = vset((float)(a->lr / a->c1)),
        .root = vset((float)(1 / sqrt(a->c2))),
        .eps = vset(a->eps),
        .decay = vset(a->lr * a->decay),
    };
}

static void adamw(float *p, float *m, float *v, const float *g, size_t n, const sgt_adamw *a,
                  uint16_t *copy)
{
    const adamw_factors f = adamw_factors_of(a);
    for (size_t i = 0, end; i < n; i = end) {
        end = n - i < COPIED_FLOATS ? n : i + COPIED_FLOATS;
        for (size_t j = i; j < end; j += W) adamw_lanes(p + j, m + j, v + j, g + j, end - j, &f);
        if (copy) stream_bf16(copy + i, p + i, end - i);
    }
    if (copy) stream_end();
}

SGT_INLINE void widen_moments(float *to, const uint16_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] = from_bits((uint32_t)from[i] << 16);
}

/* Round n new values of both moments, m1 and v1, to bfloat16 and store them in m and v. The
 * rounding is random (kernels/moments.h): the random bits are a hash of `key` (from
 * sgt_moments_key) and the lower 32 bits of each element's number. `key` must be valid for all n
 * elements. `element` is the lower 32 bits of the first element's number. */
SGT_INLINE void round_moments(uint16_t *m, uint16_t *v, const float *m1, const float *v1,
                              uint32_t key, uint32_t element, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t random = sgt_moments_random(key, element + (uint32_t)i);
        m[i] = sgt_moment_rounded(to_bits(m1[i]), random & 0xffff);
        v[i] = sgt_moment_rounded(to_bits(v1[i]), random >> 16);
    }
}

static void adamw_bf16(float *p, uint16_t *m, uint16_t *v, const float *g, size_t n,
                       const sgt_adamw *a, const sgt_random *r, uint16_t *copy)
{
    const adamw_factors f = adamw_factors_of(a);
    float m1[COPIED_FLOATS], v1[COPIED_FLOATS];
    uint32_t key = sgt_moments_key(r->seed, r->draw, r->first);
    for (size_t i = 0, part; i < n; i += part) {
        uint64_t element = r->first + i, left = UINT64_C(0x100000000) - (uint32_t)element;
        if (!(uint32_t)element) key = sgt_moments_key(r->seed, r->draw, element);
        part = n - i < COPIED_FLOATS ? n - i : COPIED_FLOATS;
        /* Stop before the next element whose number is a multiple of 2^32. Elements from that one
         * on need a new key, because a key is valid for 2^32 successive elements. */
        if (part > left) part = left;
        widen_moments(m1, m + i, part);
        widen_moments(v1, v + i, part);
        for (size_t j = 0; j < part; j += W)
            adamw_lanes(p + i + j, m1 + j, v1 + j, g + i + j, part - j, &f);
        round_moments(m + i, v + i, m1, v1, key, (uint32_t)element, part);
        if (copy) stream_bf16(copy + i, p + i, part);
    }
    if (copy) stream_end();
}

/* ---- SGD ---- */

/* The SGD update with momentum is one pass over parameters, momentum and gradients. */

static void sgd(float *p, float *m, const float *g, size_t n, const sgt_sgd *o)
{
    const vf scale = vset(o->grad_scale), momentum = vset(o->momentum), lr = vset(o->lr),
             decay = vset(o->decay);
    for (size_t i = 0; i < n; i += W) {
        vf grad = vload_upto(g + i, n - i) * scale, old = vload_upto(p + i, n - i);
        vf m1 = vfma(momentum, vload_upto(m + i, n - i), grad);
        vf change = o->nesterov ? vfma(momentum, m1, grad) : m1;
        vstore_upto(m + i, m1, n - i);
        vstore_upto(p + i, old - lr * vfma(decay, old, change), n - i);
    }
}

/* ---- attention ---- */

/* Round x to the format of attention's matrix products (float or bfloat16), and return the result
 * as floats. A bfloat16 is the upper half of a float. */
SGT_INLINE vf attention_rounded(vf x)
{
#if SGT_FOR_bf16 || SGT_FOR_amx
    return vpair_bf16(vset(0), x);
#else
    return x;
#endif
}

/* For each of T queries, copy lse and set delta_i = dout_i . out_i. For rows of padding, from index
 * T to `rows` - 1, set lse and delta to 0, because exp(score - lse) must be finite. For delta, dout
 * is rounded as in the product that gives dP. With exact arithmetic, each row of dS has the sum 0.
 * If dout were rounded in only one of these two products, the sum of a row would be a rounding
 * error instead of 0. */
static void attention_row_sums(float *own_lse, float *delta, size_t rows, const float *lse,
                               const float *dout, const float *out, size_t ld_out, size_t T,
                               size_t D)
{
    memset(own_lse, 0, rows * sizeof *own_lse);
    memset(delta, 0, rows * sizeof *delta);
    for (size_t i = 0; i < T; i++, dout += ld_out, out += ld_out) {
        vf sum = vset(0);
        for (size_t d = 0; d < D; d += W)
            sum = vfma(attention_rounded(vload_upto(dout + d, D - d)), vload_upto(out + d, D - d),
                       sum);
        own_lse[i] = lse[i];
        delta[i] = (float)vtotal(sum);
    }
}

#if SGT_FOR_amx
#include "kernels/cpu/attention_amx.h"
#else
#include "kernels/cpu/attention.h"
#endif

/* ---- the table ---- */

const sgt_kernels SGT_NAME(sgt_table) = {
    .level = SGT_LEVEL,
    .embed = embed,
    .embed_backward = embed_backward,
    .layernorm = layernorm,
    .residual_layernorm = residual_layernorm,
    .layernorm_backward = layernorm_backward,
    .gelu = gelu,
    .gelu_backward = gelu_backward,
    .dropout = dropout,
    .normals = normals,
    .attention = attention,
    .attention_backward = attention_backward,
    .attention_scratch = attention_scratch,
    .cross_entropy = cross_entropy,
    .dots = dots,
    .attend = attend,
    .bias_backward = bias_backward,
    .round_to = round_to,
    .to_bf16 = to_bf16,
    .add = add,
    .sum_squares = sum_squares,
    .adamw = adamw,
    .adamw_bf16 = adamw_bf16,
    .sgd = sgd,
};
