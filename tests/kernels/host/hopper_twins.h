/* hopper_twins.h: the host versions of hopper.cuh's wrappers. hopper.cuh documents the wrappers. */
#ifndef SGT_HOST_HOPPER_TWINS_H
#define SGT_HOST_HOPPER_TWINS_H

#include "kernels/cuda/device.cuh"

namespace dev
{

using host::TensorMap;

DEV_WRAPPER void mbar_init(uint64_t *bar, int arrivals) { host::mbar_init(bar, arrivals); }
DEV_WRAPPER void mbar_init_fence() { host::mbar_init_fence(); }
DEV_WRAPPER void mbar_arrive(uint64_t *bar) { host::mbar_arrive(bar, 0); }
DEV_WRAPPER void mbar_arrive_expect(uint64_t *bar, int bytes) { host::mbar_arrive(bar, bytes); }
DEV_WRAPPER void mbar_wait(uint64_t *bar, int parity) { host::mbar_wait(bar, parity); }
DEV_WRAPPER void tma_load(void *to, const TensorMap *map, uint64_t *bar, int column, int row,
                          int plane)
{
    host::bulk_load(to, map, bar, column, row, plane);
}
DEV_WRAPPER void trap_unless_aligned(const void *p)
{
    host::smem_address(p, 1, 1024, "trap_unless_aligned");
}
DEV_WRAPPER void fence_proxy_async() { host::current->proxy_fences++; }
template <class... R> DEV_WRAPPER void wgmma_fence(R &...touched)
{
    (host::wgmma_ours(&touched, sizeof touched), ...);
    host::wgmma_fence();
}
DEV_WRAPPER void wgmma_commit() { host::wgmma_commit(); }
template <int N, class... R> DEV_WRAPPER void wgmma_wait(R &...ours)
{
    host::wgmma_wait(N);
    (host::wgmma_ours(&ours, sizeof ours), ...);
}
template <int R> DEV_WRAPPER void regs_dec() { host::set_registers(R, false); }
template <int R> DEV_WRAPPER void regs_inc() { host::set_registers(R, true); }
DEV_WRAPPER void turn_wait(int id, int n) { host::named_barrier(id, n, true); }
DEV_WRAPPER void turn_pass(int id, int n) { host::named_barrier(id, n, false); }

template <class T, int BLOCKS>
DEV_WRAPPER void wgmma(float (&d)[BLOCKS][4], uint64_t a, uint64_t b, bool add)
{
    host::wgmma(d[0], 8 * BLOCKS, nullptr, a, b, add, KindOf<T>::kind);
}

template <class T, int BLOCKS>
DEV_WRAPPER void wgmma(float (&d)[BLOCKS][4], const uint32_t (&a)[4], uint64_t b, bool add)
{
    host::wgmma(d[0], 8 * BLOCKS, a, 0, b, add, KindOf<T>::kind);
}

inline bool device_is_hopper() { return host::device_arch() == 90; }

template <class T>
bool tensor_map(TensorMap *map, const T *base, size_t planes, size_t rows, size_t columns,
                size_t stride, unsigned box_rows)
{
    if ((uintptr_t)base % 16 || stride % 8 || box_rows < 1 || box_rows > 256 || !rows || !columns ||
        !planes || (host::may_be_mapped && !host::may_be_mapped(base)))
        return false;
    *map = TensorMap{&base->bits,   (long)planes, (long)rows,
                     (long)columns, (long)stride, (int)box_rows};
    return true;
}

} /* namespace dev */

#endif
