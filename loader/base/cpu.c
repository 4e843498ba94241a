/* cpu.c: detect the CPU's instruction sets, and count the cores that this process may use. */
#include "loader/base/cpu.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

#include "loader/base/memory.h"

/* AMX_LEVEL stands for a CPU with AMX and is one above the highest value of sgt_cpu_level. That
 * enum has no value for AMX, because AMX adds no vector instructions: it multiplies matrices in
 * registers called tiles. */
enum { AMX_LEVEL = SGT_CPU_LEVELS, NAMES };
const char *const sgt_cpu_names[NAMES] = {"plain", "avx2", "avx512", "amx"};

/* `detected` is what detect() found out about this machine, or 0 before detect() has run. Its
 * lowest bits (mask LEVEL) are the machine's level; BF16 and VBMI2 are flags for features; the flag
 * ASKED is always set, so that the value is never 0 after detection. If several threads run
 * detect() at the same time, they all store the same value, so relaxed atomics suffice. The result
 * is kept because CPUID takes microseconds under a hypervisor. `limit` is the highest level that
 * sgt_cpu_limit allows, or -1 if there is no limit. */
enum { LEVEL = 7, BF16 = 8, VBMI2 = 16, ASKED = 32 };
static int detected, limit = -1;

static int detect(void)
{
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    int features = 0, amx = 0;
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2") ||
        !__builtin_cpu_supports("popcnt"))
        return SGT_CPU_PLAIN;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl"))
        return SGT_CPU_AVX2;
    /* Read leaf 7 of CPUID. Test bits by their numbers, because not every compiler has names for
     * these features. */
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 5 & 1) features |= BF16;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        /* The AMX kernels need AMX-TILE and AMX-BF16. They also need AVX512-BF16, with whose
         * instructions they round to bfloat16 */
        amx = (d >> 22 & 1) && (d >> 24 & 1) && features;
        if ((c >> 1 & 1) && (c >> 6 & 1)) features |= VBMI2;
    }
/* tests/kernels/claimed_cpu.c defines SGT_AMX_TRAP to make this function report AMX without
 * checking for it */
#ifdef SGT_AMX_TRAP
    amx = features & BF16;
#endif
    return features | (amx ? (int)AMX_LEVEL : SGT_CPU_AVX512);
#else
    return SGT_CPU_PLAIN;
#endif
}

/* Return this machine's level and feature bits, in the format of `detected`. The first call detects
 * them. */
static int machine(void)
{
    int is = __atomic_load_n(&detected, __ATOMIC_RELAXED);
    if (is) return is;
    is = detect();
/* `make CPU=plain` (used by tests) defines SGT_CPU_MOST as "plain", the name of the highest level
 * to report */
#ifdef SGT_CPU_MOST
    while (is & LEVEL && strcmp(sgt_cpu_names[is & LEVEL], SGT_CPU_MOST) != 0) is--;
#endif
    is |= ASKED;
    __atomic_store_n(&detected, is, __ATOMIC_RELAXED);
    return is;
}

/* Return the CPU level to use: this machine's level, or the limit set by sgt_cpu_limit if the limit
 * is lower. Unlike sgt_cpu, this function may return AMX_LEVEL. */
static int used(void)
{
    int level = machine() & LEVEL, most = __atomic_load_n(&limit, __ATOMIC_RELAXED);
    return most >= 0 && most < level ? most : level;
}

sgt_cpu_level sgt_cpu(void)
{
    int level = used();
    return level < SGT_CPU_LEVELS ? (sgt_cpu_level)level : SGT_CPU_AVX512;
}

#if defined(__x86_64__)
/* arguments of arch_prctl, defined here because older versions of asm/prctl.h lack them */
enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };

/* whether Linux lets this process use AMX: 1 if it does, -1 if not, 0 if this process has not asked
 * yet. The answer holds for all threads. */
static int allowed;

/* Return 1 if Linux lets this process use the tile registers of AMX, otherwise 0. The first call
 * requests the permission. */
static int permitted(void)
{
    int is = __atomic_load_n(&allowed, __ATOMIC_RELAXED);
    if (!is) is = syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0 ? 1 : -1;
    __atomic_store_n(&allowed, is, __ATOMIC_RELAXED);
    return is > 0;
}
#else
static int permitted(void) { return 1; }
#endif

const char *sgt_cpu_name(void) { return sgt_cpu_amx() ? "amx" : sgt_cpu_names[sgt_cpu()]; }

int sgt_cpu_bf16(void) { return sgt_cpu() == SGT_CPU_AVX512 && (machine() & BF16); }

int sgt_cpu_amx(void) { return used() == AMX_LEVEL && permitted(); }

int sgt_cpu_vbmi2(void) { return sgt_cpu() == SGT_CPU_AVX512 && (machine() & VBMI2); }

int sgt_cpu_neon(void)
{
#if defined(__aarch64__)
    return __atomic_load_n(&limit, __ATOMIC_RELAXED) < 0;
#else
    return 0;
#endif
}

int sgt_cpu_limit(const char *name, sgt_error *err)
{
    const int own = machine() & LEVEL;
    if (!strcmp(name, "auto")) {
        __atomic_store_n(&limit, -1, __ATOMIC_RELAXED);
        return SGT_OK;
    }
    for (int i = 0; i < NAMES; i++) {
        if (strcmp(name, sgt_cpu_names[i])) continue;
        if (i == AMX_LEVEL && own == AMX_LEVEL && !permitted())
            return sgt_fail(
                err, SGT_EUNSUPPORTED,
                "amx: Linux does not allow this process to use AMX (use a lower level, or auto)");
        if (i > own)
            return sgt_fail(
                err, SGT_EUNSUPPORTED,
                "%s: this CPU's highest level is %s (use that or a lower level, or auto)", name,
                sgt_cpu_names[own]);
        __atomic_store_n(&limit, i, __ATOMIC_RELAXED);
        return SGT_OK;
    }
    return sgt_fail(err, SGT_EUSAGE, "%s: must be one of auto, plain, avx2, avx512, amx", name);
}

int sgt_cpu_count(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    if (n < 1) n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n;
}

int sgt_cpu_threads(uint32_t sharing, int most)
{
    int n = sgt_cpu_count();
    uint64_t granted = sgt_group_cpus(NULL);
    if (granted < (uint64_t)n) n = (int)granted;
    if (sharing > 1) n /= (int)sharing;
    if (most > 0 && most < n) n = most;
    return n < 1 ? 1 : n;
}

const char *sgt_cpu_model(void)
{
    static _Thread_local char model[128];
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[256];
    snprintf(model, sizeof model, "unknown CPU");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon) continue;
        for (colon++; isspace((unsigned char)*colon);) colon++;
        colon[strcspn(colon, "\n")] = 0;
        snprintf(model, sizeof model, "%.*s", (int)sizeof model - 1, colon);
        break;
    }
    if (f) fclose(f);
    return model;
}
