/* stress.c: many threads on one loader, and streams that are opened, drained and cancelled at
 * random. Every batch is compared with that of a loader that no other thread uses. A plain program
 * without Criterion, so that it runs under the thread sanitizer and the address sanitizer:
 *
 *     make SAN=thread build/thread/tests/stress-loader && build/thread/tests/stress-loader [BATCHES] [SEED]
 *
 * Draws BATCHES batches in all (default 100,000), with every reader, sampling, output and way of
 * drawing, also from a mix of two sets, and from pools of blocks with refused system calls. The
 * pools are so small that new ones are read every few batches. Exit 0: every batch was right, and
 * no thread and no descriptor was leaked. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "loader/base/philox.h"
#include "loader/handle.h"
#include "loader/shards/shard.h"
#include "tests/loader/faults.h"
#include "tests/loader/read.h"
#include "tests/scoped.h"
#include "tests/stress.h"

SCOPED_POINTER(sgt_cursor, sgt_cursor_close)

enum { B = 8, T = 64, SHARDS = 3, TOKENS = 20000, EOT = 50256, DRAWERS = 3 };

/* Folder a has shards 0 and 1, folder b has shard 2. */
static const sgt_loader_set mixed[] = {{"a", .7}, {"b", .3}};
#define MIXED SGT_SAMPLINGS /* in addition to the samplings: the mix of the two sets */

/* The first one refuses nothing. The others are for pools of blocks. */
static const reader_fault faults[] = {
    {.block_tokens = 512, .pool_blocks = 4},
    {.block_tokens = 512, .pool_blocks = 1, .ring_error = EPERM},
    {.block_tokens = 512, .pool_blocks = 2, .direct_error = EINVAL},
    {.block_tokens = 512, .pool_blocks = 5, .most_bytes = 700},
    {.block_tokens = 512, .pool_blocks = 7, .first_error = EINTR}};

typedef struct job {
    const sgt_loader *l;
    sgt_loader *reference; /* the same batches, by the reader preload, for this job alone */
    sgt_cursor *cursor;    /* of the reference */
    uint64_t seed, batches;
    int failed;
} job;

static uint16_t token_at(uint32_t shard, uint64_t i)
{
    return i % 97 == 5 * shard ? EOT : (uint16_t)((shard * 7919 + i * 31 + (i >> 8)) % EOT);
}

/* Write shard `shard` to a new file. */
static void make_shard(const char *path, uint32_t shard)
{
    static uint8_t bytes[SGT_SHARD_HEADER + 2 * TOKENS];
    sgt_error err;
    sgt_shard_pack(bytes, &(sgt_shard_header){.tokens = TOKENS, .vocab = EOT + 1, .eot = EOT});
    for (uint64_t i = 0; i < TOKENS; i++)
        memcpy(bytes + SGT_SHARD_HEADER + 2 * i, &(uint16_t){token_at(shard, i)}, 2);
    if (sgt_file_put(path, bytes, sizeof bytes, &err) < 0) fail(path, err.text);
}

static void make_shards(void)
{
    static const char *const names[SHARDS] = {"a/train_000000.bin", "a/train_000001.bin",
                                              "b/train_000000.bin"};
    if (mkdir("a", 0777) < 0 || mkdir("b", 0777) < 0) fail("folders", "cannot make them");
    for (uint32_t s = 0; s < SHARDS; s++) make_shard(names[s], s);
}

/* Compare batch `index` with what the job's reference reads. */
static int right(const job *j, uint64_t index, const sgt_loader_batch *b)
{
    int32_t both[2 * B * T];
    sgt_loader_batch want;
    sgt_error err;
    const size_t bytes = b->targets ? sizeof both / 2 : 2 * B * (T + 1);
    if (read_batch(j->reference, j->cursor, index, b->output, both, &want, &err) < 0)
        fail("reference", err.text);
    return !memcmp(b->inputs, want.inputs, bytes) &&
           (!b->targets || !memcmp(b->targets, want.targets, bytes)) &&
           (!b->lengths || !memcmp(b->lengths, want.lengths, B * sizeof *b->lengths));
}

/* ---- ways of drawing ---- */

static int draw_one(const job *j, sgt_cursor *c, uint64_t index, sgt_output output, sgt_error *err)
{
    int32_t both[2 * B * T];
    sgt_loader_batch b;
    return read_batch(j->l, c, index, output, both, &b, err) == 0 && right(j, index, &b);
}

/* Draw random batches, or a few consecutive ones, through a cursor that is replaced now and
 * then. */
static void *draw(void *arg)
{
    job *j = arg;
    scoped(sgt_cursor) *c = NULL;
    sgt_error err = {0};
    uint64_t index = 0;
    for (uint64_t k = 0; k < j->batches && !j->failed; k++) {
        uint64_t r = sgt_philox_u64(j->seed, k, 0);
        index = r >> 20 & 3 ? index + (r >> 22 & 1) + 1 : r % 100000;
        if (k % 257 == 0) {
            sgt_cursor_close(c);
            if (sgt_cursor_open(&c, j->l, &err) < 0) fail("cursor", err.text);
        }
        j->failed = !draw_one(j, c, index, (sgt_output)(r >> 32 & 1), &err);
    }
    return NULL;
}

static void dawdle(void *ctx, uint32_t thread, uint64_t index, int done)
{
    (void)ctx;
    if (done && (index * 2654435761u + thread) % 256 == 0) usleep(50);
}

/* Take up to `want` batches from a stream and leave some unreleased. Return the number taken, or -1
 * if a batch was wrong. */
static int64_t take(const job *j, sgt_stream *s, const sgt_stream_options *o, uint64_t k,
                    uint64_t want)
{
    uint64_t n = 0, held = 0;
    sgt_error err = {0};
    for (; n < want && held < o->slots; n++) {
        const sgt_loader_batch *b;
        uint64_t r = sgt_philox_u64(j->seed, k, n + 2);
        int rc = sgt_stream_next(s, &b, &err);
        /* the stream has ended, or the next batch needs a slot that is held */
        if ((rc == 1 && n == o->count) || (rc == SGT_EUSAGE && held)) break;
        if (rc != 0 || b->index != o->first + n || !right(j, b->index, b)) return -1;
        if (r % 64) sgt_stream_release(s, b, NULL);
        else held++;
        if (r >> 32 == 0) usleep(200);
    }
    return (int64_t)n;
}

/* Open streams with various numbers of slots and threads. Close each after a random number of
 * batches, while some are still held. */
static void *drain(void *arg)
{
    job *j = arg;
    sgt_error err = {0};
    for (uint64_t k = 0, done = 0; done < j->batches && !j->failed; k++) {
        uint64_t r = sgt_philox_u64(j->seed, k, 1);
        sgt_stream_options o = {.size = sizeof o,
                                .first = r % 5000,
                                .count = r >> 20 & 1 ? 100 : 0,
                                .output = (sgt_output)(r >> 21 & 1),
                                .slots = 1 + (r >> 22 & 7),
                                .threads = 1 + (r >> 25 & 3)};
        const sgt_stream_timer timer = {.making = r >> 27 & 1 ? dawdle : NULL};
        sgt_stream *s;
        if (sgt_stream_open_timed(&s, j->l, &o, &timer, &err) < 0) fail("stream", err.text);
        int64_t n = take(j, s, &o, k, r >> 40 & 255);
        if (r >> 28 & 1) usleep((useconds_t)(r >> 48 & 255));
        sgt_stream_close(s);
        j->failed = n < 0;
        done += (uint64_t)n + 1;
    }
    return NULL;
}

/* ---- all of them at once ---- */

static sgt_loader *open_loader(const char *name, const sgt_loader_options *o)
{
    sgt_loader *l;
    sgt_error err;
    if (sgt_loader_open(&l, o, &err) < 0) fail(name, err.text);
    return l;
}

static void run(sgt_reader reader, int sampling, const reader_fault *fault, uint64_t batches,
                uint64_t seed)
{
    resources before = count_resources();
    const char *name =
        sampling == MIXED ? "two sets, shuffle" : sgt_sampling_name((sgt_sampling)sampling);
    sgt_error err;
    sgt_loader_options o = {.size = sizeof o, .reader = reader, .batch = B, .seq = T, .seed = seed};
    job jobs[DRAWERS + 1];
    pthread_t threads[DRAWERS + 1];
    set_faults(fault);
    if (sampling == MIXED) o.sets = mixed, o.set_count = 2;
    else o.data = "a", o.sampling = (sgt_sampling)sampling;
    sgt_loader *l = open_loader(name, &o);
    o.reader = SGT_READER_PRELOAD;
    for (int i = 0; i <= DRAWERS; i++) {
        jobs[i] = (job){.l = l,
                        .reference = open_loader(name, &o),
                        .seed = seed * 100 + (uint64_t)i,
                        .batches = batches / (DRAWERS + 1)};
        if (sgt_cursor_open(&jobs[i].cursor, jobs[i].reference, &err) < 0) fail(name, err.text);
        start_thread(&threads[i], i < DRAWERS ? draw : drain, &jobs[i]);
    }
    for (int i = 0; i <= DRAWERS; i++) {
        pthread_join(threads[i], NULL);
        if (jobs[i].failed) fail(name, "a wrong batch");
        sgt_cursor_close(jobs[i].cursor);
        sgt_loader_close(jobs[i].reference);
    }
    sgt_loader_close(l);
    expect_resources(name, before);
    printf("%s, %s: %llu batches\n", sgt_reader_name(reader), name, (unsigned long long)batches);
}

int main(int argc, char **argv)
{
    uint64_t batches = argument(argc, argv, 1, 1, 100000), seed = argument(argc, argv, 2, 0, 1);
    char folder[SCRATCH_SIZE];
    const uint64_t refusals = sizeof faults / sizeof *faults - 1;
    enter_scratch(folder, "/var/tmp"); /* tmpfs is not read directly */
    make_shards();
    batches /= (uint64_t)SGT_READERS * (MIXED + 1) + refusals;
    for (int r = 0; r < SGT_READERS; r++)
        for (int s = 0; s <= MIXED; s++) run((sgt_reader)r, s, &faults[0], batches, seed);
    for (uint64_t i = 1; i <= refusals; i++)
        run(SGT_READER_URING, SGT_SAMPLING_BLOCK, &faults[i], batches, seed + i);
    remove_scratch(folder);
    return 0;
}
