/* cupti_api.cpp: kernels/cuda/cupti_api.h on a CPU. This CUPTI reports what streams.cpp does, when
 * it is done, under the name that the work was put on its stream with. "copy" and "fill" are
 * reported as such, everything else as a kernel. With SGT_HOST_CUPTI=refuse in the environment it
 * records nothing, like a machine whose counters only root may read. With SGT_HOST_CUPTI=overlap all
 * work takes 1 us, and begins 0.75 us after the one before it. */
#include "kernels/cuda/cupti_api.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/kernels/host/streams.h"

/* node n of a captured graph is node n + CLONES of the running one */
static constexpr uint64_t CLONES = 1 << 20;

static struct {
    bool on[64];
    sgt_cupti_callback callback; /* NULL: nothing is recorded */
    void *ctx;
    uint64_t (*now)();
    sgt_cupti_request request;
    sgt_cupti_complete complete;
    uint8_t *buffer;
    size_t room, used;
    std::vector<uint64_t> ranges;      /* ranges pushed */
    std::vector<cudaStream_t> streams; /* by number */
    std::set<std::string> names;       /* of kernels */
    uint64_t nodes, works;             /* works: those recorded so far */
    uint32_t calls, graph_call;        /* number of calls so far; the call whose graph runs */
} cupti;

static bool asked_to(const char *what)
{
    const char *text = getenv("SGT_HOST_CUPTI");
    return text && !strcmp(text, what);
}

/* ---- records ---- */

static size_t size_of(int kind)
{
    switch (kind) {
    case SGT_CUPTI_KERNEL: return sizeof(sgt_cupti_kernel);
    case SGT_CUPTI_MEMCPY: return sizeof(sgt_cupti_copy);
    case SGT_CUPTI_MEMSET: return sizeof(sgt_cupti_fill);
    case SGT_CUPTI_EXTERNAL_CORRELATION: return sizeof(sgt_cupti_correlation);
    default: return sizeof(sgt_cupti_call);
    }
}

static void hand_back()
{
    if (cupti.buffer) cupti.complete(nullptr, 0, cupti.buffer, cupti.room, cupti.used);
    cupti.buffer = nullptr;
}

template <class T> static void emit(const T &record)
{
    if (!cupti.on[record.kind]) return;
    if (cupti.buffer && cupti.room - cupti.used < sizeof record) hand_back();
    if (!cupti.buffer) {
        size_t most;
        cupti.request(&cupti.buffer, &cupti.room, &most);
        cupti.used = 0;
    }
    if (!cupti.buffer) return;
    memcpy(cupti.buffer + cupti.used, &record, sizeof record);
    cupti.used += sizeof record;
}

/* Record a call of the host and the range that contains it. */
static uint32_t called(uint32_t which)
{
    uint32_t number = ++cupti.calls;
    if (!cupti.ranges.empty()) {
        sgt_cupti_correlation c = {};
        c.kind = SGT_CUPTI_EXTERNAL_CORRELATION;
        c.external_kind = SGT_CUPTI_CUSTOM0;
        c.external = cupti.ranges.back();
        c.correlation = number;
        emit(c);
    }
    sgt_cupti_call call = {};
    call.kind = SGT_CUPTI_RUNTIME;
    call.callback = which;
    call.start = call.end = cupti.now();
    call.correlation = number;
    emit(call);
    return number;
}

template <class T>
static void emit_work(T record, int kind, uint32_t stream, uint64_t from, uint32_t call,
                      uint64_t node)
{
    record.kind = kind;
    record.stream = stream;
    record.start = from;
    record.end = cupti.now();
    if (asked_to("overlap"))
        record.start = 1000 + 750 * cupti.works++, record.end = record.start + 1000;
    record.correlation = call;
    record.node = node;
    emit(record);
}

/* Return a kernel's name without what DEV_LAUNCH has around it: "(norm_kernel<T, 4>)". */
static const char *plain(const char *name)
{
    name += strspn(name, "(");
    return cupti.names.emplace(name, strcspn(name, "<)")).first->c_str();
}

static uint32_t stream_number(cudaStream_t s)
{
    auto at = std::find(cupti.streams.begin(), cupti.streams.end(), s);
    if (at == cupti.streams.end()) at = cupti.streams.insert(at, s);
    return (uint32_t)(at - cupti.streams.begin()) + 7;
}

static void tell_node(uint32_t which, uint64_t node, uint64_t original)
{
    sgt_cupti_graph_data data = {};
    data.node = (sgt_cupti_node)node;
    data.original_node = (sgt_cupti_node)original;
    sgt_cupti_resource resource = {};
    resource.descriptor = &data;
    cupti.callback(cupti.ctx, SGT_CUPTI_DOMAIN_RESOURCE, which, &resource);
}

namespace host
{

std::function<void()> watched(cudaStream_t s, bool captured, std::function<void()> work,
                              const char *name)
{
    /* a graph that was captured without recording may run while records are kept */
    if (!cupti.callback && !captured) return work;
    uint64_t node = captured ? ++cupti.nodes + CLONES : 0;
    uint32_t call = captured ? 0 : called(0), stream = stream_number(s);
    if (captured && cupti.callback) {
        tell_node(SGT_CUPTI_NODE_CREATED, cupti.nodes, 0);
        tell_node(SGT_CUPTI_NODE_CLONED, node, cupti.nodes);
    }
    return [=] {
        if (!cupti.on[SGT_CUPTI_KERNEL]) {
            work();
            return;
        }
        uint64_t from = cupti.now();
        work();
        uint32_t by = node ? cupti.graph_call : call;
        sgt_cupti_kernel k = {};
        k.name = plain(name);
        std::fill_n(k.grid, 3, 1);
        std::fill_n(k.block, 3, 1);
        if (!strcmp(name, "copy"))
            emit_work(sgt_cupti_copy{}, SGT_CUPTI_MEMCPY, stream, from, by, node);
        else if (!strcmp(name, "fill"))
            emit_work(sgt_cupti_fill{}, SGT_CUPTI_MEMSET, stream, from, by, node);
        else emit_work(k, SGT_CUPTI_KERNEL, stream, from, by, node);
    };
}

uint32_t watched_graph() { return cupti.callback ? called(1) : 0; }
void watched_node(uint32_t call) { cupti.graph_call = call; }

} /* namespace host */

/* ---- the table ---- */

static sgt_cupti_result subscribe(sgt_cupti_subscriber *s, sgt_cupti_callback f, void *ctx)
{
    if (cupti.callback) return SGT_CUPTI_MULTIPLE_SUBSCRIBERS;
    cupti.callback = f;
    cupti.ctx = ctx;
    *s = nullptr;
    return 0;
}

static sgt_cupti_result unsubscribe(sgt_cupti_subscriber)
{
    cupti.callback = nullptr;
    return 0;
}

static sgt_cupti_result callback_name(sgt_cupti_domain, uint32_t which, const char **name)
{
    *name = which ? "cudaGraphLaunch_v10000" : "cudaLaunchKernel_v7000";
    return 0;
}

static sgt_cupti_result flush(uint32_t)
{
    host::faulty(hand_back, "cupti")();
    return 0;
}

static sgt_cupti_result next_record(uint8_t *buffer, size_t valid, sgt_cupti_record **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + size_of((*record)->kind) : buffer;
    if (next >= buffer + valid) return SGT_CUPTI_MAX_LIMIT_REACHED;
    *record = (sgt_cupti_record *)next;
    return 0;
}

const sgt_cupti_api *sgt_cupti_load(sgt_error *)
{
    static sgt_cupti_api t;
    t.version = [](uint32_t *version) { return *version = 130001, 0; };
    t.result_string = [](sgt_cupti_result, const char **text) {
        return *text = "refused by the host run", 0;
    };
    t.subscribe = subscribe;
    t.unsubscribe = unsubscribe;
    t.enable_callback = [](uint32_t, sgt_cupti_subscriber, sgt_cupti_domain,
                           sgt_cupti_callback_id) { return 0; };
    t.callback_name = callback_name;
    t.node_id = [](sgt_cupti_node node, uint64_t *id) { return *id = (uint64_t)node, 0; };
    t.set_clock = [](uint64_t (*now)()) { return cupti.now = now, 0; };
    t.set_buffers = [](sgt_cupti_request r, sgt_cupti_complete c) {
        return cupti.request = r, cupti.complete = c, 0;
    };
    t.enable = [](sgt_cupti_kind kind) -> sgt_cupti_result {
        if (asked_to("refuse")) return SGT_CUPTI_INSUFFICIENT_PRIVILEGES;
        return cupti.on[kind] = true, 0;
    };
    t.disable = [](sgt_cupti_kind kind) { return cupti.on[kind] = false, 0; };
    t.flush = flush;
    t.next_record = next_record;
    t.dropped = [](sgt_cupti_context, uint32_t, size_t *records) { return *records = 0, 0; };
    t.push = [](sgt_cupti_external, uint64_t id) { return cupti.ranges.push_back(id), 0; };
    t.pop = [](sgt_cupti_external, uint64_t *last) {
        return *last = cupti.ranges.back(), cupti.ranges.pop_back(), 0;
    };
    return &t;
}
