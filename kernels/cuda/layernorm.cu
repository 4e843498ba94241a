// layernorm.cu: LayerNorm, with the residual addition before it, and its backward pass. Each row is
// processed by one warp, so that no warp waits for another. There are two kernels for each pass:
// one for rows that fit in the registers of a warp, and one that keeps rows in shared memory.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/dropout.cuh"

using namespace sgt;

template <class T> struct NormForward {
    T *sum, *out;
    float *mean, *rstd;
    // Inputs of the layer, which normalizes x + dropout(y + bias) and stores this sum in `sum`. If
    // y is NULL, the layer normalizes x and does not write `sum`.
    const T *x, *y;
    const T *bias; // added to y; NULL: no bias
    const float *w, *b;
    size_t n;
    int C;
    float eps;
    sgt_cuda_dropout drop;
};

template <class T> struct NormBackward {
    T *dx;
    // (blocks, parts, C) array of partial sums: each block writes a row of C floats for each part.
    // Part 0 is for dw, part 1 is for db, and part 2, which only norm_rows_backward_kernel writes,
    // is for the sum of dx over all rows.
    float *partial;
    const T *dout, *x;
    const float *mean, *rstd, *w;
    size_t n;
    int C, first; // first: 1: overwrite dx; 0: add to it
};

// Add the residual branch y to x, for V elements of a row, from column c on. Set y to dropout(y +
// bias) and x to x + y, rounded to T, and store the new x in a.sum.
template <class T, int V>
DEV void add_branch(float (&x)[V], float (&y)[V], const NormForward<T> &a, size_t row, int c)
{
    size_t at = row * a.C + c;
    if (a.bias) {
        float bias[V];
        load(bias, a.bias + c);
        DEV_UNROLL_FOR (int j = 0; j < V; j++) y[j] += bias[j];
    }
    if (a.drop.rate > 0) {
        float factor[V];
        dropout_factors(factor, a.drop, at);
        DEV_UNROLL_FOR (int j = 0; j < V; j++) y[j] *= factor[j];
    }
    DEV_UNROLL_FOR (int j = 0; j < V; j++) x[j] = rounded<T>(x[j] + y[j]);
    store(a.sum + at, x);
}

// ---- rows of any length: no barrier, because a lane reads only elements that it stored itself
// ----

enum { WARPS = 4, MOST_BLOCKS = 264 /* at most two blocks per multiprocessor of an H200 */ };

// Add the residual branch a.y to a row of a.x. Store the sum, rounded to T, in a.sum and in `kept`,
// the copy of the row in shared memory. If a.y is NULL, only copy the row to `kept`. Return the sum
// of the elements that this lane stored, from which the mean is computed.
template <class T, int V> DEV float add_residual(const NormForward<T> &a, size_t row, T *kept)
{
    float total = 0;
    for (int c = threadIdx.x % 32 * V; c < a.C; c += 32 * V) {
        float x[V], y[V];
        load(x, a.x + row * a.C + c);
        if (a.y) {
            load(y, a.y + row * a.C + c);
            add_branch(x, y, a, row, c);
        }
        store(kept + c, x);
        DEV_UNROLL_FOR (int i = 0; i < V; i++) total += x[i];
    }
    return total;
}

template <class T, int V>
__global__ void __launch_bounds__(WARPS * 32) norm_kernel(NormForward<T> a)
{
    dev::after_previous();
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    size_t row = (size_t)blockIdx.x * warps + warp;
    if (row >= a.n) return;
    T *kept = (T *)dev::dyn_smem() + (size_t)warp * a.C;
    float mean = dev::warp_sum(add_residual<T, V>(a, row, kept)) / (float)a.C, squares = 0;
    for (int c = lane * V; c < a.C; c += 32 * V) {
        float x[V];
        load(x, kept + c);
        DEV_UNROLL_FOR (int i = 0; i < V; i++) squares += (x[i] - mean) * (x[i] - mean);
    }
    float rstd = 1 / sqrtf(dev::warp_sum(squares) / (float)a.C + a.eps);
    for (int c = lane * V; c < a.C; c += 32 * V) {
        float x[V], w[V], b[V];
        load(x, kept + c);
        load_floats(w, a.w + c);
        load_floats(b, a.b + c);
        DEV_UNROLL_FOR (int i = 0; i < V; i++) x[i] = (x[i] - mean) * rstd * w[i] + b[i];
        store(a.out + row * a.C + c, x);
    }
    if (lane == 0) {
        a.mean[row] = mean;
        a.rstd[row] = rstd;
    }
}

template <int V> struct Chunk {
    float g[V], xhat[V], dout[V]; // g = dout * w
};

template <class T, int V>
DEV void load_chunk(Chunk<V> &k, const NormBackward<T> &a, size_t row, int c)
{
    float w[V], mean = a.mean[row], rstd = a.rstd[row];
    load(k.dout, a.dout + row * a.C + c);
    load(k.xhat, a.x + row * a.C + c);
    load_floats(w, a.w + c);
    DEV_UNROLL_FOR (int i = 0; i < V; i++) {
        k.g[i] = k.dout[i] * w[i];
        k.xhat[i] = (k.xhat[i] - mean) * rstd;
    }
}

// For one row, compute rstd * (g - mean(g) - xhat * mean(g*xhat)), where g = dout * w and the means
// are over the row. Store the result in dx or, unless a.first is set, add it to the old dx. Also
// add the row's dout*xhat to dw, and the row's dout to db. dw and db are in shared memory, where
// each lane has its own columns.
template <class T, int V>
DEV void backward_row(const NormBackward<T> &a, size_t row, float *dw, float *db)
{
    Chunk<V> k;
    int first = threadIdx.x % 32 * V;
    float sum_g = 0, sum_gx = 0;
    for (int c = first; c < a.C; c += 32 * V) {
        load_chunk(k, a, row, c);
        DEV_UNROLL_FOR (int i = 0; i < V; i++) {
            sum_g += k.g[i];
            sum_gx += k.g[i] * k.xhat[i];
        }
    }
    float mean_g = dev::warp_sum(sum_g) / (float)a.C, mean_gx = dev::warp_sum(sum_gx) / (float)a.C,
          rstd = a.rstd[row];
    for (int c = first; c < a.C; c += 32 * V) {
        float dx[V] = {}, w[V], b[V];
        // load these elements again, because a long row does not fit in registers; the elements are
        // still in a cache
        load_chunk(k, a, row, c);
        if (!a.first) load(dx, a.dx + row * a.C + c);
        load_floats(w, dw + c);
        load_floats(b, db + c);
        DEV_UNROLL_FOR (int i = 0; i < V; i++) {
            dx[i] += rstd * (k.g[i] - mean_g - k.xhat[i] * mean_gx);
            w[i] += k.dout[i] * k.xhat[i];
            b[i] += k.dout[i];
        }
        store(a.dx + row * a.C + c, dx);
        store_floats(dw + c, w);
        store_floats(db + c, b);
    }
}

template <class T, int V>
__global__ void __launch_bounds__(WARPS * 32) norm_backward_kernel(NormBackward<T> a)
{
    dev::after_previous();
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    float *sums = (float *)dev::dyn_smem(), *mine = sums + (size_t)warp * 2 * a.C, zero[V] = {};
    for (int c = lane * V; c < a.C; c += 32 * V) {
        store_floats(mine + c, zero);
        store_floats(mine + a.C + c, zero);
    }
    for (size_t row = (size_t)blockIdx.x * warps + warp; row < a.n;
         row += (size_t)gridDim.x * warps)
        backward_row<T, V>(a, row, mine, mine + a.C);
    dev::block_sync(); // every warp's sums are complete
    for (int c = threadIdx.x; c < 2 * a.C; c += blockDim.x) {
        float total = 0;
        for (int w = 0; w < warps; w++) total += sums[(size_t)w * 2 * a.C + c];
        a.partial[(size_t)blockIdx.x * 2 * a.C + c] = total;
    }
}

// ---- rows that fit in registers ----
//
// A warp loads an entire row at once, and loads no element twice. Therefore enough loads are in
// flight to use the full memory bandwidth. In the backward pass, a warp processes several rows. It
// keeps the sums for dw and db in registers until its last row, and only then adds these sums to
// those of the other warps, in shared memory. It also sums dx over the rows. This sum is the
// gradient of the bias of the projection (proj or fcproj) whose output is added to the residual
// stream.

// MULTIPROCESSORS: number of multiprocessors of an H100; blocks_each: number of blocks on each of
// them in the backward pass. This is three, or two for long rows, because their sums take more
// registers. This many blocks fit on a multiprocessor, so that all blocks run at the same time.
enum { ROW_WARPS = 4, MULTIPROCESSORS = 132 };
constexpr int blocks_each(int chunks) { return chunks <= 3 ? 3 : 2; }

constexpr int forward_blocks_each(int chunks) { return chunks <= 3 ? 4 : 3; }

// The elements of a row that a lane holds. A row consists of chunks of 32 * V elements. Lane l
// holds V elements of each chunk, from index l * V of the chunk on. Elements past column C are 0.
template <class T, int CHUNKS> struct Lane {
    static constexpr int V = PER16<T>;
    dev::Vec16 raw[CHUNKS];

    DEV void load(const T *from, int C)
    {
        DEV_UNROLL_FOR (int i = 0; i < CHUNKS; i++) {
            int c = (i * 32 + threadIdx.x % 32) * V;
            raw[i] = c < C ? dev::ld16(from + c) : dev::Vec16{};
        }
    }
};

// Normalize a row. All sums are added in the same order as in norm_kernel, so both kernels give the
// same bits.
template <class T, int CHUNKS, bool RESIDUAL>
DEV void normalize_row(const NormForward<T> &a, size_t row)
{
    constexpr int V = PER16<T>;
    int first = threadIdx.x % 32 * V;
    Lane<T, CHUNKS> raw, branch;
    float x[CHUNKS][V], total = 0, squares = 0;
    raw.load(a.x + row * a.C, a.C);
    if (RESIDUAL) branch.load(a.y + row * a.C, a.C);
    DEV_UNROLL_FOR (int i = 0; i < CHUNKS; i++) {
        int c = first + i * 32 * V;
        dev::unpack16<T>(x[i], raw.raw[i]);
        if (RESIDUAL && c < a.C) {
            float y[V];
            dev::unpack16<T>(y, branch.raw[i]);
            add_branch(x[i], y, a, row, c);
        }
        DEV_UNROLL_FOR (int j = 0; j < V; j++) total += x[i][j];
    }
    float mean = dev::warp_sum(total) / (float)a.C;
    DEV_UNROLL_FOR (int i = 0; i < CHUNKS; i++)
        if (first + i * 32 * V < a.C)
            DEV_UNROLL_FOR (int j = 0; j < V; j++) squares += (x[i][j] - mean) * (x[i][j] - mean);
    float rstd = 1 / sqrtf(dev::warp_sum(squares) / (float)a.C + a.eps);
    DEV_UNROLL_FOR (int i = 0; i < CHUNKS; i++) {
        int c = first + i * 32 * V;
        float w[V], b[V];
        if (c >= a.C) break;
        load_floats(w, a.w + c);
        load_floats(b, a.b + c);
        DEV_UNROLL_FOR (int j = 0; j < V; j++) x[i][j] = (x[i][j] - mean) * rstd * w[j] + b[j];
        store(a.out + row * a.C + c, x[i]);
    }
    if (threadIdx.x % 32 == 0) {
        a.mean[row] = mean;
        a.rstd[row] = rstd;
    }
}

template <class T, int CHUNKS, bool RESIDUAL>
__global__ void __launch_bounds__(ROW_WARPS * 32, forward_blocks_each(CHUNKS))
    norm_rows_kernel(NormForward<T> a)
{
    dev::after_previous();
    for (size_t row = (size_t)blockIdx.x * ROW_WARPS + threadIdx.x / 32; row < a.n;
         row += (size_t)gridDim.x * ROW_WARPS)
        normalize_row<T, CHUNKS, RESIDUAL>(a, row);
}

// The elements of a row of dout, x and dx that a lane holds: V elements of each chunk of 32 * V
// elements, from index lane * V of the chunk on. Elements past column C are 0.
template <class T, int CHUNKS> struct Row {
    static constexpr int V = PER16<T>;
    dev::Vec16 dout[CHUNKS], x[CHUNKS], dx[CHUNKS];
    float mean, rstd;

    DEV void load(const NormBackward<T> &a, size_t row)
    {
        size_t at = row * a.C;
        DEV_UNROLL_FOR (int i = 0; i < CHUNKS; i++) {
            int c = (i * 32 + threadIdx.x % 32) * V;
            dout[i] = c < a.C ? dev::ld16(a.dout + at + c) : dev::Vec16{};
            x[i] = c < a.C ? dev::ld16(a.x + at + c) : dev::Vec16{};
            dx[i] = c < a.C && !a.first ? dev::ld16(a.dx + at + c) : dev::Vec16{};
        }
        mean = a.mean[row];
        rstd = a.rstd[row];
    }

    // Convert the lane's elements of chunk i to float: d = dout, g = dout * w, and xhat = (x -
    // mean) * rstd. The weights w are loaded again for each row, and come from a cache. Keeping the
    // weights in registers would reduce the number of warps that fit on a multiprocessor by a
    // third.
    DEV void unpack(float (&d)[V], float (&g)[V], float (&xhat)[V], const NormBackward<T> &a,
                    int i) const
    {
        int c = (i * 32 + threadIdx.x % 32) * V;
        dev::unpack16<T>(d, dout[i]);
        dev::unpack16<T>(xhat, x[i]);
        float w[V] = {};
        if (c < a.C) load_floats(w, a.w + c);
        DEV_UNROLL_FOR (int j = 0; j < V; j++) {
            g[j] = w[j] * d[j];
            xhat[j] = (xhat[j] - mean) * rstd;
        }
    }
};

// A lane's sums over the rows that its warp has processed so far, for each column that the lane
// holds: sum[0] for dw, sum[1] for db, and sum[2] for the sum of dx.
template <class T, int CHUNKS> struct Columns {
    static constexpr int V = PER16<T>;
    float sum[3][CHUNKS][V];

    DEV void clear()
    {
        DEV_UNROLL_FOR (int p = 0; p < 3; p++)
            DEV_UNROLL_FOR (int i = 0; i < CHUNKS; i++)
                DEV_UNROLL_FOR (int j = 0; j < V; j++) sum[p][i][j] = 0;
    }

    // Add up the sums of the block's warps and store them in a.partial, in a fixed order: first the
    // sums for dw, then those for db, then those of dx. `shared` must have room for ROW_WARPS rows
    // of C floats, and is reused in each of these three steps.
    DEV void finish(const NormBackward<T> &a, float *shared) const
    {
        int warp = threadIdx.x / 32;
        float *out = a.partial + (size_t)blockIdx.x * 3 * a.C;
        DEV_UNROLL_FOR (int p = 0; p < 3; p++) {
            DEV_UNROLL_FOR (int i = 0; i < CHUNKS; i++) {
                int c = (i * 32 + threadIdx.x % 32) * V;
                if (c < a.C) store_floats(shared + warp * a.C + c, sum[p][i]);
            }
            dev::block_sync(); // every warp's sums are written
            for (int c = threadIdx.x; c < a.C; c += ROW_WARPS * 32) {
                float total = 0;
                for (int w = 0; w < ROW_WARPS; w++) total += shared[w * a.C + c];
                out[p * a.C + c] = total;
            }
            dev::block_sync(); // every sum has been read before the next part's overwrite it
        }
    }
};

// Set sum_g to the sum of g, and sum_gx to the sum of g * xhat, over this lane's elements of the
// row. Also add the row's part of dw and db to the sums for dw and db.
template <class T, int CHUNKS>
DEV void add_row(float &sum_g, float &sum_gx, const NormBackward<T> &a, const Row<T, CHUNKS> &r,
                 Columns<T, CHUNKS> &columns)
{
    constexpr int V = PER16<T>;
    sum_g = sum_gx = 0;
    DEV_UNROLL_FOR (int i = 0; i < CHUNKS; i++) {
        float d[V], g[V], xhat[V];
        r.unpack(d, g, xhat, a, i);
        DEV_UNROLL_FOR (int j = 0; j < V; j++) {
            sum_g += g[j];
            sum_gx += g[j] * xhat[j];
            columns.sum[0][i][j] += d[j] * xhat[j];
            columns.sum[1][i][j] += d[j];
        }
    }
}

// Compute rstd * (g - mean(g) - xhat * mean(g*xhat)), as norm_backward_kernel does. If a.first is
// set, store it in dx; otherwise, add it to dx. Then add the new dx, as rounded to T, to the column
// sums of dx.
template <class T, int CHUNKS>
DEV void store_row(const NormBackward<T> &a, size_t row, const Row<T, CHUNKS> &r, float mean_g,
                   float mean_gx, Columns<T, CHUNKS> &columns)
{
    constexpr int V = PER16<T>;
    DEV_UNROLL_FOR (int i = 0; i < CHUNKS; i++) {
        float d[V], g[V], xhat[V], dx[V];
        int c = (i * 32 + threadIdx.x % 32) * V;
        r.unpack(d, g, xhat, a, i);
        dev::unpack16<T>(dx, r.dx[i]);
        DEV_UNROLL_FOR (int j = 0; j < V; j++)
            dx[j] += r.rstd * (g[j] - mean_g - xhat[j] * mean_gx);
        dev::Vec16 stored = dev::pack16<T>(dx);
        if (c < a.C) {
            dev::st16(a.dx + row * a.C + c, stored);
            dev::unpack16<T>(dx, stored);
            DEV_UNROLL_FOR (int j = 0; j < V; j++) columns.sum[2][i][j] += dx[j];
        }
    }
}

template <class T, int CHUNKS>
__global__ void __launch_bounds__(ROW_WARPS * 32, blocks_each(CHUNKS))
    norm_rows_backward_kernel(NormBackward<T> a)
{
    dev::after_previous();
    Columns<T, CHUNKS> columns;
    columns.clear();
    for (size_t row = (size_t)blockIdx.x * ROW_WARPS + threadIdx.x / 32; row < a.n;
         row += (size_t)gridDim.x * ROW_WARPS) {
        Row<T, CHUNKS> r;
        float sum_g, sum_gx;
        r.load(a, row);
        add_row(sum_g, sum_gx, a, r, columns);
        store_row(a, row, r, dev::warp_sum(sum_g) / (float)a.C, dev::warp_sum(sum_gx) / (float)a.C,
                  columns);
    }
    columns.finish(a, (float *)dev::dyn_smem());
}

// ---- on the host ----

// Maximum number of chunks of a row that fit in the registers of a warp, enough for rows of 768
// floats or 1,280 16-bit elements.
template <class T> constexpr int most_chunks() { return sizeof(T) == 4 ? 6 : 5; }

// Return the number of chunks in a row of C elements. Return 0 if the row does not fit in registers
// or is not a multiple of 16 bytes.
template <class T> static int chunks_in(size_t C)
{
    int chunks = (int)blocks_for(C, 32 * PER16<T>);
    return C % PER16<T> == 0 && chunks <= most_chunks<T>() ? chunks : 0;
}

static int chunks_of(sgt_cuda_type type, size_t C)
{
    return type == SGT_F32 ? chunks_in<float>(C) : chunks_in<dev::bf16>(C);
}

// Return the number of warps per block: WARPS, or fewer if shared memory cannot hold a row of
// `bytes` bytes for each of them.
static int warps_for(size_t bytes)
{
    int warps = WARPS;
    while (warps > 1 && warps * bytes > MOST_SHARED) warps /= 2;
    return warps;
}

template <class T, int CHUNKS> static void launch_rows(sgt_cuda_stream s, const NormForward<T> &a)
{
    if constexpr (CHUNKS <= most_chunks<T>()) {
        if (a.C > CHUNKS * 32 * PER16<T>) return launch_rows<T, CHUNKS + 1>(s, a);
        unsigned blocks = blocks_for(a.n, ROW_WARPS),
                 most = MULTIPROCESSORS * forward_blocks_each(CHUNKS);
        dim3 grid(blocks < most ? blocks : most), block(ROW_WARPS * 32);
        if (a.y) DEV_LAUNCH((norm_rows_kernel<T, CHUNKS, true>), grid, block, 0, s, a);
        else DEV_LAUNCH((norm_rows_kernel<T, CHUNKS, false>), grid, block, 0, s, a);
    }
}

void sgt_cuda_residual_layernorm(sgt_cuda_stream s, sgt_cuda_type type, void *sum, void *out,
                                 float *mean, float *rstd, const void *x, const void *y,
                                 const void *bias, const float *w, const float *b, size_t n,
                                 size_t C, float eps, const sgt_cuda_dropout *drop)
{
    if (n == 0) return;
    by_type_and_width(type, C, [&](auto zero, auto width) {
        using T = decltype(zero);
        int warps = warps_for(C * sizeof(T));
        NormForward<T> a = {
            (T *)sum, (T *)out, mean, rstd, (const T *)x, (const T *)y, (const T *)bias, w, b,
            n,        (int)C,   eps,  {}};
        if (drop) a.drop = *drop;
        if (chunks_of(type, C)) launch_rows<T, 1>(s, a);
        else
            DEV_LAUNCH((norm_kernel<T, width>), dim3(blocks_for(n, warps)), dim3(warps * 32),
                       warps * C * sizeof(T), s, a);
    });
}

static int backward_warps(size_t C) { return warps_for(2 * C * sizeof(float)); }

static unsigned backward_blocks(sgt_cuda_type type, size_t n, size_t C)
{
    int chunks = chunks_of(type, C);
    unsigned blocks = blocks_for(n, (size_t)(chunks ? ROW_WARPS : backward_warps(C))),
             most = (unsigned)(chunks ? MULTIPROCESSORS * blocks_each(chunks) : MOST_BLOCKS);
    return blocks < most ? blocks : most;
}

size_t sgt_cuda_layernorm_backward_scratch(sgt_cuda_type type, size_t n, size_t C)
{
    size_t sums = backward_blocks(type, n, C) * 3 * C * sizeof(float),
           bias = sgt_cuda_bias_backward_scratch(n, C);
    return sums > bias ? sums : bias;
}

template <class T, int CHUNKS>
static void launch_rows_backward(sgt_cuda_stream s, unsigned blocks, const NormBackward<T> &a)
{
    if constexpr (CHUNKS <= most_chunks<T>()) {
        if (a.C <= CHUNKS * 32 * PER16<T>)
            DEV_LAUNCH((norm_rows_backward_kernel<T, CHUNKS>), dim3(blocks), dim3(ROW_WARPS * 32),
                       ROW_WARPS * a.C * sizeof(float), s, a);
        else launch_rows_backward<T, CHUNKS + 1>(s, blocks, a);
    }
}

void sgt_cuda_layernorm_backward(sgt_cuda_stream s, sgt_cuda_type type, void *dx, int first,
                                 float *dw, float *db, float *dbias, const void *dout,
                                 const void *x, const float *mean, const float *rstd,
                                 const float *w, size_t n, size_t C, void *scratch)
{
    if (n == 0) return;
    int warps = backward_warps(C), chunks = chunks_of(type, C);
    unsigned blocks = backward_blocks(type, n, C);
    by_type_and_width(type, C, [&](auto zero, auto width) {
        using T = decltype(zero);
        NormBackward<T> a = {
            (T *)dx, (float *)scratch, (const T *)dout, (const T *)x, mean, rstd, w, n, (int)C,
            first};
        if (chunks) launch_rows_backward<T, 1>(s, blocks, a);
        else
            DEV_LAUNCH((norm_backward_kernel<T, width>), dim3(blocks), dim3(warps * 32),
                       warps * 2 * C * sizeof(float), s, a);
    });
    fold_columns(s, {{dw, db, dbias}}, chunks && dbias ? 3 : 2, chunks ? 3 : 2,
                 (const float *)scratch, blocks, C);
    if (dbias && !chunks) sgt_cuda_bias_backward(s, type, dbias, dx, n, C, scratch);
}
