/* rules.c: the texts of the rules. */
#include "tokenize/text/rules.h"

#include <string.h>

#include "tokenize/text/pattern.h"

#define SUFFIX "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPER "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LOWER "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
/* the spelling in Llama 3's, Qwen 2's and cl100k's files for Hugging Face's library */
#define WRITTEN(numbers)                             \
    SUFFIX "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers \
           "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* the spelling of minbpe and nanochat */
#define SHORTER(numbers)                                            \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|" numbers \
    "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"

/* o200k's without contractions, and each digit alone */
#define TEKKEN                                                                                 \
    "[^\\r\\n\\p{L}\\p{N}]?[" UPPER "]*[" LOWER "]+|[^\\r\\n\\p{L}\\p{N}]?[" UPPER "]+[" LOWER \
    "]*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const sgt_rule rules[] = {
    {.name = "cl100k",
     .text = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+|"
             " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s",
     /* {1,3}+ is a repeat of {1,3} in Oniguruma, and $ the end of a line */
     .regex = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|(?>\\p{N}{1,3})|"
              " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++\\z|\\s*[\\r\\n]|\\s+(?!\\S)|\\s",
     .digits = 3,
     .whole_end = 1},
    {.name = "o200k",
     .text = "[^\\r\\n\\p{L}\\p{N}]?[" UPPER "]*[" LOWER "]+" SUFFIX "?|"
             "[^\\r\\n\\p{L}\\p{N}]?[" UPPER "]+[" LOWER "]*" SUFFIX "?|"
             "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     .digits = 3,
     .cased = 1},
    {.name = "llama3", .text = WRITTEN("\\p{N}{1,3}"), .digits = 3},
    {.name = "qwen2", .text = WRITTEN("\\p{N}"), .digits = 1},
    {.name = "nanochat", .text = SHORTER("\\p{N}{1,2}"), .digits = 2},
    {.text = SHORTER("\\p{N}{1,3}"), .digits = 3},
};
enum { RULES = sizeof rules / sizeof *rules };

/* patterns in a tokenizer.json that are known, but split by PCRE2 */
static const struct {
    const char *text, *regex;
} others[] = {
    {"(?s).+", "(?m).+"},
    {TEKKEN, TEKKEN},
};
enum { OTHERS = sizeof others / sizeof *others };

const sgt_rule *sgt_rule_at(size_t i) { return i < RULES ? &rules[i] : NULL; }

const sgt_rule *sgt_rule_of(const char *pattern)
{
    for (size_t i = 0; i < RULES; i++)
        if (!strcmp(pattern, rules[i].text)) return &rules[i];
    return NULL;
}

static const char *regex_of(const sgt_rule *r) { return r->regex ? r->regex : r->text; }

const char *sgt_rule_from_regex(const char *regex)
{
    if (sgt_pattern_is_gpt2(regex)) return SGT_PIECE_RULE;
    for (size_t i = 0; i < RULES; i++)
        if (!strcmp(regex, regex_of(&rules[i]))) return rules[i].text;
    for (size_t i = 0; i < OTHERS; i++)
        if (!strcmp(regex, others[i].regex)) return others[i].text;
    return NULL;
}

const char *sgt_rule_to_regex(const char *pattern)
{
    const sgt_rule *r = sgt_rule_of(pattern);
    if (r) return regex_of(r);
    for (size_t i = 0; i < OTHERS; i++)
        if (!strcmp(pattern, others[i].text)) return others[i].regex;
    return NULL;
}

const char *sgt_rule_pattern(const char *name_or_pattern)
{
    if (!name_or_pattern) return NULL;
    if (!strcmp(name_or_pattern, "gpt2")) return SGT_PIECE_RULE;
    for (size_t i = 0; i < RULES; i++)
        if (rules[i].name && !strcmp(name_or_pattern, rules[i].name)) return rules[i].text;
    return name_or_pattern;
}
