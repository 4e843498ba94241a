/* cuda_wrappers.cu: tests wrappers of device.cuh and hopper.cuh on integers, whose results are exact:
 * what lanes and threads exchange, and how numbers are rounded. Plain code computes the results that
 * the headers promise. The cases of the kernels test the other wrappers, such as mma. On a GPU, compiled
 * by nvcc, the same source tests the device versions of the wrappers. */
#include <vector>

#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/runtime.h"
#include "tests/kernels/host/check-cuda.h"

using namespace dev;

/* Return small integers. They are exact in bf16, and so are sums of a few hundred of their products
 * in float32. */
static bf16 *integers(check *t, size_t n)
{
    bf16 *x = cuda_output<bf16>(t, n);
    for (size_t i = 0; i < n; i++) x[i] = from_float<bf16>((float)check_number(t, 17) - 8);
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

/* ---- launches ---- */

/* Each thread reads what a thread of another block wrote in the launch before. */
static __global__ void pass_on_kernel(uint32_t *out, const uint32_t *in, int n)
{
    after_previous();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[(i + 300) % n] * 3 + 1;
}

CUDA_CASE(wrapper_early_launch)
{
    enum { LAUNCHES = 20, BLOCKS = 500, N = BLOCKS * 128 };
    uint32_t *a = words(t, N), *b = cuda_output<uint32_t>(t, N);
    std::vector<uint32_t> want(a, a + N), from(N);
    sgt_cuda_launch_early(device_is_hopper());
    for (int k = 0; k < LAUNCHES; k++) {
        DEV_LAUNCH(pass_on_kernel, dim3(BLOCKS), dim3(128), 0, 0, k % 2 ? a : b, k % 2 ? b : a, N);
        from = want;
        for (int i = 0; i < N; i++) want[i] = from[(i + 300) % N] * 3 + 1;
    }
    sgt_cuda_launch_early(0);
    cuda_sync(t);
    expect(t, "word", a, want.data(), N);
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

/* ---- conversions ---- */

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

static DEV void write_swizzled(bf16 *to, const bf16 *from)
{
    for (int i = threadIdx.x; i < 64 * 64; i += 128) {
        int row = i / 64, column = i % 64;
        to[row * 64 + ((column / 8) ^ (row % 8)) * 8 + column % 8] = from[i];
    }
}

/* c (64, 64) = a b^T, each 64 x 64. hopper.cuh describes the layout of the sums. */
static __global__ void own_operands_kernel(float *c, const bf16 *a, const bf16 *b)
{
    bf16 *left = (bf16 *)dyn_smem(), *right = left + 64 * 64;
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    float sum[8][4];
    write_swizzled(left, a);
    write_swizzled(right, b);
    fence_proxy_async();
    block_sync(); /* everybody's part, fenced, with wgmma's reads */
    wgmma_fence(sum);
    for (int k = 0; k < 4; k++)
        wgmma<bf16>(sum, desc_rows(left) + k * DESC_K16, desc_rows(right) + k * DESC_K16, k > 0);
    wgmma_commit();
    wgmma_wait<0>(sum);
    for (int i = 0; i < 32; i++)
        c[(row + i % 4 / 2 * 8) * 64 + i / 4 * 8 + column + i % 2] = sum[i / 4][i % 4];
}

CUDA_CASE(wrapper_wgmma)
{
    if (!cuda_hopper(t)) return;
    bf16 *a = integers(t, 64 * 64), *b = integers(t, 64 * 64);
    float *c = cuda_output<float>(t, 64 * 64), *want = check_output(t, 64 * 64);
    for (int i = 0; i < 64 * 64; i++) {
        want[i] = 0;
        for (int l = 0; l < 64; l++)
            want[i] += to_float(a[i / 64 * 64 + l]) * to_float(b[i % 64 * 64 + l]);
    }
    DEV_LAUNCH(own_operands_kernel, dim3(1), dim3(128), 2 * 64 * 128, 0, c, a, b);
    cuda_sync(t);
    check_equal(t, "c", c, want, 64 * 64);
}
