/* peak.c: the peak speed of a device, to which MFU (model FLOPs utilization) refers: both the
 * datasheet's value and the measured speed of a large matrix product. */
#include <stdio.h>
#include <string.h>

#include "train/cuda/cuda_backend.h"

/* Peak speeds in TFLOP/s from NVIDIA's datasheets, without sparsity: float32 without tensor cores,
 * TF32, and 16-bit formats. The first entry whose name is a prefix of the device's name is used, so
 * "NVIDIA H100 NVL" must precede "NVIDIA H100". */
static const struct {
    const char *name;
    double fp32, tf32, half;
} cards[] = {
    {"NVIDIA A100", 19.5, 156, 312},    {"NVIDIA A800", 19.5, 156, 312},
    {"NVIDIA A30", 10.3, 82, 165},      {"NVIDIA A40", 37.4, 74.8, 149.7},
    {"NVIDIA L40S", 91.6, 183, 362},    {"NVIDIA L40", 90.5, 90.5, 181},
    {"NVIDIA H100 PCIe", 51, 378, 756}, {"NVIDIA H100 NVL", 60, 417.5, 835},
    {"NVIDIA H100", 67, 494.7, 989.4},  {"NVIDIA H800", 67, 494.7, 989.4},
    {"NVIDIA H200", 67, 494.7, 989.4},  {"NVIDIA GH200", 67, 494.7, 989.4},
    {"NVIDIA B200", 80, 1125, 2250},
};

static double datasheet(const char *name, sgt_precision p)
{
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        if (strncmp(name, cards[i].name, strlen(cards[i].name)) != 0) continue;
        if (p == SGT_PRECISION_FP32) return 1e12 * cards[i].fp32;
        return 1e12 * (p == SGT_PRECISION_TF32 ? cards[i].tf32 : cards[i].half);
    }
    return 0;
}

/* Return the measured speed of a large matrix product in operations per second, or 0 if it cannot
 * be measured. The three matrices, each with 8192 x 8192 16-bit numbers, are larger than the GPU's
 * caches, but need only 400 MB. */
static double measured(sgt_cuda_backend *c)
{
    enum { SIDE = 8192 };
    sgt_error why;
    const sgt_cuda_gemm *p;
    sgt_cuda_gemm_shape s = sgt_cuda_product_shape(c, SIDE, SIDE, SIDE);
    if (c->o.deterministic || c->o.checking || c->device.memory < (uint64_t)8 << 30) return 0;
    if (sgt_cuda_gemm_plan(&p, c->plan.gemms, &s, &why) < 0 || !(sgt_cuda_gemm_ms(p) > 0)) return 0;
    return 2.0 * SIDE * SIDE * SIDE / (double)sgt_cuda_gemm_ms(p) * 1e3;
}

void sgt_cuda_find_peak(sgt_cuda_backend *c)
{
    c->base.peak_flops = measured(c);
    c->base.datasheet_flops = datasheet(c->device.name, c->o.precision);
    c->base.memory_total = c->device.memory;
    snprintf(c->peak_name, sizeof c->peak_name, "%s, %s", c->device.name,
             sgt_precision_words[c->o.precision]);
    if (c->base.peak_flops > 0 || c->base.datasheet_flops > 0) c->base.peak_name = c->peak_name;
}
