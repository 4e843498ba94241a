/* bench.h: functions that the subcommands of sgt-bench share. bench_run_subcommand parses options,
 * measures the rows of a table in turns, computes medians, and prints a JSON document or a table.
 * Further functions choose the model's options, time work on threads, control the page cache, run
 * other programs for comparison, and measure training steps. A process runs only one subcommand, so
 * `bench`, and `state` in each subcommand's file, are global variables.
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

#define BENCH_OUTPUT                                                                           \
    {"json", 0, SGT_OPT_FLAG, &bench.json, .help = "print one JSON document instead of text"}, \
    {                                                                                          \
        "quiet", 'q', SGT_OPT_FLAG, &bench.quiet,                                              \
            .help = "print only warnings, errors and --json output"                            \
    }

/* BENCH_ROWS: maximum number of rows in a table; BENCH_TURNS: maximum number of turns (repeated
 * measurements) per row */
enum { BENCH_ROWS = 32, BENCH_TURNS = 100 };

/* A row of the table. */
typedef struct bench_row {
    /* the row's object in the JSON document: the fields given to bench_add and, after the
     * measurement, one figure for each value measured. A real number is the median over all turns;
     * any other value is taken from the last turn */
    json_t *result;
    /* array with one element per turn (repeated measurement): an object with the figures of that
     * turn */
    json_t *turns;
    char why[320]; /* reason why the row is skipped; "" if it is not skipped */
} bench_row;

/* Options that all subcommands have in common, and the rows of the table. */
extern struct bench {
    int json, quiet; /* --json, --quiet */
    char **operands;
    size_t operand_count;
    sgt_notice notice;
    const sgt_stop *stop;
    /* path of the folder that keeps measured peak speeds and self-check results; NULL: none */
    char *cache;
    bench_row rows[BENCH_ROWS];
    size_t count;
    int measured; /* 1: at least one row has figures */
} bench;

typedef struct bench_subcommand {
    sgt_command command; /* its `run` is bench_run_subcommand */
    /* 1: after an interrupt, show the rows that have been measured so far; 0: show nothing */
    int partial;
    /* Measure all rows. Return 0, or 1 if there is nothing to show, or a negative SGT_E*. */
    int (*measure)(sgt_error *err);
    /* function that adds the results to the JSON document `top`, which already has the CPU's
     * name */
    void (*json)(json_t *top);
    /* function that prints the JSON document `top` as a table; it may modify the document */
    void (*show)(json_t *top);
    void (*release)(void); /* NULL: nothing to release */
} bench_subcommand;

/* The subcommands. Each is defined at the end of its own file, for example bench_step in step.c. */
extern const bench_subcommand bench_loader, bench_tokenize, bench_kernels, bench_step,
    bench_ablation;

/* Run the subcommand whose member `command` is *c, and return the program's exit code. */
int bench_run_subcommand(const sgt_command *c, int argc, char **argv);

/* ---- bench.c: rows ---- */

/* Add a row to the table and return it. `about` is a JSON object that describes the row, or NULL.
 * The row takes ownership of `about` and later adds its figures to it. */
bench_row *bench_add(json_t *about);

/* Measure row i once, and set *figures to a new JSON object with the values measured. *figures may
 * stay NULL if this turn has none, for example because it is a warm-up. */
typedef int bench_take(size_t i, json_t **figures, sgt_error *err);

/* Measure rows first ... first + count - 1 in `turns` turns. Each turn calls `take` once for every
 * row that is not skipped. Because rows alternate, a change in the machine's speed affects all of
 * them. Afterwards add each row's figures to its result, even if a measurement failed. */
int bench_take_turns(size_t first, size_t count, size_t turns, bench_take *take, sgt_error *err);

/* Handle rc, the result of an attempt to measure row r. If rc is SGT_EUNSUPPORTED, leave the row
 * out of the table with the reason in *err, and return 0. Also print a notice, unless `name`, the
 * row's name, is NULL. Return any other rc unchanged. */
int bench_leave_out(bench_row *r, int rc, const char *name, const sgt_error *err);

/* Return a JSON array with the results of the rows from index `first` on. If `left_out` is 0, these
 * are the rows that were measured. If it is 1, they are the rows that were skipped, with the reason
 * in the field "why". */
json_t *bench_results(size_t first, int left_out);

/* bench_get returns the number in field `key` of an object, or 0 if the object has no such field.
 * bench_put sets the field to x. If x is 0, which stands for an unknown number, it leaves the
 * object unchanged. */
double bench_get(const json_t *object, const char *key);
const char *bench_get_text(const json_t *object, const char *key); /* NULL: no such field */
void bench_put(json_t *object, const char *key, double x);
void bench_put_text(json_t *object, const char *key, const char *text);
/* Add all members of `fields` to `object`, and release `fields`. */
void bench_put_all(json_t *object, json_t *fields);

/* Parse the words of the comma-separated `list`, the value of the option named `option`. For each
 * word, set bit k of *chosen, where names[k] is the word. If `list` is NULL, set the bits of all
 * names. `names` ends with NULL. Return 0, or SGT_EUSAGE if a word is unknown. */
int bench_words(uint32_t *chosen, const char *option, const char *list, const char *const *names,
                sgt_error *err);
static inline int bench_has(uint32_t chosen, int k) { return chosen >> k & 1; }

/* A column of a table: it shows one field of each row in the JSON document. An array of columns
 * ends with an element without a key. */
typedef struct bench_column {
    const char *key, *head; /* name of the field; heading */
    enum { BENCH_NUMBER, BENCH_TEXT, BENCH_PERCENT, BENCH_BYTES } kind;
    int decimals;
    /* factor by which a number is multiplied before it is shown, for example 100 for percent; 0
     * means 1 */
    double scale;
} bench_column;

/* Print the rows as a table.
 * - A column is as wide as its widest cell, and is omitted if no row has its field.
 * - A row without a column's field has "-" in that cell.
 * - A star marks the rows with the highest number, or with `true`, in the field `best`.
 * - If a row has the text field "why_not" or "why", that text replaces its cells from the first
 *   missing number on.
 * - Texts are cut to 32 characters. */
void bench_table(const json_t *rows, const bench_column *columns, const char *best);

/* ---- bench.c: the model and the training step ---- */

/* Training options of the subcommands step, ablation and kernels. main sets them to the defaults of
 * training, except `seq`, which stays 0 until the device is chosen. */
extern sgt_config bench_config;
/* definition of an sgt-train option, for use in a subcommand's own table of options:
 * BENCH_ROW(MODEL) */
#define BENCH_ROW(name) &sgt_config_rows[SGT_SET_##name]

/* Choose the device, and set the options whose defaults depend on the device. */
int bench_choose_device(sgt_error *err);

static inline int bench_on_cuda(void) { return bench_config.device == SGT_DEVICE_CUDA; }

/* ---- bench.c: timing work on one or more threads ---- */

/* Do unit k of the work on thread number `thread`, from 0. Several threads may call this at the
 * same time. */
typedef int bench_work(void *ctx, int thread, uint64_t k, sgt_error *err);

typedef struct bench_slice {
    /* index of the first unit of work. The units are divided evenly: thread t does units first + t,
     * first + t + threads, ... */
    uint64_t first;
    uint64_t most;  /* maximum number of units per thread; 0: only the time is limited */
    double seconds; /* time limit in seconds */
    int threads;
} bench_slice;

/* Run units of work on several threads until the time limit or the maximum number of units is
 * reached, but at least one unit on each thread. Set *units to the number of units done by all
 * threads. Set *seconds to the time from the start of the first thread to the end of the last. */
int bench_run(const bench_slice *s, bench_work *work, void *ctx, uint64_t *units, double *seconds,
              sgt_error *err);

double bench_median(double *x, size_t n); /* sorts x */

/* ---- bench.c: shards in the page cache ---- */

/* If `cached` is 1, read a loader's shards into the page cache. If `cached` is 0, evict the shards'
 * pages from the page cache. If some pages stay, return SGT_EUNSUPPORTED; the message states their
 * number. Pages that an open cursor has mapped always stay. */
int bench_cache(const sgt_loader *l, int cached, sgt_error *err);

/* ---- script.c: run an embedded Python script or any other program in a child process ----
 *
 * The child prints JSON objects: one in total, or one for each line of its standard input. */

/* Embed the content of a file, followed by a NUL, in this program with the assembler. Example:
 * BENCH_EMBED(sgt_bpe_py, "tests/peers/bpe.py"). */
#define BENCH_EMBED(name, file)                                                         \
    __asm__(".section .rodata\n" #name ": .incbin \"" file "\"\n.byte 0\n.previous\n"); \
    extern const char name[] __attribute__((visibility("hidden")))

typedef struct bench_script {
    const char *python; /* the interpreter */
    /* source of the script; NULL: `python` is the program to run, without a script */
    const char *text;
    /* arguments that follow the script's name, ended by NULL; NULL: none */
    const char *const *args;
    /* further arguments in one string, separated by spaces; they follow those in `args` */
    char words[512];
    /* name of a field that every answer must have and that, if it is a number, must be positive;
     * any other answer is an error. NULL: no field is required */
    const char *needs;
    /* 1: the script keeps running, and answers each line of its standard input with one line; 0: it
     * prints one answer and exits */
    int stays;
    /* number of cores that the child process may use; 0: all cores that this process may use */
    int threads;
} bench_script;

typedef struct bench_child bench_child;

/* Start the script. *out is set only on success. *s still belongs to the caller and must stay valid
 * until bench_script_close. */
int bench_script_open(bench_child **out, const bench_script *s, sgt_error *err);

/* Send `line` to the script, unless it is NULL, and read the answer, a JSON object. The answer is
 * one line if s->stays is 1. Otherwise it is everything that the script prints until it ends. Text
 * before the first brace is skipped. The caller releases *answer.
 *
 * Returns SGT_EUNSUPPORTED if the script fails or has ended, or if the answer lacks the field
 * s->needs or has a field "error". The message may be the last line of the script's standard
 * error. */
int bench_script_ask(bench_child *c, const char *line, json_t **answer, sgt_error *err);

/* Close the script's standard input and output, and release c. After an interrupt, also send the
 * script SIGTERM. If it has not ended after five seconds, kill it. NULL is allowed. */
void bench_script_close(bench_child *c);

/* Run a script that prints one answer (s->stays is 0): start it, read the answer, and close it. */
int bench_script_run(const bench_script *s, json_t **answer, sgt_error *err);

/* Create a file in memory that contains the n bytes at `text`. Returns its descriptor, which child
 * processes inherit, or a negative SGT_E*. `name` is used in messages. */
int bench_memory_file(const char *name, const char *text, size_t n, sgt_error *err);

/* ---- step_measure.c: steps of sgt_train, without a run folder ---- */

typedef struct step_run {
    sgt_config config; /* training options; if config.data is NULL, tokens are random */
    /* warmup: number of steps before the measured ones; steps: number of measured steps */
    unsigned warmup, steps;
    /* 1: before each step, also tokenize the text of the step's rows, as if training read text
     * instead of tokens; requires GPT-2's tokens */
    int text;
    int parts; /* 1: also record the time of each kernel in a step (CUDA only) */
} step_run;

/* Measure training steps. Set *figures to a JSON object with the fields that `sgt-bench step
 * --json` prints for a step (see its manual). If a stop is requested, finish the current step and
 * return SGT_ESTOPPED. */
int bench_step_measure(json_t **figures, const step_run *run, sgt_error *err);

#endif
