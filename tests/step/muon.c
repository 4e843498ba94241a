/* muon.c: Muon (--optimizer muon) in the whole step. It is compared with PyTorch's numbers, with
 * the CPU backend, and with the same step computed in other ways. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/step/cases.h"

static const sgt_state states[] = {SGT_PARAMETERS, SGT_MOMENT1, SGT_MOMENT2};
#define STATES (sizeof states / sizeof *states)

static sgt_backend_options muon_options(const step_check *s, const char *shape, uint32_t micro)
{
    sgt_backend_options o = options_of(s, shape, micro);
    o.optim.kind = SGT_MUON;
    return o;
}

/* ---- against itself ---- */

/* Check what must not change a bit: running without graphs, overwriting buffers that are no longer
 * in use, and writing gradients instead of adding them. */
static void same_bits(step_check *s)
{
    sgt_backend_options o = muon_options(s, "tiny_tanh", 1);
    o.accum = s->cuda ? 2 : 1;
    scoped(outcome) want = three_steps(s, &o, "tiny_tanh", 1);
    o.no_graphs = s->cuda;
    o.scrub = 1;
    same_steps(s, &want, &o, "another way");
    o.scrub = o.no_graphs = 0;
    o.accum = 1;
    same_steps(s, &want, &o, "written");
}

static void without_fusion(step_check *s)
{
    sgt_backend_options o = muon_options(s, "tiny_tanh", 1);
    scoped(outcome) want = three_steps(s, &o, "tiny_tanh", 1);
    o.no_fuse = 1;
    near_steps(s, &want, &o, "without fusion");
}

static void copy_states(sgt_backend *to, sgt_backend *from, const sgt_model *m)
{
    for (size_t i = 0; i < STATES; i++) {
        scoped_memory float *flat = flat_state(from, m, states[i]);
        put_flat(to, m, states[i], flat);
    }
}

void expect_same_states(step_check *s, sgt_backend *a, sgt_backend *b, const sgt_model *m)
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
    scoped(sgt_backend) *cpu = open_on_cpu(&f, &o);
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
    size_t n = sgt_model_floats(&f.model);
    run_steps(s, &f, b, 0, 1, 1);
    scoped_memory float *m = flat_state(b, &f.model, SGT_MOMENT1),
                        *v = flat_state(b, &f.model, SGT_MOMENT2), *other = calloc(n, sizeof *v);
    for (size_t j = 0; j < n; j++) other[j] = v[j] + 1;
    put_flat(b, &f.model, SGT_MOMENT2, other);
    scoped_memory float *m2 = flat_state(b, &f.model, SGT_MOMENT1),
                        *v2 = flat_state(b, &f.model, SGT_MOMENT2);
    expect(s, memcmp(m, m2, n * sizeof *m) == 0, "first moments changed");
    for (size_t i = 0; i < sgt_model_tensors(&f.model); i++) {
        sgt_tensor t;
        sgt_model_tensor(&f.model, i, &t);
        int matrix = is_matrix(&f.model, i, &t);
        size_t first = 0, second = 0, wrong = 0;
        for (size_t j = t.offset; j < t.offset + t.count; j++)
            first += m[j] != 0, second += v[j] != 0, wrong += v2[j] != (matrix ? 0 : other[j]);
        expect(s, first > 0 && (second > 0) == !matrix && wrong == 0,
               "%s: %zu first and %zu second moments, %zu not as written", t.name, first, second,
               wrong);
    }
}

void muon(step_check *s)
{
    expect_pytorch(s, "options_muon", SGT_GELU_TANH);
    clipped(s, 0);
    moments(s);
    moved(s);
    same_bits(s);
}

void muon_on_cuda(step_check *s)
{
    without_fusion(s);
    clipped(s, 1);
}
