/* verdicts.h: the results ("verdicts") of the self-check, which tests the paths (alternative
 * implementations) of the CUDA backend. Paths have names such as "attention own" (see
 * train/cuda/self_check.h). The program passes a copy of the verdicts to libsgt-cuda.so. */
#ifndef SGT_VERDICTS_H
#define SGT_VERDICTS_H

#include <stddef.h>
#include <string.h>

#define SGT_CHECKED_MOST 24 /* most paths */
#define SGT_CHECKED_WHY 240 /* size in bytes of the reason for a verdict, with its NUL */

/* The result of testing one path. Training may use the path if the verdict is "ok". "absent" means
 * that the path was not tested, because this machine, GPU or library does not offer it. With any
 * other verdict, training does not use the path:
 * - "wrong": the path computed wrong results
 * - "failed": CUDA or a library reported an error
 * - "crashed": the process that tested the path died
 * - "hung": the test exceeded its time limit */
typedef struct sgt_checked {
    char path[40], verdict[12];
    char why[SGT_CHECKED_WHY]; /* reason for the verdict; "" if the verdict is "ok" */
} sgt_checked;

typedef struct sgt_verdicts {
    size_t count; /* 0: nothing was checked */
    sgt_checked of[SGT_CHECKED_MOST];
} sgt_verdicts;

/* A message that the child process of the self-check sends to its parent (train/paths.c) by writing
 * it to the descriptor SGT_CHECK_PIPE. */
enum { SGT_CHECK_PIPE = 3 };
typedef struct sgt_check_message {
    /* What the message says, and until when the child must send the next one:
     * - above 0: the child begins the next path, or needs more time for the current path. Its next
     *   message must arrive within this number of seconds.
     * - 0: the child has finished the current path, with the result `verdict`
     * - below 0: the child cannot test any path, for the reason `why` */
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

/* Return the verdict on `path` if training must not use this path, otherwise NULL. `v` may be NULL
 * if there was no self-check. */
static inline const sgt_checked *sgt_verdict_out(const sgt_verdicts *v, const char *path)
{
    const sgt_checked *c = sgt_verdict_of(v, path);
    return c && !sgt_checked_good(c) ? c : NULL;
}

/* Return the verdict on `path` if it is not "ok", otherwise NULL. In contrast to sgt_verdict_out,
 * this includes "absent": paths whose results nothing else checks need the verdict "ok". */
static inline const sgt_checked *sgt_verdict_not_ok(const sgt_verdicts *v, const char *path)
{
    const sgt_checked *c = sgt_verdict_of(v, path);
    return c && strcmp(c->verdict, "ok") != 0 ? c : NULL;
}

#endif
