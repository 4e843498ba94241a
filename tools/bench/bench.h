/* bench.h: what the subcommands of sgt-bench share: a skeleton that parses options, measures rows
 * in turns, takes medians, and prints a JSON document or a table; the model's options; work timed
 * on threads; control of the page cache; programs to compare with; and a training step. One
 * subcommand runs in a process, so that `bench`, and the `state` in its file, are variables.
 *
 *     const bench_subcommand bench_kernels = {
 *         .command = {"kernels", "each kernel", &program, bench_run_subcommand},
 *         .measure = measure, .json = to_json, .show = show}; */
#ifndef SGT_TOOLS_BENCH_H
#define SGT_TOOLS_BENCH_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/sgt_loader.h"
#include "tools/cli/options.h"
#include "train/config.h"

/* ---- bench.c: the skeleton ---- */

#define BENCH_OUTPUT                                                           \
    {"json", 0, SGT_OPT_FLAG, &bench.json, .help = "print one JSON document"}, \
    {                                                                          \
        "quiet", 'q', SGT_OPT_FLAG, &bench.quiet,                              \
            .help = "print only failures and what --json asks for"             \
    }

enum { BENCH_ROWS = 32, BENCH_TURNS = 100 }; /* most rows of a table; most turns of a row */

/* A row of the table. */
typedef struct bench_row {
    /* the row in the document: what it is about, then its figures. Of a real number it has the
     * median of the turns, of anything else the last turn's value */
    json_t *result;
    json_t *turns; /* array of each turn's figures */
    char why[320]; /* why the row is left out; "" if it is not */
} bench_row;

/* The command line, and the rows. */
extern struct bench {
    int json, quiet; /* --json, --quiet */
    char **operands;
    size_t operand_count;
    sgt_notice notice;
    const sgt_stop *stop;
    char *cache; /* folder for a device's timing results (backend.h); NULL: none */
    bench_row rows[BENCH_ROWS];
    size_t count;
    int measured; /* 1: a row has figures */
} bench;

typedef struct bench_subcommand {
    sgt_command command; /* its `run` is bench_run_subcommand */
    int partial;         /* 1: rows that were measured before an interrupt are shown */
    /* Measure. Returns 0, 1 if there is nothing to show, or a negative SGT_E*. */
    int (*measure)(sgt_error *err);
    void (*json)(json_t *top); /* add to the document, which names the CPU */
    void (*show)(json_t *top); /* print the document as a table; it may be changed */
    void (*release)(void);     /* NULL: nothing to release */
} bench_subcommand;

/* each defined at the end of the file of its name */
extern const bench_subcommand bench_loader, bench_tokenize, bench_kernels, bench_step,
    bench_ablation;

/* Run the subcommand whose `command` is at c, and return the program's exit code. */
int bench_run_subcommand(const sgt_command *c, int argc, char **argv);

/* ---- bench.c: rows ---- */

/* Add a row and return it. `about` becomes its result; what it is about may be NULL. */
bench_row *bench_add(json_t *about);

/* Measure row i once, and set *figures to an object; it may stay NULL if the row is left out. */
typedef int bench_take(size_t i, json_t **figures, sgt_error *err);

/* Take turns that alternate between rows first .. first + count - 1 that are not left out, and add
 * their figures to the results, also after a failure. */
int bench_take_turns(size_t first, size_t count, size_t turns, bench_take *take, sgt_error *err);

/* Return 0 if rc is 0 or SGT_EUNSUPPORTED; then the row is left out for the reason in *err, with a
 * notice if `name` is not NULL. Return any other rc. */
int bench_leave_out(bench_row *r, int rc, const char *name, const sgt_error *err);

/* Return an array of the results of rows from `first` on that were measured, or, with `left_out`,
 * of those that are left out, each with the field "why". */
json_t *bench_results(size_t first, int left_out);

/* Return a number of an object, 0 if it has none, and set it unless it is 0, which stands for
 * unknown. */
double bench_get(const json_t *object, const char *key);
void bench_put(json_t *object, const char *key, double x);
void bench_put_text(json_t *object, const char *key, const char *text);
/* Add the fields of `fields`, which it releases. */
void bench_put_all(json_t *object, json_t *fields);

/* Set bit k of *chosen if a list has names[k] among its words: all bits if the list is NULL. NULL
 * ends the names, and `option` is for messages. Return 0 or SGT_EUSAGE. */
int bench_words(uint32_t *chosen, const char *option, const char *list, const char *const *names,
                sgt_error *err);
static inline int bench_has(uint32_t chosen, int k) { return chosen >> k & 1; }

/* A column of a table: a field of the rows in the JSON document. A table's last column has no
 * key. */
typedef struct bench_column {
    const char *key, *head; /* name of the field; heading */
    enum { BENCH_NUMBER, BENCH_TEXT, BENCH_PERCENT, BENCH_BYTES } kind;
    int decimals;
    double scale; /* the number is multiplied by this; 0: by 1 */
} bench_column;

/* Print the rows as a table; every column is as wide as its widest cell, and a row that lacks a
 * field has "-". Columns that no row has are left out. The row with the highest number in field
 * `best`, or every row that has `true` there, is marked with a star. A row with the text field
 * "why_not" or "why" ends with that text at the first number that it lacks. Texts are cut to 32
 * characters. */
void bench_table(const json_t *rows, const bench_column *columns, const char *best);

/* ---- bench.c: the model and its step ---- */

/* The options of step, ablation and kernels. main sets the defaults of training, but for `seq`,
 * which is 0 until the device is known. */
extern sgt_config bench_config;
/* the row of an option that training has too, such as BENCH_ROW(MODEL) */
#define BENCH_ROW(name) &sgt_config_rows[SGT_SET_##name]

/* Choose the device, and set the options that the user left to it. */
int bench_choose_device(sgt_error *err);

static inline int bench_on_cuda(void) { return bench_config.device == SGT_DEVICE_CUDA; }

/* ---- bench.c: work timed on one or more threads ---- */

/* Do unit k of the work on thread `thread` (from 0). Several threads may call it at once. */
typedef int bench_work(void *ctx, int thread, uint64_t k, sgt_error *err);

typedef struct bench_slice {
    uint64_t first; /* thread t does units first + t, first + t + threads, ... */
    uint64_t most;  /* most units per thread; 0: only the time ends the work */
    double seconds; /* seconds after which the work ends */
    int threads;
} bench_slice;

/* Run units of work until the time or the units are used up, at least one unit per thread. *units
 * counts those of all threads; *seconds spans the first start to the last end. */
int bench_run(const bench_slice *s, bench_work *work, void *ctx, uint64_t *units, double *seconds,
              sgt_error *err);

double bench_median(double *x, size_t n); /* sorts x */

/* ---- bench.c: shards in the page cache ---- */

/* Read a loader's shards into the page cache; or, with `cached` 0, evict their pages and check that
 * they are gone. If some stay, returns SGT_EUNSUPPORTED and says how many. Cursors map pages, which
 * then stay. */
int bench_cache(const sgt_loader *l, int cached, sgt_error *err);

/* ---- script.c: an embedded Python script, or another program, in a separate process that prints
 * JSON objects: one for the whole run, or one for each line that it is asked ---- */

/* Embed the text of a file, and a NUL, in the program with the assembler: BENCH_EMBED(sgt_bpe_py,
 * "tests/peers/bpe.py"). */
#define BENCH_EMBED(name, file)                                                         \
    __asm__(".section .rodata\n" #name ": .incbin \"" file "\"\n.byte 0\n.previous\n"); \
    extern const char name[] __attribute__((visibility("hidden")))

typedef struct bench_script {
    const char *python;      /* the interpreter */
    const char *text;        /* the script; NULL: `python` is a program to run itself */
    const char *const *args; /* arguments after the script's name, ended by NULL; NULL: none */
    char words[512];         /* more arguments, with a space between them */
    const char *needs; /* field that an answer must have, above 0 if it is a number; NULL: any */
    int stays;         /* 1: it answers each line of its standard input with a line */
    int threads;       /* number of cores that the child may use; 0: all of ours */
} bench_script;

typedef struct bench_child bench_child;

/* Start the script; *out is set only on success. *s stays the caller's and must outlive the
 * child. */
int bench_script_open(bench_child **out, const bench_script *s, sgt_error *err);

/* Send `line`, unless it is NULL, and read the answer: the next line of a script that stays, and
 * all that another prints before it ends. Text before the first brace is skipped. The caller
 * releases *answer. If the script fails, has ended, or answers with something else or with a field
 * "error", returns SGT_EUNSUPPORTED with the reason, such as the last line of its standard
 * error. */
int bench_script_ask(bench_child *c, const char *line, json_t **answer, sgt_error *err);

/* Close the script's standard input and output, after an interrupt end it by SIGTERM, and give it
 * five seconds; then kill it. c may be NULL. */
void bench_script_close(bench_child *c);

/* Open a script that does not stay, read its answer, and close it. */
int bench_script_run(const bench_script *s, json_t **answer, sgt_error *err);

/* Create a nameless file that holds this text. Returns its descriptor, which a child inherits, or a
 * negative SGT_E*. */
int bench_memory_file(const char *name, const char *text, size_t n, sgt_error *err);

/* ---- step_measure.c: steps of sgt_train, without a run directory ---- */

typedef struct step_run {
    sgt_config config;      /* options of the training; `data` NULL: random tokens */
    unsigned warmup, steps; /* steps before the measured ones; measured steps */
    int text;  /* 1: before each step, encode the text of its rows; the tokens must be GPT-2's */
    int parts; /* CUDA: also record where the time of a step goes */
} step_run;

/* Measure the step. Set *figures to an object with the fields that `sgt-bench step --json` has of a
 * step, which are in its manual. After a request to stop, returns SGT_ESTOPPED at the end of a
 * step. */
int bench_step_measure(json_t **figures, const step_run *run, sgt_error *err);

#endif
