/* split.h: GPT-2's split rule, without a regular expression:
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
 * A piece is a pre-token: text that is encoded separately. The classes are those of unicode.h. The
 * text may be any bytes. Each ill-formed unit (utf8.h) counts as one character that is neither
 * letter, number nor white space, as U+FFFD does, and keeps its bytes. So ill-formed text has the
 * same pieces as its copy with U+FFFD in place of each unit. Pieces laid end to end are always the
 * whole text. The splitter makes one linear pass: it never looks back, and looks ahead at most
 * three bytes and one run of white space. */
#ifndef SGT_SPLIT_H
#define SGT_SPLIT_H

#include <stddef.h>
#include <stdint.h>

typedef struct sgt_rule sgt_rule; /* a rule other than GPT-2's (see below) */

/* ---- cuts inside a piece ----
 *
 * These tables tell where a piece may be cut before a non-ASCII character. A cut is allowed if no
 * token holds the byte before the cut and the character's first byte next to each other: then no
 * merge crosses the cut. This divides text without spaces into short words, which repeat often.
 *
 * A vocabulary's `joins` has 65,536 bits, too many for vector look-ups. These two tables have one
 * byte per entry: the first bytes of characters are divided into eight groups, with one bit per
 * group. Sharing a bit can only forbid cuts that `joins` would allow. */

typedef struct sgt_cuts {
    /* for each byte from C0 to FF, by its lower 6 bits: the bit of its group; 0 if no token holds
     * the byte */
    uint8_t first[64];
    /* for each byte b: the bits of the groups of all bytes from C0 to FF that follow b directly in
     * some token */
    uint8_t before[256];
} sgt_cuts;

/* Return whether the tables allow a piece with p[-1] and p[0] to be cut between these two bytes. */
static inline int sgt_cuts_at(const sgt_cuts *c, const uint8_t *p)
{
    return p[0] >= 0xC0 && !(c->first[p[0] & 63] & c->before[p[-1]]);
}

/* Fill in *c from joins (1024 words), whose bit `first byte << 8 | second byte` is 1 if some token
 * holds these two bytes next to each other. */
void sgt_cuts_make(sgt_cuts *c, const uint64_t *joins);

/* ---- GPT-2's rule ---- */

/* State that the vector code carries from one block of 64 bytes to the next. */
typedef struct sgt_split_carry {
    /* of the previous block: bits of its classes (sgt_class), and U+0020 */
    uint64_t low, high, blank;
    /* for the next block: piece starts that a contraction removes, and that it adds */
    uint64_t clear, set;
    /* for the other rules of split.h: one flag each for the previous block's last byte, and how
     * many numbers its last piece has. For these rules `blank` is such a flag too */
    uint64_t takes, blanks, line, other, letter, plain, lower, both, newline, number;
    unsigned digits;
    /* bytes of the next block that continue a character of this one, and that character's
     * sgt_kind */
    unsigned over, kind;
    size_t piece; /* offset at which the last piece starts; parts of it may start later */
} sgt_split_carry;

/* A splitter's position and state. It owns no memory, so it need not be freed. A copy continues
 * independently, unless the splitter is a pattern's (pattern.h). */
typedef struct sgt_splitter {
    const uint8_t *text;
    size_t n;
    size_t at; /* offset at which the next piece starts */
    /* NULL at first. If set, pieces are returned in parts, cut wherever these tables allow it */
    const sgt_cuts *cuts;
    const sgt_rule *rule; /* NULL: GPT-2's */

    /* The fields below belong to split.c, which reads 64 bytes at a time. */
    size_t (*split)(struct sgt_splitter *s, uint32_t *ends, size_t max);
    /* end of the piece whose parts are being returned by the code for single characters */
    size_t end;
    /* for the other rules of split.h: offset at which the blocks began; offset up to which text is
     * split one character at a time */
    size_t base, hard;
    size_t block; /* offset of the next block */
    /* piece starts in the previous block that have not been returned yet */
    uint64_t starts;
    sgt_split_carry carry;
    /* the bytes of the next block that continue a character begun in this one: the bits of their
     * class */
    uint64_t in[2];
    struct sgt_pattern *pattern; /* the pattern, if PCRE2 splits (pattern.h) */
} sgt_splitter;

/* Return a splitter by rule r (NULL: GPT-2's) at the start of text[0..n). The text must stay valid
 * and unchanged until the last piece. No byte outside it is read. */
sgt_splitter sgt_splitter_by(const sgt_rule *r, const void *text, size_t n);

/* Find the next pieces. ends[i] is the end of piece i, counted from the value of s->at before the
 * call. The call advances s->at to the end of the last piece. It returns the number of pieces, 1 to
 * `max` (max >= 1); or 0 at the end of the text, or if a pattern fails. Whatever is returned, all
 * `max` entries of ends[] may be overwritten. Vector code fills ends[] by up to 64 pieces at a
 * time, so pass 64 entries more than make a call worthwhile. A piece of UINT32_MAX bytes or more is
 * returned by itself, as UINT32_MAX; s->at is then its end. */
size_t sgt_split(sgt_splitter *s, uint32_t *ends, size_t max);

/* Return a safe cut: an offset p, 0 < p < n, as close to n as possible. The tokens of the text
 * before p, followed by those of the text from p on, are the tokens of the whole text; the counts
 * of ill-formed units add up in the same way. That holds for any text after these n bytes, and for
 * any text before them if they start at a safe cut. Return 0 if no cut is known (all white space,
 * or a run of one letter); then call again with a longer text.
 *
 * The search goes backwards from n. joins: the byte pairs that occur inside tokens (vocab.h), or
 * NULL; used only for GPT-2's rule. With joins, a word may also be cut between two bytes that no
 * token holds next to each other. That allows cuts in text without spaces (Chinese, Thai). */
size_t sgt_rule_cut(const sgt_rule *r, const void *text, size_t n, const uint64_t *joins);

/* Return a safe cut, as sgt_rule_cut does, for text that is normalized (normalize.h) before it is
 * split. The cut is before an ASCII white-space character that follows a character which is not
 * white space; for rules other than GPT-2's, the white space must not be a newline. The cut is safe
 * for two reasons. Normalizing never crosses ASCII, and never turns the last character of other
 * text into white space. And no piece holds white space after other characters, except the newlines
 * that end pieces of the other rules. */
size_t sgt_rule_cut_normalized(const sgt_rule *r, const uint8_t *text, size_t n);

/* Return whether s[p], 0 < p < n, begins a character inside a piece that starts at s[0], with
 * `ahead` bytes of text before it. A cut there divides that piece in two and leaves all others
 * unchanged; whether the cut is safe depends on the piece's tokens (bpe/bpe.h). The result may be 0
 * although a cut is possible, for example if too little of s[n] follows p to tell. */
int sgt_rule_within(const sgt_rule *r, const uint8_t *s, size_t n, size_t p, size_t ahead);

/* ---- other rules ----
 *
 * The other split rules in common use: those of cl100k, o200k, Llama 3, Qwen 2 and nanochat. They
 * are recognized by their text, and split by code of our own (split_blocks.h and split.c), which
 * gives the same pieces as PCRE2 (pattern.h) several times as fast.
 *
 *     const sgt_rule r = sgt_rule_of("llama3");           // r.by: the code that splits by it
 *     sgt_splitter sp = sgt_splitter_by(&r, text, n);     // then as above
 *
 * Such a rule uses the first of these that matches. L, N and O stand for letters, numbers, and
 * characters that are neither these nor white space:
 *
 *     '(?i:[sdmt]|ll|ve|re)   a contraction; not with `cased`
 *     [^\r\n\p{L}\p{N}]?L+    a word, with one character before it; with `cased` a word by case,
 *                             as below
 *     N{1,digits}
 *      ?O+[\r\n]*             with `cased` [\r\n/]*
 *     \s+$                    only with `whole_end`
 *     \s*[\r\n]+|\s+(?!\S)|\s+
 *
 * A word by case is U*l+, or else U+, and a contraction may follow it. U is upper case (Lu, Lt),
 * and l is lower case (Ll). Other letters and marks (Lm, Lo, M) are both. */

/* which code splits by a rule: that for the rules above, that for GPT-2's, or PCRE2 */
typedef enum sgt_rule_code { SGT_RULE_OTHER, SGT_RULE_GPT2, SGT_RULE_PCRE2 } sgt_rule_code;

struct sgt_rule {
    const char *name; /* name that --pattern accepts; NULL: the rule has no name */
    const char *text; /* pattern in PCRE2's syntax */
    /* the same pattern in Oniguruma's syntax, which Hugging Face's library uses; NULL: not known */
    const char *regex;
    uint8_t digits, cased, whole_end;
    sgt_rule_code by;
};

/* Return which code splits by a rule; NULL is GPT-2's rule. */
static inline sgt_rule_code sgt_rule_by(const sgt_rule *r) { return r ? r->by : SGT_RULE_GPT2; }

/* Return the rule with this name (gpt2, cl100k, o200k, llama3, qwen2 or nanochat) or with this
 * PCRE2 pattern; NULL gives GPT-2's. Any other pattern is a new rule for PCRE2, and its `text` is
 * the argument itself, which must outlive it. */
sgt_rule sgt_rule_of(const char *name_or_pattern);

/* Return the PCRE2 pattern that gives the pieces which Hugging Face's library gives for `regex` in
 * a tokenizer.json; NULL if it is not known. Known are GPT-2's pattern, those of the other rules,
 * Mistral's (Tekken), DeepSeek's, and the one that makes the whole text one piece. before: the
 * pattern that splits first, if `regex` splits its pieces again; else NULL. The result is a static
 * string. */
const char *sgt_rule_from_regex(const char *before, const char *regex);

/* Return rule i of the table, for tests; NULL after the last one. */
const sgt_rule *sgt_rule_at(size_t i);

#endif
