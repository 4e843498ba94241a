/* script.h: runs an embedded Python script, or another program, in a separate process: once, or as
 * a server that answers questions. */
#ifndef SGT_TOOLS_BENCH_SCRIPT_H
#define SGT_TOOLS_BENCH_SCRIPT_H

/* Embed the text of a file, and a NUL, in the program with the assembler: BENCH_EMBED(sgt_bpe_py,
 * "tests/peers/bpe.py"). */
#define BENCH_EMBED(name, file)                                                         \
    __asm__(".section .rodata\n" #name ": .incbin \"" file "\"\n.byte 0\n.previous\n"); \
    extern const char name[] __attribute__((visibility("hidden")))

#include <stddef.h>

#include "loader/base/error.h"

enum { BENCH_SAID = 65536 }; /* bytes kept of each output stream */

typedef struct bench_script {
    const char *python, *name; /* the interpreter; the script's name */
    const char *text;          /* the script; NULL: `python` is a program to run itself */
    const char *const *args;   /* arguments after the script's name, ended by NULL */
    int threads;               /* number of cores that the child may use; 0: all of ours */
    const sgt_stop *stop;
} bench_script;

/* Run the script and store its standard output in said[BENCH_SAID]. If it fails, returns
 * SGT_EUNSUPPORTED with the last line of its standard error. The script has ended when this
 * returns. */
int bench_script_run(const bench_script *s, char *said, sgt_error *err);

/* ---- a script that stays: it answers each line with a line ---- */

typedef struct bench_child bench_child;

/* Start the script; *out is set only on success. *s stays the caller's and must outlive the
 * child. */
int bench_script_open(bench_child **out, const bench_script *s, sgt_error *err);

/* Send `line`, unless it is NULL, and store the next line of output in said[BENCH_SAID], without
 * the newline. If the script has ended, returns SGT_EUNSUPPORTED with the last line of its standard
 * error. */
int bench_script_ask(bench_child *c, const char *line, char *said, sgt_error *err);

/* Close the script's standard input and output, after an interrupt end it by SIGTERM, and give it
 * five seconds; then kill it. c may be NULL. */
void bench_script_close(bench_child *c);

/* Create a nameless file that holds this text. Returns its descriptor, which a child inherits, or a
 * negative SGT_E*. */
int bench_memory_file(const char *name, const char *text, size_t n, sgt_error *err);

#endif
