/* trap_amx.h: emulates AMX's instructions on a CPU without AMX, so that compiled AMX code runs
 * there.
 *
 *     trap_amx();              // from now on, a handler of SIGILL executes AMX's instructions
 *     sgt_gemm_run(g, a, b, bias, c);
 *
 * Only tests link this file. It needs AVX512-BF16. Each thread has its own tiles. If an instruction
 * is invalid on a CPU with AMX, or would fault there, a line on standard error says why, and the
 * same signal ends the process. A tile has 16 rows of 64 bytes, or is not configured. Other shapes
 * are refused. */
#ifndef SGT_CHECK_TRAP_AMX_H
#define SGT_CHECK_TRAP_AMX_H

/* Install the handler of SIGILL. Later calls change nothing. */
void trap_amx(void);

/* Return the number of tile configurations that their thread did not release. */
long trap_amx_held(void);

#endif
