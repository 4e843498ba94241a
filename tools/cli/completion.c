/* completion.c: prints scripts for the completion of arguments in bash, zsh and fish, and the table
 * of options in a form for tests. Both are made from the tables alone. */
#include "tools/cli/completion.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- kinds of values ---- */

enum { WORDS = 1, FILES = 2, FOLDERS = 4, COMMANDS = 8, PIECES = 16 };

static int begins(const char *s, size_t n, const char *with)
{
    return n >= strlen(with) && !memcmp(s, with, strlen(with));
}

static int stands_for_itself(const char *word)
{
    return islower((unsigned char)*word) || isdigit((unsigned char)*word);
}

static int kinds_of_value(const sgt_option *o)
{
    char buf[SGT_OPTION_VALUE];
    const char *value = sgt_option_value(o, buf);
    int kinds = o->words || (o->choices && o->kind != SGT_OPT_WORD) ? PIECES : 0;
    for (const char *p = value ? value : ""; *p;) {
        size_t n = strcspn(p, "| ");
        if (n && stands_for_itself(p)) kinds |= WORDS;
        if (begins(p, n, "FILE") || begins(p, n, "SHARD")) kinds |= FILES;
        if (begins(p, n, "DIR") || begins(p, n, "FOLDER") || begins(p, n, "OUT/")) kinds |= FOLDERS;
        if (begins(p, n, "PYTHON")) kinds |= COMMANDS;
        p += n + (p[n] != 0);
    }
    return kinds;
}

/* Print the words that an option accepts, separated by spaces. Of a value such as "a|b|FILE", these
 * are the words that are typed as they are: a and b. */
static void print_words(const sgt_option *o)
{
    char buf[SGT_OPTION_VALUE];
    const char *space = "";
    for (int i = 0; o->choices && o->choices[i]; i++) printf("%s%s", i ? " " : "", o->choices[i]);
    for (const char *p = o->choices ? "" : o->words ? o->words : sgt_option_value(o, buf); *p;) {
        size_t n = strcspn(p, "| ");
        if (n && stands_for_itself(p)) {
            printf("%s%.*s", space, (int)n, p);
            space = " ";
        }
        p += n + (p[n] != 0);
    }
}

/* Return whether p takes operands: whether a usage line has, after [OPTION]..., a word that is
 * neither an option nor its value. */
static int has_operands(const sgt_program *p)
{
    for (const char *at = strstr(p->usage, "[OPTION]..."); at; at = strstr(at + 1, "[OPTION]...")) {
        int value = 0;
        for (const char *s = at + strlen("[OPTION]..."); *s == ' ';) {
            size_t n = strcspn(++s, " \n");
            if (*s != '-' && !value) return 1;
            value = *s == '-';
            s += n;
        }
    }
    return 0;
}

/* Print a program's name as an identifier: sgt_train for sgt-train. */
static void print_identifier(const char *name)
{
    for (; *name; name++) putchar(*name == '-' ? '_' : *name);
}

/* Print s for use within single quotes. A single quote in s becomes `quote`; a character of
 * `escaped` gets a backslash before it. */
static void print_quoted(const char *s, const char *quote, const char *escaped)
{
    for (; *s; s++) {
        if (*s == '\'') printf("%s", quote);
        else printf("%s%c", strchr(escaped, *s) ? "\\" : "", *s);
    }
}

/* ---- bash ---- */

static void bash_value(const sgt_option *o, const char *command)
{
    int kinds = kinds_of_value(o);
    printf("        '%s --%s'", command, o->name);
    if (o->letter) printf(" | '%s -%c'", command, o->letter);
    printf(")\n");
    if (kinds & PIECES) {
        printf("            [[ $cur == *,* ]] && head=${cur%%,*},\n            compopt -o nospace "
               "2> /dev/null\n"
               "            mapfile -t COMPREPLY < <(compgen -P \"$head\" -W '");
        print_words(o);
        printf("' -- \"${cur##*,}\")\n");
    } else if (kinds) {
        if (kinds & (FILES | FOLDERS)) printf("            compopt -o filenames 2> /dev/null\n");
        printf("            mapfile -t COMPREPLY < <(compgen%s%s",
               kinds & FILES     ? " -f"
               : kinds & FOLDERS ? " -d"
                                 : "",
               kinds & COMMANDS ? " -c" : "");
        if (kinds & WORDS) {
            printf(" -W '");
            print_words(o);
            printf("'");
        }
        printf(" -- \"$cur\")\n");
    }
    printf("            return ;;\n");
}

static void bash_values(const sgt_program *p, const char *command)
{
    sgt_option o;
    for (size_t i = 0; sgt_option_at(p, i, &o); i++)
        if (o.kind != SGT_OPT_HEADING && o.kind != SGT_OPT_FLAG) bash_value(&o, command);
}

static void bash_options(const sgt_program *p, const char *command)
{
    sgt_option o;
    printf("        '%s -'*)\n            mapfile -t COMPREPLY < <(compgen -W '", command);
    for (size_t i = 0; sgt_option_at(p, i, &o); i++)
        if (o.kind != SGT_OPT_HEADING) printf("--%s ", o.name);
    printf("--help --version' -- \"$cur\") ;;\n");
    if (!has_operands(p)) return;
    printf("        '%s '*)\n            compopt -o filenames 2> /dev/null\n"
           "            mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n",
           command);
}

static void bash_commands(const sgt_program *p)
{
    printf("    for ((i = 1; i < COMP_CWORD; i++)); do\n        case ${COMP_WORDS[i]} in\n         "
           "   ");
    for (const sgt_command *const *c = p->commands; *c; c++)
        printf("%s%s", c == p->commands ? "" : " | ", (*c)->name);
    printf(") command=${COMP_WORDS[i]} && break ;;\n        esac\n    done\n");
}

static void print_bash(const sgt_program *p)
{
    printf("# %s: completion in bash, which '%s --completion bash' prints from the table of its "
           "options\n_",
           p->name, p->name);
    print_identifier(p->name);
    printf("()\n{\n    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} "
           "command= head= i\n"
           "    COMPREPLY=()\n"
           "    if [[ $cur == = ]]; then cur= # --name=VALUE is three words here\n"
           "    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}\n    fi\n");
    if (p->commands) bash_commands(p);
    printf("    case \"$command $prev\" in\n");
    bash_values(p, "");
    for (const sgt_command *const *c = p->commands; c && *c; c++)
        bash_values((*c)->program, (*c)->name);
    printf("        *) ;;\n    esac\n    case \"$command $cur\" in\n");
    bash_options(p, "");
    for (const sgt_command *const *c = p->commands; c && *c; c++)
        bash_options((*c)->program, (*c)->name);
    if (p->commands) {
        printf("        ' '*) mapfile -t COMPREPLY < <(compgen -W '");
        for (const sgt_command *const *c = p->commands; *c; c++) printf("%s ", (*c)->name);
        printf("' -- \"$cur\") ;;\n");
    }
    printf("    esac\n}\ncomplete -F _");
    print_identifier(p->name);
    printf(" %s\n", p->name);
}

/* ---- zsh ---- */

static void zsh_quoted(const char *s) { print_quoted(s, "'\\''", "[]:\\"); }

static void zsh_action(const sgt_option *o)
{
    char buf[SGT_OPTION_VALUE];
    int kinds = kinds_of_value(o);
    printf(":");
    zsh_quoted(sgt_option_value(o, buf));
    printf(":");
    if (kinds & PIECES) {
        printf("_sequence compadd - ");
        print_words(o);
    } else if (kinds & WORDS && kinds & (FILES | FOLDERS)) {
        printf(" _alternative \"words\\:word\\:(");
        print_words(o);
        printf(")\" \"files\\:file\\:_files%s\"", kinds & FILES ? "" : " -/");
    } else if (kinds & WORDS) {
        printf("(");
        print_words(o);
        printf(")");
    } else {
        printf("%s", kinds & FILES      ? "_files"
                     : kinds & FOLDERS  ? "_files -/"
                     : kinds & COMMANDS ? "_command_names -e"
                                        : " ");
    }
}

static void zsh_option(const sgt_option *o)
{
    const char *equals = o->kind == SGT_OPT_FLAG ? "" : "=";
    printf(" \\\n        '");
    if (o->kind == SGT_OPT_LIST) printf("*--%s%s", o->name, equals);
    else if (o->letter)
        printf("(-%c --%s)'{-%c,--%s%s}'", o->letter, o->name, o->letter, o->name, equals);
    else printf("--%s%s", o->name, equals);
    printf("[");
    zsh_quoted(o->help);
    if (o->def) {
        printf(" (");
        zsh_quoted(o->def);
        printf(")");
    }
    printf("]");
    if (o->kind != SGT_OPT_FLAG) zsh_action(o);
    printf("'");
}

static void zsh_arguments(const sgt_program *p)
{
    sgt_option o;
    printf("_arguments -s -S :");
    for (size_t i = 0; sgt_option_at(p, i, &o); i++)
        if (o.kind != SGT_OPT_HEADING) zsh_option(&o);
    printf(
        " \\\n        '(- *)'{-h,--help}'[a list of the options]' '(- *)--version[the version]'");
    if (has_operands(p)) printf(" \\\n        '*:file:_files'");
    printf("\n");
}

static void zsh_commands(const sgt_program *p)
{
    printf("local curcontext=$curcontext state line\n_arguments -C '(- *)'{-h,--help}'[a list of "
           "the subcommands]' '(- *)--version[the version]' \\\n    '1:subcommand:((");
    for (const sgt_command *const *c = p->commands; *c; c++) {
        printf("%s%s\\:\"", c == p->commands ? "" : " ", (*c)->name);
        zsh_quoted((*c)->what);
        printf("\"");
    }
    printf("))' \\\n    '*::argument:->arguments' && return\ncase $words[1] in\n");
    for (const sgt_command *const *c = p->commands; *c; c++) {
        printf("%s)\n    ", (*c)->name);
        zsh_arguments((*c)->program);
        printf("    ;;\n");
    }
    printf("esac\n");
}

static void print_zsh(const sgt_program *p)
{
    printf("#compdef %s\n# completion in zsh, which '%s --completion zsh' prints from the table of "
           "its options\n",
           p->name, p->name);
    if (p->commands) zsh_commands(p);
    else zsh_arguments(p);
}

/* ---- fish ---- */

static void fish_quoted(const char *s) { print_quoted(s, "\\'", "\\"); }

static void fish_begin(const sgt_program *p, const char *command)
{
    printf("complete -c %s", p->name);
    if (command) printf(" -n '__fish_seen_subcommand_from %s'", command);
}

static void fish_option(const sgt_program *p, const sgt_option *o, const char *command)
{
    int kinds = kinds_of_value(o);
    fish_begin(p, command);
    printf(" -l %s", o->name);
    if (o->letter) printf(" -s %c", o->letter);
    if (o->kind != SGT_OPT_FLAG) printf(kinds & FILES ? " -r -F" : " -x");
    if (kinds & (WORDS | FOLDERS | COMMANDS | PIECES)) {
        printf(" -a '");
        if (kinds & PIECES) printf("(__fish_append , ");
        print_words(o);
        if (kinds & PIECES) printf(")");
        if (kinds & FOLDERS && !(kinds & FILES)) printf(" (__fish_complete_directories)");
        if (kinds & COMMANDS) printf(" (__fish_complete_command)");
        printf("'");
    }
    printf(" -d '");
    fish_quoted(o->help);
    if (o->def) printf(" (");
    fish_quoted(o->def ? o->def : "");
    printf("%s'\n", o->def ? ")" : "");
}

static void fish_options(const sgt_program *whole, const sgt_program *p, const char *command)
{
    sgt_option o;
    for (size_t i = 0; sgt_option_at(p, i, &o); i++)
        if (o.kind != SGT_OPT_HEADING) fish_option(whole, &o, command);
    if (!has_operands(p)) return;
    fish_begin(whole, command);
    printf(" -F\n");
}

static void print_fish(const sgt_program *p)
{
    printf(
        "# completion in fish, which '%s --completion fish' prints from the table of its options\n",
        p->name);
    printf("complete -c %s -f\ncomplete -c %s -s h -l help -d 'a list of the options'\n"
           "complete -c %s -l version -d 'the version'\n",
           p->name, p->name, p->name);
    if (!p->commands) fish_options(p, p, NULL);
    for (const sgt_command *const *c = p->commands; c && *c; c++) {
        printf("complete -c %s -n __fish_use_subcommand -a %s -d '", p->name, (*c)->name);
        fish_quoted((*c)->what);
        printf("'\n");
        fish_options(p, (*c)->program, (*c)->name);
    }
}

/* ---- the table ---- */

static void print_set(const sgt_option *o, const char *value)
{
    switch (o->kind) {
    case SGT_OPT_COUNT:
    case SGT_OPT_SIZE: printf("%llu", (unsigned long long)*(const uint64_t *)o->to); return;
    case SGT_OPT_REAL: printf("%.15g", *(const double *)o->to); return;
    case SGT_OPT_PERCENT: printf("%.15g%%", 100 * *(const double *)o->to); return;
    case SGT_OPT_TEXT:
    case SGT_OPT_CHOICE:
        printf("%s", *(const char *const *)o->to ? *(const char *const *)o->to : "-");
        return;
    case SGT_OPT_WORD:
        for (int i = *(const int *)o->to; i > 0 && value; i--) value = strchr(value, '|') + 1;
        if (!value || *(const int *)o->to < 0) printf("-");
        else printf("%.*s", (int)strcspn(value, "|"), value);
        return;
    default: printf("-");
    }
}

static void print_table(const sgt_program *p, const char *command)
{
    static const char *const kinds[] = {"heading", "flag", "count",  "size",   "real",
                                        "percent", "text", "choice", "choice", "list"};
    char buf[SGT_OPTION_VALUE];
    sgt_option o;
    for (size_t i = 0; sgt_option_at(p, i, &o); i++) {
        const char *value = sgt_option_value(&o, buf);
        if (o.kind == SGT_OPT_HEADING) continue;
        printf("%s\t%s\t%c\t%s\t%s\t", command, o.name, o.letter ? o.letter : '-',
               value ? value : "-", o.def ? o.def : "-");
        print_set(&o, value);
        printf("\t%s\t%s\n", kinds[o.kind], o.help);
    }
    for (const sgt_command *const *c = p->commands; c && *c; c++)
        print_table((*c)->program, (*c)->name);
}

int sgt_print_completion(const sgt_program *p, const char *form)
{
    if (!strcmp(form, "bash")) print_bash(p);
    else if (!strcmp(form, "zsh")) print_zsh(p);
    else if (!strcmp(form, "fish")) print_fish(p);
    else if (!strcmp(form, "table")) print_table(p, "-");
    else return -1;
    return 0;
}
