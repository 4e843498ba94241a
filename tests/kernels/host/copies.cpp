/* copies.cpp: asynchronous copies: cp.async, and TMA with its mbarriers. The seed decides whether a
 * copy is done at once or as late as the kernel's waits allow. Until it is done, its destination
 * holds NaN. */
#include "tests/kernels/host/state.h"

#include <string.h>

#include <algorithm>
#include <map>
#include <vector>

namespace host
{

struct Copy {
    void *to;
    const void *from;
    bool present;
    int group; /* number of the group of this copy, from 0 */
};

struct Queue {
    std::vector<Copy> copies;
    int committed; /* groups committed by the thread */
};

struct Mbar {
    int arrivals, pending, phase;
    long bytes;
    int maker; /* thread that initialized the barrier */
    /* the block has synchronized since its initialization; before that, other threads may not use
     * it */
    bool fenced;
    uint32_t clock[MAX_WARPS];
};

struct Bulk {
    void *to;
    TensorMap map;
    uint64_t *bar;
    int column, row, plane, warp;
    uint32_t clock;
};

static Queue queues[MAX_THREADS];
static std::map<uint64_t *, Mbar> mbars;
static std::vector<Bulk> bulks;

/* ---- cp.async ---- */

static void copy_now(const Copy &c)
{
    if (c.present) memcpy(c.to, c.from, 16);
    else memset(c.to, 0, 16);
}

void cp_async(void *to, const void *from, bool present)
{
    smem_address(to, 16, 16, "cp_async16");
    if ((uintptr_t)from % 16) fail("cp_async16: source not 16-byte aligned");
    Queue &q = queues[current->index];
    Copy c = {to, from, present, q.committed};
    race_start_copy(to, 16);
    if (late_copies) memset(to, 0xff, 16);
    else copy_now(c);
    q.copies.push_back(c);
}

void cp_async_commit() { queues[current->index].committed++; }

static void land_groups(Queue &q, int below)
{
    size_t n = 0;
    for (; n < q.copies.size() && q.copies[n].group < below; n++) {
        if (late_copies) copy_now(q.copies[n]);
        race_land(q.copies[n].to, 16, false);
    }
    q.copies.erase(q.copies.begin(), q.copies.begin() + (long)n);
}

void cp_async_wait(int keep)
{
    Queue &q = queues[current->index];
    land_groups(q, q.committed - keep);
}

/* ---- mbarriers: a phase ends when all have arrived and all announced bytes have landed ---- */

static Mbar &find(uint64_t *bar)
{
    auto found = mbars.find(bar);
    if (found == mbars.end()) fail("mbarrier used before mbar_init");
    if (!found->second.fenced) fail("mbarrier used before mbar_init_fence");
    return found->second;
}

static void end_phase(Mbar &m)
{
    if (m.pending || m.bytes) return;
    m.phase ^= 1;
    m.pending = m.arrivals;
}

void mbar_init(uint64_t *bar, int arrivals)
{
    smem_address(bar, 8, 8, "mbar_init");
    note_write(bar, 8);
    mbars[bar] = Mbar{arrivals, arrivals, 0, 0, current->index, false, {}};
    *bar = 0;
}

bool (*may_be_mapped)(const void *base);

void mbar_init_fence()
{
    for (auto &m : mbars) m.second.fenced |= m.second.maker == current->index;
}

void mbar_arrive(uint64_t *bar, int bytes)
{
    Mbar &m = find(bar);
    Order &mine = order[current->warp];
    if (m.pending <= 0) fail("more arrivals at an mbarrier than it was made for");
    join_clock(m.clock, mine.clock);
    mine.clock[current->warp]++;
    m.bytes += bytes;
    m.pending--;
    end_phase(m);
}

/* ---- TMA: rows of 64 elements (128 bytes), whose 16-byte pieces are swizzled by the row's number
 * modulo 8 ---- */

static uint32_t swizzle128(uint32_t address) { return address ^ ((address >> 7 & 7) << 4); }

static void land(const Bulk &b)
{
    uint32_t base = smem_address(b.to, (size_t)b.map.box_rows * 128, 1024, "tma_load: destination");
    for (int r = 0; r < b.map.box_rows; r++)
        for (int c = 0; c < 64; c++) {
            long x = b.column + c, y = b.row + r;
            bool inside = x >= 0 && x < b.map.columns && y >= 0 && y < b.map.rows && b.plane >= 0 &&
                          b.plane < b.map.planes;
            uint16_t v =
                inside ? b.map.base[((long)b.plane * b.map.rows + y) * b.map.stride + x] : 0;
            memcpy(smem_at(swizzle128(base + (uint32_t)(r * 128 + c * 2))), &v, 2);
        }
    race_land(b.to, (size_t)b.map.box_rows * 128, true);
    Mbar &m = find(b.bar);
    m.clock[b.warp] = std::max(m.clock[b.warp], b.clock);
    m.bytes -= b.map.box_rows * 128;
    end_phase(m);
    made_progress();
}

void bulk_load(void *to, const TensorMap *map, uint64_t *bar, int column, int row, int plane)
{
    size_t size = (size_t)map->box_rows * 128;
    smem_address(to, size, 1024, "tma_load: destination");
    Bulk b = {to,  *map,  bar,           column,
              row, plane, current->warp, order[current->warp].clock[current->warp]};
    race_start_copy(to, size);
    if (!late_copies) {
        land(b);
        return;
    }
    memset(to, 0xff, size);
    bulks.push_back(b);
}

/* Do the copies of a barrier. They complete only when a thread waits for this barrier, because no
 * other wait guarantees that they have arrived. */
static void land_on(const uint64_t *bar)
{
    std::vector<Bulk> now, later;
    for (const Bulk &b : bulks) (b.bar == bar ? now : later).push_back(b);
    bulks.swap(later);
    for (const Bulk &b : now) land(b);
}

void mbar_wait(uint64_t *bar, int parity)
{
    while (find(bar).phase == parity) {
        if (random_bits() % 8 == 0) land_on(bar);
        spin("mbar_wait");
    }
    join_clock(order[current->warp].clock, find(bar).clock);
    order[current->warp].epoch++;
    made_progress();
}

/* ---- the beginning and the end of a block ---- */

void copies_begin()
{
    for (int i = 0; i < thread_count; i++) {
        queues[i].copies.clear();
        queues[i].committed = 0;
    }
    wgmma_begin();
    mbars.clear();
    bulks.clear();
}

void thread_copies_end()
{
    land_groups(queues[current->index], queues[current->index].committed + 1);
}

void copies_end()
{
    if (!bulks.empty()) fail("%zu TMA loads were never waited for", bulks.size());
    wgmma_end();
}

} /* namespace host */
