/* loader.h: the parts of sgt-bench loader. loader.c holds the command line and the grid of what is
 * measured, loader_limits.c the lines that set each part beside its limit; both are groups of
 * results. loader_measure.c measures a group, loader_peers.c has the turns of what is not ours,
 * loader_show.c prints, loader_plot.c draws. */
#ifndef SGT_TOOLS_BENCH_LOADER_H
#define SGT_TOOLS_BENCH_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "sgt_loader.h"
#include "tools/bench/bench.h"
#include "tools/bench/subcommand.h"

/* LOADER_LIST: pieces of an option's list */
enum { LOADER_TURNS = 100, LOADER_LIST = 16, LOADER_LINES = 24 };

/* Who makes the batches: a sgt_reader, or one of these. */
enum {
    LOADER_MEMCPY = SGT_READERS, /* copies the same windows from memory */
    LOADER_READ,                 /* reads them, fetching ahead, and makes nothing of them */
    LOADER_FIO,                  /* reads as much from the disk, and makes nothing of it */
    LOADER_WINDOW,               /* tests/peers/loaders.py says what these are */
    LOADER_GATHER,
    LOADER_LOOP,
    LOADER_TORCH0,
    LOADER_TORCH2,
    LOADER_WHO
};
static inline int loader_is_reader(int who) { return who < SGT_READERS; }
static inline int loader_is_limit(int who) { return who >= SGT_READERS && who <= LOADER_FIO; }
static inline int loader_is_python(int who) { return who >= LOADER_WINDOW; }

/* beyond ours */
enum { LOADER_I64 = SGT_OUTPUT_I32 + 1, LOADER_BYTES, LOADER_OUTPUTS, LOADER_OURS = LOADER_I64 };

typedef enum loader_way {
    LOADER_DRAW,   /* batches through a cursor */
    LOADER_SCALAR, /* the same, made one token at a time */
    /* what a stream's consumer waits for a batch when its own work takes twice as long as one */
    LOADER_STREAM,
    LOADER_FILL /* opening: all tokens are read */
} loader_way;

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

/* One line of the result. */
typedef struct loader_result {
    int who, output, sampling, threads, cold;
    loader_way way;
    uint32_t batch, seq;
    double us[LOADER_TURNS];  /* a batch, in each turn; fio: what the disk alone takes for it */
    double cpu[LOADER_TURNS]; /* seconds of CPU a second */
    double open_s[LOADER_TURNS];
    double us_per_batch, cpu_share, open_ms; /* the medians */
    double memcpy_us, fio_us;                /* of the same windows; 0: not measured */
    double work_us;                          /* stream: the consumer's own */
    int best;                                /* of its output in its group */
    char why[320];                           /* why it was left out; "": it was not */
} loader_result;

/* What takes turns: sampling, batch and seq are the same in all of it. */
typedef struct loader_group {
    loader_result *results;
    size_t count;
    int lenient; /* what this machine cannot do is left out, and is no failure */
} loader_group;

/* One part of the loader beside its limit. */
typedef struct loader_line {
    const struct loader_limit *limit; /* loader_limits.c */
    const loader_result *ours, *other;
    const char *why; /* not measured */
} loader_line;

typedef struct loader_python loader_python;

typedef struct loader_shard {
    char *path;
    uint64_t data, tokens, bytes; /* the first token's byte; how many; of the file */
} loader_shard;

typedef struct loader_bench {
    const char *path;
    const loader_options *o;
    loader_lists in;
    loader_shard *shards; /* what is read */
    size_t shard_count;
    uint64_t tokens, longest; /* in all shards; in the longest */
    bench_limit *limit;
    loader_python *python;              /* NULL: not started */
    char numpy[48], torch[48], fio[48]; /* their versions, once they have answered */
    int fio_runs;                       /* there is one */
    loader_group *groups;               /* of the grid, then of the lines */
    size_t group_count, grid_count;
    loader_line lines[LOADER_LINES];
    size_t line_count;
    int may_be_warm; /* there is room in the page cache */
    /* so many rows of the run were drawn cold: no window is read cold a second time */
    uint64_t cold_rows;
    const sgt_stop *stop;
    sgt_notice notice;
} loader_bench;

const char *loader_who_name(int who);
const char *loader_output_name(int output);
const char *loader_sampling_name(int sampling);
double loader_tokens_per_s(const loader_result *r);
double loader_gb_per_s(const loader_result *r); /* of the 2(T+1) bytes that a row is on disk */

/* ---- groups ---- */

/* Room for `most` results; b->group_count is moved on. */
int loader_add_group(loader_bench *b, size_t most, loader_group **out, sgt_error *err);
loader_result *loader_add_result(loader_group *g, loader_result r);

/* reads into the page cache what is not there */
int loader_warm(const loader_bench *b, sgt_error *err);

int loader_measure(loader_bench *b, loader_group *g, sgt_error *err);

/* ---- loader_peers.c ---- */

/* A turn of tests/peers/loaders.py, which the program carries within it, by the interpreter of
 * --peer. SGT_EUNSUPPORTED where it cannot; other failures end everything. */
int loader_python_turn(loader_bench *b, const loader_result *r, double seconds, double *us,
                       sgt_error *err);
/* it maps the shards while it runs: to be called before anything cold */
void loader_python_close(loader_bench *b);

/* A turn of fio on the set's own shards: random reads of a row's size at the depth of our reader,
 * of blocks, or all in turn, as r->sampling has it. SGT_EUNSUPPORTED where fio is not there, or
 * cannot. */
int loader_fio_turn(loader_bench *b, const loader_result *r, double seconds, double *us,
                    double *cpu, sgt_error *err);

/* ---- loader_limits.c ---- */

const char *loader_limit_name(int line);
int loader_limit_count(void);
/* The groups of the lines that b->in names, and after they were measured the lines. */
int loader_limits_lay_out(loader_bench *b, sgt_error *err);
void loader_limits_conclude(loader_bench *b);
double loader_line_share(const loader_bench *b, const loader_line *line); /* 0: it has none */
const char *loader_line_ours(const loader_line *line);
const char *loader_line_other(const loader_line *line);
void loader_limits_show(const loader_bench *b);
json_t *loader_limits_json(const loader_bench *b);

/* ---- loader_show.c, loader_plot.c ---- */

/* Of a loader_bench, as bench_subcommand has them. */
void loader_show(void *bench);
json_t *loader_json(void *bench);
int loader_plot(void *bench, const char *path, sgt_error *err);

#endif
