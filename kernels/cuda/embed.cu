// embed.cu: computes the sum of token and position embeddings, and the gradients of both. The
// gradient of a token's embedding is the sum of dout over all positions where the token occurs. So
// embed_sort.cu first sorts the positions by token. Then each thread adds up one column of dout
// over the positions of a token, in a fixed order and without atomics.
#include "kernels/cuda/dropout.cuh"

using namespace sgt;

enum { THREADS = 128, CHUNK = 64, JOINED = 8 };

template <class T, int V>
__global__ void __launch_bounds__(THREADS)
    embed_kernel(T *out, const int32_t *ids, const T *wte, const T *wpe, size_t T_, int C,
                 sgt_cuda_dropout drop)
{
    dev::after_previous();
    size_t row = blockIdx.x;
    const T *token = wte + (size_t)ids[row] * C, *place = wpe + row % T_ * C;
    for (int c = threadIdx.x * V; c < C; c += THREADS * V) {
        float x[V], y[V], factor[V];
        load(x, token + c);
        load(y, place + c);
        DEV_UNROLL_FOR (int i = 0; i < V; i++) x[i] += y[i];
        if (drop.rate > 0) {
            dropout_factors(factor, drop, row * C + c);
            DEV_UNROLL_FOR (int i = 0; i < V; i++) x[i] *= factor[i];
        }
        store(out + row * C + c, x);
    }
}

void sgt_cuda_embed(sgt_cuda_stream s, sgt_cuda_type type, void *out, const int32_t *ids,
                    const void *wte, const void *wpe, size_t n, size_t T, size_t C,
                    const sgt_cuda_dropout *drop)
{
    if (n == 0) return;
    by_type_and_width(type, C, [&](auto zero, auto width) {
        using N = decltype(zero);
        DEV_LAUNCH((embed_kernel<N, width>), dim3((unsigned)n), dim3(THREADS), 0, s, (N *)out, ids,
                   (const N *)wte, (const N *)wpe, T, (int)C, drop ? *drop : sgt_cuda_dropout());
    });
}

// ---- backward ----

template <class T> struct EmbedBackward {
    // Sorted positions are processed in chunks, and a run of equal tokens can extend over several
    // chunks. partial (chunks, 2, C) has the sums of such runs in each chunk. partial[chunk][0] is
    // for a run that continues from the previous chunk. partial[chunk][1] is for a run that begins
    // in this chunk and continues in the next.
    float *dwte, *partial;
    const int32_t *sorted, *order;
    const T *dout;
    int n, C;
};

// Return the address of the row in which the caller must store the sum of dout over the part of a
// run of equal tokens that is in this block's chunk. This part has the sorted positions `from` ..
// `to` - 1. If the entire run is in this chunk, return the token's row of dwte and set *adds to
// true: the caller must add the sum to the row. Otherwise return a row of `partial` and set *adds
// to false: the caller must overwrite the row with the sum.
template <class T> DEV float *run_sum(const EmbedBackward<T> &a, int from, int to, bool *adds)
{
    float *partial = a.partial + (size_t)blockIdx.x * 2 * a.C;
    int id = a.sorted[from];
    bool comes_in = from % CHUNK == 0 && from > 0 && a.sorted[from - 1] == id;
    bool goes_on = to % CHUNK == 0 && to < a.n && a.sorted[to] == id;
    *adds = !comes_in && !goes_on;
    return comes_in ? partial : goes_on ? partial + a.C : a.dwte + (size_t)id * a.C;
}

template <class T, int V> DEV void add_run(const EmbedBackward<T> &a, int from, int to, int c)
{
    float total[V] = {}, x[V];
    bool adds;
    float *sum = run_sum(a, from, to, &adds) + c;
    if (adds) load_floats(total, sum);
    for (int i = from; i < to; i++) {
        load(x, a.dout + (size_t)a.order[i] * a.C + c);
        DEV_UNROLL_FOR (int j = 0; j < V; j++) total[j] += x[j];
    }
    store_floats(sum, total);
}

// Add up dout over each run of equal tokens in a chunk of sorted positions. Each block processes
// one chunk. If a run is entirely within the chunk, add the sum to dwte. Otherwise store the sum in
// `partial`.
template <class T, int V>
__global__ void __launch_bounds__(THREADS) embed_chunk_kernel(EmbedBackward<T> a)
{
    dev::after_previous();
    int first = blockIdx.x * CHUNK, end = first + CHUNK < a.n ? first + CHUNK : a.n;
    for (int c = threadIdx.x * V; c < a.C; c += THREADS * V)
        for (int from = first, to; from < end; from = to) {
            for (to = from + 1; to < end && a.sorted[to] == a.sorted[from];) to++;
            add_run<T, V>(a, from, to, c);
        }
}

// Complete the run of equal tokens that begins in this chunk and continues in the next chunk: add
// up the partial sums of the run, and add the result to dwte. The run of a frequent token can
// extend over hundreds of chunks. Therefore JOINED partial sums are loaded at a time, so that the
// latencies of the loads overlap.
template <class T> __global__ void __launch_bounds__(THREADS) embed_join_kernel(EmbedBackward<T> a)
{
    dev::after_previous();
    int first = blockIdx.x * CHUNK, end = first + CHUNK;
    if (end >= a.n || a.sorted[end] != a.sorted[end - 1]) return; // no run continues
    int id = a.sorted[end - 1];
    // this run of equal ids began in an earlier chunk, whose block completes it
    if (first > 0 && a.sorted[first] == id && a.sorted[first - 1] == id) return;
    for (int c = threadIdx.x; c < a.C; c += THREADS) {
        float total = a.partial[(size_t)blockIdx.x * 2 * a.C + a.C + c], x[JOINED];
        for (int k = blockIdx.x + 1, n = JOINED; n == JOINED; k += JOINED) {
            // n: number of successive chunks, from chunk k on, into which the run continues, but at
            // most JOINED
            n = 0;
            DEV_UNROLL_FOR (int i = 0; i < JOINED; i++) {
                bool has = (k + i) * CHUNK < a.n && a.sorted[(k + i) * CHUNK] == id;
                x[i] = has ? a.partial[(size_t)(k + i) * 2 * a.C + c] : 0;
                n += has;
            }
            DEV_UNROLL_FOR (int i = 0; i < JOINED; i++)
                if (i < n) total += x[i];
        }
        a.dwte[(size_t)id * a.C + c] += total;
    }
}

template <class T, int V>
__global__ void __launch_bounds__(THREADS)
    embed_place_kernel(float *dwpe, const T *dout, size_t n, size_t T_, int C)
{
    dev::after_previous();
    for (int c = threadIdx.x * V; c < C; c += THREADS * V) {
        float total[V], x[V];
        load_floats(total, dwpe + (size_t)blockIdx.x * C + c);
        for (size_t row = blockIdx.x; row < n; row += T_) {
            load(x, dout + row * C + c);
            DEV_UNROLL_FOR (int i = 0; i < V; i++) total[i] += x[i];
        }
        store_floats(dwpe + (size_t)blockIdx.x * C + c, total);
    }
}

size_t sgt_cuda_embed_backward_scratch(size_t n, size_t C)
{
    return blocks_for(n, CHUNK) * 2 * C * sizeof(float);
}

void sgt_cuda_embed_backward(sgt_cuda_stream s, sgt_cuda_type type, float *dwte, float *dwpe,
                             const int32_t *sorted, const int32_t *order, const void *dout,
                             size_t n, size_t T, size_t C, void *scratch)
{
    if (n == 0) return;
    by_type_and_width(type, C, [&](auto zero, auto width) {
        using N = decltype(zero);
        dim3 chunks(blocks_for(n, CHUNK)), block(THREADS);
        EmbedBackward<N> a = {dwte,  (float *)scratch, sorted, order, (const N *)dout, (int)n,
                              (int)C};
        DEV_LAUNCH((embed_chunk_kernel<N, width>), chunks, block, 0, s, a);
        DEV_LAUNCH(embed_join_kernel<N>, chunks, block, 0, s, a);
        DEV_LAUNCH((embed_place_kernel<N, width>), dim3((unsigned)(n < T ? n : T)), block, 0, s,
                   dwpe, (const N *)dout, n, T, (int)C);
    });
}
