/* gemm.c: matrix products, cut into tiles that threads take as they become free. Products are our
 * own (product.h); a plan can also ask for oneDNN, to compare with it.
 *
 * In our own products each number's sum has one order wherever tiles begin, so that tiles may be
 * cut by the number of threads. For oneDNN, tiles are cut by the product's shape alone. Each tile
 * is one single-threaded primitive with the whole sum over k, so any number of threads gives the
 * same bits. Tiles at the edges are smaller: there are at most four different primitives. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/arena.h"
#include "loader/base/cpu.h"
#include "kernels/kernels.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/product.h"

enum { KINDS = 4 }; /* bit 0: the last, narrower column of tiles; bit 1: the last, lower row */

typedef struct worker {
    dnnl_stream_t stream;
    sgt_dnnl_call call[KINDS];
} worker;

struct sgt_gemm {
    sgt_gemm_shape s;
    const sgt_dnnl *api;
    size_t tile_m, tile_n;   /* size of a whole tile */
    size_t tiles_m, tiles_n; /* number of tiles in each direction */
    sgt_dnnl_primitive *kind[KINDS];
    int threads;
    worker *workers;        /* (threads) */
    const sgt_product *own; /* NULL: oneDNN's product */
    char *scratch;          /* our own product's scratch, (threads) parts */
    void *taken;            /* scratch if the plan allocated it, else NULL */
    /* sums of squares if they are wanted, one for each unit of C, or for a tile of oneDNN's */
    double *squares;
    size_t parts;
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

/* Estimate the cost of a cut in cycles per step along k: the busiest thread's blocks, plus a little
 * for the wait at the end. */
static double own_cost(const sgt_gemm *g, size_t rows, size_t columns)
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

static void cut_own(sgt_gemm *g)
{
    const sgt_product *own = g->own;
    double least = 0;
    int bound = own->most_rows && g->s.k > own->deep;
    size_t first = bound ? (g->s.m + own->most_rows - 1) / own->most_rows : 1;
    for (size_t panels = 1; panels <= SGT_PRODUCT_PANELS; panels++)
        for (size_t parts = first; parts < first + 8 * (size_t)g->threads; parts++) {
            size_t columns = panels * SGT_PRODUCT_COLUMNS;
            size_t rows = round_up((g->s.m + parts - 1) / parts, own->rows);
            double cost = own_cost(g, rows, columns);
            if (least > 0 && cost >= least) continue;
            least = cost;
            g->tile_m = rows;
            g->tile_n = columns;
        }
}

static int plan_own(sgt_gemm *g, sgt_error *err)
{
    cut_own(g);
    if (!(g->scratch = g->s.scratch))
        g->scratch = g->taken = aligned_alloc(SGT_ARENA_ALIGN, sgt_gemm_scratch(g->threads));
    return g->scratch ? SGT_OK : sgt_fail_memory(err, "matrix product");
}

static void run_own(const sgt_gemm *g, size_t tile, const void *a, const void *b, const float *bias,
                    float *c)
{
    const sgt_gemm_shape *s = &g->s;
    const sgt_product *own = g->own;
    size_t i = tile / g->tiles_n * g->tile_m, j = tile % g->tiles_n * g->tile_n;
    /* blocks begin at multiples of a unit */
    size_t across = (s->n + own->columns - 1) / own->columns;
    double *squares = g->squares ? g->squares + i / own->rows * across + j / own->columns : NULL;
    own->run(s, a, b, bias, c, i, s->m - i < g->tile_m ? s->m - i : g->tile_m, j,
             s->n - j < g->tile_n ? s->n - j : g->tile_n, NULL, squares, across,
             g->scratch + (size_t)omp_get_thread_num() * scratch_of_thread());
}

/* ---- oneDNN's products ---- */

/* Cut enough tiles for 16 threads, each as large as that allows. Tiles of 256 x 256 are as fast as
 * one whole product; below 64 x 64 much is lost. If the tile's operands are whole matrices, that
 * is, for blocks of rows with every column, oneDNN 2.6 has a faster kernel that allocates nothing.
 * We use it if there are enough rows. check-kernels --bench --kernel gemm measures it. */
static void cut(sgt_gemm *g)
{
    const sgt_gemm_shape *s = &g->s;
    int whole =
        !s->trans_a && s->lda == s->k && s->ldc == s->n && s->ldb == (s->trans_b ? s->k : s->n);
    if (whole && s->m >= 1024 && s->n <= 4096) {
        g->tile_m = s->m >= 4096 ? 256 : s->m >= 2048 ? 128 : 64;
        g->tile_n = s->n;
    } else {
        g->tile_m = g->tile_n = 256;
        while ((g->tile_m > 64 || g->tile_n > 64) &&
               ((s->m + g->tile_m - 1) / g->tile_m) * ((s->n + g->tile_n - 1) / g->tile_n) < 16)
            if (g->tile_m >= g->tile_n) g->tile_m /= 2;
            else g->tile_n /= 2;
    }
}

static int make_primitives(sgt_gemm *g, sgt_error *err)
{
    const sgt_gemm_shape *s = &g->s;
    size_t rest_m = s->m % g->tile_m, rest_n = s->n % g->tile_n;
    for (int kind = 0; kind < KINDS; kind++) {
        sgt_dnnl_matmul tile = {
            .m = kind & 2 ? rest_m : g->tile_m,
            .n = kind & 1 ? rest_n : g->tile_n,
            .k = s->k,
            .a_row = s->trans_a ? 1 : s->lda,
            .a_col = s->trans_a ? s->lda : 1,
            .b_row = s->trans_b ? 1 : s->ldb,
            .b_col = s->trans_b ? s->ldb : 1,
            .c_row = s->ldc,
            .bias = s->bias,
            .accumulate = s->accumulate,
            .bf16 = s->bf16,
        };
        /* no tile is of this kind */
        if (!tile.m || !tile.n || tile.m > s->m || tile.n > s->n) continue;
        int rc = sgt_dnnl_primitive_new(&g->kind[kind], &tile, err);
        if (rc < 0) return rc;
    }
    return SGT_OK;
}

static int make_workers(sgt_gemm *g, sgt_error *err)
{
    if (!(g->workers = calloc((size_t)g->threads, sizeof *g->workers)))
        return sgt_fail(err, SGT_ENOMEM, "matrix product: out of memory for %d threads",
                        g->threads);
    for (int t = 0; t < g->threads; t++) {
        worker *w = &g->workers[t];
        if (g->api->stream_create(&w->stream, g->api->engine, dnnl_stream_default_flags) !=
            dnnl_success)
            return sgt_fail(err, SGT_ENOMEM, "oneDNN: no stream for thread %d", t);
        for (int kind = 0; kind < KINDS; kind++) {
            int rc =
                g->kind[kind] ? sgt_dnnl_call_init(&w->call[kind], g->kind[kind], err) : SGT_OK;
            if (rc < 0) return rc;
        }
    }
    return SGT_OK;
}

static int plan_onednn(sgt_gemm *g, sgt_error *err)
{
    int rc = sgt_dnnl_load(&g->api, err);
    if (rc < 0) return rc;
    cut(g);
    rc = make_primitives(g, err);
    return rc < 0 ? rc : make_workers(g, err);
}

/* ---- both ---- */

static int take_squares(sgt_gemm *g, sgt_error *err)
{
    size_t rows = g->own ? g->own->rows : g->tile_m, columns = g->own ? g->own->columns : g->tile_n;
    g->parts = 1; /* C as a whole if there is nothing to multiply */
    if (g->tiles_m)
        g->parts = round_up(g->s.m, rows) / rows * (round_up(g->s.n, columns) / columns);
    g->squares = calloc(g->parts, sizeof *g->squares);
    return g->squares ? SGT_OK : sgt_fail_memory(err, "matrix product");
}

double sgt_gemm_squares(const sgt_gemm *g)
{
    double sum = 0;
    for (size_t i = 0; i < g->parts; i++) sum += g->squares[i];
    return sum;
}

int sgt_gemm_plan(sgt_gemm **out, const sgt_gemm_shape *s, int threads, sgt_error *err)
{
    int rc;
    sgt_gemm *g = calloc(1, sizeof *g);
    if (!g) return sgt_fail_memory(err, "matrix product");
    g->s = *s;
    g->threads = threads < 1 ? 1 : threads;
    g->own = s->onednn ? NULL : sgt_own_product(s->bf16);
    if (s->m && s->n && s->k) { /* if there is nothing to multiply, run only fills C */
        if ((rc = g->own ? plan_own(g, err) : plan_onednn(g, err)) < 0) goto fail;
        g->tiles_m = round_up(s->m, g->tile_m) / g->tile_m;
        g->tiles_n = round_up(s->n, g->tile_n) / g->tile_n;
    }
    if (s->squares && (rc = take_squares(g, err)) < 0) goto fail;
    *out = g;
    return SGT_OK;
fail:
    sgt_gemm_free(g);
    return rc;
}

void sgt_gemm_free(sgt_gemm *g)
{
    if (!g) return;
    for (int t = 0; g->workers && t < g->threads; t++) {
        for (int kind = 0; kind < KINDS; kind++) sgt_dnnl_call_clear(&g->workers[t].call[kind]);
        if (g->workers[t].stream) g->api->stream_destroy(g->workers[t].stream);
    }
    for (int kind = 0; kind < KINDS; kind++) sgt_dnnl_primitive_free(g->kind[kind]);
    free(g->workers);
    free(g->taken);
    free(g->squares);
    free(g);
}

int sgt_gemm_bf16(sgt_error *err)
{
    (void)err;
    return sgt_own_product(1) != NULL;
}

int sgt_gemm_has_bf16(void) { return sgt_gemm_bf16(NULL) > 0; }

const char *sgt_gemm_library(int bf16)
{
    (void)bf16;
    return "own matrix products";
}

/* Fill C for k = 0: the product is zero. */
static void run_empty(const sgt_gemm *g, const float *bias, float *c)
{
    const sgt_gemm_shape *s = &g->s;
    double squares = 0;
    for (size_t i = 0; i < s->m; i++)
        for (size_t j = 0; j < s->n; j++) {
            float *at = c + i * s->ldc + j;
            *at = (s->accumulate ? *at : 0) + (s->bias ? bias[j] : 0);
            squares += (double)*at * (double)*at;
        }
    if (g->squares) *g->squares = squares;
}

/* Return the sum of squares of the tile at row i, column j, which has just been written. */
static double squares_of(const sgt_gemm *g, const float *c, size_t i, size_t j)
{
    const sgt_gemm_shape *s = &g->s;
    double sum = 0;
    for (size_t r = i; r < s->m && r < i + g->tile_m; r++)
        sum += sgt_kernels_cpu()->sum_squares(c + r * s->ldc + j,
                                              s->n - j < g->tile_n ? s->n - j : g->tile_n);
    return sum;
}

static void run_tile(const sgt_gemm *g, worker *w, size_t tile, const char *a, const char *b,
                     const float *bias, float *c)
{
    const sgt_gemm_shape *s = &g->s;
    size_t bytes = s->bf16 ? sizeof(uint16_t) : sizeof(float);
    size_t ti = tile / g->tiles_n, tj = tile % g->tiles_n;
    size_t i = ti * g->tile_m, j = tj * g->tile_n;
    int kind = (s->m - i < g->tile_m) * 2 + (s->n - j < g->tile_n);
    sgt_dnnl_run(
        g->kind[kind], &w->call[kind], w->stream, a + (s->trans_a ? i : i * s->lda) * bytes,
        b + (s->trans_b ? j * s->ldb : j) * bytes, s->bias ? bias + j : NULL, c + i * s->ldc + j);
    if (g->squares) g->squares[tile] = squares_of(g, c, i, j);
}

/* ---- tiles, and the shares done beside them ---- */

typedef struct run {
    const sgt_gemm *g;
    const void *a, *b;
    const float *bias;
    float *c;
    size_t next, done; /* tiles begun; tiles complete */
} run;

/* Take the next index below `count`, or return `count` if none is left. */
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

static int do_tile(run *r)
{
    const sgt_gemm *g = r->g;
    size_t tiles = g->tiles_m * g->tiles_n, t = take_next(&r->next, tiles);
    if (t == tiles) return 0;
    if (g->own) run_own(g, t, r->a, r->b, r->bias, r->c);
    else run_tile(g, &g->workers[omp_get_thread_num()], t, r->a, r->b, r->bias, r->c);
    /* relaxed: the end of the parallel region makes the tiles visible to all threads */
    __atomic_fetch_add(&r->done, 1, __ATOMIC_RELAXED);
    return 1;
}

static int is_done(const run *r)
{
    return __atomic_load_n(&r->done, __ATOMIC_RELAXED) == r->g->tiles_m * r->g->tiles_n;
}

void sgt_gemm_run_beside(const sgt_gemm *g, const void *a, const void *b, const float *bias,
                         float *c, sgt_beside *w)
{
    run r = {.g = g, .a = a, .b = b, .bias = bias, .c = c};
    unsigned rank = w ? w->rank : 0;
    if (g->tiles_m * g->tiles_n == 0) {
        run_empty(g, bias, c);
        return;
    }
#pragma omp parallel num_threads(g->threads)
    {
        /* In a region of one thread OpenMP reports "not in parallel", and oneDNN would start a team
         * of its own. */
        if (!g->own) omp_set_num_threads(1);
        while (((unsigned)omp_get_thread_num() + rank) % 2 && !is_done(&r) && do_share(w)) continue;
        while (do_tile(&r)) continue;
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
