/* product_plain.c: our own matrix products of float32, for any machine. */
#define PRODUCT_NAME sgt_product_f32_plain
#define PRODUCT_SOFTMAX sgt_softmax_f32_plain
#define PRODUCT_BF16 0
#include "kernels/cpu/product.inc.h"
