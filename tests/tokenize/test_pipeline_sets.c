/* test_pipeline_sets.c: sets written by several ranks, shuffled, or without duplicates. They are
 * compared with a slow way that encodes documents one by one, compares their texts to find
 * duplicates, and sorts by key. Also stopping and resuming, and how files are divided among
 * ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/philox.h"
#include "tokenize/input/feed.h"
#include "tokenize/parts/dedup.h"
#include "tokenize/parts/divide.h"
#include "tests/expect.h"
#include "tests/tokenize/pipeline.h"

TestSuite(pipeline_sets, .init = enter_scratch, .fini = leave_scratch);

enum { FILES = 36 };
static char names[FILES][16];
static const char *paths[FILES];
static int duplicate[FILES];

/* Write files of many lengths. A few are equal, one that takes many units of work occurs twice, and
 * some have the same length but different content. */
static void make_corpus(void)
{
    mkdir("in", 0777);
    for (int i = 0; i < FILES; i++) {
        snprintf(names[i], sizeof names[i], "in/%02d", i);
        paths[i] = names[i];
        int like = i % 7 == 3 ? i / 2 : i;
        size_t n = like % 10 == 1 ? 0 : like == 20 ? 30000 : (size_t)(like * 37 % 900);
        scoped_memory char *text = mixed_text((uint64_t)like, &n, 1);
        if (i % 7 == 4 && n) text[n / 2] ^= 1;
        put_text(paths[i], text, n);
    }
    char *big;
    size_t n = get_file(&big, paths[20]);
    put_text(paths[30], big, n);
    free(big);
    for (int i = 0; i < FILES; i++) {
        duplicate[i] = 0;
        for (int j = 0; j < i && !duplicate[i]; j++) {
            scoped_memory char *a = NULL, *b = NULL;
            size_t p = get_file(&a, paths[i]), q = get_file(&b, paths[j]);
            duplicate[i] = p == q && !memcmp(a, b, p);
        }
    }
}

typedef struct keyed {
    uint64_t key, number;
    uint64_t from, to; /* extent of the document, in tokens */
} keyed;

static int by_key(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

/* Return the expected content of OUT for one split. */
static stream slow_set(const sgt_tokenize_options *o, int split)
{
    stream all = slow_stream(paths, FILES, o, split),
           s = {.starts = calloc(FILES, sizeof *s.starts)};
    keyed docs[FILES];
    size_t count = 0, number = 0;
    for (int i = 0; i < FILES; i++) {
        if (sgt_text_feed_split(paths[i] + 3, 0, o->val_fraction) != split) continue;
        uint64_t n = number++, from = all.starts[n],
                 to = number < all.documents ? all.starts[number] : all.count;
        if (o->dedup && duplicate[i]) continue;
        docs[count++] =
            (keyed){o->shuffle ? XXH3_64bits_withSeed(&n, 8, o->shuffle_seed) : n, n, from, to};
    }
    qsort(docs, count, sizeof *docs, by_key);
    s.ids = malloc((all.count + 1) * sizeof *s.ids);
    for (size_t i = 0; i < count; i++) {
        s.starts[s.documents++] = s.count;
        memcpy(s.ids + s.count, all.ids + docs[i].from,
               (docs[i].to - docs[i].from) * sizeof *s.ids);
        s.count += docs[i].to - docs[i].from;
    }
    free_stream(&all);
    return s;
}

static uint64_t count_duplicates(void)
{
    uint64_t n = 0;
    for (int i = 0; i < FILES; i++) n += duplicate[i] != 0;
    return n;
}

/* Write a set with every combination of the options for which ranks write parts first, for several
 * numbers of ranks. Parts of more than SGT_MADE_OPEN shards are shuffled through buckets. */
Test(pipeline_sets, equals_the_slow_way)
{
    static const uint32_t ranks[] = {1, 3, 40};
    make_corpus();
    cr_assert(count_duplicates() > 4 && count_duplicates() < FILES / 2, "%lu",
              (unsigned long)count_duplicates());
    cr_assert(duplicate[30], "the long one");
    for (int mode = 0; mode < 8; mode++) {
        sgt_tokenize_options o = {.shuffle = mode & 1,
                                  .shuffle_seed = (uint64_t)mode * 77,
                                  .dedup = mode >> 1 & 1,
                                  .val_fraction = mode & 4 ? .4 : 0,
                                  .shard_tokens = mode & 4   ? 61
                                                  : mode & 1 ? 3001
                                                             : 20000};
        piece_bytes = 700;
        scoped(stream) train = slow_set(&o, 0), val = slow_set(&o, 1);
        for (size_t k = 0; k < (mode == 7 ? 3 : 2); k++) {
            char out[32];
            sgt_tokenize_result r;
            snprintf(out, sizeof out, "out%d-%zu", mode, k);
            o.threads = 1 + (int)k;
            o.ranks = ranks[k];
            for (o.rank = ranks[k]; o.rank-- > 0;) {
                must(tokenize(o, "in", out, &r, why));
                cr_assert(o.rank == 0 || r.waiting, "a rank has not waited for the others");
            }
            cr_assert_eq(mode >= 4, train.count > SGT_MADE_OPEN * o.shard_tokens);
            expect_shards(out, "train", &train, o.shard_tokens);
            expect_shards(out, "val", &val, o.shard_tokens);
            cr_assert_eq(r.documents, train.documents + val.documents);
            cr_assert_eq(r.tokens, train.count + val.count);
            cr_assert_eq(r.duplicates, o.dedup ? count_duplicates() : 0);
            cr_assert(r.files == FILES && !r.waiting && !r.already_done);
        }
    }
}

/* Stop after every few units of work, also in the middle of documents. A resumed run starts such a
 * document again, so it repeats a little work. */
Test(pipeline_sets, stopped_and_resumed)
{
    sgt_tokenize_options o = {.dedup = 1, .shuffle = 1, .shard_tokens = 2000, .val_fraction = .3};
    piece_bytes = 500;
    make_corpus();
    must(tokenize(o, "in", "whole", NULL, why));
    int all = 0;
    for (int after = 1; after < 40; after += 1 + after) {
        char out[16];
        snprintf(out, sizeof out, "out%d", after);
        for (o.rank = 0, o.ranks = 2; o.rank < 2; o.rank++)
            all += tokenize_in_stops(o, out, after, 1);
        expect_same_folders("whole", out);
    }
    cr_assert_gt(all, 30);
}

/* If the table of documents has little memory, finding duplicates takes more passes, with the same
 * result. */
Test(pipeline_sets, duplicates_are_found_in_passes)
{
    sgt_tokenize_options o = {.dedup = 1, .val_fraction = .4, .ranks = 2};
    sgt_tokenize_result result;
    sgt_dedup *d;
    sgt_made *part = NULL;
    scoped_memory char *want, *got;
    make_corpus();
    must(tokenize(o, "in", "out", &result, why));
    must(sgt_made_add(&part, "out/.work/part-000000", why));
    sgt_dedup_request r = {.set = part, .work = "w", .memory = UINT64_MAX};
    must(sgt_dedup_find(&r, why));
    const size_t n = get_file(&want, "w/sorting/left-out");
    r.memory = 0;
    must(sgt_dedup_find(&r, why));
    cr_assert(get_file(&got, "w/sorting/left-out") == n && !memcmp(got, want, n));
    must(sgt_dedup_open(&d, &r, why));
    cr_assert(sgt_dedup_count(d) > 0 && sgt_dedup_left_out(d, 0) > 0);
    sgt_dedup_close(d);
    sgt_made_close(part);
}

/* Each rank gets consecutive files, and the ranks get nearly equal shares. If there are more ranks
 * than files, some get none. */
Test(pipeline_sets, files_are_divided)
{
    enum { MOST = 1000 }; /* bytes of a file */
    for (uint32_t ranks = 1; ranks < 65; ranks++) {
        sgt_corpus_file files[50] = {{0}};
        sgt_corpus c = {.files = files, .count = 50};
        sgt_cut cuts[65];
        for (size_t i = 0; i < c.count; i++)
            c.bytes += files[i].size = sgt_philox_u64(ranks, i, 0) % MOST;
        sgt_divide(&c, ranks, cuts);
        cr_assert(cuts[0].file == 0 && cuts[ranks].file == c.count);
        for (uint32_t i = 0; i < ranks; i++) {
            uint64_t bytes = 0;
            cr_assert_leq(cuts[i].file, cuts[i + 1].file);
            for (size_t k = cuts[i].file; k < cuts[i + 1].file; k++) bytes += files[k].size + 4096;
            cr_assert_leq(bytes, (c.bytes + c.count * 4096) / ranks + MOST + 4096);
        }
    }
}
