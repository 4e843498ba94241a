/* attention_cuda.c: measures attention on CUDA: sgt's own, cuDNN's and the naive one, each in a
 * backend with one layer. */
#include <stdio.h>
#include <string.h>

#include "train/device.h"
#include "tools/bench/attention.h"

static const struct {
    const char *name;
    sgt_attention way;
} ways[] = {
    {"own", SGT_ATTENTION_OWN}, {"cudnn", SGT_ATTENTION_CUDNN}, {"naive", SGT_ATTENTION_NAIVE}};

static sgt_backend_options options(const attention_bench *b, sgt_attention way)
{
    return (sgt_backend_options){.model = {.layers = 1,
                                           .channels = (uint32_t)(b->H * b->D),
                                           .heads = (uint32_t)b->H,
                                           .vocab = 64, /* everything but attention is kept small */
                                           .positions = (uint32_t)b->T,
                                           .eps = 1e-5f},
                                 .optim = {.kind = SGT_SGD},
                                 .batch = (uint32_t)b->B,
                                 .seq = (uint32_t)b->T,
                                 .accum = 1,
                                 .threads = b->threads,
                                 .precision = b->precision,
                                 .attention = way,
                                 .cache = b->cache};
}

/* Measure one implementation. If it is unsupported or does not fit in memory, its line gets the
 * reason. */
static int time_way(attention_bench *b, const sgt_cuda_library *lib, const char *name,
                    sgt_attention way, sgt_error *err)
{
    sgt_cuda_attention_times t;
    attention_line *l = &b->lines[b->count++];
    sgt_backend_options o = options(b, way);
    *l = (attention_line){.way = name};
    int rc = lib->attention(&t, &o, err);
    if (rc == SGT_EUNSUPPORTED || rc == SGT_ENOMEM) {
        snprintf(l->why, sizeof l->why, "%.199s", err->text);
        return SGT_OK;
    }
    if (rc < 0) return rc;
    l->forward_ms = (double)t.forward_ms;
    l->backward_ms = (double)t.backward_ms;
    snprintf(b->library, sizeof b->library, "%s", t.library);
    b->peak_flops = t.peak_flops;
    return SGT_OK;
}

int attention_on_cuda(attention_bench *b, sgt_error *err)
{
    const sgt_cuda_library *lib;
    sgt_cuda_device d;
    int rc = sgt_device_cuda(&lib, &d, err);
    if (rc < 0) return rc;
    snprintf(b->device, sizeof b->device, "%.63s", d.name);
    for (size_t i = 0; i < sizeof ways / sizeof *ways && rc == SGT_OK; i++) {
        if (sgt_stopped(b->stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
        rc = time_way(b, lib, ways[i].name, ways[i].way, err);
        /* If tensor cores are unsupported, training uses tiles without them. */
        if (rc == SGT_OK && i == 0 && !(b->lines[0].forward_ms > 0))
            rc = time_way(b, lib, "tiled", SGT_ATTENTION_AUTO, err);
    }
    return rc;
}
