/* completion.h: prints a program's table of options for people (--help) and for shells. */
#ifndef SGT_CLI_COMPLETION_H
#define SGT_CLI_COMPLETION_H

#include "tools/cli/options.h"

/* Print usage, groups of options with their defaults, and examples on stdout (help.c). Lines have
 * at most 100 columns. */
void sgt_print_help(const sgt_program *p);

/* Print the table of options on stdout in one of these forms (completion.c). Return -1 if `form` is
 * unknown, else 0.
 *
 *     bash, zsh, fish  a script with which that shell completes options, their choices, files,
 *                      folders and subcommands
 *     table            for tests: a line per option with fields separated by tabs: subcommand,
 *                      name, letter, value, default, current value, kind, help ("-": none) */
int sgt_print_completion(const sgt_program *p, const char *form);

#endif
