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

/* Return whether to skip a combination. make check tries a third of them, make check-all tries
 * all. */
static int left_out(size_t name, size_t levels)
{
    const char *tier = getenv("TIER");
    return tier && strcmp(tier, "check") == 0 && (name + levels) % 3 != 0;
}

static const char *const names[] = {"options_dropout", "options_sgd",  "options_untied",
                                    "options_bf16",    "options_fp16", "options_documents",
                                    "options_muon",    "tiny_tanh"};
enum { NAMES = sizeof names / sizeof *names };

/* Load the fixture names[i]. The last one keeps AdamW's moments in bfloat16. */
static void load(fixture *f, size_t i)
{
    fixture_load(f, names[i], SGT_GELU_TANH);
    f->options.optim.bf16_moments = i == NAMES - 1;
}

Test(recompute, the_same_bits_for_any_number_of_threads_and_any_recomputation)
{
    for (size_t i = 0; i < NAMES; i++) {
        scoped(fixture) f;
        load(&f, i);
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

/* ---- layers of different levels ---- */

/* Each letter is a layer's level: n none, g gelu, b block. Layers that share buffers must not read
 * each other's data, whichever layer is the last of them. */
static const char *const mixes[] = {"nnnnn", "ggbbn", "bnbgn", "nbgnb", "gnnbn", "bbbgg", "nnnnb"};

/* Train with the options of fixture i without recomputation. Then train with these levels, and once
 * more while every byte that is not live is overwritten after each part of a step. All must give
 * the same bits. */
static void mixed(size_t i, const char *levels, uint32_t micro, int documents)
{
    scoped(fixture) f;
    uint8_t at[5];
    load(&f, i);
    fixture_deepen(&f, 5);
    sgt_backend_options o = f.options;
    o.batch = f.batch / micro;
    o.documents = documents;
    o.eot = f.x[3];
    f.steps = 3;
    scoped_memory float *want = trained(&f, &o);
    for (int l = 0; l < 5; l++) at[l] = (uint8_t)(strchr("ngb", levels[l]) - "ngb");
    o.recompute_at = at;
    for (o.scrub = 0; o.scrub < 2; o.scrub++) { /* updates are deferred only without scrub */
        scoped_memory float *p = trained(&f, &o);
        cr_expect(memcmp(p, want, sgt_model_floats(&f.model) * sizeof *p) == 0,
                  "%s, %s, %u micro-steps: other bits", names[i], levels, micro);
    }
}

Test(live, any_mix_gives_the_same_bits_and_what_is_said_to_be_dead_is_read_by_nobody)
{
    for (size_t i = 0; i < NAMES; i++)
        for (size_t k = 0; k < sizeof mixes / sizeof *mixes; k++)
            if (!left_out(i, k)) mixed(i, mixes[k], 1 + k % 2, k % 3 == 0);
}

/* Return the size of the outputs of two LayerNorms and GELU, per position and layer, in units of C
 * floats. They have 6 C numbers. Only matrix products read them, so they are bfloat16 if those use
 * bfloat16. */
static uint64_t for_products(sgt_precision precision)
{
    return precision == SGT_PRECISION_BF16 && sgt_gemm_has_bf16() ? 3 : 6;
}

static const sgt_precision precisions[] = {SGT_PRECISION_FP32, SGT_PRECISION_BF16,
                                           SGT_PRECISION_FP16};

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

/* Check the memory that recomputation saves. With `gelu`, all layers share one buffer for the
 * outputs of two LayerNorms and GELU. With `block`, they also share a buffer for all other
 * activations except the block's output, which have 9 C floats per position. */
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
    /* The five layers that recompute share one buffer for LayerNorm and GELU outputs. The three
     * among them with the level `block` share one buffer for the rest. */
    uint8_t at[LAYERS] = {SGT_RECOMPUTE_GELU, SGT_RECOMPUTE_GELU,  SGT_RECOMPUTE_BLOCK,
                          SGT_RECOMPUTE_NONE, SGT_RECOMPUTE_BLOCK, SGT_RECOMPUTE_BLOCK};
    o.recompute_at = at;
    cr_expect_eq(bytes_of(&o, "activations"), none - (4 * cheap + 2 * 9) * unit);
}

Test(recompute, recomputation_takes_the_bytes_it_should)
{
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) saves(precisions[i]);
}
