/* cuda_types.h: the three number types with which CUDA cases run, and the rounding error of each
 * type.
 *
 *     template <class T> static void gelu_of(check *t);
 *     CUDA_CASE(cuda_gelu_f32) { gelu_of<float>(t); }
 *     CUDA_CASE(cuda_gelu_bf16) { gelu_of<dev::bf16>(t); }
 *     CUDA_CASE(cuda_gelu_f16) { gelu_of<dev::f16>(t); } */
#ifndef SGT_CUDA_TYPES_H
#define SGT_CUDA_TYPES_H

#include <math.h>

#include <initializer_list>

/* The path is needed, because nvcc would take "cuda.h" for CUDA's own header. */
#include "kernels/cuda/cuda.h"
#include "tests/kernels/host/check-cuda.h"

template <class T> struct Type;
template <> struct Type<float> {
    static constexpr sgt_cuda_type id = SGT_F32;
    static constexpr double unit = UNIT, tiny = 1e-37;
};
template <> struct Type<dev::bf16> {
    static constexpr sgt_cuda_type id = SGT_BF16;
    static constexpr double unit = 0x1p-8, tiny = 1e-37;
};
template <> struct Type<dev::f16> {
    static constexpr sgt_cuda_type id = SGT_F16;
    static constexpr double unit = 0x1p-11, tiny = 0x1p-25; /* half of the smallest subnormal */
};

/* Turn a bound on float results into a bound on results stored as T. */
template <class T> static inline void stored_as(double *bound, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bound[i] += Type<T>::unit * (fabs((double)want[i]) + bound[i]) + Type<T>::tiny;
}

#define CUDA_CASES_BY_TYPE(name, body)             \
    CUDA_CASE(name##_f32) { body<float>(t); }      \
    CUDA_CASE(name##_bf16) { body<dev::bf16>(t); } \
    CUDA_CASE(name##_f16) { body<dev::f16>(t); }

#endif
