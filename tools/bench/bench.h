/* bench.h: the parts of sgt-bench. Each subcommand has its own file; they share timed slices of
 * work on threads, control of the page cache, and medians. */
#ifndef SGT_TOOLS_BENCH_H
#define SGT_TOOLS_BENCH_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tools/cli/options.h"

/* The subcommands, each defined at the end of the file of its name. */
extern const sgt_command bench_loader_command, bench_tokenize_command, bench_gemm_command,
    bench_attention_command, bench_step_command, bench_ablation_command, bench_sample_command,
    bench_all_command;

/* ---- machine.c ---- */

/* Write "AMD EPYC 9R14, 2 cores, avx512, 23.5 GiB of memory" into buf and return buf. */
char *bench_machine(char *buf, size_t n);
/* Write a path for a line of a table into buf and return buf: printable, and only its end if it is
 * longer than buf. */
char *bench_name(char *buf, size_t n, const char *name);

/* ---- slice.c: work timed on one or more threads ---- */

/* Do unit k of the work on thread `thread` (from 0). Several threads may call it at once. */
typedef int bench_work(void *ctx, int thread, uint64_t k, sgt_error *err);

typedef struct bench_slice {
    uint64_t first; /* thread t does units first + t, first + t + threads, ... */
    uint64_t most;  /* units per thread to end after; 0: no limit but the time */
    double seconds; /* seconds to end after */
    int threads;
} bench_slice;

/* Run until the time or the units are used up, at least one unit per thread. *units counts all
 * threads; *seconds spans the first start to the last end. */
int bench_run(const bench_slice *s, bench_work *work, void *ctx, uint64_t *units, double *seconds,
              sgt_error *err);

double bench_median(double *x, size_t n); /* sorts x */

/* ---- cache.c: files in the page cache ---- */

/* Evict the pages of the file at `path` from the page cache and check that they are gone. If some
 * stay, returns SGT_EUNSUPPORTED and says how many. */
int bench_cache_evict(const char *path, sgt_error *err);
int bench_cache_fill(const char *path, sgt_error *err); /* reads the missing pages */

/* ---- limit.c: the limits that memory sets: memcpy of the same windows, and reading them ---- */

typedef struct sgt_loader sgt_loader;
typedef struct bench_limit bench_limit;

/* Allocate a block of memory in huge pages, as large as the tokens of `bytes` bytes, or smaller if
 * memory is short. */
int bench_limit_open(bench_limit **out, uint64_t bytes, sgt_error *err);
void bench_limit_close(bench_limit *l);
uint64_t bench_limit_bytes(const bench_limit *l);
/* Choose the windows of the first batches of `loader` as what bench_limit_copy copies from now on,
 * for `threads` threads. */
int bench_limit_aim(bench_limit *l, const sgt_loader *loader, int threads, sgt_error *err);
bench_work bench_limit_copy; /* one unit: memcpy of one batch; ctx: the bench_limit */
/* One unit: read the same windows with prefetching and discard them. */
bench_work bench_limit_read;

#endif
