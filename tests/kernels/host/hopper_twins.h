/* hopper_twins.h: the host forms of hopper.cuh's wrappers; what each means is said there. */
#ifndef SGT_HOST_HOPPER_TWINS_H
#define SGT_HOST_HOPPER_TWINS_H

#include "cuda/device.cuh"

namespace dev {

using host::TensorMap;

DEV_WRAPPER void mbar_init(uint64_t *bar, int arrivals) { host::mbar_init(bar, arrivals); }
DEV_WRAPPER void mbar_init_fence() {}
DEV_WRAPPER void mbar_arrive(uint64_t *bar) { host::mbar_arrive(bar, 0); }
DEV_WRAPPER void mbar_arrive_expect(uint64_t *bar, int bytes) { host::mbar_arrive(bar, bytes); }
DEV_WRAPPER void mbar_wait(uint64_t *bar, int parity) { host::mbar_wait(bar, parity); }
DEV_WRAPPER void tma_load_2d(void *to, const TensorMap *map, uint64_t *bar, int column, int row)
{
    host::bulk_load_2d(to, map, bar, column, row);
}
DEV_WRAPPER void fence_proxy_async() { host::current->proxy_fences++; }
DEV_WRAPPER void wgmma_fence() {}
DEV_WRAPPER void wgmma_commit() { host::wgmma_commit(); }
template <int N> DEV_WRAPPER void wgmma_wait() { host::wgmma_wait(N); }
template <int R> DEV_WRAPPER void regs_dec() {}
template <int R> DEV_WRAPPER void regs_inc() {}

template <class T, int ELEMENTS> DEV_WRAPPER void wgmma(float (&d)[ELEMENTS], uint64_t a, uint64_t b, bool add)
{
    host::wgmma(d, 2 * ELEMENTS, a, b, add, KindOf<T>::kind);
}

template <class T>
bool tensor_map_2d(TensorMap *map, const T *base, size_t rows, size_t columns, size_t stride, unsigned box_rows)
{
    if ((uintptr_t)base % 16 || stride % 8 || box_rows < 1 || box_rows > 256 || !rows || !columns) return false;
    *map = TensorMap{&base->bits, (long)rows, (long)columns, (long)stride, (int)box_rows};
    return true;
}

} /* namespace dev */

#endif
