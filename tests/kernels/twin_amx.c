/* twin_amx.c: compiles the kernels for AMX with the twin, under other names. */
#include "tests/kernels/twin_amx.h"

#include "loader/base/cpu.h"

#if defined(__x86_64__)
#ifndef SGT_AMX_TWIN
#define SGT_AMX_TWIN
#endif
#define SGT_LEVEL_TABLE twin
#define SGT_LEVEL_NAME "amx"
#define ATTENTION_AMX 1
extern const sgt_kernels twin;
#include "kernels/cpu/kernels.inc.h"

const sgt_kernels *twin_table(void) { return sgt_cpu_bf16() ? &twin : NULL; }
#else
const sgt_kernels *twin_table(void) { return NULL; }
#endif
