/* tiles_amx.c: a chain of tile products by AMX's instructions, also in a build with the twin. */
#if defined(__x86_64__)
#undef SGT_AMX_TWIN
#define TILES_CHAIN tiles_by_instruction
#include "tests/kernels/tiles_chain.h"
#endif
