/* literal.h: find the literal end of text, such as <|endoftext|>, in the bytes of documents. Either it
 * begins a document (--special eot), or it is text like any other and is only counted. */
#ifndef SGT_LITERAL_H
#define SGT_LITERAL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct sgt_literal {
    const char *text; /* its first byte occurs in it once; NULL: there is no literal */
    int divides;      /* 1: it begins a document */
} sgt_literal;

/* Return whether text[n] begins with the literal. */
static inline int sgt_literal_begins(const sgt_literal *l, const uint8_t *text, size_t n)
{
    return l->text && n >= strlen(l->text) && !memcmp(text, l->text, strlen(l->text));
}

/* Return the place after byte 0 of the last literal in text[n]; 0: there is none. */
size_t sgt_literal_last(const sgt_literal *l, const uint8_t *text, size_t n);
/* Return the number of literals in text[n]. */
uint64_t sgt_literal_count(const sgt_literal *l, const uint8_t *text, size_t n);
/* Return where the literal begins that reaches beyond text[cut], or that may do so, because text[n]
 * ends within it; `cut` if there is none. */
size_t sgt_literal_around(const sgt_literal *l, const uint8_t *text, size_t n, size_t cut);

#endif
