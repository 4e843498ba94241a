/* twins.h: the host versions of device.cuh's wrappers. device.cuh documents the wrappers. */
#ifndef SGT_HOST_TWINS_H
#define SGT_HOST_TWINS_H

#include "tests/kernels/host/host.h"

#define DEV_ON_HOST
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ use_DEV_SHARED_or_dyn_smem
#define __constant__ pass_constants_as_parameters
#define threadIdx (host::current->id)
#define blockIdx (host::block_index)
#define blockDim (host::block_size)
#define gridDim (host::grid_size)

#define DEV inline
#define DEV_UNROLL_FOR(...) for (__VA_ARGS__)
#define DEV_UNROLL_BY(n)
/* The address of `key` identifies the kernel's array. */
#define DEV_SHARED(T, name, n) \
    static char name##_key;    \
    T *const name = static_cast<T *>(host::static_smem(&name##_key, sizeof(T) * (n)))
/* Race mode checks the accesses of kernels, not those inside wrappers. */
#define DEV_WRAPPER __attribute__((no_sanitize("thread"))) inline

extern "C" void sgt_cuda_kernel_launched(cudaStream_t s, const char *kernel, const unsigned grid[3],
                                         /* as in runtime.h */
                                         const unsigned block[3], size_t shared);

namespace dev
{

struct bf16 {
    uint16_t bits;
};
struct f16 {
    uint16_t bits;
};

template <class T> struct KindOf;
template <> struct KindOf<bf16> {
    static constexpr host::Kind kind = host::BF16;
};
template <> struct KindOf<f16> {
    static constexpr host::Kind kind = host::F16;
};

/* ---- launch, shared memory, barriers ---- */

template <class... P, class... A>
void launch(const char *name, void (*k)(P...), dim3 grid, dim3 block, size_t smem,
            cudaStream_t stream, A... args)
{
    const unsigned blocks[] = {grid.x, grid.y, grid.z}, threads[] = {block.x, block.y, block.z};
    host::enqueue(
        stream,
        [=] {
            auto body = [&] { k(P(args)...); };
            host::launch(
                grid, block, smem, [](void *f) { (*static_cast<decltype(body) *>(f))(); }, &body,
                name);
        },
        name);
    sgt_cuda_kernel_launched(stream, name, blocks, threads, smem);
}

DEV_WRAPPER void after_previous() {} /* check-cuda.sh checks that every kernel calls it */
DEV_WRAPPER unsigned char *dyn_smem() { return host::dyn_smem(); }
DEV_WRAPPER uint32_t saddr(const void *p) { return host::smem_address(p, 1, 1, "saddr"); }
DEV_WRAPPER void block_sync() { host::block_sync(); }
DEV_WRAPPER void warp_sync() { host::warp_sync(); }

/* ---- shuffles ---- */

template <class T> DEV_WRAPPER T shfl(T v, int from)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle takes 4 or 8 bytes");
    host::shuffle(&v, sizeof v, from & 31);
    return v;
}
template <class T> DEV_WRAPPER T shfl_xor(T v, int mask)
{
    return shfl(v, host::current->lane ^ mask);
}
DEV_WRAPPER uint32_t warp_ballot(bool p) { return host::ballot(p); }

/* ---- 16-byte accesses, atomics, mathematics ---- */

DEV_WRAPPER Vec16 ld16(const void *p)
{
    Vec16 v;
    if ((uintptr_t)p % 16) host::fail("ld16: address not 16-byte aligned");
    host::note_read(p, 16, false, false);
    memcpy(&v, p, 16);
    return v;
}
DEV_WRAPPER Vec16 ld16_now(const void *p) { return ld16(p); }

DEV_WRAPPER void st16(void *p, const Vec16 &v)
{
    if ((uintptr_t)p % 16) host::fail("st16: address not 16-byte aligned");
    host::note_write(p, 16);
    memcpy(p, &v, 16);
}

/* Fibers switch only at collectives and barriers. So no other thread runs between the read and the
 * write. */
DEV_WRAPPER uint32_t atomic_add(uint32_t *p, uint32_t v)
{
    uint32_t before = *p;
    *p += v;
    return before;
}

DEV_WRAPPER float exp2_fast(float x) { return exp2f(x); }
DEV_WRAPPER float log2_fast(float x) { return log2f(x); }

DEV_WRAPPER uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

DEV_WRAPPER float bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

/* ---- conversions ---- */

DEV_WRAPPER float to_float(float x) { return x; }
DEV_WRAPPER float to_float(bf16 x) { return host::from_16(host::BF16, x.bits); }
DEV_WRAPPER float to_float(f16 x) { return host::from_16(host::F16, x.bits); }
template <class T> DEV_WRAPPER T from_float(float x) { return T{host::to_16(KindOf<T>::kind, x)}; }
template <> DEV_WRAPPER float from_float<float>(float x) { return x; }

template <class T> DEV_WRAPPER uint32_t pack2(float lo, float hi)
{
    return host::to_16(KindOf<T>::kind, lo) | (uint32_t)host::to_16(KindOf<T>::kind, hi) << 16;
}
template <class T> DEV_WRAPPER float lo2(uint32_t v)
{
    return host::from_16(KindOf<T>::kind, (uint16_t)v);
}
template <class T> DEV_WRAPPER float hi2(uint32_t v)
{
    return host::from_16(KindOf<T>::kind, (uint16_t)(v >> 16));
}

/* ---- asynchronous copies, tensor cores ---- */

DEV_WRAPPER void cp_async16(void *to, const void *from, bool present)
{
    host::cp_async(to, from, present);
}
DEV_WRAPPER void cp_async_commit() { host::cp_async_commit(); }
template <int N> DEV_WRAPPER void cp_async_wait() { host::cp_async_wait(N); }
DEV_WRAPPER void ldmatrix_x4(uint32_t (&r)[4], const void *row)
{
    host::ldmatrix_x4(r, row, false);
}
DEV_WRAPPER void ldmatrix_x4_t(uint32_t (&r)[4], const void *row)
{
    host::ldmatrix_x4(r, row, true);
}
template <class T>
DEV_WRAPPER void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    host::mma(c, a, b0, b1, KindOf<T>::kind);
}
DEV_WRAPPER uint32_t to_tf32(float x) { return host::to_tf32(x); }
DEV_WRAPPER void mma_tf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    host::mma_tf32(c, a, b0, b1);
}

} /* namespace dev */

#endif
