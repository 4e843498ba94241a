/* vocab_file.h: a vocabulary as a file holds it: tokens under the file's own ids, merges or ranks,
 * and the rule to split by. vocab_read.c fills in an sgt_vocab_parts from each file format, and
 * merges.c fills it in from text. sgt_vocab_from_parts checks what every vocabulary must satisfy,
 * and builds an sgt_vocab.
 *
 *     sgt_vocab_parts p = {.path = path};
 *     if (sgt_vocab_parts_token(&p, 0, "!", 1, 0, &err) < 0 || ... ||
 *         sgt_vocab_from_parts(&v, &p, &err) < 0) ...;
 *     sgt_vocab_parts_free(&p);
 *
 * A vocabulary that passes the checks is a proper byte-level BPE: each byte is a token, exactly one
 * of the merges listed for a token can ever happen, and earlier merges make the two tokens of that
 * merge. So the encoder may use ids in merge order (vocab.h), and a table maps those to the file's
 * ids. Proof that one merge per token is enough: as long as no merge crosses the ends of an extent
 * of bytes, the merges inside it do not depend on the text around it. And of all cuts of a token
 * into two tokens, earlier merges make only one from the token's bytes. */
#ifndef SGT_VOCAB_FILE_H
#define SGT_VOCAB_FILE_H

#include "tokenize/vocab/vocab.h"

typedef struct sgt_vocab_part {
    const uint8_t *s; /* bytes of the token */
    size_t n;         /* number of bytes; 0: no token has this id */
    int added;        /* 1: added token: no merge makes it, and no text is encoded to it */
    /* setting of an added token that changes where text matches it: "lstrip"; NULL: none */
    const char *setting;
} sgt_vocab_part;

typedef struct sgt_vocab_merge {
    uint32_t left, right, made; /* ids of two tokens, and of the token that they merge to */
} sgt_vocab_merge;

typedef struct sgt_vocab_parts {
    const char *path;       /* the file's path, for messages */
    sgt_arena memory;       /* memory of tokens, names and bytes */
    sgt_vocab_part *tokens; /* (SGT_MOST_IDS): tokens by id */
    uint32_t size, count;   /* the largest id plus 1; number of tokens */
    /* hash table that maps the bytes of a token to its id + 1; added tokens are not in it */
    uint32_t *names;
    sgt_vocab_merge *merges;
    size_t merge_count, merge_room;
    /* 1: there are no merges, and ids are ranks. Among all pairs of adjacent tokens whose bytes
     * together are a token, the pair that makes the lowest id is merged first, as in tiktoken. */
    int ranks;
    /* 1: a piece whose bytes are a token becomes that token, even if no merges make it
     * (ignore_merges). With ranks, this always holds */
    int whole;
    uint8_t *bytes; /* bytes of all tokens, which point into this buffer */
    size_t used;
    const char *rule; /* name or pattern of the rule to split by; NULL: GPT-2's rule */
    int assumed;      /* 1: GPT-2's rule is only assumed */
    sgt_normalize normalize;
    int ignored; /* 1: the file has settings for truncation or padding, which sgt ignores */
    /* 1 + id of the first added token that is a marker, such as <think>, and that the file does not
     * call special; 0: none */
    uint64_t marker;
} sgt_vocab_parts;

/* Add a token; its bytes are copied. No other token may have this id, and none may have the same
 * bytes, unless one of the two is an added token. Return 0 or a negative SGT_E*. */
int sgt_vocab_parts_token(sgt_vocab_parts *p, uint64_t id, const void *bytes, size_t n, int added,
                          sgt_error *err);

/* Return the id of the token with these bytes, added tokens excepted, or SGT_NO_TOKEN. */
uint32_t sgt_vocab_parts_find(const sgt_vocab_parts *p, const uint8_t *bytes, size_t n);

/* Append a merge of two tokens: to a third token, or (sgt_vocab_parts_join) to a new token with the
 * next id. Return 0 or a negative SGT_E*. */
int sgt_vocab_parts_merge(sgt_vocab_parts *p, uint32_t left, uint32_t right, uint32_t made,
                          sgt_error *err);
int sgt_vocab_parts_join(sgt_vocab_parts *p, uint32_t left, uint32_t right, sgt_error *err);
void sgt_vocab_parts_free(sgt_vocab_parts *p);

/* Check p and build a vocabulary from it. The caller frees *out, and still owns p. */
int sgt_vocab_from_parts(sgt_vocab **out, const sgt_vocab_parts *p, sgt_error *err);

/* Names that the end-of-text token may have, in the order in which they are tried. NULL ends the
 * list. */
extern const char *const sgt_vocab_eot_names[];

#endif
