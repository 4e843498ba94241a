/* twin_tiles_amx.c: a chain of tile products by the twin. */
#if defined(__x86_64__)
#ifndef SGT_AMX_TWIN
#define SGT_AMX_TWIN
#endif
#define TILES_CHAIN tiles_by_twin
#include "tests/kernels/tiles_chain.h"
#endif
