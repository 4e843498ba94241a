/* test_cupti.c: what sgt_cupti makes of CUPTI's records, with records made by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cupti_parts.h"
#include "tests/expect.h"
#include "tests/train/fake_cupti.h"

SCOPED_POINTER(sgt_cupti, sgt_cupti_close)

/* ---- what is shown ---- */

enum { SHOWN = 256 };

typedef struct seen {
    sgt_cupti_span s;
    char name[128], category[16], track[64], label[32];
} seen;

static seen shown[SHOWN];
static size_t shown_count;

static void show(void *ctx, const sgt_cupti_span *s)
{
    cr_expect_eq(ctx, (void *)shown);
    if (shown_count == SHOWN) return;
    seen *to = &shown[shown_count++];
    to->s = *s;
    snprintf(to->name, sizeof to->name, "%s", s->name);
    snprintf(to->category, sizeof to->category, "%s", s->category);
    snprintf(to->track, sizeof to->track, "%s", s->track);
    snprintf(to->label, sizeof to->label, "%s", s->label ? s->label : "");
}

/* Return the n-th event of a category, or NULL. */
static const seen *get(const char *category, int n)
{
    for (size_t i = 0; i < shown_count; i++)
        if (strcmp(shown[i].category, category) == 0 && n-- == 0) return &shown[i];
    return NULL;
}

static void expect(const char *category, int n, const char *name, const char *track, uint64_t from,
                   uint64_t to)
{
    const seen *s = get(category, n);
    cr_assert(s, "%s %d is missing", category, n);
    cr_expect_str_eq(s->name, name);
    cr_expect_str_eq(s->track, track);
    cr_expect(s->s.start == from && s->s.end == to, "%s: %llu to %llu", name,
              (unsigned long long)s->s.start, (unsigned long long)s->s.end);
}

static sgt_cupti *opened(void)
{
    sgt_cupti *p = NULL;
    memset(&fake, 0, sizeof fake);
    shown_count = 0;
    must(sgt_cupti_open_with(&p, &table, why));
    return p;
}

static sgt_cupti *start(void)
{
    sgt_cupti *p = opened();
    must(sgt_cupti_begin(p, why));
    return p;
}

static sgt_cupti_counts stop(sgt_cupti *p)
{
    sgt_cupti_counts c;
    must(sgt_cupti_end(p, show, shown, &c, why));
    for (int i = 0; i < KINDS; i++) cr_expect_not(fake.on[i], "kind %d is still on", i);
    return c;
}

/* ---- records ---- */

static void kernel(const char *name, uint32_t stream, uint64_t from, uint64_t to,
                   uint32_t correlation, uint64_t node)
{
    EMIT((sgt_cupti_kernel){.kind = SGT_CUPTI_KERNEL,
                            .name = name,
                            .stream = stream,
                            .start = from,
                            .end = to,
                            .correlation = correlation,
                            .node = node,
                            .grid = {3, 5, 7},
                            .block = {32, 4, 2},
                            .registers = 168,
                            .static_shared = 1024,
                            .dynamic_shared = 231424});
}

static void call(int kind, uint32_t which, uint64_t from, uint64_t to, uint32_t thread,
                 uint32_t correlation)
{
    EMIT((sgt_cupti_call){.kind = kind,
                          .callback = which,
                          .start = from,
                          .end = to,
                          .thread = thread,
                          .correlation = correlation});
}

/* Report that a launch belongs to a range. */
static void belongs(uint32_t correlation, uint64_t range)
{
    EMIT((sgt_cupti_correlation){.kind = SGT_CUPTI_EXTERNAL_CORRELATION,
                                 .external_kind = SGT_CUPTI_CUSTOM0,
                                 .external = range,
                                 .correlation = correlation});
}

/* Report a launch as CUPTI does: the range pushed last (if any) that it belongs to, the runtime
 * call, and the kernel that it started, which ran from `from` to `to` ns. */
static void launch(const char *name, uint32_t stream, uint64_t from, uint64_t to,
                   uint32_t correlation)
{
    if (fake.depth) belongs(correlation, fake.stack[fake.depth - 1]);
    call(SGT_CUPTI_RUNTIME, 0, from - 5, from - 1, 11, correlation);
    kernel(name, stream, from, to, correlation, 0);
}

Test(cupti, kernels_copies_and_fills)
{
    sgt_cupti *p = start();
    kernel("_Z6kernelPf", 7, 1000, 1500, 42, 0);
    EMIT((sgt_cupti_copy){.kind = SGT_CUPTI_MEMCPY,
                          .copied = SGT_CUPTI_HOST_TO_DEVICE,
                          .bytes = 131200,
                          .start = 10,
                          .end = 20,
                          .stream = 13});
    EMIT((sgt_cupti_copy){.kind = SGT_CUPTI_MEMCPY,
                          .copied = SGT_CUPTI_DEVICE_TO_HOST,
                          .start = 30,
                          .end = 31,
                          .device = 2,
                          .stream = 13});
    EMIT((sgt_cupti_fill){
        .kind = SGT_CUPTI_MEMSET, .bytes = 4096, .value = 1, .start = 40, .end = 45, .stream = 7});
    EMIT((sgt_cupti_call){.kind = 33});
    sgt_cupti_counts c = stop(p);
    cr_expect(c.kernels == 1 && c.lost == 0);
    expect("kernel", 0, "kernel", "GPU 0, stream 7", 1000, 1500);
    expect("copy", 0, "copy to device", "GPU 0, stream 13", 10, 20);
    expect("copy", 1, "copy to host", "GPU 2, stream 13", 30, 31);
    expect("fill", 0, "fill", "GPU 0, stream 7", 40, 45);
    const sgt_cupti_span *k = &get("kernel", 0)->s, *copy = &get("copy", 0)->s;
    cr_expect(k->on_device && k->flow == 42 && !k->starts_flow);
    cr_expect_str_eq(k->args[0].key, "blocks");
    cr_expect(k->args[0].value == 105 && k->args[1].value == 256 && k->args[2].value == 168 &&
              k->args[3].value == 232448);
    cr_expect(strcmp(copy->args[0].key, "bytes") == 0 && copy->args[0].value == 131200 &&
              !copy->args[1].key && copy->bytes == 131200);
    cr_expect_eq(get("fill", 0)->s.args[0].value, 4096);
    sgt_cupti_close(p);
    cr_expect_eq(fake.subscribers, 0);
}

Test(cupti, calls_of_the_host)
{
    scoped(sgt_cupti) *p = start();
    launch("a", 7, 100, 110, 9);
    /* the driver call inside a runtime call: the same correlation */
    call(SGT_CUPTI_DRIVER, 0, 96, 98, 11, 9);
    /* a library called the driver, without the runtime */
    call(SGT_CUPTI_DRIVER, 0, 200, 205, 12, 2);
    kernel("b", 7, 210, 220, 2, 0);
    call(SGT_CUPTI_RUNTIME, 1, 300, 400, 11, 3);
    call(SGT_CUPTI_RUNTIME, 3, 410, 411, 11, 4);
    call(SGT_CUPTI_RUNTIME, 4, 420, 430, 11, 5);
    call(SGT_CUPTI_DRIVER, 2, 440, 441, 11, 6);
    stop(p);
    expect("call", 0, "cudaLaunchKernel", "CUDA calls, thread 1", 95, 99);
    expect("call", 1, "cuLaunchKernelEx", "CUDA calls, thread 2", 200, 205);
    expect("wait", 0, "cudaStreamSynchronize", "CUDA calls, thread 1", 300, 400);
    expect("call", 2, "cudaMemcpyAsync", "CUDA calls, thread 1", 410, 411);
    expect("wait", 1, "cudaMemcpy", "CUDA calls, thread 1", 420, 430);
    expect("call", 3, "cuMy_value", "CUDA calls, thread 1", 440, 441);
    cr_expect(get("call", 0)->s.flow == 9 && get("call", 0)->s.starts_flow &&
              !get("call", 0)->s.on_device);
    cr_expect(get("call", 1)->s.flow == 2 && get("call", 1)->s.starts_flow);
    cr_expect(get("wait", 0)->s.flow == 0 && get("call", 2)->s.flow == 0);
}

Test(cupti, kernels_belong_to_the_innermost_range)
{
    scoped(sgt_cupti) *p = start();
    sgt_cupti_push("h.0 forward");
    /* records arrive when their kernels end, on any stream, so not in order of time */
    launch("b", 7, 120, 130, 12);
    launch("c", 8, 125, 140, 3);
    launch("a", 7, 100, 110, 1);
    sgt_cupti_push("attention");
    launch("d", 7, 150, 160, 4);
    sgt_cupti_pop();
    launch("e", 7, 155, 170, 5); /* begins before the previous kernel has ended */
    sgt_cupti_pop();
    launch("f", 7, 180, 190, 6); /* in no range */
    sgt_cupti_push("h.0 forward");
    launch("g", 7, 200, 210, 7);
    sgt_cupti_pop();
    sgt_cupti_pop(); /* one pop too many is ignored */
    cr_expect_eq(stop(p).kernels, 7);
    expect("range", 0, "h.0 forward", "GPU 0, stream 7, by range", 100, 130);
    expect("range", 1, "attention", "GPU 0, stream 7, by range", 150, 155);
    expect("range", 2, "h.0 forward", "GPU 0, stream 7, by range", 155, 170);
    expect("range", 3, "h.0 forward", "GPU 0, stream 7, by range", 200, 210);
    expect("range", 4, "h.0 forward", "GPU 0, stream 8, by range", 125, 140);
    cr_expect_null(get("range", 5));
}

static void node(int which, uintptr_t id, uintptr_t original)
{
    sgt_cupti_graph_data data = {.node = (sgt_cupti_node)id,
                                 .original_node = (sgt_cupti_node)original};
    sgt_cupti_resource resource = {.descriptor = &data};
    fake.callback(fake.ctx, SGT_CUPTI_DOMAIN_RESOURCE, (sgt_cupti_callback_id)which, &resource);
}

/* A label names the kernels of a library, within the range around it. Of several kernels, the first
 * one has the work. */
Test(cupti, labels_and_work)
{
    scoped(sgt_cupti) *p = opened();
    sgt_cupti_work(1, 1); /* never launched in a graph */
    sgt_cupti_push("h.0 forward");
    node(SGT_CUPTI_NODE_CREATED, 1, 0);
    sgt_cupti_push_label("qkv forward");
    sgt_cupti_work(64, 0);
    node(SGT_CUPTI_NODE_CREATED, 2, 0);
    node(SGT_CUPTI_NODE_CREATED, 3, 0);
    sgt_cupti_pop();
    sgt_cupti_work(0, 32);
    node(SGT_CUPTI_NODE_CREATED, 4, 0);
    sgt_cupti_pop();
    for (uintptr_t i = 1; i <= 4; i++) node(SGT_CUPTI_NODE_CLONED, 10 + i, i);
    cr_assert_eq(sgt_cupti_begin(p, NULL), 0);
    for (uint64_t i = 1; i <= 4; i++) kernel("k", 7, 10 * i, 10 * i + 5, 1, 10 + i);
    sgt_cupti_push("h.1 forward");
    sgt_cupti_push_label("fc forward");
    launch("l", 7, 90, 95, 9); /* without a graph */
    sgt_cupti_pop();
    sgt_cupti_pop();
    stop(p);
    static const struct {
        const char *label;
        double flops, bytes;
    } wanted[] = {{"", 0, 0},
                  {"qkv forward", 64, 0},
                  {"qkv forward", 0, 0},
                  {"", 0, 32},
                  {"fc forward", 0, 0}};
    for (int i = 0; i < 5; i++) {
        const seen *k = get("kernel", i);
        cr_assert(k);
        cr_expect_str_eq(k->label, wanted[i].label);
        cr_expect(k->s.flops == wanted[i].flops && k->s.bytes == wanted[i].bytes, "kernel %d", i);
    }
    expect("range", 0, "h.0 forward", "GPU 0, stream 7, by range", 10, 45);
    expect("range", 1, "h.1 forward", "GPU 0, stream 7, by range", 90, 95);
}

Test(cupti, what_tells_a_range_may_come_buffers_later)
{
    enum { MANY = 30000 };
    scoped(sgt_cupti) *p = start();
    sgt_cupti_push("h.0 forward");
    for (uint32_t i = 1; i <= MANY; i++) kernel("k", 7, 10 * i, 10 * i + 9, i, 0);
    for (uint32_t i = 1; i <= MANY; i++) belongs(i, 1);
    sgt_cupti_pop();
    cr_expect_eq(stop(p).kernels, MANY);
    cr_expect_geq(fake.buffers, 3);
    shown_count = 0;
    /* record a second time, with the same buffers */
    cr_assert_eq(sgt_cupti_begin(p, NULL), 0);
    sgt_cupti_push("h.1 forward");
    kernel("k", 7, 10, 19, 1, 0);
    belongs(1, 2);
    belongs(1, 77); /* a range that was never pushed */
    sgt_cupti_pop();
    cr_expect_eq(stop(p).kernels, 1);
    expect("range", 0, "h.1 forward", "GPU 0, stream 7, by range", 10, 19);
}

Test(cupti, counting)
{
    scoped(sgt_cupti) *p = start();
    sgt_cupti_counts c;
    launch("a", 7, 100, 110, 1);
    kernel("no times", 7, 0, 0, 2, 0); /* its record was flushed before it ended */
    fake.dropped = 3;
    cr_expect_eq(sgt_cupti_end(p, NULL, NULL, &c, NULL), 0);
    cr_expect(c.kernels == 2 && c.lost == 4);
    fake.dropped = 5; /* records lost before recording begins are not counted */
    cr_assert_eq(sgt_cupti_begin(p, NULL), 0);
    cr_expect_eq(sgt_cupti_end(p, NULL, NULL, &c, NULL), 0);
    cr_expect(c.kernels == 0 && c.lost == 0);
}

static void marker(int flags, uint32_t id, uint64_t time, const char *name)
{
    EMIT((sgt_cupti_marker){.kind = SGT_CUPTI_MARKER,
                            .flags = flags,
                            .id = id,
                            .time = time,
                            .name = name,
                            .object_kind = SGT_CUPTI_OBJECT_THREAD,
                            .thread = 11});
}

Test(cupti, markers_of_other_libraries)
{
    scoped(sgt_cupti) *p = start();
    marker(SGT_CUPTI_MARKER_START, 1, 100, "outer");
    marker(SGT_CUPTI_MARKER_START, 2, 110, "ncclAllReduce");
    marker(1, 3, 115, "a moment");
    marker(SGT_CUPTI_MARKER_END, 2, 120, NULL);
    marker(SGT_CUPTI_MARKER_END, 2, 124, NULL); /* ended a second time */
    marker(SGT_CUPTI_MARKER_END, 9, 125, NULL); /* began before recording did */
    marker(SGT_CUPTI_MARKER_END, 1, 130, NULL);
    marker(SGT_CUPTI_MARKER_START, 1, 140, "never ends");
    stop(p);
    expect("marker", 0, "ncclAllReduce", "NVTX, thread 1", 110, 120);
    expect("marker", 1, "outer", "NVTX, thread 1", 100, 130);
    cr_expect_null(get("marker", 2));
}

Test(cupti, failures_are_said)
{
    sgt_error err;
    sgt_cupti *p = opened(), *second = NULL;
    cr_expect_eq(sgt_cupti_open_with(&second, &table, &err), SGT_EUSAGE);
    cr_expect_null(second);
    cr_expect_eq(sgt_cupti_end(p, NULL, NULL, NULL, &err), SGT_EUSAGE);
    fake.fails = SGT_CUPTI_MEMSET;
    cr_expect_eq(sgt_cupti_begin(p, &err), SGT_EUNSUPPORTED);
    cr_expect(strstr(err.text, "ERROR_35") && strstr(err.text, "root"), "%s", err.text);
    for (int i = 0; i < KINDS; i++) cr_expect_not(fake.on[i], "kind %d is still on", i);
    fake.fails = SGT_CUPTI_MARKER; /* markers are optional */
    must(sgt_cupti_begin(p, why));
    cr_expect_eq(sgt_cupti_begin(p, &err), SGT_EUSAGE);
    sgt_cupti_close(p);
    fake.subscribers = 1; /* as if Nsight were active */
    expect_failure_about(sgt_cupti_open_with(&p, &table, why), SGT_EUNSUPPORTED,
                         "another profiler");
    fake.subscribers = 0;
    cr_expect_eq(sgt_cupti_open_with(&p, &table, &err), 0, "one that failed is not in the way");
    sgt_cupti_close(p);
    sgt_cupti_close(NULL);
}

/* Open this machine's CUPTI. If anything is missing, the error is one line. */
Test(cupti, the_library_of_this_machine)
{
    sgt_error err = {0};
    sgt_cupti *p = NULL;
    if (sgt_cupti_open(&p, &err) == SGT_OK) sgt_cupti_close(p);
    else cr_expect(strncmp(err.text, "CUPTI", 5) == 0 && !strchr(err.text, '\n'), "%s", err.text);
}

static void expect_short(const char *name, const char *wanted)
{
    char out[128];
    cr_expect_str_eq(sgt_cupti_short_name(out, sizeof out, name), wanted);
}

Test(cupti, names_of_kernels)
{
    char out[8];
    expect_short("nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_TNT",
                 "nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_TNT");
    expect_short("_Z6kernelPf", "kernel");
    expect_short("_ZL6kernelPf", "kernel");
    expect_short("_Z10embed_rowsI13__nv_bfloat16EvPT_PKiS2_S2_mmm", "embed_rows");
    expect_short("_ZN39_GLOBAL__N__700057b0_7_tiny_cu_a4bb45239layernormI13__nv_bfloat16EEvPT_",
                 "layernorm");
    expect_short("_ZN12_GLOBAL__N_19layernormIfEEvPT_", "layernorm");
    expect_short("_ZN7cutlass13device_kernelIN4cute5tupleIJiEEEEEvT_", "cutlass::device_kernel");
    expect_short("_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi",
                 "at::native::vectorized_elementwise_kernel");
    expect_short("_Z", "_Z");
    expect_short("_Zebra", "_Zebra");
    expect_short("_Z99short", "_Z99short");
    expect_short("_Z99999999999999999999999999x", "_Z99999999999999999999999999x");
    expect_short("", "");
    cr_expect_str_eq(sgt_cupti_short_name(out, sizeof out, "_ZN7cutlass13device_kernelEv"),
                     "cutlass");
    cr_expect_str_eq(sgt_cupti_short_name(out, sizeof out, "a_long_name"), "a_long_");
}
