/* muon.c: Muon (--optimizer muon) in the whole step. It is compared with PyTorch's numbers, with
 * the CPU backend on the same gradients, and with the same step computed in other ways. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/moments.h"
#include "tests/step/cases.h"

static const sgt_state states[] = {SGT_PARAMETERS, SGT_MOMENT1, SGT_MOMENT2};
#define STATES (sizeof states / sizeof *states)

static sgt_backend_options muon_options(const step_check *s, const char *shape, uint32_t micro)
{
    sgt_backend_options o = options_of(s, shape, micro);
    o.optim.kind = SGT_MUON;
    return o;
}

static void as_pytorch_with_muon(step_check *s)
{
    fixture f;
    fixture_load(&f, "options_muon", SGT_GELU_TANH);
    sgt_backend_options o = f.options;
    fixture_free(&f);
    o.precision = s->precision;
    snprintf(s->at, sizeof s->at, "against PyTorch");
    expect_pytorch(s, "options_muon", SGT_GELU_TANH, &o);
}

/* ---- 50 updates with the same gradients ---- */

/* Draw a gradient as tests/train/test_muon.c does: a matrix of rank one plus noise. */
static void draw_gradient(float *g, const sgt_model *m, uint64_t step)
{
    for (size_t i = 0; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_model_tensor(m, i, &t);
        size_t columns = t.dims > 1 ? t.dim[1] : 1;
        for (size_t j = 0; j < t.count; j++) {
            int32_t down = (int32_t)(sgt_moments_random(1001 + i, j / columns) & 15) - 8,
                    across = (int32_t)(sgt_moments_random(2001 + i, j % columns) & 15) - 8,
                    noise = (int32_t)(sgt_moments_random(1 + step, t.offset + j) & 255) - 128;
            g[t.offset + j] = (float)(16 * down * across + noise) * 0x1p-10f;
        }
    }
}

/* Update 50 times with drawn gradients in place of computed ones, and return the parameters. */
static float *driven(step_check *s, const fixture *f, sgt_backend *b)
{
    sgt_error err = {0};
    scoped_memory float *g = calloc(sgt_model_floats(&f->model), sizeof *g);
    for (uint64_t k = 0; k < 50; k++) {
        fixture_micro_step_of(f, b, k, 0, 0, 1, 1.0 / f->seq);
        draw_gradient(g, &f->model, k);
        put_flat(b, &f->model, SGT_GRADIENTS, g);
        expect(s, b->update(b, k, (double)(64 - k) * 0x1p-12, &err) == 0, "%s", err.text);
    }
    return flat_state(b, &f->model, SGT_PARAMETERS);
}

/* The CPU's updates are within 1e-5 of numpy's (tests/train/test_muon.c); CUDA's are within 1e-5 of
 * the CPU's, relative to the largest move. */
static void fifty_updates(step_check *s, const char *shape)
{
    scoped(fixture) f;
    fixture_load(&f, shape, SGT_GELU_TANH);
    sgt_backend_options o = muon_options(s, shape, f.batch);
    o.accum = 1;
    o.optim.grad_clip = 0; /* the CPU sums the squares of its own gradients in the backward pass */
    snprintf(s->at, sizeof s->at, "50 updates of %s", shape);
    scoped(sgt_backend) *b = open_fixture(s, &f, &o, 1), *cpu = open_on_cpu(s, &f, &o, 1);
    scoped_memory float *got = driven(s, &f, b), *want = driven(s, &f, cpu);
    size_t n = sgt_model_floats(&f.model);
    double off = largest_difference(got, want, n), moved = largest_difference(want, f.initial, n);
    expect(s, moved > .01 && off <= 1e-5 * moved, "differ by %g and moved by %g", off, moved);
}

/* ---- against itself ---- */

/* Check what must not change a bit: running without graphs, overwriting buffers that are no longer
 * in use, and writing gradients instead of adding them. */
static void same_bits(step_check *s)
{
    sgt_backend_options o = muon_options(s, "tiny_tanh", 1);
    o.accum = s->cuda ? 2 : 1;
    scoped(outcome) want = three_steps(s, &o, "tiny_tanh", 1);
    snprintf(s->at, sizeof s->at, "another way");
    o.no_graphs = s->cuda;
    o.scrub = 1;
    scoped(outcome) got = three_steps(s, &o, "tiny_tanh", 1);
    expect_same(s, &want, &got);
    forget(&got);
    snprintf(s->at, sizeof s->at, "written");
    o.scrub = o.no_graphs = 0;
    o.accum = 1;
    got = three_steps(s, &o, "tiny_tanh", 1);
    expect_same(s, &want, &got);
}

static void without_fusion(step_check *s)
{
    sgt_backend_options o = muon_options(s, "tiny_tanh", 1);
    scoped(outcome) want = three_steps(s, &o, "tiny_tanh", 1);
    o.no_fuse = 1;
    scoped(outcome) got = three_steps(s, &o, "tiny_tanh", 1);
    snprintf(s->at, sizeof s->at, "without fusion");
    expect_near_outcome(s, &got, &want);
}

static void copy_states(sgt_backend *to, sgt_backend *from, const sgt_model *m)
{
    for (size_t i = 0; i < STATES; i++) {
        scoped_memory float *flat = flat_state(from, m, states[i]);
        put_flat(to, m, states[i], flat);
    }
}

static void expect_same_states(step_check *s, sgt_backend *a, sgt_backend *b, const sgt_model *m)
{
    for (size_t i = 0; i < STATES; i++) {
        scoped_memory float *x = flat_state(a, m, states[i]), *y = flat_state(b, m, states[i]);
        expect(s, memcmp(x, y, sgt_model_floats(m) * sizeof *x) == 0, "state %zu has other bits",
               i);
    }
}

/* Run two steps, copy the state to other backends, and run the third step on all. On the same
 * device the bits must be equal, and on the CPU the numbers, within a bound. */
static void moved(step_check *s)
{
    scoped(fixture) f;
    fixture_load(&f, "options_muon", SGT_GELU_TANH);
    sgt_backend_options o = f.options;
    o.precision = s->precision;
    o.deterministic = s->cuda;
    scoped(sgt_backend) *b = open_fixture(s, &f, &o, f.batch),
                        *later = open_fixture(s, &f, &o, f.batch);
    if (o.precision == SGT_PRECISION_TF32) o.precision = SGT_PRECISION_FP32; /* no CPU has it */
    scoped(sgt_backend) *cpu = open_on_cpu(s, &f, &o, f.batch);
    double bound = s->precision == SGT_PRECISION_FP32 ? 1e-5 : 8 * unit_of(s->precision);
    snprintf(s->at, sizeof s->at, "moved to another backend");
    run_steps(s, &f, b, 0, 2, 1);
    copy_states(later, b, &f.model);
    copy_states(cpu, b, &f.model);
    expect_same_states(s, b, later, &f.model);
    expect_same_states(s, b, cpu, &f.model);
    run_steps(s, &f, b, 2, 1, 1);
    run_steps(s, &f, later, 2, 1, 1);
    run_steps(s, &f, cpu, 2, 1, 1);
    expect_same_states(s, b, later, &f.model);
    sgt_step_metrics m = run_steps(s, &f, b, 3, 1, 1), want = run_steps(s, &f, cpu, 3, 1, 1);
    expect(s, fabs(m.loss - want.loss) <= bound, "loss %.9f, the CPU has %.9f", m.loss, want.loss);
    expect(s, fabs(m.grad_norm / want.grad_norm - 1) <= bound, "norm %.9f, the CPU has %.9f",
           m.grad_norm, want.grad_norm);
}

static int is_matrix(const sgt_model *m, size_t i, const sgt_tensor *t)
{
    return i >= 2 && i < 2 + (size_t)SGT_BLOCK_TENSORS * m->layers && t->dims > 1;
}

/* Clip gradients to a billionth of their norm. That changes no bit of a matrix that Muon updates,
 * nor the norm of the first step, but it changes every other tensor. */
static void clipped(step_check *s, int no_fuse)
{
    scoped(fixture) f;
    float *p[2];
    sgt_step_metrics m[2];
    fixture_load(&f, "options_muon", SGT_GELU_TANH);
    sgt_backend_options o = f.options;
    o.precision = s->precision;
    o.deterministic = s->cuda;
    o.no_fuse = no_fuse;
    snprintf(s->at, sizeof s->at, "clipped%s", no_fuse ? ", without fusion" : "");
    for (int clips = 0; clips < 2; clips++) {
        o.optim.grad_clip = clips ? 1e-9f : 0;
        scoped(sgt_backend) *b = open_fixture(s, &f, &o, f.batch);
        m[clips] = run_steps(s, &f, b, 0, 1, 1);
        p[clips] = flat_state(b, &f.model, SGT_PARAMETERS);
    }
    expect(s, m[0].grad_norm == m[1].grad_norm && m[0].grad_norm > .5, "norm %g, and clipped %g",
           m[0].grad_norm, m[1].grad_norm);
    for (size_t i = 0; i < sgt_model_tensors(&f.model); i++) {
        sgt_tensor t;
        sgt_model_tensor(&f.model, i, &t);
        int same = !memcmp(p[0] + t.offset, p[1] + t.offset, t.count * sizeof **p);
        expect(s, same == is_matrix(&f.model, i, &t), "%s: %s", t.name, same ? "same" : "other");
    }
    free(p[0]);
    free(p[1]);
}

/* Only the matrices of blocks have no second moment. It is read as zeros, and writing it has no
 * effect. */
static void moments(step_check *s)
{
    scoped(fixture) f;
    fixture_load(&f, "options_muon", SGT_GELU_TANH);
    sgt_backend_options o = f.options;
    o.precision = s->precision;
    scoped(sgt_backend) *b = open_fixture(s, &f, &o, f.batch);
    float *v, *m, *other = calloc(sgt_model_floats(&f.model), sizeof *other);
    run_steps(s, &f, b, 0, 1, 1);
    m = flat_state(b, &f.model, SGT_MOMENT1);
    v = flat_state(b, &f.model, SGT_MOMENT2);
    for (size_t i = 0; i < sgt_model_tensors(&f.model); i++) {
        sgt_tensor t;
        sgt_model_tensor(&f.model, i, &t);
        int matrix = is_matrix(&f.model, i, &t);
        size_t first = 0, second = 0;
        for (size_t j = t.offset; j < t.offset + t.count; j++)
            first += m[j] != 0, second += v[j] != 0, other[j] = v[j] + 1;
        snprintf(s->at, sizeof s->at, "moments of %s", t.name);
        expect(s, first > 0, "no momentum");
        expect(s, (second > 0) == !matrix, "%zu second moments", second);
    }
    put_flat(b, &f.model, SGT_MOMENT2, other);
    float *again = flat_state(b, &f.model, SGT_MOMENT2), *m2 = flat_state(b, &f.model, SGT_MOMENT1);
    expect(s, memcmp(m, m2, sgt_model_floats(&f.model) * sizeof *m) == 0, "first moments changed");
    for (size_t i = 0; i < sgt_model_tensors(&f.model); i++) {
        sgt_tensor t;
        sgt_model_tensor(&f.model, i, &t);
        int matrix = is_matrix(&f.model, i, &t);
        for (size_t j = t.offset; j < t.offset + t.count; j++)
            if (again[j] != (matrix ? 0 : other[j])) s->failures++;
    }
    free(again), free(m2), free(m), free(v), free(other);
}

void muon(step_check *s)
{
    as_pytorch_with_muon(s);
    clipped(s, 0);
    moments(s);
    moved(s);
    same_bits(s);
}

void muon_on_cuda(step_check *s)
{
    without_fusion(s);
    clipped(s, 1);
    if (s->precision != SGT_PRECISION_FP32) return;
    fifty_updates(s, "tiny_tanh");
    fifty_updates(s, "odd_tanh");
}

/* If gradients overflow in a step, no parameter and no momentum changes, and the loss scale
 * decreases. */
void muon_overflow(step_check *s)
{
    scoped(fixture) f;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    sgt_backend_options o = muon_options(s, "tiny_tanh", 1);
    o.loss_scale = 0x1p24f;
    scoped(sgt_backend) *b = open_fixture(s, &f, &o, f.batch),
                        *fresh = open_fixture(s, &f, &o, f.batch);
    sgt_step_metrics m = run_steps(s, &f, b, 0, 1, 1);
    snprintf(s->at, sizeof s->at, "an overflow");
    expect(s, m.skipped == 1, "%llu skipped", (unsigned long long)m.skipped);
    expect_same_states(s, b, fresh, &f.model);
    m = run_steps(s, &f, b, 1, 20, 1);
    expect(s, m.skipped > 1 && m.skipped < 20, "%llu of 21 updates skipped",
           (unsigned long long)m.skipped);
    expect(s, m.loss < f.loss[0], "loss %g after the scale came down to %g", m.loss, m.loss_scale);
}
