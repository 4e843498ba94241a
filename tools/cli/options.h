/* options.h: a program's command line as one table, from which parsing, --help and completion in a
 * shell come; its man page is held to it by tests/cli/manual.sh.
 *
 *     static struct { uint64_t batch; const char *split; int quiet; } o = {.batch = 8};
 *     static const sgt_option table[] = {
 *         {"Data"},                                                                      // a heading: name alone
 *         {"batch-size", 'b', SGT_OPT_COUNT, &o.batch, "N", "rows of a batch", .min = 1, .max = 1 << 20},
 *         {"split", 0, SGT_OPT_CHOICE, &o.split, "train|val", "which shards of a folder"},
 *         {"quiet", 'q', SGT_OPT_FLAG, &o.quiet, NULL, "say nothing unless something is wrong"},
 *         {0}};
 *     static const sgt_program program = {"sgt-x", "sgt-x [OPTION]... DIR", "one sentence", table, "sgt-x out/", ...};
 *     int first = sgt_options_parse(&program, argc, argv);  // does not come back from --help, --version or wrong usage
 *
 * Values given stay as text where the option is TEXT, LIST or CHOICE. --name VALUE and --name=VALUE
 * both work; "--" ends options; options and operands may be mixed. Numbers are parsed to their last
 * character: 12, 512k, 1.5M, 64MiB. */
#ifndef SGT_CLI_OPTIONS_H
#define SGT_CLI_OPTIONS_H

#include <stdint.h>

#include "base/option.h"

#define SGT_OPTION_LIST 64 /* times at most */

typedef struct sgt_option_list {
    const char *items[SGT_OPTION_LIST];
    uint64_t count;
} sgt_option_list;

typedef struct sgt_program sgt_program;

/* sgt-bench's loader, tokenize, ...: each has a table of its own. */
typedef struct sgt_command {
    const char *name;
    const char *what; /* what it does, in half a line */
    const sgt_program *program;
    int (*run)(int argc, char **argv); /* argv[0] is its name; returns the exit code */
} sgt_command;

struct sgt_program {
    const char *name;  /* "sgt-tokenize" */
    const char *usage; /* lines after "usage: " */
    const char *about; /* a sentence or two */
    const sgt_option *options;
    const char *examples; /* lines at the end of --help */
    /* number of this process if it is one of several: above 0 it prints no errors; or NULL */
    uint32_t (*rank)(void);
    /* of the settings, ended by one without a name; they stand where the table has ROWS */
    const sgt_option *rows;
    void *settings; /* that rows set, and */
    int *given;     /* for each row whether it was given */
    /* if not NULL: the first operand is the name of one; NULL ends them */
    const sgt_command *const *commands;
};

enum { SGT_EXIT_OK = 0, SGT_EXIT_FAILED = 1, SGT_EXIT_USAGE = 2, SGT_EXIT_INTERRUPTED = 130 };

/* Option i of the program, headings too, with everything it takes from a row filled in. 0: there
 * are no more. */
int sgt_option_at(const sgt_program *p, size_t i, sgt_option *o);

/* Parses argv, moving operands to argv[return value ...argc-1] in their order. Handles --help
 * (stdout, exit 0) and --version (stdout, exit 0), and, shown in no help, --completion
 * bash|zsh|fish (completion.h). Wrong usage: one line, which names what is near to what was typed,
 * and "try 'NAME --help'" on stderr, exit 2. */
int sgt_options_parse(const sgt_program *p, int argc, char **argv);

/* Where p has commands: runs the one that argv[1] names and returns its exit code. */
int sgt_run_command(const sgt_program *p, int argc, char **argv);

/* The same for one option from elsewhere (a --config file): 0 or SGT_EUSAGE. value NULL for a
 * flag. */
int sgt_options_set(const sgt_program *p, const char *name, const char *value, sgt_error *err);

/* "sgt-x: message", "try 'sgt-x --help'", exit 2. */
_Noreturn void sgt_usage(const sgt_program *p, const char *fmt, ...) SGT_PRINTF(2, 3);

/* "sgt-x: text" on stderr; returns the exit code that err->code means (1; 2 for SGT_EUSAGE; 130 for
 * SGT_ESTOPPED). */
int sgt_report_failure(const sgt_program *p, const sgt_error *err);

/* --cpu LEVEL: a level that is unknown, or that this machine has not, is wrong usage. Before any
 * work. */
void sgt_take_cpu(const sgt_program *p, const char *level);

/* A comma-separated list into at most `max` pieces (each malloc'd); returns how many, or -1 for too
 * many or an empty piece. */
int sgt_split_list(const char *list, char **pieces, int max);

/* 0, or -1 when s is not such a number or does not fit */
int sgt_parse_count(const char *s, uint64_t *out);
int sgt_parse_size(const char *s, uint64_t *out);
int sgt_parse_real(const char *s, double *out);

#endif
