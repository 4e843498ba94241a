/* split.c: chooses the fastest code that splits text on this CPU, and finds offsets at which text
 * can safely be cut. It also splits text one character at a time, which is needed only for some
 * split rules, and there only for blocks of 64 bytes that split_blocks.h cannot split.
 *
 * Unlike a regular-expression matcher, this code does not backtrack. It reads two characters to
 * find out what kind of piece begins there, and then continues up to the end of a run of characters
 * of one class. Only two kinds of pieces may end before the end of a run: white space, which ends
 * after its last newline, and, with rules that divide words by case (split.h), a word, which ends
 * after its last character that can be lower case. In these two cases, the characters of a run are
 * read at most twice. */
#include "tokenize/text/split.h"

#include <string.h>

#include "loader/base/cpu.h"
#include "tokenize/text/split_blocks.h"
#include "tokenize/text/unicode.h"
#include "tokenize/text/utf8.h"

/* ---- levels ---- */

sgt_splitter sgt_splitter_by(const sgt_rule *r, const void *text, size_t n)
{
    sgt_splitter s = {.text = text, .n = n, .split = sgt_split_plain};
    if (sgt_rule_by(r) != SGT_RULE_GPT2) s.rule = r;
#if defined(__x86_64__)
    if (sgt_cpu() >= SGT_CPU_AVX2) s.split = sgt_cpu_vbmi2() ? sgt_split_avx512 : sgt_split_avx2;
#elif defined(__aarch64__)
    if (sgt_cpu_neon()) s.split = sgt_split_neon;
#endif
    return s;
}

size_t sgt_split(sgt_splitter *s, uint32_t *ends, size_t max) { return s->split(s, ends, max); }

const uint8_t sgt_split_space[256] = {['\t'] = 1, ['\n'] = 1, ['\v'] = 1, ['\f'] = 1, ['\r'] = 1,
                                      [' '] = 1,  [0xC2] = 2, [0xE1] = 2, [0xE2] = 2, [0xE3] = 2};

/* ---- characters ---- */

/* Categories of characters. Each category is one bit, so that sets of categories are formed with
 * OR. Every character belongs to exactly one of the first eight, OTHER to NEWLINE. The names after
 * these are sets of several categories. */
enum {
    OTHER = 1,
    MARK = 2,
    UPPER = 4,
    LOWER = 8,
    BOTH = 16, /* letters without case */
    NUMBER = 32,
    SPACE = 64, /* white space other than the newlines \r and \n */
    NEWLINE = 128,

    LETTERS = UPPER | LOWER | BOTH,
    OTHERS = OTHER | MARK,
    BLANKS = SPACE | NEWLINE,
    MAY_BE_UPPER = UPPER | BOTH | MARK,
    MAY_BE_LOWER = LOWER | BOTH | MARK
};

static const uint8_t sets[SGT_KINDS] = {
    [SGT_KIND_OTHER] = OTHER,       [SGT_KIND_SPACE] = SPACE,  [SGT_KIND_NUMBER] = NUMBER,
    [SGT_KIND_MARK] = MARK,         [SGT_KIND_LU] = UPPER,     [SGT_KIND_LT] = UPPER,
    [SGT_KIND_LL] = LOWER,          [SGT_KIND_LM] = BOTH,      [SGT_KIND_LO] = BOTH,
    [SGT_KIND_PUNCTUATION] = OTHER, [SGT_KIND_SYMBOL] = OTHER,
};

/* Return the category (one of OTHER ... NEWLINE) of the first character in the n >= 1 bytes at s,
 * and set *len to the length of this character in bytes. */
static inline unsigned read_set(const uint8_t *s, size_t n, size_t *len)
{
    uint32_t cp;
    *len = 1;
    if (s[0] < 0x80) return s[0] == '\r' || s[0] == '\n' ? NEWLINE : sets[sgt_unicode_kind(s[0])];
    *len = n >= 4 ? sgt_utf8_unit_in_four(s, &cp) : sgt_utf8_unit(s, n, &cp);
    return sets[sgt_unicode_kind(cp)];
}

/* ---- pieces ---- */

/* Return the offset at which a run of characters ends. The run begins at offset i, and the
 * categories of all of its characters are in the set `of`. If the character at offset i is not in
 * the set, return i. */
static size_t run_end(const uint8_t *s, size_t n, size_t i, unsigned of)
{
    for (size_t len; i < n && (read_set(s + i, n - i, &len) & of); i += len) continue;
    return i;
}

/* Return the same offset as run_end, but test ASCII letters eight at a time. `of` must contain
 * either all ASCII letters or only the lower-case ones, and no other ASCII characters. In the first
 * case, `fold` must have the value 0x20 in every byte; in the second case, it must be 0. */
static inline size_t letters_end(const uint8_t *s, size_t n, size_t i, unsigned of, uint64_t fold)
{
    for (; n - i >= 8; i += 8) {
        uint64_t w;
        memcpy(&w, s + i, sizeof w);
        uint64_t in = word_within((w & WORD_OF(0x7F)) | fold, 'a', 26) & ~w & WORD_OF(0x80);
        if (in == WORD_OF(0x80)) continue;
        i += (size_t)__builtin_ctzll(~in & WORD_OF(0x80)) >> 3;
        if (s[i] < 0x80) return i;
        break;
    }
    return run_end(s, n, i, of);
}

/* Return the length of the contraction at s, such as 's or 'll, in bytes, or 0 if there is none.
 * s[0] must be a quote. Case is ignored, also for U+017F (long s), which counts as s. */
size_t sgt_rule_contraction(const uint8_t *s, size_t n)
{
    if (n < 2) return 0;
    uint8_t a = s[1] | 0x20;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    if (n < 3) return 0;
    uint8_t b = s[2] | 0x20;
    if ((a == 'l' && b == 'l') || ((a == 'v' || a == 'r') && b == 'e')) return 3;
    return s[1] == 0xC5 && s[2] == 0xBF ? 3 : 0;
}

/* Return the offset at which the piece of white space that begins at offset `at` ends. It is the
 * match of \s*[\r\n]+|\s+(?!\S)|\s+ or, if the rule has the alternative \s+$ and this matches, the
 * match of \s+$. */
static size_t blank_end(const sgt_rule *r, const uint8_t *s, size_t n, size_t at)
{
    size_t i = at, last = at, newline = 0, len;
    for (unsigned set; i < n && ((set = read_set(s + i, n - i, &len)) & BLANKS); i += len) {
        last = i;
        if (set == NEWLINE) newline = i + len;
    }
    if (i == n && r->whole_end) return n;
    if (newline) return newline;
    return i == n || last == at ? i : last;
}

/* Return the offset at which a piece of other characters ends: a run of characters in OTHERS,
 * followed by [\r\n]* or, if the rule divides words by case, by [\r\n/]*. i is the offset after the
 * first character of the piece. */
static size_t other_end(const sgt_rule *r, const uint8_t *s, size_t n, size_t i)
{
    i = run_end(s, n, i, OTHERS);
    while (i < n && (s[i] == '\r' || s[i] == '\n' || (r->cased && s[i] == '/'))) i++;
    return i;
}

static size_t number_end(const sgt_rule *r, const uint8_t *s, size_t n, size_t i)
{
    size_t len;
    for (unsigned more = r->digits; more && i < n && read_set(s + i, n - i, &len) == NUMBER; more--)
        i += len;
    return i;
}

/* Find the match of U*l+ at offset i, where U is an upper-case and l a lower-case character (see
 * split.h). If it matches, set *lower to 1 and return the end of the match. Otherwise, set *lower
 * to 0 and return the end of the match of U+, or i if that does not match either. Some
 * characters count as both U and l. If no lower-case character follows the match of U*, the match
 * of U*l+ ends after the last of these characters. */
static size_t cased_end(const uint8_t *s, size_t n, size_t i, int *lower)
{
    size_t last = 0, len;
    unsigned set = 0;
    for (; i < n && ((set = read_set(s + i, n - i, &len)) & MAY_BE_UPPER); i += len)
        if (set != UPPER) last = i + len;
    *lower = 1;
    if (i < n && set == LOWER) return letters_end(s, n, i, MAY_BE_LOWER, 0);
    if (last) return last;
    *lower = 0;
    return i;
}

/* For rules that divide words by case (split.h): return the offset at which the word that begins at
 * offset `at` ends, or `at` if no word begins there. `set` and `len` are the category and the
 * length of the character at `at`. If this character is a mark, it may precede a word or be a word
 * by itself. */
static size_t cased_word(const uint8_t *s, size_t n, size_t at, unsigned set, size_t len)
{
    int lower;
    size_t from = at + (set & LETTERS ? 0 : len), end = cased_end(s, n, from, &lower);
    if (set == MARK && !lower) end = from;
    else if (end == from) return at;
    return end < n && s[end] == '\'' ? end + sgt_rule_contraction(s + end, n - end) : end;
}

static size_t piece_end(const sgt_rule *r, const uint8_t *s, size_t n, size_t at)
{
    size_t len, next_len, end;
    unsigned set = read_set(s + at, n - at, &len), next;
    if (set == NUMBER) return number_end(r, s, n, at);
    if (set == NEWLINE) return blank_end(r, s, n, at);
    if (r->cased) {
        if ((end = cased_word(s, n, at, set, len)) > at) return end;
    } else {
        if (set & LETTERS) return letters_end(s, n, at + len, LETTERS, WORD_OF(0x20));
        if (s[at] == '\'' && (end = sgt_rule_contraction(s + at, n - at)) > 0) return at + end;
    }
    if (at + len == n) return n;
    next = read_set(s + at + len, n - at - len, &next_len);
    if (!r->cased && (next & LETTERS))
        return letters_end(s, n, at + len + next_len, LETTERS, WORD_OF(0x20));
    if (set == SPACE && (s[at] != ' ' || !(next & OTHERS))) return blank_end(r, s, n, at);
    return other_end(r, s, n, at + len);
}

/* Return the offset at which the current piece ends. If sp->cuts is set and the piece has non-ASCII
 * characters, return the next offset at which these tables allow a cut in the piece (split.h), if
 * that comes earlier. */
static size_t part_end(sgt_splitter *sp)
{
    if (sp->end <= sp->at) {
        sp->end = piece_end(sp->rule, sp->text, sp->n, sp->at);
        const size_t n = sp->end - sp->at;
        if (!sp->cuts || sgt_utf8_ascii(sp->text + sp->at, n) == n) return sp->end;
    }
    size_t end = sp->at + 1;
    while (end < sp->end && !sgt_cuts_at(sp->cuts, sp->text + end)) end++;
    return end;
}

/* Store the ends of the pieces from offset sp->at on in the array `ends`, up to the first end at or
 * after offset `until`, but at most `max`. Return the number of ends stored. If sp->cuts is set, a
 * piece can be stored as several parts (part_end). */
static size_t split_until(sgt_splitter *sp, size_t until, uint32_t *ends, size_t max)
{
    size_t count = 0, from = sp->at;
    while (count < max && (sp->at < until || sp->at < sp->end)) {
        size_t end = part_end(sp);
        if (end - from >= UINT32_MAX && count) break;
        sp->at = end;
        ends[count++] = end - from >= UINT32_MAX ? UINT32_MAX : (uint32_t)(end - from);
        if (end - from >= UINT32_MAX) break;
    }
    return count;
}

size_t sgt_split_hard(sgt_splitter *sp, uint32_t *ends, size_t max)
{
    /* If split_blocks has returned only some parts of the last piece, find the end of this piece,
     * so that its remaining parts are returned before the next piece. */
    if (sp->carry.piece < sp->at && sp->end <= sp->at)
        sp->end = piece_end(sp->rule, sp->text, sp->n, sp->carry.piece);
    size_t count = split_until(sp, sp->hard, ends, max);
    if (sp->at < sp->hard || sp->at < sp->end) return count;
    /* Continue with blocks of 64 bytes that begin at this offset. This is correct because a piece
     * begins here, and the pieces of these rules do not depend on the text before them. */
    sp->base = sp->block = sp->at;
    sp->carry = (sgt_split_carry){.piece = sp->at};
    sp->in[0] = sp->in[1] = 0;
    return count;
}

int sgt_rule_is_space(const uint8_t *s, size_t n, size_t *len)
{
    return (read_set(s, n, len) & BLANKS) != 0;
}

/* ---- safe cuts ---- */

/* Return the category of the character that ends at offset p, and set *len to the length of this
 * character in bytes. p > 0, and a character (or an ill-formed sequence) must end at p. */
static unsigned read_set_before(const uint8_t *s, size_t p, size_t *len)
{
    size_t lead = p - 1, low = p > 4 ? p - 4 : 0;
    while (lead > low && (s[lead] & 0xC0) == 0x80) lead--;
    unsigned set = read_set(s + lead, p - lead, len);
    if (lead + *len == p) return set;
    *len = 1; /* the byte before p is an ill-formed sequence by itself */
    return OTHER;
}

static int is_formed(const uint8_t *s, size_t n)
{
    uint32_t cp;
    (void)sgt_utf8_unit(s, n, &cp);
    return cp != SGT_UTF8_ILL_FORMED;
}

/* Return the set of those categories whose characters have the same class (sgt_class) as the
 * characters of category `set`. */
static unsigned class_of(unsigned set)
{
    return set & LETTERS ? LETTERS : set & OTHERS ? OTHERS : set & BLANKS ? BLANKS : NUMBER;
}

/* Return 1 if text that is split by GPT-2's rule can be cut before s[p]. a and len are the category
 * and length of the character before s[p]; b is the category of the character at s[p]. All of the
 * following conditions must hold:
 *
 *   1. s[p] is not a continuation byte, so a character or ill-formed sequence (a unit) starts there
 *      whatever precedes it. The cut does not change the units on either side, because an
 *      ill-formed unit has the same length whether it ends before s[p] or at the end of the text.
 *   2. The character before s[p] is not white space. Only pieces of white space depend on the text
 *      after them, so the text before p has the same pieces with and without the text after p.
 *   3. One of the following:
 *      a) The classes of the two characters differ. A piece of letters, numbers or other characters
 *         contains only characters of one class, unless it is a contraction, so a piece ends at p.
 *         Because a contraction has ' followed by ASCII letters, a cut between ' and an ASCII
 *         letter is excluded.
 *      b) The classes are equal, s[p] starts a non-ASCII character (so it is not in a contraction),
 *         and no token contains the byte pair (s[p-1], s[p]). The cut divides a piece, but no merge
 *         crosses the cut, so the tokens on either side stay the same. Both characters must be
 *         well formed, because U+FFFD, which has other bytes, can replace an ill-formed one before
 *         the text is encoded. */
static int gpt2_may_cut(const uint8_t *s, size_t n, size_t p, unsigned a, size_t len, unsigned b,
                        const uint64_t *joins)
{
    const unsigned pair = (unsigned)s[p - 1] << 8 | s[p];
    if (a & BLANKS) return 0;
    if (!(class_of(a) & b)) return !(s[p - 1] == '\'' && (b & LETTERS) && s[p] < 0x80);
    return joins && s[p] >= 0x80 && !(joins[pair >> 6] >> (pair & 63) & 1) &&
           is_formed(s + p - len, len) && is_formed(s + p, n - p);
}

/* Return 1 if both of the characters before offset p are neither letters, numbers nor white space,
 * so that they surely belong to the same piece. If a letter follows, this piece ends at p; a single
 * such character could instead belong to the word that begins with this letter. With rules that
 * divide words by case, also return 0 in two uncertain cases: if one of the two is a mark, which
 * can be part of a word, or if the first is a slash, because a piece can begin after \n/. */
static int two_others(const sgt_rule *r, const uint8_t *s, size_t p)
{
    const unsigned of = r->cased ? OTHER : OTHERS;
    size_t len, before;
    if (!(read_set_before(s, p, &len) & of) || p == len) return 0;
    p -= len;
    return (read_set_before(s, p, &before) & of) && !(r->cased && s[p - 1] == '/');
}

/* For rules other than GPT-2's: return 1 if a piece ends at offset p whatever comes before the text
 * and after it, and if the text before p has the same pieces when nothing follows it. (The text
 * from p on always has the same pieces, because these rules do not look back.) a is the category of
 * the character before p, b that of the character at p. */
static int ends_at(const sgt_rule *r, const uint8_t *s, size_t p, unsigned a, unsigned b)
{
    if (a == NEWLINE) return !(b & BLANKS) && !(r->cased && s[p] == '/');
    if (a == SPACE) return 0;
    if (a == NUMBER) return b != NUMBER || r->digits == 1;
    if (a & LETTERS) return !(b & LETTERS) && !(r->cased && (b == MARK || s[p] == '\''));
    return b == NUMBER || b == SPACE || ((b & LETTERS) && two_others(r, s, p));
}

/* Return 1 if the eight bytes at s are ASCII characters of one class. The search for a cut can skip
 * such bytes, because no cut is possible between two characters of the same class. */
static int alike(const uint8_t *s)
{
    const uint64_t top = WORD_OF(0x80);
    uint64_t w;
    memcpy(&w, s, sizeof w);
    uint64_t letters = word_letters(w) & top;
    if (letters) return letters == top;
    uint64_t digits = word_ascii(w, '0', 10) & top,
             space = (word_ascii(w, '\t', 5) | word_equal(w, ' ')) & top;
    return digits == top || space == top || !((digits | space | w) & top);
}

size_t sgt_rule_cut(const sgt_rule *r, const void *text, size_t n, const uint64_t *joins)
{
    const uint8_t *s = text;
    const int gpt2 = sgt_rule_by(r) == SGT_RULE_GPT2;
    size_t len, next;
    for (size_t p = n; p-- > 1;) {
        if (p >= 7 && s[p] < 0x80 && (gpt2 || r->digits != 1) && alike(s + p - 7)) {
            /* Skip seven of the eight bytes (six here, and one in the loop's header). The first of
             * the eight is not skipped, because a cut before it may be possible. */
            p -= 6;
            continue;
        }
        /* Do not cut before a continuation byte. To decide about a cut, the category of the
         * character after it must be known, so all bytes of this character (up to four) must be
         * among the n bytes at s. */
        if ((s[p] & 0xC0) == 0x80 || (s[p] >= 0x80 && n - p < 4)) continue;
        const unsigned a = read_set_before(s, p, &len), b = read_set(s + p, n - p, &next);
        if (gpt2 ? gpt2_may_cut(s, n, p, a, len, b, joins) : ends_at(r, s, p, a, b)) return p;
    }
    return 0;
}

size_t sgt_rule_cut_normalized(const sgt_rule *r, const uint8_t *text, size_t n)
{
    const unsigned before = sgt_rule_by(r) == SGT_RULE_GPT2 ? BLANKS : SPACE;
    size_t len;
    for (size_t p = n; p-- > 1;)
        if (text[p] < 0x80 && (read_set(text + p, 1, &len) & before) &&
            !(read_set_before(text, p, &len) & BLANKS))
            return p;
    return 0;
}

/* Return 1 if white space can be cut at offset p so that the part before p is still one piece. This
 * is possible if the character before p (of category a) is a newline. Otherwise, a newline after p
 * could extend a piece across the cut; this cannot happen if the part before p has no newlines and
 * does not follow other white space (`before` is the category of the character before it). */
static int within_blanks(const uint8_t *s, size_t p, unsigned a, unsigned before)
{
    if (run_end(s, p, 0, BLANKS) < p) return 0;
    return a == NEWLINE || (!(before & BLANKS) && run_end(s, p, 0, SPACE) == p);
}

/* For rules that divide words by case: return 1 if a word can be cut at offset p, between two
 * characters of category a, so that the part before p is still one piece and the part after p ends
 * where the word ends. `before` is the category of the character before the word. Upper-case
 * letters are difficult, because between letters without case they may belong to a longer piece. */
static int within_cased(const uint8_t *s, size_t p, unsigned a, unsigned before)
{
    size_t len;
    size_t from = read_set(s, p, &len) & LETTERS ? 0 : len;
    if (a == LOWER) return 1;
    if (a == BOTH) return run_end(s, p, from, MAY_BE_UPPER) == p;
    return run_end(s, p, from, UPPER) == p && (from || !(before & (LETTERS | MARK))) &&
           read_set(s, p, &len) != MARK;
}

/* With GPT-2's rule, a cut at p between two characters of one class divides the piece that contains
 * them and changes no other piece, for these reasons:
 * - The cut does not change the units (characters and ill-formed sequences) on either side of it
 *   (see condition 1 of gpt2_may_cut).
 * - The last piece before the cut starts where the divided piece starts, and ends at the cut, even
 *   if it is white space, because it is then at the end of a text.
 * - The first piece after the cut ends where the divided piece ends. (If the divided piece is white
 *   space before other text, both end before the last white-space character.) It is not a
 *   contraction, because inside a piece no letter follows a quote.
 *
 * For the other rules, see within_blanks and within_cased. */
int sgt_rule_within(const sgt_rule *r, const uint8_t *s, size_t n, size_t p, size_t ahead)
{
    size_t len;
    if ((s[p] & 0xC0) == 0x80 || n - p < 8) return 0;
    unsigned a = read_set_before(s, p, &len), b = read_set(s + p, n - p, &len),
             next = read_set(s + p + len, n - p - len, &len),
             before = ahead ? read_set_before(s - ahead, ahead, &len) : 0;
    if (sgt_rule_by(r) == SGT_RULE_GPT2) return (class_of(a) & b) != 0;
    if ((a & BLANKS) && (b & BLANKS)) return within_blanks(s, p, a, before);
    if (r->cased && (a & LETTERS)) return a == b && within_cased(s, p, a, before);
    if (a & LETTERS) return (b & LETTERS) != 0;
    /* A cut is possible between two characters that are neither letters, numbers nor white space,
     * if a third one follows them. If a letter followed instead, the second character could belong
     * to the word that begins with this letter. */
    const unsigned of = r->cased ? OTHER : OTHERS;
    return (a & of) && (b & of) && (next & of) && run_end(s, p, s[0] == ' ', of) == p;
}

/* ---- cuts inside a piece ---- */

/* Fill in the tables from `joins`. The bytes C0 to FF are divided into eight groups by a hash
 * function that was found by trial. All bytes of a group share one bit, so a byte pair in `joins`
 * also forbids cuts before the other bytes of the group. With GPT-2's vocabulary, this loses 1.1 %
 * of the cuts that `joins` allows in English text, and 0.8 % in text of many scripts. */
void sgt_cuts_make(sgt_cuts *c, const uint64_t *joins)
{
    memset(c, 0, sizeof *c);
    for (unsigned pair = 0; pair < 65536; pair++) {
        const unsigned before = pair >> 8, first = pair & 0xFF;
        if (first < 0xC0 || !(joins[pair >> 6] >> (pair & 63) & 1)) continue;
        const uint8_t group = (uint8_t)(1u << (first * 155 >> 8 & 7));
        c->first[first & 63] = group;
        c->before[before] |= group;
    }
}
