/* test_stream.c: streams deliver every batch in order and run ahead by at most the slots of their
 * ring. Whenever they are closed, they leave no thread and no descriptor open. */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/philox.h"
#include "tests/loader/batches.h"
#include "tests/scratch.h"

enum { B = 4, T = 16 };

static sgt_loader *loader;

static sgt_loader *open_with(sgt_reader reader)
{
    const sgt_loader_options o = {
        .reader = reader, .batch = B, .seq = T, .sampling = SGT_SAMPLING_SEQUENTIAL};
    return open_loader("d", &o, NULL);
}

static void put_set(void)
{
    put_shard("d/train_000000.bin", 0, 3000);
    put_shard("d/train_000001.bin", 1, 2000);
}

static void enter(void)
{
    enter_scratch();
    put_set();
    loader = open_with(SGT_READER_MMAP);
}

static void leave(void)
{
    sgt_loader_close(loader);
    leave_scratch();
}

TestSuite(stream, .init = enter, .fini = leave, .timeout = 120);

static sgt_stream *open_stream(const sgt_loader *l, const sgt_stream_options *o)
{
    sgt_stream *s;
    must(sgt_stream_open(&s, l, o, why));
    return s;
}

static sgt_loader_batch take(sgt_stream *s)
{
    const sgt_loader_batch *b;
    must(sgt_stream_next(s, &b, why));
    return *b;
}

Test(stream, in_order_and_whole)
{
    for (int reader = 0; reader < 2 * SGT_READERS; reader++) {
        if (reader == SGT_READERS) {
            id_width = 4;
            unlink("d/train_000000.bin"); /* the other loader keeps its map of the old file */
            unlink("d/train_000001.bin");
            put_set();
        }
        scoped(sgt_loader) *l = open_with((sgt_reader)(reader % SGT_READERS));
        for (uint32_t threads = 1; threads <= 4; threads++)
            for (uint32_t slots = 1; slots <= 6; slots++)
                for (int output = id_width == 4; output < SGT_OUTPUTS; output++)
                    check_stream(l, (sgt_output)output, threads, slots);
    }
}

Test(stream, defaults_are_four_slots_without_end)
{
    scoped(sgt_stream) *s = open_stream(loader, NULL);
    sgt_loader_batch b[4];
    const sgt_loader_batch *more;
    for (int i = 0; i < 4; i++) {
        b[i] = take(s);
        cr_assert(b[i].index == (uint64_t)i && b[i].slot == (uint32_t)i && !b[i].targets);
    }
    expect_failure(sgt_stream_next(s, &more, why), SGT_EUSAGE,
                   "all 4 batches of the stream are held: release one first");
    for (int i = 0; i < 4; i++) sgt_stream_release(s, &b[i], NULL);
    for (uint64_t k = 4; k < 1000; k++) {
        must(sgt_stream_next(s, &more, why));
        cr_assert_eq(more->index, k);
        check_ids(loader, more, more->index, NULL);
        sgt_stream_release(s, more, NULL);
    }
}

/* The stream never writes to a batch that the consumer holds, however long that takes. */
Test(stream, held_batches_stay_as_they_are)
{
    sgt_stream_options o = {.size = sizeof o, .slots = 5, .threads = 3, .output = SGT_OUTPUT_I32};
    scoped(sgt_stream) *s = open_stream(loader, &o);
    sgt_loader_batch held[4], b;
    for (int i = 0; i < 4; i++) held[i] = take(s);
    for (int i = 0; i < 4; i++)
        cr_assert_eq((uintptr_t)held[i].inputs % 64 + (uintptr_t)held[i].targets % 64, 0);
    /* three batches stay held, and the slot of the fourth is reused */
    for (uint64_t k = 4; k < 500; k++) {
        b = take(s);
        cr_assert_eq(b.index, k);
        check_ids(loader, &b, b.index, NULL);
        for (int i = 0; i < 4; i++) check_ids(loader, &held[i], held[i].index, NULL);
        if (k % 100 == 0) usleep(20000);
        sgt_stream_release(s, &held[k % 4], NULL); /* the oldest batch */
        held[k % 4] = b;
    }
}

/* Check in the stream's threads that they block signals, which the program's own threads must
 * receive, but not SIGBUS, which the guard of maps handles. Pause at times. */
static void stumble(void *ctx, uint32_t thread, uint64_t index, int done)
{
    sigset_t mask;
    (void)ctx;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    cr_assert(sigismember(&mask, SIGINT) && sigismember(&mask, SIGTERM) &&
              !sigismember(&mask, SIGBUS));
    if (!done && (index * 2654435761u + thread) % 64 < 3) usleep(300);
}

/* The stream's threads sleep while the ring is full, and the consumer sleeps while it is empty.
 * Every sleeper must be woken. The consumer takes and releases batches in random order in every
 * other 64 calls. In those between, it takes all slots and then releases all. Both sides pause at
 * times. */
Test(stream, nobody_sleeps_for_good)
{
    for (uint32_t threads = 1; threads <= 3; threads++)
        for (uint32_t slots = 1; slots <= 6; slots++) {
            sgt_stream_options o = {.size = sizeof o, .slots = slots, .threads = threads};
            scoped(sgt_stream) *s = NULL;
            must(
                sgt_stream_open_timed(&s, loader, &o, &(sgt_stream_timer){.making = stumble}, why));
            sgt_loader_batch held[6];
            uint64_t taken = 0, released = 0;
            bool taking = true;
            for (uint64_t k = 0; k < 1200; k++) {
                uint64_t r = sgt_philox_u64(threads * 10 + slots, k, 0);
                if (r % 16 == 0) usleep(300);
                if (taken == released || taken - released == slots) taking = taken == released;
                else if (k / 64 % 2) taking = r >> 32 & 1;
                if (taking) {
                    held[taken % slots] = take(s);
                    cr_assert_eq(held[taken % slots].index, taken);
                    check_ids(loader, &held[taken % slots], taken, NULL);
                    taken++;
                } else {
                    sgt_stream_release(s, &held[released++ % slots], NULL);
                }
            }
        }
}

Test(stream, closed_at_any_moment)
{
    unsigned fds = count_names("/proc/self/fd"), tasks = count_names("/proc/self/task");
    for (int reader = 0; reader < SGT_READERS; reader++) {
        scoped(sgt_loader) *l = open_with((sgt_reader)reader);
        for (int round = 0; round < 60; round++) {
            sgt_stream_options o = {.size = sizeof o,
                                    .slots = (uint32_t)round % 5 + 1,
                                    .threads = (uint32_t)round % 3 + 1,
                                    .output = (sgt_output)(round % 2)};
            sgt_stream *s = open_stream(l, &o);
            for (int k = 0; k < round % 7; k++) {
                if (k >= (int)o.slots) break;
                sgt_loader_batch b = take(s);
                /* in every fourth round the stream is closed while batches are held */
                if (round % 4) sgt_stream_release(s, &b, NULL);
            }
            if (round % 5 == 0) usleep(500);
            sgt_stream_close(s);
        }
    }
    cr_assert_eq(count_names("/proc/self/fd"), fds);
    /* a thread that was joined can be listed a moment longer */
    for (int i = 0; i < 5000 && count_names("/proc/self/task") != tasks; i++) usleep(1000);
    cr_assert_eq(count_names("/proc/self/task"), tasks);
}

/* The stream uses the caller's buffers in order and writes nothing after their ends. A buffer that
 * the caller keeps, and replaces by another one when it releases the batch, is no longer written
 * to. */
Test(stream, in_buffers_of_the_caller)
{
    for (int output = 0; output < SGT_OUTPUTS; output++) {
        static const size_t want[SGT_OUTPUTS] = {B * (T + 1) * 2, 2 * B * T * 4, 2 * B * T * 8,
                                                 B * (T + 1) * 4};
        static _Alignas(64) char room[4][2 * B * T * 8 + 64];
        void *buffers[] = {room[0], room[1], room[2]};
        sgt_stream_options o = {
            .size = sizeof o, .slots = 3, .output = (sgt_output)output, .buffers = buffers};
        size_t bytes = sgt_stream_bytes(loader, o.output);
        cr_assert_eq(bytes, want[output]);
        for (int i = 0; i < 4; i++) memset(room[i] + bytes, 0xa5, 64);
        scoped(sgt_stream) *s = open_stream(loader, &o);
        for (uint64_t k = 0; k < 50; k++) {
            sgt_loader_batch b = take(s);
            check_ids(loader, &b, b.index, NULL);
            cr_assert(b.inputs == room[k % 3] && b.slot == k % 3);
            sgt_stream_release(s, &b, NULL);
        }
        sgt_loader_batch kept = {.inputs = room[3]};
        for (uint64_t k = 50; k < 150; k++) {
            sgt_loader_batch b = take(s);
            check_ids(loader, &b, k, NULL);
            if (k > 50) check_ids(loader, &kept, k - 1, NULL);
            sgt_stream_release(s, &b, kept.inputs);
            kept = b;
        }
        for (int i = 0; i < 4 * 64; i++) cr_assert_eq(room[i / 64][bytes + (size_t)i % 64], '\xa5');
    }
    sgt_stream_options o = {.size = sizeof o, .slots = 3, .buffers = (void *[3]){0}};
    sgt_stream *s = NULL;
    expect_failure(sgt_stream_open(&s, loader, &o, why), SGT_ENOMEM,
                   "buffer 1 of 3, 136 bytes: out of memory");
    o.output = SGT_OUTPUTS;
    cr_assert_eq(sgt_stream_bytes(loader, SGT_OUTPUTS), 0);
    expect_failure(sgt_stream_open(&s, loader, &o, why), SGT_EUSAGE, "unknown output %d",
                   SGT_OUTPUTS);
    cr_assert_null(s);
}

/* A batch that cannot be read is reported when it is its turn, and by every later call. Earlier
 * batches are delivered. */
Test(stream, errors_come_in_their_turn)
{
    patch("d/train_000000.bin", 1024 + 2 * 1000, "\xff\xff", 2);
    for (uint32_t threads = 1; threads <= 3; threads++) {
        sgt_stream_options o = {.size = sizeof o, .threads = threads, .slots = 7};
        scoped(sgt_stream) *s = open_stream(loader, &o);
        for (uint64_t k = 0; k < 1000 / T / B; k++) {
            sgt_loader_batch b = take(s);
            check_ids(loader, &b, b.index, NULL);
            sgt_stream_release(s, &b, NULL);
        }
        const sgt_loader_batch *b;
        for (int again = 0; again < 3; again++)
            expect_failure(
                sgt_stream_next(s, &b, why), SGT_EFORMAT,
                "d/train_000000.bin: token 1000 (byte 3024): id 65535, expected below 50257");
    }
}
