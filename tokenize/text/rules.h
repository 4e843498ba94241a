/* rules.h: split rules in common use beside GPT-2's: cl100k, o200k, Llama 3's, Qwen 2's and
 * nanochat's. They are recognized by their text, and split by code of our own (split_rule.c and
 * split_rule_blocks.h), which gives the pieces of PCRE2 (pattern.h) several times as fast.
 *
 *     const sgt_rule *r = sgt_rule_of(pattern);           // NULL: only PCRE2 can split by it
 *     sgt_splitter sp = sgt_splitter_by(r, text, n);      // then as in split.h
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
#ifndef SGT_RULES_H
#define SGT_RULES_H

#include "tokenize/text/split.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sgt_rule {
    const char *name; /* name that --pattern takes; NULL: another spelling of a rule */
    const char *text; /* pattern in PCRE2's syntax */
    /* the same pattern in Oniguruma's syntax, which Hugging Face's library reads; NULL: `text` */
    const char *regex;
    uint8_t digits, cased, whole_end;
};

/* Return the rule whose text is this PCRE2 pattern, or NULL. The result is static. */
const sgt_rule *sgt_rule_of(const char *pattern);

/* Return the PCRE2 pattern that splits as Hugging Face's library does by the regular expression of a
 * tokenizer.json; NULL: not known. Known are GPT-2's, the rules, Mistral's (Tekken), and the one
 * that makes the whole text a piece. The result is static. */
const char *sgt_rule_from_regex(const char *regex);

/* Return the regular expression by which Hugging Face's library splits as this PCRE2 pattern does;
 * NULL: not known. The result is static. */
const char *sgt_rule_to_regex(const char *pattern);

/* Return the pattern called gpt2, cl100k, o200k, llama3, qwen2 or nanochat. Any other argument,
 * NULL too, is returned as it is. */
const char *sgt_rule_pattern(const char *name_or_pattern);

/* Return rule i of the table, for tests; NULL after the last one. */
const sgt_rule *sgt_rule_at(size_t i);

/* Return a splitter by a rule (NULL: GPT-2's). Pieces and cuts are defined as in split.h. */
sgt_splitter sgt_splitter_by(const sgt_rule *r, const void *text, size_t n);

/* Return a safe cut, as sgt_split_cut does, for text that is split by rule r (NULL: GPT-2's).
 * `joins` is used for GPT-2's rule only. */
size_t sgt_rule_cut(const sgt_rule *r, const void *text, size_t n, const uint64_t *joins);

/* Return what sgt_split_within returns, for rule r (NULL: GPT-2's). A piece must start at s[0], and
 * `ahead` bytes of text come before it. May return 0 although a cut is possible. */
int sgt_rule_within(const sgt_rule *r, const uint8_t *s, size_t n, size_t p, size_t ahead);

#ifdef __cplusplus
}
#endif
#endif
