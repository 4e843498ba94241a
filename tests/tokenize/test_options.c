/* test_options.c: invalid options, and calls without pointers for results. */

#include "tests/expect.h"
#include "tests/tokenize/pipeline.h"
#include "tokenize/sgt_tokenize.h"

TestSuite(options, .init = enter_scratch, .fini = leave_scratch);

static const char *const inputs[] = {"in"};

/* Check that sgt_tokenize and sgt_vocab_train refuse these options with this message, and write
 * nothing. */
static void expect_refused(const sgt_tokenize_options *o, const char *says)
{
    sgt_vocab *v = NULL;
    expect_failure(sgt_tokenize(o, NULL, why), SGT_EUSAGE, "%s", says);
    expect_failure(sgt_vocab_train(&v, o, 300, NULL, why), SGT_EUSAGE, "%s", says);
    cr_assert_eq(sgt_tokenize(o, NULL, NULL), SGT_EUSAGE);
    cr_assert_null(v);
    cr_assert(folder_is_gone("out"));
}

/* Check that options with one change are refused. */
#define expect_change_refused(change, says) \
    do {                                    \
        sgt_tokenize_options o = good;      \
        o.change;                           \
        expect_refused(&o, says);           \
    } while (0)

Test(options, options_that_make_no_sense)
{
    const sgt_tokenize_options good = {
        .size = sizeof good, .inputs = inputs, .input_count = 1, .out = "out"};
    put_text("in", "a text of some words, of which some come more than once, and some words more",
             76);
    expect_refused(NULL, "sgt_tokenize_options.size is 0: set it to sizeof(sgt_tokenize_options)");
    expect_change_refused(size = 7, "sgt_tokenize_options.size is 7: set it to "
                                    "sizeof(sgt_tokenize_options)");
    expect_change_refused(out = "", "expected at least one INPUT, and OUT");
    expect_change_refused(inputs = NULL, "expected at least one INPUT, and OUT");
    expect_change_refused(
        shard_tokens = 2147483648,
        "shard-tokens: 2147483648 is too many (a shard holds at most 2147483647 tokens)");
    expect_change_refused(threads = 1025, "threads: 1025 is not between 0 and 1024");
    expect_change_refused(threads = -1, "threads: -1 is not between 0 and 1024");
    expect_change_refused(val_fraction = -.5, "split: -0.5 is not between 0 and 1");
    expect_change_refused(val_fraction = 1.5, "split: 1.5 is not between 0 and 1");
    expect_change_refused(format = (sgt_format)3,
                          "sgt_tokenize_options: unknown value in layout 0, format 3, normalize 0, "
                          "invalid_utf8 0 or binary 0");
    expect_change_refused(normalize = (sgt_normalize)-1,
                          "sgt_tokenize_options: unknown value in layout 0, format 0, normalize "
                          "-1, invalid_utf8 0 or binary 0");
    expect_change_refused(
        rank = 2, "rank: 2 must be below the number of ranks, 0 (ranks are numbered from 0)");
    expect_change_refused(field = "a..b", "field: \"a..b\" contains an empty name");
}

/* A program of another version passes options with a field that this library does not know, or
 * without the last fields, which must not be read then. The same holds for its result struct. */
Test(options, programs_of_other_versions)
{
    struct {
        sgt_tokenize_options o;
        uint64_t later;
    } o = {{.size = sizeof o, .inputs = inputs, .input_count = 1, .out = "out"}, 1};
    struct {
        sgt_tokenize_result r;
        uint64_t later;
    } r = {{.size = offsetof(sgt_tokenize_result, seconds), .seconds = -1}, 0};
    put_text("in", "some words", 10);
    expect_failure(sgt_tokenize(&o.o, NULL, why), SGT_EUSAGE,
                   "sgt_tokenize_options: byte %zu is not 0, but this library supports only the "
                   "first %zu (it is older than its header: use the same version of both)",
                   sizeof o.o, sizeof o.o);
    o.later = 0;
    must(sgt_tokenize(&o.o, &r.r, why));
    cr_assert(r.r.tokens == 3 && r.r.seconds == -1);
    o.o.size = offsetof(sgt_tokenize_options, force);
    memset((char *)&o + o.o.size, 0xA5, sizeof o - o.o.size);
    r.r.size = sizeof r;
    must(sgt_tokenize(&o.o, &r.r, why));
    cr_assert(r.r.already_done && r.r.seconds >= 0 && !r.later);
    r.r.size = 0;
    expect_failure(sgt_vocab_train(NULL, &o.o, 300, &r.r, why), SGT_EUSAGE,
                   "sgt_tokenize_result.size is 0: set it to sizeof(sgt_tokenize_result)");
}

/* The caller may pass NULL for results and errors. */
Test(options, results_may_be_null)
{
    sgt_vocab *v = NULL;
    put_text("in", "a text of some words, of which some come more than once, and some words more",
             76);
    sgt_tokenize_options o = {.size = sizeof o, .inputs = inputs, .input_count = 1, .out = "out"};
    cr_assert_eq(sgt_vocab_train(&v, &o, 260, NULL, NULL), SGT_OK);
    cr_assert_eq(sgt_vocab_size(v), 260);
    sgt_vocab_free(v);
    cr_assert_eq(sgt_tokenize(&o, NULL, NULL), SGT_OK);
    cr_assert_eq(sgt_vocab_load(&v, NULL, NULL, NULL), SGT_EUSAGE);
    sgt_vocab_free(NULL);
    sgt_encoder_free(NULL);
}
