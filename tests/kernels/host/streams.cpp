/* streams.cpp: the queues of streams, and which stream runs next. */
#include "tests/kernels/host/streams.h"

#include <time.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "tests/kernels/host/memory.h"
#include "tests/kernels/host/state.h"

using Work = std::function<void()>;

/* One record of an event. Later waits use it even if the event is recorded again. */
struct Mark {
    cudaStream_t stream;
    double seconds; /* time at which the event occurred; negative: not yet */
};

/* Work in a graph, with the nodes that must run before it. These are earlier in the list. */
struct Node {
    Work work;
    std::vector<size_t> after;
};

struct Capture {
    std::vector<Node> nodes;
    cudaStream_t origin;
    bool ended;
};

/* An entry of a queue. It is one of: work, the record of an event, the wait for one, a run of a
 * graph. */
struct Item {
    Work work;
    std::shared_ptr<Mark> record, wait;
    std::shared_ptr<Capture> graph;
    std::vector<bool> done; /* (nodes of the graph): done in this run */
};

struct CUstream_st {
    std::deque<Item> queue;
    std::shared_ptr<Capture> capture; /* capture that the stream takes part in */
    std::vector<size_t> last;         /* nodes that must run before its next node */
};

struct CUevent_st {
    bool timed;
    std::shared_ptr<Mark> mark;
    /* If the event was recorded in a capture, these replace `mark`: the capture, and the nodes
     * before the event. */
    std::shared_ptr<Capture> capture;
    std::vector<size_t> nodes;
};

struct CUgraphExec_st {
    std::shared_ptr<Capture> graph;
};

namespace host
{

static std::vector<cudaStream_t> streams;
static std::mt19937 lots;
static bool seeded;

void schedule(unsigned seed)
{
    options.seed = seed;
    seeded = false;
}

static size_t draw(size_t n)
{
    if (!seeded) lots.seed(options.seed * 7919 + 1);
    seeded = true;
    return options.seed == 0 ? 0 : options.seed == 1 ? n - 1 : lots() % n;
}

/* ---- running work ---- */

double event_clock = -1, event_late;

static double now()
{
    struct timespec t;
    if (event_clock >= 0) return event_clock;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + event_late;
}

static void run_node(Item &item)
{
    std::vector<size_t> ready;
    const std::vector<Node> &nodes = item.graph->nodes;
    for (size_t i = 0; i < nodes.size(); i++) {
        bool blocked = item.done[i];
        for (size_t j : nodes[i].after) blocked = blocked || !item.done[j];
        if (!blocked) ready.push_back(i);
    }
    size_t i = ready[draw(ready.size())];
    item.done[i] = true;
    nodes[i].work();
}

static bool blocked(cudaStream_t s)
{
    return s->queue.empty() || (s->queue.front().wait && s->queue.front().wait->seconds < 0);
}

/* Do the smallest part of a stream's next entry. */
static void step(cudaStream_t s)
{
    Item &item = s->queue.front();
    if (item.graph && std::count(item.done.begin(), item.done.end(), false)) {
        run_node(item);
        return;
    }
    Item whole = std::move(item);
    s->queue.pop_front();
    if (whole.record) whole.record->seconds = now();
    if (whole.work) whole.work();
}

/* Return the stream that runs next while the host waits for `wanted`. */
static cudaStream_t turn(cudaStream_t wanted)
{
    std::vector<cudaStream_t> able;
    size_t hops = 0;
    if (options.seed == 0) {
        while (blocked(wanted) && !wanted->queue.empty() && hops++ < streams.size())
            wanted = wanted->queue.front().wait->stream;
        if (!blocked(wanted)) return wanted;
    }
    for (cudaStream_t s : streams)
        if (!blocked(s) && (options.seed != 1 || s != wanted)) able.push_back(s);
    if (able.empty() && !blocked(wanted)) return wanted;
    if (able.empty()) fail("deadlock: every stream waits for an event that another would record");
    return able[draw(able.size())];
}

static size_t queued()
{
    size_t n = 0;
    for (cudaStream_t s : streams) n += s->queue.size();
    return n;
}

static void no_capture(const char *what)
{
    if (capturing()) fail("%s while a stream captures", what);
}

void finish(cudaStream_t s)
{
    no_capture("waited for a stream");
    MemoryOpen open;
    if (s)
        while (!s->queue.empty()) step(turn(s));
    else
        for (cudaStream_t each : streams) finish(each);
}

/* ---- putting work on a stream ---- */

static void put(cudaStream_t s, Item item) { s->queue.push_back(std::move(item)); }

void enqueue(cudaStream_t s, Work work, const char *name)
{
    if (refused(name)) return;
    work = watched(s, s && s->capture, faulty(std::move(work), name), name);
    if (!s) {
        no_capture("work on the default stream");
        if (queued())
            fail("work on the default stream, which does not wait for the work of other streams");
        MemoryOpen open;
        work();
    } else if (s->capture) {
        s->capture->nodes.push_back(Node{std::move(work), s->last});
        s->last.assign(1, s->capture->nodes.size() - 1);
    } else {
        Item item = {};
        item.work = std::move(work);
        put(s, std::move(item));
    }
}

cudaStream_t stream_new()
{
    streams.push_back(new CUstream_st());
    return streams.back();
}

void stream_free(cudaStream_t s)
{
    if (!s) return;
    finish(s);
    streams.erase(std::find(streams.begin(), streams.end(), s));
    delete s;
}

/* ---- events ---- */

cudaEvent_t event_new(bool timed) { return new CUevent_st{timed, nullptr, nullptr, {}}; }

void event_free(cudaEvent_t e) { delete e; }

void record(cudaEvent_t e, cudaStream_t s)
{
    *e = CUevent_st{e->timed, nullptr, nullptr, {}};
    if (s && s->capture) {
        e->capture = s->capture;
        e->nodes = s->last;
        return;
    }
    e->mark = std::make_shared<Mark>(Mark{s, -1});
    if (!s) {
        auto mark = e->mark;
        enqueue(s, [mark] { mark->seconds = now(); });
        return;
    }
    Item item = {};
    item.record = e->mark;
    put(s, std::move(item));
}

static void wait_in_graph(cudaStream_t s, cudaEvent_t e)
{
    if (!e->capture || e->capture->ended)
        fail("a stream that captures waits for an event from outside the graph");
    if (s->capture && s->capture != e->capture)
        fail("a stream that captures waits for an event of another graph");
    if (!s->capture) s->last.clear(); /* of an earlier graph */
    s->capture = e->capture;
    s->last.insert(s->last.end(), e->nodes.begin(), e->nodes.end());
}

void wait(cudaStream_t s, cudaEvent_t e)
{
    if (!s) fail("the default stream waits for an event");
    if (s->capture || (e->capture && !e->capture->ended)) {
        wait_in_graph(s, e);
        return;
    }
    if (e->capture) fail("a wait, outside a graph, for an event recorded in it");
    if (!e->mark) return;
    Item item = {};
    item.wait = e->mark;
    put(s, std::move(item));
}

static bool has_come(cudaEvent_t e, const char *what)
{
    no_capture(what);
    if (e->capture) fail("%s that was recorded in a graph", what);
    return !e->mark || e->mark->seconds >= 0;
}

bool event_finish(cudaEvent_t e)
{
    if (has_come(e, "waited for an event")) return false;
    auto mark = e->mark;
    MemoryOpen open;
    while (mark->seconds < 0) step(turn(mark->stream));
    return true;
}

double event_seconds(cudaEvent_t e)
{
    if (!e->timed) fail("asked for the time of an event made without one");
    return has_come(e, "asked for the time of an event") && e->mark ? e->mark->seconds : -1;
}

/* ---- graphs ---- */

bool capturing()
{
    for (cudaStream_t s : streams)
        if (s->capture) return true;
    return false;
}

void capture(cudaStream_t s)
{
    if (!s) fail("the default stream cannot capture");
    no_capture("a capture begins");
    s->capture = std::make_shared<Capture>();
    s->capture->origin = s;
    s->last.clear();
}

/* Return whether all nodes of `from` are nodes of `to` or run before them. */
static bool joined(const Capture &c, const std::vector<size_t> &from, const std::vector<size_t> &to)
{
    std::vector<bool> covered(c.nodes.size());
    for (size_t i : to) covered[i] = true;
    for (size_t i = c.nodes.size(); i-- > 0;)
        if (covered[i])
            for (size_t j : c.nodes[i].after) covered[j] = true;
    return std::all_of(from.begin(), from.end(), [&](size_t i) { return covered[i]; });
}

cudaGraphExec_t capture_end(cudaStream_t s)
{
    if (!s->capture || s->capture->origin != s)
        fail("the end of a capture that did not begin on this stream");
    for (cudaStream_t other : streams)
        if (other->capture == s->capture && !joined(*s->capture, other->last, s->last))
            fail("a capture ends while another stream has not joined again");
    std::shared_ptr<Capture> c = s->capture;
    for (cudaStream_t other : streams)
        if (other->capture == c) other->capture.reset();
    c->ended = true;
    return new CUgraphExec_st{c};
}

void graph_run(cudaGraphExec_t g, cudaStream_t s)
{
    if (!s || s->capture) fail("a graph runs on the default stream, or on one that captures");
    Item item = {};
    item.graph = g->graph;
    item.done.resize(g->graph->nodes.size());
    put(s, std::move(item));
}

void graph_free(cudaGraphExec_t g) { delete g; }

} /* namespace host */
