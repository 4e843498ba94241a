/* product_bf16_avx512.c: our own products of bfloat16, for CPUs with AVX512-BF16. */
#if defined(__x86_64__)
#define PRODUCT_NAME sgt_product_bf16_avx512
#define PRODUCT_SOFTMAX sgt_softmax_bf16_avx512
#define PRODUCT_BF16 1
#include "kernels/cpu/product.inc.h"
#endif
