/* smooth.c: smooths noisy values: each becomes the value, at its place, of a straight line that is
 * fitted to the values around it, with more weight for near ones (LOESS of degree 1, Cleveland
 * 1979). */
#include <math.h>

#include "tools/report/report.h"

#define PART 12 /* the window's points to each side are all points / PART */
#define LEAST 3

/* Return the value at `at` of a straight line fitted to the points up to `side` away, whose weight
 * is the tricube of their distance. The fit is to y, or with `rest`, to y minus low. Differences
 * from the point's own value are fitted, so that constant values stay exact. */
static double fit(const report_point *p, size_t count, size_t at, size_t side, int rest)
{
    double w0 = 0, w1 = 0, w2 = 0, d0 = 0, d1 = 0, own = rest ? p[at].y - p[at].low : p[at].y;
    size_t first = at > side ? at - side : 0, last = at + side < count ? at + side : count - 1;
    for (size_t i = first; i <= last; i++) {
        double x = (double)i - (double)at, v = (rest ? p[i].y - p[i].low : p[i].y) - own;
        double u = fabs(x) / (double)(side + 1), w = pow(1 - u * u * u, 3);
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

/* The residuals are smoothed too and added (Tukey's twicing), because a line would cut across the
 * bend of a loss curve. At a run's steep start, the window reaches as far to each
 * side as there are points before. logs: smooth logarithms of the values. */
void report_smooth(report_point *to, const report_point *from, size_t count, int logs)
{
    size_t most = count / PART > LEAST ? count / PART : LEAST;
    for (size_t i = 0; i < count; i++) {
        double y = from[i].y;
        to[i] = (report_point){.x = from[i].x, .y = !logs ? y : y > 0 ? log(y) : (double)NAN};
    }
    for (size_t i = 0; i < count; i++)
        to[i].low = isnan(to[i].y) ? to[i].y : fit(to, count, i, i < most ? i : most, 0);
    for (size_t i = 0; i < count; i++)
        to[i].high =
            isnan(to[i].y) ? to[i].y : to[i].low + fit(to, count, i, i < most ? i : most, 1);
    for (size_t i = 0; i < count; i++)
        to[i].y = to[i].low = to[i].high = logs ? exp(to[i].high) : to[i].high;
}
