/* talk.c: formats numbers with units, wraps lines at the terminal's width, and prints messages,
 * JSON and text that can contain invalid UTF-8. */
#include "tools/cli/talk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/ids.h"
#include "tokenize/text/utf8.h"
#include "tools/cli/process.h"

/* ---- units ---- */

char *sgt_format_rate(char *buf, size_t n, double per_s, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T"};
    int u = 0;
    while (per_s >= 999.5 && u < 4) per_s /= 1000, u++;
    snprintf(buf, n,
             per_s < 9.995   ? "%.2f %s%s"
             : per_s < 99.95 ? "%.1f %s%s"
                             : "%.0f %s%s",
             per_s, prefixes[u], unit);
    return buf;
}

char *sgt_format_time(char *buf, size_t n, double seconds)
{
    if (!(seconds >= 0 && seconds < 1e9)) {
        snprintf(buf, n, "--:--");
        return buf;
    }
    unsigned long s = (unsigned long)(seconds + .5);
    if (s < 3600) snprintf(buf, n, "%02lu:%02lu", s / 60, s % 60);
    else snprintf(buf, n, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    return buf;
}

const char *sgt_format_things(char *buf, size_t n, uint64_t count, const char *singular,
                              const char *plural)
{
    char digits[32];
    snprintf(buf, n, "%s %s", sgt_format_count(digits, sizeof digits, count),
             count == 1 ? singular : plural);
    return buf;
}

/* ---- lines ---- */

int sgt_can_redraw(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && !(term && !strcmp(term, "dumb"));
}

void sgt_talk_line(const char *program, const char *line)
{
    if (sgt_can_redraw()) fputs("\r\033[K", stderr);
    sgt_put_line(stderr, "%s: %s", program, line);
}

static void print_notice(void *ctx, const char *line) { sgt_talk_line(ctx, line); }

sgt_notice sgt_talk_notice(const char *program, int quiet)
{
    return (sgt_notice){quiet ? NULL : print_notice, (void *)(uintptr_t)program};
}

#define LEAST 16 /* minimum width in columns of a terminal on which lines are wrapped */
/* number of columns by which a continuation line is indented more than the line it continues */
#define INDENT ((size_t)2)
/* maximum number of consecutive spaces between the words of a sentence; more spaces separate the
 * columns of a table */
#define GAP 2

int sgt_columns(int fd)
{
    struct winsize w;
    return isatty(fd) && ioctl(fd, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

/* Return the width in columns of the n bytes at s. Each UTF-8 character counts as one column. */
static size_t width(const char *s, size_t n)
{
    size_t columns = 0;
    for (size_t i = 0; i < n; i++) columns += ((unsigned char)s[i] & 0xc0) != 0x80;
    return columns;
}

static size_t append(char *out, size_t size, size_t at, const char *s, size_t n)
{
    for (size_t i = 0; i < n && at + 1 < size; i++) out[at++] = s[i];
    return at;
}

char *sgt_wrap(char *out, size_t size, const char *text, int columns)
{
    size_t at = 0, column = 0, indent = INDENT,
           most = columns >= LEAST ? (size_t)columns : SIZE_MAX;
    int begun = 0; /* 1: the line has at least one word */
    if (!size) return out;
    for (const char *p = text; *p;) {
        size_t blanks = strspn(p, " "), n = strcspn(p + blanks, " \n"), w = width(p + blanks, n);
        if (!column) indent = INDENT;
        size_t below = blanks > GAP ? column + blanks : column ? indent : blanks + INDENT;
        if (below < most / 2) indent = below;
        if (begun && n && column + blanks + w > most) {
            at = append(out, size, at, "\n", 1);
            for (column = 0; column < indent; column++) at = append(out, size, at, " ", 1);
        } else {
            at = append(out, size, at, p, blanks);
            column += blanks;
        }
        at = append(out, size, at, p + blanks, n);
        column += w;
        begun |= n > 0;
        p += blanks + n;
        if (*p == '\n') {
            at = append(out, size, at, p++, 1);
            column = 0;
            begun = 0;
        }
    }
    out[at] = '\0';
    return out;
}

void sgt_put_line(FILE *to, const char *fmt, ...)
{
    char line[4096], wrapped[2 * sizeof line];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    fprintf(to, "%s\n", sgt_wrap(wrapped, sizeof wrapped, line, sgt_columns(fileno(to))));
}

FILE *sgt_wrapped_open(sgt_wrapped *w, int columns)
{
    w->columns = columns;
    w->to = open_memstream(&w->text, &w->n);
    if (!w->to) sgt_no_memory();
    return w->to;
}

void sgt_wrapped_close(sgt_wrapped *w)
{
    if (fclose(w->to) != 0) sgt_no_memory();
    /* Allocate 4 bytes for each byte of text, which is enough even if every space becomes a line
     * break, which consists of a newline and INDENT spaces. */
    size_t size = 4 * w->n + 1;
    char *wrapped = malloc(size);
    if (!wrapped) sgt_no_memory();
    fputs(sgt_wrap(wrapped, size, w->text, w->columns), stdout);
    free(wrapped);
    free(w->text);
}

/* ---- bytes ---- */

/* maximum size in bytes of a line in a JSON file; typical lines have a few hundred bytes */
enum { LINE = 65536 };

/* Return how many of the n bytes at s come before an incomplete UTF-8 sequence at their end, or n
 * if there is no such sequence. */
static size_t count_whole(const uint8_t *s, size_t n)
{
    uint32_t cp;
    for (size_t k = 1; k <= 3 && k <= n; k++) {
        const uint8_t *last = s + n - k;
        if (*last >= 0xc2 && *last <= 0xf4 && sgt_utf8_unit(last, k, &cp) == k &&
            cp == SGT_UTF8_ILL_FORMED)
            return n - k;
    }
    return n;
}

int sgt_json_lines(const char *folder, const char *name, void (*add)(void *ctx, json_t *line),
                   void *ctx, int *half, sgt_error *err)
{
    FILE *f = NULL;
    char path[SGT_PATH], text[LINE];
    sgt_path(path, folder, "%s", name);
    int rc = sgt_file_gone(path) ? SGT_OK : sgt_file_lines(&f, path, err);
    for (size_t n; f && (n = sgt_file_line(text, LINE, f)) > 0;) {
        const int ends = n == LINE || text[n - 1] == '\n';
        if (half) *half = !ends;
        if (!ends) break;
        json_t *line = n < LINE ? json_loadb(text, n, 0, NULL) : NULL;
        add(ctx, line);
        json_decref(line);
    }
    if (f && ferror(f)) rc = sgt_fail_errno(err, "%s", path);
    if (f) fclose(f);
    return rc;
}

json_t *sgt_json_text(const char *text, size_t n)
{
    char *clean = malloc(3 * n + 1);
    /* end the program, because jansson would silently omit a member whose value is NULL */
    if (!clean) sgt_no_memory();
    json_t *s = json_stringn(clean, sgt_utf8_replace((uint8_t *)clean, (const uint8_t *)text, n));
    free(clean);
    return s;
}

json_t *sgt_json_string(const char *text) { return sgt_json_text(text, strlen(text)); }

json_t *sgt_json_count(uint64_t v)
{
    return v == UINT64_MAX ? json_null() : json_integer((json_int_t)v);
}

json_t *sgt_json_ids(const void *ids, size_t width, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer((int32_t)sgt_id_at(ids, width, i)));
    return list;
}

size_t sgt_print_text(const char *s, size_t n, int terminal, int end)
{
    const uint8_t *bytes = (const uint8_t *)s;
    uint32_t cp;
    if (!end) n = count_whole(bytes, n);
    if (!terminal) fwrite(s, 1, n, stdout);
    for (size_t i = 0, length; terminal && i < n; i += length) {
        length = sgt_utf8_unit(bytes + i, n - i, &cp);
        int controls = (cp < 0x20 && cp != '\n' && cp != '\t') || (cp >= 0x7f && cp < 0xa0);
        if (cp != SGT_UTF8_ILL_FORMED && !controls) fwrite(s + i, 1, length, stdout);
        else
            for (size_t j = 0; j < length; j++) printf("\\x%02x", bytes[i + j]);
    }
    return n;
}

/* ---- facts ---- */

enum { LABEL = 12 }; /* minimum width in characters of the left column, which shows names */

/* Return 1 if a value is null, false, 0 or empty, so that it is not printed; otherwise 0. */
static int is_empty(const json_t *value)
{
    const char *name;
    json_t *member;
    int empty = !json_is_real(value) && !json_is_true(value) && !json_is_string(value) &&
                !json_integer_value(value) && !json_array_size(value);
    json_object_foreach((json_t *)value, name, member) empty &= is_empty(member);
    return empty;
}

/* Print the value of a member named `name`: the strings of an array of strings, the length of any
 * other array, an integer as a size if `name` ends in "bytes", and other integers with commas
 * between groups of three digits. */
static void put_fact(FILE *to, const char *name, const json_t *value)
{
    const size_t n = strlen(name), bytes = strlen("bytes"), count = json_array_size(value);
    const uint64_t number = count ? count : (uint64_t)json_integer_value(value);
    char text[1024];
    size_t i;
    json_t *item;
    if (json_is_string(value))
        fputs(sgt_printable(text, sizeof text, json_string_value(value)), to);
    else if (json_is_true(value)) fputs("yes", to);
    else if (json_is_real(value)) fprintf(to, "%.6g", json_real_value(value));
    else if (json_is_string(json_array_get(value, 0))) json_array_foreach(value, i, item)
        {
            fputs(i ? ", " : "", to);
            put_fact(to, name, item);
        }
    else if (n >= bytes && !strcmp(name + n - bytes, "bytes"))
        fputs(sgt_format_bytes(text, sizeof text, number), to);
    else fputs(sgt_format_count(text, sizeof text, number), to);
}

/* Print the members of an object as "name value, name value, ...". Members that are objects or null
 * are skipped. */
static void put_pairs(FILE *to, const json_t *object)
{
    const char *name, *between = "";
    char shown[64];
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        if (json_is_object(value) || json_is_null(value)) continue;
        fprintf(to, "%s%s ", between, sgt_printable(shown, sizeof shown, name));
        if (json_is_string(value)) put_fact(to, "", value);
        else
            json_dumpf(value, to,
                       JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
        between = ", ";
    }
}

/* Print a line with the name and value of each member of the object `facts`, except for the first
 * `from` members and for members for which is_empty returns 1. If a member is an object whose first
 * member is also an object, print a line for each of its members instead. The column of names is at
 * least `wide` characters wide. */
static void put_facts(FILE *to, const json_t *facts, size_t from, int wide)
{
    const char *name;
    char label[256];
    json_t *value;
    size_t i = 0;
    json_object_foreach((json_t *)facts, name, value)
    {
        if (wide < (int)strlen(name)) wide = (int)strlen(name);
    }
    json_object_foreach((json_t *)facts, name, value)
    {
        if (i++ < from || is_empty(value)) continue;
        if (json_is_object(json_object_iter_value(json_object_iter((json_t *)value)))) {
            put_facts(to, value, 0, wide);
            continue;
        }
        sgt_printable(label, sizeof label, name);
        for (char *c = label; (c = strchr(c, '_'));) *c = ' ';
        fprintf(to, "  %-*s ", wide + 2, label);
        if (json_is_object(value)) put_pairs(to, value);
        else put_fact(to, name, value);
        fputc('\n', to);
    }
}

void sgt_print_facts(const char *name, const char *what, const json_t *facts)
{
    sgt_wrapped w;
    char shown[1024];
    FILE *to = sgt_wrapped_open(&w, sgt_columns(STDOUT_FILENO));
    fprintf(to, "%s: %s\n", sgt_printable(shown, sizeof shown, name), what);
    put_facts(to, facts, 2, LABEL);
    sgt_wrapped_close(&w);
}

int sgt_print_json(json_t *value, size_t flags, sgt_error *err)
{
    if (!value) return sgt_fail_memory(err, NULL);
    int bad = json_dumpf(value, stdout, flags) < 0 || putchar('\n') == EOF;
    json_decref(value);
    return bad ? sgt_fail_errno(err, "standard output") : SGT_OK;
}

int sgt_print_result(int json, int quiet, const char *name, const char *what, json_t *facts,
                     sgt_error *err)
{
    if (json || !facts) return sgt_print_json(facts, JSON_INDENT(2) | JSON_REAL_PRECISION(9), err);
    if (!quiet) sgt_print_facts(name, what, facts);
    json_decref(facts);
    return SGT_OK;
}

int sgt_flush_results(sgt_error *err)
{
    return fflush(stdout) == EOF || ferror(stdout) ? sgt_fail_errno(err, "standard output")
                                                   : SGT_OK;
}

/* Print a word, quoted for a shell if necessary. For example, the word it's is printed as
 * 'it'\''s'. */
static void put_quoted(FILE *to, const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-";
    const char *quote = *word && !word[strspn(word, plain)] ? "" : "'";
    fputs(quote, to);
    for (; *word; word++) {
        if (*word == '\'') fputs("'\\'", to);
        fputc(*word, to);
    }
    fputs(quote, to);
}

char *sgt_command_line(const char *program, int argc, char **argv)
{
    char *line = NULL;
    size_t n;
    FILE *to = open_memstream(&line, &n);
    if (to) fputs(program, to);
    for (int i = 1; to && i < argc; i++) {
        fputc(' ', to);
        put_quoted(to, argv[i]);
    }
    if (!to || fclose(to) != 0) sgt_no_memory();
    return line;
}
