/* runtime.h: what the CUDA backend asks of a device beside kernels: memory, streams, events,
 * copies, graphs. runtime.cu does it through the CUDA runtime; tests/kernels/host/runtime.cpp does
 * it on a CPU, where streams run their work late and in any order that events allow, and every call
 * that waits is counted.
 *
 *     sgt_cuda_device d;
 *     if (sgt_cuda_device_open(&d, 0, &err) < 0) ...;                       // one line says what is missing
 *     if (sgt_cuda_malloc(&p, bytes, &err) < 0 || sgt_cuda_stream_new(&s, &err) < 0) ...;
 *     sgt_cuda_copy(s, p, host, bytes);
 *     kernels...;
 *     if (sgt_cuda_finish(s, &err) < 0) ...;                                // waits; says what went wrong since
 *
 * Calls without an error argument put work on a stream and return; what they could not do is said
 * by the next sgt_cuda_check or sgt_cuda_finish. All calls of one backend come from one thread. Not
 * yet run on a GPU. */
#ifndef SGT_CUDA_RUNTIME_H
#define SGT_CUDA_RUNTIME_H

#include "base/error.h"
#include "cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUevent_st *sgt_cuda_event;     /* cudaEvent_t */
typedef struct CUgraphExec_st *sgt_cuda_graph; /* cudaGraphExec_t */

typedef struct sgt_cuda_device {
    char name[256];
    int major, minor; /* compute capability: 9, 0 */
    int multiprocessors;
    uint64_t memory, available; /* bytes: all, and free now */
    int driver, runtime;        /* CUDA versions: 13000 is 13.0 */
} sgt_cuda_device;

/* Takes device `index`: 0, or the local rank's. SGT_EUNSUPPORTED, one line: "no CUDA driver: ...",
 * "no CUDA device", "the CUDA driver is for 12.4, this build needs 13.0 (a newer driver)", "NAME is
 * sm_61: this build needs sm_80 or newer", or what the driver says. */
int sgt_cuda_device_open(sgt_cuda_device *d, int index, sgt_error *err);

int sgt_cuda_malloc(void **p, size_t bytes, sgt_error *err); /* 256-byte aligned; SGT_ENOMEM */
void sgt_cuda_free(void *p); /* waits for the device; NULL is fine, as in all that frees */
int sgt_cuda_host_alloc(void **p, size_t bytes, sgt_error *err); /* of the host, pinned */
void sgt_cuda_host_free(void *p);

/* does not wait for the default stream */
int sgt_cuda_stream_new(sgt_cuda_stream *s, sgt_error *err);
void sgt_cuda_stream_free(sgt_cuda_stream s);
int sgt_cuda_event_new(sgt_cuda_event *e, int timed, sgt_error *err);
void sgt_cuda_event_free(sgt_cuda_event e);
void sgt_cuda_record(sgt_cuda_event e, sgt_cuda_stream s);
/* the stream waits, not the host; at once if never recorded */
void sgt_cuda_wait(sgt_cuda_stream s, sgt_cuda_event e);

/* Bytes between host and device, either way, or within the device. Host memory must be pinned, and
 * stays untouched until the stream has got there. */
void sgt_cuda_copy(sgt_cuda_stream s, void *to, const void *from, size_t bytes);
void sgt_cuda_zero(sgt_cuda_stream s, void *p, size_t bytes);

/* ---- calls that wait for the device, and two that look; none of them while a stream captures
 * ---- */

/* until all work put on s so far is done */
int sgt_cuda_finish(sgt_cuda_stream s, sgt_error *err);
int sgt_cuda_event_finish(sgt_cuda_event e, sgt_error *err); /* until the event has come */
/* both timed and come */
int sgt_cuda_elapsed_ms(float *ms, sgt_cuda_event from, sgt_cuda_event to, sgt_error *err);
int sgt_cuda_event_came(sgt_cuda_event e); /* 1: it has come; does not wait */

/* What a launch or an asynchronous call since the last check could not do; does not wait. */
int sgt_cuda_check(sgt_error *err);
/* For calls of other libraries that fail on the way: the first one is what the next check says. */
void sgt_cuda_note_failure(const char *what, int code);

/* Said right after work was put on a stream: if the device or the call left an error behind, the
 * next check names this work. "norm_kernel (grid 768, block 256, 3072 bytes of shared memory):
 * invalid argument (CUDA error 1)". DEV_LAUNCH says the second, which counts the launch too. */
void sgt_cuda_launched(sgt_cuda_stream s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void sgt_cuda_kernel_launched(sgt_cuda_stream s, const char *kernel, const unsigned grid[3],
                              const unsigned block[3], size_t shared);

/* --sync-kernels: each of these calls waits for its stream, so that what fails on the device is
 * named by the launch that failed. For the whole process; not while a stream captures. */
void sgt_cuda_sync_kernels(int on);
/* Seconds that what takes at most `on_a_card` on a card may take here: the host run is slow. */
int sgt_cuda_patience(int on_a_card);

/* ---- graphs: what is put on s between the two calls is kept, with its arguments, instead of done.
 * Another stream that waits for an event recorded on s takes part until s has waited for an event
 * recorded on it; these events are the graph's from then on. Nothing is allocated or freed in
 * between. ---- */
int sgt_cuda_capture(sgt_cuda_stream s, sgt_error *err);
int sgt_cuda_capture_end(sgt_cuda_stream s, sgt_cuda_graph *g, sgt_error *err);
void sgt_cuda_graph_run(sgt_cuda_graph g, sgt_cuda_stream s); /* one run of a graph at a time */
void sgt_cuda_graph_free(sgt_cuda_graph g);

/* ---- counts since the program began, of calls on the host ---- */
typedef struct sgt_cuda_counts {
    /* kernels, products of a library too: those captured count once, when captured */
    uint64_t launches;
    uint64_t finishes;    /* sgt_cuda_finish: the host waits for all work of a stream */
    uint64_t event_waits; /* sgt_cuda_event_finish on an event that had not come yet */
    uint64_t copies, graph_runs;
    uint64_t mallocs; /* of device and of pinned memory */
} sgt_cuda_counts;
sgt_cuda_counts sgt_cuda_count(void);
/* for launches that do not go through DEV_LAUNCH: cuBLASLt's, cuDNN's */
void sgt_cuda_count_launch(void);

#ifdef __cplusplus
}
#endif
#endif
