/* bench.h: functions that the subcommands of sgt-bench share: a skeleton that parses options,
 * measures rows in turns, computes medians, and prints a JSON document or a table; the model's
 * options; work timed on threads; control of the page cache; programs to compare with; and a
 * training step. A process runs only one subcommand, so `bench` and the `state` in each
 * subcommand's file are global variables.
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

enum { BENCH_ROWS = 32, BENCH_TURNS = 100 }; /* the most rows of a table; the most turns of a row */

/* A row of the table. */
typedef struct bench_row {
    /* the row's object in the JSON document: the fields of `about`, then the figures. A real number
     * is the median over the turns; any other value is that of the last turn */
    json_t *result;
    json_t *turns; /* array with an object of figures for each turn */
    char why[320]; /* reason why the row is left out; "": it is not */
} bench_row;

/* Options that all subcommands have, and the rows of the table. */
extern struct bench {
    int json, quiet; /* --json, --quiet */
    char **operands;
    size_t operand_count;
    sgt_notice notice;
    const sgt_stop *stop;
    char *cache; /* folder for a device's timing results (backend.h); NULL: none */
    bench_row rows[BENCH_ROWS];
    size_t count;
    int measured; /* 1: at least one row has figures */
} bench;

typedef struct bench_subcommand {
    sgt_command command; /* its `run` is bench_run_subcommand */
    int partial;         /* 1: after an interrupt, the rows measured so far are shown */
    /* Measure all rows. Returns 0, 1 if there is nothing to show, or a negative SGT_E*. */
    int (*measure)(sgt_error *err);
    void (*json)(json_t *top); /* add the results to the document, which already names the CPU */
    void (*show)(json_t *top); /* print the document as a table; may modify the document */
    void (*release)(void);     /* NULL: nothing to release */
} bench_subcommand;

/* the subcommands; each is defined at the end of the file of its name */
extern const bench_subcommand bench_loader, bench_tokenize, bench_kernels, bench_step,
    bench_ablation;

/* Run the subcommand that contains *c as its `command`, and return the program's exit code. */
int bench_run_subcommand(const sgt_command *c, int argc, char **argv);

/* ---- bench.c: rows ---- */

/* Add a row and return it. `about`, an object that describes the row or NULL, becomes its result;
 * the row owns it. */
bench_row *bench_add(json_t *about);

/* Measure row i once, and set *figures to a new object. *figures may stay NULL, so that the turn
 * has no figures. */
typedef int bench_take(size_t i, json_t **figures, sgt_error *err);

/* Measure rows first .. first + count - 1 in turns: each turn measures every row that is not left
 * out once. Then add the figures to the results, even after a failure. */
int bench_take_turns(size_t first, size_t count, size_t turns, bench_take *take, sgt_error *err);

/* Handle the result rc of a measurement. If it is SGT_EUNSUPPORTED, leave the row out for the
 * reason in *err, print a notice if `name` is not NULL, and return 0. Return any other rc
 * unchanged. */
int bench_leave_out(bench_row *r, int rc, const char *name, const sgt_error *err);

/* Return an array of the results of the measured rows from `first` on. If `left_out` is 1, return
 * those of the rows that were left out instead, each with the field "why". */
json_t *bench_results(size_t first, int left_out);

/* bench_get returns the number in a field of an object, or 0 if there is none. bench_put sets it,
 * unless x is 0, which stands for unknown. */
double bench_get(const json_t *object, const char *key);
void bench_put(json_t *object, const char *key, double x);
void bench_put_text(json_t *object, const char *key, const char *text);
/* Add the members of `fields` to an object, and release `fields`. */
void bench_put_all(json_t *object, json_t *fields);

/* Set bit k of *chosen if names[k] is a word of the comma-separated `list`, or every bit if `list`
 * is NULL. The array `names` ends with NULL. `option` is the option's name for messages. Return 0
 * or SGT_EUSAGE. */
int bench_words(uint32_t *chosen, const char *option, const char *list, const char *const *names,
                sgt_error *err);
static inline int bench_has(uint32_t chosen, int k) { return chosen >> k & 1; }

/* A column of a table: a field of the rows in the JSON document. A column without a key ends the
 * array of columns. */
typedef struct bench_column {
    const char *key, *head; /* name of the field; heading */
    enum { BENCH_NUMBER, BENCH_TEXT, BENCH_PERCENT, BENCH_BYTES } kind;
    int decimals;
    double scale; /* factor for the number; 0 stands for 1 */
} bench_column;

/* Print the rows as a table; every column is as wide as its widest cell, and a row that lacks a
 * field has "-". Columns whose field no row has are left out. A star marks the row with the highest
 * number in the field `best`, or every row in which that field is `true`. A row with the text field
 * "why_not" or "why" ends with that text at the first number that it lacks. Texts are cut to 32
 * characters. */
void bench_table(const json_t *rows, const bench_column *columns, const char *best);

/* ---- bench.c: the model and its step ---- */

/* Training options of step, ablation and kernels. main sets them to the defaults of training,
 * except `seq`, which is 0 until the device is known. */
extern sgt_config bench_config;
/* the definition of an option of sgt-train, for use in a subcommand's table: BENCH_ROW(MODEL) */
#define BENCH_ROW(name) &sgt_config_rows[SGT_SET_##name]

/* Choose the device, and set the options whose default depends on it. */
int bench_choose_device(sgt_error *err);

static inline int bench_on_cuda(void) { return bench_config.device == SGT_DEVICE_CUDA; }

/* ---- bench.c: work timed on one or more threads ---- */

/* Do unit k of the work on thread `thread` (from 0). Several threads may call it at once. */
typedef int bench_work(void *ctx, int thread, uint64_t k, sgt_error *err);

typedef struct bench_slice {
    uint64_t first; /* thread t does units first + t, first + t + threads, ... */
    uint64_t most;  /* the most units per thread; 0: only the time limits the work */
    double seconds; /* time limit in seconds */
    int threads;
} bench_slice;

/* Run units of work until the time limit or the number of units is reached, at least one unit per
 * thread. Set *units to the number done by all threads, and *seconds to the time from the first
 * start to the last end. */
int bench_run(const bench_slice *s, bench_work *work, void *ctx, uint64_t *units, double *seconds,
              sgt_error *err);

double bench_median(double *x, size_t n); /* sorts x */

/* ---- bench.c: shards in the page cache ---- */

/* Read a loader's shards into the page cache; if `cached` is 0, evict their pages instead and check
 * that they are gone. Return SGT_EUNSUPPORTED, with their number in *err, if some pages stay. Pages
 * that an open cursor has mapped always stay. */
int bench_cache(const sgt_loader *l, int cached, sgt_error *err);

/* ---- script.c: runs an embedded Python script, or another program, in a child process that prints
 * JSON objects: one for the whole run, or one for each line of its standard input ---- */

/* Embed the text of a file, and a NUL, in the program with the assembler: BENCH_EMBED(sgt_bpe_py,
 * "tests/peers/bpe.py"). */
#define BENCH_EMBED(name, file)                                                         \
    __asm__(".section .rodata\n" #name ": .incbin \"" file "\"\n.byte 0\n.previous\n"); \
    extern const char name[] __attribute__((visibility("hidden")))

typedef struct bench_script {
    const char *python; /* the interpreter */
    const char *text;   /* the script's source; NULL: `python` is the program to run */
    /* arguments after the script's name, as an array that ends with NULL; NULL: none */
    const char *const *args;
    char words[512]; /* further arguments, separated by spaces */
    /* field that every answer must have (if it is a number, above 0); NULL: none */
    const char *needs;
    int stays; /* 1: it answers each line of its standard input with a line */
    /* number of cores that the child may use; 0: all that this process may use */
    int threads;
} bench_script;

typedef struct bench_child bench_child;

/* Start the script; *out is only set on success. The caller keeps *s, which must stay valid until
 * bench_script_close. */
int bench_script_open(bench_child **out, const bench_script *s, sgt_error *err);

/* Send `line`, unless it is NULL, and read the answer: one line if the script stays, otherwise
 * everything that it prints until it ends. Text before the first brace is skipped. The caller
 * releases *answer. Returns SGT_EUNSUPPORTED if the script fails or has ended, or if the answer is
 * not the expected object or has a field "error". The reason in *err may be the last line of the
 * script's standard error. */
int bench_script_ask(bench_child *c, const char *line, json_t **answer, sgt_error *err);

/* Close the script's standard input and output, and after an interrupt send it SIGTERM. Kill it if
 * it has not ended five seconds later. c may be NULL. */
void bench_script_close(bench_child *c);

/* Start a script that does not stay, read its answer, and close it. */
int bench_script_run(const bench_script *s, json_t **answer, sgt_error *err);

/* Create a file in memory that contains the n bytes of text. Returns its descriptor, which child
 * processes inherit, or a negative SGT_E*. `name` is for messages. */
int bench_memory_file(const char *name, const char *text, size_t n, sgt_error *err);

/* ---- step_measure.c: steps of sgt_train, without a run directory ---- */

typedef struct step_run {
    sgt_config config;      /* training options; if `data` is NULL, the tokens are random */
    unsigned warmup, steps; /* number of steps before the measured ones, and of measured steps */
    int text;  /* 1: before each step, encode the text of its rows; the tokens must be GPT-2's */
    int parts; /* 1: on CUDA, also record the time of each kernel of a step */
} step_run;

/* Measure training steps. Set *figures to an object with the fields that `sgt-bench step --json`
 * prints for a step (see its manual). After a request to stop, finish the current step and return
 * SGT_ESTOPPED. */
int bench_step_measure(json_t **figures, const step_run *run, sgt_error *err);

#endif
