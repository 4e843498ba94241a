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

static const sgt_rule rules[] = {
    {.name = "cl100k",
     .text = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+|"
             " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s",
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

const sgt_rule *sgt_rule_at(size_t i) { return i < RULES ? &rules[i] : NULL; }

const sgt_rule *sgt_rule_of(const char *pattern)
{
    for (size_t i = 0; i < RULES; i++)
        if (!strcmp(pattern, rules[i].text)) return &rules[i];
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
