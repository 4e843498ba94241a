/* spin.h: how long OpenMP's threads look for work before they sleep. First of all that main does:
 *
 *     sgt_spin_little(argv);
 *
 * libgomp's threads spin for milliseconds at the end of each loop, of which a training step has
 * hundreds. Where another program has one of the cores, the thread that is waited for then waits
 * for a spinning one to leave its core (2 threads on two cores with 13 other programs: 200 tokens a
 * second, and 830 as here). It takes the number from the environment alone, before main, so the
 * program begins once more, with that set; what the user has set stands. */
#ifndef SGT_SPIN_H
#define SGT_SPIN_H

void sgt_spin_little(char **argv);

#endif
