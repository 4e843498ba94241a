/* test_blocks.c: sampling `block` from pools of blocks. The pools are small (blocks of 64 tokens,
 * pools of 3), so that a test goes through many. Checks that the rows are the same as without pools,
 * in any order and from any number of cursors; that every block is read once; and that windows no
 * pool can hold are read one by one. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/loader/batches.h"

TestSuite(blocks, .init = enter_scratch, .fini = leave_scratch, .timeout = 170);

enum { B = 6, T = 16 };

static const sgt_loader_options block = {
    .reader = SGT_READER_URING, .sampling = SGT_SAMPLING_BLOCK, .batch = B, .seq = T};

static const reader_fault small = {.block_tokens = 64, .pool_blocks = 3};

/* Return the number of blocks in all pools up to the one that holds the last row before batch
 * `end`. */
static uint64_t blocks_to(const sgt_loader *l, uint64_t end)
{
    return sgt_mix_window(&l->mix, end * B - 1).block / 3 * 3 + 3;
}

/* 575 windows, 4 per block, 12 per pool. A pool holds two batches, except the one with the short
 * block. The first batch does not start a pool. After it, each block is read once. */
Test(blocks, each_is_read_once)
{
    id_width = 4;
    put_folder();
    scoped(sgt_loader) *l = open_loader("d", &block, &small);
    scoped(sgt_cursor) *c = open_cursor(l);
    check_run(l, c, 0, 1, NULL);
    cr_assert_eq(count_blocks(), 0);
    uint64_t end = 3 * 575 / B, drawn = blocks_to(l, end);
    check_run(l, c, 1, end - 1, NULL);
    /* blocks read: those of the rows drawn, up to the end of their last pool, give or take a
     * pool */
    cr_assert(count_blocks() <= drawn + 3 && count_blocks() >= drawn - 3, "%u", count_blocks());
}

/* A cursor that is a batch behind, or that reads in another part of the set, has no block read
 * again. */
Test(blocks, cursors_share_them)
{
    put_folder();
    for (int far = 0; far < 2; far++) {
        scoped(sgt_loader) *l = open_loader("d", &block, &small);
        scoped(sgt_cursor) *c = open_cursor(l), *other = open_cursor(l);
        check_run(l, c, 0, 2, NULL);
        for (uint64_t k = 2; k < 300; k++) {
            check_run(l, c, k, 1, NULL);
            if (far) check_run(l, other, k + 10000, 1, NULL);
            else if (k % 5 == 0) check_run(l, other, k - 1, 1, NULL);
        }
        cr_assert_leq(count_blocks(), blocks_to(l, 300) + 3);
    }
}

/* Scattered batches start no pool. Two fetches in a row from the same pool do. */
Test(blocks, jumps)
{
    static const uint64_t places[] = {7000, 20, 123456789, 0, UINT64_MAX / B - 700, 8000};
    put_folder();
    scoped(sgt_loader) *l = open_loader("d", &block, &small);
    scoped(sgt_cursor) *c = open_cursor(l);
    for (uint64_t k = 0; k < 50; k++) check_run(l, c, k * 1001, 1, NULL);
    cr_assert_eq(count_blocks(), 0);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        unsigned before = count_blocks();
        check_run(l, c, places[i] / 96 * 96, 20, NULL);
        cr_assert_geq(count_blocks(), before + 30);
        /* a single batch elsewhere does not drop the pools */
        check_run(l, c, places[i] / 96 * 96 + 500, 1, NULL);
        check_run(l, c, places[i] / 96 * 96 + 19, 1, NULL);
        cr_assert_leq(count_blocks(), before + 60);
    }
    for (uint64_t k = 8000; k > 7900; k--) check_run(l, c, k, 1, NULL);
    for (uint64_t back = 2; back < 12; back++) { /* to blocks that were dropped */
        check_run(l, c, 960, 20, NULL);
        for (int i = 0; i < 2; i++) check_run(l, c, 979 - back, 1, NULL);
        check_run(l, c, 980 - back, 10 + back, NULL);
    }
}

typedef struct job {
    const sgt_loader *l;
    uint64_t first, step, batches;
} job;

static void *draw(void *arg)
{
    const job *j = arg;
    scoped(sgt_cursor) *c = open_cursor(j->l);
    for (uint64_t i = 0; i < j->batches; i++) check_run(j->l, c, j->first + i * j->step, 1, NULL);
    return NULL;
}

/* Draw with three threads, thread i from batch first + i * apart on. */
static void draw_with_threads(uint64_t first, uint64_t apart, uint64_t step, uint64_t batches)
{
    pthread_t threads[3];
    job jobs[3];
    scoped(sgt_loader) *l = open_loader("d", &block, &small);
    for (uint64_t i = 0; i < 3; i++) {
        jobs[i] = (job){l, first + i * apart, step, batches};
        cr_assert_eq(pthread_create(&threads[i], NULL, draw, &jobs[i]), 0);
    }
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}

Test(blocks, threads_share_pools)
{
    put_folder();
    draw_with_threads(0, 1, 3, 100);
}

/* Cursors take the pools from each other again and again. If one takes them back before a read for
 * another has begun, the other, which waits for a pool, must continue without it, even if nothing
 * is read again. */
Test(blocks, places_that_take_turns)
{
    put_folder();
    for (uint64_t round = 0; round < 300; round++) draw_with_threads(96 * round, 48, 0, 8);
}

/* Close the pools while any number of reads is in flight. */
Test(blocks, closed_at_any_moment)
{
    put_folder();
    for (uint64_t i = 0; i < 60; i++) {
        scoped(sgt_loader) *l = open_loader("d", &block, &small);
        scoped(sgt_cursor) *c = open_cursor(l);
        for (uint64_t k = 0; k < i / 6; k++) check_run(l, c, k * (i % 2), 1, NULL);
    }
}

/* Rows longer than a block are large reads of their own. */
Test(blocks, rows_too_long_for_pools)
{
    reader_fault f = {.block_tokens = 15, .pool_blocks = 3};
    put_folder();
    check_loader("d", &block, &f, NULL);
    f.block_tokens = 16;
    check_loader("d", &block, &f, NULL);
}

/* Batches must equal the other readers' batches: under every fallback, with rows of one token, with
 * ranks, and with batches larger than pools. */
Test(blocks, batches_are_those_of_the_other_readers)
{
    static const reader_fault faults[] = {{.ring_error = EPERM},
                                          {.direct_error = EINVAL},
                                          {.first_error = EINTR},
                                          {.most_bytes = 100},
                                          {.most_bytes = 1, .direct_error = EINVAL},
                                          {0}};
    put_folder();
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        reader_fault f = faults[i];
        for (f.pool_blocks = 1; f.pool_blocks < 300; f.pool_blocks = f.pool_blocks * 5 + 2) {
            sgt_loader_options o = block;
            f.block_tokens = 64;
            check_loader("d", &o, &f, NULL);
            if (i + 1 < sizeof faults / sizeof *faults) continue;
            o.reader = SGT_READER_MMAP;
            check_loader("d", &o, &f, NULL);
            o.reader = SGT_READER_URING;
            o.batch = 100;
            check_loader("d", &o, &f, NULL);
            o.seq = 1;
            check_loader("d", &o, &f, NULL);
            o = block;
            o.ranks = 3;
            for (o.rank = 0; o.rank < 3; o.rank++) check_loader("d", &o, &f, NULL);
        }
    }
}

/* There are many small shards. So a block has more parts than a pool supports, and its windows are
 * read one by one. */
Test(blocks, of_many_shards)
{
    reader_fault f = {.block_tokens = 64, .pool_blocks = 2};
    for (uint32_t i = 0; i < 40; i++)
        put_shard(shard_path("s", i, "bin"), i, i % 8 < 6 ? 17 + i : 200);
    check_loader("s", &block, &f, NULL);
    f.block_tokens = 160;
    check_loader("s", &block, &f, NULL);
}

/* A shard is cut short while in use. Batches with a window beyond the cut fail and name the shard;
 * the others succeed. */
Test(blocks, file_cut_while_in_use)
{
    uint16_t rows[B * (T + 1)];
    uint64_t behind = 0, batches = 575 / B;
    put_folder();
    scoped(sgt_loader) *l = open_loader("d", &block, &small);
    scoped(sgt_cursor) *c = open_cursor(l);
    check_run(l, c, 0, 2, NULL);
    resize("d/train_000000.bin", 1024 + 2 * 3000);
    /* a jump, so that new pools are started */
    for (uint64_t k = 2000; k < 2000 + batches; k++) {
        int cut = 0;
        for (uint32_t r = 0; r < B; r++) {
            sgt_window w = sgt_mix_window(&l->mix, k * B + r);
            cut |= w.shard == 0 && w.offset + T + 1 > 3000;
        }
        behind += (uint64_t)cut;
        if (!cut) check_batch(l, c, k, NULL);
        else
            expect_failure(read_rows(l, c, k, rows, why), SGT_EFORMAT,
                           "d/train_000000.bin: ends at byte 7024, in the middle of a window: cut "
                           "short while in use");
    }
    cr_assert(behind > batches / 10 && behind < batches);
}

/* From some read on, every read fails. */
Test(blocks, disk_that_fails)
{
    reader_fault f = small;
    uint16_t rows[B * (T + 1)];
    uint64_t failed = 0;
    f.read_error = EIO;
    f.reads_first = 40;
    put_folder();
    scoped(sgt_loader) *l = open_loader("d", &block, &f);
    scoped(sgt_cursor) *c = open_cursor(l);
    for (uint64_t k = 0; k < 100; k++) {
        sgt_error err;
        if (read_rows(l, c, k, rows, &err) < 0) {
            cr_assert(strstr(err.text, ": cannot read: Input/output error"), "%s", err.text);
            failed++;
        } else {
            check_ids(l, sgt_cursor_batch(c), k, NULL);
        }
    }
    cr_assert(failed > 50 && failed < 100, "%lu", failed);
}

/* Up to SGT_BLOCKS_SETS sets have pools of their own. With more sets no set has pools, and a notice
 * says so. */
Test(blocks, of_several_sets)
{
    static const sgt_loader_set sets[] = {{"d", 0.7}, {"e", 0.3}, {"f", 1}, {"g", 1}, {"h", 1}};
    static const uint32_t map[] = {0, 1, 2, 3, 4, 7};
    notices said;
    sgt_loader_options o = block;
    put_folder();
    for (uint32_t i = 1; i < 5; i++)
        put_shard(shard_path(sets[i].path, 0, "bin"), 6 + i, 2400 + 100 * i);
    o.sets = sets;
    o.set_count = 2;
    check_loader(NULL, &o, &small, map);
    o.set_count = 5;
    o.notice = collect(&said);
    scoped(sgt_loader) *l = open_loader(NULL, &o, &small);
    cr_assert_eq(said.count, 1);
    cr_assert_str_eq(said.last, "buffering blocks of 5 sets would take too much memory: "
                                "reading windows one by one instead");
}
