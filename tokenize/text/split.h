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
 * Classes are unicode.h's. The text may be any bytes. Each ill-formed unit (utf8.h) counts as one
 * character that is neither letter, number nor white space, as U+FFFD does, and keeps its bytes. So
 * ill-formed text has the same pieces as its copy with U+FFFD in place of each unit. Pieces laid
 * end to end are always the text. The splitter makes one linear pass: it never looks behind, and
 * looks ahead at most three bytes and one run of white space. */
#ifndef SGT_SPLIT_H
#define SGT_SPLIT_H

#include <stddef.h>
#include <stdint.h>

typedef struct sgt_rule sgt_rule; /* a rule other than GPT-2's, see below */

/* ---- cuts inside a piece ----
 *
 * Where a piece may be cut before a non-ASCII character. A cut is allowed if no token holds
 * the character's first byte right behind the byte before it: then no merge crosses the cut. Text
 * without spaces falls into short words that way, and short words repeat often.
 *
 * A vocabulary's `joins` has 65,536 bits, too many for vector look-ups. These two tables have one
 * byte an entry instead: first bytes share one of eight bits. Sharing a bit can only forbid cuts that
 * `joins` would allow. */

typedef struct sgt_cuts {
    /* for each byte from C0 to FF, by its lower 6 bits: the bit of its group; 0: inside no token */
    uint8_t first[64];
    /* for each byte b: the bits of the groups of all bytes from C0 to FF that come right after b
     * within some token */
    uint8_t before[256];
} sgt_cuts;

/* Return whether a piece that holds p[-1] and p[0] may be cut between these two bytes. */
static inline int sgt_cuts_at(const sgt_cuts *c, const uint8_t *p)
{
    return p[0] >= 0xC0 && !(c->first[p[0] & 63] & c->before[p[-1]]);
}

/* Fill *c from joins (1024 words). Its bit `first byte << 8 | second byte` is 1 if some token holds
 * these two bytes side by side. */
void sgt_cuts_make(sgt_cuts *c, const uint64_t *joins);

/* ---- GPT-2's rule ---- */

/* State that the vector code carries from one block of 64 bytes to the next. */
typedef struct sgt_split_carry {
    uint64_t low, high, blank; /* previous block: the bits of its classes (sgt_class), U+0020 */
    uint64_t clear, set;       /* next block: piece starts that a contraction removes and adds */
    /* other rules of split.h: a flag each for the previous block's last byte, and how many numbers its
     * last piece has; for these rules `blank` is such a flag too */
    uint64_t takes, blanks, line, other, letter, plain, lower, both, newline, number;
    unsigned digits;
    unsigned over, kind; /* bytes of the next block that continue a character, and its sgt_kind */
    size_t piece;        /* offset at which the last piece starts; parts may start behind it */
} sgt_split_carry;

/* A splitter's position and state. It owns no memory, so nothing is freed, and a copy continues
 * independently (not a pattern's, pattern.h). */
typedef struct sgt_splitter {
    const uint8_t *text;
    size_t n;
    size_t at; /* offset at which the next piece starts */
    /* NULL at first; if set, pieces are returned in parts, cut wherever these tables allow */
    const sgt_cuts *cuts;
    const sgt_rule *rule; /* NULL: GPT-2's */

    /* The fields below belong to split.c, which takes 64 bytes at a time. */
    size_t (*split)(struct sgt_splitter *s, uint32_t *ends, size_t max);
    /* end of the piece whose parts are being returned one character at a time */
    size_t end;
    /* other rules of split.h: offset at which the blocks began; offset up to which text is split one
     * character at a time */
    size_t base, hard;
    size_t block; /* offset of the next block to look at */
    /* piece starts in the previous block that were not returned yet */
    uint64_t starts;
    sgt_split_carry carry;
    /* bytes of the next block that continue a character begun in this one: the bits of their
     * classes */
    uint64_t in[2];
    struct sgt_pattern *pattern; /* what splits if PCRE2 does (pattern.h) */
} sgt_splitter;

/* Return a splitter by a rule (NULL: GPT-2's) at the start of text[0..n). The caller must keep the
 * text unchanged until the last piece. No byte outside of it is read. */
sgt_splitter sgt_splitter_by(const sgt_rule *r, const void *text, size_t n);

/* Find the next pieces. ends[i] is the end of piece i, relative to s->at before the call; after it,
 * s->at is the end of the last piece. Returns the number of pieces: 1 to `max` (max >= 1), or 0 at
 * the end of the text, and where a pattern fails. All `max` entries of ends[] may be overwritten,
 * whatever is returned. Vector code fills ends[] by up to 64 pieces at a time, so pass 64 more than
 * make a call worthwhile. A piece of UINT32_MAX bytes or more is returned alone, as UINT32_MAX:
 * s->at tells its end. */
size_t sgt_split(sgt_splitter *s, uint32_t *ends, size_t max);

/* Return a safe cut: an offset p, 0 < p < n, as near to n as one is known. The tokens of the text
 * before p, followed by those of the text from p on, are the tokens of the whole; counts of
 * ill-formed units add up the same way. That holds for any text behind these n bytes, and for any
 * text before them if they start at a safe cut. Returns 0 if no cut is known (all white space, or a
 * run of one letter): call again with a longer block.
 *
 * The search goes backwards from n. joins: byte pairs that occur inside tokens (vocab.h),
 * or NULL; used for GPT-2's rule only. With joins, words are also cut between two bytes that no token holds side by side. That
 * allows cuts in text without spaces (Chinese, Thai). */
size_t sgt_rule_cut(const sgt_rule *r, const void *text, size_t n, const uint64_t *joins);

/* Return a safe cut, as sgt_rule_cut does, for text that is normalized (normalize.h) and then
 * split. The cut is before an ASCII white-space character, by other rules than GPT-2's no newline,
 * that follows a character which is not white space. It is safe because normalizing never reaches
 * across ASCII and never turns other characters at the end into white space. Also, no piece holds
 * white space after other characters, except the newlines that end pieces of those rules. */
size_t sgt_rule_cut_normalized(const sgt_rule *r, const uint8_t *text, size_t n);

/* Return whether s[p], 0 < p < n, begins a character in the middle of a piece that starts at s[0]
 * behind `ahead` bytes of text. A cut there splits that piece in two and leaves all others
 * unchanged; whether it is safe depends on the piece's tokens (bpe/bpe.h). May return 0 although a
 * cut is possible, as when too little of s[n] follows p to tell. */
int sgt_rule_within(const sgt_rule *r, const uint8_t *s, size_t n, size_t p, size_t ahead);

/* ---- other rules ----
 *
 * Split rules in common use beside GPT-2's: cl100k, o200k, Llama 3's, Qwen 2's and
 * nanochat's. They are recognized by their text, and split by code of our own (split_blocks.h and
 * split.c), which gives the pieces of PCRE2 (pattern.h) several times as fast.
 *
 *     const sgt_rule r = sgt_rule_of("llama3");           // r.by: what splits by it
 *     sgt_splitter sp = sgt_splitter_by(&r, text, n);     // then as above
 *
 * Such a rule takes the first of these that fits; L, N and O are letters, numbers and what is
 * neither these nor white space:
 *
 *     '(?i:[sdmt]|ll|ve|re)   a contraction, not with `cased`
 *     [^\r\n\p{L}\p{N}]?L+    a word, with one character before it; with `cased` a word by case,
 *                             as below
 *     N{1,digits}
 *      ?O+[\r\n]*             with `cased` [\r\n/]*
 *     \s+$                    with `whole_end` only
 *     \s*[\r\n]+|\s+(?!\S)|\s+
 *
 * A word by case is U*l+, or else U+, and a contraction may follow it. U is upper case (Lu, Lt), l
 * lower case (Ll); other letters and marks (Lm, Lo, M) are both. */

/* what splits text by a rule: the code of the rules above, GPT-2's, or PCRE2 */
typedef enum sgt_rule_code { SGT_RULE_OTHER, SGT_RULE_GPT2, SGT_RULE_PCRE2 } sgt_rule_code;

struct sgt_rule {
    const char *name; /* name that --pattern takes; NULL: it has none */
    const char *text; /* pattern in PCRE2's syntax */
    /* the same pattern in Oniguruma's syntax, which Hugging Face's library reads; NULL: not
     * known */
    const char *regex;
    uint8_t digits, cased, whole_end;
    sgt_rule_code by;
};

/* Return what splits by a rule; NULL: GPT-2's. */
static inline sgt_rule_code sgt_rule_by(const sgt_rule *r) { return r ? r->by : SGT_RULE_GPT2; }

/* Return the rule with this name (gpt2, cl100k, o200k, llama3, qwen2 or nanochat) or PCRE2 pattern;
 * NULL: GPT-2's. Any other pattern is a rule of its own, by PCRE2, and `text` is then the
 * argument. */
sgt_rule sgt_rule_of(const char *name_or_pattern);

/* Return the PCRE2 pattern that splits as Hugging Face's library does by the regular expression of a
 * tokenizer.json; NULL: not known. Known are GPT-2's, the rules, Mistral's (Tekken), DeepSeek's, and
 * the one that makes the whole text a piece. before: what has split already, if the expression
 * splits its pieces once more; else NULL. The result is static. */
const char *sgt_rule_from_regex(const char *before, const char *regex);

/* Return rule i of the table, for tests; NULL after the last one. */
const sgt_rule *sgt_rule_at(size_t i);

#endif
