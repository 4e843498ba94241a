/* linux_tiles.c: sgt_tiles for a CPU that claims AMX, under another name: only Linux can refuse. */
#undef SGT_AMX_TWIN
#include "loader/base/cpu.h"
#include "tests/kernels/twin_amx.h"

#define sgt_tiles tiles_of_linux
#define sgt_cpu_amx() 1
#include "kernels/cpu/tiles.c"
