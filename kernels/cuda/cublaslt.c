/* cublaslt.c: the table of cuBLASLt's functions, from the library that the machine has. Not yet run on a GPU. */
#include "cublaslt.h"

#include <dlfcn.h>

#include "base/library.h"

/* Newest first: what we use is the same in both. Then where a toolkit lies that nobody told the system about. */
static const char *const libraries[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                        "/usr/local/cuda/lib64/libcublasLt.so.13",
                                        "/usr/local/cuda/lib64/libcublasLt.so.12"};

static void *open_library(sgt_error *err)
{
    char first[256];
    void *library = sgt_library_open(libraries, sizeof libraries / sizeof *libraries, first, sizeof first);
    if (library) return library;
    sgt_fail(err, SGT_EUNSUPPORTED,
             "cuBLASLt: neither %s nor %s can be loaded: %s (install CUDA's cuBLAS, or name its folder in "
             "LD_LIBRARY_PATH)",
             libraries[0], libraries[1], first);
    return NULL;
}

static int fill(sgt_cublaslt *t, void *library, sgt_error *err)
{
    const sgt_symbol symbols[] = {{"cublasLtGetVersion", &t->version},
                                  {"cublasLtGetStatusName", &t->status_name},
                                  {"cublasLtCreate", &t->create},
                                  {"cublasLtDestroy", &t->destroy},
                                  {"cublasLtMatmulDescCreate", &t->desc_create},
                                  {"cublasLtMatmulDescDestroy", &t->desc_destroy},
                                  {"cublasLtMatmulDescSetAttribute", &t->desc_set},
                                  {"cublasLtMatrixLayoutCreate", &t->layout_create},
                                  {"cublasLtMatrixLayoutDestroy", &t->layout_destroy},
                                  {"cublasLtMatrixLayoutSetAttribute", &t->layout_set},
                                  {"cublasLtMatmulPreferenceCreate", &t->preference_create},
                                  {"cublasLtMatmulPreferenceDestroy", &t->preference_destroy},
                                  {"cublasLtMatmulPreferenceSetAttribute", &t->preference_set},
                                  {"cublasLtMatmulAlgoGetHeuristic", &t->heuristics},
                                  {"cublasLtMatmulAlgoCheck", &t->algo_check},
                                  {"cublasLtMatmulAlgoConfigGetAttribute", &t->algo_config},
                                  {"cublasLtMatmul", &t->matmul}};
    _Static_assert(sizeof symbols / sizeof *symbols == sizeof *t / sizeof(void *), "a function a member");
    const char *missing = sgt_library_look_up(library, symbols, sizeof symbols / sizeof *symbols);
    if (missing)
        return sgt_fail(err, SGT_EUNSUPPORTED, "cuBLASLt: %s is missing (a cuBLAS of CUDA 12 or 13 is needed)",
                        missing);
    return SGT_OK;
}

/* Stays loaded: the table never changes once it is filled. */
const sgt_cublaslt *sgt_cublaslt_load(sgt_error *err)
{
    static sgt_cublaslt table;
    static int filled;
    if (filled) return &table;
    void *library = open_library(err);
    if (!library) return NULL;
    if (fill(&table, library, err) < 0) {
        dlclose(library);
        return NULL;
    }
    filled = 1;
    return &table;
}
