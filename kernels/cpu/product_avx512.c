/* product_avx512.c: our own matrix products of float32, in vectors of 16 numbers. */
#if defined(__x86_64__)
#define PRODUCT_NAME sgt_product_f32_avx512
#define PRODUCT_SOFTMAX sgt_softmax_f32_avx512
#define PRODUCT_BF16 0
#include "kernels/cpu/product.inc.h"
#endif
