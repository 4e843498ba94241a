/* muon.h: Muon's update of one matrix (Jordan et al., "Muon: An optimizer for hidden layers in
 * neural networks", 2024). The momentum is made nearly orthogonal before it is added to the
 * parameters: its singular vectors stay, and all of its singular values become about 1. The formula
 * is torch.optim.Muon's with adjust_lr_fn="match_rms_adamw" (Liu et al., "Muon is scalable for LLM
 * training", 2025). Its factor 0.2*sqrt(max(rows, columns)) makes the updates about as large as
 * AdamW's, so the same learning rate and weight decay suit both optimizers.
 *
 *   g' = g*grad_scale   m = .95*m + .05*g'   X = .05*g' + .95*m (Nesterov)
 *   X = X / max(|X|, 1e-7), with the Frobenius norm
 *   five times (Newton-Schulz):  A = X X'   X = 3.4445 X + (-4.7750 A + 2.0315 A A) X
 *   p = p*(1 - lr*decay) - lr*0.2*sqrt(max(rows, columns))*X
 *
 * grad_scale makes the gradient a mean. It does not clip the gradient, because X is divided by its
 * norm anyway. Clipping would only give a step less weight in the momentum than earlier steps have.
 * It could also make |X| smaller than 1e-7, and the matrices would then stop learning.
 *
 * The update of a transposed matrix is the transposed update. So weights may be stored (in, out),
 * as in GPT-2's Conv1D, or (out, in). If a matrix has more rows than columns, A is X'X instead of X
 * X', and X is multiplied from the right, because X'X is then smaller than X X'. GPT-2's fused qkv
 * weight, (C, 3C), is updated as a single matrix, because torch.optim.Muon takes each parameter as
 * it is stored. A model with separate weights for q, k and v would get a different update.
 *
 *     sgt_muon_shape s = {.rows = C, .columns = 3 * C};
 *     s.memory = sgt_arena_take(&arena, sgt_muon_memory(&s), 1);
 *     sgt_muon *u;
 *     if (sgt_muon_plan(&u, &s, threads, &err) < 0) ...;
 *     sgt_muon_run(u, p, m, g, &update); // in every step
 *     sgt_muon_free(u); */
#ifndef SGT_MUON_H
#define SGT_MUON_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SGT_MUON_MOMENTUM .95
#define SGT_MUON_EPS 1e-7
#define SGT_MUON_STEPS 5 /* iterations of Newton-Schulz */
#define SGT_MUON_A 3.4445
#define SGT_MUON_B (-4.7750)
#define SGT_MUON_C 2.0315

typedef struct sgt_muon_shape {
    size_t rows, columns; /* each at least 1 */
    /* 1: round each newly computed X, A and (-4.7750 A + 2.0315 A A) of the formula at the top of
     * this file to the 16-bit type `format`, as torch.optim.Muon does with bfloat16; 0: do not
     * round them */
    int rounding;
    sgt_rounding format;
    /* 1: compute matrix products in bfloat16, which requires that `format` is bfloat16; 0: in
     * float32 */
    int bf16;
    /* memory of sgt_muon_memory bytes, aligned to SGT_ARENA_ALIGN; plans that never run at the same
     * time may share this memory */
    void *memory;
    void *scratch; /* scratch memory for matrix products, as described at sgt_gemm_shape */
} sgt_muon_shape;

/* The scalars lr, decay and grad_scale of an update, as in the formula at the top of this file. */
typedef struct sgt_muon_update {
    float lr, decay, grad_scale;
} sgt_muon_update;

typedef struct sgt_muon sgt_muon;

size_t sgt_muon_memory(const sgt_muon_shape *s);
/* Plan the updates of a matrix, and set *out to the plan. The caller frees the plan with
 * sgt_muon_free, which accepts NULL. The function returns the same errors as sgt_gemm_plan. */
int sgt_muon_plan(sgt_muon **out, const sgt_muon_shape *s, int threads, sgt_error *err);
void sgt_muon_free(sgt_muon *u);
/* Update the matrix p and its momentum m from the gradient g. All three have the shape (rows,
 * columns). The function opens OpenMP parallel regions. The results do not depend on the number of
 * threads. */
void sgt_muon_run(const sgt_muon *u, float *p, float *m, const float *g, const sgt_muon_update *o);

/* Compute the update directly from its definition, with sums in double. Of the fields of *s, only
 * `rows`, `columns`, `rounding` and `format` are used. `room` must hold 2*rows*columns + 2*n*n
 * doubles, where n is the smaller of `rows` and `columns`. */
void sgt_muon_ref(float *p, float *m, const float *g, const sgt_muon_shape *s,
                  const sgt_muon_update *o, double *room);

#ifdef __cplusplus
}
#endif
#endif
