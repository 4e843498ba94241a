/* level_bf16_avx512.c: the kernels compiled for AVX-512, with attention's products in bfloat16, for
 * CPUs with AVX512-BF16. */
#if defined(__x86_64__)
#define SGT_LEVEL_TABLE sgt_table_bf16_avx512
#define SGT_LEVEL_NAME "avx512"
#define ATTENTION_BF16 1
#include "kernels/cpu/kernels.inc.h"
#endif
