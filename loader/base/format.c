/* format.c: format durations, sizes and counts as text. */
#include "loader/base/format.h"

#include <stdio.h>

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

char *sgt_format_bytes(char *buf, size_t n, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double x = (double)bytes;
    int u = 0;
    while (x >= 1023.95 && u < 5) x /= 1024, u++;
    snprintf(buf, n, u ? "%.1f %s" : "%.0f %s", x, units[u]);
    return buf;
}

char *sgt_format_count(char *buf, size_t n, uint64_t count)
{
    char digits[32];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    size_t at = 0;
    for (int i = 0; i < len && at + 2 < n; i++) {
        if (i && (len - i) % 3 == 0) buf[at++] = ',';
        buf[at++] = digits[i];
    }
    if (n) buf[at] = 0;
    return buf;
}
