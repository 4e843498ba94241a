/* clock.h: time that only goes forward, and waiting in short extents. */
#ifndef SGT_BASE_CLOCK_H
#define SGT_BASE_CLOCK_H

#include <pthread.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

double sgt_now(void); /* seconds, from some moment on */

/* "12 ms", "2.2 s", "1 min 46 s", "3 h 25 min", "3.1 days": into buf, which is returned. */
char *sgt_format_duration(char *buf, size_t n, double seconds);

/* Waits for *c to be signalled, a tenth of a second at most: a signal to the process wakes nobody,
 * so that whoever may be asked to stop has to look up. As with pthread_cond_wait the caller holds
 * *m, and looks whether what it waits for is true. */
void sgt_wait_briefly(pthread_cond_t *c, pthread_mutex_t *m);

#ifdef __cplusplus
}
#endif
#endif
