/* hopper.cuh: wrappers for features that only sm_90a has: mbarriers with byte counts, TMA, wgmma.
 * As in device.cuh, each wrapper has a second form for the host. If a wrapper is compiled for an
 * older device, it stops the kernel with a trap. Kernels that use these wrappers are launched only
 * on sm_90. */
#ifndef SGT_HOPPER_CUH
#define SGT_HOPPER_CUH

#include "kernels/cuda/device.cuh"

#ifdef __CUDACC__
#include <cuda.h>

#include <type_traits>
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define HOPPER_ASM(...) asm volatile(__VA_ARGS__)
#else
#define HOPPER_ASM(...) __trap()
#endif
#else
#include "tests/kernels/host/hopper_twins.h"
#endif

#ifdef __CUDACC__

namespace dev
{

/* Description of a tensor in global memory for TMA: address, type, sizes, strides, and the box to
 * copy. tensor_map creates it. A kernel must take a TensorMap as a const __grid_constant__
 * parameter. */
using TensorMap = CUtensorMap;

/* ---- mbarriers: barriers in 8 bytes of shared memory, each of which can be used many times. Each
 * use is a phase. A phase ends when all expected threads have arrived and TMA has written all bytes
 * that they announced with mbar_arrive_expect. ---- */

/* Initialize a barrier whose phases end after `arrivals` arrivals. One thread calls mbar_init for
 * each barrier, and then mbar_init_fence. After a block_sync, all threads may use the barrier. */
DEV void mbar_init(uint64_t *bar, int arrivals)
{
    HOPPER_ASM("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(saddr(bar)), "r"(arrivals)
               : "memory");
}

DEV void mbar_init_fence() { HOPPER_ASM("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/* Arrive at a barrier. mbar_arrive_expect also announces how many bytes TMA will write in this
 * phase. The phase does not end before these bytes are written. */
DEV void mbar_arrive(uint64_t *bar)
{
    HOPPER_ASM("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(saddr(bar)) : "memory");
}

DEV void mbar_arrive_expect(uint64_t *bar, int bytes)
{
    HOPPER_ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(saddr(bar)),
               "r"(bytes)
               : "memory");
}

/* Wait until a phase of the barrier has ended. `parity` is 0 for the first, third, fifth ... phase,
 * and 1 for the second, fourth, sixth ... phase. */
DEV void mbar_wait(uint64_t *bar, int parity)
{
    HOPPER_ASM("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra "
               "DONE; bra WAIT; DONE: }" ::"r"(saddr(bar)),
               "r"(parity)
               : "memory");
}

/* ---- TMA ---- */

/* Start copying a box of the tensor to `to`, which is in shared memory and 1024-byte aligned. The
 * box has box_rows rows (see tensor_map) of 64 elements, and begins at (plane, row, column). A row
 * is 128 bytes: 8 chunks of 16 bytes. To avoid bank conflicts, TMA swizzles them: chunk p of row r
 * is stored as chunk p ^ r%8. Elements outside the plane become 0. One thread calls this. When the
 * copy is complete, its 128*box_rows bytes count towards the bytes that were announced to the
 * barrier `bar` with mbar_arrive_expect. */
DEV void tma_load(void *to, const TensorMap *map, uint64_t *bar, int column, int row, int plane)
{
    HOPPER_ASM("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(saddr(to)),
               "l"(map), "r"(saddr(bar)), "r"(column), "r"(row), "r"(plane)
               : "memory");
}

/* Stop the kernel with an error unless p, in shared memory, is 1024-byte aligned. At other
 * addresses, TMA and wgmma would swizzle rows in a different order, so results would be wrong. */
DEV void trap_unless_aligned(const void *p)
{
    uint32_t at = saddr(p);
    /* Hide the origin of `at` from nvcc. Otherwise nvcc would conclude from p's declared alignment
     * that the check below always succeeds, and would remove the check. */
    HOPPER_ASM("" : "+r"(at));
    if (at % 1024) __trap();
}

/* Make this thread's earlier writes to shared memory visible to later TMA and wgmma operations. */
DEV void fence_proxy_async() { HOPPER_ASM("fence.proxy.async.shared::cta;" ::: "memory"); }

/* ---- wgmma: the 128 threads of a warpgroup call these functions together; T is bf16 or f16 ----
 *
 * In each thread, an accumulator d[BLOCKS][4] holds a part of the warpgroup's (64, 8 BLOCKS)
 * matrix. With g = lane/4 and t = lane%4, d[c][e] of thread i is element (i/32*16 + g + e/2*8, 8c +
 * 2t + e%2). So each warp has 16 rows, in the layout of mma's c.
 *
 * A wgmma runs asynchronously. Until wgmma_wait returns, the threads must not read or write the
 * registers of the accumulator and of the left operand, nor change operands in shared memory. */

/* Tell the compiler that the registers d or a change here, so that it does not move reads and
 * writes of these registers across this point. The compiler does not know when an asynchronous
 * wgmma uses the registers. */
template <int N> DEV void wgmma_pin(float (&d)[N][4])
{
    DEV_UNROLL_FOR (int i = 0; i < N; i++)
        asm volatile("" : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])::"memory");
}
template <int N> DEV void wgmma_pin(uint32_t (&a)[N][4])
{
    DEV_UNROLL_FOR (int i = 0; i < N; i++)
        asm volatile("" : "+r"(a[i][0]), "+r"(a[i][1]), "+r"(a[i][2]), "+r"(a[i][3])::"memory");
}

/* Make registers ready for a wgmma. Call this before the first wgmma, and before each later wgmma
 * whose accumulator or left operand the threads have read or written since the previous wgmma. Pass
 * the registers that the threads have read or written. */
template <class... R> DEV void wgmma_fence(R &...touched)
{
    (wgmma_pin(touched), ...);
    HOPPER_ASM("wgmma.fence.sync.aligned;" ::: "memory");
}

/* wgmma_commit collects all wgmma operations since the last commit in a group. wgmma_wait<N> waits
 * until all groups but the N newest are finished. Pass to wgmma_wait the accumulators and left
 * operands that the threads use after the wait. */
DEV void wgmma_commit() { HOPPER_ASM("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N, class... R> DEV void wgmma_wait(R &...ours)
{
    HOPPER_ASM("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
    (wgmma_pin(ours), ...);
}

/* Lower (regs_dec) or raise (regs_inc) the number of registers per thread of the calling warpgroup
 * to R, a multiple of 8 from 24 to 256. */
template <int R> DEV void regs_dec() { HOPPER_ASM("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(R)); }
template <int R> DEV void regs_inc() { HOPPER_ASM("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(R)); }

/* Let two groups of threads take turns, with hardware barrier `id` (1..15). n is the number of
 * threads of both groups together, a multiple of 32. turn_wait arrives at the barrier and waits
 * until all n threads have arrived. turn_pass arrives at the barrier without waiting. */
DEV void turn_wait(int id, int n) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory"); }
DEV void turn_pass(int id, int n)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n) : "memory");
}

/* Start computing d (64, 8 BLOCKS) = a (64, 16) b^T, where b is (8 BLOCKS, 16), or d += a b^T if
 * `add` is true. Both operands are in shared memory, as tma_load stores them. The arguments a and b
 * are the operands' descriptors, from desc_rows. */
template <class T, int BLOCKS>
DEV void wgmma(float (&d)[BLOCKS][4], uint64_t a, uint64_t b, bool add);

/* Start computing d (64, 8 BLOCKS) = a (64, 16) b, where b is (16, 8 BLOCKS), or d += a b if `add`
 * is true. a is in registers: each warp has 16 rows in the layout of mma's left operand. b is in
 * shared memory, as tma_load stores it, and the argument b is its descriptor, from desc_columns. */
template <class T, int BLOCKS>
DEV void wgmma(float (&d)[BLOCKS][4], const uint32_t (&a)[4], uint64_t b, bool add);

#define WGMMA_D(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define WGMMA_D64 \
    WGMMA_D(0), WGMMA_D(1), WGMMA_D(2), WGMMA_D(3), WGMMA_D(4), WGMMA_D(5), WGMMA_D(6), WGMMA_D(7)
#define WGMMA_D128                                                                         \
    WGMMA_D64, WGMMA_D(8), WGMMA_D(9), WGMMA_D(10), WGMMA_D(11), WGMMA_D(12), WGMMA_D(13), \
        WGMMA_D(14), WGMMA_D(15)
#define WGMMA_REGISTERS64                                                              \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, " \
    "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WGMMA_REGISTERS128                                                               \
    WGMMA_REGISTERS64                                                                    \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

/* One wgmma instruction, as inline assembly:
 *   n         columns of d, in digits
 *   operands  placeholders (%N) of a and b, as text; `last`: placeholder of `add`
 *   flags     which operands are transposed
 *   ...       a: its descriptor or its registers */
#define WGMMA(n, type, operands, last, flags, d, ...)                           \
    HOPPER_ASM("{ .reg .pred p; setp.ne.b32 p, " last ", 0; "                   \
               "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type  \
               " {" WGMMA_REGISTERS##n "}, " operands ", p, 1, 1, " flags "; }" \
               : d                                                              \
               : __VA_ARGS__, "l"(b), "r"((int)add))
#define WGMMA_ROWS(a) "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])

#define WGMMA_OF(T, type)                                                                          \
    template <> DEV void wgmma<T, 8>(float(&d)[8][4], uint64_t a, uint64_t b, bool add)            \
    {                                                                                              \
        WGMMA(64, type, "%32, %33", "%34", "0, 0", WGMMA_D64, "l"(a));                             \
    }                                                                                              \
    template <> DEV void wgmma<T, 8>(float(&d)[8][4], const uint32_t(&a)[4], uint64_t b, bool add) \
    {                                                                                              \
        WGMMA(64, type, "{%32, %33, %34, %35}, %36", "%37", "1", WGMMA_D64, WGMMA_ROWS(a));        \
    }                                                                                              \
    template <> DEV void wgmma<T, 16>(float(&d)[16][4], uint64_t a, uint64_t b, bool add)          \
    {                                                                                              \
        WGMMA(128, type, "%64, %65", "%66", "0, 0", WGMMA_D128, "l"(a));                           \
    }                                                                                              \
    template <>                                                                                    \
    DEV void wgmma<T, 16>(float(&d)[16][4], const uint32_t(&a)[4], uint64_t b, bool add)           \
    {                                                                                              \
        WGMMA(128, type, "{%64, %65, %66, %67}, %68", "%69", "1", WGMMA_D128, WGMMA_ROWS(a));      \
    }
WGMMA_OF(bf16, "bf16")
WGMMA_OF(f16, "f16")
#undef WGMMA_D
#undef WGMMA_D64
#undef WGMMA_D128
#undef WGMMA_REGISTERS64
#undef WGMMA_REGISTERS128
#undef WGMMA
#undef WGMMA_ROWS
#undef WGMMA_OF

/* ---- on the host ---- */

/* Return whether the current device is sm_90, the only device for which these wrappers are
 * compiled. */
inline bool device_is_hopper()
{
    int device, major, minor;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ==
               cudaSuccess &&
           cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) ==
               cudaSuccess &&
           major == 9 && minor == 0;
}

/* Create the TensorMap of a tensor (planes, rows, columns) of bf16 or f16, from which TMA copies
 * boxes of box_rows (at most 256) x 64 elements. Consecutive rows are `stride` elements apart, a
 * multiple of 8. Consecutive planes are rows*stride elements apart. base must be 16-byte aligned.
 * Return false if the driver rejects the map or is not available. */
template <class T>
bool tensor_map(TensorMap *map, const T *base, size_t planes, size_t rows, size_t columns,
                size_t stride, unsigned box_rows)
{
    void *encode = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000,
                                         cudaEnableDefault, &found) != cudaSuccess ||
        !encode)
        return false;
    cuuint64_t sizes[3] = {columns, rows, planes}, strides[2] = {stride * 2, rows * stride * 2};
    cuuint32_t box[3] = {64, box_rows, 1}, steps[3] = {1, 1, 1};
    CUtensorMapDataType type = std::is_same<T, bf16>::value ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                            : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    return ((decltype(&cuTensorMapEncodeTiled))encode)(
               map, type, 3, (void *)base, sizes, strides, box, steps,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

} /* namespace dev */

#endif /* __CUDACC__ */

namespace dev
{

/* Return the descriptor by which wgmma finds an operand in shared memory. p points to a tile of
 * rows of 64 elements, as tma_load stores them, and is 1024-byte aligned. One wgmma sums over 16
 * elements:
 *   desc_rows     16 consecutive elements of a row; add DESC_K16 for the next 16 columns
 *   desc_columns  elements in 16 consecutive rows; add DESC_ROWS16 for the next 16 rows
 * `next` is the distance in bytes to the tile with the next 64 columns. */
constexpr uint64_t DESC_K16 = 16 * 2 >> 4, DESC_ROWS16 = 16 * 128 >> 4;

DEV_WRAPPER uint64_t desc_columns(const void *p, int next)
{
    return (uint64_t)(saddr(p) & 0x3ffff) >> 4 | (uint64_t)(next >> 4) << 16 |
           (uint64_t)(1024 >> 4) << 32 | 1ull << 62;
}

DEV_WRAPPER uint64_t desc_rows(const void *p) { return desc_columns(p, 16); }

} /* namespace dev */

#endif
