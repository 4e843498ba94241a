/* trace.h: records what happens when during a few training steps, as a Chrome trace, a JSON file
 * for https://ui.perfetto.dev and chrome://tracing. The backend, the training loop and the loader's
 * threads add to the same trace.
 *
 *     sgt_trace *t;
 *     sgt_trace_options o = {.first = 0, .steps = 5000};
 *     if (sgt_trace_open(&t, "trace.json", &o, &err) < 0) ...;
 *     for (step = 0; step < steps; step++) {
 *         if (sgt_trace_step(t, step, &err) < 0) ...;  // begins or ends the trace
 *         uint64_t from = sgt_trace_begin(t);
 *         ...
 *         sgt_trace_end(t, from, SGT_TRACE_LOOP, "data", "data wait");
 *     }
 *     if (sgt_trace_finish(t, &err) < 0) ...;  // writes, if the run ended before the traced steps
 *     sgt_trace_close(t);
 *
 * The first SGT_TRACE_WAIT steps are not traced, because in these steps libraries choose
 * algorithms, caches fill and CUDA graphs are captured. The next SGT_TRACE_STEPS steps are traced:
 * steps 10 to 19 of a call to sgt_train. A shorter run skips fewer steps, and a run of at most ten
 * steps is traced completely. The trace includes an evaluation or a checkpoint that follows the
 * last traced step, for example with --save-every 20. After that, the file is written under a
 * temporary name and renamed, so that it is always complete, even if the process is killed.
 *
 * Every function accepts a NULL trace, at the cost of one comparison. Only the thread that runs
 * steps may call sgt_trace_open, sgt_trace_step, sgt_trace_finish and sgt_trace_close; any thread
 * may call the other functions. Between two calls to sgt_trace_step, memory is allocated only by
 * sgt_trace_track and sgt_trace_name, or if a step has far more events than the previous step.
 * Times are CLOCK_MONOTONIC times in nanoseconds. */
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
    /* first: index of the first step that this call to sgt_train runs; steps: index of the call's
     * last step plus 1 */
    uint64_t first, steps;
    sgt_notice notice; /* called with the path of the trace */
} sgt_trace_options;

/* Open a trace that will be written to `path`. Return an error if no file can be created there;
 * this check leaves no file behind. */
int sgt_trace_open(sgt_trace **out, const char *path, const sgt_trace_options *o, sgt_error *err);
void sgt_trace_close(sgt_trace *t); /* frees t; NULL is fine */

/* Call this function before each step. Before the first traced step, it starts tracing. Before each
 * further traced step, it reserves memory for the step's events. After the last traced step, it
 * ends tracing and writes the file. */
int sgt_trace_step(sgt_trace *t, uint64_t step, sgt_error *err);

/* Call this function after the last step of the run. If tracing has not ended, the function ends
 * tracing and writes the file. If no step was traced, it writes no file. */
int sgt_trace_finish(sgt_trace *t, sgt_error *err);

/* Callbacks of a GPU profiler. `begin` is called when tracing starts, and `end` when tracing ends.
 * `end` must add spans for all work that the device has done between the two calls. Both callbacks
 * may block until the device is idle. A trace has at most one watcher, which must stay valid until
 * sgt_trace_finish returns. */
typedef struct sgt_trace_watcher {
    int (*begin)(void *ctx, sgt_error *err);
    int (*end)(void *ctx, sgt_error *err);
    void *ctx;
} sgt_trace_watcher;
void sgt_trace_watch(sgt_trace *t, const sgt_trace_watcher *w);

/* ---- tracks ---- */

/* A track is a row of bars in the displayed trace, for example for one thread or one CUDA stream.
 * If two spans on a track overlap, one of them must contain the other. */

enum { SGT_TRACE_LOOP = 0 }; /* track of the thread that runs the training loop */
typedef enum sgt_trace_process {
    SGT_TRACE_HOST,
    SGT_TRACE_DEVICE,
    SGT_TRACE_PROCESSES
} sgt_trace_process;

/* Return the index of the track with the name `name` (for example "loader 1" or "stream 7"). If
 * there is no such track, create it, which allocates memory. If there is no memory, or if there are
 * too many tracks, return SGT_TRACE_LOOP. */
int sgt_trace_track(sgt_trace *t, sgt_trace_process process, const char *name);

/* ---- spans ---- */

/* A span: a named period of time, displayed as a bar on a track. The strings must stay valid until
 * sgt_trace_close, so use string literals or strings returned by sgt_trace_name. */
typedef struct sgt_trace_event {
    const char *name, *category;
    uint64_t start, end;
    int track;
    /* index of the transformer block to which the span belongs, plus 1; 0 if it belongs to none. If
     * not 0, the trace shows "h.INDEX NAME" as the span's name. */
    uint32_t layer;
    /* name that the trace shows for `value`, for example "step"; NULL: do not show `value` */
    const char *key;
    uint64_t value;
} sgt_trace_event;

/* Return the current time in nanoseconds, or 0 if no step is being traced. */
uint64_t sgt_trace_now(const sgt_trace *t);
void sgt_trace_span(sgt_trace *t, const sgt_trace_event *e);

/* Return a copy of `name` that is valid until sgt_trace_close. Equal names give the same pointer.
 * Return "" if there is no memory or if the table of names is full. The first call with a name
 * allocates memory. */
const char *sgt_trace_name(sgt_trace *t, const char *name);

static inline uint64_t sgt_trace_begin(const sgt_trace *t) { return t ? sgt_trace_now(t) : 0; }

/* Add the span e. It begins at the time `from`, returned by sgt_trace_begin, and ends now. */
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

/* Add a span to the training loop's track. The span is named after a block and a pass over this
 * block, for example "h.3 forward". */
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
