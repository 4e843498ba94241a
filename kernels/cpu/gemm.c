/* gemm.c: plans and runs matrix products, whose blocks product.h computes. C is cut into blocks,
 * and each thread that is free takes the next block. The terms of an element of C are added in the
 * same order, whatever the block size. Therefore the block size can depend on the number of threads
 * without changing a bit of the result. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/memory.h"
#include "kernels/kernels.h"
#include "kernels/cpu/product.h"

struct sgt_gemm {
    sgt_gemm_shape s;
    const sgt_product *own;
    size_t block_m, block_n;   /* size of a whole block */
    size_t blocks_m, blocks_n; /* number of blocks in each direction */
    int threads;
    /* sum of the squares of the elements of each unit (smallest possible block, see product.h) of
     * C; NULL if the caller does not need it */
    double *squares;
    size_t units;
};

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

static size_t scratch_of_thread(void)
{
    const sgt_product *f32 = sgt_own_product(0), *bf16 = sgt_own_product(1);
    size_t bytes = f32->scratch;
    if (bf16 && bf16->scratch > bytes) bytes = bf16->scratch;
    return round_up(bytes, SGT_ARENA_ALIGN);
}

size_t sgt_gemm_scratch(int threads)
{
    return (size_t)(threads < 1 ? 1 : threads) * scratch_of_thread();
}

/* Estimate the cost of a matrix product if C is cut into blocks of `rows` x `columns`, in cycles
 * per step along k. The estimate is the cost of all blocks that the busiest thread computes, plus a
 * tenth of a block's cost for the time in which threads that finish early wait for the last
 * thread. */
static double cost_of(const sgt_gemm *g, size_t rows, size_t columns)
{
    const sgt_gemm_shape *s = &g->s;
    const sgt_product *own = g->own;
    double across = (double)(columns / own->columns),
           down = (double)((rows + own->rows - 1) / own->rows);
    double block = down * (own->unit_cost * across + own->left_cost[s->trans_a]) +
                   across * own->right_cost[s->trans_b];
    size_t blocks = ((s->m + rows - 1) / rows) * ((s->n + columns - 1) / columns),
           threads = (size_t)g->threads;
    return block * ((double)((blocks + threads - 1) / threads) + 0.1);
}

/* Choose the block size with the lowest estimated cost, and store it in *g. */
static void cut(sgt_gemm *g)
{
    const sgt_product *own = g->own;
    double least = 0;
    int bound = own->most_rows && g->s.k > own->deep;
    size_t first = bound ? (g->s.m + own->most_rows - 1) / own->most_rows : 1;
    for (size_t panels = 1; panels <= SGT_PRODUCT_PANELS; panels++)
        for (size_t parts = first; parts < first + 8 * (size_t)g->threads; parts++) {
            size_t columns = panels * SGT_PRODUCT_COLUMNS;
            size_t rows = round_up((g->s.m + parts - 1) / parts, own->rows);
            double cost = cost_of(g, rows, columns);
            if (least > 0 && cost >= least) continue;
            least = cost;
            g->block_m = rows;
            g->block_n = columns;
        }
}

static void run_block(const sgt_gemm *g, size_t block, const void *a, const void *b,
                      const float *bias, float *c)
{
    const sgt_gemm_shape *s = &g->s;
    const sgt_product *own = g->own;
    size_t i = block / g->blocks_n * g->block_m, j = block % g->blocks_n * g->block_n;
    /* Number of units in a row of units of C. A unit is the smallest possible block (product.h).
     * g->squares has one element for each unit, one row of units after the other. */
    size_t across = (s->n + own->columns - 1) / own->columns;
    double *squares = g->squares ? g->squares + i / own->rows * across + j / own->columns : NULL;
    own->run(s, a, b, bias, c, i, s->m - i < g->block_m ? s->m - i : g->block_m, j,
             s->n - j < g->block_n ? s->n - j : g->block_n, NULL, squares, across,
             (char *)s->scratch + (size_t)omp_get_thread_num() * scratch_of_thread());
}

static int take_squares(sgt_gemm *g, sgt_error *err)
{
    size_t rows = g->own->rows, columns = g->own->columns;
    g->units = round_up(g->s.m, rows) / rows * (round_up(g->s.n, columns) / columns);
    g->squares = calloc(g->units, sizeof *g->squares);
    return g->squares ? SGT_OK : sgt_fail_memory(err, "matrix product");
}

double sgt_gemm_squares(const sgt_gemm *g)
{
    double sum = 0;
    for (size_t i = 0; i < g->units; i++) sum += g->squares[i];
    return sum;
}

int sgt_gemm_plan(sgt_gemm **out, const sgt_gemm_shape *s, int threads, sgt_error *err)
{
    int rc = SGT_OK;
    const sgt_product *own = sgt_own_product(s->bf16);
    if (!own)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "bf16 matrix product: this CPU has no instructions for it (use fp32)");
    sgt_gemm *g = calloc(1, sizeof *g);
    if (!g) return sgt_fail_memory(err, "matrix product");
    g->s = *s;
    g->own = own;
    g->threads = threads < 1 ? 1 : threads;
    cut(g);
    g->blocks_m = round_up(s->m, g->block_m) / g->block_m;
    g->blocks_n = round_up(s->n, g->block_n) / g->block_n;
    if (s->squares) rc = take_squares(g, err);
    if (rc < 0) sgt_gemm_free(g);
    else *out = g;
    return rc;
}

void sgt_gemm_free(sgt_gemm *g)
{
    if (!g) return;
    free(g->squares);
    free(g);
}

int sgt_gemm_has_bf16(void) { return sgt_own_product(1) != NULL; }

/* ---- run a plan: compute blocks of C and, at the same time, shares of other work ---- */

typedef struct run {
    const sgt_gemm *g;
    const void *a, *b;
    const float *bias;
    float *c;
    /* next: index of the first block of C that no thread has begun; done: number of complete
     * blocks */
    size_t next, done;
} run;

/* Return *next and increase it by 1, or return `count` if *next has reached `count`. Several
 * threads may call this function at the same time with the same `next`. */
static size_t take_next(size_t *next, size_t count)
{
    size_t i = __atomic_load_n(next, __ATOMIC_RELAXED);
    while (i < count &&
           !__atomic_compare_exchange_n(next, &i, i + 1, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    return i;
}

static int do_share(sgt_beside *w)
{
    if (!w) return 0;
    size_t i = take_next(&w->next, w->count);
    if (i == w->count) return 0;
    w->share(w->of, i);
    return 1;
}

static int do_block(run *r)
{
    const sgt_gemm *g = r->g;
    size_t blocks = g->blocks_m * g->blocks_n, b = take_next(&r->next, blocks);
    if (b == blocks) return 0;
    run_block(g, b, r->a, r->b, r->bias, r->c);
    /* relaxed order suffices, because `done` only tells threads when to stop; the barrier at the
     * end of the parallel region makes C visible to all threads */
    __atomic_fetch_add(&r->done, 1, __ATOMIC_RELAXED);
    return 1;
}

static int is_done(const run *r)
{
    return __atomic_load_n(&r->done, __ATOMIC_RELAXED) == r->g->blocks_m * r->g->blocks_n;
}

void sgt_gemm_run_beside(const sgt_gemm *g, const void *a, const void *b, const float *bias,
                         float *c, sgt_beside *w)
{
    run r = {.g = g, .a = a, .b = b, .bias = bias, .c = c};
#pragma omp parallel num_threads(g->threads)
    {
        while (omp_get_thread_num() % 2 && !is_done(&r) && do_share(w)) continue;
        while (do_block(&r)) continue;
        while (!is_done(&r) && do_share(w)) continue;
    }
}

void sgt_gemm_run(const sgt_gemm *g, const void *a, const void *b, const float *bias, float *c)
{
    sgt_gemm_run_beside(g, a, b, bias, c, NULL);
}

void sgt_beside_finish(sgt_beside *w, size_t end, int threads)
{
    size_t begin = w->next;
    if (end > w->count) end = w->count;
    if (begin >= end) return;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t i = begin; i < end; i++) w->share(w->of, i);
    w->next = end;
}
