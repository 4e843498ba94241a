/* split_blocks.h: GPT-2's split rule over 64 bytes at a time, as algebra on bit masks: what the vector levels of split.c
 * share. A level brings two functions of its own: one that finds the classes of 64 bytes, one that turns a mask into
 * offsets. Bit i of a mask is byte i of the block.
 *
 * A piece starts at a byte
 *   - that is no white space, where the class changes, unless U+0020 comes before it: that is where the piece starts;
 *   - that is white space after something else: \s+ begins;
 *   - that begins the last white-space character before something else: \s+(?!\S) left it over, to join what follows
 *     or to stand alone. White space that ends the text stays whole: past the end we read spaces.
 * And contractions: a quote where a piece starts, with s, d, m, t, ll, ve or re behind it, has no piece start at its
 * letter and one behind. All of the letters of a quote, and the byte that follows a block, are looked at ahead; what
 * came before is carried. Ill-formed bytes are in no class's mask, so they are "other", as split.h has it. */
#ifndef SGT_SPLIT_BLOCKS_H
#define SGT_SPLIT_BLOCKS_H

#include <string.h>

#include "split.h"
#include "unicode.h"

#define SPLIT_INLINE static inline __attribute__((always_inline, unused))

enum { SPLIT_READ = 72 }; /* bytes that may be read from a block's beginning on */

typedef struct split_block {
    uint64_t letter, number, space; /* every byte of a character has its class */
    uint64_t blank, quote;          /* U+0020, ' */
    uint64_t ascii_space, wide_space; /* white space of one byte; the first byte of any other */
} split_block;

/* The classes of p[0..64). Of a character that goes on in the next block those bytes are left in s. */
typedef void split_look(const uint8_t *p, sgt_splitter *s, split_block *b);
/* The quotes, of `quotes`, that are followed by one of s, d, m, t (two) or of ll, ve, re (three). */
typedef void split_contractions(const uint8_t *p, uint64_t quotes, uint64_t *two, uint64_t *three);
/* ends[k] = base + place of the k-th bit of starts. May write 64 ends. */
typedef void split_flatten(uint32_t *ends, uint64_t starts, uint32_t base);

/* Where the characters of p[0..64) begin that a piece may be cut before. from 0: p[-1] is there too; 1: p[0] starts the
 * text. */
typedef uint64_t split_cut(const sgt_cuts *c, const uint8_t *p, unsigned from);

typedef struct split_level {
    split_look *look;
    split_contractions *contractions;
    split_flatten *flatten;
    split_cut *cut;
} split_level;

/* 1: white space. 2: white space may start with it. */
extern const uint8_t sgt_split_space[256];

/* Whether p starts with white space past ASCII. */
static inline int split_wide_space(const uint8_t *p)
{
    unsigned two = (unsigned)p[0] << 8 | p[1], three = two << 8 | p[2];
    if (p[0] == 0xC2) return two == 0xC285 || two == 0xC2A0;
    if (two == 0xE280) return p[2] - 0x80u <= 0x0A || p[2] == 0xA8 || p[2] == 0xA9 || p[2] == 0xAF;
    return three == 0xE19A80 || three == 0xE2819F || three == 0xE38080;
}

static inline int split_is_space(const uint8_t *p)
{
    return sgt_split_space[*p] == 2 ? split_wide_space(p) : sgt_split_space[*p];
}

/* Of white space of more than one byte, what is the last before something else. */
static inline uint64_t split_last_wide(const uint8_t *p, const split_block *b)
{
    uint64_t last = 0;
    for (uint64_t left = b->wide_space; left; left &= left - 1) {
        unsigned at = (unsigned)__builtin_ctzll(left), next = at + (p[at] == 0xC2 ? 2 : 3);
        int space = next < 64 ? (int)(b->space >> next & 1) : split_is_space(p + next);
        last |= (uint64_t)!space << at;
    }
    return last;
}

/* Where pieces start in p[0..64), the block after what s carries. */
SPLIT_INLINE uint64_t split_starts(const split_level *level, sgt_splitter *s, const uint8_t *p)
{
    split_block b;
    level->look(p, s, &b);
    uint64_t other = ~(b.letter | b.number | b.space);
    uint64_t letter = b.letter << 1 | s->letter >> 63, number = b.number << 1 | s->number >> 63; /* of the byte before */
    uint64_t space = b.space << 1 | s->space >> 63, blank = b.blank << 1 | s->blank >> 63;
    uint64_t changed = (b.letter & ~letter) | (b.number & ~number) | (other & ~(other << 1 | s->other >> 63));
    uint64_t next = sgt_split_space[p[64]]; /* is it white space? asked only of those that end a block */
    if (next > 1 && b.space >> 63) next = (uint64_t)split_wide_space(p + 64);
    uint64_t last = b.ascii_space & ~(b.space >> 1 | next << 63);
    if (b.wide_space) last |= split_last_wide(p, &b);
    uint64_t starts = (changed & ~blank) | (b.space & ~space) | last;
    uint64_t quotes = b.quote & starts, clear = s->clear, set = s->set;
    s->clear = s->set = 0;
    if (quotes) {
        uint64_t two, three;
        level->contractions(p, quotes, &two, &three);
        clear |= (two | three) << 1;
        set |= two << 2 | three << 3;
        s->clear = (two | three) >> 63;
        s->set = two >> 62 | three >> 61;
    }
    s->letter = b.letter;
    s->number = b.number;
    s->space = b.space;
    s->other = other;
    s->blank = b.blank;
    return (starts & ~clear) | set;
}

SPLIT_INLINE uint64_t split_cut_bytes(const sgt_cuts *c, const uint8_t *p, unsigned from)
{
    uint64_t cuts = 0;
    for (unsigned i = 0; i < 64; i += 8) {
        uint64_t w;
        memcpy(&w, p + i, sizeof w);
        for (uint64_t firsts = w & w << 1 & 0x8080808080808080u; firsts; firsts &= firsts - 1) {
            unsigned at = i + (unsigned)__builtin_ctzll(firsts) / 8;
            if (at >= from) cuts |= (uint64_t)sgt_cuts_at(c, p + at) << at;
        }
    }
    return cuts;
}

/* The starts of the next block. The end of the text is one; its beginning is none. */
SPLIT_INLINE uint64_t split_next(const split_level *level, sgt_splitter *s)
{
    const uint8_t *p = s->text + s->block;
    size_t left = s->n - s->block, at = s->block;
    uint8_t room[1 + 2 * SPLIT_READ];
    if (left < SPLIT_READ) {
        memset(room, ' ', sizeof room);
        if (at) room[0] = p[-1];
        if (left) memcpy(room + 1, p, left);
        p = room + 1;
    }
    uint64_t starts = split_starts(level, s, p);
    if (s->cuts) starts |= level->cut(s->cuts, p, at == 0);
    if (left < 64) starts = (starts & (((uint64_t)1 << left) - 1)) | (uint64_t)1 << left;
    s->block += 64;
    return at ? starts : starts & ~(uint64_t)1;
}

/* Of the starts that s holds back, one after the other. Says where the last one is. */
static inline size_t split_take(sgt_splitter *s, uint32_t *ends, size_t max)
{
    size_t count = 0, from = s->at;
    for (; s->starts && count < max; s->starts &= s->starts - 1) {
        size_t end = s->block - 64 + (unsigned)__builtin_ctzll(s->starts);
        if (end - from >= UINT32_MAX && count) break;
        ends[count++] = end - from >= UINT32_MAX ? UINT32_MAX : (uint32_t)(end - from);
        s->at = end;
    }
    return count;
}

SPLIT_INLINE size_t split_blocks(const split_level *level, sgt_splitter *s, uint32_t *ends, size_t max)
{
    size_t from = s->at, count = split_take(s, ends, max);
    if (s->starts) return count;
    sgt_splitter local = *s; /* in registers */
    while (local.block <= local.n && max - count >= 64 && local.block - from < UINT32_MAX - 64) {
        uint32_t base = (uint32_t)(local.block - from);
        uint64_t starts = split_next(level, &local);
        level->flatten(ends + count, starts, base);
        count += (size_t)__builtin_popcountll(starts);
    }
    *s = local;
    if (count) {
        s->at = from + ends[count - 1];
        return count;
    }
    while (s->block <= s->n && !s->starts) s->starts = split_next(level, s);
    return split_take(s, ends, max);
}

#endif
