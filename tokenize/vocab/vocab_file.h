/* vocab_file.h: a vocabulary as a file holds it: tokens under the file's own ids, merges or ranks,
 * and a rule to split by. vocab_read.c fills in an sgt_vocab_parts from each format, and merges.c from
 * text. sgt_vocab_from_parts checks what every vocabulary must satisfy, and makes one.
 *
 *     sgt_vocab_parts p = {.path = path};
 *     if (sgt_vocab_parts_token(&p, 0, "!", 1, 0, &err) < 0 || ... ||
 *         sgt_vocab_from_parts(&v, &p, &err) < 0) ...;
 *     sgt_vocab_parts_free(&p);
 *
 * A vocabulary that passes is a proper byte-level BPE. Each byte is a token. Of the merges listed
 * for a token exactly one can ever happen, and earlier merges make its two tokens. So the encoder
 * may use ids in merge order (vocab.h), and a table maps those to the file's ids. Proof that one
 * merge a token is enough: as long as no merge crosses the ends of an extent of bytes, the merges
 * inside it do not depend on the text beside it. And of all ways to cut a token in two, earlier
 * merges make only one from its bytes. */
#ifndef SGT_VOCAB_FILE_H
#define SGT_VOCAB_FILE_H

#include "tokenize/vocab/vocab.h"

typedef struct sgt_vocab_part {
    const uint8_t *s; /* its bytes */
    size_t n;         /* their number; 0: there is no token with this id */
    int added;        /* 1: added token, which no merge makes and no text is encoded to */
    /* setting of an added token that changes where it is found in text: "lstrip"; NULL: none */
    const char *setting;
} sgt_vocab_part;

typedef struct sgt_vocab_merge {
    uint32_t left, right, made; /* ids of two tokens, and of the one that they merge to */
} sgt_vocab_merge;

typedef struct sgt_vocab_parts {
    const char *path;       /* for messages */
    sgt_arena memory;       /* of tokens, names and bytes */
    sgt_vocab_part *tokens; /* (SGT_MOST_IDS): by id */
    uint32_t size, count;   /* the largest id plus 1; number of tokens */
    uint32_t *names; /* hash table from the bytes of a token to its id + 1; without added tokens */
    sgt_vocab_merge *merges;
    size_t merge_count, merge_room;
    /* If `ranks` is 1, there are no merges, and ids are ranks. Of all adjacent tokens that together
     * are a token, the pair with the lowest id is merged first, as in tiktoken. */
    int ranks;
    /* 1: a piece that is a token becomes that token, even if no merges make it (ignore_merges). With
     * ranks, it always does */
    int whole;
    uint8_t *bytes; /* of all tokens, which point into it */
    size_t used;
    const char *rule; /* name or pattern of the rule to split by; NULL: GPT-2's */
    int assumed;      /* 1: nothing says that the rule is GPT-2's */
    sgt_normalize normalize;
    int ignored; /* 1: the file has truncation or padding, which sgt ignores */
    /* 1 + the first added token that is a marker, such as <think>, and not special in the file */
    uint64_t marker;
} sgt_vocab_parts;

/* Add a token, whose bytes are copied. No other token may have this id, nor the same bytes unless one
 * of both is added. Return 0 or a negative SGT_E*. */
int sgt_vocab_parts_token(sgt_vocab_parts *p, uint64_t id, const void *bytes, size_t n, int added,
                          sgt_error *err);

/* Return the id of the token with these bytes that is not added, or SGT_NO_TOKEN. */
uint32_t sgt_vocab_parts_find(const sgt_vocab_parts *p, const uint8_t *bytes, size_t n);

/* Append a merge of two tokens to a third, or to a new token with the next id. Return 0 or a
 * negative SGT_E*. */
int sgt_vocab_parts_merge(sgt_vocab_parts *p, uint32_t left, uint32_t right, uint32_t made,
                          sgt_error *err);
int sgt_vocab_parts_join(sgt_vocab_parts *p, uint32_t left, uint32_t right, sgt_error *err);
void sgt_vocab_parts_free(sgt_vocab_parts *p);

/* Check p and make a vocabulary from it. The caller frees *out, and still owns p. */
int sgt_vocab_from_parts(sgt_vocab **out, const sgt_vocab_parts *p, sgt_error *err);

/* Names that an end-of-text token may have, in the order in which they are tried. NULL ends the
 * list. */
extern const char *const sgt_vocab_eot_names[];

#endif
