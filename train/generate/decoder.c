/* decoder.c: GPT-2's forward pass for inference on the CPU, with a cache of the keys and values of
 * earlier tokens.
 *
 * Every matrix product is x W', computed by `dots` of kernels.h. W is stored row-major with the
 * shape (out, in). Checkpoints store the weights of linear layers with the shape (in, out), so
 * these weights are transposed when loaded.
 *
 * Each call to sgt_decoder_run is one OpenMP parallel region, whose loops are divided into tasks.
 * Results do not depend on the number of threads: the division into tasks depends only on array
 * shapes, and a single kernel call computes each result element. */
#include "train/generate/generate.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/memory.h"
#include "loader/base/cpu.h"
#include "train/generate/team.h"
#include "train/log/metrics.h"

#define TILE 32 /* number of output columns that one task of a matrix product computes */

struct sgt_decoder {
    /* must be the first member, because a sgt_backend * is cast to a sgt_decoder * */
    sgt_backend loads;
    sgt_decoder_options o;
    const sgt_kernels *k;
    sgt_team team;
    size_t C, H, D, V, tensors;
    /* addresses of the tensors' elements; a tensor is stored as bfloat16 if o.bf16 is set and
     * is_product returns 1 for the tensor, otherwise as float32 */
    void **at;
    sgt_arena arena;
    float *keys, *values; /* (layers, sequences, H, window, D) */
    /* work space for ROWS rows (SGT_DECODER_ROWS): x and ln have the shape (ROWS, C), and mean and
     * rstd have ROWS elements */
    float *x, *ln, *mean, *rstd;
    float *qkv, *att, *y, *wide; /* qkv: (ROWS, 3C); att and y: (ROWS, C); wide: (ROWS, 4C) */
    /* output of the last LayerNorm, (ROWS, C), only for rows whose logits are requested */
    float *last;
    float *scores; /* (threads, window) */
};

/* ---- memory and parameters ---- */

/* Return 1 if the tensor is the weight of a matrix product, which is stored as bfloat16 if o.bf16
 * is set; otherwise return 0. All matrices except wpe (index 1) count as such weights, even wte if
 * the head has a separate weight. */
static int is_product(const sgt_tensor *t, size_t index) { return t->dims == 2 && index != 1; }
static int is_linear(const sgt_decoder *d, size_t index)
{
    return index > 1 && index < 2 + SGT_BLOCK_TENSORS * (size_t)d->o.model.layers;
}

static size_t number_size(const sgt_decoder *d, const sgt_tensor *t, size_t index)
{
    return is_product(t, index) && d->o.bf16 ? sizeof(uint16_t) : sizeof(float);
}

/* Assign an address in the arena to every buffer. The first call, which precedes the allocation of
 * the arena, only computes the arena's size. */
static void assign_memory(sgt_decoder *d)
{
    sgt_arena *a = &d->arena;
    size_t cache = (size_t)d->o.model.layers * d->o.sequences * d->o.window * d->C;
    for (size_t i = 0; i < d->tensors; i++) {
        sgt_tensor t;
        sgt_model_tensor(&d->o.model, i, &t);
        d->at[i] = sgt_arena_take(a, t.count, number_size(d, &t, i));
    }
    const size_t rows = SGT_DECODER_ROWS;
    const struct {
        float **part;
        size_t count;
    } parts[] = {{&d->keys, cache},          {&d->values, cache},
                 {&d->x, rows * d->C},       {&d->ln, rows * d->C},
                 {&d->mean, rows},           {&d->rstd, rows},
                 {&d->qkv, rows * 3 * d->C}, {&d->att, rows * d->C},
                 {&d->y, rows * d->C},       {&d->wide, rows * 4 * d->C},
                 {&d->last, rows * d->C},    {&d->scores, (size_t)d->o.threads * d->o.window}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        *parts[i].part = sgt_arena_take(a, parts[i].count, sizeof(float));
}

static void keep(const sgt_decoder *d, size_t index, const sgt_tensor *t, size_t at,
                 const float *from, size_t count)
{
    if (number_size(d, t, index) == sizeof(float))
        memcpy((float *)d->at[index] + at, from, count * sizeof *from);
    else d->k->to_bf16((uint16_t *)d->at[index] + at, from, count);
}

/* Transpose and store `rows` complete rows of a linear layer's weight as a checkpoint stores it.
 * They become columns row .. row + rows - 1 of the decoder's transposed weight. Each task stores
 * its elements in one row of the transposed weight. */
static void keep_turned(const sgt_decoder *d, size_t index, const sgt_tensor *t, size_t row,
                        const float *from, size_t rows)
{
    enum { MOST = 256 };
    size_t in = t->dim[0], out = t->dim[1];
    for (size_t r = 0; r < rows; r += MOST) {
        size_t n = rows - r < MOST ? rows - r : MOST;
#pragma omp parallel for num_threads(d->o.threads) schedule(static)
        for (size_t c = 0; c < out; c++) {
            float column[MOST];
            for (size_t i = 0; i < n; i++) column[i] = from[(r + i) * out + c];
            keep(d, index, t, c * in + row + r, column, n);
        }
    }
}

static int put(sgt_backend *b, sgt_state what, size_t index, size_t first, size_t count,
               const float *from, sgt_error *err)
{
    sgt_decoder *d = (sgt_decoder *)b;
    sgt_tensor t;
    if (what != SGT_PARAMETERS)
        return sgt_fail(err, SGT_EUSAGE, "decoder: unknown state %d", (int)what);
    int rc = sgt_model_part(&d->o.model, index, first, count, &t, err);
    if (rc < 0) return rc;
    if (!is_linear(d, index) || t.dims == 1) {
        keep(d, index, &t, first, from, count);
        return SGT_OK;
    }
    size_t in = t.dim[0], out = t.dim[1];
    /* At most three iterations: one for the rest of a row, one for all complete rows, and one for
     * the beginning of the last row. */
    while (count) {
        size_t row = first / out, column = first % out,
               take = out - column < count ? out - column : count;
        if (column == 0 && count >= out) {
            take = count / out * out;
            keep_turned(d, index, &t, row, from, count / out);
        } else
            for (size_t i = 0; i < take; i++)
                keep(d, index, &t, (column + i) * in + row, from + i, 1);
        first += take, from += take, count -= take;
    }
    return SGT_OK;
}

static int get_memory(sgt_decoder *d, sgt_error *err)
{
    assign_memory(d);
    uint64_t need = d->arena.used, available = sgt_memory_available();
    if (need > available)
        return sgt_fail(err, SGT_ENOMEM,
                        "the model and the keys and values of %u sequences need %.1f GiB of "
                        "memory, but only %.1f GiB is free",
                        d->o.sequences, (double)need / 0x1p30, (double)available / 0x1p30);
    return sgt_arena_map(&d->arena, d->arena.used, 0, err);
}

int sgt_decoder_open(sgt_decoder **out, const sgt_decoder_options *o, sgt_error *err)
{
    int rc = SGT_OK;
    sgt_decoder *d = calloc(1, sizeof *d);
    if (!d) return sgt_fail_memory(err, "the model");
    d->loads = (sgt_backend){.name = "cpu", .put = put};
    d->team = (sgt_team)SGT_TEAM;
    d->o = *o;
    if (!d->o.window || d->o.window > o->model.positions) d->o.window = o->model.positions;
    if (!d->o.sequences) d->o.sequences = 1;
    if (d->o.threads < 1) d->o.threads = sgt_cpu_threads(1, 0);
    d->k = sgt_kernels_cpu();
    d->loads.level = d->k->level;
    d->C = o->model.channels, d->H = o->model.heads, d->D = d->C / d->H, d->V = o->model.vocab;
    d->tensors = sgt_model_tensors(&o->model);
    d->at = calloc(d->tensors, sizeof *d->at);
    if (!d->at) rc = sgt_fail_memory(err, "the model");
    if (rc == SGT_OK) rc = get_memory(d, err);
    if (rc < 0) {
        sgt_decoder_close(d);
        return rc;
    }
    assign_memory(d);
    *out = d;
    return SGT_OK;
}

void sgt_decoder_close(sgt_decoder *d)
{
    if (!d) return;
    sgt_arena_unmap(&d->arena);
    free(d->at);
    free(d);
}

sgt_backend *sgt_decoder_loads(sgt_decoder *d) { return &d->loads; }
uint32_t sgt_decoder_window(const sgt_decoder *d) { return d->o.window; }
uint32_t sgt_decoder_sequences(const sgt_decoder *d) { return d->o.sequences; }
const sgt_model *sgt_decoder_model(const sgt_decoder *d) { return &d->o.model; }
int sgt_decoder_threads(const sgt_decoder *d) { return d->o.threads; }
uint64_t sgt_decoder_bytes(const sgt_decoder *d) { return d->arena.used; }

/* ---- a run of the decoder ---- */

static size_t tensor_of(size_t layer, size_t which)
{
    return 2 + layer * SGT_BLOCK_TENSORS + which;
}
static const float *vector(const sgt_decoder *d, size_t index) { return d->at[index]; }
static size_t tiles(size_t n) { return (n + TILE - 1) / TILE; }
static void barrier(sgt_decoder *d) { sgt_team_barrier(&d->team, omp_get_num_threads()); }

/* Compute up to TILE columns, from column j on, of a matrix product that has n rows and m columns.
 * k: length of each dot product. */
static void tile(const sgt_decoder *d, float *out, const float *x, size_t weight, const float *bias,
                 size_t n, size_t m, size_t k, size_t j)
{
    size_t columns = m - j < TILE ? m - j : TILE;
    if (bias) bias += j;
    const char *w = (const char *)d->at[weight] + j * k * (d->o.bf16 ? 2 : 4);
    d->k->dots(out + j, m, x, w, bias, n, columns, k, d->o.bf16);
}

/* Compute out (n, m) = x (n, k) W' + bias, and apply GELU to the result if `gelu` is set. `weight`
 * is the index of the tensor W; the bias is the next tensor of the model. */
static void linear(sgt_decoder *d, float *out, const float *x, size_t weight, size_t n, size_t m,
                   size_t k, int gelu)
{
    for (size_t t; (t = sgt_team_next(&d->team)) < tiles(m);) {
        size_t j = t * TILE, columns = m - j < TILE ? m - j : TILE;
        tile(d, out, x, weight, vector(d, weight + 1), n, m, k, j);
        for (size_t i = 0; gelu && i < n; i++)
            d->k->gelu(out + i * m + j, out + i * m + j, columns, d->o.model.gelu);
    }
    barrier(d);
}

/* Return the address in `cache` (keys or values) of the array, with shape (window, D), for one head
 * of one layer and one sequence. */
static float *cached(const sgt_decoder *d, float *cache, size_t layer, uint32_t sequence,
                     size_t head)
{
    return cache + ((layer * d->o.sequences + sequence) * d->H + head) * d->o.window * d->D;
}

/* Store the keys and values of all rows in the cache. This must be done before attention, which
 * reads the keys and values of all rows from the cache. */
static void remember(sgt_decoder *d, size_t layer, const sgt_decoder_row *rows, size_t n)
{
    for (size_t i; (i = sgt_team_next(&d->team)) < n;)
        for (size_t h = 0; h < d->H; h++) {
            size_t bytes = d->D * sizeof(float), at = rows[i].position * d->D;
            const float *k = d->qkv + i * 3 * d->C + d->C + h * d->D;
            memcpy(cached(d, d->keys, layer, rows[i].sequence, h) + at, k, bytes);
            memcpy(cached(d, d->values, layer, rows[i].sequence, h) + at, k + d->C, bytes);
        }
    barrier(d);
}

static void attention(sgt_decoder *d, size_t layer, const sgt_decoder_row *rows, size_t n)
{
    float scale = 1 / sqrtf((float)d->D),
          *scores = d->scores + (size_t)omp_get_thread_num() * d->o.window;
    for (size_t t; (t = sgt_team_next(&d->team)) < n * d->H;) {
        const sgt_decoder_row *r = rows + t / d->H;
        size_t i = t / d->H, h = t % d->H;
        d->k->attend(d->att + i * d->C + h * d->D, d->qkv + i * 3 * d->C + h * d->D,
                     cached(d, d->keys, layer, r->sequence, h),
                     cached(d, d->values, layer, r->sequence, h), r->position + 1, d->D, scale,
                     scores);
    }
    barrier(d);
}

/* Add y to the residual stream x, and store the LayerNorm of the sum in d->ln. `norm`: tensor index
 * of the LayerNorm weight. */
static void residual(sgt_decoder *d, size_t norm, size_t n)
{
    for (size_t i; (i = sgt_team_next(&d->team)) < n;)
        d->k->residual_layernorm(d->x + i * d->C, d->ln + i * d->C, d->mean + i, d->rstd + i,
                                 d->x + i * d->C, d->y + i * d->C, vector(d, norm),
                                 vector(d, norm + 1), 1, d->C, d->o.model.eps);
    barrier(d);
}

static void block(sgt_decoder *d, size_t l, const sgt_decoder_row *rows, size_t n)
{
    /* next: tensor index of the first LayerNorm weight of the next block, or of ln_f's weight after
     * the last block */
    size_t C = d->C, next = tensor_of(l + 1, SGT_LN1_W);
    linear(d, d->qkv, d->ln, tensor_of(l, SGT_QKV_W), n, 3 * C, C, 0);
    remember(d, l, rows, n);
    attention(d, l, rows, n);
    linear(d, d->y, d->att, tensor_of(l, SGT_PROJ_W), n, C, C, 0);
    residual(d, tensor_of(l, SGT_LN2_W), n);
    linear(d, d->wide, d->ln, tensor_of(l, SGT_FC_W), n, 4 * C, C, 1);
    linear(d, d->y, d->wide, tensor_of(l, SGT_FCPROJ_W), n, C, 4 * C, 0);
    residual(d, next, n);
}

static void widen_row(const sgt_decoder *d, float *out, size_t id)
{
    const uint16_t *row = (const uint16_t *)d->at[0] + id * d->C;
    for (size_t c = 0; c < d->C; c++) {
        uint32_t bits = (uint32_t)row[c] << 16;
        memcpy(out + c, &bits, sizeof bits);
    }
}

static void embed(sgt_decoder *d, const sgt_decoder_row *rows, size_t n)
{
    const float *wpe = vector(d, 1);
    size_t first = tensor_of(0, SGT_LN1_W);
    for (size_t i; (i = sgt_team_next(&d->team)) < n;) {
        float *x = d->x + i * d->C;
        size_t id = (size_t)rows[i].id;
        if (d->o.bf16) widen_row(d, x, id);
        else memcpy(x, vector(d, 0) + id * d->C, d->C * sizeof *x);
        d->k->add(x, wpe + rows[i].position * d->C, d->C);
        d->k->layernorm(d->ln + i * d->C, d->mean + i, d->rstd + i, x, vector(d, first),
                        vector(d, first + 1), 1, d->C, d->o.model.eps);
    }
    barrier(d);
}

/* Compute logits from d->last, whose first `wanted` rows are the rows whose logits the caller
 * requested. */
static void head(sgt_decoder *d, size_t wanted, float *logits)
{
    size_t weight = d->o.model.untied ? d->tensors - 1 : 0;
    for (size_t t; (t = sgt_team_next(&d->team)) < tiles(d->V);)
        tile(d, logits, d->last, weight, NULL, wanted, d->V, d->C, t * TILE);
}

static size_t gather_wanted(sgt_decoder *d, const sgt_decoder_row *rows, size_t n)
{
    size_t wanted = 0;
    for (size_t i = 0; i < n; i++)
        if (rows[i].wanted)
            memcpy(d->last + wanted++ * d->C, d->ln + i * d->C, d->C * sizeof(float));
    return wanted;
}

void sgt_decoder_run(sgt_decoder *d, const sgt_decoder_row *rows, size_t n, float *logits)
{
    size_t wanted = 0;
    d->team.next = 0;
#pragma omp parallel num_threads(d->o.threads)
    {
        embed(d, rows, n);
        for (size_t l = 0; l < d->o.model.layers; l++) block(d, l, rows, n);
        if (sgt_team_next(&d->team) == 0) wanted = gather_wanted(d, rows, n);
        barrier(d);
        if (wanted) head(d, wanted, logits);
    }
}
