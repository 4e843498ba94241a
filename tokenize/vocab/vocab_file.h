/* vocab_file.h: holds a vocabulary as it is in a file: tokens with the file's own ids, merges or
 * ranks, and the split rule. vocab_read.c reads each file format into an sgt_vocab_parts, and
 * merges.c trains one from text. sgt_vocab_from_parts checks it, and builds an sgt_vocab from it.
 *
 *     sgt_vocab_parts p = {.path = path};
 *     if (sgt_vocab_parts_token(&p, 0, "!", 1, 0, &err) < 0 || ... ||
 *         sgt_vocab_from_parts(&v, &p, &err) < 0) ...;
 *     sgt_vocab_parts_free(&p);
 *
 * A vocabulary that passes the checks is a proper byte-level BPE: each byte is a token; exactly one
 * of the merges listed for a token can ever happen; and earlier merges produce the two tokens of
 * that merge. Therefore the encoder may use ids in merge order (vocab.h), and a table maps them to
 * the file's ids.
 *
 * Proof that one merge per token is enough: as long as no merge crosses the ends of a section of
 * text, the merges inside it do not depend on the text around it. A token's bytes are such a
 * section. So earlier merges always turn them into the same two tokens. */
#ifndef SGT_VOCAB_FILE_H
#define SGT_VOCAB_FILE_H

#include "tokenize/vocab/vocab.h"

typedef struct sgt_vocab_part {
    const uint8_t *s; /* bytes of the token */
    size_t n;         /* number of bytes in the token; 0 if no token has this id */
    /* 1 if this is an added token: no merge produces it, and encoding ordinary text never gives
     * it */
    int added;
    /* name of a setting of an added token that changes where the token matches in text, such as
     * "lstrip"; NULL if it has no such setting */
    const char *setting;
} sgt_vocab_part;

typedef struct sgt_vocab_merge {
    /* left, right: ids of the two tokens that are merged. made: id of the token that they are
     * merged to. */
    uint32_t left, right, made;
} sgt_vocab_merge;

typedef struct sgt_vocab_parts {
    const char *path;       /* the file's path, for messages */
    sgt_arena memory;       /* memory of tokens, names and bytes */
    sgt_vocab_part *tokens; /* (SGT_MOST_IDS): tokens by id */
    /* size: the largest id plus 1. count: number of tokens, which is less than `size` if ids are
     * unused. */
    uint32_t size, count;
    /* hash table that maps the bytes of each token, except added tokens, to the token's id plus
     * 1 */
    uint32_t *names;
    sgt_vocab_merge *merges;
    size_t merge_count, merge_room;
    /* 1 if the file lists no merges because its ids are ranks. In this case, as in tiktoken, two
     * adjacent tokens can merge if their joined bytes are a token. Of all such pairs, the one whose
     * joined bytes have the lowest id is merged first. */
    int ranks;
    /* 1 if a piece that has exactly a token's bytes becomes that token even if no merges produce it
     * (ignore_merges in tokenizer.json); always so if `ranks` is 1, whatever this field says */
    int whole;
    uint8_t *bytes; /* buffer of the bytes of all tokens, which `tokens` points into */
    size_t used;
    const char *rule; /* name or pattern of the split rule; NULL for GPT-2's rule */
    int assumed;      /* 1: GPT-2's rule is only assumed */
    sgt_normalize normalize;
    int ignored; /* 1 if the file has truncation or padding settings, which sgt ignores */
    /* the id of the first added token that is a marker, such as <think>, although the file does not
     * call it special, plus 1; 0 if there is none */
    uint64_t marker;
} sgt_vocab_parts;

/* Add a token. Its bytes are copied. The id must be unused. Two tokens may have the same bytes only
 * if one of them is an added token. Return 0 or a negative SGT_E*. */
int sgt_vocab_parts_token(sgt_vocab_parts *p, uint64_t id, const void *bytes, size_t n, int added,
                          sgt_error *err);

/* Return the id of the token that has exactly these n bytes, or SGT_NO_TOKEN if there is none.
 * Added tokens are not searched for. */
uint32_t sgt_vocab_parts_find(const sgt_vocab_parts *p, const uint8_t *bytes, size_t n);

/* Append a merge of two tokens. sgt_vocab_parts_merge merges them to an existing token;
 * sgt_vocab_parts_join merges them to a new token with the next id. Return 0 or a negative
 * SGT_E*. */
int sgt_vocab_parts_merge(sgt_vocab_parts *p, uint32_t left, uint32_t right, uint32_t made,
                          sgt_error *err);
int sgt_vocab_parts_join(sgt_vocab_parts *p, uint32_t left, uint32_t right, sgt_error *err);
void sgt_vocab_parts_free(sgt_vocab_parts *p);

/* Check the tokens and merges in *p, and build a vocabulary from them. The caller frees *out, and
 * also still has to free *p. Return 0 or a negative SGT_E*. */
int sgt_vocab_from_parts(sgt_vocab **out, const sgt_vocab_parts *p, sgt_error *err);

/* Possible names of the end-of-text token, in the order in which they are tried, followed by
 * NULL. */
extern const char *const sgt_vocab_eot_names[];

#endif
