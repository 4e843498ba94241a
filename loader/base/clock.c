/* clock.c: the monotonic clock. */
#include "loader/base/clock.h"

#include <stdio.h>
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

char *sgt_format_duration(char *buf, size_t n, double seconds)
{
    unsigned long long whole = seconds < 1e12 ? (unsigned long long)(seconds + .5) : 0,
                       minutes = (whole + 30) / 60;
    if (seconds < .9995) snprintf(buf, n, "%.*f ms", seconds < .00995, seconds * 1e3);
    else if (seconds < 99.95) snprintf(buf, n, "%.1f s", seconds);
    else if (whole < 600) snprintf(buf, n, "%llu min %llu s", whole / 60, whole % 60);
    else if (minutes < 100) snprintf(buf, n, "%llu min", minutes);
    else if (minutes < 48ull * 60) snprintf(buf, n, "%llu h %llu min", minutes / 60, minutes % 60);
    else snprintf(buf, n, "%.1f days", seconds / 86400);
    return buf;
}
