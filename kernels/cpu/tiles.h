/* tiles.h: decides whether kernels may use AMX tiles. */
#ifndef SGT_CPU_TILES_H
#define SGT_CPU_TILES_H

/* Return 1 if the CPU has AMX for bfloat16 and Linux lets this process use its registers, which the
 * first call asks for. Built with SGT_AMX_TWIN, every CPU with AVX512-BF16 passes for one with AMX.
 * Any thread may call it. */
int sgt_tiles(void);

#endif
