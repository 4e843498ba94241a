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
 * Options of the kinds TEXT, LIST and CHOICE keep their value as text. --name VALUE and
 * --name=VALUE both work; "--" ends options; options and operands may be mixed. Numbers are parsed
 * to their last character: 12, 512k, 1.5M, 64MiB. */
#ifndef SGT_CLI_OPTIONS_H
#define SGT_CLI_OPTIONS_H

#include <stdint.h>

#include "loader/base/option.h"

#define SGT_OPTION_LIST 64 /* the most times that one LIST option may be given */

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
    /* Forms of the command line, one per line, printed after "usage: ". Operands follow
     * "[OPTION]... ". If no form has operands, the program refuses any operand. If the only form
     * has operands, the program refuses to run without them. */
    const char *usage;
    const char *about; /* description in a sentence or two */
    const sgt_option *options;
    /* Example command lines for the end of --help, which indents them by 2. The first is also
     * printed if operands are missing. */
    const char *examples;
    /* Returns the rank of this process; only rank 0 prints errors. NULL: the program has one
     * process. */
    uint32_t (*rank)(void);
    /* shared options that replace the row ROWS of the table; the last one has no name */
    const sgt_option *rows;
    void *settings; /* struct that the options of `rows` set */
    int *given; /* array with a flag for each option of `rows`, set to 1 if the option is given */
    /* list of subcommands that ends with NULL; the first operand names a subcommand. NULL: there
     * are none */
    const sgt_command *const *commands;
};

enum { SGT_EXIT_OK = 0, SGT_EXIT_FAILED = 1, SGT_EXIT_USAGE = 2, SGT_EXIT_INTERRUPTED = 130 };

/* Set *o to option i of the program, with the fields that it takes from a row filled in. Headings
 * count as options, and the options that every program has come last. Return 1, or 0 if i is too
 * large. */
int sgt_option_at(const sgt_program *p, size_t i, sgt_option *o);

/* Set every option whose default is a number or one of its words to that default, then parse argv.
 * All operands are moved to the end of argv, in their order; the function returns the index of the
 * first of them. Wrong usage prints one line with a suggestion, and "try 'NAME --help'", on stderr,
 * and exits with code 2. --help and --version print to stdout and exit with code 0. So does
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

/* Print the error as "sgt-x: text" on stderr, and return the exit code for it (sgt_exit_code). */
int sgt_report_failure(const sgt_program *p, const sgt_error *err);

/* Flush standard output and return the exit code of a program whose work returned rc: 0, or a
 * negative SGT_E* with *err. Prints the error, and after wrong usage "try 'sgt-x --help'". A wrong
 * usage that begins with "--NAME VALUE: " ends with a suggestion if one of the option's words is
 * similar to VALUE. */
int sgt_end_program(const sgt_program *p, int rc, sgt_error *err);

/* Apply --cpu LEVEL. If the level is unknown or this machine lacks it, print that and exit with
 * code 2. Call this before any work. */
void sgt_take_cpu(const sgt_program *p, const char *level);

enum { SGT_HINT = 320 }; /* bytes of a suggestion */

/* Write a suggestion to hint, such as "; did you mean --batch-size?", and return hint. It is "" if
 * no known word is similar to the unknown word, which is the n bytes at `word`. `known` holds the
 * known words, separated by | or by commas and spaces. Only words that begin with a small letter or
 * a digit count; others are placeholders, such as FILE. `before` is put in front of each suggested
 * word.
 *
 * The function suggests, in this order of preference: words that begin with `word`; words with a
 * later part that begins with it (weight-decay for "decay"); the word with the fewest typing
 * errors; the longest word that begins a part of `word` (workers for "num-workers"). A name that
 * other programs use (learning-rate for lr) counts for the known word, even for a placeholder, if
 * it equals `word`, has one typing error, or begins a part of it. If =VALUE follows the n bytes, it
 * is appended to the suggestion. exactly: suggest only a word that equals a known word or another
 * program's name. */
const char *sgt_suggest(const char *word, size_t n, const char *known, const char *before,
                        int exactly, char hint[SGT_HINT]);

/* Parse all of s as a number and set *out. Return 0, or -1 if s is not such a number or does not
 * fit in 64 bits. sgt_parse_size also accepts a B after the suffix, as in 64MiB. */
int sgt_parse_count(const char *s, uint64_t *out);
int sgt_parse_size(const char *s, uint64_t *out);
int sgt_parse_real(const char *s, double *out);

#endif
