/* cublaslt_types.h: the descriptors of the host's stand-in for cuBLASLt, and its enumeration
 * values. Only cublaslt.cpp includes it. */
#ifndef SGT_HOST_CUBLASLT_TYPES_H
#define SGT_HOST_CUBLASLT_TYPES_H

#include <math.h>

#include "kernels/cuda/cublaslt.h"
#include "tests/kernels/host/cublaslt.h"
#include "tests/kernels/host/host.h"

struct sgt_lt_context {
    bool open;
};

struct sgt_lt_desc_opaque {
    sgt_lt_compute compute;
    sgt_lt_type scale;
    int32_t pointer_mode, trans[2], aux_type, bias_type;
    uint32_t epilogue;
    void *bias, *aux;
    int64_t aux_ld;
};

struct sgt_lt_layout_opaque {
    int32_t type, order, batch;
    uint64_t rows, columns;
    int64_t ld, stride;
};

struct sgt_lt_preference_opaque {
    uint64_t workspace;
    uint32_t reductions, alignment[4];
};

namespace host
{

using Desc = sgt_lt_desc_opaque;
using Layout = sgt_lt_layout_opaque;

inline size_t size_of(int32_t type) { return type == SGT_LT_R_32F ? 4 : 2; }

inline double load(const void *p, int32_t type, size_t i)
{
    if (type == SGT_LT_R_32F) return static_cast<const float *>(p)[i];
    return from_16(type == SGT_LT_R_16BF ? BF16 : F16, static_cast<const uint16_t *>(p)[i]);
}

inline void store(void *p, int32_t type, size_t i, double x)
{
    if (type == SGT_LT_R_32F) static_cast<float *>(p)[i] = (float)x;
    else static_cast<uint16_t *>(p)[i] = to_16(type == SGT_LT_R_16BF ? BF16 : F16, (float)x);
}

inline double rounded(double x, int32_t type)
{
    float f;
    store(&f, type, 0, x);
    return load(&f, type, 0);
}

/* Round to TF32: 10 fraction bits, nearest even. */
inline double to_tf32(double x)
{
    int exponent;
    double mantissa = frexp(x, &exponent); /* 0.5 <= |mantissa| < 1: 11 bits */
    return ldexp(nearbyint(ldexp(mantissa, 11)), exponent - 11);
}

const double ROOT = 0.79788456080286535588, CUBE = 0.044715; /* sqrt(2/pi) */

/* Return tanh u of GELU's formula. Its error is lt.tanh_error, with a sign that depends on a bit of
 * x. */
inline double tanh_of(double x)
{
    double off = (int64_t)(x * 0x1p20) & 1 ? lt.tanh_error : -lt.tanh_error;
    return tanh(ROOT * (x + CUBE * x * x * x)) * (1 + off);
}

inline double gelu(double x) { return 0.5 * x * (1 + tanh_of(x)); }

inline double gelu_slope(double x)
{
    double t = tanh_of(x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * ROOT * (1 + 3 * CUBE * x * x);
}

struct Job {
    Desc p;
    Layout layouts[4]; /* A, B, C, D */
    const void *a, *b, *c;
    void *d, *workspace;
    size_t workspace_size;
    double alpha, beta;
    int algo;
};

} /* namespace host */

#endif
