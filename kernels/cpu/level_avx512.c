/* level_avx512.c: the kernels with 16 lanes. */
#if defined(__x86_64__)
#define SGT_LEVEL_TABLE sgt_table_avx512
#define SGT_LEVEL_NAME "avx512"
#include "kernels/cpu/kernels.inc.h"
#endif
