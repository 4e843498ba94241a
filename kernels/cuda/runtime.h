/* runtime.h: what the CUDA backend needs of a device besides kernels: memory, streams, events,
 * copies, graphs. runtime.cu implements it with the CUDA runtime. tests/kernels/host/runtime.cpp
 * implements it on a CPU; there streams run their work late and in any order that events allow, and
 * every waiting call is counted.
 *
 *     sgt_cuda_device d;
 *     if (sgt_cuda_device_open(&d, 0, &err) < 0) ...;       // one line says what is missing
 *     if (sgt_cuda_malloc(&p, bytes, &err) < 0 || sgt_cuda_stream_new(&s, &err) < 0) ...;
 *     sgt_cuda_copy(s, p, host, bytes);
 *     kernels...;
 *     if (sgt_cuda_finish(s, &err) < 0) ...;                // waits; reports errors since then
 *
 * Calls without an error argument put work on a stream and return; the next sgt_cuda_check or
 * sgt_cuda_finish reports their failures. All calls of one backend come from one thread. Not yet
 * run on a GPU. */
#ifndef SGT_CUDA_RUNTIME_H
#define SGT_CUDA_RUNTIME_H

#include "loader/base/error.h"
#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUevent_st *sgt_cuda_event;     /* cudaEvent_t */
typedef struct CUgraphExec_st *sgt_cuda_graph; /* cudaGraphExec_t */

typedef struct sgt_cuda_device {
    char name[256];
    int major, minor; /* compute capability: 9, 0 */
    int multiprocessors;
    uint64_t memory, available; /* bytes: total, and free now */
    int driver, runtime;        /* CUDA versions: 13000 is 13.0 */
} sgt_cuda_device;

/* Take device `index`: 0, or the local rank's. On failure return SGT_EUNSUPPORTED with one line:
 * "no CUDA driver: ...", "no CUDA device", "the CUDA driver is for 12.4, this build needs 13.0 (a
 * newer driver)", "NAME is sm_61: this build needs sm_80 or newer", or the driver's message. */
int sgt_cuda_device_open(sgt_cuda_device *d, int index, sgt_error *err);

int sgt_cuda_malloc(void **p, size_t bytes, sgt_error *err); /* 256-byte aligned; SGT_ENOMEM */
void sgt_cuda_free(void *p); /* waits for the device; like all frees, accepts NULL */
int sgt_cuda_host_alloc(void **p, size_t bytes, sgt_error *err); /* pinned host memory */
void sgt_cuda_host_free(void *p);

/* the stream does not wait for the default stream */
int sgt_cuda_stream_new(sgt_cuda_stream *s, sgt_error *err);
void sgt_cuda_stream_free(sgt_cuda_stream s);
int sgt_cuda_event_new(sgt_cuda_event *e, int timed, sgt_error *err);
void sgt_cuda_event_free(sgt_cuda_event e);
void sgt_cuda_record(sgt_cuda_event e, sgt_cuda_stream s);
/* The stream waits, not the host; an event that was never recorded counts as complete. */
void sgt_cuda_wait(sgt_cuda_stream s, sgt_cuda_event e);

/* Copy bytes between host and device, either way, or within the device. Host memory must be pinned
 * and must not change until the stream has done the copy. */
void sgt_cuda_copy(sgt_cuda_stream s, void *to, const void *from, size_t bytes);
void sgt_cuda_zero(sgt_cuda_stream s, void *p, size_t bytes);

/* ---- calls that wait for the device, and two that only query; not allowed while a stream captures
 * ---- */

/* Wait until all work put on s so far is done. */
int sgt_cuda_finish(sgt_cuda_stream s, sgt_error *err);
int sgt_cuda_event_finish(sgt_cuda_event e, sgt_error *err); /* wait until it is complete */
/* Both events must be timed and complete. */
int sgt_cuda_elapsed_ms(float *ms, sgt_cuda_event from, sgt_cuda_event to, sgt_error *err);
int sgt_cuda_event_came(sgt_cuda_event e); /* 1: complete; does not wait */

/* Report the failure of a launch or asynchronous call since the last check; does not wait. */
int sgt_cuda_check(sgt_error *err);
/* Note a failed call of another library; the next check reports the first one noted. */
void sgt_cuda_note_failure(const char *what, int code);

/* Call right after work was put on a stream: if the device or the call left an error behind, the
 * next check names this work: "norm_kernel (grid 768, block 256, 3072 bytes of shared memory):
 * invalid argument (CUDA error 1)". DEV_LAUNCH calls the second function, which also counts the
 * launch. */
void sgt_cuda_launched(sgt_cuda_stream s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void sgt_cuda_kernel_launched(sgt_cuda_stream s, const char *kernel, const unsigned grid[3],
                              const unsigned block[3], size_t shared);

/* Implement --sync-kernels: each of these calls waits for its stream, so that an error on the
 * device is attributed to the launch that failed. For the whole process; not while a stream
 * captures. */
void sgt_cuda_sync_kernels(int on);
/* Return the timeout in seconds for something that takes at most `on_a_card` seconds on a GPU: more
 * for the host run, which is slow. */
int sgt_cuda_patience(int on_a_card);

/* ---- graphs ----
 *
 * Work put on s between capture and capture_end is recorded with its arguments instead of done.
 * Another stream that waits for an event recorded on s takes part until s has waited for an event
 * recorded on it; from then on these events belong to the graph. Nothing may be allocated or freed
 * in between. */
int sgt_cuda_capture(sgt_cuda_stream s, sgt_error *err);
int sgt_cuda_capture_end(sgt_cuda_stream s, sgt_cuda_graph *g, sgt_error *err);
void sgt_cuda_graph_run(sgt_cuda_graph g, sgt_cuda_stream s); /* one run of a graph at a time */
void sgt_cuda_graph_free(sgt_cuda_graph g);

/* ---- counts of host calls since the program began ---- */
typedef struct sgt_cuda_counts {
    /* kernels and library products; captured ones count once, when captured */
    uint64_t launches;
    uint64_t finishes;    /* sgt_cuda_finish: the host waits for all work of a stream */
    uint64_t event_waits; /* sgt_cuda_event_finish on an event that was not complete yet */
    uint64_t copies, graph_runs;
    uint64_t mallocs; /* of device and pinned memory */
} sgt_cuda_counts;
sgt_cuda_counts sgt_cuda_count(void);
/* Count a launch that does not go through DEV_LAUNCH: cuBLASLt's, cuDNN's. */
void sgt_cuda_count_launch(void);

#ifdef __cplusplus
}
#endif
#endif
