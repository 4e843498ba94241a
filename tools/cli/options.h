/* options.h: a program's command line as one table, which is used for parsing, for --help, for
 * completion in shells, and for OPTIONS in the manual (tools/man.awk).
 *
 *     static struct { uint64_t batch; const char *split; int quiet; } o;
 *     static const sgt_option table[] = {
 *         {"Data"},                                   // a heading has only a name
 *         {"batch-size", 'b', SGT_OPT_COUNT, &o.batch, "N", "rows per batch", .def = "8",
 *          .min = 1, .max = 1 << 20},
 *         {"split", 0, SGT_OPT_CHOICE, &o.split, "train|val", "split of the set to read"},
 *         {"quiet", 'q', SGT_OPT_FLAG, &o.quiet, NULL, "print only warnings and errors"},
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

#define SGT_OPTION_LIST 64 /* maximum number of times that a LIST option may be given */

typedef struct sgt_option_list {
    const char *items[SGT_OPTION_LIST];
    uint64_t count;
} sgt_option_list;

typedef struct sgt_program sgt_program;
typedef struct sgt_command sgt_command;

/* A subcommand, such as `loader` of sgt-bench. It has its own table of options. */
struct sgt_command {
    const char *name;
    const char *what; /* description in half a line */
    const sgt_program *program;
    /* function that runs the subcommand and returns its exit code; argv[0] is the subcommand's
     * name */
    int (*run)(const sgt_command *c, int argc, char **argv);
};

struct sgt_program {
    const char *name; /* "sgt-tokenize" */
    /* Forms of the command line, one per line, as printed after "usage: ". In each form, operands
     * follow "[OPTION]... ". If no form has operands, the program refuses operands. If the only
     * form has operands, the program requires at least one */
    const char *usage;
    int makes_folder;  /* 1: the last operand may name a folder that does not exist yet */
    const char *about; /* description in a sentence or two */
    const sgt_option *options;
    /* example command lines, printed at the end of --help, each indented by 2 spaces. The first one
     * is also printed when operands are missing. */
    const char *examples;
    /* function that returns the rank of this process; only rank 0 prints errors. NULL: the program
     * runs as one process. */
    uint32_t (*rank)(void);
    /* options of train/config.c that SGT_OPT_ROWS inserts into the table; the last entry has no
     * name */
    const sgt_option *rows;
    void *settings; /* struct in which the options of `rows` store their values */
    /* array in which given[i] is set to 1 if option rows[i] is given */
    int *given;
    /* list of subcommands, which ends with NULL; the first operand selects one of them. NULL: the
     * program has no subcommands */
    const sgt_command *const *commands;
};

enum { SGT_EXIT_OK = 0, SGT_EXIT_FAILED = 1, SGT_EXIT_USAGE = 2, SGT_EXIT_INTERRUPTED = 130 };

/* Set *o to option number i of the program, with inherited members (sgt_option.as) filled in.
 * Headings count as options. The last options are those that every program has. Return 1, or 0 if
 * there is no option i. */
int sgt_option_at(const sgt_program *p, size_t i, sgt_option *o);

/* Store the defaults of all options that have one as a number or as one of their words, then parse
 * argv. Move all operands to the end of argv, in their order, and return the index of the first of
 * them. Wrong usage prints a suggestion and "try 'NAME --help'" to stderr, and exits with code 2.
 * --help and --version print to stdout and exit with code 0. So does --completion, which --help
 * does not list:
 *
 *     bash, zsh, fish  a script with which that shell completes options, their choices, files,
 *                      folders and subcommands
 *     words -- WORD... what may stand at the last WORD, for these scripts
 *     table            for manuals and tests: a line per option or heading with fields separated by
 *                      tabs: subcommand, name, letter, value, default, kind, help ("-": none) */
int sgt_options_parse(const sgt_program *p, int argc, char **argv);

/* Run the subcommand that argv[1] names, and return its exit code. The program must have
 * subcommands. */
int sgt_run_command(const sgt_program *p, int argc, char **argv);

/* Print "sgt-x: message" and "try 'sgt-x --help'", and exit with code 2. */
_Noreturn void sgt_usage(const sgt_program *p, const char *fmt, ...) SGT_PRINTF(2, 3);

/* Return the exit code for a negative SGT_E*: 2 for SGT_EUSAGE, 130 for SGT_ESTOPPED, and 1 for all
 * other codes. */
int sgt_exit_code(int error);

/* Print "sgt-x: text" on stderr, where text is the error's, and return the exit code for the
 * error. */
int sgt_report_failure(const sgt_program *p, const sgt_error *err);

/* End a program whose work returned rc, which is 0 or a negative SGT_E* with *err filled in: flush
 * standard output, print the error, and return the exit code. For a usage error, also print "try
 * 'sgt-x --help'". If the message begins with "--NAME VALUE: ", and VALUE is similar to one of the
 * option's words, a suggestion is appended. */
int sgt_end_program(const sgt_program *p, int rc, sgt_error *err);

/* Apply the option --cpu LEVEL. If the level is unknown, or this machine does not have it, print an
 * error and exit with code 2. Call this before any other work. */
void sgt_take_cpu(const sgt_program *p, const char *level);

enum { SGT_HINT = 320 }; /* bytes of a suggestion */

/* Write a suggestion, such as "; did you mean --batch-size?", to hint, and return hint. It is "" if
 * no known word is similar to the unknown word, the n bytes at `word`. `known` has the known words,
 * separated by | or by commas and spaces. Words that begin with a capital are ignored, because they
 * are placeholders such as FILE. `before` is put in front of each suggested word. If =VALUE follows
 * the unknown word, it is appended to the suggestion.
 *
 * The suggestion is the first of these that exists:
 * - words that begin with `word`
 * - words with a later part that begins with `word` (weight-decay for "decay")
 * - the word with the fewest typing errors
 * - the longest word that begins a part of `word` (workers for "num-workers")
 *
 * A word is also found by a name that other programs use for it (learning-rate for lr), if that
 * name equals `word`, has one typing error, or begins a part of `word`. If `exactly` is 1, only
 * equal words and names are suggested; if it is 2, also words that begin with `word`. */
const char *sgt_suggest(const char *word, size_t n, const char *known, const char *before,
                        int exactly, char hint[SGT_HINT]);

/* Parse the entire text s as a number and set *out. Return 0, or -1 if s is not such a number or
 * does not fit into 64 bits. sgt_parse_size also accepts a B after the suffix, as in 64MiB. */
int sgt_parse_count(const char *s, uint64_t *out);
int sgt_parse_size(const char *s, uint64_t *out);
int sgt_parse_real(const char *s, double *out);

#endif
