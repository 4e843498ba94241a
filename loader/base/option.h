/* option.h: one option of a program, described once. Parsing, --help, completion in a shell,
 * --config files and range checks all come from the description. Programs list theirs in tables
 * (tools/cli/options.h); the options that define a training run are rows of train/settings.c, which
 * several programs share. */
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
    SGT_OPT_TEXT,    /* const char * */
    SGT_OPT_CHOICE,  /* const char *, one of the words in `value` separated by | */
    SGT_OPT_WORD,    /* int: the number of one of the choices, in `value` or `choices` */
    SGT_OPT_LIST,    /* sgt_option_list: every time it is given, one more */
    /* in a program's table: a heading, if `name` is not "", and the rows of `section` */
    SGT_OPT_ROWS
} sgt_option_kind;

typedef struct sgt_option {
    const char *name; /* without the dashes; a heading's title */
    char letter;      /* 0: none */
    sgt_option_kind kind;
    void *to; /* what it sets; NULL in a row, which has `offset` */
    /* NULL for a flag and for a WORD with `choices`; else "N", or the choices. Completion goes by
     * it: words in small letters, with | between them, stand for themselves, FILE and DIR for such
     * (FOLDER, OUT/ and SHARD too), LIST for some of `words` or `choices`. A number whose value
     * ends in "|auto" may be left to the program. */
    const char *value;
    const char *help; /* one line, lower case, no full stop */
    const char *def;  /* the default as printed; NULL: it does nothing where it is not given */
    /* bounds of a number where max > min, both allowed; max HUGE_VAL: any number from min on */
    double min, max;
    int *given;        /* if not NULL: set to 1 when the option was given */
    const char *words; /* of a LIST: "u16|i32", for completion */
    /* of a WORD: its words in the order of their numbers, ended by NULL; or of a LIST, whose help
     * names them */
    const char *const *choices;
    int below;                   /* max itself is not allowed, nor what rounds to it as a float */
    const struct sgt_option *as; /* a row: what is 0 or NULL here is as it is there */
    /* Of rows alone: where the field is in the settings; what else their owner keeps. */
    size_t offset;
    uint8_t section, flags, needs;
} sgt_option;

#define SGT_DEFAULT_COUNT UINT64_MAX /* a count that is yet to be decided */
/* a number that is yet to be decided; no option and no JSON can say it */
#define SGT_DEFAULT_REAL (-HUGE_VAL)
#define SGT_DEFAULT_WORD (-1) /* a word that is yet to be decided */

#define SGT_OPTION_VALUE 160 /* bytes */

/* Whether its value is a uint64_t. */
static inline int sgt_option_is_whole(const sgt_option *o)
{
    return o->kind == SGT_OPT_COUNT || o->kind == SGT_OPT_SIZE;
}

/* `value` as printed; of a WORD its choices with | between them, in buf. */
const char *sgt_option_value(const sgt_option *o, char buf[SGT_OPTION_VALUE]);

/* The number of the word of n bytes among the choices of a WORD or a CHOICE; -1: it is none of
 * them. */
int sgt_option_word(const sgt_option *o, const char *word, size_t n);

/* Whether x is within the bounds. SGT_EUSAGE says what they are; `shown` is x as the user knows
 * it. */
int sgt_option_check(const sgt_option *o, double x, const char *shown, sgt_error *err);

#endif
