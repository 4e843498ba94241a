/* bench.h: functions that the subcommands of sgt-bench share. bench_run_subcommand parses the
 * options, measures each row of the table several times, computes medians, and prints a JSON
 * document or a table. Other functions choose the options of the model, run timed work on threads,
 * control the page cache, run other programs for comparison, and measure training steps. A process
 * runs only one subcommand, so global variables hold its state: `bench`, and `state` in each
 * subcommand's file.
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

#define BENCH_OUTPUT                                                                        \
    {"json", 0, SGT_OPT_FLAG, &bench.json, .help = "print the results as one JSON object"}, \
    {                                                                                       \
        "quiet", 'q', SGT_OPT_FLAG, &bench.quiet,                                           \
            .help = "print only warnings, errors and --json output"                         \
    }

/* BENCH_ROWS is the maximum number of rows in a table. BENCH_TURNS is the maximum number of turns,
 * which are repeated measurements of all rows. */
enum { BENCH_ROWS = 32, BENCH_TURNS = 100 };

/* A row of the table. */
typedef struct bench_row {
    /* the row's object in the JSON document. It has the fields given to bench_add and, after the
     * measurement, one field for each measured value: the median over all turns if the value is a
     * real number, otherwise the value in the last turn */
    json_t *result;
    /* array with one object per turn (repeated measurement); each object has the values measured in
     * that turn */
    json_t *turns;
    char why[320]; /* reason why the row is skipped; "" if the row is not skipped */
} bench_row;

/* Values of the options that all subcommands share, and the rows of the table. */
extern struct bench {
    int json, quiet; /* --json, --quiet */
    char **operands;
    size_t operand_count;
    sgt_notice notice;
    const sgt_stop *stop;
    /* path of the folder in which measured peak speeds and self-check results are cached; NULL if
     * there is no such folder */
    char *cache;
    bench_row rows[BENCH_ROWS];
    size_t count;
    int measured; /* 1: at least one row has figures */
} bench;

typedef struct bench_subcommand {
    sgt_command command; /* its `run` is bench_run_subcommand */
    /* 1 if the rows measured so far are shown after an interrupt; 0 if an interrupted measurement
     * shows nothing */
    int partial;
    /* Measure all rows. Return 0 on success, 1 if there is nothing to show, or a negative SGT_E* on
     * error. */
    int (*measure)(sgt_error *err);
    /* Add the results to the JSON document `top`, which already has the field "cpu" with the name
     * of the CPU. */
    void (*json)(json_t *top);
    /* Print the JSON document `top` as a table. The function may modify the document. */
    void (*show)(json_t *top);
    void (*release)(void); /* NULL: nothing to release */
} bench_subcommand;

/* The subcommands. Each is defined at the end of its source file: bench_step, for example, in
 * step.c. */
extern const bench_subcommand bench_loader, bench_tokenize, bench_kernels, bench_step,
    bench_ablation;

/* Run the bench_subcommand whose member `command` is *c, and return the program's exit code. */
int bench_run_subcommand(const sgt_command *c, int argc, char **argv);

/* ---- bench.c: rows ---- */

/* Add a row to the table and return it. `about` is a JSON object with fields that describe the row,
 * or NULL. The row takes ownership of `about`; after the measurement, the values measured for the
 * row are added to that object. */
bench_row *bench_add(json_t *about);

/* Measure row i once, and set *figures to a new JSON object with the measured values. If there is
 * nothing to record, for example during a warm-up, leave *figures NULL. */
typedef int bench_take(size_t i, json_t **figures, sgt_error *err);

/* Measure the `count` rows from index `first` on, `turns` times each. Each turn calls `take` once
 * for every row that is not skipped. Rows alternate in this way so that a change in the machine's
 * speed affects all of them alike. At the end, add a summary of each row's measured values to the
 * row's result, even if a measurement failed. */
int bench_take_turns(size_t first, size_t count, size_t turns, bench_take *take, sgt_error *err);

/* Handle rc, the result of measuring row r. If rc is SGT_EUNSUPPORTED, mark the row as skipped for
 * the reason in *err, and return 0. In that case also print a notice, unless `name` (the name of
 * the row) is NULL. Return any other rc unchanged. */
int bench_leave_out(bench_row *r, int rc, const char *name, const sgt_error *err);

/* Return a JSON array with the results of rows, from index `first` to the last row. If `left_out`
 * is 0, the array has only the rows that were measured. If `left_out` is 1, it has only the skipped
 * rows, each with the reason in the field "why". */
json_t *bench_results(size_t first, int left_out);

/* bench_get returns the number in field `key` of an object, or 0 if the object has no such field.
 * bench_put sets field `key` to x, unless x is 0, which stands for an unknown value: in that case
 * bench_put does nothing. */
double bench_get(const json_t *object, const char *key);
const char *bench_get_text(const json_t *object, const char *key); /* NULL: no such field */
void bench_put(json_t *object, const char *key, double x);
void bench_put_text(json_t *object, const char *key, const char *text);
/* Add all members of `fields` to `object`, and release `fields`. */
void bench_put_all(json_t *object, json_t *fields);

/* Parse `list`, the comma-separated value of the option named `option`. For each word in `list`,
 * set bit k of *chosen, where k is the word's index in `names`, an array that ends with NULL. If
 * `list` is NULL, set the bits of all names. Return 0, or SGT_EUSAGE if a word is not in
 * `names`. */
int bench_words(uint32_t *chosen, const char *option, const char *list, const char *const *names,
                sgt_error *err);
static inline int bench_has(uint32_t chosen, int k) { return chosen >> k & 1; }

/* A column of a table, which shows one field of each row's JSON object. An array of columns ends
 * with an element whose key is NULL. */
typedef struct bench_column {
    const char *key, *head; /* name of the field; heading */
    enum { BENCH_NUMBER, BENCH_TEXT, BENCH_PERCENT, BENCH_BYTES } kind;
    int decimals;
    /* factor by which the number is multiplied before it is printed, for example 100 for percent; 0
     * stands for a factor of 1 */
    double scale;
} bench_column;

/* Print the rows as a table.
 * - A column is as wide as its widest cell. A column is omitted if no row has its field.
 * - If a row lacks the field of a column, the cell shows "-".
 * - A star marks each row in which the field that `best` names is `true`, or is the highest number
 *   of all rows.
 * - If a row has the text field "why_not" or "why", this text is printed from the first cell with a
 *   missing number on, in place of the remaining cells.
 * - Texts are cut to 32 characters. */
void bench_table(const json_t *rows, const bench_column *columns, const char *best);

/* ---- bench.c: model and step ---- */

/* Training options of the subcommands step, ablation and kernels. main sets all of them to the
 * defaults of sgt-train, except `seq`, whose default depends on the device: it stays 0 until the
 * device is chosen. */
extern sgt_config bench_config;
/* Definition of one sgt-train option, which a subcommand puts into its own table of options.
 * Example: BENCH_ROW(MODEL). */
#define BENCH_ROW(name) &sgt_config_rows[SGT_SET_##name]

/* Choose the device that bench_config names, and set the options whose defaults depend on the
 * device. */
int bench_choose_device(sgt_error *err);

static inline int bench_on_cuda(void) { return bench_config.device == SGT_DEVICE_CUDA; }

/* ---- bench.c: timed work ---- */

/* Do unit k of the work. `thread` is the number of the calling thread, counted from 0. Several
 * threads may call this function at the same time. */
typedef int bench_work(void *ctx, int thread, uint64_t k, sgt_error *err);

typedef struct bench_slice {
    /* index of the first unit of work. The units are divided evenly among the threads: thread t
     * does units first + t, first + t + threads, first + t + 2 * threads, ... */
    uint64_t first;
    uint64_t most;  /* maximum number of units per thread; 0 if only the time is limited */
    double seconds; /* time limit in seconds */
    int threads;
} bench_slice;

/* Run units of work on several threads. Each thread does at least one unit and stops when it
 * reaches the time limit or the maximum number of units. Set *units to the number of units done by
 * all threads together, and *seconds to the time from the start of the first thread to the end of
 * the last. */
int bench_run(const bench_slice *s, bench_work *work, void *ctx, uint64_t *units, double *seconds,
              sgt_error *err);

double bench_median(double *x, size_t n); /* sorts x */

/* ---- bench.c: page cache ---- */

/* Control whether a loader's shards are in the page cache. If `cached` is 1, read all shards into
 * the page cache. If `cached` is 0, evict all their pages; if some cannot be evicted, return
 * SGT_EUNSUPPORTED with their number in the message. Pages that an open cursor has mapped can never
 * be evicted. */
int bench_cache(const sgt_loader *l, int cached, sgt_error *err);

/* ---- script.c: Python and other programs ----
 *
 * Functions that run a Python script embedded in this program, or another program, in a child
 * process. The child prints either one JSON object in total, or one for each line of its standard
 * input. */

/* Define the string `name`, which is the content of the file `file` at build time, with a
 * terminating NUL. Example: BENCH_EMBED(sgt_bpe_py, "tests/peers/bpe.py"). */
#define BENCH_EMBED(name, file)                                                         \
    __asm__(".section .rodata\n" #name ": .incbin \"" file "\"\n.byte 0\n.previous\n"); \
    extern const char name[] __attribute__((visibility("hidden")))

typedef struct bench_script {
    const char *python; /* the interpreter */
    /* source of the script; NULL if there is no script, and `python` is simply the program to
     * run */
    const char *text;
    /* array of arguments that follow the script's name, ended by NULL; NULL if there are none */
    const char *const *args;
    /* string of further arguments, separated by spaces, that follow the arguments in `args` */
    char words[512];
    /* name of a field that every answer must have, or NULL. If the field is a number, it must be
     * positive. An answer without the field is an error */
    const char *needs;
    /* 1 if the script keeps running and prints one answer for each line of its standard input; 0 if
     * it prints a single answer and exits */
    int stays;
    /* number of cores that the child process may use; 0 if it may use all cores that this process
     * may use */
    int threads;
} bench_script;

typedef struct bench_child bench_child;

/* Start the script. *out is set only on success. *s is not copied: the caller must keep it valid
 * until bench_script_close. */
int bench_script_open(bench_child **out, const bench_script *s, sgt_error *err);

/* Send `line` to the script unless `line` is NULL, read the script's answer, and parse the answer
 * as a JSON object. If s->stays is 1, the answer is one line of output; otherwise it is all output
 * until the script ends. Text before the first brace is skipped. The caller releases *answer.
 *
 * Returns SGT_EUNSUPPORTED if the script fails or has ended, or if the answer lacks the field
 * s->needs or has a field "error". The message may quote the last line of the script's standard
 * error. */
int bench_script_ask(bench_child *c, const char *line, json_t **answer, sgt_error *err);

/* Close the script's standard input and output, wait until the script has ended, and release c.
 * After an interrupt, also send the script SIGTERM. A script that has not ended after five seconds
 * is killed. c may be NULL. */
void bench_script_close(bench_child *c);

/* Start a script that prints a single answer (s->stays is 0), read the answer, and close the
 * script. */
int bench_script_run(const bench_script *s, json_t **answer, sgt_error *err);

/* Create an in-memory file (memfd) that contains the n bytes at `text`. Return its descriptor,
 * which child processes inherit, or a negative SGT_E*. Error messages use `name`. */
int bench_memory_file(const char *name, const char *text, size_t n, sgt_error *err);

/* ---- step_measure.c: training steps ---- */

typedef struct step_run {
    sgt_config config; /* training options; if config.data is NULL, steps train on random tokens */
    /* `warmup` is the number of steps run before the measured ones, and `steps` the number of
     * measured steps */
    unsigned warmup, steps;
    /* 1 if the text of each step's rows is also tokenized before the step, as if training read text
     * instead of tokens; otherwise 0. Requires data with GPT-2's vocabulary */
    int text;
    /* 1 if the time of each kernel in a step is also recorded (CUDA only); otherwise 0 */
    int parts;
} step_run;

/* Measure training steps. Set *figures to a JSON object with the fields that `sgt-bench step
 * --json` prints for one step (see the man page). If the user interrupts, finish the current step
 * and return SGT_ESTOPPED. */
int bench_step_measure(json_t **figures, const step_run *run, sgt_error *err);

#endif
