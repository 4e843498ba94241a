/* trace.h: where the time of a few steps goes, as a Chrome trace: JSON that https://ui.perfetto.dev
 * and chrome://tracing open. The CPU and the CUDA backend, the loop and the loader's threads all
 * write into one.
 *
 *     sgt_trace *t;
 *     sgt_trace_options o = {.first = 0, .steps = 5000};
 *     if (sgt_trace_open(&t, "trace.json", &o, &err) < 0) ...;
 *     for (step ...) {
 *         if (sgt_trace_step(t, step, &err) < 0) ...;      // between steps: begins, grows, ends, writes
 *         uint64_t from = sgt_trace_begin(t);
 *         ...
 *         sgt_trace_end(t, from, SGT_TRACE_LOOP, "data", "data wait");
 *     }
 *     if (sgt_trace_finish(t, &err) < 0) ...;              // writes, where the run ended before the traced steps did
 *     sgt_trace_close(t);
 *
 * Traced are SGT_TRACE_STEPS steps after SGT_TRACE_WAIT others, in which libraries choose, caches
 * fill and graphs are captured: steps 10 to 19 of a call. A shorter run waits less, and one of ten
 * steps or fewer is traced whole: what torch.profiler's schedule(wait, warmup, active) is used for.
 * What follows the last traced step before the next one begins (an evaluation, a checkpoint) still
 * belongs to it, so that --save-every 20 shows a checkpoint. The file is written when the last
 * traced step is over, not when the run is: complete under its name or not there, whenever the
 * process dies.
 *
 * Every call takes a NULL trace, which is one comparison, and may come from any thread, but for
 * open, step, finish and close, which belong to the thread that runs steps. Between two calls of
 * sgt_trace_step nothing is allocated unless sgt_trace_track, sgt_trace_name or sgt_trace_reserve
 * is called: what finds no room is counted and left out, which the file and a notice then say.
 * Times are nanoseconds of CLOCK_MONOTONIC. */
#ifndef SGT_TRACE_H
#define SGT_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SGT_TRACE_WAIT 10
#define SGT_TRACE_STEPS 10
#define SGT_TRACE_ARGS 4

typedef struct sgt_trace sgt_trace;

typedef struct sgt_trace_options {
    uint64_t first, steps; /* this call makes steps first .. steps - 1 */
    uint64_t events;       /* that a step may bring, about; 0: a few thousand */
    /* its processes' numbers in the file, so that ranks' events may stand in one */
    uint32_t rank;
    sgt_notice notice; /* where the trace was written to */
} sgt_trace_options;

/* Whether a file can be made at `path` is found out here, and leaves nothing behind. */
int sgt_trace_open(sgt_trace **out, const char *path, const sgt_trace_options *o, sgt_error *err);
void sgt_trace_close(sgt_trace *t); /* frees; NULL is fine */

/* Step `step` of the run begins next: opens the window, makes room for one more step, or closes the
 * window and writes the file. */
int sgt_trace_step(sgt_trace *t, uint64_t step, sgt_error *err);

/* No further step comes: closes the window where it is open and writes the file. A run without a
 * traced step has no file. */
int sgt_trace_finish(sgt_trace *t, sgt_error *err);

/* A device's own profiler: `begin` when the window opens, `end` when it closes, in which everything
 * that the device did must be added; both may wait for it. One at most; must live until finish. */
typedef struct sgt_trace_watcher {
    int (*begin)(void *ctx, sgt_error *err);
    int (*end)(void *ctx, sgt_error *err);
    void *ctx;
} sgt_trace_watcher;
void sgt_trace_watch(sgt_trace *t, const sgt_trace_watcher *w);

/* ---- tracks: rows of the picture. On each, spans nest or follow one another ---- */

enum { SGT_TRACE_LOOP = 0 }; /* the thread that runs steps */
typedef enum sgt_trace_process {
    SGT_TRACE_HOST,
    SGT_TRACE_DEVICE,
    SGT_TRACE_PROCESSES
} sgt_trace_process;

/* The track of that name, made where it is not there yet: "loader 1", "stream 7". Allocates.
 * Without room it is the loop's. */
int sgt_trace_track(sgt_trace *t, sgt_trace_process process, const char *name);

/* ---- spans ---- */

typedef struct sgt_trace_arg {
    const char *key; /* NULL: none */
    uint64_t value;
} sgt_trace_arg;

/* Texts must live until close: literals, or from sgt_trace_name. */
typedef struct sgt_trace_event {
    const char *name, *category;
    uint64_t start, end;
    int track;
    uint32_t layer; /* n + 1: of block n, and the name is "h.n NAME"; 0: of none */
    /* an arrow from the call to what it started on a device: equal numbers; 0: none */
    uint64_t flow;
    int starts_flow; /* this is the call */
    sgt_trace_arg args[SGT_TRACE_ARGS];
} sgt_trace_event;

uint64_t sgt_trace_now(const sgt_trace *t); /* 0 unless a step is being traced */
void sgt_trace_span(sgt_trace *t, const sgt_trace_event *e);
/* a curve over time; only finite values */
void sgt_trace_counter(sgt_trace *t, const char *name, double value);

/* A copy of `name` that lives until close, the same for the same text. Allocates; "" without
 * room. */
const char *sgt_trace_name(sgt_trace *t, const char *name);

/* Room for `events` more: for whoever adds many at once, or between steps. */
void sgt_trace_reserve(sgt_trace *t, uint64_t events);

static inline uint64_t sgt_trace_begin(const sgt_trace *t) { return t ? sgt_trace_now(t) : 0; }

/* From `from`, which sgt_trace_begin gave, until now. */
static inline void sgt_trace_end_event(sgt_trace *t, uint64_t from, sgt_trace_event e)
{
    if (!t || !from) return;
    e.start = from;
    sgt_trace_span(t, &e);
}

static inline void sgt_trace_end(sgt_trace *t, uint64_t from, int track, const char *category,
                                 const char *name)
{
    if (!t || !from) return;
    sgt_trace_event e = {name, category, from, 0, track, 0, 0, 0, {{NULL, 0}}};
    sgt_trace_span(t, &e);
}

/* "h.3 forward" and "h.3 backward", on the loop's track. */
static inline void sgt_trace_end_layer(sgt_trace *t, uint64_t from, const char *pass, size_t layer)
{
    if (!t || !from) return;
    sgt_trace_event e = {pass, pass, from,       0, SGT_TRACE_LOOP, (uint32_t)layer + 1,
                         0,    0,    {{NULL, 0}}};
    sgt_trace_span(t, &e);
}

#ifdef __cplusplus
}
#endif
#endif
