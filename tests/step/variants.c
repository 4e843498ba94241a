/* variants.c: every variant of the CUDA step (train/backend.h) alone, and all together. The result
 * must be close to that of the step without variants, which as_pytorch compares with PyTorch, with
 * dropout and recomputation too. It must have the same bits with graphs and without. All variants
 * together are also compared with PyTorch, within the same bounds. Other cases use the default
 * variants, or those of --variant. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/step/cases.h"

/* Run three steps of two micro-steps with the variants in `set`. more: with dropout and
 * recomputation. other_way: without graphs, and with buffers overwritten when they are no longer in
 * use. */
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

/* A step of one micro-step stores its gradients instead of adding them to zeros, which gives the same
 * bits. A second micro-step is refused. */
void gradients_written(step_check *s)
{
    scoped(fixture) f;
    sgt_error err = {0};
    for (int more = 0; more <= 1; more++) {
        sgt_backend_options o = options_of(s, "tiny_tanh", 1);
        o.dropout = more ? 0.1f : 0;
        o.accum = 2; /* so gradients are added, although there will be one micro-step */
        scoped(outcome) added = three_steps(s, &o, "tiny_tanh", 1);
        o.accum = 1;
        for (o.no_graphs = 0; o.no_graphs <= 1; o.no_graphs++) {
            snprintf(s->at, sizeof s->at, "written, more %d, graphs %d", more, !o.no_graphs);
            scoped(outcome) r = three_steps(s, &o, "tiny_tanh", 1);
            expect_same(s, &r, &added);
        }
    }
    sgt_backend_options o = options_of(s, "tiny_tanh", 1);
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    scoped(sgt_backend) *b = open_fixture(s, &f, &o, f.batch);
    fixture_micro_step_of(&f, b, 0, 0, 0, f.batch, 1.0 / (f.batch * f.seq));
    int rc = b->micro_step(b, 0, 1, &(sgt_batch){.inputs = f.x, .targets = f.y}, 1, &err);
    expect(s, rc < 0 && strstr(err.text, "a second micro-step"), "a second micro-step: %d, %s", rc,
           err.text);
}
