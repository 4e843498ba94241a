/* claimed_cpu.c: the functions of cpu.h under other names, compiled for a CPU that claims to have
 * AMX, so that only Linux can refuse AMX. */
#define SGT_AMX_TRAP
#define sgt_cpu claimed_cpu
#define sgt_cpu_names claimed_cpu_names
#define sgt_cpu_name claimed_cpu_name
#define sgt_cpu_bf16 claimed_cpu_bf16
#define sgt_cpu_amx claimed_cpu_amx
#define sgt_cpu_vbmi2 claimed_cpu_vbmi2
#define sgt_cpu_neon claimed_cpu_neon
#define sgt_cpu_limit claimed_cpu_limit
#define sgt_cpu_count claimed_cpu_count
#define sgt_cpu_threads claimed_cpu_threads
#define sgt_cpu_model claimed_cpu_model
#include "loader/base/cpu.c"
