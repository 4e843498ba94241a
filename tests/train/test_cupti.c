/* test_cupti.c: how sgt_cupti turns CUPTI's records into kernels, copies and ranges. The records
 * come from a stand-in (fake_cupti.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/expect.h"
#include "tests/kernels/fake_cupti.h"

SCOPED_POINTER(sgt_cupti, sgt_cupti_close)

/* ---- what is shown ---- */

enum { SHOWN = 64 };

typedef struct seen {
    sgt_cupti_kernel k;
    char name[300], range[64];
} seen;

static seen shown[SHOWN];
static size_t shown_count;

static void show(void *ctx, const sgt_cupti_kernel *k)
{
    cr_expect_eq(ctx, (void *)shown);
    seen *to = &shown[shown_count++ % SHOWN];
    to->k = *k;
    snprintf(to->name, sizeof to->name, "%s", k->name);
    snprintf(to->range, sizeof to->range, "%s", k->range ? k->range : "");
}

/* Check number n of the entries that `show` received. */
static void expect(size_t n, const char *category, const char *name, uint32_t stream, uint64_t from,
                   uint64_t to)
{
    const seen *s = &shown[n];
    cr_assert(n < shown_count, "%s is missing", name);
    cr_expect_str_eq(s->k.category, category);
    cr_expect_str_eq(s->name, name);
    cr_expect(s->k.stream == stream && s->k.start == from && s->k.end == to, "%s: %llu to %llu",
              name, (unsigned long long)s->k.start, (unsigned long long)s->k.end);
}

static sgt_cupti *opened(void)
{
    sgt_cupti *p = NULL;
    memset(&fake, 0, sizeof fake);
    must(sgt_cupti_open(&p, why));
    return p;
}

static sgt_cupti *start(void)
{
    sgt_cupti *p = opened();
    must(sgt_cupti_begin(p, why));
    return p;
}

static void expect_all_off(void)
{
    for (int i = 0; i < FAKE_KINDS; i++) cr_expect_not(fake.on[i], "kind %d is still on", i);
}

/* End the recording, and check that it has `count` kernels, copies and fills. */
static void stop(sgt_cupti *p, size_t count)
{
    shown_count = 0;
    must(sgt_cupti_end(p, show, shown, why));
    cr_expect_eq(shown_count, count);
    expect_all_off();
}

/* ---- records ---- */

#define EMIT(...) fake_emit(&(__VA_ARGS__), sizeof(__VA_ARGS__))

static void kernel(const char *name, uint32_t stream, uint64_t from, uint64_t to, uint64_t node)
{
    EMIT((sgt_cupti_launch){.kind = SGT_CUPTI_KERNEL,
                            .name = name,
                            .stream = stream,
                            .start = from,
                            .end = to,
                            .node = node});
}

static void copy(uint8_t direction, uint32_t device, uint64_t from, uint64_t to)
{
    EMIT((sgt_cupti_move){.kind = SGT_CUPTI_MEMCPY,
                          .direction = direction,
                          .bytes = 131200,
                          .device = device,
                          .stream = 13,
                          .start = from,
                          .end = to});
}

Test(cupti, kernels_copies_and_fills)
{
    sgt_cupti *p = start();
    kernel("_Z6kernelPf", 7, 1000, 1500, 0);
    copy(SGT_CUPTI_DEVICE_TO_HOST, 2, 5, 9);
    copy(SGT_CUPTI_HOST_TO_DEVICE, 0, 30, 31);
    copy(SGT_CUPTI_DEVICE_TO_DEVICE, 0, 10, 20);
    copy(0, 0, 40, 41);
    EMIT((sgt_cupti_move){
        .kind = SGT_CUPTI_MEMSET, .bytes = 4096, .start = 40, .end = 45, .stream = 7});
    kernel(NULL, 7, 1500, 1501, 0);
    stop(p, 7);
    expect(0, "fill", "fill", 7, 40, 45);
    expect(1, "kernel", "kernel", 7, 1000, 1500);
    expect(2, "kernel", "kernel", 7, 1500, 1501);
    expect(3, "copy", "copy on device", 13, 10, 20);
    expect(4, "copy", "copy to device", 13, 30, 31);
    expect(5, "copy", "copy", 13, 40, 41);
    expect(6, "copy", "copy to host", 13, 5, 9);
    cr_expect(shown[0].k.bytes == 4096 && shown[3].k.bytes == 131200);
    cr_expect(shown[0].k.device == 0 && shown[6].k.device == 2);
    for (int i = 0; i < 7; i++) cr_expect(!shown[i].k.range && !shown[i].k.label);
    sgt_cupti_close(p);
    cr_expect_eq(fake.subscribers, 0);
}

/* A kernel belongs to the innermost range. A label names the kernels that a library launches within
 * a range. If several kernels follow a call of sgt_cupti_work, the first one gets the work. */
Test(cupti, ranges_labels_and_work)
{
    static const struct {
        const char *range, *label;
        double flops, bytes;
    } wanted[] = {{"", NULL, 0, 0},
                  {"h.0 forward", NULL, 0, 0},
                  {"attention", NULL, 0, 16},
                  {"h.0 forward", "qkv forward", 64, 0},
                  {"h.0 forward", "qkv forward", 0, 0},
                  {"h.0 forward", NULL, 0, 32},
                  {"", NULL, 0, 0}};
    enum { NODES = sizeof wanted / sizeof *wanted };
    scoped(sgt_cupti) *p = opened();
    fake_node(SGT_CUPTI_NODE_CREATED, 1, 0);
    sgt_cupti_work(1, 1); /* no kernel follows in this range, so nothing gets the work */
    sgt_cupti_push("h.0 forward");
    fake_node(SGT_CUPTI_NODE_CREATED, 2, 0);
    sgt_cupti_push("attention");
    sgt_cupti_work(0, 16);
    fake_node(SGT_CUPTI_NODE_CREATED, 3, 0);
    sgt_cupti_pop();
    sgt_cupti_push_label("qkv forward");
    sgt_cupti_work(64, 0);
    fake_node(SGT_CUPTI_NODE_CREATED, 4, 0);
    fake_node(SGT_CUPTI_NODE_CREATED, 5, 0);
    sgt_cupti_pop();
    sgt_cupti_work(0, 32);
    fake_node(SGT_CUPTI_NODE_CREATED, 6, 0);
    for (int i = 0; i < 2; i++) sgt_cupti_pop(); /* one pop too many is ignored */
    fake_node(SGT_CUPTI_NODE_CREATED, 7, 0);
    /* the nodes of the running graph are clones; one has the number of an older node */
    fake_node(SGT_CUPTI_NODE_CREATED, 13, 0);
    for (uintptr_t i = 1; i <= NODES; i++) fake_node(SGT_CUPTI_NODE_CLONED, 10 + i, i);
    must(sgt_cupti_begin(p, why));
    for (uint64_t i = 1; i <= NODES; i++) kernel("k", 7, 10 * i, 10 * i + 5, 10 + i);
    sgt_cupti_push("h.1 forward");
    kernel("outside a graph", 7, 90, 95, 0);
    sgt_cupti_pop();
    stop(p, NODES + 1);
    for (size_t i = 0; i < NODES; i++) {
        const sgt_cupti_kernel *k = &shown[i].k;
        cr_expect_str_eq(shown[i].range, wanted[i].range);
        cr_expect(k->label == wanted[i].label ||
                      (k->label && wanted[i].label && strcmp(k->label, wanted[i].label) == 0),
                  "kernel %zu: %s", i, k->label);
        cr_expect(k->flops == wanted[i].flops && k->bytes == wanted[i].bytes, "kernel %zu", i);
    }
    cr_expect_null(shown[NODES].k.range);
}

Test(cupti, many_records_twice)
{
    enum { MANY = 30000 };
    scoped(sgt_cupti) *p = start();
    for (uint32_t i = 1; i <= MANY; i++) kernel("k", 7, 10 * i, 10 * i + 9, 0);
    stop(p, MANY);
    cr_expect_geq(fake.buffers, 3);
    must(sgt_cupti_begin(p, why));
    kernel("second", 7, 10, 19, 0);
    stop(p, 1);
    expect(0, "kernel", "second", 7, 10, 19);
}

Test(cupti, lost_records)
{
    scoped(sgt_cupti) *p = start();
    kernel("no times", 7, 0, 0, 0); /* as if the record was flushed before the kernel ended */
    kernel("turned round", 7, 2, 1, 0);
    fake.dropped = 3;
    expect_failure(sgt_cupti_end(p, show, shown, why), SGT_EIO, "CUPTI: 5 records were lost");
    fake.dropped = 5; /* records lost before recording begins are not counted */
    must(sgt_cupti_begin(p, why));
    must(sgt_cupti_end(p, NULL, NULL, why));
}

Test(cupti, failures_are_said)
{
    sgt_cupti *p = opened(), *second = NULL;
    expect_failure_about(sgt_cupti_open(&second, why), SGT_EUSAGE, "already open in this process");
    cr_expect_null(second);
    fake.fails = SGT_CUPTI_MEMSET;
    expect_failure(
        sgt_cupti_begin(p, why), SGT_EUNSUPPORTED,
        "CUPTI: switching on: ERROR_35 (the driver lets only root profile: run as root)");
    expect_all_off();
    fake.fails = 0;
    must(sgt_cupti_begin(p, why));
    kernel("k", 7, 1, 2, 0);
    sgt_cupti_close(p); /* while it records */
    expect_all_off();
    fake.subscribers = 1; /* as if Nsight were active */
    expect_failure_about(sgt_cupti_open(&p, why), SGT_EUNSUPPORTED, "other profiler");
    fake.subscribers = 0;
    must(sgt_cupti_open(&p, why)); /* a failed call does not prevent the next one */
    sgt_cupti_close(p);
    sgt_cupti_close(NULL);
}

Test(cupti, names_of_kernels)
{
    static char longest[300] = "_ZN7cutlass270";
    memset(longest + strlen(longest), 'x', 270);
    static const char *const names[][2] = {
        {"nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_TNT",
         "nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_TNT"},
        {"_Z6kernelPf", "kernel"},
        {"_ZL6kernelPf", "kernel"},
        {"_Z10embed_rowsI13__nv_bfloat16EvPT_PKiS2_S2_mmm", "embed_rows"},
        {"_ZN39_GLOBAL__N__700057b0_7_tiny_cu_a4bb45239layernormI13__nv_bfloat16EEvPT_",
         "layernorm"},
        {"_ZN7cutlass13device_kernelIN4cute5tupleIJiEEEEEvT_", "cutlass::device_kernel"},
        {"_Z", "_Z"},
        {"_Z99short", "_Z99short"},
        {"_Z99999999999999999999999999x", "_Z99999999999999999999999999x"},
        {"", ""}};
    enum { NAMES = sizeof names / sizeof *names };
    scoped(sgt_cupti) *p = start();
    for (uint64_t i = 0; i < NAMES; i++) kernel(names[i][0], 7, i + 1, i + 1, 0);
    kernel(longest, 7, NAMES + 1, NAMES + 1, 0);
    stop(p, NAMES + 1);
    for (size_t i = 0; i < NAMES; i++) cr_expect_str_eq(shown[i].name, names[i][1]);
    cr_expect_eq(strlen(shown[NAMES].name), 255);
    cr_expect_eq(strncmp(shown[NAMES].name, "cutlass::xxx", 12), 0);
}
