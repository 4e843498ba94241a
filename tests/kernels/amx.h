/* amx.h: helpers for tests of the kernels for AMX. On a CPU with AVX512-BF16 but without AMX, these
 * instructions are emulated (trap/trap_amx.h). */
#ifndef SGT_CHECK_AMX_H
#define SGT_CHECK_AMX_H

#include <stdint.h>

#include "loader/base/error.h"
#include "tests/kernels/harness.h"

/* Allow the case to execute AMX's instructions, on the CPU if it has AMX and Linux permits it,
 * otherwise by emulation. Until amx_end, sgt_cpu_amx() returns 1, so matrix products, attention and
 * the head in bfloat16 use the kernels for AMX. If neither is possible, skip the case and return
 * 0. */
int amx_begin(check *t);

/* End what amx_begin began, if it returned 1. The case fails if tiles were configured and not
 * released. */
void amx_end(check *t);

/* ---- instructions_amx.c: x86-64 only, after amx_begin ---- */

/* Compute c (16, 16) += a times b, `steps` times, with the next 512 numbers of a and of b each time. */
void amx_chain(float *c, const uint16_t *a, const uint16_t *b, int steps);

/* ---- claimed_cpu.c: functions of cpu.h on a CPU that claims AMX, where Linux may refuse it ---- */
int claimed_cpu_amx(void);
const char *claimed_cpu_name(void);
int claimed_cpu_limit(const char *name, sgt_error *err);

#endif
