/* split.h: splits text by GPT-2's rule, but without a regular expression:
 *
 *     '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 *     sgt_splitter sp = sgt_splitter_by(NULL, text, n);
 *     uint32_t ends[256];
 *     size_t from = 0, count;
 *     for (; (count = sgt_split(&sp, ends, 256)) > 0; from = sp.at)
 *         for (size_t i = 0; i < count; i++)
 *             use(text + from + (i ? ends[i - 1] : 0), text + from + ends[i]);
 *
 * A piece is a pre-token: text that is encoded separately. Pieces laid end to end are always the
 * whole text. The text may be any bytes, and the classes of characters are those of unicode.h. Each
 * ill-formed unit (utf8.h) counts as one character that is neither letter, number nor white space.
 * So does U+FFFD: ill-formed text is split as if each unit were U+FFFD, but keeps its bytes. The
 * splitter makes one linear pass: it never looks back, and looks ahead at most three bytes and one
 * run of white space. */
#ifndef SGT_SPLIT_H
#define SGT_SPLIT_H

#include <stddef.h>
#include <stdint.h>

typedef struct sgt_rule sgt_rule; /* a split rule; GPT-2's is also written as NULL */

/* ---- cuts inside a piece ----
 *
 * These tables say where a piece may be cut before a non-ASCII character: where no token contains
 * the byte before the cut followed by the character's first byte. No merge then crosses the cut.
 * Such cuts divide text without spaces into short words, which repeat often.
 *
 * A vocabulary's table of such byte pairs (`joins`) has 65,536 bits, too many for look-ups by
 * vector instructions. The two tables here have one byte per entry instead. The first bytes of
 * characters are divided into eight groups, with one bit per group. Because the bytes of a group
 * share a bit, some cuts that `joins` allows are not made, but no wrong cut is. */

typedef struct sgt_cuts {
    /* first[b & 63], for a byte b from C0 to FF: the bit of b's group (one of eight), or 0 if no
     * token contains b after another byte */
    uint8_t first[64];
    /* before[b], for any byte b: the bits of the groups of all bytes from C0 to FF that directly
     * follow b in some token */
    uint8_t before[256];
} sgt_cuts;

/* Return 1 if the tables allow a cut between the bytes p[-1] and p[0], which are in one piece. */
static inline int sgt_cuts_at(const sgt_cuts *c, const uint8_t *p)
{
    return p[0] >= 0xC0 && !(c->first[p[0] & 63] & c->before[p[-1]]);
}

/* Fill in *c from `joins`, a table of 65,536 bits: bit `first byte << 8 | second byte` is 1 if some
 * token contains these two bytes next to each other. */
void sgt_cuts_make(sgt_cuts *c, const uint64_t *joins);

/* ---- GPT-2's rule ---- */

/* State that split_blocks.h passes from one block of 64 bytes to the next. */
typedef struct sgt_split_carry {
    /* Bit masks of the previous block's bytes. low, high: bytes whose class (sgt_class) has its low
     * or its high bit set; blank: bytes that are U+0020. */
    uint64_t low, high, blank;
    /* Corrections to the next block's mask of piece starts, made if a contraction (such as 'll)
     * reaches the end of this block. clear: starts to remove; set: starts to add. */
    uint64_t clear, set;
    /* Only used by the rules other than GPT-2's. split_blocks.h computes masks of the bytes of a
     * block that have certain properties, such as `letter`. Each field here up to `number`, and
     * also `blank`, is such a mask's bit for the last byte of the previous block. These bits decide
     * if a piece starts at the next block's first byte. digits: number of numeric characters so far
     * in the piece that ends the previous block. */
    uint64_t takes, blanks, line, other, letter, plain, lower, both, newline, number;
    unsigned digits;
    /* over: number of bytes of this block's last character that are in the next block; kind:
     * sgt_kind of that character */
    unsigned over, kind;
    /* offset at which the last piece found so far starts, even if only some of its parts have been
     * returned */
    size_t piece;
} sgt_split_carry;

/* The position and state of a splitter. It owns no memory, so it need not be freed. A copy can be
 * used independently of the original, unless the splitter uses a pattern (pattern.h). */
typedef struct sgt_splitter {
    const uint8_t *text;
    size_t n;
    size_t at; /* offset in `text` at which the next piece starts */
    /* Tables that say where a piece may be cut (sgt_cuts), or NULL, as in a new splitter. If not
     * NULL, each piece is returned in parts, cut at every offset that the tables allow. */
    const sgt_cuts *cuts;
    const sgt_rule *rule; /* NULL: GPT-2's */

    /* The fields from here on are private to the code that splits, which reads blocks of 64
     * bytes. */
    size_t (*split)(struct sgt_splitter *s, uint32_t *ends, size_t max);
    /* End offset of the piece that is being returned in parts. Only used while text is split one
     * character at a time. */
    size_t end;
    /* Used by the rules other than GPT-2's. Text that cannot be split in blocks of 64 bytes is
     * split one character at a time. hard: end offset of such text; base: offset of the first block
     * after it. */
    size_t base, hard;
    size_t block; /* offset of the next block */
    /* bit mask of the previous block's piece starts that have not been returned yet, as the ends of
     * the pieces before them */
    uint64_t starts;
    sgt_split_carry carry;
    /* Bit masks of the bytes at the start of the next block that continue this block's last
     * character. in[i] is this mask if bit i of the character's class is set, and 0 otherwise. */
    uint64_t in[2];
    /* the pattern, if PCRE2 does the splitting (pattern.h); else NULL */
    struct sgt_pattern *pattern;
} sgt_splitter;

/* Return a splitter for the n bytes at `text` that uses rule r; NULL is GPT-2's rule. The text must
 * stay valid and unchanged until the last piece. No byte outside the text is read. */
sgt_splitter sgt_splitter_by(const sgt_rule *r, const void *text, size_t n);

/* Find the next pieces, and advance s->at to the end of the last one. ends[i] is the end of piece
 * i, relative to s->at before the call. Return the number of pieces, from 1 to `max`, or 0 at the
 * end of the text or if a pattern fails.
 *
 * The call may overwrite all `max` entries of ends[], whatever it returns. Vector code stops when
 * fewer than 64 entries are left, so `max` should be at least 64 more than the number of pieces
 * wanted. A piece of UINT32_MAX bytes or more is returned by itself, as UINT32_MAX; s->at is its
 * actual end. */
size_t sgt_split(sgt_splitter *s, uint32_t *ends, size_t max);

/* Return a safe cut: an offset p, 0 < p < n, as close to n as possible, at which text can be
 * divided without changing its ids. The tokens of the text before p, followed by those of the text
 * from p on, are then the tokens of the whole text. The numbers of ill-formed units add up in the
 * same way. This holds whatever text follows these n bytes. It also holds whatever text precedes
 * them, if they start at a safe cut. Return 0 if no cut is found (for example, in white space or a
 * run of one letter); the caller can then try again with a longer text.
 *
 * joins: the byte pairs that occur inside tokens (vocab.h); may be NULL; only used with GPT-2's
 * rule. With joins, a word may also be cut between two bytes that no token contains next to each
 * other. Such cuts are needed in text without spaces (Chinese, Thai). */
size_t sgt_rule_cut(const sgt_rule *r, const void *text, size_t n, const uint64_t *joins);

/* Return a safe cut, as sgt_rule_cut does, but for text that is normalized (normalize.h) before it
 * is split. The cut is before an ASCII white-space character that follows a character other than
 * white space. With a rule other than GPT-2's, this white-space character is not a newline. The cut
 * is safe for two reasons:
 * - Normalizing never crosses ASCII, and never turns the last character of other text into white
 *   space.
 * - No piece contains white space after other characters. (The newlines that end pieces of the
 *   other rules are an exception.) */
size_t sgt_rule_cut_normalized(const sgt_rule *r, const uint8_t *text, size_t n);

/* Return 1 if the split rule allows a cut of s at p, 0 < p < n. The cut then divides the piece that
 * starts at s[0] into two pieces, and leaves all other pieces unchanged. (Whether it changes any
 * ids also depends on the tokens at p; see bpe/bpe.h.) The function may return 0 although a cut is
 * possible, for example if too little text follows p. ahead: number of bytes before s that can be
 * read. */
int sgt_rule_within(const sgt_rule *r, const uint8_t *s, size_t n, size_t p, size_t ahead);

/* ---- other rules ----
 *
 * The split rules of cl100k, o200k, Llama 3, Qwen 2 and nanochat are in common use, too. They are
 * recognized by their text. sgt's code for them (split_blocks.h and split.c) gives the same pieces
 * as PCRE2 (pattern.h), several times as fast.
 *
 *     const sgt_rule r = sgt_rule_of("llama3");           // r.by: the code that splits by it
 *     sgt_splitter sp = sgt_splitter_by(&r, text, n);     // then as above
 *
 * The alternatives of such a rule are listed here; the first one that matches is used. Some depend
 * on the fields `cased`, `digits` and `whole_end` of sgt_rule. L stands for a letter, N for a
 * number, and O for a character that is neither of these nor white space:
 *
 *     '(?i:[sdmt]|ll|ve|re)   a contraction; not with `cased`
 *     [^\r\n\p{L}\p{N}]?L+    a word, with one character before it; with `cased` a word by case,
 *                             as below
 *     N{1,digits}
 *      ?O+[\r\n]*             with `cased` [\r\n/]*
 *     \s+$                    only with `whole_end`
 *     \s*[\r\n]+|\s+(?!\S)|\s+
 *
 * A word by case is divided where its case changes: it is U*l+, or else U+, and a contraction may
 * follow it. U is upper case (Lu, Lt), and l is lower case (Ll). Other letters and marks (Lm, Lo,
 * M) count as both. */

/* which code splits text by a rule: `SGT_RULE_OTHER` is sgt's code for the rules of cl100k, o200k
 * and so on, `SGT_RULE_GPT2` is sgt's code for GPT-2's rule, and `SGT_RULE_PCRE2` is PCRE2 */
typedef enum sgt_rule_code { SGT_RULE_OTHER, SGT_RULE_GPT2, SGT_RULE_PCRE2 } sgt_rule_code;

struct sgt_rule {
    const char *name; /* name for --pattern; NULL if the rule has no name */
    const char *text; /* pattern in PCRE2's syntax */
    /* pattern that gives the same pieces as `text` in Hugging Face's library, which uses
     * Oniguruma's syntax; NULL if unknown */
    const char *regex;
    uint8_t digits, cased, whole_end;
    sgt_rule_code by;
};

/* Return the code that splits text by rule r. r may be NULL for GPT-2's rule. */
static inline sgt_rule_code sgt_rule_by(const sgt_rule *r) { return r ? r->by : SGT_RULE_GPT2; }

/* Return the rule with this name (gpt2, cl100k, o200k, llama3, qwen2 or nanochat) or this PCRE2
 * pattern; NULL gives GPT-2's rule. If the pattern is none of these rules, return a new rule for
 * PCRE2 whose `text` is the argument itself; the argument must outlive it. */
sgt_rule sgt_rule_of(const char *name_or_pattern);

/* Return the PCRE2 pattern that gives the same pieces as `regex`, a pattern of a Hugging Face
 * tokenizer.json, or NULL if sgt does not know `regex`. The result is a static string. sgt knows
 * the patterns of GPT-2, of the other rules, of Mistral (Tekken) and of DeepSeek, and the pattern
 * that leaves the text in one piece. Some files first split by one pattern and then split the
 * pieces by another: `before` is the first pattern, and `regex` the second. In other cases,
 * `before` is NULL. */
const char *sgt_rule_from_regex(const char *before, const char *regex);

/* For tests: return rule i of the table of rules, or NULL if i is past its end. */
const sgt_rule *sgt_rule_at(size_t i);

#endif
