/* alphabet.c: converts bytes to printable characters and back. */
#include "tokenize/vocab/alphabet.h"

#include <string.h>

static int is_printable(unsigned b)
{
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
}

void sgt_alphabet_fill(sgt_alphabet *a)
{
    unsigned id = 0, other = 0;
    memset(a->byte, -1, sizeof a->byte);
    for (unsigned b = 0; b < 256; b++)
        if (is_printable(b)) a->order[id++] = (uint8_t)b;
    for (unsigned b = 0; b < 256; b++) {
        if (!is_printable(b)) a->order[id++] = (uint8_t)b;
        a->character[b] = (uint16_t)(is_printable(b) ? b : 0x100 + other++);
        a->byte[a->character[b]] = (int16_t)b;
    }
}

size_t sgt_alphabet_read(const sgt_alphabet *a, const uint8_t *text, size_t n, uint8_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < n; count++) {
        unsigned cp = text[i++];
        if (cp >= 0x80) {
            if (cp < 0xC2 || cp > 0xC5 || i == n || (text[i] & 0xC0) != 0x80) return 0;
            cp = (cp & 0x1F) << 6 | (text[i++] & 0x3F);
        }
        if (cp >= 0x144 || a->byte[cp] < 0) return 0;
        out[count] = (uint8_t)a->byte[cp];
    }
    return count;
}

size_t sgt_alphabet_write(const sgt_alphabet *a, const uint8_t *s, size_t n, char *out)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned cp = a->character[s[i]];
        if (cp >= 0x80) out[count++] = (char)(0xC0 | cp >> 6);
        out[count++] = (char)(cp >= 0x80 ? 0x80 | (cp & 0x3F) : cp);
    }
    return count;
}
