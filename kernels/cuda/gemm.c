/* gemm.c: plans matrix products for cuBLASLt and runs them. The library is column-major: our D (m,
 * n) is its D^T (n, m), so we ask for D^T = op(B)^T op(A)^T, and our B is its first operand. Its
 * bias has one number per row of its output, that is, per column of D. */
#include "kernels/cuda/gemm.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/gemm_parts.h"
#include "kernels/cuda/runtime.h"

static const char *const type_names[] = {"f32", "bf16", "f16"};
static const char *const epilogue_names[] = {"none", "bias", "gelu", "dgelu"};
static const sgt_lt_type lt_types[] = {SGT_LT_R_32F, SGT_LT_R_16BF, SGT_LT_R_16F};
static const uint32_t lt_epilogues[] = {SGT_LT_EPILOGUE_DEFAULT, SGT_LT_EPILOGUE_BIAS,
                                        SGT_LT_EPILOGUE_GELU_AUX_BIAS, SGT_LT_EPILOGUE_DGELU};

/* ---- shapes ---- */

/* Return the shape with fields that have no effect set to zero, so that equal products compare
 * equal. */
static sgt_cuda_gemm_shape plain(const sgt_cuda_gemm_shape *s)
{
    sgt_cuda_gemm_shape p = *s;
    p.trans_a = !!p.trans_a, p.trans_b = !!p.trans_b, p.accumulate = !!p.accumulate;
    p.tf32 = p.tf32 && p.type == SGT_F32;
    if (!p.batch) p.batch = 1;
    if (p.batch == 1) p.stride_a = p.stride_b = p.stride_d = 0;
    return p;
}

static void name_shape(char key[GEMM_KEY], const sgt_cuda_gemm_shape *s)
{
    int n = snprintf(key, GEMM_KEY, "%zux%zux%zu,%c%c,%zu,%zu,%zu,%s,%s,%s%s%s", s->m, s->n, s->k,
                     s->trans_a ? 't' : 'n', s->trans_b ? 't' : 'n', s->lda, s->ldb, s->ldd,
                     type_names[s->type], type_names[s->out], epilogue_names[s->epilogue],
                     s->tf32 ? ",tf32" : "", s->accumulate ? ",add" : "");
    if (s->batch > 1)
        snprintf(key + n, GEMM_KEY - (size_t)n, ",%zu,%zu,%zu,%zu", s->batch, s->stride_a,
                 s->stride_b, s->stride_d);
}

static int check_sizes(const sgt_cuda_gemm_shape *s, sgt_error *err)
{
    const size_t sizes[] = {s->m, s->n, s->k, s->lda, s->ldb, s->ldd, s->batch};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (!sizes[i])
            return sgt_fail(err, SGT_EUSAGE, "product %zu x %zu x %zu: a size is 0", s->m, s->n,
                            s->k);
        if (sizes[i] > INT32_MAX)
            return sgt_fail(err, SGT_EUNSUPPORTED,
                            "product %zu x %zu x %zu: %zu is more than cuBLASLt takes (%d)", s->m,
                            s->n, s->k, sizes[i], INT32_MAX);
    }
    return SGT_OK;
}

static int check_shape(const sgt_cuda_gemm_shape *s, sgt_error *err)
{
    if (s->type < SGT_F32 || s->type > SGT_F16 || s->out < SGT_F32 || s->out > SGT_F16 ||
        s->epilogue < SGT_EPILOGUE_NONE || s->epilogue > SGT_EPILOGUE_DGELU)
        return sgt_fail(err, SGT_EUSAGE, "product %zu x %zu x %zu: no such type or epilogue", s->m,
                        s->n, s->k);
    int rc = check_sizes(s, err);
    if (rc < 0) return rc;
    const struct {
        const char *name;
        size_t columns, ld;
    } stored[] = {{"lda", s->trans_a ? s->m : s->k, s->lda},
                  {"ldb", s->trans_b ? s->k : s->n, s->ldb},
                  {"ldd", s->n, s->ldd}};
    for (int i = 0; i < 3; i++)
        if (stored[i].ld < stored[i].columns)
            return sgt_fail(err, SGT_EUSAGE,
                            "product %zu x %zu x %zu: %s is %zu, a row has %zu numbers", s->m, s->n,
                            s->k, stored[i].name, stored[i].ld, stored[i].columns);
    if (s->batch > 1 && s->epilogue != SGT_EPILOGUE_NONE)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "product %zu x %zu x %zu: a batch of %zu with epilogue %s", s->m, s->n,
                        s->k, s->batch, epilogue_names[s->epilogue]);
    return SGT_OK;
}

/* ---- describing a product to the library ---- */

static int refused(const sgt_cuda_gemms *g, const char *what, sgt_lt_status status, sgt_error *err)
{
    int code = status == SGT_LT_ALLOC_FAILED ? SGT_ENOMEM : SGT_EUNSUPPORTED;
    return sgt_fail(err, code, "%s: %s: %s", g->library, what, g->lt->status_name(status));
}

static sgt_lt_status describe_product(sgt_cuda_gemm *p)
{
    const sgt_cublaslt *lt = p->owner->lt;
    const sgt_cuda_gemm_shape *s = &p->shape;
    int32_t first = s->trans_b ? SGT_LT_OP_T : SGT_LT_OP_N,
            second = s->trans_a ? SGT_LT_OP_T : SGT_LT_OP_N;
    int64_t aux_ld = (int64_t)s->ldd;
    uint32_t epilogue = lt_epilogues[s->epilogue];
    const char *aligned = (const char *)p->owner->workspace + GEMM_ALIGNMENT;
    sgt_lt_status rc;
    if ((rc = lt->desc_create(&p->desc, s->tf32 ? SGT_LT_COMPUTE_32F_FAST_TF32 : SGT_LT_COMPUTE_32F,
                              SGT_LT_R_32F)) ||
        (rc = lt->desc_set(p->desc, SGT_LT_DESC_TRANSA, &first, sizeof first)) ||
        (rc = lt->desc_set(p->desc, SGT_LT_DESC_TRANSB, &second, sizeof second)) ||
        (rc = lt->desc_set(p->desc, SGT_LT_DESC_EPILOGUE, &epilogue, sizeof epilogue)))
        return rc;
    if (gemm_has_aux(s) && (rc = lt->desc_set(p->desc, SGT_LT_DESC_AUX_LD, &aux_ld, sizeof aux_ld)))
        return rc;
    return gemm_set_pointers(p, aligned, aligned);
}

/* Describe our row-major matrix, `rows` rows of `columns` numbers, as a column-major matrix with
 * `columns` rows. */
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

/* ---- choosing an algorithm ---- */

/* Return how the library may combine the parts of a sum over k. If D has 16 bits, parts must not be
 * added in D's type, because each would be rounded. If bits must be reproducible, parts must not be
 * added in place, because the order is that in which blocks finish. */
static uint32_t allowed_reductions(const sgt_cuda_gemm *p)
{
    if (p->owner->deterministic || p->shape.out != SGT_F32) return SGT_LT_REDUCTION_COMPUTE_TYPE;
    return SGT_LT_REDUCTION_INPLACE | SGT_LT_REDUCTION_COMPUTE_TYPE | SGT_LT_REDUCTION_OUTPUT_TYPE;
}

/* Return whether an algorithm combines the parts of its sums as allowed_reductions says, or
 * `unknown` if it does not tell: the heuristics were already told what is allowed. */
static int algo_allowed(const sgt_cuda_gemm *p, const sgt_lt_algo *algo, int unknown)
{
    uint32_t scheme;
    size_t written;
    if (p->owner->lt->algo_config(algo, SGT_LT_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme,
                                  &written))
        return unknown;
    return (scheme & ~allowed_reductions(p)) == 0;
}

/* Return whether the library accepts an algorithm, which was read from a file, for this product on
 * this device. */
static int algo_serves(const sgt_cuda_gemm *p, const sgt_lt_algo *algo)
{
    const sgt_cuda_gemms *g = p->owner;
    sgt_lt_result result = {.state = SGT_LT_SUCCESS};
    return algo_allowed(p, algo, 0) &&
           !g->lt->algo_check(g->handle, p->desc, p->b, p->a, p->d, p->d, algo, &result) &&
           !result.state && result.workspace <= SGT_CUDA_GEMM_WORKSPACE;
}

static sgt_lt_status ask(const sgt_cuda_gemm *p, sgt_lt_preference preference,
                         sgt_lt_result *results, int *count)
{
    const sgt_cublaslt *lt = p->owner->lt;
    const uint32_t alignment = GEMM_ALIGNMENT, reductions = allowed_reductions(p);
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

/* Get the heuristics' best candidates, best first. Returns SGT_EUNSUPPORTED if there is none. */
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
        if (!results[i].state && results[i].workspace <= SGT_CUDA_GEMM_WORKSPACE &&
            algo_allowed(p, &results[i].algo, 1))
            results[(*count)++] = results[i];
    if (*count) return SGT_OK;
    return sgt_fail(err, SGT_EUNSUPPORTED, "%s: %s: it has no algorithm for this product",
                    g->library, p->key);
}

static int choose(sgt_cuda_gemm *p, sgt_error *err)
{
    sgt_cuda_gemms *g = p->owner;
    sgt_lt_result candidates[GEMM_CANDIDATES];
    int count, best, time_it = g->timing && !g->deterministic;
    if (g->deterministic && gemm_choice_find(&p->algo, g, p->key) && algo_serves(p, &p->algo))
        return SGT_OK;
    if (time_it && gemm_cache_find(&p->algo, &p->ms, g, p->key) && algo_serves(p, &p->algo))
        return SGT_OK;
    p->ms = 0;
    int rc = find_candidates(candidates, &count, p, err);
    if (rc < 0) return rc;
    p->algo = candidates[0].algo;
    if (time_it) rc = gemm_tune(&best, &p->ms, p, candidates, count, err);
    else if (g->deterministic && !g->unverified)
        rc = gemm_first_correct(&best, p, candidates, count, err);
    else return SGT_OK;
    if (rc == SGT_ENOMEM) return SGT_OK;
    if (rc < 0) return rc;
    p->algo = candidates[best].algo;
    /* An error is ignored: the next start only has to time again. Later runs trust what the cache
     * holds, so it gets only algorithms whose results were checked. */
    if (time_it && g->cache && !g->unverified) gemm_cache_put(g, p->key, &p->algo, p->ms, NULL);
    return SGT_OK;
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
    sgt_cuda_gemm_shape shape = plain(s);
    char key[GEMM_KEY];
    int rc = check_shape(&shape, err);
    if (rc < 0) return rc;
    name_shape(key, &shape);
    for (const sgt_cuda_gemm *p = g->first; p; p = p->next)
        if (strcmp(p->key, key) == 0) {
            *out = p;
            return SGT_OK;
        }
    sgt_cuda_gemm *p = calloc(1, sizeof *p);
    if (!p) return sgt_fail(err, SGT_ENOMEM, "product %s: out of memory", key);
    p->owner = g;
    p->shape = shape;
    memcpy(p->key, key, sizeof key);
    if ((rc = describe(p, err)) < 0 || (rc = choose(p, err)) < 0) {
        free_plan(p);
        return rc;
    }
    *g->last = p;
    g->last = &p->next;
    *out = p;
    return SGT_OK;
}

float sgt_cuda_gemm_ms(const sgt_cuda_gemm *p) { return p->ms; }

/* Copy a name for use in files of lines and in JSON: replace characters that could end a word by
 * '_'. */
static void copy_name(char *out, size_t size, const char *name)
{
    size_t n = 0;
    for (; name[n] && n + 1 < size; n++) {
        unsigned char c = (unsigned char)name[n];
        out[n] = (char)(c < 0x80 && (isalnum(c) || strchr(" .()-", c)) ? c : '_');
    }
    out[n] = 0;
}

static int open_library(sgt_cuda_gemms *g, sgt_error *err)
{
    if (!(g->lt = sgt_cublaslt_load(err))) return SGT_EUNSUPPORTED;
    size_t version = g->lt->version();
    snprintf(g->library, sizeof g->library, "cuBLASLt %zu.%zu.%zu", version / 10000,
             version / 100 % 100, version % 100);
    sgt_lt_status rc = g->lt->create(&g->handle);
    if (rc) return refused(g, "cublasLtCreate", rc, err);
    return sgt_cuda_malloc(&g->workspace, SGT_CUDA_GEMM_WORKSPACE, err);
}

int sgt_cuda_gemms_open(sgt_cuda_gemms **out, const sgt_cuda_gemms_options *o, sgt_error *err)
{
    sgt_cuda_gemms *g = calloc(1, sizeof *g);
    if (!g) return sgt_fail_memory(err, "matrix products");
    g->last = &g->first;
    g->deterministic = o->deterministic;
    g->timing = o->timing;
    g->unverified = o->unverified;
    g->notice = o->notice;
    g->flush = o->flush ? o->flush : GEMM_FLUSH;
    copy_name(g->device, sizeof g->device, o->device ? o->device : "");
    int rc = SGT_OK;
    if ((o->cache && !(g->cache = strdup(o->cache))) ||
        (o->choices && !(g->choices = strdup(o->choices))))
        rc = sgt_fail_memory(err, "matrix products");
    if (rc < 0 || (rc = open_library(g, err)) < 0) {
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
    free(g->cache);
    free(g->choices);
    free(g);
}

const char *sgt_cuda_gemms_library(const sgt_cuda_gemms *g) { return g->library; }
