/* wrap.c: breaks lines between words. */
#include "tools/cli/wrap.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LEAST 16           /* fewest columns of a terminal for which lines are wrapped */
#define INDENT ((size_t)2) /* additional columns before a line that continues another */

int sgt_columns(int fd)
{
    struct winsize w;
    return isatty(fd) && ioctl(fd, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

/* Return how many columns n bytes of UTF-8 take, one per character. */
static size_t width(const char *s, size_t n)
{
    size_t columns = 0;
    for (size_t i = 0; i < n; i++) columns += ((unsigned char)s[i] & 0xc0) != 0x80;
    return columns;
}

static size_t put(char *out, size_t size, size_t at, const char *s, size_t n)
{
    for (size_t i = 0; i < n && at + 1 < size; i++) out[at++] = s[i];
    return at;
}

/* Return the number of bytes in the word at s. If it is wider than a line, it ends after the last |
 * that fits, because such words are lists of choices. */
static size_t word(const char *s, size_t most)
{
    size_t n = strcspn(s, " \n");
    if (most == SIZE_MAX || width(s, n) + 2 * INDENT <= most) return n;
    size_t bar = 0;
    for (size_t i = 0; i < n && i + 2 * INDENT < most; i++)
        if (s[i] == '|') bar = i + 1;
    return bar ? bar : n;
}

char *sgt_wrap(char *out, size_t size, const char *text, int columns)
{
    size_t at = 0, column = 0, indent = INDENT,
           most = columns >= LEAST ? (size_t)columns : SIZE_MAX;
    int begun = 0; /* 1: the line has at least one word */
    if (!size) return out;
    for (const char *p = text; *p;) {
        size_t blanks = strspn(p, " "), n = word(p + blanks, most), w = width(p + blanks, n);
        if (!column) indent = blanks + INDENT < most / 2 ? blanks + INDENT : INDENT;
        if (begun && n && column + blanks + w > most) {
            at = put(out, size, at, "\n", 1);
            for (column = 0; column < indent; column++) at = put(out, size, at, " ", 1);
        } else {
            at = put(out, size, at, p, blanks);
            column += blanks;
        }
        at = put(out, size, at, p + blanks, n);
        column += w;
        begun |= n > 0;
        p += blanks + n;
        if (*p == '\n') {
            at = put(out, size, at, p++, 1);
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

FILE *sgt_wrapped_open(sgt_wrapped *w)
{
    *w = (sgt_wrapped){.to = stdout};
    FILE *memory = sgt_columns(STDOUT_FILENO) ? open_memstream(&w->text, &w->n) : NULL;
    if (memory) w->to = memory;
    return w->to;
}

void sgt_wrapped_close(sgt_wrapped *w)
{
    if (w->to == stdout) return;
    int whole = !fclose(w->to);
    size_t size = 4 * w->n + 1; /* a blank becomes a newline and the indentation */
    char *wrapped = whole ? malloc(size) : NULL;
    if (whole && w->text)
        fputs(wrapped ? sgt_wrap(wrapped, size, w->text, sgt_columns(STDOUT_FILENO)) : w->text,
              stdout);
    free(wrapped);
    free(w->text);
}
