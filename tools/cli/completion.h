/* completion.h: what a program's table of options says to people and to shells. */
#ifndef SGT_CLI_COMPLETION_H
#define SGT_CLI_COMPLETION_H

#include "tools/cli/options.h"

/* help.c: usage, groups of options with their defaults, examples, in lines of at most 100 columns, on stdout. */
void sgt_print_help(const sgt_program *p);

/* completion.c, on stdout, by `form`: "bash", "zsh" and "fish", a script for that shell that completes options, their
 * choices, files and folders, and subcommands; "table", a line for each option for tests: subcommand (or -), name,
 * letter (or -), value (or -), default (or -), what is set now (or -) and kind, with tabs between them. -1 for another. */
int sgt_print_completion(const sgt_program *p, const char *form);

#endif
