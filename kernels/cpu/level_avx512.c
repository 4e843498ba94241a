/* level_avx512.c: the kernels compiled for AVX-512, with vectors of 16 floats. */
#if defined(__x86_64__)
#define SGT_LEVEL_TABLE sgt_table_avx512
#define SGT_LEVEL_NAME "avx512"
#include "kernels/cpu/kernels.inc.h"
#endif
