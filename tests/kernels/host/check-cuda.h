/* check-cuda.h: what the cases of check-cuda use in addition to harness.h.
 *
 *     CUDA_CASE(gelu)                                 // in cuda_cases_NAME.cpp or .cu
 *     {
 *         auto *x = cuda_random<dev::bf16>(t, n, 1);  // uniform in -1 ... 1, rounded to bf16
 *         auto *out = cuda_output<dev::bf16>(t, n);   // NaN until written
 *         check_at(t, "n %zu", n);
 *         sgt_cuda_gelu(0, SGT_BF16, out, x, n, SGT_GELU_TANH);
 *         cuda_sync(t);                               // before the results are read
 *         check_close(t, "out", cuda_floats(t, out, n), want, bound, n);
 *     }
 *
 * Buffers lie between guard pages and stand for device memory: 16-byte aligned. A case runs once
 * for each placement, with the same random numbers. */
#ifndef SGT_CHECK_CUDA_H
#define SGT_CHECK_CUDA_H

#include "kernels/cuda/device.cuh"
#include "tests/kernels/harness.h"

struct cuda_case {
    const char *name;
    void (*body)(check *t);
    cuda_case *next;
    cuda_case(const char *name_, void (*body_)(check *t)); /* registers itself as a case */
};

const cuda_case *cuda_first_case();

#define CUDA_CASE(name)                                     \
    static void case_##name(check *t);                      \
    static cuda_case registered_##name(#name, case_##name); \
    static void case_##name(check *t)

/* Wait until everything launched so far has finished. */
void cuda_sync(check *t);

/* Return whether hopper.cuh's wrappers can run here. If not, skip the case. Use: if
 * (!cuda_hopper(t)) return; */
bool cuda_hopper(check *t);

/* Return whether the device is a GPU with a GPU's memory and speed. If not, skip the case. */
bool cuda_card(check *t);

/* Return the device address of a buffer, for uses other than launch arguments, such as a library
 * call or a tensor map. The buffer's contents are copied to the device by this call. */
void *cuda_address(check *t, void *p);
template <class T> T *cuda_there(check *t, T *p) { return static_cast<T *>(cuda_address(t, p)); }

template <class T> T *cuda_output(check *t, size_t n)
{
    return static_cast<T *>(check_bytes(t, n * sizeof(T)));
}

template <class T> T *cuda_copy(check *t, const T *x, size_t n)
{
    T *copy = cuda_output<T>(t, n);
    for (size_t i = 0; i < n; i++) copy[i] = x[i];
    return copy;
}

template <class T> T *cuda_random(check *t, size_t n, float scale)
{
    const float *x = check_random(t, n, scale);
    T *rounded = cuda_output<T>(t, n);
    for (size_t i = 0; i < n; i++) rounded[i] = dev::from_float<T>(x[i]);
    return rounded;
}

/* Return x as floats. Elements that were not written since cuda_output become NaN. */
template <class T> float *cuda_floats(check *t, const T *x, size_t n)
{
    float *floats = check_output(t, n);
    for (size_t i = 0; i < n; i++) floats[i] = dev::to_float(x[i]);
    return floats;
}

#endif
