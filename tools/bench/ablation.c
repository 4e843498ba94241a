/* ablation.c: sgt-bench ablation: the gain of each training technique, on the user's own data and
 * machine. */
#include "tools/bench/ablation.h"

#include <stdlib.h>
#include <string.h>

#include "train/device.h"
#include "tools/bench/bench.h"
#include "tools/cli/process.h"

static struct {
    const char *data, *rows;
    uint64_t steps, warmup, rounds, memory_limit;
    double seconds;
    int largest;
} o = {.steps = 10, .warmup = 2, .seconds = 600};

static bench_shape shape = BENCH_SHAPE;

static const sgt_option table[] = {
    {.name = "What to run"},
    {"data", 'd', SGT_OPT_TEXT, &o.data, "OUT/|SHARD", .help = "shards to train on (required)"},
    BENCH_DEVICE(shape),
    BENCH_MODEL(shape),
    {"batch-size", 'b', SGT_OPT_COUNT, &shape.batch, "N",
     "rows per step, the same for all techniques", .def = "64 on CUDA, if they fit; 4 on a CPU",
     .min = 1, .max = 1 << 20},
    BENCH_SEQ(shape, 1 << 20),
    {"rows", 0, SGT_OPT_TEXT, &o.rows, "LIST", "techniques to measure, separated by commas",
     .def = "all",
     .words = "text|cold|mmap|preload|simd|overlap|async|tf32|bf16|fused|graphs|flash|padded|tied|"
              "accum|recompute"},
    BENCH_THREADS(shape),
    {.name = "How"},
    {"steps", 0, SGT_OPT_COUNT, &o.steps, "N", "steps measured per technique; the median is shown",
     .def = "10", .min = 1, .max = 100000},
    {"warmup", 0, SGT_OPT_COUNT, &o.warmup, "N", "steps before the measured ones", .def = "2",
     .min = 0, .max = 100000},
    {"rounds", 0, SGT_OPT_COUNT, &o.rounds, "N", "rounds over all techniques; the median is shown",
     .def = "1 on CUDA, 3 on a CPU", .min = 1, .max = ABLATION_ROUNDS},
    {"largest", 0, SGT_OPT_FLAG, &o.largest,
     .help = "measure each technique again with the largest batch that fits"},
    {"memory-limit", 0, SGT_OPT_SIZE, &o.memory_limit, "SIZE", "memory limit for the largest batch",
     .def = "half of what is free on a CPU; on CUDA the device's", .min = 1, .max = 9e18},
    {"seconds", 0, SGT_OPT_REAL, &o.seconds, "X", "time limit in seconds for all of --largest",
     .def = "600", .min = 1e-6, .max = 1e6},
    BENCH_OUTPUT(shape.output),
    {0}};

static const sgt_program program = {
    .name = "sgt-bench ablation",
    .usage = "sgt-bench ablation [OPTION]... --data OUT/",
    .about = "Trains a few steps with each technique in turn, from text that is encoded within the "
             "loop to all that sgt\n"
             "has: every row has the techniques of those above it, and the same batches. "
             "Techniques: text, cold, mmap,\n"
             "preload, simd, overlap, async, tf32, bf16, fused, graphs, flash, padded, tied, and "
             "two that save memory: accum\n"
             "and recompute. Those that a device lacks are named, with why.",
    .options = table,
    .examples = "  sgt-bench ablation --data out/ --model 4x256x4 --seq-len 128\n"
                "  sgt-bench ablation --data out/ --rows text,preload,tied --steps 30\n"
                "  sgt-bench ablation --data out/ --device cuda"};

static int no_technique(const char *name, sgt_error *err)
{
    static const char all[] = "text, cold, mmap, preload, simd, overlap, async, tf32, bf16, fused, "
                              "graphs, flash, padded, "
                              "tied, accum, recompute";
    char hint[SGT_HINT];
    return sgt_fail(err, SGT_EUSAGE, "--rows %s: no such technique (%s)%s", name, all,
                    sgt_suggest(name, strlen(name), all, "", hint));
}

static int take_rows(ablation *a, sgt_error *err)
{
    char *names[TECHNIQUES] = {0};
    int count = o.rows ? sgt_split_list(o.rows, names, TECHNIQUES) : 0, rc = SGT_OK;
    for (int t = 0; t < TECHNIQUES; t++) a->rows[t].wanted = !o.rows;
    if (count < 0)
        return sgt_fail(err, SGT_EUSAGE,
                        "--rows %s: expected one to %d names with commas between them", o.rows,
                        TECHNIQUES);
    for (int i = 0; i < count; i++) {
        int t = 0;
        while (t < TECHNIQUES && strcmp(names[i], techniques[t].name) != 0) t++;
        if (t < TECHNIQUES) a->rows[t].wanted = 1;
        else if (rc == SGT_OK) rc = no_technique(names[i], err);
    }
    for (int i = 0; i < count; i++) free(names[i]);
    return rc;
}

static int take_options(ablation *a, sgt_error *err)
{
    int cuda = strcmp(a->device, "cuda") == 0;
    a->data = o.data;
    a->model_name = shape.model;
    /* 0 on CUDA: ablation_settle chooses the largest that fits, up to 64 */
    a->batch = cuda ? (uint32_t)shape.batch : bench_batch(&shape, 0);
    a->seq = bench_seq(&shape, cuda);
    a->threads = bench_threads(&shape);
    a->at_largest = o.largest;
    a->memory_limit = o.memory_limit;
    a->seconds = o.seconds;
    a->warmup = (unsigned)o.warmup;
    a->steps = (unsigned)o.steps;
    a->rounds = (unsigned)(o.rounds ? o.rounds : cuda ? 1 : 3);
    int rc = sgt_model_named(&a->model, shape.model, err);
    if (a->seq > a->model.positions) a->model.positions = a->seq;
    return rc == SGT_OK ? take_rows(a, err) : rc;
}

/* Return whether to show the result of a measurement that returned rc. The rows of an interrupted
 * ablation are shown too, because they took minutes. */
static int worth(const void *bench, int rc)
{
    return rc == SGT_OK || (rc == SGT_ESTOPPED && ablation_any(bench));
}

/* take_options is called before the device is chosen, so that usage errors are reported first; and
 * again once the device is known, because defaults depend on it. */
static int measure(void *bench, const bench_call *call, sgt_error *err)
{
    ablation *a = bench;
    if (!o.data)
        return sgt_fail(err, SGT_EUSAGE, "--data: needed: the shards to train on (--data OUT/)");
    a->cache = sgt_cache_folder();
    a->notice = call->notice;
    a->stop = call->stop;
    a->device = shape.device;
    int rc = take_options(a, err);
    if (rc == SGT_OK) rc = sgt_device_choose(&a->device, &a->notice, err);
    if (rc == SGT_OK) rc = take_options(a, err);
    if (rc == SGT_OK) rc = ablation_settle(a, o.rows != NULL, err);
    return rc == SGT_OK ? ablation_measure(a, err) : rc;
}

static void release(void *bench) { free(((ablation *)bench)->cache); }

static const bench_subcommand techniques_in_turn = {.program = &program,
                                                    .output = &shape.output,
                                                    .size = sizeof(ablation),
                                                    .digits = 9,
                                                    .measure = measure,
                                                    .worth = worth,
                                                    .json = ablation_json,
                                                    .show = ablation_show,
                                                    .release = release};

static int bench_ablation(int argc, char **argv)
{
    return bench_subcommand_run(&techniques_in_turn, argc, argv);
}

const sgt_command bench_ablation_command = {"ablation", "what each technique of training brings",
                                            &program, bench_ablation};
