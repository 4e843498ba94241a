/* options.c: parses a command line according to its table of options, suggests words that the user
 * may have meant, and prints --help. */
#include "tools/cli/options.h"

#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/cpu.h"
#include "loader/base/version.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"

/* ---- the table ---- */

/* Return an option of a table; fields that it leaves out are taken from its row, o->as. */
static sgt_option filled_in(const sgt_option *o)
{
    sgt_option f = *o;
    const sgt_option *row = o->as;
    if (!row) return f;
    f = *row;
    f.name = o->name;
    f.to = o->to;
    f.given = o->given;
    if (o->help) f.help = o->help;
    if (o->def) f.def = o->def;
    if (o->choices) f.choices = o->choices;
    return f;
}

int sgt_option_at(const sgt_program *p, size_t i, sgt_option *out)
{
    for (const sgt_option *o = p->options; o->name; o++) {
        int rows = o->kind == SGT_OPT_ROWS;
        if (*o->name && i-- == 0) {
            *out = filled_in(o);
            if (rows) out->kind = SGT_OPT_HEADING;
            return 1;
        }
        for (const sgt_option *row = p->rows; rows && row->name; row++) {
            if (row->section != o->section || i-- > 0) continue;
            *out = *row;
            out->to = (char *)p->settings + row->offset;
            out->given = &p->given[row - p->rows];
            return 1;
        }
    }
    return 0;
}

/* ---- numbers ---- */

/* Return the factor that a suffix stands for: a power of ten for k, M, G, T; a power of 1024 for
 * Ki, Mi, Gi, Ti. With `bytes`, a B may follow. Return 0 if s is no suffix. */
static uint64_t suffix_factor(const char *s, int bytes)
{
    static const char letters[] = "kMGT";
    if (!*s || (bytes && !strcmp(s, "B"))) return 1;
    const char *at = strchr(letters, *s == 'K' ? 'k' : *s);
    if (!at) return 0;
    uint64_t binary = s[1] == 'i', factor = 1;
    const char *rest = s + 1 + binary;
    if (*rest && !(bytes && !strcmp(rest, "B"))) return 0;
    for (const char *l = letters; l <= at; l++) factor *= binary ? 1024 : 1000;
    return factor;
}

/* Return whether s begins with digits. strtod would also accept hexadecimal numbers, "inf" and
 * "nan", which an option must not. */
static int starts_as_number(const char *s)
{
    if (*s == '-' || *s == '+') s++;
    if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) return 0;
    return (*s >= '0' && *s <= '9') || (*s == '.' && s[1] >= '0' && s[1] <= '9');
}

/* Set *out to v * factor / 10^places if that is a 64-bit integer without rounding, and return 0;
 * else return -1. */
static int whole_number(uint64_t v, uint64_t factor, int places, uint64_t *out)
{
    static const uint64_t primes[] = {2, 5};
    for (; places > 0; places--)
        for (int i = 0; i < 2; i++) {
            if (factor % primes[i] == 0) factor /= primes[i];
            else if (v % primes[i] == 0) v /= primes[i];
            else return -1;
        }
    for (; places < 0 && v; places++)
        if (__builtin_mul_overflow(v, 10, &v)) return -1;
    return __builtin_mul_overflow(v, factor, out) ? -1 : 0;
}

/* Parse digits, which may contain a decimal point, then an optional exponent and suffix. */
static int parse_scaled(const char *s, int bytes, uint64_t *out)
{
    uint64_t v = 0, factor;
    int places = 0, point = 0;
    if (*s < '0' || *s > '9') return -1;
    for (; (*s >= '0' && *s <= '9') || (*s == '.' && !point); s++) {
        if (*s == '.') point = 1;
        else if (__builtin_mul_overflow(v, 10, &v) ||
                 __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
            return -1;
        else places += point;
    }
    if (*s == 'e' || *s == 'E') {
        char *end;
        long exponent = strtol(s + 1, &end, 10);
        if (end == s + 1 || strchr(" \t\n\v\f\r", s[1]) || labs(exponent) > 99) return -1;
        places -= (int)exponent;
        s = end;
    }
    return (factor = suffix_factor(s, bytes)) ? whole_number(v, factor, places, out) : -1;
}

int sgt_parse_count(const char *s, uint64_t *out) { return parse_scaled(s, 0, out); }
int sgt_parse_size(const char *s, uint64_t *out) { return parse_scaled(s, 1, out); }

int sgt_parse_real(const char *s, double *out)
{
    char *end;
    if (!starts_as_number(s)) return -1;
    double x = strtod(s, &end);
    if (*end || !isfinite(x)) return -1;
    *out = x;
    return 0;
}

static int parse_percent(const char *s, double *out)
{
    char number[64];
    size_t n = strlen(s);
    if (!strcmp(s, "none")) {
        *out = 0;
        return 0;
    }
    if (n < 2 || n >= sizeof number || s[n - 1] != '%') return -1;
    memcpy(number, s, n - 1);
    number[n - 1] = 0;
    if (sgt_parse_real(number, out) < 0 || *out < 0 || *out > 100) return -1;
    *out /= 100;
    return 0;
}

/* ---- suggestions ---- */

/* LONGEST_WORD: most bytes of a word that is compared; MOST_CANDIDATES: most words suggested */
enum { LONGEST_WORD = 48, MOST_CANDIDATES = 4 };

/* Known words that an unknown one may stand for. */
typedef struct candidates {
    char text[256]; /* the words, with " or " between them */
    size_t count;
} candidates;

static void add_candidate(candidates *c, const char *before, const char *word, size_t length)
{
    size_t at = strlen(c->text);
    if (c->count++ < MOST_CANDIDATES)
        snprintf(c->text + at, sizeof c->text - at, "%s%s%.*s", at ? " or " : "", before,
                 (int)length, word);
}

/* Return whether a word of a help text is typed as it is: others are placeholders, such as FILE. */
static int stands_for_itself(const char *word)
{
    return islower((unsigned char)*word) || isdigit((unsigned char)*word);
}

static int differ(char a, char b) { return tolower((unsigned char)a) != tolower((unsigned char)b); }

/* Return the number of typing errors between a and b: how many letters must be inserted, deleted,
 * replaced or swapped with their neighbour to turn a into b. */
static size_t count_slips(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][LONGEST_WORD + 1], *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= m; j++) last[j] = j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = last[j - 1] + (size_t)differ(a[i - 1], b[j - 1]);
            if (last[j] + 1 < best) best = last[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            int exchanged =
                i > 1 && j > 1 && !differ(a[i - 1], b[j - 2]) && !differ(a[i - 2], b[j - 1]);
            if (exchanged && before[j - 2] + 1 < best) best = before[j - 2] + 1;
            row[j] = best;
        }
        size_t *free = before;
        before = last;
        last = row;
        row = free;
    }
    return last[m];
}

/* Find a part of `in`, which has dashes between its parts, that begins with `word`. Return 1 if it
 * is the first part, 2 if it is a later one, 0 if there is none. */
static int begins_part(const char *word, size_t n, const char *in, size_t m)
{
    for (size_t at = 0; at + n <= m; at++)
        if ((!at || in[at - 1] == '-') && !memcmp(in + at, word, n)) return at ? 2 : 1;
    return 0;
}

const char *sgt_suggest(const char *word, size_t n, const char *known, const char *before,
                        char hint[SGT_HINT])
{
    candidates whole = {.count = 0}, part = whole, nearest = whole;
    size_t length, fewest = n < 5 ? 2 : n < 8 ? 3 : 4; /* a word needs fewer slips than this */
    hint[0] = '\0';
    for (const char *k = known; *k && n <= LONGEST_WORD; k += length + (k[length] != 0)) {
        length = strcspn(k, "|, ");
        if (length > LONGEST_WORD || !stands_for_itself(k)) continue;
        int where = n > 1 ? begins_part(word, n, k, length) : 0;
        if (where) add_candidate(where == 1 ? &whole : &part, before, k, length);
        size_t slips = count_slips(word, n, k, length);
        /* if as many letters differ as the known word has, none of it would remain */
        if (slips >= fewest || slips >= length) continue;
        fewest = slips;
        nearest = (candidates){.count = 0};
        add_candidate(&nearest, before, k, length);
    }
    const candidates *c = whole.count ? &whole : &part;
    if (!c->count || c->count > MOST_CANDIDATES) c = &nearest;
    if (c->count) snprintf(hint, SGT_HINT, "; did you mean %s?", c->text);
    return hint;
}

/* ---- one option ---- */

/* Return whether the word auto may be given instead of a number. */
static int may_be_auto(const sgt_option *o)
{
    const char *last = strrchr(o->value, '|');
    return last && !strcmp(last, "|auto");
}

static int no_number(const sgt_option *o, const char *v, sgt_error *err)
{
    static const char *const what[] = {[SGT_OPT_COUNT] = "a whole number (such as 12, 512k, 1.5M)",
                                       [SGT_OPT_SIZE] = "a size (such as 4096, 512k, 64MiB)",
                                       [SGT_OPT_REAL] = "a number (such as 0.1, 3e-4)",
                                       [SGT_OPT_PERCENT] =
                                           "a percentage (such as 1%, with the sign) or none"};
    return sgt_fail(err, SGT_EUSAGE, "--%s %s: not %s%s", o->name, v, what[o->kind],
                    may_be_auto(o) ? " or auto" : "");
}

static int set_number(const sgt_option *o, const char *v, sgt_error *err)
{
    double x = SGT_DEFAULT_REAL;
    uint64_t u = SGT_DEFAULT_COUNT;
    int whole = sgt_option_is_whole(o), rc = SGT_OK;
    if (!may_be_auto(o) || strcmp(v, "auto") != 0) {
        int bad = o->kind == SGT_OPT_COUNT  ? sgt_parse_count(v, &u)
                  : o->kind == SGT_OPT_SIZE ? sgt_parse_size(v, &u)
                  : o->kind == SGT_OPT_REAL ? sgt_parse_real(v, &x)
                                            : parse_percent(v, &x);
        rc = bad < 0 ? no_number(o, v, err) : sgt_option_check(o, whole ? (double)u : x, v, err);
    }
    if (rc == SGT_OK && whole) *(uint64_t *)o->to = u;
    else if (rc == SGT_OK) *(double *)o->to = x;
    return rc;
}

static int add_to_list(const sgt_option *o, const char *v, sgt_error *err)
{
    sgt_option_list *list = o->to;
    if (list->count == SGT_OPTION_LIST)
        return sgt_fail(err, SGT_EUSAGE,
                        "--%s: given more than %d times, which is all that it takes", o->name,
                        SGT_OPTION_LIST);
    list->items[list->count++] = v;
    return SGT_OK;
}

static int set_word(const sgt_option *o, const char *v, sgt_error *err)
{
    char hint[SGT_HINT], value[SGT_OPTION_VALUE];
    int i = sgt_option_word(o, v, strlen(v));
    if (i >= 0 && o->kind == SGT_OPT_WORD) *(int *)o->to = i;
    else if (i >= 0) *(const char **)o->to = v;
    if (i >= 0) return SGT_OK;
    const char *choices = sgt_option_value(o, value);
    return sgt_fail(err, SGT_EUSAGE, "--%s %s: must be one of %s%s", o->name, v, choices,
                    sgt_suggest(v, strlen(v), choices, "", hint));
}

static int set_option(const sgt_option *o, const char *v, sgt_error *err)
{
    int rc = SGT_OK;
    if (o->kind == SGT_OPT_FLAG) *(int *)o->to = 1;
    else if (o->kind == SGT_OPT_TEXT) *(const char **)o->to = v;
    else if (o->kind == SGT_OPT_LIST) rc = add_to_list(o, v, err);
    else if (o->kind == SGT_OPT_CHOICE || o->kind == SGT_OPT_WORD) rc = set_word(o, v, err);
    else rc = set_number(o, v, err);
    if (rc == SGT_OK && o->given) *o->given = 1;
    return rc;
}

/* Find an option by its name, or by its letter if that is not 0. */
static int find_option(const sgt_program *p, const char *name, size_t n, char letter, sgt_option *o)
{
    for (size_t i = 0; sgt_option_at(p, i, o); i++) {
        if (o->kind == SGT_OPT_HEADING) continue;
        if (letter ? o->letter == letter
                   : name && strlen(o->name) == n && !memcmp(o->name, name, n))
            return 1;
    }
    return 0;
}

static int set_value(const sgt_option *o, const char *value, sgt_error *err)
{
    char buf[SGT_OPTION_VALUE];
    if (o->kind != SGT_OPT_FLAG && !value)
        return sgt_fail(err, SGT_EUSAGE, "--%s: needs a value (%s)", o->name,
                        sgt_option_value(o, buf));
    if (o->kind == SGT_OPT_FLAG && value)
        return sgt_fail(err, SGT_EUSAGE, "--%s: takes no value", o->name);
    return set_option(o, value, err);
}

/* ---- messages and results for people ---- */

static int is_first_rank(const sgt_program *p) { return !p->rank || p->rank() == 0; }

_Noreturn void sgt_usage(const sgt_program *p, const char *fmt, ...)
{
    char raw[2048], text[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(raw, sizeof raw, fmt, args);
    va_end(args);
    if (is_first_rank(p))
        sgt_put_line(stderr, "%s: %s\ntry '%s --help'", p->name,
                     sgt_printable(text, sizeof text, raw), p->name);
    exit(SGT_EXIT_USAGE);
}

int sgt_report_failure(const sgt_program *p, const sgt_error *err)
{
    if (is_first_rank(p)) sgt_put_line(stderr, "%s: %s", p->name, err->text);
    if (err->code == SGT_EUSAGE) return SGT_EXIT_USAGE;
    return err->code == SGT_ESTOPPED ? SGT_EXIT_INTERRUPTED : SGT_EXIT_FAILED;
}

int sgt_end_program(const sgt_program *p, int rc, sgt_error *err)
{
    if (rc >= 0) rc = sgt_flush_results(err);
    if (rc == SGT_EUSAGE) sgt_usage(p, "%s", err->text);
    return rc < 0 ? sgt_report_failure(p, err) : SGT_EXIT_OK;
}

void sgt_take_cpu(const sgt_program *p, const char *level)
{
    sgt_error err;
    char hint[SGT_HINT] = "";
    int rc = sgt_cpu_limit(level, &err);
    if (rc == SGT_OK) return;
    if (rc == SGT_EUSAGE) sgt_suggest(level, strlen(level), "auto|plain|avx2|avx512|amx", "", hint);
    sgt_usage(p, "--cpu %s%s", err.text, hint);
}

/* End the program after it has printed what --help or a similar option asks for. The exit code
 * tells if that could not be written. */
static _Noreturn void end_after_output(void)
{
    exit(fflush(stdout) || ferror(stdout) ? SGT_EXIT_FAILED : SGT_EXIT_OK);
}

/* ---- --help ---- */

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

static void print_help(const sgt_program *p)
{
    static const sgt_option others[] = {{.name = "Others"},
                                        {"help", 'h', SGT_OPT_FLAG, NULL, .help = "this text"},
                                        {"version", 0, SGT_OPT_FLAG, NULL, .help = "the version"},
                                        {0}};
    sgt_put_line(stdout, "usage: %s", p->usage);
    print_wrapped(p->about, 0, 0);
    printf("\n");
    if (p->commands)
        sgt_put_line(stdout, "\nSubcommands ('%s NAME --help' lists the options of one):", p->name);
    for (const sgt_command *const *c = p->commands; c && *c; c++)
        sgt_put_line(stdout, "  %-*s %s", is_narrow() ? 0 : LEFT, (*c)->name, (*c)->what);
    sgt_option own;
    for (size_t i = 0; sgt_option_at(p, i, &own); i++) print_option(&own);
    for (const sgt_option *o = others; o->name; o++) print_option(o);
    if (p->examples) sgt_put_line(stdout, "\nExamples:\n%s", p->examples);
}

/* ---- a whole command line ---- */

/* Refuse a word that is gone, before others are looked at. A subcommand comes first, an option
 * anywhere, with or without =VALUE. */
static void refuse_gone(const sgt_program *p, int argc, char **argv)
{
    for (const sgt_gone *g = p->gone; g && g->word; g++)
        for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
            size_t n = strlen(g->word);
            int same = strncmp(argv[i], g->word, n) == 0 &&
                       (!argv[i][n] || (*g->word == '-' && argv[i][n] == '='));
            if (same && (i == 1 || *g->word == '-'))
                sgt_usage(p, "%s is gone: %s", g->word, g->now);
        }
}

static _Noreturn void refuse_unknown(const sgt_program *p, const char *dashes, const char *name,
                                     size_t n)
{
    char hint[SGT_HINT], known[4096] = "";
    size_t at = 0;
    sgt_option o;
    for (size_t i = 0; sgt_option_at(p, i, &o) && at < sizeof known; i++)
        if (o.kind != SGT_OPT_HEADING)
            at += (size_t)snprintf(known + at, sizeof known - at, "%s ", o.name);
    if (at < sizeof known) snprintf(known + at, sizeof known - at, "help version");
    sgt_usage(p, "%s%.*s: no such option%s", dashes, (int)n, name,
              sgt_suggest(name, n, known, "--", hint));
}

/* Handle --help, --version and --completion, each of which ends the program. */
static void answer_question(const sgt_program *p, const char *arg, const char *next)
{
    if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
        if (is_first_rank(p)) print_help(p);
    } else if (!strcmp(arg, "--version")) {
        if (is_first_rank(p)) printf("%s %s\n", p->name, SGT_VERSION);
    } else if (!strcmp(arg, "--completion")) {
        if (!next || sgt_print_completion(p, next) < 0)
            sgt_usage(p, "--completion: for bash, zsh or fish?");
    } else {
        return;
    }
    end_after_output();
}

/* Find the option -x. If arg is -xVALUE or -name instead, end with a message that suggests the
 * right form. */
static void find_letter(const sgt_program *p, const char *arg, sgt_option *o)
{
    sgt_option named;
    size_t n = strcspn(arg + 1, "=");
    int known = find_option(p, NULL, 0, arg[1], o);
    if (known && !arg[2]) return;
    if (n > 1 && find_option(p, arg + 1, n, 0, &named))
        sgt_usage(p, "%s: no such option; did you mean -%s?", arg, arg);
    if (known && o->kind != SGT_OPT_FLAG)
        sgt_usage(p, "%s: no such option; did you mean -%c %s?", arg, arg[1], arg + 2);
    refuse_unknown(p, "-", arg + 1, strlen(arg + 1));
}

/* Apply the option at argv[i] and return how many arguments it took. */
static int apply_option(const sgt_program *p, int argc, char **argv, int i)
{
    const char *arg = argv[i], *value = NULL, *name = arg + 2;
    sgt_option o;
    sgt_error err;
    answer_question(p, arg, i + 1 < argc ? argv[i + 1] : NULL);
    if (arg[1] == '-') {
        size_t n = strcspn(name, "=");
        if (!find_option(p, name, n, 0, &o)) refuse_unknown(p, "--", name, n);
        if (name[n]) value = name + n + 1;
    } else {
        find_letter(p, arg, &o);
    }
    int took = 1;
    if (o.kind != SGT_OPT_FLAG && !value && i + 1 < argc) value = argv[i + took++];
    if (set_value(&o, value, &err) < 0) sgt_usage(p, "%s", err.text);
    return took;
}

/* Make sure that file descriptors 0, 1 and 2 are in use. If one were closed, the next file opened
 * would get its number, and would be read as standard input or overwritten by the progress bar.
 * Instead, open /dev/null there in the wrong direction, so that its use fails as if it were
 * closed. */
static void hold_standard_files(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            exit(SGT_EXIT_FAILED);
}

int sgt_options_parse(const sgt_program *p, int argc, char **argv)
{
    int operands = 0, only_operands = 0;
    hold_standard_files();
    sgt_end_without_memory(p->name);
    refuse_gone(p, argc, argv);
    char **kept = malloc(sizeof *kept * (size_t)(argc + 1));
    if (!kept) sgt_no_memory();
    for (int i = 1; i < argc;) {
        if (!only_operands && !strcmp(argv[i], "--")) only_operands = 1, i++;
        else if (only_operands || argv[i][0] != '-' || !argv[i][1]) kept[operands++] = argv[i++];
        else i += apply_option(p, argc, argv, i);
    }
    int first = argc - operands;
    memcpy(argv + first, kept, sizeof *kept * (size_t)operands);
    free(kept);
    return first;
}

int sgt_run_command(const sgt_program *p, int argc, char **argv)
{
    char hint[SGT_HINT], names[512] = "";
    size_t at = 0;
    refuse_gone(p, argc, argv);
    for (const sgt_command *const *c = p->commands; *c && argc > 1; c++)
        if (!strcmp(argv[1], (*c)->name)) return (*c)->run(argc - 1, argv + 1);
    int first = sgt_options_parse(p, argc, argv);
    for (const sgt_command *const *c = p->commands; *c && at < sizeof names; c++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", (*c)->name);
    if (first == argc) sgt_usage(p, "expected a subcommand (%s)", names);
    sgt_usage(p, "%s: no such subcommand (%s)%s", argv[first], names,
              sgt_suggest(argv[first], strlen(argv[first]), names, "", hint));
}

int sgt_split_list(const char *list, char **pieces, int max)
{
    int n = 0;
    for (const char *p = list;; p++) {
        size_t len = strcspn(p, ",");
        if (!len || n == max || !(pieces[n] = strndup(p, len))) {
            while (n) free(pieces[--n]);
            return -1;
        }
        n++;
        p += len;
        if (!*p) return n;
    }
}
