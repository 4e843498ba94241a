/* no_memory.h: what a program does where memory runs out in the middle of something small: it says
 * so and ends, with exit code 1. Its files are as after a kill, which every program can go on
 * from. */
#ifndef SGT_CLI_NO_MEMORY_H
#define SGT_CLI_NO_MEMORY_H

/* From now on so within jansson too, most of whose calls would leave out what they had no memory
 * for. `name` begins the line and is kept. */
void sgt_end_without_memory(const char *name);

/* "NAME: out of memory". */
_Noreturn void sgt_no_memory(void);

#endif
