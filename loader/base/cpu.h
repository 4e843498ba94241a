/* cpu.h: the CPU's instruction sets and cores. Each library chooses its fast functions by the level
 * that sgt_cpu() returns. The level is decided once: detected at the first call, or lowered before
 * it by sgt_cpu_limit (the programs' --cpu). */
#ifndef SGT_BASE_CPU_H
#define SGT_BASE_CPU_H

#include <stdint.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sgt_cpu_level {
    SGT_CPU_PLAIN,  /* any 64-bit machine: plain C */
    SGT_CPU_AVX2,   /* x86-64-v3: AVX2, FMA, BMI2, F16C */
    SGT_CPU_AVX512, /* x86-64-v4: AVX-512 F, BW, CD, DQ, VL */
    SGT_CPU_LEVELS
} sgt_cpu_level;

/* Return the level to use: the machine's, or the limit if that is lower. */
sgt_cpu_level sgt_cpu(void);
/* The names of the levels: "plain", "avx2", "avx512"; then "amx". */
extern const char *const sgt_cpu_names[];
/* Return the name of that level, or "amx" above AVX-512: CPUs with AMX have the vectors of AVX-512
 * and, in addition, tiles (sgt_cpu_amx). */
const char *sgt_cpu_name(void);

/* Return whether a feature beyond AVX-512 may be used; all are 0 below that level. bf16: matrix
 * products of bfloat16 in vectors (AVX512-BF16). amx: the same in tiles (AMX-BF16, if the CPU also
 * has AVX512-BF16); 0 if the limit is "avx512", or if Linux does not let this process use the
 * tiles' registers, which the first call asks for. vbmi2: look-up, compression and expansion of
 * bytes (AVX512-VBMI and VBMI2; Ice Lake and Zen 4 have both). */
int sgt_cpu_bf16(void);
int sgt_cpu_amx(void);
int sgt_cpu_vbmi2(void);

/* Return whether NEON may be used: 1 on aarch64, where every CPU has it, unless sgt_cpu_limit has
 * set a limit; 0 on other machines. */
int sgt_cpu_neon(void);

/* Use at most the level called `name` from now on; "auto" removes the limit. Returns SGT_EUSAGE for
 * an unknown name, and SGT_EUNSUPPORTED for a level that this machine does not have, or that Linux
 * does not let this process use. Call it before any code chooses its functions by level. */
int sgt_cpu_limit(const char *name, sgt_error *err);

/* Return the number of cores that this process may run on, at least 1. */
int sgt_cpu_count(void);
/* Return the default number of threads of a process that shares its cores with `sharing` - 1
 * others. It is the process's share of the cores or, if that is less, of the CPUs that its control
 * groups (containers, batch systems) grant. It is at least 1, and at most `most` if that is above
 * 0. */
int sgt_cpu_threads(uint32_t sharing, int most);
const char *sgt_cpu_model(void); /* "AMD EPYC 9654 ...", or "unknown CPU" */

#ifdef __cplusplus
}
#endif
#endif
