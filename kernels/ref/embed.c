/* embed.c: token plus position embedding, and its gradients. */
#include "kernels/ref/ref.h"

void sgt_ref_embed(float *out, const int32_t *ids, const float *wte, const float *wpe, size_t row0,
                   size_t n, size_t T, size_t C)
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < C; c++)
            out[i * C + c] = wte[(size_t)ids[i] * C + c] + wpe[(row0 + i) % T * C + c];
}

/* Add to dwte and dwpe with one float addition per row, in order of i, so that every CPU level
 * gives the same bits. Return by how much the sum of squares of dwte has grown. */
double sgt_ref_embed_backward(float *dwte, float *dwpe, const int32_t *ids, const float *dout,
                              size_t n, size_t T, size_t C, size_t c0, size_t c1)
{
    double grown = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t c = c0; c < c1; c++) {
            float *token = dwte + (size_t)ids[i] * C + c, old = *token;
            *token += dout[i * C + c];
            dwpe[i % T * C + c] += dout[i * C + c];
            grown += (double)*token * *token - (double)old * old;
        }
    return grown;
}
