/* split_blocks.h: splits text into pre-tokens (here called pieces) by GPT-2's rule, 64 bytes at a
 * time. The code computes with bit masks in which bit i stands for byte i of the 64-byte block. All
 * CPU levels (plain C, AVX2, AVX-512, NEON) share it. Each level supplies functions that find the
 * character classes of 64 bytes, and a function that converts a mask to offsets.
 *
 * A piece starts at a byte
 * - whose class differs from the class of the byte before it, unless that byte is U+0020, which
 *   then belongs to the piece;
 * - that begins the last character of a run of white space, if another class follows: \s+(?!\S)
 *   matches the run without this character, which starts the next piece.
 *
 * White space at the end of the text is one piece, because bytes after the end are read as spaces.
 *
 * A contraction is an apostrophe at a piece start, followed by s, d, m, t, ll, ve or re. No piece
 * starts at the letter after the apostrophe, and a piece starts directly after the contraction. The
 * code reads past the end of a block to see the letters after an apostrophe and the character after
 * the block. It keeps the state at the end of each block for the next one (sgt_split_carry).
 * Ill-formed bytes are in no class's mask, so they count as "other", as split.h requires.
 *
 * Nanoseconds per piece, for 0.8 MB of English / code / many scripts (4.4, 2.9 and 6.0 bytes per
 * piece), one thread, AMD EPYC Zen 4, 2026-11-21:
 *   one character at a time (split.c)                      15.3   9.7  16.1
 *   plain C, eight bytes at a time                          5.6   3.4  11.0
 *   AVX2                                                    1.86  1.16  3.62
 *   AVX-512                                                 0.77  0.39  1.70
 * (The first row was measured on 70 MB.)
 *
 * Three variants were slower (nanoseconds per piece, for the same texts):
 *   contractions without branches (AVX-512)     1.03 0.54 2.25, against 0.90 0.46 2.00 in that run
 *   unconditional look-ups of two- and three-byte characters (AVX-512)   0.91 0.43 2.10
 *   storing the ends of four pieces at a time (plain C)    code: 4.6 against 3.6
 *
 * Speed on random input, in GB/s (plain C, AVX2, AVX-512):
 *   16 MiB of random bytes                                 0.18  1.0   1.7
 *   random two-byte characters                             0.24  0.40  2.4
 *   random three-byte characters                           0.36  0.77  1.1
 *   random four-byte characters, looked up one by one      0.25  0.38  0.40 */
#ifndef SGT_SPLIT_BLOCKS_H
#define SGT_SPLIT_BLOCKS_H

#include <string.h>

#include "tokenize/text/split.h"
#include "tokenize/text/unicode.h"
#include "tokenize/text/utf8.h"

/* ---- CPU levels ----
 *
 * Implementations of sgt_split, one for each CPU level (plain C, NEON, AVX2, AVX-512). All return
 * the same results. Only split.c and tests use them. */

size_t sgt_split_plain(sgt_splitter *s, uint32_t *ends, size_t max);
size_t sgt_split_neon(sgt_splitter *s, uint32_t *ends, size_t max); /* aarch64 only */
#if defined(__x86_64__)
size_t sgt_split_avx2(sgt_splitter *s, uint32_t *ends, size_t max);
/* requires a CPU on which sgt_cpu_vbmi2() is true */
size_t sgt_split_avx512(sgt_splitter *s, uint32_t *ends, size_t max);
#endif

/* Implement sgt_split for text that cannot be split 64 bytes at a time: split one character at a
 * time, by a rule other than GPT-2's, up to offset s->hard, where such text ends. */
size_t sgt_split_hard(sgt_splitter *s, uint32_t *ends, size_t max);
/* Return the length in bytes of the contraction (such as 's or 'll) at the start of the n bytes at
 * s, or 0 if they do not start with a contraction. s[0] must be an apostrophe. */
size_t sgt_rule_contraction(const uint8_t *s, size_t n);
/* Return 1 if the first character of the n bytes at s is white space, otherwise 0. Set *len to the
 * character's length in bytes. */
int sgt_rule_is_space(const uint8_t *s, size_t n, size_t *len);

/* ---- 64-bit words ----
 *
 * These functions classify the eight bytes of a 64-bit word at once. The result has a flag for each
 * byte of the word, in the top bit of the same byte. */

#define WORD_OF(x) ((x) * (uint64_t)0x0101010101010101u)

/* Return a word in which the top bit of each byte is 1 if that byte of x is at least `from`,
 * otherwise 0. The lower seven bits of each byte are undefined. All bytes of x must be below 0x80,
 * because the sum of a larger byte could carry into the next byte. */
static inline uint64_t word_at_least(uint64_t x, unsigned from) { return x + WORD_OF(0x80 - from); }

static inline uint64_t word_within(uint64_t x, unsigned from, unsigned count)
{
    return word_at_least(x, from) & ~word_at_least(x, from + count);
}

/* Return a word in which the top bit of each byte is 1 if that byte of w is an ASCII letter,
 * otherwise 0. The lower seven bits of each byte are undefined. */
static inline uint64_t word_letters(uint64_t w)
{
    return word_within((w & WORD_OF(0x7F)) | WORD_OF(0x20), 'a', 26) & ~w;
}

/* Return a word in which the top bit of each byte is 1 if that byte of w is an ASCII character from
 * `from` to `from + count - 1`, otherwise 0. The lower seven bits of each byte are undefined. */
static inline uint64_t word_ascii(uint64_t w, unsigned from, unsigned count)
{
    return word_within(w & WORD_OF(0x7F), from, count) & ~w;
}

static inline uint64_t word_equal(uint64_t w, char c)
{
    return ~word_at_least((w & WORD_OF(0x7F)) ^ WORD_OF((unsigned char)c), 1) & ~w;
}

/* ---- GPT-2's rule ---- */

#define SPLIT_INLINE static inline __attribute__((always_inline, unused))

/* Number of bytes that must be readable at the address of a block: the block's 64 bytes, and the
 * next eight, because a character or contraction that starts in the block can extend into them. */
enum { SPLIT_READ = 72 };

typedef struct split_block {
    /* Class (sgt_class) of each byte, which is the class of the character that contains the byte.
     * Bit i of `low` is the low bit of byte i's class, and bit i of `high` is the high bit. */
    uint64_t low, high;
    /* blank: mask of the bytes that are U+0020; quote: mask of the bytes that are ' */
    uint64_t blank, quote;
    uint64_t wide; /* mask of the bytes that are not ASCII */
    /* narrow_space: mask of the bytes that are ASCII white space; wide_space: mask of the first
     * bytes of non-ASCII white-space characters */
    uint64_t narrow_space, wide_space;
} split_block;

/* Classes (sgt_class) of the non-ASCII characters in a block of 64 bytes. If a character starts at
 * byte i, bit i of `low` is the low bit of its class, and bit i of `high` is the high bit. All
 * other bits are 0. */
typedef struct first_classes {
    uint64_t low, high;
} first_classes;

typedef struct split_level {
    /* Classify the ASCII bytes in the block of 64 bytes at p, and fill in all fields of *b except
     * wide_space. */
    void (*classify)(const uint8_t *p, split_block *b);
    /* Classify the non-ASCII characters in the block of 64 bytes at p: add their class bits to
     * b->low and b->high, and set b->wide_space. The last character of the previous block may
     * extend into this block. On entry, in[0] is the mask of its bytes in this block, or 0 if the
     * low bit of its class is 0. in[1] is such a mask for the high bit. On return, in[0] and in[1]
     * are set for the next block. */
    void (*classify_wide)(const uint8_t *p, uint64_t in[2], split_block *b);
    /* Find the contractions that start at the apostrophes in the mask `quotes`. Set *two to the
     * mask of the apostrophes that are followed by s, d, m or t. Set *three to the mask of the
     * apostrophes that are followed by ll, ve or re. */
    void (*contractions)(const uint8_t *p, uint64_t quotes, uint64_t *two, uint64_t *three);
    /* Set ends[k] to `base` plus the index of the k-th set bit of `starts`, counting from 0. The
     * function can overwrite ends[0..63], even if fewer bits are set. */
    void (*flatten)(uint32_t *ends, uint64_t starts, uint32_t base);
    /* In the 64 bytes at p, find the non-ASCII characters before which the tables *c allow a cut
     * inside a pre-token, and return the mask of their first bytes. from: 1 if splitting starts at
     * p[0], so that p[-1] must not be read and no cut is needed; otherwise 0. */
    uint64_t (*cut)(const sgt_cuts *c, const uint8_t *p, unsigned from);
    /* Functions that only split rules other than GPT-2's use. equal: return the mask of the bytes
     * that equal x in the 64 bytes at p. upper: return the mask of the bytes A to Z in the 64 bytes
     * at p. */
    uint64_t (*equal)(const uint8_t *p, char x);
    uint64_t (*upper)(const uint8_t *p);
} split_level;

/* Table of which characters are white space, indexed by a character's first byte. An entry is 1 if
 * all characters with this first byte are white space, 0 if none are, and 2 if only some are
 * (split_wide_space tells which). */
extern const uint8_t sgt_split_space[256];

/* Return 1 if a white-space character of two or three bytes starts at p, otherwise 0. */
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

/* Return the mask of the first bytes of those non-ASCII white-space characters in the block at p
 * that are the last character of a run of white space. */
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

SPLIT_INLINE void split_flatten(uint32_t *ends, uint64_t starts, uint32_t base)
{
    for (; starts; starts &= starts - 1) *ends++ = base + (uint32_t)__builtin_ctzll(starts);
}

/* In the 64 bytes at p, find the bytes at which a piece (pre-token) starts by GPT-2's rule, and
 * return the mask of these bytes. Blocks of 64 bytes must be passed in order, because *c and in[]
 * carry state from one call to the next. begin: 1 if the text begins at p[0], otherwise 0. */
SPLIT_INLINE uint64_t split_starts(const split_level *level, sgt_split_carry *c, uint64_t in[2],
                                   const sgt_cuts *cuts, const uint8_t *p, unsigned begin)
{
    split_block b = {0};
    level->classify(p, &b);
    if (b.wide) level->classify_wide(p, in, &b);
    uint64_t space = b.low & b.high, before = b.blank << 1 | c->blank >> 63;
    uint64_t changed =
        (b.low ^ (b.low << 1 | c->low >> 63)) | (b.high ^ (b.high << 1 | c->high >> 63)) | begin;
    /* next: 1 if the character after the block is white space, 0 if it is not, 2 if its first byte
     * does not tell. The other bytes of the character are read only if the block ends in white
     * space, because `next` is not used otherwise. */
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

/* ---- rules other than GPT-2's ----
 *
 * This code splits text by the other rules of split.h, such as those of cl100k and o200k. It works
 * as for GPT-2's rule: 64 bytes at a time, with bit masks in which bit i stands for byte i of the
 * block. A "sign" is a character that is neither a letter, a number nor white space.
 *
 * A piece (pre-token) starts at a byte that
 *   - begins a run of letters, unless the character before the run is white space other than a
 *     newline, or a single sign without U+0020 before it: that character belongs to the word;
 *   - begins a run of signs, unless U+0020 is before the run, which then belongs to the run;
 *   - begins a run of numbers, or follows a group of `digits` numbers in a run;
 *   - begins a run of white space, not counting newlines that belong to the signs before them;
 *   - follows the last newline in a run of white space;
 *   - begins the last character of a run of white space, if that character is not a newline and
 *     another class follows;
 *   - follows a contraction.
 * In rules that divide words by case, marks count as letters, and a contraction belongs to the word
 * before it. A piece also starts at a run of upper-case letters that
 *   - follows a lower-case letter, or letters without case that follow a lower-case letter;
 *   - follows a letter without case (or a mark) and ends a run of letters.
 * With such a rule, a block is called hard, and split.c splits it one character at a time, if it
 * contains
 *   - a slash after a newline,
 *   - a mark that follows neither a letter nor a mark,
 *   - both a contraction and letters without case (or marks), or
 *   - a run of upper-case letters that follows a letter without case (or a mark) and reaches the
 *     end of the block.
 * After hard blocks, the next block begins at the start of a piece. */

/* Return 1 if the run of white space (possibly empty) at offset `at` of the text contains a
 * newline, or if this run reaches the end of the text and the split rule has \s+$. Otherwise,
 * return 0. */
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

/* Return the mask of those bytes of the mask `lines` at which a piece (pre-token) of white space
 * starts. A piece starts at such a byte, unless the piece before it extends to a later newline in
 * the same run of white space (or, if the rule has \s+$, to the end of the text).
 *
 * lines: mask of the white-space bytes that directly follow a newline and are not newlines
 * space: mask of all white-space bytes that are not newlines
 * newline: mask of all newlines
 * next: offset in the text of the first character after the block */
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

/* Return the mask of the bytes at which a piece (pre-token) of numeric characters starts. Each run
 * of numeric characters is divided, from left to right, into pieces of `digits` characters; the
 * last piece can be shorter.
 *
 * number: mask of the bytes of numeric characters
 * before: mask of the bytes that directly follow a byte of a numeric character */
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
    /* After the loop, `longer` is nonzero if the block has a run of more than `digits` numeric
     * bytes, which is rare. rule_numbers, which is slow, is needed only for such a run, for a run
     * that began in the previous block, and for non-ASCII characters. */
    for (unsigned i = 1; i < digits; i++) longer &= longer << 1;
    int begun = (c->number & number) != 0;
    c->number = number >> 63;
    if (longer || begun || (number & b->wide)) return rule_numbers(p, digits, number, before, c);
    c->digits = number == ~(uint64_t)0 ? 64 : (unsigned)__builtin_clzll(~number);
    return number & ~before;
}

/* Return the mask of the bytes directly after the characters whose first bytes are in the mask
 * `starts`. If the byte after a character is in the next block, set its bit in *carry, a mask of
 * that block's bytes. On entry, *carry is the mask that the previous block left. wide: mask of the
 * non-ASCII bytes. */
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

/* Return the mask of the bytes directly after contractions. A contraction is an apostrophe in the
 * mask `quotes`, followed by letters such as s or ll. If by_case is 1, an apostrophe directly after
 * a contraction does not begin another contraction, and the apostrophes of contractions are removed
 * from the mask *starts. *carry: mask of bytes in the next block, as in rule_behind. */
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

/* Return the mask of the bytes at which a piece (pre-token) that begins with white space starts.
 * newline: mask of all newlines. taken: mask of the newlines that belong to the piece before them,
 * which is a run of punctuation. */
SPLIT_INLINE uint64_t rule_blank_starts(const sgt_splitter *s, sgt_split_carry *c,
                                        const uint64_t in[2], const uint8_t *p, size_t at,
                                        const split_block *b, uint64_t newline, uint64_t taken)
{
    const uint64_t space = b->low & b->high, blanks = space & ~taken, plain = space & ~newline,
                   ends = newline & ~taken;
    uint64_t lines = plain & (ends << 1 | c->line), next = sgt_split_space[p[64]];
    /* Call rule_lines, which is slow, only if it can change `lines`: if a newline in this block
     * follows other white space, or if the block ends in white space other than a newline. */
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

/* Masks of the bytes of a block's letters and marks. upper: upper-case letters; lower: lower-case
 * letters; both: letters without case, and marks, which all count as either case; mark: marks. */
typedef struct rule_cases {
    uint64_t upper, lower, both, mark;
} rule_cases;

/* Add the bytes of one character to the masks in *k to which the character belongs. kind: the
 * character's sgt_kind; bytes: mask of its bytes. */
static inline void rule_add_case(rule_cases *k, unsigned kind, uint64_t bytes)
{
    if (kind == SGT_KIND_LU || kind == SGT_KIND_LT) k->upper |= bytes;
    if (kind == SGT_KIND_LL) k->lower |= bytes;
    if (kind == SGT_KIND_LM || kind == SGT_KIND_LO || kind == SGT_KIND_MARK) k->both |= bytes;
    if (kind == SGT_KIND_MARK) k->mark |= bytes;
}

/* Add the bytes of each non-ASCII letter or mark in the block at p to the masks in *k. wide: mask
 * of all non-ASCII bytes. */
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

/* For rules that divide words by case: return the mask of the upper-case letters inside words at
 * which a new piece (pre-token) starts. letter: mask of all letters and marks. Set *hard to 1 if
 * the result depends on the text after the block; otherwise, leave it unchanged. */
SPLIT_INLINE uint64_t rule_case_starts(const rule_cases *k, uint64_t letter, sgt_split_carry *c,
                                       int *hard)
{
    /* behind: mask of the bytes directly after a lower-case letter, and of those directly after a
     * run of letters without case or marks (`both`) that follows a lower-case letter. Adding 1 at
     * the first byte of such a run sets the bit after the run, because the sum carries through the
     * run. */
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

/* In the 64 bytes at p, find the bytes at which a piece (pre-token) starts by a rule other than
 * GPT-2's, and return the mask of these bytes. at: offset in the text of the byte at p. Set *hard
 * to 1 if these 64 bytes must be split one character at a time; otherwise, leave it unchanged. */
SPLIT_INLINE uint64_t rule_starts(const split_level *level, const sgt_splitter *s,
                                  sgt_split_carry *c, uint64_t in[2], const uint8_t *p, size_t at,
                                  int by_case, int *hard)
{
    split_block b = {0};
    rule_cases k = {0};
    level->classify(p, &b);
    if (b.wide) level->classify_wide(p, in, &b);
    if (b.wide && by_case) rule_wide_cases(p, b.wide, c, &k);
    const uint64_t newline = level->equal(p, '\n') | level->equal(p, '\r'),
                   letter = (b.low & ~b.high) | k.mark, other = ~(b.low | b.high) & ~k.mark,
                   plain = b.low & b.high & ~newline, after_letter = letter << 1 | c->letter;
    if (by_case && ((level->equal(p, '/') & (newline << 1 | c->newline)) || k.mark & ~after_letter))
        return *hard = 1, 0;

    /* taken: mask of the newlines that belong to the piece (pre-token) of punctuation before them,
     * which are all the newlines in a run that directly follows punctuation. Adding 1 at the first
     * newline of such a run clears the bits of the run in the sum. */
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
        /* Do not start a piece at a change of case inside a contraction, such as 'lL. The case can
         * change only at the contraction's last letter, which is the byte before the byte that
         * `contracted` marks. */
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

/* ---- splitting block by block ---- */

/* Kinds of split rules. The compiler generates a separate copy of the code for each kind, so the
 * code does not branch on the kind of rule at run time. */
enum { SPLIT_GPT2, SPLIT_OTHER, SPLIT_BY_CASE };

/* Copy the last `left` bytes of the text, which start at p, to the buffer `room`, and fill the rest
 * of the buffer with spaces. This lets the caller read a complete block at the end of the text. If
 * `before` is 1, also copy the byte before p. Return the address in `room` that corresponds to
 * p. */
static inline const uint8_t *split_end(uint8_t room[1 + 2 * SPLIT_READ], const uint8_t *p,
                                       size_t left, int before)
{
    memset(room, ' ', 1 + 2 * SPLIT_READ);
    if (before) room[0] = p[-1];
    if (left) memcpy(room + 1, p, left);
    return room + 1;
}

/* Return the mask of the bytes at which a piece (pre-token) starts, in the 64-byte block at offset
 * `at`. The end of the text counts as a start, because the last piece ends there. The offset
 * s->base, where the first block begins, does not count, because no piece ends there. Set *hard to
 * 1 if the block must be split one character at a time; otherwise, leave it unchanged. */
SPLIT_INLINE uint64_t split_block_at(const split_level *level, const sgt_splitter *s,
                                     sgt_split_carry *c, uint64_t in[2], size_t at, int kind,
                                     int *hard)
{
    const uint8_t *p = s->text + at;
    size_t left = s->n - at;
    unsigned begin = at == s->base;
    uint8_t room[1 + 2 * SPLIT_READ];
    if (left < SPLIT_READ) p = split_end(room, p, left, !begin);
    uint64_t starts = kind == SPLIT_GPT2
                          ? split_starts(level, c, in, s->cuts, p, begin)
                          : rule_starts(level, s, c, in, p, at, kind == SPLIT_BY_CASE, hard);
    if (left < 64) starts = (starts & (((uint64_t)1 << left) - 1)) | (uint64_t)1 << left;
    return starts & ~(uint64_t)begin;
}

/* Store the ends of the next pieces (pre-tokens), at most `max` of them, in ends[], and return
 * their number. A piece ends where the next one starts, so the ends come from the set bits of
 * s->starts, which are cleared. */
static inline size_t split_next_starts(sgt_splitter *s, uint32_t *ends, size_t max)
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

/* Implement sgt_split, 64 bytes (a block) at a time. If a block must be split one character at a
 * time, stop before this block, and set s->hard to the offset of the block's end. */
SPLIT_INLINE size_t split_blocks(const split_level *level, sgt_splitter *s, uint32_t *ends,
                                 size_t max, int kind)
{
    size_t from = s->at, count = split_next_starts(s, ends, max);
    if (s->starts) return count;
    /* The loop below runs while ends[] has room for 64 more entries, because 64 pieces can start in
     * a block. The state is copied to local variables so that the compiler can keep it in
     * registers. */
    sgt_split_carry c = s->carry;
    uint64_t in[2] = {s->in[0], s->in[1]};
    size_t at = s->block;
    int hard = 0;
    for (; at <= s->n && max - count >= 64 && at - from < UINT32_MAX - 64; at += 64) {
        uint64_t starts = split_block_at(level, s, &c, in, at, kind, &hard);
        if (hard) break;
        level->flatten(ends + count, starts, (uint32_t)(at - from));
        count += (size_t)__builtin_popcountll(starts);
    }
    if (count) {
        s->at = from + ends[count - 1];
        /* ends[] may have room for fewer than 64 entries, so find the next block in which a piece
         * starts, and return as many ends as fit */
    } else {
        for (; at <= s->n && !s->starts && !hard; at += hard ? 0 : 64)
            s->starts = split_block_at(level, s, &c, in, at, kind, &hard);
        if (hard) s->starts = 0;
    }
    if (hard) s->hard = at + 64 < s->n ? at + 64 : s->n;
    s->block = at;
    s->carry = c;
    s->in[0] = in[0];
    s->in[1] = in[1];
    return count ? count : split_next_starts(s, ends, max);
}

/* Implement sgt_split with the functions of one CPU level (an instruction set such as AVX2). */
SPLIT_INLINE size_t split_by(const split_level *level, sgt_splitter *s, uint32_t *ends, size_t max)
{
    if (!s->rule) return split_blocks(level, s, ends, max, SPLIT_GPT2);
    if (!s->rule->cased) return split_blocks(level, s, ends, max, SPLIT_OTHER);
    if (s->at >= s->hard && s->at >= s->end) {
        size_t count = split_blocks(level, s, ends, max, SPLIT_BY_CASE);
        if (count || s->at >= s->hard) return count;
    }
    return sgt_split_hard(s, ends, max);
}

/* Define `function`, an implementation of sgt_split for one CPU level (an instruction set such as
 * AVX2). Functions of the level that are not arguments of this macro, such as `contractions`, must
 * have the names used here. */
#define SPLIT_LEVEL(function, classify, flatten, cut)                                 \
    static const split_level level = {classify, classify_wide, contractions, flatten, \
                                      cut,      equal_bytes,   upper};                \
    size_t function(sgt_splitter *s, uint32_t *ends, size_t max)                      \
    {                                                                                 \
        return split_by(&level, s, ends, max);                                        \
    }

#endif
