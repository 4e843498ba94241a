/* gemm.c: plans matrix products with cuBLASLt, writes the chosen algorithms as text, and runs the
 * products. The library expects column-major matrices, so it sees our D (m, n) as D^T (n, m).
 * We therefore ask it for D^T = op(B)^T op(A)^T, with our B as the first operand. The library's
 * bias has one element per row of its output, that is, per column of our D. */
#include "kernels/cuda/gemm.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/gemm_parts.h"
#include "kernels/cuda/runtime.h"

#define ALIGNMENT 16 /* alignment in bytes of every matrix */

static const char *const type_names[] = {"f32", "bf16", "f16"};
static const char *const epilogue_names[] = {"none", "bias", "gelu", "dgelu"};
static const sgt_lt_type lt_types[] = {SGT_LT_R_32F, SGT_LT_R_16BF, SGT_LT_R_16F};
static const uint32_t lt_epilogues[] = {SGT_LT_EPILOGUE_DEFAULT, SGT_LT_EPILOGUE_BIAS,
                                        SGT_LT_EPILOGUE_GELU_AUX_BIAS, SGT_LT_EPILOGUE_DGELU};

/* ---- shapes ---- */

/* Return a copy of the shape in which every field that has no effect is set to a fixed value.
 * Shapes of the same computation are then equal, so that they share a plan. */
static sgt_cuda_gemm_shape plain(const sgt_cuda_gemm_shape *s)
{
    sgt_cuda_gemm_shape p = *s;
    p.trans_a = !!p.trans_a, p.trans_b = !!p.trans_b, p.accumulate = !!p.accumulate;
    p.tf32 = p.tf32 && p.type == SGT_F32;
    if (!p.batch) p.batch = 1;
    if (p.batch == 1) p.stride_a = p.stride_b = p.stride_d = 0;
    /* A batch must have no epilogue, because the library would need the batch strides of bias and
     * aux. */
    assert(p.batch == 1 || p.epilogue == SGT_EPILOGUE_NONE);
    return p;
}

static void name_shape(char key[GEMM_KEY], const sgt_cuda_gemm_shape *s)
{
    int n = snprintf(key, GEMM_KEY, "%zux%zux%zu,%c%c,%zu,%zu,%zu,%s,%s,%s%s%s", s->m, s->n, s->k,
                     s->trans_a ? 't' : 'n', s->trans_b ? 't' : 'n', s->lda, s->ldb, s->ldd,
                     type_names[s->type], type_names[s->out], epilogue_names[s->epilogue],
                     s->tf32 ? ",tf32" : "", s->accumulate ? ",add" : "");
    if (s->multiprocessors)
        n += snprintf(key + n, GEMM_KEY - (size_t)n, ",sm%d", s->multiprocessors);
    if (s->batch > 1)
        snprintf(key + n, GEMM_KEY - (size_t)n, ",%zu,%zu,%zu,%zu", s->batch, s->stride_a,
                 s->stride_b, s->stride_d);
}

double sgt_cuda_gemm_flops(const sgt_cuda_gemm *p)
{
    const sgt_cuda_gemm_shape *s = &p->shape;
    return 2.0 * (double)s->m * (double)s->n * (double)s->k * (double)s->batch;
}

/* ---- describing a matrix product to the library ---- */

static int refused(const sgt_cuda_gemms *g, const char *what, sgt_lt_status status, sgt_error *err)
{
    int code = status == SGT_LT_ALLOC_FAILED ? SGT_ENOMEM : SGT_EUNSUPPORTED;
    return sgt_fail(err, code, "%s: %s: %s", g->library, what, g->lt->status_name(status));
}

/* Store the addresses of bias and aux in the descriptor if the epilogue uses them. They may differ
 * from call to call. The algorithm, which was chosen once, still fits, because the heuristics
 * depend only on the alignment of the addresses. */
static sgt_lt_status set_pointers(const sgt_cuda_gemm *p, const void *bias, const void *aux)
{
    const sgt_cublaslt *lt = p->owner->lt;
    sgt_cuda_epilogue e = p->shape.epilogue;
    sgt_lt_status rc = SGT_LT_SUCCESS;
    if (e == SGT_EPILOGUE_BIAS || e == SGT_EPILOGUE_GELU)
        rc = lt->desc_set(p->desc, SGT_LT_DESC_BIAS_POINTER, &bias, sizeof bias);
    if (!rc && gemm_has_aux(&p->shape))
        rc = lt->desc_set(p->desc, SGT_LT_DESC_AUX_POINTER, &aux, sizeof aux);
    return rc;
}

static sgt_lt_status describe_product(sgt_cuda_gemm *p)
{
    const sgt_cublaslt *lt = p->owner->lt;
    const sgt_cuda_gemm_shape *s = &p->shape;
    int32_t first = s->trans_b ? SGT_LT_OP_T : SGT_LT_OP_N,
            second = s->trans_a ? SGT_LT_OP_T : SGT_LT_OP_N;
    int64_t aux_ld = (int64_t)s->ldd;
    uint32_t epilogue = lt_epilogues[s->epilogue];
    const char *aligned = (const char *)p->owner->workspace + ALIGNMENT;
    sgt_lt_status rc;
    if ((rc = lt->desc_create(&p->desc, s->tf32 ? SGT_LT_COMPUTE_32F_FAST_TF32 : SGT_LT_COMPUTE_32F,
                              SGT_LT_R_32F)) ||
        (rc = lt->desc_set(p->desc, SGT_LT_DESC_TRANSA, &first, sizeof first)) ||
        (rc = lt->desc_set(p->desc, SGT_LT_DESC_TRANSB, &second, sizeof second)) ||
        (rc = lt->desc_set(p->desc, SGT_LT_DESC_EPILOGUE, &epilogue, sizeof epilogue)) ||
        (rc = lt->desc_set(p->desc, SGT_LT_DESC_SM_COUNT_TARGET, &s->multiprocessors,
                           sizeof s->multiprocessors)))
        return rc;
    if (gemm_has_aux(s) && (rc = lt->desc_set(p->desc, SGT_LT_DESC_AUX_LD, &aux_ld, sizeof aux_ld)))
        return rc;
    return set_pointers(p, aligned, aligned);
}

/* Describe to the library a row-major matrix of `rows` rows and `columns` columns. The library sees
 * its transpose: a column-major matrix of `columns` rows and `rows` columns. */
static sgt_lt_status describe_matrix(sgt_lt_layout *out, const sgt_cuda_gemm *p, sgt_cuda_type type,
                                     size_t rows, size_t columns, size_t ld, size_t stride)
{
    const sgt_cublaslt *lt = p->owner->lt;
    int32_t batch = (int32_t)p->shape.batch;
    int64_t offset = (int64_t)stride;
    sgt_lt_status rc = lt->layout_create(out, lt_types[type], columns, rows, (int64_t)ld);
    if (rc || batch == 1) return rc;
    if ((rc = lt->layout_set(*out, SGT_LT_LAYOUT_BATCH_COUNT, &batch, sizeof batch))) return rc;
    return lt->layout_set(*out, SGT_LT_LAYOUT_BATCH_STRIDE, &offset, sizeof offset);
}

static int describe(sgt_cuda_gemm *p, sgt_error *err)
{
    const sgt_cuda_gemm_shape *s = &p->shape;
    size_t rows_a = s->trans_a ? s->k : s->m, rows_b = s->trans_b ? s->n : s->k;
    sgt_lt_status rc;
    if ((rc = describe_product(p)) ||
        (rc = describe_matrix(&p->a, p, s->type, rows_a, s->trans_a ? s->m : s->k, s->lda,
                              s->stride_a)) ||
        (rc = describe_matrix(&p->b, p, s->type, rows_b, s->trans_b ? s->k : s->n, s->ldb,
                              s->stride_b)) ||
        (rc = describe_matrix(&p->d, p, s->out, s->m, s->n, s->ldd, s->stride_d)))
        return refused(p->owner, p->key, rc, err);
    return SGT_OK;
}

/* ---- chosen algorithms as text ----
 *
 * The first line names the device and the library's version; the text is valid only for these. Each
 * further line has the algorithm for one shape: the shape's key and the library's 64 opaque bytes
 * as eight integers. */

/* Find the algorithm for p's shape in the caller's choices, and set p->algo. Return 1 if there is
 * one and the library accepts it on this device, else 0. */
static int recall(sgt_cuda_gemm *p)
{
    const sgt_cuda_gemms *g = p->owner;
    sgt_lt_result result = {.state = SGT_LT_SUCCESS};
    char line[GEMM_KEY + 2];
    if (!g->o.choices || strncmp(g->o.choices, g->machine, strlen(g->machine)) != 0) return 0;
    snprintf(line, sizeof line, "\n%s ", p->key);
    char *at = strstr(g->o.choices, line);
    if (!at) return 0;
    at += strlen(line);
    for (int i = 0; i < 8; i++) p->algo.data[i] = strtoull(at, &at, 16);
    return *at == '\n' &&
           !g->lt->algo_check(g->handle, p->desc, p->b, p->a, p->d, p->d, &p->algo, &result) &&
           !result.state && result.workspace <= SGT_CUDA_GEMM_WORKSPACE;
}

char *sgt_cuda_gemms_choices(const sgt_cuda_gemms *g)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f) return NULL;
    fputs(g->machine, f);
    for (const sgt_cuda_gemm *p = g->first; p; p = p->next) {
        fputs(p->key, f);
        for (int i = 0; i < 8; i++) fprintf(f, " %" PRIx64, p->algo.data[i]);
        fputc('\n', f);
    }
    if (!fclose(f)) return text;
    free(text);
    return NULL;
}

/* ---- choosing an algorithm ---- */

/* Return the methods by which the library may combine the partial sums if it splits the sum over k
 * among blocks. The library may always store them as floats and add them in a separate step
 * (COMPUTE_TYPE). The other methods use D's type. If D has 16 bits, do not allow them, because each
 * partial sum would be rounded. If results must have the same bits each time, do not allow them
 * either, because blocks that add to D in place do so in the order in which they finish. */
static uint32_t allowed_reductions(const sgt_cuda_gemm *p)
{
    if (p->owner->o.deterministic || p->shape.out != SGT_F32) return SGT_LT_REDUCTION_COMPUTE_TYPE;
    return SGT_LT_REDUCTION_INPLACE | SGT_LT_REDUCTION_COMPUTE_TYPE | SGT_LT_REDUCTION_OUTPUT_TYPE;
}

static sgt_lt_status ask(const sgt_cuda_gemm *p, sgt_lt_preference preference,
                         sgt_lt_result *results, int *count)
{
    const sgt_cublaslt *lt = p->owner->lt;
    const uint32_t alignment = ALIGNMENT, reductions = allowed_reductions(p);
    const uint64_t workspace = SGT_CUDA_GEMM_WORKSPACE;
    sgt_lt_status rc = lt->preference_set(preference, SGT_LT_PREFERENCE_MAX_WORKSPACE, &workspace,
                                          sizeof workspace);
    if (!rc)
        rc = lt->preference_set(preference, SGT_LT_PREFERENCE_REDUCTION_MASK, &reductions,
                                sizeof reductions);
    for (int which = SGT_LT_PREFERENCE_ALIGNMENT_A; which <= SGT_LT_PREFERENCE_ALIGNMENT_D && !rc;
         which++)
        rc = lt->preference_set(preference, which, &alignment, sizeof alignment);
    if (rc) return rc;
    return lt->heuristics(p->owner->handle, p->desc, p->b, p->a, p->d, p->d, preference,
                          GEMM_CANDIDATES, results, count);
}

/* Get the algorithms that the library's heuristics suggest for p's shape, best first. Return
 * SGT_EUNSUPPORTED if they suggest none. */
static int find_candidates(sgt_lt_result results[GEMM_CANDIDATES], int *count,
                           const sgt_cuda_gemm *p, sgt_error *err)
{
    const sgt_cuda_gemms *g = p->owner;
    sgt_lt_preference preference;
    int found = 0;
    sgt_lt_status rc = g->lt->preference_create(&preference);
    if (rc) return refused(g, p->key, rc, err);
    rc = ask(p, preference, results, &found);
    g->lt->preference_destroy(preference);
    if (rc) return refused(g, p->key, rc, err);
    *count = 0;
    for (int i = 0; i < found; i++)
        if (!results[i].state && results[i].workspace <= SGT_CUDA_GEMM_WORKSPACE)
            results[(*count)++] = results[i];
    if (*count) return SGT_OK;
    return sgt_fail(err, SGT_EUNSUPPORTED, "%s: %s: it has no algorithm for this matrix product",
                    g->library, p->key);
}

static int choose(sgt_cuda_gemm *p, sgt_error *err)
{
    const sgt_cuda_gemms_options *o = &p->owner->o;
    sgt_lt_result candidates[GEMM_CANDIDATES];
    int count;
    if (recall(p)) return SGT_OK;
    int rc = find_candidates(candidates, &count, p, err);
    if (rc < 0) return rc;
    p->algo = candidates[0].algo;
    if (o->timing || (o->deterministic && !o->unverified))
        rc = gemm_tune(p, candidates, count, err);
    return rc == SGT_ENOMEM ? SGT_OK : rc;
}

/* ---- the functions of gemm.h ---- */

static void free_plan(sgt_cuda_gemm *p)
{
    const sgt_cublaslt *lt = p->owner->lt;
    if (p->d) lt->layout_destroy(p->d);
    if (p->b) lt->layout_destroy(p->b);
    if (p->a) lt->layout_destroy(p->a);
    if (p->desc) lt->desc_destroy(p->desc);
    free(p);
}

int sgt_cuda_gemm_plan(const sgt_cuda_gemm **out, sgt_cuda_gemms *g, const sgt_cuda_gemm_shape *s,
                       sgt_error *err)
{
    sgt_cuda_gemm *p = calloc(1, sizeof *p);
    if (!p) return sgt_fail_memory(err, "a matrix product");
    p->owner = g;
    p->shape = plain(s);
    name_shape(p->key, &p->shape);
    const sgt_cuda_gemm *same = g->first;
    while (same && strcmp(same->key, p->key)) same = same->next;
    int rc = same ? SGT_OK : describe(p, err);
    if (!same && rc == SGT_OK) rc = choose(p, err);
    if (same || rc < 0) {
        free_plan(p);
        *out = same;
        return rc;
    }
    p->next = g->first;
    g->first = p;
    *out = p;
    return SGT_OK;
}

float sgt_cuda_gemm_ms(const sgt_cuda_gemm *p) { return p->ms; }

static int open_library(sgt_cuda_gemms *g, sgt_error *err)
{
    if (!(g->lt = sgt_cublaslt_load(err))) return SGT_EUNSUPPORTED;
    size_t version = g->lt->version();
    snprintf(g->library, sizeof g->library, "cuBLASLt %zu.%zu.%zu", version / 10000,
             version / 100 % 100, version % 100);
    snprintf(g->machine, sizeof g->machine, "%s, %s\n", g->o.device, g->library);
    sgt_lt_status rc = g->lt->create(&g->handle);
    if (rc) return refused(g, "cublasLtCreate", rc, err);
    return sgt_cuda_malloc(&g->workspace, SGT_CUDA_GEMM_WORKSPACE, err);
}

int sgt_cuda_gemms_open(sgt_cuda_gemms **out, const sgt_cuda_gemms_options *o, sgt_error *err)
{
    sgt_cuda_gemms *g = calloc(1, sizeof *g);
    if (!g) return sgt_fail_memory(err, "matrix products");
    g->o = *o;
    g->o.timing = o->timing && !o->deterministic;
    int rc = open_library(g, err);
    if (rc < 0) {
        sgt_cuda_gemms_close(g);
        return rc;
    }
    *out = g;
    return SGT_OK;
}

void sgt_cuda_gemms_close(sgt_cuda_gemms *g)
{
    if (!g) return;
    for (sgt_cuda_gemm *p = g->first, *next; p; p = next) {
        next = p->next;
        free_plan(p);
    }
    if (g->workspace) sgt_cuda_free(g->workspace);
    if (g->handle) g->lt->destroy(g->handle);
    free(g);
}

const char *sgt_cuda_gemms_library(const sgt_cuda_gemms *g) { return g->library; }

/* ---- running a matrix product ---- */

sgt_lt_status gemm_put(const sgt_cuda_gemm *p, const sgt_lt_algo *algo, sgt_cuda_stream s,
                       const gemm_operands *x)
{
    const sgt_cuda_gemms *g = p->owner;
    sgt_lt_status rc = set_pointers(p, x->bias, x->aux);
    if (rc) return rc;
    rc = g->lt->matmul(g->handle, p->desc, &x->f, x->b, p->b, x->a, p->a, &x->h, x->onto, p->d,
                       x->d, p->d, algo, g->workspace, SGT_CUDA_GEMM_WORKSPACE, s);
    if (!rc) sgt_cuda_launched(s, "%s: %s", g->library, p->key);
    return rc;
}

/* Enqueue a matrix product on a stream and count the launch. If the library rejects the matrix
 * product, note the reason for the next sgt_cuda_check. */
static void put(const sgt_cuda_gemm *p, sgt_cuda_stream s, const gemm_operands *x)
{
    sgt_error why;
    sgt_lt_status rc = gemm_put(p, &p->algo, s, x);
    if (!rc) {
        sgt_cuda_count_launch();
        return;
    }
    refused(p->owner, p->key, rc, &why);
    sgt_cuda_note_failure(why.text, rc);
}

void sgt_cuda_gemm_run_mixed(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, float f,
                             const void *a, const void *b, float h, const void *onto)
{
    put(p, s, &(gemm_operands){.d = d, .a = a, .b = b, .onto = onto, .f = f, .h = h});
}

void sgt_cuda_gemm_run(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, const void *a,
                       const void *b, void *bias, void *aux)
{
    put(p, s,
        &(gemm_operands){.d = d,
                         .a = a,
                         .b = b,
                         .bias = bias,
                         .aux = aux,
                         .onto = d,
                         .f = 1,
                         .h = p->shape.accumulate ? 1 : 0});
}
