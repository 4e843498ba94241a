/* text.c: handles UTF-8 that may be ill-formed, and writes command lines as text. */
#include "tools/cli/text.h"

#include <stdio.h>

#include <stdlib.h>
#include <string.h>

#include "tools/cli/no_memory.h"

/* Set *want to the length of the UTF-8 sequence that begins with s[0], or 0 if that byte begins
 * none. Return how many of the n bytes at s belong to such a sequence. */
static size_t match(const uint8_t *s, size_t n, size_t *want)
{
    uint8_t a = s[0], low = 0x80, high = 0xbf;
    *want = a < 0x80 ? 1 : a < 0xc2 ? 0 : a < 0xe0 ? 2 : a < 0xf0 ? 3 : a < 0xf5 ? 4 : 0;
    if (a == 0xe0) low = 0xa0;
    if (a == 0xed) high = 0x9f;
    if (a == 0xf0) low = 0x90;
    if (a == 0xf4) high = 0x8f;
    size_t i = 1;
    for (; i < *want && i < n && s[i] >= low && s[i] <= high; i++) {
        low = 0x80;
        high = 0xbf;
    }
    return i;
}

/* Return the length of the well-formed UTF-8 sequence at s, where n >= 1 bytes are. If it is
 * ill-formed, return minus the length of its maximal subpart (Unicode 15, 3.9, D93b). */
static int utf8_step(const uint8_t *s, size_t n)
{
    size_t want, got = match(s, n, &want);
    return want && got == want ? (int)want : -(int)got;
}

int sgt_utf8_begins(const uint8_t *s, size_t n)
{
    size_t want;
    return match(s, n, &want) == n && n < want;
}

json_t *sgt_json_text(const char *text, size_t n)
{
    char *clean = malloc(3 * n + 1);
    if (!clean) sgt_no_memory(); /* otherwise jansson would leave out the field */
    size_t used = 0;
    for (size_t i = 0; i < n;) {
        int step = utf8_step((const uint8_t *)text + i, n - i);
        const char *from = step < 0 ? "\xef\xbf\xbd" : text + i;
        size_t take = step < 0 ? 3 : (size_t)step;
        memcpy(clean + used, from, take);
        used += take;
        i += (size_t)(step < 0 ? -step : step);
    }
    json_t *s = json_stringn(clean, used);
    free(clean);
    return s;
}

/* Return whether the character of n bytes at s could control a terminal: C0 controls except newline
 * and tab, DEL, and C1 controls. */
static int steers(const uint8_t *s, size_t n)
{
    if (n == 1) return (*s < 0x20 && *s != '\n' && *s != '\t') || *s == 0x7f;
    return n == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

void sgt_print_escaped(const uint8_t *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        int step = utf8_step(s + i, n - i);
        size_t take = (size_t)(step < 0 ? -step : step);
        if (step > 0 && !steers(s + i, take)) fwrite(s + i, 1, take, stdout);
        else
            for (size_t j = 0; j < take; j++) printf("\\x%02x", s[i + j]);
        i += take;
    }
}

/* Copy a word to `to`, quoted for a shell if necessary: it's becomes 'it'\''s'. Return its
 * length. */
static size_t quote(char *to, const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-";
    size_t n = strlen(word), at = 0;
    if (n && strspn(word, plain) == n) {
        memcpy(to, word, n);
        return n;
    }
    to[at++] = '\'';
    for (; *word; word++) {
        if (*word == '\'') at += (size_t)sprintf(to + at, "'\\'");
        to[at++] = *word;
    }
    to[at++] = '\'';
    return at;
}

char *sgt_command_line(const char *program, int argc, char **argv)
{
    size_t room = strlen(program) + 1, at;
    for (int i = 1; i < argc; i++) room += 4 * strlen(argv[i]) + 3;
    char *line = malloc(room);
    if (!line) sgt_no_memory();
    at = (size_t)sprintf(line, "%s", program);
    for (int i = 1; i < argc; i++) {
        line[at++] = ' ';
        at += quote(line + at, argv[i]);
    }
    line[at] = '\0';
    return line;
}
