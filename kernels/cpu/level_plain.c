/* level_plain.c: the kernels compiled as plain C for any machine, with vectors of 4 floats. */
#define SGT_LEVEL_TABLE sgt_table_plain
#define SGT_LEVEL_NAME "plain"
#include "kernels/cpu/kernels.inc.h"
