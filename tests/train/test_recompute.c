/* test_recompute.c: --recompute on a CPU: every choice gives the same bits. train-memory.sh tests
 * the memory that each takes. */
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
