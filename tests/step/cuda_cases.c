/* cuda_cases.c: options of the CUDA backend, what the host does during a step, and the precision of
 * LayerNorm's parameters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/step/cases.h"

/* ---- CUDA's switches ---- */

void switches(step_check *s)
{
    sgt_backend_options plain = options_of(s, "tiny_tanh", 1), o = plain;
    scoped(outcome) want = three_steps(s, &plain, "tiny_tanh", 1);
    o.no_graphs = 1;
    same_steps(s, &want, &o, "no graphs");
    o = plain;
    o.no_overlap = 1;
    same_steps(s, &want, &o, "no overlap");
    o = plain;
    o.no_fuse = 1;
    near_steps(s, &want, &o, "no fusion");
    o = plain;
    o.no_pad_vocab = 1;
    near_steps(s, &want, &o, "no padding");
    o = plain;
    o.attention = SGT_ATTENTION_NAIVE;
    near_steps(s, &want, &o, "naive attention");
    scoped(fixture) f;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    scoped(sgt_backend) *b = open_fixture(s, &f, &o, f.batch);
    expect(s, b->attention && strstr(b->attention, "instead of naive attention"), "no advice");
}

/* Compare the attention kernels for sm_90 with those for all GPUs, for all head sizes that the
 * former support. */
void hopper(step_check *s)
{
    for (int with = 0; with < 3; with++) {
        scoped(fixture) f;
        fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
        f.model.heads = f.model.channels / 64;
        sgt_backend_options plain = fixture_options(s, &f, f.batch), o;
        plain.deterministic = 1;
        plain.attention = SGT_ATTENTION_MMA;
        plain.dropout = with == 1 ? 0.1f : 0;
        plain.documents = with == 2;
        o = plain;
        o.attention = SGT_ATTENTION_OWN;
        const char *at = with == 1 ? "dropout" : with == 2 ? "documents" : "plain";
        scoped(sgt_backend) *b = open_fixture(s, &f, &o, f.batch);
        s->skipped = !strstr(b->level, "sm_90");
        expect(s, s->skipped || strstr(b->level, "our attention for sm_90"), "%s", b->level);
        scoped(outcome) want = three_steps(s, &plain, "tiny_tanh", 1),
                        r = three_steps(s, &o, "tiny_tanh", 1);
        expect_near_outcome(s, &r, &want);
        same_steps(s, &r, &o, at);
    }
}

/* Compare attention by cuDNN with our own. Skipped without cuDNN; on the host, SGT_HOST_CUDNN=1
 * selects a stand-in for it. */
void cudnn(step_check *s)
{
    sgt_error err;
    sgt_backend_options plain = options_of(s, "tiny_tanh", 1), o = plain;
    o.attention = SGT_ATTENTION_CUDNN;
    if (try_open(s, &o, &err) < 0) {
        printf("  %s\n", err.text);
        s->skipped = 1;
        return;
    }
    scoped(outcome) want = three_steps(s, &plain, "tiny_tanh", 1);
    near_steps(s, &want, &o, "cuDNN");
}

/* ---- what the host does in a step ---- */

/* Check steps as the training loop runs them, with metrics a step late. The host must not wait for
 * a stream or allocate memory, and must launch only two graphs and the three kernels around them.
 * It may wait for the copy of the rows of two micro-steps ago, and for the metrics of the previous
 * step. */
void waits(step_check *s)
{
    enum { STEPS = 6, MICRO = 2 };
    scoped(fixture) f;
    sgt_error err = {0};
    sgt_step_metrics m;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    scoped(sgt_backend) *b = open_fixture(s, &f, NULL, f.batch / MICRO);
    sgt_cuda_counts before = counts_now(s);
    /* the first micro-step and the first update run without graphs, and are then captured */
    run_steps(s, &f, b, 0, 1, MICRO);
    expect(s, counts_now(s).graph_runs - before.graph_runs == MICRO - 1,
           "%llu graphs in the first step",
           (unsigned long long)(counts_now(s).graph_runs - before.graph_runs));
    before = counts_now(s);
    for (uint64_t k = 1; k <= STEPS; k++) {
        for (uint32_t a = 0; a < MICRO; a++)
            fixture_micro_step_of(&f, b, k, a, a * f.batch / MICRO, 1.0 / (f.batch * f.seq));
        expect(s, b->update(b, k, 1e-3, &err) == 0, "%s", err.text);
        if (k > 1) expect(s, b->metrics(b, k - 1, &m, &err) == 0, "%s", err.text);
    }
    sgt_cuda_counts n = counts_now(s);
    expect(s, n.finishes == before.finishes, "the host waited for a stream %llu times",
           (unsigned long long)(n.finishes - before.finishes));
    expect(s, n.event_waits - before.event_waits <= STEPS * (MICRO + 1),
           "%llu waits for events in %d micro-steps",
           (unsigned long long)(n.event_waits - before.event_waits), STEPS * MICRO);
    expect(s, n.mallocs == before.mallocs, "memory was taken");
    expect(s, n.graph_runs - before.graph_runs == STEPS * (MICRO + 1), "%llu graphs were run",
           (unsigned long long)(n.graph_runs - before.graph_runs));
    expect(s, n.launches - before.launches == STEPS * (2 * MICRO + 1),
           "%llu launches outside of graphs", (unsigned long long)(n.launches - before.launches));
    /* two copies per micro-step, inputs and targets; one at the end of a step */
    expect(s, n.copies - before.copies == STEPS * (2 * MICRO + 1), "%llu copies",
           (unsigned long long)(n.copies - before.copies));
}

/* Check the number of kernels in a forward pass. It does not depend on the model's width, so a
 * narrow model with gpt2's twelve layers launches as many as gpt2. */
void launches(step_check *s)
{
    sgt_error err = {0};
    unsigned fused = 0;
    for (int alone = 0; alone <= 1; alone++) {
        scoped(fixture) f;
        sgt_backend_options o = options_of(s, "tiny_tanh", 1);
        fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
        o.model.layers = f.model.layers = 12;
        o.model.channels = f.model.channels = 16;
        o.model.heads = f.model.heads = 2;
        o.no_fuse = alone;
        free(f.initial);
        f.initial = calloc(sgt_model_floats(&f.model), sizeof *f.initial);
        scoped(sgt_backend) *b = open_fixture(s, &f, &o, f.batch);
        expect(s, sgt_init_parameters(b, &f.model, 1, 1, &err) == 0, "%s", err.text);
        run_steps(s, &f, b, 0, 1, 1);
        if (!alone) fused = b->launches_forward;
        if (!alone) expect(s, fused > 0 && fused <= 109, "%u kernels a forward pass", fused);
        else
            expect(s, b->launches_forward >= fused + 12 * 5, "%u kernels without fusion",
                   b->launches_forward);
        printf("  %u kernels a forward pass of 12 layers, %u a step%s\n", b->launches_forward,
               b->launches_step, alone ? ", without fusion" : "");
    }
}

/* ---- LayerNorm's parameters ---- */

/* Check that LayerNorm's weights are used as float32 in every precision. They begin at 1 and are
 * moved by less than a 16-bit number near 1 can represent, and that must change the loss. */
void norm_weights(step_check *s)
{
    scoped(fixture) f;
    double loss[2];
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < sgt_model_tensors(&f.model); k++) {
            sgt_tensor t;
            sgt_model_tensor(&f.model, k, &t);
            for (size_t j = 0; j < t.count && strstr(t.name, "ln_") && strstr(t.name, "weight");
                 j++)
                f.initial[t.offset + j] = i ? 1 + 0x1p-12f : 1;
        }
        scoped(sgt_backend) *b = open_fixture(s, &f, NULL, f.batch);
        loss[i] = run_steps(s, &f, b, 0, 1, 1).loss;
    }
    expect(s, loss[1] != loss[0], "loss %.9f with weights of 1, and of 1 + 2^-12", loss[0]);
}
