/* level_plain.c: the kernels for any machine. */
#define SGT_LEVEL_TABLE sgt_table_plain
#define SGT_LEVEL_NAME "plain"
#include "kernels/cpu/kernels.inc.h"
