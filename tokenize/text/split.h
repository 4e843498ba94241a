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
 * A piece is a pre-token: a section of text that is encoded by itself. Together, the pieces are the
 * entire text, which can be any sequence of bytes. The classes of characters are those of
 * unicode.h. Text with ill-formed UTF-8 is split as if each ill-formed sequence (utf8.h) were
 * U+FFFD, which is neither letter, number nor white space, but the pieces contain the original
 * bytes. Text is split in a single pass, without looking back, and by looking ahead at most three
 * bytes or to the end of white space. */
#ifndef SGT_SPLIT_H
#define SGT_SPLIT_H

#include <stddef.h>
#include <stdint.h>

typedef struct sgt_rule sgt_rule; /* a split rule; NULL stands for GPT-2's rule */

/* ---- cuts inside a piece ----
 *
 * These tables tell where a piece can be cut before a non-ASCII character without changing its
 * tokens: this is possible if no token contains the byte before the cut followed by the character's
 * first byte, because then no merge crosses the cut. Such cuts divide text that has no spaces into
 * short words, which repeat often.
 *
 * A vocabulary's table of the byte pairs inside tokens (`joins`) has 65,536 bits, too many for
 * look-ups by vector instructions. Therefore, the 64 bytes C0 to FF, with which characters begin,
 * are divided into eight groups. Each group has one bit in the entries of the two tables here,
 * which are bytes. Because the bytes of a group share a bit, some cuts that `joins` allows are not
 * made, but no wrong cut is made. */

typedef struct sgt_cuts {
    /* For each byte b from C0 to FF, first[b & 63] is the bit of b's group (one of eight groups),
     * or 0 if no token contains b after another byte. */
    uint8_t first[64];
    /* For each byte b, before[b] has the bits of those groups that contain a byte that directly
     * follows b in some token. */
    uint8_t before[256];
} sgt_cuts;

/* Return 1 if the tables allow a cut between the bytes p[-1] and p[0] of a piece, else 0. */
static inline int sgt_cuts_at(const sgt_cuts *c, const uint8_t *p)
{
    return p[0] >= 0xC0 && !(c->first[p[0] & 63] & c->before[p[-1]]);
}

/* Fill in the tables *c from `joins`, a bit table of byte pairs: the bit with index `first byte <<
 * 8 | second byte` is 1 if some token contains these two bytes in this order. */
void sgt_cuts_make(sgt_cuts *c, const uint64_t *joins);

/* ---- GPT-2's rule ---- */

/* State of splitting that split_blocks.h carries over from one block of 64 bytes to the next */
typedef struct sgt_split_carry {
    /* Masks with one bit per byte of the previous block. low, high: the low and the high bit of the
     * class (sgt_class) of each byte's character. blank: 1 if the byte is U+0020. */
    uint64_t low, high, blank;
    /* Corrections to the mask of the next block's bytes at which a piece starts, needed if a
     * contraction (such as 'll) extends to the end of this block. clear: bits to clear. set: bits
     * to set. */
    uint64_t clear, set;
    /* These fields are used only with rules other than GPT-2's. `takes` to `number`, and `blank`
     * above, are the bits for the last byte of the previous block in the masks of the same names
     * that split_blocks.h computes. They help to decide if a piece starts at the first byte of the
     * next block. digits: number of numeric characters so far in the piece at the end of the
     * previous block. */
    uint64_t takes, blanks, line, other, letter, plain, lower, both, newline, number;
    unsigned digits;
    /* over: number of bytes by which the last character of this block extends into the next block.
     * kind: sgt_kind of this character. */
    unsigned over, kind;
    /* offset at which the last piece found so far starts, even if some parts of it have already
     * been returned */
    size_t piece;
} sgt_split_carry;

/* Position and state of a splitter. It needs not be freed, because it owns no memory. A copy can be
 * used independently of the original, except for a splitter by a pattern (pattern.h). */
typedef struct sgt_splitter {
    const uint8_t *text;
    size_t n;
    size_t at; /* offset in `text` of the next piece that sgt_split will return */
    /* Tables of the places at which a piece can be cut (sgt_cuts). If they are set, each piece is
     * returned in several parts, cut wherever the tables allow. NULL, as in a new splitter: each
     * piece is returned as a whole. */
    const sgt_cuts *cuts;
    const sgt_rule *rule; /* NULL: GPT-2's */

    /* The following fields are private to the code that splits text (in blocks of 64 bytes, or with
     * PCRE2). */
    size_t (*split)(struct sgt_splitter *s, uint32_t *ends, size_t max);
    /* offset at which the piece ends that is being returned in parts; used only while text is split
     * one character at a time */
    size_t end;
    /* Used only with rules other than GPT-2's, which split some text one character at a time,
     * because it cannot be split in blocks. hard: offset at which such text ends. base: offset at
     * which the first block after it begins. */
    size_t base, hard;
    size_t block; /* offset of the next block */
    /* mask of those bytes of the previous block at which a piece starts that has not been reported
     * yet as the end of the piece before it */
    uint64_t starts;
    sgt_split_carry carry;
    /* Masks of the first bytes of the next block that belong to the last character of this block.
     * If bit 0 of the class of this character is set, in[0] is this mask, otherwise 0; in[1] is the
     * same for bit 1. */
    uint64_t in[2];
    /* the pattern, if PCRE2 splits the text (pattern.h); otherwise NULL */
    struct sgt_pattern *pattern;
} sgt_splitter;

/* Return a splitter for the n bytes at `text` that uses split rule r, or GPT-2's rule if r is NULL.
 * The text must stay valid and unchanged as long as the splitter is used. No byte outside the n
 * bytes is read. */
sgt_splitter sgt_splitter_by(const sgt_rule *r, const void *text, size_t n);

/* Find the next pieces, and return their number, which is at most `max`. Set ends[i] to the end of
 * piece i, as an offset from the value of s->at before the call, and advance s->at to the end of
 * the last piece. Return 0 at the end of the text, or if a pattern fails.
 *
 * All `max` entries of `ends` can be overwritten, whatever the result. Vector code stops when fewer
 * than 64 entries are left, so `max` should be larger than the desired number of pieces by at least
 * 64. A piece of UINT32_MAX bytes or more is returned alone, with UINT32_MAX in ends[0]; s->at is
 * the offset at which it really ends. */
size_t sgt_split(sgt_splitter *s, uint32_t *ends, size_t max);

/* Return a safe cut: the largest offset p found, 0 < p < n, at which the text can be divided
 * without changing its token ids. The tokens of the text before p, followed by the tokens of the
 * text from p on, are the tokens of the entire text. The numbers of ill-formed sequences in both
 * also add up to the number in the entire text. The cut is safe whatever text follows the n bytes,
 * and also whatever text precedes them, if they begin at a safe cut. Return 0 if no safe cut is
 * found (for example, if all n bytes are white space or the same letter); the caller can try again
 * with more text.
 *
 * joins: table of the byte pairs that occur inside tokens (vocab.h), or NULL. It is used only with
 * GPT-2's rule. With this table, a word can also be cut between two bytes that are not next to each
 * other in any token. Such cuts are needed in text without spaces (Chinese, Thai). */
size_t sgt_rule_cut(const sgt_rule *r, const void *text, size_t n, const uint64_t *joins);

/* Return a safe cut, as sgt_rule_cut does, but for text that is normalized (normalize.h) before it
 * is split; return 0 if none is found. The cut is before an ASCII white-space character that
 * follows a character other than white space; with rules other than GPT-2's, it is not before a
 * newline. The cut is safe for two reasons:
 * - Normalizing never combines ASCII white space with other characters, and never turns the
 *   character before the cut into white space.
 * - In a piece, white space never follows other characters, except for the newlines at the end of
 *   some pieces of rules other than GPT-2's. */
size_t sgt_rule_cut_normalized(const sgt_rule *r, const uint8_t *text, size_t n);

/* Return 1 if s can be cut at offset p, 0 < p < n, so that the piece that begins at s[0] becomes
 * two pieces and all other pieces stay the same. (Whether the cut changes any token ids also
 * depends on the tokens at p; see bpe/bpe.h.) The function can return 0 even if such a cut is
 * possible, for example if too little text follows p. ahead: number of bytes before s[0] that can
 * be read. */
int sgt_rule_within(const sgt_rule *r, const uint8_t *s, size_t n, size_t p, size_t ahead);

/* ---- other rules ----
 *
 * The split rules of cl100k, o200k, Llama 3, Qwen 2 and nanochat are also in common use. sgt
 * recognizes their patterns and splits text by them with its own code (split_blocks.h and split.c),
 * which gives the same pieces as PCRE2 (pattern.h) but is several times as fast.
 *
 *     const sgt_rule r = sgt_rule_of("llama3");           // r.by: the code that splits by it
 *     sgt_splitter sp = sgt_splitter_by(&r, text, n);     // then as above
 *
 * Each of these rules has the following alternatives, of which the first one that matches is used.
 * Some of them depend on the fields `cased`, `digits` and `whole_end` of sgt_rule. L stands for a
 * letter, N for a number, and O for a character that is neither letter, number nor white space:
 *
 *     '(?i:[sdmt]|ll|ve|re)   a contraction; not with `cased`
 *     [^\r\n\p{L}\p{N}]?L+    a word, with one character before it; with `cased` a word by case,
 *                             as below
 *     N{1,digits}
 *      ?O+[\r\n]*             with `cased` [\r\n/]*
 *     \s+$                    only with `whole_end`
 *     \s*[\r\n]+|\s+(?!\S)|\s+
 *
 * With `cased`, words are divided where their case changes: a word is U*l+ or, if this does not
 * match, U+, each with an optional contraction after it. U is an upper-case character (Lu, Lt), and
 * l is a lower-case one (Ll). Other letters and marks (Lm, Lo, M) count as both. */

/* Code that splits text by a rule: sgt's own code for rules such as those of cl100k and o200k
 * (`SGT_RULE_OTHER`), sgt's own code for GPT-2's rule (`SGT_RULE_GPT2`), or PCRE2
 * (`SGT_RULE_PCRE2`) */
typedef enum sgt_rule_code { SGT_RULE_OTHER, SGT_RULE_GPT2, SGT_RULE_PCRE2 } sgt_rule_code;

struct sgt_rule {
    const char *name; /* name of the rule, for --pattern; NULL if it has no name */
    const char *text; /* pattern in PCRE2's syntax */
    /* pattern that gives the same pieces in Hugging Face's library, which uses Oniguruma's syntax,
     * as `text` gives in PCRE2; NULL if unknown */
    const char *regex;
    uint8_t digits, cased, whole_end;
    sgt_rule_code by;
};

/* Return which code splits text by rule r. If r is NULL, it is GPT-2's rule. */
static inline sgt_rule_code sgt_rule_by(const sgt_rule *r) { return r ? r->by : SGT_RULE_GPT2; }

/* Return the split rule that has this name (gpt2, cl100k, o200k, llama3, qwen2 or nanochat) or this
 * PCRE2 pattern. If the argument is NULL, return GPT-2's rule. If it is neither a known name nor a
 * known pattern, return a rule that PCRE2 executes; its `text` points to the argument, which must
 * outlive the rule. */
sgt_rule sgt_rule_of(const char *name_or_pattern);

/* Return a PCRE2 pattern that gives the same pieces as `regex`, a pattern in a Hugging Face
 * tokenizer.json, or NULL if sgt does not know `regex`. The result is a static string. sgt knows
 * the patterns of the rules above, of Mistral (Tekken) and of DeepSeek, and the pattern that leaves
 * the text in one piece. Some tokenizer files first split the text by one pattern and then split
 * the pieces by another; for these, `before` is the first pattern, and `regex` the second.
 * Otherwise, `before` is NULL. */
const char *sgt_rule_from_regex(const char *before, const char *regex);

/* For tests: return the rule with index i in the table of rules that sgt's own code splits by, or
 * NULL if there is no such rule. */
const sgt_rule *sgt_rule_at(size_t i);

#endif
