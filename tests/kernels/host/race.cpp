/* race.cpp: the race detector. It records, for each 2 bytes of shared memory, which thread last
 * wrote and which threads have read them, and checks that a barrier lies between. Kernels compiled
 * with -fsanitize=thread call the functions at the end of this file for every access to memory;
 * wrappers call note_*. Barriers order warps, with vector clocks. warp_sync and barriers order the
 * lanes of a warp. Shuffles and mma order nothing. Accesses to global memory are not checked. */
#include "tests/kernels/host/state.h"

#include <string.h>

#include <vector>

namespace host
{

enum State : uint8_t { NEVER, WRITTEN, IN_FLIGHT, WRITTEN_BY_COPY };
/* values of `lane` for more than one: all lanes of a warp; several of them */
constexpr uint8_t WHOLE_WARP = 32, SEVERAL = 33;
constexpr size_t GRAIN = 2;

struct Access {
    uint32_t clock, epoch;
    uint8_t warp, lane;
};

struct Cell {
    Access write;
    uint32_t proxy_fences; /* the writer's count of proxy fences when it wrote */
    /* number of the block that the entry belongs to; in other blocks it is not valid */
    uint32_t block;
    uint16_t writer;
    State state;
};

static std::vector<Cell> cells;
/* (cell, warp): the warp's last read of the cell; clock 0: none */
static std::vector<Access> reads;
static uint32_t block_number;
bool instrumented;

void race_begin()
{
    if (!options.race) return;
    cells.resize(ARENA / GRAIN);
    reads.resize(ARENA / GRAIN * MAX_WARPS);
    block_number++;
}

static Cell &cell(size_t i)
{
    Cell &c = cells[i];
    if (c.block != block_number) {
        c = Cell{};
        c.block = block_number;
        for (size_t w = 0; w < MAX_WARPS; w++) reads[i * MAX_WARPS + w] = Access{};
    }
    return c;
}

/* Return whether access `a` is ordered before the current access of this lane. */
static bool ordered(const Access &a, uint8_t lane)
{
    const Order &mine = order[current->warp];
    if (a.warp != current->warp) return mine.clock[a.warp] >= a.clock;
    return a.epoch != mine.epoch || (a.lane == lane && lane < WHOLE_WARP);
}

static Access access_now(uint8_t lane)
{
    const Order &mine = order[current->warp];
    return {mine.clock[current->warp], mine.epoch, (uint8_t)current->warp, lane};
}

static void race(const char *kind, const Cell &c, size_t i)
{
    report(&counts.races, "race, %s: shared byte %zu, last written by thread %d", kind, i * GRAIN,
           c.writer);
}

/* Return whether an access is checked, and set its first and last cell. Accesses outside shared
 * memory, outside kernels or without race mode are not checked. */
static bool watched(const void *p, size_t size, size_t *first, size_t *last)
{
    size_t offset;
    if (!options.race || !current || !in_smem(p, &offset)) return false;
    if (!owned_smem(offset, size)) fail("touched shared memory outside its arrays");
    *first = offset / GRAIN;
    *last = (offset + size - 1) / GRAIN;
    return true;
}

static void read_cell(size_t i, uint8_t lane, bool async)
{
    const Cell &c = cell(i);
    if (c.state == IN_FLIGHT) race("read of a copy under way", c, i);
    else if (c.state == NEVER)
        report(&counts.uninitialised, "read of shared byte %zu before any write", i * GRAIN);
    else if (!ordered(c.write, lane)) race("read after write", c, i);
    else if (async && c.state == WRITTEN && threads[c.writer].proxy_fences <= c.proxy_fences)
        report(&counts.proxy_misses,
               "shared byte %zu was written without fence_proxy_async after it", i * GRAIN);
    Access &r = reads[i * MAX_WARPS + (size_t)current->warp], now = access_now(lane);
    if (r.clock == now.clock && r.epoch == now.epoch && r.lane != lane) r.lane = SEVERAL;
    else r = now;
}

static void write_cell(size_t i, State state)
{
    Cell &c = cell(i);
    uint8_t lane = (uint8_t)current->lane;
    if (c.state == IN_FLIGHT && c.writer != current->index)
        race("write over a copy under way", c, i);
    else if (c.state != NEVER && c.state != IN_FLIGHT && !ordered(c.write, lane))
        race("write after write", c, i);
    for (int w = 0; w < warp_count; w++) {
        const Access &r = reads[i * MAX_WARPS + (size_t)w];
        if (!r.clock || ordered(r, lane)) continue;
        race("write after read", c, i);
        break;
    }
    c = Cell{access_now(lane), current->proxy_fences, block_number, (uint16_t)current->index,
             state};
}

void note_read(const void *p, size_t size, bool collective, bool async)
{
    size_t first, last;
    if (!watched(p, size, &first, &last)) return;
    for (size_t i = first; i <= last; i++)
        read_cell(i, collective ? WHOLE_WARP : (uint8_t)current->lane, async);
}

void note_write(const void *p, size_t size)
{
    size_t first, last;
    if (!watched(p, size, &first, &last)) return;
    for (size_t i = first; i <= last; i++) write_cell(i, WRITTEN);
}

void race_start_copy(const void *p, size_t size)
{
    size_t first, last;
    if (!watched(p, size, &first, &last)) return;
    for (size_t i = first; i <= last; i++) write_cell(i, IN_FLIGHT);
}

/* Mark the end of a copy. A cp.async counts as its thread's write at this time. A bulk copy keeps
 * its issuer's clock, which the mbarrier passes on. */
void race_land(const void *p, size_t size, bool async)
{
    size_t first, last;
    if (!watched(p, size, &first, &last)) return;
    for (size_t i = first; i <= last; i++)
        if (async) cell(i).state = WRITTEN_BY_COPY;
        else cell(i).write = access_now((uint8_t)current->lane), cell(i).state = WRITTEN;
}

} /* namespace host */

/* ---- what -fsanitize=thread calls, in place of libtsan ---- */

#pragma GCC diagnostic ignored "-Wmissing-declarations"
extern "C" {
#define ON_ACCESS(n)                                                                \
    void __tsan_read##n(void *p) { host::note_read(p, n, false, false); }           \
    void __tsan_write##n(void *p) { host::note_write(p, n); }                       \
    void __tsan_unaligned_read##n(void *p) { host::note_read(p, n, false, false); } \
    void __tsan_unaligned_write##n(void *p) { host::note_write(p, n); }             \
    void __tsan_volatile_read##n(void *p) { host::note_read(p, n, false, false); }  \
    void __tsan_volatile_write##n(void *p) { host::note_write(p, n); }
ON_ACCESS(1)
ON_ACCESS(2) ON_ACCESS(4) ON_ACCESS(8) ON_ACCESS(16) void __tsan_read_range(void *p, size_t n)
{
    host::note_read(p, n, false, false);
}
void __tsan_write_range(void *p, size_t n) { host::note_write(p, n); }
void *__tsan_memcpy(void *to, const void *from, size_t n) { return memcpy(to, from, n); }
void *__tsan_memmove(void *to, const void *from, size_t n) { return memmove(to, from, n); }
void *__tsan_memset(void *p, int c, size_t n) { return memset(p, c, n); }
void __tsan_init() { host::instrumented = true; }
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}
}
