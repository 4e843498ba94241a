/* level_avx2.c: the kernels with 8 lanes. */
#if defined(__x86_64__)
#define SGT_LEVEL_TABLE sgt_table_avx2
#define SGT_LEVEL_NAME "avx2"
#include "kernels/cpu/kernels.inc.h"
#endif
