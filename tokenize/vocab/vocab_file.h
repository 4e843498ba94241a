/* vocab_file.h: defines sgt_vocab_parts, a vocabulary as a file describes it: tokens with the
 * file's own ids, merges or ranks, and the split rule. vocab_read.c reads each file format into an
 * sgt_vocab_parts, and learn/merges.c fills one by training on text. sgt_vocab_from_parts
 * checks an sgt_vocab_parts and builds an sgt_vocab from it.
 *
 *     sgt_vocab_parts p = {.path = path};
 *     if (sgt_vocab_parts_token(&p, 0, "!", 1, 0, &err) < 0 || ... ||
 *         sgt_vocab_from_parts(&v, &p, &err) < 0) ...;
 *     sgt_vocab_parts_free(&p);
 *
 * A vocabulary that passes the checks is a proper byte-level BPE: each byte is a token; of the
 * merges listed for a token, exactly one can ever happen; and earlier merges produce the two tokens
 * of that merge. Therefore, the encoder can use ids in merge order (vocab.h), which a table maps to
 * the file's ids.
 *
 * Proof that only one merge per token can happen: as long as no merge crosses the ends of a section
 * of text, the merges inside the section do not depend on the text around it. The bytes that become
 * a token are such a section. Therefore, earlier merges always turn these bytes into the same two
 * tokens. */
#ifndef SGT_VOCAB_FILE_H
#define SGT_VOCAB_FILE_H

#include "tokenize/vocab/vocab.h"

typedef struct sgt_vocab_part {
    const uint8_t *s; /* bytes of the token */
    size_t n;         /* number of bytes in the token; 0 if no token has this id */
    /* 1 if this is an added token: no merge produces the token, and encoding ordinary text never
     * gives its id; otherwise 0 */
    int added;
    /* name of a setting of this added token, such as "lstrip", that changes where the token matches
     * in text; NULL if the token has no such setting */
    const char *setting;
} sgt_vocab_part;

typedef struct sgt_vocab_merge {
    /* ids in the file of the two tokens that are merged (`left` and `right`) and of the token that
     * they merge to (`made`) */
    uint32_t left, right, made;
} sgt_vocab_merge;

typedef struct sgt_vocab_parts {
    const char *path;       /* path of the file, for messages */
    sgt_arena memory;       /* memory of the arrays `tokens`, `names` and `bytes` */
    sgt_vocab_part *tokens; /* array of SGT_MOST_IDS tokens, indexed by id in the file */
    /* size: the largest id plus 1. count: number of tokens, which is less than `size` if some ids
     * are unused. */
    uint32_t size, count;
    /* hash table of the tokens except added tokens, by their bytes; a slot contains the token's id
     * plus 1, or 0 if the slot is empty */
    uint32_t *names;
    sgt_vocab_merge *merges;
    size_t merge_count, merge_room;
    /* 1 if the file lists no merges because its ids are ranks, otherwise 0. If ids are ranks, as in
     * tiktoken, two adjacent tokens merge if their bytes together are a token. Of all such pairs,
     * the pair that merges to the token with the lowest id is merged first. */
    int ranks;
    /* 1 if a pre-token that has exactly the bytes of a token becomes this token, even if no merges
     * produce it (ignore_merges in tokenizer.json); otherwise 0. If `ranks` is 1, this field is
     * ignored, and such pre-tokens always become tokens. */
    int whole;
    uint8_t *bytes;   /* buffer with the bytes of all tokens; tokens[id].s points into it */
    size_t used;      /* number of bytes used in `bytes` */
    const char *rule; /* name or pattern of the split rule; NULL for GPT-2's rule */
    int assumed;      /* 1 if GPT-2's rule is assumed because the file names no rule; otherwise 0 */
    sgt_normalize normalize;
    int ignored; /* 1 if the file has truncation or padding settings, which sgt ignores */
    /* id, plus 1, of the first added token that looks like a special token, such as <think>, but is
     * not marked as special in the file; 0 if there is none */
    uint64_t marker;
} sgt_vocab_parts;

/* Add the token that has this id in the file, and copy its n bytes. added: 1 for an added token,
 * otherwise 0. The call fails if the id is already in use, or if another token has the same bytes,
 * unless one of the two is an added token. Return 0 or a negative SGT_E*. */
int sgt_vocab_parts_token(sgt_vocab_parts *p, uint64_t id, const void *bytes, size_t n, int added,
                          sgt_error *err);

/* Return the id in the file of the token that consists of exactly these n bytes, or SGT_NO_TOKEN if
 * there is no such token. Added tokens are never returned. */
uint32_t sgt_vocab_parts_find(const sgt_vocab_parts *p, const uint8_t *bytes, size_t n);

/* Append a merge of the tokens `left` and `right`. sgt_vocab_parts_merge takes the id of the token
 * that they merge to, which must exist. sgt_vocab_parts_join adds this token, with the next unused
 * id (p->size). Return 0 or a negative SGT_E*. */
int sgt_vocab_parts_merge(sgt_vocab_parts *p, uint32_t left, uint32_t right, uint32_t made,
                          sgt_error *err);
int sgt_vocab_parts_join(sgt_vocab_parts *p, uint32_t left, uint32_t right, sgt_error *err);
void sgt_vocab_parts_free(sgt_vocab_parts *p);

/* Check the tokens and merges in *p, and build a vocabulary from them. The caller must free *out
 * with sgt_vocab_free, and *p with sgt_vocab_parts_free. Return 0 or a negative SGT_E*. */
int sgt_vocab_from_parts(sgt_vocab **out, const sgt_vocab_parts *p, sgt_error *err);

/* Possible names of the end-of-text token, followed by NULL. sgt_vocab_from_parts uses the first
 * name that belongs to an added token. */
extern const char *const sgt_vocab_eot_names[];

#endif
