/* text.h: prints bytes that should be UTF-8 but may not be. */
#ifndef SGT_CLI_TEXT_H
#define SGT_CLI_TEXT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Return whether the n bytes at s are the beginning of a well-formed sequence that needs more
 * bytes. */
int sgt_utf8_begins(const uint8_t *s, size_t n);

/* Print the n bytes at s on standard output in a form that is safe for a terminal: control
 * characters except newline and tab, and bytes that are not UTF-8, appear as \xNN. */
void sgt_print_escaped(const uint8_t *s, size_t n);

/* Return the text as a JSON string, with U+FFFD for each ill-formed subpart; NULL if memory runs
 * out. */
json_t *sgt_json_text(const char *text, size_t n);

/* Return the command line as one would type it in a shell: words with other characters than
 * letters, digits and a few signs are quoted. The caller must free it. Ends the program if memory
 * runs out. */
char *sgt_command_line(const char *program, int argc, char **argv);

#endif
