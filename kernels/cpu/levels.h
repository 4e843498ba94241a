/* levels.h: a complete table of kernels for each instruction-set level. Only cpu.c chooses among
 * them. */
#ifndef SGT_LEVELS_H
#define SGT_LEVELS_H

#include "kernels/kernels.h"

extern const sgt_kernels sgt_table_plain;
extern const sgt_kernels sgt_table_avx2;        /* x86-64 only */
extern const sgt_kernels sgt_table_avx512;      /* x86-64 only */
extern const sgt_kernels sgt_table_bf16_avx512; /* x86-64 only; attention's products in bfloat16 */
extern const sgt_kernels sgt_table_amx;         /* x86-64 only; attention in AMX tiles */

#endif
