/* variants.c: every variant of the CUDA step (train/variants.h) by itself, and all of them: as PyTorch has it, within the
 * same bounds as the step without; the same bits each time, with graphs and without; and close to the step without
 * where there is no fixture of PyTorch's. The other cases run with the default set, or with that of --variant. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cases.h"

static void same_again(step_check *s)
{
    sgt_backend_options o = options_of(s, "tiny_tanh", 2);
    outcome once = three_steps(s, &o, "tiny_tanh", 2), twice = three_steps(s, &o, "tiny_tanh", 2);
    expect_same(s, &once, &twice);
    forget(&twice);
    o.no_graphs = o.scrub = 1;
    twice = three_steps(s, &o, "tiny_tanh", 2);
    expect_same(s, &once, &twice);
    forget(&twice);
    forget(&once);
}

/* Two micro-steps, with dropout and without, one choice of recomputing after the other. */
static void close_to_none(step_check *s)
{
    double bound = s->precision == SGT_PRECISION_FP32 ? 5e-6 : 4 * unit_of(s->precision);
    for (int i = 0; i < 4; i++) {
        sgt_backend_options o = options_of(s, "tiny_tanh", 2);
        o.dropout = i % 2 ? 0.1f : 0;
        o.recompute = i / 2 ? SGT_RECOMPUTE_BLOCK : SGT_RECOMPUTE_NONE;
        outcome r = three_steps(s, &o, "tiny_tanh", 2);
        o.variants = 0;
        outcome want = three_steps(s, &o, "tiny_tanh", 2);
        expect(s, fabs(r.loss - want.loss) <= bound, "%d: loss %.9f, not %.9f", i, r.loss, want.loss);
        expect(s, fabs(r.norm / want.norm - 1) <= bound, "%d: norm %.9f, not %.9f", i, r.norm, want.norm);
        forget(&r);
        forget(&want);
    }
}

void variants(step_check *s)
{
    uint32_t kept = s->variants;
    for (int i = 0; i <= SGT_VARIANTS; i++) {
        char names[SGT_VARIANTS_TEXT];
        int before = s->failures;
        s->variants = i < SGT_VARIANTS ? 1u << i : (1u << SGT_VARIANTS) - 1;
        sgt_variants_words(names, s->variants);
        as_pytorch(s);
        snprintf(s->at, sizeof s->at, "%.100s", names);
        same_again(s);
        close_to_none(s);
        if (s->failures > before) printf("  with --variant %s\n", names);
    }
    s->variants = kept;
}
