/* literal.c: search for the literal end of text. */
#include "tokenize/input/literal.h"

size_t sgt_literal_last(const sgt_literal *l, const uint8_t *text, size_t n)
{
    const size_t bytes = strlen(l->text);
    size_t last = 0;
    const uint8_t *found;
    for (size_t at = 1; at < n && (found = memmem(text + at, n - at, l->text, bytes));
         at = last + bytes)
        last = (size_t)(found - text);
    return last;
}

/* Text has few bytes like the literal's first, and memchr finds one faster than memmem the whole
 * literal. */
uint64_t sgt_literal_count(const sgt_literal *l, const uint8_t *text, size_t n)
{
    const uint8_t *end = text + n;
    uint64_t count = 0;
    for (; (text = memchr(text, *l->text, (size_t)(end - text))); text++)
        count += sgt_literal_begins(l, text, (size_t)(end - text)) != 0;
    return count;
}

size_t sgt_literal_around(const sgt_literal *l, const uint8_t *text, size_t n, size_t cut)
{
    const size_t bytes = strlen(l->text);
    for (size_t back = 1; back < bytes && back <= cut; back++) {
        const size_t seen = n - (cut - back);
        if (!memcmp(text + cut - back, l->text, seen < bytes ? seen : bytes)) return cut - back;
    }
    return cut;
}
