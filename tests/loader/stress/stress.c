/* stress.c: many threads on one loader, and streams opened, drained and cancelled at random, every token checked. A
 * plain program, without Criterion, so that it runs under the thread sanitizer:
 *
 *     make SAN=thread build/thread/tests/stress-loader && build/thread/tests/stress-loader [BATCHES] [SEED]
 *
 * Draws BATCHES batches in all (default 100,000). Exit 0: every one was right. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/philox.h"
#include "sgt_loader.h"
#include "shards/shard.h"

enum { B = 8, T = 64, SHARDS = 3, TOKENS = 20000, DRAWERS = 3 };

typedef struct job {
    const sgt_loader *l;
    uint64_t seed, batches;
    int failed;
} job;

static uint16_t token_at(uint32_t shard, uint64_t i)
{
    return (uint16_t)((shard * 7919 + i * 31 + (i >> 8)) % 50257);
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "stress-loader: %s: %s\n", what, why);
    exit(1);
}

static void make_shards(void)
{
    static uint8_t bytes[SGT_SHARD_HEADER + 2 * TOKENS];
    sgt_error err;
    for (uint32_t s = 0; s < SHARDS; s++) {
        char name[64];
        snprintf(name, sizeof name, "train_%06u.bin", s);
        sgt_shard_pack(bytes, &(sgt_shard_header){.tokens = TOKENS, .vocab = 50257, .eot = 50256});
        for (uint64_t i = 0; i < TOKENS; i++) {
            bytes[SGT_SHARD_HEADER + 2 * i] = (uint8_t)token_at(s, i);
            bytes[SGT_SHARD_HEADER + 2 * i + 1] = (uint8_t)(token_at(s, i) >> 8);
        }
        if (sgt_file_put(name, bytes, sizeof bytes, &err) < 0) fail("shards", err.text);
    }
}

static int right(const sgt_loader *l, uint64_t index, const uint16_t *rows, const int32_t *inputs,
                 const int32_t *targets)
{
    for (uint32_t r = 0; r < B; r++) {
        uint32_t shard;
        uint64_t at;
        sgt_loader_window(l, index * B + r, &shard, &at);
        for (uint32_t t = 0; t <= T; t++) {
            uint16_t id = token_at(shard, at + t);
            if (rows && rows[r * (T + 1) + t] != id) return 0;
            if (inputs && t < T && inputs[r * T + t] != id) return 0;
            if (targets && t && targets[r * T + t - 1] != id) return 0;
        }
    }
    return 1;
}

/* Batches at random through a cursor that is now and then replaced. */
static void *draw(void *arg)
{
    job *j = arg;
    uint16_t rows[B * (T + 1)];
    int32_t inputs[B * T], targets[B * T];
    sgt_cursor *c = NULL;
    sgt_error err = {0};
    for (uint64_t k = 0; k < j->batches && !j->failed; k++) {
        uint64_t r = sgt_philox_u64(j->seed, k, 0), index = r % 100000;
        if (k % 257 == 0) {
            sgt_cursor_close(c);
            if (sgt_cursor_open(&c, j->l, &err) < 0) fail("cursor", err.text);
        }
        int rc = r >> 63 ? sgt_loader_batch(j->l, c, index, rows, &err)
                         : sgt_loader_batch_i32(j->l, c, index, inputs, targets, &err);
        j->failed = rc < 0 ||
                    !right(j->l, index, r >> 63 ? rows : NULL, r >> 63 ? NULL : inputs, r >> 63 ? NULL : targets);
    }
    sgt_cursor_close(c);
    return NULL;
}

/* Streams of every shape, closed after a random number of batches, some of them held. */
static void *drain(void *arg)
{
    job *j = arg;
    sgt_error err = {0};
    uint64_t done = 0;
    for (uint64_t k = 0; done < j->batches && !j->failed; k++) {
        uint64_t r = sgt_philox_u64(j->seed, k, 1), want = r >> 40 & 255, held = 0;
        sgt_stream_options o = {.first = r % 5000,
                                .count = r >> 20 & 1 ? 100 : 0,
                                .output = (sgt_output)(r >> 21 & 1),
                                .slots = 1 + (r >> 22 & 7),
                                .threads = 1 + (r >> 25 & 3)};
        sgt_stream *s;
        sgt_stream_batch b;
        if (sgt_stream_open(&s, j->l, &o, &err) < 0) fail("stream", err.text);
        for (uint64_t n = 0; n < want && held < o.slots; n++) {
            int rc = sgt_stream_next(s, &b, &err);
            if ((rc == 1 && n == o.count) || (rc == SGT_EUSAGE && held))
                break; /* the end, or stuck behind a held one */
            if (rc != 0 || b.index != o.first + n || !right(j->l, b.index, b.rows, b.inputs, b.targets)) {
                j->failed = 1;
                break;
            }
            if (sgt_philox_u64(j->seed, k, n + 2) % 64)
                sgt_stream_release(s, &b);
            else
                held++;
            done++;
        }
        sgt_stream_close(s);
        done++;
    }
    return NULL;
}

static void run(sgt_reader reader, sgt_sampling sampling, uint64_t batches, uint64_t seed)
{
    sgt_loader *l;
    sgt_error err;
    sgt_loader_options o = {.reader = reader, .sampling = sampling, .batch = B, .seq = T, .seed = seed};
    job jobs[DRAWERS + 1];
    pthread_t threads[DRAWERS + 1];
    if (sgt_loader_open(&l, ".", &o, &err) < 0) fail(sgt_reader_name(reader), err.text);
    for (int i = 0; i <= DRAWERS; i++) {
        jobs[i] = (job){l, seed * 100 + (uint64_t)i, batches / (DRAWERS + 1), 0};
        if (pthread_create(&threads[i], NULL, i < DRAWERS ? draw : drain, &jobs[i]))
            fail("threads", "cannot start one");
    }
    for (int i = 0; i <= DRAWERS; i++) {
        pthread_join(threads[i], NULL);
        if (jobs[i].failed) fail(sgt_reader_name(reader), "a wrong batch");
    }
    sgt_loader_close(l);
    printf("%s, %s: %llu batches\n", sgt_reader_name(reader), sgt_sampling_name(sampling), (unsigned long long)batches);
}

int main(int argc, char **argv)
{
    uint64_t batches = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000,
             seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    char folder[] = "/tmp/sgt-stress.XXXXXX";
    sgt_error err;
    if (!mkdtemp(folder) || chdir(folder) < 0) fail("scratch folder", "cannot make it");
    make_shards();
    for (int r = 0; r < SGT_READERS; r++)
        for (int s = 0; s < SGT_SAMPLING_DOCUMENTS; s++)
            run((sgt_reader)r, (sgt_sampling)s, batches / (SGT_READERS * SGT_SAMPLING_DOCUMENTS), seed);
    if (chdir("/") < 0 || sgt_remove_tree(folder, &err) < 0) fail(folder, "cannot remove it");
    return 0;
}
