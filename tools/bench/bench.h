/* bench.h: the parts of sgt-bench. A file for each subcommand, and what they share: slices of work
 * timed on some threads, the page cache, medians. */
#ifndef SGT_TOOLS_BENCH_H
#define SGT_TOOLS_BENCH_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "tools/cli/options.h"

/* The subcommands, each at the end of the file of its name. */
extern const sgt_command bench_loader_command, bench_tokenize_command, bench_gemm_command,
    bench_attention_command, bench_step_command, bench_ablation_command, bench_sample_command,
    bench_all_command;

/* ---- machine.c ---- */

/* "AMD EPYC 9R14, 2 cores, avx512, 23.5 GiB of memory" into buf, which is returned. */
char *bench_machine(char *buf, size_t n);
/* A path for a line of a table: printable, and where it is longer than buf, its end. */
char *bench_name(char *buf, size_t n, const char *name);

/* ---- slice.c: work timed on one or several threads ---- */

/* Does unit k of the work on thread `thread` (0 ...). May be called by several threads at once. */
typedef int bench_work(void *ctx, int thread, uint64_t k, sgt_error *err);

typedef struct bench_slice {
    uint64_t first; /* thread t does units first + t, first + t + threads, ... */
    uint64_t most;  /* end after this many units a thread; 0: by time alone */
    double seconds; /* end after this long */
    int threads;
} bench_slice;

/* Runs until the time or the units are over, at least one unit a thread. *units: done by all
 * threads, *seconds: from the first start to the last end. */
int bench_run(const bench_slice *s, bench_work *work, void *ctx, uint64_t *units, double *seconds,
              sgt_error *err);

double bench_median(double *x, size_t n); /* sorts x */

/* ---- cache.c: files in the page cache ---- */

/* Drops the pages of the file at `path` and makes sure that they are gone; SGT_EUNSUPPORTED says
 * how many stay. */
int bench_cache_evict(const char *path, sgt_error *err);
int bench_cache_fill(const char *path, sgt_error *err); /* reads what is not there */

/* ---- limit.c: what memory allows: memcpy of the same windows, and reading them ---- */

typedef struct sgt_loader sgt_loader;
typedef struct bench_limit bench_limit;

/* A block of memory as large as the tokens of `bytes` bytes, in huge pages; smaller where memory is
 * short. */
int bench_limit_open(bench_limit **out, uint64_t bytes, sgt_error *err);
void bench_limit_close(bench_limit *l);
uint64_t bench_limit_bytes(const bench_limit *l);
/* Draws the windows of the first batches of `loader`: what bench_limit_copy copies from now on, for
 * `threads` threads. */
int bench_limit_aim(bench_limit *l, const sgt_loader *loader, int threads, sgt_error *err);
bench_work bench_limit_copy; /* unit: the memcpy of one batch; ctx: the bench_limit */
/* unit: the same windows are read, fetched ahead, and nothing is made of them */
bench_work bench_limit_read;

#endif
