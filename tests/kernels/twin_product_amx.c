/* twin_product_amx.c: compiles the matrix product for AMX with the twin, under another name. */
#include "tests/kernels/twin_amx.h"

#if defined(__x86_64__)
#ifndef SGT_AMX_TWIN
#define SGT_AMX_TWIN
#endif
#define sgt_product_bf16_amx twin_product
#include "kernels/cpu/product_bf16_amx.c"
#endif
