/* options.h: a program's command line as one table, which is used for parsing, for --help, for
 * completion in shells, and for OPTIONS in the manual (tools/man.awk).
 *
 *     static struct { uint64_t batch; const char *split; int quiet; } o;
 *     static const sgt_option table[] = {
 *         {"Data"},                                   // a heading has only a name
 *         {"batch-size", 'b', SGT_OPT_COUNT, &o.batch, "N", "rows per batch", .def = "8",
 *          .min = 1, .max = 1 << 20},
 *         {"split", 0, SGT_OPT_CHOICE, &o.split, "train|val", "which shards of a folder"},
 *         {"quiet", 'q', SGT_OPT_FLAG, &o.quiet, NULL, "print nothing unless something is wrong"},
 *         {0}};
 *     static const sgt_program program = {"sgt-x", "sgt-x [OPTION]... DIR", "one sentence", table,
 *                                         "sgt-x out/", ...};
 *     int first = sgt_options_parse(&program, argc, argv);
 *                                        // does not return after --help, --version or wrong usage
 *
 * TEXT, LIST and CHOICE keep the value as text. --name VALUE and --name=VALUE both work; "--" ends
 * options; options and operands may be mixed. Numbers are parsed to their last character: 12, 512k,
 * 1.5M, 64MiB. */
#ifndef SGT_CLI_OPTIONS_H
#define SGT_CLI_OPTIONS_H

#include <stdint.h>

#include "loader/base/option.h"

#define SGT_OPTION_LIST 64 /* most times that a LIST option may be given */

typedef struct sgt_option_list {
    const char *items[SGT_OPTION_LIST];
    uint64_t count;
} sgt_option_list;

typedef struct sgt_program sgt_program;
typedef struct sgt_command sgt_command;

/* A subcommand, such as sgt-bench loader; it has a table of its own. */
struct sgt_command {
    const char *name;
    const char *what; /* description in half a line */
    const sgt_program *program;
    /* runs this subcommand and returns its exit code; argv[0] is its name */
    int (*run)(const sgt_command *c, int argc, char **argv);
};

struct sgt_program {
    const char *name; /* "sgt-tokenize" */
    /* Forms of the command line, one per line; printed after "usage: ". Operands follow
     * "[OPTION]... ": if none do, the program refuses any; if there is one form, and it has some,
     * the program refuses to run without. */
    const char *usage;
    const char *about; /* description in a sentence or two */
    const sgt_option *options;
    /* Lines printed at the end of --help, with an indentation of 2. The first is also printed if
     * operands are missing. */
    const char *examples;
    /* Returns the number of this process if it is one of several; only number 0 prints errors.
     * NULL: a single process. */
    uint32_t (*rank)(void);
    /* rows of the settings, which replace ROWS in the table; the last row has no name */
    const sgt_option *rows;
    void *settings; /* struct that the options of `rows` set */
    int *given; /* array with a flag for each option of `rows`, set to 1 if the option is given */
    /* list of subcommands that ends with NULL; the first operand names one. NULL: no subcommands */
    const sgt_command *const *commands;
};

enum { SGT_EXIT_OK = 0, SGT_EXIT_FAILED = 1, SGT_EXIT_USAGE = 2, SGT_EXIT_INTERRUPTED = 130 };

/* Set *o to option i of the program, where headings count, and the last ones are those of every
 * program; with the fields that it takes from a row filled in. Return 0 if there is no such option,
 * else 1. */
int sgt_option_at(const sgt_program *p, size_t i, sgt_option *o);

/* Set options to their defaults where these are numbers or words of the option, then parse argv.
 * Returns the index of the first operand in argv, to whose end all operands are moved
 * in their order. Wrong usage prints one line with a suggestion, and "try 'NAME --help'", on stderr,
 * and exits with code 2. --help and --version print to stdout and exit with code 0, and so does
 * --completion, which --help does not list:
 *
 *     bash, zsh, fish  a script with which that shell completes options, their choices, files,
 *                      folders and subcommands
 *     words -- WORD... what may stand at the last WORD, for these scripts
 *     table            for manuals and tests: a line per option or heading with fields separated by
 *                      tabs: subcommand, name, letter, value, default, kind, help ("-": none) */
int sgt_options_parse(const sgt_program *p, int argc, char **argv);

/* Run the subcommand that argv[1] names, and return its exit code. p must have subcommands. */
int sgt_run_command(const sgt_program *p, int argc, char **argv);

/* Print "sgt-x: message" and "try 'sgt-x --help'", and exit with code 2. */
_Noreturn void sgt_usage(const sgt_program *p, const char *fmt, ...) SGT_PRINTF(2, 3);

/* Return the exit code for an SGT_E*: 2 for SGT_EUSAGE, 130 for SGT_ESTOPPED, 1 for others. */
int sgt_exit_code(int error);

/* Print the error as "sgt-x: text" on stderr, and return its exit code. */
int sgt_report_failure(const sgt_program *p, const sgt_error *err);

/* Flush standard output and return the exit code of a program whose work returned rc: 0, or a
 * negative SGT_E* with *err. Prints the error, and after wrong usage "try 'sgt-x --help'". A wrong
 * usage that begins with "--NAME VALUE: " ends with a suggestion if one of the option's words is
 * similar to VALUE. */
int sgt_end_program(const sgt_program *p, int rc, sgt_error *err);

/* Apply --cpu LEVEL. End the program with wrong usage if the level is unknown or this machine lacks
 * it. Call it before any work. */
void sgt_take_cpu(const sgt_program *p, const char *level);

enum { SGT_HINT = 320 }; /* bytes of a suggestion */

/* Write a suggestion to hint, "; did you mean --batch-size?", and return hint; it is "" if no known
 * word is similar to the n bytes at `word`, which are the unknown word. `known` holds the known
 * words, separated by | or by commas and spaces. Only words that begin with a small letter or a
 * digit count; others are placeholders, such as FILE. `before` is put in front of each word. A name
 * that other programs have (learning-rate for lr) stands for its word. Else words are suggested
 * that begin with `word`, else those with a later part that does (weight-decay for "decay"), else
 * the one with the fewest typing errors, else the longest that begins a part of `word` (workers for
 * "num-workers"). For the last, and with one error, names of other programs count too, also for an
 * operand's placeholder. If =VALUE follows the n bytes, it follows the suggestion. exactly: only for
 * a known word or another program's name, without errors. */
const char *sgt_suggest(const char *word, size_t n, const char *known, const char *before,
                        int exactly, char hint[SGT_HINT]);

/* Parse all of s as a number and set *out. Return 0, or -1 if s is no such number or it does not
 * fit. sgt_parse_size also accepts a B after the suffix. */
int sgt_parse_count(const char *s, uint64_t *out);
int sgt_parse_size(const char *s, uint64_t *out);
int sgt_parse_real(const char *s, double *out);

#endif
