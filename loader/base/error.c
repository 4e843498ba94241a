/* error.c: format messages, and make them safe to print. */
#include "loader/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* maximum size in bytes of a message without the description of errno: enough for two paths and
 * some words */
#define ROOM 8744

/* Return the length in bytes of the UTF-8 character at `s` if it can be shown in a terminal. Return
 * 0 if it is a control character (C0, DEL, C1) or the invisible byte order mark U+FEFF, or if the
 * bytes at `s` are not well-formed UTF-8 (table 3-7 of the Unicode Standard). */
static unsigned printable_length(const unsigned char *s)
{
    if (s[0] >= 0x20 && s[0] < 0x7f) return 1;
    if (s[0] >= 0xc2 && s[0] < 0xe0)
        return (s[1] & 0xc0) == 0x80 && !(s[0] == 0xc2 && s[1] < 0xa0) ? 2 : 0;
    unsigned char low = 0x80, high = 0xbf;
    if (s[0] == 0xe0) low = 0xa0;
    if (s[0] == 0xed) high = 0x9f;
    if (s[0] == 0xf0) low = 0x90;
    if (s[0] == 0xf4) high = 0x8f;
    if (s[0] < 0xe0 || s[0] > 0xf4 || s[1] < low || s[1] > high || (s[2] & 0xc0) != 0x80) return 0;
    if (s[0] == 0xef && s[1] == 0xbb && s[2] == 0xbf) return 0;
    if (s[0] < 0xf0) return 3;
    return (s[3] & 0xc0) == 0x80 ? 4 : 0;
}

char *sgt_printable(char *out, unsigned long size, const char *s)
{
    unsigned long n = 0;
    while (*s && size) {
        unsigned len = printable_length((const unsigned char *)s);
        unsigned room = len ? len : 4; /* \xNN */
        if (n + room + 1 > size) break;
        if (len) memcpy(out + n, s, len);
        else snprintf(out + n, size - n, "\\x%02x", (unsigned)(unsigned char)*s);
        n += room;
        s += len ? len : 1;
    }
    if (size) out[n] = 0;
    return out;
}

/* Copy the string `from` into the `size` bytes at `text`. If the string does not fit, replace its
 * middle with " [...] ". The end is kept because a message usually begins with a path, which may be
 * long, and ends with the cause of the error. */
static void cut_middle(char *text, size_t size, const char *from)
{
    static const char gap[] = " [...] ";
    size_t n = strlen(from), keep = size - sizeof gap, head = keep / 2;
    if (n < size) {
        memcpy(text, from, n + 1);
        return;
    }
    size_t tail = n - (keep - head);
    while (head && (from[head] & 0xc0) == 0x80) head--; /* cut between characters */
    while ((from[tail] & 0xc0) == 0x80) tail++;
    memcpy(text, from, head);
    memcpy(text + head, gap, sizeof gap - 1);
    memcpy(text + head + sizeof gap - 1, from + tail, n - tail + 1);
}

static void format_into(char *text, size_t size, const char *fmt, va_list args)
{
    /* raw: the formatted message; shown: the same message with each unprintable byte replaced with
     * \xNN. This replaces one byte with four, so `shown` is four times as large as `raw`. */
    char raw[ROOM + 256], shown[4 * sizeof raw];
    if (vsnprintf(raw, sizeof raw, fmt, args) < 0) *raw = 0;
    cut_middle(text, size, sgt_printable(shown, sizeof shown, raw));
}

int sgt_fail(sgt_error *err, int code, const char *fmt, ...)
{
    if (!err) return code;
    va_list args;
    va_start(args, fmt);
    err->code = code;
    format_into(err->text, sizeof err->text, fmt, args);
    va_end(args);
    return code;
}

int sgt_fail_errno(sgt_error *err, const char *fmt, ...)
{
    const int saved = errno;
    char what[ROOM], reason[128];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    /* This calls GNU's strerror_r, which returns the description of the error. (The strerror_r of
     * POSIX returns an int instead.) */
    return sgt_fail(err, saved == ENOMEM ? SGT_ENOMEM : SGT_EIO, "%s: %s%s", what,
                    strerror_r(saved, reason, sizeof reason),
                    saved == EMFILE ? " (raise ulimit -n)" : "");
}

void sgt_say(const sgt_notice *n, const char *fmt, ...)
{
    if (!n || !n->say) return;
    char line[1024];
    va_list args;
    va_start(args, fmt);
    format_into(line, sizeof line, fmt, args);
    va_end(args);
    n->say(n->ctx, line);
}
