/* test_blocks.c: sampling `block` from pools of blocks. The pools are small (blocks of 64 tokens,
 * pools of 3), so that a test goes through many. Checks that the windows are the same as without
 * pools, in any order and from any number of cursors; that every block is read once; and that
 * windows no pool can hold are read one by one. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/read/blocks.h"
#include "tests/loader/batches.h"

TestSuite(blocks, .init = enter_scratch, .fini = leave_scratch, .timeout = 170);

enum { B = 6, T = 16 };

static const sgt_loader_options block = {
    .reader = SGT_READER_URING, .sampling = SGT_SAMPLING_BLOCK, .batch = B, .seq = T};

static const reader_fault small = {.block_tokens = 64, .pool_blocks = 3};

/* ---- pools alone ---- */

/* A loader, of which the test uses only the set and its windows, and block pools that the test
 * opens itself. */
typedef struct rig {
    sgt_loader *l;
    sgt_rings *rings;
    sgt_blocks *pools;
    uint64_t blocks; /* blocks in an epoch */
} rig;

static void open_rig(rig *g, const reader_fault *fault)
{
    sgt_loader_options o = block;
    *g = (rig){0};
    o.reader = SGT_READER_MMAP;
    g->l = open_loader("d", &o, fault);
    const char *remark = NULL;
    must(sgt_rings_open(&g->rings, &remark, &g->l->set, &g->l->o.notice, why));
    must(sgt_blocks_open(&g->pools, g->rings, &g->l->set, &g->l->o, &g->l->mix, why));
    cr_assert(g->pools);
    g->blocks = sgt_sampler_blocks(&g->l->mix.samplers[0]);
}

static void close_rig(rig *g)
{
    sgt_blocks_close(g->pools);
    sgt_rings_close(g->rings);
    sgt_loader_close(g->l);
}
SCOPED_STRUCT(rig, close_rig)

/* Fetch batch k from the pools and check it. Return how many of its windows the pools did not
 * hold. */
static uint32_t draw(rig *g, uint64_t k)
{
    sgt_window w[B];
    uint32_t memory[B][T + 1];
    const void *ids[B] = {0};
    for (uint32_t r = 0; r < B; r++) w[r] = sgt_mix_window(&g->l->mix, k * B + r);
    uint32_t missing = 0;
    sgt_blocks_fetch(g->pools, w, B, (char *)memory, sizeof *memory, ids);
    for (uint32_t r = 0; r < B; r++) {
        missing += !ids[r];
        for (uint32_t t = 0; ids[r] && t <= T; t++)
            cr_assert_eq(sgt_id_at(ids[r], id_width, t), token_at(w[r].shard, w[r].offset + t),
                         "batch %lu, row %u", k, r);
    }
    return missing;
}

/* Return the number of blocks in all pools up to the one that holds the last row before batch
 * `end`. */
static uint64_t blocks_to(const rig *g, uint64_t end)
{
    return sgt_mix_window(&g->l->mix, end * B - 1).block / 3 * 3 + 3;
}

/* 575 windows, 4 per block, 12 per pool. A pool holds two batches, except the one with the short
 * block. The first batch does not start a pool. After it, every window comes from a pool, and each
 * block is read once. */
Test(blocks, each_is_read_once)
{
    scoped(rig) g;
    id_width = 4;
    put_folder();
    open_rig(&g, &small);
    cr_assert_eq(g.blocks, 144);
    cr_assert_eq(draw(&g, 0), B);
    cr_assert_eq(count_blocks(), 0);
    uint64_t end = 3 * 575 / B;
    for (uint64_t k = 1; k < end; k++) cr_assert_eq(draw(&g, k), 0, "batch %lu", k);
    /* blocks read: those of the rows drawn, up to the end of their last pool, give or take a
     * pool */
    uint64_t drawn = blocks_to(&g, end);
    cr_assert_leq(count_blocks(), drawn + 3);
    cr_assert_geq(count_blocks(), drawn - 3);
}

/* Several cursors draw in turn, and one of them is behind. */
Test(blocks, cursors_share_them)
{
    scoped(rig) g;
    put_folder();
    open_rig(&g, &small);
    draw(&g, 0);
    for (uint64_t k = 1; k < 300; k++) {
        cr_assert_eq(draw(&g, k), 0, "batch %lu", k);
        /* some of its blocks were dropped, and are not read again */
        if (k % 5 == 0) draw(&g, k - 1);
    }
    uint64_t drawn = blocks_to(&g, 300);
    cr_assert_leq(count_blocks(), drawn + 3);
}

/* Scattered batches start no pool. Two fetches in a row from the same pool do, and the pools for
 * the former batches are dropped. */
Test(blocks, jumps)
{
    scoped(rig) g;
    put_folder();
    open_rig(&g, &small);
    for (uint64_t k = 0; k < 50; k++) cr_assert_eq(draw(&g, k * 1001), B);
    cr_assert_eq(count_blocks(), 0);
    static const uint64_t places[] = {7000, 20, 123456789, 0, UINT64_MAX / B - 40, 8000};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        /* 48 pools hold 96 batches, except where the epochs' short blocks are */
        uint64_t k = places[i] / 96 * 96;
        cr_assert_eq(draw(&g, k), B);
        cr_assert_eq(draw(&g, k), 0);
        for (uint64_t n = 1; n < 20; n++) cr_assert_eq(draw(&g, k + n), 0, "batch %lu", k + n);
        cr_assert_eq(draw(&g, k + 500), B); /* a single batch elsewhere does not drop the pools */
        cr_assert_eq(draw(&g, k + 19), 0);
    }
    /* backwards: the tokens are right, with or without a pool */
    for (uint64_t k = 8000; k > 7900; k--) draw(&g, k);
}

/* If a caller goes back a little, to blocks that were dropped, the pools follow as after a jump. */
Test(blocks, small_jumps_back)
{
    scoped(rig) g;
    put_folder();
    open_rig(&g, &small);
    for (uint64_t back = 2; back < 12; back++) {
        uint32_t missing = 0;
        draw(&g, 960);
        for (uint64_t k = 960; k < 980; k++) draw(&g, k);
        for (int i = 0; i < 2; i++) missing += draw(&g, 979 - back);
        cr_assert(back < 4 || missing, "%lu batches back: they should have been dropped", back);
        /* some blocks of the first batch may still be held although those before them are not */
        for (uint64_t k = 980 - back; k < 990; k++)
            cr_assert_eq(draw(&g, k), 0, "batch %lu, %lu batches back", k, back);
    }
}

/* Two cursors read in different parts of the set. One uses the pools, the other reads without them,
 * and neither waits for the other. */
Test(blocks, two_places_at_once)
{
    scoped(rig) g;
    put_folder();
    open_rig(&g, &small);
    draw(&g, 0);
    draw(&g, 0);
    for (uint64_t k = 1; k < 200; k++) {
        cr_assert_eq(draw(&g, k), 0);
        cr_assert_eq(draw(&g, k + 10000), B);
    }
}

typedef struct stay {
    rig *g;
    uint64_t k;
} stay;

static void *draw_at_one_place(void *arg)
{
    const stay *s = arg;
    for (int i = 0; i < 8; i++) draw(s->g, s->k);
    return NULL;
}

/* Two cursors take the pools from each other again and again. If one takes them back before a read
 * for the other has begun, the other, which waits for a pool, must continue without it, even if
 * nothing is read again. */
Test(blocks, two_places_that_take_turns)
{
    rig g;
    put_folder();
    for (uint64_t round = 0; round < 300; round++) {
        stay s[2] = {{&g, 96 * round}, {&g, 96 * round + 48}};
        pthread_t threads[2];
        open_rig(&g, &small);
        for (int i = 0; i < 2; i++)
            cr_assert_eq(pthread_create(&threads[i], NULL, draw_at_one_place, &s[i]), 0);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
        close_rig(&g);
    }
}

/* Close the pools while any number of reads is in flight. */
Test(blocks, closed_at_any_moment)
{
    put_folder();
    for (uint64_t i = 0; i < 60; i++) {
        scoped(rig) g;
        open_rig(&g, &small);
        for (uint64_t k = 0; k < i / 6; k++) draw(&g, k * (i % 2));
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

/* ---- through the loader ---- */

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
    char name[64];
    reader_fault f = {.block_tokens = 64, .pool_blocks = 2};
    cr_assert_eq(mkdir("s", 0777), 0);
    for (uint32_t i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "s/train_%06u.bin", i);
        put_shard(name, i, i % 8 < 6 ? 17 + i : 200);
    }
    check_loader("s", &block, &f, NULL);
    f.block_tokens = 160;
    check_loader("s", &block, &f, NULL);
}

/* Draw the first `batches` batches in order; return how many failed, and the last error. */
static uint64_t draw_all(const sgt_loader *l, sgt_cursor *c, uint64_t batches, sgt_error *err)
{
    static uint16_t rows[B * (T + 1)];
    uint64_t failed = 0;
    for (uint64_t k = 0; k < batches; k++) {
        int rc = read_rows(l, c, k, rows, err);
        if (rc < 0) failed++;
        else check_batch(l, c, k, NULL);
    }
    return failed;
}

/* A shard is cut short while in use. Batches with a window beyond the cut fail and name the shard;
 * the others succeed. */
Test(blocks, file_cut_while_in_use)
{
    put_folder();
    reader_fault f = small;
    sgt_loader *l = open_loader("d", &block, &f);
    sgt_cursor *c = open_cursor(l);
    uint64_t behind = 0, batches = 575 / B;
    check_batch(l, c, 0, NULL);
    check_batch(l, c, 1, NULL);
    resize("d/train_000000.bin", 1024 + 2 * 3000);
    /* a jump, so that new pools are started */
    for (uint64_t k = 2000; k < 2000 + batches; k++) {
        static uint16_t rows[B * (T + 1)];
        int cut = 0;
        sgt_error err;
        for (uint32_t r = 0; r < B; r++) {
            sgt_window w = sgt_mix_window(&l->mix, k * B + r);
            cut |= w.shard == 0 && w.offset + T + 1 > 3000;
        }
        behind += (uint64_t)cut;
        if (!cut) check_batch(l, c, k, NULL);
        if (!cut) continue;
        cr_assert_eq(read_rows(l, c, k, rows, &err), SGT_EFORMAT);
        cr_assert(strstr(err.text, ", in the middle of a window: cut short while in use") &&
                      !strncmp(err.text, "d/train_000000.bin: ends at byte ", 33),
                  "%s", err.text);
    }
    cr_assert(behind > batches / 10 && behind < batches);
    sgt_cursor_close(c);
    sgt_loader_close(l);
}

/* From some read on, every read fails. */
Test(blocks, disk_that_fails)
{
    put_folder();
    reader_fault f = small;
    sgt_error err = {0};
    f.read_error = EIO;
    f.reads_first = 40;
    scoped(sgt_loader) *l = open_loader("d", &block, &f);
    scoped(sgt_cursor) *c = open_cursor(l);
    uint64_t failed = draw_all(l, c, 100, &err);
    cr_assert(failed > 50 && failed < 100, "%lu", failed);
    cr_assert(strstr(err.text, ": cannot read: Input/output error"), "%s", err.text);
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
    for (int i = 1; i < 5; i++) {
        char name[64];
        cr_assert_eq(mkdir(sets[i].path, 0777), 0);
        snprintf(name, sizeof name, "%s/train_000000.bin", sets[i].path);
        put_shard(name, 6 + (uint32_t)i, 2400 + 100 * (uint64_t)i);
    }
    o.sets = sets;
    o.set_count = 2;
    check_loader(NULL, &o, &small, map);
    o.set_count = 5;
    o.notice = collect(&said);
    scoped(sgt_loader) *l = open_loader(NULL, &o, &small);
    cr_assert_eq(said.count, 1);
    cr_assert_str_eq(said.last,
                     "blocks of 5 sets would take too much memory: reading windows one by one");
}

typedef struct drawer {
    const sgt_loader *l;
    uint64_t first;
} drawer;

static void *draw_every_third(void *arg)
{
    const drawer *d = arg;
    scoped(sgt_cursor) *c = open_cursor(d->l);
    for (uint64_t k = d->first; k < 300; k += 3) check_batch(d->l, c, k, NULL);
    return NULL;
}

Test(blocks, threads_share_pools)
{
    pthread_t threads[3];
    drawer drawers[3];
    put_folder();
    scoped(sgt_loader) *l = open_loader("d", &block, &small);
    for (uint64_t i = 0; i < 3; i++) {
        drawers[i] = (drawer){l, i};
        cr_assert_eq(pthread_create(&threads[i], NULL, draw_every_third, &drawers[i]), 0);
    }
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}
