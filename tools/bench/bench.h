/* bench.h: functions that the subcommands of sgt-bench share. bench_run_subcommand parses the
 * options, calls the subcommand to measure each row of its table several times, and prints the
 * medians as a JSON document or a table. Other functions choose the device and the options of the
 * model, run timed work on threads, control the page cache, run other programs for comparison, and
 * measure training steps. Global variables hold the state (`bench`, and `state` in the file of each
 * subcommand), because a process runs only one subcommand.
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

/* BENCH_ROWS: maximum number of rows in a table. BENCH_TURNS: maximum number of times that each row
 * is measured. */
enum { BENCH_ROWS = 32, BENCH_TURNS = 100 };

/* A row of the table. */
typedef struct bench_row {
    /* The row's object in the JSON document. It has the members that were given to bench_add and,
     * after the row has been measured, one member for each measured value: the median of all
     * measurements if the value is a real number, otherwise the value in the last measurement. */
    json_t *result;
    json_t *turns; /* array with one object of measured values for each measurement of the row */
    char why[320]; /* reason why the row is skipped; "" if the row is not skipped */
} bench_row;

/* state that all subcommands share: the values of their common options, and the rows of the
 * table */
extern struct bench {
    int json, quiet; /* --json, --quiet */
    char **operands;
    size_t operand_count;
    sgt_notice notice;
    const sgt_stop *stop;
    /* path of the folder that caches measured peak speeds and the results of self-checks; NULL if
     * there is no such folder */
    char *cache;
    bench_row rows[BENCH_ROWS];
    size_t count;
    int measured; /* 1 if at least one row has been measured, otherwise 0 */
} bench;

typedef struct bench_subcommand {
    sgt_command command; /* command.run must be bench_run_subcommand */
    /* 1 if, after an interrupt, the results of the rows measured so far are printed; 0 if nothing
     * is printed */
    int partial;
    /* Add and measure all rows of the table. Return 0 on success, 1 if there is nothing to print,
     * or a negative SGT_E* on error. */
    int (*measure)(sgt_error *err);
    /* Add the results to the JSON document `top`, which already has the member "cpu". */
    void (*json)(json_t *top);
    /* Print the JSON document `top` as a table. The function can change the document. */
    void (*show)(json_t *top);
    /* Release the subcommand's memory; NULL if there is nothing to release. */
    void (*release)(void);
} bench_subcommand;

/* The subcommands. Each is defined at the end of the source file with its name, for example
 * bench_step in step.c. */
extern const bench_subcommand bench_loader, bench_tokenize, bench_kernels, bench_step,
    bench_ablation;

/* Run the bench_subcommand that contains *c as its member `command`, and return the program's exit
 * code. */
int bench_run_subcommand(const sgt_command *c, int argc, char **argv);

/* ---- bench.c: rows ---- */

/* Add a row to the table and return it. about: JSON object with members that describe the row, or
 * NULL. The object becomes the row's result and is released with the row. */
bench_row *bench_add(json_t *about);

/* Measure row i once, and set *figures to a new JSON object with the measured values. If they are
 * not to be recorded, as in a warm-up, leave *figures NULL. */
typedef int bench_take(size_t i, json_t **figures, sgt_error *err);

/* Measure the `count` rows from index `first` on, each `turns` times: call `take` for every row
 * that is not skipped, and repeat this `turns` times. The rows alternate, so that a change in the
 * machine's speed affects all rows alike. At the end, add the medians of each row to its result,
 * even if a measurement failed. */
int bench_take_turns(size_t first, size_t count, size_t turns, bench_take *take, sgt_error *err);

/* Return rc, the result of measuring row r, unless it is SGT_EUNSUPPORTED. In that case, mark the
 * row as skipped for the reason in *err, print a notice that names the row (unless `name` is NULL),
 * and return 0. */
int bench_leave_out(bench_row *r, int rc, const char *name, const sgt_error *err);

/* Return a JSON array with the results of the rows from index `first` on: those that were measured
 * if `left_out` is 0, or those that were skipped if `left_out` is 1, each with the reason as its
 * member "why". */
json_t *bench_results(size_t first, int left_out);

/* Return the number in the member `key` of an object, or 0 if there is no such member. */
double bench_get(const json_t *object, const char *key);
/* Return the string in the member `key` of an object, or NULL if there is no such member. */
const char *bench_get_text(const json_t *object, const char *key);
/* Set the member `key` of an object to x. If x is 0, which stands for an unknown value, do
 * nothing. */
void bench_put(json_t *object, const char *key, double x);
void bench_put_text(json_t *object, const char *key, const char *text);
/* Add all members of `fields` to `object`, and release `fields`. */
void bench_put_all(json_t *object, json_t *fields);

/* Parse `list`, a comma-separated list of words that was given for an option, whose name is
 * `option`. For each word, set bit k of *chosen, where k is the index of the word in names[], an
 * array that ends with NULL. If `list` is NULL, set the bits of all names. Return 0, or SGT_EUSAGE
 * if a word is not in names[]. */
int bench_words(uint32_t *chosen, const char *option, const char *list, const char *const *names,
                sgt_error *err);
static inline int bench_has(uint32_t chosen, int k) { return chosen >> k & 1; }

/* A column of a table, which shows one member of each row's JSON object. An array of columns ends
 * with an element whose key is NULL. */
typedef struct bench_column {
    const char *key, *head; /* name of the member; heading of the column */
    enum { BENCH_NUMBER, BENCH_TEXT, BENCH_PERCENT, BENCH_BYTES } kind;
    int decimals;
    /* factor by which a number is multiplied before it is printed, for example 100 for percent; 0
     * stands for a factor of 1 */
    double scale;
} bench_column;

/* Print the rows as a table.
 * - A column is as wide as its widest cell. A column is omitted if no row has its member.
 * - If a row lacks the member of a column, the cell shows "-".
 * - A star marks the rows whose member `best` is true, or is the highest number of all rows.
 * - If a row has a string member "why_not" or "why", this string is printed instead of the cells
 *   from the first missing number on.
 * - Strings are cut to 32 characters. */
void bench_table(const json_t *rows, const bench_column *columns, const char *best);

/* ---- bench.c: model and step ---- */

/* Training options of the subcommands step, ablation and kernels. At first, they have the defaults
 * of sgt-train, except that `seq` is 0 until the device is chosen, because its default depends on
 * the device. */
extern sgt_config bench_config;
/* Address of the definition of an sgt-train option, which a subcommand uses in its own table of
 * options. Example: BENCH_ROW(MODEL). */
#define BENCH_ROW(name) &sgt_config_rows[SGT_SET_##name]

/* Choose the device by bench_config.device, and set those options in bench_config whose defaults
 * depend on the device. */
int bench_choose_device(sgt_error *err);

static inline int bench_on_cuda(void) { return bench_config.device == SGT_DEVICE_CUDA; }

/* ---- bench.c: timed work ---- */

/* Do the unit of work with number k. thread: number of the calling thread, counted from 0. Several
 * threads call this function at the same time. */
typedef int bench_work(void *ctx, int thread, uint64_t k, sgt_error *err);

typedef struct bench_slice {
    /* number of the first unit of work. Thread t does the units first + t, first + t + threads,
     * first + t + 2 * threads, and so on. */
    uint64_t first;
    uint64_t most;  /* maximum number of units per thread; 0 if only the time is limited */
    double seconds; /* time limit in seconds */
    int threads;    /* number of threads */
} bench_slice;

/* Run units of work on several threads. Each thread does at least one unit, and stops at the time
 * limit or the maximum number of units. Set *units to the number of units that all threads together
 * have done, and *seconds to the time from the start of the first thread to the end of the last
 * one. */
int bench_run(const bench_slice *s, bench_work *work, void *ctx, uint64_t *units, double *seconds,
              sgt_error *err);

double bench_median(double *x, size_t n); /* sorts x */

/* ---- bench.c: page cache ---- */

/* Read all shards of a loader into the page cache if `cached` is 1, or evict all their pages from
 * the page cache if `cached` is 0. If some pages cannot be evicted, return SGT_EUNSUPPORTED with
 * their number in the message. Pages that an open cursor has mapped cannot be evicted. */
int bench_cache(const sgt_loader *l, int cached, sgt_error *err);

/* ---- script.c: Python and other programs ----
 *
 * These functions run a Python script that is embedded in this program, or another program, in a
 * child process. The child prints either a single JSON object, or one JSON object for each line of
 * its standard input. */

/* Define the string `name`, which contains the contents of a file at build time. Example:
 * BENCH_EMBED(sgt_bpe_py, "tests/peers/bpe.py"). */
#define BENCH_EMBED(name, file)                                                         \
    __asm__(".section .rodata\n" #name ": .incbin \"" file "\"\n.byte 0\n.previous\n"); \
    extern const char name[] __attribute__((visibility("hidden")))

typedef struct bench_script {
    const char *python; /* Python interpreter or, if `text` is NULL, the program to run */
    const char *text;   /* source text of the script; NULL to run a program instead */
    /* arguments of the script or program, as an array ended by NULL; NULL if there are none */
    const char *const *args;
    char words[512]; /* further arguments, separated by spaces, which follow those in `args` */
    /* name of a member that every answer must have, or NULL. If the member is a number, it must be
     * positive. Without this member, an answer is an error. */
    const char *needs;
    /* 1 if the script keeps running and prints one answer for each line of its standard input; 0 if
     * it prints a single answer and exits */
    int stays;
    /* maximum number of CPU cores that the child process uses; 0 for all that this process can
     * use */
    int threads;
} bench_script;

typedef struct bench_child bench_child;

/* Start the script or program *s in a child process, and set *out on success. *s must stay valid
 * until bench_script_close is called. Return 0 or a negative SGT_E*. */
int bench_script_open(bench_child **out, const bench_script *s, sgt_error *err);

/* Send `line` to the script unless it is NULL, read the script's answer, and set *answer to the
 * JSON object in it, which the caller releases. If bench_script.stays is 1, the answer is one line
 * of output; otherwise, it is all output until the script ends. Text before the first brace is
 * skipped.
 *
 * Return SGT_EUNSUPPORTED if the script fails or has ended, if the answer lacks the member
 * bench_script.needs, or if it has a member "error". The message can quote the last line of the
 * script's standard error. */
int bench_script_ask(bench_child *c, const char *line, json_t **answer, sgt_error *err);

/* Close the standard input and output of the script, wait until the script has ended, and release
 * c. After an interrupt, first send SIGTERM to the script. If the script has not ended after five
 * seconds, kill it. If c is NULL, do nothing. */
void bench_script_close(bench_child *c);

/* Run a script that prints a single answer (s->stays is 0) until it ends, and set *answer as
 * bench_script_ask does. */
int bench_script_run(const bench_script *s, json_t **answer, sgt_error *err);

/* Create a file in memory (memfd) that contains the n bytes at `text`. Return the file's
 * descriptor, which child processes inherit, or a negative SGT_E*. name: name of the file, for
 * messages. */
int bench_memory_file(const char *name, const char *text, size_t n, sgt_error *err);

/* ---- step_measure.c: training steps ---- */

typedef struct step_run {
    sgt_config config; /* training options; if config.data is NULL, steps train on random tokens */
    /* steps: number of steps to measure. warmup: number of steps to run before these. */
    unsigned warmup, steps;
    /* 1 to also tokenize the text of each step's rows before the step, as if training read text
     * instead of tokens; otherwise 0. This requires data with GPT-2's vocabulary. */
    int text;
    /* 1 to also record the time of each kernel in a step (only with CUDA); otherwise 0 */
    int parts;
} step_run;

/* Measure training steps. Set *figures to a JSON object with the members that `sgt-bench step
 * --json` prints for a step (see the man page). After an interrupt, finish the current step and
 * return SGT_ESTOPPED. */
int bench_step_measure(json_t **figures, const step_run *run, sgt_error *err);

#endif
