/* help.c: prints --help from the table of options. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/completion.h"
#include "tools/cli/wrap.h"

/* COLUMNS: most columns of a line; NARROW: a terminal with fewer is narrow; LEFT: columns for an
 * option; TEXT: column in which its help begins */
enum { COLUMNS = 100, NARROW = 72, LEFT = 28, TEXT = LEFT + 3 };

/* Return how many columns a line may have: 100, or as many as the terminal has if these are
 * fewer. */
static size_t columns(void)
{
    int n = sgt_columns(STDOUT_FILENO);
    return n > 0 && n < COLUMNS ? (size_t)n : COLUMNS;
}

/* Return whether the terminal is narrow, so that an option's help is printed below the option. */
static int is_narrow(void) { return columns() < NARROW; }

static size_t text_column(void) { return is_narrow() ? 6 : TEXT; }

/* Print lines that have breaks already, the first of them after `before`. They are broken again
 * only if the terminal is too narrow. */
static void print_lines(const char *before, const char *text)
{
    for (const char *p = text; *p; p += *p == '\n') {
        size_t n = strcspn(p, "\n");
        sgt_put_line(stdout, "%s%.*s", p == text ? before : "", (int)n, p);
        p += n;
    }
}

/* Print `text`, which begins in column `at`, broken between words; further lines begin in column
 * `indent`. Return the column after its end. */
static size_t print_wrapped(const char *text, size_t at, size_t indent)
{
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, " \n");
        if (at > indent && at + 1 + n > columns()) {
            printf("\n%*s", (int)indent, "");
            at = indent;
        } else if (at > indent) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)n, p);
        at += n;
        p += n + strspn(p + n, " \n");
    }
    return at;
}

static void print_option(const sgt_option *o)
{
    char left[SGT_OPTION_VALUE + 60], def[200], buf[SGT_OPTION_VALUE];
    const char *value = sgt_option_value(o, buf);
    if (o->kind == SGT_OPT_HEADING) {
        sgt_put_line(stdout, "\n%s:", o->name);
        return;
    }
    int n = o->letter ? snprintf(left, sizeof left, "-%c, --%s", o->letter, o->name)
                      : snprintf(left, sizeof left, "%s--%s", is_narrow() ? "" : "    ", o->name);
    if (value) n += snprintf(left + n, sizeof left - (size_t)n, " %s", value);
    size_t text = text_column();
    if (n <= LEFT && !is_narrow()) printf("  %-*s ", LEFT, left);
    else {
        sgt_put_line(stdout, "  %s", left);
        printf("%*s", (int)text, "");
    }
    size_t at = print_wrapped(o->help, text, text);
    for (int i = 0; o->kind == SGT_OPT_TEXT && o->choices && o->choices[i]; i++) {
        snprintf(left, sizeof left, "%s%s", o->choices[i], o->choices[i + 1] ? "," : "");
        at = print_wrapped(left, at, text);
    }
    snprintf(def, sizeof def, "(default %s)", o->def ? o->def : "");
    if (o->def) print_wrapped(def, at, text);
    printf("\n");
}

void sgt_print_help(const sgt_program *p)
{
    static const sgt_option others[] = {{.name = "Others"},
                                        {"help", 'h', SGT_OPT_FLAG, NULL, .help = "this text"},
                                        {"version", 0, SGT_OPT_FLAG, NULL, .help = "the version"},
                                        {0}};
    print_lines("usage: ", p->usage);
    print_wrapped(p->about, 0, 0);
    printf("\n");
    if (p->commands)
        sgt_put_line(stdout, "\nSubcommands ('%s NAME --help' lists the options of one):", p->name);
    for (const sgt_command *const *c = p->commands; c && *c; c++)
        sgt_put_line(stdout, "  %-*s %s", is_narrow() ? 0 : LEFT, (*c)->name, (*c)->what);
    sgt_option own;
    for (size_t i = 0; sgt_option_at(p, i, &own); i++) print_option(&own);
    for (const sgt_option *o = others; o->name; o++) print_option(o);
    if (p->examples) printf("\nExamples:\n");
    if (p->examples) print_lines("", p->examples);
}
