/* profiler.cpp: CUPTI on a CPU. It reports the work that streams.cpp does, with its times and the
 * name with which it was put on its stream. "copy" and "fill" are reported as such, everything else
 * as a kernel. With SGT_HOST_CUPTI=refuse in the environment it records nothing, like a machine
 * whose counters only root may read. With SGT_HOST_CUPTI=overlap all work takes 1 us, and begins
 * 0.75 us after the one before it. With SGT_HOST_CUPTI=lose it drops the third record. */
#include <stdlib.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/kernels/fake_cupti.h"
#include "tests/kernels/host/streams.h"

/* node n of a captured graph is node n + CLONES of the running one */
static constexpr uint64_t CLONES = 1 << 20;

static std::vector<cudaStream_t> streams; /* by number */
static uint64_t nodes, works;             /* works: number of works recorded so far */

static bool asked_to(const char *what)
{
    const char *text = getenv("SGT_HOST_CUPTI");
    return text && !strcmp(text, what);
}

/* Return a kernel's name without the parentheses and template arguments of DEV_LAUNCH's
 * "(norm_kernel<T, 4>)". */
static const char *plain(const char *name)
{
    static std::set<std::string> names;
    name += strspn(name, "(");
    return names.emplace(name, strcspn(name, "<)")).first->c_str();
}

static uint32_t stream_number(cudaStream_t s)
{
    auto at = std::find(streams.begin(), streams.end(), s);
    if (at == streams.end()) at = streams.insert(at, s);
    return (uint32_t)(at - streams.begin()) + 7;
}

template <class T>
static void emit(T record, int kind, uint32_t stream, uint64_t from, uint64_t node)
{
    record.kind = kind;
    record.stream = stream;
    record.start = from;
    record.end = fake.now();
    if (asked_to("overlap")) record.start = 1000 + 750 * works++, record.end = record.start + 1000;
    record.node = node;
    if (asked_to("lose") && ++works == 3) fake.dropped++;
    else fake_emit(&record, sizeof record);
}

static void emit_work(const char *name, uint32_t stream, uint64_t from, uint64_t node)
{
    sgt_cupti_launch launch = {};
    launch.name = plain(name);
    if (!strcmp(name, "copy")) emit(sgt_cupti_move{}, SGT_CUPTI_MEMCPY, stream, from, node);
    else if (!strcmp(name, "fill")) emit(sgt_cupti_move{}, SGT_CUPTI_MEMSET, stream, from, node);
    else emit(launch, SGT_CUPTI_KERNEL, stream, from, node);
}

std::function<void()> host::watched(cudaStream_t s, bool captured, std::function<void()> work,
                                    const char *name)
{
    fake.fails = asked_to("refuse") ? SGT_CUPTI_KERNEL : 0;
    /* a graph that was captured without recording may run while records are kept */
    if (!fake.callback && !captured) return work;
    uint64_t node = captured ? ++nodes + CLONES : 0;
    uint32_t stream = stream_number(s);
    if (captured && fake.callback) {
        fake_node(SGT_CUPTI_NODE_CREATED, nodes, 0);
        fake_node(SGT_CUPTI_NODE_CLONED, node, nodes);
    }
    return [=] {
        uint64_t from = fake.on[SGT_CUPTI_KERNEL] ? fake.now() : 0;
        work();
        if (from) faulty([=] { emit_work(name, stream, from, node); }, "cupti")();
    };
}
