/* test_muon.c: Muon (--optimizer muon): 50 updates against numpy in float32, its state, and
 * training on several ranks. That threads and deferring change no bit is in test_update.c and
 * test_recompute.c, and a comparison with PyTorch in float64 in test_options.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/moments.h"
#include "tests/train/fixture.h"
#include "tests/train/ranks_fixture.h"
#include "train/cpu/cpu_backend.h"

/* ---- 50 updates of a matrix: tests/data/make_muon.py draws the same numbers ---- */

enum { UPDATES = 50 };

static float parameter(size_t i)
{
    return (float)(sgt_moments_random(0, i) >> 8) * 0x1p-28f - 0x1p-5f;
}

static void draw_gradient(float *g, int32_t rows, int32_t columns, uint32_t step)
{
    for (int32_t r = 0; r < rows; r++)
        for (int32_t c = 0; c < columns; c++) {
            size_t i = (size_t)r * (size_t)columns + (size_t)c;
            int32_t down = (int32_t)(sgt_moments_random(1001, (uint64_t)r) & 15) - 8,
                    across = (int32_t)(sgt_moments_random(1002, (uint64_t)c) & 15) - 8,
                    noise = (int32_t)(sgt_moments_random(1 + step, i) & 255) - 128;
            g[i] = (float)(16 * down * across + noise) * 0x1p-20f;
        }
}

static void *room(size_t bytes)
{
    bytes = (bytes + SGT_ARENA_ALIGN) / SGT_ARENA_ALIGN * SGT_ARENA_ALIGN;
    return aligned_alloc(SGT_ARENA_ALIGN, bytes);
}

/* Update p 50 times with two threads. */
static void train_matrix(float *p, int32_t rows, int32_t columns)
{
    size_t n = (size_t)rows * (size_t)columns;
    float *m = calloc(n, sizeof *m), *g = calloc(n, sizeof *g);
    sgt_muon_shape s = {.rows = (size_t)rows, .columns = (size_t)columns};
    s.memory = room(sgt_muon_memory(&s));
    s.scratch = room(sgt_gemm_scratch(2));
    sgt_muon *u;
    cr_assert_eq(sgt_muon_plan(&u, &s, 2, NULL), 0);
    for (uint32_t step = 0; step < UPDATES; step++) {
        sgt_muon_update o = {
            .lr = (float)(64 - step) * 0x1p-12f, .decay = .125f, .grad_scale = 0x1p-3f};
        draw_gradient(g, rows, columns, step);
        for (size_t i = 0; i < n; i++) g[i] *= 8; /* undone by grad_scale */
        sgt_muon_run(u, p, m, g, &o);
    }
    sgt_muon_free(u);
    free(s.memory);
    free(s.scratch);
    free(m);
    free(g);
}

static void compare_matrix(FILE *in, int32_t rows, int32_t columns)
{
    size_t n = (size_t)rows * (size_t)columns;
    float *p = calloc(n, sizeof *p), *want = calloc(n, sizeof *want);
    double worst = 0, moved = 0;
    cr_assert_eq(fread(want, sizeof *want, n, in), n);
    for (size_t i = 0; i < n; i++) p[i] = parameter(i);
    train_matrix(p, rows, columns);
    for (size_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)p[i] - want[i]));
        moved = fmax(moved, fabs((double)want[i] - parameter(i)));
    }
    cr_expect_gt(moved, .01);
    cr_expect_leq(worst, 1e-5 * moved, "%d x %d: differ by %g and moved by %g", rows, columns,
                  worst, moved);
    free(p);
    free(want);
}

Test(muon, fifty_updates_as_numpy_in_float32)
{
    int32_t size[2], matrices = 0;
    FILE *in = fopen("tests/data/muon.bin", "rb");
    cr_assert(in, "tests/data/muon.bin: not there (run from the source tree)");
    for (; fread(size, sizeof *size, 2, in) == 2; matrices++) compare_matrix(in, size[0], size[1]);
    cr_expect_eq(matrices, 4);
    fclose(in);
}

/* ---- state ---- */

enum { STATES = 3, STEPS = 3 };

static sgt_backend *opened(const fixture *f, sgt_precision precision, int threads)
{
    sgt_backend_options o = f->options;
    o.precision = precision;
    o.threads = threads;
    return fixture_open(f, &o);
}

static void expect_same(sgt_backend *a, sgt_backend *b, const sgt_model *m, const char *what)
{
    for (int i = 0; i < STATES; i++) {
        float *x = flat_state(a, m, (sgt_state)i), *y = flat_state(b, m, (sgt_state)i);
        cr_expect(memcmp(x, y, sgt_model_floats(m) * sizeof *x) == 0, "%s: state %d has other bits",
                  what, i);
        free(x);
        free(y);
    }
}

Test(muon, stored_and_loaded_it_continues_with_the_same_bits)
{
    static const sgt_precision precisions[] = {SGT_PRECISION_FP32, SGT_PRECISION_BF16,
                                               SGT_PRECISION_FP16};
    for (int k = 0; k < 3; k++) {
        fixture f;
        fixture_load(&f, "options_muon", SGT_GELU_TANH);
        sgt_backend *whole = opened(&f, precisions[k], 2), *later = opened(&f, precisions[k], 1);
        for (uint64_t s = 0; s < 2; s++) fixture_step(&f, whole, s);
        for (int i = 0; i < STATES; i++) {
            float *x = flat_state(whole, &f.model, (sgt_state)i);
            put_flat(later, &f.model, (sgt_state)i, x);
            free(x);
        }
        expect_same(whole, later, &f.model, "loaded");
        cr_expect_eq(fixture_step(&f, whole, 2), fixture_step(&f, later, 2));
        expect_same(whole, later, &f.model, "continued");
        whole->close(whole);
        later->close(later);
        fixture_free(&f);
    }
}

static uint64_t moments_of(const sgt_backend *b)
{
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    for (size_t i = 0, n = b->memory(b, kinds); i < n; i++)
        if (strcmp(kinds[i].name, "moments") == 0) return kinds[i].bytes;
    return 0;
}

/* Only the matrices of blocks lack a second moment. It takes no memory, reads as zeros, and is not
 * written to. */
Test(muon, matrices_have_one_moment)
{
    fixture f;
    fixture_load(&f, "options_muon", SGT_GELU_TANH);
    sgt_backend *b = opened(&f, SGT_PRECISION_FP32, 1);
    sgt_tensor t, next;
    size_t matrices = 0;
    fixture_step(&f, b, 0);
    float *m = flat_state(b, &f.model, SGT_MOMENT1), *v = flat_state(b, &f.model, SGT_MOMENT2);
    for (size_t i = 0; i < sgt_model_tensors(&f.model); i++) {
        float three = 3, got[2];
        int block = i >= 2 && i < 2 + (size_t)SGT_BLOCK_TENSORS * f.model.layers;
        sgt_model_tensor(&f.model, i, &t);
        int matrix = block && t.dims > 1, set = 0;
        for (size_t j = t.offset; j < t.offset + t.count; j++) set |= v[j] != 0;
        cr_expect_neq(set, matrix, "%s", t.name);
        cr_expect(m[t.offset] != 0 || m[t.offset + t.count - 1] != 0, "%s: no momentum", t.name);
        cr_expect_eq(b->put(b, SGT_MOMENT2, i, t.count - 1, 1, &three, NULL), 0);
        cr_expect_eq(b->get(b, SGT_MOMENT2, i, t.count - 2, 2, got, NULL), 0);
        cr_expect_eq(got[1], matrix ? 0 : 3, "%s", t.name);
        cr_expect_eq(got[0], v[t.offset + t.count - 2], "%s", t.name);
        if (!matrix) continue;
        sgt_model_tensor(&f.model, i + 1, &next);
        matrices += next.offset - t.offset;
    }
    cr_expect_eq(moments_of(b), sizeof *m * (2 * sgt_model_floats(&f.model) - matrices));
    free(m);
    free(v);
    b->close(b);
    fixture_free(&f);
}

/* ---- ranks ---- */

typedef struct job {
    const fixture *f;
    uint32_t ranks;
    double loss[MOST_RANKS][STEPS];
    float *of_rank[MOST_RANKS][STATES];
} job;

static void of_a_rank(void *ctx, sgt_ranks *r)
{
    job *j = ctx;
    const fixture *f = j->f;
    sgt_backend *b;
    sgt_step_metrics m;
    sgt_backend_options o = f->options;
    uint32_t rank = r ? r->rank : 0, first = rank * (f->batch / j->ranks);
    sgt_batch rows = {.tokens = f->tokens + first * (f->seq + 1), .targets = f->y + first * f->seq};
    o.ranks = r;
    o.batch = f->batch / j->ranks;
    o.threads = 1;
    cr_assert_eq(sgt_cpu_backend_open(&b, &o, NULL), 0);
    put_flat(b, &f->model, SGT_PARAMETERS, f->initial);
    for (uint64_t s = 0; s < STEPS; s++) {
        cr_assert_eq(b->micro_step(b, s, 0, &rows, 1.0 / (f->batch * f->seq), NULL), 0);
        cr_assert_eq(b->update(b, s, 1e-2, NULL), 0);
        cr_assert_eq(b->metrics(b, s, &m, NULL), 0);
        j->loss[rank][s] = m.loss;
    }
    for (int i = 0; i < STATES; i++) j->of_rank[rank][i] = flat_state(b, &f->model, (sgt_state)i);
    b->close(b);
}

static void expect_same_ranks(const job *a, const job *b, uint32_t rank, const char *what)
{
    for (int i = 0; i < STATES; i++)
        cr_expect(memcmp(a->of_rank[0][i], b->of_rank[rank][i],
                         sgt_model_floats(&a->f->model) * sizeof(float)) == 0,
                  "%s: state %d of rank %u of %u has other bits", what, i, rank, b->ranks);
}

/* Each rank updates its own matrices, and all end with the same bits. Gradients are summed in
 * another order than on one rank, so the losses are equal to 2e-5. */
Test(muon, ranks_train_the_same_model)
{
    fixture f;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    f.options.optim.kind = SGT_MUON;
    job one = {.f = &f, .ranks = 1};
    of_a_rank(&one, NULL);
    for (uint32_t ranks = 2; ranks <= 4; ranks += 2) {
        job memory = {.f = &f, .ranks = ranks}, swapped = memory;
        as_ranks(ranks, BY_MEMORY, of_a_rank, &memory);
        as_ranks(ranks, BY_SWAP, of_a_rank, &swapped);
        for (uint32_t i = 0; i < ranks; i++) {
            expect_same_ranks(&memory, &memory, i, "by memory");
            expect_same_ranks(&memory, &swapped, i, "by messages");
            for (int s = 0; s < STEPS; s++)
                cr_expect_float_eq(memory.loss[i][s], one.loss[0][s], 2e-5 * one.loss[0][s],
                                   "step %d on %u ranks: %.9g, not %.9g", s, ranks,
                                   memory.loss[i][s], one.loss[0][s]);
        }
        for (uint32_t i = 0; i < ranks; i++)
            for (int k = 0; k < STATES; k++)
                free(memory.of_rank[i][k]), free(swapped.of_rank[i][k]);
    }
    for (int k = 0; k < STATES; k++) free(one.of_rank[0][k]);
    fixture_free(&f);
}
