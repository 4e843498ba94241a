/* decoders.h: open a decoder (train/generate/generate.h) for a fixture's model or for a stored
 * model. */
#ifndef SGT_TESTS_DECODERS_H
#define SGT_TESTS_DECODERS_H

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/expect.h"
#include "tests/train/fixture.h"
#include "train/generate/generate.h"
#include "train/run/checkpoint.h"

SCOPED_POINTER(sgt_decoder, sgt_decoder_close)

#define SAMPLE FIXTURES "sample/"

static inline void put_all(sgt_decoder *d, const sgt_model *m, const float *flat, size_t piece)
{
    sgt_backend *b = sgt_decoder_loads(d);
    for (size_t i = 0; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_model_tensor(m, i, &t);
        for (size_t at = 0; at < t.count; at += piece) {
            size_t n = t.count - at < piece ? t.count - at : piece;
            must(b->put(b, SGT_PARAMETERS, i, at, n, flat + t.offset + at, why));
        }
    }
}

static inline sgt_decoder *decoder(const fixture *f, uint32_t sequences, int threads, int bf16,
                                   size_t piece)
{
    sgt_decoder *d;
    sgt_decoder_options o = {
        .model = f->model, .sequences = sequences, .threads = threads, .bf16 = bf16};
    must(sgt_decoder_open(&d, &o, why));
    put_all(d, &f->model, f->initial, piece);
    return d;
}

static inline sgt_decoder *load(const char *name, uint32_t sequences, int threads)
{
    char dir[128];
    sgt_decoder *d;
    sgt_decoder_options o = {.sequences = sequences, .threads = threads};
    snprintf(dir, sizeof dir, SAMPLE "%s", name);
    must(sgt_checkpoint_shape(&o.model, dir, why));
    must(sgt_decoder_open(&d, &o, why));
    must(sgt_checkpoint_load_model(dir, sgt_decoder_loads(d), &o.model, why));
    return d;
}

#endif
