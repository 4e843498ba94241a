/* runtime.h: the device functions that the CUDA backend needs besides kernels: memory, streams,
 * events, copies, graphs. runtime.cu implements them with the CUDA runtime.
 * tests/kernels/host/runtime.cpp implements them on a CPU. There, streams delay their work and run
 * it in any order that the events allow, and every call that waits is counted.
 *
 *     sgt_cuda_device d;
 *     if (sgt_cuda_device_open(&d, 0, &err) < 0) ...;       // one line says what is missing
 *     if (sgt_cuda_malloc(&p, bytes, &err) < 0 || sgt_cuda_stream_new(&s, &err) < 0) ...;
 *     sgt_cuda_copy(s, p, host, bytes);
 *     ...                                                   // launch kernels
 *     if (sgt_cuda_finish(s, &err) < 0) ...;                // waits; reports errors since then
 *
 * Calls without an error argument return at once. If such a call fails, the next sgt_cuda_check or
 * sgt_cuda_finish reports the failure. All calls of one backend come from one thread. */
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
    uint64_t memory, available; /* bytes: total; free at open */
    /* driver: newest CUDA version that the driver supports; runtime: version of the CUDA runtime
     * that this program is linked with; 13000 means 13.0 */
    int driver, runtime;
} sgt_cuda_device;

/* Select device `index` (0, or the local rank's) and fill *d. On failure, return SGT_EUNSUPPORTED
 * with one line: "no CUDA driver: ...", "no CUDA device", "the CUDA driver supports CUDA 12.4, but
 * this build needs 13.0 (install a newer driver)", "NAME is sm_61: this build needs sm_80 or
 * newer", or the driver's message. */
int sgt_cuda_device_open(sgt_cuda_device *d, int index, sgt_error *err);

/* Allocate device memory, 256-byte aligned. If there is not enough memory, return SGT_ENOMEM. */
int sgt_cuda_malloc(void **p, size_t bytes, sgt_error *err);
/* Free device memory, after waiting for the device. Every function in this file that frees
 * something accepts NULL. */
void sgt_cuda_free(void *p);
int sgt_cuda_host_alloc(void **p, size_t bytes, sgt_error *err); /* pinned host memory */
void sgt_cuda_host_free(void *p);

/* Create a stream that runs independently of the default stream. */
int sgt_cuda_stream_new(sgt_cuda_stream *s, sgt_error *err);
void sgt_cuda_stream_free(sgt_cuda_stream s);
int sgt_cuda_event_new(sgt_cuda_event *e, int timed, sgt_error *err);
void sgt_cuda_event_free(sgt_cuda_event e);
void sgt_cuda_record(sgt_cuda_event e, sgt_cuda_stream s);
/* Make later work of the stream wait for the event. The host does not wait. An event that was never
 * recorded counts as complete. */
void sgt_cuda_wait(sgt_cuda_stream s, sgt_cuda_event e);

/* Copy `bytes` bytes between host and device, in either direction, or within the device. Host
 * memory must be pinned, and must not change until the stream has finished the copy. */
void sgt_cuda_copy(sgt_cuda_stream s, void *to, const void *from, size_t bytes);
void sgt_cuda_zero(sgt_cuda_stream s, void *p, size_t bytes);

/* ---- results and errors ----
 *
 * sgt_cuda_finish and sgt_cuda_event_finish wait for the device. sgt_cuda_elapsed_ms,
 * sgt_cuda_check and sgt_cuda_note_failure do not. Call none of these while a stream captures. */

/* Wait until all work that was enqueued on s so far is done. If any of this work failed, return the
 * error. */
int sgt_cuda_finish(sgt_cuda_stream s, sgt_error *err);
int sgt_cuda_event_finish(sgt_cuda_event e, sgt_error *err); /* wait until e is complete */
/* Set *ms to the time in milliseconds between two events. Both events must be timed and
 * complete. */
int sgt_cuda_elapsed_ms(float *ms, sgt_cuda_event from, sgt_cuda_event to, sgt_error *err);

/* Return the first error that a launch or an asynchronous call has left since the last check. The
 * call does not wait for the device. */
int sgt_cuda_check(sgt_error *err);
/* Note that a call to another library (`what`) failed with error `code`. The next sgt_cuda_check
 * reports this failure if it is the first since the last check. */
void sgt_cuda_note_failure(const char *what, int code);

/* Call sgt_cuda_launched right after enqueueing work that is not a kernel of ours, such as a copy,
 * with the name of the work. If the device or the last call has left an error, the next
 * sgt_cuda_check reports the error with this name.
 *
 * For our own kernels, DEV_LAUNCH calls sgt_cuda_kernel_launched, which also counts the launch. The
 * name of the work is then for example "norm_kernel (grid 768, block 256, 3072 bytes of shared
 * memory)". */
void sgt_cuda_launched(sgt_cuda_stream s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void sgt_cuda_kernel_launched(sgt_cuda_stream s, const char *kernel, const unsigned grid[3],
                              const unsigned block[3], size_t shared);

/* Turn --sync-kernels on or off. If it is on, sgt_cuda_launched and sgt_cuda_kernel_launched wait
 * for their stream, so that an error on the device is attributed to the launch that failed. The
 * setting applies to the entire process, and must be off while a stream captures. */
void sgt_cuda_sync_kernels(int on);
/* Turn early launches on (1) or off (0). If they are on, a kernel of ours may start before the
 * previous kernel of its stream has ended; dev::after_previous then waits for that end. The setting
 * applies to the entire process. Turn it on only for sm_90, because the code for sm_80 does not
 * wait. sgt_cuda_launches_early returns the setting. */
void sgt_cuda_launch_early(int on);
int sgt_cuda_launches_early(void);
/* Return a timeout in seconds for work that takes at most `on_a_card` seconds on a GPU. If kernels
 * run on the CPU, as in tests, the timeout is longer. */
int sgt_cuda_patience(int on_a_card);

/* ---- graphs ----
 *
 * Between capture and capture_end, work that is enqueued on s does not run. It is recorded in a
 * graph, together with its arguments. Another stream joins the capture when it waits for an event
 * that was recorded on s. The other stream must leave the capture before capture_end: s must wait
 * for an event that was recorded on the other stream. These events then belong to the graph.
 * Nothing may be allocated or freed during a capture. */
int sgt_cuda_capture(sgt_cuda_stream s, sgt_error *err);
int sgt_cuda_capture_end(sgt_cuda_stream s, sgt_cuda_graph *g, sgt_error *err);
/* Run a graph on a stream. The graph must not be running already. */
void sgt_cuda_graph_run(sgt_cuda_graph g, sgt_cuda_stream s);
void sgt_cuda_graph_free(sgt_cuda_graph g);

/* ---- counts since the program began ---- */
typedef struct sgt_cuda_counts {
    /* number of launches of kernels and library functions; launches in a graph are counted when
     * they are captured, and not when the graph runs */
    uint64_t launches;
    /* number of calls to sgt_cuda_finish, which waits for all work of a stream */
    uint64_t finishes;
    /* number of calls to sgt_cuda_event_finish that had to wait for the event */
    uint64_t event_waits;
    uint64_t copies, graph_runs;
    uint64_t mallocs; /* number of allocations of device memory and of pinned host memory */
} sgt_cuda_counts;
sgt_cuda_counts sgt_cuda_count(void);
/* Count a launch that cuBLASLt or cuDNN makes. (DEV_LAUNCH counts the launches of our own
 * kernels.) */
void sgt_cuda_count_launch(void);

#ifdef __cplusplus
}
#endif
#endif
