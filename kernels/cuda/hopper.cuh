/* hopper.cuh: wrappers of what only sm_90a has: mbarriers with bytes, TMA, wgmma. As device.cuh: each has a host twin,
 * and the device forms are not yet run on a GPU. Compiled for an older device they trap: kernels that use them are
 * launched on sm_90 alone. */
#ifndef SGT_HOPPER_CUH
#define SGT_HOPPER_CUH

#include "device.cuh"

#ifdef __CUDACC__
#include <cuda.h>

#include <type_traits>
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define HOPPER_ASM(...) asm volatile(__VA_ARGS__)
#else
#define HOPPER_ASM(...) __trap()
#endif
#else
#include "host/hopper_twins.h"
#endif

#ifdef __CUDACC__

namespace dev {

/* A matrix in global memory as TMA sees it; made by tensor_map_2d, passed to kernels as const __grid_constant__. */
using TensorMap = CUtensorMap;

/* ---- mbarriers: 8 bytes of shared memory; a phase ends when all have arrived and all announced bytes landed ---- */

/* By one thread, for `arrivals` a phase; then mbar_init_fence and a block_sync before others use it. */
DEV void mbar_init(uint64_t *bar, int arrivals)
{
    HOPPER_ASM("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(saddr(bar)), "r"(arrivals) : "memory");
}

DEV void mbar_init_fence() { HOPPER_ASM("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/* Arrives; with bytes: and announces that many to land by TMA in this phase. */
DEV void mbar_arrive(uint64_t *bar)
{
    HOPPER_ASM("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(saddr(bar)) : "memory");
}

DEV void mbar_arrive_expect(uint64_t *bar, int bytes)
{
    HOPPER_ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(saddr(bar)), "r"(bytes) : "memory");
}

/* Waits for the end of the phase of that parity: the first is 0, the next 1, and so on in turn. */
DEV void mbar_wait(uint64_t *bar, int parity)
{
    HOPPER_ASM("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; "
               "@p bra DONE; bra WAIT; DONE: }" ::"r"(saddr(bar)),
               "r"(parity)
               : "memory");
}

/* ---- TMA ---- */

/* A box of the map's box_rows rows of 64 elements, from (row, column) on, to `to` (1024-byte aligned shared memory):
 * rows of 128 bytes whose 16-byte pieces are swizzled, piece p of row r at p ^ r%8. What lies outside the matrix
 * becomes 0. Started by one thread; its 128*box_rows bytes land on `bar`. */
DEV void tma_load_2d(void *to, const TensorMap *map, uint64_t *bar, int column, int row)
{
    HOPPER_ASM("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
               "[%2];" ::"r"(saddr(to)),
               "l"(map), "r"(saddr(bar)), "r"(column), "r"(row)
               : "memory");
}

/* This thread's writes to shared memory before are seen by TMA and wgmma after. */
DEV void fence_proxy_async() { HOPPER_ASM("fence.proxy.async.shared::cta;" ::: "memory"); }

/* ---- wgmma: the 128 threads of a group, T is bf16 or f16 ---- */

/* Before the first product and whenever registers of an accumulator were touched in between. */
DEV void wgmma_fence() { HOPPER_ASM("wgmma.fence.sync.aligned;" ::: "memory"); }

/* Products are committed in groups; waits until at most N of them are under way. Accumulators and operands are not to
 * be touched before. */
DEV void wgmma_commit() { HOPPER_ASM("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> DEV void wgmma_wait() { HOPPER_ASM("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }

/* Registers of each thread of the group, a multiple of 8 (group). */
template <int R> DEV void regs_dec() { HOPPER_ASM("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(R)); }
template <int R> DEV void regs_inc() { HOPPER_ASM("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(R)); }

/* d (64, 2 ELEMENTS) = a (64, 16) b^T (2 ELEMENTS, 16) [+ d where add], both operands in shared memory as
 * tma_load_2d leaves them, given by desc_sw128. d[4c + e] of thread i is element
 * (i/32*16 + g + e/2*8, 8c + 2t + e%2). */
template <class T, int ELEMENTS> DEV void wgmma(float (&d)[ELEMENTS], uint64_t a, uint64_t b, bool add);

#define WGMMA_N64(type)                                                                                                \
    HOPPER_ASM(                                                                                                        \
        "{ .reg .pred p; setp.ne.b32 p, %34, 0; "                                                                      \
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " "                                                \
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "                  \
        "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "                                                \
        "%32, %33, p, 1, 1, 0, 0; }"                                                                                   \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),              \
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),        \
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),      \
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])       \
        : "l"(a), "l"(b), "r"((int)add))

#define WGMMA_N128(type)                                                                                               \
    HOPPER_ASM(                                                                                                        \
        "{ .reg .pred p; setp.ne.b32 p, %66, 0; "                                                                      \
        "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " "                                               \
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "                  \
        "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "                   \
        "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "                   \
        "%56, %57, %58, %59, %60, %61, %62, %63}, "                                                                    \
        "%64, %65, p, 1, 1, 0, 0; }"                                                                                   \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),              \
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),        \
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),      \
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),      \
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),      \
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),      \
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),      \
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])       \
        : "l"(a), "l"(b), "r"((int)add))

template <> DEV void wgmma<bf16, 32>(float (&d)[32], uint64_t a, uint64_t b, bool add) { WGMMA_N64("bf16"); }
template <> DEV void wgmma<f16, 32>(float (&d)[32], uint64_t a, uint64_t b, bool add) { WGMMA_N64("f16"); }
template <> DEV void wgmma<bf16, 64>(float (&d)[64], uint64_t a, uint64_t b, bool add) { WGMMA_N128("bf16"); }
template <> DEV void wgmma<f16, 64>(float (&d)[64], uint64_t a, uint64_t b, bool add) { WGMMA_N128("f16"); }
#undef WGMMA_N64
#undef WGMMA_N128

/* ---- on the CPU's side ---- */

/* The map of a (rows, columns) matrix of bf16 or f16, `stride` elements from row to row (a multiple of 8; base 16-byte
 * aligned), read in boxes of box_rows (at most 256) x 64. False where the driver refuses or cannot be reached. */
template <class T> bool tensor_map_2d(TensorMap *map, const T *base, size_t rows, size_t columns, size_t stride,
                                      unsigned box_rows)
{
    void *encode = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found) !=
            cudaSuccess ||
        !encode)
        return false;
    cuuint64_t sizes[2] = {columns, rows}, strides[1] = {stride * 2};
    cuuint32_t box[2] = {64, box_rows}, steps[2] = {1, 1};
    CUtensorMapDataType type =
        std::is_same<T, bf16>::value ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    return ((decltype(&cuTensorMapEncodeTiled))encode)(map, type, 2, (void *)base, sizes, strides, box, steps,
                                                       CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                                       CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                                       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

} /* namespace dev */

#endif /* __CUDACC__ */

namespace dev {

/* wgmma's descriptor of an operand at p (1024-byte aligned): rows of 128 bytes, 8 rows a group of 1024 bytes, swizzled
 * by 128. Add DESC_K16 for the next 16 columns. */
constexpr uint64_t DESC_K16 = 16 * 2 >> 4;

DEV_WRAPPER uint64_t desc_sw128(const void *p)
{
    return (uint64_t)(saddr(p) & 0x3ffff) >> 4 | 1ull << 16 | (uint64_t)(1024 >> 4) << 32 | 1ull << 62;
}

} /* namespace dev */

#endif
