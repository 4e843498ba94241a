/* cpu.h: find out which instruction sets the CPU has, and how many cores this process may use. Each
 * library chooses its fast functions by the level (such as AVX2) that sgt_cpu returns. A program
 * may set a highest level with sgt_cpu_limit (option --cpu), before any library chooses its
 * functions. */
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

/* Return the level to use: the highest level of this machine, or the limit set by sgt_cpu_limit if
 * the limit is lower. */
sgt_cpu_level sgt_cpu(void);
/* names of the levels: "plain", "avx2", "avx512", and also "amx", for which sgt_cpu_level has no
 * value */
extern const char *const sgt_cpu_names[];
/* Return the name of the level to use. If AMX may be used, this is "amx". sgt_cpu returns
 * SGT_CPU_AVX512 in that case, because a CPU with AMX has the vector instructions of AVX-512 and,
 * in addition, matrix registers ("tiles", see sgt_cpu_amx). */
const char *sgt_cpu_name(void);

/* Return 1 if a feature that only some AVX-512 CPUs have may be used. Return 0 if the CPU lacks the
 * feature, or if the level to use is below AVX-512.
 * - sgt_cpu_bf16: AVX512-BF16, which multiplies bfloat16 vectors.
 * - sgt_cpu_amx: AVX512-BF16 together with AMX-BF16, which multiplies bfloat16 matrices in tile
 *   registers. The first call asks Linux for permission to use these registers. Also returns 0 if
 *   Linux refuses, or if the limit set by sgt_cpu_limit is "avx512".
 * - sgt_cpu_vbmi2: AVX512-VBMI and VBMI2, which look up, compress and expand bytes (since Ice Lake
 *   and Zen 4). */
int sgt_cpu_bf16(void);
int sgt_cpu_amx(void);
int sgt_cpu_vbmi2(void);

/* Return 1 if NEON may be used, otherwise 0. On aarch64, where every CPU has NEON, the result is 1
 * unless sgt_cpu_limit has set a limit. On other machines the result is 0. */
int sgt_cpu_neon(void);

/* Set the highest level that may be used from now on to the level called `name`. "auto" removes
 * this limit. Returns SGT_EUSAGE if the name is unknown. Returns SGT_EUNSUPPORTED if this machine
 * does not have the level, or if Linux does not let this process use it. Call this function before
 * any library chooses its functions by level. */
int sgt_cpu_limit(const char *name, sgt_error *err);

/* Return the number of cores that this process may run on, at least 1. */
int sgt_cpu_count(void);
/* Return the default number of threads for a process, at least 1. `sharing` is the number of
 * processes, including this one, that run on the same cores. The result is the number of cores
 * divided by `sharing`. If a cgroup (as containers and batch systems use) limits the process to
 * fewer CPUs, that limit is divided instead. The result is at most `most`, unless `most` is 0. */
int sgt_cpu_threads(uint32_t sharing, int most);
/* Return the CPU's name, such as "AMD EPYC 9654 ...", or "unknown CPU". */
const char *sgt_cpu_model(void);

#ifdef __cplusplus
}
#endif
#endif
