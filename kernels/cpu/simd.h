/* simd.h: vectors of W floats, as wide as the instruction set for which the including file is
 * compiled. Each kernel is written once and compiled once per level: 16 lanes with AVX-512, 8 with
 * AVX2 and FMA, 4 in plain C (the compiler's own vectors, for any machine).
 *
 *     vf sum = vset(0);
 *     for (size_t i = 0; i < n; i += W) sum += i + W <= n ? vload(x + i) : vload_n(x + i, n - i);
 *
 * - * / and unary - work lane by lane on vf and vd. Loads and stores need no alignment.
 *   vset(x)                    x in every lane; vdset for vd, which is W/2 doubles
 *   vload(p), vload_n(p, n)    load W floats; load the first n < W and set the rest to 0
 *   vstore, vstore_n           the corresponding stores
 *   vstream(p, v)              a non-temporal store, p aligned to W floats; an ordinary store in
 *                              plain C. vstream_end() makes the stores before it visible to other
 *                              threads, which neither atomics nor thread barriers do
 *   vwiden(p), vwiden_n(p, n)  load bfloat16 numbers, widened to float
 *   vload_either(p, i, n, b)   load from number i on, bfloat16 if b, else float; the first n if
 *                              n < W
 *   vkeep(v, n)                set lanes from n on to 0
 *   vfma(a, b, c), vdfma       a*b + c, rounded once (twice in plain C)
 *   vmax(a, b), vmin(a, b)     b if either is NaN
 *   vsqrt(a), vabs(a)
 *   vpick_less(a, b, yes, no)  yes in lanes with a < b, else no
 *   vround(a)                  round to the nearest integer
 *   vscale(e, n, x, lowest)    e 2^n for an integer n, or infinity if that is no finite float; 0 in
 *                              lanes with x < lowest. e is about 1, and -126 <= n <= 128
 *   vlow(v), vhigh(v)          lanes 0 ... W/2 - 1 and W/2 ... W - 1 as double
 *   vjoin(low, high)           the inverse of vlow and vhigh
 *   vzip_low(a, b), vzip_high  a0 b0 a1 b1 ... of the lower or upper halves; not with AVX-512
 *   vtranspose(v)              transpose W vectors
 *   vlargest(v)                the largest lane; vtotal(v), vdtotal(d): the sum of all lanes, in
 *                              double
 *   vturns_low(), vturns_high  permutation indices that interleave the lower halves, or the upper
 *                              halves, of two vectors of 32 16-bit numbers; only with AVX-512
 *   vpair_bf16(a, b)           each lane holds a and b rounded to bfloat16, a in the lower half;
 *                              only with AVX512-BF16 */
#ifndef SGT_SIMD_H
#define SGT_SIMD_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define SGT_INLINE static inline __attribute__((always_inline, unused))

#if defined(__AVX512F__)
/* ---- AVX-512 ---- */
enum { W = 16 };
typedef __m512 vf;
typedef __m512d vd;

SGT_INLINE __mmask16 first_lanes(size_t n) { return (__mmask16)((1u << n) - 1); }
SGT_INLINE vf vset(float x) { return _mm512_set1_ps(x); }
SGT_INLINE vf vload(const float *p) { return _mm512_loadu_ps(p); }
SGT_INLINE void vstore(float *p, vf v) { _mm512_storeu_ps(p, v); }
SGT_INLINE void vstream(float *p, vf v) { _mm512_stream_ps(p, v); }
SGT_INLINE vf vload_n(const float *p, size_t n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
SGT_INLINE void vstore_n(float *p, vf v, size_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), v); }
SGT_INLINE vf vwiden(const uint16_t *p)
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p)), 16));
}
SGT_INLINE vf vkeep(vf v, size_t n) { return n >= W ? v : _mm512_maskz_mov_ps(first_lanes(n), v); }
SGT_INLINE vf vfma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
SGT_INLINE vf vmax(vf a, vf b) { return _mm512_max_ps(a, b); }
SGT_INLINE vf vmin(vf a, vf b) { return _mm512_min_ps(a, b); }
SGT_INLINE vf vsqrt(vf a) { return _mm512_sqrt_ps(a); }
SGT_INLINE vf vabs(vf a) { return _mm512_abs_ps(a); }
SGT_INLINE vf vpick_less(vf a, vf b, vf yes, vf no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}
SGT_INLINE vf vround(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
SGT_INLINE vf vscale(vf e, vf n, vf x, vf lowest)
{
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, lowest, _CMP_NLT_UQ), e, n);
}
SGT_INLINE vd vlow(vf v) { return _mm512_cvtps_pd(_mm512_castps512_ps256(v)); }
SGT_INLINE vd vhigh(vf v) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)); }
SGT_INLINE vf vjoin(vd low, vd high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high),
                              1);
}
SGT_INLINE vd vdset(double x) { return _mm512_set1_pd(x); }
SGT_INLINE vd vdfma(vd a, vd b, vd c) { return _mm512_fmadd_pd(a, b, c); }
SGT_INLINE float vlargest(vf v) { return _mm512_reduce_max_ps(v); }
SGT_INLINE double vdtotal(vd v) { return _mm512_reduce_add_pd(v); }
SGT_INLINE __m512i vturns_low(void)
{
    return _mm512_setr_epi32(0x200000, 0x210001, 0x220002, 0x230003, 0x240004, 0x250005, 0x260006,
                             0x270007, 0x280008, 0x290009, 0x2a000a, 0x2b000b, 0x2c000c, 0x2d000d,
                             0x2e000e, 0x2f000f);
}
SGT_INLINE __m512i vturns_high(void)
{
    return _mm512_add_epi32(vturns_low(), _mm512_set1_epi32(0x100010));
}

#if defined(__AVX512BF16__)
SGT_INLINE vf vpair_bf16(vf a, vf b)
{
    __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(a));
    __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(b));
    return _mm512_castsi512_ps(_mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}
#endif

#elif defined(__AVX2__) && defined(__FMA__)
/* ---- AVX2 and FMA ---- */
enum { W = 8 };
typedef __m256 vf;
typedef __m256d vd;

SGT_INLINE __m256i first_lanes(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
SGT_INLINE vf vset(float x) { return _mm256_set1_ps(x); }
SGT_INLINE vf vload(const float *p) { return _mm256_loadu_ps(p); }
SGT_INLINE void vstore(float *p, vf v) { _mm256_storeu_ps(p, v); }
SGT_INLINE void vstream(float *p, vf v) { _mm256_stream_ps(p, v); }
SGT_INLINE vf vload_n(const float *p, size_t n) { return _mm256_maskload_ps(p, first_lanes(n)); }
SGT_INLINE void vstore_n(float *p, vf v, size_t n) { _mm256_maskstore_ps(p, first_lanes(n), v); }
SGT_INLINE vf vwiden(const uint16_t *p)
{
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p)), 16));
}
SGT_INLINE vf vkeep(vf v, size_t n)
{
    return n >= W ? v : _mm256_and_ps(v, _mm256_castsi256_ps(first_lanes(n)));
}
SGT_INLINE vf vfma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
SGT_INLINE vf vmax(vf a, vf b) { return _mm256_max_ps(a, b); }
SGT_INLINE vf vmin(vf a, vf b) { return _mm256_min_ps(a, b); }
SGT_INLINE vf vsqrt(vf a) { return _mm256_sqrt_ps(a); }
SGT_INLINE vf vabs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
SGT_INLINE vf vpick_less(vf a, vf b, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
SGT_INLINE vf vround(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* Multiply e by 2^n. This takes two multiplications, each by about 2^(n/2), because n can be 128,
 * and 2^128 is too large for a float. */
SGT_INLINE vf vscale(vf e, vf n, vf x, vf lowest)
{
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1),
            one = _mm256_set1_epi32(127);
    vf low = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, one), 23));
    vf high = _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(whole, half), one), 23));
    return vpick_less(x, lowest, vset(0), e * low * high);
}
SGT_INLINE vd vlow(vf v) { return _mm256_cvtps_pd(_mm256_castps256_ps128(v)); }
SGT_INLINE vd vhigh(vf v) { return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)); }
SGT_INLINE vf vjoin(vd low, vd high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)), _mm256_cvtpd_ps(high),
                                1);
}
SGT_INLINE vd vdset(double x) { return _mm256_set1_pd(x); }
SGT_INLINE vd vdfma(vd a, vd b, vd c) { return _mm256_fmadd_pd(a, b, c); }
SGT_INLINE vf vzip_low(vf a, vf b)
{
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x20);
}
SGT_INLINE vf vzip_high(vf a, vf b)
{
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x31);
}
SGT_INLINE float vlargest(vf v)
{
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}
SGT_INLINE double vdtotal(vd v)
{
    __m128d s = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
}

#else
/* ---- plain C ---- */
enum { W = 4 };
typedef float vf __attribute__((vector_size(16)));
typedef double vd __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));
typedef uint16_t vh __attribute__((vector_size(8)));

SGT_INLINE vf vset(float x) { return (vf){x, x, x, x}; }
SGT_INLINE vf vload_n(const float *p, size_t n)
{
    vf v = {0};
    memcpy(&v, p, n * sizeof *p);
    return v;
}
SGT_INLINE void vstore_n(float *p, vf v, size_t n) { memcpy(p, &v, n * sizeof *p); }
SGT_INLINE vf vload(const float *p) { return vload_n(p, W); }
SGT_INLINE void vstore(float *p, vf v) { vstore_n(p, v, W); }
SGT_INLINE void vstream(float *p, vf v) { vstore(p, v); }
SGT_INLINE vf vwiden(const uint16_t *p)
{
    vh h;
    memcpy(&h, p, sizeof h);
    return (vf)(__builtin_convertvector(h, vu) << 16);
}
SGT_INLINE vf vpick(vi mask, vf yes, vf no) { return (vf)(((vi)yes & mask) | ((vi)no & ~mask)); }
SGT_INLINE vf vkeep(vf v, size_t n)
{
    int32_t lanes = n < W ? (int32_t)n : W;
    return vpick((vi){0, 1, 2, 3} < (vi){lanes, lanes, lanes, lanes}, v, vset(0));
}
/* In plain C, vfma rounds twice, after the multiplication and after the addition. The C library's
 * fma rounds only once, but a call for every lane would be far too slow. */
SGT_INLINE vf vfma(vf a, vf b, vf c) { return a * b + c; }
SGT_INLINE vf vmax(vf a, vf b) { return vpick(a > b, a, b); }
SGT_INLINE vf vmin(vf a, vf b) { return vpick(a < b, a, b); }
SGT_INLINE vf vsqrt(vf a) { return (vf){sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3])}; }
SGT_INLINE vf vabs(vf a) { return (vf)((vi)a & (vi){INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}); }
SGT_INLINE vf vpick_less(vf a, vf b, vf yes, vf no) { return vpick(a < b, yes, no); }
/* vround is correct for |a| < 2^22. For such a, the sum a + 1.5 * 2^23 lies between 2^23 and 2^24,
 * where neighbouring floats are 1 apart, so the addition rounds a to an integer. The subtraction is
 * exact. */
SGT_INLINE vf vround(vf a) { return (a + vset(12582912.0f)) - vset(12582912.0f); }
SGT_INLINE vf vscale(vf e, vf n, vf x, vf lowest)
{
    /* n + 1.5 * 2^23 lies between 2^23 and 2^24, where neighbouring floats are 1 apart and their
     * bits differ by 1, too. So the bits of n + 1.5 * 2^23, minus the bits of 1.5 * 2^23, are the
     * integer n. */
    vi whole = (vi)(n + vset(12582912.0f)) - (vi)vset(12582912.0f);
    vi half = whole >> 1; /* as for AVX2: 2^128 is not a float */
    return vpick_less(x, lowest, vset(0),
                      e * (vf)((half + 127) << 23) * (vf)((whole - half + 127) << 23));
}
SGT_INLINE vd vlow(vf v) { return (vd){v[0], v[1]}; }
SGT_INLINE vd vhigh(vf v) { return (vd){v[2], v[3]}; }
SGT_INLINE vf vjoin(vd low, vd high)
{
    return (vf){(float)low[0], (float)low[1], (float)high[0], (float)high[1]};
}
SGT_INLINE vd vdset(double x) { return (vd){x, x}; }
SGT_INLINE vd vdfma(vd a, vd b, vd c) { return a * b + c; }
SGT_INLINE vf vzip_low(vf a, vf b) { return (vf){a[0], b[0], a[1], b[1]}; }
SGT_INLINE vf vzip_high(vf a, vf b) { return (vf){a[2], b[2], a[3], b[3]}; }
SGT_INLINE float vlargest(vf v)
{
    float a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
    return a > b ? a : b;
}
SGT_INLINE double vdtotal(vd v) { return v[0] + v[1]; }
#endif

/* ---- for every width ---- */

SGT_INLINE void vstream_end(void)
{
#if defined(__AVX2__)
    _mm_sfence();
#endif
}

/* Load the first min(n, W) floats from p, and set the other lanes to 0. vstore_upto stores the
 * first min(n, W) lanes. */
SGT_INLINE vf vload_upto(const float *p, size_t n) { return n >= W ? vload(p) : vload_n(p, n); }
SGT_INLINE void vstore_upto(float *p, vf v, size_t n)
{
    if (n >= W) vstore(p, v);
    else vstore_n(p, v, n);
}

SGT_INLINE vf vwiden_n(const uint16_t *p, size_t n)
{
    uint16_t q[W] = {0};
    memcpy(q, p, n * sizeof *p);
    return vwiden(q);
}

SGT_INLINE vf vload_either(const void *p, size_t at, size_t n, int bf16)
{
    if (!bf16) return vload_upto((const float *)p + at, n);
    return n >= W ? vwiden((const uint16_t *)p + at) : vwiden_n((const uint16_t *)p + at, n);
}

/* Return the largest of n floats, ignoring NaNs, or -inf if n is 0. */
SGT_INLINE float vlargest_of(const float *x, size_t n)
{
    vf a = vset(-INFINITY), b = a;
    size_t i = 0;
    for (; i + 2 * W <= n; i += 2 * W) {
        a = vmax(vload(x + i), a);
        b = vmax(vload(x + i + W), b);
    }
    a = vmax(a, b);
    if (i + W <= n) {
        a = vmax(vload(x + i), a);
        i += W;
    }
    float max = vlargest(a);
    for (; i < n; i++) max = x[i] > max ? x[i] : max;
    return max;
}

SGT_INLINE double vtotal(vf v) { return vdtotal(vlow(v) + vhigh(v)); }

/* Return exp(x) with a relative error below 2^-22. The result is 0 below -87.33 (no result is
 * denormal), infinity above 88.72, and NaN for NaN.
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2. ln 2 is split into the sum of two constants. The first
 * constant has so few bits that its product with n is exact. exp(r) = 1 + r + r^2 q(r), where q has
 * degree 4 (Chebyshev fit, with an error of 8e-9, a fifteenth of a float's rounding error). */
SGT_INLINE vf vexp(vf x)
{
    const vf lowest = vset(-87.33f), highest = vset(89); /* exp(89) = 2^128.4 */
    /* if an operand is NaN, vmin and vmax return the second operand, so pass x as the second
     * operand: a NaN then stays NaN */
    vf y = vmin(highest, vmax(lowest, x));
    vf n = vround(y * vset(1.44269504f));
    vf r = vfma(n, vset(-1.42860677e-6f), vfma(n, vset(-0.693145752f), y));
    vf q = vset(1.39262133e-3f);
    q = vfma(q, r, vset(8.36320297e-3f));
    q = vfma(q, r, vset(4.16665544e-2f));
    q = vfma(q, r, vset(0.166665768f));
    q = vfma(q, r, vset(0.5f));
    return vscale(vfma(r * r, q, r) + vset(1), n, x, lowest);
}

/* Return 2^f for |f| <= 1/2. The result is computed as 1 + f q(f), where q is a polynomial of
 * degree 4, fitted so that the largest error is as small as possible: 9e-8. */
SGT_INLINE vf vpower_of_2(vf f)
{
    vf q = vset(1.32647273e-3f);
    q = vfma(q, f, vset(9.67151299e-3f));
    q = vfma(q, f, vset(5.55073358e-2f));
    q = vfma(q, f, vset(0.240222424f));
    q = vfma(q, f, vset(0.693147004f));
    return vfma(q, f, vset(1));
}

/* vtranspose transposes a W x W matrix of floats in place. Each of the W vectors is one row of the
 * matrix. */
#if defined(__AVX512F__)
/* Transpose 4 x 4 blocks of floats within quarters of vectors, and then exchange the quarters. The
 * method that the other CPU levels use (below) was slower with AVX-512: on a Zen 5, packing from
 * memory took 1.5 times as long. */
SGT_INLINE void vtranspose(vf v[W])
{
    vf t[W];
    for (int i = 0; i < W; i += 2) {
        t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    for (int i = 0; i < W; i += 4)
        for (int k = 0; k < 2; k++) {
            __m512d a = _mm512_castps_pd(t[i + k]), b = _mm512_castps_pd(t[i + 2 + k]);
            v[i + 2 * k] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            v[i + 2 * k + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
    for (int i = 0; i < 4; i++) {
        vf a = _mm512_shuffle_f32x4(v[i], v[i + 4], 0x88),
           b = _mm512_shuffle_f32x4(v[i + 8], v[i + 12], 0x88);
        vf c = _mm512_shuffle_f32x4(v[i], v[i + 4], 0xdd),
           d = _mm512_shuffle_f32x4(v[i + 8], v[i + 12], 0xdd);
        v[i] = _mm512_shuffle_f32x4(a, b, 0x88);
        v[i + 4] = _mm512_shuffle_f32x4(c, d, 0x88);
        v[i + 8] = _mm512_shuffle_f32x4(a, b, 0xdd);
        v[i + 12] = _mm512_shuffle_f32x4(c, d, 0xdd);
    }
}
#else
enum { LANES_LOG2 = W == 8 ? 3 : 2 };

/* Number the elements: an element's number consists of its vector's index and its lane's index, of
 * log2 W bits each. One round interleaves ("zips") vector i with vector i + W/2, for all i < W/2.
 * This rotates the 2 log2 W bits of each element's number by one. After log2 W rounds, the two
 * indexes have changed places, so that the matrix is transposed. */
SGT_INLINE void vtranspose(vf v[W])
{
    vf t[W];
    for (int round = 0; round < LANES_LOG2; round++) {
        for (int i = 0; i < W / 2; i++) {
            t[2 * i] = vzip_low(v[i], v[i + W / 2]);
            t[2 * i + 1] = vzip_high(v[i], v[i + W / 2]);
        }
        for (int i = 0; i < W; i++) v[i] = t[i];
    }
}
#endif

#endif
