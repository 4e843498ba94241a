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

double sgt_cuda_gemm_flops(const sgt_cuda_gemm *p)
{
    const sgt_cuda_gemm_shape *s = &p->shape;
    return 2.0 * (double)s->m * (double)s->n * (double)s->k * (double)s->batch;
}

static int has_bias(const sgt_cuda_gemm_shape *s)
{
    return s->epilogue == SGT_EPILOGUE_BIAS || s->epilogue == SGT_EPILOGUE_GELU;
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

/* D = product * the product + onto * a matrix */
typedef struct factors {
    float product, onto;
} factors;

/* Put the product on a stream, with its sum with `onto`, which may be D itself. */
static sgt_lt_status put_onto(const sgt_cuda_gemm *p, const sgt_lt_algo *algo, sgt_cuda_stream s,
                              void *d, factors f, const void *onto, const void *a, const void *b,
                              void *bias, void *aux)
{
    const sgt_cuda_gemms *g = p->owner;
    const float alpha = f.product, beta = f.onto;
    sgt_lt_status rc = gemm_set_pointers(p, bias, aux);
    if (rc) return rc;
    rc = g->lt->matmul(g->handle, p->desc, &alpha, b, p->b, a, p->a, &beta, onto, p->d, d, p->d,
                       algo, g->workspace, SGT_CUDA_GEMM_WORKSPACE, s);
    if (!rc) sgt_cuda_launched(s, "%s: %s", g->library, p->key);
    return rc;
}

sgt_lt_status gemm_put(const sgt_cuda_gemm *p, const sgt_lt_algo *algo, sgt_cuda_stream s, void *d,
                       const void *a, const void *b, void *bias, void *aux)
{
    const factors sum = {1, p->shape.accumulate ? 1 : 0};
    return put_onto(p, algo, s, d, sum, d, a, b, bias, aux);
}

/* Count a product as launched, or note why the library refused it. */
static void count_or_note(const sgt_cuda_gemm *p, sgt_lt_status rc)
{
    const sgt_cuda_gemms *g = p->owner;
    char what[GEMM_KEY + 128];
    if (!rc) {
        sgt_cuda_count_launch();
        return;
    }
    snprintf(what, sizeof what, "%s: %s: %s", g->library, p->key, g->lt->status_name(rc));
    sgt_cuda_note_failure(what, rc);
}

void sgt_cuda_gemm_run_mixed(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, float f,
                             const void *a, const void *b, float h, const void *onto)
{
    const factors mix = {f, h};
    count_or_note(p, put_onto(p, &p->algo, s, d, mix, onto, a, b, NULL, NULL));
}

void sgt_cuda_gemm_run(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, const void *a,
                       const void *b, void *bias, void *aux)
{
    count_or_note(p, gemm_put(p, &p->algo, s, d, a, b, bias, aux));
}
