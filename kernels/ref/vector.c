/* vector.c: sums of float arrays, and sums of their squares in double. */
#include "kernels/ref/ref.h"

void sgt_ref_add(float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] += y[i];
}

double sgt_ref_sum_squares(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    return sum;
}

double sgt_ref_add_squares(float *x, const float *y, size_t n)
{
    sgt_ref_add(x, y, n);
    return sgt_ref_sum_squares(x, n);
}
