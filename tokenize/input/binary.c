/* binary.c: files that begin like no text, and bytes that no text has. */
#include "tokenize/input/binary.h"

#include <string.h>

#include "tokenize/text/utf8.h"

/* Return whether p[n] has bytes that are not UTF-8. A character cut by the end of the prefix does
 * not count. */
static int is_ill_formed(const uint8_t *p, size_t n, int whole)
{
    size_t valid = sgt_utf8_valid(p, n);
    uint32_t cp;
    if (valid == n) return 0;
    if (whole || n - valid > 3) return 1;
    /* An ill-formed unit at the end of the prefix may be the beginning of a character that later
     * bytes complete. */
    return sgt_utf8_unit(p + valid, n - valid, &cp) < n - valid || p[valid] < 0xC2 ||
           p[valid] > 0xF4;
}

const sgt_magic *sgt_binary_of(const uint8_t *p, size_t n, int whole, int lines)
{
    static const sgt_magic other = {"binary data", "--binary keep takes its bytes",
                                    SGT_MAGIC_OTHER};
    const sgt_magic *known = sgt_magic_of(p, n);
    if (known || lines) return known;
    known = sgt_magic_wide(p, n, whole);
    return known ? known : memchr(p, 0, n) && is_ill_formed(p, n, whole) ? &other : NULL;
}
