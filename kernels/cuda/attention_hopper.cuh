// attention_hopper.cuh: code that the attention kernels for sm_90, in attention_hopper.cu and
// attention_hopper_backward.cu, share. A block has three groups of 128 threads. Two groups are
// consumers. Each keeps 64 of the 128 rows of the block's own tile, and multiplies them with wgmma
// by all rows of each tile in the loop. The third group is the producer: one of its threads starts
// TMA copies of the tiles in the loop. The tiles go to a ring of STAGES buffers. Accumulators have
// the layout that attention.cuh describes, so its softmax and masks are used here, too.
//
// In shared memory, a tile of ROWS rows of D elements is split by columns. First come the first 64
// columns of all rows, then, if D is 128, the other 64 columns. TMA swizzles each row of 64
// elements. Each sequence is a plane of the tensor map, so TMA fills rows past the end of a
// sequence with zeros.
#pragma once

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/runtime.h"

namespace sgt
{

enum {
    CONSUMERS = 2,
    HOPPER_THREADS = 128 * (CONSUMERS + 1),
    MINE = 64,               // rows of one consumer
    BOTH = MINE * CONSUMERS, // rows of a block's own tile
    BOX = 64,                // rows of one TMA copy
    STAGES = 2,
    PRODUCER_REGISTERS = 24,
    // number of registers of a consumer thread; a block takes 24 * 128 + 240 * 256 = 64,512 of a
    // multiprocessor's 65,536 registers
    CONSUMER_REGISTERS = 240,
    BARRIERS = 1024 // bytes for the barriers; the tiles that follow must be 1024-byte aligned
};

template <int D, int ROWS> constexpr int WIDE_TILE = D *ROWS; // number of elements of a tile

// The barriers of a ring of STAGES tile buffers. The producer copies tile i into buffer i % STAGES.
struct Ring {
    uint64_t full[STAGES], empty[STAGES];

    DEV void make()
    {
        for (int i = 0; i < STAGES; i++) {
            dev::mbar_init(full + i, 1);
            // expected arrivals: one from each consumer warp
            dev::mbar_init(empty + i, CONSUMERS * 4);
        }
    }
    DEV uint64_t *bar(int i) { return full + i % STAGES; }
    DEV void wait_empty(int i)
    {
        if (i >= STAGES) dev::mbar_wait(empty + i % STAGES, (i / STAGES - 1) % 2);
    }
    DEV void wait_full(int i) { dev::mbar_wait(full + i % STAGES, i / STAGES % 2); }
    // Tell the producer that this warp does not need tile i any more. When all warps have done so,
    // the producer overwrites the tile's buffer. Call this only when the warp's matrix products
    // have finished reading the tile.
    DEV void release(int i)
    {
        dev::warp_sync(); // every lane has seen it full (the tile) and has finished its own reads
        if (threadIdx.x % 32 == 0) dev::mbar_arrive(empty + i % STAGES);
    }
    // Tell the producer that this consumer skips tile i, so that the producer need not wait for
    // this consumer to read the tile.
    DEV void skip(int i)
    {
        wait_full(i);
        release(i);
    }
};

// Initialize all barriers of a block: the barriers of the rings, and `own`, which completes when
// the block's own tile has arrived. `own` is at the beginning of shared memory.
template <class... R> DEV void make_barriers(uint64_t *own, R *...rings)
{
    if (threadIdx.x == 0) {
        dev::trap_unless_aligned(own);
        dev::mbar_init(own, 1);
        (rings->make(), ...);
        dev::mbar_init_fence();
    }
    dev::block_sync(); // every thread sees initialized barriers
}

// Start TMA copies that fill a tile of ROWS rows and D columns. The first element of the tile is at
// (plane, row, column) of the tensor map. The caller has already told the barrier `bar` how many
// bytes will arrive.
template <int D, int ROWS, class T>
DEV void load_rows(T *tile, const dev::TensorMap *map, uint64_t *bar, int column, int row,
                   int plane)
{
    DEV_UNROLL_FOR (int part = 0; part < D / 64; part++)
        DEV_UNROLL_FOR (int r = 0; r < ROWS; r += BOX)
            dev::tma_load(tile + part * ROWS * 64 + r * 64, map, bar, column + part * 64, row + r,
                          plane);
}

// Start s (64, N*8) = rows x tile^T, where `rows` (64, D) are rows row .. row + 63 of `own`, the
// block's own tile, and tile is (N*8, D). The matrix products are issued and committed. The caller
// must wait for them.
template <class T, int D, int N>
DEV void start_scores(float (&s)[N][4], const T *own, int row, const T *tile)
{
    DEV_UNROLL_FOR (int k = 0; k < D / 16; k++) {
        uint64_t a = dev::desc_rows(own + k / 4 * BOTH * 64 + row * 64);
        uint64_t b = dev::desc_rows(tile + k / 4 * N * 8 * 64);
        dev::wgmma<T>(s, a + k % 4 * dev::DESC_K16, b + k % 4 * dev::DESC_K16, k > 0);
    }
    dev::wgmma_commit();
}

// Start sum (64, D) += p (64, 16 K) x tile (16 K, D). The matrix products are issued and committed.
// The caller must wait for them.
template <class T, int D, int K>
DEV void start_sums(float (&sum)[D / 8][4], const uint32_t (&p)[K][4], const T *tile)
{
    uint64_t b = dev::desc_columns(tile, K * 16 * 128);
    DEV_UNROLL_FOR (int k = 0; k < K; k++) dev::wgmma<T>(sum, p[k], b + k * dev::DESC_ROWS16, true);
    dev::wgmma_commit();
}

// Round accumulators to T and pack them as the left operand of wgmma.
template <class T, int N> DEV void pack_rows(uint32_t (&p)[N / 2][4], const float (&s)[N][4])
{
    DEV_UNROLL_FOR (int k = 0; k < N / 2; k++)
        DEV_UNROLL_FOR (int i = 0; i < 4; i++)
            p[k][i] = dev::pack2<T>(s[2 * k + i / 2][i % 2 * 2], s[2 * k + i / 2][i % 2 * 2 + 1]);
}

// The dropout mask of a tile of N blocks of 8 columns, stored as one KeptTile for every 8 blocks.
// If DROP is false, the member functions do nothing.
template <bool DROP, int N> struct Draws {
    KeptTile<8> tile[DROP ? N / 8 : 1];

    DEV void by_rows(const Kept<DROP> &kept, int query, int key)
    {
        if constexpr (DROP) {
            DEV_UNROLL_FOR (int i = 0; i < N / 8; i++) tile[i].by_rows(kept, query, key + 64 * i);
        }
    }
    DEV void by_columns(const Kept<DROP> &kept, int key, int query)
    {
        if constexpr (DROP) {
            DEV_UNROLL_FOR (int i = 0; i < N / 8; i++)
                tile[i].by_columns(kept, key, query + 64 * i);
        }
    }
    DEV void drop(float (&x)[N][4]) const
    {
        if constexpr (DROP) {
            DEV_UNROLL_FOR (int n = 0; n < N; n++)
                DEV_UNROLL_FOR (int e = 0; e < 4; e++)
                    if (!tile[n / 8].at(n % 8, e)) x[n][e] = 0;
        }
    }
};

// Position of a block's head in the tensor maps of TMA. plane: index of the sequence; plain: first
// column of the head in out, in dout and in the queries of qkv; width: number of columns from the
// head's queries to its keys in qkv, and from its keys to its values.
struct Columns {
    int plane, plain, width;

    template <class T>
    DEV Columns(const Heads<T> &a, int which)
        : plane(which / a.heads), plain(which % a.heads * a.D), width(a.heads * a.D)
    {
    }
};

// ---- on the host ----

// Create the tensor map of an array (B, T, parts * H * D), for boxes of BOX rows. On failure,
// return false; the next sgt_cuda_check then reports the error.
template <class T>
bool map_rows(dev::TensorMap *map, const T *base, const sgt_cuda_heads &a, size_t parts)
{
    size_t columns = parts * a.H * a.D;
    bool made = dev::tensor_map(map, base, a.B, a.T, columns, columns, BOX);
    if (!made) sgt_cuda_note_failure("attention for sm_90: cuTensorMapEncodeTiled", 1);
    return made;
}

// Call f(T(), D, dropping). T is the type of the elements (bf16 or f16). D, the width of a head, is
// std::integral_constant<int, 64> or <int, 128>. `dropping` is std::true_type if dropout is on,
// else std::false_type.
template <class F> void by_wide_head(const sgt_cuda_heads &a, F f)
{
    auto sized = [&](auto zero) {
        by_dropout(a, [&](auto dropping) {
            if (a.D == 64) f(zero, std::integral_constant<int, 64>(), dropping);
            else f(zero, std::integral_constant<int, 128>(), dropping);
        });
    };
    if (a.type == SGT_BF16) sized(dev::bf16());
    else sized(dev::f16());
}

} // namespace sgt
