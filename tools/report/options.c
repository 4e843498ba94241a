/* options.c: writes the table of options: all options of a single run, or those that differ between
 * several runs. */
#include <stdlib.h>
#include <string.h>

#include "tools/page/page.h"
#include "tools/report/figures.h"

/* Return the value of an option in options.json as malloc'd text; NULL if it has none. */
static char *value_of(const report_run *run, const char *name)
{
    char text[40];
    const json_t *v = json_object_get(run->options, name);
    if (!v) return NULL;
    if (json_is_string(v)) return strdup(json_string_value(v));
    if (!json_is_real(v)) return json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
    snprintf(text, sizeof text, "%.7g", json_real_value(v));
    return strdup(text);
}

static int same(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static int differs(const report *r, const char *name)
{
    int differ = 0;
    char *first = value_of(&r->runs[0], name);
    for (size_t i = 1; i < r->count && !differ; i++) {
        char *other = value_of(&r->runs[i], name);
        differ = !same(first, other);
        free(other);
    }
    free(first);
    return differ;
}

static void put_value(FILE *page, const report_run *run, const char *name)
{
    char printable[256], *text = value_of(run, name);
    fputs(text ? "<td>" : "<td class=\"none\">\u2013", page);
    if (text) sgt_page_text(page, sgt_printable(printable, sizeof printable, text));
    fputs("</td>", page);
    free(text);
}

static void put_row(FILE *page, const report *r, const char *name)
{
    char printable[64];
    fputs("<tr><th scope=\"row\"><code>", page);
    sgt_page_text(page, sgt_printable(printable, sizeof printable, name));
    fputs("</code></th>", page);
    for (size_t i = 0; i < r->count; i++) put_value(page, &r->runs[i], name);
    fputs("</tr>\n", page);
}

static void put_head(FILE *page, const report *r, const char *caption)
{
    fprintf(page,
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n<table>\n"
            "<caption>%s</caption>\n<thead><tr><th scope=\"col\">Option</th>",
            caption, caption);
    for (size_t i = 0; i < r->count; i++) {
        fputs("<th scope=\"col\">", page);
        if (r->count > 1) report_put_swatch(page, "line", (unsigned)i);
        if (r->count > 1) sgt_page_text(page, r->runs[i].name);
        else fputs("Value", page);
        fputs("</th>", page);
    }
    fputs("</tr></thead>\n<tbody>\n", page);
}

/* Write one row for each option, in the order of the first run that has it; with `differing`, only
 * for those that differ. Return the number of rows. */
static size_t put_rows(FILE *page, const report *r, int differing)
{
    size_t rows = 0;
    for (size_t i = 0; i < r->count; i++) {
        const char *name;
        json_t *value;
        json_object_foreach(r->runs[i].options, name, value)
        {
            int seen = 0;
            for (size_t k = 0; k < i; k++)
                seen |= json_object_get(r->runs[k].options, name) != NULL;
            if (seen || (r->count > 1 && differs(r, name) != differing)) continue;
            put_row(page, r, name);
            rows++;
        }
    }
    return rows;
}

static void put_table(FILE *page, const report *r, int differing, const char *caption)
{
    put_head(page, r, caption);
    size_t rows = put_rows(page, r, differing);
    if (!rows)
        fprintf(page, "<tr><td colspan=\"%zu\" class=\"none\">None.</td></tr>\n", r->count + 1);
    fputs("</tbody>\n</table>\n</div>\n", page);
}

void report_put_options(FILE *page, const report *r)
{
    int any = 0;
    for (size_t i = 0; i < r->count; i++) any |= r->runs[i].options != NULL;
    if (!any) return;
    fputs("<section aria-labelledby=\"options\">\n<h2 id=\"options\">Options</h2>\n", page);
    if (r->count > 1) put_table(page, r, 1, "Options that differ");
    fprintf(page, "<details>\n<summary>%s</summary>\n",
            r->count > 1 ? "Options that are the same" : "All options");
    put_table(page, r, 0, r->count > 1 ? "Options that are the same" : "All options");
    fputs("</details>\n</section>\n", page);
}
