/* normals.h: normally distributed random numbers, W Philox draws at a time. It uses only operations
 * whose rounding IEEE 754 defines, and no fused multiply-add, so every level gives the same bits.
 * The polynomials for logf, sinf and cosf are those of Cephes (Moshier, 1989). */
#ifndef SGT_CPU_NORMALS_H
#define SGT_CPU_NORMALS_H

#include "loader/base/philox.h"
#include "kernels/kernels.h"
#include "kernels/cpu/simd.h"

/* Return ln u for 0 < u <= 1: u = 2^e (1 + f) with 1 + f from sqrt(1/2) to sqrt 2. */
SGT_INLINE float normal_log(float u)
{
    uint32_t bits;
    float f;
    memcpy(&bits, &u, sizeof bits);
    int32_t e = (int32_t)(bits - 0x3f3504f3u) >> 23;
    bits -= (uint32_t)e << 23;
    memcpy(&f, &bits, sizeof f);
    f -= 1;
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

/* Compute the cosine and sine of x/2^32 of a full turn. Take off the nearest multiple of a quarter
 * turn first, which leaves an angle of at most an eighth. */
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

/* Write the 4 * W random numbers from `element` on, a multiple of 4. No iteration depends on
 * another, so the compiler vectorizes the loops. */
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
    size_t skip = d->first % 4; /* numbers of the first draw that come before d->first */
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

#endif
