/* paths.h: the self-check, which finds out which paths (alternative implementations) of the CUDA
 * backend compute correct results on this machine. train/cuda/self_check.h lists the paths.
 *
 * A child process tries one path after another. If it dies, hangs or computes wrong results,
 * training does not use the path that it was trying, and a new child continues with the next path.
 * The verdicts are stored in the cache folder with the GPU, driver, build and library versions, so
 * that the check is repeated only if one of these changes. If there are several ranks, the first
 * rank that gets the folder's lock runs the check; the other ranks wait and read its verdicts.
 *
 *     sgt_paths_options o = {.program = "/proc/self/exe", .cache = folder};
 *     if (sgt_paths_check(&verdicts, lib, &o, &err) < 0) ...; // stopped, or no path could be tried
 *
 * `program` is the program that is started as the child. Its main function must begin with
 *     if (argc == 3 && strcmp(argv[1], SGT_PATHS_CHILD) == 0) return sgt_paths_child(argv[2]); */
#ifndef SGT_PATHS_H
#define SGT_PATHS_H

#include "loader/base/error.h"
#include "train/cuda/cuda_library.h"
#include "train/verdicts.h"

#define SGT_PATHS_CHILD "--self-check-child"

typedef struct sgt_paths_options {
    const char *program; /* file that the child process runs */
    /* cache folder in which verdicts are stored, created if missing; NULL: verdicts are not
     * stored */
    const char *cache;
    int fresh;  /* 1: check all paths again, even if verdicts are stored */
    int device; /* index of the CUDA device: the local rank, or 0 without ranks */
    const sgt_stop *stop;
    /* callback for a notice that the self-check is waiting for another process, which owns the
     * cache folder */
    sgt_notice notice;
    /* callback for a warning that the verdicts cannot be stored in the cache folder */
    sgt_notice warning;
} sgt_paths_options;

/* Check all paths of the CUDA library `lib`, or read their stored verdicts, and store the verdicts
 * in *v. If `lib` has no paths to check, set v->count to 0. Any thread may call this function, but
 * not two threads at the same time. Return 0 on success, SGT_ESTOPPED if a stop was requested, or
 * another negative SGT_E* if no path could be tried. */
int sgt_paths_check(sgt_verdicts *v, const sgt_cuda_library *lib, const sgt_paths_options *o,
                    sgt_error *err);

/* The main function of the child process. `what` is the command-line argument that sgt_paths_check
 * passed to it. The child writes its messages (verdicts.h) to its standard output, which must be a
 * pipe. Return the exit code for main. */
int sgt_paths_child(const char *what);

#endif
