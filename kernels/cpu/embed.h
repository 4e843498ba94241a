/* embed.h: token plus position embedding, and its gradients. */
#include "kernels/kernels.h"
#include "kernels/cpu/simd.h"

static void embed(float *out, const int32_t *ids, const float *wte, const float *wpe, size_t row0,
                  size_t n, size_t T, size_t C)
{
    for (size_t i = 0; i < n; i++, out += C) {
        const float *token = wte + (size_t)ids[i] * C, *place = wpe + (row0 + i) % T * C;
        for (size_t c = 0; c < C; c += W)
            vstore_upto(out + c, vload_upto(token + c, C - c) + vload_upto(place + c, C - c),
                        C - c);
    }
}

/* Return new^2 - old^2 in each lane. */
SGT_INLINE vd growth(vd old, vd new) { return (new - old) * (new + old); }

static double embed_backward(float *dwte, float *dwpe, const int32_t *ids, const float *dout,
                             size_t n, size_t T, size_t C, size_t c0, size_t c1)
{
    vd grown = vdset(0);
    for (size_t i = 0; i < n; i++, dout += C) {
        float *token = dwte + (size_t)ids[i] * C, *place = dwpe + i % T * C;
        for (size_t c = c0; c < c1; c += W) {
            vf d = vload_upto(dout + c, c1 - c), old = vload_upto(token + c, c1 - c), sum = old + d;
            vstore_upto(token + c, sum, c1 - c);
            grown += growth(vlow(old), vlow(sum)) + growth(vhigh(old), vhigh(sum));
            vstore_upto(place + c, vload_upto(place + c, c1 - c) + d, c1 - c);
        }
    }
    return vdtotal(grown);
}
