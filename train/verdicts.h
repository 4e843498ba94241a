/* verdicts.h: the self-check's verdicts on the paths (alternative implementations) of the CUDA
 * backend. Paths are identified by names such as "attention own" (train/cuda/self_check.h). The
 * program copies the verdicts by value to libsgt-cuda.so. */
#ifndef SGT_VERDICTS_H
#define SGT_VERDICTS_H

#include <stddef.h>
#include <string.h>

#define SGT_CHECKED_MOST 24 /* most paths */
#define SGT_CHECKED_WHY 240 /* size in bytes of a verdict's reason, including its NUL */

/* The result of checking one path. If it is "ok", training may use the path. "absent" means that
 * the path was not tried, because this machine, GPU or library does not offer it. Training does not
 * use a path with any other verdict:
 * - "wrong": its results were wrong
 * - "failed": CUDA or a library reported an error
 * - "crashed": its process died
 * - "hung": it exceeded its time limit */
typedef struct sgt_checked {
    char path[40], verdict[12];
    char why[SGT_CHECKED_WHY]; /* reason for the verdict; "" if the verdict is "ok" */
} sgt_checked;

typedef struct sgt_verdicts {
    size_t count; /* 0: nothing was checked */
    sgt_checked of[SGT_CHECKED_MOST];
} sgt_verdicts;

/* A message of the self-check's child process to its parent (train/paths.c). The child writes it to
 * the descriptor SGT_CHECK_PIPE. */
enum { SGT_CHECK_PIPE = 3 };
typedef struct sgt_check_message {
    /* What the message says:
     * - seconds > 0: the child begins the next path, or asks for more time for the current one. It
     *   must send its next message within this many seconds.
     * - seconds = 0: the child has finished the current path, with the result `verdict`.
     * - seconds < 0: the child cannot try any path, for the reason in `why`. */
    int seconds;
    char verdict[12], why[SGT_CHECKED_WHY];
} sgt_check_message;

static inline const sgt_checked *sgt_verdict_of(const sgt_verdicts *v, const char *path)
{
    for (size_t i = 0; v && i < v->count; i++)
        if (strcmp(v->of[i].path, path) == 0) return &v->of[i];
    return NULL;
}

static inline int sgt_checked_good(const sgt_checked *c)
{
    return strcmp(c->verdict, "ok") == 0 || strcmp(c->verdict, "absent") == 0;
}

/* Return the verdict on `path` if training must not use that path, else NULL. Pass NULL as `v` if
 * nothing was checked. */
static inline const sgt_checked *sgt_verdict_out(const sgt_verdicts *v, const char *path)
{
    const sgt_checked *c = sgt_verdict_of(v, path);
    return c && !sgt_checked_good(c) ? c : NULL;
}

#endif
