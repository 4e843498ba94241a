/* check-cublaslt.c: tests gemm.c with the real cuBLASLt, as far as this works without a GPU. gemm.c
 * sets every attribute of matrix products, layouts and preferences in cuBLASLt's own descriptors,
 * which refuse unknown attributes and wrong sizes. Calls that need a device (handles, heuristics)
 * are replaced here; the heuristics return no algorithm.
 *
 * The last line is "N passed, N failed, N skipped". Exits with 1 on a failure, with 77 if there is
 * no library. Linked with --wrap=sgt_cublaslt_load, so that gemm.c gets the table below. */
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/gemm.h"

const sgt_cublaslt *__real_sgt_cublaslt_load(sgt_error *err);
const sgt_cublaslt *__wrap_sgt_cublaslt_load(sgt_error *err);

static int failed, asked;

/* ---- calls that need a device ---- */

static sgt_lt_status create(sgt_lt_handle *handle)
{
    static char something;
    *handle = (sgt_lt_handle)(void *)&something;
    return SGT_LT_SUCCESS;
}

static sgt_lt_status destroy(sgt_lt_handle handle)
{
    (void)handle;
    return SGT_LT_SUCCESS;
}

static sgt_lt_status heuristics(sgt_lt_handle handle, sgt_lt_desc desc, sgt_lt_layout a,
                                sgt_lt_layout b, sgt_lt_layout c, sgt_lt_layout d,
                                sgt_lt_preference preference, int wanted, sgt_lt_result results[],
                                int *count)
{
    (void)handle, (void)desc, (void)a, (void)b, (void)c, (void)d, (void)preference, (void)wanted,
        (void)results;
    asked++;
    *count = 0;
    return SGT_LT_SUCCESS;
}

const sgt_cublaslt *__wrap_sgt_cublaslt_load(sgt_error *err)
{
    static sgt_cublaslt table;
    const sgt_cublaslt *real = __real_sgt_cublaslt_load(err);
    if (!real) return NULL;
    table = *real;
    table.create = create;
    table.destroy = destroy;
    table.heuristics = heuristics;
    return &table;
}

/* ---- every form of product ---- */

/* Check that planning passes every attribute: the library accepts all attributes, and is asked for
 * algorithms once. */
static void accepted(sgt_cuda_gemms *g, const sgt_cuda_gemm_shape *s)
{
    const sgt_cuda_gemm *p;
    sgt_error err = {0};
    int before = asked, rc = sgt_cuda_gemm_plan(&p, g, s, &err);
    if (rc == SGT_EUNSUPPORTED && asked == before + 1 && strstr(err.text, "it has no algorithm"))
        return;
    failed++;
    printf("FAIL %s (%d)\n", err.text, rc);
}

static void all_forms(sgt_cuda_gemms *g)
{
    const sgt_cuda_gemm_shape base = {.m = 16, .n = 24, .k = 32, .lda = 64, .ldb = 64, .ldd = 64};
    sgt_cuda_gemm_shape s = base;
    for (int type = SGT_F32; type <= SGT_F16; type++)
        for (int epilogue = SGT_EPILOGUE_NONE; epilogue <= SGT_EPILOGUE_DGELU; epilogue++)
            for (int form = 0; form < 16; form++) {
                s.type = (sgt_cuda_type)type, s.epilogue = (sgt_cuda_epilogue)epilogue;
                s.trans_a = form & 1, s.trans_b = form >> 1 & 1, s.accumulate = form >> 2 & 1;
                s.tf32 = form >> 3;
                s.out = s.tf32 ? SGT_F32 : s.type;
                accepted(g, &s);
            }
    s = base;
    s.type = s.out = SGT_BF16;
    s.multiprocessors = 120, s.batch = 3, s.stride_a = s.stride_b = s.stride_d = 4096;
    accepted(g, &s);
}

int main(void)
{
    sgt_cuda_gemms *g;
    sgt_error err;
    if (!__real_sgt_cublaslt_load(&err)) {
        printf("SKIP %s\n0 passed, 0 failed, 1 skipped\n", err.text);
        return 77;
    }
    if (sgt_cuda_gemms_open(&g, &(sgt_cuda_gemms_options){.device = "none"}, &err) < 0) {
        printf("FAIL %s\n0 passed, 1 failed, 0 skipped\n", err.text);
        return 1;
    }
    printf("%s\n", sgt_cuda_gemms_library(g));
    all_forms(g);
    sgt_cuda_gemms_close(g);
    printf("%d passed, %d failed, 0 skipped\n", !failed, failed);
    return failed != 0;
}
