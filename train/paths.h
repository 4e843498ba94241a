/* paths.h: the self-check. It finds out which paths (alternative implementations) of the CUDA
 * backend compute correct results on this machine; train/cuda/self_check.h has the table. A child
 * process tries one path after another. If the child dies, hangs or computes wrong results,
 * training does not use that path, and another child continues with the next one. Verdicts are
 * stored in the cache folder by card, driver, build and library versions, so that each machine is
 * checked only once. If there are several ranks, the first one that gets the folder's lock runs the
 * check; the others wait and read its verdicts.
 *
 *     sgt_paths_options o = {.program = "/proc/self/exe", .cache = folder};
 *     if (sgt_paths_check(&verdicts, lib, &o, &err) < 0) ...; // stopped, or no path could be tried
 *
 * `program` is started as the child. Its main must begin with
 *
 *     if (argc == 3 && strcmp(argv[1], SGT_PATHS_CHILD) == 0) return sgt_paths_child(argv[2]); */
#ifndef SGT_PATHS_H
#define SGT_PATHS_H

#include "loader/base/error.h"
#include "train/cuda/cuda_library.h"
#include "train/verdicts.h"

#define SGT_PATHS_CHILD "--self-check-child"

typedef struct sgt_paths_options {
    const char *program; /* file that the child process runs */
    /* cache folder in which verdicts are stored, created if missing; NULL: store no verdicts */
    const char *cache;
    int fresh;  /* 1: try all paths again instead of using stored verdicts */
    int device; /* index of the CUDA device: the local rank, or 0 without ranks */
    const sgt_stop *stop;
    /* called with a notice if the self-check must wait for another process that owns the cache
     * folder */
    sgt_notice notice;
    /* called with a warning if the verdicts cannot be written to the cache folder */
    sgt_notice warning;
} sgt_paths_options;

/* Check all paths of the CUDA library `lib`, and store the verdict on each path in *v. Set v->count
 * to 0 if `lib` has no paths to check. The function may be called from any thread, but not from two
 * threads at the same time. Return 0, SGT_ESTOPPED, or another negative SGT_E* if no path could be
 * tried. */
int sgt_paths_check(sgt_verdicts *v, const sgt_cuda_library *lib, const sgt_paths_options *o,
                    sgt_error *err);

/* Run the child process: this is its main function. `what` is the command-line argument that
 * sgt_paths_check passed. The child writes messages (verdicts.h) to its standard output, which must
 * be a pipe. Return the exit code. */
int sgt_paths_child(const char *what);

#endif
