/* wgmma.cpp: wgmma on the host, as strict as hardware is allowed to be. A matrix product reads
 * shared memory at once or, depending on the seed, as late as the waits of each warp allow. In both
 * cases an accumulator holds a NaN of one pattern until its thread waits for the product. It is a
 * failure if the kernel writes to the accumulator, or to a left operand in registers, before that.
 * It is also a failure if there was no fence between a product and the last wait. */
#include "tests/kernels/host/state.h"

#include <string.h>

#include <list>
#include <vector>

namespace host
{

enum {
    ROWS = 64,
    DEPTH = 16,
    MOST_COLUMNS = 256,
    WARPS = GROUP / LANES,
    GROUPS = MAX_THREADS / GROUP
};
/* Value of an accumulator while a product is under way: a signaling NaN. Arithmetic would make it a
 * quiet one. */
constexpr uint32_t OWNED = 0x7f91d1d1;

/* One wgmma of a warpgroup, with pointers to every thread's registers. */
struct Product {
    int columns, group;
    float *d[GROUP];
    const uint32_t *registers[GROUP]; /* left operand in registers; NULL: it is in shared memory */
    uint32_t left[GROUP][4];          /* their content when the product was issued */
    uint64_t a, b;
    bool add;
    Kind kind;
    bool multiplied[WARPS], given[GROUP];
    int remaining;                  /* threads that have not received their result */
    std::vector<float> before, sum; /* element e of thread t at t * columns/2 + e */

    float *of(std::vector<float> &all, int t) { return &all[(size_t)t * (size_t)columns / 2]; }
};

static std::list<Product> products[GROUPS];
static int committed[MAX_THREADS]; /* groups that each thread committed */
static bool fenced[MAX_THREADS];
static int registers[GROUPS]; /* registers per thread; 0: as at the launch */

/* ---- shared memory: rows of 64 elements whose 16-byte pieces are swizzled, in groups of 8 rows
 * ---- */

static uint32_t swizzle128(uint32_t address) { return address ^ ((address >> 7 & 7) << 4); }

static void check_descriptor(uint64_t d)
{
    if (d >> 62 != 1) fail("wgmma: a descriptor without the 128-byte swizzle");
    if (d >> 49 & 7) fail("wgmma: a descriptor with a base offset");
    if ((d & 0x3fff) << 4 & 0x380) fail("wgmma: the operand's tile is not 1024-byte aligned");
}

/* Read the 8 elements of a 16-byte piece. */
static void read_piece(float *x, uint32_t address, Kind kind)
{
    uint32_t at = swizzle128(address);
    const unsigned char *p = smem_at(at);
    uint16_t bits[8];
    smem_at(at + 15);
    note_read(p, 16, true, true);
    memcpy(bits, p, 16);
    for (int i = 0; i < 8; i++) x[i] = from_16(kind, bits[i]);
}

static uint32_t field(uint64_t d, int shift) { return (uint32_t)(d >> shift & 0x3fff) << 4; }

/* Read x[i][k]: rows first .. first+count-1 of an operand whose rows are the tile's. */
static void read_rows(float (*x)[DEPTH], uint64_t d, int first, int count, Kind kind)
{
    check_descriptor(d);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < DEPTH; k += 8) {
            int row = first + i;
            read_piece(x[i] + k,
                       field(d, 0) + (uint32_t)(row / 8) * field(d, 32) +
                           (uint32_t)(row % 8 * 128 + k * 2),
                       kind);
        }
}

/* Read x[k][j]: an operand whose depth is the tile's rows. */
static void read_columns(float (*x)[MOST_COLUMNS], uint64_t d, int columns, Kind kind)
{
    check_descriptor(d);
    for (int k = 0; k < DEPTH; k++)
        for (int j = 0; j < columns; j += 8)
            read_piece(x[k] + j,
                       field(d, 0) + (uint32_t)(k / 8) * field(d, 32) + (uint32_t)(k % 8 * 128) +
                           (uint32_t)(j / 64) * field(d, 16) + (uint32_t)(j % 64 * 2),
                       kind);
}

/* ---- the product ---- */

static void read_left(float (*a)[DEPTH], const Product &p, int warp)
{
    if (!p.registers[0]) {
        read_rows(a, p.a, 16 * warp, 16, p.kind);
        return;
    }
    for (int l = 0; l < LANES; l++)
        for (int i = 0; i < 4; i++) {
            float *to = &a[l / 4 + (i & 1) * 8][l % 4 * 2 + (i >> 1) * 8];
            uint32_t word = p.left[warp * LANES + l][i];
            to[0] = from_16(p.kind, (uint16_t)word);
            to[1] = from_16(p.kind, (uint16_t)(word >> 16));
        }
}

/* Multiply a warp's 16 rows. */
static void multiply(Product &p, int warp)
{
    static float a[16][DEPTH], rows[MOST_COLUMNS][DEPTH], b[DEPTH][MOST_COLUMNS],
        c[16][MOST_COLUMNS];
    read_left(a, p, warp);
    if (p.registers[0]) {
        read_columns(b, p.b, p.columns, p.kind);
    } else {
        read_rows(rows, p.b, 0, p.columns, p.kind);
        for (int j = 0; j < p.columns; j++)
            for (int k = 0; k < DEPTH; k++) b[k][j] = rows[j][k];
    }
    memset(c, 0, sizeof c);
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < DEPTH; k++)
            for (int j = 0; j < p.columns; j++) c[i][j] += a[i][k] * b[k][j];
    for (int l = 0; l < LANES; l++)
        for (int e = 0; e < p.columns / 2; e++)
            p.of(p.sum, warp * LANES + l)[e] =
                c[l / 4 + (e >> 1 & 1) * 8][e / 4 * 8 + l % 4 * 2 + (e & 1)];
    p.multiplied[warp] = true;
}

/* Return the last product under way on an accumulator of thread t, among those before `end`. */
static Product *under_way(std::list<Product> &list, const float *d, int t)
{
    for (auto p = list.rbegin(); p != list.rend(); ++p)
        if (!p->given[t] && p->d[t] == d) return &*p;
    return nullptr;
}

static void take_registers(std::list<Product> &list, Product &p, const Product &mine, int t)
{
    if (mine.a != p.a || mine.b != p.b || mine.add != p.add || mine.columns != p.columns ||
        !mine.registers[0] != !p.registers[0])
        fail("wgmma: threads 0 and %d of the group ask for different products", t);
    if (!fenced[current->index / GROUP * GROUP + t])
        fail("wgmma without wgmma_fence since the last wgmma_wait");
    p.d[t] = mine.d[0];
    p.registers[t] = mine.registers[0];
    if (p.registers[t]) memcpy(p.left[t], p.registers[t], sizeof p.left[t]);
    if (const Product *last = under_way(list, p.d[t], t)) {
        if (last->columns != p.columns) fail("wgmma: an accumulator of another width is under way");
        return;
    }
    memcpy(p.of(p.before, t), p.d[t], sizeof(float) * (size_t)p.columns / 2);
    for (int e = 0; e < p.columns / 2; e++) memcpy(&p.d[t][e], &OWNED, 4);
}

static void issue(void **args)
{
    int first = current->index / GROUP * GROUP;
    std::list<Product> &list = products[first / GROUP];
    Product p = *static_cast<Product *>(args[0]);
    p.group = committed[first];
    p.remaining = GROUP;
    p.before.resize((size_t)(GROUP * p.columns / 2));
    p.sum.resize((size_t)(GROUP * p.columns / 2));
    for (int i = 0; i < GROUP; i++)
        take_registers(list, p, *static_cast<const Product *>(args[i]), i);
    Thread *caller = current;
    for (int w = 0; w < WARPS && !late_copies; w++) {
        current = &threads[first + w * LANES];
        multiply(p, w);
    }
    current = caller;
    list.push_back(std::move(p));
}

void wgmma(float *d, int columns, const uint32_t *left, uint64_t a, uint64_t b, bool add, Kind kind)
{
    if (columns % 8 || columns > MOST_COLUMNS) fail("wgmma of %d columns", columns);
    Product p = {};
    p.columns = columns;
    p.d[0] = d;
    p.registers[0] = left;
    p.a = a, p.b = b, p.add = add, p.kind = kind;
    group_collective(issue, &p, kind == BF16 ? "wgmma<bf16>" : "wgmma<f16>");
}

/* ---- waiting ---- */

/* Give thread t its result: in its registers, or to the next product that adds to it. */
static void give(std::list<Product> &list, Product &p, int t)
{
    if (!p.multiplied[t / LANES]) multiply(p, t / LANES);
    if (p.registers[t] && memcmp(p.registers[t], p.left[t], sizeof p.left[t]))
        fail("a left operand's registers were written while wgmma read them");
    float *sum = p.of(p.sum, t), *before = p.of(p.before, t);
    for (int e = 0; e < p.columns / 2; e++) {
        if (memcmp(&p.d[t][e], &OWNED, 4)) fail("an accumulator was written while wgmma had it");
        if (p.add) sum[e] += before[e];
    }
    p.given[t] = true;
    p.remaining--;
    float *to = p.d[t];
    for (Product &next : list)
        if (!next.given[t] && next.d[t] == p.d[t]) {
            to = next.of(next.before, t);
            break;
        }
    memcpy(to, sum, sizeof(float) * (size_t)p.columns / 2);
}

/* The lanes of the warp wait for each other first: no product is computed before the last lane
 * arrives. */
void wgmma_wait(int keep)
{
    warp_collective([](void **) {}, nullptr, "wgmma_wait");
    int t = current->index % GROUP, before = committed[current->index] - keep;
    std::list<Product> &list = products[current->index / GROUP];
    fenced[current->index] = false;
    for (auto p = list.begin(); p != list.end();) {
        if (p->group < before && !p->given[t]) give(list, *p, t);
        if (p->remaining) ++p;
        else p = list.erase(p);
    }
}

void wgmma_fence() { fenced[current->index] = true; }

void wgmma_commit() { committed[current->index]++; }

void wgmma_ours(const void *from, size_t size)
{
    int t = current->index % GROUP;
    auto within = [=](const void *p) { return (uintptr_t)p - (uintptr_t)from < size; };
    for (const Product &p : products[current->index / GROUP])
        if (!p.given[t] && (within(p.d[t]) || (p.registers[t] && within(p.registers[t]))))
            fail("registers that wgmma still has are taken for ours");
}

/* ---- registers: setmaxnreg moves them between the block's groups ---- */

static int launched_registers() { return 65536 / thread_count / 8 * 8; }

template <bool MORE> static void set_registers_op(void **args)
{
    int &mine = registers[current->index / GROUP], now = mine ? mine : launched_registers();
    int wanted = *static_cast<int *>(args[0]);
    if (wanted % 8 || wanted < 24 || wanted > 256 || (MORE ? wanted < now : wanted > now))
        fail("setmaxnreg from %d to %d registers", now, wanted);
    mine = wanted;
}

void set_registers(int wanted, bool more)
{
    if (thread_count % GROUP) fail("setmaxnreg in a block of %d threads", thread_count);
    if (more) group_collective(set_registers_op<true>, &wanted, "setmaxnreg.inc");
    else group_collective(set_registers_op<false>, &wanted, "setmaxnreg.dec");
}

static void check_registers()
{
    int all = 0, most = thread_count * launched_registers();
    for (int g = 0; g < thread_count / GROUP; g++)
        all += GROUP * (registers[g] ? registers[g] : launched_registers());
    if (all > most && thread_count % GROUP == 0) fail("%d registers, of %d", all, most);
}

/* ---- the beginning and the end ---- */

void wgmma_begin()
{
    for (auto &list : products) list.clear();
    memset(committed, 0, sizeof committed);
    memset(fenced, 0, sizeof fenced);
    memset(registers, 0, sizeof registers);
}

void wgmma_end()
{
    for (auto &list : products)
        if (!list.empty()) fail("a wgmma was never waited for");
    check_registers();
}

} /* namespace host */
