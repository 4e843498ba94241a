/* blocks.c: stress sampling `block` from pools of blocks. Threads share the pools, draw at the same
 * time, jump, and stop at any moment. The pools are so small that new ones are read every few
 * batches. A plain program without Criterion, so that it runs under the sanitizers:
 *
 *     make SAN=thread build/thread/tests/stress-blocks && build/thread/tests/stress-blocks [ROUNDS] [SEED]
 *
 * Each of ROUNDS rounds (default 60) opens a loader, checks every token drawn from it, and
 * closes it. Exit 0: all tokens were right. */
#include "loader/base/philox.h"
#include "loader/handle.h"
#include "tests/loader/faults.h"
#include "tests/loader/stress/shards.h"

enum { B = 8, T = 64, SHARDS = 3, TOKENS = 20000, SIDE = 3, BATCHES = 400 };

typedef struct job {
    const sgt_loader *l;
    uint64_t seed;
    uint32_t number;
} job;

static uint16_t token_at(uint32_t shard, uint64_t i)
{
    return (uint16_t)((shard * 7919 + i * 31 + (i >> 8)) % 50257);
}

static void make_shards(void)
{
    for (uint32_t s = 0; s < SHARDS; s++) {
        char name[32];
        snprintf(name, sizeof name, "train_%06u.bin", s);
        make_shard(name, s, TOKENS);
    }
}

static void check(const sgt_loader *l, uint64_t index, const uint16_t *rows)
{
    for (uint32_t r = 0; r < B; r++) {
        uint32_t shard;
        uint64_t at;
        sgt_loader_window(l, index * B + r, &shard, &at);
        for (uint32_t t = 0; t <= T; t++)
            if (rows[r * (T + 1) + t] != token_at(shard, at + t)) fail("blocks", "a wrong token");
    }
}

static void draw(const sgt_loader *l, sgt_cursor *c, uint64_t index)
{
    uint16_t rows[B * (T + 1)];
    sgt_error err;
    if (read_rows(l, c, index, rows, &err) < 0) fail("a batch", err.text);
    check(l, index, rows);
}

static sgt_cursor *cursor(const sgt_loader *l)
{
    sgt_cursor *c;
    sgt_error err;
    if (sgt_cursor_open(&c, l, &err) < 0) fail("a cursor", err.text);
    return c;
}

/* Draw every SIDE-th batch, in order, while other threads draw the batches in between. */
static void *side_by_side(void *arg)
{
    const job *j = arg;
    scoped(sgt_cursor) *c = cursor(j->l);
    for (uint64_t k = j->number; k < BATCHES; k += SIDE) draw(j->l, c, j->seed % 1000 + k);
    return NULL;
}

/* Draw a few batches in order, then jump to a batch elsewhere. Sometimes open a new cursor. */
static void *jump(void *arg)
{
    const job *j = arg;
    scoped(sgt_cursor) *c = NULL;
    for (uint64_t n = 0; n < BATCHES / 8; n++) {
        uint64_t r = sgt_philox_u64(j->seed, n, 1);
        if (n % 5 == 0) {
            sgt_cursor_close(c);
            c = cursor(j->l);
        }
        for (uint64_t k = 0; k < (r >> 32) % 12; k++) draw(j->l, c, r % 5000 + k);
    }
    return NULL;
}

/* Draw from a stream, and close it before its end. */
static void *drain(void *arg)
{
    const job *j = arg;
    for (uint64_t n = 0; n < 4; n++) {
        uint64_t r = sgt_philox_u64(j->seed, n, 2);
        sgt_stream_options o = {.size = sizeof o,
                                .first = r % 3000,
                                .slots = 1 + (r >> 20 & 7),
                                .threads = 1 + (r >> 24 & 3)};
        scoped(sgt_stream) *s = NULL;
        const sgt_loader_batch *b;
        sgt_error err;
        if (sgt_stream_open(&s, j->l, &o, &err) < 0) fail("a stream", err.text);
        for (uint64_t k = 0; k < (r >> 32) % 64; k++) {
            if (sgt_stream_next(s, &b, &err) != 0) fail("a stream", err.text);
            check(j->l, b->index, b->inputs);
            sgt_stream_release(s, b, NULL);
        }
    }
    return NULL;
}

/* Run one round. The number of threads and the refused system calls differ from round to round. */
static void run(uint64_t round, uint64_t seed)
{
    static const reader_fault faults[] = {{0},
                                          {.ring_error = EPERM},
                                          {.direct_error = EINVAL},
                                          {.most_bytes = 700},
                                          {.first_error = EINTR}};
    void *(*const kinds[])(void *) = {side_by_side, side_by_side, side_by_side, jump, drain};
    pthread_t threads[5];
    job jobs[5];
    scoped(sgt_loader) *l = NULL;
    sgt_error err;
    reader_fault fault = faults[round % 5];
    fault.block_tokens = 512;
    fault.pool_blocks = 1 + (uint32_t)(round % 7);
    sgt_loader_options o = {.size = sizeof o,
                            .data = ".",
                            .reader = SGT_READER_URING,
                            .sampling = SGT_SAMPLING_BLOCK,
                            .batch = B,
                            .seq = T,
                            .seed = seed};
    set_faults(&fault);
    if (sgt_loader_open(&l, &o, &err) < 0) fail("a loader", err.text);
    for (uint32_t i = 0; i < 5; i++) {
        jobs[i] = (job){l, sgt_philox_u64(seed, round, i), i};
        if (i < SIDE) jobs[i].seed = round * 77;
        start_thread(&threads[i], kinds[i], &jobs[i]);
    }
    for (uint32_t i = 0; i < 5; i++) pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    uint64_t rounds = argument(argc, argv, 1, 1, 60), seed = argument(argc, argv, 2, 0, 1);
    char folder[SCRATCH_SIZE];
    enter_scratch(folder, "/tmp");
    make_shards();
    for (uint64_t round = 0; round < rounds; round++) run(round, seed);
    remove_scratch(folder);
    printf("blocks: %llu rounds\n", (unsigned long long)rounds);
    return 0;
}
