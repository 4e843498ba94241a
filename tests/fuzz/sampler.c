/* sampler.c: the permutation is a bijection of 0 .. n-1 for any n. Windows of every sampling lie in
 * their shards, and are the same whether they are computed one by one or many at a time. In
 * samplings without replacement, each window occurs once per epoch. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "loader/sample/sampler.h"

enum { SHARDS = 5, ROWS = 300, SMALL = 5000 };

static uint64_t take(const uint8_t **data, size_t *size, size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes && *size; i++, ++*data, --*size) v = v << 8 | **data;
    return v;
}

/* Check that the permutation is a bijection: all n images if n is small. If n is large, check 64
 * neighbours, whose images must be distinct and below n. */
static void check_permutation(uint64_t key, uint64_t n)
{
    static uint8_t seen[SMALL];
    sgt_permutation p;
    sgt_permutation_init(&p, key, n);
    if (n <= SMALL) memset(seen, 0, n);
    uint64_t images[64], from = n <= SMALL ? 0 : key % (n - 64), count = n <= SMALL ? n : 64;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t image = sgt_permute(&p, from + i);
        must(image < n, "an image is below n");
        if (n <= SMALL) {
            must(!seen[image]++, "no image comes twice");
            continue;
        }
        images[i] = image;
        for (uint64_t k = 0; k < i; k++)
            must(images[k] != image, "neighbours have images of their own");
    }
}

static int by_place(const void *a, const void *b)
{
    const sgt_window *x = a, *y = b;
    if (x->shard != y->shard) return x->shard < y->shard ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Check that the epoch whose first row is `first` has every window once. The windows of a shard
 * begin T tokens apart. */
static void check_epoch(const sgt_sampler *s, uint64_t first)
{
    static sgt_window w[SMALL];
    for (uint64_t i = 0; i < s->windows; i++) w[i] = sgt_sampler_window(s, NULL, first + i);
    qsort(w, s->windows, sizeof *w, by_place);
    uint64_t apart = s->sampling == SGT_SAMPLING_DOCUMENTS ? 1 : s->seq;
    for (uint64_t i = 1; i < s->windows; i++)
        must(w[i].shard != w[i - 1].shard || w[i].offset - w[i - 1].offset == apart,
             "an epoch has every window once");
}

static void check_rows(const sgt_sampler *s, const uint64_t *tokens, uint64_t row, uint64_t step)
{
    uint64_t rows[ROWS];
    sgt_window w[ROWS];
    sgt_sampler_memo memo = {0}, one = {0};
    int documents = s->sampling == SGT_SAMPLING_DOCUMENTS;
    for (uint64_t i = 0; i < ROWS; i++) rows[i] = row + i * step;
    sgt_sampler_windows(s, &memo, rows, ROWS, w);
    for (uint64_t i = 0; i < ROWS; i++) {
        sgt_window alone = sgt_sampler_window(s, i % 2 ? &one : NULL, rows[i]);
        must(alone.shard == w[i].shard && alone.offset == w[i].offset &&
                 alone.tokens == w[i].tokens,
             "one by one the same");
        must(w[i].shard < s->shards, "a window has a shard");
        must(w[i].tokens == (documents ? 0 : s->seq + 1), "it has T + 1 tokens");
        must(w[i].offset < tokens[w[i].shard] && tokens[w[i].shard] - w[i].offset >= w[i].tokens,
             "all of them in it");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sgt_sampler s;
    sgt_error err;
    take_level();
    uint64_t key = take(&data, &size, 8), n = take(&data, &size, 8), tokens[SHARDS],
             wide = take(&data, &size, 1);
    check_permutation(key, n % SMALL + 1);
    check_permutation(key, n >> 1 | 64);
    /* packed has no windows of its own */
    sgt_sampling sampling = (sgt_sampling)(take(&data, &size, 1) % SGT_SAMPLING_PACKED);
    uint32_t seq = (uint32_t)take(&data, &size, wide & 1 ? 3 : 1) + 1;
    for (int i = 0; i < SHARDS; i++) /* a shard may have more tokens than a file can hold */
        tokens[i] = take(&data, &size, wide & 2 ? 6 : 2) +
                    (sampling == SGT_SAMPLING_DOCUMENTS ? i == 0 : seq + 1);
    uint64_t row = take(&data, &size, 5), step = take(&data, &size, 1) + 1;
    if (sgt_sampler_init(&s, sampling, key, seq, tokens, SHARDS, &err) < 0) return 0;
    if (wide & 4) s.block_tokens = 3 * seq, s.pool_blocks = 2;
    check_rows(&s, tokens, row, step);
    if (s.windows <= SMALL && sampling != SGT_SAMPLING_RANDOM)
        check_epoch(&s, row / s.windows * s.windows);
    sgt_sampler_free(&s);
    return 0;
}
