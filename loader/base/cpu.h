/* cpu.h: the CPU's instruction sets and cores. sgt_cpu() returns a level, such as AVX2, by which
 * each library chooses its fast functions. The first call detects the level. Before that, a program
 * may limit it with sgt_cpu_limit (the option --cpu). */
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

/* Return the level to use: the machine's level, or the limit set by sgt_cpu_limit if that is
 * lower. */
sgt_cpu_level sgt_cpu(void);
/* names of the levels: "plain", "avx2", "avx512", and "amx", which sgt_cpu_level lacks */
extern const char *const sgt_cpu_names[];
/* Return the name of the level to use. On a CPU with AMX this is "amx", although sgt_cpu returns
 * SGT_CPU_AVX512: such a CPU has the vectors of AVX-512 and, in addition, tiles (sgt_cpu_amx). */
const char *sgt_cpu_name(void);

/* Return 1 if a feature that only some AVX-512 CPUs have may be used. Return 0 if it may not, or if
 * the level to use is below AVX-512.
 * - sgt_cpu_bf16: AVX512-BF16, which multiplies bfloat16 matrices in vectors.
 * - sgt_cpu_amx: AVX512-BF16 and AMX-BF16, which multiplies bfloat16 matrices in tiles. The first
 *   call asks Linux for the tile registers. Returns 0 if Linux refuses them, or if the limit is
 *   "avx512".
 * - sgt_cpu_vbmi2: AVX512-VBMI and VBMI2, which look up, compress and expand bytes (Ice Lake, Zen
 *   4). */
int sgt_cpu_bf16(void);
int sgt_cpu_amx(void);
int sgt_cpu_vbmi2(void);

/* Return whether NEON may be used. On aarch64, where every CPU has NEON, this is 1 unless
 * sgt_cpu_limit has set a limit. On other machines it is 0. */
int sgt_cpu_neon(void);

/* Set a limit: use at most the level called `name` from now on. "auto" removes the limit. Returns
 * SGT_EUSAGE if the name is unknown. Returns SGT_EUNSUPPORTED if this machine does not have the
 * level, or if Linux does not let this process use it. Call this before any code chooses its
 * functions by level. */
int sgt_cpu_limit(const char *name, sgt_error *err);

/* Return the number of cores that this process may run on, at least 1. */
int sgt_cpu_count(void);
/* Return the default number of threads for a process, at least 1. `sharing` is the number of
 * processes that run on the same cores, including this one. The result is the number of cores, or
 * the CPU limit of the control groups (containers, batch systems) if that is lower, divided by
 * `sharing`. The result is at most `most`, unless `most` is 0. */
int sgt_cpu_threads(uint32_t sharing, int most);
/* Return the CPU's name, such as "AMD EPYC 9654 ...", or "unknown CPU". */
const char *sgt_cpu_model(void);

#ifdef __cplusplus
}
#endif
#endif
