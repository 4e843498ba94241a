/* split_blocks.h: GPT-2's split rule over 64 bytes at a time, as algebra on bit masks: what the
 * levels of split.c share. A level brings functions of its own that find the classes of 64 bytes,
 * and one that turns a mask into offsets. Bit i of a mask is byte i of the block.
 *
 * A piece starts at a byte
 *   - where the class changes, unless U+0020 comes before it: then the piece starts there;
 *   - that begins the last white-space character before something else: \s+(?!\S) left it over, to join what follows
 *     or to stand alone. White space that ends the text stays whole: past the end we read spaces.
 * And contractions: a quote where a piece starts, with s, d, m, t, ll, ve or re behind it, has no
 * piece start at its letter and one behind. The letters of a quote and the character behind a block
 * are looked at ahead, wherever they are; what came before is carried. Ill-formed bytes are in no
 * class's mask, so they are "other", as split.h has it.
 *
 * What it gives: nanoseconds a piece, in a loop over 0.8 MB of English / code / many scripts (4.4,
 * 2.9 and 6.0 bytes a piece), one thread, AMD EPYC Zen 4, 2026-11-21:
 *   a character at a time (split.c's definition; 70 MB)    15.3   9.7  16.1
 *   plain C, words of eight bytes                           5.6   3.4  11.0
 *   AVX2                                                    1.86  1.16  3.62
 *   AVX-512 as first written, three masks of classes        1.05  0.52  2.44
 *     two bits of a class, read by their place; carry in registers   0.88  0.45  2.00
 *     characters past ASCII looked up in line, one copy     0.77  0.39  1.70
 * What did not help: contractions without a branch (AVX-512: 1.03, 0.54, 2.25 against 0.90, 0.46,
 * 2.00), two- and three-byte characters looked up without asking whether there are any (0.91, 0.43,
 * 2.10), four ends at a time in plain C (code: 4.6 against 3.6). No text is far slower: 16 MiB of
 * random bytes go at 0.18 / 1.0 / 1.7 GB/s (plain, AVX2, AVX-512), of random characters of two
 * bytes 0.24 / 0.40 / 2.4, of three 0.36 / 0.77 / 1.1, of four, which are looked up one by one,
 * 0.25 / 0.38 / 0.40. */
#ifndef SGT_SPLIT_BLOCKS_H
#define SGT_SPLIT_BLOCKS_H

#include <string.h>

#include "split.h"
#include "unicode.h"

#define SPLIT_INLINE static inline __attribute__((always_inline, unused))

enum { SPLIT_READ = 72 }; /* bytes that may be read from a block's beginning on */

typedef struct split_block {
    uint64_t low, high;    /* the bits of an sgt_class: each byte of a character has its class */
    uint64_t blank, quote; /* U+0020, ' */
    uint64_t wide;         /* not ASCII */
    uint64_t narrow_space, wide_space; /* white space of ASCII; the first byte of any other */
} split_block;

typedef struct split_level {
    /* What is ASCII of p[0..64): fills *b but for wide_space. */
    void (*look)(const uint8_t *p, split_block *b);
    /* What is not: adds to low and high, and finds wide_space. in[0] and in[1], for low and high:
     * on entry this block's bytes of a character that began in the one before, on return the next
     * one's of a character that begins here. */
    void (*look_wide)(const uint8_t *p, uint64_t in[2], split_block *b);
    /* The quotes, of `quotes`, that are followed by one of s, d, m, t (two) or of ll, ve, re
     * (three). */
    void (*contractions)(const uint8_t *p, uint64_t quotes, uint64_t *two, uint64_t *three);
    /* ends[k] = base + place of the k-th bit of starts. May write 64 ends. */
    void (*flatten)(uint32_t *ends, uint64_t starts, uint32_t base);
    /* Where the characters of p[0..64) begin that a piece may be cut before. from 0: p[-1] is there
     * too; 1: p[0] starts the text. */
    uint64_t (*cut)(const sgt_cuts *c, const uint8_t *p, unsigned from);
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
        int space = next < 64 ? (int)((b->low & b->high) >> next & 1) : split_is_space(p + next);
        last |= (uint64_t)!space << at;
    }
    return last;
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

/* Where pieces start in p[0..64), the block after what c and in carry. begin: 1 where the text
 * begins. */
SPLIT_INLINE uint64_t split_starts(const split_level *level, sgt_split_carry *c, uint64_t in[2],
                                   const sgt_cuts *cuts, const uint8_t *p, unsigned begin)
{
    split_block b = {0};
    level->look(p, &b);
    if (b.wide) level->look_wide(p, in, &b);
    uint64_t space = b.low & b.high, before = b.blank << 1 | c->blank >> 63;
    uint64_t changed =
        (b.low ^ (b.low << 1 | c->low >> 63)) | (b.high ^ (b.high << 1 | c->high >> 63)) | begin;
    /* is it white space? asked only of those that end a block */
    uint64_t next = sgt_split_space[p[64]];
    if (next > 1 && space >> 63) next = (uint64_t)split_wide_space(p + 64);
    uint64_t last = b.narrow_space & ~(space >> 1 | next << 63);
    if (b.wide_space) last |= split_last_wide(p, &b);
    uint64_t starts = (changed & ~before) | last, quotes = b.quote & starts;
    starts = (starts & ~c->clear) | c->set;
    c->clear = c->set = 0;
    if (quotes) {
        uint64_t two, three;
        level->contractions(p, quotes, &two, &three);
        starts = (starts & ~((two | three) << 1)) | two << 2 | three << 3;
        c->clear = (two | three) >> 63;
        c->set = two >> 62 | three >> 61;
    }
    c->low = b.low;
    c->high = b.high;
    c->blank = b.blank;
    if (cuts && b.wide) starts |= level->cut(cuts, p, begin);
    return starts;
}

/* As much of the text's end as is left, in room: a byte of what came before (where `before`) and
 * spaces behind. */
static inline const uint8_t *split_end(uint8_t room[1 + 2 * SPLIT_READ], const uint8_t *p,
                                       size_t left, int before)
{
    memset(room, ' ', 1 + 2 * SPLIT_READ);
    if (before) room[0] = p[-1];
    if (left) memcpy(room + 1, p, left);
    return room + 1;
}

/* The starts of block `at`. The end of the text is one; its beginning is none. */
SPLIT_INLINE uint64_t split_block_at(const split_level *level, const sgt_splitter *s,
                                     sgt_split_carry *c, uint64_t in[2], size_t at)
{
    const uint8_t *p = s->text + at;
    size_t left = s->n - at;
    unsigned begin = !at;
    uint8_t room[1 + 2 * SPLIT_READ];
    if (left < SPLIT_READ) p = split_end(room, p, left, !begin);
    uint64_t starts = split_starts(level, c, in, s->cuts, p, begin);
    if (left < 64) starts = (starts & (((uint64_t)1 << left) - 1)) | (uint64_t)1 << left;
    return starts & ~(uint64_t)begin;
}

/* Of the starts that s holds back, one after the other. */
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

SPLIT_INLINE size_t split_blocks(const split_level *level, sgt_splitter *s, uint32_t *ends,
                                 size_t max)
{
    size_t from = s->at, count = split_take(s, ends, max);
    if (s->starts) return count;
    /* Whole blocks, while there is room for what they may hold. What is carried is in registers. */
    sgt_split_carry c = s->carry;
    uint64_t in[2] = {s->in[0], s->in[1]};
    size_t at = s->block;
    for (; at <= s->n && max - count >= 64 && at - from < UINT32_MAX - 64; at += 64) {
        uint64_t starts = split_block_at(level, s, &c, in, at);
        level->flatten(ends + count, starts, (uint32_t)(at - from));
        count += (size_t)__builtin_popcountll(starts);
    }
    if (count) {
        s->at = from + ends[count - 1];
    } else { /* one that holds some, which are handed out as there is room */
        for (; at <= s->n && !s->starts; at += 64) s->starts = split_block_at(level, s, &c, in, at);
    }
    s->block = at;
    s->carry = c;
    s->in[0] = in[0];
    s->in[1] = in[1];
    return count ? count : split_take(s, ends, max);
}

#endif
