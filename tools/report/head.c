/* head.c: describes the runs: model, data, machine, date, command, and a sample of the text that
 * each model writes. */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/talk.h"
#include "tools/page/page.h"
#include "tools/report/figures.h"

static const char *option_of(const report_run *run, const char *name)
{
    return json_string_value(json_object_get(run->options, name));
}

static const char *data_of(const report_run *run) { return option_of(run, "data"); }

static int same(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

/* Return whether two runs had the same data. Compare the hashes of the training data from their
 * checkpoints, or if a hash is missing, the paths. */
static int same_two(const report_run *a, const report_run *b)
{
    if (a->data_hash && b->data_hash && a->data_hash != b->data_hash) return 0;
    if (!(a->data_hash && b->data_hash) && !same(data_of(a), data_of(b))) return 0;
    return same(option_of(a, "val-data"), option_of(b, "val-data"));
}

int report_same_data(const report *r)
{
    for (size_t i = 1; i < r->count; i++)
        if (!same_two(&r->runs[0], &r->runs[i])) return 0;
    return 1;
}

/* Format "2026-11-23T14:59:01Z" as "2026-11-23 14:59 UTC". */
static char *date_text(char *buf, size_t n, const char *time)
{
    if (strlen(time) == 20 && time[10] == 'T') snprintf(buf, n, "%.10s %.5s UTC", time, time + 11);
    else snprintf(buf, n, "%s", time);
    return buf;
}

static void put_printable(FILE *page, const char *text)
{
    char printable[1024];
    sgt_page_text(page, sgt_printable(printable, sizeof printable, text));
}

/* ---- samples ---- */

#define HOW "tokens of the newest checkpoint, as sgt-sample draws them"

/* Write a text that a model made, which may be any bytes. Control characters become spaces, which
 * browsers collapse, and bytes that are not UTF-8 become U+FFFD. */
static void put_text(FILE *page, const char *text)
{
    json_t *clean = sgt_json_text(text, strlen(text));
    const char *valid = json_string_value(clean);
    char *copy = valid ? strdup(valid) : NULL;
    for (char *c = copy; copy && *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = ' ';
    if (copy) sgt_page_text(page, copy + strspn(copy, " "));
    free(copy);
    json_decref(clean);
}

static void put_words(FILE *page, const report_run *run)
{
    if (run->sample && run->sample[strspn(run->sample, "\n ")]) {
        fputs("<blockquote>", page);
        put_text(page, run->sample);
        fputs("</blockquote>", page);
    } else {
        fputs("<span class=\"none\">none: ", page);
        put_printable(page,
                      run->no_sample ? run->no_sample : "the model writes nothing but blanks");
        fputs("</span>", page);
    }
}

/* ---- one run ---- */

static void put_model(FILE *page, const report_run *run)
{
    char text[64];
    const char *model = run->settings_known ? run->settings.model : NULL;
    if (model) put_printable(page, model);
    report_big(text, sizeof text, (double)run->parameters);
    if (run->parameters) fprintf(page, "%s%s parameters", model ? ", " : "", text);
    if (run->settings_known && run->settings.precision != SGT_DEFAULT_WORD)
        fprintf(page, "%s%s", model || run->parameters ? ", " : "",
                sgt_precision_words[run->settings.precision]);
}

static void put_data(FILE *page, const report_run *run)
{
    const char *data = data_of(run);
    if (data) put_printable(page, data);
    if (run->data_hash)
        fprintf(page, "%s<small>%sfingerprint %08llx</small>", data ? " " : "",
                data ? "\u00b7 " : "", (unsigned long long)run->data_hash >> 32);
}

static void put_machine(FILE *page, const report_run *run)
{
    if (*run->host) sgt_page_text(page, run->host);
    if (*run->machine) fputs(*run->host ? ", " : "", page), sgt_page_text(page, run->machine);
    if (*run->device) {
        fputs(*run->host || *run->machine ? " <small>\u00b7 " : "<small>", page);
        put_printable(page, run->device);
        fputs("</small>", page);
    }
}

static void put_date(FILE *page, const report_run *run)
{
    char text[64];
    sgt_page_text(page, date_text(text, sizeof text, run->begun));
    if (run->starts < 2) return;
    fprintf(page, " <small>\u00b7 resumed %llu time%s, last ", (unsigned long long)run->starts - 1,
            run->starts == 2 ? "" : "s");
    sgt_page_text(page, date_text(text, sizeof text, run->resumed));
    fputs("</small>", page);
}

/* Write the command with one element per word, because a browser would break "--steps" after its
 * dashes. */
static void put_command(FILE *page, const report_run *run)
{
    char word[sizeof run->command];
    fputs("<code class=\"words\">", page);
    for (const char *at = run->command; *at;) {
        size_t n = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        fputs("<span>", page);
        sgt_page_text(page, word);
        fputs(at[n] ? "</span> " : "</span>", page);
        at += n + (at[n] == ' ');
    }
    fputs("</code>", page);
}

void report_put_about(FILE *page, const report *r)
{
    const report_run *run = &r->runs[0];
    fputs("<dl class=\"about\">\n", page);
    if (run->parameters || run->settings_known) {
        fputs("<div><dt>Model</dt><dd>", page);
        put_model(page, run);
        fputs("</dd></div>\n", page);
    }
    if (data_of(run) || run->data_hash) {
        fputs("<div><dt>Data</dt><dd>", page);
        put_data(page, run);
        fputs("</dd></div>\n", page);
    }
    if (*run->host || *run->machine || *run->device) {
        fputs("<div><dt>Host</dt><dd>", page);
        put_machine(page, run);
        fputs("</dd></div>\n", page);
    }
    if (*run->begun) {
        fputs("<div><dt>Begun</dt><dd>", page);
        put_date(page, run);
        fputs("</dd></div>\n", page);
    }
    if (*run->command) {
        fputs("<div><dt>Command</dt><dd>", page);
        put_command(page, run);
        fputs("</dd></div>\n", page);
    }
    if (run->sample || run->no_sample) {
        fputs("<div><dt>Sample</dt><dd>", page);
        put_words(page, run);
        if (run->sample) fprintf(page, " <small>%d " HOW "</small>", REPORT_SAMPLE_TOKENS);
        fputs("</dd></div>\n", page);
    }
    fputs("</dl>\n", page);
}

/* ---- several runs ---- */

static void put_cell(FILE *page, const report_run *run, void (*put)(FILE *, const report_run *),
                     int there)
{
    fputs(there ? "<td>" : "<td class=\"none\">\u2013", page);
    if (there) put(page, run);
    fputs("</td>", page);
}

void report_put_origins(FILE *page, const report *r)
{
    fputs("<details>\n<summary>Where they come from: data, host, date, command</summary>\n"
          "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Where the runs come "
          "from\">\n<table>\n"
          "<caption>Where the runs come from</caption>\n<thead><tr><th scope=\"col\">Run</th><th "
          "scope=\"col\">Model</th><th scope=\"col\">Data</th><th scope=\"col\">Host</th><th "
          "scope=\"col\">Begun</th><th scope=\"col\">Command</th></tr></thead>\n<tbody>\n",
          page);
    for (size_t i = 0; i < r->count; i++) {
        const report_run *run = &r->runs[i];
        fputs("<tr><th scope=\"row\">", page);
        report_put_swatch(page, "line", (unsigned)i);
        sgt_page_text(page, run->name);
        fputs("</th>", page);
        put_cell(page, run, put_model, run->parameters || run->settings_known);
        put_cell(page, run, put_data, data_of(run) || run->data_hash);
        put_cell(page, run, put_machine, *run->host || *run->machine || *run->device);
        put_cell(page, run, put_date, *run->begun != '\0');
        put_cell(page, run, put_command, *run->command != '\0');
        fputs("</tr>\n", page);
    }
    fputs("</tbody>\n</table>\n</div>\n</details>\n", page);
}

/* Write the samples side by side. */
void report_put_samples(FILE *page, const report *r)
{
    int any = 0;
    for (size_t i = 0; i < r->count; i++) any |= r->runs[i].sample || r->runs[i].no_sample;
    if (!any) return;
    fputs("<section class=\"figures samples\" aria-labelledby=\"sample\">\n<h2 id=\"sample\">What "
          "they write</h2>\n",
          page);
    for (size_t i = 0; i < r->count; i++) {
        fputs("<figure class=\"sample\">\n<h3>", page);
        report_put_swatch(page, "line", (unsigned)i);
        sgt_page_text(page, r->runs[i].name);
        fputs("</h3>\n", page);
        put_words(page, &r->runs[i]);
        fputs("</figure>\n", page);
    }
    fprintf(page, "<p class=\"none\">%d " HOW ".</p>\n</section>\n", REPORT_SAMPLE_TOKENS);
}
