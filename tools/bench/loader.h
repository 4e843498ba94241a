/* loader.h: the parts of sgt-bench loader. loader.c holds the command line and the grid of what is measured, readers.c
 * measures, table.c prints. */
#ifndef SGT_TOOLS_BENCH_LOADER_H
#define SGT_TOOLS_BENCH_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "sgt_loader.h"
#include "tools/bench/bench.h"

enum { LOADER_ROUNDS = 5, LOADER_OUTPUTS = 2, LOADER_LIST = 16 }; /* LOADER_LIST: pieces of an option's list */

typedef struct loader_options {
    const char *readers, *outputs, *batches, *seqs, *samplings, *split;
    double seconds;
    uint64_t threads, seed;
    int cold, raw, json, quiet, seq_given;
} loader_options;

typedef struct loader_lists {
    int readers[SGT_READERS], outputs[LOADER_OUTPUTS], samplings[SGT_SAMPLINGS];
    uint32_t batches[LOADER_LIST], seqs[LOADER_LIST];
    int reader_count, output_count, sampling_count, batch_count, seq_count;
} loader_lists;

/* One line of the result; reader SGT_READERS is memcpy. */
typedef struct loader_result {
    int reader, output, sampling;
    uint32_t batch, seq;
    double us[LOADER_ROUNDS];     /* a batch, in each round */
    double us_per_batch, open_ms; /* the median; the mean */
    double limit_us;              /* memcpy's, of the same windows */
    int best;                     /* of its output, sampling, batch and seq */
} loader_result;

typedef struct loader_bench {
    const char *path;
    const loader_options *o;
    loader_lists in;
    char **shards; /* paths of what is read */
    size_t shard_count;
    uint64_t tokens, longest; /* in all shards; in the longest */
    bench_limit *limit;
    loader_result *results; /* groups of memcpy, then each output of each reader */
    size_t count, group;
    double slice_s;
    const sgt_stop *stop;
    sgt_notice notice;
} loader_bench;

const char *loader_reader_name(int reader); /* "memcpy" for SGT_READERS */
const char *loader_output_name(int output);
const char *loader_sampling_name(int sampling);

/* Measures one group: b->group results from `first`, with sampling, batch and seq in common. */
int loader_measure(loader_bench *b, loader_result *first, sgt_error *err);

void loader_show(const loader_bench *b);
int loader_print_json(const loader_bench *b, sgt_error *err);

#endif
