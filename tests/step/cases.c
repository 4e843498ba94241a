/* cases.c: compares the training step with PyTorch's numbers, with the CPU backend, and with the
 * same step computed in other ways. */
#include "tests/step/cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FP32 (1 << SGT_PRECISION_FP32)
#define ALL 15
/* precisions of cases for which one 32-bit and one 16-bit format suffice */
#define EXACT (FP32 | 1 << SGT_PRECISION_BF16)

static const struct {
    const char *name;
    sgt_gelu_kind gelu;
} shapes[] = {
    {"tiny_tanh", SGT_GELU_TANH}, {"tiny_erf", SGT_GELU_ERF}, {"odd_tanh", SGT_GELU_TANH}};
#define SHAPES (sizeof shapes / sizeof *shapes)

/* ---- against PyTorch in float64 ---- */

/* Return the bound of a gradient's relative error. In float32 it is 5e-6, about 2^6 units of 2^-24.
 * In other precisions, a gradient passes through at most 12 roundings per layer, each with an error
 * of at most half a unit. Most errors of different layers cancel, so the bound is 12 sqrt(layers)
 * units. TF32 rounds only operands. */
static double gradient_bound(const step_check *s, const fixture *f)
{
    if (s->precision == SGT_PRECISION_FP32) return 5e-6;
    return 12 * sqrt(f->model.layers) * unit_of(s->precision);
}

/* Compare the gradients g, in the layout of model m, with the fixture's. */
static void check_gradients(step_check *s, const fixture *f, const sgt_model *m, float *g)
{
    const float scale = s->precision == SGT_PRECISION_FP16 ? 65536 : 1;
    for (size_t i = 0; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_model_tensor(m, i, &t);
        for (size_t j = 0; j < t.count; j++) g[t.offset + j] /= scale;
        double e = relative_l2(g + t.offset, f->grads + t.offset, t.count);
        expect(s, e <= gradient_bound(s, f), "gradient of %s: relative error %g, at most %g",
               t.name, e, gradient_bound(s, f));
    }
}

static void expect_pytorch_step(step_check *s, const fixture *f, uint32_t k,
                                const sgt_step_metrics *m)
{
    const double wide = s->precision == SGT_PRECISION_FP32, unit = unit_of(s->precision);
    const double loss = fabs(m->loss - f->loss[k]), norm = fabs(m->grad_norm / f->norm[k] - 1);
    expect(s, loss <= (wide != 0 ? 5e-6 : 4 * unit), "step %u: loss %.9f, not %.9f", k, m->loss,
           f->loss[k]);
    expect(s, norm <= (wide != 0 ? 5e-6 : 8 * unit), "step %u: norm %.9f, not %.9f", k,
           m->grad_norm, f->norm[k]);
}

void expect_pytorch(step_check *s, const char *name, sgt_gelu_kind gelu)
{
    scoped(fixture) f;
    sgt_error err = {0};
    sgt_step_metrics m = {0};
    fixture_load(&f, name, gelu);
    sgt_backend_options own = f.options;
    own.precision = s->precision;
    snprintf(s->at, sizeof s->at, "%s", name);
    scoped(sgt_backend) *b =
        open_fixture(s, &f, strncmp(name, "options_", 8) ? NULL : &own, f.batch);
    for (uint32_t k = 0; k < f.steps; k++) {
        fixture_micro_step_of(&f, b, k, 0, 0, 1.0 / (f.batch * f.seq));
        if (k == 0) {
            scoped_memory float *g = flat_state(b, &f.model, SGT_GRADIENTS);
            check_gradients(s, &f, &f.model, g);
        }
        if (b->update(b, k, f.lr, &err) < 0 || b->metrics(b, k, &m, &err) < 0)
            expect(s, 0, "%s", err.text);
        expect_pytorch_step(s, &f, k, &m);
    }
    scoped_memory float *p = flat_state(b, &f.model, SGT_PARAMETERS);
    double worst = 0;
    for (size_t j = 0; j < sgt_model_floats(&f.model); j++)
        worst = fmax(worst, fabs((double)p[j] - f.final[j]));
    expect(s, s->precision != SGT_PRECISION_FP32 || worst <= f.lr / 5,
           "parameters after %u steps differ by %g", f.steps, worst);
}

void as_pytorch(step_check *s)
{
    for (size_t i = 0; i < SHAPES; i++) expect_pytorch(s, shapes[i].name, shapes[i].gelu);
}

/* Add up the gradients of all copies of each row of wte. Return the gradients in the layout of the
 * model `to`, malloc'd. */
static float *folded(const float *g, const sgt_model *of, const sgt_model *to)
{
    float *sums = calloc(sgt_model_floats(to), sizeof *sums);
    for (size_t i = 0; i < sgt_model_tensors(to); i++) {
        sgt_tensor large, small;
        sgt_model_tensor(of, i, &large);
        sgt_model_tensor(to, i, &small);
        for (size_t j = 0; j < small.count; j++) {
            double sum = 0;
            for (size_t k = j; k < large.count; k += small.count)
                sum += (double)g[large.offset + k];
            sums[small.offset + j] = (float)sum;
        }
    }
    return sums;
}

/* Check ids above 2^16, with a model whose vocabulary repeats that of the fixture. All copies of a
 * row of wte have the same logits. So the loss is larger by the logarithm of the number of copies,
 * and the gradients of the copies add up to that of the row. */
static void large_vocabulary(step_check *s)
{
    enum { COPIES = 401 }; /* of 251 ids */
    scoped(fixture) f;
    sgt_error err = {0};
    double loss = 0;
    uint64_t n = 0;
    fixture_load(&f, "odd_tanh", SGT_GELU_TANH);
    sgt_model small = f.model;
    f.model.vocab *= COPIES;
    float *initial = calloc(sgt_model_floats(&f.model), sizeof *initial);
    for (size_t i = 0; i < sgt_model_tensors(&small); i++) {
        sgt_tensor from, to;
        sgt_model_tensor(&small, i, &from);
        sgt_model_tensor(&f.model, i, &to);
        for (size_t j = 0; j < to.count; j++)
            initial[to.offset + j] = f.initial[from.offset + j % from.count];
    }
    free(f.initial);
    f.initial = initial;
    for (uint32_t i = 0; i < f.batch * f.seq; i++) {
        f.x[i] += (int32_t)(small.vocab * (i * 37 % COPIES));
        f.y[i] += (int32_t)(small.vocab * (i * 101 % COPIES));
    }
    snprintf(s->at, sizeof s->at, "%u ids", f.model.vocab);
    scoped(sgt_backend) *b = open_fixture(s, &f, NULL, f.batch);
    sgt_batch rows = {.inputs = f.x, .targets = f.y};
    expect(s, b->eval(b, &rows, &loss, &n, &err) == 0, "%s", err.text);
    expect_near(s, loss / (double)n - log(COPIES), f.loss[0], 1, 1);
    fixture_micro_step_of(&f, b, 0, 0, 0, 1.0 / (f.batch * f.seq));
    scoped_memory float *g = flat_state(b, &f.model, SGT_GRADIENTS),
                        *sums = folded(g, &f.model, &small);
    check_gradients(s, &f, &small, sums);
}

/* ---- against itself ---- */

outcome three_steps(step_check *s, const sgt_backend_options *o, const char *shape, uint32_t micro)
{
    scoped(fixture) f;
    fixture_load(&f, shape, SGT_GELU_TANH);
    scoped(sgt_backend) *b = open_fixture(s, &f, o, f.batch / micro);
    sgt_step_metrics m = run_steps(s, &f, b, 0, 3, micro);
    outcome r = {m.loss, m.grad_norm, flat_state(b, &f.model, SGT_PARAMETERS),
                 flat_state(b, &f.model, SGT_MOMENT1), sgt_model_floats(&f.model)};
    return r;
}

void forget(outcome *r)
{
    free(r->p);
    free(r->m);
}

void expect_same(step_check *s, const outcome *a, const outcome *b)
{
    expect(s, memcmp(&a->loss, &b->loss, 2 * sizeof(double)) == 0,
           "loss %.17g and %.17g, norm %.17g and %.17g", a->loss, b->loss, a->norm, b->norm);
    expect(s, memcmp(a->p, b->p, a->n * sizeof *a->p) == 0, "parameters differ by %g",
           largest_difference(a->p, b->p, a->n));
    expect(s, memcmp(a->m, b->m, a->n * sizeof *a->m) == 0, "moments differ by %g",
           largest_difference(a->m, b->m, a->n));
}

void expect_near(step_check *s, double loss, double want_loss, double norm, double want_norm)
{
    double bound = s->precision == SGT_PRECISION_FP32 ? 5e-6 : 4 * unit_of(s->precision);
    expect(s, fabs(loss - want_loss) <= bound, "loss %.9f, not %.9f", loss, want_loss);
    expect(s, fabs(norm / want_norm - 1) <= bound, "norm %.9f, not %.9f", norm, want_norm);
}

void expect_near_outcome(step_check *s, const outcome *r, const outcome *want)
{
    expect_near(s, r->loss, want->loss, r->norm, want->norm);
}

/* Return the fixture's options. On CUDA nothing is chosen by timing, so that two backends compute
 * the same products. */
sgt_backend_options options_of(const step_check *s, const char *shape, uint32_t micro)
{
    fixture f;
    fixture_load(&f, shape, SGT_GELU_TANH);
    sgt_backend_options o = fixture_options(s, &f, f.batch / micro);
    fixture_free(&f);
    o.deterministic = s->cuda;
    return o;
}

void same_steps(step_check *s, const outcome *want, const sgt_backend_options *o, const char *at)
{
    snprintf(s->at, sizeof s->at, "%s", at);
    scoped(outcome) r = three_steps(s, o, "tiny_tanh", 1);
    expect_same(s, want, &r);
}

void near_steps(step_check *s, const outcome *want, const sgt_backend_options *o, const char *at)
{
    snprintf(s->at, sizeof s->at, "%s", at);
    scoped(outcome) r = three_steps(s, o, "tiny_tanh", 1);
    expect_near_outcome(s, &r, want);
}

/* The CPU's recomputation, live buffers and loss scale are tested in tests/train, with more options
 * (test_recompute.c, test_options.c). */

static void recompute(step_check *s)
{
    for (int with = 0; with <= 1; with++) {
        sgt_backend_options o = options_of(s, "tiny_tanh", 1);
        o.dropout = with ? 0.1f : 0;
        /* GELU that is fused into a matrix product rounds differently from GELU in its own kernel,
         * so fusion is off at all three levels. */
        o.no_fuse = 1;
        scoped(outcome) none = three_steps(s, &o, "tiny_tanh", 1);
        o.recompute = SGT_RECOMPUTE_GELU;
        same_steps(s, &none, &o, with ? "GELU recomputed, dropout" : "GELU recomputed");
        o.recompute = SGT_RECOMPUTE_BLOCK;
        same_steps(s, &none, &o, with ? "blocks recomputed, dropout" : "blocks recomputed");
    }
}

/* Check a recomputation level that is chosen for each layer: the bits are those without
 * recomputation. Also check that a step reads only buffers that are declared live (sgt_live): all
 * others are overwritten after every part of the step. Each letter of a mix is a layer's level: n
 * none, g gelu, b block. A choice per layer switches off the fusion of GELU with matrix products,
 * as `gelu` does. */
static void recompute_mix(step_check *s)
{
    static const char *const mixes[] = {"nnnnn", "ggbbn", "bnbgn", "nbgnb", "bbbgg"};
    scoped(fixture) f;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    fixture_deepen(&f, 5);
    size_t n = sgt_model_floats(&f.model);
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++) {
        uint8_t at[5] = {0};
        float *p[2];
        sgt_backend_options o = fixture_options(s, &f, f.batch / 2);
        o.deterministic = 1;
        o.dropout = i ? 0.1f : 0;
        o.no_fuse = i == 2;
        o.attention = i == 2 ? SGT_ATTENTION_NAIVE : SGT_ATTENTION_AUTO;
        o.recompute_at = at;
        snprintf(s->at, sizeof s->at, "%s%s", mixes[i], i == 2 ? ", unfused" : "");
        for (o.scrub = 0; o.scrub < 2; o.scrub++) {
            for (int l = 0; l < 5 && o.scrub; l++)
                at[l] = (uint8_t)(strchr("ngb", mixes[i][l]) - "ngb");
            scoped(sgt_backend) *b = open_fixture(s, &f, &o, f.batch / 2);
            run_steps(s, &f, b, 0, 3, 2);
            p[o.scrub] = flat_state(b, &f.model, SGT_PARAMETERS);
        }
        expect(s, memcmp(p[0], p[1], n * sizeof **p) == 0, "parameters differ by %g",
               largest_difference(p[0], p[1], n));
        free(p[0]);
        free(p[1]);
    }
}

/* Check that a step of 2 or 4 micro-steps has the loss and the norm of a step of one micro-step.
 * They differ within a bound, because micro-steps sum gradients in another order. */
static void accumulation(step_check *s)
{
    for (int with = 0; with <= 1; with++) {
        sgt_backend_options o = options_of(s, "tiny_tanh", 1);
        o.dropout = with ? 0.1f : 0;
        scoped(outcome) whole = three_steps(s, &o, "tiny_tanh", 1);
        for (uint32_t micro = 2; micro <= 4; micro *= 2) {
            snprintf(s->at, sizeof s->at, "%u micro-steps, dropout %g", micro, (double)o.dropout);
            sgt_backend_options cut = options_of(s, "tiny_tanh", micro);
            cut.dropout = o.dropout;
            scoped(outcome) r = three_steps(s, &cut, "tiny_tanh", micro);
            expect_near_outcome(s, &r, &whole);
        }
    }
}

static void targets(step_check *s)
{
    scoped(fixture) f;
    sgt_error err = {0};
    sgt_step_metrics some, fewer;
    double loss;
    uint64_t counted;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    scoped(sgt_backend) *half = open_fixture(s, &f, NULL, f.batch / 2),
                        *b = open_fixture(s, &f, NULL, f.batch);
    fixture_micro_step_of(&f, half, 0, 0, 0, 1.0 / (f.batch / 2 * f.seq));
    for (uint32_t i = f.batch / 2 * f.seq; i < f.batch * f.seq; i++) f.y[i] = -1;
    fixture_micro_step_of(&f, b, 0, 0, 0, 1.0 / (f.batch * f.seq));
    expect(s, b->update(b, 0, 1e-3, &err) == 0 && half->update(half, 0, 1e-3, &err) == 0, "%s",
           err.text);
    expect(s, b->metrics(b, 0, &some, &err) == 0 && half->metrics(half, 0, &fewer, &err) == 0, "%s",
           err.text);
    expect_near(s, some.loss, fewer.loss, some.grad_norm, fewer.grad_norm);
    size_t n = f.batch * f.seq;
    float *losses = malloc(n * sizeof *losses);
    uint8_t *greedy = malloc(n);
    double sum = 0;
    sgt_batch rows = {.inputs = f.x, .targets = f.y, .losses = losses, .greedy = greedy};
    memset(greedy, 7, n);
    expect(s, b->eval(b, &rows, &loss, &counted, &err) == 0, "%s", err.text);
    for (size_t i = 0; i < n; i++) {
        sum += (double)losses[i];
        double least = greedy[i] ? 0 : log(2), most = greedy[i] ? log((double)f.model.vocab) : 100;
        if (f.y[i] < 0)
            expect(s, losses[i] == 0 && greedy[i] == 7, "target %zu has none, and a loss", i);
        else
            expect(s, greedy[i] < 2 && losses[i] >= least - 1e-5 && losses[i] <= most + 1e-5,
                   "target %zu: %g", i, (double)losses[i]);
    }
    expect(s, fabs(sum / loss - 1) < 1e-6, "losses add up to %.9f, not %.9f", sum, loss);
    free(losses);
    free(greedy);
    expect(s, counted == f.batch / 2 * f.seq, "%llu targets counted", (unsigned long long)counted);
    expect(s, fabs(loss / (double)counted - f.loss[1]) < 1, "evaluation gives %g",
           loss / (double)counted);
}

/* Run a step over the fixture's rows and return its metrics. The learning rate is 0, so it changes
 * no parameter. */
static sgt_step_metrics metrics_of(step_check *s, const fixture *f, sgt_backend *b)
{
    sgt_error err = {0};
    sgt_step_metrics m = {0};
    fixture_micro_step_of(f, b, 0, 0, 0, 1.0 / f->batch);
    if (b->update(b, 0, 0, &err) < 0 || b->metrics(b, 0, &m, &err) < 0)
        expect(s, 0, "%s", err.text);
    return m;
}

/* Check rows of one token: loss and norm are those of longer rows in which only the first position
 * has a target. */
static void one_token(step_check *s)
{
    for (int naive = 0; naive <= (s->cuda != 0); naive++) {
        scoped(fixture) f;
        sgt_step_metrics m[2];
        fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
        snprintf(s->at, sizeof s->at, "one token%s", naive ? ", naive attention" : "");
        for (int one = 0; one < 2; one++) {
            for (uint32_t i = 0; i < f.batch * f.seq; i++) f.y[i] = i % f.seq ? -1 : f.y[i];
            for (uint32_t r = 0; one && r < f.batch; r++)
                f.x[r] = f.x[r * f.seq], f.y[r] = f.y[r * f.seq];
            f.seq = one ? 1 : f.seq;
            sgt_backend_options o = fixture_options(s, &f, f.batch);
            o.attention = naive ? SGT_ATTENTION_NAIVE : SGT_ATTENTION_AUTO;
            scoped(sgt_backend) *b = open_fixture(s, &f, &o, f.batch);
            m[one] = metrics_of(s, &f, b);
        }
        expect_near(s, m[1].loss, m[0].loss, m[1].grad_norm, m[0].grad_norm);
    }
}

/* ---- CUDA against the CPU backend ---- */

static void compare_with_cpu(step_check *s, const char *what, const sgt_backend_options *o)
{
    scoped(fixture) f;
    snprintf(s->at, sizeof s->at, "%s", what);
    fixture_load(&f, "odd_tanh", SGT_GELU_TANH);
    scoped(sgt_backend) *b = open_fixture(s, &f, o, f.batch), *cpu = open_on_cpu(&f, o);
    for (uint64_t k = 0; k < 3; k++) {
        sgt_step_metrics m = run_steps(s, &f, b, k, 1, 1), want = run_steps(s, &f, cpu, k, 1, 1);
        expect(s, fabs(m.loss - want.loss) <= 1e-5, "step %llu: loss %.9f, the CPU has %.9f",
               (unsigned long long)k, m.loss, want.loss);
        expect(s, fabs(m.grad_norm / want.grad_norm - 1) <= 1e-5,
               "step %llu: norm %.9f, the CPU has %.9f", (unsigned long long)k, m.grad_norm,
               want.grad_norm);
    }
}

static void as_the_cpu(step_check *s)
{
    sgt_backend_options o = options_of(s, "odd_tanh", 1), plain = o;
    o.optim.kind = SGT_SGD;
    o.optim.momentum = 0.9f;
    compare_with_cpu(s, "SGD with momentum", &o);
    o.optim.nesterov = 1;
    compare_with_cpu(s, "SGD with Nesterov's momentum", &o);
    o.optim.kind = SGT_MUON;
    compare_with_cpu(s, "Muon", &o);
    o = plain;
    o.dropout = 0.2f;
    compare_with_cpu(s, "dropout", &o);
    o = plain;
    o.ignoring = 1;
    o.ignore = 3;
    compare_with_cpu(s, "an ignored id", &o);
}

/* ---- the loss scale ---- */

/* Check a loss scale that is so large that fp16 overflows. Until the scale has decreased enough,
 * updates are skipped, and parameters and moments do not change. */
static void overflow_of(step_check *s, sgt_optim_kind kind)
{
    scoped(fixture) f;
    sgt_error err = {0};
    sgt_scaler scaler;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    sgt_backend_options o = fixture_options(s, &f, f.batch);
    o.loss_scale = 0x1p24f;
    o.optim.kind = kind;
    snprintf(s->at, sizeof s->at, "%s", kind == SGT_MUON ? "Muon" : "AdamW");
    scoped(sgt_backend) *b = open_fixture(s, &f, &o, f.batch),
                        *fresh = open_fixture(s, &f, &o, f.batch);
    sgt_step_metrics m = run_steps(s, &f, b, 0, 1, 1);
    expect(s, m.skipped == 1 && m.loss_scale == 0x1p24, "%llu skipped at scale %g",
           (unsigned long long)m.skipped, m.loss_scale);
    expect_same_states(s, b, fresh, &f.model);
    expect(s,
           b->get_scaler(b, &scaler, &err) == 0 && scaler.scale == 0x1p23f && scaler.skipped == 1,
           "scale %g", (double)scaler.scale);
    m = run_steps(s, &f, b, 1, 20, 1);
    expect(s, m.skipped > 1 && m.skipped < 20, "%llu of 21 updates skipped",
           (unsigned long long)m.skipped);
    expect(s, m.loss < f.loss[0], "loss %g after the scale came down to %g", m.loss, m.loss_scale);
}

static void overflow(step_check *s)
{
    overflow_of(s, SGT_ADAMW);
    overflow_of(s, SGT_MUON);
}

const step_case step_cases[] = {
    {"as_pytorch", as_pytorch, ALL, 0, 0},
    {"large_vocabulary", large_vocabulary, ALL, 0, 0},
    {"curve", curve_plain, ALL, 0, 0},
    {"curve_odd", curve_odd, ALL, 0, 0},
    {"curve_deep", curve_deep, ALL, 0, 0},
    {"recompute", recompute, EXACT, 1, 0},
    {"recompute_mix", recompute_mix, EXACT, 1, 0},
    {"accumulation", accumulation, ALL, 0, 0},
    {"targets", targets, ALL, 0, 0},
    {"one_token", one_token, ALL, 0, 0},
    {"documents", documents, ALL, 0, 0},
    {"as_the_cpu", as_the_cpu, FP32, 1, 0},
    {"switches", switches, EXACT, 1, 0},
    {"hopper", hopper, 1 << SGT_PRECISION_BF16 | 1 << SGT_PRECISION_FP16, 1, 0},
    {"cudnn", cudnn, 1 << SGT_PRECISION_BF16 | 1 << SGT_PRECISION_FP16, 1, 1},
    {"variants", variants, EXACT, 1, 0},
    {"variants_used", variants_used, 1 << SGT_PRECISION_BF16, 1, 0},
    {"head_chunks", head_chunks, EXACT, 1, 0},
    {"gradients_written", gradients_written, EXACT, 1, 0},
    {"waits", waits, EXACT, 1, 0},
    {"launches", launches, 1 << SGT_PRECISION_BF16, 1, 0},
    {"norm_weights", norm_weights, ALL, 0, 0},
    {"overflow", overflow, 1 << SGT_PRECISION_FP16, 0, 0},
    {"muon", muon, ALL, 0, 0},
    {"muon_on_cuda", muon_on_cuda, ALL, 1, 0},
    {NULL, NULL, 0, 0, 0},
};
