/* completion.c: prints scripts for the completion of arguments in bash, zsh and fish, and the table
 * of options in a form for manual pages and tests. One loop goes over the tables of a program and
 * its subcommands; each form prints its line for an option, and what stands before and after. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/options.h"

/* A program or one of its subcommands. */
typedef struct part {
    const char *program; /* the program's name */
    const char *command; /* the subcommand's name; "" for the program */
    const sgt_program *table;
} part;

/* One form of the output: what it prints for an option, and before and after; NULL: nothing. */
typedef struct form {
    const char *name;
    void (*begin)(const sgt_program *p);
    void (*begin_options)(const part *p);
    void (*option)(const part *p, const sgt_option *o);
    void (*end_options)(const part *p);
    void (*end)(const sgt_program *p);
} form;

/* ---- values ---- */

enum { WORDS = 1, FILES = 2, FOLDERS = 4, COMMANDS = 8, PIECES = 16 };

/* What may be offered as an option's value. */
typedef struct offer {
    int kinds;
    char words[512]; /* separated by spaces */
} offer;

static void add_word(offer *o, const char *word, size_t n)
{
    size_t at = strlen(o->words);
    snprintf(o->words + at, sizeof o->words - at, "%s%.*s", at ? " " : "", (int)n, word);
}

static int begins(const char *s, size_t n, const char *with)
{
    return n >= strlen(with) && !memcmp(s, with, strlen(with));
}

/* Return what is offered for an option. Of a value such as "a|b|FILE", these are the words that are
 * typed as they are, a and b, and files. */
static offer offer_for(const sgt_option *o)
{
    char buf[SGT_OPTION_VALUE];
    const char *value = sgt_option_value(o, buf), *words = o->words ? o->words : value;
    offer f = {.kinds = o->words || (o->choices && o->kind != SGT_OPT_WORD) ? PIECES : 0};
    for (int i = 0; o->choices && o->choices[i]; i++)
        add_word(&f, o->choices[i], strlen(o->choices[i]));
    size_t n;
    for (const char *p = o->choices || !words ? "" : words; *p; p += n + (p[n] != 0)) {
        n = strcspn(p, "| ");
        if (islower((unsigned char)*p) || isdigit((unsigned char)*p)) add_word(&f, p, n);
    }
    for (const char *p = value ? value : ""; *p; p += n + (p[n] != 0)) {
        n = strcspn(p, "| ");
        if (islower((unsigned char)*p) || isdigit((unsigned char)*p)) f.kinds |= WORDS;
        if (begins(p, n, "FILE") || begins(p, n, "SHARD")) f.kinds |= FILES;
        if (begins(p, n, "DIR") || begins(p, n, "FOLDER") || begins(p, n, "OUT/"))
            f.kinds |= FOLDERS;
        if (begins(p, n, "PYTHON")) f.kinds |= COMMANDS;
    }
    return f;
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

/* Print the names of the subcommands, with blanks between them. */
static void print_commands(const sgt_program *p)
{
    for (const sgt_command *const *c = p->commands; c && *c; c++)
        printf("%s%s", c == p->commands ? "" : " ", (*c)->name);
}

/* ---- bash ---- */

/* The script is a function that calls _sgt_option for each option. It sets COMPREPLY if the word
 * before the cursor is that option, and otherwise keeps the option's name. */
static void begin_bash(const sgt_program *p)
{
    static const char option[] =
        "_sgt_option() # COMMAND NAME LETTER KIND WORDS; KIND: flag, pieces, options of compgen\n"
        "{\n"
        "    local head= kind=$4\n"
        "    [[ $1 == \"$command\" ]] || return\n"
        "    names+=\" --$2\"\n"
        "    [[ $prev == \"--$2\" || (-n $3 && $prev == \"-$3\") ]] && [[ $4 != flag ]] || return\n"
        "    is_value=1\n"
        "    [[ $4 == *-[fd]* ]] && compopt -o filenames 2> /dev/null\n"
        "    if [[ $4 == pieces ]]; then\n"
        "        kind=\n"
        "        [[ $cur == *,* ]] && head=${cur%,*},\n"
        "        compopt -o nospace 2> /dev/null\n"
        "    fi\n"
        "    mapfile -t COMPREPLY < <(compgen $kind -P \"$head\" -W \"$5\" -- "
        "\"${cur#\"$head\"}\")\n"
        "}\n\n";
    static const char words[] =
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
        "    local command= names= is_value= operands= word\n"
        "    COMPREPLY=()\n"
        "    if [[ $cur == = ]]; then cur= # --name=VALUE is three words here\n"
        "    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
        "    fi\n"
        "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD - 1}\"; do\n"
        "        [[ \" $commands \" == *\" $word \"* ]] && command=$word && break\n"
        "    done\n";
    printf("# %s: completion in bash, which '%s --completion bash' prints from the table of its "
           "options\n%s_",
           p->name, p->name, option);
    print_identifier(p->name);
    printf("()\n{\n    local commands='");
    print_commands(p);
    printf("'\n%s", words);
}

static void bash_option(const part *p, const sgt_option *o)
{
    offer f = offer_for(o);
    printf("    _sgt_option '%s' %s '%.1s' '", p->command, o->name, &o->letter);
    if (o->kind == SGT_OPT_FLAG) printf("flag");
    else if (f.kinds & PIECES) printf("pieces");
    else
        printf("%s%s",
               f.kinds & FILES     ? "-f "
               : f.kinds & FOLDERS ? "-d "
                                   : "",
               f.kinds & COMMANDS ? "-c" : "");
    printf("' '%s'\n", f.words);
}

static void end_bash_options(const part *p)
{
    if (has_operands(p->table)) printf("    [[ $command == '%s' ]] && operands=-f\n", p->command);
}

static void end_bash(const sgt_program *p)
{
    printf("    if [[ -n $is_value ]]; then return\n"
           "    elif [[ $cur == -* ]]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$names --help --version\" -- \"$cur\")\n"
           "    elif [[ -n $operands ]]; then\n"
           "        compopt -o filenames 2> /dev/null\n"
           "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
           "    elif [[ -z $command ]]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$cur\")\n"
           "    fi\n}\ncomplete -F _");
    print_identifier(p->name);
    printf(" %s\n", p->name);
}

/* ---- zsh ---- */

static void print_zsh_quoted(const char *s) { print_quoted(s, "'\\''", "[]:\\"); }

static void begin_zsh(const sgt_program *p)
{
    printf("#compdef %s\n# completion in zsh, which '%s --completion zsh' prints from the table of "
           "its options\n",
           p->name, p->name);
    if (!p->commands) return;
    printf("local curcontext=$curcontext state line\n_arguments -C '(- *)'{-h,--help}'[a list of "
           "the subcommands]' '(- *)--version[the version]' \\\n    '1:subcommand:((");
    for (const sgt_command *const *c = p->commands; *c; c++) {
        printf("%s%s\\:\"", c == p->commands ? "" : " ", (*c)->name);
        print_zsh_quoted((*c)->what);
        printf("\"");
    }
    printf("))' \\\n    '*::argument:->arguments' && return\ncase $words[1] in\n");
}

static void begin_zsh_options(const part *p)
{
    printf("%s%s_arguments -s -S :", p->command, *p->command ? ")\n    " : "");
}

static void print_zsh_value(const sgt_option *o)
{
    char buf[SGT_OPTION_VALUE];
    offer f = offer_for(o);
    printf(":");
    print_zsh_quoted(sgt_option_value(o, buf));
    printf(":");
    if (f.kinds & PIECES) printf("_sequence compadd - %s", f.words);
    else if (f.kinds & WORDS && f.kinds & (FILES | FOLDERS))
        printf(" _alternative \"words\\:word\\:(%s)\" \"files\\:file\\:_files%s\"", f.words,
               f.kinds & FILES ? "" : " -/");
    else if (f.kinds & WORDS) printf("(%s)", f.words);
    else
        printf("%s", f.kinds & FILES      ? "_files"
                     : f.kinds & FOLDERS  ? "_files -/"
                     : f.kinds & COMMANDS ? "_command_names -e"
                                          : " ");
}

static void zsh_option(const part *p, const sgt_option *o)
{
    const char *equals = o->kind == SGT_OPT_FLAG ? "" : "=";
    (void)p;
    printf(" \\\n        '");
    if (o->kind == SGT_OPT_LIST) printf("*--%s=", o->name);
    else if (o->letter)
        printf("(-%c --%s)'{-%c,--%s%s}'", o->letter, o->name, o->letter, o->name, equals);
    else printf("--%s%s", o->name, equals);
    printf("[");
    print_zsh_quoted(o->help);
    printf("%s", o->def ? " (" : "");
    print_zsh_quoted(o->def ? o->def : "");
    printf("%s", o->def ? ")]" : "]");
    if (o->kind != SGT_OPT_FLAG) print_zsh_value(o);
    printf("'");
}

static void end_zsh_options(const part *p)
{
    printf(
        " \\\n        '(- *)'{-h,--help}'[a list of the options]' '(- *)--version[the version]'");
    if (has_operands(p->table)) printf(" \\\n        '*:file:_files'");
    printf("\n%s", *p->command ? "    ;;\n" : "");
}

static void end_zsh(const sgt_program *p)
{
    if (p->commands) printf("esac\n");
}

/* ---- fish ---- */

static void print_fish_quoted(const char *s) { print_quoted(s, "\\'", "\\"); }

static void begin_fish(const sgt_program *p)
{
    printf(
        "# completion in fish, which '%s --completion fish' prints from the table of its options\n"
        "complete -c %s -f\ncomplete -c %s -s h -l help -d 'a list of the options'\n"
        "complete -c %s -l version -d 'the version'\n",
        p->name, p->name, p->name, p->name);
    for (const sgt_command *const *c = p->commands; c && *c; c++) {
        printf("complete -c %s -n __fish_use_subcommand -a %s -d '", p->name, (*c)->name);
        print_fish_quoted((*c)->what);
        printf("'\n");
    }
}

static void begin_fish_line(const part *p)
{
    printf("complete -c %s", p->program);
    if (*p->command) printf(" -n '__fish_seen_subcommand_from %s'", p->command);
}

static void fish_option(const part *p, const sgt_option *o)
{
    offer f = offer_for(o);
    begin_fish_line(p);
    printf(" -l %s", o->name);
    if (o->letter) printf(" -s %c", o->letter);
    if (o->kind != SGT_OPT_FLAG) printf(f.kinds & FILES ? " -r -F" : " -x");
    if (f.kinds & ~FILES)
        printf(" -a '%s%s%s%s%s'", f.kinds & PIECES ? "(__fish_append , " : "", f.words,
               f.kinds & PIECES ? ")" : "",
               f.kinds & FOLDERS && !(f.kinds & FILES) ? " (__fish_complete_directories)" : "",
               f.kinds & COMMANDS ? " (__fish_complete_command)" : "");
    printf(" -d '");
    print_fish_quoted(o->help);
    printf("%s", o->def ? " (" : "");
    print_fish_quoted(o->def ? o->def : "");
    printf("%s'\n", o->def ? ")" : "");
}

static void end_fish_options(const part *p)
{
    if (!has_operands(p->table)) return;
    begin_fish_line(p);
    printf(" -F\n");
}

/* ---- the table ---- */

static void print_current_value(const sgt_option *o, const char *value)
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

static void table_option(const part *p, const sgt_option *o)
{
    static const char *const kinds[] = {"heading", "flag", "count",  "size",   "real",
                                        "percent", "text", "choice", "choice", "list"};
    char buf[SGT_OPTION_VALUE];
    const char *value = sgt_option_value(o, buf);
    printf("%s\t%s\t%c\t%s\t%s\t", *p->command ? p->command : "-", o->name,
           o->letter ? o->letter : '-', value ? value : "-", o->def ? o->def : "-");
    print_current_value(o, value);
    printf("\t%s\t%s\n", kinds[o->kind], o->help);
}

/* ---- all forms ---- */

static void print_options(const form *f, const part *p)
{
    sgt_option o;
    if (f->begin_options) f->begin_options(p);
    for (size_t i = 0; sgt_option_at(p->table, i, &o); i++)
        if (o.kind != SGT_OPT_HEADING) f->option(p, &o);
    if (f->end_options) f->end_options(p);
}

int sgt_print_completion(const sgt_program *p, const char *name)
{
    static const form forms[] = {
        {"bash", begin_bash, NULL, bash_option, end_bash_options, end_bash},
        {"zsh", begin_zsh, begin_zsh_options, zsh_option, end_zsh_options, end_zsh},
        {"fish", begin_fish, NULL, fish_option, end_fish_options, NULL},
        {"table", NULL, NULL, table_option, NULL, NULL},
        {0}};
    const form *f = forms;
    while (f->name && strcmp(f->name, name) != 0) f++;
    if (!f->name) return -1;
    if (f->begin) f->begin(p);
    if (!p->commands) print_options(f, &(part){p->name, "", p});
    for (const sgt_command *const *c = p->commands; c && *c; c++)
        print_options(f, &(part){p->name, (*c)->name, (*c)->program});
    if (f->end) f->end(p);
    return 0;
}
