/* alphabet.h: GPT-2's byte alphabet, in which files write merges and vocabularies. Each byte is
 * written as one printable character: printable Latin-1 bytes stand for themselves, and the 68
 * other bytes are U+0100 to U+0143 in order. */
#ifndef SGT_ALPHABET_H
#define SGT_ALPHABET_H

#include <stddef.h>
#include <stdint.h>

typedef struct sgt_alphabet {
    uint16_t character[256]; /* byte -> code point */
    int16_t byte[0x144];     /* code point -> byte, -1: none */
    uint8_t order[256];      /* id -> byte: the printable bytes have the lower ids */
} sgt_alphabet;

void sgt_alphabet_fill(sgt_alphabet *a);

/* Write the characters of text[0..n) as bytes to out, which has room for n. Returns the number of
 * bytes, or 0 if a character is not in the alphabet. */
size_t sgt_alphabet_read(const sgt_alphabet *a, const uint8_t *text, size_t n, uint8_t *out);

/* Write the bytes s[0..n) as UTF-8 characters to out, which has room for 2n bytes. Returns the
 * number of bytes written. */
size_t sgt_alphabet_write(const sgt_alphabet *a, const uint8_t *s, size_t n, char *out);

#endif
