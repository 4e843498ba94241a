/* completion.h: what a program's table of options says to people and to shells. */
#ifndef SGT_CLI_COMPLETION_H
#define SGT_CLI_COMPLETION_H

#include "tools/cli/options.h"

/* help.c: usage, groups of options with their defaults, examples, in lines of at most 100 columns,
 * on stdout. */
void sgt_print_help(const sgt_program *p);

/* completion.c, on stdout, by `form`: "bash", "zsh" and "fish", a script for that shell that
 * completes options, their choices, files and folders, and subcommands; "table", a line for each
 * option for tests, with tabs in it: subcommand (or -), name, letter (or -), value (or -), default
 * (or -), what is set now (or -), kind. -1 for others. */
int sgt_print_completion(const sgt_program *p, const char *form);

#endif
