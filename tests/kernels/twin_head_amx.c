/* twin_head_amx.c: compiles the head for AMX with the twin (amx.h: the same in plain vectors),
 * under other names. */
#include "tests/kernels/twin_amx.h"

#if defined(__x86_64__)
#ifndef SGT_AMX_TWIN
#define SGT_AMX_TWIN
#endif
#define sgt_head_bf16_amx_memory twin_head_memory
#define sgt_head_bf16_amx twin_head_run
#define sgt_head_amx_dx twin_head_dx
#define sgt_head_amx_dw twin_head_dw
#include "kernels/cpu/head_bf16_amx.c"
#include "kernels/cpu/head_gradients_bf16_amx.c"
#else
size_t twin_head_memory(const sgt_head *h) { return sgt_head_memory(h); }
double twin_head_run(const sgt_head *h, size_t n, const void *x, const float *x32, const void *w,
                     const int32_t *targets, double scale, float *loss, float *dx, float *dw,
                     int add)
{
    return sgt_head_run(h, n, x, x32, w, targets, scale, loss, dx, dw, add);
}
#endif
