/* cuda_wrappers.cu: tests each wrapper of device.cuh, and wgmma, on integers, whose results are
 * exact. Plain code computes the results that device.cuh and hopper.cuh promise. On a GPU, compiled
 * by nvcc, the same source tests the device versions of the wrappers. */
#include "kernels/cuda/hopper.cuh"
#include "tests/kernels/host/check-cuda.h"

using namespace dev;

/* Return small integers. They are exact in every type, and so are sums of a few hundred of their
 * products. */
template <class T> static T *integers(check *t, size_t n)
{
    T *x = cuda_output<T>(t, n);
    for (size_t i = 0; i < n; i++) x[i] = from_float<T>((float)check_number(t, 17) - 8);
    return x;
}

static uint32_t *words(check *t, size_t n)
{
    uint32_t *x = cuda_output<uint32_t>(t, n);
    for (size_t i = 0; i < n; i++) x[i] = (uint32_t)check_number(t, UINT32_MAX);
    return x;
}

static void expect(check *t, const char *name, const uint32_t *got, const uint32_t *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (got[i] != want[i]) {
            check_fail(t, "%s[%zu] is %08x, not %08x", name, i, got[i], want[i]);
            return;
        }
}

/* ---- shuffles, ballots, sums ---- */

enum { SHUFFLES = 6 };

static __global__ void shuffle_kernel(uint32_t *out, const uint32_t *in)
{
    int l = threadIdx.x;
    out[l] = shfl(in[l], l * 5 + 3);
    out[32 + l] = shfl_xor(in[l], 21);
    out[64 + l] = warp_ballot(in[l] & 1);
    out[96 + l] = warp_sum(in[l]);
    out[128 + l] = (uint32_t)warp_max((float)(in[l] >> 8));
    out[160 + l] = (uint32_t)(shfl((uint64_t)in[l] << 32 | (uint32_t)l, 31 - l) >> 32);
}

CUDA_CASE(wrapper_shuffles)
{
    uint32_t *in = words(t, 32), *got = cuda_output<uint32_t>(t, 32 * SHUFFLES),
             want[32 * SHUFFLES] = {};
    DEV_LAUNCH(shuffle_kernel, dim3(1), dim3(32), 0, 0, got, in);
    cuda_sync(t);
    uint32_t sum = 0, votes = 0, max = 0;
    for (uint32_t l = 0; l < 32; l++) {
        sum += in[l];
        votes |= (in[l] & 1) << l;
        max = in[l] >> 8 > max ? in[l] >> 8 : max;
    }
    for (int l = 0; l < 32; l++) {
        want[l] = in[(l * 5 + 3) % 32];
        want[32 + l] = in[l ^ 21];
        want[64 + l] = votes;
        want[96 + l] = sum;
        want[128 + l] = max;
        want[160 + l] = in[31 - l];
    }
    expect(t, "shuffles", got, want, 32 * SHUFFLES);
}

/* ---- accesses of 16 bytes, conversions ---- */

template <class T> static __global__ void pieces_kernel(T *out, float *floats, const T *in)
{
    int i = threadIdx.x * PER16<T>;
    float x[PER16<T>];
    load16(x, in + i);
    for (int j = 0; j < PER16<T>; j++) floats[i + j] = x[j] + to_float(in[i + j]);
    store16(out + i, x);
}

template <class T> static void pieces(check *t, const char *name)
{
    const size_t n = 64 * PER16<T>;
    T *in = integers<T>(t, n), *out = cuda_output<T>(t, n);
    float *floats = cuda_output<float>(t, n);
    check_at(t, "%s", name);
    DEV_LAUNCH(pieces_kernel<T>, dim3(1), dim3(64), 0, 0, out, floats, in);
    cuda_sync(t);
    for (size_t i = 0; i < n; i++) {
        float x = to_float(in[i]);
        if (to_float(out[i]) != x || floats[i] != 2 * x) {
            check_fail(t, "element %zu of %g: %g, doubled %g", i, (double)x,
                       (double)to_float(out[i]), (double)floats[i]);
            return;
        }
    }
}

CUDA_CASE(wrapper_accesses)
{
    pieces<float>(t, "float");
    pieces<bf16>(t, "bf16");
    pieces<f16>(t, "f16");
}

template <class T> static __global__ void round_kernel(uint32_t *out, const uint32_t *in)
{
    float x = bits_float(in[threadIdx.x]);
    out[threadIdx.x] = pack2<T>(x, -x);
}

struct Rounding {
    /* from: bits of a float; bf16, f16: the float rounded to these types */
    uint32_t from, bf16, f16;
};

/* Ties that are rounded up and down, the largest finite number, the smallest number that overflows,
 * subnormals of f16 and their ties, and infinity. */
static const Rounding roundings[] = {
    {0x3f800000, 0x3f80, 0x3c00}, {0x3f808000, 0x3f80, 0x3c04}, {0x3f818000, 0x3f82, 0x3c0c},
    {0x3f801000, 0x3f80, 0x3c00}, {0x3f803000, 0x3f80, 0x3c02}, {0x477fe000, 0x4780, 0x7bff},
    {0x477fefff, 0x4780, 0x7bff}, {0x477ff000, 0x4780, 0x7c00}, {0x7f7fffff, 0x7f80, 0x7c00},
    {0x7f800000, 0x7f80, 0x7c00}, {0x38800000, 0x3880, 0x0400}, {0x387fc000, 0x3880, 0x03ff},
    {0x33800000, 0x3380, 0x0001}, {0x33000000, 0x3300, 0x0000}, {0x33000001, 0x3300, 0x0001},
    {0x33c00000, 0x33c0, 0x0002}, {0x00000001, 0x0000, 0x0000}, {0x00000000, 0x0000, 0x0000}};

CUDA_CASE(wrapper_rounding)
{
    const size_t n = sizeof roundings / sizeof *roundings;
    uint32_t *in = cuda_output<uint32_t>(t, 32), *got = cuda_output<uint32_t>(t, 32), want[32];
    for (size_t i = 0; i < 32; i++) in[i] = roundings[i % n].from;
    for (int half = 0; half < 2; half++) {
        check_at(t, "%s", half ? "f16" : "bf16");
        for (size_t i = 0; i < 32; i++) {
            uint32_t x = half ? roundings[i % n].f16 : roundings[i % n].bf16;
            want[i] = x | (x | 0x8000) << 16;
        }
        if (half) DEV_LAUNCH(round_kernel<f16>, dim3(1), dim3(32), 0, 0, got, in);
        else DEV_LAUNCH(round_kernel<bf16>, dim3(1), dim3(32), 0, 0, got, in);
        cuda_sync(t);
        expect(t, "pair", got, want, 32);
    }
}

/* ---- atomics ---- */

static __global__ void atomics_kernel(uint32_t *count, uint32_t *seen)
{
    seen[atomic_add(count, 1u)] = 1;
}

CUDA_CASE(wrapper_atomics)
{
    enum { n = 6 * 64 };
    uint32_t *count = cuda_output<uint32_t>(t, 1), *seen = cuda_output<uint32_t>(t, n), want[n];
    *count = 0;
    for (int i = 0; i < n; i++) want[i] = 1;
    DEV_LAUNCH(atomics_kernel, dim3(6), dim3(64), 0, 0, count, seen);
    cuda_sync(t);
    if (*count != n) check_fail(t, "count %u", *count);
    expect(t, "each count once", seen, want, n);
}

/* ---- barriers, shared memory, asynchronous copies ---- */

static __global__ void reverse_kernel(uint32_t *out, const uint32_t *in)
{
    DEV_SHARED(uint32_t, a, 128);
    DEV_SHARED(uint32_t, b, 128);
    int i = threadIdx.x;
    a[i] = in[i];
    block_sync(); /* with the reads of a below */
    b[i] = a[127 - i];
    warp_sync(); /* with the reads of b, of the same warp */
    out[i] = b[i ^ 31];
}

/* Warps 0 and 1 fill the buffer, and warps 2 and 3 read it. The warps that fill the buffer need not
 * wait for the others. */
static __global__ void hand_over_kernel(uint32_t *out, const uint32_t *in)
{
    DEV_SHARED(uint32_t, a, 64);
    int i = threadIdx.x;
    if (i < 64) {
        a[i] = in[i] + 1;
        turn_pass(1, 128);
        turn_wait(2, 64);
        out[64 + i] = a[i ^ 32];
    } else {
        turn_wait(1, 128);
        out[i - 64] = a[127 - i];
    }
}

/* Copy in three groups. The first wait is only for the first group, the second wait for all
 * groups. */
static __global__ void copies_kernel(uint32_t *out, const uint32_t *in, int present)
{
    uint32_t *s = (uint32_t *)dyn_smem();
    int i = threadIdx.x;
    for (int part = 0; part < 3; part++) {
        cp_async16(s + (part * 32 + i) * 4, in + (part * 32 + i) * 4, part * 32 + i < present);
        cp_async_commit();
    }
    cp_async_wait<2>();
    warp_sync();
    for (int j = 0; j < 4; j++) out[i * 4 + j] = s[(31 - i) * 4 + j];
    cp_async_wait<0>();
    warp_sync();
    for (int j = 0; j < 8; j++) out[128 + i * 8 + j] = s[128 + (31 - i) * 8 + j];
}

CUDA_CASE(wrapper_barriers)
{
    uint32_t *in = words(t, 128), *got = cuda_output<uint32_t>(t, 128), want[128];
    DEV_LAUNCH(reverse_kernel, dim3(1), dim3(128), 0, 0, got, in);
    cuda_sync(t);
    for (int i = 0; i < 128; i++) want[i] = in[127 - (i ^ 31)];
    expect(t, "reversed", got, want, 128);
    DEV_LAUNCH(hand_over_kernel, dim3(1), dim3(128), 0, 0, got, in);
    cuda_sync(t);
    for (int i = 0; i < 64; i++) want[i] = in[63 - i] + 1, want[64 + i] = in[i ^ 32] + 1;
    expect(t, "handed over", got, want, 128);
}

CUDA_CASE(wrapper_copies)
{
    uint32_t *in = words(t, 384), *got = cuda_output<uint32_t>(t, 384), want[384];
    for (int present = 0; present <= 96; present += 24) {
        check_at(t, "%d of 96 present", present);
        DEV_LAUNCH(copies_kernel, dim3(1), dim3(32), 1536, 0, got, in, present);
        cuda_sync(t);
        auto at = [&](int word) { return word / 4 < present ? in[word] : 0; };
        for (int i = 0; i < 32; i++) {
            for (int j = 0; j < 4; j++) want[i * 4 + j] = at((31 - i) * 4 + j);
            for (int j = 0; j < 8; j++) want[128 + i * 8 + j] = at(128 + (31 - i) * 8 + j);
        }
        expect(t, "copied", got, want, 384);
    }
}

/* ---- matrices ---- */

static __global__ void matrices_kernel(uint32_t *out, const uint32_t *in)
{
    uint32_t *s = (uint32_t *)dyn_smem();
    int l = threadIdx.x;
    for (int i = 0; i < 4; i++) s[i * 32 + l] = in[i * 32 + l];
    warp_sync(); /* with ldmatrix below */
    uint32_t plain[4], transposed[4];
    ldmatrix_x4(plain, s + l * 4);
    ldmatrix_x4_t(transposed, s + l * 4);
    for (int m = 0; m < 4; m++) {
        out[m * 32 + l] = plain[m];
        out[128 + m * 32 + l] = transposed[m];
    }
}

CUDA_CASE(wrapper_matrices)
{
    uint32_t *in = words(t, 128), *got = cuda_output<uint32_t>(t, 256), want[256];
    DEV_LAUNCH(matrices_kernel, dim3(1), dim3(32), 512, 0, got, in);
    cuda_sync(t);
    auto element = [&](int m, int row, int column) { /* 16 bits; a row is 4 words */
                                                     return in[m * 32 + row * 4 + column / 2] >>
                                                                column % 2 * 16 &
                                                            0xffff;
    };
    for (int m = 0; m < 4; m++)
        for (int l = 0; l < 32; l++) {
            int g = l / 4, c = l % 4 * 2;
            want[m * 32 + l] = element(m, g, c) | element(m, g, c + 1) << 16;
            want[128 + m * 32 + l] = element(m, c, g) | element(m, c + 1, g) << 16;
        }
    expect(t, "fragments", got, want, 256);
}

/* Compute c (16, 8) += a (16, 16) b^T, where b is stored as (8, 16), with the register layout that
 * device.cuh describes. */
template <class T> static __global__ void mma_kernel(float *c, const T *a, const T *b)
{
    int g = threadIdx.x / 4, t = threadIdx.x % 4;
    auto pair = [](const T *p) { return pack2<T>(to_float(p[0]), to_float(p[1])); };
    uint32_t fragment[4] = {pair(a + g * 16 + 2 * t), pair(a + (g + 8) * 16 + 2 * t),
                            pair(a + g * 16 + 2 * t + 8), pair(a + (g + 8) * 16 + 2 * t + 8)};
    float sum[4] = {c[g * 8 + 2 * t], c[g * 8 + 2 * t + 1], c[(g + 8) * 8 + 2 * t],
                    c[(g + 8) * 8 + 2 * t + 1]};
    mma<T>(sum, fragment, pair(b + g * 16 + 2 * t), pair(b + g * 16 + 2 * t + 8));
    for (int i = 0; i < 4; i++) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];
}

template <class T> static void product(check *t, const char *name)
{
    T *a = integers<T>(t, 256), *b = integers<T>(t, 128);
    float *c = integers<float>(t, 128), *want = check_output(t, 128);
    check_at(t, "%s", name);
    for (int i = 0; i < 128; i++) {
        want[i] = c[i];
        for (int k = 0; k < 16; k++)
            want[i] += to_float(a[i / 8 * 16 + k]) * to_float(b[i % 8 * 16 + k]);
    }
    DEV_LAUNCH(mma_kernel<T>, dim3(1), dim3(32), 0, 0, c, a, b);
    cuda_sync(t);
    check_equal(t, "product", c, want, 128);
}

/* Compute c (16, 8) += a (16, 8) b^T, where b is stored as (8, 8). The low 13 bits of a and b may
 * have any value. */
static __global__ void mma_tf32_kernel(float *c, const uint32_t *a, const uint32_t *b)
{
    int g = threadIdx.x / 4, t = threadIdx.x % 4;
    uint32_t fragment[4] = {a[g * 8 + t], a[(g + 8) * 8 + t], a[g * 8 + t + 4],
                            a[(g + 8) * 8 + t + 4]};
    float sum[4] = {c[g * 8 + 2 * t], c[g * 8 + 2 * t + 1], c[(g + 8) * 8 + 2 * t],
                    c[(g + 8) * 8 + 2 * t + 1]};
    mma_tf32(sum, fragment, b[g * 8 + t], b[g * 8 + t + 4]);
    for (int i = 0; i < 4; i++) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];
}

/* Return the bits of small integers, with random low 13 bits, which TF32 ignores. */
static uint32_t *tf32_words(check *t, const float *x, size_t n)
{
    uint32_t *out = words(t, n), bits;
    for (size_t i = 0; i < n; i++) {
        memcpy(&bits, x + i, 4);
        out[i] = bits | (out[i] & 0x1fff);
    }
    return out;
}

CUDA_CASE(wrapper_mma)
{
    product<bf16>(t, "bf16");
    product<f16>(t, "f16");
    float *a = integers<float>(t, 128), *b = integers<float>(t, 64), *c = integers<float>(t, 128);
    float *want = check_output(t, 128);
    check_at(t, "tf32");
    for (int i = 0; i < 128; i++) {
        want[i] = c[i];
        for (int k = 0; k < 8; k++) want[i] += a[i / 8 * 8 + k] * b[i % 8 * 8 + k];
    }
    DEV_LAUNCH(mma_tf32_kernel, dim3(1), dim3(32), 0, 0, c, tf32_words(t, a, 128),
               tf32_words(t, b, 64));
    cuda_sync(t);
    check_equal(t, "product", c, want, 128);
}

static __global__ void to_tf32_kernel(uint32_t *out, const uint32_t *in)
{
    int l = threadIdx.x;
    out[l] = to_tf32(bits_float(in[l])) & 0xffffe000u;
}

/* Test floats below, at and above the middle between two TF32 numbers, with an even and an odd last
 * bit; carries into the exponent; infinities; and NaNs as arithmetic produces them. (If only the
 * low 13 fraction bits of a NaN are set, an H100 rounds it to infinity.) */
CUDA_CASE(wrapper_to_tf32)
{
    static const uint32_t in[16] = {0,          0x3f800000, 0x3f800fff, 0x3f801000,
                                    0x3f801001, 0x3f803000, 0x3f802fff, 0x3fffffff,
                                    0xbf801000, 0xbf800fff, 0xc2fff000, 0x00800fff,
                                    0x00801000, 0x7f800000, 0xff800000, 0x80000000};
    static const uint32_t want[16] = {0,          0x3f800000, 0x3f800000, 0x3f802000,
                                      0x3f802000, 0x3f804000, 0x3f802000, 0x40000000,
                                      0xbf802000, 0xbf800000, 0xc3000000, 0x00800000,
                                      0x00802000, 0x7f800000, 0xff800000, 0x80000000};
    uint32_t *from = words(t, 32), *got = cuda_output<uint32_t>(t, 32);
    memcpy(from, in, sizeof in);
    from[16] = 0x7fffffff, from[17] = 0xffffffff;
    DEV_LAUNCH(to_tf32_kernel, dim3(1), dim3(32), 0, 0, got, from);
    cuda_sync(t);
    expect(t, "rounded", got, want, 16);
    for (int i = 16; i < 18; i++)
        if ((got[i] & 0x7fffffff) <= 0x7f800000) check_fail(t, "a NaN becomes %08x", got[i]);
}

/* ---- wgmma: threads write the operands swizzled, and a fence makes them visible to the async
 * proxy ---- */

/* Store each thread's d[j][e] in row-major order. hopper.cuh describes the layout of d. */
template <int N>
DEV void write_tile(float *c, const float (&d)[N / 8][4], int row0, int column0, int m, int n)
{
    int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int i = 0; i < N / 2; i++) {
        int row = row0 + warp * 16 + g + i % 4 / 2 * 8,
            column = column0 + i / 4 * 8 + 2 * t + i % 2;
        if (row < m && column < n) c[row * n + column] = d[i / 4][i % 4];
    }
}

template <class T> DEV void write_swizzled(T *to, const T *from, int rows)
{
    for (int i = threadIdx.x; i < rows * 64; i += 128) {
        int row = i / 64, column = i % 64;
        to[row * 64 + ((column / 8) ^ (row % 8)) * 8 + column % 8] = from[i];
    }
}

template <class T> static __global__ void own_operands_kernel(float *c, const T *a, const T *b)
{
    T *left = (T *)dyn_smem(), *right = left + 64 * 64;
    float sum[8][4];
    write_swizzled(left, a, 64);
    write_swizzled(right, b, 64);
    fence_proxy_async();
    block_sync(); /* everybody's part, fenced, with wgmma's reads */
    wgmma_fence(sum);
    for (int k = 0; k < 4; k++)
        wgmma<T>(sum, desc_rows(left) + k * DESC_K16, desc_rows(right) + k * DESC_K16, k > 0);
    wgmma_commit();
    wgmma_wait<0>(sum);
    write_tile<64>(c, sum, 0, 0, 64, 64);
}

/* c (64, 64) = a b^T, each 64 x 64. */
template <class T> static float *square_product(check *t, const T *a, const T *b)
{
    float *c = check_output(t, 64 * 64);
    for (int i = 0; i < 64 * 64; i++) {
        c[i] = 0;
        for (int l = 0; l < 64; l++)
            c[i] += to_float(a[i / 64 * 64 + l]) * to_float(b[i % 64 * 64 + l]);
    }
    return c;
}

CUDA_CASE(wrapper_wgmma)
{
    if (!cuda_hopper(t)) return;
    bf16 *a = integers<bf16>(t, 64 * 64), *b = integers<bf16>(t, 64 * 64);
    float *c = cuda_output<float>(t, 64 * 64);
    DEV_LAUNCH(own_operands_kernel<bf16>, dim3(1), dim3(128), 2 * 64 * 128, 0, c, a, b);
    cuda_sync(t);
    check_equal(t, "c", c, square_product(t, a, b), 64 * 64);
}

/* ---- wgmma with the left operand in registers: c (64, N) = a (64, 64) b (64, N) ---- */

template <class T, int N>
static __global__ void rows_operand_kernel(float *c, const T *a, const T *b)
{
    T *right = (T *)dyn_smem();
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    float sum[N / 8][4];
    uint32_t left[4][4];
    auto pair = [](const T *p) { return pack2<T>(to_float(p[0]), to_float(p[1])); };
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 4; i++)
            left[k][i] = pair(a + (row + i % 2 * 8) * 64 + k * 16 + i / 2 * 8 + 2 * t);
    for (int part = 0; part < N / 64; part++)
        write_swizzled(right + part * 64 * 64, b + part * 64 * 64, 64);
    fence_proxy_async();
    block_sync(); /* everybody's part, fenced, with wgmma's reads */
    wgmma_fence(left);
    for (int k = 0; k < 4; k++)
        wgmma<T>(sum, left[k], desc_columns(right, 64 * 128) + k * DESC_ROWS16, k > 0);
    wgmma_commit();
    wgmma_wait<0>(sum, left);
    write_tile<N>(c, sum, 0, 0, 64, N);
}

/* Store b as the kernel reads it: blocks of 64 columns, one after another. */
template <class T, int N> static void rows_operand(check *t)
{
    T *a = integers<T>(t, 64 * 64), *b = integers<T>(t, N * 64);
    float *c = cuda_output<float>(t, 64 * N), *want = check_output(t, 64 * N);
    check_at(t, "%d columns", N);
    for (int i = 0; i < 64; i++)
        for (int j = 0; j < N; j++) {
            want[i * N + j] = 0;
            for (int k = 0; k < 64; k++)
                want[i * N + j] +=
                    to_float(a[i * 64 + k]) * to_float(b[j / 64 * 64 * 64 + k * 64 + j % 64]);
        }
    DEV_LAUNCH((rows_operand_kernel<T, N>), dim3(1), dim3(128), N * 128, 0, c, a, b);
    cuda_sync(t);
    check_equal(t, "c", c, want, 64 * N);
}

CUDA_CASE(wrapper_wgmma_rows)
{
    if (!cuda_hopper(t)) return;
    rows_operand<bf16, 64>(t);
    rows_operand<bf16, 128>(t);
    rows_operand<f16, 64>(t);
    rows_operand<f16, 128>(t);
}
