/* options.c: parses a program's command line according to its table of options, prints --help,
 * suggests corrections for unknown words, and prints the completions that a shell asks for. */
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

/* options that all programs have, which answer_question handles */
static const sgt_option others[] = {{.name = "Others"},
                                    {"help", 'h', SGT_OPT_FLAG, NULL, .help = "print this help"},
                                    {"version", 0, SGT_OPT_FLAG, NULL, .help = "print the version"},
                                    {0}};

/* Return a copy of *o with inherited members filled in. If o->as is not NULL, it is an option of
 * train/config.c, from which the members that are empty in *o are copied. */
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
    if (i + 1 >= sizeof others / sizeof *others) return 0;
    *out = others[i];
    return 1;
}

/* ---- numbers ---- */

/* Return the factor that the suffix s of a number stands for: a power of 1000 for k, M, G and T, a
 * power of 1024 for Ki, Mi, Gi and Ti, and 1 for an empty suffix. If `bytes` is 1, B is accepted at
 * the end of a suffix. Return 0 if s is not a valid suffix. */
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

/* Set *out to v * factor / 10^places. For 1.25k, for example, v is 125 (the digits), `factor` is
 * 1000 (for the suffix), and `places` is 2 (the number of digits after the decimal point). Return
 * 0, or -1 if the result is not an integer or does not fit into 64 bits. */
static int whole_number(uint64_t v, uint64_t factor, int places, uint64_t *out)
{
    __extension__ unsigned __int128 x = (unsigned __int128)v * factor;
    for (; places > 0; places--, x /= 10)
        if (x % 10) return -1;
    for (; places < 0 && x <= UINT64_MAX; places++) x *= 10;
    *out = (uint64_t)x;
    return x <= UINT64_MAX ? 0 : -1;
}

/* Parse a number: digits with an optional decimal point, an optional exponent and an optional
 * suffix. Set *out to the number and return 0, or return -1 if s has a different form or the number
 * is not an integer that fits into 64 bits. bytes: 1 if the suffix can end in B, otherwise 0. */
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

/* Parse a number that is followed by the string `unit`. Set *out to the number and return 0, or
 * return -1 if s has a different form. Unlike strtod, accept no leading white space, no hexadecimal
 * number, no "inf" and no "nan". */
static int parse_real(const char *s, const char *unit, double *out)
{
    char *end;
    const char *after = s + strspn(s, "+-.0123456789eE");
    double x = strtod(s, &end);
    if (end == s || end != after || strcmp(end, unit) != 0 || !isfinite(x)) return -1;
    *out = x;
    return 0;
}

int sgt_parse_real(const char *s, double *out) { return parse_real(s, "", out); }

static int parse_percent(const char *s, double *out)
{
    if (parse_real(strcmp(s, "none") ? s : "0%", "%", out) < 0) return -1;
    *out /= 100;
    return *out < 0 || *out > 1 ? -1 : 0;
}

/* ---- suggestions ---- */

/* Suggestions for names that other programs use. In each row, the first string is the suggestion:
 * an option, operand or word of sgt's programs. The second string lists names, separated by spaces,
 * that other programs use for the same thing. A program uses only rows with a suggestion whose
 * first word it knows. For the names in the row with the suggestion "", sgt has nothing similar, so
 * nothing is suggested, not even an option with a similar name. */
static const char *const other_names[][2] = {
    {"", "log-every log-interval log-freq logging-steps logdir model-max-length sample-every "
         "save-checkpoint gpu cuda"},
    {"data", "data-dir data-path train-data train-file input"},
    {"data DIR, which holds the validation shards", "validation input-val val-file val-path"},
    {"run", "out-dir output-dir output out save save-dir checkpoint-dir checkpoint-folder"},
    {"resume", "resume-from continue"},
    {"init", "load ckpt checkpoint pretrained"},
    {"steps", "max-iters iters iterations"},
    {"eval-every", "evaluate-every eval-interval eval-iters eval-steps eval-freq val-loss-every"},
    {"save-every", "save-interval save-steps save-freq checkpoint-every checkpoint-interval"},
    {"keep", "save-total-limit"},
    {"recompute block", "gradient-checkpointing activation-checkpoint"},
    {"model LxCxH",
     "n-layer n-head n-embd num-attention num-heads layers heads hidden-size d-model"},
    {"seq-len", "block-size context-length max-length ctx n-ctx sequence max-position-embeddings"},
    {"batch-size", "bs"},
    {"grad-accum", "gradient-accumulation"},
    {"lr", "learning-rate optimizer-lr"},
    {"min-lr", "min-learning-rate lr-min"},
    {"schedule", "decay-lr lr-decay"},
    {"betas", "adam-beta"},
    {"weight-decay", "wd"},
    {"grad-clip", "max-grad-norm clip-grad"},
    {"device cuda", "gpu gpus cuda"},
    {"device cpu", "cpu no-cuda"},
    {"precision", "dtype"},
    {"precision fp16", "fp16 float16 half"},
    {"precision bf16", "bf16 bfloat16"},
    {"gpt2", "gpt2-small"},
    {"verify", "checksum checksums check validate"},
    {"fp32", "float32"},
    {"bf16", "bfloat16"},
    {"fp16", "float16 half"},
    {"cuda", "gpu"},
    {"ranks", "world-size"},
    {"threads", "workers jobs j num-proc nproc processes cpus"},
    {"vocab", "tokenizer encoding model merges"},
    {"train-vocab", "vocab-size"},
    {"field", "column text-key json-keys key"},
    {"split", "val-fraction test-size val valid"},
    {"shuffle", "seed"},
    {"format jsonl", "jsonl"},
    {"shard-tokens", "shard-size tokens-per-shard"},
    {"skip-bad", "skip-errors ignore-errors skip-invalid"},
    {"force", "overwrite overwrite-output-dir"},
    {"tokens", "length max-length n-predict"},
    {"temperature 0", "greedy"},
    {"prompt", "start"},
    {"INPUT... without an option", "input i"},
    {"OUT/ as the last word", "output output-prefix output-dir out-dir out o"},
    {"RUN/ without an option", "model checkpoint ckpt load init-from out-dir"}};

/* LONGEST_WORD: maximum length in bytes of a word for which a suggestion is made. FARTHEST:
 * distance between words that are not similar; all other distances are smaller. MOST_CANDIDATES:
 * maximum number of words in a suggestion; if more words are equally near, nothing is suggested. */
enum { LONGEST_WORD = 48, FARTHEST = 2 * LONGEST_WORD, MOST_CANDIDATES = 4 };

/* The known words that are nearest to an unknown word. They all have the same distance from it,
 * `far`. If this is BEGINS or BEGINS_PART, all known words at this distance are kept, because the
 * unknown word may be an abbreviation of any of them. At other distances, only the first one is
 * kept. */
typedef struct candidates {
    char text[256]; /* the known words, with " or " between them */
    size_t count, far;
} candidates;
/* Distances between an unknown word and a known word, in ascending order. A part of a word is the
 * text after one of its dashes.
 *
 *     SAME             the words are equal
 *     BEGINS           the known word begins with the unknown word
 *     BEGINS_PART      a part of the known word begins with the unknown word
 *     BEGINS_PART + n  the words differ by n typing errors
 *     FARTHEST - n     the unknown word, or a part of it, begins with the known word, which has
 *                      n letters
 *     FARTHEST         the words are not similar */
enum { SAME, BEGINS, BEGINS_PART };

/* Return 1 if the user types this word as it is, such as auto, or 0 if it is a placeholder, such as
 * FILE. */
static int stands_for_itself(const char *word)
{
    return islower((unsigned char)*word) || isdigit((unsigned char)*word);
}

static void add_candidate(candidates *c, size_t far, const char *before, const char *word,
                          size_t length)
{
    const int one = far == SAME || far > BEGINS_PART;
    if (far > c->far || (far == c->far && one)) return;
    if (far < c->far) *c = (candidates){.far = far};
    size_t at = strlen(c->text);
    if (c->count++ < MOST_CANDIDATES)
        snprintf(c->text + at, sizeof c->text - at, "%s%s%.*s", at ? " or " : "",
                 stands_for_itself(word) ? before : "", (int)length, word);
}

static int folded(char c) { return c == '_' || c == '.' ? '-' : tolower((unsigned char)c); }
static size_t differ(char a, char b) { return folded(a) != folded(b); }

/* Return the number of typing errors by which the n bytes at a differ from the m bytes at b. This
 * is the smallest number of letters that must be inserted, deleted, replaced, or swapped with the
 * next letter to get from one word to the other. */
static size_t count_slips(const char *a, size_t n, const char *b, size_t m)
{
    /* slips[i][j] is the number of errors by which the first i letters of a differ from the first j
     * letters of b */
    size_t slips[LONGEST_WORD + 1][LONGEST_WORD + 1];
    size_t best = 0;
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            best = i && j ? slips[i - 1][j - 1] + differ(a[i - 1], b[j - 1]) : i + j;
            if (i && slips[i - 1][j] + 1 < best) best = slips[i - 1][j] + 1;
            if (j && slips[i][j - 1] + 1 < best) best = slips[i][j - 1] + 1;
            int swapped =
                i > 1 && j > 1 && !differ(a[i - 1], b[j - 2]) && !differ(a[i - 2], b[j - 1]);
            if (swapped && slips[i - 2][j - 2] + 1 < best) best = slips[i - 2][j - 2] + 1;
            slips[i][j] = best;
        }
    return best;
}

/* Find out whether a part of a word (the m bytes at `in`) begins with another word (the n bytes at
 * `word`). The parts of a word are separated by dashes. Return BEGINS if the first part does,
 * BEGINS_PART if a later part does, or 0 if no part does. */
static size_t begins_part(const char *word, size_t n, const char *in, size_t m)
{
    for (size_t at = 0; at + n <= m; at++)
        if ((!at || !differ(in[at - 1], '-')) && !count_slips(word, n, in + at, n))
            return at ? BEGINS_PART : BEGINS;
    return 0;
}

/* Return the distance between an unknown word (the n bytes at `word`) and a known name (the m bytes
 * at `name`):
 * - SAME if they are equal
 * - BEGINS_PART plus the number of typing errors by which they differ, if it is at most `most`
 * - FARTHEST minus the length of the name, if the word or one of its dash-separated parts begins
 *   with the name, so that a longer name is nearer than a shorter one
 * - FARTHEST in all other cases */
static size_t distance(const char *word, size_t n, const char *name, size_t m, size_t most)
{
    size_t slips = count_slips(word, n, name, m);
    /* With as many typing errors as the name has letters, the word and the name may have no letter
     * in common, so they do not count as similar. */
    if (slips <= most && slips < m) return slips ? BEGINS_PART + slips : SAME;
    return m > 1 && begins_part(name, m, word, n) ? FARTHEST - m : FARTHEST;
}

/* Compare an unknown word (the n bytes at `word`) with the names that other programs use for a
 * known word (the `length` bytes at `known`), and add the suggestions to *nearest. One typing error
 * is allowed in names with more than three letters. In shorter names, none is allowed, because cpu
 * would match gpu. Two errors are never allowed, because num-threads would match num-heads. */
static void try_other_names(candidates *nearest, const char *word, size_t n, const char *before,
                            const char *known, size_t length)
{
    for (size_t i = 0, m; i < sizeof other_names / sizeof *other_names; i++) {
        const char *text = other_names[i][0], *name = other_names[i][1];
        if (strcspn(text, " ") != length || memcmp(text, known, length) != 0) continue;
        for (; *name; name += m + (name[m] != 0)) {
            m = strcspn(name, " ");
            add_candidate(nearest, distance(word, n, name, m, m > 3), before, text, strlen(text));
        }
    }
}

const char *sgt_suggest(const char *word, size_t n, const char *known, const char *before,
                        int exactly, char hint[SGT_HINT])
{
    candidates c = {.far = FARTHEST};
    size_t length, most = n < 5 ? 1 : n < 8 ? 2 : 3;
    for (const char *k = known; *k && n <= LONGEST_WORD; k += length + (k[length] != 0)) {
        length = strcspn(k, "|, ");
        if (!length || length > LONGEST_WORD) continue;
        if (stands_for_itself(k)) {
            size_t far = distance(word, n, k, length, most);
            size_t where = n > 1 && far ? begins_part(word, n, k, length) : 0;
            add_candidate(&c, where ? where : far, before, k, length);
        }
        try_other_names(&c, word, n, before, k, length);
    }
    if (n <= LONGEST_WORD) try_other_names(&c, word, n, before, "", 0);
    const char *value = word[n] == '=' && !strchr(c.text, ' ') ? word + n : "";
    hint[0] = '\0';
    if (*c.text && c.count <= MOST_CANDIDATES && !(exactly && c.far >= (size_t)exactly))
        snprintf(hint, SGT_HINT, "; did you mean %s%s?", c.text, value);
    return hint;
}

/* ---- one option ---- */

/* Return 1 if the option also accepts "auto" instead of a number, otherwise 0. */
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

static int set_word(const sgt_option *o, const char *v, sgt_error *err)
{
    char value[SGT_OPTION_VALUE];
    int i = sgt_option_word(o, v, strlen(v));
    if (i >= 0 && o->kind == SGT_OPT_WORD) *(int *)o->to = i;
    else if (i >= 0) *(const char **)o->to = v;
    if (i >= 0) return SGT_OK;
    return sgt_fail(err, SGT_EUSAGE, "--%s %s: must be one of %s", o->name, v,
                    sgt_option_value(o, value));
}

/* Parse the value that was given for an option, and store the result in the option's variable,
 * o->to. value: NULL if the option was given without a value. Return 0 or SGT_EUSAGE. */
static int set_option(const sgt_option *o, const char *value, sgt_error *err)
{
    char buf[SGT_OPTION_VALUE];
    sgt_option_list *list = o->to;
    int rc = SGT_OK, flag = o->kind == SGT_OPT_FLAG;
    if (!flag && (!value || (o->kind == SGT_OPT_TEXT && !*value)))
        return sgt_fail(err, SGT_EUSAGE, "--%s: needs a value (%s)", o->name,
                        sgt_option_value(o, buf));
    if (flag && value) return sgt_fail(err, SGT_EUSAGE, "--%s: takes no value", o->name);
    if (flag) *(int *)o->to = 1;
    else if (o->kind == SGT_OPT_TEXT) *(const char **)o->to = value;
    else if (o->kind == SGT_OPT_CHOICE || o->kind == SGT_OPT_WORD) rc = set_word(o, value, err);
    else if (o->kind != SGT_OPT_LIST) rc = set_number(o, value, err);
    else if (list->count < SGT_OPTION_LIST) list->items[list->count++] = value;
    else
        rc = sgt_fail(err, SGT_EUSAGE, "--%s: given more than %d times, which is the maximum",
                      o->name, SGT_OPTION_LIST);
    if (rc == SGT_OK && o->given) *o->given = 1;
    return rc;
}

/* Store the default of each option in the program's own table in the option's variable. A default
 * that is neither a valid number nor one of the option's words is not stored, because it is only a
 * description for --help. */
static void set_defaults(const sgt_program *p)
{
    for (const sgt_option *row = p->options; row->name; row++) {
        sgt_option o = filled_in(row);
        o.given = NULL;
        if (o.def && o.kind != SGT_OPT_TEXT && o.kind != SGT_OPT_LIST) set_option(&o, o.def, NULL);
    }
}

/* Find the option with this letter or, if `letter` is 0, with this name (the n bytes at `name`).
 * Set *o to the option and return 1, or return 0 if there is no such option. */
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

/* Return the part of the usage text that describes the operands, which is the text after
 * "[OPTION]... ", or "" if the program takes no operands. */
static const char *operands_of(const sgt_program *p)
{
    const char *at = strstr(p->usage, "[OPTION]... ");
    at = at ? at + sizeof "[OPTION]... " - 1 : "";
    return *at == '-' ? "" : at;
}

/* ---- messages and results ---- */

/* number of seconds that a rank other than 0 waits before it prints an error; see
 * sgt_report_failure */
#define LAUNCHER_SECONDS 3

static uint32_t rank_of(const sgt_program *p) { return p->rank ? p->rank() : 0; }

_Noreturn void sgt_usage(const sgt_program *p, const char *fmt, ...)
{
    char raw[2048];
    sgt_error err = {.code = SGT_EUSAGE};
    va_list args;
    va_start(args, fmt);
    vsnprintf(raw, sizeof raw, fmt, args);
    va_end(args);
    sgt_printable(err.text, sizeof err.text, raw);
    exit(sgt_end_program(p, err.code, &err));
}

int sgt_exit_code(int error)
{
    if (error == SGT_EUSAGE) return SGT_EXIT_USAGE;
    return error == SGT_ESTOPPED ? SGT_EXIT_INTERRUPTED : SGT_EXIT_FAILED;
}

/* A rank (process) other than 0 waits before it prints its error. If rank 0 has failed too, a
 * launcher such as mpirun kills the other ranks during this wait, so that only the error of rank 0
 * is printed. */
int sgt_report_failure(const sgt_program *p, const sgt_error *err)
{
    char rank[32] = "";
    if (rank_of(p)) {
        sgt_end_at_signal(1);
        sleep(LAUNCHER_SECONDS);
        snprintf(rank, sizeof rank, "rank %u: ", rank_of(p));
    }
    sgt_put_line(stderr, "%s: %s%s", p->name, rank, err->text);
    return sgt_exit_code(err->code);
}

/* If the message in *err has the form "--NAME VALUE: ...", and VALUE is none of the words that the
 * option accepts, append a suggestion to the message. Do nothing if VALUE contains a comma, because
 * it is a list in that case. */
static void add_hint(const sgt_program *p, sgt_error *err)
{
    char hint[SGT_HINT], buf[SGT_OPTION_VALUE];
    const char *name = strncmp(err->text, "--", 2) ? "" : err->text + 2;
    const size_t n = strcspn(name, " :"), at = strlen(err->text);
    const char *value = name[n] ? name + n + 1 : name, *end = strstr(value, ": ");
    const size_t length = end ? (size_t)(end - value) : 0;
    sgt_option o;
    if (!length || name[n] != ' ' || !find_option(p, name, n, 0, &o)) return;
    if (o.words) o.value = o.words;
    if (o.choices) o.kind = SGT_OPT_WORD, o.value = NULL;
    const char *words = sgt_option_value(&o, buf);
    if (words && !memchr(value, ',', length) && sgt_option_word(&o, value, length) < 0)
        snprintf(err->text + at, sizeof err->text - at, "%s",
                 sgt_suggest(value, length, words, "", 0, hint));
}

int sgt_end_program(const sgt_program *p, int rc, sgt_error *err)
{
    if (rc >= 0) rc = sgt_flush_results(err);
    if (rc == SGT_EUSAGE) add_hint(p, err);
    int code = rc < 0 ? sgt_report_failure(p, err) : SGT_EXIT_OK;
    if (rc == SGT_EUSAGE) fprintf(stderr, "try '%s --help'\n", p->name);
    return code;
}

void sgt_take_cpu(const sgt_program *p, const char *level)
{
    sgt_error err;
    if (sgt_cpu_limit(level, &err) < 0) sgt_usage(p, "--cpu %s", err.text);
}

/* Exit after the text for --help, --version or --completion has been printed. The exit code is
 * SGT_EXIT_OK, or SGT_EXIT_FAILED if writing the text failed. */
static _Noreturn void end_after_output(void)
{
    exit(fflush(stdout) || ferror(stdout) ? SGT_EXIT_FAILED : SGT_EXIT_OK);
}

/* ---- --help ---- */

/* Widths in characters. COLUMNS: maximum width of the lines of --help. NARROW: width of a terminal
 * below which the help of each option begins on a new line. LEFT: width of the left column, which
 * shows the name and value of each option. */
enum { COLUMNS = 100, NARROW = 72, LEFT = 28 };

/* Print the help text of an option. If the option accepts any text but also has a list of words
 * (o->choices), print these words after the help text. */
static void print_text(FILE *to, const sgt_option *o)
{
    fputs(o->help ? o->help : "-", to);
    for (int i = 0; o->kind == SGT_OPT_TEXT && o->choices && o->choices[i]; i++)
        fprintf(to, "%s %s", i ? "," : "", o->choices[i]);
}

static void print_option(FILE *to, const sgt_option *o, int narrow)
{
    char left[SGT_OPTION_VALUE + 60], buf[SGT_OPTION_VALUE];
    const char *value = sgt_option_value(o, buf);
    if (o->kind == SGT_OPT_HEADING) {
        fprintf(to, "\n%s:\n", o->name);
        return;
    }
    int n = o->letter ? snprintf(left, sizeof left, "-%c, --%s", o->letter, o->name)
                      : snprintf(left, sizeof left, "%s--%s", narrow ? "" : "    ", o->name);
    if (value) n += snprintf(left + n, sizeof left - (size_t)n, " %s", value);
    if (n < LEFT - 1 && !narrow) fprintf(to, "  %-*s ", LEFT, left);
    else fprintf(to, "  %s\n%*s", left, narrow ? 6 : LEFT + 3, "");
    print_text(to, o);
    if (o->def) fprintf(to, " (default %s)", o->def);
    fputc('\n', to);
}

static void print_help(const sgt_program *p)
{
    int terminal = sgt_columns(STDOUT_FILENO), narrow = terminal && terminal < NARROW;
    sgt_option own;
    sgt_wrapped w;
    FILE *to = sgt_wrapped_open(&w, terminal && terminal < COLUMNS ? terminal : COLUMNS);
    fprintf(to, "usage: %s\n%s\n", p->usage, p->about);
    if (p->commands)
        fprintf(to, "\nSubcommands ('%s NAME --help' lists the options of NAME):\n", p->name);
    for (const sgt_command *const *c = p->commands; c && *c; c++)
        fprintf(to, "  %-*s %s\n", narrow ? 0 : LEFT, (*c)->name, (*c)->what);
    for (size_t i = 0; sgt_option_at(p, i, &own); i++) print_option(to, &own, narrow);
    if (p->examples) fprintf(to, "\nExamples:\n%s\n", p->examples);
    sgt_wrapped_close(&w);
}

/* ---- completion in shells ---- */

/* Completion scripts for shells. Each script runs `PROGRAM --completion words -- WORD...` with the
 * words up to the cursor. The program prints one completion per line, followed by a tab and a help
 * text if there is one (offer_words). A line can also be an instruction to the script: :f (offer
 * files), :d (offer folders), :c (offer commands), or :n (append no space after the completion,
 * because the user may continue a list). */
static const char bash_script[] =
    "_sgt()\n"
    "{\n"
    "    local line cur=${COMP_WORDS[COMP_CWORD]#=} program=${COMP_WORDS[0]/#\\~/$HOME}\n"
    "    command -v -- \"$program\" > /dev/null || program=${program##*/}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "        :n) compopt -o nospace 2> /dev/null ;;\n"
    "        :*)\n"
    "            compopt -o filenames 2> /dev/null\n"
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -${line#:} -- \"$cur\")\n"
    "            ;;\n"
    "        *) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
    "        esac\n"
    "    done < <(\"$program\" --completion words -- \\\n"
    "        \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2> /dev/null)\n"
    "}\n";
static const char zsh_script[] =
    "local line program=${~words[1]}\n"
    "local -a plain described blank\n"
    "whence -- $program > /dev/null || program=${program:t}\n"
    "compset -P '--*='\n"
    "for line in ${(f)\"$($program --completion words -- \"${(@Q)words[2,CURRENT]}\" \\\n"
    "    2> /dev/null)\"}; do\n"
    "    case $line in\n"
    "    :n) blank=(-S '') ;;\n"
    "    :f) _files ;;\n"
    "    :d) _files -/ ;;\n"
    "    :c) _command_names -e ;;\n"
    "    *$'\\t'*) described+=(\"${${line//:/\\\\:}/$'\\t'/:}\") ;;\n"
    "    *) plain+=($line) ;;\n"
    "    esac\n"
    "done\n"
    "(( ! $#described )) || _describe word described\n"
    "(( ! $#plain )) || compadd -J -default- \"${blank[@]}\" -a plain\n";
static const char fish_script[] =
    "function __sgt\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    set -l head (string match -r -- '^--[^=]*=' $words[-1])\n"
    "    set -l value (string replace -r -- '^--[^=]*=' '' $words[-1])\n"
    "    for line in ($words[1] --completion words -- $words[2..] 2> /dev/null)\n"
    "        switch $line\n"
    "            case :n\n"
    "            case :f\n"
    "                __fish_complete_path $value\n"
    "            case :d\n"
    "                __fish_complete_directories $value\n"
    "            case :c\n"
    "                __fish_complete_command\n"
    "            case '*'\n"
    "                echo $line\n"
    "        end\n"
    "    end | while read -l line\n"
    "        echo \"$head$line\"\n"
    "    end\n"
    "end\n";

/* Print the n bytes at `word` as a completion if they begin with the text at the cursor. If the
 * text at the cursor is a comma-separated list, its first `head` bytes are the items up to the last
 * comma. In that case, compare `word` only with the text after the last comma, and print the first
 * `head` bytes before `word`. */
static void offer(const char *cursor, size_t head, const char *word, size_t n, const char *help)
{
    size_t begun = strlen(cursor) - head, said = strlen(help);
    /* remove a colon at the end of the help text, because it introduces a list of words that only
     * --help prints */
    if (said && help[said - 1] == ':') said--;
    if (n >= begun && !memcmp(word, cursor + head, begun))
        printf("%.*s%.*s%s%.*s\n", (int)head, cursor, (int)n, word, said ? "\t" : "", (int)said,
               help);
}

static void offer_options(const sgt_program *p, const char *cursor)
{
    sgt_option o;
    if (cursor[1] && cursor[1] != '-') return;
    for (size_t i = 0; sgt_option_at(p, i, &o); i++) {
        char name[64];
        int n = snprintf(name, sizeof name, "--%s", o.name);
        if (o.kind != SGT_OPT_HEADING) offer(cursor, 0, name, (size_t)n, o.help);
    }
}

/* Print completions for the value of an option. For a value that is described as "a|b|FILE", for
 * example, print the words a and b, and tell the shell to offer file names. */
static void offer_values(const sgt_option *o, const char *cursor)
{
    static const char *const places[][2] = {{"FILE", ":f"},   {"SHARD", ":f"}, {"DIR", ":d"},
                                            {"FOLDER", ":d"}, {"OUT/", ":d"},  {"PYTHON", ":c"}};
    char buf[SGT_OPTION_VALUE];
    const char *value = sgt_option_value(o, buf), *comma = strrchr(cursor, ',');
    int is_list = o->words || (o->choices && o->kind != SGT_OPT_WORD);
    size_t head = is_list && comma ? (size_t)(comma + 1 - cursor) : 0, n, place = 0;
    for (int i = 0; o->choices && o->choices[i]; i++)
        offer(cursor, head, o->choices[i], strlen(o->choices[i]), "");
    for (const char *w = o->choices ? "" : o->words ? o->words : value; *w; w += n + (w[n] != 0)) {
        n = strcspn(w, "| ");
        if (stands_for_itself(w)) offer(cursor, head, w, n, "");
    }
    if (is_list) puts(":n");
    while (place < sizeof places / sizeof *places && !strstr(value, places[place][0])) place++;
    if (place < sizeof places / sizeof *places) puts(places[place][1]);
}

static const sgt_command *find_command(const sgt_program *p, const char *word)
{
    const sgt_command *const *c = p->commands;
    while (c && *c && strcmp(word, (*c)->name) != 0) c++;
    return c ? *c : NULL;
}

/* Print completions for the text at the cursor, which is the last of the `count` strings in
 * words[]. (bash passes --name=VALUE as three strings, other shells pass it as one.) */
static void offer_words(const sgt_program *p, int count, char **words)
{
    const char *cursor = count ? words[count - 1] : "", *equals = strchr(cursor, '=');
    /* index of the word before the word at the cursor; negative if there is no such word */
    int before = count - 2;
    const char *name = before >= 0 ? words[before] : "";
    if (!strcmp(cursor, "=")) cursor = "";
    else if (!strcmp(name, "=") && before > 0) name = words[before - 1];
    else if (*cursor == '-' && equals) {
        name = cursor;
        cursor = equals + 1;
    }
    const sgt_command *command = NULL;
    for (int i = 0; i <= before && !command; i++) command = find_command(p, words[i]);
    if (command) p = command->program;
    sgt_option o;
    int known = *name == '-' && name[1] &&
                (name[1] == '-' ? find_option(p, name + 2, strcspn(name + 2, "="), 0, &o)
                                : !name[2] && find_option(p, NULL, 0, name[1], &o));
    if (known && o.kind != SGT_OPT_FLAG) offer_values(&o, cursor);
    else if (*cursor == '-') offer_options(p, cursor);
    else if (*operands_of(p)) puts(":f");
    for (const sgt_command *const *c = p->commands; c && *c; c++)
        offer(cursor, 0, (*c)->name, strlen((*c)->name), (*c)->what);
}

/* Print the table for `--completion table`: one line for each option and heading of p, followed by
 * the lines for its subcommands. command: the subcommand's name if p describes a subcommand, or "-"
 * if p describes a program. */
static void print_table(const sgt_program *p, const char *command)
{
    static const char *const kinds[] = {"heading", "flag", "count",  "size",   "real",
                                        "percent", "text", "choice", "choice", "list"};
    sgt_option o;
    for (size_t i = 0; sgt_option_at(p, i, &o) && o.name != others->name; i++) {
        char buf[SGT_OPTION_VALUE];
        const char *value = sgt_option_value(&o, buf);
        printf("%s\t%s\t%c\t%s\t%s\t%s\t", command, o.name, o.letter ? o.letter : '-',
               value ? value : "-", o.def ? o.def : "-", kinds[o.kind]);
        print_text(stdout, &o);
        putchar('\n');
    }
    for (const sgt_command *const *c = p->commands; c && *c; c++)
        print_table((*c)->program, (*c)->name);
}

/* Implement --completion (see sgt_options_parse): print the completion script for a shell, the
 * completions that such a script asks for, or the table of options. args: the `count` arguments
 * after --completion. */
static void print_completion(const sgt_program *p, int count, char **args)
{
    const char *form = count ? args[0] : "";
    if (!strcmp(form, "words") && count > 1) offer_words(p, count - 2, args + 2);
    else if (!strcmp(form, "table")) print_table(p, "-");
    else if (!strcmp(form, "bash")) printf("%scomplete -F _sgt %s\n", bash_script, p->name);
    else if (!strcmp(form, "zsh")) printf("#compdef %s\n%s", p->name, zsh_script);
    else if (!strcmp(form, "fish"))
        printf("%scomplete -c %s -f -a '(__sgt)'\n", fish_script, p->name);
    else sgt_usage(p, "--completion: expected bash, zsh or fish");
}

/* ---- the command line ---- */

/* Suggest an option or an operand of p instead of an unknown name (the n bytes at `name`), as
 * sgt_suggest does. If =VALUE follows the name, it is part of the suggestion, unless the suggested
 * option is a flag. */
static const char *suggest_option(const sgt_program *p, const char *name, size_t n, int exactly,
                                  char hint[SGT_HINT])
{
    char known[4096];
    const char *operands = operands_of(p);
    size_t at =
        (size_t)snprintf(known, sizeof known, "%.*s", (int)strcspn(operands, "\n"), operands);
    sgt_option o;
    for (size_t i = 0; sgt_option_at(p, i, &o) && at < sizeof known; i++)
        if (o.kind != SGT_OPT_HEADING)
            at += (size_t)snprintf(known + at, sizeof known - at, " %s", o.name);
    sgt_suggest(name, n, known, "--", exactly, hint);
    /* Correct the suggestion for the kind of option. If the option is a flag, remove the value. If
     * the suggestion contains a word for the option, as "device cuda" does, but the option of this
     * program does not accept this word, suggest nothing. */
    char *said = hint + (*hint ? strlen("; did you mean --") : 0),
         *word = said + strcspn(said, "= ");
    if (!*word || !find_option(p, said, (size_t)(word - said), 0, &o)) return hint;
    if (o.kind == SGT_OPT_FLAG) word[0] = '?', word[1] = '\0';
    if (o.kind == SGT_OPT_CHOICE && *word == ' ' &&
        sgt_option_word(&o, word + 1, strcspn(word + 1, "?")) < 0)
        *hint = '\0';
    return hint;
}

/* Exit with a usage error because an option is unknown. The user typed `dashes` ("-" or "--") and
 * then the name of the option, the n bytes at `name`. */
static _Noreturn void refuse_unknown(const sgt_program *p, const char *dashes, const char *name,
                                     size_t n)
{
    char hint[SGT_HINT];
    sgt_option o;
    if (n == 1 && dashes[1] && find_option(p, NULL, 0, *name, &o))
        snprintf(hint, sizeof hint, "; did you mean -%c?", *name);
    else suggest_option(p, name, n, 0, hint);
    sgt_usage(p, "%s%.*s: no such option%s", dashes, (int)n, name, hint);
}

/* Exit with a usage error in any of these cases:
 * - An operand has the form NAME=VALUE, NAME is similar to an option's name, and there is no file
 *   with the operand's name.
 * - There are operands, but the program takes none. (The user may have forgotten the dashes or
 *   --data.)
 * - There are no operands, but the usage has a single form, which requires some. */
static void check_operands(const sgt_program *p, char **operands)
{
    const char *wanted = operands_of(p), *word = *operands;
    /* How similar NAME must be to the name of an option if an operand NAME=VALUE is to be refused
     * (as for sgt_suggest). If the operand can be the name of a new folder, the names must be
     * equal, because an option's name can begin with the name of a folder by chance. */
    int exactly = !*wanted ? 0 : p->makes_folder ? 1 : 2;
    sgt_option o;
    if (!word && *wanted && !strchr(wanted, '\n'))
        sgt_usage(p, "expected %s (such as: %.*s)", wanted, (int)strcspn(p->examples + 2, "\n"),
                  p->examples + 2);
    for (; (word = *operands) && !p->commands; operands++) {
        char hint[SGT_HINT] = "";
        size_t n = strcspn(word, "=");
        if (word[n]) suggest_option(p, word, n, exactly, hint);
        if (*wanted && (!*hint || access(word, F_OK) == 0)) continue;
        if (!*hint && find_option(p, "data", strlen("data"), 0, &o))
            snprintf(hint, sizeof hint, "; did you mean --data %s?", word);
        sgt_usage(p, "%s: %s%s", word, *wanted ? "no such file" : "only options are accepted",
                  hint);
    }
}

/* If argv[0] is --help, --version or --completion, print the requested text and exit. (A rank other
 * than 0 only exits.) */
static void answer_question(const sgt_program *p, int argc, char **argv)
{
    const char *arg = *argv;
    const int help = !strcmp(arg, "--help") || !strcmp(arg, "-h");
    const int version = !strcmp(arg, "--version");
    if (!help && !version && strcmp(arg, "--completion") != 0) return;
    if (rank_of(p)) end_after_output();
    if (help) print_help(p);
    else if (version) printf("%s %s\n", p->name, SGT_VERSION);
    else print_completion(p, argc - 1, argv + 1);
    end_after_output();
}

/* Set *o to the option with the letter arg[1]. If there is no such option, or if more characters
 * follow the letter, as in -xVALUE or -name, exit with a usage error that suggests the correct
 * form. */
static void find_letter(const sgt_program *p, const char *arg, sgt_option *o)
{
    char hint[SGT_HINT];
    int known = find_option(p, NULL, 0, arg[1], o), digits = isdigit((unsigned char)arg[2]) != 0;
    size_t n = digits && !known ? 1 : strcspn(arg + 1, "=");
    if (known && !arg[2]) return;
    if (known && (digits || (o->kind >= SGT_OPT_TEXT && !*suggest_option(p, arg + 1, n, 1, hint))))
        sgt_usage(p, "%s: no such option; did you mean -%c %s?", arg, arg[1], arg + 2);
    refuse_unknown(p, "-", arg + 1, n);
}

/* Parse the option in argv[i]. Return the number of arguments that it takes: 2 if its value is the
 * next argument, otherwise 1. */
static int apply_option(const sgt_program *p, int argc, char **argv, int i)
{
    const char *arg = argv[i], *value = NULL, *name = arg + 2;
    sgt_option o;
    sgt_error err;
    answer_question(p, argc - i, argv + i);
    if (arg[1] == '-') {
        size_t n = strcspn(name, "=");
        if (!find_option(p, name, n, 0, &o)) refuse_unknown(p, "--", name, n);
        if (name[n]) value = name + n + 1;
    } else {
        find_letter(p, arg, &o);
    }
    int took = 1;
    if (o.kind != SGT_OPT_FLAG && !value && i + 1 < argc) value = argv[i + took++];
    if (set_option(&o, value, &err) < 0) sgt_usage(p, "%s", err.text);
    return took;
}

/* Ensure that the file descriptors 0, 1 and 2 are open. Otherwise, a file that the program opens
 * could get descriptor 0 and be read as standard input, or get descriptor 2 and be overwritten by
 * the progress bar. If a descriptor is closed, open /dev/null as this descriptor, but in the wrong
 * mode (0 for writing, 1 and 2 for reading), so that using the descriptor still fails. */
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
    set_defaults(p);
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
    check_operands(p, argv + first);
    return first;
}

int sgt_run_command(const sgt_program *p, int argc, char **argv)
{
    char hint[SGT_HINT], names[512] = "";
    size_t at = 0;
    const sgt_command *named = argc > 1 ? find_command(p, argv[1]) : NULL;
    if (named) return named->run(named, argc - 1, argv + 1);
    int first = sgt_options_parse(p, argc, argv);
    for (const sgt_command *const *c = p->commands; *c && at < sizeof names; c++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", (*c)->name);
    if (first == argc) sgt_usage(p, "expected a subcommand (%s)", names);
    sgt_usage(p, "%s: no such subcommand (%s)%s", argv[first], names,
              sgt_suggest(argv[first], strlen(argv[first]), names, "", 0, hint));
}
