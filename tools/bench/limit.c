/* limit.c: measures the speed limits that memory sets for a loader. The first is memcpy of the
 * loader's windows, out of huge pages that are already mapped; it waits for the beginning of each
 * window. The second reads the windows, each prefetched, and discards them. Only the windows'
 * addresses matter, so the memory holds no tokens. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/arena.h"
#include "loader/base/memory.h"
#include "loader/sgt_loader.h"
#include "loader/shards/shard.h"
#include "tools/bench/bench.h"

#define LINE 64                   /* bytes of a cache line */
#define LEAST ((uint64_t)4 << 20) /* least bytes of memory: room for the longest row */
/* windows chosen before the clock starts, then used in turn: 512 MiB at T = 1024 */
#define WINDOWS ((size_t)1 << 18)

struct bench_limit {
    sgt_arena memory;
    const uint16_t **windows; /* (WINDOWS) */
    uint16_t **rows;          /* (threads): memory for a batch */
    uint64_t *sums;           /* (threads): sum of the bytes that a thread has read */
    int threads;
    size_t batch, row_tokens; /* B, T+1 */
};

int bench_limit_open(bench_limit **out, uint64_t bytes, sgt_error *err)
{
    sgt_memory memory;
    sgt_memory_look(&memory, NULL);
    bench_limit *l = calloc(1, sizeof *l);
    if (!l || !(l->windows = calloc(WINDOWS, sizeof *l->windows))) {
        bench_limit_close(l);
        return sgt_fail_memory(err, NULL);
    }
    if (bytes > memory.available / 3) bytes = memory.available / 3;
    int rc = sgt_arena_map(&l->memory, (size_t)(bytes > LEAST ? bytes : LEAST), 1, err);
    if (rc < 0) bench_limit_close(l);
    else *out = l;
    return rc;
}

static void free_rows(bench_limit *l)
{
    for (int t = 0; t < l->threads; t++) free(l->rows[t]);
    free(l->rows);
    free(l->sums);
    l->rows = NULL;
    l->sums = NULL;
    l->threads = 0;
}

void bench_limit_close(bench_limit *l)
{
    if (!l) return;
    free_rows(l);
    sgt_arena_unmap(&l->memory);
    free(l->windows);
    free(l);
}

uint64_t bench_limit_bytes(const bench_limit *l) { return l->memory.size; }

static int tokens_of(uint64_t *tokens, const char *path, int raw, sgt_error *err)
{
    sgt_shard_header h;
    int fd = sgt_shard_open(&h, path, raw ? 1 : -1, err);
    if (fd < 0) return fd;
    close(fd);
    *tokens = h.tokens;
    return SGT_OK;
}

/* Set bases[i] to the number of tokens in all shards before shard i. */
static int find_bases(uint64_t *bases, const sgt_loader *loader, int raw, uint64_t shards,
                      sgt_error *err)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < shards; i++) {
        uint64_t tokens;
        int rc = tokens_of(&tokens, sgt_loader_shard_path(loader, (uint32_t)i), raw, err);
        if (rc < 0) return rc;
        bases[i] = at;
        at += tokens;
    }
    return SGT_OK;
}

int bench_limit_aim(bench_limit *l, const sgt_loader *loader, int raw, int threads, sgt_error *err)
{
    sgt_loader_info info;
    sgt_loader_get_info(loader, &info);
    free_rows(l);
    l->batch = info.batch;
    l->row_tokens = (size_t)info.seq + 1;
    uint64_t *bases = calloc(info.shards, sizeof *bases);
    l->rows = calloc((size_t)threads, sizeof *l->rows);
    l->sums = calloc((size_t)threads, sizeof *l->sums);
    int rc = bases && l->rows && l->sums ? find_bases(bases, loader, raw, info.shards, err)
                                         : sgt_fail_memory(err, NULL);
    for (; rc == SGT_OK && l->threads < threads; l->threads++)
        if (!(l->rows[l->threads] = calloc(l->batch * l->row_tokens, sizeof **l->rows)))
            rc = sgt_fail_memory(err, "a batch");
    uint64_t span = l->memory.size / 2 - l->row_tokens + 1; /* possible starts of a row */
    for (size_t w = 0; w < WINDOWS && rc == SGT_OK; w++) {
        uint32_t shard;
        uint64_t at;
        sgt_loader_window(loader, w, &shard, &at);
        l->windows[w] = (const uint16_t *)(const void *)l->memory.base + (bases[shard] + at) % span;
    }
    free(bases);
    return rc;
}

int bench_limit_copy(void *ctx, int thread, uint64_t k, sgt_error *err)
{
    const bench_limit *l = ctx;
    uint16_t *to = l->rows[thread];
    (void)err;
    for (size_t r = 0; r < l->batch; r++, to += l->row_tokens)
        memcpy(to, l->windows[(k * l->batch + r) % WINDOWS], l->row_tokens * sizeof *to);
    return SGT_OK;
}

/* Read a byte of each cache line, which loads the whole line. Prefetching four windows ahead was
 * the fastest of 0, 1, 2, 4, 8, 16 and 32. */
int bench_limit_read(void *ctx, int thread, uint64_t k, sgt_error *err)
{
    const bench_limit *l = ctx;
    size_t bytes = l->row_tokens * sizeof(uint16_t);
    uint64_t sum = 0;
    (void)err;
    for (size_t r = 0; r < l->batch; r++) {
        const char *p = (const char *)l->windows[(k * l->batch + r) % WINDOWS];
        const char *later = (const char *)l->windows[(k * l->batch + r + 4) % WINDOWS];
        for (size_t i = 0; i < bytes; i += LINE) {
            __builtin_prefetch(later + i);
            sum += (unsigned char)p[i];
        }
    }
    /* keeps the compiler from removing the reads */
    __atomic_store_n(&l->sums[thread], sum, __ATOMIC_RELAXED);
    return SGT_OK;
}
