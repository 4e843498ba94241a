/* head_amx.h: the head in AMX tiles, with the arguments of sgt_head_memory and sgt_head_run. head.c
 * calls it if the CPU has AMX. */
#ifndef SGT_HEAD_AMX_H
#define SGT_HEAD_AMX_H

#include "kernels/kernels.h"

size_t sgt_head_bf16_amx_memory(const sgt_head *h);
double sgt_head_bf16_amx(const sgt_head *h, size_t n, const void *x, const float *x32,
                         const void *w, const int32_t *targets, double scale, float *loss,
                         float *dx, float *dw, int add);

#endif
