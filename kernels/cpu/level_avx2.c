/* level_avx2.c: the kernels compiled for AVX2, with vectors of 8 floats. */
#if defined(__x86_64__)
#define SGT_LEVEL_TABLE sgt_table_avx2
#define SGT_LEVEL_NAME "avx2"
#include "kernels/cpu/kernels.inc.h"
#endif
