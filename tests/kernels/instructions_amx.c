/* instructions_amx.c: a chain of tile products, for amx.c. */
#if defined(__x86_64__)
#include "kernels/cpu/amx.h"
#include "tests/kernels/amx.h"

void amx_chain(float *c, const uint16_t *a, const uint16_t *b, int steps)
{
    tile_config();
    /* Finish all stores first, because gcc 12 does not know that a tile load reads memory. */
    __asm__ volatile("" : : : "memory");
    tile_load(0, c, 64);
    for (int i = 0; i < steps; i++) {
        tile_load(4, a + i * 512, 64);
        tile_load(6, b + i * 512, 64);
        tile_dp(0, 4, 6);
    }
    tile_store(0, c, 64);
    tile_release();
}
#endif
