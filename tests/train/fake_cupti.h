/* fake_cupti.h: a stand-in for CUPTI. It stores what it is told, requests buffers as CUPTI does,
 * and returns them when it is flushed or when one is full. For test_cupti.c alone. */
#ifndef SGT_TESTS_FAKE_CUPTI_H
#define SGT_TESTS_FAKE_CUPTI_H

#include <criterion/criterion.h>
#include <string.h>

#include "kernels/cuda/cupti_parts.h"

enum { KINDS = 64, DEEP = 16 };

static struct {
    int on[KINDS], fails; /* fails: the kind of activity that cannot be enabled */
    sgt_cupti_callback callback;
    void *ctx;
    uint64_t (*now)(void);
    sgt_cupti_request request;
    sgt_cupti_complete complete;
    uint8_t *buffer;
    size_t room, used, dropped, buffers;
    uint64_t stack[DEEP];
    int depth;
    int subscribers;
} fake;

static size_t size_of(int kind)
{
    switch (kind) {
    case SGT_CUPTI_KERNEL:
        /* the library's record may be longer than the part that is known */
        return sizeof(sgt_cupti_kernel) + 64;
    case SGT_CUPTI_MEMCPY: return sizeof(sgt_cupti_copy) + 24;
    case SGT_CUPTI_MEMSET: return sizeof(sgt_cupti_fill) + 16;
    case SGT_CUPTI_MARKER: return sizeof(sgt_cupti_marker) + 8;
    case SGT_CUPTI_EXTERNAL_CORRELATION: return sizeof(sgt_cupti_correlation);
    case 33: return 40; /* a kind that was not enabled */
    default: return sizeof(sgt_cupti_call);
    }
}

static void hand_back(void)
{
    if (fake.buffer) fake.complete(NULL, 0, fake.buffer, fake.room, fake.used);
    fake.buffer = NULL;
}

static void emit(const void *record, size_t n)
{
    int kind;
    memcpy(&kind, record, sizeof kind);
    if (!fake.on[kind]) return;
    if (fake.buffer && fake.room - fake.used < size_of(kind)) hand_back();
    if (!fake.buffer) {
        size_t most = 7;
        fake.request(&fake.buffer, &fake.room, &most);
        cr_assert(fake.buffer && most == 0 && (uintptr_t)fake.buffer % 8 == 0);
        fake.used = 0;
        fake.buffers++;
    }
    memset(fake.buffer + fake.used, 0xee, size_of(kind));
    memcpy(fake.buffer + fake.used, record, n);
    fake.used += size_of(kind);
}
#define EMIT(...) emit(&(__VA_ARGS__), sizeof(__VA_ARGS__))

/* ---- the table ---- */

static sgt_cupti_result result_string(sgt_cupti_result rc, const char **text)
{
    static char buffer[32];
    snprintf(buffer, sizeof buffer, "ERROR_%d", rc);
    *text = buffer;
    return 0;
}

static sgt_cupti_result subscribe(sgt_cupti_subscriber *s, sgt_cupti_callback f, void *ctx)
{
    if (fake.subscribers) return SGT_CUPTI_MULTIPLE_SUBSCRIBERS;
    fake.subscribers++;
    fake.callback = f;
    fake.ctx = ctx;
    *s = NULL;
    return 0;
}

static sgt_cupti_result unsubscribe(sgt_cupti_subscriber s)
{
    (void)s;
    fake.subscribers--;
    return 0;
}

static sgt_cupti_result enable_callback(uint32_t on, sgt_cupti_subscriber s,
                                        sgt_cupti_domain domain, sgt_cupti_callback_id which)
{
    (void)s;
    cr_expect(on == 1 && domain == SGT_CUPTI_DOMAIN_RESOURCE);
    cr_expect(which == SGT_CUPTI_NODE_CREATED || which == SGT_CUPTI_NODE_CLONED);
    return 0;
}

static sgt_cupti_result callback_name(sgt_cupti_domain domain, uint32_t which, const char **name)
{
    static const char *const runtime[] = {"cudaLaunchKernel_v7000", "cudaStreamSynchronize_v3020",
                                          "cudaGraphLaunch_v10000", "cudaMemcpyAsync_ptsz_v7000",
                                          "cudaMemcpy_v3020"};
    static const char *const driver[] = {"cuLaunchKernelEx", "cuStreamSynchronize", "cuMy_value"};
    *name = domain == SGT_CUPTI_DOMAIN_RUNTIME ? runtime[which] : driver[which];
    return 0;
}

static sgt_cupti_result node_id(sgt_cupti_node node, uint64_t *id)
{
    *id = (uint64_t)(uintptr_t)node;
    return 0;
}

static sgt_cupti_result set_clock(uint64_t (*now)(void))
{
    fake.now = now;
    return 0;
}

static sgt_cupti_result set_buffers(sgt_cupti_request request, sgt_cupti_complete complete)
{
    fake.request = request;
    fake.complete = complete;
    return 0;
}

static sgt_cupti_result enable(sgt_cupti_kind kind)
{
    cr_expect(fake.now, "the clock comes before anything is switched on");
    if (kind == fake.fails) return SGT_CUPTI_INSUFFICIENT_PRIVILEGES;
    fake.on[kind] = 1;
    return 0;
}

static sgt_cupti_result disable(sgt_cupti_kind kind)
{
    fake.on[kind] = 0;
    return 0;
}

static sgt_cupti_result flush(uint32_t flag)
{
    cr_expect_eq(flag, SGT_CUPTI_FLUSH_FORCED);
    hand_back();
    return 0;
}

static sgt_cupti_result next_record(uint8_t *buffer, size_t valid, sgt_cupti_record **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + size_of((*record)->kind) : buffer;
    if (next >= buffer + valid) return SGT_CUPTI_MAX_LIMIT_REACHED;
    *record = (sgt_cupti_record *)(void *)next;
    return 0;
}

static sgt_cupti_result dropped(sgt_cupti_context context, uint32_t stream, size_t *records)
{
    (void)context;
    (void)stream;
    *records = fake.dropped;
    fake.dropped = 0;
    return 0;
}

static sgt_cupti_result push(sgt_cupti_external kind, uint64_t id)
{
    cr_assert(kind == SGT_CUPTI_CUSTOM0 && fake.depth < DEEP);
    fake.stack[fake.depth++] = id;
    return 0;
}

static sgt_cupti_result pop(sgt_cupti_external kind, uint64_t *last)
{
    cr_assert(kind == SGT_CUPTI_CUSTOM0 && fake.depth > 0);
    *last = fake.stack[--fake.depth];
    return 0;
}

static const sgt_cupti_api table = {.result_string = result_string,
                                    .subscribe = subscribe,
                                    .unsubscribe = unsubscribe,
                                    .enable_callback = enable_callback,
                                    .callback_name = callback_name,
                                    .node_id = node_id,
                                    .set_clock = set_clock,
                                    .set_buffers = set_buffers,
                                    .enable = enable,
                                    .disable = disable,
                                    .flush = flush,
                                    .next_record = next_record,
                                    .dropped = dropped,
                                    .push = push,
                                    .pop = pop};

#endif
