/* text.h: bytes that should be UTF-8 and need not be, for whoever shows them. */
#ifndef SGT_CLI_TEXT_H
#define SGT_CLI_TEXT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the well-formed UTF-8 sequence at s, of n >= 1 bytes, or minus that of the maximal
 * ill-formed subpart (Unicode 15, 3.9, D93b). */
int sgt_utf8_step(const uint8_t *s, size_t n);

/* Whether s[n] is the beginning of a well-formed sequence that goes on behind it. */
int sgt_utf8_begins(const uint8_t *s, size_t n);

/* s[n] on standard output as a terminal may have it: control characters but newline and tab, and
 * what is not UTF-8, as \xNN. */
void sgt_print_escaped(const uint8_t *s, size_t n);

/* A JSON string of the text, with U+FFFD for each ill-formed subpart. NULL: out of memory. */
json_t *sgt_json_text(const char *text, size_t n);

/* The command line as a shell takes it: what is more than letters, digits and a few signs is
 * quoted. malloc'd; ends the program where memory is out. */
char *sgt_command_line(const char *program, int argc, char **argv);

#endif
