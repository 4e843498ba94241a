/* runtime.cu: implements runtime.h with the CUDA runtime, which is linked statically and loads the
 * driver at its first call. */
#include "kernels/cuda/device.cuh"

/* when kernels are built for the host, tests/kernels/host/runtime.cpp replaces this file */
#ifndef DEV_ON_HOST
#include <stdio.h>

#include "kernels/cuda_driver.h"
#include "kernels/cuda/failure.h"

static sgt_cuda_counts so_far;

/* ---- failures ---- */

static_assert(cudaErrorECCUncorrectable == 214 && cudaErrorNvlinkUncorrectable == 220 &&
                  cudaErrorIllegalAddress == 700 && cudaErrorLaunchTimeout == 702 &&
                  cudaErrorAssert == 710 && cudaErrorHardwareStackError == 714 &&
                  cudaErrorIllegalInstruction == 715 && cudaErrorMisalignedAddress == 716 &&
                  cudaErrorInvalidAddressSpace == 717 && cudaErrorInvalidPc == 718 &&
                  cudaErrorLaunchFailure == 719 && cudaErrorUnknown == 999,
              "the numbers in failure.c");

static void keep_error(const char *what, cudaError_t e)
{
    if (e == cudaSuccess) return;
    const char *unnamed =
        sgt_cuda_error_is_late((int)e) ? "; find the failed launch with --sync-kernels" : "";
    sgt_cuda_note("%s: %s (CUDA error %d%s)", what, cudaGetErrorString(e), (int)e, unnamed);
    cudaGetLastError();
}

/* If an earlier launch has left an error that sgt_cuda_launched has not noted, note the error
 * now. */
static void keep_launch_error() { keep_error("a launch", cudaGetLastError()); }

/* Read the error without clearing it, so that a caller that asks the CUDA runtime for the last
 * error sees it, too. */
int sgt_cuda_device_error(sgt_cuda_stream s, int wait, const char **why)
{
    cudaError_t e = cudaPeekAtLastError();
    if (e == cudaSuccess && wait) e = cudaStreamSynchronize(s);
    *why = cudaGetErrorString(e);
    return (int)e;
}

static int told(const char *what, cudaError_t e, sgt_error *err)
{
    if (e == cudaSuccess) return SGT_OK;
    cudaGetLastError();
    return sgt_fail(err, e == cudaErrorMemoryAllocation ? SGT_ENOMEM : SGT_EIO,
                    "%s: %s (CUDA error %d)", what, cudaGetErrorString(e), (int)e);
}

int sgt_cuda_check(sgt_error *err)
{
    keep_launch_error();
    return sgt_cuda_noted(err);
}

void sgt_cuda_note_failure(const char *what, int code)
{
    keep_launch_error();
    sgt_cuda_note("%s: error %d", what, code);
}

/* ---- the device ---- */

static int describe(sgt_cuda_device *d, int index, sgt_error *err)
{
    cudaDeviceProp p;
    size_t available, memory;
    int rc = told("cudaGetDeviceProperties", cudaGetDeviceProperties(&p, index), err);
    if (rc < 0) return rc;
    *d = sgt_cuda_device{};
    snprintf(d->name, sizeof d->name, "%s", p.name);
    d->major = p.major;
    d->minor = p.minor;
    d->multiprocessors = p.multiProcessorCount;
    if ((rc = sgt_cuda_device_serves(d->name, d->major, d->minor, err)) < 0) return rc;
    if ((rc = told(d->name, cudaSetDevice(index), err)) < 0) return rc;
    if ((rc = told(d->name, cudaMemGetInfo(&available, &memory), err)) < 0) return rc;
    d->available = available;
    d->memory = memory;
    d->runtime = CUDART_VERSION;
    return SGT_OK;
}

int sgt_cuda_device_open(sgt_cuda_device *d, int index, sgt_error *err)
{
    int version, devices, rc = sgt_cuda_driver_ask(&version, &devices, err);
    if (rc < 0 || (rc = sgt_cuda_driver_serves(version, CUDART_VERSION, err)) < 0) return rc;
    if (index >= devices)
        return sgt_fail(err, SGT_EUNSUPPORTED, "no CUDA device %d: the driver has %d", index,
                        devices);
    if ((rc = describe(d, index, err)) < 0) return rc;
    d->driver = version;
    return SGT_OK;
}

/* ---- memory ---- */

static int allocated(cudaError_t e, size_t bytes, const char *kind, sgt_error *err)
{
    so_far.mallocs++;
    if (e != cudaErrorMemoryAllocation) return told("CUDA's memory", e, err);
    cudaGetLastError();
    return sgt_fail(err, SGT_ENOMEM, "out of %s memory: %.1f MiB could not be allocated", kind,
                    (double)bytes / 0x1p20);
}

int sgt_cuda_malloc(void **p, size_t bytes, sgt_error *err)
{
    *p = nullptr;
    return allocated(cudaMalloc(p, bytes), bytes, "GPU", err);
}

void sgt_cuda_free(void *p) { keep_error("cudaFree", cudaFree(p)); }

int sgt_cuda_host_alloc(void **p, size_t bytes, sgt_error *err)
{
    *p = nullptr;
    return allocated(cudaHostAlloc(p, bytes, cudaHostAllocDefault), bytes, "pinned", err);
}

void sgt_cuda_host_free(void *p)
{
    /* Wait for the device, because an unfinished copy could still be reading the memory. If the
     * wait fails, the next check reports its error. */
    if (p) cudaDeviceSynchronize();
    keep_error("cudaFreeHost", cudaFreeHost(p));
}

void sgt_cuda_copy(sgt_cuda_stream s, void *to, const void *from, size_t bytes)
{
    so_far.copies++;
    keep_error("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s));
    sgt_cuda_launched(s, "a copy of %zu bytes", bytes);
}

void sgt_cuda_zero(sgt_cuda_stream s, void *p, size_t bytes)
{
    keep_error("cudaMemsetAsync", cudaMemsetAsync(p, 0, bytes, s));
    sgt_cuda_launched(s, "zeros in %zu bytes", bytes);
}

/* ---- streams and events ---- */

int sgt_cuda_stream_new(sgt_cuda_stream *s, sgt_error *err)
{
    *s = nullptr;
    return told("cudaStreamCreate", cudaStreamCreateWithFlags(s, cudaStreamNonBlocking), err);
}

void sgt_cuda_stream_free(sgt_cuda_stream s)
{
    if (s) keep_error("cudaStreamDestroy", cudaStreamDestroy(s));
}

int sgt_cuda_event_new(sgt_cuda_event *e, int timed, sgt_error *err)
{
    *e = nullptr;
    return told("cudaEventCreate",
                cudaEventCreateWithFlags(e, timed ? cudaEventDefault : cudaEventDisableTiming),
                err);
}

void sgt_cuda_event_free(sgt_cuda_event e)
{
    if (e) keep_error("cudaEventDestroy", cudaEventDestroy(e));
}

void sgt_cuda_record(sgt_cuda_event e, sgt_cuda_stream s)
{
    keep_error("cudaEventRecord", cudaEventRecord(e, s));
}

void sgt_cuda_wait(sgt_cuda_stream s, sgt_cuda_event e)
{
    keep_error("cudaStreamWaitEvent", cudaStreamWaitEvent(s, e, 0));
}

int sgt_cuda_finish(sgt_cuda_stream s, sgt_error *err)
{
    so_far.finishes++;
    keep_launch_error();
    keep_error("the device", cudaStreamSynchronize(s));
    return sgt_cuda_check(err);
}

int sgt_cuda_event_finish(sgt_cuda_event e, sgt_error *err)
{
    keep_launch_error();
    cudaError_t state = cudaEventQuery(e);
    if (state == cudaErrorNotReady) {
        /* Clear "not ready", which cudaEventQuery has left as the last error, because a later check
         * would take it for the error of a launch. */
        cudaGetLastError();
        so_far.event_waits++;
        state = cudaEventSynchronize(e);
    }
    keep_error("the device", state);
    return sgt_cuda_check(err);
}

int sgt_cuda_elapsed_ms(float *ms, sgt_cuda_event from, sgt_cuda_event to, sgt_error *err)
{
    return told("cudaEventElapsedTime", cudaEventElapsedTime(ms, from, to), err);
}

/* ---- graphs; calls that other threads make do not disturb a capture ---- */

int sgt_cuda_capture(sgt_cuda_stream s, sgt_error *err)
{
    keep_launch_error();
    return told("cudaStreamBeginCapture",
                cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), err);
}

int sgt_cuda_capture_end(sgt_cuda_stream s, sgt_cuda_graph *g, sgt_error *err)
{
    cudaGraph_t graph = nullptr;
    *g = nullptr;
    keep_launch_error();
    keep_error("cudaStreamEndCapture", cudaStreamEndCapture(s, &graph));
    if (graph) keep_error("cudaGraphInstantiate", cudaGraphInstantiate(g, graph, 0));
    if (*g) keep_error("cudaGraphUpload", cudaGraphUpload(*g, s));
    if (graph) cudaGraphDestroy(graph);
    int rc = sgt_cuda_check(err);
    if (rc < 0) {
        sgt_cuda_graph_free(*g);
        *g = nullptr;
    }
    return rc;
}

void sgt_cuda_graph_run(sgt_cuda_graph g, sgt_cuda_stream s)
{
    so_far.graph_runs++;
    keep_error("cudaGraphLaunch", cudaGraphLaunch(g, s));
}

void sgt_cuda_graph_free(sgt_cuda_graph g)
{
    if (g) keep_error("cudaGraphExecDestroy", cudaGraphExecDestroy(g));
}

/* ---- counts ---- */

int sgt_cuda_patience(int on_a_card) { return on_a_card; }

sgt_cuda_counts sgt_cuda_count(void) { return so_far; }

void sgt_cuda_count_launch(void) { so_far.launches++; }

#endif
