/* guard.h: for tests of files that are cut short while mapped. Three shards, opened with the mmap
 * reader and the guard against SIGBUS. */
#ifndef SGT_TESTS_GUARD_H
#define SGT_TESTS_GUARD_H

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/loader/batches.h"

enum { T = 512, B = 4, LEN = 40000, PAGE = 4096 };

static inline void guard(void) { must(sgt_loader_guard_sigbus(why)); }

static inline sgt_loader *open_mapped(const char *path, sgt_sampling sampling)
{
    sgt_loader_options o = {
        .reader = SGT_READER_MMAP, .sampling = sampling, .batch = B, .seq = T, .seed = 5};
    return open_loader(path, &o, NULL);
}

static inline void put_three(void)
{
    for (uint32_t i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "d/train_%06u.bin", i);
        put_shard(name, i, LEN);
    }
}

/* Return how many windows of batch k extend past byte `size` of shard `of`. */
static inline int past(const sgt_loader *l, uint64_t k, uint32_t of, uint64_t size)
{
    int n = 0;
    for (uint64_t r = 0; r < B; r++) {
        uint32_t shard;
        uint64_t at;
        sgt_loader_window(l, k * B + r, &shard, &at);
        n += shard == of && SGT_SHARD_HEADER + id_width * (at + T + 1) > size;
    }
    return n;
}

/* Cut shard 1 to `size` bytes while it is mapped. If `behind` is set, rename it first, so that
 * checks by its path cannot find the cut: only SIGBUS reveals it. */
static inline void cut(uint64_t size, int behind)
{
    if (behind) cr_assert_eq(rename("d/train_000001.bin", "d/other"), 0);
    resize(behind ? "d/other" : "d/train_000001.bin", size);
}

#endif
