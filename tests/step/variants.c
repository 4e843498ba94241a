/* variants.c: each variant of the CUDA step (train/backend.h) by itself, and all together. The
 * result must be close to that of the step without variants, which as_pytorch compares with
 * PyTorch. That includes dropout and recomputation. The bits must be the same with and without
 * graphs. All variants together are also compared with PyTorch, within the same bounds. Other cases
 * use the default variants, or those of --variant. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/step/cases.h"

/* Run three steps of two micro-steps with the variants in `set`. more: use dropout and
 * recomputation. other_way: use no graphs, and overwrite buffers that are no longer in use. */
static outcome tried(step_check *s, uint32_t set, int more, int other_way)
{
    sgt_backend_options o = options_of(s, "tiny_tanh", 2);
    o.variants = set;
    o.dropout = more ? 0.1f : 0;
    o.recompute = more ? SGT_RECOMPUTE_BLOCK : SGT_RECOMPUTE_NONE;
    o.no_graphs = o.scrub = other_way;
    return three_steps(s, &o, "tiny_tanh", 2);
}

void variants(step_check *s)
{
    uint32_t kept = s->variants;
    outcome none[2] = {tried(s, 0, 0, 0), tried(s, 0, 1, 0)};
    for (int i = 0; i <= SGT_VARIANTS; i++) {
        char names[SGT_VARIANTS_TEXT];
        int before = s->failures;
        s->variants = i < SGT_VARIANTS ? 1u << i : (1u << SGT_VARIANTS) - 1;
        sgt_variants_words(names, s->variants);
        if (i == SGT_VARIANTS) as_pytorch(s);
        for (int more = 0; more <= 1; more++) {
            snprintf(s->at, sizeof s->at, "%.100s, more %d", names, more);
            scoped(outcome) r = tried(s, s->variants, more, 0),
                            other = tried(s, s->variants, more, 1);
            expect_near_outcome(s, &r, &none[more]);
            expect_same(s, &r, &other);
        }
        if (s->failures > before) printf("  with --variant %s\n", names);
    }
    s->variants = kept;
    forget(&none[0]);
    forget(&none[1]);
}

/* Return how often `part` occurs in `text`. */
static int count_of(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++) n++;
    return n;
}

/* Check that the variants in `set`, and no others, are used. The list of algorithms names the shape
 * of each matrix product: those for the weights of qkv and fc are limited to some multiprocessors,
 * and those of proj and fcproj add no bias. */
static void is_used(step_check *s, uint32_t set)
{
    char names[SGT_VARIANTS_TEXT];
    sgt_backend_options o = options_of(s, "tiny_tanh", 1);
    scoped(fixture) f;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    o.variants = set;
    o.deterministic = 1;
    scoped(sgt_backend) *b = open_fixture(s, &f, &o, f.batch);
    snprintf(s->at, sizeof s->at, "%.100s", sgt_variants_words(names, set));
    expect(s, count_of(b->choices, ",sm") == (set & SGT_VARIANT_BIAS_ROOM ? 2 : 0),
           "products on fewer multiprocessors: %s", b->choices);
    expect(s, count_of(b->choices, ",bias") == (set & SGT_VARIANT_NORM_BIAS ? 2 : 4),
           "products that add a bias: %s", b->choices);
    expect(s,
           !strstr(b->level, ", early launches") ==
               !(set & SGT_VARIANT_EARLY_LAUNCH && strstr(b->level, "sm_90")),
           "early launches: %s", b->level);
}

/* Each variant has an effect, and none after it. Kernels start early only on sm_90. */
void variants_used(step_check *s)
{
    const char *device = getenv("SGT_HOST_DEVICE");
    for (int i = 0; i <= SGT_VARIANTS; i++) {
        is_used(s, i < SGT_VARIANTS ? 1u << i : (1u << SGT_VARIANTS) - 1);
        is_used(s, 0);
    }
    if (device) return;
    setenv("SGT_HOST_DEVICE", "arch=80", 1); /* on the host; a GPU stays what it is */
    is_used(s, SGT_VARIANT_EARLY_LAUNCH);
    setenv("SGT_HOST_DEVICE", "arch=90", 1);
    is_used(s, SGT_VARIANT_EARLY_LAUNCH);
    unsetenv("SGT_HOST_DEVICE");
}

/* Run three steps of 13 rows of 16 tokens, and evaluate these rows. The ids are drawn here, because
 * the fixture has fewer. Set *chunks to whether the head works in chunks of 128 rows. */
static outcome of_many_rows(step_check *s, sgt_backend_options *o, double *eval, int *chunks)
{
    scoped(fixture) f;
    sgt_error err = {0};
    uint64_t n;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    free(f.x);
    f.batch = o->batch;
    f.x = calloc(2 * f.batch * f.seq, sizeof *f.x);
    f.y = f.x + f.batch * f.seq;
    for (uint32_t i = 0; i < 2 * f.batch * f.seq; i++)
        f.x[i] = (int32_t)(i * 2654435761u % f.model.vocab);
    scoped(sgt_backend) *b = open_fixture(s, &f, o, f.batch);
    sgt_step_metrics m = run_steps(s, &f, b, 0, 3, 1);
    sgt_batch rows = {.inputs = f.x, .targets = f.y};
    expect(s, b->eval(b, &rows, eval, &n, &err) == 0, "%s", err.text);
    *eval /= (double)n;
    *chunks = strstr(b->level, ", head by 128 rows, ") != NULL;
    return (outcome){m.loss, m.grad_norm, flat_state(b, &f.model, SGT_PARAMETERS),
                     flat_state(b, &f.model, SGT_MOMENT1), sgt_model_floats(&f.model)};
}

/* Check the head in chunks of 128 of 208 rows, whose second chunk begins with 48 rows of the first.
 * It is compared with the head on all rows at once, and with a step without graphs in which unused
 * buffers are overwritten. */
void head_chunks(step_check *s)
{
    double eval[2];
    int chunks;
    sgt_backend_options o = options_of(s, "tiny_tanh", 1);
    o.batch = 13;
    o.variants = 0;
    scoped(outcome) whole = of_many_rows(s, &o, &eval[0], &chunks);
    expect(s, !chunks, "chunks without the variant");
    o.variants = SGT_VARIANT_HEAD_CHUNKS;
    scoped(outcome) r = of_many_rows(s, &o, &eval[1], &chunks);
    expect(s, chunks, "no chunks");
    expect_near_outcome(s, &r, &whole);
    expect_near(s, eval[1], eval[0], 1, 1);
    o.no_graphs = o.scrub = 1;
    scoped(outcome) other = of_many_rows(s, &o, &eval[0], &chunks);
    expect_same(s, &r, &other);
}

/* A step of one micro-step stores its gradients instead of adding them to zeros, which gives the same
 * bits. A second micro-step is refused. */
void gradients_written(step_check *s)
{
    scoped(fixture) f;
    sgt_error err = {0};
    for (int more = 0; more <= 1; more++) {
        sgt_backend_options o = options_of(s, "tiny_tanh", 1);
        o.dropout = more ? 0.1f : 0;
        o.accum = 2; /* so that gradients are added, although there is only one micro-step */
        scoped(outcome) added = three_steps(s, &o, "tiny_tanh", 1);
        o.accum = 1;
        same_steps(s, &added, &o, more ? "written, dropout" : "written");
        o.no_graphs = 1;
        same_steps(s, &added, &o, more ? "written, dropout, no graphs" : "written, no graphs");
    }
    sgt_backend_options o = options_of(s, "tiny_tanh", 1);
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    scoped(sgt_backend) *b = open_fixture(s, &f, &o, f.batch);
    fixture_micro_step_of(&f, b, 0, 0, 0, 1.0 / (f.batch * f.seq));
    int rc = b->micro_step(b, 0, 1, &(sgt_batch){.inputs = f.x, .targets = f.y}, 1, &err);
    expect(s, rc < 0 && strstr(err.text, "only one micro-step"), "a second micro-step: %d, %s", rc,
           err.text);
}
