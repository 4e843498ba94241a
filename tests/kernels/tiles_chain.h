/* tiles_chain.h: TILES_CHAIN, a chain of AMX's tile products: c (16, 16) += a times b, `steps`
 * times, with the next 512 numbers of a and of b each time. */
#include "kernels/cpu/amx.h"
#include "tests/kernels/twin_amx.h"

void TILES_CHAIN(float *c, const uint16_t *a, const uint16_t *b, int steps)
{
    tile_config();
    /* gcc 12 does not know that a tile load reads memory: finish the stores before it */
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
