/* tensor.cpp: 16-bit floats, shuffles and the warp's matrix operations, computed lane by lane as
 * PTX defines them. */
#include "tests/kernels/host/state.h"

#include <string.h>

namespace host
{

/* ---- 16-bit floats ---- */

static float as_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static float from_f16(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31,
             fraction = bits & 0x3ff;
    if (exponent == 31) return as_float(sign | 0x7f800000u | fraction << 13);
    if (exponent) return as_float(sign | (exponent + 112) << 23 | fraction << 13);
    float x = (float)fraction * 0x1p-24f;
    return sign ? -x : x;
}

/* Below 2^-14 a half is a multiple of 2^-24. Adding and subtracting 0.5 in float rounds to such a
 * multiple. */
static uint16_t to_f16(uint32_t bits)
{
    uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return 0x7fff;
    if (size >= 0x477ff000u) return (uint16_t)(sign | 0x7c00); /* from 65520 up */
    if (size < 0x38800000u) {
        float rounded = as_float(size) + 0.5f;
        uint32_t low;
        memcpy(&low, &rounded, 4);
        return (uint16_t)(sign | (low - 0x3f000000u));
    }
    size += 0xfff + (size >> 13 & 1);
    return (uint16_t)(sign | (size - 0x38000000u) >> 13);
}

static uint16_t to_bf16(uint32_t bits)
{
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_16(Kind kind, uint16_t bits)
{
    return kind == BF16 ? as_float((uint32_t)bits << 16) : from_f16(bits);
}

uint16_t to_16(Kind kind, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return kind == BF16 ? to_bf16(bits) : to_f16(bits);
}

/* ---- shuffles ---- */

struct Shuffle {
    uint64_t v, got;
    int from;
};

static void shuffle_op(void **args)
{
    for (int l = 0; l < LANES; l++) {
        Shuffle *s = static_cast<Shuffle *>(args[l]);
        s->got = static_cast<Shuffle *>(args[s->from])->v;
    }
}

void shuffle(void *v, size_t size, int from)
{
    Shuffle s = {0, 0, from};
    memcpy(&s.v, v, size);
    warp_collective(shuffle_op, &s, "a shuffle");
    memcpy(v, &s.got, size);
}

uint32_t ballot(bool p)
{
    uint32_t bits = p;
    warp_collective(
        [](void **args) {
            uint32_t all = 0;
            for (int l = 0; l < LANES; l++) all |= *static_cast<uint32_t *>(args[l]) << l;
            for (int l = 0; l < LANES; l++) *static_cast<uint32_t *>(args[l]) = all;
        },
        &bits, "a ballot");
    return bits;
}

/* ---- 8x8 matrices; below, lane l has g = l/4 and t = l%4 ---- */

struct Load {
    const void *row;
    uint32_t *r;
};

static uint32_t element_pair(uint16_t m[8][8], int l, bool transposed)
{
    int g = l / 4, t = l % 4;
    return transposed ? m[2 * t][g] | (uint32_t)m[2 * t + 1][g] << 16
                      : m[g][2 * t] | (uint32_t)m[g][2 * t + 1] << 16;
}

template <bool TRANSPOSED> static void ldmatrix_op(void **args)
{
    for (int m = 0; m < 4; m++) {
        uint16_t matrix[8][8];
        for (int i = 0; i < 8; i++) {
            const void *row = static_cast<Load *>(args[m * 8 + i])->row;
            smem_address(row, 16, 16, "ldmatrix_x4");
            note_read(row, 16, true, false);
            memcpy(matrix[i], row, 16);
        }
        for (int l = 0; l < LANES; l++)
            static_cast<Load *>(args[l])->r[m] = element_pair(matrix, l, TRANSPOSED);
    }
}

void ldmatrix_x4(uint32_t *r, const void *row, bool transposed)
{
    Load load = {row, r};
    if (transposed) warp_collective(ldmatrix_op<true>, &load, "ldmatrix_x4_t");
    else warp_collective(ldmatrix_op<false>, &load, "ldmatrix_x4");
}

/* Round to TF32: add half of the last kept bit to the magnitude, and let it carry. Infinities and
 * NaNs stay. The low bits are not cleared, as on sm_90. */
uint32_t to_tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if ((bits & 0x7fffffffu) < 0x7f800000u) bits += 0x1000;
    else if (bits & 0x7fffff) bits = 0x7fffffffu;
    return bits;
}

/* ---- mma m16n8k16 of 16-bit elements, of which a register has two; m16n8k8 of TF32 ---- */

struct Mma {
    float *c;
    const uint32_t *a;
    uint32_t b[2];
};

template <Kind KIND> static float half_of(uint32_t word, int part)
{
    return from_16(KIND, (uint16_t)(word >> 16 * part));
}

static float tf32_of(uint32_t word, int) { return as_float(word & 0xffffe000u); }

/* element(word, part): an element of a register, of the PER that it has */
template <int PER, float (*element)(uint32_t, int)> static void mma_op(void **args)
{
    constexpr int K = 8 * PER;
    float a[16][K], b[K][8], c[16][8];
    for (int l = 0; l < LANES; l++) {
        const Mma *m = static_cast<const Mma *>(args[l]);
        int g = l / 4, t = l % 4;
        for (int i = 0; i < 4; i++) {
            c[g + (i >> 1) * 8][2 * t + (i & 1)] = m->c[i];
            for (int p = 0; p < PER; p++)
                a[g + (i & 1) * 8][(t + (i >> 1) * 4) * PER + p] = element(m->a[i], p);
        }
        for (int i = 0; i < 2; i++)
            for (int p = 0; p < PER; p++) b[(t + 4 * i) * PER + p][g] = element(m->b[i], p);
    }
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < K; k++)
            for (int j = 0; j < 8; j++) c[i][j] += a[i][k] * b[k][j];
    for (int l = 0; l < LANES; l++)
        for (int i = 0; i < 4; i++)
            static_cast<Mma *>(args[l])->c[i] = c[l / 4 + (i >> 1) * 8][l % 4 * 2 + (i & 1)];
}

void mma(float *c, const uint32_t *a, uint32_t b0, uint32_t b1, Kind kind)
{
    Mma m = {c, a, {b0, b1}};
    if (kind == BF16) warp_collective(mma_op<2, half_of<BF16>>, &m, "mma<bf16>");
    else warp_collective(mma_op<2, half_of<F16>>, &m, "mma<f16>");
}

void mma_tf32(float *c, const uint32_t *a, uint32_t b0, uint32_t b1)
{
    Mma m = {c, a, {b0, b1}};
    warp_collective(mma_op<1, tf32_of>, &m, "mma_tf32");
}

} /* namespace host */
