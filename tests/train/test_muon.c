/* test_muon.c: Muon (--optimizer muon): 50 updates, compared with numpy in float32. test_update.c,
 * test_recompute.c and test_cpu_ranks.c check that threads, deferred updates and ranks change no
 * bit, and test_options.c compares with PyTorch in float64. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/moments.h"
#include "tests/train/fixture.h"
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
    scoped_memory float *m = calloc(n, sizeof *m), *g = calloc(n, sizeof *g);
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
}

static void compare_matrix(FILE *in, int32_t rows, int32_t columns)
{
    size_t n = (size_t)rows * (size_t)columns;
    scoped_memory float *p = calloc(n, sizeof *p), *want = calloc(n, sizeof *want);
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
}

Test(muon, fifty_updates_as_numpy_in_float32)
{
    int32_t size[2], matrices = 0;
    scoped(FILE) *in = fopen("tests/data/muon.bin", "rb");
    cr_assert(in, "tests/data/muon.bin: not there (run from the source tree)");
    for (; fread(size, sizeof *size, 2, in) == 2; matrices++) compare_matrix(in, size[0], size[1]);
    cr_expect_eq(matrices, 4);
}
