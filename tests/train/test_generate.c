/* test_generate.c: text generation with a cache of keys and values. It gives the logits of the
 * training step's forward pass, the same bits however the work is divided, and the same ids as
 * transformers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/expect.h"
#include "tests/train/fixture.h"
#include "train/generate/generate.h"
#include "train/run/checkpoint.h"

SCOPED_POINTER(sgt_decoder, sgt_decoder_close)

#define SAMPLE FIXTURES "sample/"

/* ---- a decoder for a fixture's model, or for a stored model ---- */

/* Open a decoder for the model of f, and load its parameters `piece` numbers at a time. */
static sgt_decoder *decoder(const fixture *f, uint32_t sequences, int threads, int bf16,
                            size_t piece)
{
    sgt_decoder *d;
    sgt_tensor t;
    sgt_decoder_options o = {
        .model = f->model, .sequences = sequences, .threads = threads, .bf16 = bf16};
    must(sgt_decoder_open(&d, &o, why));
    sgt_backend *b = sgt_decoder_loads(d);
    for (size_t i = 0; i < sgt_model_tensors(&f->model); i++) {
        sgt_model_tensor(&f->model, i, &t);
        for (size_t at = 0; at < t.count; at += piece) {
            size_t n = t.count - at < piece ? t.count - at : piece;
            must(b->put(b, SGT_PARAMETERS, i, at, n, f->initial + t.offset + at, why));
        }
    }
    return d;
}

static sgt_decoder *load(const char *name, uint32_t window, uint32_t sequences, int threads)
{
    char dir[128];
    sgt_decoder *d;
    sgt_decoder_options o = {.window = window, .sequences = sequences, .threads = threads};
    snprintf(dir, sizeof dir, SAMPLE "%s", name);
    must(sgt_checkpoint_shape(&o.model, dir, why));
    must(sgt_decoder_open(&d, &o, why));
    must(sgt_checkpoint_load_model(dir, sgt_decoder_loads(d), &o.model, why));
    return d;
}

/* ---- all logits ---- */

/* Decode the fixture's rows as sequences, with `step` positions of each per call. Return the logits
 * of all positions, (B, T, V), malloc'd. */
static float *all_logits(const fixture *f, sgt_decoder *d, uint32_t step)
{
    size_t V = f->model.vocab, T = f->seq, B = f->batch;
    float *all = malloc(B * T * V * sizeof *all),
          *some = malloc(SGT_DECODER_ROWS * V * sizeof *some);
    for (uint32_t t = 0; t < T; t += step) {
        sgt_decoder_row rows[SGT_DECODER_ROWS];
        size_t n = 0;
        for (uint32_t b = 0; b < B; b++)
            for (uint32_t i = t; i < t + step && i < T; i++)
                rows[n++] = (sgt_decoder_row){b, i, f->x[b * T + i], 1};
        cr_assert(n <= SGT_DECODER_ROWS);
        sgt_decoder_run(d, rows, n, some);
        for (size_t i = 0; i < n; i++)
            memcpy(all + (rows[i].sequence * T + rows[i].position) * V, some + i * V,
                   V * sizeof *all);
    }
    free(some);
    return all;
}

static void same_bits(const fixture *f, sgt_decoder *d, const float *want, uint32_t step,
                      const char *what)
{
    scoped_memory float *got = all_logits(f, d, step);
    cr_expect_eq(memcmp(got, want, (size_t)f->batch * f->seq * f->model.vocab * sizeof *got), 0,
                 "%s, %u at a time", what, step);
}

/* ---- against the training step ---- */

static double loss_of(const float *logits, size_t V, int32_t target)
{
    double max = -INFINITY, sum = 0;
    for (size_t v = 0; v < V; v++) max = fmax(max, (double)logits[v]);
    for (size_t v = 0; v < V; v++) sum += exp((double)logits[v] - max);
    return max + log(sum) - (double)logits[target];
}

/* Compare the loss of each position with the training step's evaluation. That may itself be off by
 * 5e-6, so the bound is twice as large. */
static void against_the_step(const char *name, sgt_gelu_kind gelu)
{
    scoped(fixture) f;
    fixture_load(&f, name, gelu);
    size_t n = (size_t)f.batch * f.seq, V = f.model.vocab;
    scoped(sgt_decoder) *d = decoder(&f, f.batch, 2, 0, SIZE_MAX / 2);
    scoped_memory float *logits = all_logits(&f, d, 1), *losses = calloc(n, sizeof *losses);
    sgt_backend_options o = f.options;
    o.dropout = 0;
    scoped(sgt_backend) *b = fixture_open(&f, &o);
    sgt_batch rows = {.inputs = f.x, .targets = f.y, .losses = losses};
    double sum;
    uint64_t counted;
    must(b->eval(b, &rows, &sum, &counted, why));
    for (size_t i = 0; i < n; i++) {
        if (o.ignoring && f.y[i] == o.ignore) continue;
        double loss = loss_of(logits + i * V, V, f.y[i]);
        cr_expect_float_eq(loss, (double)losses[i], 1e-5, "%s, position %zu: %.9f, not %.9f", name,
                           i, loss, (double)losses[i]);
    }
}

Test(generate, a_cache_gives_what_the_training_step_computes)
{
    against_the_step("tiny_tanh", SGT_GELU_TANH);
    against_the_step("tiny_erf", SGT_GELU_ERF);
    against_the_step("odd_tanh", SGT_GELU_TANH);
    against_the_step("options_untied", SGT_GELU_TANH);
}

Test(generate, the_same_bits_however_the_work_is_cut)
{
    scoped(fixture) f;
    fixture_load(&f, "odd_tanh", SGT_GELU_TANH);
    scoped(sgt_decoder) *one = decoder(&f, f.batch, 1, 0, SIZE_MAX / 2);
    scoped_memory float *want = all_logits(&f, one, 1);
    for (uint32_t step = 2; step <= f.seq; step += 5) same_bits(&f, one, want, step, "one thread");
    same_bits(&f, one, want, 1, "positions run again");
    for (int threads = 2; threads <= 5; threads++) {
        /* load parameters 997 at a time, so that the parts do not end at the ends of rows */
        scoped(sgt_decoder) *d = decoder(&f, f.batch + 1, threads, 0, 997);
        same_bits(&f, d, want, 1, "more threads");
        same_bits(&f, d, want, 7, "more threads");
    }
    scoped(sgt_decoder) *small = decoder(&f, f.batch, 1, 0, 5);
    same_bits(&f, small, want, f.seq, "parameters in pieces of five");
}

/* bf16 rounds only the matrices, so it gives the same bits as float32 with rounded matrices. */
Test(generate, bf16_is_float32_of_rounded_matrices)
{
    scoped(fixture) f;
    fixture_load(&f, "odd_tanh", SGT_GELU_TANH);
    scoped(sgt_decoder) *half = decoder(&f, f.batch, 2, 1, 100);
    double matrices = 0; /* number of their elements */
    for (size_t i = 0; i < sgt_model_tensors(&f.model); i++) {
        sgt_tensor t;
        sgt_model_tensor(&f.model, i, &t);
        float *p = f.initial + t.offset;
        if (t.dims != 2 || i == 1) continue;
        sgt_kernels_ref()->round_to(p, p, t.count, SGT_FORMAT_BF16);
        matrices += (double)t.count;
    }
    scoped(sgt_decoder) *whole = decoder(&f, f.batch, 2, 0, 100);
    scoped_memory float *want = all_logits(&f, whole, 3);
    same_bits(&f, half, want, 3, "bf16");
    cr_expect((double)sgt_decoder_bytes(whole) - (double)sgt_decoder_bytes(half) > 1.9 * matrices,
              "that is not half the memory");
}

Test(generate, too_large_a_model_is_said)
{
    sgt_decoder *d;
    sgt_decoder_options o = {.model = {.layers = 1024,
                                       .channels = 32768,
                                       .heads = 1,
                                       .vocab = 65536,
                                       .positions = 1 << 20,
                                       .eps = 1e-5f},
                             .sequences = 64};
    expect_failure_about(sgt_decoder_open(&d, &o, why), SGT_ENOMEM,
                         "the keys and values of 64 sequences need ");
}

/* ---- texts ---- */

enum { MOST = 512, PROMPTS = 40 };

typedef struct heard {
    int32_t ids[PROMPTS][MOST];
    size_t count[PROMPTS];
    int ended[PROMPTS];
    sgt_generate_end why[PROMPTS];
    size_t fail_at; /* number of the token at which take_token fails; 0: none */
    size_t all;
} heard;

static int take_token(void *ctx, size_t prompt, int32_t id, sgt_error *err)
{
    heard *h = ctx;
    cr_assert(prompt < PROMPTS && h->count[prompt] < MOST && !h->ended[prompt]);
    h->ids[prompt][h->count[prompt]++] = id;
    h->all++;
    return h->fail_at && h->all == h->fail_at ? sgt_fail(err, SGT_EIO, "no more") : SGT_OK;
}

static int take_end(void *ctx, size_t prompt, sgt_generate_end why, sgt_error *err)
{
    heard *h = ctx;
    (void)err;
    cr_assert(!h->ended[prompt]++);
    h->why[prompt] = why;
    return SGT_OK;
}

static int generate(sgt_decoder *d, const sgt_prompt *p, size_t count, sgt_generate_options o,
                    heard *h, sgt_error *err)
{
    o.token = take_token;
    o.end = take_end;
    o.ctx = h;
    return sgt_generate(d, p, count, &o, NULL, err);
}

static void must_generate(sgt_decoder *d, const sgt_prompt *p, size_t count, sgt_generate_options o,
                          heard *h)
{
    memset(h, 0, sizeof *h);
    must(generate(d, p, count, o, h, why));
    for (size_t i = 0; i < count; i++) cr_assert_eq(h->ended[i], 1, "prompt %zu has no end", i);
}

static size_t read_ids(int32_t *ids, const char *text)
{
    size_t n = 0;
    for (char *end; n < MOST; text = end + 1) {
        ids[n++] = (int32_t)strtol(text, &end, 10);
        if (*end != ',') break;
    }
    return n;
}

/* Read what make_sample.py recorded for one model: prompts, and their continuations by
 * transformers. */
static size_t read_greedy(const char *model, sgt_prompt *prompts, int32_t (*in)[MOST],
                          int32_t (*out)[MOST], size_t *lengths)
{
    char line[4096];
    size_t count = 0;
    scoped(FILE) *f = fopen(SAMPLE "greedy.tsv", "r");
    cr_assert(f, "run from the source tree");
    while (fgets(line, sizeof line, f)) {
        char *save, *name = strtok_r(line, "\t", &save), *before = strtok_r(NULL, "\t", &save),
                    *after = strtok_r(NULL, "\t", &save);
        if (strcmp(name, model)) continue;
        prompts[count] = (sgt_prompt){.ids = in[count], .count = read_ids(in[count], before)};
        lengths[count] = read_ids(out[count], after);
        count++;
    }
    return count;
}

static void as_transformers(const char *model, uint32_t sequences, int threads)
{
    static int32_t in[PROMPTS][MOST], out[PROMPTS][MOST];
    static heard h;
    sgt_prompt prompts[PROMPTS];
    size_t lengths[PROMPTS], count = read_greedy(model, prompts, in, out, lengths);
    scoped(sgt_decoder) *d = load(model, 0, sequences, threads);
    cr_assert_eq(count, 6);
    must_generate(d, prompts, count, (sgt_generate_options){.tokens = 40, .eot = -1}, &h);
    for (size_t i = 0; i < count; i++) {
        size_t n = lengths[i] < 40 ? lengths[i] : 40;
        cr_assert_geq(n, 20);
        for (size_t k = 0; k < n; k++)
            cr_assert_eq(h.ids[i][k], out[i][k], "%s, prompt %zu: token %zu is %u, not %u", model,
                         i, k, h.ids[i][k], out[i][k]);
    }
}

Test(generate, greedy_is_what_transformers_has)
{
    as_transformers("odd", 6, 2);
    as_transformers("odd", 1, 1);
    as_transformers("erf", 4, 3);
}

Test(generate, texts_do_not_depend_on_what_is_beside_them)
{
    static heard want, got;
    int32_t ids[64];
    sgt_prompt p[36]; /* twelve prompts, of one to twelve tokens, each for three samples */
    for (int32_t i = 0; i < 64; i++) ids[i] = i * 37 % 97;
    for (size_t i = 0; i < 36; i++)
        p[i] = (sgt_prompt){.ids = ids + i / 3, .count = 1 + i / 3, .sample = i % 3};
    sgt_generate_options o = {.choice = {.temperature = 1, .top_k = 40, .top_p = 0.95, .seed = 3},
                              .tokens = 90,
                              .eot = 38};
    scoped(sgt_decoder) *alone = load("erf", 0, 1, 1);
    must_generate(alone, p, 36, o, &want);
    static const struct {
        uint32_t sequences;
        int threads;
    } ways[] = {{1, 3}, {2, 1}, {5, 2}, {36, 2}, {100, 1}};
    for (size_t w = 0; w < 5; w++) {
        scoped(sgt_decoder) *d = load("erf", 0, ways[w].sequences, ways[w].threads);
        must_generate(d, p, 36, o, &got);
        for (size_t i = 0; i < 36; i++)
            cr_expect(got.count[i] == want.count[i] && got.why[i] == want.why[i] &&
                          !memcmp(got.ids[i], want.ids[i], want.count[i] * sizeof(int32_t)),
                      "prompt %zu, %u sequences, %d threads", i, ways[w].sequences,
                      ways[w].threads);
    }
    size_t texts = 0, whole = 0, pairs = 0;
    for (size_t i = 0; i < 36; i++) {
        texts += want.why[i] == SGT_END_TEXT;
        whole += want.why[i] == SGT_END_TOKENS;
        cr_expect_eq(want.why[i] == SGT_END_TOKENS, want.count[i] == 90);
        for (size_t k = 0; k < want.count[i]; k++)
            cr_expect_neq(want.ids[i][k], 38, "the end of a text is handed out");
        if (i % 3 && want.count[i] > 20 && want.count[i - 1] > 20)
            cr_expect(++pairs && memcmp(want.ids[i], want.ids[i - 1], 40),
                      "two samples of a prompt are the same");
    }
    cr_expect(texts > 0 && whole + texts == 36 && pairs > 3, "%zu ended, %zu pairs", texts, pairs);
}

/* When the window is full, generation continues from the tokens in its later half. If a prompt is
 * longer than the window, only its last tokens are used. */
Test(generate, a_full_window_goes_on_from_its_later_half)
{
    static heard whole, half;
    enum { WINDOW = 70, TOKENS = 150 };
    int32_t ids[100], all[100 + TOKENS];
    for (int32_t i = 0; i < 100; i++) all[i] = ids[i] = i * 53 % 97;
    scoped(sgt_decoder) *d = load("erf", 0, 2, 2);
    sgt_generate_options o = {.tokens = TOKENS, .eot = -1};
    cr_assert_eq(sgt_decoder_window(d), WINDOW);
    sgt_prompt p[] = {{.ids = ids, .count = 100}, {.ids = ids + 30, .count = 70}};
    must_generate(d, p, 2, o, &whole);
    cr_expect_eq(memcmp(whole.ids[0], whole.ids[1], TOKENS * 4), 0,
                 "the last 70 of a prompt of 100");
    memcpy(all + 100, whole.ids[0], TOKENS * 4);
    /* The prompt's 70 tokens give the first new one, and then the window is full. The last 35
     * tokens and the new one are 36; after 34 more, the window is full again. */
    for (size_t made = 1; made + 35 <= TOKENS; made += 35) {
        sgt_prompt rest = {.ids = all + 100 + made - 36, .count = 36};
        o.tokens = 35;
        must_generate(d, &rest, 1, o, &half);
        cr_expect_eq(memcmp(half.ids[0], all + 100 + made, 35 * 4), 0, "after %zu tokens", made);
    }
    sgt_decoder_close(d);

    /* with a window of 1, each token attends only to itself */
    d = load("erf", 1, 1, 1);
    o.tokens = 20;
    must_generate(d, p, 1, o, &whole);
    cr_expect_eq(whole.count[0], 20);
}

Test(generate, what_ends_it_early_is_said)
{
    static heard h;
    sgt_error err;
    int32_t ids[] = {3, 96, 97};
    scoped(sgt_decoder) *d = load("erf", 0, 1, 1);
    sgt_prompt p = {.ids = ids, .count = 2};
    sgt_generate_options o = {.tokens = 30, .eot = -1};
    expect_failure(generate(d, &(sgt_prompt){.ids = ids}, 1, o, &h, why), SGT_EUSAGE,
                   "prompt 1: it has no tokens");
    expect_failure(generate(d, &(sgt_prompt){.ids = ids, .count = 3}, 1, o, &h, why), SGT_EUSAGE,
                   "prompt 1: id 97 is not below the model's vocabulary size, 97");
    h = (heard){.fail_at = 5};
    cr_expect_eq(generate(d, &p, 1, o, &h, &err), SGT_EIO);
    cr_expect(h.all == 5 && !h.ended[0] && !strcmp(err.text, "no more"));
    o.ids = 10; /* a smaller vocabulary */
    o.choice.temperature = 5;
    must_generate(d, &p, 1, o, &h);
    for (size_t i = 0; i < 30; i++) cr_expect_lt(h.ids[0][i], 10);
    float nan = NAN;
    sgt_backend *b = sgt_decoder_loads(d);
    must(b->put(b, SGT_PARAMETERS, 0, 3 * 32, 1, &nan, why));
    o.tokens = 3;
    h = (heard){0};
    expect_failure(generate(d, &p, 1, o, &h, why), SGT_EFORMAT,
                   "token 1 after prompt 1: the model computes NaN (its "
                   "weights are damaged, or its training diverged)");
}
