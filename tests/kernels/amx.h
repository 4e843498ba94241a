/* amx.h: helpers for tests of the kernels for AMX. On a CPU that has AVX512-BF16 but not AMX, AMX's
 * instructions are emulated (trap/trap_amx.h). */
#ifndef SGT_CHECK_AMX_H
#define SGT_CHECK_AMX_H

#include "loader/base/error.h"
#include "tests/kernels/harness.h"

/* Allow the test case to execute AMX's instructions: on the CPU if it has AMX and Linux permits it,
 * otherwise by emulation. Until amx_end, sgt_cpu_amx() returns 1, so matrix products, attention and
 * the head in bfloat16 use the kernels for AMX. If AMX can be neither used nor emulated, skip the
 * case and return 0. */
int amx_begin(check *t);

/* Undo amx_begin, if it returned 1. If tiles were configured but not released, the case fails. */
void amx_end(check *t);

/* ---- claimed_cpu.c: the functions of cpu.h on a CPU that claims to have AMX, so that only Linux
 * can refuse it ---- */
int claimed_cpu_amx(void);
const char *claimed_cpu_name(void);
int claimed_cpu_limit(const char *name, sgt_error *err);

#endif
