/* trap_amx.h: emulates AMX's instructions on a CPU without AMX, so that the compiled code runs.
 *
 *     trap_amx();              // from now on, a handler of SIGILL executes AMX's instructions
 *     amx_chain(c, a, b, steps);
 *
 * Only tests link it. It needs AVX512-BF16. Each thread has its own tiles. An instruction that is
 * invalid on a CPU with AMX, or that would fault there, ends the process by the same signal, after
 * a line on standard error that says why. Tiles are 16 rows of 64 bytes or not configured: other
 * shapes are refused. */
#ifndef SGT_CHECK_TRAP_AMX_H
#define SGT_CHECK_TRAP_AMX_H

/* Install the handler, once. */
void trap_amx(void);

/* Return how many configurations of tiles were not followed by a release in their thread. */
long trap_amx_held(void);

#endif
