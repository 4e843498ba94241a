/* test_sets.c: several sets in one loader. Every reader, rank and cursor must give the same
 * batches. Also the information about each set, and how a list of sets is parsed, with its errors.
 * test_documents.c and test_packed.c mix sets of documents. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "loader/base/philox.h"
#include "tests/loader/batches.h"

TestSuite(sets, .init = enter_scratch, .fini = leave_scratch);

static const sgt_loader_set three[] = {{"d", 5}, {"e", 2.5}, {"one.bin", 2.5}};
/* for each shard in use: its shard number for token_at */
static const uint32_t in_use[] = {0, 1, 2, 3, 4, 10, 11, 20};

/* Write the sets: folder d with five shards; folder e with two shards and one that is too short for
 * T = 16; and one file. */
static void put_sets(void)
{
    put_folder();
    put_shard("e/train_000000.bin", 10, 900);
    put_foreign("e/train_000001.bin", 11, 333);
    put_shard("e/train_000002.bin", 12, 9);
    if (id_width == 2) put_raw("one.bin", 20, 4000);
    else put_foreign("one.bin", 20, 4000);
}

static sgt_loader_options mixed(const sgt_loader_set *sets, uint32_t n)
{
    return (sgt_loader_options){.sets = sets, .set_count = n, .batch = 6, .seq = 16, .seed = 9};
}

/* A row depends only on its number and on the data. It does not depend on the reader, the number of
 * ranks, or where a cursor begins. */
Test(sets, readers_agree)
{
    for (; id_width <= 4; id_width += 2) {
        put_sets();
        for (int reader = 0; reader < SGT_READERS; reader++)
            for (int sampling = 0; sampling < SGT_SAMPLING_DOCUMENTS; sampling++) {
                sgt_loader_options o = mixed(three, 3);
                o.reader = (sgt_reader)reader;
                o.sampling = (sgt_sampling)sampling;
                o.ranks = 3;
                o.rank = (uint32_t)(reader + sampling) % 3;
                check_loader(NULL, &o, NULL, in_use);
            }
        must(sgt_remove_tree("d", why));
        must(sgt_remove_tree("e", why));
    }
}

/* Row r of the mix is the row that mix.h defines: it equals a row of a loader that opens only the
 * row's set. */
static void check_rows(sgt_sampling sampling)
{
    sgt_loader_options o = mixed(three, 3), alone = {.batch = 6, .seq = 16, .sampling = sampling};
    o.sampling = sampling;
    sgt_loader *l = open_loader(NULL, &o, NULL), *own[3];
    uint64_t next[3] = {0}, at, want_at;
    uint32_t shard, want;
    for (uint32_t s = 0; s < 3; s++) {
        alone.seed = sgt_philox_u64(9, s, 8);
        own[s] = open_loader(three[s].path, &alone, NULL);
    }
    for (uint64_t row = 0; row < 3000; row++) {
        for (uint32_t s = 0; s < 3; s++) cr_assert_eq(sgt_loader_drawn(l, s, row), next[s]);
        sgt_loader_window(l, row, &shard, &at);
        uint32_t s = sgt_loader_set_of(l, shard);
        sgt_loader_window(own[s], next[s]++, &want, &want_at);
        cr_assert_str_eq(sgt_loader_shard_path(l, shard), sgt_loader_shard_path(own[s], want));
        cr_assert_eq(at, want_at);
    }
    /* the weights are a half and two quarters; counts may be off by one turn (64 rows) */
    cr_assert_leq(llabs((long long)next[0] - 1500), 64);
    cr_assert_leq(llabs((long long)next[1] - 750), 64);
    for (uint32_t s = 0; s < 3; s++) sgt_loader_close(own[s]);
    sgt_loader_close(l);
}

Test(sets, rows_are_those_of_each_set)
{
    put_sets();
    for (int sampling = 0; sampling < SGT_SAMPLING_DOCUMENTS; sampling++)
        check_rows((sgt_sampling)sampling);
}

static uint64_t hash_of(const sgt_loader_set *sets, uint32_t n)
{
    sgt_loader_options o = mixed(sets, n);
    scoped(sgt_loader) *l = open_loader(NULL, &o, NULL);
    return loader_info(l).hash;
}

Test(sets, said_of_them)
{
    put_sets();
    sgt_loader_options o = mixed(three, 3);
    uint64_t tokens = 0, windows = 0;
    scoped(sgt_loader) *l = open_loader(NULL, &o, NULL);
    sgt_loader_info info = loader_info(l);
    cr_assert(info.set_count == 3 && info.shards == 8 && info.skipped == 1);
    for (uint32_t s = 0; s < 3; s++) {
        sgt_loader_set_info set = info.sets[s];
        cr_assert_str_eq(set.path, three[s].path);
        cr_assert(set.weight == three[s].weight && set.share == three[s].weight / 10);
        cr_assert(set.shards == (s == 0 ? 5 : s == 1 ? 2 : 1) && set.skipped == (s == 1));
        tokens += set.tokens;
        windows += set.windows_per_epoch;
        if (s == 1) cr_assert_eq(set.tokens, 1233);
        cr_assert_eq(set.hash, hash_of(&three[s], 1));
    }
    cr_assert(tokens == info.tokens && windows == info.windows_per_epoch);
}

/* The hash depends on the data, the proportions and the order of the sets, but not on how the
 * weights are written. */
Test(sets, hash)
{
    put_sets();
    const sgt_loader_set same[] = {{"d", 2}, {"e", 1}, {"one.bin", 1}},
                         order[] = {{"e", 2}, {"d", 1}, {"one.bin", 1}},
                         other[] = {{"d", 2}, {"e", 1}, {"one.bin", 1.001}},
                         sizes[] = {{"d", 0}, {"e", 0}}, two[] = {{"d", 2}, {"e", 1}},
                         equal[] = {{"d", 2}, {"e", 2}};
    uint64_t h[] = {hash_of(three, 3), hash_of(order, 3), hash_of(other, 3),  hash_of(sizes, 2),
                    hash_of(two, 2),   hash_of(equal, 2), hash_of(&two[0], 1)};
    cr_assert_eq(hash_of(same, 3), h[0]);
    for (size_t i = 0; i < sizeof h / sizeof *h; i++)
        for (size_t j = 0; j < i; j++) cr_assert_neq(h[i], h[j], "%zu and %zu", i, j);
    put_shard("e/train_000000.bin", 99, 900);
    cr_assert_neq(hash_of(same, 3), h[0]);
}

/* A list of one set gives the same loader as its path. */
Test(sets, one_in_a_list)
{
    put_sets();
    const sgt_loader_set one[] = {{"d", 0.5}};
    sgt_loader_options o = mixed(one, 1), plain = {.batch = 6, .seq = 16, .seed = 9};
    scoped(sgt_loader) *a = open_loader(NULL, &o, NULL), *b = open_loader("d", &plain, NULL);
    sgt_loader_info x = loader_info(a), y = loader_info(b);
    cr_assert(x.hash == y.hash && x.set_count == 1 && y.set_count == 1);
    for (uint64_t row = 0; row < 500; row++) {
        sgt_window w = sgt_mix_window(&a->mix, row), v = sgt_mix_window(&b->mix, row);
        cr_assert(w.shard == v.shard && w.offset == v.offset);
    }
}

/* ---- parsing ---- */

static void check_text(const char *text, uint32_t n, const sgt_loader_set *want)
{
    sgt_loader_set *sets;
    uint32_t count;
    must(sgt_loader_sets_parse(&sets, &count, text, why));
    cr_assert_eq(count, n);
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_str_eq(sets[i].path, want[i].path);
        cr_assert_eq(sets[i].weight, want[i].weight);
    }
    free(sets);
}

Test(sets, texts)
{
    check_text("out", 1, (sgt_loader_set[]){{"out", 0}});
    check_text("a,b", 2, (sgt_loader_set[]){{"a", 0}, {"b", 0}});
    check_text("a/x:0.7,b:0.3", 2, (sgt_loader_set[]){{"a/x", 0.7}, {"b", 0.3}});
    check_text("a:7,b:3,c:1e-3", 3, (sgt_loader_set[]){{"a", 7}, {"b", 3}, {"c", 1e-3}});
    check_text("a:7", 1, (sgt_loader_set[]){{"a", 7}});
    check_text("c:/x,d:y:2x", 2, (sgt_loader_set[]){{"c:/x", 0}, {"d:y:2x", 0}});
    put_raw("a,b:2", 1, 40);
    put_raw("a:0.5", 1, 40);
    check_text("a,b:2", 1, (sgt_loader_set[]){{"a,b:2", 0}});
    check_text("a:0.5", 1, (sgt_loader_set[]){{"a:0.5", 0}});
    check_text("a:0.5,b", 2, (sgt_loader_set[]){{"a:0.5", 0}, {"b", 0}});
    check_text("a:0.5:2,b:1", 2, (sgt_loader_set[]){{"a:0.5", 2}, {"b", 1}});
    check_text("a:0.50,b:1", 2, (sgt_loader_set[]){{"a", 0.5}, {"b", 1}});
}

static int parse(const char *text, sgt_error *err)
{
    sgt_loader_set *sets;
    uint32_t count;
    int rc = sgt_loader_sets_parse(&sets, &count, text, err);
    if (rc == 0) free(sets);
    return rc;
}

Test(sets, texts_that_are_wrong)
{
    static const char *const weights[] = {"0", "-1", "nan", "inf", "-inf", "1e-10", "1e7", "1e999"};
    char text[64];
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        snprintf(text, sizeof text, "d:1,e:%s", weights[i]);
        expect_failure(parse(text, why), SGT_EUSAGE,
                       "e:%s: the weight must be a number from 1e-09 to 1e+06", weights[i]);
    }
    static const char *const wrong[][2] = {
        {"d:1,,e:2", "d:1,,e:2: the path of a set is empty (commas separate sets)"},
        {"d,", "d,: the path of a set is empty (commas separate sets)"},
        {"d:1,:2", ":2: there is no path before the weight"},
        {"d:1,e", "d has a weight, but e has none (give every set a weight, or none)"},
        {"d,e,f:1", "d has no weight, but f has one (give every set a weight, or none)"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_failure(parse(wrong[i][0], why), SGT_EUSAGE, "%s", wrong[i][1]);
    scoped_memory char *most = malloc(2 * 4097);
    memset(most, ',', 2 * 4097);
    for (int i = 0; i < 4097; i++) most[2 * i] = 'd';
    most[2 * 4097 - 1] = '\0';
    expect_failure(parse(most, why), SGT_EUSAGE, "4097 sets: at most 4096 can be mixed");
}

/* ---- opening ---- */

static int open_sets(const sgt_loader_set *sets, uint32_t n, sgt_error *err)
{
    sgt_loader_options o = mixed(sets, n);
    return open_only(NULL, &o, err);
}

Test(sets, that_cannot_be_mixed)
{
    static const struct {
        sgt_loader_set with; /* set "d", of weight 1, is mixed with this one */
        int code;
        const char *text;
    } cases[] = {
        {{"gone", 1},
         SGT_EIO,
         "gone: No such file or directory (make a folder of shards with sgt-tokenize)"},
        {{"e", -1}, SGT_EUSAGE, "e:-1: the weight must be a number from 1e-09 to 1e+06"},
        {{"e", 0}, SGT_EUSAGE, "d has a weight, but e has none (give every set a weight, or none)"},
        {{"./d/", 1},
         SGT_EUSAGE,
         "./d/: the same set as d (to draw more of it, give it a larger weight)"},
        {{"empty", 1},
         SGT_EFORMAT,
         "empty: no train shards (train_*.bin) in it: make them with sgt-tokenize"},
        {{NULL, 1}, SGT_EUSAGE, "set 1 has no path"},
        {{"short.bin", 1},
         SGT_EFORMAT,
         "short.bin: rows of 16 tokens need a shard of at least 17, but the longest, short.bin, "
         "has only 5 (use a sequence length of at most 4, or more text)"},
        {{"shorter.bin", 1},
         SGT_EFORMAT,
         "shorter.bin: every shard has fewer than two tokens, but a row and its targets need two "
         "(tokenize more text)"}};
    put_sets();
    cr_assert_eq(mkdir("empty", 0777), 0);
    put_raw("short.bin", 1, 5);
    put_raw("shorter.bin", 1, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_failure(open_sets((sgt_loader_set[]){{"d", 1}, cases[i].with}, 2, why),
                       cases[i].code, "%s", cases[i].text);
    expect_failure(open_sets(three, 4097, why), SGT_EUSAGE, "4097 sets: at most 4096 can be mixed");
    expect_failure(open_sets(NULL, 2, why), SGT_EUSAGE,
                   "sgt_loader_options.sets is NULL, but set_count is 2");
    expect_failure(open_sets(NULL, 0, why), SGT_EUSAGE,
                   "sgt_loader_options: neither data nor sets is set (set exactly one of them)");
    sgt_loader_options twice = mixed(three, 3);
    expect_failure(open_only("d", &twice, why), SGT_EUSAGE,
                   "sgt_loader_options: data and sets are both set (set exactly one of them)");
}

static void put_marked(const char *path, uint32_t vocab, uint64_t fingerprint)
{
    sgt_shard_header h = {.tokens = 40, .revision = 1, .vocab = vocab, .fingerprint = fingerprint};
    uint8_t header[SGT_SHARD_HEADER + 80] = {0};
    sgt_shard_pack(header, &h);
    put_bytes(path, header, sizeof header);
}

/* Sets must share one vocabulary. If the models' sizes differ, ids must be below all of them. */
Test(sets, vocabularies)
{
    put_marked("a.bin", 50257, 0xab);
    put_marked("b.bin", 50257, 0xcd);
    put_marked("c.bin", 4096, 0);
    expect_failure(open_sets((sgt_loader_set[]){{"c.bin", 1}, {"a.bin", 1}, {"b.bin", 1}}, 3, why),
                   SGT_EFORMAT,
                   "b.bin: vocabulary 00000000000000cd, but a.bin has 00000000000000ab: sets that "
                   "are mixed must share a vocabulary");
    sgt_loader_set sets[] = {{"a.bin", 1}, {"c.bin", 1}};
    sgt_loader_options o = mixed(sets, 2);
    scoped(sgt_loader) *l = open_loader(NULL, &o, NULL);
    cr_assert_eq(loader_info(l).vocab, 4096);
    id_width = 4;
    put_foreign("wide.bin", 1, 100);
    expect_failure(open_sets((sgt_loader_set[]){{"c.bin", 1}, {"wide.bin", 1}}, 2, why),
                   SGT_EFORMAT,
                   "wide.bin: 32-bit ids, but c.bin has 16-bit ones: shards that are read together "
                   "must share a vocabulary");
}
