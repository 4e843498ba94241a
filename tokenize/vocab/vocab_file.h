/* vocab_file.h: a vocabulary as a file has it: tokens under ids of the file's own, merges or ranks,
 * a rule to split by. What reads a format (vocab_load.c, vocab_huggingface.c) fills in an
 * sgt_vocab_parts; sgt_vocab_from_parts holds it to what every vocabulary must be, and makes one.
 *
 *     sgt_vocab_parts p = {.path = path};
 *     if (sgt_vocab_parts_token(&p, 0, "!", 1, 0, &err) < 0 || ... || sgt_vocab_from_parts(&v, &p, &err) < 0) ...;
 *     sgt_vocab_parts_free(&p);
 *
 * A vocabulary that passes is a proper byte-level BPE: each byte is a token, and of the merges that
 * make a token exactly one can ever come to pass, between two tokens that earlier merges make. So
 * the encoder may work with ids in merge order (vocab.h), and a table turns those into the file's.
 * The proof that one merge a token is enough: as long as no merge goes across the ends of an extent
 * of bytes, what becomes of it does not depend on what stands beside it; and of all ways to cut a
 * token in two only one can be what earlier merges make of its bytes. */
#ifndef SGT_VOCAB_FILE_H
#define SGT_VOCAB_FILE_H

#include "vocab.h"

#define SGT_VOCAB_MAX_IDS 65536u
/* of JSON: so that larger ones are refused for their ids */
#define SGT_VOCAB_MAX_VALUES ((size_t)1 << 21)

typedef struct sgt_vocab_part {
    uint64_t id; /* of a merge: how many of its bytes are the left token's */
    size_t at, n;
    int added; /* stands for itself alone: no merge makes it, text is never turned into it */
} sgt_vocab_part;

typedef struct sgt_vocab_parts {
    const char *path; /* for messages */
    /* merges: none: ids are ranks, and of two neighbours that make a token together the pair of the
     * lowest id is joined first, as tiktoken does */
    sgt_vocab_part *tokens, *merges;
    size_t token_count, token_room, merge_count, merge_room;
    int ranks;
    /* a piece that is a token is taken whole: so every token must be one that merges make */
    int whole;
    uint8_t *bytes;
    size_t used, room;
    const char *rule; /* NULL: GPT-2's */
    char *own_rule;   /* the memory of `rule` if a file gave it; sgt_vocab_parts_free frees it */
    sgt_normalize normalize;
    const char *ignored; /* what the file asks for and sgt leaves out, in words; NULL: nothing */
} sgt_vocab_parts;

int sgt_vocab_parts_token(sgt_vocab_parts *p, uint64_t id, const void *bytes, size_t n, int added,
                          sgt_error *err);
int sgt_vocab_parts_merge(sgt_vocab_parts *p, const void *left, size_t left_n, const void *right,
                          size_t right_n, sgt_error *err);
void sgt_vocab_parts_free(sgt_vocab_parts *p);

int sgt_vocab_from_parts(sgt_vocab **out, const sgt_vocab_parts *p, sgt_error *err);

/* The names that an end-of-text token goes by, in the order in which they are looked for; NULL
 * after the last. */
extern const char *const sgt_vocab_eot_names[];

/* Whether text[n] is a tokenizer.json as sgt writes it, by how it begins. Older releases put a rule
 * there as PCRE2 reads it, and so it is read. */
int sgt_vocab_is_ours(const char *text, size_t n);

/* Read text[n], a tokenizer.json, into *p. */
int sgt_vocab_read_huggingface(sgt_vocab_parts *p, const char *text, size_t n, sgt_error *err);

#endif
