/* level_amx.c: the kernels compiled for AVX-512, with attention in AMX tiles. */
#if defined(__x86_64__)
#define SGT_LEVEL_TABLE sgt_table_amx
#define SGT_LEVEL_NAME "amx"
#define ATTENTION_AMX 1
#include "kernels/cpu/kernels.inc.h"
#endif
