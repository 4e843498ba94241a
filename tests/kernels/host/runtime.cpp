/* runtime.cpp: cuda/runtime.h on a CPU, made from streams.h and memory.h. The device's properties
 * come from the environment, SGT_HOST_DEVICE, as words: nodriver, none (no device), driver=12040,
 * arch=61, memory=64M, exclusive (only one process may use the device), schedule=N
 * (host::options.seed). */
#include "kernels/cuda/failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>

#include "kernels/cuda_driver.h"
#include "tests/kernels/host/memory.h"
#include "tests/kernels/host/streams.h"

static constexpr int CUDA = 13000; /* version of the CUDA toolkit that a real build would use */

static struct {
    bool no_driver;
    int devices, driver, arch;
    uint64_t memory;
} described = {false, 1, CUDA, 90, (uint64_t)1 << 30};

static sgt_cuda_counts so_far;
/* ---- the device ---- */

static bool number(const char *word, const char *name, uint64_t *n)
{
    size_t length = strlen(name);
    if (strncmp(word, name, length)) return false;
    char *end;
    *n = strtoull(word + length, &end, 10);
    if (*end == 'M') *n <<= 20, end++;
    return end != word + length && !*end;
}

static int describe(sgt_error *err)
{
    const char *text = getenv("SGT_HOST_DEVICE");
    std::string words = text ? text : "";
    if (!getenv("SGT_HOST_FAULT")) host::refused_launch = host::failed_device = 0;
    for (char *save, *word = strtok_r(&words[0], " ", &save); word;
         word = strtok_r(nullptr, " ", &save)) {
        uint64_t n;
        if (strcmp(word, "nodriver") == 0) described.no_driver = true;
        else if (strcmp(word, "none") == 0) described.devices = 0;
        else if (strcmp(word, "exclusive") == 0) {
            /* a child of the process that uses the device inherits the number of that process */
            if (setenv("SGT_HOST_USER", std::to_string(getpid()).c_str(), 0) == 0 &&
                atoi(getenv("SGT_HOST_USER")) != getpid())
                return sgt_fail(err, SGT_EUNSUPPORTED, "the device is used by another process");
        } else if (number(word, "driver=", &n)) described.driver = (int)n;
        else if (number(word, "arch=", &n)) described.arch = (int)n;
        else if (number(word, "memory=", &n)) described.memory = n;
        else if (number(word, "schedule=", &n)) host::schedule((unsigned)n);
        else return sgt_fail(err, SGT_EUSAGE, "SGT_HOST_DEVICE: %s", word);
    }
    return SGT_OK;
}

int host::device_arch() { return described.arch; }

int sgt_cuda_device_open(sgt_cuda_device *d, int index, sgt_error *err)
{
    int rc = describe(err);
    if (rc < 0) return rc;
    if (described.no_driver)
        return sgt_fail(err, SGT_EUNSUPPORTED, "no CUDA driver: libcuda.so.1 was not found");
    if (described.devices == 0) return sgt_fail(err, SGT_EUNSUPPORTED, "no CUDA device");
    if ((rc = sgt_cuda_driver_serves(described.driver, CUDA, err)) < 0) return rc;
    if (index >= described.devices)
        return sgt_fail(err, SGT_EUNSUPPORTED, "no CUDA device %d: the driver has %d", index,
                        described.devices);
    *d = sgt_cuda_device{};
    snprintf(d->name, sizeof d->name, "the host");
    d->major = described.arch / 10;
    d->minor = described.arch % 10;
    d->multiprocessors = 22;
    d->memory = described.memory;
    d->available = described.memory - host::memory_used();
    d->driver = described.driver;
    d->runtime = CUDA;
    return sgt_cuda_device_serves(d->name, d->major, d->minor, err);
}

/* ---- memory ---- */

static int allocate(void **p, size_t bytes, host::Place place, sgt_error *err)
{
    if (host::capturing()) host::fail("memory allocated while a stream captures");
    uint64_t left = described.memory - host::memory_used();
    so_far.mallocs++;
    *p = place == host::PINNED || bytes <= left ? host::memory_new(bytes, place) : nullptr;
    if (*p) return SGT_OK;
    return sgt_fail(err, SGT_ENOMEM, "out of %s memory: %.1f MiB could not be allocated",
                    place == host::PINNED ? "pinned" : "GPU", (double)bytes / 0x1p20);
}

/* As with CUDA, this waits for the device. */
static void release(void *p, host::Place place)
{
    if (!p) return;
    host::finish(nullptr);
    host::memory_free(p, place);
}

int sgt_cuda_malloc(void **p, size_t bytes, sgt_error *err)
{
    return allocate(p, bytes, host::DEVICE, err);
}

void sgt_cuda_free(void *p) { release(p, host::DEVICE); }

int sgt_cuda_host_alloc(void **p, size_t bytes, sgt_error *err)
{
    return allocate(p, bytes, host::PINNED, err);
}

void sgt_cuda_host_free(void *p) { release(p, host::PINNED); }

static void must_lie(const void *p, size_t bytes, bool device_only, const char *what)
{
    host::Place place;
    if (!host::memory_at(p, bytes, &place))
        host::fail("%s of %zu bytes at %p: not in one allocation of device or pinned memory", what,
                   bytes, p);
    if (device_only && place != host::DEVICE)
        host::fail("%s of %zu bytes at %p: not of the device", what, bytes, p);
}

void sgt_cuda_copy(sgt_cuda_stream s, void *to, const void *from, size_t bytes)
{
    host::Place place;
    must_lie(to, bytes, false, "a copy's destination");
    must_lie(from, bytes, host::memory_at(to, bytes, &place) && place == host::PINNED,
             "a copy's source");
    so_far.copies++;
    host::enqueue(
        s, [=] { memmove(to, from, bytes); }, "copy");
    sgt_cuda_launched(s, "a copy of %zu bytes", bytes);
}

void sgt_cuda_zero(sgt_cuda_stream s, void *p, size_t bytes)
{
    must_lie(p, bytes, true, "zeros");
    host::enqueue(
        s, [=] { memset(p, 0, bytes); }, "fill");
    sgt_cuda_launched(s, "zeros in %zu bytes", bytes);
}

/* ---- streams and events ---- */

int sgt_cuda_stream_new(sgt_cuda_stream *s, sgt_error *)
{
    *s = host::stream_new();
    return SGT_OK;
}

void sgt_cuda_stream_free(sgt_cuda_stream s) { host::stream_free(s); }

int sgt_cuda_event_new(sgt_cuda_event *e, int timed, sgt_error *)
{
    *e = host::event_new(timed);
    return SGT_OK;
}

void sgt_cuda_event_free(sgt_cuda_event e) { host::event_free(e); }

void sgt_cuda_record(sgt_cuda_event e, sgt_cuda_stream s) { host::record(e, s); }

void sgt_cuda_wait(sgt_cuda_stream s, sgt_cuda_event e) { host::wait(s, e); }

int sgt_cuda_finish(sgt_cuda_stream s, sgt_error *err)
{
    so_far.finishes++;
    if (s) host::finish(s);
    return sgt_cuda_check(err);
}

int sgt_cuda_event_finish(sgt_cuda_event e, sgt_error *err)
{
    so_far.event_waits += host::event_finish(e);
    return sgt_cuda_check(err);
}

int sgt_cuda_elapsed_ms(float *ms, sgt_cuda_event from, sgt_cuda_event to, sgt_error *err)
{
    double a = host::event_seconds(from), b = host::event_seconds(to);
    if (a < 0 || b < 0) return sgt_fail(err, SGT_EIO, "CUDA: an event's time before it came");
    *ms = (float)((b - a) * 1e3);
    return SGT_OK;
}

/* ---- failures ---- */

int sgt_cuda_device_error(sgt_cuda_stream s, int wait, const char **why)
{
    if (wait && s && !host::capturing()) host::finish(s);
    int code = host::refused_launch ? host::refused_launch : host::failed_device;
    *why = code == 700 ? "an illegal memory access was encountered" : "invalid argument";
    return code;
}

static void note_device()
{
    const char *why;
    int code = sgt_cuda_device_error(nullptr, 0, &why);
    if (code == 700)
        sgt_cuda_note("the device: %s (CUDA error %d; find the failed launch with --sync-kernels)",
                      why, code);
    host::refused_launch = 0;
}

int sgt_cuda_check(sgt_error *err)
{
    note_device();
    return sgt_cuda_noted(err);
}

void sgt_cuda_note_failure(const char *what, int code)
{
    sgt_cuda_note("%s: error %d", what, code);
}

/* ---- graphs, counts ---- */

int sgt_cuda_capture(sgt_cuda_stream s, sgt_error *)
{
    host::capture(s);
    return SGT_OK;
}

int sgt_cuda_capture_end(sgt_cuda_stream s, sgt_cuda_graph *g, sgt_error *err)
{
    *g = host::capture_end(s);
    return sgt_cuda_check(err);
}

void sgt_cuda_graph_run(sgt_cuda_graph g, sgt_cuda_stream s)
{
    so_far.graph_runs++;
    host::graph_run(g, s);
}

void sgt_cuda_graph_free(sgt_cuda_graph g) { host::graph_free(g); }

int sgt_cuda_patience(int on_a_card) { return 100 * on_a_card; }

sgt_cuda_counts sgt_cuda_count(void)
{
    sgt_cuda_counts c = so_far;
    c.launches = (uint64_t)host::counts.launches;
    return c;
}

void sgt_cuda_count_launch(void) { host::counts.launches++; }
