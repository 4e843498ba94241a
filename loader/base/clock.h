/* clock.h: a clock that never goes backwards, and a wait on a condition variable with a time
 * limit. */
#ifndef SGT_BASE_CLOCK_H
#define SGT_BASE_CLOCK_H

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

double sgt_now(void); /* Return the seconds since an arbitrary fixed moment. */

/* Initialize the condition variable *c for sgt_wait, so that its time limits are measured with the
 * monotonic clock. */
void sgt_wait_init(pthread_cond_t *c);

/* Wait until the condition variable *c is signalled, for at most `ms` milliseconds. *c must have
 * been initialized by sgt_wait_init. As with pthread_cond_wait, the caller holds the mutex *m and
 * checks after the wait whether what it waits for is true. A Unix signal does not end the wait.
 * Therefore, a thread that a signal handler can ask to stop should pass a short limit, about 100
 * ms, and check for that request after each wait. */
void sgt_wait(pthread_cond_t *c, pthread_mutex_t *m, int ms);

#ifdef __cplusplus
}
#endif
#endif
