/* amx.c: how test cases get AMX's instructions, and a test that Linux can refuse AMX. The kernels for
 * AMX are tested like all other kernels, in the columns "amx" of gemm.c, attention.c and head.c. */
#include "tests/kernels/amx.h"

#include <string.h>

#include "loader/base/cpu.h"
#include "tests/kernels/trap/trap_amx.h"

/* The linker makes the kernels call __wrap_sgt_cpu_amx instead of sgt_cpu_amx (tests/rules.mk). */
int __real_sgt_cpu_amx(void);
int __wrap_sgt_cpu_amx(void);

static int in_tiles;

int __wrap_sgt_cpu_amx(void) { return in_tiles || __real_sgt_cpu_amx(); }

#if defined(__x86_64__)
static long held_before; /* unreleased tile configurations of earlier cases that crashed */

int amx_begin(check *t)
{
    if (!sgt_cpu_bf16())
        check_skip(t, "AMX's emulation needs AVX512-BF16, which this CPU does not have");
    else if (!__real_sgt_cpu_amx()) trap_amx();
    in_tiles = !t->skipped;
    held_before = in_tiles ? trap_amx_held() : 0;
    return in_tiles;
}

void amx_end(check *t)
{
    long held = in_tiles ? trap_amx_held() - held_before : 0;
    in_tiles = 0;
    if (held) check_fail(t, "tiles were configured and not released, %ld times", held);
}

/* Check that Linux refuses AMX on a CPU without it, and that the level is then AVX-512. */
static void refused(check *t)
{
    static const char want[] =
        "amx: Linux does not allow this process to use AMX (use a lower level, or auto)";
    sgt_error err = {.text = ""};
    if (!amx_begin(t) || __real_sgt_cpu_amx()) return;
    if (claimed_cpu_amx()) check_fail(t, "Linux does not refuse AMX");
    if (strcmp(claimed_cpu_name(), "avx512") != 0) check_fail(t, "%s", claimed_cpu_name());
    if (claimed_cpu_limit("amx", &err) != SGT_EUNSUPPORTED || strcmp(err.text, want) != 0)
        check_fail(t, "--cpu amx: %s", err.text);
}

#else
int amx_begin(check *t)
{
    check_skip(t, "AMX is part of x86-64");
    return 0;
}
void amx_end(check *t) { (void)t; }
static void refused(check *t) { amx_begin(t); }
#endif

const kernel_case cases_amx[] = {{"amx", refused, NULL, NULL, "amx"}, {0}};
