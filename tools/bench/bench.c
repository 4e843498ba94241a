/* bench.c: the skeleton of the subcommands: parses their options, measures, and prints the JSON
 * document or a table; and the defaults of options that they share. */
#include "tools/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/cpu.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "train/log/metrics.h"

static int print_json(json_t *top, int digits, sgt_error *err)
{
    if (!top) return sgt_fail_memory(err, NULL);
    int bad = json_dumpf(top, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(digits)) < 0 ||
              putchar('\n') == EOF;
    json_decref(top);
    return bad ? sgt_fail_errno(err, "standard output") : SGT_OK;
}

static int print_results(const bench_subcommand *s, void *bench, sgt_error *err)
{
    if (s->output->json) return print_json(s->json(bench), s->digits ? s->digits : 6, err);
    if (!s->output->quiet) s->show(bench);
    return SGT_OK;
}

int bench_subcommand_run(const bench_subcommand *s, int argc, char **argv)
{
    sgt_error err, why;
    int first = sgt_options_parse(s->program, argc, argv), rc;
    if (first < argc && !s->operands)
        sgt_usage(s->program, "%s: no operands here, only options", argv[first]);
    sgt_talk talk = {s->program->name, s->output->quiet};
    void *bench = calloc(1, s->size);
    if (bench) {
        bench_call call = {argv + first, (size_t)(argc - first), sgt_talk_notice(&talk),
                           sgt_catch_signals()};
        rc = s->measure(bench, &call, &err);
        int printed = SGT_OK;
        if (s->worth ? s->worth(bench, rc) : rc == SGT_OK) printed = print_results(s, bench, &why);
        if (rc >= 0 && printed == SGT_OK && (fflush(stdout) == EOF || ferror(stdout)))
            printed = sgt_fail_errno(&why, "standard output");
        if (printed < 0) rc = printed, err = why;
        if (s->release) s->release(bench);
        free(bench);
    } else rc = sgt_fail_memory(&err, NULL);
    if (rc == SGT_EUSAGE) sgt_usage(s->program, "%s", err.text);
    return rc < 0 ? sgt_report_failure(s->program, &err) : SGT_EXIT_OK;
}

char *bench_machine(char *buf, size_t n)
{
    char cpu[64], memory[32];
    int cores = sgt_cpu_count();
    snprintf(buf, n, "%s, %d core%s, %s, %s of memory",
             sgt_printable(cpu, sizeof cpu, sgt_cpu_model()), cores, cores == 1 ? "" : "s",
             sgt_cpu_name(), sgt_format_bytes(memory, sizeof memory, sgt_memory_total()));
    return buf;
}

char *bench_name(char *buf, size_t n, const char *name)
{
    char all[1024];
    const char *s = sgt_printable(all, sizeof all, name);
    size_t length = 0, skip = 0;
    while (s[length]) length++;
    if (length < n) snprintf(buf, n, "%s", s);
    else {
        skip = length - (n - 4);
        while (((unsigned char)s[skip] & 0xc0) == 0x80) skip++; /* cut between characters */
        snprintf(buf, n, "...%s", s + skip);
    }
    return buf;
}

/* ---- tables ---- */

void bench_put(json_t *object, const char *key, double x)
{
    if (x != 0) json_object_set_new(object, key, json_real(x));
}

enum { CELL = 33 }; /* bytes of a cell's text */

/* Return the cell of a row as text, written into buf; the heading if there is no row. */
static const char *format_cell(char buf[CELL], const json_t *row, const bench_column *c)
{
    const json_t *v = json_object_get(row, c->key);
    double x = json_number_value(v) * (c->scale > 0 ? c->scale : 1);
    if (!row) return c->head;
    if (json_is_string(v)) return sgt_printable(buf, CELL, json_string_value(v));
    if (!json_is_number(v)) return "-";
    if (c->kind == BENCH_BYTES) return sgt_format_bytes(buf, CELL, (uint64_t)x);
    snprintf(buf, CELL, c->kind == BENCH_PERCENT ? "%.*f %%" : "%.*f", c->decimals, x);
    return buf;
}

/* Return the width of a column, or 0 if no row has its field. */
static int column_width(const json_t *rows, const bench_column *c)
{
    char buf[CELL];
    size_t width = strlen(c->head), found = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        size_t n = strlen(format_cell(buf, row, c));
        if (n > width) width = n;
        found += json_object_get(row, c->key) != NULL;
    }
    return found ? (int)width : 0;
}

static void print_row(const json_t *rows, const json_t *row, const bench_column *columns, char mark)
{
    char buf[CELL], why[64];
    const char *reason = json_string_value(json_object_get(row, "why_not"));
    if (!reason) reason = json_string_value(json_object_get(row, "why"));
    putchar(mark);
    for (const bench_column *c = columns; c->key; c++) {
        int width = column_width(rows, c), text = c->kind == BENCH_TEXT;
        if (!text && reason && !json_is_number(json_object_get(row, c->key))) {
            printf("  %s", sgt_printable(why, sizeof why, reason));
            break;
        }
        if (width)
            printf(c == columns ? " %*s" : "  %*s", text ? -width : width,
                   format_cell(buf, row, c));
    }
    putchar('\n');
}

void bench_table(const json_t *rows, const bench_column *columns, const char *best)
{
    double highest = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        double x = json_number_value(json_object_get(json_array_get(rows, i), best));
        if (x > highest) highest = x;
    }
    print_row(rows, NULL, columns, ' ');
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const json_t *mark = json_object_get(row, best);
        int marked = json_is_true(mark) || (highest > 0 && json_number_value(mark) >= highest);
        print_row(rows, row, columns, marked ? '*' : ' ');
    }
}

/* ---- options that subcommands share ---- */

uint32_t bench_batch(const bench_shape *o, int cuda)
{
    return o->batch ? (uint32_t)o->batch : cuda ? 64 : 4;
}

uint32_t bench_seq(const bench_shape *o, int cuda)
{
    return o->seq ? (uint32_t)o->seq : cuda ? 1024 : 64;
}

sgt_precision bench_precision(const bench_shape *o, int cuda)
{
    if (cuda && !o->precision_given) return SGT_PRECISION_BF16;
    return (sgt_precision)o->precision;
}

int bench_threads(const bench_shape *o) { return o->threads ? (int)o->threads : sgt_cpu_count(); }
