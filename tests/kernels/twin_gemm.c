/* twin_gemm.c: compiles gemm.c under other names, for the matrix product that runs by the twin. */
#define sgt_gemm_scratch twin_gemm_scratch
#define sgt_gemm_plan twin_gemm_plan
#define sgt_gemm_run twin_gemm_run
#define sgt_gemm_run_beside twin_gemm_run_beside
#define sgt_gemm_squares twin_gemm_squares
#define sgt_gemm_free twin_gemm_free
#define sgt_gemm_has_bf16 twin_gemm_has_bf16
#define sgt_beside_finish twin_beside_finish
#include "kernels/cpu/product.h"
#include "tests/kernels/twin_amx.h"

#if defined(__x86_64__)
extern const sgt_product twin_product;
#define sgt_own_product(bf16) ((void)(bf16), &twin_product)
#endif
#include "kernels/cpu/gemm.c"

const gemm_calls twin_gemm = {twin_gemm_plan, twin_gemm_run_beside, twin_gemm_squares,
                              twin_gemm_free};
