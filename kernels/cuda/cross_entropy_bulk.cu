// cross_entropy_bulk.cu: the classifier for sm_90a. There is one block per multiprocessor, and each
// takes row after row. One thread starts a bulk copy of a whole row into shared memory, and of the
// next row as soon as one has been read. This keeps as many bytes in flight as shared memory holds.
// With 50,304 logits of 16 bits, one row of 100 KB is copied while another is computed; loads by
// the threads themselves keep 8 KB in flight. On an H100, both take the time of their bytes, so
// cross_entropy.cu is the default.
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/softmax.cuh"

using namespace sgt;

enum {
    THREADS = 512,
    WARPS = THREADS / 32,
    MOST_STAGES = 4,
    MULTIPROCESSORS = 132 /* of an H100 */
};
// Bytes of shared memory. BARRIERS: for the barriers. HEAD: for the barriers and the warps' sums, a
// multiple of 128. HOPPER_SHARED: the most that a block has on sm_90.
enum {
    BARRIERS = 128,
    HEAD = BARRIERS + 2 * WARPS * (int)sizeof(float),
    HOPPER_SHARED = 227 * 1024
};

template <class T> struct BulkRows {
    T *logits;
    float *loss;
    const int32_t *targets;
    const float *scale;
    size_t n;
    int V, ld, stages; // stages: rows in shared memory at once
    int pitch;         // bytes from one row to the next in shared memory
};

// Return how many numbers of a row are copied: V, rounded up to a multiple of 16 bytes. ld is such
// a multiple, so the numbers past V exist.
template <class T> DEV int copied(int V) { return (V + PER16<T> - 1) / PER16<T> * PER16<T>; }

// Start copying `row` to its stage; one thread calls it.
template <class T> DEV void start_row(const BulkRows<T> &a, size_t row, int stage)
{
    uint64_t *bar = (uint64_t *)dev::dyn_smem() + stage;
    int bytes = copied<T>(a.V) * (int)sizeof(T);
    dev::mbar_arrive_expect(bar, bytes);
    dev::bulk_load(dev::dyn_smem() + HEAD + stage * a.pitch, a.logits + row * a.ld, bar, bytes);
}

// Load PER16<T> logits from column c on. Those past V become LOWEST, which adds nothing to a sum of
// exponentials.
template <class T> DEV void load_logits(float (&x)[PER16<T>], const T *kept, int c, int V)
{
    load(x, kept + c);
    if (c + PER16 < T >> V)
        DEV_UNROLL_FOR (int i = 0; i < PER16<T>; i++)
            if (c + i >= V) x[i] = LOWEST;
}

template <class T>
DEV void classify_row(const BulkRows<T> &a, size_t row, const T *kept, float *sums)
{
    constexpr int V = PER16<T>;
    int target = a.targets[row], end = copied<T>(a.V);
    Sum s = {LOWEST, 0};
    for (int c = threadIdx.x * V; c < end; c += THREADS * V) {
        float x[V];
        load_logits(x, kept, c, a.V);
        add_exps(s, x);
    }
    s = block_combine<WARPS>(s, sums);
    if (threadIdx.x == 0)
        a.loss[row] = target < 0 ? 0 : s.max + logf(s.total) - dev::to_float(kept[target]);
    float by = target < 0 ? 0 : *a.scale, share = by / s.total;
    T *out = a.logits + row * a.ld;
    for (int c = threadIdx.x * V; c < a.ld; c += THREADS * V) {
        float x[V] = {};
        if (c < end && target >= 0) {
            load_logits(x, kept, c, a.V);
            DEV_UNROLL_FOR (int i = 0; i < V; i++)
                x[i] = exp_fast(x[i] - s.max) * share - (c + i == target ? by : 0);
        }
        store(out + c, x);
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS) cross_entropy_bulk_kernel(BulkRows<T> a)
{
    uint64_t *bars = (uint64_t *)dev::dyn_smem();
    float *sums = (float *)(dev::dyn_smem() + BARRIERS);
    if (threadIdx.x == 0) {
        for (int i = 0; i < a.stages; i++) dev::mbar_init(bars + i, 1);
        dev::mbar_init_fence();
    }
    dev::block_sync(); // the barriers are made
    for (int i = 0; i < a.stages && threadIdx.x == 0; i++) {
        size_t row = blockIdx.x + (size_t)i * gridDim.x;
        if (row < a.n) start_row(a, row, i);
    }
    int stage = 0, parity = 0;
    for (size_t row = blockIdx.x; row < a.n; row += gridDim.x) {
        dev::mbar_wait(bars + stage, parity);
        classify_row(a, row, (const T *)(dev::dyn_smem() + HEAD + stage * a.pitch), sums);
        dev::block_sync(); // all have read the row, and the sums
        size_t next = row + (size_t)a.stages * gridDim.x;
        if (threadIdx.x == 0 && next < a.n) start_row(a, next, stage);
        stage = stage + 1 < a.stages ? stage + 1 : 0;
        if (stage == 0) parity ^= 1;
    }
}

// ---- on the host ----

static int pitch_of(sgt_cuda_type type, size_t V)
{
    size_t bytes = V * (type == SGT_F32 ? 4 : 2);
    return (int)((bytes + 127) / 128 * 128);
}

static int stages_of(sgt_cuda_type type, size_t V)
{
    int stages = (HOPPER_SHARED - HEAD) / pitch_of(type, V);
    return stages < MOST_STAGES ? stages : (int)MOST_STAGES;
}

int sgt_cuda_cross_entropy_bulk_serves(sgt_cuda_type type, size_t V, size_t ld)
{
    return dev::device_is_hopper() && V > 0 && V < HOPPER_SHARED && stages_of(type, V) >= 2 &&
           ld % (type == SGT_F32 ? 4 : 8) == 0;
}

void sgt_cuda_cross_entropy_bulk(sgt_cuda_stream s, sgt_cuda_type type, void *logits, float *loss,
                                 const int32_t *targets, size_t n, size_t V, size_t ld,
                                 const float *scale)
{
    if (n == 0) return;
    unsigned blocks = n < MULTIPROCESSORS ? (unsigned)n : (unsigned)MULTIPROCESSORS;
    int stages = stages_of(type, V), pitch = pitch_of(type, V);
    by_type(type, [&](auto zero) {
        using T = decltype(zero);
        BulkRows<T> a = {(T *)logits, loss, targets, scale, n, (int)V, (int)ld, stages, pitch};
        DEV_LAUNCH(cross_entropy_bulk_kernel<T>, dim3(blocks), dim3(THREADS),
                   (size_t)(HEAD + stages * pitch), s, a);
    });
}
