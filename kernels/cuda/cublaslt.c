/* cublaslt.c: loads cuBLASLt at run time and fills the table of its functions. */
#include "kernels/cuda/cublaslt.h"

#include "loader/base/library.h"

/* Names of the library, newest version first. sgt uses only functions that both versions have. The
 * last two names are full paths into the CUDA toolkit's folders, because the dynamic linker does
 * not always search these folders. */
static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                    "/usr/local/cuda/lib64/libcublasLt.so.13",
                                    "/usr/local/cuda/lib64/libcublasLt.so.12", NULL};

static sgt_cublaslt table;

static const sgt_symbol symbols[] = {
    {"cublasLtGetVersion", &table.version},
    {"cublasLtGetStatusName", &table.status_name},
    {"cublasLtCreate", &table.create},
    {"cublasLtDestroy", &table.destroy},
    {"cublasLtMatmulDescCreate", &table.desc_create},
    {"cublasLtMatmulDescDestroy", &table.desc_destroy},
    {"cublasLtMatmulDescSetAttribute", &table.desc_set},
    {"cublasLtMatrixLayoutCreate", &table.layout_create},
    {"cublasLtMatrixLayoutDestroy", &table.layout_destroy},
    {"cublasLtMatrixLayoutSetAttribute", &table.layout_set},
    {"cublasLtMatmulPreferenceCreate", &table.preference_create},
    {"cublasLtMatmulPreferenceDestroy", &table.preference_destroy},
    {"cublasLtMatmulPreferenceSetAttribute", &table.preference_set},
    {"cublasLtMatmulAlgoGetHeuristic", &table.heuristics},
    {"cublasLtMatmulAlgoCheck", &table.algo_check},
    {"cublasLtMatmul", &table.matmul},
    {NULL, NULL}};
_Static_assert(sizeof symbols / sizeof *symbols == sizeof table / sizeof(void *) + 1,
               "a function a member");

static sgt_library library = {
    .what = "cuBLASLt",
    .names = names,
    .symbols = symbols,
    .install = "install cuBLAS of CUDA 12 or 13, or name its folder in LD_LIBRARY_PATH",
    .version = "install cuBLAS of CUDA 12 or 13",
    .lock = PTHREAD_MUTEX_INITIALIZER};

const sgt_cublaslt *sgt_cublaslt_load(sgt_error *err)
{
    return sgt_library_load(&library, err) < 0 ? NULL : &table;
}
