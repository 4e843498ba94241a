/* fixture.c: reads the reference numbers. */
#include "fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static void *take(FILE *f, size_t count, size_t size)
{
    void *p = calloc(count, size);
    cr_assert(p && fread(p, size, count, f) == count, "fixture cut short");
    return p;
}

/* In the file each of a block's tensors comes for all layers in turn, and linear weights are (out, in). */
static size_t tensor_in_file(const sgt_model *m, size_t i)
{
    size_t L = m->layers;
    if (i < 2 || i >= 2 + SGT_BLOCK_TENSORS * L) return i;
    return 2 + (i - 2) % L * SGT_BLOCK_TENSORS + (i - 2) / L;
}

static double *read_flat(FILE *f, const sgt_model *m, size_t size)
{
    double *flat = calloc(sgt_model_floats(m), sizeof *flat);
    for (size_t i = 0; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_model_tensor(m, tensor_in_file(m, i), &t);
        void *raw = take(f, t.count, size);
        size_t rows = t.dims == 2 && i >= 2 ? t.dim[0] : 1, columns = t.count / rows;
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0; c < columns; c++) {
                size_t from = c * rows + r;
                flat[t.offset + r * columns + c] = size == 8 ? ((double *)raw)[from] : (double)((float *)raw)[from];
            }
        free(raw);
    }
    return flat;
}

void fixture_load(fixture *f, const char *name, sgt_gelu_kind gelu)
{
    char path[256];
    snprintf(path, sizeof path, FIXTURES "%s.bin", name);
    FILE *in = fopen(path, "rb");
    cr_assert(in, "%s: not there (run from the source tree)", path);
    int32_t *h = take(in, 256, sizeof *h);
    cr_assert_eq(h[0], 0x54584653);
    f->model = (sgt_model){.layers = (uint32_t)h[2],
                           .channels = (uint32_t)h[3],
                           .heads = (uint32_t)h[4],
                           .positions = (uint32_t)h[5],
                           .vocab = (uint32_t)h[6],
                           .gelu = gelu,
                           .eps = 1e-5f};
    f->seq = (uint32_t)h[5];
    f->batch = (uint32_t)h[8];
    f->steps = (uint32_t)h[9];
    cr_assert_eq((uint64_t)h[10], sgt_model_parameters(&f->model));
    free(h);
    f->x = take(in, f->batch * f->seq, sizeof *f->x);
    f->y = take(in, f->batch * f->seq, sizeof *f->y);
    double *initial = read_flat(in, &f->model, 4);
    size_t n = sgt_model_floats(&f->model);
    f->initial = calloc(n, sizeof *f->initial);
    for (size_t i = 0; i < n; i++) f->initial[i] = (float)initial[i];
    free(initial);
    f->loss = take(in, f->steps + 1, sizeof *f->loss);
    f->norm = take(in, f->steps, sizeof *f->norm);
    f->grads = read_flat(in, &f->model, 8);
    f->final = read_flat(in, &f->model, 8);
    fclose(in);
}

void fixture_free(fixture *f)
{
    free(f->x);
    free(f->y);
    free(f->initial);
    free(f->loss);
    free(f->norm);
    free(f->grads);
    free(f->final);
}

sgt_backend *fixture_backend(const fixture *f, uint32_t batch, int threads)
{
    sgt_error err = {0};
    sgt_backend *b = NULL;
    sgt_backend_options o = {
        .model = f->model,
        .optim = {.beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .weight_decay = 0.1f, .grad_clip = 1},
        .batch = batch,
        .seq = f->seq,
        .threads = threads};
    cr_assert_eq(sgt_cpu_backend_open(&b, &o, &err), 0, "%s", err.text);
    put_flat(b, &f->model, SGT_PARAMETERS, f->initial);
    return b;
}

void fixture_micro_step(const fixture *f, sgt_backend *b, uint32_t first, uint32_t count, double scale)
{
    size_t T = f->seq;
    uint16_t *tokens = calloc(count * (T + 1), sizeof *tokens); /* the last of each row is no input */
    for (size_t r = 0; r < count; r++)
        for (size_t t = 0; t < T; t++) tokens[r * (T + 1) + t] = (uint16_t)f->x[(first + r) * T + t];
    sgt_rows rows = {.tokens = tokens, .targets = f->y + first * T};
    cr_assert_eq(b->micro_step(b, 0, 0, &rows, scale, NULL), 0);
    free(tokens);
}

float *flat_state(sgt_backend *b, const sgt_model *m, sgt_state what)
{
    float *flat = calloc(sgt_model_floats(m), sizeof *flat);
    for (size_t i = 0; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_model_tensor(m, i, &t);
        cr_assert_eq(b->get(b, what, i, 0, t.count, flat + t.offset, NULL), 0);
    }
    return flat;
}

void put_flat(sgt_backend *b, const sgt_model *m, sgt_state what, const float *flat)
{
    for (size_t i = 0; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_model_tensor(m, i, &t);
        cr_assert_eq(b->put(b, what, i, 0, t.count, flat + t.offset, NULL), 0);
    }
}
