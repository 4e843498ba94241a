/* options.h: parses a program's command line according to a table of its options. The same table is
 * used to print --help, to complete words in a shell, and to write the section OPTIONS of the man
 * page (tools/man.awk).
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
 * The value of an option of kind TEXT, LIST or CHOICE is stored as a string. A value follows its
 * option as --name VALUE or --name=VALUE. Options and operands can be in any order. All arguments
 * after "--" are operands. Numbers can have a suffix, as in 512k, 1.5M and 64MiB; any other text
 * after a number is an error. */
#ifndef SGT_CLI_OPTIONS_H
#define SGT_CLI_OPTIONS_H

#include <stdint.h>

#include "loader/base/option.h"

#define SGT_OPTION_LIST 64 /* maximum number of values of an option of kind LIST */

typedef struct sgt_option_list {
    const char *items[SGT_OPTION_LIST];
    uint64_t count;
} sgt_option_list;

typedef struct sgt_program sgt_program;
typedef struct sgt_command sgt_command;

/* A subcommand, such as `loader` of sgt-bench. It has its own table of options. */
struct sgt_command {
    const char *name;
    const char *what; /* short description, for --help */
    const sgt_program *program;
    /* Run the subcommand, and return the program's exit code. argv[0] must be the name of the
     * subcommand. */
    int (*run)(const sgt_command *c, int argc, char **argv);
};

struct sgt_program {
    const char *name; /* "sgt-tokenize" */
    /* Possible forms of the command line, one per line, as printed after "usage: ". In each form,
     * the operands follow "[OPTION]... ". If no form has operands, the program accepts none. If
     * there is only one form and it has operands, the program requires at least one. */
    const char *usage;
    /* 1 if the last operand can be the name of a folder that the program will create, otherwise
     * 0 */
    int makes_folder;
    const char *about; /* description of the program in one or two sentences, for --help */
    const sgt_option *options;
    /* Example command lines, each on a line and indented by 2 spaces. They are printed at the end
     * of --help. The first one is also printed if operands are required but none are given. */
    const char *examples;
    /* function that returns the rank of this process in a parallel run, or NULL if the program
     * never has several ranks. A rank other than 0 delays its error messages. */
    uint32_t (*rank)(void);
    /* array of the options of train/config.c, ended by an option without a name. In the table of
     * options, an entry of the kind SGT_OPT_ROWS is replaced with the options in `rows` that belong
     * to the section of the entry. */
    const sgt_option *rows;
    void *settings; /* struct in which the values of the options in `rows` are stored */
    /* array of flags: element i is set to 1 if the user gives the option rows[i] */
    int *given;
    /* array of the program's subcommands, ended by NULL. The first operand is the name of the
     * subcommand to run. NULL if the program has no subcommands. */
    const sgt_command *const *commands;
};

enum { SGT_EXIT_OK = 0, SGT_EXIT_FAILED = 1, SGT_EXIT_USAGE = 2, SGT_EXIT_INTERRUPTED = 130 };

/* Set *o to the program's option with index i, with the members that it inherits (sgt_option.as)
 * filled in. Headings also count as options, and the options that all programs have come last.
 * Return 1, or 0 if there is no option with this index. */
int sgt_option_at(const sgt_program *p, size_t i, sgt_option *o);

/* Parse argv, and store the values of the options. Options that are not given get their default, if
 * it is a number or one of the option's words. Move all operands to the end of argv without
 * changing their order, and return the index of the first operand. On a usage error, print the
 * error, a suggestion and "try 'NAME --help'" to stderr, and exit with code 2.
 *
 * For --help, --version and --completion, print to stdout and exit with code 0. The option
 * --completion is not listed in --help. It has these forms:
 *
 *     bash, zsh, fish  print a script for the shell, which completes options, their words, files,
 *                      folders and subcommands
 *     words -- WORD... print the completions of the last WORD (the scripts use this form)
 *     table            print one line per option or heading, for manuals and tests. A line has
 *                      these fields, separated by tabs: subcommand, name, letter, value, default,
 *                      kind, help. An empty field is printed as "-". */
int sgt_options_parse(const sgt_program *p, int argc, char **argv);

/* Run the subcommand with the name argv[1], and return the program's exit code. The program must
 * have subcommands. */
int sgt_run_command(const sgt_program *p, int argc, char **argv);

/* Print the formatted message as "PROGRAM: MESSAGE", and "try 'PROGRAM --help'", to stderr, and
 * exit with code 2. */
_Noreturn void sgt_usage(const sgt_program *p, const char *fmt, ...) SGT_PRINTF(2, 3);

/* Return the program's exit code for a negative SGT_E*: 2 for SGT_EUSAGE, 130 for SGT_ESTOPPED, and
 * 1 for every other error. */
int sgt_exit_code(int error);

/* Print the message in *err to stderr as "PROGRAM: MESSAGE", and return the program's exit code for
 * the error. */
int sgt_report_failure(const sgt_program *p, const sgt_error *err);

/* Finish a program whose work returned rc, which is 0 or a negative SGT_E* with a message in *err.
 * Flush standard output, print the error if there is one, and return the program's exit code. For a
 * usage error, also print "try 'PROGRAM --help'". If the message of a usage error begins with
 * "--NAME VALUE: " and VALUE is similar to a word that the option accepts, add a suggestion. */
int sgt_end_program(const sgt_program *p, int rc, sgt_error *err);

/* Apply the option --cpu LEVEL, which limits the CPU instruction sets that the program uses. If
 * there is no such level, or this machine does not support it, print an error and exit with code 2.
 * Call this function before any other work. */
void sgt_take_cpu(const sgt_program *p, const char *level);

enum { SGT_HINT = 320 }; /* size of the buffer for a suggestion */

/* Write a suggestion for an unknown word (the n bytes at `word`), such as "; did you mean
 * --batch-size?", to `hint`, and return `hint`. Write "" if no known word is similar to the unknown
 * word. known: the known words, separated by | or by commas and spaces; those that begin with a
 * capital letter are ignored, because they are placeholders such as FILE. before: text that is
 * inserted before each suggested word. If =VALUE follows the unknown word, it is appended to the
 * suggestion.
 *
 * The suggestion is the first of these that exists (a part of a word is the text up to a dash,
 * between two dashes, or after one):
 * - the known words that begin with the unknown word
 * - the known words in which a later part begins with the unknown word (weight-decay for "decay")
 * - the known word that differs from the unknown word by the fewest typing errors
 * - the longest known word with which the unknown word or one of its parts begins (workers for
 *   "num-workers")
 *
 * A known word is also suggested if the unknown word is similar to a name that other programs use
 * for it, such as learning-rate for lr: if the unknown word equals this name, differs from it by
 * one typing error, or has a part that begins with it.
 *
 * exactly: 0 for all these suggestions; 1 to suggest only known words that equal the unknown word,
 * or that other programs call so; 2 to also suggest known words that begin with the unknown
 * word. */
const char *sgt_suggest(const char *word, size_t n, const char *known, const char *before,
                        int exactly, char hint[SGT_HINT]);

/* Parse the string s as a number, and set *out to it. Return 0, or -1 if s is not a number, if
 * other text follows the number, or if it does not fit into *out. sgt_parse_size also accepts a B
 * after the suffix, as in 64MiB. */
int sgt_parse_count(const char *s, uint64_t *out);
int sgt_parse_size(const char *s, uint64_t *out);
int sgt_parse_real(const char *s, double *out);

#endif
