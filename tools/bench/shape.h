/* shape.h: the options that gemm, attention, step and ablation share: device, model, rows and their
 * tokens, precision, threads and output.
 *
 *     static bench_shape shape = BENCH_SHAPE;
 *     static const sgt_option table[] = {BENCH_DEVICE(shape), BENCH_MODEL(shape), ...,
 *                                        BENCH_OUTPUT(shape.output), {0}}; */
#ifndef SGT_TOOLS_BENCH_SHAPE_H
#define SGT_TOOLS_BENCH_SHAPE_H

#include "train/backend.h"
#include "train/settings.h"
#include "tools/bench/subcommand.h"

typedef struct bench_shape {
    const char *device, *model;
    int precision;                /* sgt_precision */
    uint64_t batch, seq, threads; /* 0: not given */
    int precision_given;
    bench_output output;
} bench_shape;

#define BENCH_SHAPE                       \
    {                                     \
        .device = "auto", .model = "gpt2" \
    }

#define BENCH_DEVICE(o)                                                   \
    {                                                                     \
        "device", 0, SGT_OPT_CHOICE, &(o).device, "auto|cpu|cuda",        \
            "where to run; auto is CUDA if it can be used", .def = "auto" \
    }
#define BENCH_MODEL(o)                                                                       \
    {                                                                                        \
        "model", 'm', SGT_OPT_TEXT, &(o).model, "gpt2|gpt2-medium|gpt2-large|gpt2-xl|LxCxH", \
            "a GPT-2, or layers x channels x heads", .def = "gpt2"                           \
    }
#define BENCH_BATCH(o, about, most)                                                                \
    {                                                                                              \
        "batch-size", 'b', SGT_OPT_COUNT, &(o).batch, "N", about, .def = "64 on CUDA, 4 on a CPU", \
                                                                  .min = 1, .max = most            \
    }
#define BENCH_SEQ(o, default_on_cpu, most)                                            \
    {                                                                                 \
        "seq-len", 0, SGT_OPT_COUNT, &(o).seq, "N", "tokens per row",                 \
            .def = "1024 on CUDA, " default_on_cpu " on a CPU", .min = 1, .max = most \
    }
#define BENCH_PRECISION(o, about)                                                       \
    {                                                                                   \
        "precision", .as = &sgt_settings_rows[SGT_SET_PRECISION], .to = &(o).precision, \
                     .help = about, .def = "bf16 on CUDA, fp32 on a CPU",               \
                     .given = &(o).precision_given                                      \
    }
#define BENCH_THREADS(o)                                                         \
    {                                                                            \
        "threads", 0, SGT_OPT_COUNT, &(o).threads, "N", "number of CPU threads", \
            .def = "all available cores", .min = 1, .max = 1024                  \
    }

/* Return the value that the user gave, or the device's default. */
uint32_t bench_batch(const bench_shape *o, int cuda);
uint32_t bench_seq(const bench_shape *o, int cuda, uint32_t on_cpu);
sgt_precision bench_precision(const bench_shape *o, int cuda);
int bench_threads(const bench_shape *o);

#endif
