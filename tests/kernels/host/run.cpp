/* run.cpp: fibers, schedules, collectives, barriers, launches. */
#include "tests/kernels/host/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "tests/kernels/host/blocks.h"
#include "tests/kernels/host/fiber.h"

namespace host
{

Thread *current;
uint3 block_index;
dim3 block_size, grid_size;
Options options;
Counts counts;
Order order[MAX_WARPS];
Thread threads[MAX_THREADS];
int warp_count, thread_count;
const char *kernel_name = "";
std::mt19937 random_bits;
bool late_copies;
Edges edges;

/* The point where the lanes of a warp, or the threads of a warpgroup, wait for each other. */
struct Collective {
    int arrived;
    Op op;
    const char *name;
    void *args[GROUP];
    int who[GROUP];
};

struct Warp {
    Collective collective;
    int ready[LANES], ready_count; /* threads that can run */
};

struct Barrier {
    int arrived, waiting_count;
    int waiting[MAX_THREADS];
    uint32_t clock[MAX_WARPS];
    bool warps[MAX_WARPS];
};

enum Schedule { LOW_WARPS_FIRST, HIGH_WARPS_FIRST, RANDOM_THREADS, RANDOM_WARPS };
enum { BARRIERS = 16, SHOWN = 5, MAX_SPINS = 4000000 };

static Warp warps[MAX_WARPS];
static Collective groups[MAX_THREADS / GROUP];
static Barrier barriers[BARRIERS];
static int priority[MAX_WARPS];
static Schedule schedule;
static int live, runnable;
static long spins;
static void (*kernel_body)(void *);
static void *kernel_arg;

static void tell(const char *fmt, va_list args)
{
    fflush(stdout);
    if (*kernel_name)
        fprintf(stderr, "  kernel %s, block (%u, %u, %u), thread %d: ", kernel_name, block_index.x,
                block_index.y, block_index.z, current ? current->index : -1);
    else fprintf(stderr, "  device: ");
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "\n");
}

void fail(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    tell(fmt, args);
    va_end(args);
    current = nullptr;
    exit(1);
}

void report(long *count, const char *fmt, ...)
{
    if ((*count)++ >= SHOWN) return;
    va_list args;
    va_start(args, fmt);
    tell(fmt, args);
    va_end(args);
}

/* ---- scheduling ---- */

static void make_ready(int thread)
{
    Warp &w = warps[threads[thread].warp];
    w.ready[w.ready_count++] = thread;
    runnable++;
}

static int pick_warp(bool at_random)
{
    if (at_random || schedule == RANDOM_THREADS) {
        int k = (int)(random_bits() % (unsigned)runnable);
        for (int w = 0;; k -= warps[w++].ready_count)
            if (k < warps[w].ready_count) return w;
    }
    for (int i = 0;; i++)
        if (warps[priority[i]].ready_count) return priority[i];
}

static Thread *pick(bool at_random)
{
    Warp &w = warps[pick_warp(at_random)];
    int i = (int)(random_bits() % (unsigned)w.ready_count);
    if (!at_random && schedule == LOW_WARPS_FIRST) i = w.ready_count - 1;
    if (!at_random && schedule == HIGH_WARPS_FIRST) i = 0;
    int thread = w.ready[i];
    w.ready[i] = w.ready[--w.ready_count];
    runnable--;
    return &threads[thread];
}

static void deadlock()
{
    for (int w = 0; w < warp_count; w++)
        if (warps[w].collective.arrived)
            printf("  warp %d: %d of %d lanes at %s\n", w, warps[w].collective.arrived, LANES,
                   warps[w].collective.name);
    for (int g = 0; g < thread_count / GROUP; g++)
        if (groups[g].arrived)
            printf("  group %d: %d of %d at %s\n", g, groups[g].arrived, GROUP, groups[g].name);
    for (int b = 0; b < BARRIERS; b++)
        if (barriers[b].arrived)
            printf("  barrier %d: %d of %d live threads\n", b, barriers[b].arrived, live);
    fail("deadlock: nobody can go on");
}

/* Switch to another fiber. The current one is queued somewhere or has ended. */
static void next_thread(bool at_random)
{
    Thread *me = current;
    if (!runnable && live) deadlock();
    current = runnable ? pick(at_random) : nullptr;
    if (current != me) fiber_switch(me, current);
}

void spin(const char *what)
{
    if (++spins > MAX_SPINS) fail("no progress, spinning at %s", what);
    make_ready(current->index);
    next_thread(true);
}

void made_progress() { spins = 0; }

/* ---- collectives ---- */

static void collect(Collective &m, int need, int slot, Op op, void *arg, const char *name)
{
    if (m.arrived && (m.op != op || m.name != name))
        fail("divergent collective: this lane at %s, others at %s", name, m.name);
    m.op = op;
    m.name = name;
    m.args[slot] = arg;
    m.who[m.arrived++] = current->index;
    if (m.arrived < need) {
        next_thread(false);
        return;
    }
    op(m.args);
    m.arrived = 0;
    for (int i = 0; i < need; i++)
        if (m.who[i] != current->index) make_ready(m.who[i]);
    if (schedule != RANDOM_THREADS) return;
    make_ready(current->index); /* the last to arrive need not be the first to continue */
    next_thread(false);
}

void warp_collective(Op op, void *arg, const char *name)
{
    collect(warps[current->warp].collective, LANES, current->lane, op, arg, name);
}

void group_collective(Op op, void *arg, const char *name)
{
    if (current->index / GROUP >= thread_count / GROUP)
        fail("%s in less than a group of %d threads", name, GROUP);
    collect(groups[current->index / GROUP], GROUP, current->index % GROUP, op, arg, name);
}

void warp_sync()
{
    warp_collective([](void **) { order[current->warp].epoch++; }, nullptr, "warp_sync");
}

/* ---- barriers ---- */

void join_clock(uint32_t *into, const uint32_t *from)
{
    for (int w = 0; w < warp_count; w++) into[w] = std::max(into[w], from[w]);
}

static void release(Barrier &b)
{
    for (int w = 0; w < warp_count; w++) {
        if (!b.warps[w]) continue;
        join_clock(order[w].clock, b.clock);
        order[w].epoch++;
    }
    for (int i = 0; i < b.waiting_count; i++) make_ready(b.waiting[i]);
    b = Barrier{};
}

/* Barrier 0 is the block's: it waits for all threads that have not ended, as on the hardware. */
void named_barrier(int id, int need, bool wait)
{
    if (id < 0 || id >= BARRIERS || need % LANES || need > thread_count)
        fail("barrier %d of %d threads in a block of %d", id, need, thread_count);
    Barrier &b = barriers[id];
    join_clock(b.clock, order[current->warp].clock);
    /* the barrier does not order accesses that this thread makes after it arrived */
    order[current->warp].clock[current->warp]++;
    b.arrived++;
    if (wait) {
        b.warps[current->warp] = true;
        b.waiting[b.waiting_count++] = current->index;
    }
    if (b.arrived >= (id == 0 ? live : need)) release(b);
    if (wait) next_thread(false);
}

void block_sync() { named_barrier(0, 0, true); }

/* ---- launch ---- */

void fiber_main()
{
    kernel_body(kernel_arg);
    thread_copies_end();
    live--;
    if (barriers[0].arrived && barriers[0].arrived >= live) release(barriers[0]);
    next_thread(false);
    abort(); /* an ended fiber is never switched to */
}

static void begin_block(uint3 index, size_t smem)
{
    block_index = index;
    late_copies = options.seed == 0 || random_bits() % 2;
    memset(warps, 0, sizeof warps);
    memset(groups, 0, sizeof groups);
    for (Barrier &b : barriers) b = Barrier{};
    memset(order, 0, sizeof order);
    for (int w = 0; w < warp_count; w++) {
        order[w].clock[w] = 1;
        priority[w] = schedule == HIGH_WARPS_FIRST ? warp_count - 1 - w : w;
    }
    if (schedule == RANDOM_WARPS) std::shuffle(priority, priority + warp_count, random_bits);
    spins = 0;
    smem_begin(smem);
    copies_begin();
    race_begin();
}

static void run_block()
{
    live = thread_count;
    runnable = 0;
    for (int i = 0; i < thread_count; i++) {
        unsigned x = block_size.x, y = block_size.y, u = (unsigned)i;
        threads[i] = Thread{nullptr, {u % x, u / x % y, u / x / y}, i, i % LANES, i / LANES, 0};
        fiber_new(&threads[i]);
        make_ready(i);
    }
    current = pick(false);
    fiber_switch(nullptr, current);
    copies_end();
    smem_end();
}

/* Check the limits of sm_80 and sm_90; shared memory has sm_90's. Collectives fail in a last warp
 * that is not full: they wait for 32 lanes. */
static void check_launch(dim3 grid, dim3 block)
{
    size_t n = (size_t)block.x * block.y * block.z;
    if (!n || n > MAX_THREADS || block.z > 64)
        fail("blocks of %u x %u x %u threads", block.x, block.y, block.z);
    if (!grid.x || !grid.y || !grid.z || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
        fail("a grid of %u x %u x %u blocks", grid.x, grid.y, grid.z);
}

/* Return the numbers of the blocks that run (blocks.h). */
static std::vector<size_t> chosen_blocks(size_t count)
{
    size_t first = edges.first, last = edges.last;
    std::vector<size_t> blocks;
    if ((!first && !last) || first + last > count) first = count, last = 0;
    for (size_t i = 0; i < first; i++) blocks.push_back(i);
    for (size_t i = count - last; i < count; i++) blocks.push_back(i);
    return blocks;
}

void launch(dim3 grid, dim3 block, size_t smem, void (*body)(void *), void *arg, const char *name)
{
    current = nullptr;
    kernel_name = name;
    check_launch(grid, block);
    if (first_only(name)) grid.y = 1;
    kernel_body = body;
    kernel_arg = arg;
    grid_size = grid;
    block_size = block;
    thread_count = (int)(block.x * block.y * block.z);
    warp_count = (thread_count + LANES - 1) / LANES;
    random_bits.seed(options.seed * 7919 + 1);
    schedule = options.seed < 2   ? (Schedule)options.seed
               : options.seed % 2 ? RANDOM_WARPS
                                  : RANDOM_THREADS;
    std::vector<size_t> blocks = chosen_blocks((size_t)grid.x * grid.y * grid.z);
    if (schedule == HIGH_WARPS_FIRST) std::reverse(blocks.begin(), blocks.end());
    if (options.seed > 1) std::shuffle(blocks.begin(), blocks.end(), random_bits);
    for (size_t i : blocks) {
        begin_block({(unsigned)(i % grid.x), (unsigned)(i / grid.x % grid.y),
                     (unsigned)(i / grid.x / grid.y)},
                    smem);
        run_block();
    }
    kernel_name = "";
}

} /* namespace host */
