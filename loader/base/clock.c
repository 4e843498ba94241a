/* clock.c: the monotonic clock. */
#include "loader/base/clock.h"

#include <time.h>

double sgt_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void sgt_wait_briefly(pthread_cond_t *c, pthread_mutex_t *m)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 100000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_clockwait(c, m, CLOCK_MONOTONIC, &until);
}
