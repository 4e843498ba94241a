/* clock.h: a clock that never goes backwards, and a wait with a time limit. */
#ifndef SGT_BASE_CLOCK_H
#define SGT_BASE_CLOCK_H

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

double sgt_now(void); /* Return the seconds since an arbitrary fixed moment. */

/* Initialize *c for sgt_wait: make it measure time limits with the monotonic clock. */
void sgt_wait_init(pthread_cond_t *c);

/* Wait until the condition *c is signalled, for at most `ms` milliseconds. *c must be initialized
 * by sgt_wait_init. As with pthread_cond_wait, the caller holds *m and checks its condition again
 * afterwards. A Unix signal does not end the wait. Therefore, a thread that can be asked to stop by
 * a signal should use a short limit, about 100 ms, and check for the request after each wait. */
void sgt_wait(pthread_cond_t *c, pthread_mutex_t *m, int ms);

#ifdef __cplusplus
}
#endif
#endif
