// attention_hopper.cu: the forward pass of causal attention for sm_90 (FlashAttention-3, Shah et
// al. 2024). A block keeps 128 queries, 64 for each of its two consumers (groups of 128 threads).
// The block loops over the keys that at least one of these queries sees, in tiles of 128 keys, from
// the last tile back to the first. Two kinds of work overlap. While a consumer computes the
// probabilities of one tile, the tensor cores compute the consumer's scores of the next tile. The
// consumers also take turns: one computes exponentials while the other uses the tensor cores.
#include "kernels/cuda/attention_hopper.cuh"

using namespace sgt;

enum { KEYS = 128 };

// Layout of a block's shared memory. Keys and values have separate rings of buffers, so that a
// block can compute the scores for a tile of keys before the values of these keys have arrived.
template <class T, int D> struct Forward {
    uint64_t *queries;
    Ring *keys, *values;
    T *own, *key_tiles, *value_tiles;
    static constexpr size_t BYTES =
        BARRIERS + (WIDE_TILE<D, BOTH> + 2 * STAGES * WIDE_TILE<D, KEYS>)*sizeof(T);

    DEV Forward()
    {
        unsigned char *shared = dev::dyn_smem();
        queries = (uint64_t *)shared;
        keys = (Ring *)(queries + 1);
        values = keys + 1;
        own = (T *)(shared + BARRIERS);
        key_tiles = own + WIDE_TILE<D, BOTH>;
        value_tiles = key_tiles + STAGES * WIDE_TILE<D, KEYS>;
    }
    DEV T *key_tile(int i) const { return key_tiles + i % STAGES * WIDE_TILE<D, KEYS>; }
    DEV T *value_tile(int i) const { return value_tiles + i % STAGES * WIDE_TILE<D, KEYS>; }
};

template <class T, int D>
DEV void produce(const Forward<T, D> &f, const dev::TensorMap *qkv, const Columns &c, int first,
                 int last, int begin)
{
    dev::mbar_arrive_expect(f.queries, WIDE_TILE<D, BOTH> * (int)sizeof(T));
    load_rows<D, BOTH>(f.own, qkv, f.queries, c.plain, first, c.plane);
    for (int i = 0, key = last; key >= begin; i++, key -= KEYS) {
        f.keys->wait_empty(i);
        dev::mbar_arrive_expect(f.keys->bar(i), WIDE_TILE<D, KEYS> * (int)sizeof(T));
        load_rows<D, KEYS>(f.key_tile(i), qkv, f.keys->bar(i), c.plain + c.width, key, c.plane);
        f.values->wait_empty(i);
        dev::mbar_arrive_expect(f.values->bar(i), WIDE_TILE<D, KEYS> * (int)sizeof(T));
        load_rows<D, KEYS>(f.value_tile(i), qkv, f.values->bar(i), c.plain + 2 * c.width, key,
                           c.plane);
    }
}

// Mask the scores of a tile, replace them with exponentials (probabilities that are not yet divided
// by their sum), and set to 0 the exponentials that dropout drops. As `soften` does, set `down` to
// the factors by which the caller must multiply sums over earlier tiles, which are relative to the
// old maximum.
template <class T, int N, bool DROP>
DEV void weigh(float (&s)[N][4], Running &r, float (&down)[2], const Heads<T> &a,
               const Draws<DROP, N> &draws, const Sight<T> &sight, int query, int key)
{
    if (key + KEYS > query) mask_later(s, query, key);
    if (key < sight.first_key(query + 15)) mask_earlier(s, sight, query, key);
    soften(s, r, down, a.scale_log2);
    // drop keys only after `soften`, because the sum of the softmax includes dropped keys
    draws.drop(s);
}

template <class T, int D, bool DROP>
DEV void consume(const Forward<T, D> &f, const Heads<T> &a, const Kept<DROP> &kept,
                 const Sight<T> &sight, int first, int last, int begin, float (&out)[D / 8][4],
                 Running &r)
{
    constexpr int N = KEYS / 8;
    int group = threadIdx.x / 128, row = group * MINE, query = first + threadIdx.x / 32 * 16;
    float s[N][4], down[2];
    uint32_t p[N / 2][4];
    Draws<DROP, N> draws;
    if (group == CONSUMERS - 1) dev::turn_pass(1, 256); // gives group 0 the first turn
    dev::mbar_wait(f.queries, 0);
    f.keys->wait_full(0);
    dev::wgmma_fence(out);
    start_scores<T, D>(s, f.own, row, f.key_tile(0));
    draws.by_rows(kept, query, last);
    dev::wgmma_wait<0>(s);
    f.keys->release(0);
    weigh(s, r, down, a, draws, sight, query, last);
    pack_rows<T>(p, s);
    int i = 1;
    for (int key = last - KEYS; key >= begin; i++, key -= KEYS) {
        f.keys->wait_full(i);
        dev::turn_wait(1 + group, 256);
        dev::wgmma_fence(s);
        start_scores<T, D>(s, f.own, row, f.key_tile(i));
        f.values->wait_full(i - 1);
        dev::wgmma_fence(p, out);
        start_sums<T, D>(out, p, f.value_tile(i - 1));
        dev::turn_pass(1 + (group + 1) % CONSUMERS, 256);
        draws.by_rows(kept, query, key);
        dev::wgmma_wait<1>(s);
        f.keys->release(i);
        weigh(s, r, down, a, draws, sight, query, key);
        dev::wgmma_wait<0>(out, p);
        f.values->release(i - 1);
        scale_down<D>(out, down);
        pack_rows<T>(p, s);
    }
    f.values->wait_full(i - 1);
    dev::wgmma_fence(p, out);
    start_sums<T, D>(out, p, f.value_tile(i - 1));
    dev::wgmma_wait<0>(out, p);
}

template <class T, int D, bool DROP>
__global__ void __launch_bounds__(HOPPER_THREADS, 1)
    attention_hopper_kernel(Heads<T> a, const __grid_constant__ dev::TensorMap qkv)
{
    dev::after_previous();
    Forward<T, D> f;
    Sight<T> sight(a, blockIdx.x);
    // Later queries see more keys, so their blocks take longer. Start these blocks first, so that
    // only short blocks are still running at the end.
    int first = (gridDim.y - 1 - blockIdx.y) * BOTH, last = first / KEYS * KEYS;
    static_assert((int)BOTH == (int)KEYS, "the diagonal is one tile");
    // first key that any of the block's queries sees, rounded down to the start of a tile
    int begin = sight.first_key(first) / KEYS * KEYS;
    make_barriers(f.queries, f.keys, f.values);
    if (threadIdx.x >= CONSUMERS * 128) {
        dev::regs_dec<PRODUCER_REGISTERS>();
        if (threadIdx.x == CONSUMERS * 128)
            produce(f, &qkv, Columns(a, blockIdx.x), first, last, begin);
        return;
    }
    dev::regs_inc<CONSUMER_REGISTERS>();
    Kept<DROP> kept(a, blockIdx.x);
    float out[D / 8][4] = {};
    Running r = {{NONE_YET, NONE_YET}, {0, 0}};
    consume(f, a, kept, sight, first, last, begin, out, r);
    finish<T, D>(a, Head(a, blockIdx.x), out, r, first + threadIdx.x / 32 * 16, kept.keep);
}

int sgt_cuda_attention_hopper_serves(sgt_cuda_type type, size_t D)
{
    return type != SGT_F32 && (D == 64 || D == 128) && dev::device_is_hopper();
}

void sgt_cuda_attention_hopper(sgt_cuda_stream s, const sgt_cuda_heads *a, void *out, float *lse,
                               const void *qkv)
{
    if (a->B * a->T * a->H == 0) return;
    by_wide_head(*a, [&](auto zero, auto width, auto dropping) {
        using N = decltype(zero);
        dev::TensorMap map;
        if (!map_rows(&map, (const N *)qkv, *a, 3)) return;
        DEV_LAUNCH((attention_hopper_kernel<N, width, dropping>),
                   dim3((unsigned)(a->B * a->H), blocks_for(a->T, BOTH)), dim3(HOPPER_THREADS),
                   (Forward<N, width>::BYTES), s, heads_of<N>(*a, qkv, out, lse), map);
    });
}
