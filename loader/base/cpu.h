/* cpu.h: everything that sgt asks about the CPU. Each library chooses its fast functions by the
 * level that sgt_cpu() returns. The level is decided once: detected at the first call, or lowered
 * before it by sgt_cpu_limit (the programs' --cpu). */
#ifndef SGT_BASE_CPU_H
#define SGT_BASE_CPU_H

#include <stddef.h>

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
const char *sgt_cpu_level_name(sgt_cpu_level level); /* "plain", "avx2", "avx512" */

/* Features beyond AVX-512; all 0 below that level: bfloat16 products in vectors (AVX512-BF16) and
 * in tiles (AMX-BF16); look-up, compression and expansion of bytes (AVX512-VBMI and VBMI2; Ice Lake
 * and Zen 4 have both). */
int sgt_cpu_bf16(void);
int sgt_cpu_amx(void);
int sgt_cpu_vbmi2(void);

/* The vectors of aarch64, which all of its CPUs have. 0 on other machines, and if a limit is
 * set. */
int sgt_cpu_neon(void);

/* Use at most the level called `name` from now on ("auto" is the machine's own). SGT_EUSAGE for an
 * unknown name, SGT_EUNSUPPORTED for a level this machine does not have. Call it before any table
 * is made. */
int sgt_cpu_limit(const char *name, sgt_error *err);

/* Return the bytes of the cache of that level (1 to 3) that core 0 has or shares; 0 if there is
 * none, or it is unknown. Reads the kernel's files at each call. */
size_t sgt_cpu_cache(int level);

/* Return the number of cores that this process may run on, at least 1. */
int sgt_cpu_count(void);
const char *sgt_cpu_model(void); /* "AMD EPYC 9654 ...", or "unknown CPU" */

#ifdef __cplusplus
}
#endif
#endif
