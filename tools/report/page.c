/* page.c: writes the page, which consists of a head, headline numbers, advice, tables of runs and
 * options, and sections with figures. The page is a single file, and its Content-Security-Policy
 * does not let browsers load other files. The caller must check the stream for errors with
 * ferror. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loader/base/format.h"
#include "loader/base/version.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "tools/report/report.h"

/* ---- texts and numbers ---- */

static void put_text(FILE *page, const char *text, size_t n)
{
    for (const char *end = text + n; text < end; text++) {
        if (*text == '&') fputs("&amp;", page);
        else if (*text == '<') fputs("&lt;", page);
        else if (*text == '>') fputs("&gt;", page);
        else if (*text == '"') fputs("&quot;", page);
        else if (*text == '\'') fputs("&#39;", page);
        else if ((unsigned char)*text >= ' ' || *text == '\n') fputc(*text, page);
    }
}

void report_put(FILE *page, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    for (; *fmt; fmt++) {
        const char *text;
        if (*fmt != '%') fputc(*fmt, page);
        else switch (*++fmt) {
            case 's': text = va_arg(args, const char *), put_text(page, text, strlen(text)); break;
            case 'u': fprintf(page, "%u", va_arg(args, unsigned)); break;
            case 'g': fprintf(page, "%.4g", va_arg(args, double)); break;
            default: fputc(*fmt, page);
            }
    }
    va_end(args);
}

static void put_printable(FILE *page, const char *text)
{
    char printable[1024];
    report_put(page, "%s", sgt_printable(printable, sizeof printable, text));
}

char *report_format(char *buf, size_t n, report_number number, double x)
{
    switch (number) {
    case REPORT_DIGITS: snprintf(buf, n, "%.4g", x); break;
    case REPORT_LOG: snprintf(buf, n, "%.4g", pow(10, x)); break;
    case REPORT_COUNT: sgt_format_count(buf, n, (uint64_t)fmax(0, x + 0.5)); break;
    case REPORT_BIG:
        if (x < 999.5) snprintf(buf, n, "%.0f", x);
        else sgt_format_rate(buf, n, x, "");
        break;
    case REPORT_PERCENT: snprintf(buf, n, "%.3g\u00a0%%", 100 * x); break;
    case REPORT_BYTES: sgt_format_bytes(buf, n, (uint64_t)fmax(0, x)); break;
    case REPORT_TIME: sgt_format_duration(buf, n, x); break;
    }
    return buf;
}

/* ---- tables ---- */

void report_begin_table(FILE *page, const report_table *t)
{
    if (t->scroll)
        report_put(page, "<div class=\"%s\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n",
                   t->scroll, t->caption);
    report_put(page, "<table class=\"%s\">\n<caption>%s</caption>\n<thead><tr>", t->class,
               t->caption);
    for (size_t i = 0; i < t->count; i++)
        if (t->swatches && i)
            report_put(page, "<th scope=\"col\">" REPORT_SWATCH "%s</th>", "line", (unsigned)i - 1,
                       t->titles[i]);
        else report_put(page, "<th scope=\"col\">%s</th>", t->titles[i]);
    report_put(page, "</tr></thead>\n<tbody>\n");
}

void report_put_cell(FILE *page, const char *text)
{
    if (text) report_put(page, "<td>%s</td>", text);
    else report_put(page, "<td class=\"none\">\u2013</td>");
}

static void end_table(FILE *page, const report_table *t)
{
    report_put(page, t->scroll ? "</tbody>\n</table>\n</div>\n" : "</tbody>\n</table>\n");
}

void report_begin_section(FILE *page, const char *class, const char *id, const char *title)
{
    report_put(page, "<section class=\"%s\" aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n",
               class, id, id, title);
}

/* ---- headline numbers ---- */

/* Minimum standard error (noise) of a loss that is printed. A loss with a smaller noise is printed
 * with four decimals and without its noise. */
#define LEAST_NOISE 5e-5

/* Write a loss to the n bytes at `buf`, and return `buf`. The number of decimals depends on the
 * standard error (noise) of the loss: it is one more than the position of the first nonzero decimal
 * of the noise, but at least one and at most four. For example, a loss with a noise of 0.02 gets
 * three decimals. If the noise is unknown or less than LEAST_NOISE, the loss gets four decimals. */
static char *format_loss(char *buf, size_t n, double loss, double noise)
{
    int digits = noise >= LEAST_NOISE ? 1 - (int)floor(log10(noise)) : 4;
    snprintf(buf, n, "%.*f", digits < 1 ? 1 : digits > 4 ? 4 : digits, loss);
    return buf;
}

static char *format_steps_done(char *buf, size_t n, const report_run *run)
{
    return sgt_format_count(buf, n, isnan(run->steps) ? 0 : (uint64_t)run->steps);
}

/* Write the number of steps that the run has completed and, if it is known, the number of all
 * steps. */
static void put_steps(FILE *page, const report_run *run)
{
    char done[32], all[32];
    uint64_t wanted =
        run->settings_known && run->settings.steps != SGT_DEFAULT_COUNT ? run->settings.steps : 0;
    fputs(format_steps_done(done, sizeof done, run), page);
    if (wanted) fprintf(page, " of %s", sgt_format_count(all, sizeof all, wanted));
    fputs((wanted ? wanted == 1 : run->steps == 1) ? " step" : " steps", page);
}

static void put_noise(FILE *page, const char *before, double noise, const char *after)
{
    if (noise >= LEAST_NOISE)
        fprintf(page, noise < 1 ? "%s\u00b1\u00a0%.1g%s" : "%s\u00b1\u00a0%.0f%s", before, noise,
                after);
}

static void put_mean(FILE *page, const report_run *run)
{
    char steps[48];
    put_noise(page, "", run->loss_noise, " ");
    if (run->loss_steps == 1) fputs("nats, of 1 step", page);
    else
        fprintf(page, "nats, mean of %s%s steps",
                (double)run->loss_steps < run->steps ? "the last " : "",
                sgt_format_count(steps, sizeof steps, run->loss_steps));
    fputs("; lower is better", page);
}

/* Write the small print below the last validation loss: its standard error (noise) and, if an
 * earlier validation loss was lower, the lowest validation loss and its step. */
static void put_lowest(FILE *page, const report_run *run)
{
    char step[48];
    put_noise(page, "", run->val_noise, " nats; ");
    if (run->best_val < run->val_loss)
        fprintf(page, "lowest %.4f, at step %s", run->best_val,
                sgt_format_count(step, sizeof step, (uint64_t)run->best_step));
    else fputs("lower is better", page);
}

/* a headline number of a run, whose value is a double in report_run */
typedef struct headline {
    const char *name;
    /* at: byte offset in report_run of the headline number. noise: byte offset in report_run of its
     * standard error, or 0 if the headline number is not a loss. */
    size_t at, noise;
    report_number number;
    /* which value is printed in bold if there are several runs: -1 for the lowest, 1 for the
     * highest, 0 for none */
    int best;
    /* 1 to omit the number from the page if no run has a value for it; 0 to print a dash instead */
    int left_out;
    /* small print below the number: the text `more` or, if that is NULL, what the function
     * `put_more` writes; both NULL if there is none */
    const char *more;
    void (*put_more)(FILE *page, const report_run *run);
} headline;

#define AT(member) offsetof(report_run, member)
static const headline headlines[] = {
    {"Final loss", AT(loss), AT(loss_noise), REPORT_DIGITS, -1, 0, NULL, put_mean},
    {"Validation loss", AT(val_loss), AT(val_noise), REPORT_DIGITS, -1, 1, NULL, put_lowest},
    {"Bits per byte", AT(val_bits), 0, REPORT_DIGITS, -1, 1,
     "on the validation data; lower is better", NULL},
    {"Tokens", AT(tokens), 0, REPORT_BIG, 0, 0, NULL, NULL},
    {"Training time", AT(seconds), 0, REPORT_TIME, 0, 0, NULL, put_steps},
    {"Tokens/s", AT(speed), 0, REPORT_BIG, 1, 0, "higher is better", NULL},
    {"MFU", AT(mfu), 0, REPORT_PERCENT, 1, 0, "of the peak speed", NULL},
    {"Peak memory", AT(peak), 0, REPORT_BYTES, 0, 0, NULL, NULL}};
#undef AT
enum { HEADLINES = sizeof headlines / sizeof *headlines };

/* Return the double at the byte offset `at` in *run, or NaN if `at` is 0, which stands for a number
 * that does not exist. */
static double number_at(const report_run *run, size_t at)
{
    return at ? *(const double *)(const void *)((const char *)run + at) : (double)NAN;
}

/* Write a headline number of a run to the n bytes at `buf` and return `buf`, or return NULL if the
 * number is unknown. */
static char *format_headline(char *buf, size_t n, const headline *h, const report_run *run)
{
    double x = number_at(run, h->at);
    if (isnan(x)) return NULL;
    return h->noise ? format_loss(buf, n, x, number_at(run, h->noise))
                    : report_format(buf, n, h->number, x);
}

static int is_shown(const report *r, const headline *h)
{
    int any = !h->left_out;
    for (size_t i = 0; i < r->count; i++) any |= !isnan(number_at(&r->runs[i], h->at));
    return any;
}

/* Write the headline numbers of the only run of a page. */
static void put_strip(FILE *page, const report *r)
{
    const report_run *run = &r->runs[0];
    char buf[48];
    fputs("<dl class=\"strip\">\n", page);
    for (const headline *h = headlines; h < headlines + HEADLINES; h++) {
        const char *text = format_headline(buf, sizeof buf, h, run);
        int more = h->put_more == put_steps || (text && (h->more || h->put_more));
        if (!is_shown(r, h)) continue;
        if (!text) text = h == headlines && run->steps > 0 ? "not a number" : "\u2013";
        report_put(page, "<div><dt>%s</dt><dd>%s</dd>", h->name, text);
        if (more) report_put(page, "<dd class=\"more\">%s", h->more ? h->more : "");
        if (more && h->put_more) h->put_more(page, run);
        report_put(page, more ? "</dd></div>\n" : "</div>\n");
    }
    fputs("</dl>\n", page);
}

/* Return the best value of a headline number of all runs, or NaN if no value is known, or if
 * neither high nor low values are better (headline.best is 0). */
static double best_of(const report *r, const headline *h)
{
    double best = NAN;
    for (size_t i = 0; i < r->count; i++) {
        double x = number_at(&r->runs[i], h->at);
        if (h->best && !isnan(x) && !(h->best * x <= h->best * best)) best = x;
    }
    return best;
}

/* Return 1 if the option `name` has the same value in two runs, or is in neither; otherwise 0. */
static int have_same(const report_run *a, const report_run *b, const char *name)
{
    const json_t *x = json_object_get(a->options, name), *y = json_object_get(b->options, name);
    return x == y || json_equal(x, y);
}

/* Return 1 if two runs were trained and evaluated on the same data, as far as this is known;
 * otherwise 0. The training data are compared by their hashes in the checkpoints or, if a hash is
 * missing, by their paths. The validation data are compared by their paths. */
static int have_same_data(const report_run *a, const report_run *b)
{
    int hashes = a->data_hash && b->data_hash;
    return (hashes ? a->data_hash == b->data_hash : have_same(a, b, "data")) &&
           have_same(a, b, "val-data");
}

static void put_run_row(FILE *page, const report *r, size_t i, const headline *const *columns,
                        size_t count, int comparable)
{
    const report_run *run = &r->runs[i];
    char text[48];
    report_put(page, REPORT_RUN_ROW, "line", (unsigned)i, run->name);
    report_put(page, "<td title=\"Steps\">%s</td>", format_steps_done(text, sizeof text, run));
    for (size_t k = 0; k < count; k++) {
        const char *x = format_headline(text, sizeof text, columns[k], run);
        int best = comparable && number_at(run, columns[k]->at) == best_of(r, columns[k]);
        report_put(page, best ? "<td title=\"%s\"><strong>%s</strong>" : "<td title=\"%s\">%s",
                   columns[k]->name, x ? x : "\u2013");
        put_noise(page, " <small>", number_at(run, columns[k]->noise), "</small>");
        fputs("</td>", page);
    }
    fputs("</tr>\n", page);
}

/* Write the table with the headline numbers of all runs, for a page with several runs. */
static void put_runs(FILE *page, const report *r)
{
    const char *titles[2 + HEADLINES] = {"Run", "Steps"};
    const headline *columns[HEADLINES];
    size_t count = 0;
    int comparable = 1;
    for (size_t i = 0; i < r->count; i++) comparable &= have_same_data(&r->runs[0], &r->runs[i]);
    for (const headline *h = headlines; h < headlines + HEADLINES; h++) {
        if (!is_shown(r, h)) continue;
        titles[2 + count] = h->name;
        columns[count++] = h;
    }
    const report_table t = {"scroll card", "numbers runs", "Runs", titles, 2 + count, 0};
    report_begin_table(page, &t);
    for (size_t i = 0; i < r->count; i++) put_run_row(page, r, i, columns, count, comparable);
    end_table(page, &t);
    fprintf(
        page,
        "<p class=\"none\">Losses are in nats per token, and lower is better. The final loss is "
        "the "
        "mean of the last 1 %% of the steps (at least 20). For speed and MFU, higher is better. "
        "%s</p>\n",
        comparable ? "The best value of all runs is bold."
                   : "No value is bold, because the runs used different data: their losses "
                     "cannot be compared.");
}

/* ---- facts about a run ----
 *
 * Each of these functions writes a fact about a run, or nothing if the fact is unknown. */

#define RESUMES 4 /* maximum number of resumes that are printed */

static void put_model(FILE *page, const report_run *run)
{
    char text[64];
    const char *model = run->settings_known ? run->settings.model : NULL;
    if (model) put_printable(page, model);
    report_format(text, sizeof text, REPORT_BIG, (double)run->parameters);
    if (run->parameters) fprintf(page, "%s%s parameters", model ? ", " : "", text);
    if (run->settings_known && run->settings.step.precision != SGT_DEFAULT_WORD)
        fprintf(page, "%s%s", model || run->parameters ? ", " : "",
                sgt_precision_words[run->settings.step.precision]);
}

static void put_data(FILE *page, const report_run *run)
{
    const char *data = json_string_value(json_object_get(run->options, "data"));
    if (data) put_printable(page, data);
    if (run->data_hash)
        fprintf(page, "%s<small>%sfingerprint %08llx</small>", data ? " " : "",
                data ? "\u00b7 " : "", (unsigned long long)run->data_hash >> 32);
}

/* Write a sentence as HTML. The names of options in it, such as --lr, are marked up as code, so
 * that browsers do not break lines at their dashes. */
static void put_sentence(FILE *page, const char *text)
{
    for (const char *at; (at = strstr(text, "--"));) {
        size_t n = 2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");
        put_text(page, text, (size_t)(at - text));
        fputs("<code>", page);
        put_text(page, at, n);
        fputs("</code>", page);
        text = at + n;
    }
    report_put(page, "%s", text);
}

/* Return the string in the member `name` of element i of run->starts, or "" if there is no such
 * string. Element i describes the i-th time that the run was started or resumed, counted from 0. */
static const char *of_start(const report_run *run, size_t i, const char *name)
{
    const char *text = json_string_value(json_object_get(json_array_get(run->starts, i), name));
    return text ? text : "";
}

static void put_host(FILE *page, const report_run *run)
{
    size_t last = json_array_size(run->starts) - 1;
    const char *host = of_start(run, last, "host"), *machine = of_start(run, last, "machine");
    put_printable(page, host);
    if (*host && *machine) fputs(", ", page);
    put_printable(page, machine);
    if (!*run->device) return;
    fputs(*host || *machine ? " <small>\u00b7 " : "<small>", page);
    put_printable(page, run->device);
    fputs("</small>", page);
}

/* Write the time at which the run was started or resumed for the i-th time, counted from 0, for
 * example as "2026-11-23 14:59 UTC". */
static void put_time(FILE *page, const report_run *run, size_t i)
{
    const char *time = of_start(run, i, "time");
    char text[32];
    snprintf(text, sizeof text, "%.10s %.5s UTC", time, strlen(time) == 20 ? time + 11 : "");
    put_printable(page, strlen(time) == 20 && time[10] == 'T' ? text : time);
}

static void put_begun(FILE *page, const report_run *run) { put_time(page, run, 0); }

/* Write the command line by which the run was started or resumed for the i-th time, counted from
 * 0. */
static void put_words(FILE *page, const report_run *run, size_t i)
{
    char printable[4096];
    sgt_printable(printable, sizeof printable, of_start(run, i, "command"));
    if (!*printable) return;
    fputs("<code>", page);
    put_sentence(page, printable);
    fputs("</code>", page);
}

static void put_command(FILE *page, const report_run *run) { put_words(page, run, 0); }

/* Write a line for each of the last RESUMES resumes of the run, with the time, the step after which
 * the run continued, and the command line. */
static void put_resumes(FILE *page, const report_run *run)
{
    size_t n = json_array_size(run->starts), first = n > RESUMES ? n - RESUMES : 1;
    if (first > 1)
        fprintf(page, "<small>%zu earlier time%s</small><br>", first - 1, first == 2 ? "" : "s");
    for (size_t i = first; i < n; i++) {
        const json_t *step = json_object_get(json_array_get(run->starts, i), "step");
        put_time(page, run, i);
        fprintf(page, " <small>after step %lld</small> ", (long long)json_integer_value(step));
        put_words(page, run, i);
        if (i + 1 < n) fputs("<br>", page);
    }
}

/* Write the text that the model of the run has generated, with invalid UTF-8 replaced with U+FFFD.
 * If there is no such text, write the reason, or nothing with --no-sample. */
static void put_sample(FILE *page, const report_run *run)
{
    const char *text = run->sample ? run->sample + strspn(run->sample, " ") : "";
    json_t *valid = *text ? sgt_json_string(text) : NULL;
    if (valid)
        report_put(page,
                   "<blockquote>%s</blockquote> <small>%u tokens from the newest checkpoint, with "
                   "sgt-sample's default options</small>",
                   json_string_value(valid), REPORT_SAMPLE_TOKENS);
    else if (run->sample || *run->no_sample) {
        fputs("<span class=\"none\">none: ", page);
        put_printable(page, run->sample ? "the model generated only blanks" : run->no_sample);
        fputs("</span>", page);
    }
    json_decref(valid);
}

static const struct {
    const char *name;
    void (*put)(FILE *page, const report_run *run);
} facts[] = {{"Model", put_model},   {"Data", put_data},       {"Host", put_host},
             {"Started", put_begun}, {"Command", put_command}, {"Resumed", put_resumes},
             {"Sample", put_sample}};
enum { FACTS = sizeof facts / sizeof *facts };

static void put_about(FILE *page, const report_run *run)
{
    fputs("<dl class=\"about\">\n", page);
    for (size_t f = 0; f < FACTS; f++) {
        char *text = NULL;
        size_t n;
        FILE *to = open_memstream(&text, &n);
        if (!to) sgt_no_memory();
        facts[f].put(to, run);
        if (fclose(to) == EOF) sgt_no_memory();
        if (n) fprintf(page, "<div><dt>%s</dt><dd>%s</dd></div>\n", facts[f].name, text);
        free(text);
    }
    fputs("</dl>\n", page);
}

/* Write a section that shows for each run, as far as known, its model, data, host and command. It
 * is for a page with several runs. */
static void put_origins(FILE *page, const report *r)
{
    report_begin_section(page, "cards", "origins", "Facts about each run");
    for (size_t i = 0; i < r->count; i++) {
        report_put(page, "<div class=\"card run\">\n<h3>" REPORT_SWATCH "%s</h3>\n", "line",
                   (unsigned)i, r->runs[i].name);
        put_about(page, &r->runs[i]);
        fputs("</div>\n", page);
    }
    fputs("</section>\n", page);
}

/* ---- notes and advice ---- */

/* time in seconds after which the page reloads itself if a run is still training */
#define RELOAD 30

/* Write a list item that consists of a sentence about a run, in red if `grave` is 1. */
static void put_item(FILE *page, const report *r, size_t run, int grave, const char *fmt, ...)
    SGT_PRINTF(5, 6);
static void put_item(FILE *page, const report *r, size_t run, int grave, const char *fmt, ...)
{
    char text[1024], printable[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fputs(grave ? "<li class=\"grave\">" : "<li>", page);
    if (r->count > 1)
        report_put(page, REPORT_SWATCH "<b>%s</b> ", "line", (unsigned)run, r->runs[run].name);
    put_sentence(page, sgt_printable(printable, sizeof printable, text));
    fputs("</li>\n", page);
}

static void put_advice(FILE *page, const report *r, size_t steps)
{
    size_t items = 0;
    report_begin_section(page, "advice", "advice", "Advice");
    fputs("<ul>\n", page);
    for (size_t i = 0; i < r->count; i++) {
        const report_run *run = &r->runs[i];
        for (size_t k = 0; k < run->advice_count; k++, items++)
            put_item(page, r, i, run->grave[k], "%s", run->advice[k]);
    }
    if (!items)
        fprintf(page, "<li class=\"fine\">%s</li>\n",
                steps ? "No problem found: the loss does not diverge, oscillate, spike or stay "
                        "flat, and the loader keeps up."
                      : "No advice yet: no step has been logged.");
    fputs("</ul>\n</section>\n", page);
}

/* Write notes about the logs of all runs: about logs without steps, about replaced, damaged and
 * incomplete lines, and about runs that seem to be still training. */
static void put_notes(FILE *page, const report *r)
{
    fputs("<ul class=\"notes\">\n", page);
    for (size_t i = 0; i < r->count; i++) {
        const report_log *l = &r->runs[i].log;
        if (!l->count) put_item(page, r, i, 0, "No step has been logged yet.");
        if (l->repeated)
            put_item(page, r, i, 0,
                     "Lines of the log replaced by later lines for the same steps: %llu.",
                     (unsigned long long)l->repeated);
        if (l->damaged)
            put_item(page, r, i, 0, "Damaged lines of the log that are not shown: %llu.",
                     (unsigned long long)l->damaged);
        if (l->half) put_item(page, r, i, 0, "The last line of the log is incomplete.");
        if (r->runs[i].going)
            put_item(
                page, r, i, 0,
                "The run seems to be training: it has steps left, and its log grew %.0f s ago. "
                "To update this page, run sgt-report again; the page reloads every %d s.",
                r->runs[i].idle, RELOAD);
    }
    fputs("</ul>\n", page);
}

/* ---- options ---- */

/* Return the value of an option in options.json as a string, which the caller frees, or NULL if the
 * option is not in options.json. */
static char *format_option(const report_run *run, const char *name)
{
    const json_t *v = json_object_get(run->options, name);
    char *text = NULL;
    if (!v) return NULL;
    if (json_is_string(v)) text = strdup(json_string_value(v));
    else text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(7));
    if (!text) sgt_no_memory();
    return text;
}

static int differs(const report *r, const char *name)
{
    int differ = 0;
    for (size_t i = 1; i < r->count; i++) differ |= !have_same(&r->runs[0], &r->runs[i], name);
    return differ;
}

static void put_option(FILE *page, const report *r, const char *name)
{
    char printable[256];
    report_put(page, "<tr><th scope=\"row\"><code>%s</code></th>",
               sgt_printable(printable, 64, name));
    for (size_t i = 0; i < r->count; i++) {
        char *text = format_option(&r->runs[i], name);
        report_put_cell(page, text ? sgt_printable(printable, sizeof printable, text) : NULL);
        free(text);
    }
    fputs("</tr>\n", page);
}

/* Write a table with a row for each option, in the order of options.json. If the page has several
 * runs, the table contains only the options whose values differ between the runs if `differing` is
 * 1, or only those with the same value in all runs if `differing` is 0. */
static void put_option_table(FILE *page, const report *r, const char *caption, int differing)
{
    const char *titles[1 + REPORT_RUNS] = {"Option", "Value"}, *name;
    const report_table t = {"scroll", "texts", caption, titles, 1 + r->count, r->count > 1};
    json_t *value;
    size_t rows = 0;
    for (size_t i = 0; i < r->count && r->count > 1; i++) titles[1 + i] = r->runs[i].name;
    report_begin_table(page, &t);
    for (size_t i = 0; i < r->count; i++) json_object_foreach(r->runs[i].options, name, value)
        {
            int seen = 0;
            for (size_t k = 0; k < i; k++)
                seen |= json_object_get(r->runs[k].options, name) != NULL;
            if (seen || (r->count > 1 && differs(r, name) != differing)) continue;
            put_option(page, r, name);
            rows++;
        }
    if (!rows)
        fprintf(page, "<tr><td colspan=\"%zu\" class=\"none\">None.</td></tr>\n", r->count + 1);
    end_table(page, &t);
}

static void put_options(FILE *page, const report *r)
{
    const char *rest = r->count > 1 ? "Options that are the same" : "All options";
    int any = 0;
    for (size_t i = 0; i < r->count; i++) any |= r->runs[i].options != NULL;
    if (!any) return;
    report_begin_section(page, "options", "options", "Options");
    if (r->count > 1) put_option_table(page, r, "Options that differ", 1);
    fprintf(page, "<details>\n<summary>%s</summary>\n", rest);
    put_option_table(page, r, rest, 0);
    fputs("</details>\n</section>\n", page);
}

/* ---- the page ---- */

static void begin_page(FILE *page, const report *r, const char *title)
{
    int going = 0;
    for (size_t i = 0; i < r->count; i++) going |= r->runs[i].going;
    report_put(page,
               "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
               "style-src 'unsafe-inline'; img-src data:\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
               "<meta name=\"color-scheme\" content=\"light dark\">\n"
               "<link rel=\"icon\" href=\"data:,\">\n<title>%s \u00b7 sgt-report</title>\n",
               title);
    if (going) fprintf(page, "<meta http-equiv=\"refresh\" content=\"%d\">\n", RELOAD);
    report_put_style(page);
    report_put(page, "</head>\n<body>\n<main>\n<header>\n<h1>%s</h1>\n", title);
}

static void end_page(FILE *page)
{
    char when[64] = "";
    time_t now = time(NULL);
    struct tm t;
    if (gmtime_r(&now, &t)) strftime(when, sizeof when, "%Y-%m-%d %H:%M UTC", &t);
    fprintf(page,
            "<footer>Made by sgt-report " SGT_VERSION ", %s.</footer>\n</main>\n</body>\n</html>\n",
            when);
}

void report_put_page(FILE *page, const report *r)
{
    char many[48];
    size_t steps = 0;
    for (size_t i = 0; i < r->count; i++) steps += r->runs[i].log.count;
    snprintf(many, sizeof many, "%zu training runs", r->count);
    begin_page(page, r, r->count == 1 ? r->runs[0].name : many);
    if (r->count == 1) put_about(page, &r->runs[0]);
    fputs("</header>\n", page);
    if (r->count == 1) put_strip(page, r);
    else put_runs(page, r);
    put_notes(page, r);
    put_advice(page, r, steps);
    if (steps) report_put_figures(page, r);
    put_options(page, r);
    if (r->count > 1) put_origins(page, r);
    end_page(page);
}
