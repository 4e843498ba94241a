/* smooth.c: a smooth line through noisy numbers: at each point, the straight line that fits best around it, where near
 * numbers count more (Cleveland's LOESS of degree 1, 1979). */
#include <math.h>

#include "tools/report/report.h"

#define PART 12 /* of all points: what is looked at to each side */
#define LEAST 3

/* The number of a point as it is smoothed; NAN: none. */
static double number(const report_point *p, int logs)
{
    return !logs ? p->y : p->y > 0 ? log(p->y) : (double)NAN;
}

/* The fitted line's number at `at`, from the points less than `side` away, weighed by the tricube of their distance.
 * Differences from the point's own number are fitted, so that level numbers come out as they are. */
static double fit(const report_point *p, size_t count, size_t at, size_t side, int logs)
{
    double w0 = 0, w1 = 0, w2 = 0, d0 = 0, d1 = 0, own = number(&p[at], logs);
    size_t first = at > side ? at - side : 0, last = at + side < count ? at + side : count - 1;
    for (size_t i = first; i <= last; i++) {
        double x = (double)i - (double)at, v = number(&p[i], logs) - own, u = fabs(x) / (double)(side + 1);
        double w = pow(1 - u * u * u, 3);
        if (isnan(v)) continue;
        w0 += w;
        w1 += w * x;
        w2 += w * x * x;
        d0 += w * v;
        d1 += w * x * v;
    }
    double spread = w0 * w2 - w1 * w1;
    return own + (spread > 1e-9 * w0 * w2 ? (w2 * d0 - w1 * d1) / spread : d0 / w0);
}

/* Where a run begins its loss falls steeply and bends: as much is looked at as has been seen. */
void report_smooth(report_point *to, const report_point *from, size_t count, int logs)
{
    size_t most = count / PART > LEAST ? count / PART : LEAST;
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i];
        if (isnan(number(&from[i], logs))) continue;
        double v = fit(from, count, i, i < most ? i : most, logs);
        to[i].y = logs ? exp(v) : v;
        to[i].low = to[i].high = to[i].y;
    }
}
