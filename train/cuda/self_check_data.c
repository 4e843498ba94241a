/* self_check_data.c: allocates memory for the checks of the self-check, and fills their input
 * arrays. */
#include "train/cuda/self_check.h"

#include <math.h>
#include <string.h>

#include "kernels/cuda/runtime.h"

int sgt_check_space_open(sgt_check_space *x, size_t bytes, sgt_error *err)
{
    *x = (sgt_check_space){0};
    int rc = sgt_cuda_stream_new(&x->stream, err);
    if (rc == SGT_OK) rc = sgt_cuda_malloc(&x->device, bytes, err);
    return rc == SGT_OK ? sgt_cuda_host_alloc(&x->pinned, bytes, err) : rc;
}

void sgt_check_space_close(sgt_check_space *x)
{
    sgt_cuda_stream_free(x->stream);
    sgt_cuda_free(x->device);
    sgt_cuda_host_free(x->pinned);
}

void sgt_check_fill(float *x, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)((int)((seed >> 16) % 33) - 16) / 16;
    }
}

static uint16_t half_of(float x)
{
    int exponent;
    float fraction = frexpf(fabsf(x), &exponent); /* in [0.5, 1) */
    uint16_t sign = x < 0 ? 0x8000 : 0;
    if (x == 0) return 0;
    return (uint16_t)(sign | (exponent + 14) << 10 | ((int)ldexpf(fraction, 11) - 1024));
}

void sgt_check_encode(void *out, sgt_cuda_type type, const float *x, size_t n)
{
    uint16_t *to = out;
    if (type == SGT_F32) memcpy(out, x, n * sizeof *x);
    else if (type == SGT_BF16) sgt_kernels_ref()->to_bf16(out, x, n);
    else
        for (size_t i = 0; i < n; i++) to[i] = half_of(x[i]);
}

const char *sgt_check_type(sgt_cuda_type type)
{
    return type == SGT_F32 ? "float32" : type == SGT_F16 ? "fp16" : "bf16";
}
