/* twin_amx.h: the kernels for AMX, compiled with the twin of its instructions (kernels/cpu/amx.h).
 * They run on any CPU with AVX512-BF16. */
#ifndef SGT_CHECK_TWIN_AMX_H
#define SGT_CHECK_TWIN_AMX_H

#include "kernels/kernels.h"

struct check;

/* NULL if this CPU has no AVX512-BF16. */
const sgt_kernels *twin_table(void);

/* sgt_head_memory and sgt_head_run of the twin. Call them only if twin_table() is not NULL. */
size_t twin_head_memory(const sgt_head *h);
double twin_head_run(const sgt_head *h, size_t n, const void *x, const float *x32, const void *w,
                     const int32_t *targets, double scale, float *loss, float *dx, float *dw,
                     int add);

/* Let the calling process execute AMX's instructions: by the CPU, if it has AMX and Linux permits
 * it, or in emulation (trap/trap_amx.h). Return 0, with the case skipped, if neither is possible. */
int tiles_ready(struct check *t);

/* Functions of cpu.h on a CPU that claims AMX, where Linux may refuse it. */
int claimed_cpu_amx(void);
const char *claimed_cpu_name(void);
int claimed_cpu_limit(const char *name, sgt_error *err);

/* A chain of tile products (tiles_chain.h), by the twin and by AMX's instructions. x86-64 only; the
 * first needs AVX512-BF16, the second tiles_ready. */
void tiles_by_twin(float *c, const uint16_t *a, const uint16_t *b, int steps);
void tiles_by_instruction(float *c, const uint16_t *a, const uint16_t *b, int steps);

/* The functions of matrix products. */
typedef struct gemm_calls {
    int (*plan)(sgt_gemm **out, const sgt_gemm_shape *s, int threads, sgt_error *err);
    void (*run_beside)(const sgt_gemm *g, const void *a, const void *b, const float *bias, float *c,
                       sgt_beside *w);
    double (*squares)(const sgt_gemm *g);
    void (*free)(sgt_gemm *g);
} gemm_calls;

/* Those of the twin, for bfloat16 alone. Call them only if twin_table() is not NULL. */
extern const gemm_calls twin_gemm;

#endif
