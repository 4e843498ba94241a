/* gemm_parts.h: declarations that gemm.c and gemm_tune.c share. gemm.c plans and runs matrix
 * products. gemm_tune.c times and checks algorithms. */
#ifndef SGT_CUDA_GEMM_PARTS_H
#define SGT_CUDA_GEMM_PARTS_H

#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/gemm.h"

#define GEMM_CANDIDATES 16 /* maximum number of algorithms requested from the library per shape */
#define GEMM_KEY 320       /* size in bytes of a shape's key, including the terminator */

struct sgt_cuda_gemm {
    sgt_cuda_gemms *owner;
    sgt_cuda_gemm_shape shape;
    char key[GEMM_KEY]; /* the shape as text; equal shapes have equal keys */
    sgt_lt_desc desc;
    /* layouts of A, B and D, which the library sees transposed (see gemm.c) */
    sgt_lt_layout a, b, d;
    sgt_lt_algo algo;
    float ms;
    sgt_cuda_gemm *next;
};

struct sgt_cuda_gemms {
    const sgt_cublaslt *lt;
    sgt_lt_handle handle;
    sgt_cuda_gemms_options o;
    /* library: its name and version; machine: line that names the device and the library, the first
     * line of the text of chosen algorithms */
    char library[48], machine[336];
    void *workspace;
    sgt_cuda_gemm *first;
};

/* Return whether a shape's epilogue reads or writes `aux`. */
static inline int gemm_has_aux(const sgt_cuda_gemm_shape *s)
{
    return s->epilogue >= SGT_EPILOGUE_GELU;
}

/* Operands of one call, which computes D = f * op(A) op(B) + h * onto and then the epilogue. onto
 * may be D. */
typedef struct gemm_operands {
    void *d;
    const void *a, *b, *onto;
    void *bias, *aux;
    float f, h;
} gemm_operands;

/* Enqueue one matrix product on a stream, with the given algorithm. Return the library's status. */
sgt_lt_status gemm_put(const sgt_cuda_gemm *p, const sgt_lt_algo *algo, sgt_cuda_stream s,
                       const gemm_operands *x);

/* Run the candidate algorithms and set p->algo to one with correct results. If algorithms are
 * timed, this is the fastest, and p->ms is set to its median time. Otherwise, it is the first.
 * Return SGT_ENOMEM if there is no memory for the operands. If no candidate gives correct results,
 * return the error of the last one that failed, for example SGT_EFORMAT for wrong results. */
int gemm_tune(sgt_cuda_gemm *p, const sgt_lt_result *candidates, int count, sgt_error *err);

#endif
