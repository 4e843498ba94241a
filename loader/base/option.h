/* option.h: the description of a command-line option. Argument parsing, --help, shell completion,
 * --config files and range checks all use this description. Each program has a table of its options
 * (tools/cli/options.h). The options that define a training run are in a table in train/config.c,
 * because several programs share these options. */
#ifndef SGT_OPTION_H
#define SGT_OPTION_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

typedef enum sgt_option_kind {
    SGT_OPT_HEADING,
    SGT_OPT_FLAG, /* int: set to 1 */
    /* uint64_t: a number with an optional suffix: k, M, G (powers of 1000) or Ki, Mi, Gi (powers of
     * 1024) */
    SGT_OPT_COUNT,
    SGT_OPT_SIZE, /* uint64_t: a size in bytes, such as 64MiB, 1G, 512k or 4096 */
    SGT_OPT_REAL, /* double */
    /* double: a fraction, given as a percentage: "1%" is stored as 0.01, and "none" as 0 */
    SGT_OPT_PERCENT,
    SGT_OPT_TEXT,   /* const char *: any text */
    SGT_OPT_CHOICE, /* const char *: one of the words in `value`, which are separated by | */
    /* int: index of the word that the user gave, among the words in `value` or `choices` */
    SGT_OPT_WORD,
    /* sgt_option_list: the values of all occurrences of the option on the command line */
    SGT_OPT_LIST,
    /* in a program's table: placeholder at which all options of section `section` of the table in
     * train/config.c are inserted. `name` is the heading that --help prints above these options;
     * "": no heading */
    SGT_OPT_ROWS
} sgt_option_kind;

typedef struct sgt_option {
    /* name of the option without dashes, or for SGT_OPT_HEADING the heading's text */
    const char *name;
    char letter; /* one-letter form; 0: none */
    sgt_option_kind kind;
    /* variable in which the value is stored. NULL in the table of train/config.c, whose options
     * have `offset` instead */
    void *to;
    /* The value as --help shows it: a placeholder such as "N" or "DIR", or the allowed words
     * separated by |. It is NULL for a flag, and for a WORD whose words are in `choices`. If the
     * `value` of a numeric option ends in "|auto", the user may also give "auto", which lets the
     * program choose.
     *
     * Shell completion offers:
     * - if `value` is FILE, DIR, FOLDER, OUT/ or SHARD: files or folders
     * - for a LIST: the words in `words` or `choices`
     * - otherwise: the words of `value` that are in lower case */
    const char *value;
    /* description of the option in --help, the manual and shell completion; it begins in lower case
     * and ends without a full stop */
    const char *help;
    /* The default value as --help prints it; NULL: none. sgt_options_parse stores it as the
     * option's value if it is a valid value: a number for a numeric option, or one of the words of
     * a WORD or CHOICE. Any other text only describes the default. */
    const char *def;
    /* inclusive lower and upper bound of a number, checked only if max > min. If `max` is HUGE_VAL,
     * there is no upper bound */
    double min, max;
    int *given; /* variable that is set to 1 if the user gives the option; may be NULL */
    /* for a LIST: the words that shell completion offers, separated by |, such as "u16|i32" */
    const char *words;
    /* list of words that ends with NULL. For a WORD: the allowed words, in the order of their
     * indices. For a LIST: the words that --help shows */
    const char *const *choices;
    /* 1: the upper bound `max` is exclusive, so the value must be less than `max` even after it has
     * been rounded to float; 0: `max` is inclusive */
    int below;
    /* in a program's table: the option of train/config.c from which this option inherits its
     * description. Each member that is 0 or NULL here is copied from that option. NULL: inherits
     * nothing */
    const struct sgt_option *as;
    /* in the table of train/config.c: offset in bytes of the option's field in the struct of
     * settings. Only config.c uses this and the next three members */
    size_t offset;
    uint16_t section, flags, needs;
} sgt_option;

#define SGT_DEFAULT_COUNT UINT64_MAX /* value of a COUNT option that the user has not given */
/* value of a REAL option that the user has not given: minus infinity, which neither an option nor a
 * JSON number can express */
#define SGT_DEFAULT_REAL (-HUGE_VAL)
#define SGT_DEFAULT_WORD (-1) /* value of a WORD option that the user has not given */

#define SGT_OPTION_VALUE 160 /* size in bytes of the buffer `buf` of sgt_option_value */

/* Return 1 if the value of the option is a whole number, stored as uint64_t, otherwise 0. */
static inline int sgt_option_is_whole(const sgt_option *o)
{
    return o->kind == SGT_OPT_COUNT || o->kind == SGT_OPT_SIZE;
}

/* Return the placeholder of the value, as --help shows it. This is o->value or, for a WORD with
 * `choices`, the allowed words, separated by | and written into `buf`. */
const char *sgt_option_value(const sgt_option *o, char buf[SGT_OPTION_VALUE]);

/* Return the index of a word among the words of a WORD or CHOICE option, or -1 if the option does
 * not have that word. The word is the n bytes at `word`. */
int sgt_option_word(const sgt_option *o, const char *word, size_t n);

/* Check that x is within the bounds of the option. Return 0, or SGT_EUSAGE with a message that
 * states the bounds. `shown` is the value as the user typed it. */
int sgt_option_check(const sgt_option *o, double x, const char *shown, sgt_error *err);

#endif
