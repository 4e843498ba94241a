/* option.h: the description of one option of a program. Parsing, --help, shell completion, --config
 * files and range checks all use this description. Programs list their options in tables
 * (tools/cli/options.h). Options that define a training run are rows of the table in
 * train/config.c, which several programs share. */
#ifndef SGT_OPTION_H
#define SGT_OPTION_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

typedef enum sgt_option_kind {
    SGT_OPT_HEADING,
    SGT_OPT_FLAG,    /* int: set to 1 */
    SGT_OPT_COUNT,   /* uint64_t: k = 10^3, M, G; Ki, Mi, Gi */
    SGT_OPT_SIZE,    /* uint64_t bytes: 64MiB, 1G, 512k, plain bytes */
    SGT_OPT_REAL,    /* double */
    SGT_OPT_PERCENT, /* double fraction: "1%" is 0.01, "none" is 0 */
    SGT_OPT_TEXT,    /* const char *: any text */
    SGT_OPT_CHOICE,  /* const char *, one of the words in `value` separated by | */
    SGT_OPT_WORD,    /* int: index of the chosen word in `value` or `choices` */
    SGT_OPT_LIST,    /* sgt_option_list: each time the option is given, its value is appended */
    /* in a program's table: includes all rows of `section` of train/config.c; `name` is their
     * heading ("": none) */
    SGT_OPT_ROWS
} sgt_option_kind;

typedef struct sgt_option {
    const char *name; /* name without the dashes; for a heading, its title */
    char letter;      /* one-letter form; 0: none */
    sgt_option_kind kind;
    /* variable that receives the value; NULL in a row of train/config.c, which uses `offset`
     * instead */
    void *to;
    /* The value as --help shows it: "N", or words separated by |. NULL for a flag, and for a WORD
     * with `choices`. Shell completion offers the words if they are lower-case, files or folders
     * for FILE, DIR, FOLDER, OUT/ and SHARD, and `words` or `choices` for a LIST. If the value of a
     * number ends in "|auto", the user may also give "auto", and the program chooses. */
    const char *value;
    /* text of --help, the manual and completion: begins in lower case, ends without a full stop */
    const char *help;
    /* The default as --help prints it; NULL: none is printed. sgt_options_parse stores it if it is
     * a number and the option takes one, or if it is one of the words of a WORD or CHOICE; any
     * other text only describes the default. */
    const char *def;
    /* inclusive bounds of a number, checked if max > min; max HUGE_VAL: no upper bound */
    double min, max;
    int *given;        /* set to 1 if the option was given; NULL: not recorded */
    const char *words; /* for a LIST: words that completion offers, such as "u16|i32" */
    /* for a WORD: its words, in the order of their indices; for a LIST: the words that --help
     * shows. Ends with NULL */
    const char *const *choices;
    int below; /* 1: the value must be below max, also after rounding to float */
    /* in a program's table: row of train/config.c from which all members that are 0 or NULL here
     * are copied */
    const struct sgt_option *as;
    /* In a row of train/config.c: offset of the field in the settings, and three members that only
     * config.c uses. */
    size_t offset;
    uint16_t section, flags, needs;
} sgt_option;

#define SGT_DEFAULT_COUNT UINT64_MAX /* value of a count that the user has not set */
/* value of a REAL that the user has not set; no option and no JSON number can express it */
#define SGT_DEFAULT_REAL (-HUGE_VAL)
#define SGT_DEFAULT_WORD (-1) /* value of a WORD that the user has not set */

#define SGT_OPTION_VALUE 160 /* size in bytes of the buffer of sgt_option_value */

/* Return whether the option's value is a uint64_t. */
static inline int sgt_option_is_whole(const sgt_option *o)
{
    return o->kind == SGT_OPT_COUNT || o->kind == SGT_OPT_SIZE;
}

/* Return the value as --help shows it: `value`, or for a WORD with `choices`, the words separated
 * by |, written into buf. */
const char *sgt_option_value(const sgt_option *o, char buf[SGT_OPTION_VALUE]);

/* Return the index of a word of n bytes among the choices of a WORD or a CHOICE; -1 if it is not
 * one of them. */
int sgt_option_word(const sgt_option *o, const char *word, size_t n);

/* Return SGT_OK if x is within the option's bounds. Otherwise return SGT_EUSAGE with a message that
 * states the bounds; `shown` is x as the user wrote it. */
int sgt_option_check(const sgt_option *o, double x, const char *shown, sgt_error *err);

#endif
