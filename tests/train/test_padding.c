/* test_padding.c: padded rows: --sampling documents through sgt_train. Padding adds nothing to a
 * loss, whatever id it has. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/expect.h"
#include "tests/train/fixture.h"
#include "tests/train/folder.h"
#include "tests/train/run_fixture.h"
#include "loader/sgt_loader.h"
#include "loader/shards/shard.h"

SCOPED_STRUCT(sgt_examples, sgt_examples_free)

/* Make FOLDER/set of data.bin, with its first 2,000 tokens as validation shard. Documents are lines
 * of about 40 bytes: some are cut, most are padded. */
static void make_set(void)
{
    static uint8_t bytes[SGT_SHARD_HEADER + 2 * 2000];
    sgt_shard_header h = {.tokens = 2000, .vocab = 256, .eot = '\n'};
    size_t n;
    make_data();
    scoped_memory char *data = get_file("data.bin", &n);
    memcpy(bytes, data, sizeof bytes);
    sgt_shard_pack(bytes, &h);
    cr_assert_eq(mkdir(in_folder("set"), 0777), 0);
    put_file("set/val_000000.bin", bytes, sizeof bytes);
    put_file("set/train_000000.bin", data, n);
}

TestSuite(padding, .init = make_set, .fini = remove_folder);

enum { T = 48 };

static sgt_config documents(uint64_t steps)
{
    sgt_config s = tiny(steps);
    s.data = in_folder("set");
    s.sampling = SGT_SAMPLING_DOCUMENTS;
    s.seq = T;
    s.eval_every = 3;
    return s;
}

/* Return the loss of one document, computed by itself and without padding. */
static double alone(const int32_t *tokens, uint32_t length)
{
    scoped(sgt_backend) *b = NULL;
    double loss = 0;
    uint64_t targets = 0;
    sgt_backend_options o = {
        .optim = {.kind = SGT_ADAMW}, .batch = 1, .seq = length - 1, .threads = 1};
    if (length < 2) return 0;
    must(sgt_model_named(&o.model, "2x16x2", why));
    o.model.vocab = 256;
    must(sgt_cpu_backend_open(&b, &o, why));
    must(sgt_init_parameters(b, &o.model, 1, 1, why));
    int32_t targets_of[T];
    memcpy(targets_of, tokens + 1, (length - 1) * sizeof *tokens);
    sgt_batch rows = {.inputs = tokens, .targets = targets_of};
    must(b->eval(b, &rows, &loss, &targets, why));
    cr_assert_eq(targets, length - 1);
    return loss;
}

/* A step's loss is the sum of the losses of its documents, each computed by itself, divided by the
 * number of targets. */
Test(padding, a_steps_loss_is_its_documents)
{
    int32_t both[2][4 * T], row[T + 1];
    const int32_t *inputs = both[0], *next = both[1];
    sgt_loader *l;
    sgt_cursor *c;
    sgt_loader_options o = {
        .size = sizeof o, .sampling = SGT_SAMPLING_DOCUMENTS, .seed = 1, .batch = 4, .seq = T};
    must_train(documents(2), "run", 0);
    o.data = in_folder("set");
    must(sgt_loader_open(&l, &o, why));
    must(sgt_cursor_open(&c, l, why));
    must(sgt_loader_read(l, c, 0, 1, SGT_OUTPUT_I32, both, sizeof both, why));
    const uint32_t *lengths = sgt_cursor_batch(c)->lengths;
    double loss = 0, targets = 0;
    for (size_t r = 0; r < 4; r++) {
        memcpy(row, inputs + r * T, T * sizeof *row);
        row[T] = next[r * T + T - 1];
        loss += alone(row, lengths[r]);
        targets += lengths[r] - 1;
    }
    cr_assert_lt(targets, 4 * T, "these rows have no padding");
    cr_expect_float_eq(stepped[0].loss, loss / targets, 1e-5, "%.9f, not %.9f", stepped[0].loss,
                       loss / targets);
    sgt_cursor_close(c);
    sgt_loader_close(l);
}

/* The bits do not depend on the padding id. If a step is divided into other micro-steps, the losses
 * are nearly the same. */
Test(padding, changes_no_bit)
{
    double losses[6];
    sgt_config s = documents(6);
    must_train(s, "one", 0);
    for (size_t i = 0; i < 6; i++) losses[i] = stepped[i].loss;
    s.pad = 101;
    must_train(s, "other", 0);
    same_facts("one", "other");
    same_bytes("one/step-00000006/model.safetensors", "other/step-00000006/model.safetensors");
    s = documents(6);
    s.batch = 4;
    s.accum = 1;
    must_train(s, "large", 0);
    for (size_t i = 0; i < 6; i++)
        cr_expect_float_eq(losses[i], stepped[i].loss, 2e-5, "step %zu", i);
}

/* ---- prompts and completions ---- */

enum { EXAMPLES = 9 };
static const uint32_t prompts[EXAMPLES] = {3, 1, 10, 48, 49, 60, 20, 5, 30};
static const uint32_t completions[EXAMPLES] = {4, 1, 30, 5, 3, 9, 60, 8, 2};

static int32_t example_token(uint64_t i) { return (int32_t)(i * 37 % 251); }

static int some_examples(const char *path, const char *model, uint32_t vocab, sgt_examples *e,
                         sgt_error *err)
{
    (void)model;
    (void)vocab;
    (void)err;
    cr_assert_str_eq(path, "some.jsonl");
    e->starts = calloc(EXAMPLES + 1, sizeof *e->starts);
    e->learnt = calloc(EXAMPLES, sizeof *e->learnt);
    e->count = EXAMPLES;
    for (int i = 0; i < EXAMPLES; i++) {
        e->learnt[i] = prompts[i];
        e->starts[i + 1] = e->starts[i] + prompts[i] + completions[i];
    }
    e->tokens = calloc(e->starts[EXAMPLES], sizeof *e->tokens);
    for (uint64_t i = 0; i < e->starts[EXAMPLES]; i++) e->tokens[i] = example_token(i);
    e->hash = 5;
    e->vocab = 256;
    e->eot = 10;
    return SGT_OK;
}

static sgt_config prompted(uint64_t steps)
{
    sgt_config s = tiny(steps);
    use_examples = some_examples;
    s.data = "some.jsonl";
    s.seq = T;
    return s;
}

Test(padding, rows_of_examples)
{
    enum { B = 6, LOCAL = 3 };
    int seen[3 * EXAMPLES] = {0};
    int32_t inputs[LOCAL * T], targets[LOCAL * T];
    for (uint32_t rank = 0; rank < 2; rank++) {
        scoped(sgt_examples) e = {0};
        sgt_example_rows rows = {
            .seed = 3, .batch = B, .seq = T, .rank = rank, .ranks = 2, .pad = 99};
        cr_assert_eq(some_examples("some.jsonl", NULL, 0, &e, NULL), 0);
        cr_assert_eq(sgt_examples_arrange(&e, "x", &rows, NULL, NULL), 0);
        for (uint64_t k = 0; k * B < 2 * EXAMPLES; k++) { /* two epochs: each example twice */
            sgt_examples_batch(&e, k, inputs, targets);
            for (size_t r = 0; r < LOCAL; r++) {
                uint64_t row = k * B + rank + r * 2,
                         i = sgt_sampler_window(&e.order, NULL, row).offset;
                uint64_t n = prompts[i] + completions[i];
                seen[row / EXAMPLES * EXAMPLES + i]++;
                for (uint64_t t = 0; t <= T; t++) {
                    int32_t id = t < n ? example_token(e.starts[i] + t) : 99;
                    if (t < T) cr_assert_eq(inputs[r * T + t], id);
                    int32_t wanted = t >= prompts[i] && t < n ? id : SGT_IGNORED;
                    if (t)
                        cr_assert_eq(targets[r * T + t - 1], wanted, "example %lu, target %lu", i,
                                     t - 1);
                }
            }
        }
    }
    for (int i = 0; i < 2 * EXAMPLES; i++)
        cr_assert_eq(seen[i], 1, "example %d of epoch %d", i % EXAMPLES, i / EXAMPLES);
}

Test(padding, examples_of_another_vocabulary)
{
    sgt_config s = prompted(2);
    s.init = FIXTURES "curve_deep";
    s.model = NULL;
    expect_failure(train(s, "run", 0, 0, 0, NULL, why), SGT_EUNSUPPORTED,
                   "--data some.jsonl: its vocabulary has 256 ids, but the model's has 97");
}
