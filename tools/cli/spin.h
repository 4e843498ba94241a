/* spin.h: limits how long OpenMP's threads look for work before they sleep. Call it first in main:
 *
 *     sgt_spin_little(argv);
 *
 * libgomp's threads spin for milliseconds at the end of each loop, and a training step has hundreds
 * of loops. If another program uses one of the cores, a thread with work may have to wait until a
 * spinning thread leaves its core. With 2 threads on two cores and 13 other programs, training made
 * 200 tokens a second, and 830 with the limit. libgomp reads the limit only from the environment,
 * before main, so this function sets it there and executes the program again. Values that the user
 * has set are kept. */
#ifndef SGT_SPIN_H
#define SGT_SPIN_H

void sgt_spin_little(char **argv);

#endif
