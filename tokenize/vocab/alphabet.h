/* alphabet.h: GPT-2's byte alphabet, in which merges and vocabularies are written: each byte as one
 * printable character. Printable Latin-1 stands for itself, the 68 other bytes are U+0100 to U+0143
 * in order. */
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

/* The characters of text[0..n) as bytes at out (at most n); how many, or 0 where one of them is not
 * of the alphabet. */
size_t sgt_alphabet_read(const sgt_alphabet *a, const uint8_t *text, size_t n, uint8_t *out);

/* The bytes s[0..n) as UTF-8 characters at out (at most 2n bytes); how many bytes. */
size_t sgt_alphabet_write(const sgt_alphabet *a, const uint8_t *s, size_t n, char *out);

#endif
