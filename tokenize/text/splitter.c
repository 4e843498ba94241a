/* splitter.c: choose the code that splits text by a rule, for the CPU that the program runs on. */
#include "loader/base/cpu.h"
#include "tokenize/text/rules.h"
#include "tokenize/text/split_levels.h"

sgt_splitter sgt_splitter_start(const void *text, size_t n)
{
    sgt_splitter s = {.text = (const uint8_t *)text, .n = n, .split = sgt_split_plain};
#if defined(__x86_64__)
    if (sgt_cpu() >= SGT_CPU_AVX2) s.split = sgt_cpu_vbmi2() ? sgt_split_avx512 : sgt_split_avx2;
#endif
    return s;
}

size_t sgt_split(sgt_splitter *s, uint32_t *ends, size_t max) { return s->split(s, ends, max); }

sgt_splitter sgt_splitter_by(const sgt_rule *r, const void *text, size_t n)
{
    sgt_splitter s = sgt_splitter_start(text, n);
    if (!r) return s;
    s.rule = r;
    s.split = sgt_split_rule_plain;
#if defined(__x86_64__)
    if (sgt_cpu() >= SGT_CPU_AVX2)
        s.split = sgt_cpu_vbmi2() ? sgt_split_rule_avx512 : sgt_split_rule_avx2;
#endif
    return s;
}
