/* width.h: ids of either width, for the files that are compiled for both: with SGT_FOR_wide, which
 * the Makefile defines, for 4-byte ids, else for 2-byte ids:
 *
 *     sgt_id      an id in merge order, or a public one
 *     NO_PAIR     "no merge" as a rank: more than any id. (Id 65,535 of a narrow vocabulary can only
 *                 be the end of text, which no merge makes.)
 *     NO_ID       an id that no token has, for the right half of a pair: wide ones have 20 bits
 *     PAIR        looks up a pair (vocab.h)
 *     WIDTH(f)    the name of a function or table of this width
 *     publish     replaces ids in merge order by public ones */
#ifndef SGT_WIDTH_H
#define SGT_WIDTH_H

#include "tokenize/vocab/vocab.h"

#ifdef SGT_FOR_wide
typedef uint32_t sgt_id;
#define NO_PAIR UINT32_MAX
#define NO_ID 0xFFFFF
#define PAIR sgt_pair_wide
#define WIDTH(f) f##_32
#else
typedef uint16_t sgt_id;
#define NO_PAIR UINT16_MAX
#define NO_ID UINT16_MAX
#define PAIR sgt_pair
#define WIDTH(f) f##_16
#endif

static inline void publish(const sgt_vocab *v, sgt_id *ids, size_t count)
{
    if (v->ids)
        for (size_t i = 0; i < count; i++) ids[i] = (sgt_id)v->ids[ids[i]];
}

#endif
