/* gemm_expected.c: computes the expected value of an element of a matrix product, and the largest
 * error that a correct result can have. gemm.c, the self-check and the tests use this to check
 * algorithms. */
#include <math.h>
#include <string.h>

#include "kernels/cuda/gemm.h"

double sgt_cuda_decode(const void *x, sgt_cuda_type type, size_t i)
{
    float value;
    if (type == SGT_F32) return (double)((const float *)x)[i];
    uint16_t half = ((const uint16_t *)x)[i];
    uint32_t bits = (uint32_t)half << 16;
    /* Convert fp16 to float: move the bits to their places in a float. The value is then too small
     * by a factor of 2^112, because the exponent bias of a float is 127, and that of fp16 is 15.
     * Multiplying by 2^112 gives the correct value, even of subnormal numbers. */
    if (type == SGT_F16) {
        bits = (bits & 0x80000000u) | (bits & 0x7fff0000u) >> 3;
        memcpy(&value, &bits, sizeof value);
        return (half & 0x7c00) == 0x7c00 ? NAN : (double)value * 0x1p112;
    }
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

double sgt_cuda_unit(sgt_cuda_type type)
{
    return type == SGT_F32 ? 0x1p-24 : type == SGT_F16 ? 0x1p-11 : 0x1p-8;
}

static const double root = 0.79788456080286535588, cube = 0.044715; /* sqrt(2/pi) */

static double slope(double x)
{
    double t = tanh(root * (x + cube * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * cube * x * x);
}

double sgt_cuda_gemm_expected(const sgt_cuda_gemm_shape *s, double x, double onto, double bias,
                              double aux, double *off)
{
    double u = sgt_cuda_unit(s->out);
    int changes = s->epilogue != SGT_EPILOGUE_NONE;
    if (s->accumulate || changes) *off += u * fabs(x);
    if (s->accumulate) x += onto;
    if (s->accumulate && changes) *off += u * fabs(x);
    if (s->epilogue == SGT_EPILOGUE_BIAS || s->epilogue == SGT_EPILOGUE_GELU) x += bias;
    if (s->epilogue == SGT_EPILOGUE_GELU) {
        /* 1.2 * u allows for a library that rounds aux to D's type before it applies GELU to
         * aux. */
        *off = 1.2 * *off + fabs(x) * (0x1p-11 + 1.2 * u);
        x = 0.5 * x * (1 + tanh(root * (x + cube * x * x * x)));
    } else if (s->epilogue == SGT_EPILOGUE_DGELU) {
        *off = 1.2 * *off + fabs(x) * 1.5 * 0x1p-11;
        x *= slope(aux);
    }
    *off += u * fabs(x);
    return x;
}
