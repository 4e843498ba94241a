/* cuda_cases_mirror.cpp: test the buffers of check-cuda-device (device/mirror.h). The twins
 * are in plain memory here, so the case needs no GPU. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/device/mirror.h"
#include "tests/kernels/host/check-cuda.h"

static size_t copied; /* bytes */

static const char *copy(void *to, const void *from, size_t size)
{
    copied += size;
    memcpy(to, from, size);
    return nullptr;
}

static const char *no_copy(void *, const void *, size_t) { return "a copy failed"; }

static void *no_memory(size_t) { return nullptr; }

struct launched {
    int n;
    float *x;
    struct {
        const float *y;
    } in;
};

static void expect(check *t, const char *what, bool is)
{
    if (!is) check_fail(t, "not so: %s", what);
}

CUDA_CASE(mirror)
{
    static const mirror_calls calls = {malloc, free, copy}, failing = {malloc, free, no_copy};
    static const mirror_calls none = {no_memory, free, copy};
    const mirror_calls before = mirror_open(&calls);
    float *x = (float *)mirror_allocate(400), *y = (float *)mirror_allocate(37), outside = 1;
    for (int i = 0; i < 100; i++) x[i] = (float)i;
    memset(y, 0, 37);
    y[2] = 7;
    expect(t, "the first push succeeds", !mirror_push());
    launched a = {3, x + 5, {y + 2}}, b = {3, &outside, {nullptr}};
    mirror_translate(&a, sizeof a);
    mirror_translate(&b, sizeof b);
    expect(t, "pointers into buffers become pointers into their twins",
           a.n == 3 && a.x == mirror_there(x + 5) && a.x != x + 5 &&
               a.in.y == mirror_there(y + 2) && *a.in.y == 7);
    expect(t, "other pointers stay", b.x == &outside && !b.in.y && mirror_there(y + 10) == y + 10);
    struct {
        float number;
        uint32_t padding;
    } c = {1 / 0.7f, (uint32_t)((uintptr_t)x >> 32)}, same_c = c;
    mirror_translate(&c, sizeof c);
    expect(t, "a number before padding stays",
           memcmp(&c, &same_c, sizeof c) == 0 && (uint32_t)(uintptr_t)x == 0x80000000 &&
               (uint32_t)(uintptr_t)y == 0x80000000);
    /* A kernel writes one element, then the test another one, and there is a second launch. */
    a.x[0] = 50;
    x[90] = 90.5f;
    copied = 0;
    expect(t, "only changed bytes are pushed", !mirror_push() && copied > 0 && copied <= 4);
    expect(t, "a push keeps what a kernel wrote", a.x[0] == 50 && a.x[85] == 90.5f && x[5] == 5);
    a.x[1] = 51;
    x[30] = 30.5f; /* between the launch and the wait */
    expect(t, "a pull copies what kernels wrote",
           !mirror_pull() && x[5] == 50 && x[6] == 51 && x[90] == 90.5f && y[2] == 7);
    expect(t, "a pull keeps what the test wrote",
           x[30] == 30.5f && !mirror_push() && a.x[25] == 30.5f && a.x[1] == 51);
    copied = 0;
    expect(t, "unchanged bytes are not pushed", !mirror_push() && copied == 0);
    mirror_release(y);
    expect(t, "a released buffer has no twin", mirror_there(y) == y && mirror_there(x) != x);
    mirror_open(&failing);
    x[0] = -1;
    expect(t, "a failed copy is reported",
           mirror_push() && strcmp(mirror_pull(), "a copy failed") == 0);
    mirror_open(&none);
    expect(t, "out of memory is reported", !mirror_allocate(16));
    mirror_open(&calls);
    mirror_release(x);
    mirror_open(&before);
}
