/* subcommand.h: runs a subcommand of sgt-bench: it parses the options, measures, prints
 * the JSON document or the table, and returns the exit code.
 *
 *     static const bench_subcommand gemm = {.program = &program, .output = &shape.output,
 *                                           .size = sizeof(gemm_bench), .measure = measure,
 *                                           .json = to_json, .show = show};
 *     int bench_gemm(int argc, char **argv) { return bench_subcommand_run(&gemm, argc, argv); } */
#ifndef SGT_TOOLS_BENCH_SUBCOMMAND_H
#define SGT_TOOLS_BENCH_SUBCOMMAND_H

#include <jansson.h>

#include "loader/base/error.h"
#include "tools/cli/options.h"

/* The values of --json and --quiet. */
typedef struct bench_output {
    int json, quiet;
} bench_output;

#define BENCH_OUTPUT(o)                                                      \
    {"json", 0, SGT_OPT_FLAG, &(o).json, NULL, .help = "one JSON document"}, \
    {                                                                        \
        "quiet", 'q', SGT_OPT_FLAG, &(o).quiet, NULL,                        \
            .help = "print only failures and what --json asks for"           \
    }

/* Arguments of a measurement, from the command line. */
typedef struct bench_call {
    char **operands;
    size_t count;
    sgt_notice notice;
    const sgt_stop *stop;
} bench_call;

typedef struct bench_subcommand {
    const sgt_program *program;
    const bench_output *output;
    size_t size;  /* bytes of `bench`, which the functions below share; zeroed at first */
    int operands; /* 1: the subcommand takes operands, such as a folder */
    int digits;   /* significant digits of numbers in the JSON document; 0: 6 */
    /* Measure. Returns 0, 1 if there is nothing to show, or a negative SGT_E*. */
    int (*measure)(void *bench, const bench_call *call, sgt_error *err);
    /* return whether to show a failed measurement; NULL: no */
    int (*worth)(const void *bench, int rc);
    json_t *(*json)(void *bench); /* returns NULL if memory is out */
    void (*show)(void *bench);
    void (*release)(void *bench); /* NULL: nothing to release */
} bench_subcommand;

/* Run the subcommand and return the program's exit code. */
int bench_subcommand_run(const bench_subcommand *s, int argc, char **argv);

#endif
