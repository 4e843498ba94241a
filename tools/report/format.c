/* format.c: formats large numbers and times as short texts. */
#include <stdio.h>

#include "loader/base/clock.h"
#include "tools/report/report.h"

char *report_big(char *buf, size_t n, double x)
{
    static const char *const names[] = {"", "\u00a0k", "\u00a0M", "\u00a0G", "\u00a0T", "\u00a0P"};
    size_t i = 0;
    for (; x >= 999.5 && i + 1 < sizeof names / sizeof *names; i++) x /= 1000;
    snprintf(buf, n, "%.*f%s", i && x < 99.95 ? (x < 9.995 ? 2 : 1) : 0, x, names[i]);
    return buf;
}

char *report_time(char *buf, size_t n, double seconds)
{
    char plain[40];
    size_t at = 0;
    sgt_format_duration(plain, sizeof plain, seconds);
    buf[0] = 0;
    for (const char *p = plain; *p && at < n; p++) {
        const char letter[] = {*p, 0};
        at += (size_t)snprintf(buf + at, n - at, "%s", *p == ' ' ? "\u00a0" : letter);
    }
    return buf;
}
