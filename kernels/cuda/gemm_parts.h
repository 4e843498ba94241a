/* gemm_parts.h: declarations shared by gemm.c (plans and runs) and gemm_tune.c (timing and
 * checks). */
#ifndef SGT_CUDA_GEMM_PARTS_H
#define SGT_CUDA_GEMM_PARTS_H

#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/gemm.h"

#define GEMM_CANDIDATES 16 /* maximum number of algorithms that are requested from the library */
#define GEMM_KEY 320       /* bytes of the text that describes a shape, including its terminator */

struct sgt_cuda_gemm {
    sgt_cuda_gemms *owner;
    sgt_cuda_gemm_shape shape;
    char key[GEMM_KEY]; /* the whole shape as text: equal shapes have equal keys */
    sgt_lt_desc desc;
    sgt_lt_layout a, b, d; /* layouts of our A, B, D; the library sees them transposed */
    sgt_lt_algo algo;
    float ms;
    sgt_cuda_gemm *next;
};

struct sgt_cuda_gemms {
    const sgt_cublaslt *lt;
    sgt_lt_handle handle;
    sgt_cuda_gemms_options o;
    char library[48], machine[336]; /* machine: first line of the choices: device, library */
    char *known;                    /* the other lines of the choices */
    void *workspace;
    sgt_cuda_gemm *first;
};

/* Return whether a shape's epilogue reads or writes `aux`. */
static inline int gemm_has_aux(const sgt_cuda_gemm_shape *s)
{
    return s->epilogue >= SGT_EPILOGUE_GELU;
}

/* Operands of a run: D = f * op(A) op(B) + h * onto, then the epilogue; onto may be D. */
typedef struct gemm_operands {
    void *d;
    const void *a, *b, *onto;
    void *bias, *aux;
    float f, h;
} gemm_operands;

/* Put one matrix product on a stream, to be computed by the given algorithm. Return the library's
 * status. */
sgt_lt_status gemm_put(const sgt_cuda_gemm *p, const sgt_lt_algo *algo, sgt_cuda_stream s,
                       const gemm_operands *x);

/* Try the candidates. If algorithms are timed, set p->algo to the fastest candidate with correct
 * results, and p->ms to its median time; otherwise set p->algo to the first with correct results.
 * Returns SGT_ENOMEM if there is no memory for the operands, and SGT_EFORMAT or another error if no
 * candidate is correct. */
int gemm_tune(sgt_cuda_gemm *p, const sgt_lt_result *candidates, int count, sgt_error *err);

#endif
