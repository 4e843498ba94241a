/* copies.cpp: what moves while the kernel goes on: cp.async, TMA with its mbarriers, wgmma. By the seed each is done
 * at once or as late as the kernel's waits allow; until then its destination holds NaN. */
#include "host/state.h"

#include <string.h>

#include <algorithm>
#include <map>
#include <vector>

namespace host {

struct Copy {
    void *to;
    const void *from;
    bool present;
    int group; /* of its thread's groups, from 0 */
};

struct Queue {
    std::vector<Copy> copies;
    int committed; /* groups */
};

struct Mbar {
    int arrivals, pending, phase;
    long bytes;
    uint32_t clock[MAX_WARPS];
};

struct Bulk {
    void *to;
    TensorMap map;
    uint64_t *bar;
    int column, row, warp;
    uint32_t clock;
};

/* One wgmma of a warpgroup: every thread's accumulators. */
struct Product {
    float *d[GROUP];
    int columns, group;
    uint64_t a, b;
    bool add, done;
    Kind kind;
};

static Queue queues[MAX_THREADS];
static int wgmma_groups[MAX_THREADS]; /* committed by each thread */
static std::vector<Product> products[MAX_THREADS / GROUP];
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

void cp_async_commit()
{
    queues[current->index].committed++;
}

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
    mbars[bar] = Mbar{arrivals, arrivals, 0, 0, {}};
    *bar = 0;
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

void mbar_wait(uint64_t *bar, int parity)
{
    while (find(bar).phase == parity) spin("mbar_wait");
    join_clock(order[current->warp].clock, find(bar).clock);
    order[current->warp].epoch++;
    made_progress();
}

/* ---- TMA: rows of 64 elements, 128 bytes, their 16-byte pieces swizzled by the row's number modulo 8 ---- */

static uint32_t swizzle128(uint32_t address)
{
    return address ^ ((address >> 7 & 7) << 4);
}

static void land(const Bulk &b)
{
    uint32_t base = smem_address(b.to, (size_t)b.map.box_rows * 128, 1024, "tma_load_2d: destination");
    for (int r = 0; r < b.map.box_rows; r++)
        for (int c = 0; c < 64; c++) {
            long x = b.column + c, y = b.row + r;
            bool inside = x >= 0 && x < b.map.columns && y >= 0 && y < b.map.rows;
            uint16_t v = inside ? b.map.base[y * b.map.stride + x] : 0;
            memcpy(smem_at(swizzle128(base + (uint32_t)(r * 128 + c * 2))), &v, 2);
        }
    race_land(b.to, (size_t)b.map.box_rows * 128, true);
    Mbar &m = find(b.bar);
    m.clock[b.warp] = std::max(m.clock[b.warp], b.clock);
    m.bytes -= b.map.box_rows * 128;
    end_phase(m);
    made_progress();
}

void bulk_load_2d(void *to, const TensorMap *map, uint64_t *bar, int column, int row)
{
    size_t size = (size_t)map->box_rows * 128;
    smem_address(to, size, 1024, "tma_load_2d: destination");
    Bulk b = {to, *map, bar, column, row, current->warp, order[current->warp].clock[current->warp]};
    race_start_copy(to, size);
    if (!late_copies) {
        land(b);
        return;
    }
    memset(to, 0xff, size);
    bulks.push_back(b);
}

bool land_bulk_copies()
{
    if (bulks.empty()) return false;
    std::vector<Bulk> now;
    now.swap(bulks);
    Thread *caller = current;
    for (const Bulk &b : now) land(b);
    current = caller;
    return true;
}

/* ---- wgmma: both operands from shared memory, rows of 64 elements swizzled as above, 8 rows a group ---- */

static float operand(uint64_t descriptor, int row, int k, Kind kind)
{
    if (descriptor >> 62 != 1) fail("wgmma: a descriptor without the 128-byte swizzle");
    uint32_t start = (uint32_t)(descriptor & 0x3fff) << 4, group = (uint32_t)(descriptor >> 32 & 0x3fff) << 4;
    uint32_t at = swizzle128(start + (uint32_t)(row / 8) * group + (uint32_t)(row % 8 * 128 + k * 2));
    uint16_t bits;
    note_read(smem_at(at), 2, true, true);
    memcpy(&bits, smem_at(at), 2);
    return from_16(kind, bits);
}

static void multiply(Product &p)
{
    static float a[64][16], b[16][256], c[64][256];
    p.done = true;
    for (int i = 0; i < 64; i++)
        for (int k = 0; k < 16; k++) a[i][k] = operand(p.a, i, k, p.kind);
    for (int j = 0; j < p.columns; j++)
        for (int k = 0; k < 16; k++) b[k][j] = operand(p.b, j, k, p.kind);
    memset(c, 0, sizeof c);
    for (int i = 0; i < 64; i++)
        for (int k = 0; k < 16; k++)
            for (int j = 0; j < p.columns; j++) c[i][j] += a[i][k] * b[k][j];
    for (int t = 0; t < GROUP; t++)
        for (int e = 0; e < p.columns / 2; e++) {
            int row = t / 32 * 16 + t % 32 / 4 + (e >> 1 & 1) * 8, column = e / 4 * 8 + t % 4 * 2 + (e & 1);
            p.d[t][e] = (p.add ? p.d[t][e] : 0) + c[row][column];
        }
}

static void issue(void **args)
{
    Product p = **reinterpret_cast<Product **>(args);
    int first = current->index / GROUP * GROUP;
    for (int i = 0; i < GROUP; i++) {
        const Product *mine = static_cast<const Product *>(args[i]);
        if (mine->a != p.a || mine->b != p.b || mine->add != p.add || mine->columns != p.columns)
            fail("wgmma: threads 0 and %d of the group ask for different products", i);
        p.d[i] = mine->d[0];
    }
    p.group = wgmma_groups[first];
    if (!late_copies) multiply(p);
    products[first / GROUP].push_back(p);
}

void wgmma(float *d, int columns, uint64_t a, uint64_t b, bool add, Kind kind)
{
    Product p = {{d}, columns, 0, a, b, add, false, kind};
    group_collective(issue, &p, kind == BF16 ? "wgmma<bf16>" : "wgmma<f16>");
}

void wgmma_commit()
{
    wgmma_groups[current->index]++;
}

void wgmma_wait(int keep)
{
    for (Product &p : products[current->index / GROUP])
        if (!p.done && p.group < wgmma_groups[current->index] - keep) multiply(p);
    /* What every thread has waited for is forgotten at the block's end; what none has is an error there. */
    for (Product &p : products[current->index / GROUP])
        if (p.group < wgmma_groups[current->index] - keep) p.columns = 0;
}

/* ---- the beginning and the end ---- */

void copies_begin()
{
    for (int i = 0; i < thread_count; i++) {
        queues[i].copies.clear();
        queues[i].committed = 0;
        wgmma_groups[i] = 0;
    }
    for (auto &p : products) p.clear();
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
    for (auto &list : products)
        for (const Product &p : list)
            if (p.columns) fail("a wgmma was never waited for");
}

} /* namespace host */
