/* pretend.cpp: stands in for a GPU to test check-cuda-device itself. It has plain memory, the
 * kernels of the host run, and cases that fail on purpose (planted_...). These run only if --case
 * names them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <set>

#include "tests/kernels/device/device.h"
#include "tests/kernels/device/mirror.h"
#include "tests/kernels/host/check-cuda.h"
#include "tests/kernels/host/streams.h"

static const char *error;
static std::set<const void *> asked; /* addresses that cuda_there was asked for */

static bool is_asked(const void *p) { return asked.count(p); }

static void *allocate(size_t size) { return aligned_alloc(256, (size + 255) / 256 * 256); }

const char *device_open(device *d)
{
    if (getenv("PRETEND_NO_DEVICE")) return "no CUDA driver";
    const char *arch = getenv("PRETEND_ARCH");
    d->arch = arch ? atoi(arch) : 90;
    snprintf(d->name, sizeof d->name, "no device, but the host");
    d->memory = check_memory{allocate, free, 0};
    host::may_be_mapped =
        is_asked; /* on a GPU, a tensor map of any other address would be of the CPU's memory */
    return nullptr;
}

const char *device_wait()
{
    host::finish(nullptr);
    return error;
}

void *device_address(void *p)
{
    asked.insert(p);
    return p;
}

/* ---- test of mirror.cpp without a GPU: the twins are plain memory ---- */

static size_t copied; /* bytes */

static const char *copy(void *to, const void *from, size_t size)
{
    copied += size;
    memcpy(to, from, size);
    return nullptr;
}

static const char *no_copy(void *, const void *, size_t) { return "a copy failed: it did"; }

struct launched {
    int n;
    float *x;
    struct {
        const float *y;
    } in;
};

static void same(check *t, const char *what, bool is)
{
    if (!is) check_fail(t, "%s", what);
}

CUDA_CASE(mirror)
{
    static const mirror_calls calls = {allocate, free, copy}, failing = {allocate, free, no_copy};
    static const mirror_calls none = {[](size_t) -> void * { return nullptr; }, free, copy};
    mirror_open(&calls);
    float *x = (float *)mirror_allocate(400), *y = (float *)mirror_allocate(37), outside = 1;
    for (int i = 0; i < 100; i++) x[i] = (float)i;
    memset(y, 0, 37);
    y[2] = 7;
    same(t, "pushed", !mirror_push());
    launched a = {3, x + 5, {y + 2}}, b = {3, &outside, {nullptr}};
    mirror_translate(&a, sizeof a);
    mirror_translate(&b, sizeof b);
    same(t, "pointers into buffers are the twins'",
         a.n == 3 && a.x == mirror_there(x + 5) && a.x != x + 5 && a.in.y == mirror_there(y + 2) &&
             *a.in.y == 7);
    same(t, "others stay", b.x == &outside && !b.in.y && mirror_there(y + 10) == y + 10);
    /* a kernel writes; then the CPU writes another element, and there is a second launch */
    a.x[0] = 50;
    x[90] = 90.5f;
    struct {
        float number;
        uint32_t padding;
    } c = {1 / 0.7f, (uint32_t)((uintptr_t)x >> 32)}, same_c = c;
    mirror_translate(&c, sizeof c);
    same(t, "a number before padding stays",
         memcmp(&c, &same_c, sizeof c) == 0 && (uint32_t)(uintptr_t)x == 0x80000000 &&
             (uint32_t)(uintptr_t)y == 0x80000000);
    copied = 0;
    same(t, "pushed again", !mirror_push() && copied > 0 && copied <= 4);
    same(t, "what a kernel wrote is not written over",
         a.x[0] == 50 && a.x[85] == 90.5f && x[5] == 5);
    a.x[1] = 51;
    x[30] = 30.5f; /* between the launch and the wait */
    same(t, "pulled", !mirror_pull() && x[5] == 50 && x[6] == 51 && x[90] == 90.5f && y[2] == 7);
    same(t, "what the test wrote is kept, and pushed",
         x[30] == 30.5f && !mirror_push() && a.x[25] == 30.5f && a.x[1] == 51);
    copied = 0;
    same(t, "nothing changed", !mirror_push() && copied == 0);
    mirror_release(y);
    same(t, "forgotten", mirror_there(y) == y && mirror_there(x) != x);
    mirror_open(&failing);
    x[0] = -1;
    same(t, "why a copy failed",
         mirror_push() && strcmp(mirror_pull(), "a copy failed: it did") == 0);
    mirror_open(&none);
    same(t, "no memory", !mirror_allocate(16));
    mirror_open(&calls);
    mirror_release(x);
}

/* ---- failures that check-cuda-device must find ---- */

CUDA_CASE(planted_overrun)
{
    unsigned char *x = cuda_output<unsigned char>(t, 37);
    check_at(t, "37 bytes");
    x[37] = 1;
}

CUDA_CASE(planted_underrun)
{
    unsigned char *x = cuda_output<unsigned char>(t, 64);
    check_at(t, "64 bytes");
    x[-1] = 1;
}

CUDA_CASE(planted_other_bits)
{
    static float drifts;
    float *x = cuda_output<float>(t, 4);
    check_at(t, "4 floats");
    for (int i = 0; i < 4; i++) x[i] = 1;
    x[3] += t->turn ? 1 + drifts++ : 0;
}

CUDA_CASE(planted_wrong)
{
    float *x = cuda_random<float>(t, 4, 1), *want = check_copy(t, x, 4);
    check_at(t, "4 floats");
    want[2] += 1;
    check_equal(t, "x", x, want, 4);
}

CUDA_CASE(planted_error)
{
    error = "a kernel failed: an illegal memory access was encountered (cudaErrorIllegalAddress)";
    cuda_sync(t);
    error = nullptr;
}

CUDA_CASE(planted_crash)
{
    (void)t;
    raise(SIGSEGV);
}

CUDA_CASE(planted_hang)
{
    (void)t;
    for (;;) pause();
}
