// embed_sort.cu: sorts the positions of a batch by token. Positions of equal tokens keep their
// order. This is a radix sort of token ids with 8-bit digits. Each digit takes one pass, of two
// kernels. In the first kernel, each block counts how often each digit value occurs in its ids. In
// the second kernel, each block uses the counts of all blocks to compute the destinations of its
// ids, and writes the ids to these destinations. Each warp processes consecutive ids, 32 at a time,
// so the order of equal tokens does not depend on which thread runs first.
#include "kernels/cuda/elements.cuh"

using namespace sgt;

enum { DIGITS = 256, WARPS = 8, THREADS = WARPS * 32, MOST_BLOCKS = 128 };
static_assert(THREADS == DIGITS, "a thread for each digit");

struct Pass {
    int32_t *to_ids, *to_places;
    // Input of the pass. ids: token ids; places: array of the position in the batch of each element
    // of ids, or NULL if ids[i] is at position i
    const int32_t *ids, *places;
    // (blocks, DIGITS) array: for each block and each value of the digit, the number of the block's
    // ids whose digit has this value
    uint32_t *counts;
    // n: number of ids; each: number of ids that a warp processes, a multiple of 32; shift: index
    // of the lowest bit of the pass's digit in an id
    int n, each, shift;
};

DEV int digit_of(const Pass &a, int i) { return a.ids[i] >> a.shift & (DIGITS - 1); }

DEV int first_of_warp(const Pass &a) { return (blockIdx.x * WARPS + threadIdx.x / 32) * a.each; }

// Count how often each digit value occurs in the ids of each warp of this block. Store the result
// in counts (WARPS, DIGITS).
DEV void count_by_warp(const Pass &a, uint32_t *counts)
{
    for (int w = 0; w < WARPS; w++) counts[w * DIGITS + threadIdx.x] = 0;
    dev::block_sync(); // wait until all counts are 0, before any warp begins to count
    uint32_t *mine = counts + threadIdx.x / 32 * DIGITS;
    int first = first_of_warp(a), end = first + a.each < a.n ? first + a.each : a.n;
    for (int i = first + threadIdx.x % 32; i < end; i += 32)
        dev::atomic_add(mine + digit_of(a, i), 1u);
    dev::block_sync(); // every warp has counted
}

__global__ void __launch_bounds__(THREADS) sort_count_kernel(Pass a)
{
    dev::after_previous();
    DEV_SHARED(uint32_t, counts, WARPS * DIGITS);
    count_by_warp(a, counts);
    uint32_t total = 0;
    for (int w = 0; w < WARPS; w++) total += counts[w * DIGITS + threadIdx.x];
    a.counts[blockIdx.x * DIGITS + threadIdx.x] = total;
}

// Return the sum of v over all threads of the block with a lower index than the calling thread's.
// `shared` must have room for WARPS elements.
DEV uint32_t sum_before(uint32_t v, uint32_t *shared)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t upto = v;
    for (int step = 1; step < 32; step *= 2) {
        uint32_t before = dev::shfl(upto, lane - step);
        if (lane >= step) upto += before;
    }
    if (lane == 31) shared[warp] = upto;
    dev::block_sync(); // wait until every warp has written its sum, because other warps read it
    uint32_t start = upto - v;
    for (int w = 0; w < warp; w++) start += shared[w];
    return start;
}

// Replace each element of counts (WARPS, DIGITS) with a destination: the index in the output of the
// first of the warp's ids with that digit. Three kinds of ids come before this id in the output:
// ids with smaller digits, ids with the same digit in earlier blocks, and ids with the same digit
// in earlier warps of this block.
DEV void starts_by_warp(const Pass &a, uint32_t *counts, uint32_t *shared)
{
    uint32_t total = 0, before = 0;
    for (int b = 0; b < (int)gridDim.x; b++) {
        uint32_t count = a.counts[b * DIGITS + threadIdx.x];
        total += count;
        if (b < (int)blockIdx.x) before += count;
    }
    uint32_t start = sum_before(total, shared) + before;
    for (int w = 0; w < WARPS; w++) {
        uint32_t count = counts[w * DIGITS + threadIdx.x];
        counts[w * DIGITS + threadIdx.x] = start;
        start += count;
    }
    dev::block_sync(); // wait until all destinations are written, because other threads read them
}

DEV int bits_set(uint32_t x)
{
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    return (int)(((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24);
}

// Return a mask of the lanes whose ids have the same digit as this lane's id. Lanes past the last
// id, for which `there` is false, are not in the mask.
DEV uint32_t same_digit(int digit, bool there)
{
    uint32_t same = dev::warp_ballot(there);
    for (int bit = 1; bit < DIGITS; bit *= 2) {
        uint32_t set = dev::warp_ballot(digit & bit);
        same &= digit & bit ? set : ~set;
    }
    return same;
}

__global__ void __launch_bounds__(THREADS) sort_place_kernel(Pass a)
{
    dev::after_previous();
    DEV_SHARED(uint32_t, counts, WARPS * DIGITS);
    DEV_SHARED(uint32_t, shared, WARPS);
    count_by_warp(a, counts);
    starts_by_warp(a, counts, shared);
    uint32_t *next = counts + threadIdx.x / 32 * DIGITS;
    int first = first_of_warp(a), lane = threadIdx.x % 32;
    for (int from = first; from < first + a.each && from < a.n; from += 32) {
        int i = from + lane;
        bool there = i < a.n;
        int digit = there ? digit_of(a, i) : 0;
        uint32_t same = same_digit(digit, there), start = next[digit];
        dev::warp_sync(); // all have read before one writes
        if (there) {
            uint32_t at = start + bits_set(same & ((1u << lane) - 1));
            a.to_ids[at] = a.ids[i];
            a.to_places[at] = a.places ? a.places[i] : i;
            // the last lane with this digit advances the digit's destination past the ids that all
            // lanes with this digit have written
            if (same >> lane == 1) next[digit] = start + bits_set(same);
        }
        // make the new destinations visible to all lanes, which read them for the next 32 ids
        dev::warp_sync();
    }
}

size_t sgt_cuda_embed_sort_scratch(size_t n)
{
    return (2 * n + MOST_BLOCKS * DIGITS) * sizeof(int32_t);
}

void sgt_cuda_embed_sort(sgt_cuda_stream s, int32_t *sorted, int32_t *order, const int32_t *ids,
                         size_t V, size_t n, void *scratch)
{
    if (n == 0) return;
    uint32_t *counts = (uint32_t *)scratch;
    int32_t *half = (int32_t *)(counts + MOST_BLOCKS * DIGITS);
    int each = (int)blocks_for(n, MOST_BLOCKS * THREADS) * 32;
    dim3 grid(blocks_for(n, (size_t)each * WARPS)), block(THREADS);
    Pass a = {half, half + n, ids, NULL, counts, (int)n, each, 0};
    int bits = 16;
    while (V > (size_t)1 << bits) bits += 8;
    for (; a.shift < bits; a.shift += 8) {
        // the passes write to two pairs of arrays in turn; the first pass uses the pair that makes
        // the last pass write to `sorted` and `order`
        bool aside = (bits - a.shift) / 8 % 2 == 0;
        a.to_ids = aside ? half : sorted;
        a.to_places = aside ? half + n : order;
        DEV_LAUNCH(sort_count_kernel, grid, block, 0, s, a);
        DEV_LAUNCH(sort_place_kernel, grid, block, 0, s, a);
        a.ids = a.to_ids;
        a.places = a.to_places;
    }
}
