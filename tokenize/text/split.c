/* split.c: where GPT-2's pieces end, and where text may be cut. The definition here takes one
 * character at a time; programs run code that takes 64 bytes at a time (split_blocks.h). The rule
 * only reads forward, so a piece depends on nothing before its start. For the definition, a
 * splitter is therefore just its position. */
#include "tokenize/text/split.h"

#include <string.h>

#include "tokenize/text/split_levels.h"
#include "tokenize/text/unicode.h"
#include "tokenize/text/utf8.h"
#include "loader/base/cpu.h"
#include "tokenize/text/split_blocks.h"

/* One unit of text: its class, its length in bytes, and whether it is well formed. */
typedef struct unit {
    sgt_class class;
    size_t len;
    int formed;
} unit;

static inline unit read_unit(const uint8_t *s, size_t n)
{
    uint32_t cp;
    if (s[0] < 0x80) return (unit){sgt_unicode_class(s[0]), 1, 1};
    size_t len = sgt_utf8_unit(s, n, &cp);
    return (unit){sgt_unicode_class(cp), len, cp != SGT_UTF8_ILL_FORMED};
}

/* Return the length of the contraction at s, where s[0] is a quote, or 0. */
static size_t contraction(const uint8_t *s, size_t n)
{
    if (n < 2) return 0;
    if (s[1] == 's' || s[1] == 'd' || s[1] == 'm' || s[1] == 't') return 2;
    if (n < 3) return 0;
    if (s[1] == 'l' && s[2] == 'l') return 3;
    if ((s[1] == 'v' || s[1] == 'r') && s[2] == 'e') return 3;
    return 0;
}

/* Return the end of the run of this class (not white space) that goes on at i. */
static size_t run_end(const uint8_t *s, size_t n, size_t i, sgt_class class)
{
    while (i < n) {
        unit u = read_unit(s + i, n - i);
        if (u.class != class) break;
        i += u.len;
    }
    return i;
}

/* Return the end of a piece of white space that starts at i. \s+(?!\S) takes a whole run at the end
 * of the text, and else all but the last character of a run. If nothing would remain, \s+ takes the
 * one character. (The caller has already taken a single U+0020 before text, which joins what
 * follows.) */
static size_t space_end(const uint8_t *s, size_t n, size_t i)
{
    size_t start = i, last = i;
    while (i < n) {
        unit u = read_unit(s + i, n - i);
        if (u.class != SGT_CLASS_SPACE) return last > start ? last : i;
        last = i;
        i += u.len;
    }
    return n;
}

static size_t piece_end(const uint8_t *s, size_t n, size_t at)
{
    size_t i = at;
    if (s[i] == '\'') {
        size_t len = contraction(s + i, n - i);
        if (len) return i + len;
    }
    if (s[i] == ' ' && i + 1 < n) i++;
    unit u = read_unit(s + i, n - i);
    if (u.class == SGT_CLASS_SPACE) return space_end(s, n, at);
    return run_end(s, n, i + u.len, u.class);
}

/* Return the end of the next piece, or of its next part if there are cuts. */
static size_t part_end(sgt_splitter *sp)
{
    if (!sp->cuts) return piece_end(sp->text, sp->n, sp->at);
    if (sp->end <= sp->at) sp->end = piece_end(sp->text, sp->n, sp->at);
    size_t end = sp->at + 1;
    while (end < sp->end && !sgt_cuts_at(sp->cuts, sp->text + end)) end++;
    return end;
}

size_t sgt_split_ref(sgt_splitter *sp, uint32_t *ends, size_t max)
{
    size_t count = 0, from = sp->at;
    while (count < max && sp->at < sp->n) {
        size_t end = part_end(sp);
        if (end - from >= UINT32_MAX && count) break;
        sp->at = end;
        ends[count++] = end - from >= UINT32_MAX ? UINT32_MAX : (uint32_t)(end - from);
        if (end - from >= UINT32_MAX) break;
    }
    return count;
}

/* Return the unit that ends at p > 0. A unit must end there: s[p] is no continuation byte. Its lead
 * is the nearest byte before p that is no continuation byte, if that unit reaches to p. Otherwise
 * the last byte is an ill-formed unit of its own. */
static unit unit_before(const uint8_t *s, size_t p)
{
    size_t lead = p - 1, low = p > 4 ? p - 4 : 0;
    while (lead > low && (s[lead] & 0xC0) == 0x80) lead--;
    unit u = read_unit(s + lead, p - lead);
    return lead + u.len == p ? u : (unit){SGT_CLASS_OTHER, 1, 0};
}

/* Return whether the text may be cut before s[p]. All of these must hold:
 *
 *   1. s[p] is no continuation byte, so a unit starts there whatever precedes it. The units on
 *      either side are those of the whole text, because an ill-formed unit broken off by s[p] is as
 *      long as one broken off by the end of the text.
 *   2. The character before s[p] is not white space. Only white space looks beyond its own end (by
 *      one character), so the left part's pieces are those of the whole up to p.
 *   3. One of:
 *      a) The classes differ. A piece that holds a letter, a number or another character continues
 *         with that class alone, except in contractions. So a piece ends at p in the whole, and the
 *         right part begins where a piece begins. A contraction goes from other to letter only
 *         between ' and an ASCII letter, which is excluded.
 *      b) The classes are equal, s[p] starts a non-ASCII character (so no contraction starts or
 *         continues there), and no token holds the byte pair (s[p-1], s[p]). Then the cut divides
 *         the piece at p, but no merge can reach across it: both sides merge as if apart. The right
 *         part's first piece begins within a run and ends with it. Both characters are well formed.
 *         Ill-formed ones may be replaced by U+FFFD before encoding, which has other bytes. */
static int may_cut(const uint8_t *s, size_t n, size_t p, const uint64_t *joins)
{
    uint8_t before = s[p - 1], after = s[p];
    if ((after & 0xC0) == 0x80) return 0;
    unit a = unit_before(s, p), b = read_unit(s + p, n - p);
    if (a.class == SGT_CLASS_SPACE) return 0;
    if (a.class != b.class) return !(before == '\'' && b.class == SGT_CLASS_LETTER && after < 0x80);
    unsigned pair = (unsigned)before << 8 | after;
    return joins && after >= 0x80 && a.formed && b.formed && !(joins[pair >> 6] >> (pair & 63) & 1);
}

/* Why both parts split as the whole text does: the units on either side are those of the whole, as
 * in 1. of may_cut. The last piece of the left part starts where that of the whole does. It takes
 * all of the run it sees, white space included, as at the end of a text. The first piece of the
 * right part takes the rest of the run, as the whole's does; of white space before other text, all
 * but the last character. It is no contraction. */
int sgt_split_within(const uint8_t *s, size_t n, size_t p)
{
    if ((s[p] & 0xC0) == 0x80 || n - p < 4 ||
        unit_before(s, p).class != read_unit(s + p, n - p).class)
        return 0;
    return s[p] != '\'' || !memchr("sdmtlvr", s[p + 1], 7);
}

/* Return whether eight bytes are ASCII of one class, so that there is no cut between them. This
 * skips long runs quickly. */
static int alike(const uint8_t *s)
{
    const uint64_t top = WORD_OF(0x80);
    uint64_t w;
    memcpy(&w, s, sizeof w);
    uint64_t letters = word_letters(w) & top;
    if (letters) return letters == top;
    uint64_t digits = word_digits(w) & top, space = (word_controls(w) | word_equal(w, ' ')) & top;
    return digits == top || space == top || !((digits | space | w) & top);
}

size_t sgt_split_cut(const void *text, size_t n, const uint64_t *joins)
{
    const uint8_t *s = text;
    for (size_t p = n; p-- > 1;) {
        if (p >= 7 && s[p] < 0x80 && alike(s + p - 7)) {
            p -= 6; /* the loop subtracts 1 more: a cut before the lowest byte is possible */
            continue;
        }
        /* The character after the cut must be in the text as a whole; it has at most four bytes. */
        if ((s[p] < 0x80 || n - p >= 4) && may_cut(s, n, p, joins)) return p;
    }
    return 0;
}

/* ---- cuts inside a piece ----
 *
 * Divide first bytes into eight groups. Merge the two groups whose union forbids the fewest
 * cuts, until eight are left. */

typedef struct group {
    uint64_t before[4]; /* bit set: all bytes that come before one of the members in some token */
    uint64_t members;   /* bit set: first bytes, by their lower 6 bits */
} group;

static int bits(const uint64_t x[4])
{
    int n = 0;
    for (int i = 0; i < 4; i++) n += __builtin_popcountll(x[i]);
    return n;
}

/* Return how many pairs of bytes could no longer be cut if a and b were one group. */
static int cost(const group *a, const group *b)
{
    uint64_t both[4];
    for (int i = 0; i < 4; i++) both[i] = a->before[i] | b->before[i];
    int n = bits(both);
    return (n - bits(a->before)) * __builtin_popcountll(a->members) +
           (n - bits(b->before)) * __builtin_popcountll(b->members);
}

static int gather(group groups[64], const uint64_t *joins)
{
    int count = 0;
    for (unsigned first = 0xC0; first < 256; first++) {
        group g = {.members = (uint64_t)1 << (first & 63)};
        for (unsigned b = 0; b < 256; b++)
            if (joins[b << 2 | first >> 6] >> (first & 63) & 1)
                g.before[b >> 6] |= (uint64_t)1 << (b & 63);
        if (bits(g.before)) groups[count++] = g;
    }
    return count;
}

static void put_together(group *groups, int count)
{
    int a = 0, b = 1, least = cost(&groups[0], &groups[1]);
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++) {
            int c = cost(&groups[i], &groups[j]);
            if (c < least) least = c, a = i, b = j;
        }
    for (int i = 0; i < 4; i++) groups[a].before[i] |= groups[b].before[i];
    groups[a].members |= groups[b].members;
    groups[b] = groups[count - 1];
}

void sgt_cuts_make(sgt_cuts *c, const uint64_t *joins)
{
    group groups[64];
    int count = gather(groups, joins);
    for (; count > 8; count--) put_together(groups, count);
    memset(c, 0, sizeof *c);
    for (int g = 0; g < count; g++)
        for (unsigned i = 0; i < 256; i++) {
            if (groups[g].before[i >> 6] >> (i & 63) & 1) c->before[i] |= (uint8_t)(1 << g);
            if (i < 64 && groups[g].members >> i & 1) c->first[i] = (uint8_t)(1 << g);
        }
}

/* ---- levels ----
 *
 * Choose the code that splits text by a rule, for the CPU that the program runs on. */

sgt_splitter sgt_splitter_start(const void *text, size_t n)
{
    sgt_splitter s = {.text = (const uint8_t *)text, .n = n, .split = sgt_split_plain};
#if defined(__x86_64__)
    if (sgt_cpu() >= SGT_CPU_AVX2) s.split = sgt_cpu_vbmi2() ? sgt_split_avx512 : sgt_split_avx2;
#endif
    return s;
}

size_t sgt_split(sgt_splitter *s, uint32_t *ends, size_t max) { return s->split(s, ends, max); }

sgt_splitter sgt_splitter_by(const sgt_rule *r, const void *text, size_t n)
{
    sgt_splitter s = sgt_splitter_start(text, n);
    if (!r) return s;
    s.rule = r;
    s.split = sgt_split_rule_plain;
#if defined(__x86_64__)
    if (sgt_cpu() >= SGT_CPU_AVX2)
        s.split = sgt_cpu_vbmi2() ? sgt_split_rule_avx512 : sgt_split_rule_avx2;
#endif
    return s;
}

const uint8_t sgt_split_space[256] = {['\t'] = 1, ['\n'] = 1, ['\v'] = 1, ['\f'] = 1, ['\r'] = 1,
                                      [' '] = 1,  [0xC2] = 2, [0xE1] = 2, [0xE2] = 2, [0xE3] = 2};
