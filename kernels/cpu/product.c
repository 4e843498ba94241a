/* product.c: chooses our own matrix product and softmax for this CPU. */
#include "kernels/cpu/product.h"

#include "loader/base/cpu.h"

const sgt_product *sgt_own_product(int bf16)
{
#if defined(__x86_64__)
    if (bf16 && sgt_cpu_amx()) return &sgt_product_bf16_amx;
    if (bf16) return sgt_cpu_bf16() ? &sgt_product_bf16_avx512 : NULL;
    if (sgt_cpu() == SGT_CPU_AVX512) return &sgt_product_f32_avx512;
    if (sgt_cpu() == SGT_CPU_AVX2) return &sgt_product_f32_avx2;
#endif
    return bf16 ? NULL : &sgt_product_f32_plain;
}

sgt_softmax_part *sgt_own_softmax(int bf16)
{
#if defined(__x86_64__)
    if (bf16) return sgt_cpu_bf16() ? sgt_softmax_bf16_avx512 : NULL;
    if (sgt_cpu() == SGT_CPU_AVX512) return sgt_softmax_f32_avx512;
    if (sgt_cpu() == SGT_CPU_AVX2) return sgt_softmax_f32_avx2;
#endif
    return bf16 ? NULL : sgt_softmax_f32_plain;
}
