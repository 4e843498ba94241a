/* device.cuh: everything that a kernel uses beyond plain C++. Only this file and hopper.cuh contain
 * PTX, intrinsics and kernel launches. Each wrapper has two forms. The form for the device is in
 * this file. The form for the host, in tests/kernels/host, computes the same for each lane. It is
 * used when a plain C++ compiler compiles the file. So a kernel runs unchanged on a CPU, with
 * schedules and checks that a GPU does not offer. tests/kernels/cuda_wrappers.cu tests both forms
 * against the same exact integer results.
 *
 *     #include "device.cuh"
 *     using namespace dev;
 *     static __global__ void __launch_bounds__(256) scale_kernel(float *x, float by, int n)
 *     {
 *         after_previous();
 *         int i = blockIdx.x * blockDim.x + threadIdx.x;
 *         if (i < n) x[i] *= by;
 *     }
 *     DEV_LAUNCH(scale_kernel, dim3((n + 255) / 256), dim3(256), 0, stream, x, by, n);
 *
 * Rules for kernels:
 *  - The first statement is after_previous().
 *  - Helper functions are DEV.
 *  - Shared memory comes from dyn_smem() or DEV_SHARED, never from both in one kernel, because
 *    dyn_smem's 1024-byte alignment would make DEV_SHARED take 1 KiB.
 *  - Constants are parameters.
 *  - There is no memcpy to or from shared memory.
 *  - Threads leave a kernel early only by whole warps.
 *  - All lanes of a warp call the functions marked "warp" together, in the same order.
 * "Lane l" is threadIdx.x % 32 in blocks of one dimension. In fragments, g = l/4 and t = l%4. */
#ifndef SGT_DEVICE_CUH
#define SGT_DEVICE_CUH

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace dev
{
struct alignas(16) Vec16 {
    uint32_t w[4];
};
} // namespace dev

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define DEV __device__ __forceinline__
#define DEV_UNROLL_FOR(...) _Pragma("unroll") for (__VA_ARGS__)
#define DEV_UNROLL_BY(n) DEV_PRAGMA(unroll(n)) /* unroll by n, not completely */
#define DEV_PRAGMA(text) _Pragma(#text)
/* Declare the array T name[n] in the block's shared memory. The array is 16-byte aligned, and its
 * content is undefined. */
#define DEV_SHARED(T, name, n) __shared__ __align__(16) T name[n]
#define DEV_WRAPPER DEV
#define DEV_BOTH __host__ __device__ __forceinline__
#else
#include "tests/kernels/host/twins.h"
#endif

#ifdef __CUDACC__

/* runtime.h */
extern "C" int sgt_cuda_launches_early(void);
extern "C" void sgt_cuda_kernel_launched(cudaStream_t s, const char *kernel, const unsigned grid[3],
                                         const unsigned block[3], size_t shared);

namespace dev
{

using bf16 = __nv_bfloat16;
using f16 = __half;

/* ---- launch, shared memory, barriers ---- */

/* Launch k on `stream` with these arguments. If `smem` exceeds 48 KiB, first raise the kernel's
 * limit on shared memory to `smem` bytes. If the launch fails, note the error together with the
 * kernel's name. cudaGetLastError still returns the error. */
template <class... P, class... A>
void launch(const char *name, void (*k)(P...), dim3 grid, dim3 block, size_t smem,
            cudaStream_t stream, A... args)
{
    if (smem > 48 * 1024)
        cudaFuncSetAttribute((const void *)k, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int)smem);
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = grid;
    how.blockDim = block;
    how.dynamicSmemBytes = smem;
    how.stream = stream;
    how.attrs = &early;
    how.numAttrs = (unsigned)sgt_cuda_launches_early();
    cudaLaunchKernelEx(&how, k, args...);
    const unsigned blocks[] = {grid.x, grid.y, grid.z}, threads[] = {block.x, block.y, block.z};
    sgt_cuda_kernel_launched(stream, name, blocks, threads, smem);
}

/* Let the next kernel of the stream start early, and wait until the previous kernel of the stream has
 * ended and its writes are visible. Every kernel calls this in its first statement, because with
 * sgt_cuda_launch_early(1) a kernel can start before the previous kernel has ended. This is CUDA's
 * programmatic dependent launch, which needs sm_90; the code for sm_80 does not wait. */
DEV void after_previous()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}

/* Return the address of the launch's dynamic shared memory, which is 1024-byte aligned and has
 * undefined content. */
DEV unsigned char *dyn_smem()
{
    extern __shared__ __align__(1024) unsigned char sgt_dyn_smem[];
    return sgt_dyn_smem;
}

/* Convert a pointer to shared memory to the 32-bit address that PTX takes. */
DEV uint32_t saddr(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

/* Wait until all threads of the block have reached this barrier. After the barrier, each of these
 * threads sees all memory writes that the others made before the barrier. */
DEV void block_sync() { __syncthreads(); }

/* Wait until all lanes of the warp have reached this barrier. After the barrier, each lane sees all
 * memory writes that the other lanes made before the barrier. */
DEV void warp_sync() { __syncwarp(); }

/* ---- shuffles, called by all lanes of a warp ---- */

/* shfl returns the v of lane `from` (modulo 32). shfl_xor, called by lane l, returns the v of lane
 * l ^ mask. */
template <class T> DEV T shfl(T v, int from) { return __shfl_sync(0xffffffffu, v, from); }
template <class T> DEV T shfl_xor(T v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }

/* Return a mask in which bit l is the p of lane l. */
DEV uint32_t warp_ballot(bool p) { return __ballot_sync(0xffffffffu, p); }

/* ---- 16-byte accesses (p is 16-byte aligned), atomics, mathematics ---- */

DEV Vec16 ld16(const void *p)
{
    uint4 v = *(const uint4 *)p;
    return {v.x, v.y, v.z, v.w};
}

/* Load like ld16, but exactly at this place in the program: the compiler neither reorders the load
 * with other memory accesses nor delays it until its result is needed. Use ld16_now to start
 * several loads at once. */
DEV Vec16 ld16_now(const void *p)
{
    Vec16 v;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
                 : "l"(p)
                 : "memory");
    return v;
}

DEV void st16(void *p, const Vec16 &v) { *(uint4 *)p = make_uint4(v.w[0], v.w[1], v.w[2], v.w[3]); }

/* Add v to *p atomically and return the old value. There is no such function for floats, because a
 * sum of floats depends on the order of the additions, which is not fixed here. */
DEV uint32_t atomic_add(uint32_t *p, uint32_t v) { return atomicAdd(p, v); }

/* exp2_fast returns 2^x with an error of at most 2 ulp. Subnormal results become 0, and 2^-inf is
 * 0. log2_fast returns log2(x). The error of log2_fast is at most 2^-22 for x from 0.5 to 2, where
 * the result can be near 0, and at most 2 ulp for other x. */
DEV float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

DEV float log2_fast(float x) { return __log2f(x); }

/* float_bits returns the bits of a float as an integer; bits_float is the inverse. */
DEV uint32_t float_bits(float x) { return __float_as_uint(x); }
DEV float bits_float(uint32_t x) { return __uint_as_float(x); }

/* ---- conversions, rounding to nearest, ties to even; also on the host ---- */

DEV_BOTH float to_float(float x) { return x; }
DEV_BOTH float to_float(bf16 x) { return __bfloat162float(x); }
DEV_BOTH float to_float(f16 x) { return __half2float(x); }
template <class T> DEV_BOTH T from_float(float x);
template <> DEV_BOTH float from_float<float>(float x) { return x; }
template <> DEV_BOTH bf16 from_float<bf16>(float x) { return __float2bfloat16_rn(x); }
template <> DEV_BOTH f16 from_float<f16>(float x) { return __float2half_rn(x); }

/* Round two floats to the 16-bit type T and pack them into a word, `lo` in bits 0..15. */
template <class T> DEV uint32_t pack2(float lo, float hi);
template <> DEV uint32_t pack2<bf16>(float lo, float hi)
{
    __nv_bfloat162 v = __floats2bfloat162_rn(lo, hi);
    return *(uint32_t *)&v;
}
template <> DEV uint32_t pack2<f16>(float lo, float hi)
{
    __half2 v = __floats2half2_rn(lo, hi);
    return *(uint32_t *)&v;
}

template <class T> DEV float lo2(uint32_t v);
template <class T> DEV float hi2(uint32_t v);
template <> DEV float lo2<bf16>(uint32_t v) { return bits_float(v << 16); }
template <> DEV float hi2<bf16>(uint32_t v) { return bits_float(v & 0xffff0000u); }
template <> DEV float lo2<f16>(uint32_t v)
{
    return __half2float(__ushort_as_half((unsigned short)v));
}
template <> DEV float hi2<f16>(uint32_t v)
{
    return __half2float(__ushort_as_half((unsigned short)(v >> 16)));
}

/* ---- asynchronous copies of 16 bytes from global to shared memory, 16-byte aligned ---- */

/* Copy 16 bytes asynchronously:
 *   cp_async16        Start the copy. If `present` is false, zero the 16 bytes at `to` instead:
 *                     `from` is then not read, but must still be a valid address.
 *   cp_async_commit   Collect the calling thread's uncommitted copies in a group.
 *   cp_async_wait<N>  Wait until at most N groups of the calling thread are pending.
 * After the wait, the thread sees the bytes that it copied. Other threads see these bytes after a
 * barrier. */
DEV void cp_async16(void *to, const void *from, bool present)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(saddr(to)), "l"(from),
                 "r"(present ? 16 : 0)
                 : "memory");
}

DEV void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEV void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* ---- tensor cores of sm_80 and later, called by all lanes of a warp; T is bf16 or f16 ---- */

/* Load four 8x8 matrices of 16-bit elements from shared memory. Lane l passes the address of row
 * l%8 of matrix l/8. A row is 16 bytes long and 16-byte aligned. In ldmatrix_x4, r[m] receives
 * elements (g, 2t) and (g, 2t+1) of matrix m, where g = l/4 and t = l%4. In ldmatrix_x4_t, r[m]
 * receives these elements of the transpose of matrix m. */
DEV void ldmatrix_x4(uint32_t (&r)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(saddr(row))
                 : "memory");
}

DEV void ldmatrix_x4_t(uint32_t (&r)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(saddr(row))
                 : "memory");
}

/* c (16, 8) += a (16, 16) b (16, 8), with exact multiplications and float32 sums. With g = lane/4
 * and t = lane%4, the lane's registers hold these elements:
 *   a[0] (g, 2t..), a[1] (g+8, 2t..), a[2] (g, 2t+8..), a[3] (g+8, 2t+8..)
 *   two columns each, the lower in bits 0..15
 *   b0 rows 2t, 2t+1 of column g;  b1 rows 2t+8, 2t+9
 *   c[0] (g, 2t), c[1] (g, 2t+1), c[2] (g+8, 2t), c[3] (g+8, 2t+1) */
template <class T> DEV void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
template <> DEV void mma<bf16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <> DEV void mma<f16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Round x to TF32 (10 fraction bits), ties away from 0. The result is returned as the bits of a
 * float, of which the lowest 13 are undefined. A NaN can become an infinity, if all of its nonzero
 * fraction bits are among these 13. */
DEV uint32_t to_tf32(float x)
{
    uint32_t r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return r;
}

/* c (16, 8) += a (16, 8) b (8, 8), with exact multiplications and float32 sums. The low 13 bits of
 * the floats in a and b are ignored. c has the same layout as in mma. With g = lane/4
 * and t = lane%4, the lane's registers hold these elements (row, column):
 *   of a: a[0] is (g, t), a[1] is (g+8, t), a[2] is (g, t+4), a[3] is (g+8, t+4)
 *   of b: b0 is (t, g), b1 is (t+4, g) */
DEV void mma_tf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

} /* namespace dev */

#endif /* __CUDACC__ */

namespace dev
{

/* ---- functions made of the wrappers above; device and host share their source ---- */

/* Return, in every lane, the sum (warp_sum) or the maximum (warp_max) of v over the warp. The
 * values of the lanes are combined in a fixed order. All lanes must call this together. */
template <class T> DEV_WRAPPER T warp_sum(T v)
{
    DEV_UNROLL_FOR (int mask = 16; mask; mask >>= 1) v += shfl_xor(v, mask);
    return v;
}

DEV_WRAPPER float warp_max(float v)
{
    DEV_UNROLL_FOR (int mask = 16; mask; mask >>= 1) v = fmaxf(v, shfl_xor(v, mask));
    return v;
}

/* PER16 is the number of elements of type T in 16 bytes. load16 and unpack16 convert PER16 elements
 * to floats, and store16 and pack16 convert PER16 floats to T. Addresses are 16-byte aligned. */
template <class T> constexpr int PER16 = 16 / (int)sizeof(T);

template <class T> DEV_WRAPPER void unpack16(float (&x)[PER16<T>], const Vec16 &v)
{
    DEV_UNROLL_FOR (int i = 0; i < 4; i++) {
        if constexpr (sizeof(T) == 4) x[i] = bits_float(v.w[i]);
        else x[2 * i] = lo2<T>(v.w[i]), x[2 * i + 1] = hi2<T>(v.w[i]);
    }
}

template <class T> DEV_WRAPPER Vec16 pack16(const float (&x)[PER16<T>])
{
    Vec16 v;
    DEV_UNROLL_FOR (int i = 0; i < 4; i++) {
        if constexpr (sizeof(T) == 4) v.w[i] = float_bits(x[i]);
        else v.w[i] = pack2<T>(x[2 * i], x[2 * i + 1]);
    }
    return v;
}

template <class T> DEV_WRAPPER void load16(float (&x)[PER16<T>], const T *p)
{
    unpack16<T>(x, ld16(p));
}
template <class T> DEV_WRAPPER void store16(T *p, const float (&x)[PER16<T>])
{
    st16(p, pack16<T>(x));
}

} /* namespace dev */

#define DEV_LAUNCH(kernel, ...) dev::launch(#kernel, kernel, __VA_ARGS__)

#endif
