/* script.h: runs an embedded Python script, or another program, in a separate process, and reads the
 * JSON objects that it prints: one for the whole run, or one for each line that it is asked. */
#ifndef SGT_TOOLS_BENCH_SCRIPT_H
#define SGT_TOOLS_BENCH_SCRIPT_H

/* Embed the text of a file, and a NUL, in the program with the assembler: BENCH_EMBED(sgt_bpe_py,
 * "tests/peers/bpe.py"). */
#define BENCH_EMBED(name, file)                                                         \
    __asm__(".section .rodata\n" #name ": .incbin \"" file "\"\n.byte 0\n.previous\n"); \
    extern const char name[] __attribute__((visibility("hidden")))

#include <jansson.h>
#include <stddef.h>

#include "loader/base/error.h"

typedef struct bench_script {
    const char *python;      /* the interpreter */
    const char *text;        /* the script; NULL: `python` is a program to run itself */
    const char *const *args; /* arguments after the script's name, ended by NULL; NULL: none */
    char words[512];         /* more arguments, with a space between them */
    const char *needs; /* field that an answer must have, above 0 if it is a number; NULL: any */
    int stays;         /* 1: it answers each line of its standard input with a line */
    int threads;       /* number of cores that the child may use; 0: all of ours */
    const sgt_stop *stop;
} bench_script;

typedef struct bench_child bench_child;

/* Start the script; *out is set only on success. *s stays the caller's and must outlive the
 * child. */
int bench_script_open(bench_child **out, const bench_script *s, sgt_error *err);

/* Send `line`, unless it is NULL, and read the answer: the next line of a script that stays, and all
 * that another prints before it ends. Text before the first brace is skipped. The caller releases
 * *answer. If the script fails, has ended, or answers with something else or with a field "error",
 * returns SGT_EUNSUPPORTED with the reason, such as the last line of its standard error. */
int bench_script_ask(bench_child *c, const char *line, json_t **answer, sgt_error *err);

/* Close the script's standard input and output, after an interrupt end it by SIGTERM, and give it
 * five seconds; then kill it. c may be NULL. */
void bench_script_close(bench_child *c);

/* Open a script that does not stay, read its answer, and close it. */
int bench_script_run(const bench_script *s, json_t **answer, sgt_error *err);

/* Create a nameless file that holds this text. Returns its descriptor, which a child inherits, or a
 * negative SGT_E*. */
int bench_memory_file(const char *name, const char *text, size_t n, sgt_error *err);

#endif
