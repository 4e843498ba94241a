/* thin.c: reduces a log of any length to a few hundred points: means of consecutive steps, with
 * their lowest and highest values, so that no spike is lost. */
#include <math.h>
#include <stdlib.h>

#include "tools/report/report.h"

typedef struct sums {
    double sum[REPORT_COLUMNS];
    size_t n[REPORT_COLUMNS];
} sums;

static void take(report_bin *b, sums *s, const report_row *row)
{
    for (size_t c = 0; c < REPORT_COLUMNS; c++) {
        double v = row->v[c];
        if (isnan(v)) continue;
        if (!s->n[c] || v < b->low.v[c]) b->low.v[c] = v;
        if (!s->n[c] || v > b->high.v[c]) b->high.v[c] = v;
        s->sum[c] += v;
        s->n[c]++;
    }
}

static void finish(report_bin *b, const sums *s)
{
    for (size_t c = 0; c < REPORT_COLUMNS; c++) {
        b->mean.v[c] = s->n[c] ? s->sum[c] / (double)s->n[c] : (double)NAN;
        if (!s->n[c]) b->low.v[c] = b->high.v[c] = (double)NAN;
    }
}

static int wanted(const report_row *row, int evaluated)
{
    return !evaluated || !isnan(row->v[REPORT_VAL]);
}

int report_thin(report_bins *b, const report_log *l, int evaluated, sgt_error *err)
{
    size_t rows = 0, filled = 0;
    double skipped = 0;
    sums s = {0};
    *b = (report_bins){0};
    for (size_t i = 0; i < l->count; i++) rows += (size_t)wanted(&l->rows[i], evaluated);
    if (!rows) return SGT_OK;
    size_t most = evaluated ? REPORT_DOTS : REPORT_BINS;
    b->steps = (rows + most - 1) / most;
    b->at = calloc((rows + b->steps - 1) / b->steps, sizeof *b->at);
    if (!b->at) return sgt_fail_memory(err, NULL);
    for (size_t i = 0; i < l->count; i++) {
        const report_row *row = &l->rows[i];
        if (!wanted(row, evaluated)) continue;
        report_bin *bin = &b->at[b->count];
        take(bin, &s, row);
        if (row->v[REPORT_SKIPPED] > skipped) {
            bin->skipped += row->v[REPORT_SKIPPED] - skipped;
            skipped = row->v[REPORT_SKIPPED];
        }
        if (++filled < b->steps && i + 1 < l->count) continue;
        finish(bin, &s);
        s = (sums){0};
        filled = 0;
        b->count++;
    }
    if (filled) finish(&b->at[b->count++], &s);
    return SGT_OK;
}
