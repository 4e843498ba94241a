/* cpu.c: chooses the kernels and the matrix products for the CPU that loader/base/cpu detects. */
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

const sgt_product *sgt_own_product(int bf16)
{
#if defined(__x86_64__)
    if (bf16 && sgt_cpu_amx()) return &sgt_product_bf16_amx;
    if (bf16) return sgt_cpu_bf16() ? &sgt_product_bf16_avx512 : NULL;
    if (sgt_cpu() == SGT_CPU_AVX512) return &sgt_product_avx512;
    if (sgt_cpu() == SGT_CPU_AVX2) return &sgt_product_avx2;
#endif
    return bf16 ? NULL : &sgt_product_plain;
}
