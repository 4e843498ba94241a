/* cuda_gemm.cu: tests of the wrappers used together, as kernels use them: matrix products pipelined
 * with cp.async, ldmatrix and mma, and with TMA, mbarriers and wgmma. All numbers are integers, so
 * every result is exact. */
#include "kernels/cuda/hopper.cuh"
#include "tests/kernels/host/check-cuda.h"

using namespace dev;

/* Small integers: sums of a few hundred products are exact. */
template <class T> static T *integers(check *t, size_t n)
{
    T *x = cuda_output<T>(t, n);
    for (size_t i = 0; i < n; i++) x[i] = from_float<T>((float)check_number(t, 9) - 4);
    return x;
}

/* c (m, n) = a (m, k) b^T, b stored (n, k). */
template <class T> static float *product(check *t, const T *a, const T *b, int m, int n, int k)
{
    float *c = check_output(t, (size_t)m * (size_t)n);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += (double)to_float(a[i * k + l]) * (double)to_float(b[j * k + l]);
            c[i * n + j] = (float)sum;
        }
    return c;
}

/* ---- sm_80: tiles of 64 x 64, 32 deep, two of each operand in shared memory ---- */

enum {
    TILE = 64,
    DEPTH = 32,
    PITCH = DEPTH + 8 /* rows are 80 bytes apart, so ldmatrix has no bank conflicts */
};
enum { MMA_SMEM = 2 * 2 * TILE * PITCH * 2 };

/* Start the copy of rows row0 .. row0+63 and columns k0 .. k0+31 of a matrix with `rows` rows;
 * elements outside it are 0. For 128 threads. */
template <class T> DEV void start_tile(T *to, const T *from, int row0, int rows, int k0, int k)
{
    for (int piece = threadIdx.x; piece < TILE * DEPTH / 8; piece += 128) {
        int row = piece / (DEPTH / 8), column = piece % (DEPTH / 8) * 8;
        bool present = row0 + row < rows && k0 + column < k;
        cp_async16(to + row * PITCH + column,
                   present ? from + (row0 + row) * k + k0 + column : from, present);
    }
}

/* Multiply a warp's 16 rows of a by the tile's 64 rows of b. */
template <class T> DEV void multiply_tile(float (&sum)[8][4], const T *a, const T *b)
{
    int l = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int k = 0; k < DEPTH; k += 16) {
        uint32_t left[4];
        ldmatrix_x4(left, a + (warp * 16 + l % 16) * PITCH + k + l / 16 * 8);
        DEV_UNROLL_FOR (int j = 0; j < 8; j += 2) { /* two 8-wide pieces of b at a time */
            uint32_t right[4];
            ldmatrix_x4(right, b + (j * 8 + l / 16 * 8 + l % 8) * PITCH + k + l / 8 % 2 * 8);
            mma<T>(sum[j], left, right[0], right[1]);
            mma<T>(sum[j + 1], left, right[2], right[3]);
        }
    }
}

template <class T>
static __global__ void __launch_bounds__(128)
    mma_gemm_kernel(float *c, const T *a, const T *b, int m, int n, int k)
{
    T *tiles = (T *)dyn_smem();
    auto tile_a = [&](int i) { return tiles + i % 2 * 2 * TILE * PITCH; };
    auto tile_b = [&](int i) { return tile_a(i) + TILE * PITCH; };
    int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE, steps = (k + DEPTH - 1) / DEPTH;
    float sum[8][4] = {};
    for (int i = 0; i <= steps; i++) {
        if (i < steps) {
            start_tile(tile_a(i), a, row0, m, i * DEPTH, k);
            start_tile(tile_b(i), b, column0, n, i * DEPTH, k);
        }
        cp_async_commit();
        if (i == 0) continue;
        cp_async_wait<1>(); /* all but the copies of the tile just started */
        block_sync();       /* everybody's copies are there */
        multiply_tile(sum, tile_a(i - 1), tile_b(i - 1));
        block_sync(); /* before the next copies overwrite it */
    }
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int j = 0; j < 8; j++)
        for (int e = 0; e < 4; e++) {
            int row = row0 + (int)threadIdx.x / 32 * 16 + g + e / 2 * 8,
                column = column0 + j * 8 + 2 * t + e % 2;
            if (row < m && column < n) c[row * n + column] = sum[j][e];
        }
}

template <class T> static void mma_gemm(check *t, const char *name, int m, int n, int k)
{
    T *a = integers<T>(t, (size_t)m * k), *b = integers<T>(t, (size_t)n * k);
    float *c = cuda_output<float>(t, (size_t)m * n);
    check_at(t, "%s, %d x %d x %d", name, m, n, k);
    DEV_LAUNCH(mma_gemm_kernel<T>, dim3((n + 63) / 64, (m + 63) / 64), dim3(128), MMA_SMEM, 0, c, a,
               b, m, n, k);
    cuda_sync(t);
    check_equal(t, "c", c, product(t, a, b, m, n, k), (size_t)m * n);
}

CUDA_CASE(pipeline_mma)
{
    mma_gemm<bf16>(t, "bf16", 64, 64, 32);
    mma_gemm<bf16>(t, "bf16", 97, 71, 104);
    mma_gemm<f16>(t, "f16", 1, 130, 72);
}

/* ---- sm_90a: one warp loads by TMA, a group of four multiplies by wgmma; three stages of 64
 * columns ---- */

enum { STAGES = 3, STAGE_COLUMNS = 64 };
template <int N> constexpr size_t WGMMA_SMEM = 1024 + STAGES *(64 + N) * 128;

template <class T, int N> DEV T *stage_a(int i)
{
    return (T *)(dyn_smem() + 1024 + i % STAGES * (64 + N) * 128);
}

template <class T, int N> DEV T *stage_b(int i) { return stage_a<T, N>(i) + 64 * STAGE_COLUMNS; }

/* full: the stage's bytes have landed; empty: the group is done with it. */
template <class T, int N>
DEV void produce(uint64_t *full, uint64_t *empty, const TensorMap *a, const TensorMap *b, int steps)
{
    for (int i = 0; i < steps; i++) {
        int stage = i % STAGES;
        if (i >= STAGES) mbar_wait(empty + stage, (i / STAGES - 1) % 2);
        mbar_arrive_expect(full + stage, (64 + N) * 128);
        tma_load(stage_a<T, N>(i), a, full + stage, i * STAGE_COLUMNS, blockIdx.y * 64, 0);
        tma_load(stage_b<T, N>(i), b, full + stage, i * STAGE_COLUMNS, blockIdx.x * N, 0);
    }
}

template <class T, int N>
DEV void consume(float (&sum)[N / 8][4], uint64_t *full, uint64_t *empty, int steps)
{
    for (int i = 0; i < steps; i++) {
        int stage = i % STAGES;
        mbar_wait(full + stage, i / STAGES % 2);
        wgmma_fence(sum);
        for (int k = 0; k < STAGE_COLUMNS / 16; k++)
            wgmma<T>(sum, desc_rows(stage_a<T, N>(i)) + k * DESC_K16,
                     desc_rows(stage_b<T, N>(i)) + k * DESC_K16, i + k > 0);
        wgmma_commit();
        wgmma_wait<0>(sum); /* with the producer's next load into this stage, through `empty` */
        if (threadIdx.x % 32 == 0) mbar_arrive(empty + stage);
    }
}

/* Store d[j][e] of each thread at its place in the layout of hopper.cuh. */
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

template <class T, int N>
static __global__ void __launch_bounds__(160)
    wgmma_gemm_kernel(float *c, const __grid_constant__ TensorMap a,
                      const __grid_constant__ TensorMap b, int m, int n, int k)
{
    uint64_t *full = (uint64_t *)dyn_smem(), *empty = full + STAGES;
    int steps = (k + STAGE_COLUMNS - 1) / STAGE_COLUMNS;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbar_init(full + i, 1);
            mbar_init(empty + i, 4);
        }
        mbar_init_fence();
    }
    block_sync(); /* the barriers are initialized for all threads */
    if (threadIdx.x >= 128) {
        if (threadIdx.x == 128) produce<T, N>(full, empty, &a, &b, steps);
        return;
    }
    float sum[N / 8][4] = {};
    consume<T, N>(sum, full, empty, steps);
    write_tile<N>(c, sum, blockIdx.y * 64, blockIdx.x * N, m, n);
}

template <class T, int N> static void wgmma_gemm(check *t, int m, int n, int k)
{
    T *a = integers<T>(t, (size_t)m * k), *b = integers<T>(t, (size_t)n * k);
    float *c = cuda_output<float>(t, (size_t)m * n);
    TensorMap map_a, map_b;
    check_at(t, "wgmma of %d columns, %d x %d x %d", N, m, n, k);
    if (!tensor_map(&map_a, cuda_there(t, a), 1, m, k, k, 64) ||
        !tensor_map(&map_b, cuda_there(t, b), 1, n, k, k, N)) {
        check_fail(t, "no tensor map");
        return;
    }
    DEV_LAUNCH((wgmma_gemm_kernel<T, N>), dim3((n + N - 1) / N, (m + 63) / 64), dim3(160),
               WGMMA_SMEM<N>, 0, c, map_a, map_b, m, n, k);
    cuda_sync(t);
    check_equal(t, "c", c, product(t, a, b, m, n, k), (size_t)m * n);
}

CUDA_CASE(pipeline_wgmma)
{
    if (!cuda_hopper(t)) return;
    wgmma_gemm<bf16, 64>(t, 64, 64, 64);
    wgmma_gemm<bf16, 64>(t, 70, 100, 328);
    wgmma_gemm<bf16, 128>(t, 33, 130, 72);
    wgmma_gemm<f16, 64>(t, 5, 9, 264);
    wgmma_gemm<f16, 128>(t, 64, 128, 128);
}

/* ---- operands that the threads write swizzled, then hand to the async proxy ---- */

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

CUDA_CASE(wrapper_wgmma)
{
    if (!cuda_hopper(t)) return;
    bf16 *a = integers<bf16>(t, 64 * 64), *b = integers<bf16>(t, 64 * 64);
    float *c = cuda_output<float>(t, 64 * 64);
    DEV_LAUNCH(own_operands_kernel<bf16>, dim3(1), dim3(128), 2 * 64 * 128, 0, c, a, b);
    cuda_sync(t);
    check_equal(t, "c", c, product(t, a, b, 64, 64, 64), 64 * 64);
}

/* ---- left operand in registers; the rows of the right one are the depth: c (64, N) = a (64, 64) b
 * (64, N) ---- */

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

/* Lay out b as the kernel reads it: blocks of 64 columns, one after the other. */
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
