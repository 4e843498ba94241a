/* wide.c: Latin-1, UTF-16 and UTF-32 to UTF-8. The definition takes one unit at a time; programs on
 * x86-64 run vector code, which leaves surrogates and the end of a text to it. */
#include "tokenize/text/wide.h"

#include "loader/base/cpu.h"
#include "tokenize/text/utf8.h"

static inline uint32_t unit(const void *text, size_t i, size_t width)
{
    if (width == 1) return ((const uint8_t *)text)[i];
    if (width == 2) return ((const uint16_t *)text)[i];
    return ((const uint32_t *)text)[i];
}

/* Convert text[from ... to), and the unit behind it if a pair begins there. Add the number of bytes
 * to *used, and return the place of the next unit. Inline: each width gets a loop of its own. */
static inline size_t convert(uint8_t *out, size_t *used, const void *text, size_t from, size_t to,
                             size_t n, size_t width)
{
    size_t i = from;
    for (uint32_t c; i < to; i++) {
        if ((c = unit(text, i, width)) < 0x80) {
            out[(*used)++] = (uint8_t)c;
            continue;
        }
        uint32_t low = i + 1 < n ? unit(text, i + 1, width) : 0;
        if (width > 1 && c >> 10 == 0xD800 >> 10 && low >> 10 == 0xDC00 >> 10) {
            c = 0x10000 + ((c & 0x3FF) << 10 | (low & 0x3FF));
            i++;
        }
        *used += sgt_utf8_put(out + *used, c);
    }
    return i;
}

size_t sgt_wide_to_utf8_plain(uint8_t *out, const void *text, size_t n, size_t width)
{
    size_t used = 0;
    if (width == 1) convert(out, &used, text, 0, n, n, 1);
    else if (width == 2) convert(out, &used, text, 0, n, n, 2);
    else convert(out, &used, text, 0, n, n, 4);
    return used;
}

size_t sgt_wide_to_utf8(uint8_t *out, const void *text, size_t n, size_t width)
{
#if defined(__x86_64__)
    for (size_t used = 0, i = 0; sgt_cpu() >= SGT_CPU_AVX2;) {
        size_t units;
        used += sgt_wide_avx2(out + used, (const uint8_t *)text + i * width, n - i, width, &units);
        i += units;
        if (i == n) return used;
        size_t to = n - i < 16 ? n : i + 16;
        i = convert(out, &used, text, i, to, n, width);
    }
#endif
    return sgt_wide_to_utf8_plain(out, text, n, width);
}
