/* amx.h: what the tests of the kernels for AMX share. On a CPU without AMX, but with AVX512-BF16, their
 * instructions run in emulation (trap/trap_amx.h). */
#ifndef SGT_CHECK_AMX_H
#define SGT_CHECK_AMX_H

#include <stdint.h>

#include "loader/base/error.h"
#include "tests/kernels/harness.h"

/* Let the case execute AMX's instructions: by the CPU, if it has AMX and Linux permits it, or in
 * emulation. Until amx_end, the products, attention and the head in bfloat16 are those for AMX, because
 * sgt_cpu_amx() says 1 to them. Return 0, with the case skipped, if neither is possible. */
int amx_begin(check *t);

/* End what amx_begin began, if it did. It is a failure if tiles were configured and not released. */
void amx_end(check *t);

/* ---- instructions_amx.c: x86-64 only, after amx_begin ---- */

/* Compute c (16, 16) += a times b, `steps` times, with the next 512 numbers of a and of b each time. */
void amx_chain(float *c, const uint16_t *a, const uint16_t *b, int steps);

/* ---- claimed_cpu.c: functions of cpu.h on a CPU that claims AMX, where Linux may refuse it ---- */
int claimed_cpu_amx(void);
const char *claimed_cpu_name(void);
int claimed_cpu_limit(const char *name, sgt_error *err);

#endif
