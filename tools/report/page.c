/* page.c: writes the whole page. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/talk.h"
#include "tools/page/page.h"
#include "tools/report/figures.h"

#define LEAST_NOISE 5e-5 /* smallest noise of a loss that four digits can show */

/* Format the final loss with one digit more than its noise allows. */
static char *final_loss(char *buf, size_t n, const report_run *run)
{
    double noise = run->loss_noise;
    int digits = noise >= LEAST_NOISE ? 1 - (int)floor(log10(noise)) : 4;
    snprintf(buf, n, "%.*f", digits < 1 ? 1 : digits > 4 ? 4 : digits, run->loss);
    return buf;
}

/* ---- headline numbers ---- */

typedef enum figure { LOSS, VAL, BITS, TOKENS, TIME, SPEED, MFU, PEAK, FIGURES } figure;

static const char *const figure_names[FIGURES] = {"Final loss", "Validation loss", "Bits per byte",
                                                  "Tokens",     "Time in steps",   "Tokens/s",
                                                  "MFU",        "Memory in steps"};

static double figure_of(const report_run *run, figure f)
{
    const double all[FIGURES] = {run->loss,    run->val_loss, run->val_bits, run->tokens,
                                 run->seconds, run->speed,    run->mfu,      run->peak};
    return all[f];
}

static char *figure_text(char *buf, size_t n, figure f, const report_run *run)
{
    double x = figure_of(run, f);
    if (isnan(x)) snprintf(buf, n, "\u2013");
    else if (f == LOSS) final_loss(buf, n, run);
    else if (f == VAL || f == BITS) snprintf(buf, n, "%.4f", x);
    else if (f == TIME) report_time(buf, n, x);
    else if (f == MFU) snprintf(buf, n, "%.1f\u00a0%%", 100 * x);
    else if (f == PEAK) sgt_format_bytes(buf, n, (uint64_t)x);
    else report_big(buf, n, x);
    return buf;
}

/* Format the number of steps done, and that of all steps if it is known. */
static char *steps_text(char *buf, size_t n, const report_run *run)
{
    char done[32], all[32];
    uint64_t wanted =
        run->settings_known && run->settings.steps != SGT_DEFAULT_COUNT ? run->settings.steps : 0;
    sgt_format_count(done, sizeof done, isnan(run->steps) ? 0 : (uint64_t)run->steps);
    if (wanted)
        snprintf(buf, n, "%s of %s step%s", done, sgt_format_count(all, sizeof all, wanted),
                 wanted == 1 ? "" : "s");
    else snprintf(buf, n, "%s step%s", done, run->steps == 1 ? "" : "s");
    return buf;
}

/* Write the small print below a headline number. */
static void put_more(FILE *page, const report_run *run, figure f)
{
    static const char *const fixed[FIGURES] = {[VAL] = "lower is better",
                                               [BITS] = "of validation; lower is better",
                                               [SPEED] = "higher is better",
                                               [MFU] = "of the peak speed"};
    char text[48], noise[32] = "";
    if (f == LOSS && !isnan(run->loss) && run->loss_steps == 1) {
        fputs("<dd class=\"more\">nats, of 1 step; lower is better</dd>", page);
    } else if (f == LOSS && !isnan(run->loss)) {
        if (run->loss_noise >= LEAST_NOISE)
            snprintf(noise, sizeof noise,
                     run->loss_noise < 1 ? "\u00b1\u00a0%.1g " : "\u00b1\u00a0%.0f ",
                     run->loss_noise);
        fprintf(page, "<dd class=\"more\">%snats, mean of %s%s steps; lower is better</dd>", noise,
                (double)run->loss_steps < run->steps ? "the last " : "",
                sgt_format_count(text, sizeof text, run->loss_steps));
    } else if (f == VAL && run->best_val < run->val_loss)
        fprintf(page, "<dd class=\"more\">lowest %.4f, step %s</dd>", run->best_val,
                sgt_format_count(text, sizeof text, (uint64_t)run->best_step));
    else if (f == TIME)
        fprintf(page, "<dd class=\"more\">%s</dd>", steps_text(text, sizeof text, run));
    else if (fixed[f] && !isnan(figure_of(run, f)))
        fprintf(page, "<dd class=\"more\">%s</dd>", fixed[f]);
}

static void put_strip(FILE *page, const report_run *run)
{
    char text[48];
    fputs("<dl class=\"strip\">\n", page);
    for (int f = 0; f < FIGURES; f++) {
        double x = figure_of(run, (figure)f);
        if ((f == VAL || f == BITS) && isnan(x)) continue;
        int broken = f == LOSS && isnan(x) && run->steps > 0;
        fprintf(page, "<div><dt>%s</dt><dd>%s</dd>", figure_names[f],
                broken ? "not a number" : figure_text(text, sizeof text, (figure)f, run));
        put_more(page, run, (figure)f);
        fputs("</div>\n", page);
    }
    fputs("</dl>\n", page);
}

/* Return the best value over all runs: the lowest loss, the highest speed. */
static double best_of(const report *r, figure f)
{
    double best = NAN;
    for (size_t i = 0; i < r->count; i++) {
        double x = figure_of(&r->runs[i], f);
        if (f == TOKENS || f == TIME || f == PEAK || isnan(x)) continue;
        if (!(f <= BITS ? x >= best : x <= best)) best = x;
    }
    return best;
}

/* Return whether the table has this column. Older logs have no bits per byte. */
static int has_column(const report *r, figure f)
{
    int known = f != BITS;
    for (size_t i = 0; i < r->count; i++) known |= !isnan(figure_of(&r->runs[i], f));
    return known;
}

static void put_runs(FILE *page, const report *r)
{
    char text[48];
    int comparable = report_same_data(r);
    fputs("<div class=\"scroll card\" tabindex=\"0\" role=\"region\" aria-label=\"Runs\">\n<table "
          "class=\"numbers\">\n"
          "<caption class=\"hidden\">Runs</caption>\n<thead><tr><th scope=\"col\">Run</th>"
          "<th scope=\"col\">Steps</th>",
          page);
    for (int f = 0; f < FIGURES; f++)
        if (has_column(r, (figure)f)) fprintf(page, "<th scope=\"col\">%s</th>", figure_names[f]);
    fputs("</tr></thead>\n<tbody>\n", page);
    for (size_t i = 0; i < r->count; i++) {
        const report_run *run = &r->runs[i];
        fputs("<tr><th scope=\"row\">", page);
        report_put_swatch(page, "line", (unsigned)i);
        sgt_page_text(page, run->name);
        sgt_format_count(text, sizeof text, isnan(run->steps) ? 0 : (uint64_t)run->steps);
        fprintf(page, "</th><td>%s</td>", text);
        for (int f = 0; f < FIGURES; f++) {
            if (!has_column(r, (figure)f)) continue;
            int best = comparable && figure_of(run, (figure)f) == best_of(r, (figure)f);
            fprintf(page, "<td>%s%s%s</td>", best ? "<strong>" : "",
                    figure_text(text, sizeof text, (figure)f, run), best ? "</strong>" : "");
        }
        fputs("</tr>\n", page);
    }
    fprintf(page,
            "</tbody>\n</table>\n</div>\n<p class=\"none\">Losses in nats per token, final ones "
            "means of the last 1 %% of the steps (at least 20): lower is better. Speed and MFU: "
            "higher is better. %s</p>\n",
            comparable ? "Bold: the best of all runs."
                       : "None is set in bold, because the runs' data differ: their losses cannot "
                         "be compared.");
}

/* ---- sentences ---- */

/* Write a sentence. Options in it, such as "--lr 0.001", are set as code, and not broken at their
 * dashes. */
static void put_sentence(FILE *page, const char *text)
{
    char piece[1024];
    while (*text) {
        const char *at = strstr(text, "--");
        size_t n = at ? (size_t)(at - text) : strlen(text);
        snprintf(piece, sizeof piece, "%.*s", (int)n, text);
        sgt_page_text(page, piece);
        if (!at) return;
        n = 2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");
        snprintf(piece, sizeof piece, "%.*s", (int)n, at);
        fputs("<code>", page);
        sgt_page_text(page, piece);
        fputs("</code>", page);
        text = at + n;
    }
}

static void put_item_as(FILE *page, const char *tag, const report *r, const report_run *run,
                        const char *text)
{
    char printable[1024];
    fputs(tag, page);
    if (r->count > 1) {
        report_put_swatch(page, "line", (unsigned)(run - r->runs));
        fputs("<b>", page);
        sgt_page_text(page, run->name);
        fputs("</b> ", page);
    }
    put_sentence(page, sgt_printable(printable, sizeof printable, text));
    fputs("</li>\n", page);
}

static void put_item(FILE *page, const report *r, const report_run *run, const char *text)
{
    put_item_as(page, "<li>", r, run, text);
}

static void put_advice(FILE *page, const report *r)
{
    size_t items = 0, steps = 0;
    fputs("<section class=\"advice\" aria-labelledby=\"advice\">\n<h2 "
          "id=\"advice\">Advice</h2>\n<ul>\n",
          page);
    for (size_t i = 0; i < r->count; i++) {
        for (size_t k = 0; k < r->runs[i].advice_count; k++, items++)
            put_item_as(page, r->runs[i].grave[k] ? "<li class=\"grave\">" : "<li>", r, &r->runs[i],
                        r->runs[i].advice[k]);
        steps += r->runs[i].log.count;
    }
    if (!items)
        fprintf(page, "<li class=\"fine\">%s</li>\n",
                steps ? "No fault found: the loss neither diverges, oscillates, spikes nor stays "
                        "flat, and the loader keeps up."
                      : "None yet: no step has been logged.");
    fputs("</ul>\n</section>\n", page);
}

/* Write notes about the state of the logs. */
static void put_notes(FILE *page, const report *r)
{
    char text[160];
    fputs("<ul class=\"notes\">\n", page);
    for (size_t i = 0; i < r->count; i++) {
        const report_log *l = &r->runs[i].log;
        if (!l->count) put_item(page, r, &r->runs[i], "No step has been logged yet.");
        if (l->repeated) {
            snprintf(text, sizeof text,
                     "%llu line%s of the log %s replaced by later ones of the same steps.",
                     (unsigned long long)l->repeated, l->repeated == 1 ? "" : "s",
                     l->repeated == 1 ? "was" : "were");
            put_item(page, r, &r->runs[i], text);
        }
        if (l->damaged) {
            snprintf(text, sizeof text, "%llu damaged line%s of the log %s left out.",
                     (unsigned long long)l->damaged, l->damaged == 1 ? "" : "s",
                     l->damaged == 1 ? "is" : "are");
            put_item(page, r, &r->runs[i], text);
        }
        if (l->half)
            put_item(page, r, &r->runs[i],
                     "The log's last line was half written: the run may be going on.");
    }
    fputs("</ul>\n", page);
}

static void put_head(FILE *page, const report *r)
{
    char many[48];
    snprintf(many, sizeof many, "%zu training runs", r->count);
    sgt_page_begin(page, r->count == 1 ? r->runs[0].name : many, "sgt-report");
    if (r->count == 1) report_put_about(page, r);
    fputs("</header>\n", page);
}

int report_put_page(FILE *page, const report *r, sgt_error *err)
{
    size_t steps = 0;
    int rc = SGT_OK;
    for (size_t i = 0; i < r->count; i++) steps += r->runs[i].log.count;
    put_head(page, r);
    if (r->count == 1) put_strip(page, &r->runs[0]);
    else put_runs(page, r);
    if (r->count > 1) {
        report_put_origins(page, r);
        report_put_samples(page, r);
    }
    put_notes(page, r);
    put_advice(page, r);
    if (steps) rc = report_put_loss(page, r, err);
    if (rc == SGT_OK && steps) rc = report_put_steps(page, r, err);
    if (rc == SGT_OK && steps) rc = report_put_memory(page, r, err);
    report_put_options(page, r);
    sgt_page_end(page, "sgt-report");
    return rc;
}
