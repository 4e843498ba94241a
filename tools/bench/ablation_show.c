/* ablation_show.c: the rows of an ablation as a table, as JSON, and as bars. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/file.h"
#include "tools/bench/ablation.h"
#include "tools/cli/talk.h"

/* The row above `t` that was measured, or the first of all; `t` itself where it is that. */
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

static double factor(const ablation *a, int from, int to) { return a->rows[from].r.ms / a->rows[to].r.ms; }

/* ---- the table ---- */

static void show_row(const ablation *a, int t)
{
    char bytes[32];
    const ablation_row *row = &a->rows[t];
    printf("%-8s %-38s %9.3f  %9.0f", techniques[t].name, techniques[t].about, row->r.ms, row->r.tokens_per_s);
    if (row_before(a, t) == t) printf("        -       -");
    else printf("  %7.3f %7.2f", factor(a, row_before(a, t), t), factor(a, first_row(a), t));
    printf("  %10s\n", sgt_format_bytes(bytes, sizeof bytes, row->r.bytes));
}

/* Of all that were measured with their largest batch, against the first of them. */
static double largest_factor(const ablation *a, int t)
{
    int first = 0;
    while (!(a->rows[first].at_largest.ms > 0)) first++;
    return a->rows[t].at_largest.tokens_per_s / a->rows[first].at_largest.tokens_per_s;
}

static void show_largest(const ablation *a)
{
    char bytes[32];
    printf("\n%-8s largest batch that fits", "");
    printf(a->at_largest ? "%22s  %9s  %15s  %10s\n" : "\n", "ms/step", "tokens/s", "in all", "memory");
    for (int t = 0; t < TECHNIQUES; t++) {
        const ablation_row *row = &a->rows[t];
        const step_result *r = &row->at_largest;
        if (!row->wanted) continue;
        printf("%-8s %23u%-8s", techniques[t].name, row->largest, row->largest == ABLATION_MOST ? " or more" : "");
        if (r->ms > 0)
            printf("  %14.3f  %9.0f  %15.2f  %10s", r->ms, r->tokens_per_s, largest_factor(a, t),
                   sgt_format_bytes(bytes, sizeof bytes, r->bytes));
        printf("\n");
    }
}

void ablation_show(const ablation *a)
{
    char cpu[128], total[32];
    const step_result *r = &a->rows[last_row(a)].r;
    printf("%s, %s, %s, %s\n", sgt_printable(cpu, sizeof cpu, sgt_cpu_model()), r->device, r->level, r->library);
    printf("%s, %u x %u tokens a step; median of %u x %u; memory is of %s; a row has all above it\n\n",
           a->model_name, a->batch, a->seq, a->rounds, a->steps, sgt_format_bytes(total, sizeof total, r->total_bytes));
    printf("%-8s %-38s %9s  %9s  %7s %7s  %10s\n", "", "", "ms/step", "tokens/s", "faster", "in all", "memory");
    for (int t = 0; t < TECHNIQUES; t++)
        if (a->rows[t].wanted) show_row(a, t);
    show_largest(a);
    int said = 0;
    for (int t = 0; t < TECHNIQUES; t++)
        if (a->rows[t].why[0]) printf("%s%-8s left out: %s\n", said++ ? "" : "\n", techniques[t].name, a->rows[t].why);
}

/* ---- JSON ---- */

static json_t *row_json(const ablation *a, int t)
{
    const ablation_row *row = &a->rows[t];
    json_t *j = json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I}", "technique", techniques[t].name,
                          "ms_per_step", row->r.ms, "tokens_per_s", row->r.tokens_per_s, "factor",
                          factor(a, row_before(a, t), t), "factor_first", factor(a, first_row(a), t), "data_wait_ms",
                          row->r.wait_ms, "loss", row->r.loss, "bytes", (json_int_t)row->r.bytes, "largest_batch",
                          (json_int_t)row->largest);
    if (!j || !(row->at_largest.ms > 0)) return j;
    json_object_set_new(j, "largest_ms_per_step", json_real(row->at_largest.ms));
    json_object_set_new(j, "largest_tokens_per_s", json_real(row->at_largest.tokens_per_s));
    json_object_set_new(j, "largest_factor_first", json_real(largest_factor(a, t)));
    json_object_set_new(j, "largest_bytes", json_integer((json_int_t)row->at_largest.bytes));
    return j;
}

int ablation_print_json(const ablation *a, sgt_error *err)
{
    json_t *results = json_array(), *out = json_array();
    const step_result *r = &a->rows[last_row(a)].r;
    for (int t = 0; t < TECHNIQUES; t++) {
        if (a->rows[t].wanted) json_array_append_new(results, row_json(a, t));
        if (a->rows[t].why[0])
            json_array_append_new(out, json_pack("{s:s, s:s}", "technique", techniques[t].name, "why", a->rows[t].why));
    }
    json_t *top = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:I, s:o, s:o}", "cpu", sgt_cpu_model(),
                            "device", r->device, "library", r->library, "model", a->model_name, "batch", (int)a->batch,
                            "seq", (int)a->seq, "threads", a->threads, "steps", (int)a->steps, "rounds",
                            (int)a->rounds, "total_bytes", (json_int_t)r->total_bytes, "results", results, "left_out",
                            out);
    if (!top) return sgt_fail(err, SGT_ENOMEM, "out of memory");
    int bad = json_dumpf(top, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) < 0 || putchar('\n') == EOF;
    json_decref(top);
    return bad ? sgt_fail_errno(err, "standard output") : SGT_OK;
}

/* ---- bars ---- */

enum { LEFT = 330, WIDE = 460, HIGH = 22, GAP = 6, TOP = 56 };

static void put_escaped(FILE *f, const char *s)
{
    for (; *s; s++) {
        const char *as = *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : *s == '&' ? "&amp;" : NULL;
        if (as) fputs(as, f);
        else if ((unsigned char)*s >= ' ') putc(*s, f);
    }
}

/* Tokens a second as a bar at height y, and how many times those of the first row. */
static void put_bar(FILE *f, int y, const step_result *r, double most, double times, uint32_t batch, const char *colour)
{
    int width = (int)(r->tokens_per_s / most * WIDE + 0.5);
    fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n", LEFT, y, width > 0 ? width : 1,
            HIGH, colour);
    fprintf(f, "<text x=\"%d\" y=\"%d\">%.0f tokens/s, %.2f times", LEFT + width + 8, y + 16, r->tokens_per_s, times);
    if (batch) fprintf(f, ", %u rows", batch);
    fprintf(f, "</text>\n");
}

/* A row's bar, and below it that of its largest batch; returns where the next one begins. */
static int put_row(FILE *f, const ablation *a, int t, int y, double most)
{
    const ablation_row *row = &a->rows[t];
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT - 8, y + 16, techniques[t].about);
    put_bar(f, y, &row->r, most, factor(a, first_row(a), t), 0, "#4477aa");
    if (row->at_largest.ms > 0)
        put_bar(f, y += HIGH, &row->at_largest, most, largest_factor(a, t), row->largest, "#99bbdd");
    return y + HIGH + GAP;
}

static void put_title(FILE *f, const ablation *a)
{
    fprintf(f, "<text x=\"12\" y=\"26\" font-size=\"16\">What each technique brings: ");
    put_escaped(f, a->model_name);
    fprintf(f, ", %u x %u tokens a step, %s (", a->batch, a->seq, a->rows[last_row(a)].r.device);
    put_escaped(f, a->rows[last_row(a)].r.library);
    fprintf(f, ")%s</text>\n", a->at_largest ? "; light: the largest batch that fits" : "");
}

static void put_picture(FILE *f, const ablation *a)
{
    double most = 0;
    int high = TOP + 12, y = TOP, wide = LEFT + WIDE + 290;
    for (int t = 0; t < TECHNIQUES; t++) {
        const ablation_row *row = &a->rows[t];
        if (!row->wanted) continue;
        high += HIGH + GAP + (row->at_largest.ms > 0 ? HIGH : 0);
        if (row->r.tokens_per_s > most) most = row->r.tokens_per_s;
        if (row->at_largest.tokens_per_s > most) most = row->at_largest.tokens_per_s;
    }
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"14\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            wide, high, wide, high);
    put_title(f, a);
    for (int t = 0; t < TECHNIQUES; t++)
        if (a->rows[t].wanted) y = put_row(f, a, t, y, most);
    fprintf(f, "</svg>\n");
}

int ablation_plot(const ablation *a, const char *path, sgt_error *err)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return sgt_fail(err, SGT_ENOMEM, "%s: out of memory", path);
    put_picture(f, a);
    int rc = fclose(f) == 0 ? sgt_file_put(path, text, n, err) : sgt_fail(err, SGT_ENOMEM, "%s: out of memory", path);
    free(text);
    return rc;
}
