/* paths.h: the self-check: which paths of the CUDA backend this machine computes rightly (train/cuda/self_check.h has
 * the table). A process of its own tries one path after the other; where it dies, hangs or gives wrong numbers that
 * path is out, and another process goes on behind it. Verdicts are kept in the cache folder by card, driver, build and
 * versions of the libraries, so that they are found once for a machine: of several ranks the first to hold the folder's
 * lock tries, the others wait and read.
 *
 *     sgt_paths_options o = {.program = "/proc/self/exe", .cache = folder};
 *     if (sgt_paths_check(&verdicts, lib, &o, &err) < 0) ...;     // SGT_ESTOPPED, or nothing could be tried
 *
 * The program that is started has to begin with
 *
 *     if (argc == 3 && strcmp(argv[1], SGT_PATHS_CHILD) == 0) return sgt_paths_child(argv[2]); */
#ifndef SGT_PATHS_H
#define SGT_PATHS_H

#include "base/error.h"
#include "cuda/cuda_library.h"
#include "verdicts.h"

#define SGT_PATHS_CHILD "--self-check-child"

typedef struct sgt_paths_options {
    const char *program; /* the file that is started */
    const char *cache;   /* a folder, made if it is missing; NULL: verdicts are not kept */
    int fresh;           /* what is kept is not read */
    int device;          /* the local rank's number, 0 where there are none */
    const sgt_stop *stop;
    sgt_notice warning;  /* a cache that cannot be written */
} sgt_paths_options;

/* A verdict for each path that `lib` has; count 0 where it has none. Any thread, one call at a time. SGT_ESTOPPED;
 * another where no path could be tried, with the reason. */
int sgt_paths_check(sgt_verdicts *v, const sgt_cuda_library *lib, const sgt_paths_options *o, sgt_error *err);

/* The process that tries: `what` as sgt_paths_check gave it, the exit code for main. Writes to standard output, which
 * is a pipe. */
int sgt_paths_child(const char *what);

/* As a JSON object, for state.json: {"attention own": "ok", ...}; malloc'd, NULL: out of memory. */
char *sgt_paths_json(const sgt_verdicts *v);

/* The first path whose verdict is another than in such a text, where a path that is not there counts as ok; its verdict
 * then in then[12]. NULL: none. */
const sgt_checked *sgt_paths_differ(const sgt_verdicts *v, const char *json, char then[12]);

#endif
