/* test_recompute.c: --recompute on a CPU: every choice gives the same bits and takes the expected
 * memory. */
#include <stdlib.h>
#include <string.h>

#include "tests/expect.h"
#include "tests/train/fixture.h"

/* Return the parameters after the fixture's steps. */
static float *trained(const fixture *f, const sgt_backend_options *o)
{
    sgt_step_metrics m;
    scoped(sgt_backend) *b = fixture_open(f, o);
    for (uint32_t s = 0; s < f->steps; s++) {
        fixture_accumulate(f, b, s, o->batch);
        fixture_finish(f, b, s, &m);
    }
    float *p = flat_state(b, &f->model, SGT_PARAMETERS);
    return p;
}

/* Return whether to skip a combination: make check tries a third of them, make check-all tries
 * all. */
static int left_out(size_t name, size_t levels)
{
    const char *tier = getenv("TIER");
    return tier && strcmp(tier, "check") == 0 && (name + levels) % 3 != 0;
}

static const char *const names[] = {"options_dropout", "options_sgd",  "options_untied",
                                    "options_bf16",    "options_fp16", "options_documents",
                                    "options_muon"};

Test(recompute, the_same_bits_for_any_number_of_threads_and_any_recomputation)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        scoped(fixture) f;
        fixture_load(&f, names[i], SGT_GELU_TANH);
        sgt_backend_options o = f.options;
        scoped_memory float *want = trained(&f, &o);
        for (int threads = 1; threads <= 5; threads += 2)
            for (int r = SGT_RECOMPUTE_NONE; r <= SGT_RECOMPUTE_BLOCK; r++) {
                if (left_out(i + (size_t)threads / 2, (size_t)r)) continue;
                o.threads = threads;
                o.recompute = (sgt_recompute)r;
                scoped_memory float *p = trained(&f, &o);
                cr_expect(memcmp(p, want, sgt_model_floats(&f.model) * sizeof *p) == 0,
                          "%s, %d threads, recompute %d: other bits", names[i], threads, r);
            }
    }
}

/* ---- layers of different levels, and which bytes are live when ---- */

/* Each letter is a layer's level: n none, g gelu, b block. Layers that share buffers must not read
 * each other's data, wherever the last of them is. */
static const char *const mixes[] = {"nnnnn", "ggbbn", "bnbgn", "nbgnb", "gnnbn", "bbbgg", "nnnnb"};

/* Train with `name`'s options without recomputation; then with these levels, and with every byte
 * that is not live overwritten after each part of a step. Both must give the same bits. */
static void mixed(const char *name, const char *levels, uint32_t micro, int documents)
{
    scoped(fixture) f;
    uint8_t at[5];
    fixture_load(&f, name, SGT_GELU_TANH);
    fixture_deepen(&f, 5);
    sgt_backend_options o = f.options;
    o.batch = f.batch / micro;
    o.documents = documents;
    o.eot = f.x[3];
    f.steps = 3;
    scoped_memory float *want = trained(&f, &o);
    for (int l = 0; l < 5; l++) at[l] = (uint8_t)(strchr("ngb", levels[l]) - "ngb");
    o.recompute_at = at;
    for (o.scrub = 0; o.scrub < 2; o.scrub++) { /* updates are deferred without it alone */
        scoped_memory float *p = trained(&f, &o);
        cr_expect(memcmp(p, want, sgt_model_floats(&f.model) * sizeof *p) == 0,
                  "%s, %s, %u micro-steps: other bits", name, levels, micro);
    }
}

Test(live, any_mix_gives_the_same_bits_and_what_is_said_to_be_dead_is_read_by_nobody)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof mixes / sizeof *mixes; k++)
            if (!left_out(i, k)) mixed(names[i], mixes[k], 1 + k % 2, k % 3 == 0);
}

/* Bytes of one kind in a model of 4 layers: `within` is the most that is live during a part of a
 * step, `after` what is live at its end, `whole` what is allocated. */
enum { DEEP = 4, DEEP_PARTS = 2 * DEEP + 4 };
typedef struct curve {
    uint64_t within[DEEP_PARTS], after[DEEP_PARTS], whole;
} curve;

static curve curve_of(const sgt_backend_options *o, const char *kind, int again)
{
    scoped(sgt_backend) *b = NULL;
    curve c = {0};
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    uint64_t within[SGT_LIVE_KINDS], after[SGT_LIVE_KINDS];
    must(sgt_cpu_backend_open(&b, o, why));
    cr_assert(b->live, "it does not know what is live");
    size_t n = b->memory(b, kinds);
    for (unsigned part = 0; part < DEEP_PARTS; part++) {
        b->live(b, part, again, within, after);
        for (size_t i = 0; i < n; i++) {
            cr_expect(after[i] <= within[i] && within[i] <= kinds[i].bytes,
                      "part %u, %s: %lu, %lu of %lu", part, kinds[i].name, (unsigned long)after[i],
                      (unsigned long)within[i], (unsigned long)kinds[i].bytes);
            if (strcmp(kinds[i].name, kind)) continue;
            c.within[part] = within[i];
            c.after[part] = after[i];
            c.whole = kinds[i].bytes;
        }
    }
    return c;
}

/* Return the size of the outputs of two LayerNorms and GELU, per position and layer, in units of C
 * floats. They are 6 C numbers. Only products read them, so they are bfloat16 if products use
 * that. */
static uint64_t for_products(sgt_precision precision)
{
    return precision == SGT_PRECISION_BF16 && sgt_gemm_has_bf16() ? 3 : 6;
}

/* A layer keeps 10 + for_products units of B*T*C floats, and 4 + H numbers per position:
 * LayerNorm's statistics, and attention's log-sum-exp for each head. What is recomputed is not live
 * in between. */
static void rises_and_falls(sgt_precision precision)
{
    enum { C = 64, B = 2, T = 16, N = B * T, UNIT = N * C * 4, STATISTICS = N * 4 };
    sgt_backend_options o = {.batch = B, .seq = T, .threads = 1, .precision = precision};
    must(sgt_model_named(&o.model, "4x64x2", why));
    o.model.vocab = 100;
    for (int r = SGT_RECOMPUTE_NONE; r <= SGT_RECOMPUTE_BLOCK; r++) {
        const uint64_t kept[] = {10 + for_products(precision), 10, 1}, statistics[] = {6, 2, 0};
        o.recompute = (sgt_recompute)r;
        curve c = curve_of(&o, "activations", 0);
        for (unsigned layer = 0; layer + 1 < DEEP; layer++) {
            uint64_t rise = c.after[1 + layer] - c.after[layer];
            uint64_t fall = c.after[sgt_part_backward(DEEP, layer + 1)] -
                            c.after[sgt_part_backward(DEEP, layer)];
            uint64_t want = kept[r] * UNIT + statistics[r] * STATISTICS;
            cr_expect_eq(rise, want, "level %d, layer %u forward: %lu, not %lu", r, layer,
                         (unsigned long)rise, (unsigned long)want);
            if (layer + 2 < DEEP)
                cr_expect_eq(fall, want, "level %d, layer %u backward: %lu, not %lu", r, layer,
                             (unsigned long)fall, (unsigned long)want);
        }
        cr_expect_eq(
            c.whole - c.within[sgt_part_head(DEEP)], (DEEP - 1) * (6 - statistics[r]) * STATISTICS,
            "level %d: all are in use as the head is, but statistics that will be made anew", r);
        cr_expect_eq(c.after[sgt_part_backward(DEEP, 0)], 0, "level %d: nothing is left", r);
    }
}

static const sgt_precision precisions[] = {SGT_PRECISION_FP32, SGT_PRECISION_BF16,
                                           SGT_PRECISION_FP16};

Test(live, activations_rise_forward_and_fall_backward)
{
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++)
        rises_and_falls(precisions[i]);
}

Test(live, weights_stay_and_gradients_come_with_the_backward_pass)
{
    sgt_backend_options o = {.batch = 2, .seq = 16, .threads = 1};
    must(sgt_model_named(&o.model, "4x64x2", why));
    o.model.vocab = 100;
    curve weights = curve_of(&o, "weights", 0), moments = curve_of(&o, "moments", 0);
    curve first = curve_of(&o, "gradients", 0), again = curve_of(&o, "gradients", 1);
    for (unsigned part = 0; part < DEEP_PARTS; part++) {
        cr_expect(weights.after[part] == weights.whole && moments.after[part] == moments.whole,
                  "part %u", part);
        cr_expect_eq(again.after[part], part == sgt_part_update(DEEP) ? 0 : again.whole, "part %u",
                     part);
    }
    cr_expect_eq(first.after[sgt_part_forward(DEEP - 1)], 0);
    cr_expect_eq(first.after[sgt_part_head(DEEP)], 100 * 64 * 4, "wte's, from the head's product");
    /* a layer's four matrices have 12 C^2 numbers */
    for (unsigned layer = 1; layer < DEEP; layer++)
        cr_expect_eq(first.after[sgt_part_backward(DEEP, layer - 1)] -
                         first.after[sgt_part_backward(DEEP, layer)],
                     12 * 64 * 64 * 4);
    cr_expect_eq(first.after[sgt_part_embeddings(DEEP)], first.whole);
    cr_expect_eq(first.after[sgt_part_update(DEEP)], 0);
}

/* ---- how many bytes there are ---- */

static uint64_t bytes_of(const sgt_backend_options *o, const char *kind)
{
    scoped(sgt_backend) *b = NULL;
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    uint64_t bytes = 0;
    must(sgt_cpu_backend_open(&b, o, why));
    size_t n = b->memory(b, kinds);
    for (size_t i = 0; i < n; i++)
        if (strcmp(kinds[i].name, kind) == 0) bytes += kinds[i].bytes;
    return bytes;
}

/* With `gelu`, all layers share one buffer for the outputs of two LayerNorms and GELU. With
 * `block`, they also share one for the rest except the block's output: 9 C floats more per
 * position. */
static void saves(sgt_precision precision)
{
    enum { LAYERS = 6, C = 32, B = 2, T = 16 };
    sgt_backend_options o = {.batch = B, .seq = T, .threads = 1, .precision = precision};
    must(sgt_model_named(&o.model, "6x32x2", why));
    o.model.vocab = 100;
    uint64_t unit = sizeof(float) * B * T * C, others = LAYERS - 1, cheap = for_products(precision);
    uint64_t none = bytes_of(&o, "activations");
    o.recompute = SGT_RECOMPUTE_GELU;
    cr_expect_eq(bytes_of(&o, "activations"), none - others * cheap * unit);
    o.recompute = SGT_RECOMPUTE_BLOCK;
    cr_expect_eq(bytes_of(&o, "activations"), none - others * (cheap + 9) * unit);
    cr_expect_leq(2 * bytes_of(&o, "activations"), none);
    /* the five layers that recompute share one buffer for LayerNorm and GELU outputs; of these, the
     * three whole blocks share one for the rest */
    uint8_t at[LAYERS] = {SGT_RECOMPUTE_GELU, SGT_RECOMPUTE_GELU,  SGT_RECOMPUTE_BLOCK,
                          SGT_RECOMPUTE_NONE, SGT_RECOMPUTE_BLOCK, SGT_RECOMPUTE_BLOCK};
    o.recompute_at = at;
    cr_expect_eq(bytes_of(&o, "activations"), none - (4 * cheap + 2 * 9) * unit);
}

Test(recompute, recomputation_takes_the_bytes_it_should)
{
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) saves(precisions[i]);
}

/* bf16 stores what only products read in half the bytes. Nothing else differs, so a batch may have
 * more rows. */
Test(recompute, bf16_keeps_what_products_alone_read_in_half_the_bytes)
{
    enum { LAYERS = 6, C = 32, B = 2, T = 16 };
    sgt_backend_options o = {.batch = B, .seq = T, .threads = 1, .precision = SGT_PRECISION_FP32};
    must(sgt_model_named(&o.model, "6x32x2", why));
    o.model.vocab = 100;
    uint64_t fp32 = bytes_of(&o, "activations");
    o.precision = SGT_PRECISION_FP16;
    cr_expect_eq(bytes_of(&o, "activations"), fp32, "operands are rounded, and kept as float32");
    o.precision = SGT_PRECISION_BF16;
    cr_expect_eq(bytes_of(&o, "activations"), fp32 - LAYERS *
                                                         (6 - for_products(SGT_PRECISION_BF16)) *
                                                         sizeof(float) * B * T * C);
}

Test(recompute, sgd_has_one_moment)
{
    scoped(fixture) f;
    float x = 3;
    fixture_load(&f, "options_sgd", SGT_GELU_TANH);
    sgt_backend_options o = f.options;
    uint64_t sgd = bytes_of(&o, "moments");
    cr_expect_eq(sgd, bytes_of(&o, "weights"));
    sgt_backend *b = fixture_open(&f, &o);
    cr_expect_eq(b->put(b, SGT_MOMENT2, 0, 0, 1, &x, NULL), 0);
    cr_expect_eq(b->get(b, SGT_MOMENT2, 0, 0, 1, &x, NULL), 0);
    cr_expect_eq(x, 0);
    b->close(b);
    o.optim.kind = SGT_ADAMW;
    cr_expect_eq(bytes_of(&o, "moments"), 2 * sgd);
}
