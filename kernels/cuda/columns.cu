// columns.cu: adds up the partial sums that blocks wrote for each column. A block processes 32
// columns with 32 warps. First, warp w adds up the partial sums that blocks w, w + 32, w + 64, ...
// wrote, one column per lane. Then warp w adds up the 32 results for column w. A thread adds only
// every 32nd partial sum, so its chain of dependent additions is short.
#include "kernels/cuda/columns.cuh"

using namespace sgt;

/* PITCH is odd, so that the elements of a column are in different banks */
enum { GROUPS = 32, PITCH = 33 };

__global__ void __launch_bounds__(GROUPS * 32)
    fold_columns_kernel(ColumnSums to, const float *partial, int blocks, int pitch, int width,
                        int C)
{
    dev::after_previous();
    DEV_SHARED(float, shared, GROUPS *PITCH);
    int lane = threadIdx.x % 32, group = threadIdx.x / 32, first = blockIdx.x * 32,
        c = first + group;
    float total = 0;
    if (first + lane < width)
        for (int b = group; b < blocks; b += GROUPS)
            total += partial[(size_t)b * pitch + first + lane];
    shared[group * PITCH + lane] = total;
    dev::block_sync(); // every group has stored its sums
    total = dev::warp_sum(shared[lane * PITCH + group]);
    if (lane > 0 || c >= width) return;
    float *out = c < C ? to.out[0] + c : c < 2 * C ? to.out[1] + c - C : to.out[2] + c - 2 * C;
    *out += total;
}

void sgt::fold_columns(sgt_cuda_stream s, const ColumnSums &to, int wanted, int parts,
                       const float *partial, unsigned blocks, size_t C)
{
    DEV_LAUNCH(fold_columns_kernel, dim3(blocks_for(wanted * C, 32)), dim3(GROUPS * 32), 0, s, to,
               partial, (int)blocks, (int)(parts * C), (int)(wanted * C), (int)C);
}
