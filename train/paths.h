/* paths.h: the self-check. It finds out which paths (alternative implementations) of the CUDA
 * backend compute correct numbers on this machine; train/cuda/self_check.h has the table. A child
 * process tries one path after another. If the child dies, hangs or gets wrong numbers, training
 * does not use that path, and another child continues with the next one. Verdicts are stored in the
 * cache folder by card, driver, build and library versions, so that each machine is checked only
 * once. If there are several ranks, the first one that gets the folder's lock runs the check; the
 * others wait and read its verdicts.
 *
 *     sgt_paths_options o = {.program = "/proc/self/exe", .cache = folder};
 *     if (sgt_paths_check(&verdicts, lib, &o, &err) < 0) ...; // stopped, or no path could be tried
 *
 * `program` is started as the child. Its main must begin with
 *
 *     if (argc == 3 && strcmp(argv[1], SGT_PATHS_CHILD) == 0) return sgt_paths_child(argv[2]);
 * */
#ifndef SGT_PATHS_H
#define SGT_PATHS_H

#include "loader/base/error.h"
#include "train/cuda/cuda_library.h"
#include "train/verdicts.h"

#define SGT_PATHS_CHILD "--self-check-child"

typedef struct sgt_paths_options {
    const char *program; /* file that the child process runs */
    const char *cache;   /* cache folder, created if it is missing; NULL: verdicts are not stored */
    int fresh;           /* 1: try all paths again, even if there are stored verdicts */
    int device;          /* number of the device: the local rank, or 0 without ranks */
    const sgt_stop *stop;
    /* receives notices about waiting for another process that owns the cache folder */
    sgt_notice notice;
    sgt_notice warning; /* receives a warning if the cache cannot be written */
} sgt_paths_options;

/* Get a verdict on each path of `lib`; v->count is 0 if it has none. Any thread may call this, but
 * only one at a time. Returns 0; SGT_ESTOPPED; or another negative SGT_E* if no path could be
 * tried, with the reason in *err. */
int sgt_paths_check(sgt_verdicts *v, const sgt_cuda_library *lib, const sgt_paths_options *o,
                    sgt_error *err);

/* Main function of the child process. `what` is the argument that sgt_paths_check passed to it. It
 * writes messages (verdicts.h) to the pipe that it gets as standard output, and returns the exit
 * code. */
int sgt_paths_child(const char *what);

#endif
