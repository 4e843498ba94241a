/* no_memory.h: ends a program if memory runs out in a small allocation: with a message and exit
 * code 1. Its files are then as after a kill, and every program can continue from those. */
#ifndef SGT_CLI_NO_MEMORY_H
#define SGT_CLI_NO_MEMORY_H

/* Make jansson end the program when its memory runs out; otherwise most of its calls would silently
 * leave out data. Messages begin with `name`, whose pointer is kept. */
void sgt_end_without_memory(const char *name);

/* Print "NAME: out of memory" and exit. */
_Noreturn void sgt_no_memory(void);

#endif
