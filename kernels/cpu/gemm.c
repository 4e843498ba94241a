/* gemm.c: matrix products over oneDNN, cut into tiles by the product's shape alone.
 *
 * Each tile is one single-threaded primitive with the whole sum over k, so that the same bits come from any number of
 * threads; threads take tiles as they get free. Tiles at the edges are smaller: at most four different primitives. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "onednn.h"

enum { KINDS = 4 }; /* bit 0: the last, narrower column of tiles; bit 1: the last, lower row */

typedef struct worker {
    dnnl_stream_t stream;
    sgt_dnnl_call call[KINDS];
} worker;

struct sgt_gemm {
    sgt_gemm_shape s;
    const sgt_dnnl *api;
    size_t tile_m, tile_n;   /* a whole tile's size */
    size_t tiles_m, tiles_n; /* how many each way */
    sgt_dnnl_primitive *kind[KINDS];
    int threads;
    worker *workers; /* one a thread */
};

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Enough tiles for 16 threads, each as large as that allows: 256 x 256 reaches what one whole product does, below
 * 64 x 64 much is lost. oneDNN 2.6 has a faster kernel, which also allocates nothing, where the tile's operands are
 * whole matrices, that is for blocks of rows with every column: taken where there are rows enough.
 * check-kernels --bench --kernel gemm measures it. */
static void cut(sgt_gemm *g)
{
    const sgt_gemm_shape *s = &g->s;
    int whole = !s->trans_a && s->lda == s->k && s->ldc == s->n && s->ldb == (s->trans_b ? s->k : s->n);
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
    g->tiles_m = round_up(s->m, g->tile_m) / g->tile_m;
    g->tiles_n = round_up(s->n, g->tile_n) / g->tile_n;
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
        if (!tile.m || !tile.n || tile.m > s->m || tile.n > s->n) continue; /* no tile of this kind */
        int rc = sgt_dnnl_primitive_new(&g->kind[kind], &tile, err);
        if (rc < 0) return rc;
    }
    return SGT_OK;
}

static int make_workers(sgt_gemm *g, sgt_error *err)
{
    if (!(g->workers = calloc((size_t)g->threads, sizeof *g->workers)))
        return sgt_fail(err, SGT_ENOMEM, "matrix product: out of memory for %d threads", g->threads);
    for (int t = 0; t < g->threads; t++) {
        worker *w = &g->workers[t];
        if (g->api->stream_create(&w->stream, g->api->engine, dnnl_stream_default_flags) != dnnl_success)
            return sgt_fail(err, SGT_ENOMEM, "oneDNN: no stream for thread %d", t);
        for (int kind = 0; kind < KINDS; kind++) {
            int rc = g->kind[kind] ? sgt_dnnl_call_init(&w->call[kind], g->kind[kind], err) : SGT_OK;
            if (rc < 0) return rc;
        }
    }
    return SGT_OK;
}

int sgt_gemm_plan(sgt_gemm **out, const sgt_gemm_shape *s, int threads, sgt_error *err)
{
    const sgt_dnnl *api;
    int rc = sgt_dnnl_load(&api, err);
    if (rc < 0) return rc;
    sgt_gemm *g = calloc(1, sizeof *g);
    if (!g) return sgt_fail(err, SGT_ENOMEM, "matrix product: out of memory");
    g->s = *s;
    g->api = api;
    g->threads = threads < 1 ? 1 : threads;
    if (s->m && s->n && s->k) { /* with nothing to multiply, run fills in C alone */
        cut(g);
        if ((rc = make_primitives(g, err)) < 0) goto fail;
        if ((rc = make_workers(g, err)) < 0) goto fail;
    }
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
    free(g);
}

int sgt_gemm_has_bf16(void)
{
    const sgt_dnnl *api;
    return sgt_dnnl_load(&api, NULL) == SGT_OK && api->bf16;
}

const char *sgt_gemm_library(void)
{
    return sgt_dnnl_title();
}

/* k = 0: the product is zero. */
static void run_empty(const sgt_gemm_shape *s, const float *bias, float *c)
{
    for (size_t i = 0; i < s->m; i++)
        for (size_t j = 0; j < s->n; j++)
            c[i * s->ldc + j] = (s->accumulate ? c[i * s->ldc + j] : 0) + (s->bias ? bias[j] : 0);
}

static void run_tile(const sgt_gemm *g, worker *w, size_t tile, const char *a, const char *b, const float *bias,
                     float *c)
{
    const sgt_gemm_shape *s = &g->s;
    size_t bytes = s->bf16 ? sizeof(uint16_t) : sizeof(float);
    size_t ti = tile / g->tiles_n, tj = tile % g->tiles_n;
    size_t i = ti * g->tile_m, j = tj * g->tile_n;
    int kind = (s->m - i < g->tile_m) * 2 + (s->n - j < g->tile_n);
    sgt_dnnl_run(g->kind[kind], &w->call[kind], w->stream, a + (s->trans_a ? i : i * s->lda) * bytes,
                 b + (s->trans_b ? j * s->ldb : j) * bytes, s->bias ? bias + j : NULL, c + i * s->ldc + j);
}

void sgt_gemm_run(const sgt_gemm *g, const void *a, const void *b, const float *bias, float *c)
{
    if (!g->workers) {
        run_empty(&g->s, bias, c);
        return;
    }
    size_t tiles = g->tiles_m * g->tiles_n;
#pragma omp parallel num_threads(g->threads)
    {
        worker *w = &g->workers[omp_get_thread_num()];
        /* In a region of one thread OpenMP says "not in parallel", and oneDNN would start a team of its own. */
        omp_set_num_threads(1);
#pragma omp for schedule(dynamic, 1)
        for (size_t t = 0; t < tiles; t++) run_tile(g, w, t, a, b, bias, c);
    }
}
