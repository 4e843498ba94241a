/* trace.h: records the times of a few steps as a Chrome trace: JSON for https://ui.perfetto.dev and
 * chrome://tracing. Both backends, the loop and the loader's threads write to the same trace.
 *
 *     sgt_trace *t;
 *     sgt_trace_options o = {.first = 0, .steps = 5000};
 *     if (sgt_trace_open(&t, "trace.json", &o, &err) < 0) ...;
 *     for (step ...) {
 *         if (sgt_trace_step(t, step, &err) < 0) ...;  // begins or ends the trace
 *         uint64_t from = sgt_trace_begin(t);
 *         ...
 *         sgt_trace_end(t, from, SGT_TRACE_LOOP, "data", "data wait");
 *     }
 *     if (sgt_trace_finish(t, &err) < 0) ...;  // writes, if the run ended before the traced steps
 *     sgt_trace_close(t);
 *
 * The first SGT_TRACE_WAIT steps are not traced, because libraries choose algorithms, caches fill
 * and graphs are captured in them. The next SGT_TRACE_STEPS steps are traced, that is, steps 10 to
 * 19 of a call of sgt_train. A shorter run skips fewer steps, and a run of at most ten steps is
 * traced completely. torch.profiler's schedule(wait, warmup, active) works similarly. An evaluation
 * or a checkpoint after the last traced step still belongs to the trace, so --save-every 20 shows a
 * checkpoint. The file is written after the last traced step. A file with this name is always
 * complete, even if the process dies while it is written.
 *
 * Every function accepts a NULL trace, at the cost of one comparison. Any thread may call them,
 * except open, step, finish and close, which only the thread that runs steps may call. Between two
 * calls of sgt_trace_step no memory is allocated, unless sgt_trace_track or sgt_trace_name is
 * called, or a step has far more events than the step before it. Times are nanoseconds of
 * CLOCK_MONOTONIC. */
#ifndef SGT_TRACE_H
#define SGT_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SGT_TRACE_WAIT 10
#define SGT_TRACE_STEPS 10

typedef struct sgt_trace sgt_trace;

typedef struct sgt_trace_options {
    uint64_t first, steps; /* this call of sgt_train runs steps first .. steps - 1 */
    sgt_notice notice;     /* called with the path of the trace */
} sgt_trace_options;

/* Open a trace. Fails if no file can be created at `path`; this check does not leave a file
 * there. */
int sgt_trace_open(sgt_trace **out, const char *path, const sgt_trace_options *o, sgt_error *err);
void sgt_trace_close(sgt_trace *t); /* frees t; NULL is fine */

/* Call this before step `step` of the run begins. It starts tracing, reserves memory for one more
 * step, or ends tracing and writes the file. */
int sgt_trace_step(sgt_trace *t, uint64_t step, sgt_error *err);

/* Call this after the last step. If tracing is on, end it and write the file. If no step was
 * traced, no file is written. */
int sgt_trace_finish(sgt_trace *t, sgt_error *err);

/* Callbacks of a device's profiler. `begin` is called when tracing starts, `end` when it ends;
 * `end` must add all work of the device as spans. Both may wait for the device. A trace has at most
 * one watcher, which must stay valid until sgt_trace_finish. */
typedef struct sgt_trace_watcher {
    int (*begin)(void *ctx, sgt_error *err);
    int (*end)(void *ctx, sgt_error *err);
    void *ctx;
} sgt_trace_watcher;
void sgt_trace_watch(sgt_trace *t, const sgt_trace_watcher *w);

/* ---- tracks: rows of the displayed trace; spans on a track are nested or follow one another
 * ---- */

enum { SGT_TRACE_LOOP = 0 }; /* track of the thread that runs steps */
typedef enum sgt_trace_process {
    SGT_TRACE_HOST,
    SGT_TRACE_DEVICE,
    SGT_TRACE_PROCESSES
} sgt_trace_process;

/* Return the track with this name ("loader 1", "stream 7"); create it if needed, which allocates.
 * If memory or track numbers have run out, return the loop's track. */
int sgt_trace_track(sgt_trace *t, sgt_trace_process process, const char *name);

/* ---- spans ---- */

/* A span. Its texts must stay valid until sgt_trace_close: use literals, or texts from
 * sgt_trace_name. */
typedef struct sgt_trace_event {
    const char *name, *category;
    uint64_t start, end;
    int track;
    uint32_t layer;  /* n + 1 for block n, which makes the name "h.n NAME"; 0: no block */
    const char *key; /* name of `value`, for example "step"; NULL: none */
    uint64_t value;
} sgt_trace_event;

uint64_t sgt_trace_now(const sgt_trace *t); /* current time; 0 unless a step is being traced */
void sgt_trace_span(sgt_trace *t, const sgt_trace_event *e);

/* Return a copy of `name` that is valid until sgt_trace_close; equal texts give the same pointer.
 * It may allocate memory; if memory or the table has run out, it returns "". */
const char *sgt_trace_name(sgt_trace *t, const char *name);

static inline uint64_t sgt_trace_begin(const sgt_trace *t) { return t ? sgt_trace_now(t) : 0; }

/* Add a span from `from`, which sgt_trace_begin returned, until now. */
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
    sgt_trace_event e = {name, category, from, 0, track, 0, NULL, 0};
    sgt_trace_span(t, &e);
}

/* Add a span "h.3 forward" or "h.3 backward" on the loop's track. */
static inline void sgt_trace_end_layer(sgt_trace *t, uint64_t from, const char *pass, size_t layer)
{
    if (!t || !from) return;
    sgt_trace_event e = {pass, pass, from, 0, SGT_TRACE_LOOP, (uint32_t)layer + 1, NULL, 0};
    sgt_trace_span(t, &e);
}

#ifdef __cplusplus
}
#endif
#endif
