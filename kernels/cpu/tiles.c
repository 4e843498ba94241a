/* tiles.c: asks Linux for AMX's tile registers. */
#include "kernels/cpu/tiles.h"

#include "loader/base/cpu.h"

#if defined(__x86_64__) && !defined(SGT_AMX_TWIN)
#include <sys/syscall.h>
#include <unistd.h>

/* arguments of arch_prctl, which older asm/prctl.h lack */
enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };

static int allowed; /* 0: not asked, 1: yes, -1: no. Every thread gets the same answer. */

int sgt_tiles(void)
{
    if (!sgt_cpu_amx()) return 0;
    int is = __atomic_load_n(&allowed, __ATOMIC_RELAXED);
    if (!is) is = syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0 ? 1 : -1;
    __atomic_store_n(&allowed, is, __ATOMIC_RELAXED);
    return is > 0;
}
#elif defined(__x86_64__)
int sgt_tiles(void) { return sgt_cpu_amx(); }
#else
int sgt_tiles(void) { return 0; }
#endif
