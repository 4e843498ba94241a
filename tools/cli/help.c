/* help.c: --help, from the table. */
#include <stdio.h>
#include <string.h>

#include "tools/cli/completion.h"

enum { COLUMNS = 100, LEFT = 28, TEXT = LEFT + 3 }; /* options, and from where they are explained */

/* `text` from column `at`, and where it goes on from column `indent`, broken between words. */
static size_t print_wrapped(const char *text, size_t at, size_t indent)
{
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, " \n");
        if (at > indent && at + 1 + n > COLUMNS) {
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
    char left[160], def[200];
    if (o->kind == SGT_OPT_HEADING) {
        printf("\n%s:\n", o->name);
        return;
    }
    int n = o->letter ? snprintf(left, sizeof left, "-%c, --%s", o->letter, o->name)
                      : snprintf(left, sizeof left, "    --%s", o->name);
    if (o->value) n += snprintf(left + n, sizeof left - (size_t)n, " %s", o->value);
    if (n <= LEFT) printf("  %-*s ", LEFT, left);
    else printf("  %s\n%*s", left, TEXT, "");
    size_t at = print_wrapped(o->help, TEXT, TEXT);
    snprintf(def, sizeof def, "(default %s)", o->def ? o->def : "");
    if (o->def) print_wrapped(def, at, TEXT);
    printf("\n");
}

void sgt_print_help(const sgt_program *p)
{
    printf("usage: %s\n", p->usage);
    print_wrapped(p->about, 0, 0);
    printf("\n");
    if (p->commands) printf("\nSubcommands ('%s NAME --help' lists the options of one):\n", p->name);
    for (const sgt_command *const *c = p->commands; c && *c; c++) printf("  %-*s %s\n", LEFT, (*c)->name, (*c)->what);
    for (const sgt_option *o = p->options; o->name; o++) print_option(o);
    printf("\nOthers:\n  -h, --help                   this text\n      --version                the version\n");
    if (p->examples) printf("\nExamples:\n%s\n", p->examples);
}
