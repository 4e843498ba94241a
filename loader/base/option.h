/* option.h: the description of one command-line option. Parsing, --help, shell completion, --config
 * files and range checks all use this description. Each program has a table of its options
 * (tools/cli/options.h). Options that define a training run are in one table in train/config.c,
 * because several programs share them. */
#ifndef SGT_OPTION_H
#define SGT_OPTION_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

typedef enum sgt_option_kind {
    SGT_OPT_HEADING,
    SGT_OPT_FLAG, /* int: set to 1 */
    /* uint64_t: a number with an optional suffix k, M, G (powers of 1000) or Ki, Mi, Gi (of
     * 1024) */
    SGT_OPT_COUNT,
    SGT_OPT_SIZE,    /* uint64_t: a size in bytes, such as 64MiB, 1G, 512k or 4096 */
    SGT_OPT_REAL,    /* double */
    SGT_OPT_PERCENT, /* double: a fraction given as a percentage: "1%" is 0.01, "none" is 0 */
    SGT_OPT_TEXT,    /* const char *: any text */
    SGT_OPT_CHOICE,  /* const char *: one of the words in `value`, which are separated by | */
    SGT_OPT_WORD,    /* int: index of the given word among those in `value` or `choices` */
    SGT_OPT_LIST,    /* sgt_option_list: the values of all occurrences of the option */
    /* in a program's table: placeholder for all options of section `section` in the table of
     * train/config.c, which are inserted at this position. `name` is the heading that --help prints
     * above them; "": no heading */
    SGT_OPT_ROWS
} sgt_option_kind;

typedef struct sgt_option {
    const char *name; /* name of the option without dashes, or text of the heading */
    char letter;      /* one-letter form; 0: none */
    sgt_option_kind kind;
    /* variable that receives the value. NULL in the table of train/config.c, where `offset` is used
     * instead */
    void *to;
    /* The value as --help shows it, such as "N" or "DIR", or words separated by |. It is NULL for a
     * flag, and for a WORD whose words are in `choices`. If the value of a number ends in "|auto",
     * the user may also give "auto", which lets the program choose.
     *
     * Shell completion offers:
     * - for FILE, DIR, FOLDER, OUT/ and SHARD: files or folders
     * - for a LIST: `words` or `choices`
     * - otherwise: the words that are in lower case */
    const char *value;
    /* description in --help, the manual and shell completion; it begins in lower case and ends
     * without a full stop */
    const char *help;
    /* The default as --help prints it; NULL: none. sgt_options_parse stores a default that is a
     * valid value: a number for an option that takes a number, or one of the words of a WORD or
     * CHOICE. Any other text only describes the default. */
    const char *def;
    /* inclusive bounds of a number. They are checked only if max > min; if max is HUGE_VAL, there
     * is no upper bound */
    double min, max;
    int *given;        /* variable that is set to 1 if the option is given; may be NULL */
    const char *words; /* for a LIST: words that shell completion offers, such as "u16|i32" */
    /* list that ends with NULL. For a WORD: its words, in the order of their indices. For a LIST:
     * the words that --help shows */
    const char *const *choices;
    /* 1: `max` is an exclusive bound: the value must be less than `max`, even after it has been
     * rounded to float; 0: inclusive */
    int below;
    /* in a program's table: the option of train/config.c from which this option inherits. Each
     * member that is 0 or NULL here is copied from there. NULL: inherits nothing */
    const struct sgt_option *as;
    /* In the table of train/config.c: offset of the option's field in the settings struct; the next
     * three members are used only by config.c. */
    size_t offset;
    uint16_t section, flags, needs;
} sgt_option;

#define SGT_DEFAULT_COUNT UINT64_MAX /* value of a COUNT option that the user has not given */
/* value of a REAL option that the user has not given. Neither an option nor a JSON number can have
 * it */
#define SGT_DEFAULT_REAL (-HUGE_VAL)
#define SGT_DEFAULT_WORD (-1) /* value of a WORD option that the user has not given */

#define SGT_OPTION_VALUE 160 /* size in bytes of the buffer `buf` of sgt_option_value */

/* Return whether the option's value is a whole number, stored as uint64_t. */
static inline int sgt_option_is_whole(const sgt_option *o)
{
    return o->kind == SGT_OPT_COUNT || o->kind == SGT_OPT_SIZE;
}

/* Return the value's placeholder as --help shows it. This is o->value, or for a WORD with `choices`
 * the words, separated by | and written into buf. */
const char *sgt_option_value(const sgt_option *o, char buf[SGT_OPTION_VALUE]);

/* Return the index of the word of n bytes at `word` among the words of a WORD or CHOICE option, or
 * -1 if it is not one of them. */
int sgt_option_word(const sgt_option *o, const char *word, size_t n);

/* Check that x is within the option's bounds. Return SGT_OK, or SGT_EUSAGE with a message that
 * states the bounds. `shown` is the value as the user typed it. */
int sgt_option_check(const sgt_option *o, double x, const char *shown, sgt_error *err);

#endif
