// bias.cu: computes the gradient of a bias: the sum of dout over all rows. The rows are cut into
// slices of equal size. A first kernel adds up the rows of each slice, and a second kernel adds the
// sums of the slices to the gradient. Both add in a fixed order.
#include "kernels/cuda/columns.cuh"

using namespace sgt;

/* ROWS: number of warps of a block, each of which reads one row at a time. The rows are divided
 * into slices of SLICE_ROWS rows. If that gives more than MOST_SLICES slices, the rows are divided
 * into MOST_SLICES longer slices instead. */
enum { ROWS = 8, MOST_SLICES = 128, SLICE_ROWS = 64 };

// Set partial[slice][c] to the sum of column c over the rows of a slice. A block processes 32 * V
// columns of one slice; each of its eight warps reads every eighth row. If there is only one slice,
// no second kernel is needed: the caller passes the gradient of the bias as `partial`, and this
// kernel adds the sum to the gradient.
template <class T, int V>
__global__ void __launch_bounds__(ROWS * 32)
    bias_kernel(float *partial, const T *dout, size_t n, int C, size_t slice_rows)
{
    dev::after_previous();
    DEV_SHARED(float, shared, ROWS * 32 * V);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, c = (blockIdx.x * 32 + lane) * V;
    size_t first = blockIdx.y * slice_rows, end = first + slice_rows < n ? first + slice_rows : n;
    float total[V] = {};
    if (c < C)
        for (size_t row = first + warp; row < end; row += ROWS) {
            float x[V];
            load(x, dout + row * C + c);
            DEV_UNROLL_FOR (int i = 0; i < V; i++) total[i] += x[i];
        }
    DEV_UNROLL_FOR (int i = 0; i < V; i++) shared[(warp * V + i) * 32 + lane] = total[i];
    dev::block_sync(); // every warp has stored its sums
    if (warp > 0 || c >= C) return;
    DEV_UNROLL_FOR (int i = 0; i < V; i++) {
        for (int w = 1; w < ROWS; w++) total[i] += shared[(w * V + i) * 32 + lane];
        float *to = partial + (size_t)blockIdx.y * C + c + i;
        *to = gridDim.y == 1 ? *to + total[i] : total[i];
    }
}

static unsigned slices_for(size_t n)
{
    unsigned slices = blocks_for(n, SLICE_ROWS);
    return slices < MOST_SLICES ? slices : (unsigned)MOST_SLICES;
}

size_t sgt_cuda_bias_backward_scratch(size_t n, size_t C)
{
    return slices_for(n) * C * sizeof(float);
}

void sgt_cuda_bias_backward(sgt_cuda_stream s, sgt_cuda_type type, float *db, const void *dout,
                            size_t n, size_t C, void *scratch)
{
    if (n == 0) return;
    unsigned slices = slices_for(n);
    by_type_and_width(type, C, [&](auto zero, auto width) {
        using T = decltype(zero);
        DEV_LAUNCH((bias_kernel<T, width>), dim3(blocks_for(C, 32 * width), slices),
                   dim3(ROWS * 32), 0, s, slices == 1 ? db : (float *)scratch, (const T *)dout, n,
                   (int)C, (n + slices - 1) / slices);
    });
    if (slices > 1) fold_columns(s, {{db}}, 1, 1, (const float *)scratch, slices, C);
}
