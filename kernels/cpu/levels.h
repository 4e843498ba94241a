/* levels.h: declares the table of kernels for each CPU level (instruction set), and the head in AMX
 * tiles. Only cpu.c decides which of these tables is used. */
#ifndef SGT_LEVELS_H
#define SGT_LEVELS_H

#include "kernels/kernels.h"

extern const sgt_kernels sgt_table_plain;
extern const sgt_kernels sgt_table_avx2;        /* x86-64 only */
extern const sgt_kernels sgt_table_avx512;      /* x86-64 only */
extern const sgt_kernels sgt_table_bf16_avx512; /* x86-64 only; attention in bfloat16 */
extern const sgt_kernels sgt_table_amx; /* exists only on x86-64; its attention uses AMX tiles */

/* The functions that compute the head in AMX tiles. They take the arguments of sgt_head_memory and
 * sgt_head_run. head.c calls them for bfloat16 if the CPU has AMX. */
size_t sgt_head_bf16_amx_memory(const sgt_head *h);
double sgt_head_bf16_amx(const sgt_head *h, size_t n, const void *x, const float *x32,
                         const void *w, const int32_t *targets, double scale, float *loss,
                         float *dx, float *dw, int add);

#endif
