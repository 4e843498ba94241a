/* peak.c: the speed of matrix products on this CPU, of which a run reports its share (MFU). */
#include <stdio.h>

#include "loader/base/cpu.h"
#include "train/cpu/cpu_backend.h"

void sgt_cpu_find_peak(sgt_cpu_backend *c)
{
    const sgt_cpu_shape *s = &c->shape;
    c->base.peak_flops = sgt_gemm_peak(s->bf16, s->o.threads);
    if (!(c->base.peak_flops > 0)) return;
    snprintf(c->report.peak_name, sizeof c->report.peak_name, "%s, %s, %d thread%s",
             sgt_cpu_model(), s->bf16 ? "bf16" : "fp32", s->o.threads,
             s->o.threads == 1 ? "" : "s");
    c->base.peak_name = c->report.peak_name;
}
