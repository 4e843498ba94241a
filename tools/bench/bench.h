/* bench.h: what the subcommands of sgt-bench share: work timed on threads, control of the page
 * cache, and medians. Each subcommand has a file of its own. */
#ifndef SGT_TOOLS_BENCH_H
#define SGT_TOOLS_BENCH_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tools/cli/options.h"

/* The subcommands, each defined at the end of the file of its name. */
extern const sgt_command bench_loader_command, bench_tokenize_command, bench_gemm_command,
    bench_attention_command, bench_step_command, bench_ablation_command, bench_memory_command;

/* ---- machine.c ---- */

/* Write "AMD EPYC 9R14, 2 cores, avx512, 23.5 GiB of memory" into buf and return buf. */
char *bench_machine(char *buf, size_t n);
/* Write a path into buf and return buf, for a line of a table: in printable characters, and only
 * its end if it is longer than buf. */
char *bench_name(char *buf, size_t n, const char *name);

/* ---- slice.c: work timed on one or more threads ---- */

/* Do unit k of the work on thread `thread` (from 0). Several threads may call it at once. */
typedef int bench_work(void *ctx, int thread, uint64_t k, sgt_error *err);

typedef struct bench_slice {
    uint64_t first; /* thread t does units first + t, first + t + threads, ... */
    uint64_t most;  /* most units per thread; 0: only the time ends the work */
    double seconds; /* seconds after which the work ends */
    int threads;
} bench_slice;

/* Run units of work until the time or the units are used up, at least one unit per thread. *units
 * counts those of all threads; *seconds spans the first start to the last end. */
int bench_run(const bench_slice *s, bench_work *work, void *ctx, uint64_t *units, double *seconds,
              sgt_error *err);

double bench_median(double *x, size_t n); /* sorts x */

/* ---- cache.c: files in the page cache ---- */

/* Evict the pages of the file at `path` from the page cache and check that they are gone. If some
 * stay, returns SGT_EUNSUPPORTED and says how many. */
int bench_cache_evict(const char *path, sgt_error *err);
int bench_cache_fill(const char *path, sgt_error *err); /* read it, if it lacks a page */

#endif
