/* fixture.c: see fixture.h. */
#include "tests/train/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Print a message and exit unless `ok`. This file cannot use Criterion, because check-step reads
 * fixtures too. */
#define must(ok, ...)                                                      \
    do                                                                     \
        if (!(ok)) {                                                       \
            fprintf(stderr, "fixture: " __VA_ARGS__), fputc('\n', stderr); \
            abort();                                                       \
        }                                                                  \
    while (0)

static void *take(FILE *f, size_t count, size_t size)
{
    void *p = calloc(count, size);
    must(p && fread(p, size, count, f) == count, "cut short");
    return p;
}

/* Return the number, in the model, of tensor i of the file. The file has each tensor of a block for
 * all layers in turn, and linear weights are (out, in). */
static size_t tensor_in_file(const sgt_model *m, size_t i)
{
    size_t L = m->layers;
    if (i < 2 || i >= 2 + SGT_BLOCK_TENSORS * L) return i;
    return 2 + (i - 2) % L * SGT_BLOCK_TENSORS + (i - 2) / L;
}

static int is_linear(const sgt_model *m, size_t i)
{
    return i >= 2 && i < 2 + SGT_BLOCK_TENSORS * (size_t)m->layers;
}

static double *read_flat(FILE *f, const sgt_model *m, size_t size)
{
    double *flat = calloc(sgt_model_floats(m), sizeof *flat);
    for (size_t i = 0; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_model_tensor(m, tensor_in_file(m, i), &t);
        scoped_memory void *raw = take(f, t.count, size);
        size_t rows = t.dims == 2 && is_linear(m, i) ? t.dim[0] : 1, columns = t.count / rows;
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0; c < columns; c++) {
                size_t from = c * rows + r;
                flat[t.offset + r * columns + c] =
                    size == 8 ? ((double *)raw)[from] : (double)((float *)raw)[from];
            }
    }
    return flat;
}

static void set_options(fixture *f, const int32_t *h)
{
    f->options = (sgt_backend_options){.model = f->model,
                                       .optim = {.beta1 = 0.9f,
                                                 .beta2 = 0.95f,
                                                 .eps = 1e-8f,
                                                 .weight_decay = 0.1f,
                                                 .grad_clip = 1},
                                       .batch = f->batch,
                                       .seq = f->seq,
                                       .threads = 2,
                                       .dropout = (float)h[13] / 1000,
                                       .seed = (uint64_t)h[14],
                                       .ignoring = h[15] > 0,
                                       .ignore = h[15] - 1,
                                       .documents = h[17] > 0,
                                       .eot = h[17] - 1,
                                       .precision = (sgt_precision)h[16]};
    f->lr = 1e-3;
    if (h[12] == 3) f->options.optim.kind = SGT_MUON;
    if (h[12] != 1 && h[12] != 2) return;
    f->options.optim.kind = SGT_SGD;
    f->options.optim.momentum = 0.9f;
    f->options.optim.nesterov = h[12] == 2;
    f->lr = 0.1;
}

void fixture_load(fixture *f, const char *name, sgt_gelu_kind gelu)
{
    char path[256];
    snprintf(path, sizeof path, FIXTURES "%s.bin", name);
    scoped(FILE) *in = fopen(path, "rb");
    must(in, "%s: not there (run from the source tree)", path);
    int32_t *h = take(in, 256, sizeof *h);
    must(h[0] == 0x54584653, "%s: no fixture", path);
    f->model = (sgt_model){.layers = (uint32_t)h[2],
                           .channels = (uint32_t)h[3],
                           .heads = (uint32_t)h[4],
                           .positions = (uint32_t)h[5],
                           .vocab = (uint32_t)h[6],
                           .gelu = gelu,
                           .eps = 1e-5f,
                           .untied = (uint32_t)h[11]};
    f->seq = (uint32_t)h[5];
    f->batch = (uint32_t)h[8];
    f->steps = (uint32_t)h[9];
    set_options(f, h);
    must((uint64_t)h[10] == sgt_model_parameters(&f->model), "%s: another model", path);
    free(h);
    f->x = take(in, 2 * f->batch * f->seq, sizeof *f->x);
    f->y = f->x + f->batch * f->seq;
    f->unpin = NULL;
    double *initial = read_flat(in, &f->model, 4);
    size_t n = sgt_model_floats(&f->model);
    f->initial = calloc(n, sizeof *f->initial);
    for (size_t i = 0; i < n; i++) f->initial[i] = (float)initial[i];
    free(initial);
    f->loss = take(in, f->steps + 1, sizeof *f->loss);
    f->norm = take(in, f->steps, sizeof *f->norm);
    f->grads = read_flat(in, &f->model, 8);
    f->final = read_flat(in, &f->model, 8);
}

void fixture_deepen(fixture *f, uint32_t layers)
{
    sgt_model deep = f->model;
    deep.layers = layers;
    float *initial = calloc(sgt_model_floats(&deep), sizeof *initial);
    size_t had = sgt_model_tensors(&f->model), has = sgt_model_tensors(&deep),
           after = 2 + SGT_BLOCK_TENSORS * layers;
    size_t blocks = (size_t)SGT_BLOCK_TENSORS * f->model.layers;
    for (size_t i = 0; i < has; i++) {
        sgt_tensor from, to;
        size_t same = i < 2 ? i : i >= after ? had - (has - i) : 2 + (i - 2) % blocks;
        sgt_model_tensor(&f->model, same, &from);
        sgt_model_tensor(&deep, i, &to);
        must(from.count == to.count, "%s: not as large as %s", to.name, from.name);
        memcpy(initial + to.offset, f->initial + from.offset, to.count * sizeof *initial);
    }
    free(f->initial);
    f->initial = initial;
    f->model = f->options.model = deep;
}

void fixture_free(fixture *f)
{
    if (f->unpin) f->unpin(f->pinned_ctx, f->x);
    else free(f->x);
    free(f->initial);
    free(f->loss);
    free(f->norm);
    free(f->grads);
    free(f->final);
}

sgt_backend *fixture_open(const fixture *f, const sgt_backend_options *o)
{
    sgt_error err = {0};
    sgt_backend *b = NULL;
    must(sgt_cpu_backend_open(&b, o, &err) == 0, "%s", err.text);
    put_flat(b, &f->model, SGT_PARAMETERS, f->initial);
    return b;
}

sgt_backend *fixture_backend(const fixture *f, uint32_t batch, int threads)
{
    sgt_backend_options o = f->options;
    o.batch = batch;
    o.threads = threads;
    return fixture_open(f, &o);
}

void fixture_micro_step_of(const fixture *f, sgt_backend *b, uint64_t step, uint32_t micro,
                           uint32_t first, double scale)
{
    sgt_error err;
    sgt_batch rows = {.inputs = f->x + first * f->seq, .targets = f->y + first * f->seq};
    must(b->micro_step(b, step, micro, &rows, scale, &err) == 0, "%s", err.text);
}

uint32_t fixture_targets(const fixture *f, uint32_t first, uint32_t count)
{
    uint32_t n = 0;
    for (uint32_t i = first * f->seq; i < (first + count) * f->seq; i++)
        n += !(f->options.ignoring && f->y[i] == f->options.ignore);
    return n;
}

void fixture_accumulate(const fixture *f, sgt_backend *b, uint64_t step, uint32_t rows)
{
    double scale = 1.0 / fixture_targets(f, 0, f->batch);
    for (uint32_t m = 0; m < f->batch / rows; m++)
        fixture_micro_step_of(f, b, step, m, m * rows, scale);
}

void fixture_finish(const fixture *f, sgt_backend *b, uint64_t step, sgt_step_metrics *m)
{
    sgt_error err;
    must(b->update(b, step, f->lr, &err) == 0, "%s", err.text);
    must(b->metrics(b, step, m, &err) == 0, "%s", err.text);
}

double fixture_step(const fixture *f, sgt_backend *b, uint64_t step)
{
    sgt_step_metrics m;
    fixture_accumulate(f, b, step, f->batch);
    fixture_finish(f, b, step, &m);
    return m.loss;
}

void fixture_pin(fixture *f, const sgt_backend *b)
{
    size_t n = (size_t)f->batch * f->seq;
    if (!b->pinned_alloc || f->unpin) return;
    int32_t *pinned = b->pinned_alloc(b->pinned_ctx, 2 * n * sizeof *f->x);
    must(pinned, "no pinned memory");
    memcpy(pinned, f->x, n * sizeof *f->x);
    memcpy(pinned + n, f->y, n * sizeof *f->y);
    free(f->x);
    f->x = pinned;
    f->y = pinned + n;
    f->unpin = b->pinned_free;
    f->pinned_ctx = b->pinned_ctx;
}

float *flat_state(sgt_backend *b, const sgt_model *m, sgt_state what)
{
    float *flat = calloc(sgt_model_floats(m), sizeof *flat);
    for (size_t i = 0; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_error err;
        sgt_model_tensor(m, i, &t);
        must(b->get(b, what, i, 0, t.count, flat + t.offset, &err) == 0, "%s", err.text);
    }
    return flat;
}

void put_flat(sgt_backend *b, const sgt_model *m, sgt_state what, const float *flat)
{
    for (size_t i = 0; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_error err;
        sgt_model_tensor(m, i, &t);
        must(b->put(b, what, i, 0, t.count, flat + t.offset, &err) == 0, "%s", err.text);
    }
}
