/* script.h: a Python script that the program carries within it, or another program, run in a
 * process of its own: once, or asked again and again. */
#ifndef SGT_TOOLS_BENCH_SCRIPT_H
#define SGT_TOOLS_BENCH_SCRIPT_H

/* The text of a file, which the assembler puts into the program, and a NUL: BENCH_EMBED(sgt_bpe_py,
 * "tests/peers/bpe.py"). */
#define BENCH_EMBED(name, file)                                                         \
    __asm__(".section .rodata\n" #name ": .incbin \"" file "\"\n.byte 0\n.previous\n"); \
    extern const char name[] __attribute__((visibility("hidden")))

#include <stddef.h>

#include "base/error.h"

enum { BENCH_SAID = 65536 }; /* the most that is kept of what it says on either way out */

typedef struct bench_script {
    const char *python, *name; /* the interpreter, the script's name */
    const char *text;          /* NULL: `python` is a program, and there is no script */
    const char *const *args;   /* behind the script's name, NULL at the end */
    /* "NAME=VALUE" before our environment, NULL at the end; NULL: none */
    const char *const *settings;
    const char *folder; /* where it works; NULL: here */
    int threads;        /* on so many of our cores; 0: on all */
    double seconds;     /* bench_script_run: it is ended after so long; 0: never */
    const sgt_stop *stop;
} bench_script;

/* What it wrote to standard output, in said[BENCH_SAID]. SGT_EUNSUPPORTED, with the last line of
 * its standard error, where it fails; never leaves it running. */
int bench_script_run(const bench_script *s, char *said, sgt_error *err);

/* ---- one that stays: it is asked line by line, and answers each with a line ---- */

typedef struct bench_child bench_child;

/* Starts it; *out is untouched on failure. What it is stays the caller's and must outlive it. */
int bench_script_open(bench_child **out, const bench_script *s, sgt_error *err);

/* Its next line, in said[BENCH_SAID] without the newline, after `line` was put to it (NULL: nothing
 * is). SGT_EUNSUPPORTED, with the last line of its standard error, where it has ended. */
int bench_script_ask(bench_child *c, const char *line, char *said, sgt_error *err);

/* it finds its standard input at an end, and has five seconds; NULL is fine */
void bench_script_close(bench_child *c);

/* A file without a name that holds this text: its descriptor (the child inherits it), or a negative
 * SGT_E*. */
int bench_memory_file(const char *name, const char *text, size_t n, sgt_error *err);

#endif
