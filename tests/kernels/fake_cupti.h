/* fake_cupti.h: a stand-in for CUPTI. cupti.c gets it instead of the library in programs that are
 * linked with a wrapper of sgt_library_load. The stand-in stores the records that the test emits.
 * It requests buffers as CUPTI does, and returns a buffer when it is flushed or the buffer is full.
 * Each file that includes this header (test_cupti.c, tests/kernels/host/profiler.cpp) has a state
 * of its own. */
#ifndef SGT_TESTS_FAKE_CUPTI_H
#define SGT_TESTS_FAKE_CUPTI_H

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/cupti.h"
#include "loader/base/library.h"

enum { FAKE_KINDS = 16 };

static struct {
    int on[FAKE_KINDS], fails; /* fails: kind of activity that cannot be enabled */
    sgt_cupti_callback callback;
    void *ctx;
    uint64_t (*now)(void);
    sgt_cupti_request request;
    sgt_cupti_complete complete;
    uint8_t *buffer;
    size_t room, used, dropped, buffers;
    int subscribers;
} fake;

static size_t fake_size(int kind)
{
    /* CUPTI's records may be longer than the structs that sgt declares. */
    return kind == SGT_CUPTI_KERNEL ? sizeof(sgt_cupti_launch) + 64 : sizeof(sgt_cupti_move) + 24;
}

static void fake_hand_back(void)
{
    if (fake.buffer) fake.complete(NULL, 0, fake.buffer, fake.room, fake.used);
    fake.buffer = NULL;
}

/* Emit a record of n bytes if its kind of activity is enabled. */
static void fake_emit(const void *record, size_t n)
{
    int kind;
    memcpy(&kind, record, sizeof kind);
    if (!fake.on[kind]) return;
    if (fake.buffer && fake.room - fake.used < fake_size(kind)) fake_hand_back();
    if (!fake.buffer) {
        size_t most = 7;
        fake.request(&fake.buffer, &fake.room, &most);
        assert(fake.buffer && most == 0 && (uintptr_t)fake.buffer % 8 == 0);
        fake.used = 0;
        fake.buffers++;
    }
    memset(fake.buffer + fake.used, 0xee, fake_size(kind));
    memcpy(fake.buffer + fake.used, record, n);
    fake.used += fake_size(kind);
}

/* Report a graph node to the callback. A node's id is used as its address. */
static void fake_node(int which, uintptr_t id, uintptr_t original)
{
    sgt_cupti_graph_data data = {NULL, NULL, (sgt_cupti_node)id, (sgt_cupti_node)original};
    sgt_cupti_resource resource = {NULL, NULL, &data};
    fake.callback(fake.ctx, SGT_CUPTI_DOMAIN_RESOURCE, (sgt_cupti_callback_id)which, &resource);
}

/* ---- CUPTI's functions ---- */

static sgt_cupti_result fake_version(uint32_t *version)
{
    *version = 130001;
    return 0;
}

static sgt_cupti_result fake_result_string(sgt_cupti_result rc, const char **text)
{
    static char buffer[32];
    snprintf(buffer, sizeof buffer, "ERROR_%d", rc);
    *text = buffer;
    return 0;
}

static sgt_cupti_result fake_subscribe(sgt_cupti_subscriber *s, sgt_cupti_callback f, void *ctx)
{
    if (fake.subscribers) return SGT_CUPTI_MULTIPLE_SUBSCRIBERS;
    fake.subscribers++;
    fake.callback = f;
    fake.ctx = ctx;
    *s = (sgt_cupti_subscriber)(void *)&fake;
    return 0;
}

static sgt_cupti_result fake_unsubscribe(sgt_cupti_subscriber s)
{
    assert((void *)s == (void *)&fake);
    fake.subscribers--;
    fake.callback = NULL;
    return 0;
}

static sgt_cupti_result fake_enable_callback(uint32_t on, sgt_cupti_subscriber s,
                                             sgt_cupti_domain domain, sgt_cupti_callback_id which)
{
    assert(on == 1 && (void *)s == (void *)&fake && domain == SGT_CUPTI_DOMAIN_RESOURCE);
    assert(which == SGT_CUPTI_NODE_CREATED || which == SGT_CUPTI_NODE_CLONED);
    return 0;
}

static sgt_cupti_result fake_node_id(sgt_cupti_node node, uint64_t *id)
{
    *id = (uint64_t)(uintptr_t)node;
    return 0;
}

static sgt_cupti_result fake_set_clock(uint64_t (*now)(void))
{
    fake.now = now;
    return 0;
}

static sgt_cupti_result fake_set_buffers(sgt_cupti_request request, sgt_cupti_complete complete)
{
    fake.request = request;
    fake.complete = complete;
    return 0;
}

static sgt_cupti_result fake_enable(sgt_cupti_kind kind)
{
    assert(fake.now && fake.complete);
    if (kind == fake.fails) return SGT_CUPTI_INSUFFICIENT_PRIVILEGES;
    fake.on[kind] = 1;
    return 0;
}

static sgt_cupti_result fake_disable(sgt_cupti_kind kind)
{
    fake.on[kind] = 0;
    return 0;
}

static sgt_cupti_result fake_flush(uint32_t flag)
{
    assert(flag == SGT_CUPTI_FLUSH_FORCED);
    fake_hand_back();
    return 0;
}

static sgt_cupti_result fake_next_record(uint8_t *buffer, size_t valid, sgt_cupti_record **record)
{
    enum { MAX_LIMIT_REACHED = 12 };
    uint8_t *next = *record ? (uint8_t *)*record + fake_size((*record)->kind) : buffer;
    if (next >= buffer + valid) return MAX_LIMIT_REACHED;
    *record = (sgt_cupti_record *)(void *)next;
    return 0;
}

static sgt_cupti_result fake_dropped(sgt_cupti_context context, uint32_t stream, size_t *records)
{
    (void)context;
    (void)stream;
    *records = fake.dropped;
    fake.dropped = 0;
    return 0;
}

/* ---- in the library's place ---- */

#define FAKE(name, f)             \
    {                             \
        name, (void (*)(void))(f) \
    }
static const struct {
    const char *name;
    void (*f)(void);
} fake_functions[] = {FAKE("cuptiGetVersion", fake_version),
                      FAKE("cuptiGetResultString", fake_result_string),
                      FAKE("cuptiSubscribe", fake_subscribe),
                      FAKE("cuptiUnsubscribe", fake_unsubscribe),
                      FAKE("cuptiEnableCallback", fake_enable_callback),
                      FAKE("cuptiGetGraphNodeId", fake_node_id),
                      FAKE("cuptiActivityRegisterTimestampCallback", fake_set_clock),
                      FAKE("cuptiActivityRegisterCallbacks", fake_set_buffers),
                      FAKE("cuptiActivityEnable", fake_enable),
                      FAKE("cuptiActivityDisable", fake_disable),
                      FAKE("cuptiActivityFlushAll", fake_flush),
                      FAKE("cuptiActivityGetNextRecord", fake_next_record),
                      FAKE("cuptiActivityGetNumDroppedRecords", fake_dropped)};

#ifdef __cplusplus
extern "C" {
#endif
/* weak, because this function exists only if the linker wraps sgt_library_load */
int __real_sgt_library_load(sgt_library *l, sgt_error *err) __attribute__((weak));
int __wrap_sgt_library_load(sgt_library *l, sgt_error *err);
#ifdef __cplusplus
}
#endif

int __wrap_sgt_library_load(sgt_library *l, sgt_error *err)
{
    if (strcmp(l->what, "CUPTI") != 0) return __real_sgt_library_load(l, err);
    for (const sgt_symbol *s = l->symbols; s->name; s++) {
        size_t i = 0;
        while (strcmp(fake_functions[i].name, s->name) != 0) i++;
        memcpy(s->to, &fake_functions[i].f, sizeof fake_functions[i].f);
    }
    return SGT_OK;
}

#endif
