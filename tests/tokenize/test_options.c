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

Test(options, options_that_make_no_sense)
{
    put_text("in", "a text of some words, of which some come more than once, and some words more",
             76);
    expect_refused(NULL, "sgt_tokenize_options: NULL (inputs and out have no default)");
    const sgt_tokenize_options good = {.inputs = inputs, .input_count = 1, .out = "out"};
    sgt_tokenize_options o = good;
    o.out = "";
    expect_refused(&o, "expected at least one INPUT, and OUT");
    o = good, o.inputs = NULL;
    expect_refused(&o, "expected at least one INPUT, and OUT");
    o = good, o.shard_tokens = 2147483648;
    expect_refused(&o, "shard-tokens: 2147483648 do not fit a shard (at most 2147483647)");
    o = good, o.threads = 1025;
    expect_refused(&o, "threads: 1025 is not within 0 and 1024");
    o = good, o.threads = -1;
    expect_refused(&o, "threads: -1 is not within 0 and 1024");
    o = good, o.val_fraction = -.5;
    expect_refused(&o, "split: -0.5 is not within 0 and 1");
    o = good, o.val_fraction = 1.5;
    expect_refused(&o, "split: 1.5 is not within 0 and 1");
    o = good, o.format = (sgt_format)3;
    expect_refused(&o, "sgt_tokenize_options: layout 0, format 3, normalize 0, invalid_utf8 0, "
                       "binary 0: not all known");
    o = good, o.normalize = (sgt_normalize)-1;
    expect_refused(&o, "sgt_tokenize_options: layout 0, format 0, normalize -1, invalid_utf8 0, "
                       "binary 0: not all known");
    sgt_ranks ranks = {.rank = 2, .size = 2};
    o = good, o.ranks = &ranks;
    expect_refused(&o, "rank: 2 must be below ranks, 2 (they count from 0)");
    o = good, o.field = "a..b";
    expect_refused(&o, "field: \"a..b\": a name in it is empty");
}

/* The caller may pass NULL for results and errors. */
Test(options, results_may_be_null)
{
    sgt_vocab *v = NULL;
    put_text("in", "a text of some words, of which some come more than once, and some words more",
             76);
    sgt_tokenize_options o = {.inputs = inputs, .input_count = 1, .out = "out"};
    cr_assert_eq(sgt_vocab_train(&v, &o, 260, NULL, NULL), SGT_OK);
    cr_assert_eq(sgt_vocab_size(v), 260);
    sgt_vocab_free(v);
    cr_assert_eq(sgt_tokenize(&o, NULL, NULL), SGT_OK);
    cr_assert_eq(sgt_vocab_load(&v, NULL, NULL, NULL), SGT_EUSAGE);
    sgt_vocab_free(NULL);
    sgt_encoder_free(NULL);
}
