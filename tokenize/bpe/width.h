/* width.h: defines names that stand for one id width, for files that are compiled once per width.
 * The Makefile defines SGT_FOR_wide for 4-byte ids; without it, ids are 2 bytes wide:
 *
 *     sgt_id      type of an id, either in merge order or public (as users see it)
 *     NO_PAIR     "these two tokens do not merge": larger than the id of any merged token. (With
 *                 2-byte ids, id 65,535 can only be the end of text, which no merge produces.)
 *     NO_ID       id that no token has. It stands for a missing right neighbour when a pair is
 *                 looked up, so it must fit the 20 bits that an id has in a pair's key.
 *     WIDTH(f)    name of the function or table f for this width
 *     publish     replaces ids in merge order by public ids
 *     take_whole  stores the id of a piece that is a token which no merges produce
 *     begin_with_characters   stores the tokens that merging a piece can start with */
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

/* If the n bytes at s are exactly those of a token that no merges produce, store the token's public
 * id in ids[0] and return 1. Otherwise return 0. */
static inline int take_whole(const sgt_vocab *v, const uint8_t *s, size_t n, sgt_id *ids)
{
    const uint32_t whole = sgt_vocab_whole(v, s, n);
    if (whole != SGT_NO_TOKEN) *ids = (sgt_id)whole;
    return whole != SGT_NO_TOKEN;
}

/* Divide the n bytes at s into the tokens with which merging can start, and store their ids, in
 * merge order, in ids[]. Return the number of ids, or 0 if there would be more than `most`.
 *
 * A character becomes one token if its bytes are certain to merge before any of them merges with
 * bytes outside the character (sgt_vocab_character). Every other byte becomes a token by itself.
 * merged[i] is set to the token that ids[i] and ids[i + 1] merge to, for all ids but the last. */
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
