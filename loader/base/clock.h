/* clock.h: a clock that never goes backwards, and a wait with a time limit. */
#ifndef SGT_BASE_CLOCK_H
#define SGT_BASE_CLOCK_H

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

double sgt_now(void); /* seconds since an arbitrary fixed moment */

/* Initialize *c for sgt_wait, whose limit is by the monotonic clock. */
void sgt_wait_init(pthread_cond_t *c);

/* Wait until *c, made by sgt_wait_init, is signalled, for at most `ms` milliseconds. A Unix signal
 * does not wake a waiting thread, so a thread that may be asked to stop must check for that every
 * tenth of a second. As with pthread_cond_wait, the caller holds *m and checks its condition
 * again. */
void sgt_wait(pthread_cond_t *c, pthread_mutex_t *m, int ms);

#ifdef __cplusplus
}
#endif
#endif
