/* cpu.c: chooses the table of kernels for this machine. loader/base/cpu detects the CPU. */
#include "loader/base/cpu.h"
#include "kernels/cpu/levels.h"
#include "kernels/cpu/product.h"

const sgt_kernels *sgt_kernels_level(int level)
{
    if (level < SGT_CPU_PLAIN || level > (int)sgt_cpu()) return NULL;
#if defined(__x86_64__)
    if (level == SGT_CPU_AVX512) return &sgt_table_avx512;
    if (level == SGT_CPU_AVX2) return &sgt_table_avx2;
#endif
    return level == SGT_CPU_PLAIN ? &sgt_table_plain : NULL;
}

const sgt_kernels *sgt_kernels_cpu(void) { return sgt_kernels_level(sgt_cpu()); }

const sgt_kernels *sgt_kernels_bf16(void)
{
#if defined(__x86_64__)
    if (sgt_cpu_amx()) return &sgt_table_amx;
    if (sgt_own_product(1)) return &sgt_table_bf16_avx512;
#endif
    return sgt_kernels_cpu();
}
