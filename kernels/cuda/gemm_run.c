/* gemm_run.c: runs planned products. */
#include "kernels/cuda/gemm.h"

#include <stdio.h>

#include "kernels/cuda/gemm_parts.h"
#include "kernels/cuda/runtime.h"

size_t gemm_type_bytes(sgt_cuda_type type) { return type == SGT_F32 ? 4 : 2; }

gemm_spans gemm_spans_of(const sgt_cuda_gemm_shape *s)
{
    size_t more = s->batch - 1;
    return (gemm_spans){more * s->stride_a + (s->trans_a ? s->k : s->m) * s->lda,
                        more * s->stride_b + (s->trans_b ? s->n : s->k) * s->ldb,
                        more * s->stride_d + s->m * s->ldd};
}

static int has_bias(const sgt_cuda_gemm_shape *s)
{
    return s->epilogue != SGT_EPILOGUE_NONE && s->epilogue != SGT_EPILOGUE_DGELU;
}

sgt_lt_status gemm_set_pointers(const sgt_cuda_gemm *p, const void *bias, const void *aux)
{
    const sgt_cublaslt *lt = p->owner->lt;
    sgt_lt_status rc = SGT_LT_SUCCESS;
    if (has_bias(&p->shape))
        rc = lt->desc_set(p->desc, SGT_LT_DESC_BIAS_POINTER, &bias, sizeof bias);
    if (!rc && gemm_has_aux(&p->shape))
        rc = lt->desc_set(p->desc, SGT_LT_DESC_AUX_POINTER, &aux, sizeof aux);
    return rc;
}

/* Put a product on a stream: D = onto + a b if p accumulates, else D = a b. onto may be D. */
static sgt_lt_status put_onto(const sgt_cuda_gemm *p, const sgt_lt_algo *algo, sgt_cuda_stream s,
                              void *d, const void *onto, const void *a, const void *b, void *bias,
                              void *aux)
{
    const sgt_cuda_gemms *g = p->owner;
    const float alpha = 1, beta = p->shape.accumulate ? 1 : 0;
    sgt_lt_status rc = gemm_set_pointers(p, bias, aux);
    if (rc) return rc;
    rc = g->lt->matmul(g->handle, p->desc, &alpha, b, p->b, a, p->a, &beta, onto, p->d, d, p->d,
                       algo, g->workspace, g->workspace_bytes, s);
    if (!rc) sgt_cuda_launched(s, "%s: %s", g->library, p->key);
    return rc;
}

sgt_lt_status gemm_put(const sgt_cuda_gemm *p, const sgt_lt_algo *algo, sgt_cuda_stream s, void *d,
                       const void *a, const void *b, void *bias, void *aux)
{
    return put_onto(p, algo, s, d, d, a, b, bias, aux);
}

void sgt_cuda_gemm_run_onto(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, const void *onto,
                            const void *a, const void *b, void *bias, void *aux)
{
    const sgt_cuda_gemms *g = p->owner;
    char what[GEMM_KEY + 128];
    sgt_lt_status rc = put_onto(p, &p->algo, s, d, onto, a, b, bias, aux);
    if (!rc) {
        sgt_cuda_count_launch();
        return;
    }
    snprintf(what, sizeof what, "%s: %s: %s", g->library, p->key, g->lt->status_name(rc));
    sgt_cuda_note_failure(what, rc);
}

void sgt_cuda_gemm_run(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, const void *a,
                       const void *b, void *bias, void *aux)
{
    sgt_cuda_gemm_run_onto(p, s, d, d, a, b, bias, aux);
}
