/* shape.c: the defaults of shared options, by device. */
#include "tools/bench/shape.h"

#include "loader/base/cpu.h"

uint32_t bench_batch(const bench_shape *o, int cuda)
{
    return o->batch ? (uint32_t)o->batch : cuda ? 64 : 4;
}

uint32_t bench_seq(const bench_shape *o, int cuda, uint32_t on_cpu)
{
    return o->seq ? (uint32_t)o->seq : cuda ? 1024 : on_cpu;
}

sgt_precision bench_precision(const bench_shape *o, int cuda)
{
    if (cuda && !o->precision_given) return SGT_PRECISION_BF16;
    return (sgt_precision)o->precision;
}

int bench_threads(const bench_shape *o) { return o->threads ? (int)o->threads : sgt_cpu_count(); }
