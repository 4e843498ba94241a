/* gemm.h: sgt-bench gemm: the list of a GPT-2 step's matrix products (gemm.c), and the measurement
 * of each on a CPU (gemm_cpu.c) and on CUDA (gemm_cuda.c). */
#ifndef SGT_TOOLS_BENCH_GEMM_H
#define SGT_TOOLS_BENCH_GEMM_H

#include <stddef.h>

#include "loader/base/error.h"
#include "kernels/cuda/gemm.h"

/* A matrix product with one epilogue: a line of the table. */
typedef struct gemm_line {
    const char *layer, *pass, *epilogue; /* "qkv", "forward", "bias" */
    sgt_cuda_gemm_shape shape;           /* with the number types used on the device */
    double ms; /* median time; 0 if not measured, for the reason in `why` */
    char why[160];
} gemm_line;

typedef struct gemm_bench {
    size_t rows, channels, vocab; /* N = B*T, C, and V as padded in the head */
    sgt_cuda_type type;           /* number type of the matrices; parameter gradients are float32 */
    int cuda, tf32, threads;
    double seconds; /* on a CPU, each product is repeated for this time */
    const sgt_stop *stop;
    char device[128], library[64];
    double peak_flops; /* speed of a large square product; 0: not measured */
    gemm_line *lines;
    size_t count;
} gemm_bench;

/* Measure the products, and fill in device, library, peak_flops, and ms or why of each line. */
int gemm_on_cpu(gemm_bench *b, sgt_error *err);
int gemm_on_cuda(gemm_bench *b, sgt_error *err); /* SGT_EUNSUPPORTED: there is no CUDA */

/* Set *flops to the speed of a large square product on a CPU, in float32 or bfloat16. */
int gemm_square_on_cpu(double *flops, int threads, int bf16, sgt_error *err);

/* Return the floating-point operations of one product. */
static inline double gemm_flops(const sgt_cuda_gemm_shape *s)
{
    return 2.0 * (double)s->m * (double)s->n * (double)s->k;
}

#endif
