/* bias.c: the gradient of a bias. A bias is added to every row, so its gradient is the sum over
 * rows. */
#include "kernels/ref/ref.h"

void sgt_ref_bias_backward(float *db, const float *dout, size_t n, size_t C, size_t ld)
{
    for (size_t c = 0; c < C; c++) {
        double sum = db[c];
        for (size_t i = 0; i < n; i++) sum += dout[i * ld + c];
        db[c] = (float)sum;
    }
}

void sgt_ref_bias_backward_bf16(float *db, const uint16_t *dout, size_t n, size_t C, size_t ld)
{
    for (size_t c = 0; c < C; c++) {
        double sum = db[c];
        for (size_t i = 0; i < n; i++) sum += sgt_ref_widened(dout[i * ld + c]);
        db[c] = (float)sum;
    }
}
