/* width.h: defines names whose meaning depends on the width of a token id, for files that are
 * compiled once per width. The Makefile defines SGT_FOR_wide to compile a file for 4-byte ids.
 * Without SGT_FOR_wide, ids are 2 bytes wide.
 *
 *     sgt_id      type of an id, either in merge order (bpe.h) or public (as users see it)
 *     NO_PAIR     "these two tokens do not merge": larger than the id of any merged token. (With
 *                 2-byte ids, id 65,535 can only be the end of text, which no merge produces.)
 *     NO_ID       id that no token has. If a token has no right neighbour, NO_ID stands for the
 *                 neighbour when the pair is looked up. NO_ID must fit into the 20 bits that the
 *                 key of a pair has for each id.
 *     WIDTH(f)    name of the function or table f for this width
 *     publish     replaces ids in merge order with public ids
 *     take_whole  looks up a piece (pre-token) among the tokens that no merges produce
 *     begin_with_characters   stores the tokens of a piece that exist before the first merge */
#ifndef SGT_WIDTH_H
#define SGT_WIDTH_H

#include "tokenize/vocab/vocab.h"

#ifdef SGT_FOR_wide
typedef uint32_t sgt_id;
#define NO_PAIR UINT32_MAX
#define NO_ID 0xFFFFF
#define WIDTH(f) f##_32
#else
typedef uint16_t sgt_id;
#define NO_PAIR UINT16_MAX
#define NO_ID UINT16_MAX
#define WIDTH(f) f##_16
#endif

static inline void publish(const sgt_vocab *v, sgt_id *ids, size_t count)
{
    if (v->ids)
        for (size_t i = 0; i < count; i++) ids[i] = (sgt_id)v->ids[ids[i]];
}

/* If the n bytes at s are exactly the bytes of a token that no merges produce, store the public id
 * of the token in ids[0], and return 1. Otherwise return 0. */
static inline int take_whole(const sgt_vocab *v, const uint8_t *s, size_t n, sgt_id *ids)
{
    const uint32_t whole = sgt_vocab_whole(v, s, n);
    if (whole != SGT_NO_TOKEN) *ids = (sgt_id)whole;
    return whole != SGT_NO_TOKEN;
}

/* Divide the n bytes at s into the tokens that exist before the first merge, and store the ids of
 * these tokens in ids[]. The ids are numbered in merge order (bpe.h). Return the number of ids, or
 * 0 if there would be more than `most`.
 *
 * A UTF-8 character becomes a single token if its bytes always merge with each other before any of
 * these bytes merges with a byte outside the character (sgt_vocab_character). Every other byte
 * becomes a token by itself. For each id except the last, merged[i] is set to the id of the token
 * that ids[i] and ids[i + 1] merge to. */
static inline size_t begin_with_characters(const sgt_vocab *v, const uint8_t *s, size_t n,
                                           sgt_id *ids, sgt_id *merged, size_t most)
{
    size_t count = 0;
    for (size_t i = 0, len; i < n; i += len) {
        if (count == most) return 0;
        const uint32_t character = sgt_vocab_character(v, s, i, n, &len);
        ids[count] = (sgt_id)(character ? character : v->byte_id[s[i]]);
        if (count) merged[count - 1] = (sgt_id)sgt_pair(&v->pairs, ids[count - 1], ids[count]);
        count++;
    }
    return count;
}

#endif
