/* product_avx512.c: our own products of float32 with 16 lanes. */
#if defined(__x86_64__)
#define PRODUCT_NAME sgt_product_f32_avx512
#define PRODUCT_SOFTMAX sgt_softmax_f32_avx512
#define PRODUCT_BF16 0
#include "kernels/cpu/product.inc.h"
#endif
