/* attention.h: sgt-bench attention: measures causal attention by itself, forward and backward, in
 * every available implementation: on a CPU (attention_cpu.c) and on CUDA (attention_cuda.c). */
#ifndef SGT_TOOLS_BENCH_ATTENTION_H
#define SGT_TOOLS_BENCH_ATTENTION_H

#include "train/backend.h"

typedef struct attention_line {
    const char *way; /* "own", "cudnn", "naive", "tiled" */
    /* times of one layer; 0 if not measured, for the reason in `why` */
    double forward_ms, backward_ms;
    char why[200];
} attention_line;

typedef struct attention_bench {
    size_t B, T, H, D;
    sgt_precision precision;
    int cuda, threads;
    char *cache; /* folder for timing results (backend.h) */
    const sgt_stop *stop;
    char device[64], library[96];
    double peak_flops; /* speed of a large matrix product in that precision; 0: unknown */
    attention_line lines[4];
    size_t count;
} attention_bench;

/* Measure attention, and fill in device, library and lines. */
int attention_on_cpu(attention_bench *b, sgt_error *err);
int attention_on_cuda(attention_bench *b, sgt_error *err);

#endif
