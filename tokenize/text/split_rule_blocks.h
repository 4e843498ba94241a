/* split_rule_blocks.h: the rules of rules.h over 64 bytes at a time, as algebra on bit masks, by
 * the functions of split_blocks.h's levels. Bit i of a mask is byte i of the block.
 *
 * A piece starts at a byte
 *   - that begins a run of letters, unless white space other than a newline is before it, or one
 *     character alone that is neither letter, number nor white space: a word takes that along;
 *   - that begins a run of such characters, unless U+0020 is before it, which they take along;
 *   - that begins a run of numbers, and after each `digits` of them;
 *   - that begins a run of white space, without the newlines that such characters take along;
 *   - behind the last newline in a run of white space;
 *   - that begins the last white-space character before another class, unless it is a newline;
 *   - behind a contraction.
 * By case, marks are letters, and a contraction belongs to the word before it. A piece also starts at
 * a run of upper case
 *   - behind lower case, or behind letters without case that follow lower case;
 *   - behind a letter without case, if the run ends a run of letters.
 * Some blocks are hard: those with a slash behind a newline, a mark without a letter or mark before
 * it, a contraction and letters without case, or such an upper-case run that reaches the block's end.
 * They are left to split_rule.c, after which the next blocks begin anew where a piece does. */
#ifndef SGT_SPLIT_RULE_BLOCKS_H
#define SGT_SPLIT_RULE_BLOCKS_H

#include "tokenize/text/rules.h"
#include "tokenize/text/split_blocks.h"
#include "tokenize/text/split_levels.h"
#include "tokenize/text/utf8.h"

/* Return whether white space without a newline leads from offset `at` to a newline, or to the end
 * of the text if that counts. */
static inline int rule_line_goes_on(const sgt_splitter *s, size_t at)
{
    for (; at < s->n; at++) {
        uint8_t x = s->text[at];
        if (x == '\n' || x == '\r') return 1;
        if (x == ' ' || (x >= '\t' && x <= '\r')) continue;
        if (x < 0x80) return 0;
        size_t len;
        if (!sgt_rule_is_space(s->text + at, s->n - at, &len)) return 0;
        at += len - 1;
    }
    return s->rule->whole_end;
}

/* `lines` are places after newlines. Return those after which no other newline follows in the same
 * white space. space: white space without newlines. */
static inline uint64_t rule_lines(const sgt_splitter *s, uint64_t lines, uint64_t space,
                                  uint64_t newline, size_t next)
{
    uint64_t kept = 0;
    for (; lines; lines &= lines - 1) {
        uint64_t line = lines & -lines, end = ~space & ~(line - 1);
        int goes_on = end ? ((end & -end) & newline) != 0 : rule_line_goes_on(s, next);
        if (!goes_on) kept |= line;
    }
    return kept;
}

/* Return the mask of starts of pieces of numbers. before: the bytes of numbers, moved up by one. */
static inline uint64_t rule_numbers(const uint8_t *p, unsigned digits, uint64_t number,
                                    uint64_t before, sgt_split_carry *c)
{
    uint64_t starts = 0;
    unsigned count = c->digits;
    for (; number; number &= number - 1) {
        unsigned at = (unsigned)__builtin_ctzll(number);
        if ((p[at] & 0xC0) == 0x80) continue;
        if (!(before >> at & 1) || count == digits) count = 0;
        if (!count++) starts |= (uint64_t)1 << at;
    }
    c->digits = count;
    return starts;
}

SPLIT_INLINE uint64_t rule_number_starts(const uint8_t *p, unsigned digits, const split_block *b,
                                         uint64_t number, sgt_split_carry *c)
{
    uint64_t before = number << 1 | c->number, longer = number & before;
    /* is a run longer in bytes than a piece is in numbers? This is rare */
    for (unsigned i = 1; i < digits; i++) longer &= longer << 1;
    int begun = (c->number & number) != 0;
    c->number = number >> 63;
    if (longer || begun || (number & b->wide)) return rule_numbers(p, digits, number, before, c);
    c->digits = number == ~(uint64_t)0 ? 64 : (unsigned)__builtin_clzll(~number);
    return number & ~before;
}

/* Return the mask of the bytes right after these characters. Those past the block go into
 * *carry. */
SPLIT_INLINE uint64_t rule_behind(const uint8_t *p, uint64_t starts, uint64_t wide, uint64_t *carry)
{
    uint64_t narrow = starts & ~wide, behind = narrow << 1 | *carry;
    *carry = narrow >> 63;
    for (uint64_t left = starts & wide; left; left &= left - 1) {
        unsigned at = (unsigned)__builtin_ctzll(left);
        uint32_t cp;
        unsigned next = at + sgt_utf8_unit_in_four(p + at, &cp);
        if (next < 64) behind |= (uint64_t)1 << next;
        else *carry |= (uint64_t)1 << (next - 64);
    }
    return behind;
}

/* Return the places right after the contractions that begin at these quotes. by_case: a quote at
 * the end of another contraction begins a word instead; the other quotes are removed from
 * *starts. */
SPLIT_INLINE uint64_t rule_contractions(const uint8_t *p, uint64_t quotes, int by_case,
                                        uint64_t *starts, uint64_t *carry)
{
    uint64_t behind = *carry;
    *carry = 0;
    for (; quotes; quotes &= quotes - 1) {
        unsigned at = (unsigned)__builtin_ctzll(quotes), len;
        if (by_case && (behind >> at & 1)) continue;
        if (!(len = (unsigned)sgt_rule_contraction(p + at, 4))) continue;
        if (by_case) *starts &= ~(quotes & -quotes);
        if (at + len < 64) behind |= (uint64_t)1 << (at + len);
        else *carry |= (uint64_t)1 << (at + len - 64);
    }
    return behind;
}

/* Return the mask of starts of pieces of white space. newline: all newlines; taken: those that
 * belong to the piece before. */
SPLIT_INLINE uint64_t rule_blank_starts(const sgt_splitter *s, sgt_split_carry *c,
                                        const uint64_t in[2], const uint8_t *p, size_t at,
                                        const split_block *b, uint64_t newline, uint64_t taken)
{
    const uint64_t space = b->low & b->high, blanks = space & ~taken, plain = space & ~newline,
                   ends = newline & ~taken;
    uint64_t lines = plain & (ends << 1 | c->line), next = sgt_split_space[p[64]];
    /* does a newline follow white space, in this block or perhaps in the next? */
    if (lines && ((newline & plain << 1) || plain >> 63))
        lines = rule_lines(s, lines, plain, newline,
                           at + 64 + (size_t)__builtin_popcountll(in[0] & in[1]));
    if (next > 1 && space >> 63) next = (uint64_t)split_wide_space(p + 64);
    uint64_t starts = (blanks & ~(blanks << 1 | c->blanks)) | lines |
                      (b->narrow_space & ~newline & ~(space >> 1 | next << 63));
    if (b->wide_space) starts |= split_last_wide(p, b);
    c->blanks = blanks >> 63;
    c->line = ends >> 63;
    return starts;
}

/* The letters and marks of a block by case. both: letters without case, and marks. */
typedef struct rule_cases {
    uint64_t upper, lower, both, mark;
} rule_cases;

/* Add the bytes of characters of this sgt_kind. */
static inline void rule_add_case(rule_cases *k, unsigned kind, uint64_t bytes)
{
    if (kind == SGT_KIND_LU || kind == SGT_KIND_LT) k->upper |= bytes;
    if (kind == SGT_KIND_LL) k->lower |= bytes;
    if (kind == SGT_KIND_LM || kind == SGT_KIND_LO || kind == SGT_KIND_MARK) k->both |= bytes;
    if (kind == SGT_KIND_MARK) k->mark |= bytes;
}

/* Add the characters that are not ASCII, whose bytes are `wide`. */
static inline void rule_wide_cases(const uint8_t *p, uint64_t wide, sgt_split_carry *c,
                                   rule_cases *k)
{
    uint64_t bytes = ((uint64_t)1 << c->over) - 1;
    rule_add_case(k, c->kind, bytes);
    c->over = 0;
    for (uint64_t left = wide & ~bytes; left; left &= ~bytes) {
        const unsigned at = (unsigned)__builtin_ctzll(left);
        uint32_t cp;
        const unsigned len = (unsigned)sgt_utf8_unit_in_four(p + at, &cp);
        bytes = (((uint64_t)1 << len) - 1) << at;
        c->kind = sgt_unicode_kind(cp);
        rule_add_case(k, c->kind, bytes);
        if (at + len > 64) c->over = at + len - 64;
    }
}

/* Return the mask of starts of upper-case runs that begin a piece. letter: letters and marks. Set
 * *hard to 1 if the text behind the block decides whether a run does. */
SPLIT_INLINE uint64_t rule_case_starts(const rule_cases *k, uint64_t letter, sgt_split_carry *c,
                                       int *hard)
{
    /* letters without case that follow lower case: the addition carries through each run of them */
    const uint64_t below = k->lower << 1 | c->lower;
    uint64_t sum, starts = 0;
    const uint64_t over = __builtin_add_overflow(k->both, k->both & below, &sum);
    const uint64_t behind = below | (sum & ~k->both);
    for (uint64_t left = k->upper & (k->both << 1 | c->both); left; left &= left - 1) {
        const uint64_t start = left & -left, rest = ~k->upper & ~(start - 1);
        if (!rest) *hard = 1;
        if (!(rest & -rest & letter)) starts |= start;
    }
    c->lower = k->lower >> 63 | over;
    c->both = k->both >> 63;
    return starts | (k->upper & behind);
}

/* Return the mask of piece starts in p[0..64), the block at offset `at`. Set *hard to 1 if the
 * block is hard (see above). */
SPLIT_INLINE uint64_t rule_starts(const split_level *level, const sgt_splitter *s,
                                  sgt_split_carry *c, uint64_t in[2], const uint8_t *p, size_t at,
                                  int by_case, int *hard)
{
    split_block b = {0};
    rule_cases k = {0};
    level->look(p, &b);
    if (b.wide) level->look_wide(p, in, &b);
    if (b.wide && by_case) rule_wide_cases(p, b.wide, c, &k);
    const uint64_t newline = level->equal(p, '\n') | level->equal(p, '\r'),
                   letter = (b.low & ~b.high) | k.mark, other = ~(b.low | b.high) & ~k.mark,
                   plain = b.low & b.high & ~newline, after_letter = letter << 1 | c->letter;
    if (by_case && ((level->equal(p, '/') & (newline << 1 | c->newline)) || k.mark & ~after_letter))
        return *hard = 1, 0;

    /* newlines right after such characters; the addition carries through a run of newlines */
    const uint64_t taken = newline & ~(newline + (newline & (other << 1 | c->takes)));
    uint64_t starts = rule_blank_starts(s, c, in, p, at, &b, newline, taken);
    uint64_t others = other & ~(other << 1 | c->other) & ~(b.blank << 1 | c->blank);
    const uint64_t behind = rule_behind(p, others, b.wide, &c->clear);
    starts |= letter & ~after_letter & ~(plain << 1 | c->plain) & ~behind;
    starts |= rule_number_starts(p, s->rule->digits, &b, b.high & ~b.low, c);
    const uint64_t quotes = b.quote & (by_case ? after_letter : others);
    uint64_t contracted = 0;
    if (quotes | c->set) contracted = rule_contractions(p, quotes, by_case, &others, &c->set);
    starts |= others | contracted;
    if (by_case) {
        if (k.both && (contracted | c->set)) return *hard = 1, 0;
        k.upper |= level->upper(p);
        k.lower |= letter & ~(k.upper | k.both);
        /* not inside a contraction, whose last letter is right before the place after it */
        starts |= rule_case_starts(&k, letter, c, hard) & ~(contracted >> 1 | c->set << 63);
        c->newline = newline >> 63;
    }
    c->takes = (other | taken) >> 63;
    c->other = other >> 63;
    c->blank = b.blank >> 63;
    c->letter = letter >> 63;
    c->plain = plain >> 63;
    if (!s->cuts) return starts;
    if (by_case && starts && !*hard) c->piece = at + 63 - (unsigned)__builtin_clzll(starts);
    return b.wide ? starts | level->cut(s->cuts, p, at == s->base) : starts;
}

/* Return what split_block_at returns, for the rules of rules.h. */
SPLIT_INLINE uint64_t rule_block_at(const split_level *level, const sgt_splitter *s,
                                    sgt_split_carry *c, uint64_t in[2], size_t at, int by_case,
                                    int *hard)
{
    const uint8_t *p = s->text + at;
    size_t left = s->n - at;
    unsigned begin = at == s->base;
    uint8_t room[1 + 2 * SPLIT_READ];
    if (left < SPLIT_READ) p = split_end(room, p, left, !begin);
    uint64_t starts = rule_starts(level, s, c, in, p, at, by_case, hard);
    if (left < 64) starts = (starts & (((uint64_t)1 << left) - 1)) | (uint64_t)1 << left;
    return starts & ~(uint64_t)begin;
}

/* Do what split_blocks does, for the rules of rules.h. Stop before a hard block, and set s->hard to
 * its end. */
SPLIT_INLINE size_t rule_blocks(const split_level *level, sgt_splitter *s, uint32_t *ends,
                                size_t max, int by_case)
{
    size_t from = s->at, count = split_take(s, ends, max);
    if (s->starts) return count;
    sgt_split_carry c = s->carry;
    uint64_t in[2] = {s->in[0], s->in[1]};
    size_t at = s->block;
    int hard = 0;
    for (; at <= s->n && max - count >= 64 && at - from < UINT32_MAX - 64; at += 64) {
        uint64_t starts = rule_block_at(level, s, &c, in, at, by_case, &hard);
        if (hard) break;
        level->flatten(ends + count, starts, (uint32_t)(at - from));
        count += (size_t)__builtin_popcountll(starts);
    }
    if (count) {
        s->at = from + ends[count - 1];
    } else {
        for (; at <= s->n && !s->starts && !hard; at += hard ? 0 : 64)
            s->starts = rule_block_at(level, s, &c, in, at, by_case, &hard);
        if (hard) s->starts = 0;
    }
    if (hard) s->hard = at + 64 < s->n ? at + 64 : s->n;
    s->block = at;
    s->carry = c;
    s->in[0] = in[0];
    s->in[1] = in[1];
    return count ? count : split_take(s, ends, max);
}

SPLIT_INLINE size_t rule_split(const split_level *level, sgt_splitter *s, uint32_t *ends,
                               size_t max)
{
    if (!s->rule->cased) return rule_blocks(level, s, ends, max, 0);
    if (s->at >= s->hard && s->at >= s->end) {
        size_t count = rule_blocks(level, s, ends, max, 1);
        if (count || s->at >= s->hard) return count;
    }
    return sgt_split_rule_hard(s, ends, max);
}

#endif
