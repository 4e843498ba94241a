/* loader.h: the parts of sgt-bench loader. loader.c has the command line, lists the rows of the table
 * and prints it, loader_measure.c measures them, and loader_peers.c runs the other programs'
 * turns. */
#ifndef SGT_TOOLS_BENCH_LOADER_H
#define SGT_TOOLS_BENCH_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "loader/sgt_loader.h"
#include "tools/bench/bench.h"

enum { LOADER_TURNS = 100, LOADER_ROWS = 32 }; /* most turns; most rows of the table */

/* What makes the batches of a row (`maker`): a sgt_reader, or one of these. */
enum {
    LOADER_MEMCPY = SGT_READERS, /* memcpy of the same windows */
    LOADER_FIO,    /* fio reads the same number of bytes from the disk, and discards them */
    LOADER_WINDOW, /* tests/peers/loaders.py describes this and the following */
    LOADER_GATHER,
    LOADER_LOOP,
    LOADER_TORCH0,
    LOADER_TORCH2,
    LOADER_MAKERS
};
static inline int loader_is_reader(int maker) { return maker < SGT_READERS; }
static inline int loader_is_python(int maker) { return maker >= LOADER_WINDOW; }

/* Output formats: those of sgt_output, and bytes, in which fio is measured. */
enum { LOADER_OURS = SGT_OUTPUT_I64 + 1, LOADER_BYTES = LOADER_OURS, LOADER_OUTPUTS };

/* State of the set when a row is measured. mmap meets a set in three states. LOADER_COLD: an epoch
 * of a set that is not in the page cache reads the disk. LOADER_CACHED: the first epoch of a cached
 * set maps each page. LOADER_MAPPED: later epochs find the pages mapped. */
typedef enum loader_state { LOADER_WARM, LOADER_MAPPED, LOADER_CACHED, LOADER_COLD } loader_state;

typedef struct loader_options {
    const char *readers, *outputs, *split, *peer;
    double seconds;
    uint64_t batch, seq, threads, turns, seed;
    int sampling, cold, raw, seq_given;
    bench_output output;
} loader_options;

/* A row of the table. */
typedef struct loader_row {
    int maker, output, threads;
    int plain; /* 1: a plain loop makes the batches, one token at a time */
    loader_state state;
    double us[LOADER_TURNS];  /* microseconds per batch in each turn */
    double cpu[LOADER_TURNS]; /* CPU seconds per second, in each turn */
    double open_s[LOADER_TURNS];
    double us_per_batch, cpu_share, open_ms; /* medians of the turns */
    /* us per batch of other rows: memcpy and fio of the same windows, preload with the same output,
     * and its plain loop; 0: not measured */
    double memcpy_us, fio_us, preload_us, loop_us;
    int best;      /* 1: the fastest row with this output */
    char why[320]; /* why the row was left out; "" if it was not */
} loader_row;

typedef struct loader_python loader_python;

typedef struct loader_shard {
    char *path;
    uint64_t data, tokens; /* offset of the first token; number of tokens */
    uint64_t first;        /* tokens in all shards before this one */
} loader_shard;

typedef struct loader_bench {
    const char *path;
    const loader_options *o;
    uint32_t batch, seq;
    loader_shard *shards; /* shards to read */
    size_t shard_count;
    uint64_t tokens, longest; /* in all shards; in the longest shard */
    /* The first `main_count` rows are measured in alternating turns; then the others, mmap of a set
     * that is not cached, because they drop the set from the page cache. */
    loader_row rows[LOADER_ROWS];
    size_t count, main_count;
    loader_python *python;              /* NULL: not started */
    char numpy[48], torch[48], fio[48]; /* versions of these programs, once they have answered */
    int fio_runs;                       /* 1: fio can be run */
    const sgt_stop *stop;
    sgt_notice notice;
} loader_bench;

/* What was measured in one turn of a row. */
typedef struct loader_slice {
    double batches, seconds, cpu_s, open_s;
} loader_slice;

/* ---- loader_measure.c ---- */

/* Measure all rows, and compute their medians and what they are compared with. */
int loader_measure(loader_bench *b, sgt_error *err);

/* ---- loader_peers.c ---- */

/* Run a turn of tests/peers/loaders.py, which is embedded in the program, with the interpreter of
 * --peer. Returns SGT_EUNSUPPORTED if the interpreter lacks what the turn needs; other failures end
 * the measurement. */
int loader_python_turn(loader_bench *b, const loader_row *r, double seconds, loader_slice *s,
                       sgt_error *err);
/* End the Python process. It keeps the shards mapped while it runs, so call this before any cold
 * measurement. */
void loader_python_close(loader_bench *b);

/* Run a turn of fio on the set's own shards: random reads of a row's size at our reader's queue
 * depth, blocks, or sequential reads, by the sampling. SGT_EUNSUPPORTED: fio is missing or cannot do
 * this. */
int loader_fio_turn(loader_bench *b, double seconds, loader_slice *s, sgt_error *err);

/* ---- loader.c ---- */

const char *loader_maker_name(int maker);
const char *loader_output_name(int output);

#endif
