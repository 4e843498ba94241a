/* check-cuda.h: what the cases of check-cuda are written with, beside harness.h's own.
 *
 *     CUDA_CASE(gelu)                                                // in tests/kernels/cuda_cases_NAME.cpp or .cu
 *     {
 *         auto *x = cuda_random<dev::bf16>(t, n, 1);                  // uniform in -1 ... 1, rounded to bf16
 *         auto *out = cuda_output<dev::bf16>(t, n);                   // NaN until written
 *         check_at(t, "n %zu", n);
 *         sgt_cuda_gelu(0, SGT_BF16, out, x, n, SGT_GELU_TANH);
 *         cuda_sync(t);                                              // before the results are looked at
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
    cuda_case(const char *name_, void (*body_)(check *t)); /* puts itself among the cases */
};

const cuda_case *cuda_first_case();

#define CUDA_CASE(name)                                     \
    static void case_##name(check *t);                      \
    static cuda_case registered_##name(#name, case_##name); \
    static void case_##name(check *t)

/* Everything launched so far has ended. */
void cuda_sync(check *t);

/* Whether what hopper.cuh wraps can run here; where not, the case is skipped: if (!cuda_hopper(t))
 * return; */
bool cuda_hopper(check *t);

/* Whether the device is a card, with its memory and speed; where not, the case is skipped. */
bool cuda_card(check *t);

/* The address by which the device knows a buffer, for what is no launch's argument: a library's
 * call, a tensor map. What the buffer holds is there from now on. */
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

/* x as floats; where x is still as cuda_output left it, a NaN. */
template <class T> float *cuda_floats(check *t, const T *x, size_t n)
{
    float *floats = check_output(t, n);
    for (size_t i = 0; i < n; i++) floats[i] = dev::to_float(x[i]);
    return floats;
}

#endif
