/* test_state.c: continue a run at a saved position. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/loader/batches.h"

TestSuite(state, .init = enter_scratch, .fini = leave_scratch);

enum { B = 12, T = 16 };

/* Return the state of a run after `batches` batches. */
static sgt_loader_state state_after(const char *path, const sgt_loader_options *o, uint64_t batches)
{
    sgt_loader_state state = {.size = sizeof state};
    scoped(sgt_loader) *l = open_loader(path, o, NULL);
    must(sgt_loader_get_state(l, batches, &state, why));
    return state;
}

/* A state saved by two ranks is continued with other numbers of ranks and other readers. The rows
 * of a batch do not depend on them (readers/ranks_share_a_batch). */
Test(state, another_world)
{
    put_folder();
    for (int sampling = 0; sampling < SGT_SAMPLING_DOCUMENTS; sampling++) {
        sgt_loader_options o = {
            .sampling = (sgt_sampling)sampling, .batch = B, .seq = T, .seed = 3, .ranks = 2};
        sgt_loader_state state = state_after("d", &o, 41);
        cr_assert_eq(state.rows, 41 * B);
        for (o.ranks = 1; o.ranks <= B; o.ranks++) {
            uint64_t next = 0;
            if (B % o.ranks) continue;
            o.reader = (sgt_reader)(o.ranks % SGT_READERS);
            o.rank = o.ranks - 1;
            scoped(sgt_loader) *l = open_loader("d", &o, NULL);
            must(sgt_loader_resume(l, &state, &next, why));
            cr_assert_eq(next, 41);
        }
    }
}

/* The state counts rows, so batches of another size continue exactly where the earlier ones
 * ended. */
Test(state, another_batch_size)
{
    put_folder();
    sgt_loader_options o = {.batch = B, .seq = T};
    uint64_t next;
    sgt_loader_state state = state_after("d", &o, 7);
    o.batch = 4;
    scoped(sgt_loader) *l = open_loader("d", &o, NULL);
    must(sgt_loader_resume(l, &state, &next, why));
    cr_assert_eq(next, 21);
    sgt_loader_close(l);
    o.batch = 5;
    l = open_loader("d", &o, NULL);
    next = 99;
    expect_failure(sgt_loader_resume(l, &state, &next, why), SGT_EUSAGE,
                   "the saved position belongs to a different run: 84 rows were drawn, which is "
                   "not a multiple of the batch size, 5");
    cr_assert_eq(next, 99);
}

static void refused(const sgt_loader_options *o, const sgt_loader_state *state, const char *wanted)
{
    uint64_t next;
    scoped(sgt_loader) *l = open_loader("d", o, NULL);
    expect_failure(sgt_loader_resume(l, state, &next, why), SGT_EUSAGE,
                   "the saved position belongs to a different run: %s", wanted);
}

Test(state, what_differs_is_said)
{
    char text[256];
    put_folder();
    sgt_loader_options left = {.batch = 4, .seq = T, .seed = 1}, o = left;
    sgt_loader_state state = state_after("d", &o, 3);
    o.seed = 2;
    refused(&o, &state, "the seed is 2 but was 1");
    o.seq = 8;
    refused(&o, &state, "the seed is 2 but was 1; the sequence length is 8 but was 16");
    o = left;
    o.sampling = SGT_SAMPLING_BLOCK;
    refused(&o, &state, "the sampling is block but was shuffle");
    put_shard("d/train_000004.bin", 4, 3001);
    snprintf(text, sizeof text, "the data has hash %016lx and 9292 tokens, but had %016lx and 9291",
             state_after("d", &left, 0).hash, state.hash);
    refused(&left, &state, text);
}

/* Sets without checksums that have equal names and sizes are distinguished by the tokens at both
 * ends of each shard. Other tokens are not compared. */
Test(state, foreign_sets_of_one_size)
{
    sgt_loader_options o = {.batch = 4, .seq = T};
    uint64_t next;
    for (int raw = 0; raw < 2; raw++) {
        const char *path = raw ? "r/train.bin" : "f/train_000000.bin";
        void (*const put)(const char *, uint32_t, uint64_t) = raw ? put_raw : put_foreign;
        uint64_t data = raw ? 0 : 1024, last = data + 2 * 9999;
        for (int end = 0; end < 3; end++) {
            put(path, 1, 10000);
            sgt_loader_state state = state_after(path, &o, 3);
            patch(path, end == 0 ? data : end == 1 ? last : data + 4096, "\1\1", 2);
            scoped(sgt_loader) *l = open_loader(path, &o, NULL);
            if (end == 2) must(sgt_loader_resume(l, &state, &next, why));
            else
                expect_failure_about(
                    sgt_loader_resume(l, &state, &next, why), SGT_EUSAGE,
                    "the saved position belongs to a different run: the data has hash ");
        }
        put(path, 1, 100); /* a shard shorter than the two hashed ends together */
        sgt_loader_close(open_loader(path, &o, NULL));
    }
}

/* Two splits of one manifest have the same hash, so their numbers of tokens distinguish them. */
Test(state, another_split)
{
    char text[256];
    put_shard("d/train_000000.bin", 0, 900);
    put_shard("d/val_000000.bin", 1, 800);
    sgt_manifest_shard shards[] = {{"train_000000.bin", "train", 900, 1, 0},
                                   {"val_000000.bin", "val", 800, 1, 0}};
    put_manifest("d", shards, 2);
    sgt_loader_options o = {.batch = 4, .seq = T};
    sgt_loader_state state = state_after("d", &o, 3);
    o.split = "val";
    snprintf(text, sizeof text, "the data has hash %016lx and 800 tokens, but had %016lx and 900",
             state.hash, state.hash);
    refused(&o, &state, text);
}

/* Rows contain the padding id, so a run cannot continue with a different padding id. */
Test(state, padding)
{
    put_folder();
    uint64_t start = 0;
    for (uint32_t i = 0; i < 5; i++) put_bytes(shard_path("d", i, "idx"), &start, sizeof start);
    sgt_loader_options o = {.batch = 4, .seq = T, .sampling = SGT_SAMPLING_DOCUMENTS};
    sgt_loader_state state = state_after("d", &o, 3);
    cr_assert_eq(state.pad, 50256);
    o.padded_by = 1;
    o.pad = 7;
    refused(&o, &state, "the padding is 7 but was 50256");
}
