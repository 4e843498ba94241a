/* options.h: describes a program's command line as one table. The table is used for parsing, for
 * --help, for shell completion, and for the section OPTIONS of the man page (tools/man.awk).
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
 * The value of an option of kind TEXT, LIST or CHOICE is stored as text. A value may follow its
 * option as --name VALUE or --name=VALUE. Options and operands may be mixed, and "--" ends the
 * options. Numbers may have a suffix, as in 12, 512k, 1.5M and 64MiB; a number with trailing text
 * is refused. */
#ifndef SGT_CLI_OPTIONS_H
#define SGT_CLI_OPTIONS_H

#include <stdint.h>

#include "loader/base/option.h"

#define SGT_OPTION_LIST 64 /* maximum number of times that an option of kind LIST may be given */

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
    /* Run the subcommand and return its exit code. argv[0] is the name of the subcommand. */
    int (*run)(const sgt_command *c, int argc, char **argv);
};

struct sgt_program {
    const char *name; /* "sgt-tokenize" */
    /* Forms of the command line, one per line, as printed after "usage: ". In each form, the
     * operands follow "[OPTION]... ". If no form has operands, the program refuses all operands. If
     * there is only one form and it has operands, the program requires at least one operand. */
    const char *usage;
    /* 1 if the last operand may name a folder that does not exist yet; otherwise 0 */
    int makes_folder;
    const char *about; /* description in a sentence or two */
    const sgt_option *options;
    /* Example command lines for the end of --help, each indented by 2 spaces. The first example is
     * also printed if the user gave no operands although the program requires them. */
    const char *examples;
    /* function that returns the rank of this process in a parallel run; only rank 0 prints errors.
     * NULL if the program always runs as one process */
    uint32_t (*rank)(void);
    /* options of train/config.c that are inserted into the table in place of SGT_OPT_ROWS, ended by
     * an option without a name */
    const sgt_option *rows;
    void *settings; /* struct that receives the values of the options in `rows` */
    /* array whose element i is set to 1 if the user gives option rows[i] */
    int *given;
    /* list of subcommands, ended by NULL; the first operand names the subcommand to run. NULL if
     * the program has no subcommands */
    const sgt_command *const *commands;
};

enum { SGT_EXIT_OK = 0, SGT_EXIT_FAILED = 1, SGT_EXIT_USAGE = 2, SGT_EXIT_INTERRUPTED = 130 };

/* Set *o to option i of the program, counting headings as options and ending with the options that
 * all programs share. Members that the option inherits (sgt_option.as) are filled in. Return 1, or
 * 0 if i is too large. */
int sgt_option_at(const sgt_program *p, size_t i, sgt_option *o);

/* Parse argv. First store the default of each option whose default is a number or one of the
 * option's words. Move all operands to the end of argv without changing their order, and return the
 * index of the first operand. On wrong usage, print an error, a suggestion and "try 'NAME --help'"
 * to stderr, and exit with code 2. On --help or --version, print to stdout and exit with code 0.
 * The same is true for --completion, which --help does not list. Its forms are:
 *
 *     bash, zsh, fish  print a script with which the shell completes options, their choices,
 *                      files, folders and subcommands
 *     words -- WORD... print the completions of the last WORD; used by these scripts
 *     table            print one line per option or heading, for manuals and tests. Its fields are
 *                      separated by tabs: subcommand, name, letter, value, default, kind, help;
 *                      "-" stands for an empty field */
int sgt_options_parse(const sgt_program *p, int argc, char **argv);

/* Run the subcommand that argv[1] names, and return its exit code. Only for programs that have
 * subcommands. */
int sgt_run_command(const sgt_program *p, int argc, char **argv);

/* Print "sgt-x: message" and "try 'sgt-x --help'" to stderr, and exit with code 2. */
_Noreturn void sgt_usage(const sgt_program *p, const char *fmt, ...) SGT_PRINTF(2, 3);

/* Return the program's exit code for a negative SGT_E*: 2 for SGT_EUSAGE, 130 for SGT_ESTOPPED, and
 * 1 for every other error. */
int sgt_exit_code(int error);

/* Print "sgt-x: TEXT" to stderr, where TEXT is the message in *err, and return the exit code for
 * the error. */
int sgt_report_failure(const sgt_program *p, const sgt_error *err);

/* End a program whose work returned rc, which is 0 or a negative SGT_E* with *err filled in. Flush
 * standard output, print the error if there is one, and return the exit code. For a usage error,
 * also print "try 'sgt-x --help'". If its message begins with "--NAME VALUE: " and VALUE is similar
 * to one of the words that the option accepts, append a suggestion. */
int sgt_end_program(const sgt_program *p, int rc, sgt_error *err);

/* Apply the option --cpu LEVEL, which limits the instruction sets to use. If the level is unknown
 * or this machine does not support it, print an error and exit with code 2. Call this function
 * before any other work. */
void sgt_take_cpu(const sgt_program *p, const char *level);

enum { SGT_HINT = 320 }; /* bytes of a suggestion */

/* Write a suggestion, such as "; did you mean --batch-size?", to `hint`, and return `hint`. It is
 * "" if no known word is similar to the unknown word, the n bytes at `word`. `known` lists the
 * known words, separated by | or by commas and spaces. Words in `known` that begin with a capital
 * letter are ignored, because they are placeholders such as FILE. `before` is put in front of each
 * suggested word. If =VALUE follows the unknown word, it is appended to the suggestion.
 *
 * The suggestion is the first of these that exists:
 * - known words that begin with `word`
 * - known words with a later dash-separated part that begins with `word` (weight-decay for "decay")
 * - the known word with the fewest typing errors
 * - the longest known word with which a part of `word` begins (workers for "num-workers")
 *
 * A known word is also suggested if `word` is similar to a name that other programs use for it,
 * such as learning-rate for lr: if `word` equals that name, differs from it by one typing error, or
 * has a part that begins with it. If `exactly` is 1, only equal words and names are suggested; if
 * `exactly` is 2, also known words that begin with `word`. */
const char *sgt_suggest(const char *word, size_t n, const char *known, const char *before,
                        int exactly, char hint[SGT_HINT]);

/* Parse the string s as a number, and set *out. Return 0, or -1 if s as a whole is not a number or
 * the number does not fit into *out. sgt_parse_size also accepts a B after the suffix, as in
 * 64MiB. */
int sgt_parse_count(const char *s, uint64_t *out);
int sgt_parse_size(const char *s, uint64_t *out);
int sgt_parse_real(const char *s, double *out);

#endif
