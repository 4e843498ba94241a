/* no_memory.h: how a program ends if memory runs out during small allocations: it says so and exits
 * with code 1. Its files are then as after a kill, from which every program can continue. */
#ifndef SGT_CLI_NO_MEMORY_H
#define SGT_CLI_NO_MEMORY_H

/* Make jansson, too, end the program when memory runs out; most of its calls would silently leave
 * out data. Messages begin with `name`, whose pointer is kept. */
void sgt_end_without_memory(const char *name);

/* Print "NAME: out of memory" and exit. */
_Noreturn void sgt_no_memory(void);

#endif
