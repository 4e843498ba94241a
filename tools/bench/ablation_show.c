/* ablation_show.c: shows the rows of an ablation as a table and as JSON. */
#include <jansson.h>
#include <stdio.h>

#include "loader/base/cpu.h"
#include "tools/bench/ablation.h"
#include "tools/bench/bench.h"
#include "tools/cli/talk.h"

/* Return the index of the nearest measured row above `t`, or `t` itself if there is none. */
static int row_before(const ablation *a, int t)
{
    int at = t - 1;
    while (at >= 0 && !a->rows[at].wanted) at--;
    return at < 0 ? t : at;
}

static int first_row(const ablation *a)
{
    int t = 0;
    while (!a->rows[t].wanted) t++;
    return t;
}

static int last_row(const ablation *a)
{
    int t = TECHNIQUES - 1;
    while (!a->rows[t].wanted) t--;
    return t;
}

static int best_row(const ablation *a)
{
    int best = first_row(a);
    for (int t = 0; t < TECHNIQUES; t++)
        if (a->rows[t].wanted && a->rows[t].r.ms < a->rows[best].r.ms) best = t;
    return best;
}

static double factor(const ablation *a, int from, int to)
{
    return a->rows[from].r.ms / a->rows[to].r.ms;
}

/* ---- the range of the rounds ---- */

typedef struct range {
    double low, high; /* ms */
} range;

static range range_of(const ablation_row *row)
{
    range r = {row->ms[0], row->ms[0]};
    for (unsigned i = 1; i < row->rounds; i++) {
        if (row->ms[i] < r.low) r.low = row->ms[i];
        if (row->ms[i] > r.high) r.high = row->ms[i];
    }
    return r;
}

/* Return whether two rows may be equally fast: the ranges of their rounds overlap. With a single
 * round, the noise is unknown, and 0 is returned. */
static int within_noise(const ablation *a, int from, int to)
{
    range x = range_of(&a->rows[from]), y = range_of(&a->rows[to]);
    return a->rows[from].rounds > 1 && a->rows[to].rounds > 1 && x.low <= y.high && y.low <= x.high;
}

/* ---- the table ---- */

static void show_row(const ablation *a, int t)
{
    char bytes[32], wide[16] = "-";
    const ablation_row *row = &a->rows[t];
    range r = range_of(row);
    if (row->rounds > 1) snprintf(wide, sizeof wide, "%.0f %%", 50 * (r.high - r.low) / row->r.ms);
    printf("%c %-9s %-25s %9.3f %5s %8.3f %8.0f", t == best_row(a) ? '*' : ' ', techniques[t].name,
           techniques[t].about, row->r.ms, wide, row->r.wait_ms, row->r.tokens_per_s);
    if (row_before(a, t) == t) printf("       -       -");
    else if (within_noise(a, row_before(a, t), t)) printf("   noise");
    else printf(" %7.3f", factor(a, row_before(a, t), t));
    if (row_before(a, t) != t) printf(" %7.2f", factor(a, first_row(a), t));
    printf(" %10s\n", sgt_format_bytes(bytes, sizeof bytes, row->r.bytes));
}

/* Print the number of kernels of a step, with each technique that changes it. */
static void show_kernels(const ablation *a)
{
    unsigned before = 0;
    for (int t = 0; t < TECHNIQUES; t++) {
        unsigned n = a->rows[t].wanted ? a->rows[t].r.launches_step : 0;
        if (!n || n == before) continue;
        printf("%s%u (%s)", before ? ", " : "Kernels of a step: ", n, techniques[t].name);
        before = n;
    }
    if (before) printf("\n");
}

/* Return the speed of row t divided by that of the table's first row, each with its largest batch.
 * Rows that were not measured with it are passed over. */
static double largest_factor(const ablation *a, int t)
{
    int first = 0;
    while (!(a->rows[first].at_largest.ms > 0)) first++;
    return a->rows[t].at_largest.tokens_per_s / a->rows[first].at_largest.tokens_per_s;
}

/* Write " (ROWS)", the rows measured, if there was no time for the largest batch; else "". */
static const char *measured_rows(const ablation_row *row, char *buf, size_t n)
{
    buf[0] = '\0';
    if (row->at_largest.ms > 0 && row->in_time < row->largest)
        snprintf(buf, n, " (%u)", row->in_time);
    return buf;
}

static int fewer(const ablation *a)
{
    char buf[32];
    int any = 0;
    for (int t = 0; t < TECHNIQUES; t++)
        any |= a->rows[t].wanted && *measured_rows(&a->rows[t], buf, sizeof buf);
    return any;
}

static void show_largest(const ablation *a)
{
    char bytes[32], rows[32], most[32];
    printf("\n%-8s largest batch that fits", "");
    printf(a->at_largest ? "%22s  %9s  %15s  %10s\n" : "\n", "ms/step", "tokens/s", "in all",
           "memory");
    for (int t = 0; t < TECHNIQUES; t++) {
        const ablation_row *row = &a->rows[t];
        const step_result *r = &row->at_largest;
        if (!row->wanted) continue;
        measured_rows(row, rows, sizeof rows);
        snprintf(most, sizeof most, "%u", row->largest);
        printf("%-9s %22s%-8s", techniques[t].name, row->largest ? most : "none",
               *rows                           ? rows
               : row->largest == ABLATION_MOST ? " or more"
                                               : "");
        if (r->ms > 0)
            printf("  %14.3f  %9.0f  %15.2f  %10s", r->ms, r->tokens_per_s, largest_factor(a, t),
                   sgt_format_bytes(bytes, sizeof bytes, r->bytes));
        printf("\n");
    }
}

void ablation_show(void *bench)
{
    const ablation *a = bench;
    char machine[160], total[32];
    const step_result *r = &a->rows[last_row(a)].r;
    printf("%s\n%s, %s, %s; memory is of %s\n", bench_machine(machine, sizeof machine), r->device,
           r->level, r->library, sgt_format_bytes(total, sizeof total, r->total_bytes));
    printf("%s, %u x %u tokens a step; median of %u x %u; a row has all above it\n\n",
           a->model_name, a->batch, a->seq, a->rounds, a->steps);
    printf("  %-35s %9s %5s %8s %8s %7s %7s %10s\n", "", "ms/step", "+-", "data ms", "tokens/s",
           "faster", "in all", "memory");
    for (int t = 0; t < TECHNIQUES; t++)
        if (a->rows[t].wanted) show_row(a, t);
    printf(
        "\n* the fastest. +-: half the range of the rounds. data ms: of a step, waiting for rows.\n"
        "noise: the ranges of this row and the one above overlap.\n");
    if (r->peak_flops > 0)
        printf("The last row reaches %.0f %% of the speed of a large matrix product.\n",
               100 * r->flops / r->peak_flops);
    show_kernels(a);
    show_largest(a);
    if (a->memory_limit)
        printf("\nLargest: what %s holds%s.\n",
               sgt_format_bytes(total, sizeof total, a->memory_limit),
               fewer(a) ? "; in parentheses the rows that there was time for" : "");
    if (a->interrupted)
        printf("\nInterrupted: the measurements so far, each row with the rounds that it "
               "completed.\n");
    int said = 0;
    for (int t = 0; t < TECHNIQUES; t++)
        if (a->rows[t].why[0])
            printf("%s%-9s left out: %s\n", said++ ? "" : "\n", techniques[t].name, a->rows[t].why);
}

/* ---- JSON ---- */

static json_t *row_json(const ablation *a, int t)
{
    const ablation_row *row = &a->rows[t];
    json_t *j =
        json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I}", "technique", techniques[t].name,
                  "ms_per_step", row->r.ms, "tokens_per_s", row->r.tokens_per_s, "factor",
                  factor(a, row_before(a, t), t), "factor_first", factor(a, first_row(a), t),
                  "data_wait_ms", row->r.wait_ms, "loss", row->r.loss, "bytes",
                  (json_int_t)row->r.bytes, "largest_batch", (json_int_t)row->largest);
    if (j && row->rounds > 1) {
        range r = range_of(row);
        json_object_set_new(j, "ms_low", json_real(r.low));
        json_object_set_new(j, "ms_high", json_real(r.high));
        json_object_set_new(
            j, "within_noise",
            json_boolean(row_before(a, t) != t && within_noise(a, row_before(a, t), t)));
    }
    if (j && row->r.launches_step)
        json_object_set_new(j, "kernels_step", json_integer((json_int_t)row->r.launches_step));
    if (!j || !(row->at_largest.ms > 0)) return j;
    json_object_set_new(j, "largest_measured", json_integer((json_int_t)row->in_time));
    json_object_set_new(j, "largest_ms_per_step", json_real(row->at_largest.ms));
    json_object_set_new(j, "largest_tokens_per_s", json_real(row->at_largest.tokens_per_s));
    json_object_set_new(j, "largest_factor_first", json_real(largest_factor(a, t)));
    json_object_set_new(j, "largest_bytes", json_integer((json_int_t)row->at_largest.bytes));
    return j;
}

json_t *ablation_json(void *bench)
{
    const ablation *a = bench;
    json_t *results = json_array(), *out = json_array();
    const step_result *r = &a->rows[last_row(a)].r;
    for (int t = 0; t < TECHNIQUES; t++) {
        if (a->rows[t].wanted) json_array_append_new(results, row_json(a, t));
        if (a->rows[t].why[0])
            json_array_append_new(out, json_pack("{s:s, s:s}", "technique", techniques[t].name,
                                                 "why", a->rows[t].why));
    }
    json_t *top = json_pack(
        "{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:I, s:o, s:o}", "cpu", sgt_cpu_model(),
        "device", r->device, "library", r->library, "model", a->model_name, "batch", (int)a->batch,
        "seq", (int)a->seq, "threads", a->threads, "steps", (int)a->steps, "rounds", (int)a->rounds,
        "total_bytes", (json_int_t)r->total_bytes, "results", results, "left_out", out);
    if (top && a->interrupted) json_object_set_new(top, "interrupted", json_true());
    return top;
}
