/* loader.h: the parts of sgt-bench loader. loader.c has the command line and the grid of
 * measurements; loader_limits.c has the lines that compare each part with its limit. Both make
 * groups of results. loader_measure.c measures a group, loader_peers.c runs the other programs'
 * turns, and loader_show.c prints. */
#ifndef SGT_TOOLS_BENCH_LOADER_H
#define SGT_TOOLS_BENCH_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "loader/sgt_loader.h"
#include "tools/bench/bench.h"
#include "tools/bench/subcommand.h"

/* LOADER_TURNS: most turns; LOADER_LIST: most words in an option's list; LOADER_LINES: most
 * lines */
enum { LOADER_TURNS = 100, LOADER_LIST = 16, LOADER_LINES = 24 };

/* What makes the batches (`who`): a sgt_reader, or one of these programs and methods. */
enum {
    LOADER_MEMCPY = SGT_READERS, /* memcpy of the same windows */
    LOADER_READ,                 /* reads the same windows with prefetching, and discards them */
    LOADER_FIO,    /* fio reads the same number of bytes from the disk, and discards them */
    LOADER_WINDOW, /* tests/peers/loaders.py describes this and the following */
    LOADER_GATHER,
    LOADER_LOOP,
    LOADER_TORCH0,
    LOADER_TORCH2,
    LOADER_WHO
};
static inline int loader_is_reader(int who) { return who < SGT_READERS; }
static inline int loader_is_limit(int who) { return who >= SGT_READERS && who <= LOADER_FIO; }
static inline int loader_is_python(int who) { return who >= LOADER_WINDOW; }

/* Output formats: sgt's own, and bytes, in which fio is measured. */
enum { LOADER_OURS = SGT_OUTPUT_I64 + 1, LOADER_BYTES = LOADER_OURS, LOADER_OUTPUTS };

typedef enum loader_way {
    LOADER_DRAW,   /* draw batches through a cursor */
    LOADER_SCALAR, /* draw batches through a cursor, made one token at a time */
    /* measure how long a stream's consumer waits for a batch, if its own work takes twice as long
     * as making one */
    LOADER_STREAM,
    LOADER_FILL /* measure how long opening takes, which reads all tokens */
} loader_way;

/* State of the set when mmap reads it (loader_passes.c); LOADER_ANY: does not matter. */
typedef enum loader_pass { LOADER_ANY, LOADER_MAPPED, LOADER_CACHED, LOADER_COLD } loader_pass;

typedef struct loader_options {
    const char *readers, *outputs, *batches, *seqs, *samplings, *split, *peer, *limits;
    double seconds;
    uint64_t threads, turns, seed;
    int cold, raw, seq_given, limits_given;
    bench_output output;
} loader_options;

typedef struct loader_lists {
    int readers[SGT_READERS], outputs[LOADER_OURS], samplings[SGT_SAMPLINGS], lines[LOADER_LINES];
    uint32_t batches[LOADER_LIST], seqs[LOADER_LIST];
    int reader_count, output_count, sampling_count, batch_count, seq_count, line_count;
} loader_lists;

/* One measured combination of reader, output and options: a line of the results. */
typedef struct loader_result {
    int who, output, sampling, threads, cold;
    loader_way way;
    loader_pass pass;
    uint32_t batch, seq;
    /* microseconds per batch in each turn; fio: the disk's time for a batch */
    double us[LOADER_TURNS];
    double cpu[LOADER_TURNS]; /* CPU seconds per second, in each turn */
    double open_s[LOADER_TURNS];
    double us_per_batch, cpu_share, open_ms; /* medians of the turns */
    /* us per batch of memcpy and of fio for the same windows; 0: not measured */
    double memcpy_us, fio_us;
    double preload_us, loop_us; /* us per batch of preload and of its plain loop; 0: not measured */
    double work_us;             /* stream: us of the consumer's own work per batch */
    int best;                   /* 1: the fastest result with this output in its group */
    char why[320];              /* why the measurement was left out; "" if it was not */
} loader_result;

/* Results that are measured in alternating turns; all have the same sampling, batch and seq. */
typedef struct loader_group {
    loader_result *results;
    size_t count;
    /* 1: leave out measurements that this machine does not support, instead of failing */
    int lenient;
} loader_group;

/* A line that compares a part of the loader with its limit. */
typedef struct loader_line {
    const struct loader_limit *limit; /* loader_limits.c */
    const loader_result *ours, *other;
    const char *why; /* why it was not measured; NULL if it was */
} loader_line;

typedef struct loader_python loader_python;

typedef struct loader_shard {
    char *path;
    /* offset of the first token; number of tokens; size of the file */
    uint64_t data, tokens, bytes;
} loader_shard;

typedef struct loader_bench {
    const char *path;
    const loader_options *o;
    loader_lists in;
    loader_shard *shards; /* shards to read */
    size_t shard_count;
    uint64_t tokens, longest; /* in all shards; in the longest shard */
    bench_limit *limit;
    loader_python *python;              /* NULL: not started */
    char numpy[48], torch[48], fio[48]; /* versions of these programs, once they have answered */
    int fio_runs;                       /* 1: fio can be run */
    loader_group *groups;               /* groups of the grid, then those of the lines */
    size_t group_count, grid_count;
    loader_line lines[LOADER_LINES];
    size_t line_count;
    int may_be_warm; /* 1: there is room in the page cache for all shards */
    /* rows read cold so far, counted from the run's first; none of them is read cold again */
    uint64_t cold_rows;
    const sgt_stop *stop;
    sgt_notice notice;
} loader_bench;

/* ---- loader_names.c ---- */

const char *loader_who_name(int who);
const char *loader_output_name(int output);
const char *loader_sampling_name(int sampling);
const char *loader_pass_name(loader_pass pass);

/* ---- groups ---- */

/* Append a group with room for `most` results to b->groups; b->group_count grows. */
int loader_add_group(loader_bench *b, size_t most, loader_group **out, sgt_error *err);
loader_result *loader_add_result(loader_group *g, loader_result r);

/* Read the parts of the shards that are not in the page cache, if there is room for all shards. */
int loader_warm(const loader_bench *b, sgt_error *err);

int loader_measure(loader_bench *b, loader_group *g, sgt_error *err);

/* ---- loader_peers.c ---- */

/* Run a turn of tests/peers/loaders.py, which is embedded in the program, with the interpreter of
 * --peer. Returns SGT_EUNSUPPORTED if the interpreter lacks what the turn needs; other failures end
 * the measurement. */
int loader_python_turn(loader_bench *b, const loader_result *r, double seconds, double *us,
                       sgt_error *err);
/* End the Python process. It keeps the shards mapped while it runs, so call this before any cold
 * measurement. */
void loader_python_close(loader_bench *b);

/* Run a turn of fio on the set's own shards: random reads of a row's size at our reader's queue
 * depth, blocks, or sequential reads, by r->sampling. SGT_EUNSUPPORTED: fio is missing or cannot do
 * this. */
int loader_fio_turn(loader_bench *b, const loader_result *r, double seconds, double *us,
                    double *cpu, sgt_error *err);

/* ---- loader_limits.c ---- */

const char *loader_limit_name(int line);
int loader_limit_count(void);
/* loader_limits_lay_out adds the groups that the lines named by b->in need. Once they are measured,
 * loader_limits_conclude computes the lines. */
int loader_limits_lay_out(loader_bench *b, sgt_error *err);
void loader_limits_conclude(loader_bench *b);
/* Return the speed of `ours` as a fraction of that of `other`; 0 if the line has none. */
double loader_line_share(const loader_bench *b, const loader_line *line);
const char *loader_line_ours(const loader_line *line);
const char *loader_line_other(const loader_line *line);
void loader_limits_show(const loader_bench *b);
json_t *loader_limits_json(const loader_bench *b);

/* ---- loader_passes.c ---- */

/* Fill in the times that each result of the grid is compared with. Call it after all
 * measurements. */
void loader_relate(loader_bench *b);
/* Return the number of batches of an epoch. */
double loader_epoch(const loader_bench *b, const loader_result *r);
/* Return the number of batches from which on preload, with its opening, takes less time than mmap.
 * `cached` is mmap's result from a cached set. INFINITY: never. */
double loader_pays_from(const loader_bench *b, const loader_group *g, const loader_result *cached);
void loader_passes_show(const loader_bench *b);

/* ---- loader_show.c ---- */

/* Write the name of a result's row: "preload", "mmap (cached)", "plain loop". */
void loader_row_name(char *name, size_t size, const loader_result *r);
double loader_tokens_per_s(const loader_result *r);
/* Functions for bench_subcommand (subcommand.h); `bench` is a loader_bench. */
void loader_show(void *bench);
json_t *loader_json(void *bench);

#endif
